//! From a scenario as written to what will happen, in order of time: in the world, and on a cluster.

mod acts;
mod descheduling;
mod jobs;
mod nodes;
mod objects;
mod queues;

use std::collections::BTreeMap;

use krafla_api::{Converter, parse_duration, writer};
use krafla_framework::conf::policy::DEFAULT_PROFILE;
use krafla_model::{Event, Time};
use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::Spanned;

use super::deed::{Deed, TargetKind};
use super::format::{NodeEntry, QueueEntry, Scenario, TimelineEntry, Written};
use super::story::Plan;
use crate::manifest::SCHEDULER_NAMES;
use crate::world::{Happening, Restart, Setup};
use acts::{delete, fault, namespace_of, rollout, target, ungate};
use objects::{manifest_of, readable};
use queues::priority_class;

/// A part of the file that cannot be used: where it is, if that is known, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::scenario) struct Wrong {
    /// Line and column, from 1.
    pub(in crate::scenario) at: Option<(u64, u64)>,
    pub(in crate::scenario) why: String,
}

impl From<String> for Wrong {
    fn from(why: String) -> Self {
        Self { at: None, why }
    }
}

/// Gives an error the place of the part of the file that it is about, and that part's name.
pub(in crate::scenario) fn at<T>(part: &Spanned<T>, name: &str, why: &str) -> Wrong {
    let place = part.referenced;
    Wrong { at: (place.line() > 0).then(|| (place.line(), place.column())), why: format!("{name}: {why}") }
}

/// Reads what a descheduler asks of pods, too.
fn reader() -> Converter {
    let mut converter = Converter::new();
    converter.keep_annotations(&krafla_api::keys::OF_DESCHEDULER);
    converter.read_details();
    converter
}

/// Names under which pods ask for the scheduler: those of the profiles, `default-scheduler` first; else Volcano's.
fn schedulers(scenario: &Scenario) -> Vec<String> {
    #[derive(Deserialize)]
    struct Profiles {
        profiles: Vec<Profile>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Profile {
        scheduler_name: Option<String>,
    }
    let Some(text) = &scenario.profiles else { return SCHEDULER_NAMES.map(str::to_owned).into() };
    // What is wrong with the text is told by who compiles it.
    let read: Option<Profiles> = serde_saphyr::from_str(text).ok();
    let names = read.into_iter().flat_map(|read| read.profiles).filter_map(|profile| profile.scheduler_name);
    let mut names: Vec<String> = names.collect();
    names.sort_by_key(|name| name != DEFAULT_PROFILE);
    if names.is_empty() { vec![DEFAULT_PROFILE.to_owned()] } else { names }
}

/// Builds a scenario.
pub(in crate::scenario) fn build(scenario: &Scenario, config_file: Option<(String, String)>) -> Result<Plan, Wrong> {
    let mut builder = Builder {
        converter: reader(),
        nodes: BTreeMap::new(),
        queues: BTreeMap::new(),
        evict_grace_ms: 0,
        schedulers: schedulers(scenario),
        notes: Vec::new(),
    };
    if scenario.profiles.is_some() && (scenario.config.is_some() || config_file.is_some()) {
        let why =
            "`profiles` and `config`: pods are scheduled one by one by profiles, or in sessions; give one of them";
        return Err(why.to_owned().into());
    }
    if !scenario.cluster.hypernodes.is_empty() {
        builder.notes.push("`cluster.hypernodes`: network topology is not modelled by this version".to_owned());
    }
    let mut setup = Setup::default();
    let duration = |text: &Option<Spanned<Written>>, key: &str| {
        let read =
            |text: &Spanned<Written>| parse_duration(&text.value).map_err(|why| at(text, &format!("`{key}`"), &why));
        text.as_ref().map(read).transpose()
    };
    if let Some(period) = duration(&scenario.period, "period")? {
        setup.engine.period_ms = period.max(1);
    }
    // The default, 1, leaves equal nodes in the order of their names; any other seed orders them by a hash.
    setup.engine.tie_seed = scenario.seed.filter(|seed| *seed != 1);
    setup.bind_latency_ms = duration(&scenario.bind_latency, "bindLatency")?.unwrap_or(0);
    setup.start_latency_ms = duration(&scenario.start_latency, "startLatency")?.unwrap_or(0);
    setup.evict_grace_ms = duration(&scenario.evict_grace, "evictGrace")?.unwrap_or(0);
    builder.evict_grace_ms = setup.evict_grace_ms;
    if let Some(cost_ms) = duration(&scenario.restart_cost, "restartCost")? {
        setup.restart = Restart::FromCheckpoint { cost_ms };
    }
    let own = scenario.config.as_ref().map(|text| ("config".to_owned(), text.value.clone()));
    let profiles = scenario.profiles.as_ref().map(|text| ("profiles".to_owned(), text.clone()));
    setup.engine.profile_only = profiles.is_some();
    setup.configuration = own.or(config_file).or(profiles);
    if let Some(entry) = &scenario.descheduler {
        setup.descheduler = Some(descheduling::settings(entry)?);
    }
    let until = duration(&scenario.until, "until")?.map(Time);

    let Both { mut happenings, mut deeds } = builder.cluster(scenario)?;
    let mut timeline: Vec<(i64, usize, &Spanned<TimelineEntry>)> = Vec::new();
    for (i, entry) in scenario.timeline.iter().enumerate() {
        let name = format!("timeline[{i}]");
        let when = entry.value.at.as_deref().ok_or_else(|| at(entry, &name, "says not when; give `at: 10s`"))?;
        timeline.push((ms(when, "at").map_err(|why| at(entry, &name, &why))?, i, entry));
    }
    timeline.sort_by_key(|(when, i, _)| (*when, *i));
    let mut last_event = Time(0);
    for (when, i, entry) in timeline {
        last_event = Time(when);
        let what = builder.event(&entry.value).map_err(|why| at(entry, &format!("timeline[{i}]"), &why))?;
        happenings.extend(what.happenings.into_iter().map(|(after, happening)| (Time(when) + after.0, happening)));
        deeds.extend(what.deeds.into_iter().map(|(after, deed)| (Time(when) + after.0, deed)));
    }
    happenings.sort_by_key(|(at, _)| *at);
    deeds.sort_by_key(|(at, _)| *at);
    Ok(Plan { setup, happenings, deeds, until, last_event, notes: builder.notes })
}

/// Reads a duration, naming the key.
pub(in crate::scenario) fn ms(text: &str, key: &str) -> Result<i64, String> {
    parse_duration(text).map_err(|why| format!("`{key}`: {why}"))
}

struct Builder {
    converter: Converter,
    /// Nodes as they stand, so that a change can leave the rest as it is.
    nodes: BTreeMap<String, NodeEntry>,
    queues: BTreeMap<String, QueueEntry>,
    /// Of pods that have no grace period of their own.
    evict_grace_ms: i64,
    /// Names under which pods ask for the scheduler; those that name none have the first.
    schedulers: Vec<String>,
    notes: Vec<String>,
}

/// What one part of the file comes to: for the simulator, and for a cluster. Times count from the part's own.
#[derive(Default)]
struct Both {
    happenings: Vec<(Time, Happening)>,
    deeds: Vec<(Time, Deed)>,
}

impl Both {
    fn of(happening: Happening, deed: Deed) -> Self {
        Self { happenings: vec![(Time(0), happening)], deeds: vec![(Time(0), deed)] }
    }

    fn object(event: Event, manifest: Value) -> Self {
        Self::of(object(event), Deed::Put(manifest))
    }

    fn extend(&mut self, other: Self) {
        self.happenings.extend(other.happenings);
        self.deeds.extend(other.deeds);
    }
}

impl Builder {
    fn cluster(&mut self, scenario: &Scenario) -> Result<Both, Wrong> {
        let mut all = Both::default();
        for (name, class) in &scenario.cluster.priority_classes {
            let class = priority_class(name, class);
            let manifest = manifest_of(&writer::priority_class(&class))?;
            all.extend(Both::object(Event::PriorityClass(class), manifest));
        }
        for name in ["root", "default"] {
            let named = scenario.cluster.queues.iter().any(|queue| queue.value.name == name);
            if !named {
                all.extend(self.queue(&QueueEntry { name: name.to_owned(), ..QueueEntry::default() })?);
            }
        }
        for (i, queue) in scenario.cluster.queues.iter().enumerate() {
            all.extend(self.queue(&queue.value).map_err(|why| at(queue, &format!("cluster.queues[{i}]"), &why))?);
        }
        for (i, node) in scenario.cluster.nodes.iter().enumerate() {
            all.extend(self.new_nodes(&node.value).map_err(|why| at(node, &format!("cluster.nodes[{i}]"), &why))?);
        }
        let mut manifests = Vec::new();
        for (i, manifest) in scenario.cluster.manifests.iter().enumerate() {
            readable(&manifest.value).map_err(|why| at(manifest, &format!("cluster.manifests[{i}]"), &why))?;
            manifests.push(manifest.value.clone());
        }
        all.extend(self.manifests(&manifests));
        Ok(all)
    }

    fn event(&mut self, entry: &TimelineEntry) -> Result<Both, String> {
        let mut found: Vec<(&str, Both)> = Vec::new();
        if let Some(job) = &entry.submit {
            found.push(("submit", self.submit(job)?));
        }
        if let Some(pod) = &entry.pod {
            found.push(("pod", self.pod(pod)?));
        }
        if let Some(which) = &entry.delete {
            found.push(("delete", delete(which)?));
            if let Some(node) = &which.node {
                self.nodes.remove(node);
            }
        }
        if let Some(which) = &entry.evict {
            let name = which.pod.as_deref().ok_or("`evict` names a pod: {pod: NAME}")?;
            let happening = Happening::EvictFrom { namespace: namespace_of(which), name: name.into() };
            found.push(("evict", Both::of(happening, Deed::Evict(target(which, TargetKind::Pod, name)))));
        }
        if let Some(which) = &entry.ungate {
            found.push(("ungate", ungate(which)?));
        }
        if let Some(entry) = &entry.rollout {
            found.push(("rollout", rollout(entry)?));
        }
        if let Some(node) = &entry.node {
            found.push(("node", self.changed_node(node)?));
        }
        if let Some(node) = &entry.add_node {
            found.push(("addNode", self.new_nodes(node)?));
        }
        if let Some(queue) = &entry.queue {
            found.push(("queue", self.queue(queue)?));
        }
        if let Some(manifest) = &entry.apply {
            readable(manifest)?;
            found.push(("apply", self.manifests(std::slice::from_ref(manifest))));
        }
        if let Some(text) = &entry.config {
            let happening = Happening::Configure { file: "config".to_owned(), text: text.clone() };
            found.push(("config", Both::of(happening, Deed::Configure(text.clone()))));
        }
        if let Some(entry) = &entry.fault {
            let fault = fault(entry)?;
            found.push(("fault", Both::of(Happening::Fault(fault.clone()), Deed::Fault(fault))));
        }
        if let Some(now) = entry.deschedule {
            found.push(("deschedule", descheduling::round(now)?));
        }
        if let Some(entry) = &entry.usage {
            found.push(("usage", descheduling::usage(entry)?));
        }
        match found.len() {
            1 => Ok(found.swap_remove(0).1),
            0 => Err("says nothing that happens; give one of submit, pod, delete, evict, ungate, rollout, node, addNode, queue, apply, config, fault, deschedule, usage".to_owned()),
            _ => {
                let keys: Vec<&str> = found.iter().map(|(key, _)| *key).collect();
                Err(format!("has {} at once; give each an entry of its own", keys.join(" and ")))
            }
        }
    }
}

fn object(event: Event) -> Happening {
    Happening::Object(Box::new(event))
}
