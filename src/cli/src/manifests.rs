//! Manifests as the workload of `krafla simulate`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::bail;
use krafla_api::{Converter, ReadOptions, read_manifests};
use krafla_model::{Event, Name, NodeSpec, Time};
use krafla_simulator::manifest::assemble_files;
use krafla_simulator::play::Play;
use krafla_simulator::world::Happening;

use crate::settings::Settings;
use crate::{example, input};

/// The example of `conf/example`.
pub(crate) fn example(settings: &Settings) -> anyhow::Result<Play> {
    let files = example::FILES.map(|(name, text)| (name.to_owned(), text.to_owned()));
    play("Three teams on a small GPU cluster (conf/example)".to_owned(), &files, settings)
}

/// The manifests of a file, of a folder and of those in it, or (`-`) of standard input.
pub(crate) fn read(path: &Path, settings: &Settings) -> anyhow::Result<Play> {
    // Larger files are refused with advice by the reader of manifests, which knows what is in them.
    let most = ReadOptions::default().max_bytes as u64 + 1;
    let mut files = Vec::new();
    for file in input::files(path, &["yaml", "yml", "json"])? {
        files.push((file.display().to_string(), input::text(&file, most)?));
    }
    let title = if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
    play(title, &files, settings)
}

fn play(title: String, files: &[(String, String)], settings: &Settings) -> anyhow::Result<Play> {
    refuse_trace_options(settings)?;
    let (mut objects, mut problems) = (Vec::new(), Vec::new());
    for (name, text) in files {
        let read = read_manifests(text, name, &ReadOptions::default());
        objects.extend(read.objects);
        problems.extend(read.problems);
    }
    let assembled = assemble_files(objects, problems, &mut Converter::new());
    let (mut happenings, mut notes) = (assembled.happenings, assembled.notes);
    if let Some(wanted) = settings.nodes {
        happenings = with_nodes(happenings, wanted)?;
    }
    if let Some(limit) = settings.limit {
        if limit == 0 {
            bail!("--limit: a workload of no jobs is empty");
        }
        happenings = first_jobs(happenings, limit);
    }
    if let Some(factor) = settings.compress {
        compress(&mut happenings, factor)?;
    }
    let has = |wanted: fn(&Happening) -> bool| happenings.iter().any(|(_, happening)| wanted(happening));
    if !has(|happening| matches!(happening, Happening::Submit(_))) {
        let said: Vec<String> = assembled.problems.iter().chain(&notes).map(|line| format!("\n  {line}")).collect();
        bail!("{title}: there is no pod, and nothing that pods are made of{}", said.concat());
    }
    if !has(|happening| node_of(happening).is_some()) {
        notes.push(
            "there is no Node among the objects, so nothing can be placed; add those of `kubectl get nodes -o yaml`"
                .to_owned(),
        );
    }
    let (shown, problems) = (assembled.shown, assembled.problems);
    Ok(Play::Manifests { title, happenings, shown, notes, problems })
}

/// What only traces can be told.
fn refuse_trace_options(settings: &Settings) -> anyhow::Result<()> {
    let given = [
        ("derive", settings.derive.is_some()),
        ("procs-per-node", settings.procs_per_node.is_some()),
        ("node-list", settings.node_list.is_some()),
    ];
    if let Some((name, _)) = given.into_iter().find(|(_, given)| *given) {
        bail!(
            "--{name}: is for traces; manifests (and the example, which is what runs without --trace) say it themselves"
        );
    }
    Ok(())
}

/// The same objects with another number of nodes, which keeps the mix of shapes: every k-th node stays, or is there
/// several times.
fn with_nodes(happenings: Vec<(Time, Happening)>, wanted: u32) -> anyhow::Result<Vec<(Time, Happening)>> {
    let given = happenings.iter().filter(|(_, happening)| node_of(happening).is_some()).count() as u64;
    if wanted == 0 {
        bail!("--nodes: a cluster of no nodes runs nothing");
    }
    if given == 0 {
        bail!("--nodes: there is no Node among the manifests to take as a pattern");
    }
    let mut copies: BTreeMap<u64, u32> = BTreeMap::new();
    for i in 0..u64::from(wanted) {
        *copies.entry(i * given / u64::from(wanted)).or_default() += 1;
    }
    let (mut nth, mut scaled) = (0, Vec::with_capacity(happenings.len()));
    for (at, happening) in happenings {
        let Some(node) = node_of(&happening) else {
            scaled.push((at, happening));
            continue;
        };
        for k in 0..copies.get(&nth).copied().unwrap_or(0) {
            scaled.push((at, Happening::Object(Box::new(Event::Node(copy(node, k))))));
        }
        nth += 1;
    }
    Ok(scaled)
}

/// The `k`-th copy of a node; the first is the node itself.
fn copy(node: &NodeSpec, k: u32) -> NodeSpec {
    let mut copy = node.clone();
    if k > 0 {
        copy.name = format!("{}-more-{k}", node.name).into();
        copy.labels.set(Name::from("kubernetes.io/hostname"), copy.name.clone());
    }
    copy
}

/// Everything but the jobs after the first `limit`.
fn first_jobs(happenings: Vec<(Time, Happening)>, limit: usize) -> Vec<(Time, Happening)> {
    let mut left = limit;
    let keep = |happening: &Happening| {
        let is_job = matches!(happening, Happening::Submit(_));
        let keep = !is_job || left > 0;
        left -= usize::from(is_job && keep);
        keep
    };
    let mut keep = keep;
    happenings.into_iter().filter(|(_, happening)| keep(happening)).collect()
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "the cast back saturates")]
fn compress(happenings: &mut [(Time, Happening)], factor: f64) -> anyhow::Result<()> {
    if factor.is_nan() || factor <= 0.0 {
        bail!("--compress: {factor} is not above 0");
    }
    for (at, _) in happenings {
        *at = Time((at.0 as f64 / factor).round() as i64);
    }
    Ok(())
}

fn node_of(happening: &Happening) -> Option<&NodeSpec> {
    match happening {
        Happening::Object(event) => match event.as_ref() {
            Event::Node(spec) => Some(spec),
            _ => None,
        },
        _ => None,
    }
}
