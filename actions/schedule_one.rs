//! `schedule-one`: pods one by one, in the order of their profile's QueueSort, as kube-scheduler does.
//!
//! One attempt is one scheduling cycle: PreFilter, Filter, Score; Reserve and Permit; or PostFilter. Pods that have been
//! promised a node, and are at least as important, count as if they were there. Pods of a group that a plugin wants
//! together are tried together: `group.rs`.

mod group;

use std::collections::BTreeSet;
use std::sync::Arc;

use krafla_framework::conf::catalogue::ActionInfo;
use krafla_framework::conf::policy::{DEFAULT_PREEMPTION, SCHEDULE_ONE};
use krafla_framework::{
    Action, Arguments, EvictionCertificate, ExtensionPoint, Found, PodRef, Reason, Refusals, Refused, SearchLimits,
    Session, Statement,
};
use krafla_model::{NodeId, TaskId, TaskStatus};

/// Name and arguments.
pub const INFO: ActionInfo = ActionInfo {
    name: SCHEDULE_ONE,
    about: "schedules pods one by one by their profile, without queues and jobs (`--profile-only`)",
    places: true,
    arguments: &[],
};

/// Makes the action.
pub fn build(_: &Arguments) -> Box<dyn Action> {
    Box::new(ScheduleOne::default())
}

/// Attempts of one session: what is decided goes out before others are tried.
const ATTEMPTS: usize = 500;

/// Nodes are taken as they are.
const NOW: SearchLimits = SearchLimits { may_start: true, may_wait: false };

/// See the module.
#[derive(Default)]
pub struct ScheduleOne {
    /// Where the next search for a sample of the nodes begins.
    next_start: usize,
}

impl Action for ScheduleOne {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn execute(&mut self, session: &mut Session<'_>) {
        let events = session.with_queue(|queue, plugins, cluster| {
            cluster.keep_cluster_events();
            let events = cluster.take_cluster_events();
            queue.update(plugins, cluster, &events);
            events
        });
        explain_kept_out(session);
        session.tell_permit_plugins(&events.unwrap_or_default());
        let cluster = session.cluster();
        let node_of = |task: TaskId| cluster.find_node(cluster.task(task).nominated.as_deref()?);
        let nominated: Vec<(TaskId, NodeId)> =
            cluster.nominees().filter_map(|task| Some((task, node_of(task)?))).collect();
        for (task, node) in nominated {
            session.nominate(task, node);
        }
        take_back(session);
        self.try_all(session);
        session.take_promises_back();
    }
}

impl ScheduleOne {
    fn try_all(&mut self, session: &mut Session<'_>) {
        for _ in 0..ATTEMPTS {
            activate(session);
            let next = session.with_queue(|queue, _, cluster| queue.pop(cluster)).flatten();
            let Some(task) = next else { return };
            match session.plugins().profile_for(session.cluster(), task).pod_group(session.cluster(), task) {
                Some((group, plugin)) => self.attempt_group(session, task, group, plugin),
                None => self.attempt(session, task),
            }
        }
        session.leave_unfinished();
    }

    fn attempt(&mut self, session: &mut Session<'_>, task: TaskId) {
        session.keep_promises_before(task);
        let tried = self.try_out(session, task, true);
        match tried {
            Tried::Fits(node) => {
                if !session.is_placed_unseen(task) {
                    session.take_promises_back();
                }
                let mut statement = session.statement();
                if place(&mut statement, task, node) {
                    statement.commit_binds();
                    take_back(session);
                } else {
                    drop(statement);
                    put_back(session, task, Refused::Error);
                }
            }
            Tried::FitsNowhere { refusals, preemption, said } => {
                let refused = match &refusals.error {
                    Some(_) => Refused::Error,
                    None => Refused::By(refusals.plugins.clone()),
                };
                session.explain_task(task, Reason::Unschedulable { refusals, post_filter: said });
                session.end_waits();
                take_back(session);
                put_back(session, task, refused);
                if let Some((node, victims)) = preemption {
                    preempt(session, task, node, &victims);
                }
            }
        }
    }

    /// Looks for a node, and if it `may_preempt` for what would make one fit. Nothing of it stays.
    fn try_out(&mut self, session: &mut Session<'_>, task: TaskId, may_preempt: bool) -> Tried {
        let mut statement = session.statement();
        let kept = statement.lift_reservation(task);
        if !statement.session().keeps_promises() {
            for (other, node) in nominated_before(statement.session(), task) {
                // It counts even where it does not fit any more, as in kube-scheduler. One that has a node by now does not.
                let _ = statement.promise(other, node);
            }
        }
        let session = statement.session_mut();
        let cluster = session.cluster();
        let own = cluster.task(task).nominated.as_deref().and_then(|name| cluster.find_node(name));
        if let Some(node) = kept.or(own)
            && session.verdict(task, node, NOW).is_ok()
        {
            return Tried::Fits(node);
        }
        match self.search(session, task) {
            Found::Node { node, .. } => Tried::Fits(node),
            Found::Nothing(refusals) if !may_preempt || refusals.error.is_some() || refusals.nodes == 0 => {
                Tried::FitsNowhere { refusals: Box::new(refusals), preemption: None, said: String::new() }
            }
            Found::Nothing(refusals) => {
                let (preemption, said) = session.run_post_filter_plugins(task, &refusals);
                Tried::FitsNowhere { refusals: Box::new(refusals), preemption, said }
            }
        }
    }

    /// The best of all nodes; where a sample is enough, of as many fit ones, from where the last sample ended.
    fn search(&mut self, session: &mut Session<'_>, task: TaskId) -> Found {
        let cluster = session.cluster();
        let nodes = cluster.nodes().len();
        let percentage = session.plugins().profile_for(cluster, task).percentage_of_nodes_to_score();
        let enough = percentage.map_or(nodes, |percentage| feasible_nodes_to_find(nodes, percentage));
        let sampled = enough < nodes;
        let start = if sampled { self.next_start % nodes } else { 0 };
        let (found, looked_at) = session.find_node_from(task, start, enough, NOW);
        if sampled {
            self.next_start = (start + looked_at) % nodes;
        }
        found
    }
}

enum Tried {
    Fits(NodeId),
    FitsNowhere { refusals: Box<Refusals>, preemption: Option<(NodeId, Vec<TaskId>)>, said: String },
}

/// Gives a pod its node; answers whether it has it.
fn place(statement: &mut Statement<'_, '_>, task: TaskId, node: NodeId) -> bool {
    statement.session_mut().clear_nomination(task);
    statement.lift_reservation(task);
    statement.allocate(task, node).is_ok()
}

/// How many fit nodes are looked for: kube-scheduler's `numFeasibleNodesToFind`. A percentage of 0 goes by the size of
/// the cluster: 50 % less one for each 125 nodes, at least 5 %. Never fewer than 100.
fn feasible_nodes_to_find(nodes: usize, percentage: u8) -> usize {
    const LEAST: usize = 100;
    if nodes < LEAST || percentage >= 100 {
        return nodes;
    }
    let percentage =
        if percentage == 0 { 50_usize.saturating_sub(nodes / 125).max(5) } else { usize::from(percentage) };
    (nodes * percentage / 100).max(LEAST)
}

/// Pods that were nominated for a node and come before `task`, with their nodes.
fn nominated_before(session: &Session<'_>, task: TaskId) -> Vec<(TaskId, NodeId)> {
    let cluster = session.cluster();
    let priority = cluster.task(task).priority;
    let before = |(other, _): &(TaskId, NodeId)| *other != task && cluster.task(*other).priority >= priority;
    session.nominations().filter(before).collect()
}

/// Makes room: who has to go is evicted, and the pod is nominated for the node until they are gone. Less important pods
/// that were nominated for it are tried again.
fn preempt(session: &mut Session<'_>, task: TaskId, node: NodeId, victims: &[TaskId]) {
    let cluster = session.cluster();
    let priority = cluster.task(task).priority;
    let is_outbid = |other: &TaskId| *other != task && cluster.task(*other).priority < priority;
    let outbid: Vec<TaskId> = session.nominated_for(node).filter(is_outbid).collect();
    for other in outbid {
        // Those at the door of the queue look at the cluster as it is.
        session.take_promises_back();
        session.clear_nomination(other);
        session.with_queue(|queue, plugins, cluster| queue.activate(plugins, cluster, other));
    }
    let (waiting, placed): (Vec<TaskId>, Vec<TaskId>) =
        victims.iter().partition(|victim| session.is_waiting_on_permit(**victim));
    for victim in waiting {
        session.reject_waiting(victim, "preempted");
    }
    let cluster = session.cluster();
    let placements: Arc<[_]> = Arc::from([(PodRef::of(cluster, task), cluster.node(node).name().clone())]);
    let mut statement = session.statement();
    if placed.iter().all(|victim| statement.evict(*victim).is_ok()) {
        statement.commit(|cluster, _| EvictionCertificate {
            volcano_votes: false,
            action: DEFAULT_PREEMPTION.to_owned(),
            beneficiary: cluster.task_label(task),
            placements: Arc::clone(&placements),
            node: cluster.node(node).name().clone(),
            destination: None,
            cause: None,
            grace_seconds: None,
            shares: Vec::new(),
        });
    } else {
        drop(statement);
    }
    take_back(session);
    session.nominate(task, node);
}

/// Says why pods are kept out of the queue. Those with scheduling gates say so themselves.
fn explain_kept_out(session: &mut Session<'_>) {
    let kept_out = session.with_queue(|queue, _, _| queue.take_kept_out()).unwrap_or_default();
    for (task, plugin, why) in kept_out {
        let cluster = session.cluster();
        if cluster.get_task(task).is_some_and(|pod| pod.status() == TaskStatus::Pending) {
            let why = why.text(cluster);
            session.explain_task(task, Reason::refused_by_plugin(plugin, ExtensionPoint::PreEnqueue, why));
        }
    }
}

/// Lets those in that plugins want to be tried soon.
fn activate(session: &mut Session<'_>) {
    for task in session.take_activated() {
        session.take_promises_back();
        session.with_queue(|queue, plugins, cluster| queue.activate_waiting(plugins, cluster, task));
    }
}

/// Puts what Permit sent back into the queue.
fn take_back(session: &mut Session<'_>) {
    for (task, plugin) in session.take_sent_back() {
        put_back(session, task, Refused::By(BTreeSet::from([plugin.to_owned()])));
    }
}

fn put_back(session: &mut Session<'_>, task: TaskId, refused: Refused) {
    session.with_queue(|queue, plugins, cluster| queue.put_back(plugins, cluster, task, refused));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_many_fit_nodes_are_enough() {
        for (nodes, percentage, enough) in [
            (50, 10, 50),
            (100, 0, 100),
            (1_000, 0, 420),
            (5_000, 0, 500),
            (5_625, 0, 281),
            (15_000, 0, 750),
            (1_000, 30, 300),
            (1_000, 5, 100),
            (1_000, 100, 1_000),
        ] {
            assert_eq!(feasible_nodes_to_find(nodes, percentage), enough, "{percentage} % of {nodes}");
        }
    }
}
