//! The state of one cluster: everything that a session may look at.
//!
//! One owner holds it. Reading is open to all; it changes through [`apply`](crate::apply) (what happened), the
//! [`journal`](crate::journal) (what a session tries) and outcomes (what became of an effect), and every change goes
//! through the one function that keeps the books, in [`ledger`](crate::ledger).

use std::collections::{BTreeMap, BTreeSet};

use crate::budget::Budget;
use crate::cluster_event::ClusterEvent;
use crate::dra::DynamicResources;
use crate::elastic_quota::{ElasticQuota, ElasticQuotaSpec};
use crate::event::QuotaSpec;
use crate::ids::{IdVec, JobId, Lookup, NodeId, QueueId, ShapeId, Slab, TaskId};
use crate::job::{Job, JobPhase};
use crate::journal::Change;
use crate::labels::{Labels, Selector};
use crate::name::Name;
use crate::node::Node;
use crate::node_log::NodeLog;
use crate::pod_affinity::Workload;
use crate::priority::PriorityClasses;
use crate::queue::Queue;
use crate::reservation::{Reservation, ReservationId};
use crate::resources::{ResourceNames, Resources};
use crate::shape::{Shape, Shapes};
use crate::storage::Storage;
use crate::storage::ledger::VolumeLedger;
use crate::task::Task;
use crate::task_status::TaskStatus;
use crate::time::Time;
use crate::unchecked::Unchecked;
use crate::usage::Measured;

/// The kind of a service among workloads.
const SERVICE: &str = "Service";

/// The state of one cluster.
#[derive(Clone, Debug, Default)]
pub struct ClusterState {
    pub(crate) now: Time,
    pub(crate) names: ResourceNames,
    pub(crate) nodes: Slab<NodeId, Node>,
    pub(crate) tasks: Slab<TaskId, Task>,
    pub(crate) jobs: Slab<JobId, Job>,
    pub(crate) queues: Slab<QueueId, Queue>,
    pub(crate) shapes: Shapes,
    /// Nodes on which more is held or promised than they have.
    pub(crate) overdrawn: BTreeSet<NodeId>,
    pub(crate) node_by_name: BTreeMap<Name, NodeId>,
    pub(crate) queue_by_name: BTreeMap<Name, QueueId>,
    pub(crate) job_by_key: Lookup<(Name, Name), JobId>,
    pub(crate) task_by_uid: Lookup<Name, TaskId>,
    /// Tasks whose PodGroup is not known, by namespace and group.
    pub(crate) orphans: BTreeMap<(Name, Name), BTreeSet<TaskId>>,
    /// Tasks that hold a node which is not known, by its name.
    pub(crate) homeless: BTreeMap<Name, BTreeSet<TaskId>>,
    pub(crate) priority_classes: PriorityClasses,
    pub(crate) quotas: BTreeMap<(Name, Name), QuotaSpec>,
    pub(crate) budgets: BTreeMap<(Name, Name), Budget>,
    pub(crate) elastic_quota_specs: BTreeMap<(Name, Name), ElasticQuotaSpec>,
    /// By namespace the quota that counts.
    pub(crate) elastic_quotas: BTreeMap<Name, ElasticQuota>,
    /// Labels of namespaces.
    pub(crate) namespaces: BTreeMap<Name, Labels>,
    /// Selectors of workloads and services, by namespace.
    pub(crate) workloads: BTreeMap<(Name, Workload), Option<Selector>>,
    /// Tasks on a node whose pods have required anti-affinity: they keep others off.
    pub(crate) repelling: BTreeSet<TaskId>,
    /// Tasks on a node whose pods have any affinity or anti-affinity: they attract or repel others.
    pub(crate) affine: BTreeSet<TaskId>,
    /// Devices and claims.
    pub(crate) dynamic_resources: DynamicResources,
    /// Claims, volumes and what goes with them.
    pub(crate) storage: Storage,
    /// Who uses which claim, and what was chosen for claims.
    pub(crate) volume_ledger: VolumeLedger,
    /// Tasks with volumes that wait for a node.
    pub(crate) volume_waiters: BTreeSet<TaskId>,
    pub(crate) totals: Totals,
    /// Nodes in tie order.
    pub(crate) node_order: Vec<NodeId>,
    /// Place of each node in `node_order`.
    pub(crate) node_rank: IdVec<NodeId, u32>,
    pub(crate) tie_seed: Option<u64>,
    /// Jobs that wait for admission or have tasks that wait for a node.
    pub(crate) waiting_jobs: BTreeSet<JobId>,
    /// Jobs that were found to fit no node at all.
    pub(crate) unplaceable_jobs: BTreeSet<JobId>,
    /// Tasks that only this session knows to be placed.
    pub(crate) reserved: BTreeSet<TaskId>,
    /// Tasks for which a node has been nominated.
    pub(crate) nominees: BTreeSet<TaskId>,
    /// Tasks that terminate.
    pub(crate) releasing: BTreeSet<TaskId>,
    /// Jobs whose books have moved since the last [`ClusterState::take_changed_jobs`].
    pub(crate) changed_jobs: BTreeSet<JobId>,
    /// Room that is kept for pods that are yet to come.
    pub(crate) reservations: BTreeMap<ReservationId, Reservation>,
    pub(crate) next_reservation: u64,
    pub(crate) journal: Vec<Change>,
    /// Changes since they were taken last; `None` if nobody takes them.
    pub(crate) cluster_events: Option<Vec<ClusterEvent>>,
    pub(crate) version: u64,
    pub(crate) room_version: u64,
    pub(crate) node_log: NodeLog,
    pub(crate) spec_log: NodeLog,
    pub(crate) nodes_version: u64,
    pub(crate) specs_version: u64,
    pub(crate) namespaces_version: u64,
    /// By scheduler name, what nodes are not asked for.
    pub(crate) unchecked: BTreeMap<Name, Unchecked>,
    /// What nodes and pods really use.
    pub(crate) measured: Measured,
    /// Nodes by image, for image locality: how many nodes hold each image.
    pub(crate) image_spread: BTreeMap<Name, u32>,
}

/// Sums over all nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// What all nodes offer.
    pub allocatable: Resources,
    /// What is held on them, by whatever holds its node.
    pub used: Resources,
    /// The part of `used` that is terminating.
    pub releasing: Resources,
    /// What is promised on them.
    pub pipelined: Resources,
}

impl Totals {
    /// What is free over all nodes, once what terminates is gone, less what is promised.
    pub fn future_idle(&self) -> Resources {
        let mut idle = self.allocatable.clone();
        idle.sub(&self.used);
        idle.add(&self.releasing);
        idle.sub(&self.pipelined);
        idle
    }
}

impl ClusterState {
    /// An empty cluster.
    pub fn new() -> Self {
        Self::default()
    }

    /// Orders equal nodes by a hash of this seed and their names instead of by name alone.
    pub fn set_tie_seed(&mut self, seed: Option<u64>) {
        self.tie_seed = seed;
        self.reorder_nodes();
    }

    /// The time that the state was told last.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Tells the time. It never goes back.
    pub fn set_now(&mut self, now: Time) {
        self.now = self.now.max(now);
    }

    /// The interned resource names.
    pub fn names(&self) -> &ResourceNames {
        &self.names
    }

    /// The node.
    #[inline]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id]
    }

    /// The node of this name.
    pub fn find_node(&self, name: &str) -> Option<NodeId> {
        self.node_by_name.get(name).copied()
    }

    /// All nodes, in tie order: the first of equal nodes is chosen.
    pub fn nodes(&self) -> &[NodeId] {
        &self.node_order
    }

    /// The place of a node in [`Self::nodes`].
    #[inline]
    pub fn node_rank(&self, id: NodeId) -> u32 {
        self.node_rank[id]
    }

    /// The node, if it is still there.
    pub fn get_node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id)
    }

    /// The task.
    #[inline]
    pub fn task(&self, id: TaskId) -> &Task {
        &self.tasks[id]
    }

    /// The task, if it still lives.
    pub fn get_task(&self, id: TaskId) -> Option<&Task> {
        self.tasks.get(id)
    }

    /// The task of this UID.
    pub fn find_task(&self, uid: &str) -> Option<TaskId> {
        self.task_by_uid.get(uid).copied()
    }

    /// How many tasks there are.
    pub fn n_tasks(&self) -> usize {
        self.tasks.len()
    }

    /// How many jobs there are.
    pub fn n_jobs(&self) -> usize {
        self.jobs.len()
    }

    /// All tasks, by id.
    pub fn tasks(&self) -> impl Iterator<Item = (TaskId, &Task)> {
        self.tasks.iter()
    }

    /// The shape of a task.
    #[inline]
    pub fn shape_of(&self, task: TaskId) -> &Shape {
        self.shapes.get(self.tasks[task].shape)
    }

    /// The shape.
    pub fn shape(&self, id: ShapeId) -> &Shape {
        self.shapes.get(id)
    }

    /// The shapes in use, by id.
    pub fn shapes(&self) -> impl Iterator<Item = &Shape> {
        self.shapes.iter()
    }

    /// How many distinct shapes there are.
    pub fn n_shapes(&self) -> usize {
        self.shapes.len()
    }

    /// The namespace of a task.
    pub fn namespace_of(&self, task: TaskId) -> &Name {
        &self.shape_of(task).spec.namespace
    }

    /// The job.
    pub fn job(&self, id: JobId) -> &Job {
        &self.jobs[id]
    }

    /// The job, if it still lives.
    pub fn get_job(&self, id: JobId) -> Option<&Job> {
        self.jobs.get(id)
    }

    /// The job of the PodGroup of this namespace and name.
    pub fn find_job(&self, namespace: &Name, name: &Name) -> Option<JobId> {
        self.job_by_key.get(&(namespace.clone(), name.clone())).copied()
    }

    /// All jobs, by id.
    pub fn jobs(&self) -> impl Iterator<Item = (JobId, &Job)> {
        self.jobs.iter()
    }

    /// Jobs that wait for admission or have tasks that wait for a node, by id.
    pub fn waiting_jobs(&self) -> impl Iterator<Item = JobId> {
        self.waiting_jobs.iter().copied()
    }

    /// The queue.
    pub fn queue(&self, id: QueueId) -> &Queue {
        &self.queues[id]
    }

    /// The queue of this name.
    pub fn find_queue(&self, name: &str) -> Option<QueueId> {
        self.queue_by_name.get(name).copied()
    }

    /// All queues, by name.
    pub fn queues(&self) -> impl Iterator<Item = (QueueId, &Queue)> {
        self.queue_by_name.values().map(|&id| (id, &self.queues[id]))
    }

    /// Tasks whose PodGroup is not known, with its name; by namespace and name.
    pub fn orphans(&self) -> impl Iterator<Item = (&Name, &BTreeSet<TaskId>)> {
        self.orphans.iter().map(|((_, group), tasks)| (group, tasks))
    }

    /// The priority classes.
    pub fn priority_classes(&self) -> &PriorityClasses {
        &self.priority_classes
    }

    /// ResourceQuotas of one namespace, by name.
    pub fn quotas(&self, namespace: &Name) -> impl Iterator<Item = &QuotaSpec> {
        let first = (namespace.clone(), Name::default());
        self.quotas.range(first..).take_while(move |((ns, _), _)| ns == namespace).map(|(_, quota)| quota)
    }

    /// The labels of a namespace; `None` if nobody has told of it.
    pub fn namespace_labels(&self, namespace: &Name) -> Option<&Labels> {
        self.namespaces.get(namespace)
    }

    /// Moves when the labels of any namespace change.
    pub fn namespaces_version(&self) -> u64 {
        self.namespaces_version
    }

    /// The selector of a workload; `None` if it is not known, or matches nothing.
    pub fn workload_selector(&self, namespace: &Name, workload: &Workload) -> Option<&Selector> {
        self.workloads.get(&(namespace.clone(), workload.clone()))?.as_ref()
    }

    /// Whether any workload or service is known.
    pub fn knows_workloads(&self) -> bool {
        !self.workloads.is_empty()
    }

    /// Selectors of the services of a namespace, by name.
    pub fn services(&self, namespace: &Name) -> impl Iterator<Item = &Selector> {
        let first = (namespace.clone(), Workload { kind: SERVICE.into(), name: Name::default() });
        let here = self.workloads.range(first..);
        here.take_while(move |((own, workload), _)| own == namespace && workload.kind == SERVICE)
            .filter_map(|(_, selector)| selector.as_ref())
    }

    /// Tasks that hold a node, or were promised one, and whose pods have required anti-affinity; by id.
    pub fn repelling(&self) -> impl Iterator<Item = TaskId> {
        self.repelling.iter().copied()
    }

    /// Tasks that hold a node, or were promised one, and whose pods have any affinity or anti-affinity; by id.
    pub fn affine(&self) -> impl Iterator<Item = TaskId> {
        self.affine.iter().copied()
    }

    /// Sums over all nodes.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// How much more is held and promised on single nodes than they have, summed: nodes that shrank under their pods, or
    /// that others overfilled. Cost: linear in such nodes.
    pub fn overdraft(&self) -> Resources {
        let mut sum = Resources::default();
        for &node in &self.overdrawn {
            for (id, free) in self.nodes[node].future_idle().iter().filter(|(_, free)| *free < 0) {
                sum.set(id, sum.get(id).saturating_sub(free));
            }
        }
        sum
    }

    /// On how many nodes an image lies.
    pub fn nodes_with_image(&self, image: &Name) -> u32 {
        self.image_spread.get(image).copied().unwrap_or(0)
    }

    /// Moves with every change of anything; never goes back.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Moves whenever a node may have more room than before, or may suit a shape that it did not suit. While it stands
    /// still, a node that had no room for a shape has none now, so far as filters look at single nodes.
    pub fn room_version(&self) -> u64 {
        self.room_version
    }

    /// Tasks that only this session knows to be placed, by id.
    pub fn reserved(&self) -> impl Iterator<Item = TaskId> {
        self.reserved.iter().copied()
    }

    /// Jobs whose books have moved since the last call, by id; those that are gone are left out.
    pub fn take_changed_jobs(&mut self) -> Vec<JobId> {
        let changed = std::mem::take(&mut self.changed_jobs);
        changed.into_iter().filter(|job| self.jobs.get(*job).is_some()).collect()
    }

    /// Tasks that wait for a node that has been nominated for them, by id.
    pub fn nominees(&self) -> impl Iterator<Item = TaskId> {
        let waits = |task: &TaskId| self.tasks[*task].status == TaskStatus::Pending;
        self.nominees.iter().copied().filter(waits)
    }

    /// Notes which tasks wait for which nodes; others wait for none any more. The pods say so themselves once it has
    /// been written.
    pub fn set_nominations(&mut self, nominations: &[(TaskId, NodeId)]) {
        for task in std::mem::take(&mut self.nominees) {
            self.tasks[task].nominated = None;
        }
        for &(task, node) in nominations {
            self.tasks[task].nominated = Some(self.nodes[node].spec.name.clone());
            self.nominees.insert(task);
        }
    }

    /// Sets the phase of a job.
    pub fn set_job_phase(&mut self, job: JobId, phase: JobPhase) {
        self.jobs[job].phase = phase;
        self.changed_jobs.insert(job);
        self.refresh_waiting(job);
        self.version += 1;
    }

    /// Notes that a gang failed to get together, or that it has got together after all; nothing, if it is gone.
    pub fn set_group_failure(&mut self, job: JobId, failed: bool) {
        let now = self.now;
        if let Some(job) = self.jobs.get_mut(job) {
            job.failed_at = failed.then_some(now);
        }
    }

    /// None of a job's pods is to be tried before `retry_at`; nothing, if it is gone.
    pub fn pause_group(&mut self, job: JobId, retry_at: Time) {
        if let Some(job) = self.jobs.get_mut(job) {
            job.retry_at = retry_at;
        }
    }

    /// Notes whether some member that a job needs can run on no node as nodes are now. Forgotten when a node changes.
    pub fn set_unplaceable(&mut self, job: JobId, unplaceable: bool) {
        self.jobs[job].unplaceable = unplaceable;
        if unplaceable {
            self.unplaceable_jobs.insert(job);
        }
    }

    /// A task's text for people: `namespace/name`.
    pub fn task_label(&self, task: TaskId) -> String {
        format!("{}/{}", self.namespace_of(task), self.tasks[task].name)
    }

    /// A job's text for people: `namespace/name`.
    pub fn job_label(&self, job: JobId) -> String {
        let spec = &self.jobs[job].spec;
        format!("{}/{}", spec.namespace, spec.name)
    }
}
