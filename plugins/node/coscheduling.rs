//! `Coscheduling`: gangs at Permit. Each pod of a group takes its node and waits there until as many are together as the
//! group needs; if they do not come together in time, all give their nodes back.
//!
//! How many are together is read from the books of the group, so that a pod counts once, by its UID, whatever its name.

use krafla_framework::conf::kube::args::CoschedulingArgs;
use krafla_framework::registry::ArgumentProblem;
use krafla_framework::{
    CycleState, FailedAttempt, NodePlugin, Permit, PostFilter, PreFilter, QueuedAt, Rank, Value, WaitingPods, Why,
};
use krafla_model::cluster_event::{ActionType, EventResource};
use krafla_model::{ClusterState, JobId, NodeId, Resources, TaskId};

/// Wait of a pod whose group and configuration say nothing, in milliseconds.
const USUAL_WAIT_MS: i64 = 60_000;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coscheduling {
    /// `permitWaitingTimeSeconds`, in milliseconds; 0 is the usual wait.
    pub permit_wait_ms: i64,
    /// `podGroupBackoffSeconds`, in milliseconds: for so long after a rejection nobody of the group is tried; 0 is never.
    pub group_backoff_ms: i64,
    /// `podGroupRejectPercentage`: with no more than this part missing, those that wait go on waiting when one fails.
    pub reject_percentage: u32,
}

impl Default for Coscheduling {
    fn default() -> Self {
        Self { permit_wait_ms: USUAL_WAIT_MS, group_backoff_ms: 0, reject_percentage: 10 }
    }
}

impl Coscheduling {
    /// The plugin's name.
    pub const NAME: &'static str = "Coscheduling";

    /// From `CoschedulingArgs`. The spellings of older releases are the configuration compiler's concern.
    pub fn from_args(args: &Value) -> Result<Self, Vec<ArgumentProblem>> {
        let args = CoschedulingArgs::read(args)?;
        Ok(Self {
            permit_wait_ms: args.permit_waiting_time_seconds.saturating_mul(1_000),
            group_backoff_ms: args.pod_group_backoff_seconds.saturating_mul(1_000),
            reject_percentage: u32::try_from(args.pod_group_reject_percentage).unwrap_or(100),
        })
    }
}

impl NodePlugin for Coscheduling {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    /// By priority; then the group that failed last goes behind those that did not, else the older goes first.
    #[allow(clippy::cast_precision_loss, reason = "milliseconds since 1970")]
    fn queue_sort(&self, cluster: &ClusterState, task: TaskId, queued: QueuedAt, rank: &mut Rank) {
        rank.descending(cluster.task(task).priority);
        let group = cluster.task(task).job.map(|job| cluster.job(job));
        let time = group.map_or(queued.first_attempt, |group| group.failed_at.unwrap_or(group.spec.created));
        rank.ascending(time.0 as f64);
    }

    /// Turns members away whose group cannot get together as things are. No eviction would change that.
    fn pre_filter(&self, cluster: &ClusterState, task: TaskId, _: &mut CycleState) -> PreFilter {
        let Some(id) = cluster.task(task).job else { return PreFilter::Skip };
        let (group, label) = (cluster.job(id), cluster.job_label(id));
        let reject = |why: String| PreFilter::Reject(Why::Told(why.as_str().into()));
        if group.retry_at > cluster.now() {
            let left = (group.retry_at.0 - cluster.now().0 + 999) / 1_000;
            return reject(format!("podGroup {label} failed recently; it is tried again in {left} s"));
        }
        let min = group.min_available();
        let pods = group.n_valid();
        let gated = group.counts().of(krafla_model::TaskStatus::Gated);
        if pods.saturating_sub(gated) < min {
            return reject(format!(
                "pre-filter pod cannot find enough sibling pods, current pods number: {pods}, of which {gated} are gated, minMember of group {label}: {min}"
            ));
        }
        match short_of_minimum(cluster, id) {
            Some(what) => reject(format!("the nodes together lack {what} for the minResources of podGroup {label}")),
            None => PreFilter::Skip,
        }
    }

    fn events(&self) -> Option<&'static [(EventResource, ActionType)]> {
        const GROUP: ActionType = ActionType::ADD.and(ActionType::UPDATE);
        Some(&[(EventResource::Pod, ActionType::ADD), (EventResource::PodGroup, GROUP)])
    }

    /// A member found no node: if too many are missing, nobody waits on for them.
    fn post_filter(&self, attempt: &mut FailedAttempt<'_>) -> PostFilter {
        let cluster = attempt.cluster();
        let Some(id) = cluster.task(attempt.task).job else { return PostFilter::Unschedulable(String::new()) };
        let group = cluster.job(id);
        let (min, has) = (group.min_available(), together(cluster, id));
        let missing = min.saturating_sub(has);
        if missing == 0 || u64::from(missing) * 100 <= u64::from(min) * u64::from(self.reject_percentage) {
            return PostFilter::Unschedulable(String::new());
        }
        let label = cluster.job_label(id);
        let pause = (self.group_backoff_ms > 0 && group.n_valid() >= min).then_some(self.group_backoff_ms);
        let members = members(cluster, id);
        let waiting = attempt.waiting();
        reject_all(waiting, &members, &format!("optimistic rejection in PostFilter: {has} of {min} members have room"));
        waiting.fail_group(id);
        if let Some(ms) = pause {
            waiting.pause_group(id, ms);
        }
        PostFilter::Unschedulable(format!("podGroup {label} is rejected: {has} of {min} members have room"))
    }

    fn has_a_say_in_placing(&self, cluster: &ClusterState, task: TaskId) -> bool {
        cluster.task(task).group.is_some() || cluster.task(task).job.is_some()
    }

    fn permit(&mut self, cluster: &ClusterState, task: TaskId, _: NodeId, waiting: &mut WaitingPods) -> Permit {
        if cluster.task(task).group.is_none() {
            return Permit::Approve;
        }
        let Some(id) = cluster.task(task).job else { return Permit::Reject(Why::Says("PodGroup not found")) };
        let (group, has) = (cluster.job(id), together(cluster, id));
        let members = members(cluster, id);
        if has >= group.min_available() {
            waiting.restore_group(id);
            for uid in &members {
                if let Some(pod) = waiting.get_mut(uid) {
                    pod.allow(Self::NAME);
                }
            }
            return Permit::Approve;
        }
        if has == 1 {
            let siblings = group.tasks().filter(|sibling| *sibling != task);
            siblings.for_each(|sibling| waiting.activate(sibling));
        }
        let configured = if self.permit_wait_ms > 0 { self.permit_wait_ms } else { USUAL_WAIT_MS };
        Permit::Wait { timeout_ms: group.spec.schedule_timeout_ms.unwrap_or(configured) }
    }

    /// One member fell out: the others do not wait for it.
    fn unreserve(&mut self, cluster: &ClusterState, task: TaskId, _: NodeId, waiting: &mut WaitingPods) {
        let Some(id) = cluster.task(task).job else { return };
        let members = members(cluster, id);
        let (has, min) = (together(cluster, id), cluster.job(id).min_available());
        reject_all(waiting, &members, &format!("rejection in Unreserve: a member of {has} fell out, {min} are needed"));
        waiting.fail_group(id);
    }
}

/// How many members have a node, in memory or for good.
fn together(cluster: &ClusterState, group: JobId) -> u32 {
    cluster.job(group).counts().sum(|status| status.is_allocated())
}

fn members(cluster: &ClusterState, group: JobId) -> Vec<krafla_model::Name> {
    cluster.job(group).tasks().map(|task| cluster.task(task).uid.clone()).collect()
}

fn reject_all(waiting: &mut WaitingPods, members: &[krafla_model::Name], why: &str) {
    for uid in members {
        if let Some(pod) = waiting.get_mut(uid) {
            pod.reject(Coscheduling::NAME, Why::Told(why.into()));
        }
    }
}

/// What all nodes together lack for a group's `minResources`, with what the group holds counted as free.
fn short_of_minimum(cluster: &ClusterState, id: JobId) -> Option<String> {
    let group = cluster.job(id);
    let mut needed = group.min_resources.clone()?;
    needed.set(krafla_model::ResourceId::PODS, i64::from(group.min_available()));
    let mut free = cluster.totals().allocatable.clone();
    free.sub(&cluster.totals().used);
    let free = free.plus(&cluster.overdraft()).plus(&group.held().allocated);
    let short = needed.first_over(&Resources::default(), &free)?;
    let names = cluster.names();
    let (asked, has) = (names.format(short.resource, short.asked), names.format(short.resource, short.limit.max(0)));
    Some(format!("{}: {asked} needed, {has} free", names.name(short.resource)))
}

#[cfg(test)]
#[path = "coscheduling_tests.rs"]
mod tests;
