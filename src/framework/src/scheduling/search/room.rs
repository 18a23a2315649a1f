//! Whether a node has room: what NodeResourcesFit asks, and the devices one by one. The search asks it for every profile.

use std::borrow::Cow;

use krafla_model::node::NodeBooks;
use krafla_model::{ClusterState, NodeId, ResourceId, Resources, Shape};

use super::{Room, SearchLimits};
use crate::scheduling::profile::Profile;
use crate::scheduling::verdict::{Verdict, Why};

/// What a node holds for others.
pub(super) fn held<'a>(profile: &Profile, books: &'a NodeBooks) -> Cow<'a, Resources> {
    if books.pipelined.is_zero() || !profile.promises_beside() {
        return Cow::Borrowed(&books.used);
    }
    let mut held = books.used.clone();
    held.add(&books.pipelined);
    Cow::Owned(held)
}

/// What a node holds for others of one resource.
pub(super) fn held_of(profile: &Profile, books: &NodeBooks, resource: ResourceId) -> i64 {
    let promised = if profile.promises_beside() { books.pipelined.get(resource) } else { 0 };
    books.used.get(resource) + promised
}

/// Whether a node has room for a shape, now or after a release: NodeResourcesFit, and the devices one by one.
pub(super) fn room_for(
    profile: &Profile,
    cluster: &ClusterState,
    shape: &Shape,
    id: NodeId,
    limits: SearchLimits,
) -> Result<Room, Verdict> {
    let node = cluster.node(id);
    let books = node.books();
    let request = cluster.asked_of_nodes(shape);
    let short = request.first_over(&held(profile, books), &node.allocatable);
    // Room that is promised to a task that waits is not free, even where it would fit now.
    let unpromised =
        books.pipelined.is_zero() || request.first_over(&Default::default(), &node.future_idle()).is_none();
    let devices = books.devices.choose(node.device_request(shape)).is_some();
    if limits.may_start && short.is_none() && unpromised && devices {
        return Ok(Room::Now);
    }
    // A task that may not start yet, for its queue's sake, may wait anywhere. Devices are not looked at here: which of
    // them will be free is known only then.
    let released = !books.releasing.is_zero() || !limits.may_start;
    if limits.may_wait && released && request.first_over(&Default::default(), &node.future_idle()).is_none() {
        return Ok(Room::AfterRelease);
    }
    match short {
        Some(short) if short.asked > short.limit => Err(Verdict::Unresolvable(Why::Short(short))),
        Some(short) => Err(Verdict::Unschedulable(Why::Short(short))),
        None if !unpromised => {
            Err(Verdict::Unschedulable(Why::Says("node(s) had promised what is free to a waiting pod")))
        }
        None if limits.may_start => {
            Err(Verdict::Unschedulable(Why::Says("node(s) had no GPU device with enough left")))
        }
        None => Err(Verdict::Unschedulable(Why::Says("nothing is being released on the node(s)"))),
    }
}
