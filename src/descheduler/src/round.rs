//! One round: what strategies ask for, and what comes of it.

use std::collections::BTreeMap;

use krafla_framework::conf::descheduler::DeschedulerPolicy;
use krafla_framework::{
    Cause, DescheduleResult, Descheduled, DeschedulerSettings, Planning, PodRef, Point, Session, Statement,
};
use krafla_model::taints::Effect;
use krafla_model::{ClusterState, JobId, Name, NodeId, TaskId, TaskStatus};

use crate::background;
use crate::evictor::{Crowd, DefaultEvictor, is_bare};
use crate::limits::{Limits, Reached};
use crate::memory::{Again, Memory, Template};
use crate::plan::place;

/// Taints that say that a node is not ready.
const NOT_READY: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// A pod that a strategy wants to go.
pub(crate) struct Request<'f> {
    /// The pod.
    pub(crate) task: TaskId,
    /// Why, with numbers.
    pub(crate) why: String,
    /// Why it would be better elsewhere; `None`: it is not about the place.
    pub(crate) better: Option<Better<'f>>,
}

/// What makes another place better.
pub(crate) struct Better<'f> {
    /// Whether a node is better than the one it has.
    pub(crate) accept: &'f dyn Fn(&ClusterState, NodeId) -> bool,
    /// Whether the same way may be taken twice within the cool-down.
    pub(crate) again: Again,
    /// How full the node is, if the move is to make it less so.
    pub(crate) load: Option<i64>,
}

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It goes; and where to, if that is known.
    Goes(Option<NodeId>),
    /// It stays; others may go.
    Stays,
    /// A limit is reached.
    Limit(Reached),
}

/// What the round remembers of an eviction until it ends.
#[derive(Clone, Debug)]
pub(crate) struct Leaving {
    pub(crate) task: TaskId,
    pub(crate) node: NodeId,
    pub(crate) destination: Option<NodeId>,
    pub(crate) cause: Cause,
}

/// One round. See the module.
pub(crate) struct Round<'r, 's, 'a> {
    statement: &'r mut Statement<'s, 'a>,
    settings: &'r DeschedulerSettings,
    memory: &'r mut Memory,
    limits: Limits,
    crowd: Crowd,
    /// Ready nodes that the policy looks at, in tie order.
    nodes: Vec<NodeId>,
    evictor: DefaultEvictor,
    profile: String,
    strategy: &'static str,
    /// Everybody who goes, in order.
    leaving: Vec<Leaving>,
    notes: Vec<Descheduled>,
}

impl<'r, 's, 'a> Round<'r, 's, 'a> {
    pub(crate) fn new(
        statement: &'r mut Statement<'s, 'a>,
        settings: &'r DeschedulerSettings,
        policy: &DeschedulerPolicy,
        memory: &'r mut Memory,
        evictor: DefaultEvictor,
    ) -> Self {
        let cluster = statement.session().cluster();
        let is_looked_at = |node: &&NodeId| {
            let spec = &cluster.node(**node).spec;
            let ready = !spec.taints.iter().any(|taint| NOT_READY.contains(&&*taint.key));
            ready && policy.node_selector.as_ref().is_none_or(|selector| selector.matches(&spec.labels))
        };
        let nodes = cluster.nodes().iter().filter(is_looked_at).copied().collect();
        let (crowd, mut limits) = (Crowd::of(cluster), Limits::of(policy));
        if settings.in_background {
            // What is on its way elsewhere counts as what this round would add.
            for (task, node) in background::on_their_way(cluster) {
                limits.count(node, cluster.namespace_of(task));
            }
        }
        let (profile, strategy) = (String::new(), "");
        let (leaving, notes) = (Vec::new(), Vec::new());
        Self { statement, settings, memory, limits, crowd, nodes, evictor, profile, strategy, leaving, notes }
    }

    /// From here on, a strategy of a profile asks.
    pub(crate) fn enter(&mut self, profile: &str, evictor: &DefaultEvictor, strategy: &'static str) {
        self.profile = profile.to_owned();
        self.evictor = evictor.clone();
        self.strategy = strategy;
    }

    /// The cluster as it is now, with those gone who go.
    pub(crate) fn cluster(&self) -> &ClusterState {
        self.statement.session().cluster()
    }

    /// Nodes that are looked at, in tie order.
    pub(crate) fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }

    /// What was moved before.
    pub(crate) fn memory(&mut self) -> &mut Memory {
        self.memory
    }

    /// Everybody who goes, and what is to be said.
    pub(crate) fn finish(self) -> (Vec<Leaving>, Vec<Descheduled>) {
        (self.leaving, self.notes)
    }

    /// Pods on a node that have not ended and do not terminate, by id.
    pub(crate) fn pods_on(&self, node: NodeId) -> Vec<TaskId> {
        let cluster = self.cluster();
        let is_there = |task: &TaskId| {
            let status = cluster.task(*task).status();
            status.holds_node() && status != TaskStatus::Releasing
        };
        cluster.node(node).books().tasks.iter().copied().filter(is_there).collect()
    }

    /// All pods on the nodes that are looked at, those that have ended included; by id.
    pub(crate) fn all_pods(&self) -> Vec<(TaskId, NodeId)> {
        let cluster = self.cluster();
        let mut looked_at = self.nodes.clone();
        looked_at.sort_unstable();
        let on = |task: &krafla_model::Task| {
            let placed = task.status().is_committed() || task.status().is_finished();
            task.node().filter(|node| placed && looked_at.binary_search(node).is_ok())
        };
        let here = cluster.tasks().filter(|(_, task)| task.status() != TaskStatus::Releasing && !task.deleting);
        here.filter_map(|(id, task)| Some((id, on(task)?))).collect()
    }

    /// Whether a pod may be evicted at all.
    pub(crate) fn is_evictable(&self, task: TaskId) -> bool {
        let cluster = self.cluster();
        self.evictor.protection(cluster, &self.crowd, task).is_none()
            && !cluster.shape_of(task).spec.protected
            && cluster.task(task).retry_at <= cluster.now()
            && !(self.settings.in_background && background::is_on_its_way(cluster, task))
    }

    /// Whether a pod could run on a node as things are now. Cost: one question to each filter.
    pub(crate) fn fits_on(&mut self, task: TaskId, node: NodeId) -> bool {
        let limits = krafla_framework::SearchLimits { may_start: true, may_wait: false };
        self.statement.session_mut().verdict(task, node, limits).is_ok()
    }

    /// Whether a pod could run on some node other than its own. Cost: nodes times filters.
    pub(crate) fn fits_elsewhere(&mut self, task: TaskId) -> bool {
        let own = self.cluster().task(task).node();
        let nodes = self.nodes.clone();
        nodes.into_iter().any(|node| Some(node) != own && self.fits_on(task, node))
    }

    /// Whether a pod tolerates the taints of a node that keep pods off.
    pub(crate) fn tolerates(&self, task: TaskId, node: NodeId) -> bool {
        let cluster = self.cluster();
        let tolerations = &cluster.shape_of(task).spec.tolerations;
        let keeps_off = |taint: &&krafla_model::taints::Taint| taint.effect != Effect::PreferNoSchedule;
        let mut taints = cluster.node(node).spec.taints.iter().filter(keeps_off);
        taints.all(|taint| krafla_model::taints::tolerated(tolerations, taint))
    }

    /// Evicts a pod, and with it whoever of its gang could not do without it; or says why not.
    pub(crate) fn evict(&mut self, request: &Request<'_>) -> Answer {
        let cluster = self.cluster();
        let task = cluster.task(request.task);
        let Some(node) = task.node().filter(|_| task.status() != TaskStatus::Releasing) else { return Answer::Stays };
        if let Some(reached) = self.limits.reached(node, cluster.namespace_of(request.task)) {
            self.refuse(request, node, reached.as_str());
            return Answer::Limit(reached);
        }
        if self.settings.in_background && background::is_on_its_way(cluster, request.task) {
            self.refuse(request, node, "its eviction in the background was asked for before");
            return Answer::Stays;
        }
        if let Some(why) = self.evictor.last_objection(cluster, request.task) {
            self.refuse(request, node, why);
            return Answer::Stays;
        }
        match self.try_to_evict(request) {
            Ok(left) => {
                let destination = left.first().and_then(|one| one.destination);
                for one in left {
                    self.note_leaving(one, request);
                }
                Answer::Goes(destination)
            }
            Err(why) => {
                self.refuse(request, node, why);
                Answer::Stays
            }
        }
    }

    /// All or nobody: the pod, or the whole gang.
    fn try_to_evict(&mut self, request: &Request<'_>) -> Result<Vec<Leaving>, &'static str> {
        let cluster = self.cluster();
        if cluster.task(request.task).status().is_finished() {
            let node = cluster.task(request.task).node().ok_or("it has no node")?;
            let cause = self.cause(request);
            // What has ended holds nothing, and no gang waits for it.
            return Ok(vec![Leaving { task: request.task, node, destination: None, cause }]);
        }
        let mut trial = self.statement.nested();
        trial.evict(request.task).map_err(|_| "it cannot be evicted as it is")?;
        let job = trial.session().cluster().task(request.task).job;
        let breaks_gang = job.is_some_and(|job| !is_whole(trial.session(), job));
        let mut group = vec![request.task];
        if let (true, Some(job)) = (breaks_gang, job) {
            let cluster = trial.session().cluster();
            let placed = cluster.job(job).tasks().filter(|id| cluster.task(*id).status().is_allocated());
            group.extend(placed);
        }
        drop(trial);
        let mut limits = self.limits.clone();
        for &one in &group {
            let cluster = self.cluster();
            let node = cluster.task(one).node().ok_or("one of its gang has no node")?;
            if one != request.task && !self.is_evictable(one) {
                return Err("one of its gang may not be evicted");
            }
            if limits.reached(node, cluster.namespace_of(one)).is_some() {
                return Err("its gang is larger than the limits allow");
            }
            limits.count(node, cluster.namespace_of(one));
        }
        self.within_budgets(&group)?;
        let left = self.go(request, &group)?;
        self.limits = limits;
        Ok(left)
    }

    /// Whether disruption budgets, and the plugins that protect running pods, let all of them go. Whoever is only asked to go is
    /// moved without a disruption by those who take it on; that is for the API server to say.
    fn within_budgets(&self, group: &[TaskId]) -> Result<(), &'static str> {
        let (session, cluster) = (self.statement.session(), self.cluster());
        let is_asked = |one: &TaskId| self.settings.in_background && background::is_only_asked(cluster, *one);
        let group: Vec<TaskId> = group.iter().copied().filter(|one| !is_asked(one)).collect();
        let group = group.as_slice();
        let mut spent: BTreeMap<(&Name, &Name), i64> = BTreeMap::new();
        for &one in group {
            let namespace = cluster.namespace_of(one);
            let listed = |budget: &&krafla_model::Budget| budget.lists(&cluster.task(one).name);
            for budget in cluster.budgets(namespace).filter(|budget| budget.protects(cluster, one) && !listed(budget)) {
                let used = spent.entry((namespace, &budget.spec.name)).or_default();
                *used += 1;
                if *used > budget.left(cluster) {
                    return Err("its disruption budget allows no more");
                }
            }
        }
        if session.plugins().evictable(cluster, group).len() < group.len() {
            return Err("a plugin of the scheduler protects it");
        }
        Ok(())
    }

    /// Takes their nodes away, and finds others for those who need one.
    fn go(&mut self, request: &Request<'_>, group: &[TaskId]) -> Result<Vec<Leaving>, &'static str> {
        let now = self.cluster().now();
        let cause = self.cause(request);
        let planning = self.settings.planning;
        let wants_place = self.evictor.node_fit || (request.better.is_some() && planning != Planning::Off);
        // Without a plan the room is not kept for anybody: only for the rest of this round.
        let until = if planning == Planning::Off { now + 1 } else { now + self.settings.keep_ms };
        let evictor = self.evictor.clone();
        let mut trial = self.statement.nested();
        for &one in group {
            trial.evict(one).map_err(|_| "it cannot be evicted as it is")?;
        }
        let mut left = Vec::new();
        for &one in group {
            let cluster = trial.session().cluster();
            let node = cluster.task(one).node().ok_or("it has no node")?;
            let mut destination = None;
            if wants_place && (!is_bare(cluster, one) || evictor.node_fit) {
                let template = Template::of(cluster, one);
                let from = cluster.node(node).name().clone();
                let better = request.better.as_ref().filter(|_| planning != Planning::Off);
                if better.is_some()
                    && let Some(why) = self.memory.must_stay(&template, &from, now)
                {
                    return Err(why);
                }
                let serves = |other: &&NodeId| {
                    **other != node
                        && evictor.counts_as_place(cluster, **other)
                        && better.is_none_or(|better| {
                            // Those of a gang that only come along need no better place, but another one.
                            let is_better = one != request.task || (better.accept)(cluster, **other);
                            let to = cluster.node(**other).name();
                            is_better && self.memory.may_go(&template, &from, to, better.again, now)
                        })
                };
                let among: Vec<NodeId> = self.nodes.iter().filter(serves).copied().collect();
                let found = match planning {
                    Planning::Foreseen => {
                        let all: Vec<NodeId> = self.nodes.iter().filter(|other| **other != node).copied().collect();
                        place(&mut trial, one, &all, until).filter(|node| among.contains(node))
                    }
                    Planning::Off | Planning::Kept => place(&mut trial, one, &among, until),
                };
                destination = Some(found.ok_or("there is no better place for it now")?);
            }
            left.push(Leaving { task: one, node, destination, cause: cause.clone() });
        }
        trial.merge();
        Ok(left)
    }

    fn cause(&self, request: &Request<'_>) -> Cause {
        Cause { plugin: self.strategy.to_owned(), why: request.why.clone() }
    }

    fn note_leaving(&mut self, one: Leaving, request: &Request<'_>) {
        let finished = self.cluster().task(one.task).status().is_finished();
        if finished {
            let namespace = self.cluster().namespace_of(one.task).clone();
            self.limits.count(one.node, &namespace);
        }
        let cluster = self.statement.session().cluster();
        let better = request.better.as_ref().filter(|_| self.settings.planning != Planning::Off);
        if let (Some(better), Some(to), false) = (better, one.destination, self.settings.dry_run) {
            let name = |node: NodeId| cluster.node(node).name().clone();
            let template = Template::of(cluster, one.task);
            let load = better.load.filter(|_| one.task == request.task);
            self.memory.note(template, name(one.node), name(to), load, cluster.now());
        }
        let result = if self.settings.dry_run { DescheduleResult::DryRun } else { DescheduleResult::Evicted };
        self.say(one.task, one.node, one.destination, &request.why, result);
        self.leaving.push(one);
    }

    fn refuse(&mut self, request: &Request<'_>, node: NodeId, why: &'static str) {
        self.say(request.task, node, None, &request.why, DescheduleResult::Refused(why));
    }

    fn say(&mut self, task: TaskId, node: NodeId, to: Option<NodeId>, why: &str, result: DescheduleResult) {
        let cluster = self.statement.session().cluster();
        let name = |node: NodeId| cluster.node(node).name().clone();
        let note = Descheduled {
            pod: PodRef::of(cluster, task),
            node: name(node),
            profile: self.profile.clone(),
            strategy: self.strategy,
            why: why.to_owned(),
            destination: to.map(name).filter(|_| self.settings.planning != Planning::Off),
            result,
        };
        self.notes.push(note);
    }
}

/// Whether a job is whole as things stand: it has its minimum, or nobody of it has a node.
fn is_whole(session: &Session<'_>, job: JobId) -> bool {
    let own = session.cluster().job(job);
    own.is_ready() || own.counts().sum(TaskStatus::is_allocated) == 0 || !session.plugins().has(Point::JobReady)
}
