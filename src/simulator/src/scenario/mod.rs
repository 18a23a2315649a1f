//! Scenarios: a scheduling story with its expected end, in one file. This is the test language for people who write a
//! `scheduler.conf`, and for this project itself.

mod build;
mod expect;
mod format;
mod invariants;
mod wanted;

use std::fmt;
use std::path::Path;

use krafla_engine::CycleReport;
use krafla_framework::Registry;
use expect::When;
use format::{Expectation, Scenario};

use crate::world::{Observer, World};

/// How long a run goes on after the last event when the file says nothing, in milliseconds.
const AFTER_LAST_EVENT_MS: i64 = 60_000;
/// Largest scenario file, in bytes.
const LARGEST: usize = 16 << 20;
/// Misses that are listed for one scenario; the others are counted.
const MOST_MISSES: usize = 20;

/// How a scenario went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Its name.
    pub name: String,
    /// Expectations that were checked, and how often.
    pub checks: u64,
    /// Cycles that ran.
    pub cycles: u64,
    /// Everything that was not as it should be, in words; empty if all held.
    pub misses: Vec<String>,
    /// What could not be done as written, in words.
    pub notes: Vec<String>,
}

impl Verdict {
    /// Whether all held.
    pub fn passed(&self) -> bool {
        self.misses.is_empty()
    }
}

/// A file that could not be read as a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable(pub String);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unreadable {}

/// Runs the scenario in `text`. `file` is its name in messages, and the place that `configFile` is relative to.
///
/// It runs twice: that both runs decide the same is invariant I5.
pub fn run(text: &str, file: &str, registry: fn() -> Registry) -> Result<Verdict, Unreadable> {
    if text.len() > LARGEST {
        return Err(Unreadable(format!("{file}: {} bytes are more than the {LARGEST} that a scenario may have", text.len())));
    }
    let scenario: Scenario = serde_saphyr::from_str(text).map_err(|error| Unreadable(place(file, &error)))?;
    let wanted = expectations(&scenario).map_err(|why| Unreadable(format!("{file}: {why}")))?;
    let (verdict, first) = run_once(&scenario, file, registry, &wanted)?;
    let (_, second) = run_once(&scenario, file, registry, &wanted)?;
    let mut verdict = verdict;
    if first != second {
        verdict.misses.push("I5: two runs of this file decided differently".to_owned());
    }
    Ok(verdict)
}

/// A parser's error, with the file before it.
fn place(file: &str, error: &serde_saphyr::Error) -> String {
    let text = error.to_string();
    match error.location() {
        Some(at) => format!("{file}:{}:{}: {}", at.line(), at.column(), first_line(&text)),
        None => format!("{file}: {text}"),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or(text)
}

fn expectations(scenario: &Scenario) -> Result<Vec<(When, usize, &Expectation)>, String> {
    let mut wanted = Vec::new();
    for (i, expectation) in scenario.expect.iter().enumerate() {
        wanted.push((expect::when(expectation).map_err(|why| format!("expect[{i}] {why}"))?, i, expectation));
    }
    wanted.sort_by_key(|(when, i, _)| (*when, *i));
    Ok(wanted)
}

fn run_once(
    scenario: &Scenario,
    file: &str,
    registry: fn() -> Registry,
    wanted: &[(When, usize, &Expectation)],
) -> Result<(Verdict, Vec<String>), Unreadable> {
    let unreadable = |why: String| Unreadable(format!("{file}: {why}"));
    let config_file = match &scenario.config_file {
        None => None,
        Some(path) => {
            let beside = Path::new(file).parent().unwrap_or(Path::new(".")).join(path);
            let text = std::fs::read_to_string(&beside)
                .map_err(|why| unreadable(format!("configFile {}: {why}", beside.display())))?;
            Some((path.clone(), text))
        }
    };
    let built = build::build(scenario, config_file).map_err(unreadable)?;
    if let Some((name, text)) = &built.setup.configuration {
        // A scenario is about a configuration that works; one that does not is a mistake of the file.
        krafla_engine::Configuration::read(text, name, &registry())
            .map_err(|problems| unreadable(format!("config: {}", problems.join("\n"))))?;
    }
    let mut world = World::new(built.setup.clone(), registry);
    let until = built.until;
    let last = built.last_event;
    for (at, happening) in built.happenings {
        world.plan(at, happening);
    }
    let always: Vec<(usize, &Expectation)> =
        wanted.iter().filter(|(when, ..)| *when == When::Always).map(|(_, i, e)| (*i, *e)).collect();
    let mut watch = Watch { always, ..Watch::default() };
    watch.verdict.name = scenario.scenario.clone();
    watch.verdict.notes = built.notes;
    for (when, i, expectation) in wanted {
        if let When::At(at) = when {
            world.run_until(*at, &mut watch);
            watch.check(&world, *i, expectation);
        }
    }
    let end = until.unwrap_or(world.now().max(last) + AFTER_LAST_EVENT_MS);
    world.run_until(end, &mut watch);
    for (when, i, expectation) in wanted {
        if *when == When::End {
            watch.check(&world, *i, expectation);
        }
    }
    if world.engine().panics() > 0 {
        watch.verdict.misses.push(format!("{} sessions panicked", world.engine().panics()));
    }
    if let Some(why) = watch.unreadable {
        return Err(unreadable(why));
    }
    let Watch { mut verdict, decisions, more, .. } = watch;
    if more > 0 {
        verdict.misses.push(format!("... and {more} more"));
    }
    verdict.cycles = world.cycles();
    verdict.notes.extend(world.problems().iter().map(|problem| format!("{}: {}", problem.object, problem.message)));
    Ok((verdict, decisions))
}

#[derive(Default)]
struct Watch<'a> {
    always: Vec<(usize, &'a Expectation)>,
    verdict: Verdict,
    decisions: Vec<String>,
    more: usize,
    unreadable: Option<String>,
}

impl Watch<'_> {
    fn check(&mut self, world: &World, index: usize, expectation: &Expectation) {
        self.verdict.checks += 1;
        match expect::check(world, expectation) {
            Ok(misses) => {
                let of = describe(expectation);
                for miss in misses {
                    self.miss(format!("at {}, expect[{index}]{of}: {miss}", world.now()));
                }
            }
            Err(why) => {
                self.unreadable.get_or_insert(format!("expect[{index}]: {why}"));
            }
        }
    }

    fn miss(&mut self, text: String) {
        if self.verdict.misses.len() < MOST_MISSES {
            self.verdict.misses.push(text);
        } else {
            self.more += 1;
        }
    }
}

impl Observer for Watch<'_> {
    fn cycle(&mut self, world: &World, report: &CycleReport) {
        for broken in invariants::broken(world, report) {
            self.miss(format!("at {}, {broken}", world.now()));
        }
        for (index, expectation) in self.always.clone() {
            self.check(world, index, expectation);
        }
        let cluster = world.engine().cluster();
        for decision in &report.decisions {
            self.decisions.push(match decision {
                krafla_framework::Decision::Bind(task) => {
                    let node = cluster.task(*task).node().map(|node| cluster.node(node).name().to_string());
                    format!("{} bind {} {}", world.now(), cluster.task_label(*task), node.unwrap_or_default())
                }
                krafla_framework::Decision::Evict(task, _) => {
                    format!("{} evict {}", world.now(), cluster.task_label(*task))
                }
            });
        }
    }
}

fn describe(expectation: &Expectation) -> String {
    let named = [
        ("job", expectation.job.as_deref()),
        ("pod", expectation.pod.as_deref()),
        ("queue", expectation.queue.as_deref()),
        ("node", expectation.node.as_ref().and_then(|node| node.as_deref()).filter(|_| expectation.pod.is_none())),
    ];
    named.iter().find_map(|(kind, name)| Some(format!(" {kind} {}", (*name)?))).unwrap_or_default()
}
