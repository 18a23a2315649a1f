//! Whether a node can have the volumes of a pod, and which: those that its claims have, those that are free and nearest in
//! size, and those that are made for it.

use krafla_framework::Why;
use krafla_model::labels::{Labels, NodeSelectorTerm};
use krafla_model::storage::{ClaimChoice, ClaimSpec, StorageCapacitySpec, StorageClassSpec, VolumeSpec};
use krafla_model::{ClusterState, Name, NodeId, TaskId};

use super::super::volume_claims::claims;

/// The claims of a pod, by what they need of a node.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Sorted {
    /// Where the volumes are that they have, unless every node can use them.
    pub(super) bound: Vec<Whereabouts>,
    /// Names of those that wait for a node, the smallest first.
    pub(super) waiting: Vec<Name>,
}

/// Where the volume of a claim is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Whereabouts {
    /// There is no such volume.
    Nowhere,
    /// On nodes that one of the terms matches.
    On(Vec<NodeSelectorTerm>),
}

impl Sorted {
    /// Whether no node is worse than another, so far as the volumes go.
    pub(super) fn suits_every_node(&self) -> bool {
        self.bound.is_empty() && self.waiting.is_empty()
    }
}

/// Whether what a pod's claims would get may make one node better than another: a volume that is there, or storage whose
/// driver says how much there is.
pub(super) fn may_rank(cluster: &ClusterState, task: TaskId) -> bool {
    let storage = cluster.storage();
    let tells = |claim: &ClaimSpec| {
        let driver = storage.class(&claim.class).and_then(|class| storage.driver(&class.provisioner));
        driver.is_some_and(|driver| driver.storage_capacity)
    };
    claims(cluster, task).filter_map(Result::ok).filter(|claim| !claim.is_bound()).any(|claim| {
        tells(claim)
            || storage.has_unclaimed(&claim.class)
            || storage.named_on(claim).next().is_some()
            || cluster.choice_for(claim, task).is_some()
    })
}

/// Sorts the claims of a pod. `Err`: no node will do as long as one of them is as it is.
pub(super) fn sort(cluster: &ClusterState, task: TaskId) -> Result<Sorted, Why> {
    let mut sorted = Sorted::default();
    let mut waiting: Vec<&ClaimSpec> = Vec::new();
    let mut unbound = false;
    for claim in claims(cluster, task) {
        let claim = claim?;
        let name = claim.name.as_str();
        if claim.lost {
            let volume = claim.volume.as_str();
            let told = format!("persistentvolumeclaim {name:?} bound to non-existent persistentvolume {volume:?}");
            return Err(Why::Told(told.into()));
        }
        if claim.deleting {
            return Err(Why::Told(format!("persistentvolumeclaim {name:?} is being deleted").into()));
        }
        if claim.is_bound() {
            match cluster.storage().volume(&claim.volume) {
                None => sorted.bound.push(Whereabouts::Nowhere),
                Some(volume) => sorted.bound.extend(volume.affinity.clone().map(Whereabouts::On)),
            }
        } else if cluster.storage().waits_for_consumer(claim) {
            waiting.push(claim);
        } else {
            unbound = true;
        }
    }
    if unbound {
        return Err(Why::Says("pod has unbound immediate PersistentVolumeClaims"));
    }
    waiting.sort_by_key(|claim| claim.request.unwrap_or(0));
    sorted.waiting = waiting.into_iter().map(|claim| claim.name.clone()).collect();
    Ok(sorted)
}

/// Why a node cannot have the volumes of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Misfit {
    /// A claim names a volume that is not there.
    NoVolume,
    /// The node cannot use a volume.
    Elsewhere,
    /// There is no volume for a claim, and none can be made.
    NothingToBind,
    /// There is not enough storage to make one.
    NoSpace,
}

impl Misfit {
    /// In Kubernetes' words.
    pub(super) const fn says(self) -> &'static str {
        match self {
            Self::NoVolume => "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
            Self::Elsewhere => "node(s) didn't match PersistentVolume's node affinity",
            Self::NothingToBind => "node(s) didn't find available persistent volumes to bind",
            Self::NoSpace => "node(s) did not have enough free storage",
        }
    }
}

/// What the claims of a pod that wait for a node would get on this one. Cost: the volumes of their classes that the node can
/// use, up to one that will do.
pub(super) fn fit(
    cluster: &ClusterState,
    task: TaskId,
    sorted: &Sorted,
    node: NodeId,
) -> Result<Vec<ClaimChoice>, Misfit> {
    let storage = cluster.storage();
    let labels = &cluster.node(node).spec.labels;
    for volume in &sorted.bound {
        match volume {
            Whereabouts::Nowhere => return Err(Misfit::NoVolume),
            Whereabouts::On(terms) if !terms.iter().any(|term| term.matches("", labels)) => {
                return Err(Misfit::Elsewhere);
            }
            Whereabouts::On(_) => {}
        }
    }
    let namespace = cluster.namespace_of(task);
    let mut choices: Vec<ClaimChoice> = Vec::new();
    let (mut to_match, mut to_provision) = (Vec::new(), Vec::new());
    for claim in sorted.waiting.iter().filter_map(|claim| storage.claim(namespace, claim)) {
        match already(cluster, task, claim) {
            None => to_match.push(claim),
            Some(Already::Volume(volume)) => {
                let volume = storage.volume(volume).filter(|volume| volume.is_usable_on(labels));
                choices.push(volume.map(|volume| take(claim, volume)).ok_or(Misfit::NothingToBind)?);
            }
            Some(Already::MadeFor(selected)) if *selected == **cluster.node(node).name() => to_provision.push(claim),
            Some(Already::MadeFor(_)) => return Err(Misfit::NothingToBind),
        }
    }
    for claim in to_match {
        match find(cluster, task, claim, labels, &choices) {
            Some(volume) => choices.push(take(claim, volume)),
            None => to_provision.push(claim),
        }
    }
    for claim in to_provision {
        let class = storage.class(&claim.class).filter(|class| class.is_provisioned() && class.allows(labels));
        if space(cluster, claim, class.ok_or(Misfit::NothingToBind)?, labels) == Space::TooLittle {
            return Err(Misfit::NoSpace);
        }
        choices.push(ClaimChoice::Provision { claim: claim.name.clone() });
    }
    Ok(choices)
}

fn take(claim: &ClaimSpec, volume: &VolumeSpec) -> ClaimChoice {
    ClaimChoice::Volume { claim: claim.name.clone(), volume: volume.name.clone() }
}

/// What has been decided for a claim before.
enum Already<'a> {
    /// It gets this volume.
    Volume(&'a Name),
    /// It gets one that is made for this node.
    MadeFor(&'a str),
}

/// By the claim's own word, or for another pod that uses it too.
fn already<'a>(cluster: &'a ClusterState, task: TaskId, claim: &'a ClaimSpec) -> Option<Already<'a>> {
    if let Some(node) = &claim.selected_node {
        return Some(Already::MadeFor(node));
    }
    let (choice, node) = cluster.choice_for(claim, task)?;
    match choice {
        ClaimChoice::Volume { volume, .. } => Some(Already::Volume(volume)),
        ClaimChoice::Provision { .. } => Some(Already::MadeFor(cluster.node(node).name())),
        ClaimChoice::Devices(_) => None,
    }
}

/// The volume for a claim on a node with these labels: one that names the claim, or the smallest that will do.
fn find<'a>(
    cluster: &'a ClusterState,
    task: TaskId,
    claim: &ClaimSpec,
    labels: &Labels,
    taken: &[ClaimChoice],
) -> Option<&'a VolumeSpec> {
    let storage = cluster.storage();
    if let Some(named) = storage.named_on(claim).find(|volume| volume.is_large_enough(claim)) {
        return named.is_usable_on(labels).then_some(named);
    }
    let is_taken = |volume: &VolumeSpec| {
        let here = |choice: &ClaimChoice| matches!(choice, ClaimChoice::Volume { volume: v, .. } if *v == volume.name);
        taken.iter().any(here) || cluster.is_chosen(volume, task)
    };
    storage.find_unclaimed(&claim.class, labels, |volume| volume.may_serve(claim) && !is_taken(volume))
}

/// What is known of the storage for a volume that has to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    /// Its driver does not say how much there is.
    Untold,
    /// There is enough, of so many bytes in all.
    Of(i64),
    /// No place that the node can use has enough.
    TooLittle,
}

/// The storage of a class that a volume for a claim would be made of.
pub(super) fn space(cluster: &ClusterState, claim: &ClaimSpec, class: &StorageClassSpec, labels: &Labels) -> Space {
    let storage = cluster.storage();
    let Some(size) = claim.request else { return Space::Untold };
    if !storage.driver(&class.provisioner).is_some_and(|driver| driver.storage_capacity) {
        return Space::Untold;
    }
    let serves = |one: &&StorageCapacitySpec| {
        one.class == class.name
            && one.largest.is_some_and(|largest| largest >= size)
            && one.nodes.as_ref().is_some_and(|nodes| nodes.matches(labels))
    };
    storage.capacities().find(serves).map_or(Space::TooLittle, |one| Space::Of(one.capacity))
}
