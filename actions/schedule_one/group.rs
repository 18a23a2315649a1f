//! Pods of a group that are tried in one cycle: as many as the group needs are placed, or none.
//!
//! Pods that fit now are placed first. Where they are too few, the others may preempt, each beside what those before it
//! took and freed; nobody is evicted unless the group is whole afterwards.

use std::collections::{BTreeMap, BTreeSet};

use krafla_framework::{ExtensionPoint, Reason, Refusals, Refused, Session};
use krafla_model::{JobId, NodeId, TaskId};

use super::{ScheduleOne, Tried, place, preempt, put_back, take_back};

/// A pod's way in by evictions: the pod, its node, and who goes.
type WayIn = (TaskId, NodeId, Vec<TaskId>);

/// What keeps a group from being placed.
#[derive(Default)]
struct Hindrance {
    /// Plugins that refused one of its pods.
    plugins: BTreeSet<String>,
    error: bool,
    /// How many pods would have been together.
    together: u32,
    /// What holds back those that found no node.
    reasons: BTreeMap<TaskId, Reason>,
}

impl Hindrance {
    fn note(&mut self, member: TaskId, refusals: Box<Refusals>, said: String) {
        self.error |= refusals.error.is_some();
        self.plugins.extend(refusals.plugins.iter().cloned());
        self.reasons.insert(member, Reason::Unschedulable { refusals, post_filter: said });
    }
}

impl ScheduleOne {
    /// Tries `first` and all of its group that wait. `plugin` wants them together.
    pub(super) fn attempt_group(&mut self, session: &mut Session<'_>, first: TaskId, group: JobId, plugin: &str) {
        session.take_promises_back();
        let members = session.with_queue(|queue, _, cluster| queue.pop_group(cluster, first, group));
        let members = members.unwrap_or_default();
        let needed = session.cluster().job(group).min_available();
        let mut statement = session.statement();
        let mut hindrance = Hindrance::default();
        let (mut fit, mut waiting) = (Vec::new(), Vec::new());
        for &member in &members {
            match self.try_out(statement.session_mut(), member, false) {
                Tried::Fits(node) if place(&mut statement, member, node) => fit.push((member, node)),
                Tried::Fits(_) => waiting.push(member),
                Tried::FitsNowhere { refusals, said, .. } => {
                    hindrance.note(member, refusals, said);
                    waiting.push(member);
                }
            }
        }
        hindrance.together = together(statement.session(), group);
        if hindrance.together >= needed {
            statement.commit_binds();
            take_back(session);
            // Beyond the minimum each is for itself.
            waiting.into_iter().for_each(|member| self.attempt(session, member));
            return;
        }
        let ways = self.ways_in(statement.session_mut(), &waiting, group, &mut hindrance);
        drop(statement);
        put_group_back(session, &members, group, plugin, hindrance);
        let Some(ways) = ways else { return };
        fit.into_iter().for_each(|(member, node)| session.nominate(member, node));
        for (member, node, victims) in ways {
            preempt(session, member, node, &victims);
        }
    }

    /// How those that found no node could come in, so that the group has what it needs; `None` if they cannot.
    fn ways_in(
        &mut self,
        session: &mut Session<'_>,
        waiting: &[TaskId],
        group: JobId,
        hindrance: &mut Hindrance,
    ) -> Option<Vec<WayIn>> {
        let missing = (session.cluster().job(group).min_available() - hindrance.together) as usize;
        let mut ways: Vec<WayIn> = Vec::new();
        let mut statement = session.statement();
        for &member in waiting {
            if ways.len() >= missing {
                break;
            }
            let (node, victims) = match self.try_out(statement.session_mut(), member, true) {
                // Room that the victims of another leave beside it. Before there are any, it was refused by Reserve.
                Tried::Fits(node) if !ways.is_empty() => (node, Vec::new()),
                Tried::Fits(_) => {
                    hindrance.error = true;
                    continue;
                }
                Tried::FitsNowhere { preemption: Some(way), .. } => way,
                Tried::FitsNowhere { refusals, preemption: None, said } => {
                    hindrance.note(member, refusals, said);
                    continue;
                }
            };
            let mut way = statement.nested();
            let cluster = way.session().cluster();
            if !victims.iter().any(|victim| cluster.task(*victim).job == Some(group))
                && victims.iter().all(|victim| way.evict(*victim).is_ok())
                && way.promise(member, node).is_ok()
            {
                way.merge();
                ways.push((member, node, victims));
            }
        }
        drop(statement);
        (ways.len() >= missing).then_some(ways)
    }
}

/// Pods of a group that have their node.
fn together(session: &Session<'_>, group: JobId) -> u32 {
    session.cluster().job(group).counts().sum(|status| status.is_allocated())
}

/// Puts pods back that were tried together, each with what holds it back.
fn put_group_back(session: &mut Session<'_>, members: &[TaskId], group: JobId, plugin: &str, mut hindrance: Hindrance) {
    let job = session.cluster().job(group);
    let (needed, label) = (job.min_available(), session.cluster().job_label(group));
    let said = format!("{} of the {needed} pods that PodGroup {label} needs find a node", hindrance.together);
    hindrance.plugins.insert(plugin.to_owned());
    for &member in members {
        let own = hindrance.reasons.remove(&member);
        let reason = own.unwrap_or_else(|| Reason::refused_by_plugin(plugin, ExtensionPoint::Permit, said.clone()));
        session.explain_task(member, reason);
        // What helps one of them helps all.
        let refused = if hindrance.error { Refused::Error } else { Refused::By(hindrance.plugins.clone()) };
        put_back(session, member, refused);
    }
    session.end_waits();
    take_back(session);
}
