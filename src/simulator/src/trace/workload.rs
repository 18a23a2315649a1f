//! What a simulation is given to do: nodes, queues and jobs, whatever file they came from.
//!
//! A workload is a plain value: importers make it, the simulator plays it, reports print its notes. It knows nothing
//! of schedulers, and nothing of Kubernetes beyond names that an API server would accept.

use std::fmt;

use serde::Serialize;

/// One GPU device, in the unit of [`PodShape::gpu_milli`].
pub const GPU_MILLI: i64 = 1000;

/// The label that carries a node's GPU model: the one that NVIDIA's feature discovery writes, so that manifests which
/// select by it also work in a simulation.
pub const GPU_MODEL_LABEL: &str = "nvidia.com/gpu.product";

/// A cluster, and the jobs that come to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Workload {
    /// Kind and file name, for titles (`swf KTH-SP2.swf`).
    pub name: String,
    /// The nodes, in the order of the file.
    pub nodes: Vec<NodeShape>,
    /// The queues, sorted by name. Each job's queue is among them.
    pub queues: Vec<QueueShape>,
    /// Priority classes and their values, lowest value first. Each job's priority is among them.
    pub priorities: Vec<(String, i32)>,
    /// The jobs, sorted by `(submit_ms, name)`; names are unique.
    pub jobs: Vec<JobShape>,
    /// How the cluster and the clock differ from the trace's own.
    pub scaling: Scaling,
    /// One sentence for each column that was derived, assumed or left out. A report that is built on this workload
    /// prints them.
    pub notes: Vec<String>,
    /// What could not be read and was left out, or was read with a doubt.
    pub problems: Vec<Problem>,
}

/// Some number of equal nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeShape {
    /// The node's name if `count` is 1, else the stem of the names; see [`NodeShape::names`].
    pub name: String,
    /// How many nodes of this shape there are, 1 or more.
    pub count: u32,
    /// Allocatable CPU, in thousandths of a core.
    pub cpu_milli: i64,
    /// Allocatable memory, in bytes.
    pub memory_bytes: i64,
    /// How many pods the node may hold.
    pub pods: i64,
    /// Whole GPU devices.
    pub gpus: i64,
    /// How pods may ask for the devices.
    pub gpu_sharing: GpuSharing,
    /// Labels, sorted by key.
    pub labels: Vec<(String, String)>,
}

/// Whether a pod may ask for a part of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum GpuSharing {
    /// A device belongs to one pod.
    Whole,
    /// Pods may ask for a share of one device ([`PodShape::gpu_milli`]).
    Shared,
}

/// A queue, all of them children of the root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct QueueShape {
    /// The queue's name.
    pub name: String,
    /// Its weight among its siblings, 1 or more.
    pub weight: u32,
    /// What it is due of the cluster, where that is derived.
    pub deserved: Option<Deserved>,
}

/// What a queue is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Deserved {
    /// CPU in thousandths of a core.
    pub cpu_milli: i64,
    /// Memory in bytes.
    pub memory_bytes: i64,
    /// GPUs in thousandths of a device.
    pub gpu_milli: i64,
}

/// A job: a gang of pods that is submitted once, and runs for a time once enough of it has started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobShape {
    /// A name that is unique in the workload and valid in Kubernetes. Numeric ids are padded with zeros, so that among
    /// jobs of one instant the order of names is the order of ids.
    pub name: String,
    /// The namespace it lives in: one for each queue, of the same name.
    pub namespace: String,
    /// The queue it is submitted to.
    pub queue: String,
    /// Who submitted it, in the words of the trace.
    pub user: Option<String>,
    /// When it is submitted, in milliseconds since the start of the workload, 0 or more.
    pub submit_ms: i64,
    /// How long it runs, in milliseconds, 0 or more; `None`: it never ends.
    pub runtime_ms: Option<i64>,
    /// How long its user says that it will run, in milliseconds. May be less than the run time.
    pub estimate_ms: Option<i64>,
    /// Its pods by role, one role or more.
    pub roles: Vec<RoleShape>,
    /// How many pods must start together, from 1 to the number of pods.
    pub min_member: u32,
    /// Its priority class.
    pub priority: Option<String>,
    /// May be evicted for others, and then starts again.
    pub preemptible: bool,
    /// A label, and the values of it that a node may have; `None`: any node.
    pub node_labels_any: Option<(String, Vec<String>)>,
}

/// Equal pods of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RoleShape {
    /// The role's name, unique in the job.
    pub name: String,
    /// How many pods, 1 or more.
    pub replicas: u32,
    /// What each pod asks for.
    pub request: PodShape,
}

/// What one pod asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PodShape {
    /// CPU in thousandths of a core.
    pub cpu_milli: i64,
    /// Memory in bytes.
    pub memory_bytes: i64,
    /// GPU devices.
    pub gpus: i64,
    /// The share of one device, 1 to 999 thousandths and then `gpus` is 1; 0: each device whole.
    pub gpu_milli: i64,
}

/// How far the workload is from the trace.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Scaling {
    /// What the times between submissions were divided by; infinite: all jobs at the start.
    pub time_compression: f64,
    /// Nodes that the trace has, or that were assumed for it.
    pub trace_nodes: u64,
    /// Nodes that the workload has.
    pub nodes: u64,
}

/// Something in a file that could not be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The file, as it was named by the caller.
    pub file: String,
    /// The line, from 1; `None`: the file as a whole.
    pub line: Option<u64>,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

impl Workload {
    /// Number of nodes.
    pub fn n_nodes(&self) -> u64 {
        self.nodes.iter().map(|shape| u64::from(shape.count)).sum()
    }

    /// Number of pods of all jobs.
    pub fn n_pods(&self) -> u64 {
        self.jobs.iter().map(JobShape::n_pods).sum()
    }
}

impl NodeShape {
    /// The names of the nodes: the shape's own if there is one node, else `name-0` onwards, padded with zeros so that
    /// sorting by name keeps the order.
    pub fn names(&self) -> impl Iterator<Item = String> + '_ {
        let width = self.count.saturating_sub(1).to_string().len();
        (0..self.count).map(move |index| match self.count {
            1 => self.name.clone(),
            _ => format!("{}-{index:0width$}", self.name),
        })
    }
}

impl JobShape {
    /// Number of pods of all roles.
    pub fn n_pods(&self) -> u64 {
        self.roles.iter().map(|role| u64::from(role.replicas)).sum()
    }
}

impl PodShape {
    /// GPU demand in thousandths of a device, shares and whole devices alike.
    pub fn gpu_demand_milli(&self) -> i64 {
        if self.gpu_milli > 0 { self.gpu_milli } else { self.gpus.saturating_mul(GPU_MILLI) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::testkit;

    #[test]
    fn names_of_nodes_sort_in_their_order() {
        let mut shape = testkit::node("n", 11);
        let names: Vec<String> = shape.names().collect();
        assert_eq!((names[0].as_str(), names[10].as_str()), ("n-00", "n-10"));
        shape.count = 1;
        assert_eq!(shape.names().collect::<Vec<_>>(), ["n"]);
    }

    #[test]
    fn a_share_counts_as_a_share() {
        let share = PodShape { gpus: 1, gpu_milli: 460, ..PodShape::default() };
        let whole = PodShape { gpus: 2, ..PodShape::default() };
        assert_eq!((share.gpu_demand_milli(), whole.gpu_demand_milli()), (460, 2000));
    }
}
