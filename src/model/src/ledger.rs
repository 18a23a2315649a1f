//! The books: the one function that moves a task, and with it every sum that depends on where it stands.
//!
//! Cost of a move: the width of a resource vector, times the depth of the queue tree.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::ids::{JobId, NodeId, QueueId, TaskId};
use crate::job::{Held, JobBooks};
use crate::node::NodeBooks;
use crate::resources::Resources;
use crate::shape::Shape;
use crate::state::ClusterState;
use crate::storage::{ClaimChoice, Storage};
use crate::task::{DeviceShare, QueueGate, Task};
use crate::task_status::TaskStatus;

/// Where a task is and what it holds there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) status: TaskStatus,
    pub(crate) node: Option<NodeId>,
    pub(crate) devices: SmallVec<[DeviceShare; 1]>,
    /// What was chosen for its claims there.
    pub(crate) choices: Option<Arc<[ClaimChoice]>>,
}

impl Place {
    pub(crate) fn without_node(status: TaskStatus) -> Self {
        Self { status, node: None, devices: SmallVec::new(), choices: None }
    }
}

impl Task {
    pub(crate) fn place(&self) -> Place {
        Place { status: self.status, node: self.node, devices: self.devices.clone(), choices: self.choices.clone() }
    }
}

impl ClusterState {
    /// Moves a task. The caller has checked the move.
    pub(crate) fn relocate(&mut self, id: TaskId, to: Place) {
        let (from, room_before) = (self.tasks[id].place(), self.room_version);
        self.uncharge(id);
        // A task that goes on along its way on its node gives no room back.
        if from.node == to.node
            && from.status.is_allocated()
            && to.status.is_allocated()
            && from.devices == to.devices
            && from.choices == to.choices
        {
            self.room_version = room_before;
        }
        let task = &mut self.tasks[id];
        task.status = to.status;
        task.node = to.node;
        task.devices = to.devices;
        task.choices = to.choices;
        self.charge(id);
    }

    /// Adds a task to every book that its place says.
    pub(crate) fn charge(&mut self, id: TaskId) {
        self.version += 1;
        self.charge_claims(id, true);
        self.count_in_elastic_quota(id, true);
        let task = &self.tasks[id];
        let shape = self.shapes.get(task.shape);
        if matches!(task.status, TaskStatus::Allocated | TaskStatus::Pipelined) {
            self.reserved.insert(id);
        }
        if !shape.spec.volumes.is_empty() {
            self.volume_ledger.charge(id, task, shape);
            if task.status == TaskStatus::Pending {
                self.volume_waiters.insert(id);
            }
        }
        if task.status == TaskStatus::Releasing {
            self.room_version += 1; // others may wait for what it will leave
            self.releasing.insert(id);
        }
        if task.node.is_some() && (task.status.holds_node() || task.status == TaskStatus::Pipelined) {
            if !shape.spec.pod_anti_affinity.required.is_empty() {
                self.repelling.insert(id);
            }
            if !shape.spec.pod_affinity.is_empty() || !shape.spec.pod_anti_affinity.is_empty() {
                self.affine.insert(id);
            }
        }
        if let Some(node) = task.node.and_then(|node| self.nodes.get_mut(node)) {
            charge_node(&mut node.books, id, task, shape, &self.storage);
            if task.status.holds_node() {
                self.totals.used.add(&shape.request);
            }
            match task.status {
                TaskStatus::Releasing => self.totals.releasing.add(&shape.request),
                TaskStatus::Pipelined => self.totals.pipelined.add(&shape.request),
                _ => {}
            }
        }
        let (job_id, node) = (task.job, task.node);
        if let Some(job_id) = job_id {
            let job = &mut self.jobs[job_id];
            charge_job(&mut job.books, task, shape);
            if let (true, Some(queue)) = (parts_of(task).next().is_some(), job.queue) {
                for &above in &self.queues[queue].path.clone() {
                    parts_of(task).for_each(|part| part(&mut self.queues[above].held).add(&shape.request));
                }
            }
            self.changed_jobs.insert(job_id);
            self.refresh_waiting(job_id);
        }
        if let Some(node) = node {
            self.touch_node(node);
            self.refresh_overdraft(node);
        }
    }

    /// Takes a task out of every book that its place says.
    pub(crate) fn uncharge(&mut self, id: TaskId) {
        self.version += 1;
        self.charge_claims(id, false);
        self.count_in_elastic_quota(id, false);
        let task = &self.tasks[id];
        let shape = self.shapes.get(task.shape);
        if matches!(task.status, TaskStatus::Allocated | TaskStatus::Pipelined) {
            self.reserved.remove(&id);
        }
        if !shape.spec.volumes.is_empty() {
            self.volume_ledger.uncharge(id, task, shape);
            self.volume_waiters.remove(&id);
        }
        if task.status == TaskStatus::Releasing {
            self.releasing.remove(&id);
        }
        if !self.affine.is_empty() {
            self.repelling.remove(&id);
            self.affine.remove(&id);
        }
        if let Some(node) = task.node.and_then(|node| self.nodes.get_mut(node)) {
            uncharge_node(&mut node.books, id, task, shape, &self.storage);
            if task.status.holds_node() || task.status == TaskStatus::Pipelined {
                self.room_version += 1;
            }
            if task.status.holds_node() {
                self.totals.used.sub(&shape.request);
            }
            match task.status {
                TaskStatus::Releasing => self.totals.releasing.sub(&shape.request),
                TaskStatus::Pipelined => self.totals.pipelined.sub(&shape.request),
                _ => {}
            }
        }
        let (job_id, node) = (task.job, task.node);
        if let Some(job_id) = job_id {
            let job = &mut self.jobs[job_id];
            uncharge_job(&mut job.books, task, shape);
            if let (true, Some(queue)) = (parts_of(task).next().is_some(), job.queue) {
                for &above in &self.queues[queue].path.clone() {
                    parts_of(task).for_each(|part| part(&mut self.queues[above].held).sub(&shape.request));
                }
            }
            self.changed_jobs.insert(job_id);
        }
        if let Some(node) = node {
            self.touch_node(node);
            self.refresh_overdraft(node);
        }
    }

    /// Lets a task that has only the gate of its queue through that gate, or takes that back, as long as nobody was told.
    pub fn set_queue_gate(&mut self, id: TaskId, gate: QueueGate) {
        if self.tasks[id].status == TaskStatus::Gated && self.tasks[id].queue_gate != QueueGate::None {
            self.uncharge(id);
            self.tasks[id].queue_gate = gate;
            self.charge(id);
        }
    }

    /// Brings a node's place among the overdrawn ones up to date.
    pub(crate) fn refresh_overdraft(&mut self, id: NodeId) {
        let Some(node) = self.nodes.get(id) else { return };
        if node.books.used.within(&node.allocatable) && node.books.pipelined.is_zero() {
            if !self.overdrawn.is_empty() {
                self.overdrawn.remove(&id);
            }
        } else if node.future_idle().iter().any(|(_, free)| free < 0) {
            self.overdrawn.insert(id);
        } else {
            self.overdrawn.remove(&id);
        }
    }

    /// Brings a job's place among the waiting ones up to date.
    pub(crate) fn refresh_waiting(&mut self, id: JobId) {
        if self.jobs[id].is_waiting() {
            self.waiting_jobs.insert(id);
        } else {
            self.waiting_jobs.remove(&id);
        }
    }

    /// Sums of every job below `queue`, recomputed.
    pub(crate) fn recount_queue(&self, queue: QueueId) -> Held {
        let mut held = Held::default();
        for (_, job) in self.jobs.iter() {
            let below = job.queue.is_some_and(|own| self.queues[own].path.contains(&queue));
            if below {
                held.allocated.add(&job.books.held.allocated);
                held.pipelined.add(&job.books.held.pipelined);
                held.releasing.add(&job.books.held.releasing);
                held.pending.add(&job.books.held.pending);
                held.at_gate.add(&job.books.held.at_gate);
                held.let_through.add(&job.books.held.let_through);
            }
        }
        for kept in self.reservations() {
            let of_job = kept.job.and_then(|job| self.jobs[job].queue);
            let below = of_job.is_some_and(|own| self.queues[own].path.contains(&queue));
            if below {
                held.reserved.add(&self.shapes.get(kept.shape).request);
            }
        }
        held
    }

    /// A job's books, recomputed from its tasks.
    pub(crate) fn recount_job(&self, id: JobId) -> JobBooks {
        let job = &self.jobs[id];
        let mut fresh = JobBooks::default();
        for role in &job.books.roles {
            fresh.role_mut(&role.name).min = role.min;
        }
        for &task in &job.tasks {
            charge_job(&mut fresh, &self.tasks[task], self.shapes.get(self.tasks[task].shape));
        }
        fresh
    }

    /// A node's books, recomputed from what is kept there and the tasks that name it. `tasks` must hold all of those.
    pub(crate) fn recount_node(&self, id: NodeId, tasks: &[TaskId]) -> NodeBooks {
        let devices = crate::devices::Devices::idle(self.nodes[id].spec.gpu_devices);
        let mut books = NodeBooks { devices, ..NodeBooks::default() };
        for &task in tasks {
            if self.tasks[task].node == Some(id) {
                let shape = self.shapes.get(self.tasks[task].shape);
                charge_node(&mut books, task, &self.tasks[task], shape, &self.storage);
            }
        }
        for kept in self.reservations().filter(|kept| kept.node == id) {
            books.pipelined.add(&self.shapes.get(kept.shape).request);
        }
        self.count_attachments(id, &mut books.attached);
        books
    }
}

/// A sum of the books.
type Part = fn(&mut Held) -> &mut Resources;

/// The parts of the books that a task is kept in.
fn parts_of(task: &Task) -> impl Iterator<Item = Part> {
    let of_status: Option<Part> = match task.status {
        TaskStatus::Allocated | TaskStatus::Binding | TaskStatus::Bound | TaskStatus::Running => {
            Some(|held| &mut held.allocated)
        }
        TaskStatus::Pipelined => Some(|held| &mut held.pipelined),
        TaskStatus::Releasing => Some(|held| &mut held.releasing),
        TaskStatus::Pending => Some(|held| &mut held.pending),
        TaskStatus::Gated if task.queue_gate != QueueGate::None => Some(|held| &mut held.at_gate),
        TaskStatus::Gated | TaskStatus::Succeeded | TaskStatus::Failed | TaskStatus::Unknown => None,
    };
    let kept: Option<Part> = if task.keeps_room_in_its_queue() { Some(|held| &mut held.let_through) } else { None };
    of_status.into_iter().chain(kept)
}

fn charge_job(books: &mut JobBooks, task: &Task, shape: &Shape) {
    let status = task.status;
    let free = status == TaskStatus::Pending && shape.best_effort;
    books.counts.add(status);
    let role = books.role_mut(&shape.spec.role);
    role.counts.add(status);
    role.pending_best_effort += u32::from(free);
    books.pending_best_effort += u32::from(free);
    parts_of(task).for_each(|part| part(&mut books.held).add(&shape.request));
}

fn uncharge_job(books: &mut JobBooks, task: &Task, shape: &Shape) {
    let status = task.status;
    let free = status == TaskStatus::Pending && shape.best_effort;
    books.counts.remove(status);
    let role = books.role_mut(&shape.spec.role);
    role.counts.remove(status);
    role.pending_best_effort = role.pending_best_effort.saturating_sub(u32::from(free));
    books.pending_best_effort = books.pending_best_effort.saturating_sub(u32::from(free));
    parts_of(task).for_each(|part| part(&mut books.held).sub(&shape.request));
}

fn charge_node(books: &mut NodeBooks, id: TaskId, task: &Task, shape: &Shape, storage: &Storage) {
    let holds = task.status.holds_node();
    if !holds && task.status != TaskStatus::Pipelined {
        return;
    }
    if let Err(at) = books.tasks.binary_search(&id) {
        books.tasks.insert(at, id);
    }
    for volume in storage.attached_by(task, shape) {
        books.attached.shift(&volume, task.status == TaskStatus::Releasing, true);
    }
    if !holds {
        books.pipelined.add(&shape.request);
        return;
    }
    books.used.add(&shape.request);
    books.scored_used.add(&shape.scored_request);
    books.devices.take(&task.devices);
    books.ports.extend(shape.spec.host_ports.iter().map(|port| (port.clone(), id)));
    books.ports.sort_unstable();
    if task.status == TaskStatus::Releasing {
        books.releasing.add(&shape.request);
    }
}

fn uncharge_node(books: &mut NodeBooks, id: TaskId, task: &Task, shape: &Shape, storage: &Storage) {
    let holds = task.status.holds_node();
    if !holds && task.status != TaskStatus::Pipelined {
        return;
    }
    if let Ok(at) = books.tasks.binary_search(&id) {
        books.tasks.remove(at);
    }
    for volume in storage.attached_by(task, shape) {
        books.attached.shift(&volume, task.status == TaskStatus::Releasing, false);
    }
    if !holds {
        books.pipelined.sub(&shape.request);
        return;
    }
    books.used.sub(&shape.request);
    books.scored_used.sub(&shape.scored_request);
    books.devices.give_back(&task.devices);
    books.ports.retain(|(_, owner)| *owner != id);
    if task.status == TaskStatus::Releasing {
        books.releasing.sub(&shape.request);
    }
}

/// Which book is off, and by what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discrepancy {
    /// `node n`, `job ns/name`, `queue q` or `cluster`.
    pub object: String,
    /// What the incremental book says.
    pub kept: String,
    /// What the live pods say.
    pub recounted: String,
}

impl std::fmt::Display for Discrepancy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: the book says {}, the pods say {}", self.object, self.kept, self.recounted)
    }
}
