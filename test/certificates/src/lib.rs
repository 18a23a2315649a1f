//! An independent look at each eviction: whether what its certificate says is so.
//!
//! Nothing of the actions is used here, only the books of the cluster after the cycle: who was evicted terminates, who is
//! to run has been nominated. Checked is that
//!
//! - each decision names who gets the room, and those pods wait for exactly those nodes;
//! - what is nominated on a node fits there once what terminates is gone;
//! - nobody could be spared: with any one victim back, its node or its queue would be too full;
//! - who goes is where the action takes from, and no veto of `conformance` or `pdb` was passed over;
//! - between queues: the loser held more than it was due, and the gainer ends below what the loser had;
//! - where nobody gets the room, a cause is given, and with `pdb` every budget still allows what was evicted;
//! - who is moved comes again: a controller owns it, room is kept for it elsewhere, and is free there;
//! - nobody is evicted twice, protected pods stay, and no gang is left between nothing and its minimum.

use std::collections::{BTreeMap, BTreeSet};

use krafla_framework::effect::{ShareMove, by_beneficiary};
use krafla_framework::{Decision, EvictionCertificate, PluginSet, Point};
use krafla_model::{ClusterState, Limit, Name, NodeId, QueueId, ResourceId, Resources, TaskId, TaskStatus};

/// One decision: victims, and the certificate that they share.
struct Case<'a> {
    certificate: &'a EvictionCertificate,
    victims: Vec<TaskId>,
    /// Where each goes, if it is moved.
    destinations: Vec<Option<Name>>,
    /// How shares move with each.
    shares: Vec<&'a [ShareMove]>,
}

/// Everything that is wrong with the evictions of a cycle, in words. `cluster` is as the cycle left it.
pub fn broken(cluster: &ClusterState, plugins: &PluginSet, decisions: &[Decision]) -> Vec<String> {
    let destination = |victim: &TaskId| {
        decisions.iter().find_map(|decision| match decision {
            Decision::Evict(task, certificate) if task == victim => certificate.destination.clone(),
            _ => None,
        })
    };
    let shares_of = |victim: &TaskId| {
        let own = decisions.iter().find_map(|decision| match decision {
            Decision::Evict(task, certificate) if task == victim => Some(certificate.shares.as_slice()),
            _ => None,
        });
        own.unwrap_or_default()
    };
    let cases: Vec<Case<'_>> = by_beneficiary(decisions)
        .into_iter()
        .map(|(certificate, victims)| {
            let destinations = victims.iter().map(destination).collect();
            let shares = victims.iter().map(shares_of).collect();
            Case { certificate, victims, destinations, shares }
        })
        .collect();
    if cases.is_empty() {
        return Vec::new();
    }
    // Each decision is judged as of its time: those after it have not been made.
    let mut broken = Vec::new();
    for i in 0..cases.len() {
        broken.extend(Checker::new(cluster, plugins, &cases[i + 1..]).check(&cases[i]));
    }
    broken.extend(Checker::new(cluster, plugins, &[]).broken_gangs(&cases));
    let mut seen = BTreeSet::new();
    for (case, victim) in cases.iter().flat_map(|case| case.victims.iter().map(move |victim| (case, *victim))) {
        if !seen.insert(victim) {
            broken.push(format!("I4: {} evicts {} twice", case.certificate.action, cluster.task_label(victim)));
        }
    }
    broken
}

struct Checker<'a> {
    cluster: &'a ClusterState,
    plugins: &'a PluginSet,
    /// Tasks that wait for a nominated node.
    nominees: Vec<TaskId>,
    /// What they ask for, by node.
    promised: BTreeMap<NodeId, Resources>,
    /// Tasks that still run, although they terminate: they are evicted by a later decision.
    not_yet_gone: Vec<TaskId>,
}

impl<'a> Checker<'a> {
    fn new(cluster: &'a ClusterState, plugins: &'a PluginSet, later: &[Case<'_>]) -> Self {
        let placed_later: BTreeSet<&str> =
            later.iter().flat_map(|case| case.certificate.placements.iter()).map(|(pod, _)| &*pod.uid).collect();
        let nominees: Vec<TaskId> =
            cluster.nominees().filter(|task| !placed_later.contains(&*cluster.task(*task).uid)).collect();
        let mut promised: BTreeMap<NodeId, Resources> = BTreeMap::new();
        for &id in &nominees {
            let nominated = cluster.task(id).nominated.as_deref();
            if let Some(node) = nominated.and_then(|name| cluster.find_node(name)) {
                promised.entry(node).or_default().add(&cluster.shape_of(id).request);
            }
        }
        let not_yet_gone = later.iter().flat_map(|case| case.victims.iter().copied()).collect();
        Self { cluster, plugins, nominees, promised, not_yet_gone }
    }
}

impl Checker<'_> {
    fn check(&self, case: &Case<'_>) -> Vec<String> {
        let Case { certificate, victims, .. } = case;
        let mut wrong = Vec::new();
        let mut note =
            |text: String| wrong.push(format!("I4: {} for {}: {text}", certificate.action, certificate.beneficiary));
        match &certificate.cause {
            None if certificate.placements.is_empty() => note("nobody gets the room".to_owned()),
            Some(cause) if cause.plugin.is_empty() || cause.why.is_empty() => note("the cause is not said".to_owned()),
            _ => {}
        }
        let mut dimensions = BTreeSet::new();
        for (pod, node) in certificate.placements.iter() {
            let Some(task) = self.cluster.find_task(&pod.uid) else {
                note(format!("{} does not exist", pod.name));
                continue;
            };
            dimensions.extend(self.cluster.shape_of(task).request.iter().map(|(id, _)| id));
            let waits_there = self.cluster.task(task).nominated.as_ref() == Some(node)
                && self.cluster.task(task).status() == TaskStatus::Pending;
            if !waits_there {
                note(format!("{} was not nominated to {node}", pod.name));
            }
        }
        for (pod, node) in certificate.placements.iter() {
            let Some(node) = self.cluster.find_node(node) else { continue };
            let left = self.left_on(node);
            if let Some((id, _)) = left.iter().find(|(id, left)| *left < 0 && dimensions.contains(id)) {
                let name = self.cluster.names().name(id);
                note(format!("{} does not fit: {name} would be overdrawn", pod.name));
            }
        }
        for (i, &victim) in victims.iter().enumerate() {
            let label = self.cluster.task_label(victim);
            let task = self.cluster.task(victim);
            if task.status() != TaskStatus::Releasing && !task.status().is_finished() {
                note(format!("{label} does not terminate"));
            }
            if self.cluster.shape_of(victim).spec.protected {
                note(format!("{label} may not be evicted"));
            }
            if let Some(destination) = &case.destinations[i]
                && let Some(why) = self.cannot_go_to(victim, destination)
            {
                note(format!("{label} is moved to {destination}, but {why}"));
            }
            for why in self.may_not_go(certificate, victim) {
                note(format!("{label} {why}"));
            }
            if certificate.cause.is_some() {
                if let Some(budget) = self.overspent(victim) {
                    note(format!("{label} goes, which the budget {budget} does not allow"));
                }
            } else if self.could_stay(case, victim) {
                note(format!("{label} could have been spared"));
            }
        }
        let takes_from_queues = matches!(certificate.action.as_str(), "reclaim" | "gangreclaim");
        if takes_from_queues && case.shares.iter().any(|shares| shares.len() < 2) {
            note("it does not say how shares move".to_owned());
        }
        let distinct: BTreeSet<_> =
            case.shares.iter().map(|shares| shares.iter().map(|one| &one.queue).collect::<Vec<_>>()).collect();
        for shares in distinct.iter().filter_map(|queues| {
            case.shares.iter().find(|shares| shares.iter().map(|one| &one.queue).eq(queues.iter().copied()))
        }) {
            let [gainer, losers @ ..] = shares else { continue };
            for loser in losers {
                let beyond_its_due = gainer.after.is_over() && gainer.after.unentitled >= loser.before.unentitled;
                let more_equal = gainer.after < loser.before && !beyond_its_due;
                let gives = loser.before.is_over() && loser.after < loser.before;
                if !gives || !(more_equal || gainer.after == gainer.before) {
                    note(format!(
                        "{} goes from {} to {}, and takes from {}, which goes from {} to {}",
                        gainer.queue, gainer.before, gainer.after, loser.queue, loser.before, loser.after
                    ));
                }
            }
        }
        wrong
    }

    /// Why a victim is none that the action may take, or one whom a plugin protects that has a veto.
    fn may_not_go(&self, certificate: &EvictionCertificate, victim: TaskId) -> Vec<String> {
        let point = match certificate.action.as_str() {
            "preempt" => Point::Preemptable,
            "reclaim" => Point::Reclaimable,
            "gangpreempt" | "gangreclaim" => Point::UnifiedEvictable,
            _ => return Vec::new(),
        };
        let queue_of = |task: TaskId| self.cluster.job(self.cluster.task(task).job?).queue;
        let gainers = || certificate.placements.iter().filter_map(|(pod, _)| self.cluster.find_task(&pod.uid));
        let mut wrong = Vec::new();
        let gainer = gainers().next().and_then(queue_of);
        if let (Some(gainer), Some(loser)) = (gainer, queue_of(victim)) {
            let within = matches!(certificate.action.as_str(), "preempt" | "gangpreempt");
            if within != (gainer == loser) {
                wrong.push("is not of a queue from which the action takes".to_owned());
            } else if !within && !self.cluster.queue(loser).spec.reclaimable {
                wrong.push("is of a queue from which nothing may be reclaimed".to_owned());
            }
        }
        if gainers().any(|task| self.cluster.shape_of(task).spec.never_preempts) {
            wrong.push("goes for a pod that preempts nobody".to_owned());
        }
        if certificate.volcano_votes {
            return wrong;
        }
        let shape = &self.cluster.shape_of(victim).spec;
        let is_critical = &*shape.namespace == "kube-system"
            || matches!(&*shape.priority_class, "system-cluster-critical" | "system-node-critical");
        if is_critical && self.plugins.decides(point, "conformance") {
            wrong.push("is critical for the system".to_owned());
        }
        if self.plugins.decides(point, "pdb")
            && let Some(budget) = self.overspent(victim)
        {
            wrong.push(format!("goes, which the budget {budget} does not allow"));
        }
        wrong
    }

    /// What is free on a node once what terminates is gone and what was nominated runs.
    fn left_on(&self, node: NodeId) -> Resources {
        let host = self.cluster.node(node);
        let mut left = host.allocatable.clone();
        left.sub(&host.books().used);
        left.add(&host.books().releasing);
        if let Some(promised) = self.promised.get(&node) {
            left.sub(promised);
        }
        left.sub(&self.kept_on(node));
        for &task in self.not_yet_gone.iter().filter(|task| self.cluster.task(**task).node() == Some(node)) {
            left.sub(&self.cluster.shape_of(task).request);
        }
        left
    }

    /// What is kept on a node for pods that are yet to come.
    fn kept_on(&self, node: NodeId) -> Resources {
        let mut kept = Resources::default();
        for reservation in self.cluster.reservations().filter(|kept| kept.node == node) {
            kept.add(&self.cluster.shape(reservation.shape).request);
        }
        kept
    }

    /// Why the pod that replaces a victim could not start on a node, if it could not.
    fn cannot_go_to(&self, victim: TaskId, node: &Name) -> Option<String> {
        let (task, shape) = (self.cluster.task(victim), self.cluster.shape_of(victim));
        let Some(id) = self.cluster.find_node(node) else { return Some("there is no such node".to_owned()) };
        if !shape.spec.controlled {
            return Some("nobody makes it again".to_owned());
        }
        let is_kept = |kept: &krafla_model::Reservation| {
            kept.node == id && kept.job == task.job && kept.shape == task.shape && kept.until > self.cluster.now()
        };
        if task.node() == Some(id) || !self.cluster.reservations().any(is_kept) {
            return Some("no room is kept for it there".to_owned());
        }
        let host = self.cluster.node(id);
        let taken = host.books().used.plus(&self.kept_on(id));
        let over = shape.request.iter().find(|(id, _)| taken.get(*id) > host.allocatable.get(*id));
        over.map(|(id, _)| format!("{} is not free there", self.cluster.names().name(id)))
    }

    /// A budget of the victim that allows less than what terminates.
    fn overspent(&self, victim: TaskId) -> Option<&Name> {
        let mut budgets = self.cluster.budgets(self.cluster.namespace_of(victim));
        let spent = budgets.find(|budget| budget.protects(self.cluster, victim) && budget.left(self.cluster) < 0)?;
        self.plugins.names().any(|name| name == "pdb").then_some(&spent.spec.name)
    }

    /// Whether a victim could run on beside those who got its room.
    fn could_stay(&self, case: &Case<'_>, victim: TaskId) -> bool {
        let request = &self.cluster.shape_of(victim).request;
        let Some(node) = self.cluster.task(victim).node() else { return false };
        let left = self.left_on(node);
        let has_room = request.iter().all(|(id, amount)| amount <= left.get(id));
        let is_alone = self.cluster.shape_of(victim).spec.host_ports.is_empty();
        has_room && is_alone && !self.is_in_the_way_of_its_queue(case, victim) && !self.goes_with_its_gang(case, victim)
    }

    /// Whether a queue above both would hold too much with the victim back.
    fn is_in_the_way_of_its_queue(&self, case: &Case<'_>, victim: TaskId) -> bool {
        let queue_of = |task: TaskId| self.cluster.job(self.cluster.task(task).job?).queue;
        let gainer =
            case.certificate.placements.first().and_then(|(pod, _)| queue_of(self.cluster.find_task(&pod.uid)?));
        let (Some(gainer), Some(loser)) = (gainer, queue_of(victim)) else { return false };
        let common: Vec<QueueId> = self
            .cluster
            .queue(loser)
            .path()
            .iter()
            .copied()
            .filter(|id| self.cluster.queue(gainer).path().contains(id))
            .collect();
        common.into_iter().any(|id| {
            let queue = self.cluster.queue(id);
            let mut holds = queue.held().claimed();
            holds.add(&self.cluster.shape_of(victim).request);
            for &task in self.nominees.iter().chain(&self.not_yet_gone) {
                if queue_of(task).is_some_and(|own| self.cluster.queue(own).path().contains(&id)) {
                    holds.add(&self.cluster.shape_of(task).request);
                }
            }
            let due = self.plugins.deserved(id).filter(|_| self.plugins.has(Point::Overused));
            holds.iter().filter(|(id, _)| *id != ResourceId::PODS).any(|(resource, amount)| {
                let over_limit = matches!(queue.capability.get(resource), Limit::To(limit) if amount > limit);
                over_limit || due.as_ref().is_some_and(|due| amount > due.get(resource))
            })
        })
    }

    /// Whether the victim's whole job went, because it could not have run on without some of its members.
    fn goes_with_its_gang(&self, case: &Case<'_>, victim: TaskId) -> bool {
        let Some(id) = self.cluster.task(victim).job else { return false };
        let job = self.cluster.job(id);
        let others = case.victims.iter().filter(|other| self.cluster.task(**other).job == Some(id)).count();
        job.n_ready() == 0 && others > 1
    }

    /// Jobs that these evictions left between nothing and their minimum.
    fn broken_gangs(&self, cases: &[Case<'_>]) -> Vec<String> {
        if !self.plugins.has(Point::SubJobReady) {
            return Vec::new();
        }
        let mut lost: BTreeMap<krafla_model::JobId, u32> = BTreeMap::new();
        for victim in cases.iter().flat_map(|case| &case.victims) {
            if let Some(job) = self.cluster.task(*victim).job {
                *lost.entry(job).or_default() += 1;
            }
        }
        let broken = lost.into_iter().filter(|(id, lost)| {
            let job = self.cluster.job(*id);
            let left = job.n_ready();
            left > 0 && left < job.min_available() && left + lost >= job.min_available()
        });
        broken
            .map(|(id, lost)| {
                format!("I4: {} lost {lost} members and is below its minimum", self.cluster.job_label(id))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
