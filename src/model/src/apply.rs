//! What happened: events and outcomes, applied to the state.
//!
//! Applying never fails. What cannot be as it is becomes a [`Problem`] beside the new state, and harms nothing else.

use std::sync::Arc;

use crate::cluster_event::{ActionType, EventResource, pod_changes};
use crate::event::{Event, Problem, QuotaSpec};
use crate::ids::TaskId;
use crate::ledger::Place;
use crate::name::Name;
use crate::pod::{PodPhase, PodShape, PodSpec, QUEUE_GATE};
use crate::state::ClusterState;
use crate::task::{QueueGate, Task, ordinal_of};
use crate::task_status::TaskStatus;
use crate::time::Time;

impl ClusterState {
    /// Applies one event. Must not be called while a session has uncommitted operations.
    pub fn apply(&mut self, event: Event) -> Vec<Problem> {
        self.version += 1;
        let mut problems = Vec::new();
        match event {
            Event::Node(spec) => self.apply_node(spec, &mut problems),
            Event::NodeGone(name) => self.remove_node(&name),
            Event::Pod(spec) => self.apply_pod(spec, &mut problems),
            Event::PodGone(uid) => self.remove_pod(&uid),
            Event::PodGroup(spec) => {
                self.note_other(EventResource::PodGroup, ActionType::ADD.and(ActionType::UPDATE));
                self.apply_pod_group(spec, &mut problems);
            }
            Event::PodGroupGone { namespace, name } => self.remove_pod_group(&namespace, &name),
            Event::Queue(spec) => self.apply_queue(spec, &mut problems),
            Event::QueueGone(name) => self.remove_queue(&name, &mut problems),
            Event::PriorityClass(class) => {
                self.priority_classes.set(class);
                self.refresh_priorities();
            }
            Event::PriorityClassGone(name) => {
                self.priority_classes.remove(&name);
                self.refresh_priorities();
            }
            Event::Quota(quota) => self.apply_quota(quota),
            Event::QuotaGone { namespace, name } => {
                self.quotas.remove(&(namespace, name));
            }
            Event::Namespace(spec) => {
                self.note_other(EventResource::Surroundings, ActionType::UPDATE);
                self.room_version += 1; // terms that look at namespaces by label may match others now
                self.namespaces_version = self.version;
                self.namespaces.insert(spec.name, spec.labels);
            }
            Event::NamespaceGone(name) => {
                self.namespaces_version = self.version;
                self.namespaces.remove(&name);
            }
            Event::Workload(spec) => {
                self.note_other(EventResource::Surroundings, ActionType::UPDATE);
                self.room_version += 1;
                self.workloads.insert((spec.namespace, spec.workload), spec.selector);
            }
            Event::WorkloadGone { namespace, workload } => {
                self.room_version += 1;
                self.workloads.remove(&(namespace, workload));
            }
            Event::ResourceClaim(spec) => self.apply_claim(*spec),
            Event::ResourceClaimGone { namespace, name } => self.remove_claim(&namespace, &name),
            Event::ResourceSlice(spec) => {
                self.devices_changed(EventResource::ResourceSlice);
                self.dynamic_resources.set_slice(spec);
            }
            Event::ResourceSliceGone(name) => self.dynamic_resources.remove_slice(&name),
            Event::DeviceClass(spec) => {
                self.devices_changed(EventResource::DeviceClass);
                self.dynamic_resources.set_class(spec);
            }
            Event::DeviceClassGone(name) => self.dynamic_resources.remove_class(&name),
            Event::NodeUsage(spec) => self.apply_node_usage(spec),
            Event::PodUsage(specs) => self.apply_pod_usage(specs),
            Event::Storage(object) => self.apply_storage(object),
            Event::StorageGone(key) => self.remove_storage(&key),
            Event::ElasticQuota(spec) => self.apply_elastic_quota(spec, &mut problems),
            Event::ElasticQuotaGone { namespace, name } => self.remove_elastic_quota(&namespace, &name, &mut problems),
            Event::Budget(budget) => self.apply_budget(budget),
            Event::BudgetGone { namespace, name } => {
                self.budgets.remove(&(namespace, name));
            }
        }
        problems
    }

    /// A bind was carried out.
    pub fn bind_done(&mut self, task: TaskId) {
        let place = self.tasks[task].place();
        if place.status == TaskStatus::Binding {
            self.tasks[task].refusals = 0;
            self.relocate(task, Place { status: TaskStatus::Bound, ..place });
            self.note_pod(task, ActionType::ADD);
        }
    }

    /// A bind was refused; the task may be tried again from `retry_at` on.
    pub fn bind_refused(&mut self, task: TaskId, retry_at: Time) {
        if self.tasks[task].status == TaskStatus::Binding {
            self.note_left_node(task);
            self.relocate(task, Place::without_node(TaskStatus::Pending));
            let task = &mut self.tasks[task];
            task.refusals = task.refusals.saturating_add(1);
            task.retry_at = retry_at;
        }
    }

    /// A task that waits is not to be tried before `retry_at`.
    pub fn pause(&mut self, task: TaskId, retry_at: Time) {
        self.tasks[task].retry_at = retry_at;
    }

    /// Somebody has taken an eviction on, and moves the pod in their own time: the task keeps its node, and is not asked to go
    /// again before `until`.
    pub fn eviction_taken_on(&mut self, task: TaskId, until: Time) {
        self.evict_refused(task, until);
        self.tasks[task].evacuates_until = until;
    }

    /// An eviction was refused; the task keeps its node.
    pub fn evict_refused(&mut self, task: TaskId, retry_at: Time) {
        self.tasks[task].retry_at = retry_at;
        let place = self.tasks[task].place();
        if place.status == TaskStatus::Releasing {
            let status = match self.tasks[task].phase {
                PodPhase::Running => TaskStatus::Running,
                _ => TaskStatus::Bound,
            };
            self.relocate(task, Place { status, ..place });
            self.keep_one_less(task);
        }
    }

    fn apply_quota(&mut self, quota: QuotaSpec) {
        self.quotas.insert((quota.namespace.clone(), quota.name.clone()), quota);
    }

    fn apply_pod(&mut self, spec: PodSpec, problems: &mut Vec<Problem>) {
        let label = || format!("pod {}/{}", spec.shape.namespace, spec.name);
        let shape = match self.shapes.acquire(&spec.shape, &mut self.names) {
            Ok(shape) => shape,
            Err(resource) => {
                problems.push(Problem {
                    object: label(),
                    message: format!(
                        "asks for `{resource}`, but the cluster already uses {} distinct resource names, the most there may be; the pod is left out",
                        crate::resources::MAX_RESOURCE_NAMES
                    ),
                });
                return;
            }
        };
        let before = self.task_by_uid.get(&spec.uid).map(|id| {
            let task = &self.tasks[*id];
            (Arc::clone(&self.shapes.get(task.shape).spec), task.gates, task.status)
        });
        let claimed = |state: &Self, id: TaskId| state.tasks[id].claims.clone();
        let claims_before = self.task_by_uid.get(&spec.uid).map(|id| claimed(self, *id));
        let id = match self.task_by_uid.get(&spec.uid) {
            Some(&id) => {
                let (room_before, same_shape) = (self.room_version, self.tasks[id].shape == shape);
                self.uncharge(id);
                if same_shape {
                    self.room_version = room_before;
                }
                // A pod that does not say so yet may have been nominated all the same.
                let nominated = spec.nominated.is_some() || !self.nominees.contains(&id);
                let task = &mut self.tasks[id];
                let old = std::mem::replace(&mut task.shape, shape);
                task.priority = spec.priority;
                task.gates = u32::try_from(spec.gates.len()).unwrap_or(u32::MAX);
                task.queue_gate = queue_gate_of(&spec, task.queue_gate);
                if nominated {
                    task.nominated = spec.nominated.clone();
                }
                task.phase = spec.phase;
                task.attained_ms = spec.attained_ms.or(task.attained_ms);
                task.deleting = spec.deleting;
                task.scheduled_at = spec.scheduled_at.or(task.scheduled_at);
                task.claims = spec.claims.clone().into();
                let group_changed = task.group != spec.group;
                self.charge(id);
                self.release_shape(old);
                if group_changed {
                    self.join_group(id, spec.group.clone());
                }
                id
            }
            None => {
                let id = self.tasks.insert(Task {
                    uid: spec.uid.clone(),
                    name: spec.name.clone(),
                    shape,
                    job: None,
                    group: None,
                    created: spec.created,
                    priority: spec.priority,
                    ordinal: ordinal_of(&spec.name),
                    gates: u32::try_from(spec.gates.len()).unwrap_or(u32::MAX),
                    queue_gate: queue_gate_of(&spec, QueueGate::None),
                    status: TaskStatus::Gated,
                    node: None,
                    devices: Default::default(),
                    claims: spec.claims.clone().into(),
                    choices: None,
                    nominated: spec.nominated.clone(),
                    phase: spec.phase,
                    started: None,
                    attained_ms: spec.attained_ms,
                    details: None,
                    deleting: spec.deleting,
                    scheduled_at: spec.scheduled_at,
                    refusals: 0,
                    retry_at: Time::default(),
                    evacuates_until: Time::default(),
                });
                self.task_by_uid.insert(spec.uid.clone(), id);
                self.charge(id);
                self.join_group(id, spec.group.clone());
                id
            }
        };
        let now = self.now;
        let task = &mut self.tasks[id];
        // A pod that runs and does not say since when began when that was first heard of.
        let heard = (spec.phase == PodPhase::Running).then_some(now);
        task.started = spec.started.or(task.started).or(heard);
        if spec.details.is_some() && task.details != spec.details {
            task.details.clone_from(&spec.details);
        }
        if spec.nominated.is_some() {
            self.nominees.insert(id);
        }
        self.follow_pod(id, &spec, problems);
        if claims_before.is_some_and(|claims| claims != self.tasks[id].claims) {
            self.note_pod(id, ActionType::UPDATE_POD_GENERATED_CLAIM);
        }
        self.note_change_of_pod(id, before);
    }

    /// Notes what an event has changed about a pod; `before` has its signature, gates and status.
    fn note_change_of_pod(&mut self, id: TaskId, before: Option<(Arc<PodShape>, u32, TaskStatus)>) {
        if self.cluster_events.is_none() {
            return;
        }
        let task = &self.tasks[id];
        let action = match before {
            None => ActionType::ADD,
            Some((_, _, was)) if task.status.is_finished() && !was.is_finished() => ActionType::DELETE,
            Some((_, _, was)) if task.status.is_committed() && !was.is_committed() => ActionType::ADD,
            Some((shape, gates, _)) => {
                pod_changes(&shape, &self.shapes.get(task.shape).spec, gates > 0 && task.gates == 0)
            }
        };
        if !action.is_empty() {
            self.note_pod(id, action);
        }
    }

    /// Moves a task to where its pod says it is.
    fn follow_pod(&mut self, id: TaskId, spec: &PodSpec, problems: &mut Vec<Problem>) {
        let now = self.tasks[id].place();
        let reported = status_of(spec);
        let status = match (now.status, reported) {
            // A pod never loses its node, and one that is evicted terminates: the report is older than what is known.
            (from, to) if from.is_committed() && to.is_waiting() => return,
            (TaskStatus::Releasing, TaskStatus::Bound | TaskStatus::Running) if !spec.deleting => return,
            _ => reported,
        };
        if let Err(forbidden) = now.status.check_move(status) {
            problems.push(Problem {
                object: format!("pod {}/{}", spec.shape.namespace, spec.name),
                message: format!("{forbidden}; the report is ignored"),
            });
            return;
        }
        self.leave_home(id);
        let node = spec.node.as_ref().and_then(|name| self.find_node(name));
        if let (Some(name), None) = (&spec.node, node)
            && !status.is_finished()
        {
            self.homeless.entry(name.clone()).or_default().insert(id);
        }
        let stays = now.node == node && node.is_some();
        let choices = now.choices.filter(|_| stays);
        let devices = if stays {
            now.devices
        } else {
            node.map(|node| {
                let host = &self.nodes[node];
                // Someone else placed it: whichever devices it took, it holds that much.
                host.books.devices.choose(host.device_request(self.shape_of(id))).unwrap_or_default()
            })
            .unwrap_or_default()
        };
        let target = Place { status, node, devices, choices };
        if target != self.tasks[id].place() {
            self.relocate(id, target);
        }
    }

    /// Takes a task out of the list of those whose node is not known.
    fn leave_home(&mut self, id: TaskId) {
        if self.homeless.is_empty() {
            return;
        }
        self.homeless.retain(|_, tasks| {
            tasks.remove(&id);
            !tasks.is_empty()
        });
    }

    /// Links a task to the job of its group, now or when that comes.
    pub(crate) fn join_group(&mut self, id: TaskId, group: Option<Name>) {
        self.leave_group(id);
        let Some(group) = group else { return };
        let key = (self.namespace_of(id).clone(), group.clone());
        self.tasks[id].group = Some(group);
        match self.job_by_key.get(&key) {
            Some(&job) => {
                self.uncharge(id);
                self.tasks[id].job = Some(job);
                self.goes_on(id, job);
                self.jobs[job].tasks.insert(id);
                self.charge(id);
            }
            None => {
                self.orphans.entry(key).or_default().insert(id);
            }
        }
    }

    fn leave_group(&mut self, id: TaskId) {
        let Some(group) = self.tasks[id].group.clone() else { return };
        if let Some(job) = self.tasks[id].job {
            self.uncharge(id);
            self.tasks[id].job = None;
            self.jobs[job].tasks.remove(&id);
            self.charge(id);
            self.refresh_waiting(job);
        }
        let key = (self.namespace_of(id).clone(), group);
        if let Some(tasks) = self.orphans.get_mut(&key) {
            tasks.remove(&id);
            if tasks.is_empty() {
                self.orphans.remove(&key);
            }
        }
        self.tasks[id].group = None;
    }

    fn remove_pod(&mut self, uid: &Name) {
        let Some(id) = self.task_by_uid.remove(uid) else { return };
        if !self.tasks[id].status.is_finished() {
            self.note_pod(id, ActionType::DELETE);
        }
        self.nominees.remove(&id);
        self.leave_home(id);
        self.remember_run(id);
        self.leave_group(id);
        self.uncharge(id);
        if let Some(task) = self.tasks.remove(id) {
            self.release_shape(task.shape);
        }
    }

    pub(crate) fn release_shape(&mut self, shape: crate::ids::ShapeId) {
        if self.shapes.release(shape) {
            self.room_version += 1; // its id will mean another shape
        }
    }
}

/// How a pod stands to the gate of its queue. One that was let through is so, whatever an older report says.
fn queue_gate_of(pod: &PodSpec, known: QueueGate) -> QueueGate {
    match &pod.gates[..] {
        _ if !pod.shape.asks_its_queue => QueueGate::None,
        [] => QueueGate::Open,
        [only] if &**only == QUEUE_GATE => {
            if known == QueueGate::Open {
                known
            } else {
                QueueGate::Shut
            }
        }
        _ => QueueGate::None,
    }
}

/// Where a pod says that it is.
pub(crate) fn status_of(pod: &PodSpec) -> TaskStatus {
    match pod.phase {
        PodPhase::Succeeded => TaskStatus::Succeeded,
        PodPhase::Failed => TaskStatus::Failed,
        PodPhase::Unknown => TaskStatus::Unknown,
        _ if pod.deleting => TaskStatus::Releasing,
        PodPhase::Running => TaskStatus::Running,
        PodPhase::Pending if pod.node.is_some() => TaskStatus::Bound,
        PodPhase::Pending if !pod.gates.is_empty() => TaskStatus::Gated,
        PodPhase::Pending => TaskStatus::Pending,
    }
}
