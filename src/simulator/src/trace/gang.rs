//! Into which pods a job falls whose trace gives only totals.
//!
//! The rule for GPUs: up to a node's GPUs the job is one pod, as it must then sit on one node; above that it is full
//! pods and one remainder. The gang's minimum is all of its pods. This is how the Philly, Muri, Helios and Acme jobs ran.

use super::workload::{PodShape, RoleShape};

/// GPUs of a node, and so of the largest pod, where a trace does not say: all public GPU training clusters have 8.
pub(crate) const GPUS_PER_NODE: i64 = 8;

/// Pods of a job at most. The widest public job has 77,248 processes.
pub(crate) const MAX_PODS: i64 = 1_000_000;

/// What a job asks for in all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Total {
    /// Whole GPUs.
    pub(crate) gpus: i64,
    /// Thousandths of a core.
    pub(crate) cpu_milli: i64,
    /// Bytes.
    pub(crate) memory_bytes: i64,
}

/// The pods of a job that asks for GPUs: full ones of `per_pod` GPUs, and one remainder. CPU and memory go with the GPUs.
pub(crate) fn of_gpus(total: Total, per_pod: i64) -> Result<Vec<RoleShape>, String> {
    split(total.gpus, per_pod, "GPUs", |gpus| PodShape {
        cpu_milli: share(total.cpu_milli, gpus, total.gpus),
        memory_bytes: share(total.memory_bytes, gpus, total.gpus),
        gpus,
        gpu_milli: 0,
    })
}

/// The pods of a job that asks for processors: full ones of `per_pod` cores, and one remainder.
pub(crate) fn of_processors(processors: i64, per_pod: i64) -> Result<Vec<RoleShape>, String> {
    split(processors, per_pod, "processors", |cores| PodShape {
        cpu_milli: cores.saturating_mul(1000),
        ..PodShape::default()
    })
}

/// The pods of a job without GPUs that ran on `pods` nodes: equal parts, the cores that are left over one each to the
/// first of them.
pub(crate) fn of_nodes(total: Total, pods: i64) -> Result<Vec<RoleShape>, String> {
    let memory_bytes = total.memory_bytes / pods.max(1);
    let cores = total.cpu_milli / 1000;
    let pod = |cores: i64| PodShape { cpu_milli: cores * 1000, memory_bytes, ..PodShape::default() };
    if !(1..=MAX_PODS).contains(&pods) {
        return Err(format!("{pods} pods are not in 1 to {MAX_PODS}"));
    }
    let (each, more) = (cores / pods, cores % pods);
    let roles = [role("worker", more, pod(each + 1))?, role("remainder", pods - more, pod(each))?];
    Ok(rename_single(roles.into_iter().flatten().collect()))
}

/// How many pods the roles have together.
pub(crate) fn n_pods(roles: &[RoleShape]) -> u32 {
    roles.iter().map(|role| role.replicas).sum()
}

fn split(units: i64, per_pod: i64, what: &str, pod: impl Fn(i64) -> PodShape) -> Result<Vec<RoleShape>, String> {
    if units < 1 || per_pod < 1 {
        return Err(format!("asks for {units} {what}"));
    }
    let (full, rest) = (units / per_pod, units % per_pod);
    if full + i64::from(rest > 0) > MAX_PODS {
        return Err(format!("{units} {what} are more than {MAX_PODS} pods of {per_pod}"));
    }
    let roles = [role("worker", full, pod(per_pod))?, role("remainder", i64::from(rest > 0), pod(rest))?];
    Ok(rename_single(roles.into_iter().flatten().collect()))
}

fn role(name: &str, replicas: i64, request: PodShape) -> Result<Option<RoleShape>, String> {
    let replicas = u32::try_from(replicas).map_err(|_| format!("{replicas} pods"))?;
    Ok((replicas > 0).then(|| RoleShape { name: name.into(), replicas, request }))
}

/// A job of one role has workers, whatever they are.
fn rename_single(mut roles: Vec<RoleShape>) -> Vec<RoleShape> {
    if let [only] = roles.as_mut_slice() {
        only.name = "worker".into();
    }
    roles
}

/// The part of an amount that goes with `part` of `whole`, rounded down.
fn share(amount: i64, part: i64, whole: i64) -> i64 {
    let exact = i128::from(amount) * i128::from(part) / i128::from(whole.max(1));
    i64::try_from(exact).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pods(roles: &[RoleShape]) -> Vec<(&str, u32, i64, i64)> {
        roles
            .iter()
            .map(|role| (role.name.as_str(), role.replicas, role.request.gpus, role.request.cpu_milli))
            .collect()
    }

    #[test]
    fn up_to_a_node_one_pod_and_above_full_pods_and_a_remainder() {
        let gang = |gpus| of_gpus(Total { gpus, cpu_milli: gpus * 4000, memory_bytes: 0 }, GPUS_PER_NODE);
        for (gpus, want) in [
            (1, vec![("worker", 1, 1, 4_000)]),
            (7, vec![("worker", 1, 7, 28_000)]),
            (8, vec![("worker", 1, 8, 32_000)]),
            (12, vec![("worker", 1, 8, 32_000), ("remainder", 1, 4, 16_000)]),
            (16, vec![("worker", 2, 8, 32_000)]),
            (128, vec![("worker", 16, 8, 32_000)]),
        ] {
            assert_eq!(pods(&gang(gpus).expect("a gang")), want, "{gpus}");
        }
        assert_eq!(gang(0), Err("asks for 0 GPUs".into()));
        assert_eq!(gang(8_000_001), Err("8000001 GPUs are more than 1000000 pods of 8".into()));
    }

    #[test]
    fn processors_fall_into_single_cores_or_whole_nodes() {
        for (processors, per_pod, want) in [
            (56, 1, vec![("worker", 56, 0, 1_000)]),
            (16, 16, vec![("worker", 1, 0, 16_000)]),
            (20, 16, vec![("worker", 1, 0, 16_000), ("remainder", 1, 0, 4_000)]),
            (77_248, 16, vec![("worker", 4_828, 0, 16_000)]),
        ] {
            assert_eq!(pods(&of_processors(processors, per_pod).expect("a gang")), want);
        }
    }

    #[test]
    fn cores_are_spread_over_the_nodes_and_none_is_lost() {
        let total = Total { cpu_milli: 10_000, ..Total::default() };
        assert_eq!(pods(&of_nodes(total, 4).expect("a gang")), [("worker", 2, 0, 3_000), ("remainder", 2, 0, 2_000)]);
        assert_eq!(pods(&of_nodes(total, 5).expect("a gang")), [("worker", 5, 0, 2_000)]);
        assert!(of_nodes(total, 0).is_err());
    }
}
