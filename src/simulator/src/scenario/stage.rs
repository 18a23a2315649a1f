//! Where a scenario is played: what an expectation can ask of it.

use krafla_model::{PodPhase, PodSpec, Time};

/// A place where a scenario is played: the simulated world, or what is seen of a cluster.
///
/// Pods and jobs have numbers, in the order in which they came; those that are gone keep theirs. The methods with an
/// answer here are about what only the scheduler itself knows.
pub trait Stage {
    /// How many pods there ever were.
    fn n_pods(&self) -> usize;

    /// A pod.
    fn pod(&self, index: usize) -> PodFacts<'_>;

    /// How many jobs there ever were.
    fn n_jobs(&self) -> usize;

    /// A job.
    fn job(&self, index: usize) -> JobFacts<'_>;

    /// The phase of a job's PodGroup; `None` if there is none.
    fn phase(&self, job: usize) -> Option<String>;

    /// Whether there is a node of this name, or was.
    fn had_node(&self, name: &str) -> bool;

    /// The value of a label of a node.
    fn node_label(&self, node: &str, label: &str) -> Option<String>;

    /// Whether there is a queue of this name.
    fn has_queue(&self, name: &str) -> bool;

    /// What is held of a resource, in its smallest unit; terminating pods included.
    fn used(&self, holder: Holder<'_>, resource: &str) -> Option<i64>;

    /// Reasons of the Kubernetes events about something.
    fn events(&self, about: About) -> Vec<String>;

    /// Pods that the descheduler evicted, or would have in a dry run.
    fn descheduled(&self) -> Option<usize> {
        None
    }

    /// A queue's dominant share.
    fn share(&self, _queue: &str) -> Option<f64> {
        None
    }

    /// What a queue is due of a resource, in its smallest unit.
    fn deserved(&self, _queue: &str, _resource: &str) -> Option<i64> {
        None
    }

    /// Code and text of what something waits for.
    fn reason(&self, _about: About) -> Option<(String, String)> {
        None
    }
}

/// Who holds resources.
#[derive(Clone, Copy, Debug)]
pub enum Holder<'a> {
    /// A node.
    Node(&'a str),
    /// A queue, with those below it.
    Queue(&'a str),
}

/// A pod or a job, by its number.
#[derive(Clone, Copy, Debug)]
pub enum About {
    /// A pod.
    Pod(usize),
    /// A job.
    Job(usize),
}

/// What is known of a pod.
#[derive(Clone, Copy, Debug)]
pub struct PodFacts<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// The number of its job.
    pub job: usize,
    /// Its node.
    pub node: Option<&'a str>,
    /// The node nominated for it.
    pub nominated: Option<&'a str>,
    /// Whether it runs and does not terminate.
    pub ready: bool,
    /// Whether it has ended well.
    pub succeeded: bool,
    /// Whether it has ended, or is gone.
    pub over: bool,
    /// Whether it is gone.
    pub gone: bool,
    /// Whether the scheduler evicted it.
    pub evicted: bool,
}

impl<'a> PodFacts<'a> {
    /// What the pod itself says: one of no known job, that is there and was not evicted.
    pub fn of(pod: &'a PodSpec) -> Self {
        Self {
            namespace: pod.namespace(),
            name: &pod.name,
            job: 0,
            node: pod.node.as_deref(),
            nominated: pod.nominated.as_deref(),
            ready: pod.phase == PodPhase::Running && !pod.deleting,
            succeeded: pod.phase == PodPhase::Succeeded,
            over: matches!(pod.phase, PodPhase::Succeeded | PodPhase::Failed),
            gone: false,
            evicted: false,
        }
    }
}

/// What is known of a job.
#[derive(Clone, Copy, Debug)]
pub struct JobFacts<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its queue.
    pub queue: &'a str,
    /// The numbers of its pods; those that were made again are among them.
    pub pods: &'a [usize],
    /// When its first pod ran.
    pub started: Option<Time>,
}
