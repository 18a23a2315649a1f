//! `proportion`: queues share the cluster by weight, and may not hold more than that share while others want theirs.
//!
//! What a queue deserves is found by bounded water-filling, resource by resource: in proportion to its weight, at least
//! its guarantee, at most what it asks for and what its capability allows. Who asks for less leaves the rest to the
//! others, so a lone queue deserves the whole cluster.

use std::collections::BTreeMap;

use krafla_framework::session_plugin::{Comparison, Freeable, SessionPlugin, Victims, Vote};
use krafla_framework::share::{self, RelativeShare};
use krafla_framework::{PluginEntry, PluginInfo, Point, Rank, Reason, Room, Shortage};
use krafla_model::resources::Limits;
use krafla_model::{ClusterState, JobId, Limit, Queue, QueueId, Resources, Shortfall, TaskId};

use crate::admission;
use crate::queue_limits::{capability, kept_for_others, without_pods};
use crate::water_filling::{Claim, divide};

/// Name, arguments and points.
pub const INFO: PluginInfo = PluginInfo {
    name: "proportion",
    about: "share the cluster between queues by weight",
    arguments: &[],
    points: &[
        Point::QueueOrder,
        Point::Reclaimable,
        Point::Overused,
        Point::Allocatable,
        Point::Preemptive,
        Point::JobEnqueueable,
    ],
};

#[derive(Default)]
struct Proportion {
    queues: BTreeMap<QueueId, Share>,
    /// The cluster's amount of each resource of which any queue is due something.
    divided: Resources,
    /// Jobs were let in since the cluster was divided.
    outdated: bool,
}

/// What one queue is due, fixed for a session.
struct Share {
    deserved: Resources,
    /// The cluster less the other queues' guarantees, and its own capability.
    real_capability: Limits,
    /// What admission keeps for its jobs.
    inqueue: Resources,
    /// What its jobs hold beyond their minimums, and could give back.
    elastic: Resources,
}

/// Makes the plugin.
pub fn build(_: &PluginEntry) -> Box<dyn SessionPlugin> {
    Box::<Proportion>::default()
}

impl Proportion {
    /// Divides the cluster among the queues that have jobs. A job that is not let in yet asks for nothing: what it would
    /// like must not be kept from those that could run.
    fn divide(&mut self, cluster: &ClusterState) {
        self.outdated = false;
        for (id, deserved) in self.dues(cluster, None) {
            if let Some(share) = self.queues.get_mut(&id) {
                share.deserved = deserved;
            }
        }
        self.divided = share::divided(cluster, self.queues.values().map(|share| &share.deserved));
    }

    /// What every queue is due, if one of them asked for more than it does.
    fn dues(&self, cluster: &ClusterState, more: Option<(QueueId, &Resources)>) -> BTreeMap<QueueId, Resources> {
        let mut wanted: BTreeMap<QueueId, Resources> =
            self.queues.keys().map(|&id| (id, cluster.queue(id).held().wanted())).collect();
        for job in cluster.waiting_jobs().map(|job| cluster.job(job)).filter(|job| job.is_pending()) {
            for above in job.queue.into_iter().flat_map(|queue| cluster.queue(queue).path()) {
                if let Some(wanted) = wanted.get_mut(above) {
                    wanted.sub(&job.held().pending);
                }
            }
        }
        if let Some((queue, more)) = more {
            for above in cluster.queue(queue).path() {
                if let Some(wanted) = wanted.get_mut(above) {
                    wanted.add(more);
                }
            }
        }
        let mut dues: BTreeMap<QueueId, Resources> = BTreeMap::new();
        // By name, so that the odd unit goes the same way after a restart.
        let order: Vec<QueueId> =
            cluster.queues().map(|(id, _)| id).filter(|id| self.queues.contains_key(id)).collect();
        for (resource, amount) in cluster.totals().allocatable.iter() {
            let claims: Vec<Claim> = order
                .iter()
                .map(|&id| {
                    let (queue, share) = (cluster.queue(id), &self.queues[&id]);
                    let floor = queue.guarantee.get(resource);
                    let ceiling = match share.real_capability.get(resource) {
                        Limit::To(limit) => wanted[&id].get(resource).min(limit),
                        Limit::Unlimited => wanted[&id].get(resource),
                    };
                    Claim { weight: queue.spec.weight, floor, ceiling: ceiling.max(floor) }
                })
                .collect();
            for (part, id) in divide(amount, &claims).into_iter().zip(&order) {
                dues.entry(*id).or_default().set(resource, part);
            }
        }
        dues
    }

    /// Whether the next task of a job belongs to the first unit of its queue: a gang's minimum, or one task, while the queue holds
    /// nothing else. Such a unit may be larger than what the queue is due, since it cannot be divided; without it a
    /// queue whose due is smaller than its smallest job would never start anything.
    fn is_first_unit(cluster: &ClusterState, queue: QueueId, job: JobId) -> bool {
        let job = cluster.job(job);
        let alone = cluster.queue(queue).held().occupied() == job.held().occupied();
        alone && (job.held().occupied().is_zero() || job.n_ready() + job.n_pipelined() < job.min_available())
    }

    /// Held over deserved, by the one share function.
    fn share(&self, cluster: &ClusterState, queue: QueueId) -> RelativeShare {
        let Some(share) = self.queues.get(&queue) else { return RelativeShare::default() };
        RelativeShare::of(&cluster.queue(queue).held().claimed(), &share.deserved, &self.divided)
    }

    /// Why `request` is more than the queue may hold, if it is. A first unit may go beyond what the queue is due, though
    /// not where it is due nothing.
    fn beyond(
        &self,
        cluster: &ClusterState,
        id: QueueId,
        request: &Resources,
        room: Room,
        first_unit: bool,
        kept: impl Fn(&Resources) -> Resources,
    ) -> Option<Reason> {
        let queue = cluster.queue(id);
        if !queue.is_open() {
            return Some(Reason::queue_not_open(cluster, id));
        }
        let share = self.queues.get(&id)?;
        let held_by = |queue: &Queue| {
            let held = match room {
                // What terminates still takes room until it is gone.
                Room::Now => queue.held().occupied(),
                Room::AfterRelease => queue.held().claimed(),
            };
            held.plus(&kept(&queue.held().let_through))
        };
        let held = held_by(queue);
        let request = without_pods(request);
        let limit_of = |queue: &Queue, short| Reason::QueueLimit {
            queue: queue.spec.name.clone(),
            shortage: Shortage::new(short, cluster),
        };
        let over_due = |short: &Shortfall| !first_unit || share.deserved.get(short.resource) == 0;
        if let Some(short) = request.all_over(&held, &share.deserved).find(over_due) {
            return Some(limit_of(queue, short));
        }
        if let Some(short) = request.first_over(&held, &share.real_capability) {
            return Some(limit_of(queue, short));
        }
        queue
            .path()
            .iter()
            .map(|above| cluster.queue(*above))
            .find_map(|above| Some(limit_of(above, request.first_over(&held_by(above), &capability(above))?)))
    }
}

impl SessionPlugin for Proportion {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn points(&self) -> &'static [Point] {
        INFO.points
    }

    fn open(&mut self, cluster: &ClusterState) {
        let total = &cluster.totals().allocatable;
        let mut guarantees = Resources::default();
        for (_, queue) in cluster.queues() {
            guarantees.add(&queue.guarantee);
        }
        let active: Vec<QueueId> = cluster.queues().filter(|(_, queue)| queue.n_jobs() > 0).map(|(id, _)| id).collect();
        let real: Vec<Limits> = active
            .iter()
            .map(|&id| {
                let queue = cluster.queue(id);
                let own = total.minus_clamped(&guarantees).plus(&queue.guarantee);
                Limits::of_stock(&own, cluster.names()).min(&capability(queue))
            })
            .collect();
        let at_the_door = admission::anyone_waits_for_entry(cluster);
        self.queues = active
            .into_iter()
            .zip(real)
            .map(|(id, real_capability)| {
                let (mut inqueue, mut elastic) = (Resources::default(), Resources::default());
                if at_the_door {
                    for job in cluster.queue(id).jobs() {
                        inqueue.add(&admission::reservation(cluster, job));
                        elastic.add(&cluster.job(job).elastic());
                    }
                }
                (id, Share { deserved: Resources::default(), real_capability, inqueue, elastic })
            })
            .collect();
        self.divide(cluster);
    }

    fn before_action(&mut self, cluster: &ClusterState, _: &str) {
        if self.outdated {
            self.divide(cluster);
        }
    }

    fn queue_order(&self, cluster: &ClusterState, queue: QueueId, rank: &mut Rank) {
        rank.descending(cluster.queue(queue).spec.priority);
        let share = self.share(cluster, queue);
        rank.ascending(share.unentitled);
        rank.ascending(share.entitled);
    }

    /// Every dimension of what it deserves is in use.
    fn overused(&self, cluster: &ClusterState, id: QueueId) -> Option<Reason> {
        let share = self.queues.get(&id)?;
        let held = cluster.queue(id).held().claimed();
        // A queue that deserves nothing is told so task by task, with the numbers of what it asks for.
        let full = !share.deserved.is_zero() && share.deserved.within(&held);
        full.then(|| Reason::QueueOverused {
            queue: cluster.queue(id).spec.name.clone(),
            held: cluster.names().format_all(&held),
            deserved: cluster.names().format_all(&share.deserved),
        })
    }

    fn allocatable(&self, cluster: &ClusterState, queue: QueueId, task: TaskId, room: Room) -> Option<Reason> {
        let first_unit = cluster.task(task).job.is_some_and(|job| Self::is_first_unit(cluster, queue, job));
        let kept = |let_through: &Resources| kept_for_others(cluster, let_through, task);
        self.beyond(cluster, queue, &cluster.shape_of(task).request, room, first_unit, kept)
    }

    /// What it is due is no limit of the queue's own: that follows what others want, and the nodes.
    fn minimum_allocatable(&self, cluster: &ClusterState, id: QueueId, job: JobId, more: &Resources) -> Option<Reason> {
        let (more, own) = (without_pods(more), &cluster.job(job).held().let_through);
        let real_capability = &self.queues.get(&id)?.real_capability;
        let held = |queue: &Queue| queue.held().claimed().plus(&queue.held().let_through.minus_clamped(own));
        let limit_of = |queue: &Queue, short| Reason::QueueLimit {
            queue: queue.spec.name.clone(),
            shortage: Shortage::new(short, cluster),
        };
        let queue = cluster.queue(id);
        let over_own = more.first_over(&held(queue), real_capability).map(|short| limit_of(queue, short));
        over_own.or_else(|| {
            queue
                .path()
                .iter()
                .map(|above| cluster.queue(*above))
                .find_map(|above| Some(limit_of(above, more.first_over(&held(above), &capability(above))?)))
        })
    }

    fn preemptive(&self, cluster: &ClusterState, queue: QueueId, tasks: &[TaskId]) -> bool {
        let mut sum = Resources::default();
        for &task in tasks {
            sum.add(&cluster.shape_of(task).request);
        }
        let nothing = |_: &Resources| Resources::default();
        self.beyond(cluster, queue, &sum, Room::AfterRelease, false, nothing).is_none()
    }

    /// From each queue as long as it holds more than it deserves in some dimension.
    fn reclaimable(&self, cluster: &ClusterState, _: TaskId, candidates: &[TaskId]) -> Victims {
        let mut left: BTreeMap<QueueId, Resources> = BTreeMap::new();
        let mut victims = Vec::new();
        for &candidate in candidates {
            let queue = cluster.task(candidate).job.and_then(|job| cluster.job(job).queue);
            let Some((queue, share)) = queue.and_then(|queue| Some((queue, self.queues.get(&queue)?))) else {
                continue;
            };
            let held = left.entry(queue).or_insert_with(|| cluster.queue(queue).held().claimed());
            if !held.within(&share.deserved) {
                held.sub(&cluster.shape_of(candidate).request);
                victims.push(candidate);
            }
        }
        Victims::Only(victims)
    }

    /// It does not look at who asks. Who has been named before counts as gone.
    fn reclaims_no_more(&self, _: &ClusterState, _: JobId, _: JobId) -> Comparison {
        Comparison::Now
    }

    fn job_enqueueable(&self, cluster: &ClusterState, id: JobId, freeable: &Freeable) -> Vote {
        let job = cluster.job(id);
        let Some(queue_id) = job.queue else { return Vote::Abstain };
        let queue = cluster.queue(queue_id);
        if !queue.is_open() {
            return Vote::Reject(Box::new(Reason::queue_not_open(cluster, queue_id)));
        }
        let (Some(min), Some(share)) = (&job.min_resources, self.queues.get(&queue_id)) else { return Vote::Permit };
        let held = queue.held().claimed().minus_clamped(&freeable.in_queue);
        let inqueue = share.inqueue.minus_clamped(&freeable.kept_for_lower);
        let used = held.plus(&inqueue).minus_clamped(&share.elastic);
        match without_pods(min).first_over(&used, &share.real_capability) {
            None => Vote::Permit,
            Some(short) => Vote::Reject(Box::new(Reason::QueueLimit {
                queue: queue.spec.name.clone(),
                shortage: Shortage::new(short, cluster),
            })),
        }
    }

    fn job_enqueued(&mut self, cluster: &ClusterState, job: JobId) {
        let queue = cluster.job(job).queue;
        if let Some(share) = queue.and_then(|queue| self.queues.get_mut(&queue)) {
            share.inqueue.add(&admission::on_entry(cluster, job));
        }
        self.outdated = true;
    }

    fn could_reclaim(&self, cluster: &ClusterState, queue: QueueId, more: &Resources) -> Option<Resources> {
        let mut excess = Resources::default();
        let dues = self.dues(cluster, Some((queue, more)));
        let nothing = Resources::default();
        let due = |queue: &QueueId| dues.get(queue).unwrap_or(&nothing);
        let wants = without_pods(&cluster.queue(queue).held().claimed().plus(more));
        if wants.within(due(&queue)) {
            for (&id, other) in self.queues.keys().map(|id| (id, cluster.queue(*id))).filter(|(id, _)| **id != queue) {
                if other.spec.reclaimable {
                    excess.add(&other.held().claimed().minus_clamped(due(&id)));
                }
            }
        }
        Some(excess)
    }

    fn deserved(&self, queue: QueueId) -> Option<Resources> {
        Some(self.queues.get(&queue)?.deserved.clone())
    }
}

#[cfg(test)]
mod tests {
    use krafla_model::JobPhase::{Inqueue, Pending};
    use krafla_model::queue::QueueState;
    use krafla_model::{Event, JobPhase, QuotaSpec};
    use krafla_testkit::{QueueScene, Scene, amounts};

    use super::*;
    use crate::testing::{conf, registry, run, runs, waits};

    const ALL: &[&str] = &["gang", "proportion", "predicates"];
    const DOOR_ONLY: &str = "proportion enabledOverused=false enabledAllocatable=false enableQueueOrder=false";
    const ALLOCATABLE_ONLY: &str = "proportion enabledOverused=false enableJobEnqueued=false enableQueueOrder=false";

    /// Two nodes, and two queues that run something.
    fn common(edit: impl FnOnce(QueueScene) -> QueueScene) -> Scene {
        Scene::new()
            .node("n1", "2c2G")
            .node("n2", "2c2G")
            .queue("q1", |queue| edit(queue.capability("2c2G")))
            .queue("q2", |queue| queue.capability("3c3G"))
            .job("r1", runs("q1", "1c2G", "n1"))
            .job("r2", runs("q2", "2c1G", "n2"))
    }

    #[test]
    fn a_queue_is_held_to_what_it_asks_more_of() {
        let everything = "proportion";
        for (name, queue, asks, plugin, binds, phase) in [
            ("its memory is used up, CPU is not", "q1", "1c", everything, "p-0 -> n1", Inqueue),
            ("its CPU is used up, memory is not", "q2", "1G", everything, "p-0 -> n2", Inqueue),
            ("the door alone", "q1", "1c1G", DOOR_ONLY, "", Pending),
            ("the limit alone", "q1", "1c1G", ALLOCATABLE_ONLY, "", Inqueue),
        ] {
            let scene = common(|queue| queue).job("p", waits(queue, asks));
            let outcome = run(&scene, "enqueue, allocate", &["gang", "predicates", plugin]);
            assert_eq!(outcome.binds.join(","), binds, "{name}");
            assert_eq!(outcome.phases["p"], phase, "{name}");
            assert!(!binds.is_empty() || outcome.reasons["p"].0 == "QueueLimit", "{name}: {:?}", outcome.reasons);
        }
    }

    #[test]
    fn a_queue_that_is_not_open_admits_and_starts_nothing() {
        for state in [QueueState::Closed, QueueState::Closing, QueueState::Unknown] {
            let scene = common(|queue| queue.state(state)).job("p", waits("q1", "1c"));
            let outcome = run(&scene, "enqueue, allocate", ALL);
            assert_eq!((outcome.binds.len(), outcome.phases["p"]), (0, Pending), "{state:?}");
            assert_eq!(outcome.reasons["p"].0, "QueueNotOpen");
            // Not even what asks for nothing at the door (Volcano lets that in).
            let scene =
                common(|queue| queue.state(state)).job("p", |job| job.queue("q1").at_the_door().pending(1, "1c"));
            assert_eq!(run(&scene, "enqueue, allocate", ALL).phases["p"], Pending, "{state:?}");
            let scene = common(|queue| queue.state(state)).job("p", |job| job.queue("q1").pending(1, "1c"));
            assert_eq!(run(&scene, "enqueue, allocate", ALL).binds, [""; 0], "{state:?}: admitted before");
            // Nor what asks for nothing, which Volcano's backfill would start.
            let scene = common(|queue| queue.state(state)).job("p", |job| job.queue("q1").pending(1, ""));
            assert_eq!(run(&scene, "allocate, backfill", ALL).binds, [""; 0], "{state:?}: asks for nothing");
        }
    }

    #[test]
    fn the_queue_of_the_highest_priority_goes_first() {
        let scene = Scene::new()
            .node("n1", "2c4Gi")
            .node("n2", "2c4Gi")
            .queue("q1", |queue| queue.capability("2c4Gi"))
            .queue("q2", |queue| queue.priority(1))
            .queue("q3", |queue| queue.priority(10))
            .job("r1", runs("q1", "2c4Gi", "n1"))
            .job("p1", waits("q1", "2c4Gi"))
            .job("p2", |job| job.queue("q2").min(1).pending(1, "2c4Gi"))
            .job("p3", |job| job.queue("q3").min(1).pending(1, "2c4Gi"));
        let order_only = "proportion enabledOverused=false enabledAllocatable=false";
        assert_eq!(run(&scene, "enqueue, allocate", &["gang", "predicates", order_only]).binds, ["p3-0 -> n2"]);
        // Each deserves a third of four cores, and a pod of two is more; but it is the first unit of a queue that holds
        // nothing, so the first queue in line may start it.
        assert_eq!(run(&scene, "enqueue, allocate", ALL).binds, ["p3-0 -> n2"]);
    }

    #[test]
    fn a_gang_that_is_larger_than_its_queues_due_still_starts_when_nothing_else_of_the_queue_runs() {
        let scene = |running: &str| {
            Scene::new()
                .node("n", "24c")
                .queue("a", |queue| queue.weight(2))
                .queue("b", |queue| queue)
                .job("large", |job| job.queue("a").min(5).pending(5, "4c"))
                .job("other", |job| job.queue("b").min(5).pending(5, "4c"))
                .job("small", |job| job.queue("a").running(1, running, "n"))
        };
        // Due are 16 and 8; each gang asks for 20.
        let alone = run(&scene(""), "enqueue, allocate", ALL);
        assert_eq!(alone.binds.len(), 5, "{:?}", alone.reasons);
        let beside = run(&scene("1c"), "enqueue, allocate", ALL);
        assert!(beside.binds.iter().all(|bind| bind.starts_with("other")), "{:?}", beside.binds);
    }

    #[test]
    fn a_job_at_the_door_takes_nothing_from_what_others_are_due() {
        let scene = Scene::new()
            .node("n", "8c")
            .queue("a", |queue| queue)
            .queue("b", |queue| queue)
            .job("runs", |job| job.queue("a").running(1, "1c", "n"))
            .job("waits", |job| job.queue("a").min(7).pending(7, "1c"))
            .job("outside", |job| job.queue("b").at_the_door().min_resources("90c").pending(1, "90c"));
        assert_eq!(run(&scene, "enqueue, allocate", ALL).binds.len(), 7);
    }

    #[test]
    fn what_an_admitted_job_holds_is_not_kept_for_it_again() {
        for (held, asks, phase) in [(3, "1c", Inqueue), (3, "2c", Pending), (0, "1c", Inqueue), (0, "2c", Pending)] {
            let scene = Scene::new()
                .node("n", "8c")
                .queue("q", |queue| queue.capability("4c"))
                .job("a", |job| {
                    job.queue("q").min(3).min_resources("3c").running(held, "1c", "n").pending(3 - held, "1c")
                })
                .job("b", |job| job.queue("q").min_resources(asks).at_the_door());
            let outcome = run(&scene, "enqueue, allocate", &["gang", "proportion"]);
            assert_eq!(outcome.phases["b"], phase, "{held} held, {asks} asked");
        }
    }

    #[test]
    fn what_a_job_could_give_back_is_not_in_the_way_at_the_door() {
        // Four cores run, one of them beyond minResources.
        let scene = |asks: &'static str| {
            Scene::new()
                .node("n", "8c")
                .queue("q", |queue| queue.capability("4c"))
                .job("a", |job| job.queue("q").min(3).min_resources("3c").running(4, "1c", "n"))
                .job("b", |job| job.queue("q").min_resources(asks).at_the_door())
        };
        assert_eq!(run(&scene("1c"), "enqueue, allocate", ALL).phases["b"], Inqueue);
        assert_eq!(run(&scene("2c"), "enqueue, allocate", ALL).phases["b"], Pending);
    }

    #[test]
    fn room_that_terminates_admits_a_job_and_is_promised_but_not_given() {
        let scene = Scene::new()
            .node("n", "8c")
            .queue("q", |queue| queue.capability("4c"))
            .job("old", |job| {
                let job = job.queue("q").min(1).min_resources("4c").releasing(1, "4c", "n");
                job.group(|group| group.phase = JobPhase::Running)
            })
            .job("new", waits("q", "4c"));
        let outcome = run(&scene, "enqueue, allocate", ALL);
        assert_eq!(outcome.phases["new"], Inqueue);
        assert_eq!(outcome.binds, [""; 0], "what terminates counts against the limit until it is gone");
        assert_eq!(outcome.reasons["new"].0, "WaitingForRelease");
    }

    #[test]
    fn a_job_that_another_plugin_keeps_out_leaves_nothing_behind() {
        let quota = QuotaSpec {
            namespace: "poor".into(),
            name: "none".into(),
            hard: amounts("0c"),
            used: krafla_model::Amounts::default(),
        };
        let scene = Scene::new()
            .node("n", "8c")
            .queue("q", |queue| queue.capability("1c"))
            .job("a", |job| job.namespace("poor").queue("q").min_resources("1c").at_the_door())
            .job("b", |job| job.queue("q").min_resources("1c").at_the_door())
            .job("c", |job| job.queue("q").min_resources("1c").at_the_door())
            .event(Event::Quota(quota));
        for plugins in [&["proportion", "resourcequota"], &["resourcequota", "proportion"]] {
            let phases = run(&scene, "enqueue, allocate", plugins).phases;
            assert_eq!(["a", "b", "c"].map(|job| phases[job]), [Pending, Inqueue, Pending]);
        }
    }

    #[test]
    fn a_resource_that_the_capability_does_not_name_is_limited_by_the_cluster_alone() {
        let scene = |rdma: &str| {
            let asks = format!("1c1k1g,example.com/rdma={rdma}");
            Scene::new()
                .node("n", "8c8G8g,example.com/rdma=1000")
                .queue("q", |queue| queue.capability("2c2k4g"))
                .job("p", |job| job.queue("q").min(1).min_resources(&asks).at_the_door().pending(1, &asks))
        };
        assert_eq!(run(&scene("1"), "enqueue, allocate", ALL).binds, ["p-0 -> n"]);
        assert_eq!(run(&scene("1000"), "enqueue, allocate", ALL).binds, ["p-0 -> n"]);
        assert_eq!(run(&scene("1001"), "enqueue, allocate", ALL).phases["p"], Pending);
    }

    #[test]
    fn a_capability_of_no_cpu_or_memory_is_none_and_of_no_gpu_is_a_limit() {
        let scene = |capability: &str| {
            Scene::new()
                .node("n", "8c8Gi8g")
                .queue("q", |queue| queue.capability(capability))
                .job("cpu", |job| job.queue("q").pending(1, "4c4Gi"))
                .job("gpu", |job| job.queue("q").pending(1, "1c1Gi1g"))
        };
        assert_eq!(run(&scene("0c0Gi"), "allocate", ALL).binds, ["cpu-0 -> n", "gpu-0 -> n"]);
        assert_eq!(run(&scene("0c0Gi0g"), "allocate", ALL).binds, ["cpu-0 -> n"]);
    }

    /// What each queue deserves, by name, without the pod slots.
    fn deserved(scene: &Scene) -> BTreeMap<String, String> {
        let mut cluster = scene.build();
        krafla_testkit::ask(&mut cluster, &registry(), &conf("allocate", &[&["proportion"]]), |session| {
            let cluster = session.cluster();
            let due = |id| Some(cluster.names().format_all(&without_pods(&session.plugins().deserved(id)?)));
            cluster.queues().filter_map(|(id, queue)| Some((queue.spec.name.to_string(), due(id)?))).collect()
        })
    }

    fn due(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(queue, due)| ((*queue).to_owned(), (*due).to_owned())).collect()
    }

    #[test]
    fn queues_deserve_in_proportion_to_their_weight_what_they_ask_for() {
        let asks = |scene: Scene, queue: &'static str, cores: u32| {
            scene.job(&format!("of-{queue}"), |job| job.queue(queue).pending(cores, "1c"))
        };
        let three = |weights: [u32; 3]| {
            let names = ["q1", "q2", "q3"].into_iter().zip(weights);
            names.fold(Scene::new().node("n", "12c"), |scene, (name, weight)| scene.queue(name, |q| q.weight(weight)))
        };
        let worked = asks(asks(asks(three([1, 1, 2]), "q1", 2), "q2", 10), "q3", 10);
        assert_eq!(deserved(&worked), due(&[("q1", "cpu 2"), ("q2", "cpu 3.334"), ("q3", "cpu 6.666")]));

        let lone = asks(three([1, 1, 2]), "q1", 20);
        assert_eq!(deserved(&lone), due(&[("q1", "cpu 12")]), "queues without jobs take no part");

        let guaranteed = Scene::new()
            .node("n", "10c")
            .queue("q1", |queue| queue.guarantee("4c"))
            .queue("q2", |queue| queue)
            .job("done", |job| job.queue("q1").succeeded(1, "1c"))
            .job("eager", |job| job.queue("q2").pending(10, "1c"));
        assert_eq!(deserved(&guaranteed), due(&[("q1", "cpu 4"), ("q2", "cpu 6")]));

        let idle_guarantee = Scene::new()
            .node("n", "10c")
            .queue("q1", |queue| queue.guarantee("4c"))
            .queue("q2", |queue| queue)
            .job("eager", |job| job.queue("q2").pending(10, "1c"));
        assert_eq!(deserved(&idle_guarantee), due(&[("q2", "cpu 6")]), "kept for a queue without jobs too");

        let weightless = Scene::new()
            .node("n", "10c")
            .queue("q1", |queue| queue.weight(0).guarantee("2c"))
            .queue("q2", |queue| queue.weight(1))
            .job("a", |job| job.queue("q1").pending(5, "1c"))
            .job("b", |job| job.queue("q2").pending(5, "1c"));
        assert_eq!(deserved(&weightless), due(&[("q1", "cpu 2"), ("q2", "cpu 5")]));
    }

    #[test]
    fn without_any_weight_nothing_is_placed() {
        let scene = Scene::new()
            .node("n", "10c")
            .queue("q1", |queue| queue.weight(0))
            .queue("q2", |queue| queue.weight(0))
            .job("a", |job| job.queue("q1").pending(1, "1c"))
            .job("b", |job| job.queue("q2").pending(1, "1c"));
        assert_eq!(deserved(&scene), due(&[("q1", "nothing"), ("q2", "nothing")]));
        assert_eq!(run(&scene, "allocate", ALL).binds, [""; 0]);
    }

    #[test]
    fn a_queue_gives_back_what_is_beyond_its_due_and_no_more() {
        let mut cluster = Scene::new()
            .node("n", "3c")
            .queue("q1", |queue| queue)
            .queue("q2", |queue| queue)
            .job("a", |job| job.queue("q1").running(3, "1c", "n"))
            .job("b", |job| job.queue("q2").pending(3, "1c"))
            .build();
        let mut plugin = Proportion::default();
        plugin.open(&cluster);
        let q1 = cluster.find_queue("q1").unwrap();
        assert_eq!(cluster.names().format_all(&without_pods(&plugin.deserved(q1).unwrap())), "cpu 1.5");
        let running: Vec<TaskId> = cluster.tasks().map(|(id, _)| id).take(3).collect();
        let reclaimer = krafla_testkit::task_named(&cluster, "b-0");
        assert_eq!(plugin.reclaimable(&cluster, reclaimer, &running), Victims::Only(running[..2].to_vec()));
        // One has gone: the next is still above 1.5, the third is not.
        cluster.evict(running[0]).unwrap();
        assert_eq!(plugin.reclaimable(&cluster, reclaimer, &running[1..]), Victims::Only(vec![running[1]]));
    }

    /// Queues with a weight, a capability in cores (0: none), and jobs of so many pods of so many cores.
    type Shared = (u32, Vec<(u32, u32, Vec<(u32, u32)>)>);

    fn shared() -> impl proptest::strategy::Strategy<Value = Shared> {
        use proptest::collection::vec;
        (1_u32..20, vec((0_u32..4, 0_u32..9, vec((1_u32..5, 1_u32..4), 0..3)), 1..4))
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(200))]

        #[test]
        fn no_queue_gets_more_than_its_due_but_for_one_unit_nor_its_capability_and_a_second_session_adds_nothing((cores, queues) in shared()) {
            let mut scene = Scene::new().node("n", &format!("{cores}c"));
            for (q, (weight, capability, jobs)) in queues.iter().enumerate() {
                let name = format!("q{q}");
                scene = scene.queue(&name, |queue| {
                    let queue = queue.weight(*weight);
                    if *capability > 0 { queue.capability(&format!("{capability}c")) } else { queue }
                });
                for (j, (pods, asks)) in jobs.iter().enumerate() {
                    let asks = format!("{asks}c");
                    scene = scene.job(&format!("{name}-{j}"), |job| job.queue(&name).min(1).pending(*pods, &asks));
                }
            }
            let outcome = run(&scene, "allocate", ALL);
            let mut plugin = Proportion::default();
            plugin.open(&scene.build());
            for (id, queue) in outcome.cluster.queues().filter(|(_, queue)| queue.n_jobs() > 0) {
                let held = without_pods(&queue.held().allocated);
                let due = plugin.deserved(id).unwrap();
                let pods = queue.held().allocated.get(krafla_model::ResourceId::PODS);
                let fair = held.within(&due) || pods == 1;
                proptest::prop_assert!(fair, "{} holds {:?} of {:?}", queue.spec.name, held, due);
                proptest::prop_assert!(held.first_over(&Resources::default(), &queue.capability).is_none());
            }
            let again = krafla_testkit::run(outcome.settled(), &registry(), &conf("allocate", &[ALL]));
            proptest::prop_assert_eq!(again.binds, Vec::<String>::new());
        }
    }
}
