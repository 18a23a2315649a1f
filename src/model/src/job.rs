//! A job: one PodGroup and its pods, with the counts that gangs and fair shares are decided on.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::budget::Aim;
use crate::ids::{QueueId, TaskId};
use crate::name::Name;
use crate::resources::{Amounts, Resources};
use crate::subgroup::{NetworkTopology, SubGroupPolicy};
use crate::task_status::{N_STATUSES, TaskStatus};
use crate::time::Time;

/// Phase of a PodGroup, as Volcano writes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum JobPhase {
    /// Not admitted to its queue yet.
    #[default]
    Pending,
    /// Admitted; its pods may be made and placed.
    Inqueue,
    /// At least its minimum is placed.
    Running,
    /// Some pods run and the gang cannot be completed.
    Unknown,
    /// All of its pods ended.
    Completed,
}

impl JobPhase {
    /// The phase's name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Inqueue => "Inqueue",
            Self::Running => "Running",
            Self::Unknown => "Unknown",
            Self::Completed => "Completed",
        }
    }
}

/// A PodGroup as the edge reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodGroupSpec {
    /// Its identity.
    pub uid: Name,
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// Its queue, by name.
    pub queue: Name,
    /// When it was made.
    pub created: Time,
    /// Its PriorityClass, empty if none.
    pub priority_class: Name,
    /// Pods needed to start.
    pub min_member: u32,
    /// Pods needed of each role; ignored when their sum is over `min_member`.
    pub min_task_member: Vec<(Name, u32)>,
    /// What its minimum needs, for admission. `None` is admitted without a look.
    pub min_resources: Option<Amounts>,
    /// Its constraint on the network.
    pub topology: Option<NetworkTopology>,
    /// Its sub-groups.
    pub sub_groups: Vec<SubGroupPolicy>,
    /// Its phase in the API.
    pub phase: JobPhase,
    /// Whether nobody has written a phase yet; it counts as Pending.
    pub phase_missing: bool,
    /// Longest wait that it accepts before `sla` puts it first, in milliseconds.
    pub sla_waiting_ms: Option<i64>,
    /// What `drf` divides its share by; at least 1.
    pub weight: u32,
    /// `volcano.sh/preemptable` of the PodGroup itself.
    pub preemptable: Option<bool>,
    /// How long its user says that it runs, in milliseconds.
    #[serde(default)]
    pub estimate_ms: Option<i64>,
    /// How long its pods wait for each other at Permit, in milliseconds (coscheduling's `scheduleTimeoutSeconds`).
    #[serde(default)]
    pub schedule_timeout_ms: Option<i64>,
    /// How many of its pods have to stay when some are moved out of a revocable zone.
    pub stays: Option<Aim>,
}

impl Default for PodGroupSpec {
    /// A group of the queue `default` that needs nothing, not admitted yet.
    fn default() -> Self {
        Self {
            uid: Name::default(),
            namespace: "default".into(),
            name: Name::default(),
            queue: crate::queue::DEFAULT_QUEUE.into(),
            created: Time::default(),
            priority_class: Name::default(),
            min_member: 0,
            min_task_member: Vec::new(),
            min_resources: None,
            topology: None,
            sub_groups: Vec::new(),
            phase: JobPhase::Pending,
            phase_missing: false,
            sla_waiting_ms: None,
            weight: 1,
            preemptable: None,
            estimate_ms: None,
            schedule_timeout_ms: None,
            stays: None,
        }
    }
}

/// How many tasks of one kind stand where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts([u32; N_STATUSES]);

impl Counts {
    /// Tasks in `status`.
    pub fn of(&self, status: TaskStatus) -> u32 {
        self.0[status.index()]
    }

    /// Tasks in any of the statuses that `which` picks.
    pub fn sum(&self, which: impl Fn(TaskStatus) -> bool) -> u32 {
        self.0.iter().zip(TaskStatus::ALL).filter(|(n, status)| **n > 0 && which(*status)).map(|(n, _)| n).sum()
    }

    pub(crate) fn add(&mut self, status: TaskStatus) {
        self.0[status.index()] += 1;
    }

    pub(crate) fn remove(&mut self, status: TaskStatus) {
        self.0[status.index()] = self.0[status.index()].saturating_sub(1);
    }
}

/// One role of a job, with its own counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// Its name, empty for pods without one.
    pub name: Name,
    /// Pods needed of it; 0 if the PodGroup says nothing.
    pub min: u32,
    /// Where its tasks stand.
    pub counts: Counts,
    /// Pending tasks that ask for nothing; they count as placed.
    pub pending_best_effort: u32,
}

/// A job.
#[derive(Clone, Debug)]
pub struct Job {
    /// The PodGroup.
    pub spec: PodGroupSpec,
    /// `min_resources`, interned.
    pub min_resources: Option<Resources>,
    /// Its queue; `None` while no queue of that name exists.
    pub queue: Option<QueueId>,
    /// Value of its PriorityClass.
    pub priority: i32,
    /// Its phase as this scheduler sees it, which runs ahead of the API's.
    pub phase: JobPhase,
    /// When this scheduler first saw it.
    pub seen: Time,
    /// When it last failed to get together, for who orders gangs by that; `None` if it has not, or has since.
    pub failed_at: Option<Time>,
    /// Until when none of its pods is to be tried.
    pub retry_at: Time,
    /// The longest that any pod of it had run which is gone; see [`crate::service`].
    pub(crate) ran_ms: i64,
    pub(crate) unplaceable: bool,
    pub(crate) tasks: BTreeSet<TaskId>,
    pub(crate) books: JobBooks,
}

/// The counts and sums of one job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct JobBooks {
    pub(crate) counts: Counts,
    pub(crate) roles: Vec<Role>,
    pub(crate) pending_best_effort: u32,
    pub(crate) held: Held,
}

impl JobBooks {
    pub(crate) fn role_mut(&mut self, name: &Name) -> &mut Role {
        match self.roles.binary_search_by(|role| role.name.cmp(name)) {
            Ok(at) => &mut self.roles[at],
            Err(at) => {
                let role = Role { name: name.clone(), min: 0, counts: Counts::default(), pending_best_effort: 0 };
                self.roles.insert(at, role);
                &mut self.roles[at]
            }
        }
    }
}

/// What the tasks of a job or a queue hold and ask for. One task is in at most one of allocated, pipelined, releasing,
/// pending and at the gate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Held by tasks that are allocated, binding, bound or running.
    pub allocated: Resources,
    /// Promised to tasks that wait for a release; only within a session.
    pub pipelined: Resources,
    /// Kept for pods that are yet to come; of queues only.
    pub reserved: Resources,
    /// Held by tasks that are terminating.
    pub releasing: Resources,
    /// Asked for by tasks that are pending and not gated.
    pub pending: Resources,
    /// Asked for by tasks whose only gate is that of their queue.
    pub at_gate: Resources,
    /// Kept for tasks that have no node yet and that the queue has let through its gate; a part of the two above.
    pub let_through: Resources,
}

impl Held {
    /// Allocated, promised and kept: what shares are reckoned on.
    pub fn claimed(&self) -> Resources {
        let mut claimed = self.allocated.plus(&self.pipelined);
        claimed.add(&self.reserved);
        claimed
    }

    /// Everything that takes room now or will: what a limit is held against before something new starts. What is kept for
    /// a pod that is being moved counts once with it, while it terminates.
    pub fn occupied(&self) -> Resources {
        self.allocated.plus(&self.pipelined).plus(&self.releasing.max(&self.reserved))
    }

    /// Allocated, promised, kept and asked for, also at the gate of the queue.
    pub fn wanted(&self) -> Resources {
        self.claimed().plus(&self.pending).plus(&self.at_gate)
    }
}

impl Job {
    /// Pods needed to start.
    pub fn min_available(&self) -> u32 {
        self.spec.min_member
    }

    /// Its tasks, by id.
    pub fn tasks(&self) -> impl Iterator<Item = TaskId> {
        self.tasks.iter().copied()
    }

    /// How many tasks it has.
    pub fn n_tasks(&self) -> usize {
        self.tasks.len()
    }

    /// Where its tasks stand.
    pub fn counts(&self) -> &Counts {
        &self.books.counts
    }

    /// Its roles, by name.
    pub fn roles(&self) -> &[Role] {
        &self.books.roles
    }

    /// What its tasks hold and ask for.
    pub fn held(&self) -> &Held {
        &self.books.held
    }

    /// Pending tasks that ask for nothing but a pod slot.
    pub fn pending_best_effort(&self) -> u32 {
        self.books.pending_best_effort
    }

    /// Tasks placed or ended well (Volcano's `ReadyTaskNum`).
    pub fn n_ready(&self) -> u32 {
        self.books.counts.sum(|s| s.is_allocated() || s == TaskStatus::Succeeded)
    }

    /// Tasks that wait for a release (Volcano's `WaitingTaskNum`).
    pub fn n_pipelined(&self) -> u32 {
        self.books.counts.of(TaskStatus::Pipelined)
    }

    /// Tasks that can still count towards the minimum (Volcano's `ValidTaskNum`; gated ones included, which it keeps
    /// in Pending).
    pub fn n_valid(&self) -> u32 {
        self.books.counts.sum(counts_as_valid)
    }

    /// Whether the minimum is placed. Pending tasks that ask for nothing count as placed.
    pub fn is_ready(&self) -> bool {
        self.n_ready() + self.books.pending_best_effort >= self.min_available()
            && self.roles_reach(|role| {
                role.counts.sum(|s| s.is_allocated() || s == TaskStatus::Succeeded) + role.pending_best_effort
            })
    }

    /// Whether the minimum is placed or promised.
    pub fn is_pipelined(&self) -> bool {
        self.n_pipelined() + self.n_ready() + self.books.pending_best_effort >= self.min_available()
            && self.roles_reach(|role| {
                role.counts.sum(|s| s.is_allocated() || matches!(s, TaskStatus::Succeeded | TaskStatus::Pipelined))
                    + role.pending_best_effort
            })
    }

    /// Whether it runs in part and lacks members that it needs: a gang that has started and is broken.
    pub fn needs_repair(&self) -> bool {
        self.books.counts.sum(|s| s.is_committed() && s != TaskStatus::Releasing) > 0 && !self.is_ready()
    }

    /// Whether some member that it needs can run on no node as nodes are now, however empty they become.
    pub fn is_unplaceable(&self) -> bool {
        self.unplaceable
    }

    /// Whether it waits: for admission, for nodes, or for its pods to be made.
    pub fn is_waiting(&self) -> bool {
        let counts = &self.books.counts;
        let lacks_pods = self.phase == JobPhase::Inqueue && self.n_valid() < self.min_available();
        self.is_pending() || lacks_pods || counts.of(TaskStatus::Pending) + counts.of(TaskStatus::Gated) > 0
    }

    /// Whether fewer than the minimum are placed or promised (Volcano's `IsStarving`).
    pub fn is_starving(&self) -> bool {
        self.n_pipelined() + self.n_ready() < self.min_available()
    }

    /// The first role with fewer existing pods than its minimum, with both numbers.
    pub fn role_short_of_pods(&self) -> Option<(&Role, u32)> {
        self.checked_roles().map(|role| (role, role.counts.sum(counts_as_valid))).find(|(role, have)| *have < role.min)
    }

    /// Whether it waits for admission.
    pub fn is_pending(&self) -> bool {
        self.phase == JobPhase::Pending
    }

    /// What it holds beyond its `minResources`: what it could give back and still run.
    pub fn elastic(&self) -> Resources {
        if self.books.held.allocated.is_zero() {
            return Resources::default();
        }
        match &self.min_resources {
            Some(min) => self.books.held.allocated.minus_clamped(min),
            None => self.books.held.allocated.clone(),
        }
    }

    /// What admission keeps free for it: its `minResources` less what its tasks hold already. Dimensions that
    /// `minResources` does not name are not kept.
    pub fn inqueue_reservation(&self) -> Resources {
        self.min_resources.as_ref().map(|min| min.minus_clamped(&self.books.held.allocated)).unwrap_or_default()
    }

    /// Roles whose minimum counts. All of them are ignored when the minimum of the job is below their sum.
    fn checked_roles(&self) -> impl Iterator<Item = &Role> {
        let sum: u32 = self.books.roles.iter().map(|role| role.min).sum();
        let checked = self.min_available() >= sum;
        self.books.roles.iter().filter(move |role| checked && role.min > 0)
    }

    fn roles_reach(&self, placed: impl Fn(&Role) -> u32) -> bool {
        self.checked_roles().all(|role| placed(role) >= role.min)
    }
}

fn counts_as_valid(status: TaskStatus) -> bool {
    status.is_allocated()
        || matches!(status, TaskStatus::Succeeded | TaskStatus::Pipelined | TaskStatus::Pending | TaskStatus::Gated)
}
