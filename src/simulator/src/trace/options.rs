//! What a caller may ask of an importer.
//!
//! Every option is off by default: a workload is then what its file says, and the notes say what the file left open.

use std::path::PathBuf;

use super::error::LoadError;

/// The most tenants that can be derived: each is a queue and a namespace.
const MAX_TENANTS: u32 = 10_000;

/// How to read a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Number of nodes in place of the trace's own. The mix of node shapes is kept as far as whole nodes allow.
    pub nodes: Option<u32>,
    /// Seed of everything that is derived. Nothing else is random.
    pub seed: u64,
    /// The times between submissions are divided by this, run times are not. Above 0; 10 makes ten days one; infinite
    /// submits everything at once.
    pub time_compression: f64,
    /// Only the first so many jobs, in order of submission.
    pub limit: Option<usize>,
    /// Columns that the trace lacks.
    pub derive: Derive,
    /// SWF only: processors of a node, and at the same time the largest pod.
    pub procs_per_node: Option<u32>,
    /// openb and spot only: where the nodes are.
    pub node_list: NodeList,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            nodes: None,
            seed: 0,
            time_compression: 1.0,
            limit: None,
            derive: Derive::default(),
            procs_per_node: None,
            node_list: NodeList::WithGpus,
        }
    }
}

/// Where the nodes of a trace stand that has them in a file of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeList {
    /// The list beside the trace, nodes with GPUs only where there are two lists: what the FGD paper used for openb.
    WithGpus,
    /// The list beside the trace, with CPU-only nodes.
    All,
    /// This file.
    File(PathBuf),
}

/// Columns to make up, by a rule that is written here, from [`Options::seed`]. Each draw depends on the seed, the job (or
/// its user) and the column only: one more job does not change the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Derive {
    /// Jobs of one pod become gangs: 1 pod for 70 % of them, 2 for 15 %, 4 for 10 %, 8 for 5 %. The pods are equal, all
    /// must start together, and the run time and its estimate are divided by their number, so that the work stays.
    pub gangs: bool,
    /// Queues `tenant-0` onwards, of equal weight, in place of the trace's own. A user belongs to one tenant (a job
    /// without a user is its own user); tenant k is drawn with a probability proportional to 1/(k + 1). 1 to 10,000.
    pub tenants: Option<u32>,
    /// Classes `high` (1000) for 20 % of the jobs, `normal` (500) for 50 %, `low` (0, preemptible) for 30 %. A job that has a
    /// priority keeps it.
    pub priorities: bool,
    /// `deserved` of each queue: its part of the cluster by its weight among all queues, rounded down to thousandths of a core,
    /// bytes, and thousandths of a device.
    pub deserved: bool,
    /// Thousandths of a core for each GPU, for pods that ask for GPUs and for no CPU. A share of a GPU gets its share.
    pub cpu_per_gpu: Option<i64>,
    /// Bytes for each GPU, for pods that ask for GPUs and for no memory. A share of a GPU gets its share.
    pub memory_per_gpu: Option<i64>,
}

/// Refuses options that have no meaning, before any file is opened.
pub(crate) fn check(options: &Options) -> Result<(), LoadError> {
    let refuse = |option, message: String| Err(LoadError::Option { option, message });
    if options.nodes == Some(0) {
        return refuse("nodes", "a cluster of no nodes runs nothing".into());
    }
    if options.limit == Some(0) {
        return refuse("limit", "a workload of no jobs is empty".into());
    }
    if options.procs_per_node == Some(0) {
        return refuse("procs_per_node", "a node has 1 processor or more".into());
    }
    if options.time_compression.is_nan() || options.time_compression <= 0.0 {
        return refuse("time_compression", format!("{} is not above 0", options.time_compression));
    }
    if options.derive.tenants.is_some_and(|tenants| tenants == 0 || tenants > MAX_TENANTS) {
        return refuse("tenants", format!("from 1 to {MAX_TENANTS}"));
    }
    // A thousand cores and 64 TiB for one GPU: far above any machine, far below an overflow.
    if options.derive.cpu_per_gpu.is_some_and(|milli| !(1..=1_000_000).contains(&milli)) {
        return refuse("cpu_per_gpu", "from 1 to 1,000,000 thousandths of a core".into());
    }
    if options.derive.memory_per_gpu.is_some_and(|bytes| !(1..=1 << 46).contains(&bytes)) {
        return refuse("memory_per_gpu", "from 1 byte to 64 TiB".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_without_a_meaning_are_refused() {
        assert!(check(&Options::default()).is_ok());
        assert!(check(&Options { time_compression: f64::INFINITY, ..Options::default() }).is_ok());
        for bad in [
            Options { nodes: Some(0), ..Options::default() },
            Options { limit: Some(0), ..Options::default() },
            Options { procs_per_node: Some(0), ..Options::default() },
            Options { time_compression: 0.0, ..Options::default() },
            Options { time_compression: f64::NAN, ..Options::default() },
            Options { derive: Derive { tenants: Some(0), ..Derive::default() }, ..Options::default() },
            Options { derive: Derive { cpu_per_gpu: Some(0), ..Derive::default() }, ..Options::default() },
            Options { derive: Derive { memory_per_gpu: Some(-1), ..Derive::default() }, ..Options::default() },
        ] {
            assert!(matches!(check(&bad), Err(LoadError::Option { .. })), "{bad:?}");
        }
    }
}
