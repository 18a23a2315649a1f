//! Fragmentation of GPUs on the openb cluster (Weng et al., ATC '23): pods of a list come one by one to an empty cluster,
//! more than fit, and nobody leaves. How much of the GPUs is given out in the end says how well a policy places.
//!
//! The rules: pods sorted by name, shuffled by the seed; then pods drawn with replacement are added until the next one
//! would pass 130 % of the GPUs there are. A list that asks for more loses pods by draw. A pod that fits nowhere is not
//! tried again. Equal nodes go in an order that the seed draws. The policies are plugins at Score, alone in a profile.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use krafla_framework::conf::compile::compile;
use krafla_framework::{Found, PluginSet, Policy, Registry, SearchLimits, Searcher};
use krafla_model::{ClusterState, Event, Name, PodSpec, ResourceId, TaskId};
use serde::Serialize;

use crate::play::{Shapes, node_of};
use crate::report::tables;
use crate::trace::error::LoadError;
use crate::trace::options::Options;
use crate::trace::random::draw;
use crate::trace::workload::{JobShape, Workload};
use crate::trace::{self, Kind};

/// Seeds of the published runs.
pub const SEEDS: std::ops::RangeInclusive<u64> = 42..=51;
/// Demand that comes, in percent of the GPUs there are.
const ARRIVED_PERCENT: i64 = 130;

/// A policy: its name, the plugin at Score, and its `args`.
struct PolicyShape {
    name: &'static str,
    plugin: &'static str,
    args: fn(u64) -> String,
}

fn without(_: u64) -> String {
    "{}".to_owned()
}

/// In the order of the published tables; the last is ours.
const POLICIES: [PolicyShape; 6] = [
    PolicyShape { name: "random", plugin: "RandomNode", args: |seed| format!("{{seed: {seed}}}") },
    PolicyShape { name: "dotprod", plugin: "GpuDotProduct", args: without },
    PolicyShape { name: "clustering", plugin: "GpuClustering", args: without },
    PolicyShape { name: "packing", plugin: "GpuPacking", args: without },
    PolicyShape { name: "bestfit", plugin: "GpuBestFit", args: without },
    PolicyShape { name: "fgd", plugin: "GpuFragmentation", args: without },
];

/// Pod lists, and what each policy gave out of the GPUs in the published runs, in percent: means of ten seeds.
const LISTS: [(&str, [f64; 6]); 5] = [
    ("default", [87.47, 90.85, 91.88, 92.00, 93.08, 95.39]),
    ("cpu250", [80.42, 83.81, 87.99, 88.28, 91.45, 93.41]),
    ("gpuspec33", [86.46, 89.14, 92.12, 93.22, 93.09, 94.55]),
    ("gpushare100", [79.44, 82.42, 82.65, 82.57, 85.01, 86.90]),
    ("multigpu50", [90.27, 94.85, 95.81, 96.18, 95.74, 97.18]),
];

/// What a policy gave out on a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The pod list.
    pub list: &'static str,
    /// The policy.
    pub policy: &'static str,
    /// Percent of the GPUs that are given out in the end: the mean over the seeds.
    pub mean: f64,
    /// Its standard deviation over the seeds.
    pub sd: f64,
    /// The least of them.
    pub min: f64,
    /// The published mean.
    pub published: f64,
    /// Pods that fit nowhere, a seed: by what they ask for (`cpu`, `share`, or a number of devices).
    pub refused: BTreeMap<String, f64>,
}

/// The rows as a table, at most `width` wide.
pub fn table(rows: &[Row], width: u16) -> String {
    use comfy_table::CellAlignment::{Left, Right};
    let columns = [
        ("list", Left),
        ("policy", Left),
        ("allocated %", Right),
        ("sd", Right),
        ("min", Right),
        ("published", Right),
        ("difference", Right),
        ("refused pods, mean: by devices", Left),
    ];
    let mut table = tables::table(width, &columns);
    let mut before = "";
    for row in rows {
        let list = if std::mem::replace(&mut before, row.list) == row.list { "" } else { row.list };
        let refused: Vec<String> = row.refused.iter().map(|(class, pods)| format!("{class} {pods:.0}")).collect();
        table.add_row(tables::cells([
            list.to_owned(),
            row.policy.to_owned(),
            format!("{:.2}", row.mean),
            format!("{:.2}", row.sd),
            format!("{:.2}", row.min),
            format!("{:.2}", row.published),
            format!("{:+.2}", row.mean - row.published),
            refused.join(", "),
        ]));
    }
    tables::finish("GPUs given out when 130 % of them were asked for", &table, "")
}

/// What came of one list, policy and seed.
#[derive(Default)]
struct Outcome {
    allocated_percent: f64,
    refused: BTreeMap<String, u32>,
}

/// Plays every list of `data` with every policy and seed, on all processors; `registry` makes the plugins. `tell` hears how
/// many runs of how many are done. Rows come list by list, in the order of the policies.
pub fn run(
    data: &Path,
    seeds: std::ops::RangeInclusive<u64>,
    registry: impl Fn() -> Registry + Sync,
    tell: impl Fn(usize, usize) + Sync,
) -> Result<Vec<Row>, LoadError> {
    let load = |list: &str| {
        let file = data.join(format!("openb_pod_list_{list}.csv"));
        trace::load(Kind::Openb, &file, &Options::default())
    };
    let workloads = LISTS.iter().map(|(list, _)| load(list)).collect::<Result<Vec<Workload>, _>>()?;
    let runs: Vec<(usize, usize, u64)> = (0..LISTS.len())
        .flat_map(|list| (0..POLICIES.len()).map(move |policy| (list, policy)))
        .flat_map(|(list, policy)| seeds.clone().map(move |seed| (list, policy, seed)))
        .collect();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let outcomes: Vec<Mutex<Outcome>> = runs.iter().map(|_| Mutex::default()).collect();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from).min(runs.len()) {
            scope.spawn(|| {
                let registry = registry();
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&(list, policy, seed)) = runs.get(at) else { break };
                    let outcome = play(&workloads[list], &POLICIES[policy], seed, &registry);
                    *outcomes[at].lock().unwrap_or_else(PoisonError::into_inner) = outcome;
                    tell(done.fetch_add(1, Ordering::Relaxed) + 1, runs.len());
                }
            });
        }
    });
    let outcomes: Vec<Outcome> =
        outcomes.into_iter().map(|one| one.into_inner().unwrap_or_else(PoisonError::into_inner)).collect();
    let mut of_seeds = outcomes.chunks(seeds.count());
    let mut rows = Vec::new();
    for (list, published) in LISTS {
        for (policy, published) in POLICIES.iter().zip(published) {
            rows.push(row(list, policy.name, published, of_seeds.next().unwrap_or_default()));
        }
    }
    Ok(rows)
}

#[allow(clippy::cast_precision_loss, reason = "numbers of seeds and pods")]
fn row(list: &'static str, policy: &'static str, published: f64, outcomes: &[Outcome]) -> Row {
    let n = outcomes.len().max(1) as f64;
    let values = || outcomes.iter().map(|outcome| outcome.allocated_percent);
    let mean = values().sum::<f64>() / n;
    let variance = values().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    let mut refused: BTreeMap<String, f64> = BTreeMap::new();
    for (class, pods) in outcomes.iter().flat_map(|outcome| &outcome.refused) {
        *refused.entry(class.clone()).or_default() += f64::from(*pods) / n;
    }
    let min = values().fold(f64::INFINITY, f64::min);
    Row { list, policy, mean, sd: variance.sqrt(), min, published, refused }
}

/// One list, policy and seed.
fn play(workload: &Workload, policy: &PolicyShape, seed: u64, registry: &Registry) -> Outcome {
    let mut plugins = PluginSet::build(&compiled(policy, seed, registry), registry);
    let (mut cluster, mut searcher) = (ClusterState::new(), Searcher::default());
    for shape in &workload.nodes {
        for name in shape.names() {
            let _ = cluster.apply(Event::Node(node_of(shape, &name)));
        }
    }
    cluster.set_tie_seed(Some(seed));
    let mut jobs: Vec<&JobShape> = workload.jobs.iter().collect();
    jobs.sort_by(|one, other| one.name.cmp(&other.name));
    let mut shapes = Shapes::default();
    let mut add = |cluster: &mut ClusterState, job: &JobShape, name: Name| {
        let shape = shapes.shape(job, &job.roles[0], &Name::from("default"), &Name::default());
        let _ =
            cluster.apply(Event::Pod(PodSpec { uid: name.clone(), name: name.clone(), shape, ..PodSpec::default() }));
        cluster.find_task(&name)
    };
    // The usual pods are those of the list.
    let of_list: Vec<Option<TaskId>> =
        jobs.iter().map(|job| add(&mut cluster, job, job.name.as_str().into())).collect();
    plugins.open_profiles(&cluster);
    let capacity: i64 = cluster.nodes().iter().map(|node| cluster.node(*node).allocatable.get(ResourceId::GPU)).sum();
    let arriving = arrivals(&jobs, seed, capacity * ARRIVED_PERCENT / 100);
    let mut outcome = Outcome::default();
    let mut seen = vec![false; jobs.len()];
    for (k, &at) in arriving.iter().enumerate() {
        let task = if std::mem::replace(&mut seen[at], true) {
            add(&mut cluster, jobs[at], format!("{}-{k}", jobs[at].name).into())
        } else {
            of_list[at]
        };
        if !task.is_some_and(|task| place(&mut cluster, &plugins, &mut searcher, task)) {
            *outcome.refused.entry(class(jobs[at])).or_default() += 1;
        }
    }
    let used = |node| cluster.node(node).books().devices.used().iter().map(|used| i64::from(*used)).sum::<i64>();
    let allocated: i64 = cluster.nodes().iter().map(|node| used(*node)).sum();
    #[allow(clippy::cast_precision_loss, reason = "millions")]
    let percent = allocated as f64 * 100.0 / capacity as f64;
    Outcome { allocated_percent: percent, ..outcome }
}

/// A profile with the policy alone at Score.
fn compiled(policy: &PolicyShape, seed: u64, registry: &Registry) -> Policy {
    let text = format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\n\
         kind: KubeSchedulerConfiguration\n\
         profiles:\n\
         - schedulerName: default-scheduler\n  \
           plugins:\n    \
             multiPoint:\n      \
               disabled: [{{name: \"*\"}}]\n      \
               enabled: [{{name: PrioritySort}}, {{name: DefaultBinder}}, {{name: {plugin}, weight: 1000}}]\n    \
             preFilter: {{enabled: [{{name: NodeAffinity}}]}}\n    \
             filter: {{enabled: [{{name: NodeAffinity}}, {{name: NodeResourcesFit}}]}}\n  \
           pluginConfig: [{{name: {plugin}, args: {args}}}]\n",
        plugin = policy.plugin,
        args = (policy.args)(seed),
    );
    let compiled = compile(&text, policy.name, &registry.catalogue());
    let policy = compiled.policy;
    debug_assert!(policy.is_some(), "{:?}", compiled.problems);
    policy.unwrap_or_default()
}

/// Finds a node and a device for a pod.
fn place(cluster: &mut ClusterState, plugins: &PluginSet, searcher: &mut Searcher, task: TaskId) -> bool {
    const NOW: SearchLimits = SearchLimits { may_start: true, may_wait: false };
    let profile = plugins.profile_for(cluster, task);
    let Found::Node { node, .. } = searcher.find_anywhere(profile, cluster, task, NOW, None) else { return false };
    let device = profile.choose_device(cluster, task, node);
    let before = cluster.savepoint();
    let placed = cluster.allocate_with(task, node, device).is_ok();
    cluster.keep_since(before);
    placed
}

/// Which pods come, in order: places in `jobs`. `most` is what all may ask for, in thousandths of a device.
fn arrivals(jobs: &[&JobShape], seed: u64, most: i64) -> Vec<usize> {
    let one_of = |what: &str, k: usize, n: usize| {
        let drawn = (u128::from(draw(seed, &k.to_string(), what)) * n as u128) >> 64;
        usize::try_from(drawn).unwrap_or(0)
    };
    let asks = |at: usize| jobs[at].roles[0].request.gpu_demand_milli();
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    for k in (1..order.len()).rev() {
        order.swap(k, one_of("shuffle", k, k + 1));
    }
    let mut demand: i64 = order.iter().map(|at| asks(*at)).sum();
    for k in 0.. {
        if demand <= most || order.is_empty() {
            break;
        }
        demand -= asks(order.remove(one_of("leave", k, order.len())));
    }
    for k in 0.. {
        let at = one_of("join", k, jobs.len());
        if jobs.is_empty() || demand + asks(at) > most {
            break;
        }
        demand += asks(at);
        order.push(at);
    }
    order
}

/// What a pod asks for, in a word.
fn class(job: &JobShape) -> String {
    let request = &job.roles[0].request;
    match (request.gpus, request.gpu_milli) {
        (0, _) => "cpu".to_owned(),
        (_, 1..) => "share".to_owned(),
        (gpus, _) => gpus.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::real_data::data;

    /// One seed of one list. The whole table is `krafla simulate --experiment fgd`.
    #[test]
    fn policies_end_near_the_published_numbers() {
        let Some(data) = data() else { return };
        let registry = krafla_plugins::registry(Vec::new());
        let file = data.join("openb/openb_pod_list_default.csv");
        let workload = trace::load(Kind::Openb, &file, &Options::default()).expect("it can be read");
        let (_, published) = LISTS[0];
        for (policy, published) in POLICIES.iter().zip(published) {
            let outcome = play(&workload, policy, 42, &registry);
            let percent = outcome.allocated_percent;
            assert!((percent - published).abs() < 1.0, "{}: {percent:.2} instead of {published}", policy.name);
            assert!(outcome.refused.values().sum::<u32>() > 2_000, "{}: more comes than fits", policy.name);
        }
    }

    /// As many pods come as the seed says, and those of the list are among them.
    #[test]
    fn more_comes_than_there_is() {
        let Some(data) = data() else { return };
        for (list, most) in [("default", 8_075_600), ("multigpu50", 8_075_600)] {
            let file = data.join(format!("openb/openb_pod_list_{list}.csv"));
            let workload = trace::load(Kind::Openb, &file, &Options::default()).expect("it can be read");
            let jobs: Vec<&JobShape> = workload.jobs.iter().collect();
            let order = arrivals(&jobs, 42, most);
            let demand: i64 = order.iter().map(|at| jobs[*at].roles[0].request.gpu_demand_milli()).sum();
            assert!(demand <= most && demand > most - 8_000, "{list}: {demand}");
            assert_eq!(order, arrivals(&jobs, 42, most));
            assert_ne!(order, arrivals(&jobs, 43, most));
        }
    }
}
