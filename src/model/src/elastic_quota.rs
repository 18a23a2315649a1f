//! ElasticQuotas: what a namespace is sure of, and the most it may hold, as the CapacityScheduling plugin of
//! scheduler-plugins has them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cluster_event::{ActionType, EventResource};
use crate::event::Problem;
use crate::ids::TaskId;
use crate::name::Name;
use crate::resources::{Amounts, Limit, Limits, ResourceId, Resources};
use crate::state::ClusterState;

/// An ElasticQuota. Of several in a namespace the first by name counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElasticQuotaSpec {
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// What the namespace is sure of; nothing of what is left out.
    pub min: Amounts,
    /// The most that it may hold; what is left out has no limit.
    pub max: Amounts,
}

/// The quota of a namespace, and what its pods hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ElasticQuota {
    /// What the namespace is sure of.
    pub min: Resources,
    /// The most that it may hold.
    pub max: Limits,
    /// What its pods on nodes ask for, those that terminate included.
    pub used: Resources,
}

impl ElasticQuota {
    /// Whether the namespace, with `more`, would hold more than it is sure of. Pod slots do not count.
    pub fn is_over_min_with(&self, more: &Resources) -> bool {
        exceeds(&self.used.plus(more), |id| self.min.get(id))
    }

    /// The first resource of which the namespace, with `more`, would hold more than it may: it, how much that would be,
    /// and the limit.
    pub fn over_max_with(&self, more: &Resources) -> Option<(ResourceId, i64, i64)> {
        self.used.plus(more).iter().filter(|(id, _)| *id != ResourceId::PODS).find_map(|(id, held)| {
            match self.max.get(id) {
                Limit::To(limit) if held > limit => Some((id, held, limit)),
                _ => None,
            }
        })
    }
}

fn exceeds(held: &Resources, limit: impl Fn(ResourceId) -> i64) -> bool {
    held.iter().any(|(id, held)| id != ResourceId::PODS && held > limit(id))
}

impl ClusterState {
    /// The quota of a namespace, if it has one.
    pub fn elastic_quota(&self, namespace: &Name) -> Option<&ElasticQuota> {
        self.elastic_quotas.get(namespace)
    }

    /// All namespaces with a quota.
    pub fn elastic_quotas(&self) -> impl Iterator<Item = (&Name, &ElasticQuota)> {
        self.elastic_quotas.iter()
    }

    pub(crate) fn apply_elastic_quota(&mut self, spec: ElasticQuotaSpec, problems: &mut Vec<Problem>) {
        let namespace = spec.namespace.clone();
        self.note_other(EventResource::ElasticQuota, ActionType::ADD.and(ActionType::UPDATE));
        self.elastic_quota_specs.insert((namespace.clone(), spec.name.clone()), spec);
        self.refresh_elastic_quota(&namespace, problems);
    }

    pub(crate) fn remove_elastic_quota(&mut self, namespace: &Name, name: &Name, problems: &mut Vec<Problem>) {
        self.note_other(EventResource::ElasticQuota, ActionType::DELETE);
        self.elastic_quota_specs.remove(&(namespace.clone(), name.clone()));
        self.refresh_elastic_quota(namespace, problems);
    }

    /// Cost: linear in all tasks if the namespace had no quota, else small.
    fn refresh_elastic_quota(&mut self, namespace: &Name, problems: &mut Vec<Problem>) {
        self.version += 1;
        self.room_version += 1;
        let first = (namespace.clone(), Name::default());
        let of_it = self.elastic_quota_specs.range(first..).next().filter(|((of, _), _)| of == namespace);
        let Some((_, spec)) = of_it else {
            self.elastic_quotas.remove(namespace);
            return;
        };
        let spec = spec.clone();
        let label = format!("elasticquota {namespace}/{}", spec.name);
        let min = self.intern_all(&spec.min, &label, problems);
        let max = self.intern_limits(&spec.max, &label, problems);
        let used = match self.elastic_quotas.get(namespace) {
            Some(known) => known.used.clone(),
            None => self.recount_elastic_use().remove(namespace).unwrap_or_default(),
        };
        self.elastic_quotas.insert(namespace.clone(), ElasticQuota { min, max, used });
    }

    /// What the pods of each namespace hold, counted anew.
    pub(crate) fn recount_elastic_use(&self) -> BTreeMap<Name, Resources> {
        let mut held: BTreeMap<Name, Resources> = BTreeMap::new();
        for (id, _) in self.tasks.iter().filter(|(id, _)| self.counts_in_elastic_quota(*id)) {
            let shape = self.shape_of(id);
            held.entry(shape.spec.namespace.clone()).or_default().add(&shape.request);
        }
        held
    }

    fn counts_in_elastic_quota(&self, id: TaskId) -> bool {
        let task = &self.tasks[id];
        task.node.is_some() && task.status.holds_node()
    }

    /// Adds a task to the use of its namespace, or takes it out.
    pub(crate) fn count_in_elastic_quota(&mut self, id: TaskId, is_there: bool) {
        if self.elastic_quotas.is_empty() || !self.counts_in_elastic_quota(id) {
            return;
        }
        let shape = self.shapes.get(self.tasks[id].shape);
        if let Some(quota) = self.elastic_quotas.get_mut(&shape.spec.namespace) {
            match is_there {
                true => quota.used.add(&shape.request),
                false => quota.used.sub(&shape.request),
            }
        }
    }
}
