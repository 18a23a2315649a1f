//! `RemoveFailedPods`: pods that have ended badly.

use krafla_framework::Value;
use krafla_framework::conf::plugin_args::read as read_args;
use krafla_framework::registry::ArgumentProblem;
use krafla_model::{Name, PodPhase, TaskId};

use super::containers::{Including, exit_codes, reasons};
use super::pod_life_time::exit_codes_of;
use crate::action::is_over;
use crate::args::{Choice, names};
use crate::evictor::details;
use crate::policy::Strategy;
use crate::round::{Answer, Request, Round};

/// An hour.
const SECONDS: i64 = 3_600;

/// Its arguments.
pub(crate) struct RemoveFailedPods {
    choice: Choice,
    least_seconds: i64,
    reasons: Vec<Name>,
    exit_codes: Vec<i64>,
    not_of: Vec<Name>,
    including: Including,
}

pub(crate) fn read(args: &Value) -> Result<RemoveFailedPods, Vec<ArgumentProblem>> {
    let fields = [
        "minPodLifetimeSeconds",
        "reasons",
        "exitCodes",
        "excludeOwnerKinds",
        "includingInitContainers",
        "namespaces",
        "labelSelector",
    ];
    read_args(args, &fields, |args| RemoveFailedPods {
        least_seconds: args.integer(fields[0], 0..=i64::from(u32::MAX), SECONDS),
        reasons: names(args, fields[1]),
        exit_codes: exit_codes_of(args),
        not_of: names(args, fields[3]),
        including: Including { init: args.bool(fields[4], false), ephemeral: false },
        choice: Choice::read(args),
    })
}

impl RemoveFailedPods {
    fn means(&self, round: &Round<'_, '_, '_>, id: TaskId) -> bool {
        let cluster = round.cluster();
        let task = cluster.task(id);
        let details = details(cluster, id);
        task.phase == PodPhase::Failed
            && self.choice.takes(cluster, id)
            && cluster.now().0 - task.created.0 >= self.least_seconds.saturating_mul(1_000)
            && (self.reasons.is_empty()
                || reasons(&details, self.including).any(|reason| self.reasons.contains(reason)))
            && (self.exit_codes.is_empty()
                || exit_codes(&details, self.including).any(|code| self.exit_codes.contains(&i64::from(code))))
            && !details.owners.iter().any(|owner| self.not_of.contains(&owner.kind))
    }
}

impl Strategy for RemoveFailedPods {
    fn run(&self, round: &mut Round<'_, '_, '_>) -> Result<(), String> {
        for (task, _) in round.all_pods() {
            if !self.means(round, task) || !round.is_evictable(task) {
                continue;
            }
            let why = "the pod has failed".to_owned();
            if let Answer::Limit(reached) = round.evict(&Request { task, why, better: None })
                && is_over(reached)
            {
                break;
            }
        }
        Ok(())
    }
}
