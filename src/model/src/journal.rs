//! The journal: what a session tries, undone unless it is kept.
//!
//! An operation is applied to the books at once and written down with what was there before. Rolling back to a
//! savepoint restores every book exactly. Nothing is cloned; an operation and its undo cost one move each.

use smallvec::SmallVec;

use crate::devices::DeviceRequest;
use crate::ids::{NodeId, TaskId};
use crate::ledger::Place;
use crate::reservation::{Reservation, ReservationId};
use crate::resources::Shortfall;
use crate::state::ClusterState;
use crate::task_status::{ForbiddenMove, TaskStatus};

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Gives a task room that is free now.
    Allocate,
    /// Promises a task room that is being released.
    Pipeline,
    /// Takes a task's node away.
    Evict,
    /// Gives an evicted task its node back.
    Reprieve,
}

/// One operation of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What was done.
    pub verb: Verb,
    /// To which task.
    pub task: TaskId,
    /// On which node.
    pub node: NodeId,
}

/// One entry of the journal.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// An operation, and where its task was before.
    Moved(Operation, Place),
    /// Room was kept.
    Reserved(ReservationId),
    /// What was kept was given up.
    Lifted(ReservationId, Reservation),
}

/// A point in the journal to go back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Savepoint(usize);

/// Why an operation was refused; nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The task's state does not allow it.
    Move(ForbiddenMove),
    /// The node has not enough of a resource.
    Short(Shortfall),
    /// The node's devices cannot serve the request.
    Devices(DeviceRequest),
    /// The task has no node to lose.
    NoNode,
    /// The task has not been evicted by this session.
    NotEvicted,
    /// A plugin would not reserve what the task needs there.
    Reserve,
}

impl ClusterState {
    /// The current end of the journal.
    pub fn savepoint(&self) -> Savepoint {
        Savepoint(self.journal.len())
    }

    /// Gives `task` room on `node` that is free now.
    pub fn allocate(&mut self, task: TaskId, node: NodeId) -> Result<(), Refusal> {
        self.allocate_with(task, node, None)
    }

    /// As [`Self::allocate`]; a share of a device is taken of `device`, if that has so much left.
    pub fn allocate_with(&mut self, task: TaskId, node: NodeId, device: Option<u8>) -> Result<(), Refusal> {
        let shape = self.shape_of(task);
        let host = &self.nodes[node];
        if let Some(short) = self.asked_of_nodes(shape).first_over(&host.books.used, &host.allocatable) {
            return Err(Refusal::Short(short));
        }
        let wanted = host.device_request(shape);
        let devices = host.books.devices.choose_with(wanted, device).ok_or(Refusal::Devices(wanted))?;
        let to = Place { status: TaskStatus::Allocated, node: Some(node), devices, choices: None };
        self.place(Verb::Allocate, to, task, node)
    }

    /// Promises `task` room on `node` that will be free once what terminates there is gone.
    pub fn pipeline(&mut self, task: TaskId, node: NodeId) -> Result<(), Refusal> {
        let shape = self.shape_of(task);
        let future = self.nodes[node].future_idle();
        if let Some(short) = self.asked_of_nodes(shape).first_over(&Default::default(), &future) {
            return Err(Refusal::Short(short));
        }
        self.place(Verb::Pipeline, promised(node), task, node)
    }

    /// Promises `task` room on `node` whether or not there will be enough: a pod that was nominated for a node counts there
    /// until it is nominated for another.
    pub fn promise(&mut self, task: TaskId, node: NodeId) -> Result<(), Refusal> {
        self.place(Verb::Pipeline, promised(node), task, node)
    }

    /// Takes `task`'s node away; it holds its room until it is gone.
    pub fn evict(&mut self, task: TaskId) -> Result<(), Refusal> {
        let before = self.tasks[task].place();
        let node = before.node.ok_or(Refusal::NoNode)?;
        before.status.check_move(TaskStatus::Releasing).map_err(Refusal::Move)?;
        self.journal.push(Change::Moved(Operation { verb: Verb::Evict, task, node }, before.clone()));
        self.relocate(task, Place { status: TaskStatus::Releasing, ..before });
        Ok(())
    }

    /// Gives a task back what its eviction took, while that can still be undone. What its room was promised to meanwhile
    /// is the caller's concern. Cost: the operations since the eviction.
    pub fn reprieve(&mut self, task: TaskId) -> Result<(), Refusal> {
        let eviction = self.journal.iter().rev().find_map(|change| match change {
            Change::Moved(Operation { verb: Verb::Evict, task: evicted, node }, before) if *evicted == task => {
                Some((*node, before.clone()))
            }
            _ => None,
        });
        let Some((node, back)) = eviction else { return Err(Refusal::NotEvicted) };
        let before = self.tasks[task].place();
        if before.status != TaskStatus::Releasing {
            return Err(Refusal::NotEvicted);
        }
        self.journal.push(Change::Moved(Operation { verb: Verb::Reprieve, task, node }, before));
        self.relocate(task, back);
        Ok(())
    }

    /// Whether a task terminates only as a trial, which may still be undone.
    pub fn is_tried_eviction(&self, task: TaskId) -> bool {
        let is_its = |change: &Change| matches!(change, Change::Moved(Operation { verb: Verb::Evict, task: evicted, .. }, _) if *evicted == task);
        self.tasks[task].status() == TaskStatus::Releasing && self.journal.iter().any(is_its)
    }

    /// Operations since `savepoint`, oldest first.
    pub fn operations_since(&self, savepoint: Savepoint) -> impl Iterator<Item = Operation> {
        self.journal.get(savepoint.0..).unwrap_or_default().iter().filter_map(|change| match change {
            Change::Moved(operation, _) => Some(*operation),
            Change::Reserved(_) | Change::Lifted(..) => None,
        })
    }

    /// Undoes the newest operation after `savepoint`, and what was kept or lifted after it; `None` once there is none.
    pub fn undo_one(&mut self, savepoint: Savepoint) -> Option<Operation> {
        while self.journal.len() > savepoint.0 {
            match self.journal.pop()? {
                Change::Moved(operation, before) => {
                    self.relocate(operation.task, before);
                    return Some(operation);
                }
                Change::Reserved(id) => self.unreserve(id),
                Change::Lifted(id, reservation) => self.enter(id, reservation),
            }
        }
        None
    }

    /// Keeps everything since `savepoint`: it can no longer be undone.
    pub fn keep_since(&mut self, savepoint: Savepoint) {
        for change in self.journal.drain(savepoint.0.min(self.journal.len())..).collect::<Vec<_>>() {
            if let Change::Lifted(_, reservation) = change {
                self.release_shape(reservation.shape);
            }
        }
    }

    /// Marks an allocated task as one whose bind is on its way.
    pub fn begin_bind(&mut self, task: TaskId) -> Result<NodeId, Refusal> {
        let before = self.tasks[task].place();
        before.status.check_move(TaskStatus::Binding).map_err(Refusal::Move)?;
        let node = before.node.ok_or(Refusal::NoNode)?;
        self.relocate(task, Place { status: TaskStatus::Binding, ..before });
        Ok(node)
    }

    /// Takes the node away from a task that was to be bound, of which nobody has been told.
    pub fn forget_assumed(&mut self, task: TaskId) {
        if self.tasks[task].status == TaskStatus::Binding {
            self.relocate(task, Place::without_node(TaskStatus::Pending));
        }
    }

    /// Gives up a reservation that the session did not commit.
    pub fn give_up_reservation(&mut self, task: TaskId) -> Option<Operation> {
        let before = self.tasks[task].place();
        let verb = match before.status {
            TaskStatus::Allocated => Verb::Allocate,
            TaskStatus::Pipelined => Verb::Pipeline,
            _ => return None,
        };
        self.relocate(task, Place::without_node(TaskStatus::Pending));
        Some(Operation { verb, task, node: before.node? })
    }

    /// Undoes everything that a session left behind when it could not be closed.
    pub fn abandon_session(&mut self) {
        while self.undo_one(Savepoint(0)).is_some() {}
        for task in self.reserved().collect::<Vec<_>>() {
            self.give_up_reservation(task);
        }
    }

    fn place(&mut self, verb: Verb, to: Place, task: TaskId, node: NodeId) -> Result<(), Refusal> {
        let before = self.tasks[task].place();
        before.status.check_move(to.status).map_err(Refusal::Move)?;
        self.journal.push(Change::Moved(Operation { verb, task, node }, before));
        self.relocate(task, to);
        Ok(())
    }
}

/// Which devices it will have there is known once it is free.
fn promised(node: NodeId) -> Place {
    Place { status: TaskStatus::Pipelined, node: Some(node), devices: SmallVec::new(), choices: None }
}
