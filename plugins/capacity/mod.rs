//! `capacity`: each queue has a due in numbers, may borrow what others leave, and gives it back when they want theirs.
//!
//! With `enableHierarchy` the queues are a tree: jobs are in its leaves, what a leaf holds counts for each queue above
//! it, and each of those has its own due and limit. A queue with a wrong parent harms itself and those below it only.

mod devices;
mod entitlement;
#[cfg(test)]
mod flat_tests;
#[cfg(test)]
mod properties;
mod tree;
#[cfg(test)]
mod tree_tests;
mod victims;

use std::collections::BTreeMap;

use krafla_framework::conf::catalogue::ArgumentKind::{Bool, Integer};
use krafla_framework::session_plugin::{Comparison, EvictionKind, Freeable, SessionPlugin, Victims, Vote};
use krafla_framework::share::{RelativeShare, divided};
use krafla_framework::{ArgumentInfo, PluginEntry, PluginInfo, Point, Rank, Reason, Room, Shortage};
use krafla_model::job::Held;
use krafla_model::{ClusterState, JobId, QueueId, Resources, Shortfall, TaskId};
use ordered_float::OrderedFloat;

use self::devices::Devices;
use self::entitlement::{Entitlement, entitlements};
use self::tree::Tree;
use crate::admission;
use crate::queue_limits::{kept_for_others, without_pods};

/// Name, arguments and points.
pub const INFO: PluginInfo = PluginInfo {
    name: "capacity",
    about: "queues have a due in numbers, borrow what is idle and give it back",
    arguments: &[
        ArgumentInfo::new(
            ANCESTOR_LEVEL,
            Integer { min: 0, max: i64::MAX },
            "0",
            "how many queues above a leaf are asked for their due too when it reclaims or gives back",
        ),
        ArgumentInfo::new(DEVICES, Bool, "true", "whether queues have quotas of devices, which pods get by claims"),
        ArgumentInfo::new(
            CAPACITIES,
            Bool,
            "false",
            "whether they have quotas of what claims take of shared devices too",
        ),
    ],
    points: &[
        Point::Hierarchy,
        Point::QueueOrder,
        Point::VictimQueueOrder,
        Point::Reclaimable,
        Point::UnifiedEvictable,
        Point::Allocatable,
        Point::Preemptive,
        Point::JobEnqueueable,
        Point::JobValid,
    ],
};

const ANCESTOR_LEVEL: &str = "ancestorReclaimLevel";
const DEVICES: &str = "capacity.DynamicResourceAllocationEnable";
const CAPACITIES: &str = "capacity.DRAConsumableCapacityEnable";

/// The points without the hierarchy: no queue is nearer to another, and none has a wrong place.
const FLAT_POINTS: &[Point] = &[
    Point::QueueOrder,
    Point::Reclaimable,
    Point::UnifiedEvictable,
    Point::Allocatable,
    Point::Preemptive,
    Point::JobEnqueueable,
];

#[derive(Default)]
struct Capacity {
    hierarchy: bool,
    /// Levels of ancestors that reclaim looks at.
    levels: usize,
    /// Whether quotas of devices count, and of what is taken of them.
    counts_devices: bool,
    counts_capacities: bool,
    devices: Devices,
    tree: Tree,
    queues: BTreeMap<QueueId, Account>,
    /// The cluster's amount of each resource of which any queue is due something.
    divided: Resources,
}

/// What a session knows of one queue. Sums are with the queues below it.
struct Account {
    entitled: Entitlement,
    /// What admission keeps for its jobs.
    inqueue: Resources,
    /// What its jobs hold beyond their minimums, and could give back.
    elastic: Resources,
}

/// Makes the plugin.
pub fn build(entry: &PluginEntry) -> Box<dyn SessionPlugin> {
    let levels = usize::try_from(entry.arguments.integer(ANCESTOR_LEVEL, 0)).unwrap_or(0);
    Box::new(Capacity {
        hierarchy: entry.switches.hierarchy(),
        levels,
        counts_devices: entry.arguments.bool(DEVICES, true),
        counts_capacities: entry.arguments.bool(CAPACITIES, false),
        ..Capacity::default()
    })
}

impl Capacity {
    /// Why a queue takes no job at all, if it takes none.
    fn shut(&self, cluster: &ClusterState, id: QueueId) -> Option<Reason> {
        if !cluster.queue(id).is_open() {
            return Some(Reason::queue_not_open(cluster, id));
        }
        self.tree.refusal(cluster, id)
    }

    /// The limit that is in the way of a queue: its own, or that of the nearest queue above it that `over` finds.
    fn limit(
        &self,
        cluster: &ClusterState,
        id: QueueId,
        over: impl Fn(QueueId, &Account) -> Option<Shortfall>,
    ) -> Option<Reason> {
        let path = self.tree.path(cluster, id);
        let mut limited = path.iter().rev().filter_map(|&above| Some((above, over(above, self.queues.get(&above)?)?)));
        let (mut which, mut short) = limited.next()?;
        // A limit that is only that of the queue above is told as that one's.
        for (above, further) in limited {
            if (further.resource, further.limit) != (short.resource, short.limit) {
                break;
            }
            (which, short) = (above, further);
        }
        let queue = cluster.queue(which).spec.name.clone();
        Some(Reason::QueueLimit { queue, shortage: Shortage::new(short, cluster) })
    }

    /// What a queue and those below it hold or were promised.
    fn claimed(&self, cluster: &ClusterState, id: QueueId) -> Resources {
        self.tree.held(cluster, id, Held::claimed)
    }

    /// What a queue and those below it keep for tasks that were let through its gate.
    fn let_through(&self, cluster: &ClusterState, id: QueueId) -> Resources {
        self.tree.held(cluster, id, |held| held.let_through.clone())
    }

    /// Adds `amount` to what admission keeps for a queue and for those above it.
    fn keep(&mut self, cluster: &ClusterState, id: QueueId, amount: &Resources) {
        for above in self.tree.path(cluster, id) {
            if let Some(account) = self.queues.get_mut(above) {
                account.inqueue.add(amount);
            }
        }
    }
}

fn device_limit(cluster: &ClusterState, over: Option<(QueueId, Shortage)>) -> Option<Reason> {
    let (queue, shortage) = over?;
    Some(Reason::QueueLimit { queue: cluster.queue(queue).spec.name.clone(), shortage })
}

impl SessionPlugin for Capacity {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn points(&self) -> &'static [Point] {
        if self.hierarchy { INFO.points } else { FLAT_POINTS }
    }

    fn open(&mut self, cluster: &ClusterState) {
        self.tree = Tree::of(cluster, self.hierarchy);
        self.queues = entitlements(cluster, &self.tree)
            .into_iter()
            .map(|(id, entitled)| {
                (id, Account { entitled, inqueue: Resources::default(), elastic: Resources::default() })
            })
            .collect();
        self.divided = divided(cluster, self.queues.values().map(|account| &account.entitled.due));
        self.devices = match self.counts_devices {
            true => {
                let at_the_door = admission::anyone_waits_for_entry(cluster);
                Devices::of(cluster, &self.tree, self.counts_capacities, at_the_door)
            }
            false => Devices::default(),
        };
        if !admission::anyone_waits_for_entry(cluster) {
            return;
        }
        for (id, queue) in cluster.queues() {
            let (mut inqueue, mut elastic) = (Resources::default(), Resources::default());
            for job in queue.jobs() {
                inqueue.add(&admission::reservation(cluster, job));
                elastic.add(&cluster.job(job).elastic());
            }
            // What cannot start here keeps nobody else out.
            if self.tree.refusal(cluster, id).is_none() {
                self.keep(cluster, id, &inqueue);
            }
            for above in self.tree.path(cluster, id) {
                if let Some(account) = self.queues.get_mut(above) {
                    account.elastic.add(&elastic);
                }
            }
        }
    }

    fn on_allocate(&mut self, cluster: &ClusterState, task: TaskId) {
        self.devices.follow(cluster, &self.tree, task);
    }

    fn on_deallocate(&mut self, cluster: &ClusterState, task: TaskId) {
        self.devices.follow(cluster, &self.tree, task);
    }

    /// After the priority the shares on the path from below the root to the queue, so that two queues are compared where
    /// their branches part. A queue that is due nothing counts as one that holds its due, and comes after one that does.
    /// Cost: the depth of the tree times the width of a vector.
    fn queue_order(&self, cluster: &ClusterState, queue: QueueId, rank: &mut Rank) {
        rank.descending(cluster.queue(queue).spec.priority);
        let path = self.tree.below_root(cluster, queue);
        for &id in path {
            let nothing = Resources::default();
            let due = self.queues.get(&id).map_or(&nothing, |account| &account.entitled.due);
            let share = RelativeShare::of(&self.claimed(cluster, id), due, &self.divided);
            let is_due = !due.is_best_effort();
            rank.ascending(share.unentitled);
            rank.ascending(if is_due { share.entitled } else { OrderedFloat(1.0) });
            rank.first_if(is_due);
        }
        for _ in path.len()..self.tree.depth() {
            (0..3).for_each(|_| rank.ascending(0.0));
        }
    }

    /// Close relatives first: what they give up stays within the nearest common ancestor.
    fn victim_queue_order(&self, cluster: &ClusterState, queue: QueueId, preemptor: QueueId, rank: &mut Rank) {
        let shared = self.tree.shared(cluster, queue, preemptor);
        rank.descending(u32::try_from(shared).unwrap_or(u32::MAX));
    }

    /// A job whose queue has no place for it is not tried, not even what it has that asks for nothing.
    fn job_valid(&self, cluster: &ClusterState, job: JobId) -> Option<Reason> {
        self.tree.refusal(cluster, cluster.job(job).queue?)
    }

    fn allocatable(&self, cluster: &ClusterState, queue: QueueId, task: TaskId, room: Room) -> Option<Reason> {
        let part = match room {
            // What terminates still takes room until it is gone.
            Room::Now => Held::occupied,
            Room::AfterRelease => Held::claimed,
        };
        let request = without_pods(&cluster.shape_of(task).request);
        self.shut(cluster, queue).or_else(|| {
            self.limit(cluster, queue, |id, account| {
                let held = self.tree.held(cluster, id, part);
                let kept = kept_for_others(cluster, &self.let_through(cluster, id), task);
                let entitled = &account.entitled;
                let over = request.first_over(&held.plus(&kept), &entitled.door);
                over.or_else(|| request.first_over(&held, &entitled.ceiling))
            })
            .or_else(|| device_limit(cluster, self.devices.over(cluster, &self.tree, queue, task, room)))
        })
    }

    fn minimum_allocatable(
        &self,
        cluster: &ClusterState,
        queue: QueueId,
        job: JobId,
        more: &Resources,
    ) -> Option<Reason> {
        let (more, own) = (without_pods(more), &cluster.job(job).held().let_through);
        self.limit(cluster, queue, |id, account| {
            let (held, kept) = (self.claimed(cluster, id), self.let_through(cluster, id).minus_clamped(own));
            let over = more.first_over(&held.plus(&kept), &account.entitled.door);
            over.or_else(|| more.first_over(&held, &account.entitled.ceiling))
        })
    }

    fn passes_gate(&self, cluster: &ClusterState, queue: QueueId, task: TaskId) -> Option<Reason> {
        let request = without_pods(&cluster.shape_of(task).request);
        self.shut(cluster, queue)
            .or_else(|| {
                self.limit(cluster, queue, |id, account| {
                    let held = self.claimed(cluster, id).plus(&self.let_through(cluster, id));
                    request.first_over(&held, &account.entitled.door)
                })
            })
            .or_else(|| device_limit(cluster, self.devices.over(cluster, &self.tree, queue, task, Room::AfterRelease)))
    }

    fn preemptive(&self, cluster: &ClusterState, queue: QueueId, tasks: &[TaskId]) -> bool {
        let mut sum = Resources::default();
        for &task in tasks {
            sum.add(&cluster.shape_of(task).request);
        }
        self.may_reclaim(cluster, queue, &without_pods(&sum))
    }

    fn reclaimable(&self, cluster: &ClusterState, reclaimer: TaskId, candidates: &[TaskId]) -> Victims {
        Victims::Only(self.victims_for(cluster, reclaimer, candidates).unwrap_or_default())
    }

    /// It looks at the queue and at what is asked for. Who has been named before counts as gone.
    fn reclaims_no_more(&self, _: &ClusterState, _: JobId, _: JobId) -> Comparison {
        Comparison::Now
    }

    fn unified_evictable(
        &self,
        cluster: &ClusterState,
        kind: EvictionKind,
        job: JobId,
        candidates: &[TaskId],
    ) -> Victims {
        Victims::Only(match kind {
            EvictionKind::GangPreempt => candidates.to_vec(),
            EvictionKind::GangReclaim => self.victims_for_gang(cluster, job, candidates).unwrap_or_default(),
        })
    }

    fn job_enqueueable(&self, cluster: &ClusterState, id: JobId, freeable: &Freeable) -> Vote {
        let job = cluster.job(id);
        let Some(queue) = job.queue else { return Vote::Abstain };
        if let Some(reason) = self.shut(cluster, queue) {
            return Vote::Reject(Box::new(reason));
        }
        if let Some(reason) = device_limit(cluster, self.devices.door(cluster, &self.tree, id)) {
            return Vote::Reject(Box::new(reason));
        }
        let Some(min) = &job.min_resources else { return Vote::Permit };
        let min = without_pods(min);
        let limit = self.limit(cluster, queue, |id, account| {
            let held = self.claimed(cluster, id).minus_clamped(&freeable.in_queue);
            let inqueue = account.inqueue.minus_clamped(&freeable.kept_for_lower);
            let used = held.plus(&inqueue).minus_clamped(&account.elastic);
            min.first_over(&used, &account.entitled.door)
        });
        limit.map_or(Vote::Permit, |reason| Vote::Reject(Box::new(reason)))
    }

    fn job_enqueued(&mut self, cluster: &ClusterState, job: JobId) {
        if let Some(queue) = cluster.job(job).queue {
            self.keep(cluster, queue, &admission::on_entry(cluster, job));
            self.devices.keep(cluster, &self.tree, job);
        }
    }

    fn could_reclaim(&self, cluster: &ClusterState, queue: QueueId, more: &Resources) -> Option<Resources> {
        let mut excess = Resources::default();
        if self.may_reclaim(cluster, queue, more) {
            let others = self.queues.iter().filter(|(id, _)| **id != queue && cluster.queue(**id).n_jobs() > 0);
            for (&id, account) in others.filter(|(id, _)| cluster.queue(**id).spec.reclaimable) {
                excess.add(&self.claimed(cluster, id).minus_clamped(&account.entitled.due));
            }
        }
        Some(excess)
    }

    /// Where a queue is due nothing itself, what the queues above it are due counts, as far as the level goes.
    fn compared(&self, cluster: &ClusterState, gainer: QueueId, loser: QueueId) -> Option<[QueueId; 2]> {
        let is_due = |id: &QueueId| self.queues.get(id).is_some_and(|account| !account.entitled.due.is_best_effort());
        if self.levels == 0 || (is_due(&gainer) && is_due(&loser)) {
            return None;
        }
        let side = |own: QueueId, other: QueueId| {
            let apart = |above: &QueueId| !self.tree.path(cluster, other).contains(above);
            self.tree.ancestors(cluster, own, self.levels).take_while(apart).filter(is_due).last().unwrap_or(own)
        };
        Some([side(gainer, loser), side(loser, gainer)])
    }

    fn deserved(&self, queue: QueueId) -> Option<Resources> {
        Some(self.queues.get(&queue)?.entitled.due.clone())
    }
}
