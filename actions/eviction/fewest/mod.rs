//! The fewest moves that make room for a gang as a whole.
//!
//! `moves.rs` takes one pod of a gang after the other, each to where the fewest have to go for it. That is an upper bound: a
//! node where more have to go may take several of the gang. Here the gang is spread over nodes as a whole.
//!
//! 1. For each node and number of pods: no fewer than so many have to go (`hosts.rs`). Of these the best sum over all nodes
//!    is a lower bound, by dynamic programming. Where it reaches the upper bound, that is proven, and all is done.
//! 2. Else every plan with as many moves as the lower bound is tried, then with one more, and so on below the upper bound: who
//!    goes from which node, sums by 1. being the bound that cuts branches. A plan holds if the session says so: each of the
//!    gang fits, and everybody who goes has another place, which is sought with going back.
//! 3. That is done with sets of which nobody could stay for the gang's sake. A pod that could may stand in the way of one that
//!    is moved to its node; so below what has been found, all is done again with any sets.
//!
//! What is found last is a plan with the fewest moves. The search is bounded by numbers of steps, so that it always takes as
//! long on the same cluster; where one is reached, the best that was found stands, which serves, but is not proven.
//!
//! Cost: nodes times pods of the gang squared for the bound; then at most [`MOST_STEPS`] twice, and [`MOST_QUESTIONS`] to nodes.

mod hosts;

use krafla_framework::{Found, Session, Statement};
use krafla_model::{NodeId, TaskId, Time};

use super::Beneficiary;
use super::moves::{Moves, NOW, Plan, evict_spare, keep};
use super::search::fits;
use hosts::{Choice, Group, Host, Sets};

/// Branches that are looked at.
const MOST_STEPS: usize = 50_000;
/// Times that a node is asked whether it could take a pod that goes.
const MOST_QUESTIONS: usize = 20_000;
/// Plans that are tried in the session.
const MOST_TRIED: usize = 1_000;
/// Nodes times pods of the gang for which sums are kept.
const MOST_SUMS: usize = 8_000_000;
/// Cannot be.
const NEVER: usize = usize::MAX / 2;

const FULL: Budget = Budget { steps: MOST_STEPS, questions: MOST_QUESTIONS, tried: MOST_TRIED };

/// What is left of the bounds.
struct Budget {
    steps: usize,
    questions: usize,
    tried: usize,
}

/// The search for one gang.
struct Search<'s, 'a, 'b> {
    session: &'s mut Session<'a>,
    who: &'s Beneficiary<'b>,
    until: Time,
    groups: Vec<Group>,
    hosts: Vec<Host>,
    /// By host and number of pods that are left: no fewer moves than so many from this host on.
    sums: Vec<Vec<usize>>,
    sets: Sets,
    /// Fewer moves than this.
    most: usize,
    budget: Budget,
}

/// A plan for all of `needed` with fewer moves than `most`, and the fewest; `None` if there is none, or none was found.
pub(super) fn fewer_moves(
    session: &mut Session<'_>,
    who: &Beneficiary<'_>,
    needed: &[TaskId],
    most: usize,
    until: Time,
) -> Option<Plan> {
    let cluster = session.cluster();
    let mut groups: Vec<Group> = Vec::new();
    for &task in needed {
        let shape = cluster.task(task).shape;
        match groups.iter_mut().find(|group| cluster.task(group.tasks[0]).shape == shape) {
            Some(group) => group.tasks.push(task),
            None => {
                let request = cluster.asked_of_nodes(cluster.shape_of(task)).into_owned();
                groups.push(Group { tasks: vec![task], request });
            }
        }
    }
    let smallest = groups.iter().map(|group| group.request.clone()).reduce(|one, other| one.min(&other))?;
    if smallest.is_best_effort() {
        return None;
    }
    let nodes: Vec<NodeId> = cluster.nodes().to_vec();
    let mut hosts: Vec<Host> =
        nodes.into_iter().filter_map(|node| Host::new(session, who, node, &groups, &smallest)).collect();
    // Those first that take one of the gang for the fewest moves; the sort is stable, so equals stay in tie order.
    hosts.sort_by_key(|host| host.least[1]);
    if hosts.len() * needed.len() > MOST_SUMS {
        return None;
    }
    let sums = sums(&hosts, needed.len());
    let movable: usize = hosts.iter().map(Host::n_movable).sum();
    let least = sums[0][needed.len()];
    let (mut fewest, mut most) = (None, most.min(movable + 1));
    let left: Vec<usize> = groups.iter().map(|group| group.tasks.len()).collect();
    let mut search = Search { session, who, until, groups, hosts, sums, sets: Sets::Needed, most, budget: FULL };
    for sets in [Sets::Needed, Sets::Any] {
        if least >= most {
            break;
        }
        search.begin(sets, most);
        let found = (least..most).find_map(|moves| {
            let found = search.plan(0, &left, moves, &mut Vec::new()).map(|plan| Some((moves, plan)));
            if search.is_over() { Some(found.flatten()) } else { found }
        });
        if let Some((moves, plan)) = found.flatten() {
            (fewest, most) = (Some(plan), moves);
        }
    }
    fewest
}

/// See [`Search::sums`]. The last row is that after all hosts.
fn sums(hosts: &[Host], pods: usize) -> Vec<Vec<usize>> {
    let mut sums = vec![vec![NEVER; pods + 1]; hosts.len() + 1];
    sums[hosts.len()][0] = 0;
    for (i, host) in hosts.iter().enumerate().rev() {
        for left in 0..=pods {
            let taking = |(n, moves): (usize, &usize)| moves + sums[i + 1][left - n];
            let best = host.least.iter().take(left + 1).enumerate().map(taking).min();
            sums[i][left] = best.unwrap_or(NEVER).min(NEVER);
        }
    }
    sums
}

impl Search<'_, '_, '_> {
    /// From here on other sets of pods are looked at.
    fn begin(&mut self, sets: Sets, most: usize) {
        (self.sets, self.most, self.budget) = (sets, most, FULL);
        self.hosts.iter_mut().for_each(Host::forget_options);
    }

    fn is_over(&self) -> bool {
        self.budget.steps == 0 || self.budget.questions == 0 || self.budget.tried == 0
    }

    /// A plan from a host on with exactly so many moves that are left, for what is left of each group.
    fn plan(&mut self, from: usize, left: &[usize], moves: usize, chosen: &mut Vec<Choice>) -> Option<Plan> {
        let pods: usize = left.iter().sum();
        if pods == 0 {
            // With moves to spare it is a plan that was tried before.
            return if moves == 0 { self.attempt(chosen) } else { None };
        }
        for i in from..self.hosts.len() {
            if self.sums[i][pods] > moves {
                return None;
            }
            let options = self.hosts[i].options(self.session, self.who, &self.groups, self.sets, self.most).to_vec();
            for option in options {
                if self.is_over() {
                    return None;
                }
                self.budget.steps -= 1;
                let n: usize = option.part.iter().sum();
                let goes_too_far = option.part.iter().zip(left).any(|(part, left)| part > left);
                if option.victims.len() > moves || goes_too_far {
                    continue;
                }
                let moves = moves - option.victims.len();
                if self.sums[i + 1][pods - n] > moves {
                    continue;
                }
                let left: Vec<usize> = left.iter().zip(&option.part).map(|(left, part)| left - part).collect();
                chosen.push(option);
                let found = self.plan(i + 1, &left, moves, chosen);
                chosen.pop();
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }

    /// Does it in the session, as far as it holds; nothing of it stays.
    fn attempt(&mut self, chosen: &[Choice]) -> Option<Plan> {
        self.budget.tried = self.budget.tried.checked_sub(1)?;
        let (who, until) = (self.who, self.until);
        let mut statement = self.session.statement();
        let mut victims: Vec<TaskId> = chosen.iter().flat_map(|choice| choice.victims.iter().copied()).collect();
        for &victim in &victims {
            let now = statement.session();
            let may_go = !now.plugins().evictable(now.cluster(), &[victim]).is_empty();
            if !may_go || !evict_spare(&mut statement, victim) {
                return None;
            }
        }
        let mut plan = Plan::default();
        let mut next = vec![0; self.groups.len()];
        for choice in chosen {
            for (group, n) in choice.part.iter().enumerate() {
                for _ in 0..*n {
                    let task = self.groups[group].tasks[next[group]];
                    next[group] += 1;
                    if !fits(statement.session_mut(), who, task, choice.node) {
                        return None;
                    }
                    statement.pipeline(task, choice.node).ok()?;
                    plan.placements.push((task, choice.node));
                }
            }
        }
        let cluster = statement.session().cluster();
        if !statement.session().plugins().job_pipelined(cluster, who.job) {
            return None;
        }
        // Whoever is hardest to place, first.
        let total = cluster.totals().allocatable.clone();
        victims.sort_by_key(|victim| std::cmp::Reverse(cluster.shape_of(*victim).request.dominant_share(&total)));
        let questions = &mut self.budget.questions;
        let best = places(&mut statement, &victims, until, questions);
        plan.moves = match best {
            Some(moves) => moves,
            None => {
                let nodes = statement.session().cluster().nodes().to_vec();
                let mut moves = Moves::new();
                let found = places_with_going_back(&mut statement, &victims, &nodes, until, &mut moves, questions);
                found.then_some(moves)?
            }
        };
        Some(plan)
    }
}

/// For each its best place, one after the other.
fn places(statement: &mut Statement<'_, '_>, victims: &[TaskId], until: Time, questions: &mut usize) -> Option<Moves> {
    let mut trial = statement.nested();
    let mut moves = Moves::new();
    for &victim in victims {
        *questions = questions.saturating_sub(1);
        let Found::Node { node, .. } = trial.session_mut().find_node_for_another(victim, NOW) else { return None };
        if !keep(&mut trial, victim, node, until) {
            return None;
        }
        moves.push((victim, node));
    }
    Some(moves)
}

/// A place for everybody, if there is one; who has none sends those before it elsewhere.
fn places_with_going_back(
    statement: &mut Statement<'_, '_>,
    victims: &[TaskId],
    nodes: &[NodeId],
    until: Time,
    moves: &mut Moves,
    questions: &mut usize,
) -> bool {
    let [victim, rest @ ..] = victims else { return true };
    for &node in nodes {
        if *questions == 0 {
            return false;
        }
        *questions -= 1;
        let mut trial = statement.nested();
        if trial.session_mut().verdict(*victim, node, NOW).is_err() || !keep(&mut trial, *victim, node, until) {
            continue;
        }
        moves.push((*victim, node));
        if places_with_going_back(&mut trial, rest, nodes, until, moves, questions) {
            return true;
        }
        moves.pop();
    }
    false
}
