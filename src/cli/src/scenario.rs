//! `krafla scenario`: runs scheduling stories and checks their ends.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::Args;
use krafla_api::parse_duration;
use krafla_rehearsal::{Ground, Guest, Outcome, Rules, play};
use krafla_simulator::scenario::{self, Story, Verdict};

use crate::registry::registry;
use crate::{console, input};

/// A scenario is written by hand: a few kilobytes.
const MOST_BYTES: u64 = 16 << 20;
const ON_A_CLUSTER: &str = "On a cluster, in real time";

/// Run scenarios: scheduling stories with their expected ends.
///
/// On the simulator, in virtual time; with --cluster on a control plane of real parts (etcd, kube-apiserver,
/// kube-controller-manager) that is started for it on this machine; with --external against the scheduler of a cluster
/// that there is, to compare it with Krafla. Prints one line a scenario, and what was wanted and what came instead for
/// each miss. Exits 0 if all held, 1 if one missed, 2 if a file could not be read.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Scenario files, or folders of them.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Play on a test control plane of real parts, scheduled by Krafla. Files that need virtual time, or an API server
    /// that fails when told to, are skipped and say so.
    #[arg(long, help_heading = ON_A_CLUSTER)]
    cluster: bool,
    /// Play on the cluster of the kubeconfig, scheduled by whatever scheduler it has. What a file makes carries the
    /// label krafla.io/scenario, and is deleted at its end.
    #[arg(long, conflicts_with = "cluster", help_heading = ON_A_CLUSTER)]
    external: bool,
    /// Kubeconfig for --external; default: $KUBECONFIG or ~/.kube/config.
    #[arg(long, value_name = "FILE", requires = "external", help_heading = ON_A_CLUSTER)]
    kubeconfig: Option<PathBuf>,
    /// schedulerName of pods for --external, where the file says none.
    #[arg(long, value_name = "NAME", default_value = "volcano", requires = "external", help_heading = ON_A_CLUSTER)]
    scheduler_name: String,
    /// With --external: use the nodes that there are; those of the file are not made.
    #[arg(long, requires = "external", help_heading = ON_A_CLUSTER)]
    use_nodes: bool,
    /// With --external: run a stand-in for the kubelets of ALL nodes. Only for a cluster that has no kubelets.
    #[arg(long, requires = "external", help_heading = ON_A_CLUSTER)]
    kubelet: bool,
    /// How long an expectation may take to come true.
    #[arg(long, value_name = "TIME", default_value = "10s", help_heading = ON_A_CLUSTER)]
    patience: String,
    /// Skip scenarios that take longer than this.
    #[arg(long, value_name = "TIME", default_value = "120s", help_heading = ON_A_CLUSTER)]
    longest: String,
}

const EXAMPLES: &str = "\
Examples:
  krafla scenario test/scenarios                   all of a folder, on the simulator
  krafla scenario --cluster gang.yaml              on a control plane of real parts
  krafla scenario --external gang.yaml             on your cluster, with Volcano's scheduler
  krafla scenario --external --scheduler-name default-scheduler --use-nodes pods.yaml

A scenario:
  scenario: a-gang-waits
  cluster: {nodes: [{name: n, count: 2, cpu: 4}]}
  timeline:
  - {at: 0s, submit: {job: a, replicas: 3, minMember: 3, request: {cpu: 4}, runtime: 60s}}
  expect:
  - {at: 0s, job: a, bound: 0, reason: NotEnoughResources}";

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut files = Vec::new();
    for path in &arguments.files {
        files.extend(input::files(path, &["yaml", "yml"])?);
    }
    let mut counts = Counts::default();
    if arguments.cluster || arguments.external {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no runtime")?;
        runtime.block_on(on_a_cluster(arguments, &files, &mut counts))?;
    } else {
        for file in &files {
            let name = file.display().to_string();
            let verdict = input::text(file, MOST_BYTES).and_then(|text| Ok(scenario::run(&text, &name, registry)?));
            match verdict {
                Ok(verdict) => {
                    let how = format!("{} checks, {} cycles", verdict.checks, verdict.cycles);
                    counts.note(&verdict, &name, &how)?;
                }
                Err(error) => counts.unreadable(&error)?,
            }
        }
    }
    counts.sum_up()
}

async fn on_a_cluster(arguments: &Arguments, files: &[PathBuf], counts: &mut Counts) -> anyhow::Result<()> {
    let rules = Rules {
        patience: duration("--patience", &arguments.patience)?,
        longest: duration("--longest", &arguments.longest)?,
    };
    let mut stories = Vec::new();
    for file in files {
        match story_of(file) {
            Ok(story) => stories.push((file.display().to_string(), story)),
            Err(error) => counts.unreadable(&error)?,
        }
    }
    if stories.is_empty() {
        return Ok(());
    }
    let ground = if arguments.external {
        let guest = Guest {
            kubeconfig: arguments.kubeconfig.clone(),
            scheduler: arguments.scheduler_name.clone(),
            use_nodes: arguments.use_nodes,
            kubelet: arguments.kubelet,
        };
        Ground::guest(guest).await?
    } else {
        console::say("starting a control plane");
        Ground::sandbox(registry).await?
    };
    let n = stories.len();
    for (i, (file, story)) in stories.iter().enumerate() {
        let name = story.name();
        let mut say = |how: &str| console::say(&format!("[{}/{n}] {name}: {how}", i + 1));
        match play(&ground, story, rules, &mut say).await.map_err(|why| anyhow!("{file}: {why}"))? {
            Outcome::Played { verdict, unchecked, took } => {
                let mut how = format!("{} checks, {} s", verdict.checks, took.as_secs());
                if !unchecked.is_empty() {
                    how.push_str("; no API shows");
                    for (i, (key, n)) in unchecked.iter().enumerate() {
                        let _ = write!(how, "{} {key} ({n})", if i > 0 { "," } else { "" });
                    }
                }
                counts.note(&verdict, file, &how)?;
            }
            Outcome::Skipped { name, why } => counts.skip(&name, &why)?,
        }
    }
    Ok(())
}

fn story_of(file: &Path) -> anyhow::Result<Story> {
    let text = input::text(file, MOST_BYTES)?;
    Ok(Story::read(&text, &file.display().to_string(), registry)?)
}

fn duration(flag: &str, text: &str) -> anyhow::Result<Duration> {
    let ms = parse_duration(text).map_err(|why| anyhow!("{flag} {text}: {why}"))?;
    Ok(Duration::from_millis(u64::try_from(ms).unwrap_or(0)))
}

/// How many scenarios went how.
#[derive(Default)]
struct Counts {
    passed: usize,
    missed: usize,
    skipped: usize,
    unreadable: usize,
}

impl Counts {
    /// A scenario has been played; `how`, in a few words.
    fn note(&mut self, verdict: &Verdict, file: &str, how: &str) -> anyhow::Result<()> {
        if verdict.passed() {
            self.passed += 1;
            return console::print(&format!("ok      {} ({how})\n", verdict.name));
        }
        self.missed += 1;
        let mut text = format!("MISSED  {} ({file})\n", verdict.name);
        text.extend(verdict.misses.iter().map(|miss| format!("          {miss}\n")));
        text.extend(verdict.notes.iter().map(|note| format!("          note: {note}\n")));
        console::print(&text)
    }

    fn skip(&mut self, name: &str, why: &str) -> anyhow::Result<()> {
        self.skipped += 1;
        console::print(&format!("skipped {name}: {why}\n"))
    }

    fn unreadable(&mut self, error: &anyhow::Error) -> anyhow::Result<()> {
        self.unreadable += 1;
        console::print(&format!("UNREAD  {error:#}\n"))
    }

    fn sum_up(&self) -> anyhow::Result<ExitCode> {
        let Self { passed, missed, skipped, unreadable } = self;
        let skipped = if *skipped > 0 { format!(", {skipped} skipped") } else { String::new() };
        console::print(&format!("{passed} passed, {missed} missed{skipped}, {unreadable} could not be read\n"))?;
        Ok(ExitCode::from(match (missed, unreadable) {
            (0, 0) => 0,
            (_, 0) => 1,
            _ => 2,
        }))
    }
}
