//! What an expectation can ask of the simulated world.

use krafla_framework::Subject;
use krafla_framework::effect::PodRef;
use krafla_model::ResourceId;

use super::stage::{About, Holder, JobFacts, PodFacts, Stage};
use crate::world::World;

impl Stage for World {
    fn n_pods(&self) -> usize {
        World::n_pods(self)
    }

    fn pod(&self, index: usize) -> PodFacts<'_> {
        let pod = World::pod(self, index);
        let (job, over, gone, evicted) = (pod.job, pod.is_over(), pod.gone, pod.evicted);
        PodFacts { job, over, gone, evicted, ..PodFacts::of(&pod.spec) }
    }

    fn n_jobs(&self) -> usize {
        self.jobs().len()
    }

    fn job(&self, index: usize) -> JobFacts<'_> {
        let job = &self.jobs()[index];
        JobFacts {
            namespace: &job.namespace,
            name: &job.name,
            queue: &job.queue,
            pods: &job.pods,
            started: job.started,
        }
    }

    fn phase(&self, job: usize) -> Option<String> {
        let (job, cluster) = (&self.jobs()[job], self.engine().cluster());
        cluster.find_job(&job.namespace, &job.name).map(|id| cluster.job(id).phase.as_str().to_owned())
    }

    fn had_node(&self, name: &str) -> bool {
        World::had_node(self, name)
    }

    fn node_label(&self, node: &str, label: &str) -> Option<String> {
        let cluster = self.engine().cluster();
        Some(cluster.node(cluster.find_node(node)?).spec.labels.get(label)?.to_string())
    }

    fn has_queue(&self, name: &str) -> bool {
        self.engine().cluster().find_queue(name).is_some()
    }

    fn used(&self, holder: Holder<'_>, resource: &str) -> Option<i64> {
        let cluster = self.engine().cluster();
        let id: ResourceId = cluster.names().find(resource)?;
        Some(match holder {
            Holder::Node(name) => cluster.node(cluster.find_node(name)?).books().used.get(id),
            Holder::Queue(name) => {
                let held = cluster.queue(cluster.find_queue(name)?).held();
                held.allocated.get(id).saturating_add(held.releasing.get(id))
            }
        })
    }

    fn events(&self, about: About) -> Vec<String> {
        let subject = match about {
            About::Job(job) => {
                let job = &self.jobs()[job];
                Subject::Job { namespace: job.namespace.clone(), name: job.name.clone() }
            }
            About::Pod(pod) => {
                let spec = &World::pod(self, pod).spec;
                let (uid, namespace, name) = (spec.uid.clone(), spec.namespace().clone(), spec.name.clone());
                Subject::Pod(PodRef { uid, namespace, name })
            }
        };
        self.emitted(&subject).to_vec()
    }

    fn descheduled(&self) -> Option<usize> {
        Some(World::descheduled(self))
    }

    fn share(&self, queue: &str) -> Option<f64> {
        let cluster = self.engine().cluster();
        let held = cluster.queue(cluster.find_queue(queue)?).held().allocated.clone().with(ResourceId::PODS, 0);
        Some(held.dominant_share(&cluster.totals().allocatable).into_inner())
    }

    fn deserved(&self, queue: &str, resource: &str) -> Option<i64> {
        let (engine, cluster) = (self.engine(), self.engine().cluster());
        let due = engine.configuration().plugins().deserved(cluster.find_queue(queue)?).unwrap_or_default();
        Some(cluster.names().find(resource).map_or(0, |id| due.get(id)))
    }

    fn reason(&self, about: About) -> Option<(String, String)> {
        let (cluster, reasons) = (self.engine().cluster(), self.engine().reasons());
        let standing = match about {
            About::Job(job) => {
                let job = &self.jobs()[job];
                reasons.job(cluster.find_job(&job.namespace, &job.name)?)
            }
            About::Pod(pod) => {
                let id = cluster.find_task(&World::pod(self, pod).spec.uid)?;
                let task = cluster.task(id);
                if task.status().is_committed() { None } else { reasons.task(id, task.job) }
            }
        }?;
        Some((standing.reason.code().to_owned(), standing.reason.to_string()))
    }
}
