//! Where the pod that takes the place of another would go: the scheduler's own search, among the nodes that serve.

use krafla_framework::{Found, Room, SearchLimits, Statement};
use krafla_model::{NodeId, Reservation, TaskId, Time};

/// Room that is free, not room that somebody is about to leave.
const NOW: SearchLimits = SearchLimits { may_start: true, may_wait: false };

/// The best of some nodes for the pod that replaces `victim`. Room is kept for it there until then.
pub(crate) fn place(
    statement: &mut Statement<'_, '_>,
    victim: TaskId,
    among: &[NodeId],
    until: Time,
) -> Option<NodeId> {
    // The search looks for the best; where that is taken by what is kept for others, the next one is asked.
    let mut left: Vec<NodeId> = among.to_vec();
    while !left.is_empty() {
        let Found::Node { node, .. } = statement.session_mut().find_node_among(victim, &left, NOW) else { return None };
        if keep(statement, victim, node, until) {
            return Some(node);
        }
        left.retain(|other| *other != node);
    }
    None
}

/// Keeps room on a node for the pod that replaces `victim`: if that much is free now, beside what is kept for others, and
/// its queue may have it.
fn keep(statement: &mut Statement<'_, '_>, victim: TaskId, node: NodeId, until: Time) -> bool {
    let now = statement.session();
    let (cluster, task) = (now.cluster(), now.cluster().task(victim));
    let (job, shape) = (task.job, task.shape);
    if let Some(queue) = job.and_then(|job| cluster.job(job).queue) {
        let may_have_it = now.plugins().allocatable(cluster, queue, victim, Room::AfterRelease).is_none();
        if !may_have_it || !cluster.queue(queue).is_open() {
            return false;
        }
    }
    let host = cluster.node(node);
    let mut taken = host.books().used.clone();
    for kept in cluster.reservations().filter(|kept| kept.node == node) {
        taken.add(&cluster.shape(kept.shape).request);
    }
    if cluster.shape_of(victim).request.first_over(&taken, &host.allocatable).is_some() {
        return false;
    }
    statement.reserve(Reservation { job, shape, node, until }).is_ok()
}
