//! The search for devices: all claims of a pod that have nothing yet, on one node.
//!
//! Pools are taken by driver and name, devices in their order within, alternatives in theirs; the first set of devices that
//! satisfies everything is taken. Each device that is tried is a step, and steps are bounded.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use krafla_cel::Quantity;

use super::local::LocalDevices;
use super::pools::{Pool, PoolKey};
use super::selectors::Match;
use super::spec::{
    AllocatedDevice, Allocation, Alternative, Attribute, DeviceAccess, DeviceChoice, DeviceConstraint, DeviceRequest,
    DeviceSpec,
};
use super::{Claim, DynamicResources, spec_label};
use crate::labels::{NodeSelectorTerm, Test};
use crate::name::Name;
use crate::node::Node;
use crate::taints::{Effect, tolerated};
use crate::task::Task;

/// Devices that are tried for one pod on one node. A node's few devices take a handful; only constraints that cannot be met
/// come near it.
pub const USUAL_STEPS: u64 = 100_000;

/// Devices that one claim may have: Kubernetes' bound.
pub(super) const MAX_DEVICES: usize = 32;

/// Alternatives of a request: Kubernetes' bound, and what the first of them counts.
const BEST_SCORE: i64 = 8;

/// Whether a node serves the claims of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// It does.
    Fits {
        /// The claims, each with what it has or would get.
        choices: Vec<DeviceChoice>,
        /// How early the alternatives are that were taken: 8 for a first one, less one for each before it.
        score: i64,
    },
    /// It does not.
    Blocked(Obstacle),
}

/// Why a node does not serve the claims of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// A claim cannot be used at all.
    Unusable(String),
    /// A claim has devices that the node does not reach.
    Elsewhere {
        /// Its name.
        claim: Name,
    },
    /// There are too few devices for a request.
    Short(Shortage),
    /// There are enough for each request by itself, but not for all together, or not under the claim's constraints.
    NoCombination {
        /// The first claim that found none.
        claim: Name,
    },
    /// An expression has no answer for a device.
    Failed(String),
    /// The search was given up.
    TooManySteps(u64),
}

/// A request for which there are too few devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// The claim.
    pub claim: Name,
    /// The request, with its alternative.
    pub request: Name,
    /// How many devices it asks for; `None`: all that match, at least one.
    pub asked: Option<u32>,
    /// Devices that match.
    pub matching: u32,
    /// Those of them that nobody has.
    pub free: u32,
}

pub(super) fn plan(dra: &DynamicResources, node: &Node, namespace: &Name, pod: &Task, steps: u64) -> Plan {
    let claims = match dra.claims_of(namespace, &pod.uid, &pod.claims) {
        Ok(claims) => claims,
        Err(why) => return Plan::Blocked(Obstacle::Unusable(why)),
    };
    let mut choices = Vec::new();
    let mut pending: Vec<&Claim> = Vec::new();
    for claim in claims {
        match dra.allocation(claim) {
            Some(allocation) if allocation.reaches(node) => choices.push(choice(claim, Arc::clone(allocation))),
            Some(_) => return Plan::Blocked(Obstacle::Elsewhere { claim: claim.spec.name.clone() }),
            None => pending.push(claim),
        }
    }
    if pending.is_empty() {
        return Plan::Fits { choices, score: 0 };
    }
    if let Some(flaw) = pending.iter().find_map(|claim| dra.flaw(claim)) {
        return Plan::Blocked(Obstacle::Unusable(flaw));
    }
    let mut search = match Search::new(dra, node, &pending, steps) {
        Ok(search) => search,
        Err(obstacle) => return Plan::Blocked(obstacle),
    };
    if search.next_request(0, 0) {
        let (allocations, score) = search.result();
        choices.extend(pending.iter().zip(allocations).map(|(claim, allocation)| choice(claim, Arc::new(allocation))));
        return Plan::Fits { choices, score };
    }
    Plan::Blocked(if search.steps_left == 0 {
        Obstacle::TooManySteps(steps)
    } else {
        search.shortage().map_or_else(|| search.no_combination(), Obstacle::Short)
    })
}

fn choice(claim: &Claim, allocation: Arc<Allocation>) -> DeviceChoice {
    let spec = &claim.spec;
    DeviceChoice { namespace: spec.namespace.clone(), name: spec.name.clone(), uid: spec.uid.clone(), allocation }
}

impl Allocation {
    /// Whether its devices can be used from a node.
    pub fn reaches(&self, node: &Node) -> bool {
        let terms = self.nodes.as_ref();
        terms.is_none_or(|terms| terms.iter().any(|term| term.matches(node.name(), &node.spec.labels)))
    }
}

/// A device that may serve a request: its pool and its place there, and what is taken of it.
#[derive(Clone, Debug)]
struct Candidate {
    pool: usize,
    device: usize,
    consumed: Vec<(Name, Quantity)>,
}

/// Devices that may serve one alternative of a request.
#[derive(Debug, Default)]
struct Candidates {
    all: Vec<Candidate>,
    /// A pool of the node cannot be seen in full, so that all of it cannot be had.
    in_flux: bool,
}

/// A device that was taken.
struct Pick {
    claim: usize,
    request: usize,
    alternative: usize,
    candidate: Candidate,
}

struct Search<'a> {
    dra: &'a DynamicResources,
    node: &'a Node,
    claims: &'a [&'a Claim],
    pools: Vec<(&'a PoolKey, &'a Pool)>,
    /// By claim, request and alternative.
    candidates: Vec<Vec<Vec<Candidates>>>,
    picks: Vec<Pick>,
    /// The alternative that each request has, in the order of the search.
    taken: Vec<usize>,
    /// Values of the attribute of each constraint of each claim, of the devices that were taken.
    values: Vec<Vec<Vec<Attribute>>>,
    /// How far the search came: the claim and the request that found nothing.
    furthest: (usize, usize),
    steps_left: u64,
}

impl<'a> Search<'a> {
    fn new(dra: &'a DynamicResources, node: &'a Node, claims: &'a [&'a Claim], steps: u64) -> Result<Self, Obstacle> {
        let local = dra.local.get(node.name()).into_iter().flat_map(LocalDevices::pools);
        let mut keys: Vec<&PoolKey> = local.chain(&dra.wide).collect();
        keys.sort_unstable();
        keys.dedup();
        let pools = keys.into_iter().filter_map(|key| Some((key, dra.pools.get(key)?))).collect();
        let values = claims.iter().map(|claim| vec![Vec::new(); claim.spec.constraints.len()]).collect();
        let mut search = Self {
            dra,
            node,
            claims,
            pools,
            candidates: Vec::new(),
            picks: Vec::new(),
            taken: Vec::new(),
            values,
            furthest: (0, 0),
            steps_left: steps,
        };
        for claim in claims {
            let mut of_claim = Vec::new();
            for (request, selectors) in claim.spec.requests.iter().zip(&claim.selectors) {
                let mut of_request = Vec::new();
                for (alternative, selectors) in request.alternatives.iter().zip(selectors) {
                    let found = search.candidates_for(alternative, selectors).map_err(|why| {
                        let label = spec_label(request, alternative);
                        Obstacle::Failed(format!("claim {}, request {label}: {why}", claim.spec.name))
                    })?;
                    of_request.push(found);
                }
                of_claim.push(of_request);
            }
            search.candidates.push(of_claim);
        }
        Ok(search)
    }

    /// Devices that may serve one alternative, whoever has them now. `Err`: an expression has no answer for one of them.
    fn candidates_for(&self, alternative: &Alternative, selectors: &[super::SelectorId]) -> Result<Candidates, String> {
        let mut found = Candidates::default();
        let of_class = self.dra.classes.get(&alternative.class).map_or(&[][..], |class| &class.selectors);
        for (at, ((driver, _), pool)) in self.pools.iter().enumerate() {
            for (i, device) in pool.devices.iter().enumerate() {
                if device.needs_preparation || !device.access.reaches(self.node) {
                    continue;
                }
                let mut fits = true;
                for (n, &selector) in of_class.iter().chain(selectors).enumerate() {
                    match pool.matches(selector, i) {
                        Match::Yes => {}
                        Match::No => {
                            fits = false;
                            break;
                        }
                        Match::Failed => {
                            let (whose, n) = match n.checked_sub(of_class.len()) {
                                None => (format!("class {}", alternative.class), n),
                                Some(n) => ("the request".to_owned(), n),
                            };
                            let why = pool.failure(selector);
                            return Err(format!("expression {n} of {whose} has no answer {why}"));
                        }
                    }
                }
                let keeps_off = |taint: &crate::taints::Taint| {
                    taint.effect != Effect::PreferNoSchedule && !tolerated(&alternative.tolerations, taint)
                };
                if !fits || device.taints.iter().any(keeps_off) {
                    continue;
                }
                if pool.problem.is_some() {
                    found.in_flux = true;
                    continue;
                }
                if let Some(consumed) = device.consumption(driver, &alternative.capacity) {
                    found.all.push(Candidate { pool: at, device: i, consumed });
                }
            }
        }
        Ok(found)
    }

    /// Serves the requests from this one on.
    fn next_request(&mut self, claim: usize, request: usize) -> bool {
        if claim == self.claims.len() {
            return true;
        }
        let requests = &self.claims[claim].spec.requests;
        let Some(wanted) = requests.get(request) else { return self.next_request(claim + 1, 0) };
        self.furthest = self.furthest.max((claim, request));
        for (i, alternative) in wanted.alternatives.iter().enumerate() {
            self.taken.push(i);
            let candidates = &self.candidates[claim][request][i];
            let served = match alternative.count {
                Some(count) => self.some(claim, request, i, count, 0),
                None if candidates.in_flux || candidates.all.is_empty() => false,
                None => self.all(claim, request, i),
            };
            if served {
                return true;
            }
            self.taken.pop();
        }
        false
    }

    /// Takes `count` devices from the candidate at `from` on, and goes on with the next request.
    fn some(&mut self, claim: usize, request: usize, alternative: usize, count: u32, from: usize) -> bool {
        if count == 0 {
            return self.next_request(claim, request + 1);
        }
        let n = self.candidates[claim][request][alternative].all.len();
        for i in from..n {
            if self.steps_left == 0 {
                return false;
            }
            self.steps_left -= 1;
            if !self.take(claim, request, alternative, i) {
                continue;
            }
            // The same set in another order would do as well or as badly; of a shared device another part may do.
            let next = if self.device_of(claim, request, alternative, i).shared { i } else { i + 1 };
            if self.some(claim, request, alternative, count - 1, next) {
                return true;
            }
            self.give_back();
        }
        false
    }

    /// Takes all devices that match, and goes on with the next request.
    fn all(&mut self, claim: usize, request: usize, alternative: usize) -> bool {
        let n = self.candidates[claim][request][alternative].all.len();
        let mut done = 0;
        while done < n && self.steps_left > 0 && self.take(claim, request, alternative, done) {
            self.steps_left -= 1;
            done += 1;
        }
        if done == n && self.next_request(claim, request + 1) {
            return true;
        }
        for _ in 0..done {
            self.give_back();
        }
        false
    }

    fn alternative(&self, claim: usize, request: usize, alternative: usize) -> (&'a DeviceRequest, &'a Alternative) {
        let request = &self.claims[claim].spec.requests[request];
        (request, &request.alternatives[alternative])
    }

    fn device_of(&self, claim: usize, request: usize, alternative: usize, candidate: usize) -> &'a DeviceSpec {
        let candidate = &self.candidates[claim][request][alternative].all[candidate];
        &self.pools[candidate.pool].1.devices[candidate.device]
    }

    /// Takes a device, if nobody has it and the claim's constraints allow it.
    fn take(&mut self, claim: usize, request: usize, alternative: usize, at: usize) -> bool {
        let candidate = self.candidates[claim][request][alternative].all[at].clone();
        let (wanted, chosen) = self.alternative(claim, request, alternative);
        if self.picks.iter().filter(|pick| pick.claim == claim).count() >= MAX_DEVICES {
            return false;
        }
        if !chosen.admin_access && !self.is_free(&candidate) {
            return false;
        }
        let (driver, _) = self.pools[candidate.pool].0;
        let device = &self.pools[candidate.pool].1.devices[candidate.device];
        let about: Vec<Option<Attribute>> = {
            let constraints = &self.claims[claim].spec.constraints;
            let mut about = Vec::with_capacity(constraints.len());
            for (constraint, values) in constraints.iter().zip(&self.values[claim]) {
                if !constraint.is_about(wanted, chosen) {
                    about.push(None);
                    continue;
                }
                let Some(value) = device.attribute(driver, &constraint.attribute) else { return false };
                let holds = if constraint.distinct {
                    !values.contains(value)
                } else {
                    values.first().is_none_or(|one| one == value)
                };
                if !holds {
                    return false;
                }
                about.push(Some(value.clone()));
            }
            about
        };
        for (values, value) in self.values[claim].iter_mut().zip(about) {
            values.extend(value);
        }
        self.picks.push(Pick { claim, request, alternative, candidate });
        true
    }

    fn give_back(&mut self) {
        let Some(pick) = self.picks.pop() else { return };
        let (request, alternative) = self.alternative(pick.claim, pick.request, pick.alternative);
        let constraints = &self.claims[pick.claim].spec.constraints;
        for (constraint, values) in constraints.iter().zip(&mut self.values[pick.claim]) {
            if constraint.is_about(request, alternative) {
                values.pop();
            }
        }
    }

    /// Whether a device, or what is asked of a shared one, and what it draws on, is had by nobody.
    fn is_free(&self, candidate: &Candidate) -> bool {
        let pool = self.pools[candidate.pool].1;
        let (device, used) = (&pool.devices[candidate.device], &pool.used[candidate.device]);
        let here = || {
            self.picks.iter().filter(|pick| {
                let (_, alternative) = self.alternative(pick.claim, pick.request, pick.alternative);
                pick.candidate.pool == candidate.pool && !alternative.admin_access
            })
        };
        let taken_here = here().any(|pick| pick.candidate.device == candidate.device);
        if !device.shared && (used.claims > 0 || taken_here) {
            return false;
        }
        for (name, amount) in &candidate.consumed {
            let capacity =
                device.capacity.iter().find(|(own, _)| own == name).map_or_else(Quantity::default, |(_, c)| c.value);
            let mut sum = used.consumed.get(name).copied().unwrap_or_default().plus(*amount);
            for pick in here().filter(|pick| pick.candidate.device == candidate.device) {
                sum =
                    pick.candidate.consumed.iter().filter(|(own, _)| own == name).fold(sum, |sum, (_, n)| sum.plus(*n));
            }
            if sum > capacity {
                return false;
            }
        }
        // What is shared draws once, when its first part is given out.
        if device.consumes.is_empty() || used.claims > 0 || taken_here {
            return true;
        }
        let mut drawn: BTreeMap<(&Name, &Name), Quantity> = BTreeMap::new();
        let mut devices: Vec<usize> = here().map(|pick| pick.candidate.device).collect();
        devices.sort_unstable();
        devices.dedup();
        let before = devices.into_iter().filter(|&one| pool.used[one].claims == 0).map(|one| &pool.devices[one]);
        for (set, name, amount) in before.chain([device]).flat_map(|one| &one.consumes) {
            let sum = drawn.entry((set, name)).or_default();
            *sum = sum.plus(*amount);
        }
        device.consumes.iter().all(|(set, name, _)| {
            let left = pool.counters.get(&(set.clone(), name.clone()));
            left.is_some_and(|left| drawn.get(&(set, name)).is_none_or(|sum| sum <= left))
        })
    }

    /// What each claim gets, and how early the alternatives are.
    fn result(&self) -> (Vec<Allocation>, i64) {
        let mut allocations = vec![Allocation::default(); self.claims.len()];
        let mut terms: Vec<Vec<&NodeSelectorTerm>> = vec![Vec::new(); self.claims.len()];
        let mut on_this_node = vec![false; self.claims.len()];
        for (n, pick) in self.picks.iter().enumerate() {
            let (request, alternative) = self.alternative(pick.claim, pick.request, pick.alternative);
            let label = spec_label(request, alternative);
            let ((driver, name), pool) = self.pools[pick.candidate.pool];
            let device = &pool.devices[pick.candidate.device];
            let allocation = &mut allocations[pick.claim];
            let configured = self.dra.classes.get(&alternative.class).is_some_and(|class| class.spec.has_config);
            if configured && !allocation.configured.iter().any(|(known, _)| *known == label) {
                allocation.configured.push((label.clone(), alternative.class.clone()));
            }
            let claim = &self.claims[pick.claim].spec.uid;
            allocation.devices.push(AllocatedDevice {
                request: label,
                driver: driver.clone(),
                pool: name.clone(),
                device: device.name.clone(),
                admin_access: alternative.admin_access,
                consumed: pick.candidate.consumed.clone(),
                share: device.shared.then(|| share_id(claim, &device.name, n)),
            });
            match &device.access {
                DeviceAccess::Node(_) => on_this_node[pick.claim] = true,
                DeviceAccess::Selector(all) => {
                    let reaches = |term: &&NodeSelectorTerm| term.matches(self.node.name(), &self.node.spec.labels);
                    terms[pick.claim].extend(all.iter().find(reaches));
                }
                DeviceAccess::Nowhere | DeviceAccess::Everywhere => {}
            }
        }
        for ((allocation, terms), here) in allocations.iter_mut().zip(terms).zip(on_this_node) {
            allocation.nodes = if here {
                let name = vec![Test::In(vec![self.node.name().clone()])];
                Some(vec![NodeSelectorTerm { labels: Vec::new(), name }])
            } else if terms.is_empty() {
                None
            } else {
                let mut all = NodeSelectorTerm::default();
                for term in terms {
                    all.labels.extend(
                        term.labels.iter().filter(|one| !all.labels.contains(one)).cloned().collect::<Vec<_>>(),
                    );
                    all.name
                        .extend(term.name.iter().filter(|one| !all.name.contains(one)).cloned().collect::<Vec<_>>());
                }
                Some(vec![all])
            };
        }
        let requests = self.claims.iter().flat_map(|claim| &claim.spec.requests);
        let scores = requests.zip(&self.taken).filter(|(request, _)| !request.alternatives[0].name.is_empty());
        let score = scores.map(|(_, &i)| BEST_SCORE - i64::try_from(i).unwrap_or(BEST_SCORE)).sum();
        (allocations, score)
    }

    /// The first request for which there are too few devices, whatever the others take.
    fn shortage(&self) -> Option<Shortage> {
        for (claim, of_claim) in self.claims.iter().zip(&self.candidates) {
            for (request, of_request) in claim.spec.requests.iter().zip(of_claim) {
                let mut short = None;
                for (alternative, candidates) in request.alternatives.iter().zip(of_request) {
                    let n = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
                    let matching = n(candidates.all.len());
                    let free = candidates.all.iter().filter(|one| alternative.admin_access || self.could_be_free(one));
                    let free = n(free.count());
                    let enough = match alternative.count {
                        Some(asked) => free >= asked || candidates.all.iter().any(|one| self.is_shared(one)),
                        None => matching > 0 && free == matching && !candidates.in_flux,
                    };
                    if enough {
                        short = None;
                        break;
                    }
                    short.get_or_insert_with(|| Shortage {
                        claim: claim.spec.name.clone(),
                        request: spec_label(request, alternative),
                        asked: alternative.count,
                        matching,
                        free,
                    });
                }
                if short.is_some() {
                    return short;
                }
            }
        }
        None
    }

    fn is_shared(&self, candidate: &Candidate) -> bool {
        self.pools[candidate.pool].1.devices[candidate.device].shared
    }

    /// The search has given everything back: what is free now is what others leave.
    fn could_be_free(&self, candidate: &Candidate) -> bool {
        self.is_free(candidate)
    }

    fn no_combination(&self) -> Obstacle {
        Obstacle::NoCombination { claim: self.claims[self.furthest.0].spec.name.clone() }
    }
}

impl DeviceConstraint {
    fn is_about(&self, request: &DeviceRequest, alternative: &Alternative) -> bool {
        self.requests.is_empty()
            || self.requests.iter().any(|one| match one.split_once('/') {
                None => *one == request.name,
                Some((name, part)) => *name == *request.name && *part == *alternative.name,
            })
    }
}

/// The identity of a part of a shared device, in the form of a UUID. The API server wants it to be unique within the device.
fn share_id(claim: &Name, device: &Name, n: usize) -> Name {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new(); // fixed keys: the same on every run
        (claim, device, n, salt).hash(&mut hasher);
        hasher.finish()
    };
    let (a, b) = (half(0), half(1));
    let text = format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        a >> 32,
        a >> 16 & 0xffff,
        a & 0xfff,
        b >> 52,
        b & 0xffff_ffff_ffff
    );
    text.into()
}
