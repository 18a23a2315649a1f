//! Resources that no node is asked for: something outside of the scheduler looks after them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::name::Name;
use crate::resources::Resources;
use crate::shape::Shape;
use crate::state::ClusterState;

/// Resources that pods may ask for beyond what a node has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unchecked {
    /// Their names.
    pub names: BTreeSet<Name>,
    /// What stands before the `/` of such names.
    pub groups: BTreeSet<Name>,
}

impl Unchecked {
    /// Whether the resource is one of them. What Kubernetes itself defines is never: those have no domain, or one of its
    /// own.
    fn has(&self, resource: &str) -> bool {
        let Some((group, _)) = resource.split_once('/') else { return false };
        let own = group == "kubernetes.io" || group.ends_with(".kubernetes.io");
        !own && (self.names.contains(resource) || self.groups.contains(group))
    }
}

impl ClusterState {
    /// From now on nodes are not asked for these resources, by the name under which pods ask for their scheduler; those
    /// that name none go by the first.
    pub fn leave_unchecked(&mut self, by_scheduler: BTreeMap<Name, Unchecked>) {
        if self.unchecked != by_scheduler {
            self.unchecked = by_scheduler;
            self.room_version += 1;
            self.touch_all_nodes();
        }
    }

    /// What a node has to have for pods of a shape.
    pub fn asked_of_nodes<'s>(&self, shape: &'s Shape) -> Cow<'s, Resources> {
        let scheduler = &shape.spec.scheduler_name;
        let unchecked = match self.unchecked.first_key_value() {
            None => return Cow::Borrowed(&shape.request),
            Some((_, first)) if scheduler.is_empty() => Some(first),
            Some(_) => self.unchecked.get(scheduler),
        };
        let left_out = |unchecked: &Unchecked| {
            let ids = shape.request.iter().map(|(id, _)| id);
            ids.filter(|id| unchecked.has(self.names.name(*id).as_str())).collect::<Vec<_>>()
        };
        let left_out = unchecked.map(left_out).unwrap_or_default();
        if left_out.is_empty() {
            return Cow::Borrowed(&shape.request);
        }
        let mut asked = shape.request.clone();
        for id in left_out {
            asked.set(id, 0);
        }
        Cow::Owned(asked)
    }
}
