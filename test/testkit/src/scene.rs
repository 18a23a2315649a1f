//! A cluster, written down.

use std::sync::Arc;

use krafla_model::labels::NodeSelectorTerm;
use krafla_model::queue::{HierarchyLevel, QueueState};
use krafla_model::taints::{Effect, Match, Taint, Toleration};
use krafla_model::{
    ClusterState, Event, JobPhase, Name, NodeSpec, PodGroupSpec, PodPhase, PodShape, PodSpec, QueueSpec, Time,
};

use crate::amounts;

/// A cluster in the making. Objects are older the earlier they are named.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    nodes: Vec<NodeSpec>,
    queues: Vec<QueueSpec>,
    jobs: Vec<JobScene>,
    events: Vec<Event>,
    now: Time,
}

impl Scene {
    /// An empty cluster with the queue `default`.
    pub fn new() -> Self {
        Self::default()
    }

    /// A node with these amounts.
    #[must_use]
    pub fn node(self, name: &str, has: &str) -> Self {
        self.node_with(name, has, |_| {})
    }

    /// A node with these amounts, changed by `edit`.
    #[must_use]
    pub fn node_with(mut self, name: &str, has: &str, edit: impl FnOnce(&mut NodeSpec)) -> Self {
        let mut allocatable = amounts(has);
        if allocatable.get("pods").is_none() {
            allocatable.set_amount(&"pods".into(), 110);
        }
        let mut spec = NodeSpec { name: name.into(), allocatable, ..NodeSpec::default() };
        spec.labels.set("kubernetes.io/hostname".into(), name.into());
        edit(&mut spec);
        self.nodes.push(spec);
        self
    }

    /// A node with a label.
    #[must_use]
    pub fn labelled_node(self, name: &str, has: &str, key: &str, value: &str) -> Self {
        self.node_with(name, has, |spec| spec.labels.set(key.into(), value.into()))
    }

    /// A node with a taint.
    #[must_use]
    pub fn tainted_node(self, name: &str, has: &str, key: &str, effect: Effect) -> Self {
        let taint = Taint { key: key.into(), value: Name::default(), effect };
        self.node_with(name, has, |spec| spec.taints.push(taint))
    }

    /// A queue.
    #[must_use]
    pub fn queue(mut self, name: &str, edit: impl FnOnce(QueueScene) -> QueueScene) -> Self {
        let spec = QueueSpec { name: name.into(), created: self.age(), ..QueueSpec::default() };
        self.queues.push(edit(QueueScene(spec)).0);
        self
    }

    /// A job in queue `default`, admitted, with no minimum.
    #[must_use]
    pub fn job(mut self, name: &str, edit: impl FnOnce(JobScene) -> JobScene) -> Self {
        let job = edit(JobScene::new(name, self.age()));
        self.jobs.push(job);
        self
    }

    /// Any other event, after everything else.
    #[must_use]
    pub fn event(mut self, event: Event) -> Self {
        self.events.push(event);
        self
    }

    /// The time that the cluster is told.
    #[must_use]
    pub fn at(mut self, ms: i64) -> Self {
        self.now = Time(ms);
        self
    }

    /// The cluster.
    pub fn build(&self) -> ClusterState {
        let mut cluster = ClusterState::new();
        cluster.set_now(self.now);
        for event in self.events() {
            let problems = cluster.apply(event);
            assert!(problems.is_empty(), "{problems:?}");
        }
        cluster
    }

    /// What makes the cluster, in order.
    pub fn events(&self) -> Vec<Event> {
        let default = QueueSpec { name: "default".into(), ..QueueSpec::default() };
        let queues = self.queues.iter().cloned();
        let own_default = self.queues.iter().any(|queue| queue.name == "default");
        let mut events: Vec<Event> = Vec::new();
        events.extend((!own_default).then_some(Event::Queue(default)));
        events.extend(queues.map(Event::Queue));
        events.extend(self.nodes.iter().cloned().map(Event::Node));
        for job in &self.jobs {
            events.push(Event::PodGroup(job.group.clone()));
            events.extend(job.pods.iter().cloned().map(Event::Pod));
        }
        events.extend(self.events.iter().cloned());
        events
    }

    fn age(&self) -> Time {
        Time(i64::try_from(self.jobs.len() + self.queues.len()).unwrap_or(0))
    }
}

/// A queue in the making.
#[derive(Clone, Debug)]
pub struct QueueScene(QueueSpec);

impl QueueScene {
    /// Its weight.
    #[must_use]
    pub fn weight(mut self, weight: u32) -> Self {
        self.0.weight = weight;
        self
    }

    /// Its priority.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.0.priority = priority;
        self
    }

    /// Its capability.
    #[must_use]
    pub fn capability(mut self, has: &str) -> Self {
        self.0.capability = amounts(has);
        self
    }

    /// What it is due.
    #[must_use]
    pub fn deserved(mut self, has: &str) -> Self {
        self.0.deserved = amounts(has);
        self
    }

    /// Its place in the hierarchy of `drf`: `root/eng/dev` with weights `100/50/50`.
    ///
    /// # Panics
    /// If a weight is no number.
    #[must_use]
    pub fn hierarchy(mut self, path: &str, weights: &str) -> Self {
        let weights = weights.split('/').map(|weight| weight.parse().expect("a weight"));
        let levels = path.split('/').zip(weights);
        self.0.hierarchy = levels.map(|(name, weight)| HierarchyLevel { name: name.into(), weight }).collect();
        self
    }

    /// The queue above it.
    #[must_use]
    pub fn parent(mut self, name: &str) -> Self {
        self.0.parent = name.into();
        self
    }

    /// Its guarantee.
    #[must_use]
    pub fn guarantee(mut self, has: &str) -> Self {
        self.0.guarantee = amounts(has);
        self
    }

    /// Its state.
    #[must_use]
    pub fn state(mut self, state: QueueState) -> Self {
        self.0.state = state;
        self
    }

    /// Anything else of it.
    #[must_use]
    pub fn with(mut self, edit: impl FnOnce(&mut QueueSpec)) -> Self {
        edit(&mut self.0);
        self
    }
}

/// A job in the making. Pods are numbered in the order in which they are named.
#[derive(Clone, Debug)]
pub struct JobScene {
    group: PodGroupSpec,
    pods: Vec<PodSpec>,
    shape: PodShape,
    priority: i32,
}

impl JobScene {
    fn new(name: &str, created: Time) -> Self {
        let namespace = Name::from("default");
        let group = PodGroupSpec {
            uid: format!("default/{name}").into(),
            name: name.into(),
            created,
            phase: JobPhase::Inqueue,
            ..PodGroupSpec::default()
        };
        Self { group, pods: Vec::new(), shape: PodShape { namespace, ..PodShape::default() }, priority: 1 }
    }

    /// Pods needed to start.
    #[must_use]
    pub fn min(mut self, min: u32) -> Self {
        self.group.min_member = min;
        self
    }

    /// Pods needed of one role.
    #[must_use]
    pub fn role_min(mut self, role: &str, min: u32) -> Self {
        self.group.min_task_member.push((role.into(), min));
        self
    }

    /// What admission holds it to.
    #[must_use]
    pub fn min_resources(mut self, asks: &str) -> Self {
        self.group.min_resources = Some(amounts(asks));
        self
    }

    /// It stands at the door.
    #[must_use]
    pub fn at_the_door(mut self) -> Self {
        self.group.phase = JobPhase::Pending;
        self
    }

    /// Its queue.
    #[must_use]
    pub fn queue(mut self, queue: &str) -> Self {
        self.group.queue = queue.into();
        self
    }

    /// Its namespace; before its pods are named.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.group.namespace = namespace.into();
        self.shape.namespace = namespace.into();
        self
    }

    /// The priority class of the PodGroup and of the pods that follow.
    #[must_use]
    pub fn class(mut self, class: &str) -> Self {
        self.group.priority_class = class.into();
        self.shape.priority_class = class.into();
        self
    }

    /// The priority of the pods that follow.
    #[must_use]
    pub fn task_priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// The role of the pods named so far that have none, and of those that follow.
    #[must_use]
    pub fn role(mut self, role: &str) -> Self {
        self.shape.role = role.into();
        for pod in self.pods.iter_mut().filter(|pod| pod.shape.role.is_empty()) {
            let mut shape = PodShape::clone(&pod.shape);
            shape.role = role.into();
            pod.shape = Arc::new(shape);
        }
        self
    }

    /// Anything else that pods which follow ask for.
    #[must_use]
    pub fn shape(mut self, edit: impl FnOnce(&mut PodShape)) -> Self {
        edit(&mut self.shape);
        self
    }

    /// Pods that follow go only to nodes with this label.
    #[must_use]
    pub fn selects(self, key: &str, value: &str) -> Self {
        self.shape(|shape| shape.node_selector = [(key.into(), value.into())].into_iter().collect())
    }

    /// Pods that follow prefer nodes that satisfy this term.
    #[must_use]
    pub fn prefers(self, weight: i32, term: NodeSelectorTerm) -> Self {
        self.shape(|shape| shape.preferred_affinity.push((weight, term)))
    }

    /// Pods that follow tolerate this taint.
    #[must_use]
    pub fn tolerates(self, key: &str) -> Self {
        let toleration = Toleration { key: Some(key.into()), test: Match::Exists, effect: None };
        self.shape(|shape| shape.tolerations.push(toleration))
    }

    /// Anything else of its PodGroup.
    #[must_use]
    pub fn group(mut self, edit: impl FnOnce(&mut PodGroupSpec)) -> Self {
        edit(&mut self.group);
        self
    }

    /// Pods that wait for a node.
    #[must_use]
    pub fn pending(self, n: u32, asks: &str) -> Self {
        self.pods(n, asks, |_| {})
    }

    /// Pods that wait behind a scheduling gate.
    #[must_use]
    pub fn gated(self, n: u32, asks: &str) -> Self {
        self.pods(n, asks, |pod| pod.gates.push("example.com/gate".into()))
    }

    /// Pods that run on a node.
    #[must_use]
    pub fn running(self, n: u32, asks: &str, node: &str) -> Self {
        self.pods(n, asks, |pod| {
            pod.node = Some(node.into());
            pod.phase = PodPhase::Running;
        })
    }

    /// Pods that have run on a node for so long, in milliseconds, as of the time zero.
    #[must_use]
    pub fn ran(self, n: u32, asks: &str, node: &str, ms: i64) -> Self {
        self.pods(n, asks, |pod| {
            pod.node = Some(node.into());
            pod.phase = PodPhase::Running;
            pod.started = Some(Time(-ms));
        })
    }

    /// Pods that wait for a node, and go on with work of so long, in milliseconds.
    #[must_use]
    pub fn resuming(self, n: u32, asks: &str, ms: i64) -> Self {
        self.pods(n, asks, |pod| pod.attained_ms = Some(ms))
    }

    /// Pods that terminate on a node; on no node if its name is empty.
    #[must_use]
    pub fn releasing(self, n: u32, asks: &str, node: &str) -> Self {
        self.pods(n, asks, |pod| {
            if !node.is_empty() {
                pod.node = Some(node.into());
                pod.phase = PodPhase::Running;
            }
            pod.deleting = true;
        })
    }

    /// Pods that have ended well.
    #[must_use]
    pub fn succeeded(self, n: u32, asks: &str) -> Self {
        self.pods(n, asks, |pod| pod.phase = PodPhase::Succeeded)
    }

    /// Anything else of each of the pods named so far.
    #[must_use]
    pub fn each(mut self, edit: impl Fn(&mut PodSpec)) -> Self {
        self.pods.iter_mut().for_each(edit);
        self
    }

    fn pods(mut self, n: u32, asks: &str, edit: impl Fn(&mut PodSpec)) -> Self {
        let shape = Arc::new(PodShape { request: amounts(asks), ..self.shape.clone() });
        for _ in 0..n {
            let name: Name = format!("{}-{}", self.group.name, self.pods.len()).into();
            let mut pod = PodSpec {
                uid: format!("{}/{name}", self.group.namespace).into(),
                name,
                group: Some(self.group.name.clone()),
                shape: Arc::clone(&shape),
                created: self.group.created,
                priority: self.priority,
                gates: Vec::new(),
                node: None,
                nominated: None,
                phase: PodPhase::Pending,
                deleting: false,
                started: None,
                attained_ms: None,
                details: None,
                claims: Vec::new(),
                scheduled_at: None,
            };
            edit(&mut pod);
            self.pods.push(pod);
        }
        self
    }
}
