//! `shuffle`: evicts running pods that a plugin no longer wants where they are.
//!
//! Nobody gets their room, so nobody has to prove that it is needed: each certificate has a cause instead, the plugin and
//! why. What protects a pod protects it here too, and a gang that would fall below its minimum goes with all of it, or
//! stays.

use std::sync::Arc;

use krafla_framework::{Action, ActionInfo, Arguments, Cause, EvictionCertificate, Session};
use krafla_model::{TaskId, TaskStatus};
use tracing::debug;

use crate::eviction::{everybody_placed, is_evictable, is_whole};

/// Name and arguments.
pub const INFO: ActionInfo = ActionInfo {
    name: "shuffle",
    about: "evict running pods that plugins want elsewhere",
    places: false,
    arguments: &[],
};

struct Shuffle;

/// Makes the action.
pub fn build(_: &Arguments) -> Box<dyn Action> {
    Box::new(Shuffle)
}

impl Action for Shuffle {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn execute(&mut self, session: &mut Session<'_>) {
        let cluster = session.cluster();
        let runs = |id: &TaskId| cluster.task(*id).status() == TaskStatus::Running;
        let running: Vec<TaskId> = cluster.tasks().map(|(id, _)| id).filter(runs).collect();
        for (task, cause) in session.plugins().victim_tasks(cluster, &running) {
            // It may have gone with another of its gang.
            let still_runs = session.cluster().task(task).status() == TaskStatus::Running;
            if still_runs && !evict(session, task, &cause) {
                debug!(pod = %session.cluster().task_label(task), plugin = cause.plugin, "stays: it is protected");
            }
        }
    }
}

/// Evicts a task, and with it everybody of a gang that would be broken. Answers whether that was allowed.
fn evict(session: &mut Session<'_>, task: TaskId, cause: &Cause) -> bool {
    let may_go = |session: &Session<'_>, tasks: &[TaskId]| {
        let (cluster, plugins) = (session.cluster(), session.plugins());
        tasks.iter().all(|task| is_evictable(cluster, *task)) && plugins.evictable(cluster, tasks).len() == tasks.len()
    };
    let mut statement = session.statement();
    if !may_go(statement.session(), &[task]) || statement.evict(task).is_err() {
        return false;
    }
    let job = statement.session().cluster().task(task).job;
    if let Some(job) = job.filter(|job| !is_whole(statement.session(), *job)) {
        let rest = everybody_placed(statement.session().cluster(), job);
        if !may_go(statement.session(), &rest) || rest.into_iter().any(|other| statement.evict(other).is_err()) {
            return false;
        }
    }
    statement.commit(|cluster, victim| EvictionCertificate {
        volcano_votes: false,
        action: INFO.name.to_owned(),
        beneficiary: String::new(),
        placements: Arc::new([]),
        node: cluster.task(victim).node().map(|node| cluster.node(node).name().clone()).unwrap_or_default(),
        destination: None,
        cause: Some(cause.clone()),
        grace_seconds: None,
        shares: Vec::new(),
    });
    true
}
