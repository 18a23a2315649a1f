//! The states of a task, and the table of moves between them.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Where a task stands. The order is that of Volcano's bit flags, with `Gated` beside `Pending`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TaskStatus {
    /// Waits for a node.
    #[default]
    Pending,
    /// Carries scheduling gates; waits for their removal.
    Gated,
    /// Has a node in this session, which no one outside knows yet.
    Allocated,
    /// Will have a node once what is being released there is gone; only within a session.
    Pipelined,
    /// The bind has been sent; its outcome is not known yet.
    Binding,
    /// Has a node; its containers have not started.
    Bound,
    /// Runs.
    Running,
    /// Is terminating. It holds its node's resources until it is gone.
    Releasing,
    /// Ended well.
    Succeeded,
    /// Ended badly.
    Failed,
    /// The node does not answer. It holds its resources.
    Unknown,
}

/// How many states there are.
pub const N_STATUSES: usize = 11;

/// A move that the state machine does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a task cannot go from {from:?} to {to:?}")]
pub struct ForbiddenMove {
    /// Where the task stands.
    pub from: TaskStatus,
    /// Where it was told to go.
    pub to: TaskStatus,
}

impl TaskStatus {
    /// All states, in order.
    pub const ALL: [Self; N_STATUSES] = [
        Self::Pending,
        Self::Gated,
        Self::Allocated,
        Self::Pipelined,
        Self::Binding,
        Self::Bound,
        Self::Running,
        Self::Releasing,
        Self::Succeeded,
        Self::Failed,
        Self::Unknown,
    ];

    /// The index into tables by state.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether the task counts as placed for gangs and shares: Volcano's *allocated* statuses.
    pub const fn is_allocated(self) -> bool {
        matches!(self, Self::Allocated | Self::Binding | Self::Bound | Self::Running)
    }

    /// Whether the task takes room on its node now.
    pub const fn holds_node(self) -> bool {
        self.is_allocated() || matches!(self, Self::Releasing | Self::Unknown)
    }

    /// Whether the task has ended.
    pub const fn is_finished(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }

    /// Whether the cluster, not only this session, knows of the task's node.
    pub const fn is_committed(self) -> bool {
        matches!(self, Self::Binding | Self::Bound | Self::Running | Self::Releasing | Self::Unknown)
    }

    /// Whether the task waits for a node.
    pub const fn is_waiting(self) -> bool {
        matches!(self, Self::Pending | Self::Gated)
    }

    /// Checks a move against the table.
    pub fn check_move(self, to: Self) -> Result<(), ForbiddenMove> {
        use TaskStatus::{
            Allocated, Binding, Bound, Failed, Gated, Pending, Pipelined, Releasing, Running, Succeeded, Unknown,
        };
        let allowed: &[Self] = match self {
            // A pod may be bound, run or end by another's hand at any time.
            Pending => &[Gated, Allocated, Pipelined, Binding, Bound, Running, Releasing, Succeeded, Failed, Unknown],
            Gated => &[Pending, Bound, Running, Releasing, Succeeded, Failed, Unknown],
            Allocated => &[Pending, Binding],
            Pipelined => &[Pending, Allocated],
            // Refused binds return to Pending.
            Binding => &[Pending, Bound, Running, Releasing, Succeeded, Failed, Unknown],
            Bound => &[Running, Releasing, Succeeded, Failed, Unknown],
            Running => &[Releasing, Succeeded, Failed, Unknown],
            // Back to Bound or Running: an eviction that was only tried, or was refused.
            Releasing => &[Bound, Running, Succeeded, Failed, Unknown],
            Unknown => &[Bound, Running, Releasing, Succeeded, Failed],
            Succeeded | Failed => &[],
        };
        if self == to || allowed.contains(&to) { Ok(()) } else { Err(ForbiddenMove { from: self, to }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ended_task_stays_ended() {
        for status in TaskStatus::ALL {
            for ended in [TaskStatus::Succeeded, TaskStatus::Failed] {
                assert_eq!(ended.check_move(status).is_ok(), status == ended);
            }
        }
    }

    #[test]
    fn session_states_are_left_only_by_commit_or_undo() {
        for to in TaskStatus::ALL {
            let ok = matches!(to, TaskStatus::Pending | TaskStatus::Binding | TaskStatus::Allocated);
            assert_eq!(TaskStatus::Allocated.check_move(to).is_ok(), ok, "Allocated to {to:?}");
        }
    }

    #[test]
    fn the_index_is_the_place_in_all() {
        for (i, status) in TaskStatus::ALL.into_iter().enumerate() {
            assert_eq!(status.index(), i);
        }
    }
}
