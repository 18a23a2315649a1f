//! Recording and replay: a run as JSON lines, run again to the same decisions.
//!
//! The first line says how the engine was set up; each further line is one step: when, what it was told, and what it
//! decided. A recording starts with an empty cluster, so nothing else is needed to run it again.

use std::io::{BufRead, Write};

use krafla_framework::{Effect, Registry};
use krafla_model::Time;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::engine::{Engine, Options, Step};
use crate::input::Input;

/// The format that this build writes.
const FORMAT: u32 = 1;
/// Longest line that is read: a step of a million pods.
const LONGEST_LINE: u64 = 4 << 30;

#[derive(Serialize, Deserialize)]
struct Header {
    krafla_recording: u32,
    period_ms: i64,
    events: bool,
    tie_seed: Option<u64>,
    #[serde(default)]
    profile_only: bool,
    #[serde(default)]
    only_deschedules: bool,
}

#[derive(Serialize, Deserialize)]
struct Line {
    now: Time,
    inputs: Vec<Input>,
    effects: Vec<Effect>,
    cycle: bool,
}

/// Why a recording cannot be written or replayed.
#[derive(Debug, Error)]
pub enum RecordingError {
    /// Reading or writing failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// A line is not what it should be.
    #[error("line {line}: {message}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// What is wrong with it.
        message: String,
    },
}

/// Writes the steps of an engine as they happen.
pub struct Recorder<W: Write> {
    out: W,
}

impl<W: Write> Recorder<W> {
    /// Begins a recording of an engine that was just made.
    pub fn new(mut out: W, options: Options) -> Result<Self, RecordingError> {
        let header = Header {
            krafla_recording: FORMAT,
            period_ms: options.period_ms,
            events: options.events,
            tie_seed: options.tie_seed,
            profile_only: options.profile_only,
            only_deschedules: options.only_deschedules,
        };
        write_line(&mut out, &header)?;
        Ok(Self { out })
    }

    /// Writes one step.
    pub fn record(&mut self, now: Time, inputs: Vec<Input>, step: &Step) -> Result<(), RecordingError> {
        let line = Line { now, inputs, effects: step.effects.clone(), cycle: step.cycle.is_some() };
        write_line(&mut self.out, &line)
    }

    /// Finishes it.
    pub fn finish(mut self) -> Result<(), RecordingError> {
        Ok(self.out.flush()?)
    }
}

fn write_line(out: &mut impl Write, value: &impl Serialize) -> Result<(), RecordingError> {
    serde_json::to_writer(&mut *out, value).map_err(std::io::Error::from)?;
    Ok(out.write_all(b"\n")?)
}

/// How a replay went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    /// Steps that were run again.
    pub steps: u64,
    /// Cycles among them.
    pub cycles: u64,
    /// Effects among which a difference was looked for.
    pub effects: u64,
    /// The first difference, if there is one.
    pub difference: Option<Difference>,
}

/// Where a replay left the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The line of the recording.
    pub line: u64,
    /// The time of the step.
    pub now: Time,
    /// What was recorded there.
    pub recorded: String,
    /// What came out now.
    pub replayed: String,
}

/// Runs a recording again, up to the first difference.
pub fn replay(recording: impl BufRead, registry: Registry) -> Result<Replay, RecordingError> {
    let mut lines = Lines { input: recording, number: 0 };
    let header: Header = lines.next()?.ok_or_else(|| RecordingError::Line {
        line: 1,
        message: "the file is empty; a recording begins with {\"krafla_recording\":1,...}".to_owned(),
    })?;
    if header.krafla_recording != FORMAT {
        return Err(RecordingError::Line {
            line: 1,
            message: format!("recording format {}, this build reads {FORMAT}", header.krafla_recording),
        });
    }
    let options = Options {
        period_ms: header.period_ms,
        profile_only: header.profile_only,
        only_deschedules: header.only_deschedules,
        events: header.events,
        tie_seed: header.tie_seed,
        plain_search: false,
    };
    let mut engine = Engine::new(registry, options);
    let mut replay = Replay::default();
    while let Some(line) = lines.next::<Line>()? {
        let step = engine.step(line.now, line.inputs);
        replay.steps += 1;
        replay.cycles += u64::from(step.cycle.is_some());
        replay.effects += step.effects.len() as u64;
        if step.effects != line.effects {
            let at = step.effects.iter().zip(&line.effects).take_while(|(new, old)| new == old).count();
            let text =
                |effects: &[Effect]| effects.get(at).map_or("nothing".to_owned(), |effect| format!("{effect:?}"));
            replay.difference = Some(Difference {
                line: lines.number,
                now: line.now,
                recorded: text(&line.effects),
                replayed: text(&step.effects),
            });
            break;
        }
    }
    Ok(replay)
}

struct Lines<R> {
    input: R,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    fn next<T: for<'de> Deserialize<'de>>(&mut self) -> Result<Option<T>, RecordingError> {
        let mut text = Vec::new();
        let mut limited = std::io::Read::take(&mut self.input, LONGEST_LINE);
        limited.read_until(b'\n', &mut text)?;
        self.number += 1;
        if text.is_empty() {
            return Ok(None);
        }
        serde_json::from_slice(&text)
            .map(Some)
            .map_err(|error| RecordingError::Line { line: self.number, message: error.to_string() })
    }
}
