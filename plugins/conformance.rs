//! `conformance`: what the cluster itself needs is never evicted.

use krafla_framework::session_plugin::{Comparison, EvictionKind, SessionPlugin, Victims};
use krafla_framework::{PluginEntry, PluginInfo, Point};
use krafla_model::{ClusterState, JobId, TaskId};

/// Name, arguments and points.
pub const INFO: PluginInfo = PluginInfo {
    name: "conformance",
    about: "never evict what the cluster itself needs",
    arguments: &[],
    points: &[Point::Preemptable, Point::Reclaimable, Point::UnifiedEvictable, Point::Evictable],
};

struct Conformance;

/// Makes the plugin.
pub fn build(_: &PluginEntry) -> Box<dyn SessionPlugin> {
    Box::new(Conformance)
}

impl SessionPlugin for Conformance {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn points(&self) -> &'static [Point] {
        INFO.points
    }

    fn preemptable(&self, cluster: &ClusterState, _: TaskId, candidates: &[TaskId]) -> Victims {
        dispensable(cluster, candidates)
    }

    fn preempts_no_more(&self, _: &ClusterState, _: JobId, _: JobId) -> Comparison {
        Comparison::Always
    }

    fn reclaims_no_more(&self, cluster: &ClusterState, job: JobId, than: JobId) -> Comparison {
        self.preempts_no_more(cluster, job, than)
    }

    fn reclaimable(&self, cluster: &ClusterState, _: TaskId, candidates: &[TaskId]) -> Victims {
        dispensable(cluster, candidates)
    }

    fn unified_evictable(&self, cluster: &ClusterState, _: EvictionKind, _: JobId, candidates: &[TaskId]) -> Victims {
        dispensable(cluster, candidates)
    }

    fn evictable(&self, cluster: &ClusterState, candidates: &[TaskId]) -> Victims {
        dispensable(cluster, candidates)
    }
}

fn dispensable(cluster: &ClusterState, candidates: &[TaskId]) -> Victims {
    let needed = |task: TaskId| {
        let spec = &cluster.shape_of(task).spec;
        matches!(spec.priority_class.as_str(), "system-cluster-critical" | "system-node-critical")
            || spec.namespace == "kube-system"
    };
    Victims::Only(candidates.iter().copied().filter(|task| !needed(*task)).collect())
}

#[cfg(test)]
mod tests {
    use krafla_testkit::Scene;

    use super::*;

    #[test]
    fn system_pods_are_protected_by_class_and_by_namespace() {
        let cluster = Scene::new()
            .node("n", "8c")
            .job("plain", |job| job.class("high").running(1, "1c", "n"))
            .job("node", |job| job.class("system-node-critical").running(1, "1c", "n"))
            .job("cluster", |job| job.class("system-cluster-critical").running(1, "1c", "n"))
            .job("system", |job| job.namespace("kube-system").running(1, "1c", "n"))
            .build();
        let all: Vec<TaskId> = cluster.tasks().map(|(id, _)| id).collect();
        let (job, _) = cluster.jobs().next().unwrap();
        let plain = Victims::Only(vec![krafla_testkit::task_named(&cluster, "plain-0")]);
        assert_eq!(Conformance.preemptable(&cluster, all[0], &all), plain);
        assert_eq!(Conformance.reclaimable(&cluster, all[0], &all), plain);
        for kind in [EvictionKind::GangPreempt, EvictionKind::GangReclaim] {
            assert_eq!(Conformance.unified_evictable(&cluster, kind, job, &all), plain);
        }
    }

    #[test]
    fn its_veto_holds_against_later_tiers() {
        // In Volcano an empty answer ends its own tier only, and the next one may name whom the first protected.
        let mut cluster = Scene::new()
            .node("n", "8c")
            .job("system", |job| job.namespace("kube-system").running(2, "1c", "n"))
            .job("p", |job| job.pending(1, "1c"))
            .build();
        let all: Vec<TaskId> = cluster.tasks().map(|(id, _)| id).collect();
        for tiers in [
            &[&["conformance"] as &[&str], &["gang"]] as &[&[&str]],
            &[&["conformance", "gang"]],
            &[&["gang", "conformance"]],
        ] {
            let conf = crate::testing::conf("allocate", tiers);
            let victims = krafla_testkit::ask(&mut cluster, &crate::testing::registry(), &conf, |session| {
                session.plugins().reclaimable(session.cluster(), all[2], &all[..2])
            });
            assert_eq!(victims, [], "{tiers:?}");
        }
    }

    #[test]
    fn two_plugins_that_agree_on_nobody_name_nobody() {
        // Gang spares the first job, drf the second. Volcano would begin anew with the third answer of the tier.
        let mut cluster = Scene::new()
            .node("n", "8c")
            .job("whole", |job| job.min(4).running(4, "1c", "n"))
            .job("small", |job| job.running(1, "1c", "n"))
            .job("p", |job| job.pending(1, "3c"))
            .build();
        let all: Vec<TaskId> = cluster.tasks().map(|(id, _)| id).collect();
        let conf = crate::testing::conf("allocate", &[&["gang", "drf", "conformance"]]);
        let victims = krafla_testkit::ask(&mut cluster, &crate::testing::registry(), &conf, |session| {
            session.plugins().preemptable(session.cluster(), all[5], &all[..5])
        });
        assert_eq!(victims, []);
    }
}
