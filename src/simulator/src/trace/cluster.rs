//! A cluster for a trace that comes without one.
//!
//! The rule: as many nodes as were in use at the busiest moment. Where the trace has start times that is a lower bound
//! of the real cluster; where it has only submissions, each job counts from its submission, and nothing ever waits.

use std::path::{Path, PathBuf};

use super::PODS_PER_NODE;
use super::draft::{Draft, NodeSizes};
use super::fields::div_ceil;
use super::gang::GPUS_PER_NODE;
use super::workload::{GpuSharing, JobShape, NodeShape, PodShape, RoleShape};

/// The default machine: what the Philly servers had in memory, and eight cores for each GPU.
const CPU_MILLI: i64 = 64_000;
const MEMORY_BYTES: i64 = 512 << 30;

/// What ran when, as far as a trace tells.
#[derive(Debug, Default)]
pub(crate) struct Occupancy {
    /// Time, then what is freed (0) or taken (1) there, then CPU and GPU in thousandths.
    changes: Vec<(i64, u8, i64, i64)>,
}

impl Occupancy {
    /// Adds a job that ran from `start_ms` on, in any clock that all jobs share.
    pub(crate) fn add(&mut self, job: &JobShape, start_ms: i64) {
        let sum = |asks: fn(&PodShape) -> i64| {
            let of_role = |role: &RoleShape| i64::from(role.replicas).saturating_mul(asks(&role.request));
            job.roles.iter().map(of_role).fold(0, i64::saturating_add)
        };
        self.add_raw(start_ms, job.runtime_ms, sum(|pod| pod.cpu_milli), sum(PodShape::gpu_demand_milli));
    }

    /// Adds an amount of CPU and GPU, in thousandths or any other unit that all jobs share.
    pub(crate) fn add_raw(&mut self, start_ms: i64, runtime_ms: Option<i64>, cpu: i64, gpu: i64) {
        self.changes.push((start_ms, 1, cpu, gpu));
        if let Some(runtime_ms) = runtime_ms {
            self.changes.push((start_ms.saturating_add(runtime_ms), 0, cpu, gpu));
        }
    }

    /// The most CPU and the most GPU in use at once, in the unit that was added. What ends makes room for what starts then.
    pub(crate) fn peak(mut self) -> (i64, i64) {
        self.changes.sort_unstable();
        let (mut cpu, mut gpu, mut peak) = (0_i64, 0_i64, (0, 0));
        for (_, starts, cpu_milli, gpu_milli) in self.changes {
            let sign = if starts == 1 { 1 } else { -1 };
            cpu = cpu.saturating_add(sign * cpu_milli);
            gpu = gpu.saturating_add(sign * gpu_milli);
            peak = (cpu.max(peak.0), gpu.max(peak.1));
        }
        peak
    }

    /// How many nodes of a shape hold the peak, 1 or more.
    pub(crate) fn n_nodes(self, node: &NodeShape) -> u32 {
        let (cpu, gpu) = self.peak();
        let nodes = |peak: i64, each: i64| if each > 0 { div_ceil(peak, each) } else { 0 };
        let n_nodes = nodes(cpu, node.cpu_milli).max(nodes(gpu, node.gpus.saturating_mul(1000))).max(1);
        u32::try_from(n_nodes).unwrap_or(u32::MAX)
    }
}

/// `count` machines of eight GPUs, whose CPU and memory no trace tells.
pub(crate) fn gpu_nodes(count: u32) -> NodeShape {
    NodeShape {
        name: "node".into(),
        count,
        cpu_milli: CPU_MILLI,
        memory_bytes: MEMORY_BYTES,
        pods: PODS_PER_NODE,
        gpus: GPUS_PER_NODE,
        gpu_sharing: GpuSharing::Whole,
        labels: Vec::new(),
    }
}

/// Gives a draft assumed machines, and says so. `whence` ends the sentence about their number.
pub(crate) fn assume(draft: &mut Draft, node: NodeShape, whence: &str) {
    draft.note(format!(
        "the trace does not say what its {} nodes are: {} GPUs, {} cores and {} GiB each are assumed; their number is {whence}",
        node.count,
        node.gpus,
        node.cpu_milli / 1000,
        node.memory_bytes >> 30,
    ));
    draft.node_sizes = NodeSizes::Assumed;
    draft.nodes = vec![node];
}

/// A file beside another, if it is there.
pub(crate) fn sibling(path: &Path, name: &str) -> Option<PathBuf> {
    let sibling = path.with_file_name(name);
    sibling.is_file().then_some(sibling)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::testkit;

    #[test]
    fn what_ends_makes_room_for_what_starts() {
        let mut occupancy = Occupancy::default();
        let job = testkit::job("j", 2, testkit::pod(4));
        for start_ms in [0, 10_000, 15_000] {
            occupancy.add(&job, start_ms);
        }
        occupancy.add(&JobShape { runtime_ms: None, ..job }, 90_000);
        assert_eq!(occupancy.peak(), (4_000, 16_000));
    }

    #[test]
    fn the_busiest_resource_decides() {
        let n_nodes = |pod: PodShape| {
            let mut occupancy = Occupancy::default();
            occupancy.add(&testkit::job("j", 3, pod), 0);
            occupancy.n_nodes(&gpu_nodes(0))
        };
        assert_eq!(n_nodes(testkit::pod(3)), 2);
        assert_eq!(n_nodes(PodShape { cpu_milli: 64_000, ..PodShape::default() }), 3);
        assert_eq!(n_nodes(PodShape::default()), 1);
    }
}
