//! Expectations: what a scenario says must hold, and whether it does.

use std::collections::{BTreeMap, BTreeSet};

use krafla_framework::Subject;
use krafla_framework::effect::PodRef;
use krafla_model::resources::GPU_NAME;
use krafla_model::{Name, QueueId, ResourceId, Time, quantity, resources};

use super::build::ms;
use super::format::{Expectation, Written};
use super::wanted::Wanted;
use crate::world::{Job, Pod, World};

/// When an expectation is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum When {
    /// After the cycle of this time.
    At(Time),
    /// After the last cycle.
    End,
    /// After every cycle from this time on.
    Always(Time),
}

/// When `expectation` is checked.
pub(super) fn when(expectation: &Expectation) -> Result<When, String> {
    match (expectation.at.as_deref(), expectation.always) {
        (None, true) => Ok(When::Always(Time(0))),
        (Some("end"), false) => Ok(When::End),
        (Some("end"), true) => Err("has both `at: end` and `always`; give one".to_owned()),
        (Some(at), false) => Ok(When::At(Time(ms(at, "at")?))),
        (Some(at), true) => Ok(When::Always(Time(ms(at, "at")?))),
        (None, false) => Err("says not when: give `at: 10s`, `at: end` or `always: true`".to_owned()),
    }
}

/// What an expectation looks at.
enum Of<'a> {
    Job(&'a Job),
    Pod(&'a Pod),
    Node(&'a str),
    Queue(QueueId),
    All,
}

/// What one check found.
pub(super) enum Checked {
    /// What differs, each in a line; nothing if all is as wanted.
    Misses(Vec<String>),
    /// The object that it is about is not there; this says so.
    Missing(String),
}

/// Checks one expectation. Each miss is a line: what was wanted, and what is. `Err`: it cannot be checked as written.
pub(super) fn check(world: &World, wanted: &Expectation) -> Result<Checked, String> {
    let of = match subject(world, wanted)? {
        Ok(of) => of,
        Err(missing) => return Ok(Checked::Missing(missing)),
    };
    let mut misses = Vec::new();
    let mut number = |key: &str, text: &Option<Written>, is: Option<f64>| -> Result<(), String> {
        let Some(text) = text else { return Ok(()) };
        let wanted = Wanted::number(text).map_err(|why| format!("`{key}`: {why}"))?;
        match is {
            None => Err(format!("`{key}` cannot be asked of this; see the table of keys in the scenario format")),
            Some(is) if wanted.holds(is) => Ok(()),
            Some(is) => {
                misses.push(format!("{key}: wanted {wanted}, is {}", tidy(is)));
                Ok(())
            }
        }
    };
    number("bound", &wanted.bound, count(world, &of, |pod| pod.spec.node.is_some() && !pod.is_over()))?;
    number("pending", &wanted.pending, count(world, &of, |pod| pod.spec.node.is_none() && !pod.is_over()))?;
    let ended = |pod: &Pod| pod.spec.phase == krafla_model::PodPhase::Succeeded;
    number("finished", &wanted.finished, count(world, &of, ended))?;
    number("evictions", &wanted.evictions, count(world, &of, |pod| pod.evicted))?;
    number("usedCpu", &wanted.used_cpu, used(world, &of, "cpu"))?;
    number("usedGpu", &wanted.used_gpu, used(world, &of, GPU_NAME))?;
    number("share", &wanted.share, share(world, &of))?;
    if let Some(distinct) = &wanted.distinct {
        let domains = domains(world, &of, &distinct.label).map(|domains| f64_of(domains.len()));
        number(&format!("distinct {}", distinct.label), &Some(distinct.count.clone()), domains)?;
    }
    if let Some(text) = &wanted.started {
        let at = Wanted::parse(text, |part| ms(part, "started").map(seconds)).map_err(|why| why.to_string())?;
        let Of::Job(job) = of else { return Err("`started` is asked of a job".to_owned()) };
        match job.started {
            Some(is) if at.holds(seconds(is.0)) => {}
            is => {
                misses.push(format!("started: wanted {text}, is {}", is.map_or("never".to_owned(), |t| t.to_string())))
            }
        }
    }
    texts(world, wanted, &of, &mut misses)?;
    Ok(Checked::Misses(misses))
}

/// The keys whose values are not numbers.
fn texts(world: &World, wanted: &Expectation, of: &Of<'_>, misses: &mut Vec<String>) -> Result<(), String> {
    let mut differs = |key: &str, wanted: &str, is: &str| misses.push(format!("{key}: wanted {wanted}, is {is}"));
    if let Some(phase) = &wanted.phase {
        let Of::Job(job) = of else { return Err("`phase` is asked of a job".to_owned()) };
        let cluster = world.engine().cluster();
        let is = cluster.find_job(&job.namespace, &job.name).map_or("none", |id| cluster.job(id).phase.as_str());
        if is != phase {
            differs("phase", phase, is);
        }
    }
    if let (Some(node), Of::Pod(pod)) = (&wanted.node, of) {
        let is = pod.spec.node.as_deref().filter(|_| !pod.gone);
        if is != node.as_deref() {
            differs("node", node.as_deref().unwrap_or("none"), is.unwrap_or("none"));
        }
    }
    if let Some(nominated) = &wanted.nominated {
        let Of::Pod(pod) = of else { return Err("`nominated` is asked of a pod".to_owned()) };
        let is = pod.spec.nominated.as_deref();
        if is != nominated.as_deref() {
            differs("nominated", nominated.as_deref().unwrap_or("none"), is.unwrap_or("none"));
        }
    }
    if let Some(nodes) = &wanted.on_nodes {
        let Of::Job(job) = of else { return Err("`onNodes` is asked of a job".to_owned()) };
        let wanted: BTreeSet<&str> = nodes.iter().map(String::as_str).collect();
        let is: BTreeSet<&str> = placed(world, job).filter_map(|pod| pod.spec.node.as_deref()).collect();
        if is != wanted {
            differs("onNodes", &list(&wanted), &list(&is));
        }
    }
    if let Some(spread) = &wanted.spread {
        let Some(domains) = domains(world, of, &spread.label) else {
            return Err("`spread` is asked of a job".to_owned());
        };
        let mut is: Vec<u32> = domains.into_values().collect();
        is.sort_unstable_by(|a, b| b.cmp(a));
        if is != spread.counts {
            differs(&format!("spread {}", spread.label), &format!("{:?}", spread.counts), &format!("{is:?}"));
        }
    }
    if wanted.reason.is_some() || wanted.reason_contains.is_some() {
        let is = reason(world, of)?;
        let (code, text) = is.clone().unwrap_or(("none", "it does not wait".to_owned()));
        if wanted.reason.as_deref().is_some_and(|wanted| wanted != code) {
            differs("reason", wanted.reason.as_deref().unwrap_or_default(), &format!("{code} ({text})"));
        }
        if let Some(part) = wanted.reason_contains.as_deref().filter(|part| !text.contains(*part)) {
            differs("reasonContains", part, &text);
        }
    }
    if let Some(event) = &wanted.event {
        let subject = match of {
            Of::Job(job) => Subject::Job { namespace: job.namespace.clone(), name: job.name.clone() },
            Of::Pod(pod) => Subject::Pod(PodRef {
                uid: pod.spec.uid.clone(),
                namespace: pod.spec.namespace().clone(),
                name: pod.spec.name.clone(),
            }),
            _ => return Err("`event` is asked of a pod or a job".to_owned()),
        };
        let emitted = world.emitted(&subject);
        if !emitted.contains(event) {
            differs("event", event, &if emitted.is_empty() { "none".to_owned() } else { emitted.join(", ") });
        }
    }
    if let Some(deserved) = &wanted.deserved {
        let Of::Queue(queue) = of else { return Err("`deserved` is asked of a queue".to_owned()) };
        let (engine, cluster) = (world.engine(), world.engine().cluster());
        let is = engine.configuration().plugins().deserved(*queue).unwrap_or_default();
        for (resource, text) in deserved {
            let unit = resources::unit_of(resource);
            let read = |part: &str| quantity::parse(part, unit).map(f64_of_amount).map_err(|why| why.to_string());
            let wanted = Wanted::parse(text, read).map_err(|why| format!("`deserved` {resource}: {why}"))?;
            let held = cluster.names().find(resource).map_or(0, |id| is.get(id));
            // A third of ten cores may be written 3.33.
            let near = if text.contains('.') && !text.contains("..") { f64_of_amount(held.abs()) * 0.005 } else { 0.0 };
            if !wanted.holds_within(f64_of_amount(held), near) {
                differs(&format!("deserved {resource}"), text, &quantity::format(held, unit));
            }
        }
    }
    Ok(())
}

/// The inner error is a miss: the object is not there.
fn subject<'a>(world: &'a World, wanted: &'a Expectation) -> Result<Result<Of<'a>, String>, String> {
    let node = wanted.node.as_ref().and_then(|node| node.as_deref()).filter(|_| wanted.pod.is_none());
    let named = [wanted.job.as_deref(), wanted.pod.as_deref(), node, wanted.queue.as_deref()];
    if named.iter().flatten().count() > 1 {
        return Err("names more than one of job, pod, node and queue".to_owned());
    }
    let here = |namespace: &Name| wanted.namespace.as_deref().is_none_or(|wanted| namespace == wanted);
    if let Some(name) = &wanted.job {
        let job = world.jobs().iter().rev().find(|job| job.name == name.as_str() && here(&job.namespace));
        return Ok(job.map(Of::Job).ok_or_else(|| format!("there is no job {name}")));
    }
    if let Some(name) = &wanted.pod {
        let found = (0..world.n_pods())
            .rev()
            .find(|&i| world.pod(i).spec.name == name.as_str() && here(world.pod(i).spec.namespace()));
        return Ok(found.map(|i| Of::Pod(world.pod(i))).ok_or_else(|| format!("there is no pod {name}")));
    }
    if let Some(name) = node {
        let known = world.had_node(name);
        return Ok(if known { Ok(Of::Node(name)) } else { Err(format!("there is no node {name}")) });
    }
    if let Some(name) = &wanted.queue {
        let queue = world.engine().cluster().find_queue(name);
        return Ok(queue.map(Of::Queue).ok_or_else(|| format!("there is no queue {name}")));
    }
    Ok(Ok(Of::All))
}

fn placed<'a>(world: &'a World, job: &'a Job) -> impl Iterator<Item = &'a Pod> {
    job.pods.iter().map(|&i| world.pod(i)).filter(|pod| !pod.is_over() && pod.spec.node.is_some())
}

fn count(world: &World, of: &Of<'_>, counts: impl Fn(&Pod) -> bool) -> Option<f64> {
    let all = || (0..world.n_pods()).map(|i| world.pod(i));
    let n = match of {
        Of::Job(job) => job.pods.iter().filter(|&&i| counts(world.pod(i))).count(),
        Of::Pod(pod) => usize::from(counts(pod)),
        Of::Node(name) => all().filter(|pod| pod.spec.node.as_deref() == Some(*name) && counts(pod)).count(),
        Of::Queue(queue) => {
            let name = &world.engine().cluster().queue(*queue).spec.name;
            all().filter(|pod| world.jobs()[pod.job].queue == *name && counts(pod)).count()
        }
        Of::All => all().filter(|pod| counts(pod)).count(),
    };
    Some(f64_of(n))
}

/// Requests held of one resource, in whole units.
fn used(world: &World, of: &Of<'_>, resource: &str) -> Option<f64> {
    let cluster = world.engine().cluster();
    let id: ResourceId = cluster.names().find(resource)?;
    let milli = match of {
        Of::Node(name) => cluster.node(cluster.find_node(name)?).books().used.get(id),
        Of::Queue(queue) => {
            let held = cluster.queue(*queue).held();
            held.allocated.get(id).saturating_add(held.releasing.get(id))
        }
        _ => return None,
    };
    Some(milli_to_units(milli))
}

fn share(world: &World, of: &Of<'_>) -> Option<f64> {
    let Of::Queue(queue) = of else { return None };
    let cluster = world.engine().cluster();
    let held = cluster.queue(*queue).held().allocated.clone().with(ResourceId::PODS, 0);
    Some(held.dominant_share(&cluster.totals().allocatable).into_inner())
}

/// Pods of a job by the value of a label of their nodes; `node` counts nodes.
fn domains(world: &World, of: &Of<'_>, label: &str) -> Option<BTreeMap<String, u32>> {
    let Of::Job(job) = of else { return None };
    let cluster = world.engine().cluster();
    let mut domains = BTreeMap::new();
    for pod in placed(world, job) {
        let name = pod.spec.node.as_deref()?;
        let domain = if label == "node" {
            name.to_owned()
        } else {
            let node = cluster.node(cluster.find_node(name)?);
            node.spec.labels.get(label).map_or_else(|| "(none)".to_owned(), ToString::to_string)
        };
        *domains.entry(domain).or_default() += 1;
    }
    Some(domains)
}

/// Code and text of what a job or pod waits for.
fn reason(world: &World, of: &Of<'_>) -> Result<Option<(&'static str, String)>, String> {
    let (cluster, reasons) = (world.engine().cluster(), world.engine().reasons());
    let standing = match of {
        Of::Job(job) => cluster.find_job(&job.namespace, &job.name).and_then(|id| reasons.job(id)),
        Of::Pod(pod) => cluster
            .find_task(&pod.spec.uid)
            .filter(|id| !cluster.task(*id).status().is_committed())
            .and_then(|id| reasons.task(id, cluster.task(id).job)),
        _ => return Err("`reason` is asked of a job or a pod".to_owned()),
    };
    Ok(standing.map(|standing| (standing.reason.code(), standing.reason.to_string())))
}

/// Whether an expectation asks for anything at all.
pub(super) fn asks_nothing(e: &Expectation) -> bool {
    let numbers = [&e.bound, &e.pending, &e.finished, &e.evictions, &e.used_cpu, &e.used_gpu, &e.share, &e.started];
    let texts = [&e.phase, &e.reason, &e.reason_contains, &e.event];
    let lists = [e.on_nodes.is_some(), e.distinct.is_some(), e.spread.is_some(), e.deserved.is_some()];
    let places = [e.nominated.is_some(), e.pod.is_some() && e.node.is_some()];
    numbers.iter().all(|key| key.is_none())
        && texts.iter().all(|key| key.is_none())
        && !lists.contains(&true)
        && !places.contains(&true)
}

fn list(names: &BTreeSet<&str>) -> String {
    let names: Vec<&str> = names.iter().copied().collect();
    format!("[{}]", names.join(", "))
}

fn tidy(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[allow(clippy::cast_precision_loss, reason = "counts of pods, far below 2^53")]
fn f64_of(n: usize) -> f64 {
    n as f64
}

#[allow(clippy::cast_precision_loss, reason = "times and amounts for comparison with written numbers")]
fn f64_of_amount(amount: i64) -> f64 {
    amount as f64
}

#[allow(clippy::cast_precision_loss, reason = "times and amounts for comparison with written numbers")]
fn milli_to_units(milli: i64) -> f64 {
    milli as f64 / 1000.0
}

fn seconds(ms: i64) -> f64 {
    milli_to_units(ms)
}
