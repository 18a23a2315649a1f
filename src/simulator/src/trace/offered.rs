//! How much work a workload brings, against what its cluster can do.
//!
//! The load is demand over capacity x span, the span from the first submission to the last: the figure that the
//! Parallel Workloads Archive prints for its logs. At 1 and above queues grow for as long as jobs come.

use std::fmt;

use serde::Serialize;

use super::workload::{JobShape, NodeShape, PodShape, Scaling, Workload};

/// What a workload asks of its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OfferedLoad {
    /// The resource that is asked for most, relative to what there is.
    pub dominant: Resource,
    /// Cores.
    pub cpu: Use,
    /// Bytes of memory.
    pub memory: Use,
    /// GPU devices; shares count as such.
    pub gpu: Use,
    /// From the first submission to the last, in seconds.
    pub span_seconds: f64,
    /// Jobs that never end; they are in `requested` and not in `demand`.
    pub n_endless: u64,
    /// How the workload differs from the trace.
    pub scaling: Scaling,
}

/// A resource that traces have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Resource {
    /// Cores.
    Cpu,
    /// Bytes of memory.
    Memory,
    /// GPU devices.
    Gpu,
}

/// One resource.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Use {
    /// What the cluster has.
    pub capacity: f64,
    /// What all jobs together ask for.
    pub requested: f64,
    /// What they ask for times their run times, in resource-seconds.
    pub demand: f64,
    /// Demand over capacity x span, 0 or more; infinite if there is no capacity. `None` if nothing ends or the jobs all
    /// come at once.
    pub load: Option<f64>,
}

impl OfferedLoad {
    /// The use of the dominant resource.
    pub fn dominant_use(&self) -> &Use {
        match self.dominant {
            Resource::Cpu => &self.cpu,
            Resource::Memory => &self.memory,
            Resource::Gpu => &self.gpu,
        }
    }
}

/// Sums up a workload. Cost: its roles. Sums are of integers, so their order does not matter.
pub fn offered_load(workload: &Workload) -> OfferedLoad {
    let first_ms = workload.jobs.first().map_or(0, |job| job.submit_ms);
    let span_ms = workload.jobs.last().map_or(0, |job| job.submit_ms - first_ms);
    let n_endless = workload.jobs.iter().filter(|job| job.runtime_ms.is_none()).count();
    let ends = n_endless < workload.jobs.len();
    let sum = |unit: f64, has: fn(&NodeShape) -> i64, asks: fn(&PodShape) -> i64| {
        let capacity = float(workload.nodes.iter().map(|node| i128::from(node.count) * i128::from(has(node))).sum());
        let of_job = |job: &JobShape| -> i128 {
            job.roles.iter().map(|role| i128::from(role.replicas) * i128::from(asks(&role.request))).sum()
        };
        let requested = float(workload.jobs.iter().map(of_job).sum());
        let runs = |job: &JobShape| of_job(job).saturating_mul(i128::from(job.runtime_ms.unwrap_or(0)));
        let demand_ms = float(workload.jobs.iter().map(runs).fold(0, i128::saturating_add));
        let load = match capacity * float(i128::from(span_ms)) {
            _ if demand_ms == 0.0 => 0.0,
            room => demand_ms / room,
        };
        Use {
            capacity: capacity / unit,
            requested: requested / unit,
            demand: demand_ms / unit / 1000.0,
            load: (ends && span_ms > 0).then_some(load),
        }
    };
    let cpu = sum(1000.0, |node| node.cpu_milli, |pod| pod.cpu_milli);
    let memory = sum(1.0, |node| node.memory_bytes, |pod| pod.memory_bytes);
    let gpu = sum(1000.0, |node| node.gpus.saturating_mul(1000), PodShape::gpu_demand_milli);
    // GPUs first: of equals the scarcer is named.
    let ranked = [(Resource::Gpu, &gpu), (Resource::Cpu, &cpu), (Resource::Memory, &memory)];
    let dominant = ranked.iter().fold(ranked[0], |best, &next| if rank(next.1) > rank(best.1) { next } else { best }).0;
    OfferedLoad {
        dominant,
        cpu,
        memory,
        gpu,
        span_seconds: float(i128::from(span_ms)) / 1000.0,
        n_endless: u64::try_from(n_endless).unwrap_or(u64::MAX),
        scaling: workload.scaling,
    }
}

fn rank(used: &Use) -> f64 {
    match used.load {
        Some(load) => load,
        None if used.requested == 0.0 => 0.0,
        None => used.requested / used.capacity,
    }
}

#[expect(clippy::cast_precision_loss, reason = "for ratios and printing, 53 bits are enough")]
fn float(exact: i128) -> f64 {
    exact as f64
}

impl fmt::Display for OfferedLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = self.dominant_use();
        let (name, unit, divisor) = match self.dominant {
            Resource::Cpu => ("cpu", "core", 1.0),
            Resource::Memory => ("memory", "GiB", 1_073_741_824.0),
            Resource::Gpu => ("gpu", "GPU", 1.0),
        };
        let capacity = used.capacity / divisor;
        match used.load {
            Some(load) => write!(
                f,
                "offered load {load:.3} of {name}: {:.0} {unit}-seconds over {capacity:.0} {unit} x {:.0} s",
                used.demand / divisor,
                self.span_seconds
            )?,
            None => write!(
                f,
                "{name} asked for: {:.1} of {capacity:.0} {unit} ({:.2} %)",
                used.requested / divisor,
                100.0 * rank(used)
            )?,
        }
        if self.n_endless > 0 {
            write!(f, "; jobs that never end: {}", self.n_endless)?;
        }
        let Scaling { time_compression, trace_nodes, nodes } = self.scaling;
        write!(f, "; time compression {time_compression}; {nodes} nodes (the trace has {trace_nodes})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::testkit;

    fn workload(jobs: Vec<JobShape>) -> Workload {
        Workload {
            name: "test".into(),
            nodes: vec![testkit::node("n", 2)],
            queues: Vec::new(),
            priorities: Vec::new(),
            jobs,
            scaling: Scaling { time_compression: 1.0, trace_nodes: 2, nodes: 2 },
            notes: Vec::new(),
            problems: Vec::new(),
        }
    }

    #[test]
    fn the_load_is_demand_over_capacity_and_span() {
        let late = JobShape { submit_ms: 5_000, ..testkit::job("b", 2, testkit::pod(1)) };
        let load = offered_load(&workload(vec![testkit::job("a", 1, testkit::pod(2)), late]));
        assert_eq!((load.dominant, load.gpu.demand, load.gpu.load), (Resource::Gpu, 40.0, Some(0.5)));
        assert_eq!(load.cpu.load, Some(0.375));
        assert_eq!(
            load.to_string(),
            "offered load 0.500 of gpu: 40 GPU-seconds over 16 GPU x 5 s; time compression 1; 2 nodes (the trace has 2)"
        );
    }

    #[test]
    fn without_times_the_request_stands_for_the_load() {
        let job = JobShape { runtime_ms: None, ..testkit::job("a", 1, PodShape { gpu_milli: 400, ..testkit::pod(1) }) };
        let load = offered_load(&workload(vec![job]));
        assert_eq!((load.gpu.load, load.gpu.requested, load.n_endless), (None, 0.4, 1));
        assert_eq!(
            load.to_string(),
            "cpu asked for: 1.0 of 16 core (6.25 %); jobs that never end: 1; time compression 1; 2 nodes (the trace has 2)"
        );
    }
}
