//! The descheduler of a scenario, and what nodes and pods use.

use krafla_api::parse_duration;
use krafla_framework::{DeschedulerSettings, Planning};
use krafla_model::Name;

use super::super::deed::Deed;
use super::super::format::{DeschedulerEntry, PlanningEntry, UsageEntry};
use super::{Both, Time, Wrong, at};
use crate::world::{Happening, Use, UseOf, amounts};

/// Where messages say that the policy is.
const FILE: &str = "descheduler.policy";

pub(super) fn settings(entry: &serde_saphyr::Spanned<DeschedulerEntry>) -> Result<DeschedulerSettings, Wrong> {
    let e = &entry.value;
    let duration = |text: &Option<String>, key: &str, default: i64| match text {
        None => Ok(default),
        Some(text) => parse_duration(text).map_err(|why| at(entry, &format!("`descheduler.{key}`"), &why)),
    };
    let usual = DeschedulerSettings::default();
    Ok(DeschedulerSettings {
        file: FILE.to_owned(),
        text: e.policy.clone(),
        interval_ms: duration(&e.interval, "interval", 0)?,
        cool_down_ms: duration(&e.cool_down, "coolDown", usual.cool_down_ms)?,
        keep_ms: duration(&e.keep, "keep", usual.keep_ms)?,
        auto_enable: e.auto_enable,
        dry_run: e.dry_run,
        in_background: e.evictions_in_background,
        planning: match e.planning {
            PlanningEntry::Kept => Planning::Kept,
            PlanningEntry::Foreseen => Planning::Foreseen,
            PlanningEntry::Off => Planning::Off,
        },
    })
}

pub(super) fn usage(entry: &UsageEntry) -> Result<Both, String> {
    let of = match (&entry.node, &entry.pod, &entry.job) {
        (Some(name), None, None) => UseOf::Node(Name::from(name.as_str())),
        (None, Some(name), None) => UseOf::Pod(Name::from(name.as_str())),
        (None, None, Some(name)) => UseOf::Job(Name::from(name.as_str())),
        _ => return Err("`usage` names one thing: {node: NAME}, {pod: NAME} or {job: NAME}".to_owned()),
    };
    let sample_ppm = match (entry.sample, &of) {
        (None, _) => None,
        #[allow(clippy::cast_possible_truncation, reason = "from 0 to a million")]
        (Some(part), UseOf::Node(_)) if (0.0..=1.0).contains(&part) => Some((part * 1_000_000.0).round() as i64),
        (Some(_), UseOf::Node(_)) => return Err("`usage.sample` is a part of the whole, from 0 to 1".to_owned()),
        (Some(_), _) => return Err("`usage.sample` is asked of nodes".to_owned()),
    };
    let written = [("cpu", &entry.cpu), ("memory", &entry.memory)];
    let written = written.into_iter().filter_map(|(key, text)| Some((key.to_owned(), text.clone()?))).collect();
    let amounts = amounts(&written).map_err(|why| format!("`usage`: {why}"))?;
    Ok(only_here(Happening::Use(Use { of, amounts, sample_ppm })))
}

pub(super) fn round(now: bool) -> Result<Both, String> {
    if !now {
        return Err("`deschedule` is `true`: a round now".to_owned());
    }
    Ok(only_here(Happening::Deschedule))
}

/// What a cluster has nothing of: such a scenario is played on the simulator alone.
fn only_here(happening: Happening) -> Both {
    Both { happenings: vec![(Time(0), happening)], deeds: Vec::<(Time, Deed)>::new() }
}
