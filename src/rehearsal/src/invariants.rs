//! The standing invariants that an API shows: no node is overfilled (I1), no gang is in parts (I2).
//!
//! Watches of different kinds come at their own pace, and the pods of a gang are bound one by one: so what looks broken
//! is a suspicion at first, and counts when it is still so a while later.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use krafla_model::PodPhase;
use krafla_model::quantity::format;
use krafla_model::resources::unit_of;

use crate::seen::Seen;

/// How long news of a node may be behind those of its pods.
const NEWS_WITHIN: Duration = Duration::from_secs(1);
/// How long the pods of a gang may take from the first bind to the last.
const GANG_WITHIN: Duration = Duration::from_secs(5);

/// More is held on a node than it has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Overfilled {
    pub(crate) node: String,
    pub(crate) resource: String,
    pub(crate) held: i64,
}

/// What may be broken.
#[derive(Debug, Default)]
pub(crate) struct Suspicions {
    overfilled: Vec<(Instant, Overfilled)>,
    /// When pods of a job were last bound, unless one was lost since: then it is in parts for a reason.
    bound: BTreeMap<usize, Instant>,
    said: BTreeSet<String>,
}

impl Suspicions {
    pub(crate) fn overfilled(&mut self, what: Overfilled) {
        self.overfilled.push((Instant::now(), what));
    }

    pub(crate) fn bound(&mut self, job: usize) {
        self.bound.insert(job, Instant::now());
    }

    pub(crate) fn lost(&mut self, job: usize) {
        self.bound.remove(&job);
    }
}

/// What is broken, each once.
pub(crate) fn broken(seen: &mut Seen, gangs: bool) -> Vec<String> {
    let mut suspicions = std::mem::take(&mut seen.suspicions);
    let now = Instant::now();
    let mut broken = Vec::new();
    suspicions.overfilled.retain(|(since, what)| {
        let ripe = now - *since >= NEWS_WITHIN;
        let has = seen.nodes.get(&what.node).and_then(|node| node.allocatable.get(&what.resource)).unwrap_or(0);
        if ripe && what.held > has {
            let written = |amount| format(amount, unit_of(&what.resource));
            broken.push(format!(
                "I1: node {} has {} of {}, and {} is held",
                what.node,
                written(has),
                what.resource,
                written(what.held)
            ));
        }
        !ripe
    });
    suspicions.bound.retain(|job, since| {
        let ripe = now - *since >= GANG_WITHIN;
        if ripe && gangs {
            broken.extend(in_parts(seen, *job));
        }
        !ripe
    });
    broken.retain(|text| suspicions.said.insert(text.clone()));
    seen.suspicions = suspicions;
    broken
}

/// A gang of which some members are bound, but fewer than its minimum. Pending pods without a request count, as the
/// gang plugin counts them.
fn in_parts(seen: &Seen, job: usize) -> Option<String> {
    let job = &seen.jobs[job];
    let min = job.group.as_ref()?.min_member as usize;
    let pods = || job.pods.iter().map(|&i| &seen.pods[i]);
    let bound = pods().filter(|pod| pod.holds() || pod.spec.phase == PodPhase::Succeeded).count();
    let free =
        pods().filter(|pod| !pod.gone && pod.spec.node.is_none() && pod.spec.shape.request.iter().next().is_none());
    (bound > 0 && bound + free.count() < min)
        .then(|| format!("I2: {}/{} has {bound} members bound, fewer than its minimum {min}", job.key.0, job.key.1))
}
