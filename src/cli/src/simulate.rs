//! `krafla simulate`: a workload on a simulated cluster, and what happened.

use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use krafla_api::parse_duration;
use krafla_engine::Configuration;
use krafla_model::Time;
use krafla_simulator::play::{Play, Played, play};
use krafla_simulator::record::Record;
use krafla_simulator::report::html::to_html;
use krafla_simulator::report::json::{Timing, to_json};
use krafla_simulator::report::summary::summarize;
use krafla_simulator::report::tables;
use krafla_simulator::trace::error::LoadError;
use krafla_simulator::trace::options::{Derive, NodeList, Options};
use krafla_simulator::trace::{self, Source};
use krafla_simulator::world::{Restart, Setup};

use crate::experiment::{self, Experiment, Told};
use crate::progress::Line;
use crate::registry::registry;
use crate::settings::{Settings, layered};
use crate::timing::Started;
use crate::{console, example, input, manifests, settings};

/// Run a workload on a simulated cluster and show what happened.
///
/// Without arguments: three teams (training gangs, Spark applications, plain services) on a small GPU cluster. The run
/// is in virtual time, so a year takes seconds; the same input and seed give the same bytes. Exits 0 when the run is
/// over, whatever still waits then, and 2 if the input cannot be used.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// What to run: `KIND:PATH`, with KIND one of manifests, swf, philly, openb, helios, acme, spot, muri.
    #[arg(long, value_name = "KIND:PATH")]
    trace: Option<String>,
    /// The scheduler's configuration, in Volcano's form, bare or in its ConfigMap.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// How many nodes the cluster has; default: what the trace says. The mix of shapes is kept.
    #[arg(long, value_name = "N")]
    nodes: Option<u32>,
    /// Seed of everything that is derived.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Leave the first jobs that end out of the averages: `1%` or `0.01`.
    #[arg(long, value_name = "PART", allow_hyphen_values = true)]
    warmup: Option<String>,
    /// Stop at this virtual time: `12h`.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: Option<String>,
    /// Longest pause between cycles: `1s`.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    period: Option<String>,
    /// How long a pod that is made again takes to get back to its checkpoint: `30s`, which is the default. `none`: there
    /// is no checkpoint, and it begins anew.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    restart_cost: Option<String>,
    /// Divide the times between submissions by this; run times stay.
    #[arg(long, value_name = "FACTOR", allow_hyphen_values = true)]
    compress: Option<f64>,
    /// Take only the first jobs.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Write the report as one HTML page; default for the example: krafla-report.html.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write the results as JSON; `-` is standard output, and then no tables are printed.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Record everything that the scheduler is told and decides, for `krafla replay`.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Columns to derive where a trace lacks them: gangs, priorities, deserved, tenants=N, cpu-per-gpu=N,
    /// memory-per-gpu=16Gi;
    /// commas between.
    #[arg(long, value_name = "LIST")]
    derive: Option<String>,
    /// Processors of one node, for SWF logs of machines with many.
    #[arg(long, value_name = "N")]
    procs_per_node: Option<u32>,
    /// Node list of an openb or spot trace: gpu, all, or a file.
    #[arg(long, value_name = "LIST")]
    node_list: Option<String>,
    /// Order equal nodes by a hash of this seed instead of by name.
    #[arg(long, value_name = "N")]
    shuffle_ties: Option<u64>,
    /// Refuse input with anything in it that cannot be read, instead of leaving that out.
    #[arg(long)]
    strict: bool,
    /// Put wall time, memory and rates into the JSON, in a section of their own.
    #[arg(long)]
    timing: bool,
    /// Play an experiment instead. `fgd` and `defragment` need --data and are played on the openb lists; `drift` makes its
    /// own cluster and takes --nodes (500), --seed and --until (24h), `defragment` --seed.
    #[arg(long, value_name = "NAME", conflicts_with_all = NOT_WITH_EXPERIMENT)]
    experiment: Option<Experiment>,
    /// The folder with the data of an experiment.
    #[arg(long, value_name = "FOLDER", requires = "experiment")]
    data: Option<PathBuf>,
    /// Read settings from a YAML file with these names as keys. Flags win; so does the environment
    /// (KRAFLA_SIMULATE_NODES=10).
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
}

/// What has no say in any experiment.
const NOT_WITH_EXPERIMENT: [&str; 16] = [
    "trace",
    "config",
    "warmup",
    "period",
    "restart_cost",
    "compress",
    "limit",
    "report",
    "record",
    "derive",
    "procs_per_node",
    "node_list",
    "shuffle_ties",
    "strict",
    "timing",
    "settings",
];

const EXAMPLES: &str = "\
Examples:
  krafla simulate
      three teams on a small GPU cluster; tables here, and a page in krafla-report.html

  krafla simulate --trace swf:KTH-SP2.swf --config conf/presets/fifo.conf --warmup 1%
      a year of gangs on 100 nodes, first come first served

  krafla simulate --trace philly:philly_jobs.csv --nodes 59 --compress 2 --json -
      82,247 GPU jobs of 15 teams on fewer nodes and twice as fast, as JSON

  kubectl get nodes,pods,podgroups,queues -A -o yaml > dump.yaml
  krafla simulate --trace manifests:dump.yaml --until 1h
      what would happen in a cluster, from its own objects

  krafla simulate --experiment fgd --data openb
      six policies for fractional GPUs on the openb lists, beside the published numbers

  krafla simulate --experiment drift --nodes 100 --until 12h --json drift.json
      the descheduler in a day of drifting load, with the scheduler's plan and without it

  krafla simulate --experiment defragment --data openb
      gangs that fit once pods have been moved for them, beside as many moves at random";

/// More than any configuration has; the compiler's own limit, which is lower, gives the better message.
const MOST_BYTES: u64 = 64 << 20;
/// What a restart costs unless it is said: the Muri artifact reckons with 4 to 46 s, by model.
const RESTART_COST_MS: i64 = 30_000;
/// Where the example's page goes.
const DEFAULT_REPORT: &str = "krafla-report.html";

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if let Some(experiment) = arguments.experiment {
        let until_ms = arguments.until.as_deref().map(|text| duration(text, "--until")).transpose()?;
        let Arguments { data, json, nodes, seed, .. } = arguments;
        return experiment::run(experiment, &Told { data, json, nodes, seed, until_ms });
    }
    let file = arguments.settings.clone();
    let settings = layered("KRAFLA_SIMULATE", file.as_deref(), &flags(arguments))?;
    // Before anything is run: an hour's work should not end at a misspelt flag.
    let warmup = settings.warmup.as_deref().map_or(Ok(0.0), part)?;
    let started = Started::now();
    let source = workload(&settings)?;
    if settings.strict == Some(true) {
        refuse_problems(&source)?;
    }
    let setup = setup(&settings)?;
    let until = settings.until.as_deref().map(|text| duration(text, "--until")).transpose()?.map(Time);
    let recording = settings.record.clone();
    let line = Line::new();
    let mut failed = None;
    let prepare = |world: &mut krafla_simulator::world::World| {
        if let Some(path) = &recording {
            failed = begin_recording(world, path).err();
        }
    };
    let Played { mut world, record, broken } =
        play(source, setup, until, registry, prepare, &mut |progress| line.show(progress));
    line.done();
    if let Some(error) = failed {
        return Err(error);
    }
    world.finish_recording().context("--record")?;
    show(&settings, warmup, &record, &started)?;
    if !broken.is_empty() {
        bail!("what must always hold did not; please report this\n  {}", broken.join("\n  "));
    }
    if world.engine().panics() > 0 {
        bail!("{} sessions panicked; the log has the details (--log error)", world.engine().panics());
    }
    Ok(ExitCode::SUCCESS)
}

fn flags(arguments: Arguments) -> Settings {
    settings::Settings {
        trace: arguments.trace,
        config: arguments.config,
        nodes: arguments.nodes,
        seed: arguments.seed,
        warmup: arguments.warmup,
        until: arguments.until,
        period: arguments.period,
        restart_cost: arguments.restart_cost,
        compress: arguments.compress,
        limit: arguments.limit,
        report: arguments.report,
        json: arguments.json,
        record: arguments.record,
        derive: arguments.derive,
        procs_per_node: arguments.procs_per_node,
        node_list: arguments.node_list,
        shuffle_ties: arguments.shuffle_ties,
        strict: arguments.strict.then_some(true),
        timing: arguments.timing.then_some(true),
    }
}

/// The workload that the settings name: the example, manifests, or a trace.
fn workload(settings: &Settings) -> anyhow::Result<Play> {
    let Some(trace) = &settings.trace else {
        return manifests::example(settings);
    };
    if let Some(path) = trace.strip_prefix("manifests:").filter(|path| !path.is_empty()) {
        return manifests::read(Path::new(path), settings);
    }
    let source: Source = trace.parse().map_err(|error| match guess(trace) {
        Some(kind) => anyhow!("--trace {trace}: needs to be told what it is; write --trace {kind}:{trace}"),
        None => anyhow!("--trace: {error}"),
    })?;
    let options = trace_options(settings)?;
    let workload = trace::load(source.kind, &source.path, &options).map_err(|error| match error {
        LoadError::Option { option, message } => anyhow!("--{}: {message}", flag_of(option)),
        other => anyhow!(other),
    })?;
    Ok(Play::Trace(workload))
}

/// The kind that a path without one most probably is of.
fn guess(path: &str) -> Option<&'static str> {
    let path = Path::new(path);
    if path.is_dir() {
        return Some("manifests");
    }
    match path.extension().filter(|_| path.exists())?.to_str()? {
        "yaml" | "yml" => Some("manifests"),
        "swf" => Some("swf"),
        _ => None,
    }
}

/// The flag that an option of the importers is set with.
fn flag_of(option: &str) -> String {
    match option {
        "time_compression" => "compress".to_owned(),
        "tenants" | "cpu_per_gpu" | "memory_per_gpu" => format!("derive {}", option.replace('_', "-")),
        other => other.replace('_', "-"),
    }
}

fn trace_options(settings: &Settings) -> anyhow::Result<Options> {
    let mut options = Options { nodes: settings.nodes, limit: settings.limit, ..Options::default() };
    options.procs_per_node = settings.procs_per_node;
    if let Some(seed) = settings.seed {
        options.seed = seed;
    }
    if let Some(factor) = settings.compress {
        options.time_compression = factor;
    }
    options.node_list = match settings.node_list.as_deref() {
        None | Some("gpu") => NodeList::WithGpus,
        Some("all") => NodeList::All,
        Some(path) => NodeList::File(path.into()),
    };
    options.derive = derive(settings.derive.as_deref().unwrap_or_default())?;
    Ok(options)
}

fn derive(list: &str) -> anyhow::Result<Derive> {
    use krafla_model::quantity::{Unit, parse};
    let mut derive = Derive::default();
    for part in list.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let what = || format!("--derive {part}");
        match key {
            "gangs" => derive.gangs = true,
            "priorities" => derive.priorities = true,
            "deserved" => derive.deserved = true,
            "tenants" => {
                derive.tenants =
                    Some(value.parse().map_err(|_| anyhow!("{}: write a number, as in tenants=8", what()))?);
            }
            "cpu-per-gpu" => derive.cpu_per_gpu = Some(parse(value, Unit::Milli).with_context(what)?),
            "memory-per-gpu" => derive.memory_per_gpu = Some(parse(value, Unit::One).with_context(what)?),
            _ => bail!(
                "--derive {key}: there is no such column; use gangs, priorities, deserved, tenants=N, cpu-per-gpu=N or memory-per-gpu=16Gi"
            ),
        }
    }
    Ok(derive)
}

fn refuse_problems(source: &Play) -> anyhow::Result<()> {
    let problems: Vec<String> = match source {
        Play::Trace(workload) => workload.problems.iter().map(ToString::to_string).collect(),
        Play::Manifests { problems, .. } => problems.clone(),
    };
    if problems.is_empty() {
        return Ok(());
    }
    let n = problems.len();
    let list = problems.join("\n  ");
    bail!("--strict: {n} problem{} in the input\n  {list}", if n == 1 { "" } else { "s" })
}

fn setup(settings: &Settings) -> anyhow::Result<Setup> {
    let mut setup = Setup { collect_finished: settings.trace.is_some(), ..Setup::default() };
    setup.engine.events = false;
    setup.engine.tie_seed = settings.shuffle_ties;
    setup.restart = restart(settings.restart_cost.as_deref())?;
    if let Some(period) = &settings.period {
        setup.engine.period_ms = duration(period, "--period")?;
        if setup.engine.period_ms == 0 {
            bail!("--period {period}: must be at least 1ms");
        }
    }
    setup.configuration = match &settings.config {
        Some(path) => {
            let name = path.display().to_string();
            let text = input::text(path, MOST_BYTES).context("--config")?;
            Some((name, text))
        }
        None if settings.trace.is_none() => {
            let (name, text) = example::CONFIGURATION;
            Some((name.to_owned(), text.to_owned()))
        }
        None => None,
    };
    if let Some((name, text)) = &setup.configuration {
        match Configuration::read(text, name, &registry(), false) {
            Ok((_, warnings)) => warnings.iter().for_each(|warning| console::say(&format!("{warning}\n"))),
            Err(problems) => bail!("{name} is refused\n\n{}", problems.join("\n\n")),
        }
    }
    Ok(setup)
}

/// What becomes of the work of pods that are made again.
fn restart(cost: Option<&str>) -> anyhow::Result<Restart> {
    Ok(match cost {
        Some("none") => Restart::FromStart,
        Some(text) => Restart::FromCheckpoint { cost_ms: duration(text, "--restart-cost")? },
        None => Restart::FromCheckpoint { cost_ms: RESTART_COST_MS },
    })
}

fn begin_recording(world: &mut krafla_simulator::world::World, path: &Path) -> anyhow::Result<()> {
    let name = || format!("--record {}", path.display());
    let file = std::fs::File::create(path).with_context(name)?;
    world.record_to(Box::new(BufWriter::new(file))).with_context(name)
}

/// Prints and writes what came of it.
fn show(settings: &Settings, warmup: f64, record: &Record, started: &Started) -> anyhow::Result<()> {
    let summary = summarize(record, warmup);
    let timing = started.timing(record);
    let to_stdout = settings.json.as_deref() == Some(Path::new("-"));
    if !to_stdout {
        let width = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).unwrap_or(120);
        console::print(&tables::all(record, &summary, width))?;
    }
    if let Some(path) = &settings.json {
        let json = to_json(record, &summary, Some(&timing).filter(|_| settings.timing == Some(true)));
        if to_stdout {
            console::print(&json)?;
        } else {
            write(path, &json)?;
        }
    }
    let default_report = settings.trace.is_none() && settings.json.is_none();
    let report = settings.report.clone().or_else(|| default_report.then(|| DEFAULT_REPORT.into()));
    if let Some(path) = report {
        write(&path, &to_html(record, &summary))?;
        console::say(&format!("report: {}", path.display()));
    }
    console::say(&cost(record, &timing));
    Ok(())
}

/// What the run cost, in a line.
fn cost(record: &Record, timing: &Timing) -> String {
    let memory =
        timing.peak_memory_bytes.map_or_else(String::new, |bytes| format!(", {} MiB at the peak", bytes >> 20));
    format!(
        "{} jobs, {} of virtual time, {} cycles, {} decisions in {:.2} s of wall time: {:.0} decisions a second{memory}",
        record.jobs.len(),
        krafla_model::time::format_ms(record.end_ms),
        record.cycles,
        record.decisions,
        timing.wall_seconds,
        timing.decisions_per_second,
    )
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| path.display().to_string())
}

fn duration(text: &str, flag: &str) -> anyhow::Result<i64> {
    parse_duration(text).map_err(|why| anyhow!("{flag}: {why}"))
}

/// A part of a whole: `1%` or `0.01`.
fn part(text: &str) -> anyhow::Result<f64> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let value: f64 = number.trim().parse().map_err(|_| anyhow!("--warmup {text}: write 1% or 0.01"))?;
    if !(0.0..1.0).contains(&(value / scale)) {
        bail!("--warmup {text}: must be from 0 to less than 100%");
    }
    Ok(value / scale)
}
