//! What became of the containers of a pod, as strategies ask.

use krafla_model::Name;
use krafla_model::pod_details::{ContainerDetails, ContainerKind, PodDetails};

/// Which containers count beside the main ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Including {
    pub(super) init: bool,
    pub(super) ephemeral: bool,
}

/// The containers that count.
pub(super) fn counted(details: &PodDetails, including: Including) -> impl Iterator<Item = &ContainerDetails> {
    details.containers.iter().filter(move |one| match one.kind {
        ContainerKind::Main => true,
        ContainerKind::Init => including.init,
        ContainerKind::Ephemeral => including.ephemeral,
    })
}

/// Why the pod or one of its containers is as it is: the reason of the pod, and those for which containers wait or ended.
pub(super) fn reasons(details: &PodDetails, including: Including) -> impl Iterator<Item = &Name> {
    let of_containers = counted(details, including).flat_map(|one| [&one.waiting, &one.terminated]);
    of_containers.chain([&details.reason]).filter(|reason| !reason.is_empty())
}

/// Codes with which containers ended.
pub(super) fn exit_codes(details: &PodDetails, including: Including) -> impl Iterator<Item = i32> {
    counted(details, including).filter_map(|one| one.exit_code)
}
