//! Expectations: what a scenario says must hold, and whether it does.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use krafla_model::resources::GPU_NAME;
use krafla_model::{Time, quantity, resources};
use serde_saphyr::Spanned;

use super::build::{Wrong, at, ms};
use super::format::{Expectation, Written};
use super::stage::{About, Holder, PodFacts, Stage};
use super::wanted::Wanted;

/// One expectation of a scenario.
#[derive(Clone, Debug)]
pub struct Expected {
    when: When,
    index: usize,
    what: Spanned<Expectation>,
}

impl Expected {
    /// Reads an expectation, with its number in the file.
    pub(super) fn read(index: usize, what: &Spanned<Expectation>) -> Result<Self, Wrong> {
        let wrong = |why: &str| at(what, &format!("expect[{index}]"), why);
        let when = when(&what.value).map_err(|why| wrong(&why))?;
        if asks_nothing(&what.value) {
            return Err(wrong("says nothing that must hold; see the table of keys in the scenario format"));
        }
        Ok(Self { when, index, what: what.clone() })
    }

    /// When it is checked.
    pub fn when(&self) -> When {
        self.when
    }

    /// The order in which expectations are checked.
    pub(super) fn order(&self) -> (When, usize) {
        (self.when, self.index)
    }

    /// Checks it. Each miss is a line: what was wanted, and what is. `Err`: it cannot be checked as written.
    pub fn check(&self, stage: &dyn Stage) -> Result<Checked, String> {
        check(stage, &self.what.value)
    }

    /// The same with its place in the file, for an expectation that cannot be checked.
    pub(super) fn wrong(&self, why: &str) -> Wrong {
        at(&self.what, &format!("expect[{}]", self.index), why)
    }

    /// The pod that it is about, if it is about one.
    pub fn pod(&self) -> Option<&str> {
        self.what.value.pod.as_deref()
    }

    /// The keys that it asks for, of those that only the scheduler itself can answer, or only in virtual time.
    pub fn inner_keys(&self) -> Vec<&'static str> {
        let e = &self.what.value;
        let keys = [
            ("deserved", e.deserved.is_some()),
            ("reason", e.reason.is_some()),
            ("reasonContains", e.reason_contains.is_some()),
            ("descheduled", e.descheduled.is_some()),
            ("share", e.share.is_some()),
            ("started", e.started.is_some()),
        ];
        keys.into_iter().filter_map(|(key, asked)| asked.then_some(key)).collect()
    }

    /// What is left of it without those keys; `None` if that is nothing.
    pub fn outer(&self) -> Option<Self> {
        let mut left = self.clone();
        let e = &mut left.what.value;
        (e.deserved, e.reason, e.reason_contains, e.share, e.started) = (None, None, None, None, None);
        e.descheduled = None;
        (!asks_nothing(&left.what.value)).then_some(left)
    }
}

impl fmt::Display for Expected {
    /// Which expectation it is: its line, its number, and the object that it is about.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, e) = (self.what.referenced.line(), &self.what.value);
        write!(f, "line {line}, expect[{}]", self.index)?;
        let node = e.node.as_ref().and_then(|node| node.as_deref()).filter(|_| e.pod.is_none());
        let named =
            [("job", e.job.as_deref()), ("pod", e.pod.as_deref()), ("queue", e.queue.as_deref()), ("node", node)];
        match named.iter().find_map(|(kind, name)| Some((kind, (*name)?))) {
            Some((kind, name)) => write!(f, " {kind} {name}"),
            None => Ok(()),
        }
    }
}

/// When an expectation is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum When {
    /// After the cycle of this time.
    At(Time),
    /// After the last cycle.
    End,
    /// After every cycle from this time on.
    Always(Time),
}

/// When `expectation` is checked.
fn when(expectation: &Expectation) -> Result<When, String> {
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
#[derive(Clone, Copy)]
enum Of<'a> {
    Job(usize),
    Pod(usize),
    Node(&'a str),
    Queue(&'a str),
    All,
}

/// What one check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checked {
    /// What differs, each in a line; nothing if all is as wanted.
    Misses(Vec<String>),
    /// The object that it is about is not there; this says so.
    Missing(String),
}

fn check(stage: &dyn Stage, wanted: &Expectation) -> Result<Checked, String> {
    let of = match subject(stage, wanted)? {
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
    number("bound", &wanted.bound, count(stage, of, |pod| pod.node.is_some() && !pod.over))?;
    number("pending", &wanted.pending, count(stage, of, |pod| pod.node.is_none() && !pod.over))?;
    number("ready", &wanted.ready, count(stage, of, |pod| pod.ready && !pod.gone))?;
    number("finished", &wanted.finished, count(stage, of, |pod| pod.succeeded))?;
    number("evictions", &wanted.evictions, count(stage, of, |pod| pod.evicted))?;
    let descheduled = if matches!(of, Of::All) { stage.descheduled().map(f64_of) } else { None };
    number("descheduled", &wanted.descheduled, descheduled)?;
    number("usedCpu", &wanted.used_cpu, used(stage, of, "cpu"))?;
    number("usedGpu", &wanted.used_gpu, used(stage, of, GPU_NAME))?;
    let share = if let (Of::Queue(queue), Some(_)) = (of, &wanted.share) { stage.share(queue) } else { None };
    number("share", &wanted.share, share)?;
    if let Some(distinct) = &wanted.distinct {
        let domains = domains(stage, of, &distinct.label).map(|domains| f64_of(domains.len()));
        number(&format!("distinct {}", distinct.label), &Some(distinct.count.clone()), domains)?;
    }
    if let Some(text) = &wanted.started {
        let at = Wanted::parse(text, |part| ms(part, "started").map(seconds)).map_err(|why| why.to_string())?;
        let Of::Job(job) = of else { return Err("`started` is asked of a job".to_owned()) };
        match stage.job(job).started {
            Some(is) if at.holds(seconds(is.0)) => {}
            is => {
                misses.push(format!("started: wanted {text}, is {}", is.map_or("never".to_owned(), |t| t.to_string())))
            }
        }
    }
    texts(stage, wanted, of, &mut misses)?;
    Ok(Checked::Misses(misses))
}

/// The keys whose values are not numbers.
fn texts(stage: &dyn Stage, wanted: &Expectation, of: Of<'_>, misses: &mut Vec<String>) -> Result<(), String> {
    let mut differs = |key: &str, wanted: &str, is: &str| misses.push(format!("{key}: wanted {wanted}, is {is}"));
    if let Some(phase) = &wanted.phase {
        let Of::Job(job) = of else { return Err("`phase` is asked of a job".to_owned()) };
        let is = stage.phase(job);
        if is.as_deref() != Some(phase) {
            differs("phase", phase, is.as_deref().unwrap_or("none"));
        }
    }
    if let (Some(node), Of::Pod(pod)) = (&wanted.node, of) {
        let pod = stage.pod(pod);
        let is = pod.node.filter(|_| !pod.gone);
        if is != node.as_deref() {
            differs("node", node.as_deref().unwrap_or("none"), is.unwrap_or("none"));
        }
    }
    if let Some(nominated) = &wanted.nominated {
        let Of::Pod(pod) = of else { return Err("`nominated` is asked of a pod".to_owned()) };
        let is = stage.pod(pod).nominated;
        if is != nominated.as_deref() {
            differs("nominated", nominated.as_deref().unwrap_or("none"), is.unwrap_or("none"));
        }
    }
    if let Some(nodes) = &wanted.on_nodes {
        let Of::Job(job) = of else { return Err("`onNodes` is asked of a job".to_owned()) };
        let wanted: BTreeSet<&str> = nodes.iter().map(String::as_str).collect();
        let is: BTreeSet<&str> = placed(stage, job).collect();
        if is != wanted {
            differs("onNodes", &list(&wanted), &list(&is));
        }
    }
    if let Some(spread) = &wanted.spread {
        let Some(domains) = domains(stage, of, &spread.label) else {
            return Err("`spread` is asked of a job".to_owned());
        };
        let mut is: Vec<u32> = domains.into_values().collect();
        is.sort_unstable_by(|a, b| b.cmp(a));
        if is != spread.counts {
            differs(&format!("spread {}", spread.label), &format!("{:?}", spread.counts), &format!("{is:?}"));
        }
    }
    if wanted.reason.is_some() || wanted.reason_contains.is_some() {
        let about = about(of).ok_or("`reason` is asked of a job or a pod")?;
        let waits = stage.reason(about);
        let (code, text) = waits.as_ref().map_or(("none", "it does not wait"), |(code, text)| (code, text));
        if wanted.reason.as_deref().is_some_and(|wanted| wanted != code) {
            differs("reason", wanted.reason.as_deref().unwrap_or_default(), &format!("{code} ({text})"));
        }
        if let Some(part) = wanted.reason_contains.as_deref().filter(|part| !text.contains(*part)) {
            differs("reasonContains", part, text);
        }
    }
    if let Some(event) = &wanted.event {
        let about = about(of).ok_or("`event` is asked of a pod or a job")?;
        let emitted = stage.events(about);
        if !emitted.contains(event) {
            differs("event", event, &if emitted.is_empty() { "none".to_owned() } else { emitted.join(", ") });
        }
    }
    if let Some(deserved) = &wanted.deserved {
        let Of::Queue(queue) = of else { return Err("`deserved` is asked of a queue".to_owned()) };
        for (resource, text) in deserved {
            let unit = resources::unit_of(resource);
            let read = |part: &str| quantity::parse(part, unit).map(f64_of_amount).map_err(|why| why.to_string());
            let wanted = Wanted::parse(text, read).map_err(|why| format!("`deserved` {resource}: {why}"))?;
            let held = stage.deserved(queue, resource).ok_or("`deserved` cannot be asked here")?;
            // A third of ten cores may be written 3.33.
            let near = if text.contains('.') && !text.contains("..") { f64_of_amount(held.abs()) * 0.005 } else { 0.0 };
            if !wanted.holds_within(f64_of_amount(held), near) {
                differs(&format!("deserved {resource}"), text, &quantity::format(held, unit));
            }
        }
    }
    Ok(())
}

fn about(of: Of<'_>) -> Option<About> {
    match of {
        Of::Job(job) => Some(About::Job(job)),
        Of::Pod(pod) => Some(About::Pod(pod)),
        Of::Node(_) | Of::Queue(_) | Of::All => None,
    }
}

/// The inner error is a miss: the object is not there.
fn subject<'a>(stage: &dyn Stage, wanted: &'a Expectation) -> Result<Result<Of<'a>, String>, String> {
    let node = wanted.node.as_ref().and_then(|node| node.as_deref()).filter(|_| wanted.pod.is_none());
    let named = [wanted.job.as_deref(), wanted.pod.as_deref(), node, wanted.queue.as_deref()];
    if named.iter().flatten().count() > 1 {
        return Err("names more than one of job, pod, node and queue".to_owned());
    }
    let here = |namespace: &str| wanted.namespace.as_deref().is_none_or(|wanted| namespace == wanted);
    // Of several of one name the newest counts.
    if let Some(name) = &wanted.job {
        let is_it = |&i: &usize| {
            let job = stage.job(i);
            job.name == name && here(job.namespace)
        };
        return Ok((0..stage.n_jobs()).rev().find(is_it).map(Of::Job).ok_or_else(|| format!("there is no job {name}")));
    }
    if let Some(name) = &wanted.pod {
        let is_it = |&i: &usize| {
            let pod = stage.pod(i);
            pod.name == name && here(pod.namespace)
        };
        return Ok((0..stage.n_pods()).rev().find(is_it).map(Of::Pod).ok_or_else(|| format!("there is no pod {name}")));
    }
    if let Some(name) = node {
        let known = stage.had_node(name);
        return Ok(if known { Ok(Of::Node(name)) } else { Err(format!("there is no node {name}")) });
    }
    if let Some(name) = &wanted.queue {
        let known = stage.has_queue(name);
        return Ok(if known { Ok(Of::Queue(name)) } else { Err(format!("there is no queue {name}")) });
    }
    Ok(Ok(Of::All))
}

/// The nodes of a job's pods, once a pod.
fn placed(stage: &dyn Stage, job: usize) -> impl Iterator<Item = &str> {
    stage.job(job).pods.iter().map(|&i| stage.pod(i)).filter(|pod| !pod.over).filter_map(|pod| pod.node)
}

fn count(stage: &dyn Stage, of: Of<'_>, counts: impl Fn(&PodFacts<'_>) -> bool) -> Option<f64> {
    let all = || (0..stage.n_pods()).map(|i| stage.pod(i));
    let n = match of {
        Of::Job(job) => stage.job(job).pods.iter().filter(|&&i| counts(&stage.pod(i))).count(),
        Of::Pod(pod) => usize::from(counts(&stage.pod(pod))),
        Of::Node(name) => all().filter(|pod| pod.node == Some(name) && counts(pod)).count(),
        Of::Queue(queue) => all().filter(|pod| stage.job(pod.job).queue == queue && counts(pod)).count(),
        Of::All => all().filter(|pod| counts(pod)).count(),
    };
    Some(f64_of(n))
}

/// Requests held of one resource, in whole units.
fn used(stage: &dyn Stage, of: Of<'_>, resource: &str) -> Option<f64> {
    let holder = match of {
        Of::Node(name) => Holder::Node(name),
        Of::Queue(name) => Holder::Queue(name),
        Of::Job(_) | Of::Pod(_) | Of::All => return None,
    };
    stage.used(holder, resource).map(milli_to_units)
}

/// Pods of a job by the value of a label of their nodes; `node` counts nodes.
fn domains(stage: &dyn Stage, of: Of<'_>, label: &str) -> Option<BTreeMap<String, u32>> {
    let Of::Job(job) = of else { return None };
    let mut domains = BTreeMap::new();
    for node in placed(stage, job) {
        let value = if label == "node" { Some(node.to_owned()) } else { stage.node_label(node, label) };
        *domains.entry(value.unwrap_or_else(|| "(none)".to_owned())).or_default() += 1;
    }
    Some(domains)
}

/// Whether an expectation asks for anything at all.
fn asks_nothing(e: &Expectation) -> bool {
    let numbers =
        [&e.bound, &e.ready, &e.pending, &e.finished, &e.evictions, &e.used_cpu, &e.used_gpu, &e.share, &e.started];
    let mut numbers = numbers.into_iter().chain([&e.descheduled]);
    let texts = [&e.phase, &e.reason, &e.reason_contains, &e.event];
    let lists = [e.on_nodes.is_some(), e.distinct.is_some(), e.spread.is_some(), e.deserved.is_some()];
    let places = [e.nominated.is_some(), e.pod.is_some() && e.node.is_some()];
    numbers.all(|key| key.is_none())
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
