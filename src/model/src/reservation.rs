//! Room that is kept on a node for a pod that is yet to come: the one that takes the place of a pod that was moved.
//!
//! It counts as promised on its node, and as claimed by its job's queue, until a task of that job and shape is placed, or
//! nobody came in time. It lives in memory only: after a restart the pod is placed like any other.

use crate::ids::{JobId, NodeId, ShapeId, TaskId};
use crate::journal::{Change, Refusal};
use crate::state::ClusterState;
use crate::time::Time;

/// A reservation's number. The older one is the smaller one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReservationId(u64);

/// Room for one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The job of the task, if it has one.
    pub job: Option<JobId>,
    /// What it will ask for.
    pub shape: ShapeId,
    /// Where.
    pub node: NodeId,
    /// Until when it is kept.
    pub until: Time,
}

impl ClusterState {
    /// Keeps room. It can be undone, like what is done to tasks.
    pub fn reserve(&mut self, reservation: Reservation) -> Result<ReservationId, Refusal> {
        let future = self.nodes[reservation.node].future_idle();
        let request = self.asked_of_nodes(self.shapes.get(reservation.shape));
        if let Some(short) = request.first_over(&Default::default(), &future) {
            return Err(Refusal::Short(short));
        }
        let id = ReservationId(self.next_reservation);
        self.next_reservation += 1;
        // The pod that is moved takes its shape with it when it goes, unless somebody else needs it.
        self.shapes.retain(reservation.shape);
        self.enter(id, reservation);
        self.journal.push(Change::Reserved(id));
        Ok(id)
    }

    /// Gives up what is kept for a task, so that it can be placed there, or elsewhere; it can be undone. Answers where
    /// that was.
    pub fn lift_reservation(&mut self, task: TaskId) -> Option<NodeId> {
        let own = self.get_task(task)?;
        let (&id, _) = self.reservations.iter().find(|(_, kept)| kept.job == own.job && kept.shape == own.shape)?;
        let reservation = self.leave(id)?;
        self.journal.push(Change::Lifted(id, reservation));
        Some(reservation.node)
    }

    /// Everything that is kept, the oldest first.
    pub fn reservations(&self) -> impl Iterator<Item = &Reservation> {
        self.reservations.values()
    }

    /// When the first reservation ends; [`Time::NEVER`] if nothing is kept.
    pub fn reservations_end(&self) -> Time {
        self.reservations().map(|kept| kept.until).min().unwrap_or(Time::NEVER)
    }

    /// Gives up what nobody came for in time. Answers whether there was any.
    pub fn expire_reservations(&mut self) -> bool {
        let now = self.now;
        self.forget_reservations(|kept| kept.until <= now)
    }

    /// Gives up reservations for good. Answers whether there were any.
    pub(crate) fn forget_reservations(&mut self, which: impl Fn(&Reservation) -> bool) -> bool {
        if self.reservations.is_empty() {
            return false;
        }
        let ids: Vec<ReservationId> =
            self.reservations.iter().filter(|(_, kept)| which(kept)).map(|(id, _)| *id).collect();
        for &id in &ids {
            if let Some(reservation) = self.leave(id) {
                self.release_shape(reservation.shape);
            }
        }
        !ids.is_empty()
    }

    /// A task that was to be moved stays: the newest reservation for one like it is given up for good.
    pub(crate) fn keep_one_less(&mut self, task: TaskId) {
        let own = &self.tasks[task];
        let like_it = |kept: &Reservation| kept.job == own.job && kept.shape == own.shape;
        let newest = self.reservations.iter().rev().find(|(_, kept)| like_it(kept)).map(|(id, _)| *id);
        if let Some(id) = newest {
            self.unreserve(id);
        }
    }

    /// Undoes [`Self::reserve`].
    pub(crate) fn unreserve(&mut self, id: ReservationId) {
        if let Some(reservation) = self.leave(id) {
            self.release_shape(reservation.shape);
        }
    }

    /// Adds a reservation to the books.
    pub(crate) fn enter(&mut self, id: ReservationId, reservation: Reservation) {
        self.version += 1;
        self.reservations.insert(id, reservation);
        let request = &self.shapes.get(reservation.shape).request;
        if let Some(node) = self.nodes.get_mut(reservation.node) {
            node.books.pipelined.add(request);
        }
        self.totals.pipelined.add(request);
        if let Some(queue) = reservation.job.and_then(|job| self.jobs[job].queue) {
            for &above in &self.queues[queue].path.clone() {
                self.queues[above].held.reserved.add(request);
            }
        }
        self.touch_node(reservation.node);
        self.refresh_overdraft(reservation.node);
    }

    /// Takes a reservation out of the books.
    pub(crate) fn leave(&mut self, id: ReservationId) -> Option<Reservation> {
        let reservation = self.reservations.remove(&id)?;
        self.version += 1;
        self.room_version += 1;
        let request = &self.shapes.get(reservation.shape).request;
        if let Some(node) = self.nodes.get_mut(reservation.node) {
            node.books.pipelined.sub(request);
        }
        self.totals.pipelined.sub(request);
        if let Some(queue) = reservation.job.and_then(|job| self.jobs[job].queue) {
            for &above in &self.queues[queue].path.clone() {
                self.queues[above].held.reserved.sub(request);
            }
        }
        self.touch_node(reservation.node);
        self.refresh_overdraft(reservation.node);
        Some(reservation)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::check::discrepancies;
    use crate::{Amounts, Event, NodeSpec, PodGroupSpec, PodPhase, PodShape, PodSpec, QueueSpec, ResourceId};

    fn pod(uid: &str, node: Option<&str>) -> Event {
        let request = Amounts::default().with("cpu", 2_000);
        let shape = PodShape { namespace: "default".into(), request, ..PodShape::default() };
        Event::Pod(PodSpec {
            uid: uid.into(),
            name: uid.into(),
            group: Some("g".into()),
            shape: Arc::new(shape),
            node: node.map(Into::into),
            phase: if node.is_some() { PodPhase::Running } else { PodPhase::Pending },
            ..PodSpec::default()
        })
    }

    fn group(queue: &str) -> Event {
        Event::PodGroup(PodGroupSpec {
            namespace: "default".into(),
            name: "g".into(),
            uid: "g".into(),
            queue: queue.into(),
            ..PodGroupSpec::default()
        })
    }

    /// Two nodes of 4 cores, and a pod of 2 that runs on the first.
    fn cluster() -> (ClusterState, TaskId, NodeId) {
        let mut cluster = ClusterState::new();
        let amounts = Amounts::default().with("cpu", 4_000).with("pods", 10);
        for name in ["n0", "n1"] {
            let allocatable = amounts.clone();
            cluster.apply(Event::Node(NodeSpec { name: name.into(), allocatable, ..NodeSpec::default() }));
        }
        cluster.apply(Event::Queue(QueueSpec { name: "q".into(), ..QueueSpec::default() }));
        cluster.apply(group("q"));
        cluster.apply(pod("old", Some("n0")));
        let (task, node) = (cluster.find_task("old").unwrap(), cluster.find_node("n1").unwrap());
        (cluster, task, node)
    }

    fn keep(cluster: &mut ClusterState, task: TaskId, node: NodeId) -> Result<ReservationId, Refusal> {
        let (job, shape) = (cluster.task(task).job, cluster.task(task).shape);
        cluster.reserve(Reservation { job, shape, node, until: Time(5_000) })
    }

    fn free(cluster: &ClusterState, node: NodeId) -> i64 {
        cluster.node(node).future_idle().get(ResourceId::CPU)
    }

    #[test]
    fn what_is_kept_is_not_free_and_is_claimed_by_the_queue() {
        let (mut cluster, task, node) = cluster();
        let savepoint = cluster.savepoint();
        keep(&mut cluster, task, node).unwrap();
        keep(&mut cluster, task, node).unwrap();
        assert!(keep(&mut cluster, task, node).is_err(), "the node is full");
        assert_eq!(free(&cluster, node), 0);
        let (_, queue) = cluster.queues().next().unwrap();
        assert_eq!(queue.held().claimed().get(ResourceId::CPU), 6_000);
        assert_eq!(discrepancies(&cluster), []);
        assert!(cluster.undo_one(savepoint).is_none(), "nothing was done to a task");
        assert_eq!(free(&cluster, node), 4_000);
        assert_eq!(discrepancies(&cluster), []);
    }

    #[test]
    fn it_outlives_the_pod_that_it_is_for_and_goes_to_the_next_of_its_shape() {
        let (mut cluster, task, node) = cluster();
        let savepoint = cluster.savepoint();
        keep(&mut cluster, task, node).unwrap();
        cluster.keep_since(savepoint);
        cluster.apply(Event::PodGone("old".into()));
        assert_eq!((cluster.n_shapes(), free(&cluster, node)), (1, 2_000));
        cluster.apply(pod("new", None));
        let new = cluster.find_task("new").unwrap();
        let savepoint = cluster.savepoint();
        assert_eq!(cluster.lift_reservation(new), Some(node));
        assert_eq!(free(&cluster, node), 4_000);
        assert_eq!(cluster.lift_reservation(new), None);
        while cluster.undo_one(savepoint).is_some() {}
        assert_eq!(free(&cluster, node), 2_000, "undone");
        assert_eq!(cluster.lift_reservation(new), Some(node));
        cluster.keep_since(savepoint);
        assert_eq!(free(&cluster, node), 4_000);
        cluster.apply(Event::PodGone("new".into()));
        assert_eq!(cluster.n_shapes(), 0);
        assert_eq!(discrepancies(&cluster), []);
    }

    #[test]
    fn it_ends_with_its_time_its_job_or_its_node() {
        for end in ["time", "job", "node", "refusal"] {
            let (mut cluster, task, node) = cluster();
            assert_eq!(cluster.reservations_end(), Time::NEVER);
            let savepoint = cluster.savepoint();
            keep(&mut cluster, task, node).unwrap();
            cluster.keep_since(savepoint);
            assert_eq!(cluster.reservations_end(), Time(5_000));
            match end {
                "time" => {
                    cluster.set_now(Time(4_999));
                    assert!(!cluster.expire_reservations());
                    cluster.set_now(Time(5_000));
                    assert!(cluster.expire_reservations());
                }
                "refusal" => {
                    let savepoint = cluster.savepoint();
                    cluster.evict(task).unwrap();
                    cluster.keep_since(savepoint);
                    cluster.evict_refused(task, Time(9_000));
                }
                "job" => drop(cluster.apply(Event::PodGroupGone { namespace: "default".into(), name: "g".into() })),
                _ => drop(cluster.apply(Event::NodeGone("n1".into()))),
            }
            assert_eq!(cluster.reservations().count(), 0, "{end}");
            assert_eq!(discrepancies(&cluster), [], "{end}");
        }
    }

    #[test]
    fn it_follows_its_job_into_another_queue() {
        let (mut cluster, task, node) = cluster();
        let savepoint = cluster.savepoint();
        keep(&mut cluster, task, node).unwrap();
        cluster.keep_since(savepoint);
        cluster.apply(Event::Queue(QueueSpec { name: "p".into(), ..QueueSpec::default() }));
        cluster.apply(group("p"));
        assert_eq!(discrepancies(&cluster), []);
        let p = cluster.find_queue("p").unwrap();
        assert_eq!(cluster.queue(p).held().claimed().get(ResourceId::CPU), 4_000);
        cluster.apply(Event::Queue(QueueSpec { name: "p".into(), parent: "q".into(), ..QueueSpec::default() }));
        assert_eq!(discrepancies(&cluster), []);
    }
}
