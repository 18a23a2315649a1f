//! Gangs of whole nodes on the openb cluster when it is nearly full: how many fit once the action `defragment` has moved
//! pods for them, beside as many moves of pods that are chosen at random.
//!
//! The rules: the trace's pods come at once, in an order that the seed draws, until they ask for 90 % of all GPUs, and stay.
//! Then a gang comes every ten minutes. A minute later, if it has not started, moves are made for it. In the other world as
//! many running pods with GPUs are evicted at that time; they come back at once and are placed by the scheduler.

use std::path::Path;

use krafla_engine::CycleReport;
use krafla_framework::{Decision, Registry};
use krafla_model::resources::GPU_NAME;
use krafla_model::{ResourceId, Time};
use serde::Serialize;

use crate::play::plan;
use crate::report::tables;
use crate::trace::error::LoadError;
use crate::trace::options::Options;
use crate::trace::random::draw;
use crate::trace::workload::{JobShape, PodShape, RoleShape, Workload};
use crate::trace::{self, Kind};
use crate::world::{Happening, Observer, Setup, Unobserved, World};

/// The list of pods in the data folder.
pub const LIST: &str = "openb_pod_list_default.csv";
/// Gangs that come.
const GANGS: u32 = 10;
const PODS_OF_GANG: u32 = 2;
const GPUS_OF_POD: i64 = 8;
/// Percent of the GPUs that the pods ask for which were there before.
const ASKED_PERCENT: i64 = 90;
const MINUTE: i64 = 60_000;
const BETWEEN_GANGS: i64 = 10 * MINUTE;

/// What became of a gang.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Which one, from 1.
    pub gang: u32,
    /// It started before anything was moved for it.
    pub fits_as_it_is: bool,
    /// Pods that were moved for it.
    pub moves: u32,
    /// It has started after the moves.
    pub fits: bool,
    /// It has started after as many moves of pods chosen at random.
    pub fits_by_chance: bool,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// GPUs of the cluster.
    pub gpus: i64,
    /// GPUs that are given out when the first gang comes, in whole ones.
    pub allocated_gpus: i64,
    /// Pods of a gang.
    pub pods: u32,
    /// A row for each gang.
    pub gangs: Vec<Row>,
}

impl Report {
    /// Gangs that fit; those that fit after random moves; and moves.
    pub fn totals(&self) -> (usize, usize, u32) {
        let n = |of: fn(&Row) -> bool| self.gangs.iter().filter(|row| of(row)).count();
        (n(|row| row.fits), n(|row| row.fits_by_chance), self.gangs.iter().map(|row| row.moves).sum())
    }
}

/// The report as a table, at most `width` wide.
pub fn table(report: &Report, width: u16) -> String {
    use comfy_table::CellAlignment::Right;
    let columns = [
        ("gang", Right),
        ("fits as it is", Right),
        ("pods moved", Right),
        ("fits then", Right),
        ("fits after random moves", Right),
    ];
    let mut table = tables::table(width, &columns);
    let yes = |holds: bool| if holds { "yes" } else { "no" }.to_owned();
    for row in &report.gangs {
        table.add_row(tables::cells([
            row.gang.to_string(),
            yes(row.fits_as_it_is),
            row.moves.to_string(),
            yes(row.fits),
            yes(row.fits_by_chance),
        ]));
    }
    let (fit, by_chance, moves) = report.totals();
    let title = format!(
        "Gangs of {} pods of {GPUS_OF_POD} GPUs; {} of {} GPUs are given out",
        report.pods, report.allocated_gpus, report.gpus
    );
    let of = report.gangs.len();
    let foot = format!(
        "\n{fit} of {of} fit after {moves} moves, {} for each that fits; after as many moves at random, {by_chance}\n",
        if fit == 0 { "-".to_owned() } else { format!("{:.1}", f64::from(moves) / as_f64(fit)) },
    );
    tables::finish(&title, &table, &foot)
}

#[allow(clippy::cast_precision_loss, reason = "a few gangs")]
fn as_f64(n: usize) -> f64 {
    n as f64
}

/// Plays it on the list in `data`; `registry` makes the plugins. `tell` hears how many gangs of how many have come.
pub fn run(data: &Path, seed: u64, registry: fn() -> Registry, tell: impl Fn(u32, u32)) -> Result<Report, LoadError> {
    let workload = workload(&data.join(LIST), seed)?;
    let mut chosen = world(&workload, registry);
    let totals = chosen.engine().cluster().totals();
    let gpus = |amounts: &krafla_model::Resources| amounts.get(ResourceId::GPU) / 1_000;
    let (allocated, all) = (gpus(&totals.used), gpus(&totals.allocatable));
    let mut rows = Vec::new();
    for gang in 1..=GANGS {
        tell(gang - 1, 2 * GANGS);
        rows.push(with_moves(&mut chosen, gang));
    }
    drop(chosen);
    let mut random = world(&workload, registry);
    for row in &mut rows {
        tell(GANGS + row.gang - 1, 2 * GANGS);
        row.fits_by_chance = after_random_moves(&mut random, row, seed);
    }
    Ok(Report { gpus: all, allocated_gpus: allocated, pods: PODS_OF_GANG, gangs: rows })
}

fn name(gang: u32) -> String {
    format!("gang-{gang}")
}

/// When a gang comes.
fn comes(gang: u32) -> Time {
    Time(BETWEEN_GANGS * i64::from(gang))
}

fn configuration(gang: Option<u32>) -> String {
    let (action, told) = match gang {
        Some(gang) => (
            ", defragment",
            format!("configurations:\n- name: defragment\n  arguments: {{job: default/{}}}\n", name(gang)),
        ),
        None => ("", String::new()),
    };
    format!(
        "actions: \"enqueue, allocate{action}\"\ntiers:\n- plugins: [{{name: priority}}, {{name: gang}}]\n\
         - plugins: [{{name: predicates}}, {{name: nodeorder}}]\n{told}"
    )
}

fn workload(list: &Path, seed: u64) -> Result<Workload, LoadError> {
    let mut workload = trace::load(Kind::Openb, list, &Options::default())?;
    let all: i64 = workload.nodes.iter().map(|node| node.gpus * i64::from(node.count)).sum::<i64>() * 1_000;
    let mut jobs = std::mem::take(&mut workload.jobs);
    jobs.sort_by_cached_key(|job| (draw(seed, &job.name, "order"), job.name.clone()));
    let mut asked = 0;
    for mut job in jobs {
        let of_role = |role: &RoleShape| role.request.gpu_demand_milli() * i64::from(role.replicas);
        asked += job.roles.iter().map(of_role).sum::<i64>();
        if asked * 100 <= all * ASKED_PERCENT {
            (job.submit_ms, job.runtime_ms, job.preemptible) = (0, None, true);
            workload.jobs.push(job);
        }
    }
    for gang in 1..=GANGS {
        let request = PodShape { cpu_milli: 8_000, memory_bytes: 16 << 30, gpus: GPUS_OF_POD, gpu_milli: 0 };
        workload.jobs.push(JobShape {
            name: name(gang),
            namespace: "default".into(),
            queue: "default".into(),
            user: None,
            submit_ms: comes(gang).0,
            runtime_ms: None,
            estimate_ms: None,
            roles: vec![RoleShape { name: "task".into(), replicas: PODS_OF_GANG, request }],
            min_member: PODS_OF_GANG,
            priority: None,
            preemptible: false,
            node_labels_any: None,
        });
    }
    Ok(workload)
}

/// The cluster with all pods placed that were there before the gangs.
fn world(workload: &Workload, registry: fn() -> Registry) -> World {
    let configuration = Some(("scheduler.conf".to_owned(), configuration(None)));
    let mut setup = Setup { configuration, ..Setup::default() };
    setup.engine.events = false;
    let mut world = World::new(setup, registry);
    plan(&mut world, workload.clone());
    world.run_until(Time(5 * MINUTE), &mut Unobserved);
    world
}

fn has_started(world: &World, gang: u32) -> bool {
    let name = name(gang);
    world.jobs().iter().any(|job| *job.name == *name && job.started.is_some())
}

#[derive(Default)]
struct Evictions(u32);

impl Observer for Evictions {
    fn cycle(&mut self, _: &World, report: &CycleReport) {
        let evicts = report.decisions.iter().filter(|decision| matches!(decision, Decision::Evict(..)));
        self.0 += u32::try_from(evicts.count()).unwrap_or(u32::MAX);
    }
}

fn with_moves(world: &mut World, gang: u32) -> Row {
    let (at, mut evictions) = (comes(gang), Evictions::default());
    let text = configuration(Some(gang));
    world.plan(at + MINUTE, Happening::Configure { file: "scheduler.conf".into(), text });
    world.run_until(at + MINUTE / 2, &mut Unobserved);
    let fits_as_it_is = has_started(world, gang);
    world.run_until(at + 9 * MINUTE, &mut evictions);
    Row { gang, fits_as_it_is, moves: evictions.0, fits: has_started(world, gang), fits_by_chance: false }
}

/// As many pods with GPUs, chosen at random among those that run, are evicted by somebody.
fn after_random_moves(world: &mut World, row: &Row, seed: u64) -> bool {
    let at = comes(row.gang) + MINUTE;
    world.run_until(at, &mut Unobserved);
    let may_go = |index: &usize| {
        let pod = world.pod(*index);
        !pod.gone && pod.spec.node.is_some() && pod.spec.shape.request.get(GPU_NAME).is_some()
    };
    let mut running: Vec<usize> = (0..world.n_pods()).filter(may_go).collect();
    let drawn = |index: &usize| (draw(seed, &index.to_string(), &format!("evict-{}", row.gang)), *index);
    running.sort_by_cached_key(drawn);
    for index in running.into_iter().take(row.moves as usize) {
        let name = world.pod(index).spec.name.clone();
        world.plan(at, Happening::EvictFrom { namespace: None, name });
    }
    world.run_until(comes(row.gang) + 9 * MINUTE, &mut Unobserved);
    has_started(world, row.gang)
}
