//! What is done to what is there already: deletions, gates, faults.

use krafla_model::{Event, Name};

use super::super::deed::{Deed, Target, TargetKind};
use super::super::format::{FaultEntry, RolloutEntry, Which};
use super::{Both, ms, object};
use crate::world::{Fault, Happening, Pace, Verb};

/// The namespace that is named; `None`: any.
pub(super) fn namespace_of(which: &Which) -> Option<Name> {
    which.namespace.as_deref().map(Name::from)
}

pub(super) fn target(which: &Which, kind: TargetKind, name: &str) -> Target {
    Target { kind, namespace: which.namespace.clone(), name: name.to_owned() }
}

pub(super) fn ungate(which: &Which) -> Result<Both, String> {
    let namespace = namespace_of(which);
    let (kind, name) = match which {
        Which { job: Some(name), pod: None, node: None, queue: None, .. } => (TargetKind::Job, name),
        Which { pod: Some(name), job: None, node: None, queue: None, .. } => (TargetKind::Pod, name),
        _ => return Err("`ungate` names one thing: {job: NAME} or {pod: NAME}".to_owned()),
    };
    let happening = Happening::Ungate { namespace, name: name.into(), whole_job: kind == TargetKind::Job };
    Ok(Both::of(happening, Deed::Ungate(target(which, kind, name))))
}

pub(super) fn delete(which: &Which) -> Result<Both, String> {
    let namespace = namespace_of(which);
    let (kind, name, happening) = match which {
        Which { job: Some(name), pod: None, node: None, queue: None, .. } => {
            (TargetKind::Job, name, Happening::DeleteJob { namespace, name: name.into() })
        }
        Which { pod: Some(name), job: None, node: None, queue: None, .. } => {
            (TargetKind::Pod, name, Happening::DeletePod { namespace, name: name.into() })
        }
        Which { node: Some(name), job: None, pod: None, queue: None, .. } => {
            (TargetKind::Node, name, object(Event::NodeGone(name.into())))
        }
        Which { queue: Some(name), job: None, pod: None, node: None, .. } => {
            (TargetKind::Queue, name, object(Event::QueueGone(name.into())))
        }
        _ => {
            return Err("`delete` names one thing: {job: NAME}, {pod: NAME}, {node: NAME} or {queue: NAME}".to_owned());
        }
    };
    Ok(Both::of(happening, Deed::Delete(target(which, kind, name))))
}

pub(super) fn rollout(entry: &RolloutEntry) -> Result<Both, String> {
    let pace = Pace { surge: entry.surge.unwrap_or(1), unavailable: entry.unavailable.unwrap_or(0) };
    if pace == (Pace { surge: 0, unavailable: 0 }) {
        return Err("`rollout`: with surge 0 and unavailable 0 nothing can move; give one of them".to_owned());
    }
    let namespace = entry.namespace.as_deref().map(Name::from);
    let happening = Happening::Rollout { namespace, name: (&entry.job).into(), pace };
    let target = Target { kind: TargetKind::Job, namespace: entry.namespace.clone(), name: entry.job.clone() };
    Ok(Both::of(happening, Deed::Rollout(target, pace)))
}

pub(super) fn fault(entry: &FaultEntry) -> Result<Fault, String> {
    let count = entry.count.unwrap_or(1);
    let for_ms = entry.r#for.as_deref().map_or(Ok(10_000), |text| ms(text, "for"))?;
    let call = |verb, manner: &str| match manner {
        "refuse" => Ok(Fault::Refuse { verb, count }),
        "takeOn" if verb == Verb::Evict => Ok(Fault::TakeOn { count }),
        "hang" => Ok(Fault::Hang { verb, count }),
        "lost" => Ok(Fault::Lose { verb, count }),
        other => Err(format!("fault `{other}`: use refuse, hang or lost")),
    };
    match entry {
        FaultEntry { bind: Some(manner), .. } => call(Verb::Bind, manner),
        FaultEntry { evict: Some(manner), .. } => call(Verb::Evict, manner),
        FaultEntry { watch: Some(what), .. } if what == "drop" => Ok(Fault::WatchDrops { for_ms }),
        FaultEntry { api: Some(what), .. } if what == "down" => Ok(Fault::ApiDown { for_ms }),
        FaultEntry { scheduler: Some(what), .. } if what == "restart" => Ok(Fault::Restart),
        _ => Err("a fault is one of {bind: refuse|hang|lost}, {evict: refuse}, {watch: drop}, {api: down, for: 10s}, {scheduler: restart}".to_owned()),
    }
}
