//! What an event would change. Watches repeat themselves: a kubelet's heartbeat, a status that this scheduler wrote, a
//! list after a lost connection. Most of it is known already, and must cost no session.

use std::sync::Arc;

use crate::apply::status_of;
use crate::budget::BudgetSpec;
use crate::event::Event;
use crate::ids::TaskId;
use crate::job::PodGroupSpec;
use crate::pod::PodSpec;
use crate::state::ClusterState;

/// What an event brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// Nothing: all of it is known, or it is older than what is known.
    Nothing,
    /// Something to be noted that gives a session nothing to do.
    Quiet,
    /// Something that a session may make use of.
    Something,
}

impl ClusterState {
    /// What `event` brings. Cost: one comparison of the object.
    pub fn news(&self, event: &Event) -> News {
        let known = match event {
            Event::Pod(pod) => {
                return self.find_task(&pod.uid).map_or(News::Something, |task| self.pod_news(task, pod));
            }
            Event::PodGroup(group) => return self.group_news(group),
            Event::Node(spec) => self.find_node(&spec.name).is_some_and(|id| self.node(id).spec == *spec),
            Event::Queue(spec) => self.find_queue(&spec.name).is_some_and(|id| self.queue(id).spec == *spec),
            Event::PriorityClass(class) => self.priority_classes.get(&class.name) == Some(class),
            Event::Quota(quota) => self.quotas.get(&(quota.namespace.clone(), quota.name.clone())) == Some(quota),
            Event::ElasticQuota(spec) => {
                self.elastic_quota_specs.get(&(spec.namespace.clone(), spec.name.clone())) == Some(spec)
            }
            Event::ElasticQuotaGone { namespace, name } => {
                !self.elastic_quota_specs.contains_key(&(namespace.clone(), name.clone()))
            }
            Event::Budget(budget) => return self.budget_news(budget),
            Event::Storage(object) => return self.storage_news(object),
            Event::StorageGone(key) => return self.storage_gone_news(key),
            // A new namespace has no pods yet, and a new workload none that wait.
            Event::Namespace(spec) => match self.namespaces.get(&spec.name) {
                None => return News::Quiet,
                Some(labels) => *labels == spec.labels,
            },
            Event::NamespaceGone(name) => !self.namespaces.contains_key(name),
            Event::Workload(spec) => match self.workloads.get(&(spec.namespace.clone(), spec.workload.clone())) {
                None => return News::Quiet,
                Some(selector) => *selector == spec.selector,
            },
            Event::WorkloadGone { namespace, workload } => {
                !self.workloads.contains_key(&(namespace.clone(), workload.clone()))
            }
            Event::ResourceClaim(spec) => {
                let known = self.dynamic_resources.claim(&spec.namespace, &spec.name);
                known.is_some_and(|known| *known.spec() == **spec)
            }
            Event::ResourceClaimGone { namespace, name } => self.dynamic_resources.claim(namespace, name).is_none(),
            Event::ResourceSlice(spec) => self.dynamic_resources.slice(&spec.name) == Some(spec),
            Event::ResourceSliceGone(name) => self.dynamic_resources.slice(name).is_none(),
            Event::DeviceClass(spec) => self.dynamic_resources.class(&spec.name) == Some(spec),
            Event::NodeUsage(_) => return News::Something,
            // Nobody is placed by it.
            Event::PodUsage(_) => return News::Quiet,
            Event::DeviceClassGone(name) => self.dynamic_resources.class(name).is_none(),
            Event::BudgetGone { namespace, name } => !self.budgets.contains_key(&(namespace.clone(), name.clone())),
            Event::PodGone(uid) => self.find_task(uid).is_none(),
            Event::PodGroupGone { namespace, name } => self.find_job(namespace, name).is_none(),
            Event::NodeGone(name) => self.find_node(name).is_none(),
            Event::QueueGone(name) => self.find_queue(name).is_none(),
            Event::PriorityClassGone(name) => self.priority_classes.get(name).is_none(),
            Event::QuotaGone { namespace, name } => !self.quotas.contains_key(&(namespace.clone(), name.clone())),
        };
        if known { News::Nothing } else { News::Something }
    }

    fn pod_news(&self, id: TaskId, pod: &PodSpec) -> News {
        let task = self.task(id);
        let shape = &self.shape_of(id).spec;
        let reported = status_of(pod);
        // A pod never loses its node, so a report without one is older than what is known.
        let same_place = (task.status.is_committed() && reported.is_waiting())
            || (task.status == reported && task.node.map(|node| self.node(node).name()) == pod.node.as_ref());
        let same = same_place
            && (Arc::ptr_eq(shape, &pod.shape) || *shape == pod.shape)
            && task.priority == pod.priority
            && task.gates as usize == pod.gates.len()
            && task.phase == pod.phase
            && task.group == pod.group
            && *task.claims == *pod.claims;
        let same_rest = task.nominated == pod.nominated
            && task.deleting == pod.deleting
            && (pod.scheduled_at.is_none() || task.scheduled_at == pod.scheduled_at)
            && (pod.started.is_none() || task.started == pod.started)
            && (pod.details.is_none() || task.details == pod.details)
            && (pod.attained_ms.is_none() || task.attained_ms == pod.attained_ms);
        match same {
            true if same_rest => News::Nothing,
            true => News::Quiet,
            false => News::Something,
        }
    }

    /// A budget that allows no more than before, or is new, only protects.
    fn budget_news(&self, budget: &BudgetSpec) -> News {
        match self.budgets.get(&(budget.namespace.clone(), budget.name.clone())).map(|known| &known.spec) {
            Some(known) if known == budget => News::Nothing,
            Some(known) if known.selector != budget.selector || known.allowed < budget.allowed => News::Something,
            _ => News::Quiet,
        }
    }

    /// The phase is written by this scheduler, and comes back to it.
    fn group_news(&self, group: &PodGroupSpec) -> News {
        let Some(id) = self.find_job(&group.namespace, &group.name) else { return News::Something };
        let known = &self.job(id).spec;
        let (phase, phase_missing) = (known.phase, known.phase_missing);
        match *known == (PodGroupSpec { phase, phase_missing, ..group.clone() }) {
            true if (phase, phase_missing) == (group.phase, group.phase_missing) => News::Nothing,
            true => News::Quiet,
            false => News::Something,
        }
    }
}
