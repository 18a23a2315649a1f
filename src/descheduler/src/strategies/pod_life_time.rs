//! `PodLifeTime`: pods that are too old, or have been in a state for too long.

use krafla_framework::Value;
use krafla_framework::conf::plugin_args::{PluginArgs, read as read_args};
use krafla_framework::registry::ArgumentProblem;
use krafla_model::pod_details::PodDetails;
use krafla_model::{Name, PodPhase, TaskId};

use super::containers::{Including, exit_codes, reasons};
use crate::action::is_over;
use crate::args::{Choice, names, optional};
use crate::evictor::details;
use crate::policy::Strategy;
use crate::round::{Answer, Request, Round};

const STATES: &[&str] = &[
    "Running",
    "Pending",
    "Succeeded",
    "Failed",
    "Unknown",
    "NodeAffinity",
    "NodeLost",
    "Shutdown",
    "UnexpectedAdmissionError",
    "PodInitializing",
    "ContainerCreating",
    "ImagePullBackOff",
    "CrashLoopBackOff",
    "CreateContainerConfigError",
    "ErrImagePull",
    "CreateContainerError",
    "InvalidImageName",
    "OOMKilled",
    "Error",
    "Completed",
    "DeadlineExceeded",
    "Evicted",
    "ContainerCannotRun",
    "StartError",
];

/// Its arguments.
pub(crate) struct PodLifeTime {
    choice: Choice,
    most_seconds: Option<i64>,
    states: Vec<Name>,
    conditions: Vec<Condition>,
    exit_codes: Vec<i64>,
    owners: OwnerKinds,
    including: Including,
}

struct Condition {
    kind: Option<Name>,
    status: Option<Name>,
    reason: Option<Name>,
    min_seconds: Option<i64>,
}

#[derive(Default)]
struct OwnerKinds {
    include: Vec<Name>,
    exclude: Vec<Name>,
}

pub(crate) fn read(args: &Value) -> Result<PodLifeTime, Vec<ArgumentProblem>> {
    let fields = [
        "maxPodLifeTimeSeconds",
        "states",
        "conditions",
        "exitCodes",
        "ownerKinds",
        "includingInitContainers",
        "includingEphemeralContainers",
        "namespaces",
        "labelSelector",
    ];
    read_args(args, &fields, |args| {
        let most_seconds = optional(args, "maxPodLifeTimeSeconds", 0);
        let mut states = Vec::new();
        for (path, state) in args.texts("states") {
            if !STATES.contains(&state) {
                args.problem_at(
                    path,
                    format!("there is no state `{state}`; states are phases and reasons, such as Pending"),
                );
            }
            states.push(state.into());
        }
        let conditions = conditions(args);
        let exit_codes = exit_codes_of(args);
        let mut owners = OwnerKinds::default();
        if let Some(mut own) = args.map("ownerKinds", &["include", "exclude"]) {
            owners = OwnerKinds { include: names(&mut own, "include"), exclude: names(&mut own, "exclude") };
            if !owners.include.is_empty() && !owners.exclude.is_empty() {
                own.problem("exclude", "both `include` and `exclude` are given; keep one of them");
            }
        }
        let including = Including {
            init: args.bool("includingInitContainers", false),
            ephemeral: args.bool("includingEphemeralContainers", false),
        };
        if most_seconds.is_none() && states.is_empty() && conditions.is_empty() && exit_codes.is_empty() {
            let message =
                "it says nothing, and every pod would be meant; write for example `maxPodLifeTimeSeconds: 86400`";
            args.problem("", message);
        }
        PodLifeTime { choice: Choice::read(args), most_seconds, states, conditions, exit_codes, owners, including }
    })
}

fn conditions(args: &mut PluginArgs<'_, '_>) -> Vec<Condition> {
    let mut read = Vec::new();
    for (path, item) in args.list("conditions") {
        let mut item = args.item(path, item, &["type", "status", "reason", "minTimeSinceLastTransitionSeconds"]);
        let text =
            |item: &mut PluginArgs<'_, '_>, key: &str| item.text(key).filter(|text| !text.is_empty()).map(Name::from);
        let one = Condition {
            kind: text(&mut item, "type"),
            status: text(&mut item, "status"),
            reason: text(&mut item, "reason"),
            min_seconds: optional(&mut item, "minTimeSinceLastTransitionSeconds", 0),
        };
        if one.kind.is_none() && one.status.is_none() && one.reason.is_none() && one.min_seconds.is_none() {
            item.problem("type", "the condition says nothing; write for example `type: Ready` and `status: \"False\"`");
        }
        read.push(one);
    }
    read
}

pub(super) fn exit_codes_of(args: &mut PluginArgs<'_, '_>) -> Vec<i64> {
    let mut read = Vec::new();
    for (path, item) in args.list("exitCodes") {
        match item {
            Value::Integer(code) => read.push(*code),
            _ => args.problem_at(path, "it has to be a whole number; write for example `137`"),
        }
    }
    read
}

const fn phase(phase: PodPhase) -> &'static str {
    match phase {
        PodPhase::Pending => "Pending",
        PodPhase::Running => "Running",
        PodPhase::Succeeded => "Succeeded",
        PodPhase::Failed => "Failed",
        PodPhase::Unknown => "Unknown",
    }
}

impl PodLifeTime {
    /// Whether a pod is one of those that are meant. Filters are joined by «and», what is in one by «or».
    fn means(&self, round: &Round<'_, '_, '_>, id: TaskId) -> bool {
        let cluster = round.cluster();
        let (task, now) = (cluster.task(id), cluster.now());
        let details = details(cluster, id);
        let older = |seconds: i64| now.0 - task.created.0 > seconds.saturating_mul(1_000);
        let kind_of = |kinds: &[Name]| details.owners.iter().any(|owner| kinds.contains(&owner.kind));
        self.choice.takes(cluster, id)
            && self.most_seconds.is_none_or(older)
            && (self.states.is_empty() || self.has_state(task.phase, &details))
            && (self.conditions.is_empty() || self.conditions.iter().any(|one| one.holds(&details, now.0)))
            && (self.exit_codes.is_empty()
                || exit_codes(&details, self.including).any(|code| self.exit_codes.contains(&i64::from(code))))
            && (self.owners.include.is_empty() || kind_of(&self.owners.include))
            && !kind_of(&self.owners.exclude)
    }

    fn has_state(&self, of_pod: PodPhase, details: &PodDetails) -> bool {
        self.states.iter().any(|state| state == phase(of_pod))
            || reasons(details, self.including).any(|reason| self.states.contains(reason))
    }
}

impl Condition {
    fn holds(&self, details: &PodDetails, now: i64) -> bool {
        details.conditions.iter().any(|one| {
            let since = |seconds: i64| one.since.is_some_and(|since| now - since.0 >= seconds.saturating_mul(1_000));
            self.kind.as_ref().is_none_or(|kind| *kind == one.kind)
                && self.status.as_ref().is_none_or(|status| *status == one.status)
                && self.reason.as_ref().is_none_or(|reason| *reason == one.reason)
                && self.min_seconds.is_none_or(since)
        })
    }
}

impl Strategy for PodLifeTime {
    fn run(&self, round: &mut Round<'_, '_, '_>) -> Result<(), String> {
        let mut meant: Vec<TaskId> = round.all_pods().into_iter().map(|(id, _)| id).collect();
        meant.retain(|id| self.means(round, *id) && round.is_evictable(*id));
        let cluster = round.cluster();
        meant.sort_by_key(|id| (cluster.task(*id).created, cluster.task(*id).uid.clone()));
        for task in meant {
            let age = (round.cluster().now().0 - round.cluster().task(task).created.0) / 1_000;
            let why = format!("the pod is {age} seconds old");
            if let Answer::Limit(reached) = round.evict(&Request { task, why, better: None })
                && is_over(reached)
            {
                break;
            }
        }
        Ok(())
    }
}
