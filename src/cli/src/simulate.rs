//! `krafla simulate`: a workload on a simulated cluster, and what happened.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use krafla_api::{Converter, Located, LocatedProblem, Object, ReadOptions, parse_duration, read_manifests};
use krafla_engine::Configuration;
use krafla_model::Time;
use krafla_simulator::manifest::assemble_files;
use krafla_simulator::play::{Play, play};
use krafla_simulator::record::Record;
use krafla_simulator::report::html::to_html;
use krafla_simulator::report::json::{Timing, to_json};
use krafla_simulator::report::summary::summarize;
use krafla_simulator::report::tables;
use krafla_simulator::trace::options::{Derive, NodeList, Options};
use krafla_simulator::trace::{self, Source};
use krafla_simulator::world::Setup;

use crate::progress::Line;
use crate::registry::registry;
use crate::settings::{Settings, layered};
use crate::timing::Started;
use crate::{example, settings};

/// Run a workload on a simulated cluster and show what happened.
///
/// Without arguments: three teams (training gangs, Spark applications, plain services) on a small GPU cluster. The run
/// is in virtual time, so a year takes seconds; the same input and seed give the same bytes.
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
    #[arg(long, value_name = "PART")]
    warmup: Option<String>,
    /// Stop at this virtual time: `12h`.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Longest pause between cycles: `1s`.
    #[arg(long, value_name = "TIME")]
    period: Option<String>,
    /// Divide the times between submissions by this; run times stay.
    #[arg(long, value_name = "FACTOR")]
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
    /// Columns to derive where a trace lacks them: gangs, priorities, tenants=N, cpu-per-gpu=N, memory-per-gpu=16Gi;
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
    /// Read settings from a YAML file with these names as keys. Flags win; so does the environment
    /// (KRAFLA_SIMULATE_NODES=10).
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
}

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
      what would happen in a cluster, from its own objects";

/// Where the example's page goes.
const DEFAULT_REPORT: &str = "krafla-report.html";

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let file = arguments.settings.clone();
    let settings = layered(file.as_deref(), &flags(arguments))?;
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
    let (mut world, record) = play(source, setup, until, registry, prepare, &mut |progress| line.show(progress));
    line.done();
    if let Some(error) = failed {
        return Err(error);
    }
    world.finish_recording().context("--record")?;
    show(&settings, &record, &started)?;
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
        let files = example::FILES.map(|(name, text)| (name.to_owned(), text.to_owned()));
        return Ok(manifests("the example of conf/example".to_owned(), &files));
    };
    if let Some(path) = trace.strip_prefix("manifests:") {
        let mut files = Vec::new();
        read_files(Path::new(path), &mut files)?;
        if files.is_empty() {
            bail!("{path}: no .yaml, .yml or .json file there");
        }
        return Ok(manifests(path.to_owned(), &files));
    }
    let source: Source = trace.parse().with_context(|| format!("--trace {trace}"))?;
    let options = trace_options(settings)?;
    Ok(Play::Trace(trace::load(source.kind, &source.path, &options)?))
}

fn manifests(title: String, files: &[(String, String)]) -> Play {
    let mut objects: Vec<Located<Object>> = Vec::new();
    let mut problems: Vec<LocatedProblem> = Vec::new();
    for (name, text) in files {
        let read = read_manifests(text, name, &ReadOptions::default());
        objects.extend(read.objects);
        problems.extend(read.problems);
    }
    let assembled = assemble_files(objects, problems, &mut Converter::new());
    Play::Manifests { title, happenings: assembled.happenings, notes: assembled.notes, problems: assembled.problems }
}

/// Reads a file, or the manifests of a folder and of those in it, in name order.
fn read_files(path: &Path, files: &mut Vec<(String, String)>) -> anyhow::Result<()> {
    let name = path.display().to_string();
    if !path.is_dir() {
        files.push((name.clone(), std::fs::read_to_string(path).context(name)?));
        return Ok(());
    }
    let mut entries: Vec<PathBuf> = std::fs::read_dir(path)
        .with_context(|| name.clone())?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    entries.sort();
    for entry in entries {
        let is_manifest = entry.extension().is_some_and(|ext| ext == "yaml" || ext == "yml" || ext == "json");
        if entry.is_dir() || is_manifest {
            read_files(&entry, files)?;
        }
    }
    Ok(())
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
            "tenants" => derive.tenants = Some(value.parse().with_context(what)?),
            "cpu-per-gpu" => derive.cpu_per_gpu = Some(parse(value, Unit::Milli).with_context(what)?),
            "memory-per-gpu" => derive.memory_per_gpu = Some(parse(value, Unit::One).with_context(what)?),
            _ => bail!("--derive {key}: use gangs, priorities, tenants=N, cpu-per-gpu=N or memory-per-gpu=16Gi"),
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
    bail!("--strict: {} problems in the input\n  {}", problems.len(), problems.join("\n  "))
}

fn setup(settings: &Settings) -> anyhow::Result<Setup> {
    let mut setup = Setup { collect_finished: settings.trace.is_some(), ..Setup::default() };
    setup.engine.events = false;
    setup.engine.tie_seed = settings.shuffle_ties;
    if let Some(period) = &settings.period {
        setup.engine.period_ms = duration(period, "--period")?.max(1);
    }
    setup.configuration = match &settings.config {
        Some(path) => {
            let name = path.display().to_string();
            let text = std::fs::read_to_string(path).with_context(|| format!("--config {name}"))?;
            Some((name, text))
        }
        None if settings.trace.is_none() => {
            let (name, text) = example::CONFIGURATION;
            Some((name.to_owned(), text.to_owned()))
        }
        None => None,
    };
    if let Some((name, text)) = &setup.configuration {
        match Configuration::read(text, name, &registry()) {
            Ok((_, warnings)) => warnings.iter().for_each(|warning| eprintln!("{warning}\n")),
            Err(problems) => bail!("{name} is refused\n\n{}", problems.join("\n\n")),
        }
    }
    Ok(setup)
}

fn begin_recording(world: &mut krafla_simulator::world::World, path: &Path) -> anyhow::Result<()> {
    let name = || format!("--record {}", path.display());
    let file = std::fs::File::create(path).with_context(name)?;
    world.record_to(Box::new(BufWriter::new(file))).with_context(name)
}

/// Prints and writes what came of it.
fn show(settings: &Settings, record: &Record, started: &Started) -> anyhow::Result<()> {
    let warmup = settings.warmup.as_deref().map_or(Ok(0.0), part)?;
    let summary = summarize(record, warmup);
    let timing = started.timing(record);
    let to_stdout = settings.json.as_deref() == Some(Path::new("-"));
    if !to_stdout {
        let width = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).unwrap_or(120);
        print!("{}", tables::all(record, &summary, width));
    }
    if let Some(path) = &settings.json {
        let json = to_json(record, &summary, Some(&timing).filter(|_| settings.timing == Some(true)));
        if to_stdout {
            std::io::stdout().write_all(json.as_bytes())?;
        } else {
            write(path, &json)?;
        }
    }
    let default_report = settings.trace.is_none() && settings.json.is_none();
    let report = settings.report.clone().or_else(|| default_report.then(|| DEFAULT_REPORT.into()));
    if let Some(path) = report {
        write(&path, &to_html(record, &summary))?;
        eprintln!("report: {}", path.display());
    }
    eprintln!("{}", cost(record, &timing));
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
    parse_duration(text).map_err(|why| anyhow::anyhow!("{flag} {text}: {why}"))
}

/// A part of a whole: `1%` or `0.01`.
fn part(text: &str) -> anyhow::Result<f64> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let value: f64 = number.trim().parse().with_context(|| format!("--warmup {text}: write 1% or 0.01"))?;
    if !(0.0..1.0).contains(&(value / scale)) {
        bail!("--warmup {text}: must be from 0 to less than 1 (100%)");
    }
    Ok(value / scale)
}
