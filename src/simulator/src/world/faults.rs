//! What goes wrong: refused, lost and unanswered calls, an API that is down, watches that drop.

use krafla_framework::TAKEN_ON;
use krafla_model::Time;

use super::World;
use super::agenda::Happening;

/// A call that the scheduler makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Binds.
    Bind,
    /// Evictions.
    Evict,
}

/// Something that goes wrong from a certain time on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The next calls are refused.
    Refuse {
        /// Which calls.
        verb: Verb,
        /// How many.
        count: u32,
    },
    /// The next evictions are refused by somebody who takes them on, and moves the pod in their own time.
    TakeOn {
        /// How many.
        count: u32,
    },
    /// The next calls are never answered, and have no effect.
    Hang {
        /// Which calls.
        verb: Verb,
        /// How many.
        count: u32,
    },
    /// The next calls take effect, but the answer is lost.
    Lose {
        /// Which calls.
        verb: Verb,
        /// How many.
        count: u32,
    },
    /// Watches bring nothing for so long, then everything is listed again.
    WatchDrops {
        /// Milliseconds.
        for_ms: i64,
    },
    /// Calls are refused and watches bring nothing for so long.
    ApiDown {
        /// Milliseconds.
        for_ms: i64,
    },
    /// The scheduler is restarted and forgets everything.
    Restart,
}

/// How a call is answered.
pub(super) enum Answer {
    Yes,
    No(String),
    Silence,
    Lost,
}

#[derive(Default)]
pub(super) struct Faults {
    calls: Vec<(Verb, Manner, u32)>,
    api_down_until: Option<Time>,
    watch_down_until: Option<Time>,
}

#[derive(Clone, Copy)]
enum Manner {
    Refuse,
    TakeOn,
    Hang,
    Lose,
}

impl Faults {
    pub(super) fn watch_is_down(&self, now: Time) -> bool {
        self.watch_down_until.is_some_and(|until| now < until)
    }

    /// How the next call is answered; uses up one of the planned faults.
    pub(super) fn answer(&mut self, verb: Verb, now: Time) -> Answer {
        if self.api_down_until.is_some_and(|until| now < until) {
            return Answer::No("the API server does not answer".to_owned());
        }
        let Some(at) = self.calls.iter().position(|(faulty, _, _)| *faulty == verb) else { return Answer::Yes };
        let (_, manner, left) = &mut self.calls[at];
        let manner = *manner;
        *left -= 1;
        if *left == 0 {
            self.calls.remove(at);
        }
        match manner {
            Manner::Refuse => Answer::No("refused by the API server".to_owned()),
            Manner::TakeOn => Answer::No(format!("admission webhook denied the request: {TAKEN_ON}")),
            Manner::Hang => Answer::Silence,
            Manner::Lose => Answer::Lost,
        }
    }
}

impl World {
    pub(super) fn begin_fault(&mut self, fault: Fault) {
        let mut calls = |verb, manner, count: u32| {
            if count > 0 {
                self.faults.calls.push((verb, manner, count));
            }
        };
        match fault {
            Fault::Refuse { verb, count } => calls(verb, Manner::Refuse, count),
            Fault::TakeOn { count } => calls(Verb::Evict, Manner::TakeOn, count),
            Fault::Hang { verb, count } => calls(verb, Manner::Hang, count),
            Fault::Lose { verb, count } => calls(verb, Manner::Lose, count),
            Fault::WatchDrops { for_ms } => self.drop_watch(for_ms),
            Fault::ApiDown { for_ms } => {
                self.faults.api_down_until = Some(self.now + for_ms);
                self.drop_watch(for_ms);
            }
            Fault::Restart => self.plan(self.now, Happening::Restart),
        }
    }

    fn drop_watch(&mut self, for_ms: i64) {
        let until = self.now + for_ms;
        self.faults.watch_down_until = self.faults.watch_down_until.max(Some(until));
        self.plan(until, Happening::WatchReturns);
    }
}
