//! Preemption: the room of others for a pod that fits nowhere.
//!
//! For each node that an eviction may help: all who may go are taken away; if the pod then fits, as many as possible are
//! given back, those that a disruption budget protects first, then the more important. Of all nodes the one with the
//! smallest disruption is chosen, by Kubernetes' criteria in their order. What it takes at the very least on each node is
//! kept (`bounds`), so that few nodes are tried: as a rule the one that is chosen.

mod bounds;
mod disruption;

use std::cmp::Reverse;

use krafla_framework::{FailedAttempt, NodeVictims, PostFilter};
use krafla_model::{ClusterState, NodeId, TaskId, TaskStatus};

use bounds::Bounds;
use disruption::{Disruption, Least, importance, split_by_budgets};

/// Who may go for whom.
pub(super) trait VictimRule {
    /// Whether `victim` may go so that `task` gets its room, as things are tried so far. With each that goes this may
    /// turn from yes to no, never back.
    fn may_go(&self, cluster: &ClusterState, task: TaskId, victim: TaskId) -> bool;

    /// Whether that is a matter of the priorities of the two alone.
    fn goes_by_priority(&self) -> bool {
        false
    }
}

/// A node, who would go there, and how bad that is.
type Candidate = (Disruption, NodeId, Vec<TaskId>);

/// PostFilter of a plugin that preempts by a rule.
pub(super) fn preempt(attempt: &mut FailedAttempt<'_>, rule: &dyn VictimRule) -> PostFilter {
    if let Err(why) = may_preempt(attempt.cluster(), attempt.task, rule) {
        return PostFilter::Unschedulable(format!("preemption: {why}"));
    }
    let all = attempt.cluster().nodes().len();
    if attempt.unschedulable.is_empty() {
        let why = format!("preemption: 0/{all} nodes are available: {all} Preemption is not helpful for scheduling.");
        return PostFilter::Unschedulable(why);
    }
    let asks_extenders = attempt.has_preempting_extenders();
    let (mut candidates, without_victims) = match asks_extenders {
        false => (best_candidate(attempt, rule).into_iter().collect(), attempt.unschedulable.len()),
        true => all_candidates(attempt, rule),
    };
    if asks_extenders && !candidates.is_empty() {
        match agreed(attempt, candidates) {
            Ok(left) => candidates = left,
            Err(why) => return PostFilter::Unschedulable(format!("preemption: {why}")),
        }
    }
    // The first of equals, in tie order.
    let best = candidates.into_iter().min_by(|(one, ..), (other, ..)| one.cmp(other));
    match best {
        Some((_, node, victims)) => PostFilter::Nominate { node, victims },
        None => {
            let unhelpful = all - attempt.unschedulable.len();
            let mut said = Vec::new();
            if without_victims > 0 {
                said.push(format!("{without_victims} No preemption victims found for incoming pod"));
            }
            if unhelpful > 0 {
                said.push(format!("{unhelpful} Preemption is not helpful for scheduling"));
            }
            if asks_extenders && said.is_empty() {
                said.push(format!("{all} No extender agrees to a preemption"));
            }
            PostFilter::Unschedulable(format!("preemption: 0/{all} nodes are available: {}.", said.join(", ")))
        }
    }
}

/// All nodes where somebody could go, in tie order, and how many the others are: extenders may refuse the best.
fn all_candidates(attempt: &mut FailedAttempt<'_>, rule: &dyn VictimRule) -> (Vec<Candidate>, usize) {
    let nodes = attempt.unschedulable;
    let tried = |&node: &NodeId| victims_on(attempt, node, rule, None).ok().map(|(how, who)| (how, node, who));
    let candidates: Vec<Candidate> = nodes.iter().filter_map(tried).collect();
    let others = nodes.len() - candidates.len();
    (candidates, others)
}

/// The node with the smallest disruption; of equals the first in tie order.
fn best_candidate(attempt: &mut FailedAttempt<'_>, rule: &dyn VictimRule) -> Option<Candidate> {
    if attempt.is_plain() {
        return all_candidates(attempt, rule).0.into_iter().min_by_key(|(disruption, ..)| *disruption);
    }
    if rule.goes_by_priority() {
        let mut bounds = attempt.take_kept::<Bounds>().unwrap_or_default();
        let best = best_by_bounds(attempt, rule, &mut bounds);
        attempt.keep(bounds);
        return best;
    }
    let mut best: Option<Candidate> = None;
    for &node in attempt.unschedulable {
        let so_far = best.as_ref().map(|(disruption, ..)| disruption);
        if let Ok((disruption, victims)) = victims_on(attempt, node, rule, so_far)
            && so_far.is_none_or(|so_far| disruption < *so_far)
        {
            let nobody = victims.is_empty();
            best = Some((disruption, node, victims));
            if nobody {
                break;
            }
        }
    }
    best
}

/// The same, by what is kept: nodes are tried in the order of what they take at the very least, until that is no less than
/// what the best so far takes.
fn best_by_bounds(attempt: &mut FailedAttempt<'_>, rule: &dyn VictimRule, bounds: &mut Bounds) -> Option<Candidate> {
    let (task, nodes) = (attempt.task, attempt.unschedulable);
    let cluster = attempt.cluster();
    let kept = bounds.of(cluster, task, |node| candidates_on(cluster, task, node, rule));
    let mut best: Option<(Disruption, usize, Vec<TaskId>)> = None;
    let mut next = kept.first(cluster, nodes);
    let mut others = None;
    while let Some((least, at)) = next {
        let so_far = best.as_ref().map(|(disruption, at, _)| (*disruption, *at));
        if so_far.is_some_and(|best| best < (least, at)) {
            break;
        }
        if let Ok((disruption, victims)) = victims_on(attempt, nodes[at], rule, None)
            && so_far.is_none_or(|best| (disruption, at) < best)
        {
            best = Some((disruption, at, victims));
        }
        if best.as_ref().is_some_and(|(disruption, first, _)| (*disruption, *first) <= (least, at)) {
            break;
        }
        let could_be_better = || {
            let so_far = best.as_ref().map(|(disruption, at, _)| (*disruption, *at));
            kept.others(attempt.cluster(), nodes, at, so_far)
        };
        next = others.get_or_insert_with(could_be_better).pop().map(|Reverse(other)| other);
    }
    best.map(|(disruption, at, victims)| (disruption, nodes[at], victims))
}

/// Whether a pod may take the room of others: unless it says never, and not again while those terminate that it took it
/// from.
fn may_preempt(cluster: &ClusterState, task: TaskId, rule: &dyn VictimRule) -> Result<(), &'static str> {
    if cluster.shape_of(task).spec.never_preempts {
        return Err("not eligible due to preemptionPolicy=Never.");
    }
    let pod = cluster.task(task);
    let nominated = pod.nominated.as_deref().and_then(|name| cluster.find_node(name));
    let leaves =
        |other: &TaskId| cluster.task(*other).status() == TaskStatus::Releasing && rule.may_go(cluster, task, *other);
    match nominated {
        Some(node) if cluster.node(node).books().tasks.iter().any(leaves) => {
            Err("not eligible due to a terminating pod on the nominated node.")
        }
        _ => Ok(()),
    }
}

/// Those of the candidates to which the extenders agree, with whom they want gone, in tie order.
fn agreed(
    attempt: &FailedAttempt<'_>,
    candidates: Vec<(Disruption, NodeId, Vec<TaskId>)>,
) -> Result<Vec<(Disruption, NodeId, Vec<TaskId>)>, String> {
    let order: Vec<NodeId> = candidates.iter().map(|(_, node, _)| *node).collect();
    let asked = candidates.into_iter().map(|(disruption, node, pods)| {
        let budget_violations = i64::try_from(disruption.violations()).unwrap_or(i64::MAX);
        (node, NodeVictims { pods, budget_violations })
    });
    let mut left = attempt.ask_extenders(asked.collect())?;
    let cluster = attempt.cluster();
    let again = |node: NodeId| {
        let NodeVictims { pods, budget_violations } = left.remove(&node)?;
        Some((Disruption::of(cluster, usize::try_from(budget_violations).unwrap_or(0), &pods), node, pods))
    };
    Ok(order.into_iter().filter_map(again).collect())
}

/// Nobody on a node could go, or it would not help, or not be better than what there is.
struct NoVictims;

/// Who has to go on a node, the more important first, and how bad that is. Not looked for where it cannot be better than
/// `best`. Nothing of the trial stays.
fn victims_on(
    attempt: &mut FailedAttempt<'_>,
    node: NodeId,
    rule: &dyn VictimRule,
    best: Option<&Disruption>,
) -> Result<(Disruption, Vec<TaskId>), NoVictims> {
    let (cluster, task) = (attempt.cluster(), attempt.task);
    let mut candidates = candidates_on(cluster, task, node, rule);
    let least = Least::of(cluster, task, node, &candidates).disruption(cluster.now());
    if candidates.is_empty() || !attempt.is_plain() && least.is_none_or(|least| best.is_some_and(|best| least >= *best))
    {
        return Err(NoVictims);
    }
    candidates.sort_by_key(|task| importance(cluster, *task));
    let before = attempt.savepoint();
    let chosen = try_without(attempt, node, candidates, rule);
    attempt.undo(before);
    let (violations, mut victims) = chosen?;
    let cluster = attempt.cluster();
    victims.sort_by_key(|task| importance(cluster, *task));
    let disruption = Disruption::of(cluster, violations, &victims);
    debug_assert!(least.is_some_and(|least| least <= disruption), "{least:?} {disruption:?}");
    Ok((disruption, victims))
}

/// Who may go on a node, as things are.
fn candidates_on(cluster: &ClusterState, task: TaskId, node: NodeId, rule: &dyn VictimRule) -> Vec<TaskId> {
    let may_go = |other: &TaskId| cluster.task(*other).status().is_allocated() && rule.may_go(cluster, task, *other);
    cluster.node(node).books().tasks.iter().copied().filter(may_go).collect()
}

/// Takes all of `candidates` away who may go, the least important first, and gives back whoever need not. They come in
/// order of importance. Answers how many of those who go are protected, and all who go.
fn try_without(
    attempt: &mut FailedAttempt<'_>,
    node: NodeId,
    mut candidates: Vec<TaskId>,
    rule: &dyn VictimRule,
) -> Result<(usize, Vec<TaskId>), NoVictims> {
    let task = attempt.task;
    let (protected, others) = split_by_budgets(attempt.cluster(), &candidates);
    candidates.reverse();
    let mut gone = Vec::new();
    for &candidate in &candidates {
        if rule.may_go(attempt.cluster(), task, candidate) {
            attempt.remove(candidate).map_err(|_| NoVictims)?;
            gone.push(candidate);
        }
    }
    if gone.is_empty() || !attempt.fits(node) {
        return Err(NoVictims);
    }
    let (mut violations, mut victims) = (0, Vec::new());
    for (candidates, counts) in [(protected, 1), (others, 0)] {
        for candidate in candidates.into_iter().filter(|candidate| gone.contains(candidate)) {
            if attempt.add_back(candidate).is_ok() && attempt.fits(node) {
                continue;
            }
            // What cannot be given back stays taken away.
            let _ = attempt.remove(candidate);
            violations += counts;
            victims.push(candidate);
        }
    }
    Ok((violations, victims))
}
