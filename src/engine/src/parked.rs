//! Tasks that may not be tried before a certain time, earliest first.

use std::cmp::Reverse;
use std::hash::{BuildHasherDefault, DefaultHasher};

use krafla_model::{TaskId, Time};
use priority_queue::PriorityQueue;

/// Parked tasks. Parking one again moves it.
#[derive(Debug)]
pub(crate) struct Parked {
    tasks: PriorityQueue<TaskId, Reverse<(Time, TaskId)>, BuildHasherDefault<DefaultHasher>>,
}

impl Default for Parked {
    fn default() -> Self {
        Self { tasks: PriorityQueue::with_default_hasher() }
    }
}

impl Parked {
    pub(crate) fn park(&mut self, task: TaskId, until: Time) {
        self.tasks.push(task, Reverse((until, task)));
    }

    /// When the first of them may be tried; [`Time::NEVER`] if none is parked.
    pub(crate) fn next(&self) -> Time {
        self.tasks.peek().map_or(Time::NEVER, |(_, Reverse((until, _)))| *until)
    }

    /// Lets go of those whose time has come.
    pub(crate) fn release(&mut self, now: Time) -> Vec<TaskId> {
        let mut released = Vec::new();
        while self.next() <= now
            && let Some((task, _)) = self.tasks.pop()
        {
            released.push(task);
        }
        released
    }
}

#[cfg(test)]
mod tests {
    use krafla_model::ids::Id;

    use super::*;

    #[test]
    fn the_earliest_is_next_and_parking_again_moves_it() {
        let mut parked = Parked::default();
        let [a, b] = [0, 1].map(TaskId::from_index);
        parked.park(a, Time(10));
        parked.park(b, Time(5));
        assert_eq!(parked.next(), Time(5));
        parked.park(b, Time(20));
        assert_eq!(parked.next(), Time(10));
        assert!(parked.release(Time(9)).is_empty());
        assert_eq!(parked.release(Time(10)), [a]);
        assert_eq!(parked.next(), Time(20));
    }
}
