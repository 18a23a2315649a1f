//! `GangScheduling`: Kubernetes' own gangs. A pod enters the queue when its group is there and has as many pods as it
//! needs. All of the group that wait are tried in one cycle, and placed if they are enough with those that are placed already.

use krafla_framework::{NodePlugin, Permit, WaitingPods, Why};
use krafla_model::cluster_event::{ActionType, EventResource};
use krafla_model::{ClusterState, JobId, NodeId, TaskId};

/// How long a pod waits for the others at Permit, in milliseconds.
const WAIT_MS: i64 = 5 * 60 * 1_000;

/// See the module.
pub struct GangScheduling;

impl GangScheduling {
    /// The plugin's name.
    pub const NAME: &'static str = "GangScheduling";
}

impl NodePlugin for GangScheduling {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn pre_enqueue(&self, cluster: &ClusterState, task: TaskId) -> Result<(), Why> {
        let pod = cluster.task(task);
        let Some(name) = &pod.group else { return Ok(()) };
        let Some(id) = pod.job else { return Err(Why::Told(format!("waiting for the PodGroup {name}").into())) };
        let group = cluster.job(id);
        let (min, pods) = (group.min_available(), group.n_valid());
        if min > 1 && pods < min {
            let why = format!("waiting for minCount pods of PodGroup {name}: {pods} of {min} are there");
            return Err(Why::Told(why.into()));
        }
        Ok(())
    }

    fn events(&self) -> Option<&'static [(EventResource, ActionType)]> {
        const EVENTS: [(EventResource, ActionType); 2] =
            [(EventResource::Pod, ActionType::ADD), (EventResource::PodGroup, ActionType::ADD.and(ActionType::UPDATE))];
        Some(&EVENTS)
    }

    fn pod_group(&self, cluster: &ClusterState, task: TaskId) -> Option<JobId> {
        cluster.task(task).job.filter(|group| cluster.job(*group).min_available() > 1)
    }

    fn has_a_say_in_placing(&self, cluster: &ClusterState, task: TaskId) -> bool {
        cluster.task(task).job.is_some()
    }

    /// Whoever comes here with too few others, because a part of the group was sent back, waits for it.
    fn permit(&mut self, cluster: &ClusterState, task: TaskId, _: NodeId, waiting: &mut WaitingPods) -> Permit {
        let Some(id) = cluster.task(task).job else { return Permit::Approve };
        let group = cluster.job(id);
        let together = group.counts().sum(|status| status.is_allocated());
        if together < group.min_available() {
            let siblings = group.tasks().filter(|sibling| *sibling != task);
            siblings.for_each(|sibling| waiting.activate(sibling));
            return Permit::Wait { timeout_ms: WAIT_MS };
        }
        for member in group.tasks() {
            if let Some(pod) = waiting.get_mut(&cluster.task(member).uid) {
                pod.allow(Self::NAME);
            }
        }
        Permit::Approve
    }
}

#[cfg(test)]
mod tests {
    use krafla_framework::{NodePlugin, Permit, WaitingPods};
    use krafla_model::TaskStatus;
    use krafla_testkit::{Scene, task_named};

    use super::{GangScheduling, WAIT_MS};

    //
    #[test]
    fn pods_of_a_gang_wait_at_the_door_until_enough_are_there() {
        let gang = |pods| Scene::new().node("n", "8c").job("g", |job| job.min(3).pending(pods, "1c")).build();
        for (pods, let_in) in [(2, false), (3, true)] {
            let cluster = gang(pods);
            let said = GangScheduling.pre_enqueue(&cluster, task_named(&cluster, "g-0"));
            assert_eq!(said.is_ok(), let_in, "{said:?}");
        }
        let alone = Scene::new().node("n", "8c").job("a", |job| job.pending(1, "1c")).build();
        assert_eq!(GangScheduling.pre_enqueue(&alone, task_named(&alone, "a-0")), Ok(()));
    }

    #[test]
    fn pods_of_a_gang_wait_for_each_other_at_permit_and_go_together() {
        let mut cluster = Scene::new().node("n", "8c").job("g", |job| job.min(2).pending(3, "1c")).build();
        let node = cluster.find_node("n").expect("a node");
        let (first, second) = (task_named(&cluster, "g-0"), task_named(&cluster, "g-1"));
        let mut waiting = WaitingPods::default();
        cluster.allocate(first, node).expect("there is room");
        let said = GangScheduling.permit(&cluster, first, node, &mut waiting);
        assert_eq!(said, Permit::Wait { timeout_ms: WAIT_MS });
        assert_eq!(waiting.take_activated().len(), 2, "the others are to come soon");
        let uid = cluster.task(first).uid.clone();
        waiting.add(first, uid, cluster.now(), [(GangScheduling::NAME, WAIT_MS)].into());
        cluster.allocate(second, node).expect("there is room");
        assert_eq!(GangScheduling.permit(&cluster, second, node, &mut waiting), Permit::Approve);
        let (pod, _) = waiting.take_ended(cluster.now()).expect("it is let go");
        assert_eq!((pod.task, cluster.task(first).status()), (first, TaskStatus::Allocated));
    }
}
