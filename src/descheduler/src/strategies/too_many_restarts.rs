//! `RemovePodsHavingTooManyRestarts`: pods whose containers were begun again too often.

use std::cmp::Reverse;

use krafla_framework::Value;
use krafla_framework::conf::plugin_args::read as read_args;
use krafla_framework::registry::ArgumentProblem;
use krafla_model::{Name, PodPhase, TaskId};

use super::containers::{Including, counted};
use crate::args::Choice;
use crate::evictor::details;
use crate::limits::Reached;
use crate::policy::Strategy;
use crate::round::{Answer, Request, Round};

const STATES: [&str; 2] = ["Running", "CrashLoopBackOff"];

/// Its arguments.
pub(crate) struct TooManyRestarts {
    choice: Choice,
    threshold: i64,
    including: Including,
    states: Vec<Name>,
}

pub(crate) fn read(args: &Value) -> Result<TooManyRestarts, Vec<ArgumentProblem>> {
    let fields = ["podRestartThreshold", "includingInitContainers", "states", "namespaces", "labelSelector"];
    read_args(args, &fields, |args| {
        if args.get(fields[0]).is_none() {
            args.problem(fields[0], "it is missing; write for example `podRestartThreshold: 100`");
        }
        let mut states = Vec::new();
        for (path, state) in args.texts(fields[2]) {
            if !STATES.contains(&state) {
                args.problem_at(path, format!("there is no state `{state}`; states are: {}", STATES.join(", ")));
            }
            states.push(state.into());
        }
        TooManyRestarts {
            threshold: args.integer(fields[0], 1..=i64::from(i32::MAX), 1),
            including: Including { init: args.bool(fields[1], false), ephemeral: false },
            states,
            choice: Choice::read(args),
        }
    })
}

impl TooManyRestarts {
    fn restarts(&self, round: &Round<'_, '_, '_>, id: TaskId) -> i64 {
        counted(&details(round.cluster(), id), self.including).map(|one| i64::from(one.restarts)).sum()
    }

    fn has_state(&self, round: &Round<'_, '_, '_>, id: TaskId) -> bool {
        let runs = round.cluster().task(id).phase == PodPhase::Running;
        let details = details(round.cluster(), id);
        let waits_so = |state: &Name| counted(&details, self.including).any(|one| one.waiting == *state);
        self.states.is_empty() || self.states.iter().any(|state| (state == "Running" && runs) || waits_so(state))
    }
}

impl Strategy for TooManyRestarts {
    fn run(&self, round: &mut Round<'_, '_, '_>) -> Result<(), String> {
        for node in round.nodes().to_vec() {
            let mut meant: Vec<(Reverse<i64>, TaskId)> = Vec::new();
            for task in round.pods_on(node) {
                let restarts = self.restarts(round, task);
                let is_meant = restarts >= self.threshold && self.choice.takes(round.cluster(), task);
                if is_meant && self.has_state(round, task) && round.is_evictable(task) {
                    meant.push((Reverse(restarts), task));
                }
            }
            meant.sort_unstable();
            for (Reverse(restarts), task) in meant {
                let why = format!("its containers were restarted {restarts} times, {} are allowed", self.threshold - 1);
                match round.evict(&Request { task, why, better: None }) {
                    Answer::Limit(Reached::Total) => return Ok(()),
                    Answer::Limit(Reached::Node) => break,
                    _ => {}
                }
            }
        }
        Ok(())
    }
}
