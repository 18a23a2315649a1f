//! The plugins of one configuration, and for each point the tiers that answer it.

use std::collections::{BTreeMap, BTreeSet};

use krafla_model::cluster_event::ClusterEvent;
use krafla_model::subgroup::SubGroupId;
use krafla_model::{ClusterState, JobId, Name, NodeId, QueueId, ResourceId, Resources, TaskId, Time};

use crate::conf::policy::{Policy, ProfilePolicy};
use crate::conf::switches::Point;
use crate::effect::Cause;
use crate::rank::{JobRank, QueueRank, Rank, TaskRank};
use crate::reason::Reason;
use crate::registry::Registry;
use crate::scheduling::extender::Extenders;
use crate::scheduling::point::ExtensionPoint;
use crate::scheduling::profile::{FILTERING, Profile, SCORING};
use crate::scheduling::queue::SchedulingQueue;
use crate::scheduling::search::Room;
use crate::scheduling::waiting::WaitingPods;
use crate::session_plugin::{
    Comparison, Domain, EvictedFor, EvictionKind, Freeable, Purpose, SessionPlugin, Unwanted, VictimVotes, Victims,
    Vote,
};
use crate::share::RelativeShare;

/// Compiled plugins: built once for each configuration, opened once for each session.
pub struct PluginSet {
    plugins: Vec<Box<dyn SessionPlugin>>,
    /// For each point, tier by tier, the plugins that answer it; tiers without any are left out.
    tiers: BTreeMap<Point, Vec<Vec<usize>>>,
    /// What finds nodes for pods whose scheduler has no profile of its own.
    profile: Profile,
    /// Profiles by the name under which pods choose them.
    profiles: BTreeMap<Name, Profile>,
    /// The queue, where pods are scheduled one by one.
    pub(crate) queue: Option<SchedulingQueue>,
    /// Pods that Permit holds back.
    pub(crate) waiting: WaitingPods,
}

impl PluginSet {
    /// Builds the plugins that a policy names. Names that the registry lacks were refused by the compiler.
    pub fn build(policy: &Policy, registry: &Registry) -> Self {
        let mut plugins = Vec::new();
        let mut tiers: BTreeMap<Point, Vec<Vec<usize>>> = BTreeMap::new();
        let mut entries = Vec::new();
        for tier in &policy.tiers {
            let mut here: BTreeMap<Point, Vec<usize>> = BTreeMap::new();
            for entry in &tier.plugins {
                let Some(builder) = registry.plugins.iter().find(|builder| builder.info.name == entry.name) else {
                    continue;
                };
                let plugin = (builder.build)(entry);
                for &point in plugin.points().iter().filter(|point| entry.switches.allows(**point)) {
                    here.entry(point).or_default().push(plugins.len());
                }
                for mut node_plugin in plugin.node_plugins() {
                    if !entry.switches.allows(Point::Predicate) {
                        node_plugin.without(&FILTERING);
                        node_plugin.without(&[ExtensionPoint::Reserve, ExtensionPoint::PreBind]);
                    }
                    if !entry.switches.allows(Point::NodeOrder) {
                        node_plugin.without(&SCORING);
                    }
                    entries.push(node_plugin);
                }
                plugins.push(plugin);
            }
            for (point, members) in here {
                tiers.entry(point).or_default().push(members);
            }
        }
        let extenders = Extenders::new(&policy.extenders, registry.extender_calls.as_ref());
        let built = |profile: &ProfilePolicy| {
            let profile = profile.build(registry).with_extenders(extenders.clone());
            if policy.one_by_one { profile.with_nominations() } else { profile }
        };
        let profiles = policy.profiles.iter().map(|profile| (profile.name.as_str().into(), built(profile)));
        Self {
            plugins,
            tiers,
            profile: Profile::new(entries).with_binding(&registry.binding_plugins),
            profiles: profiles.collect(),
            queue: policy.one_by_one.then(|| SchedulingQueue::new(policy.queue_times)),
            waiting: WaitingPods::default(),
        }
    }

    /// The profile that finds nodes for a task: that of its scheduler's name, or the one of the tiers.
    pub fn profile_for(&self, cluster: &ClusterState, task: TaskId) -> &Profile {
        if self.profiles.is_empty() {
            return &self.profile;
        }
        self.named_profile_for(cluster, task).unwrap_or(&self.profile)
    }

    /// The profile that a task names; `None` if there is none of that name. Pods that name no scheduler, as those of
    /// simulations, go to the first.
    pub fn named_profile_for(&self, cluster: &ClusterState, task: TaskId) -> Option<&Profile> {
        let name = &cluster.shape_of(task).spec.scheduler_name;
        match self.profiles.first_key_value() {
            None => Some(&self.profile),
            Some((_, first)) if name.is_empty() => Some(first),
            Some(_) => self.profiles.get(name),
        }
    }

    /// As [`Self::profile_for`], with the pods that wait at Permit.
    pub(crate) fn profile_for_mut(&mut self, cluster: &ClusterState, task: TaskId) -> (&mut Profile, &mut WaitingPods) {
        let Self { profile, profiles, waiting, .. } = self;
        let name = &cluster.shape_of(task).spec.scheduler_name;
        let first = profiles.first_key_value().map(|(first, _)| first.clone()).filter(|_| name.is_empty());
        (profiles.get_mut(first.as_ref().unwrap_or(name)).unwrap_or(profile), waiting)
    }

    /// Tells the node-level plugins that a session begins.
    pub fn open_profiles(&mut self, cluster: &ClusterState) {
        self.profile.open(cluster);
        self.profiles.values_mut().for_each(|profile| profile.open(cluster));
    }

    /// Tells the Reserve plugins that a task's node is taken away again.
    pub fn unreserve(&mut self, cluster: &ClusterState, task: TaskId, node: NodeId) {
        let (profile, waiting) = self.profile_for_mut(cluster, task);
        profile.run_reserve_plugins_unreserve(cluster, task, node, waiting);
    }

    /// Tells the Permit plugins of every profile what has changed, if anybody waits for them.
    pub(crate) fn tell_permit_plugins(&mut self, cluster: &ClusterState, events: &[ClusterEvent]) {
        let Self { profiles, waiting, .. } = self;
        profiles.values_mut().for_each(|profile| profile.tell_permit_plugins(cluster, events, waiting));
    }

    /// A pod that had its node in memory is gone, or its bind was refused.
    pub fn forget(&mut self, cluster: &ClusterState, task: TaskId) {
        self.waiting.remove(&cluster.task(task).uid);
        if let Some(node) = cluster.task(task).node() {
            self.unreserve(cluster, task, node);
        }
    }

    /// Tells the PostBind plugins that a task is bound.
    pub fn post_bind(&mut self, cluster: &ClusterState, task: TaskId) {
        if let Some(node) = cluster.task(task).node() {
            self.profile_for_mut(cluster, task).0.run_post_bind_plugins(cluster, task, node);
        }
    }

    /// The profiles that were configured by name.
    pub fn profiles(&self) -> &BTreeMap<Name, Profile> {
        &self.profiles
    }

    /// The queue, where pods are scheduled one by one.
    pub fn queue(&self) -> Option<&SchedulingQueue> {
        self.queue.as_ref()
    }

    /// The node-level profile of the tiers.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Pods that wait at Permit.
    pub fn waiting(&self) -> &WaitingPods {
        &self.waiting
    }

    /// Whether any plugin answers `point`.
    pub fn has(&self, point: Point) -> bool {
        self.tiers.contains_key(&point)
    }

    /// The names of all plugins, in order of the configuration.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.plugins.iter().map(|plugin| plugin.name())
    }

    /// All plugins, in order of the configuration.
    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut Box<dyn SessionPlugin>> {
        self.plugins.iter_mut()
    }

    /// The earliest time at which an answer may change without an event.
    pub fn wakes_at(&self, cluster: &ClusterState) -> Time {
        let told = self.plugins.iter().map(|plugin| plugin.wakes_at(cluster)).min().unwrap_or(Time::NEVER);
        let queue = self.queue.as_ref().map_or(Time::NEVER, SchedulingQueue::wakes_at);
        told.min(self.waiting.next_deadline()).min(queue)
    }

    /// What a queue is due, by the first plugin that says.
    pub fn deserved(&self, queue: QueueId) -> Option<Resources> {
        self.plugins.iter().find_map(|plugin| plugin.deserved(queue))
    }

    /// Whether a plugin divides the cluster between branches of queues without saying what each queue is due.
    pub fn compares_branches(&self) -> bool {
        self.plugins.iter().any(|plugin| plugin.compares_branches())
    }

    /// What the branches of two queues hold of a resource, relative to what they are due of it, where they part: of `one`
    /// with `more`, and of `other`; by the first plugin that says.
    pub fn branch_shares(
        &self,
        resource: ResourceId,
        one: QueueId,
        more: &Resources,
        other: QueueId,
    ) -> Option<[RelativeShare; 2]> {
        self.plugins.iter().find_map(|plugin| plugin.branch_shares(resource, one, more, other))
    }

    /// What a queue could reclaim if it asked for `more`, by the first plugin that says.
    pub fn could_reclaim(&self, cluster: &ClusterState, queue: QueueId, more: &Resources) -> Option<Resources> {
        self.plugins.iter().find_map(|plugin| plugin.could_reclaim(cluster, queue, more))
    }

    fn tiers(&self, point: Point) -> impl Iterator<Item = impl Iterator<Item = &dyn SessionPlugin>> {
        self.tiers.get(&point).into_iter().flatten().map(|tier| tier.iter().map(|&i| &*self.plugins[i]))
    }

    fn flat(&self, point: Point) -> impl Iterator<Item = &dyn SessionPlugin> {
        self.tiers(point).flatten()
    }

    /// Whether a plugin is in the first tier that answers at a point, so that its veto stands.
    pub fn decides(&self, point: Point, plugin: &str) -> bool {
        self.tiers(point).next().is_some_and(|mut tier| tier.any(|one| one.name() == plugin))
    }

    /// Place of a job among those of its queue.
    pub fn job_rank(&self, cluster: &ClusterState, id: JobId) -> JobRank {
        let mut rank = Rank::default();
        for plugin in self.flat(Point::JobOrder) {
            plugin.job_order(cluster, id, &mut rank);
        }
        let spec = &cluster.job(id).spec;
        (rank, spec.created, spec.namespace.clone(), spec.name.clone(), id)
    }

    /// Place of a queue.
    pub fn queue_rank(&self, cluster: &ClusterState, id: QueueId) -> QueueRank {
        let mut rank = Rank::default();
        for plugin in self.flat(Point::QueueOrder) {
            plugin.queue_order(cluster, id, &mut rank);
        }
        let spec = &cluster.queue(id).spec;
        (rank, spec.created, spec.name.clone(), id)
    }

    /// Whether what one queue takes may move any other queue in the order, not only its relatives.
    pub fn queues_move_together(&self) -> bool {
        self.flat(Point::QueueOrder).any(SessionPlugin::queues_move_together)
    }

    /// Place of a queue among those to take victims from for `preemptor`; where no plugin sees a difference, last in the
    /// queue order is first.
    pub fn victim_queue_rank(&self, cluster: &ClusterState, id: QueueId, preemptor: QueueId) -> Rank {
        let mut rank = Rank::default();
        for plugin in self.flat(Point::VictimQueueOrder) {
            plugin.victim_queue_order(cluster, id, preemptor, &mut rank);
        }
        for key in self.queue_rank(cluster, id).0.keys() {
            rank.descending(key.into_inner());
        }
        rank
    }

    /// Place of a task among those of its job.
    pub fn task_rank(&self, cluster: &ClusterState, id: TaskId) -> TaskRank {
        let mut rank = Rank::default();
        for plugin in self.flat(Point::TaskOrder) {
            plugin.task_order(cluster, id, &mut rank);
        }
        let (ordinal, created, uid) = cluster.task(id).default_order();
        (rank, ordinal, created, uid.clone(), id)
    }

    /// Why a job cannot be scheduled as it is.
    pub fn job_valid(&self, cluster: &ClusterState, job: JobId) -> Option<Reason> {
        self.flat(Point::JobValid).find_map(|plugin| plugin.job_valid(cluster, job))
    }

    /// Whether a job may start.
    pub fn job_ready(&self, cluster: &ClusterState, job: JobId) -> bool {
        self.flat(Point::JobReady).all(|plugin| plugin.job_ready(cluster, job))
    }

    /// Whether a job will be able to start with what it was promised.
    pub fn job_pipelined(&self, cluster: &ClusterState, job: JobId) -> bool {
        self.vote(Point::JobPipelined, |plugin| plugin.job_pipelined(cluster, job)).is_ok()
    }

    /// Whether a job lacks what it should have.
    pub fn job_starving(&self, cluster: &ClusterState, job: JobId) -> bool {
        self.tiers(Point::JobStarving)
            .next()
            .is_some_and(|mut tier| tier.all(|plugin| plugin.job_starving(cluster, job)))
    }

    /// Whether a job that has its minimum would have more: any plugin of the first tier that has the function says that
    /// it starves.
    pub fn job_wants_more(&self, cluster: &ClusterState, job: JobId) -> bool {
        self.tiers(Point::JobStarving)
            .next()
            .is_some_and(|mut tier| tier.any(|plugin| plugin.job_starving(cluster, job)))
    }

    /// Why a job may not be admitted, if it may not. Where several plugins reject it, that its queue is in the way is said
    /// before that the cluster is full.
    pub fn job_enqueueable(&self, cluster: &ClusterState, job: JobId, freeable: &Freeable) -> Result<(), Reason> {
        let first = self.vote(Point::JobEnqueueable, |plugin| plugin.job_enqueueable(cluster, job, freeable));
        first.map_err(|first| {
            let rejects = |plugin: &dyn SessionPlugin| match plugin.job_enqueueable(cluster, job, freeable) {
                Vote::Reject(reason) => Some(*reason),
                Vote::Permit | Vote::Abstain => None,
            };
            let mut others = self.flat(Point::JobEnqueueable).filter_map(rejects);
            others.find(|reason| reason.is_of_the_queue(cluster)).unwrap_or(first)
        })
    }

    /// Tells the plugins that a job was admitted.
    pub(crate) fn job_enqueued(&mut self, cluster: &ClusterState, job: JobId) {
        let tiers = self.tiers.get(&Point::JobEnqueueable).cloned().unwrap_or_default();
        for i in tiers.into_iter().flatten() {
            self.plugins[i].job_enqueued(cluster, job);
        }
    }

    /// Why a queue is passed over, if it is.
    pub fn overused(&self, cluster: &ClusterState, queue: QueueId) -> Option<Reason> {
        self.flat(Point::Overused).find_map(|plugin| plugin.overused(cluster, queue))
    }

    /// Why a task may not be placed for its queue's sake, if it may not.
    pub fn allocatable(&self, cluster: &ClusterState, queue: QueueId, task: TaskId, room: Room) -> Option<Reason> {
        self.flat(Point::Allocatable).find_map(|plugin| plugin.allocatable(cluster, queue, task, room))
    }

    /// Why a task may not be let through the gate of its queue, if it may not.
    pub fn passes_gate(&self, cluster: &ClusterState, queue: QueueId, task: TaskId) -> Option<Reason> {
        self.flat(Point::Allocatable).find_map(|plugin| plugin.passes_gate(cluster, queue, task))
    }

    /// Whose shares are compared when one queue takes from another.
    pub fn compared(&self, cluster: &ClusterState, gainer: QueueId, loser: QueueId) -> [QueueId; 2] {
        self.plugins.iter().find_map(|plugin| plugin.compared(cluster, gainer, loser)).unwrap_or([gainer, loser])
    }

    /// Why a queue may not hold what the minimum of a job still asks for, if it may not.
    pub fn minimum_allocatable(
        &self,
        cluster: &ClusterState,
        queue: QueueId,
        job: JobId,
        more: &Resources,
    ) -> Option<Reason> {
        self.flat(Point::Allocatable).find_map(|plugin| plugin.minimum_allocatable(cluster, queue, job, more))
    }

    /// Whether a queue may reclaim for these tasks.
    pub fn preemptive(&self, cluster: &ClusterState, queue: QueueId, tasks: &[TaskId]) -> bool {
        self.flat(Point::Preemptive).all(|plugin| plugin.preemptive(cluster, queue, tasks))
    }

    /// Who of `candidates` may be evicted, as the plugins' answers combine by `votes`.
    pub fn victims(
        &self,
        cluster: &ClusterState,
        whom: EvictedFor,
        candidates: &[TaskId],
        votes: VictimVotes,
    ) -> Vec<TaskId> {
        let point = match whom {
            EvictedFor::Queue(_) => Point::Preemptable,
            EvictedFor::OtherQueue(_) => Point::Reclaimable,
            EvictedFor::WholeJob(..) => Point::UnifiedEvictable,
        };
        self.intersection(point, votes, |plugin| match whom {
            EvictedFor::Queue(preemptor) => plugin.preemptable(cluster, preemptor, candidates),
            EvictedFor::OtherQueue(reclaimer) => plugin.reclaimable(cluster, reclaimer, candidates),
            EvictedFor::WholeJob(kind, job) => plugin.unified_evictable(cluster, kind, job, candidates),
        })
    }

    /// Who may be evicted for `preemptor`, within its queue, if a veto is a veto.
    pub fn preemptable(&self, cluster: &ClusterState, preemptor: TaskId, candidates: &[TaskId]) -> Vec<TaskId> {
        self.victims(cluster, EvictedFor::Queue(preemptor), candidates, VictimVotes::Veto)
    }

    /// Whether everybody who may be evicted for a task of `job`, within its queue, may be for one of `than`, of the same
    /// shape, too: so far as every plugin that votes knows.
    pub fn preempts_no_more(&self, cluster: &ClusterState, job: JobId, than: JobId) -> Comparison {
        let all = self.flat(Point::Preemptable).map(|plugin| plugin.preempts_no_more(cluster, job, than));
        all.min().unwrap_or(Comparison::Always)
    }

    /// The same for a task that takes from other queues; both jobs are of one queue.
    pub fn reclaims_no_more(&self, cluster: &ClusterState, job: JobId, than: JobId) -> Comparison {
        let all = self.flat(Point::Reclaimable).map(|plugin| plugin.reclaims_no_more(cluster, job, than));
        all.min().unwrap_or(Comparison::Always)
    }

    /// Place of a job among those that `preempt` takes from, in the opinion of the plugins that say who may go.
    pub fn victim_job_rank(&self, cluster: &ClusterState, job: JobId) -> Rank {
        let mut rank = Rank::default();
        for plugin in self.flat(Point::Preemptable) {
            plugin.victim_job_order(cluster, job, &mut rank);
        }
        rank
    }

    /// Who may be evicted for `reclaimer`, of another queue, if a veto is a veto.
    pub fn reclaimable(&self, cluster: &ClusterState, reclaimer: TaskId, candidates: &[TaskId]) -> Vec<TaskId> {
        self.victims(cluster, EvictedFor::OtherQueue(reclaimer), candidates, VictimVotes::Veto)
    }

    /// Who may be evicted for a whole job, if a veto is a veto.
    pub fn unified_evictable(
        &self,
        cluster: &ClusterState,
        kind: EvictionKind,
        job: JobId,
        candidates: &[TaskId],
    ) -> Vec<TaskId> {
        self.victims(cluster, EvictedFor::WholeJob(kind, job), candidates, VictimVotes::Veto)
    }

    /// Running tasks that should not be where they are, each with the first plugin that says so: the union within the
    /// first tier that names any, in the order of the plugins and theirs.
    pub fn victim_tasks(&self, cluster: &ClusterState, running: &[TaskId]) -> Vec<(TaskId, Cause)> {
        for tier in self.tiers(Point::VictimTasks) {
            let (mut victims, mut known) = (Vec::new(), BTreeSet::new());
            for plugin in tier {
                for Unwanted { task, why } in plugin.victim_tasks(cluster, running) {
                    if known.insert(task) {
                        victims.push((task, Cause { plugin: plugin.name().to_owned(), why }));
                    }
                }
            }
            if !victims.is_empty() {
                return victims;
            }
        }
        Vec::new()
    }

    /// Who of `candidates` may be evicted at all, in their order. Every plugin of every tier must let them go: what
    /// protects from evictions that are for nobody has no tiers.
    pub fn evictable(&self, cluster: &ClusterState, candidates: &[TaskId]) -> Vec<TaskId> {
        let mut left = candidates.to_vec();
        for plugin in self.flat(Point::Evictable) {
            if let Victims::Only(named) = plugin.evictable(cluster, &left) {
                left.retain(|task| named.contains(task));
            }
        }
        left
    }

    /// The node that a plugin prefers over the highest score, if any does.
    pub fn best_node(&self, cluster: &ClusterState, task: TaskId, scored: &[(NodeId, f64)]) -> Option<NodeId> {
        self.flat(Point::BestNode).find_map(|plugin| plugin.best_node(cluster, task, scored))
    }

    /// Place of a sub-group among those of its job; ties by index.
    pub fn sub_job_rank(&self, cluster: &ClusterState, sub: SubGroupId) -> (Rank, u32) {
        let mut rank = Rank::default();
        for plugin in self.flat(Point::SubJobOrder) {
            plugin.sub_job_order(cluster, sub, &mut rank);
        }
        (rank, sub.index)
    }

    /// Whether a sub-group may start.
    pub fn sub_job_ready(&self, cluster: &ClusterState, sub: SubGroupId) -> bool {
        if cluster.job(sub.job).spec.sub_groups.is_empty() {
            return self.job_ready(cluster, sub.job);
        }
        self.flat(Point::SubJobReady).all(|plugin| plugin.sub_job_ready(cluster, sub))
    }

    /// Whether a sub-group will be able to start with what it was promised.
    pub fn sub_job_pipelined(&self, cluster: &ClusterState, sub: SubGroupId) -> bool {
        if cluster.job(sub.job).spec.sub_groups.is_empty() {
            return self.job_pipelined(cluster, sub.job);
        }
        self.vote(Point::SubJobPipelined, |plugin| plugin.sub_job_pipelined(cluster, sub)).is_ok()
    }

    /// How good each domain is for a sub-group, in their order.
    pub fn hyper_node_scores(&self, cluster: &ClusterState, sub: SubGroupId, domains: &[Domain]) -> Vec<f64> {
        let mut sums = vec![0.0; domains.len()];
        for plugin in self.flat(Point::HyperNodeOrder) {
            for (sum, score) in sums.iter_mut().zip(plugin.hyper_node_order(cluster, sub, domains)) {
                *sum += score;
            }
        }
        sums
    }

    /// Which domains to try for a job or one of its sub-groups; without an opinion, `start` alone.
    pub fn hyper_node_gradient(
        &self,
        cluster: &ClusterState,
        job: JobId,
        sub: Option<SubGroupId>,
        start: &Domain,
        purpose: Purpose,
    ) -> Vec<Vec<Domain>> {
        self.flat(Point::HyperNodeGradient)
            .find_map(|plugin| plugin.hyper_node_gradient(cluster, job, sub, start, purpose))
            .unwrap_or_else(|| vec![vec![start.clone()]])
    }

    /// A tiered vote: any Reject decides at once; after a tier with a Permit later tiers are not asked; nobody's
    /// opinion is consent.
    fn vote(&self, point: Point, ask: impl Fn(&dyn SessionPlugin) -> Vote) -> Result<(), Reason> {
        for tier in self.tiers(point) {
            let mut permitted = false;
            for plugin in tier {
                match ask(plugin) {
                    Vote::Reject(reason) => return Err(*reason),
                    Vote::Permit => permitted = true,
                    Vote::Abstain => {}
                }
            }
            if permitted {
                break;
            }
        }
        Ok(())
    }

    /// A tiered intersection: within a tier every opinion must agree; the first tier that has any opinion decides.
    fn intersection(
        &self,
        point: Point,
        votes: VictimVotes,
        ask: impl Fn(&dyn SessionPlugin) -> Victims,
    ) -> Vec<TaskId> {
        for tier in self.tiers(point) {
            let mut agreed: Option<Vec<TaskId>> = None;
            for plugin in tier {
                let Victims::Only(named) = ask(plugin) else { continue };
                let asked_for_nobody = named.is_empty();
                agreed = Some(match agreed {
                    None => named,
                    Some(before) => before.into_iter().filter(|victim| named.contains(victim)).collect(),
                });
                match votes {
                    _ if agreed.as_ref().is_some_and(|agreed| !agreed.is_empty()) => {}
                    VictimVotes::Veto => return Vec::new(),
                    VictimVotes::Volcano => agreed = None,
                }
                if asked_for_nobody {
                    break;
                }
            }
            if let Some(victims) = agreed {
                return victims;
            }
        }
        Vec::new()
    }
}
