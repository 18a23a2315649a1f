//! Whether a scenario can be played on a cluster, and why not.

use std::collections::{BTreeMap, BTreeSet};

use krafla_model::Time;
use krafla_simulator::scenario::{Deed, Expected, Plan, Story, TargetKind, When};
use krafla_simulator::world::Fault;
use serde_json::Value;

use super::Rules;
use crate::ground::Guest;
use crate::hands::Hands;
use crate::seen::{Key, key_of};

/// Why a scenario cannot be played on a cluster, if it cannot.
pub(super) fn unfit(story: &Story, plan: &Plan, rules: Rules, guest: Option<&Guest>) -> Option<String> {
    let long = story.last_moment(plan);
    if long.0 > i64::try_from(rules.longest.as_millis()).unwrap_or(i64::MAX) {
        let longest = rules.longest.as_secs();
        return Some(format!("takes {long} of real time; more than {longest}s needs --longest"));
    }
    if let Some(why) = story.simulator_only() {
        return Some(format!("for the simulator only: {why}"));
    }
    if let Some(at) = within_a_bind(story, plan) {
        return Some(format!("looks at {at}, within its `bindLatency`: a real API server binds as fast as it does"));
    }
    if let Some(name) = taken_name(plan) {
        return Some(format!("makes pod {name} while the old one stops, which no API server lets happen"));
    }
    plan.deeds.iter().find_map(|(at, deed)| match (deed, guest) {
        (Deed::Fault(Fault::Restart), None) => None,
        (Deed::Fault(Fault::Restart), Some(_)) => Some("the scheduler of another cannot be restarted".to_owned()),
        (Deed::Fault(fault), _) => Some(format!("`fault: {}` needs the simulator's API server", in_words(fault))),
        (Deed::Rollout(..), _) => Some("`rollout` needs the simulator's controller".to_owned()),
        (Deed::Configure(_), Some(_)) => Some("the configuration of another scheduler cannot be changed".to_owned()),
        (deed, Some(guest)) if guest.use_nodes && changes_nodes(*at, deed) => {
            Some("changes nodes, and --use-nodes leaves them as they are".to_owned())
        }
        _ => None,
    })
}

/// Whether something is done to nodes, beyond making those of the start.
fn changes_nodes(at: Time, deed: &Deed) -> bool {
    match deed {
        Deed::Put(object) => object["kind"] == "Node" && at > Time(0),
        Deed::Delete(target) => target.kind == TargetKind::Node,
        _ => false,
    }
}

/// When the file looks at the cluster sooner after an event than it says that a bind takes.
fn within_a_bind(story: &Story, plan: &Plan) -> Option<Time> {
    let looks = story.expectations().iter().filter_map(|expected| match expected.when() {
        When::At(at) => Some(at),
        When::End | When::Always(_) => None,
    });
    let latency = plan.setup.bind_latency_ms;
    let mut early = looks.filter(|at| plan.deeds.iter().any(|(when, _)| when <= at && *at < *when + latency));
    early.next()
}

/// Pods that the file names: that it does something to, or asks about.
pub(super) fn named_pods(story: &Story, plan: &Plan) -> BTreeSet<String> {
    let asked = story.expectations().iter().filter_map(Expected::pod).map(str::to_owned);
    let done = plan.deeds.iter().filter_map(|(_, deed)| match deed {
        Deed::Delete(target) | Deed::Evict(target) if target.kind == TargetKind::Pod => Some(target.name.clone()),
        _ => None,
    });
    asked.chain(done).collect()
}

/// A pod that is to be made while one of its name, deleted with its job, still has time to stop.
fn taken_name(plan: &Plan) -> Option<String> {
    let mut until: BTreeMap<Key, Time> = BTreeMap::new();
    let mut pods_of: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for (at, deed) in &plan.deeds {
        match deed {
            Deed::Submit { group, pods, .. } => {
                if let Some(pod) = pods.iter().find(|pod| until.get(&key_of(pod)).is_some_and(|until| at < until)) {
                    return Some(key_of(pod).1);
                }
                if let Some(group) = group {
                    pods_of.insert(key_of(group).1, pods.iter().collect());
                }
            }
            Deed::Delete(target) if target.kind == TargetKind::Job => {
                for pod in pods_of.get(&target.name).into_iter().flatten() {
                    let grace = pod["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(0);
                    until.insert(key_of(pod), *at + grace * 1_000);
                }
            }
            _ => {}
        }
    }
    None
}

fn in_words(fault: &Fault) -> &'static str {
    match fault {
        Fault::Refuse { .. } => "refuse",
        Fault::TakeOn { .. } => "takeOn",
        Fault::Hang { .. } => "hang",
        Fault::Lose { .. } => "lost",
        Fault::WatchDrops { .. } => "watch: drop",
        Fault::ApiDown { .. } => "api: down",
        Fault::Restart => "scheduler: restart",
    }
}

/// The first kind of the file's objects that the cluster does not have.
pub(super) async fn unknown_kind(hands: &Hands, plan: &Plan, guest: Option<&Guest>) -> Result<Option<String>, String> {
    for (_, deed) in &plan.deeds {
        let Deed::Put(object) = deed else { continue };
        // A cluster without Volcano's kinds is still of use: its pods are scheduled one by one.
        let queue = object["kind"] == "Queue" && guest.is_some();
        if !queue && hands.kind(object).await?.is_none() {
            let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
            return Ok(Some(format!("the cluster has no {} of {}", text("kind"), text("apiVersion"))));
        }
    }
    Ok(None)
}
