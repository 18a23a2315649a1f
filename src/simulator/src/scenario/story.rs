//! A scenario that has been read, and what it plans.

use std::path::Path;

use krafla_framework::Registry;
use krafla_model::Time;

use super::Unreadable;
use super::build::{self, Wrong, at};
use super::deed::Deed;
use super::expect::{Expected, When};
use super::format::Scenario;
use crate::world::{Happening, Setup};

/// Largest scenario file, in bytes.
const LARGEST: usize = 16 << 20;

/// A scenario that can be played, as often as one likes.
pub struct Story {
    scenario: Scenario,
    file: String,
    /// Name and content of `configFile`.
    config_file: Option<(String, String)>,
    expectations: Vec<Expected>,
}

/// What a scenario plans, twice: as the simulator takes it, and as it is done to a cluster.
pub struct Plan {
    /// How the scheduler and the parts about it run.
    pub setup: Setup,
    /// What happens, in order of time; of one time in the order of the file.
    pub happenings: Vec<(Time, Happening)>,
    /// The same for a cluster.
    pub deeds: Vec<(Time, Deed)>,
    /// When the run ends, if the file says.
    pub until: Option<Time>,
    /// When the last event of the file happens.
    pub last_event: Time,
    /// What cannot be done as it is written, but harms nothing else.
    pub notes: Vec<String>,
}

impl Story {
    /// Reads the scenario in `text`. `file` is its name in messages, and the place that `configFile` is relative to.
    /// What can be known to be wrong in it is found here.
    pub fn read(text: &str, file: &str, registry: fn() -> Registry) -> Result<Self, Unreadable> {
        if text.len() > LARGEST {
            let n = text.len();
            return Err(Unreadable(format!("{file}: {n} bytes are more than the {LARGEST} that a scenario may have")));
        }
        let scenario: Scenario = serde_saphyr::from_str(text).map_err(|error| Unreadable(place(file, &error)))?;
        let expectations = scenario.expect.iter().enumerate().map(|(i, what)| Expected::read(i, what));
        let mut expectations: Vec<Expected> =
            expectations.collect::<Result<_, _>>().map_err(|wrong| wrong_at(file, &wrong))?;
        expectations.sort_by_key(Expected::order);
        let config_file = match &scenario.config_file {
            None => None,
            Some(path) => {
                let beside = Path::new(file).parent().unwrap_or(Path::new(".")).join(path);
                let text = std::fs::read_to_string(&beside)
                    .map_err(|why| Unreadable(format!("{file}: configFile {}: {why}", beside.display())))?;
                Some((path.clone(), text))
            }
        };
        let story = Self { scenario, file: file.to_owned(), config_file, expectations };
        let setup = story.plan()?.setup;
        if let Some((name, text)) = setup.configuration.clone() {
            // A scenario is about a configuration that works; one that does not is a mistake of the file.
            krafla_engine::Configuration::read(&text, &name, &registry(), setup.engine.profile_only).map_err(
                |problems| {
                    let why = problems.join("\n");
                    let wrong = story.scenario.config.as_ref().map(|config| at(config, "config", &why));
                    story.wrong(&wrong.unwrap_or_else(|| {
                        format!("{}: {why}", if name == "profiles" { "profiles" } else { "configFile" }).into()
                    }))
                },
            )?;
        }
        if let (Some(settings), Some(entry)) = (&setup.descheduler, &story.scenario.descheduler) {
            let build = registry().descheduler.ok_or_else(|| Unreadable("this build has no descheduler".to_owned()))?;
            build(settings).map_err(|problems| story.wrong(&at(entry, "descheduler.policy", &problems.join("\n"))))?;
        }
        Ok(story)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.scenario.scenario
    }

    /// Why it can only be played on the simulator, if the file says so.
    pub fn simulator_only(&self) -> Option<&str> {
        let descheduler = self.scenario.descheduler.as_ref().map(|_| "the descheduler has its rounds in virtual time");
        self.scenario.simulator_only.as_deref().or(descheduler)
    }

    /// What must hold, in the order in which it is checked: by time, those of the end and those of always last.
    pub fn expectations(&self) -> &[Expected] {
        &self.expectations
    }

    /// What happens.
    pub fn plan(&self) -> Result<Plan, Unreadable> {
        build::build(&self.scenario, self.config_file.clone()).map_err(|wrong| self.wrong(&wrong))
    }

    /// When the last thing of the file happens or is checked: how long it takes at least.
    pub fn last_moment(&self, plan: &Plan) -> Time {
        let checked = self.expectations.iter().filter_map(|expected| match expected.when() {
            When::At(at) => Some(at),
            When::End | When::Always(_) => None,
        });
        checked.chain([plan.last_event]).chain(plan.until).max().unwrap_or_default()
    }

    /// A mistake of the file, with its place.
    pub(super) fn wrong(&self, wrong: &Wrong) -> Unreadable {
        wrong_at(&self.file, wrong)
    }
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
