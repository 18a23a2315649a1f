//! `resourcequota`: a job whose namespace's ResourceQuota would stop its pods is not let in.

use std::collections::BTreeMap;

use krafla_framework::session_plugin::{Freeable, SessionPlugin, Vote};
use krafla_framework::{PluginEntry, PluginInfo, Point, Reason, Shortage};
use krafla_model::{Amounts, ClusterState, JobId, Name};

/// Name, arguments and points.
pub const INFO: PluginInfo = PluginInfo {
    name: "resourcequota",
    about: "keep jobs out that their namespace's ResourceQuota would stop",
    arguments: &[],
    points: &[Point::JobEnqueueable],
};

#[derive(Default)]
struct ResourceQuota {
    /// What jobs admitted in this session will want, by namespace. The next session sees their pods in the quotas.
    admitted: BTreeMap<Name, Amounts>,
}

/// Makes the plugin.
pub fn build(_: &PluginEntry) -> Box<dyn SessionPlugin> {
    Box::<ResourceQuota>::default()
}

/// What a list asks of a quota's resource.
fn asked_of(list: &Amounts, resource: &str) -> Option<i64> {
    list.get(resource).or_else(|| list.get(resource.strip_prefix("requests.")?))
}

impl SessionPlugin for ResourceQuota {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn points(&self) -> &'static [Point] {
        INFO.points
    }

    fn open(&mut self, _: &ClusterState) {
        self.admitted.clear();
    }

    /// A quota on `requests.cpu` looks at `requests.cpu` of `minResources`, and at `cpu` where that is not written:
    /// Volcano's controllers write both, people write one.
    fn job_enqueueable(&self, cluster: &ClusterState, job: JobId, _: &Freeable) -> Vote {
        let spec = &cluster.job(job).spec;
        let Some(min) = &spec.min_resources else { return Vote::Permit };
        let admitted = self.admitted.get(&spec.namespace);
        for quota in cluster.quotas(&spec.namespace) {
            for (resource, limit) in quota.hard.iter() {
                let Some(asked) = asked_of(min, resource).filter(|asked| *asked > 0) else { continue };
                let promised = admitted.and_then(|sum| asked_of(sum, resource)).unwrap_or(0);
                let used = quota.used.get(resource).unwrap_or(0).saturating_add(promised);
                if used.saturating_add(asked) > limit {
                    let shortage = Shortage { resource: resource.clone(), asked, used, limit };
                    return Vote::Reject(Box::new(Reason::ResourceQuota { quota: quota.name.clone(), shortage }));
                }
            }
        }
        Vote::Permit
    }

    fn job_enqueued(&mut self, cluster: &ClusterState, job: JobId) {
        let spec = &cluster.job(job).spec;
        if let Some(min) = &spec.min_resources {
            self.admitted.entry(spec.namespace.clone()).or_default().add(min);
        }
    }
}

#[cfg(test)]
mod tests {
    use krafla_model::JobPhase::{self, Inqueue, Pending};
    use krafla_model::{Event, QuotaSpec};
    use krafla_testkit::{Scene, amounts};

    use crate::testing::run;

    fn quota(name: &str, hard: &str, used: &str) -> Event {
        let (namespace, name) = ("default".into(), name.into());
        Event::Quota(QuotaSpec { namespace, name, hard: amounts(hard), used: amounts(used) })
    }

    fn phases(quotas: &[Event], jobs: &[Option<&str>]) -> Vec<JobPhase> {
        let scene = quotas.iter().cloned().fold(Scene::new().node("n", "99c"), Scene::event);
        let scene = jobs.iter().enumerate().fold(scene, |scene, (i, asks)| {
            scene.job(&format!("j{i}"), |job| match asks {
                Some(asks) => job.min_resources(asks).at_the_door(),
                None => job.at_the_door(),
            })
        });
        run(&scene, "enqueue, allocate", &["resourcequota"]).phases.into_values().collect()
    }

    #[test]
    fn a_job_is_let_in_as_far_as_every_quota_of_its_namespace_allows() {
        let q = |hard, used| vec![quota("q", hard, used)];
        for (name, quotas, jobs, want) in [
            ("it fits", q("2c2G", ""), vec![Some("2c2G")], vec![Inqueue]),
            ("it does not", q("2c2G", ""), vec![Some("20c20G")], vec![Pending]),
            ("no quota", vec![], vec![Some("20c20G")], vec![Inqueue]),
            ("no minResources", q("2c2G", ""), vec![None], vec![Inqueue]),
            ("something is used", q("2c2G", "1c"), vec![Some("2c")], vec![Pending]),
            ("the quota does not name it", q("2c", "2c"), vec![Some("1G")], vec![Inqueue]),
            ("two in one session", q("2c", ""), vec![Some("2c"), Some("1c")], vec![Inqueue, Pending]),
            ("a rejected one leaves nothing", q("1c", ""), vec![Some("2c"), Some("1c")], vec![Pending, Inqueue]),
            ("two quotas", vec![quota("a", "9c", ""), quota("b", "1c", "")], vec![Some("2c")], vec![Pending]),
            ("the plain name stands for the prefixed one", q("requests.cpu=1", ""), vec![Some("2c")], vec![Pending]),
            ("limits are another matter", q("limits.cpu=1", "limits.cpu=1"), vec![Some("2c")], vec![Inqueue]),
            ("prefixed on both sides", q("requests.cpu=1", ""), vec![Some("2c,requests.cpu=2")], vec![Pending]),
        ] {
            assert_eq!(phases(&quotas, &jobs), want, "{name}");
        }
    }
}
