//! Room for a whole job at once: victims are taken in bundles, until the job can be placed.
//!
//! A bundle is one pod that its gang can do without, or all that is left of a gang: between those a gang would run in
//! part. Pods that can be done without go first; then bundles in the order of the queues and jobs to take from; then those
//! that free more of what is needed, measured at what they cost elsewhere.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use krafla_framework::rank::Rank;
use krafla_framework::{EvictedFor, EvictionKind, Found, Room, Session, Statement};
use krafla_model::resources::ratio;
use krafla_model::{ClusterState, JobId, Name, NodeId, Resources, TaskId, TaskStatus, Time};
use ordered_float::OrderedFloat;

use super::plan::Plan;
use super::shares::Gain;
use super::victims::{QueueRanks, is_evictable, is_whole};
use super::{ANYWHERE, Against, Beneficiary, waiting};

/// Bundles that are tried to be spared with the job placed anew; each costs a search for the whole job.
const MOST_TRIED_ELSEWHERE: usize = 64;

/// Tasks that go together.
#[derive(Debug)]
struct Bundle {
    job: JobId,
    tasks: Vec<TaskId>,
    /// Whether it is all that is left of a gang.
    whole: bool,
}

impl Beneficiary<'_> {
    /// Tries to make room for the whole job by bundles, if it starves. `allow_whole` says whether gangs may be broken for
    /// it.
    pub(crate) fn make_room_by_bundles(&self, session: &mut Session<'_>, allow_whole: bool) {
        let cluster = session.cluster();
        if !session.plugins().job_starving(cluster, self.job) {
            return;
        }
        let tasks: Vec<TaskId> = waiting(session, self.job)
            .into_iter()
            .filter(|task| {
                let shape = cluster.shape_of(*task);
                !shape.best_effort && !shape.spec.never_preempts
            })
            .collect();
        let entitled = match self.against {
            Against::OtherQueues(_) => session.plugins().preemptive(cluster, self.queue, &tasks),
            Against::OtherJobs | Against::OwnJob => true,
        };
        if tasks.is_empty() || !entitled {
            return;
        }
        let mut need = Resources::default();
        for &task in &tasks {
            need.add(&cluster.shape_of(task).request);
        }
        let bundles = self.bundles(session, &need, allow_whole);
        if let Some((plan, taken)) = self.plan_by_bundles(session, &tasks, &need, bundles) {
            let plan = self.without_spare_bundles(session, &tasks, plan, taken);
            self.carry_out(session, &plan);
        }
    }

    /// Takes bundles one after the other until the job can be placed; nothing of it stays.
    fn plan_by_bundles(
        &self,
        session: &mut Session<'_>,
        tasks: &[TaskId],
        need: &Resources,
        bundles: Vec<Bundle>,
    ) -> Option<(Plan, Vec<Bundle>)> {
        let gain = self.gain(session.cluster(), need);
        let mut statement = session.statement();
        let (mut taken, mut left) = (Vec::<Bundle>::new(), bundles);
        // What one gives may let another give that might not before: where branches of queues are compared.
        loop {
            let (mut refused, n_taken) = (Vec::new(), taken.len());
            for bundle in left {
                if !self.take_bundle(&mut statement, &gain, &bundle)? {
                    refused.push(bundle);
                    continue;
                }
                taken.push(bundle);
                let free = statement.session().cluster().totals().future_idle();
                let free = free.plus(&statement.session().cluster().overdraft());
                if !self.minimum_fits(statement.session(), tasks, &free) {
                    continue;
                }
                if let Some(placements) = self.place_all(&mut statement, tasks) {
                    let evictions = taken.iter().map(|bundle| bundle.tasks.clone()).collect();
                    return Some((Plan { evictions, placements, is_enough: true }, taken));
                }
            }
            if taken.len() == n_taken {
                return None;
            }
            left = refused;
        }
    }

    /// Evicts a bundle. Answers whether it may go; `None` if the books refuse.
    fn take_bundle(&self, statement: &mut Statement<'_, '_>, gain: &Gain<'_>, bundle: &Bundle) -> Option<bool> {
        let now = statement.session();
        if !bundle.tasks.iter().all(|&victim| self.makes_shares_more_equal(now, gain, victim)) {
            return Some(false);
        }
        let mut attempt = statement.nested();
        for &victim in &bundle.tasks {
            attempt.evict(victim).ok()?;
        }
        // Members that the gang could do without may still be there: it would run on with those alone.
        let whole = is_whole(attempt.session(), bundle.job);
        if whole {
            attempt.merge();
        }
        Some(whole)
    }

    /// Whether what is free could hold the least that the job needs; a sum, to spare most searches.
    fn minimum_fits(&self, session: &Session<'_>, tasks: &[TaskId], free: &Resources) -> bool {
        let job = session.cluster().job(self.job);
        let missing = job.min_available().saturating_sub(crate::placement::placed(job)).max(1) as usize;
        let mut least = Resources::default();
        for &task in tasks.iter().take(missing) {
            least.add(&session.cluster().shape_of(task).request);
        }
        least.fits(free)
    }

    /// Places tasks until the job can start, if it can. Nothing of it stays.
    fn place_all(&self, statement: &mut Statement<'_, '_>, tasks: &[TaskId]) -> Option<Vec<(TaskId, NodeId)>> {
        let mut trial = statement.nested();
        let mut placements = Vec::new();
        for &task in tasks {
            let now = trial.session_mut();
            if now.plugins().allocatable(now.cluster(), self.queue, task, Room::AfterRelease).is_some() {
                continue;
            }
            if let Found::Node { node, .. } = now.find_node(task, ANYWHERE) {
                trial.pipeline(task, node).ok()?;
                placements.push((task, node));
            }
            let now = trial.session();
            let starts = now.plugins().job_pipelined(now.cluster(), self.job);
            if starts && !now.plugins().job_starving(now.cluster(), self.job) {
                return Some(placements);
            }
        }
        None
    }

    /// The plan less every bundle that it does not need, the dearest first: where the job is to run as it was planned,
    /// and, for so many bundles, also elsewhere. Members of a gang that goes as a whole go with it.
    fn without_spare_bundles(
        &self,
        session: &mut Session<'_>,
        tasks: &[TaskId],
        mut plan: Plan,
        taken: Vec<Bundle>,
    ) -> Plan {
        let mut left: Vec<Bundle> = taken;
        for elsewhere in [false, true] {
            for i in (0..left.len()).rev() {
                let bundle = &left[i];
                let goes_along = !bundle.whole && left.iter().any(|other| other.whole && other.job == bundle.job);
                if goes_along || (elsewhere && left.len() - i > MOST_TRIED_ELSEWHERE) {
                    continue;
                }
                let mut fewer = plan.clone();
                fewer.evictions.retain(|together| *together != bundle.tasks);
                let placements = match elsewhere {
                    true => self.place_after(session, &fewer.evictions, tasks),
                    false => fewer.replay(session, self).map(|_| fewer.placements.clone()),
                };
                if let Some(placements) = placements {
                    plan = Plan { placements, ..fewer };
                    left.remove(i);
                }
            }
        }
        plan
    }

    /// Where the job would run with these evicted.
    fn place_after(
        &self,
        session: &mut Session<'_>,
        evictions: &[Vec<TaskId>],
        tasks: &[TaskId],
    ) -> Option<Vec<(TaskId, NodeId)>> {
        let mut statement = session.statement();
        for &victim in evictions.iter().flatten() {
            statement.evict(victim).ok()?;
        }
        self.place_all(&mut statement, tasks)
    }

    /// Bundles of all jobs that may give, in the order in which they are taken.
    fn bundles(&self, session: &Session<'_>, need: &Resources, allow_whole: bool) -> Vec<Bundle> {
        let cluster = session.cluster();
        let mut by_job: BTreeMap<JobId, Vec<TaskId>> = BTreeMap::new();
        for (id, job) in cluster.jobs().filter(|(id, _)| self.may_give(cluster, *id)) {
            let mut tasks: Vec<TaskId> = job.tasks().filter(|task| is_evictable(cluster, *task)).collect();
            if !tasks.is_empty() {
                tasks.sort_by_key(|task| {
                    let own = cluster.task(*task);
                    (own.status() == TaskStatus::Running, own.priority, Reverse(own.created), *task)
                });
                by_job.insert(id, tasks);
            }
        }
        let mut bundles: Vec<Bundle> =
            by_job.into_iter().flat_map(|(job, tasks)| bundles_of(cluster, job, tasks)).collect();
        if !allow_whole {
            bundles.retain(|bundle| !bundle.whole);
        }
        let ranks = QueueRanks::of(session, self);
        bundles.sort_by_cached_key(|bundle| order(cluster, &ranks, bundle, need));
        let asked: Vec<TaskId> = bundles.iter().flat_map(|bundle| bundle.tasks.iter().copied()).collect();
        let kind = match self.against {
            Against::OtherQueues(_) => EvictionKind::GangReclaim,
            Against::OtherJobs | Against::OwnJob => EvictionKind::GangPreempt,
        };
        let mut allowed = session.plugins().victims(cluster, EvictedFor::WholeJob(kind, self.job), &asked, self.votes);
        allowed.sort_unstable();
        bundles.retain(|bundle| bundle.tasks.iter().all(|task| allowed.binary_search(task).is_ok()));
        bundles
    }

    fn may_give(&self, cluster: &ClusterState, id: JobId) -> bool {
        let job = cluster.job(id);
        if id == self.job || job.spec.preemptable == Some(false) {
            return false;
        }
        match self.against {
            Against::OtherQueues(_) => {
                job.queue.is_some_and(|queue| queue != self.queue && cluster.queue(queue).spec.reclaimable)
            }
            Against::OtherJobs | Against::OwnJob => {
                job.queue == Some(self.queue) && job.priority < cluster.job(self.job).priority
            }
        }
    }
}

fn order(cluster: &ClusterState, ranks: &QueueRanks, bundle: &Bundle, need: &Resources) -> Order {
    let job = cluster.job(bundle.job);
    let queue = ranks.rank(job.queue);
    let runs = bundle.tasks.iter().any(|task| cluster.task(*task).status() == TaskStatus::Running);
    let frees = |tasks: &mut dyn Iterator<Item = TaskId>| {
        let mut freed = Resources::default();
        for task in tasks {
            freed.add(&cluster.shape_of(task).request);
        }
        need.iter()
            .map(|(id, amount)| ratio(freed.get(id).min(amount), amount))
            .fold(OrderedFloat(0.0), |sum, part| sum + part)
    };
    let here = frees(&mut bundle.tasks.iter().copied());
    let everywhere = frees(&mut job.tasks().filter(|task| cluster.task(*task).status().is_allocated()));
    // What is freed for each part of the need that the job gives up as a whole.
    let worth = if bundle.whole { here / everywhere.max(OrderedFloat(f64::MIN_POSITIVE)) } else { here };
    let spec = &job.spec;
    Order {
        whole: bundle.whole,
        runs,
        queue,
        priority: job.priority,
        worth: Reverse(worth),
        younger: Reverse(spec.created),
        job: (spec.namespace.clone(), spec.name.clone()),
        first: bundle.tasks.first().copied(),
    }
}

/// The place of a bundle; smaller is taken first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Order {
    whole: bool,
    runs: bool,
    queue: Rank,
    priority: i32,
    worth: Reverse<OrderedFloat<f64>>,
    younger: Reverse<Time>,
    job: (Name, Name),
    first: Option<TaskId>,
}

/// Single members beyond the minimum of the job and of each role, and then the rest as one, if all of it may go. `tasks`
/// are those that may, the cheapest first.
fn bundles_of(cluster: &ClusterState, id: JobId, tasks: Vec<TaskId>) -> Vec<Bundle> {
    let job = cluster.job(id);
    let mut surplus = job.n_ready().saturating_sub(job.min_available());
    let roles_count = job.min_available() >= job.roles().iter().map(|role| role.min).sum();
    let mut of_role: BTreeMap<Name, u32> = job
        .roles()
        .iter()
        .map(|role| (role.name.clone(), role.counts.sum(|s| s.is_allocated()).saturating_sub(role.min)))
        .collect();
    let (mut bundles, mut rest) = (Vec::new(), Vec::new());
    for task in tasks {
        let left = of_role.get_mut(&cluster.shape_of(task).spec.role);
        let role_can_spare = left.as_ref().is_none_or(|left| !roles_count || **left > 0);
        if surplus > 0 && role_can_spare {
            surplus -= 1;
            if let Some(left) = left {
                *left = left.saturating_sub(1);
            }
            bundles.push(Bundle { job: id, tasks: vec![task], whole: false });
        } else {
            rest.push(task);
        }
    }
    let stay = job.counts().sum(|s| s.is_allocated()) as usize - rest.len() - bundles.len();
    if !rest.is_empty() && stay == 0 {
        bundles.push(Bundle { job: id, tasks: rest, whole: true });
    }
    bundles
}
