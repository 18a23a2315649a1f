//! Scenarios: a scheduling story with its expected end, in one file. This is the test language for people who write a
//! `scheduler.conf`, and for this project itself.

mod build;
mod expect;
mod format;
mod wanted;

use std::fmt;
use std::path::Path;

use build::{Wrong, at};
use expect::{Checked, When};
use format::{Expectation, Scenario};
use krafla_engine::CycleReport;
use krafla_framework::Registry;
use krafla_model::Time;
use serde_saphyr::Spanned;

use crate::invariants;
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
        return Err(Unreadable(format!(
            "{file}: {} bytes are more than the {LARGEST} that a scenario may have",
            text.len()
        )));
    }
    let scenario: Scenario = serde_saphyr::from_str(text).map_err(|error| Unreadable(place(file, &error)))?;
    let wanted = expectations(&scenario).map_err(|wrong| wrong_at(file, &wrong))?;
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
        Some(at) => format!("{file}:{}:{}: {}", at.line(), at.column(), plain_words(&text)),
        None => format!("{file}: {text}"),
    }
}

/// What the parser says, without the place, which stands before it already, and without names of Rust types.
fn plain_words(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or(text);
    let line = line.strip_prefix("error: ").unwrap_or(line);
    let said = line.strip_prefix("line ").and_then(|rest| rest.split_once(": ")).map_or(line, |(_, said)| said);
    match said {
        "invalid u32" | "invalid u64" | "invalid u16" | "invalid u8" => "not a whole number, 0 or more".to_owned(),
        "invalid i32" => "not a whole number".to_owned(),
        "invalid bool" => "neither `true` nor `false`".to_owned(),
        "expected sequence start" => "a list is wanted here: [...] or lines that begin with `-`".to_owned(),
        "expected mapping start" => "keys with values are wanted here: {key: value}".to_owned(),
        _ => said.split(", set DuplicateKeyPolicy").next().unwrap_or(said).to_owned(),
    }
}

fn wrong_at(file: &str, wrong: &Wrong) -> Unreadable {
    Unreadable(match wrong.at {
        Some((line, column)) => format!("{file}:{line}:{column}: {}", wrong.why),
        None => format!("{file}: {}", wrong.why),
    })
}

/// An expectation with its time and its number.
type Numbered<'a> = (When, usize, &'a Spanned<Expectation>);

fn expectations(scenario: &Scenario) -> Result<Vec<Numbered<'_>>, Wrong> {
    let mut wanted = Vec::new();
    for (i, expectation) in scenario.expect.iter().enumerate() {
        let wrong = |why: &str| at(expectation, &format!("expect[{i}]"), why);
        let when = expect::when(&expectation.value).map_err(|why| wrong(&why))?;
        if expect::asks_nothing(&expectation.value) {
            return Err(wrong("says nothing that must hold; see the table of keys in the scenario format"));
        }
        wanted.push((when, i, expectation));
    }
    wanted.sort_by_key(|(when, i, _)| (*when, *i));
    Ok(wanted)
}

fn run_once(
    scenario: &Scenario,
    file: &str,
    registry: fn() -> Registry,
    wanted: &[Numbered<'_>],
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
    let built = build::build(scenario, config_file).map_err(|wrong| wrong_at(file, &wrong))?;
    if let Some((name, text)) = &built.setup.configuration {
        // A scenario is about a configuration that works; one that does not is a mistake of the file.
        krafla_engine::Configuration::read(text, name, &registry()).map_err(|problems| {
            let why = problems.join("\n");
            let wrong = scenario.config.as_ref().map(|config| at(config, "config", &why));
            wrong_at(file, &wrong.unwrap_or_else(|| format!("configFile: {why}").into()))
        })?;
    }
    let mut world = World::new(built.setup.clone(), registry);
    let until = built.until;
    let last = built.last_event;
    for (at, happening) in built.happenings {
        world.plan(at, happening);
    }
    let standing = wanted.iter().filter_map(|(when, index, expectation)| match when {
        When::Always(from) => Some(Standing { from: *from, index: *index, expectation, unseen: Some(String::new()) }),
        _ => None,
    });
    let mut watch = Watch { always: standing.collect(), ..Watch::default() };
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
    for standing in std::mem::take(&mut watch.always) {
        if let Some(missing) = standing.unseen {
            let why = if missing.is_empty() {
                "no cycle ran after its time".to_owned()
            } else {
                format!("{missing}, and never was")
            };
            watch.miss(format!("{}: {why}", describe(standing.index, standing.expectation)));
        }
    }
    if world.engine().panics() > 0 {
        watch.verdict.misses.push(format!("{} sessions panicked", world.engine().panics()));
    }
    if let Some(wrong) = watch.unreadable {
        return Err(wrong_at(file, &wrong));
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
    always: Vec<Standing<'a>>,
    verdict: Verdict,
    decisions: Vec<String>,
    more: usize,
    unreadable: Option<Wrong>,
}

/// An expectation that holds after every cycle. Until the object that it is about comes, there is nothing to check.
#[derive(Clone)]
struct Standing<'a> {
    from: Time,
    index: usize,
    expectation: &'a Spanned<Expectation>,
    /// That the object is not there, as long as it never was.
    unseen: Option<String>,
}

impl Watch<'_> {
    fn check(&mut self, world: &World, index: usize, expectation: &Spanned<Expectation>) {
        self.verdict.checks += 1;
        match expect::check(world, &expectation.value) {
            Ok(Checked::Misses(misses)) => self.missed(world, index, expectation, misses),
            Ok(Checked::Missing(missing)) => self.missed(world, index, expectation, vec![missing]),
            Err(why) => self.cannot_be_checked(index, expectation, &why),
        }
    }

    fn check_standing(&mut self, world: &World, standing: &mut Standing<'_>) {
        match expect::check(world, &standing.expectation.value) {
            Ok(Checked::Missing(missing)) if standing.unseen.is_some() => standing.unseen = Some(missing),
            Ok(Checked::Missing(_)) => {}
            Ok(Checked::Misses(misses)) => {
                self.verdict.checks += 1;
                standing.unseen = None;
                self.missed(world, standing.index, standing.expectation, misses);
            }
            Err(why) => self.cannot_be_checked(standing.index, standing.expectation, &why),
        }
    }

    fn missed(&mut self, world: &World, index: usize, expectation: &Spanned<Expectation>, misses: Vec<String>) {
        for miss in misses {
            self.miss(format!("at {}, {}: {miss}", world.now(), describe(index, expectation)));
        }
    }

    fn cannot_be_checked(&mut self, index: usize, expectation: &Spanned<Expectation>, why: &str) {
        self.unreadable.get_or_insert_with(|| at(expectation, &format!("expect[{index}]"), why));
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
        let mut always = std::mem::take(&mut self.always);
        for standing in always.iter_mut().filter(|standing| standing.from <= world.now()) {
            self.check_standing(world, standing);
        }
        self.always = always;
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

/// Which expectation it is: its line, its number, and the object that it is about.
fn describe(index: usize, expectation: &Spanned<Expectation>) -> String {
    let (line, expectation) = (expectation.referenced.line(), &expectation.value);
    let named = [
        ("job", expectation.job.as_deref()),
        ("pod", expectation.pod.as_deref()),
        ("queue", expectation.queue.as_deref()),
        ("node", expectation.node.as_ref().and_then(|node| node.as_deref()).filter(|_| expectation.pod.is_none())),
    ];
    let of = named.iter().find_map(|(kind, name)| Some(format!(" {kind} {}", (*name)?))).unwrap_or_default();
    format!("line {line}, expect[{index}]{of}")
}
