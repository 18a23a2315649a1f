//! The search that keeps what nodes said chooses as the one that asks every plugin about every node: the same node, with
//! the same score to the last bit, and refuses in the same words. On random clusters, pods, configurations, and orders of
//! what happens: placements, promises, evictions, what is undone of them, and changes of nodes and pods in between.
//!
//! A long search: `PROPTEST_CASES=100000 cargo test --release -p krafla-test-suite --test it fast_search`.

mod claims;
mod engines;
mod kinds;
mod preemption;

use std::sync::Arc;

use krafla_framework::conf::policy::{Policy, ProfilePolicy};
use krafla_framework::{Found, PluginSet, Room, SearchLimits, Searcher, Value};
use krafla_model::check::discrepancies;
use krafla_model::pod_affinity::{NamespaceSpec, Workload, WorkloadSpec};
use krafla_model::queue::NodeGroupAffinity;
use krafla_model::{
    Amounts, ClusterState, Event, NodeId, PodGroupSpec, PodPhase, PodShape, PodSpec, QueueSpec, TaskId, TaskStatus,
};
use krafla_test_suite::registry;
use proptest::prelude::*;

use claims::{Thing, Uses, thing};
use kinds::{APPS, NodeKind, PodKind, is_app, node, node_kind, pod, pod_kind, shape};

/// Configurations for sessions; the last ones are profiles for pods one by one.
const TIERS: [&str; 8] = [
    "[{name: predicates}, {name: nodeorder}, {name: binpack}]",
    "[{name: gang}, {name: predicates}]",
    "[{name: predicates}, {name: nodeorder, arguments: {mostrequested.weight: 3, leastrequested.weight: 0, tainttoleration.weight: 7}}]",
    "[{name: predicates}, {name: binpack, arguments: {binpack.weight: 10, binpack.cpu: 3, binpack.memory: 2, \
        binpack.resources: nvidia.com/gpu, binpack.resources.nvidia.com/gpu: 5}}]",
    "[{name: predicates, arguments: {predicate.PodAffinityEnable: false}}, {name: tdm}, {name: nodeorder, arguments: \
        {podaffinity.weight: 0, podtopologyspread.weight: 0}}]",
    "[{name: binpack}]",
    "[{name: nodegroup, arguments: {strict: false}}, {name: predicates}, {name: nodeorder}]",
    "[{name: predicates}, {name: nodeorder, arguments: {nodeaffinity.weight: 9, imagelocality.weight: 4, \
        balancedresource.weight: 0}}, {name: tdm}]",
];
/// Beyond sessions: kube-scheduler's default profile, and the same with a very short search for devices.
const CONFIGURATIONS: usize = TIERS.len() + 2;

#[derive(Clone, Debug)]
enum Step {
    /// Looks for a node, and takes it.
    Place(usize, usize),
    Evict(usize),
    Reprieve(usize),
    Undo(usize),
    /// What was tried is kept and bound.
    Bind,
    Node(usize, NodeKind),
    NodeGone(usize),
    Pod(PodKind),
    PodGone(usize),
    PodEnds(usize),
    PodTerminates(usize),
    NamespaceLabel(bool),
    Service(usize, bool),
    /// Something of storage or devices comes, changes or goes.
    Thing(Thing),
    /// What was chosen for claims is written.
    Written,
}

#[derive(Clone, Debug)]
struct Case {
    configuration: usize,
    nodes: Vec<NodeKind>,
    /// How many nodes there are of each kind.
    copies: usize,
    pods: Vec<PodKind>,
    /// Of storage and devices there is this too, beside the usual.
    things: Vec<Thing>,
    steps: Vec<Step>,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (0_usize..100, 0_usize..3).prop_map(|(task, limits)| Step::Place(task, limits)),
        3 => (0_usize..100).prop_map(Step::Evict),
        1 => (0_usize..100).prop_map(Step::Reprieve),
        3 => (1_usize..6).prop_map(Step::Undo),
        2 => Just(Step::Bind),
        2 => (0_usize..100, node_kind()).prop_map(|(node, kind)| Step::Node(node, kind)),
        1 => (0_usize..100).prop_map(Step::NodeGone),
        3 => pod_kind().prop_map(Step::Pod),
        1 => (0_usize..100).prop_map(Step::PodGone),
        1 => (0_usize..100).prop_map(Step::PodEnds),
        1 => (0_usize..100).prop_map(Step::PodTerminates),
        1 => any::<bool>().prop_map(Step::NamespaceLabel),
        1 => (0_usize..3, any::<bool>()).prop_map(|(whom, is_there)| Step::Service(whom, is_there)),
        5 => thing().prop_map(Step::Thing),
        1 => Just(Step::Written),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let nodes = prop::collection::vec(node_kind(), 1..7);
    let copies = prop_oneof![8 => Just(1_usize), 2 => 2_usize..4, 1 => 20_usize..30];
    let pods = prop::collection::vec(pod_kind(), 1..6);
    let things = prop::collection::vec(thing(), 0..12);
    (0..CONFIGURATIONS, nodes, copies, pods, things, prop::collection::vec(step(), 5..60)).prop_map(
        |(configuration, nodes, copies, pods, things, steps)| Case {
            configuration,
            nodes,
            copies,
            pods,
            things,
            steps,
        },
    )
}

fn plugins(configuration: usize) -> PluginSet {
    let registry = registry();
    let policy = match TIERS.get(configuration) {
        Some(tier) => {
            let text = format!("actions: \"allocate\"\ntiers:\n- plugins: {tier}\n");
            krafla_testkit::policy(&registry, &text)
        }
        None => {
            let mut profile = ProfilePolicy::default_profile(&registry);
            if configuration > TIERS.len() {
                let timeout = [("filterTimeout".to_owned(), Value::Text("1ms".to_owned()))].into();
                profile.arguments.insert("DynamicResources".to_owned(), Value::Map(timeout));
            }
            Policy { profiles: vec![profile], ..Policy::default() }.one_by_one()
        }
    };
    PluginSet::build(&policy, &registry)
}

const LIMITS: [SearchLimits; 3] = [
    SearchLimits { may_start: true, may_wait: true },
    SearchLimits { may_start: true, may_wait: false },
    SearchLimits { may_start: false, may_wait: true },
];

/// Both searches, side by side.
struct Pair {
    plugins: PluginSet,
    fast: Searcher,
    plain: Searcher,
}

impl Pair {
    fn ask(&mut self, cluster: &ClusterState, task: TaskId, limits: SearchLimits) -> Result<Found, TestCaseError> {
        let profile = self.plugins.profile_for(cluster, task);
        let right = self.plain.find_anywhere(profile, cluster, task, limits, None);
        let found = self.fast.find_from(profile, cluster, task, 0, usize::MAX, limits);
        prop_assert_eq!(&found, &right, "the words of a refusal are the same too");
        if let Found::Nothing(_) = right {
            prop_assert_eq!(self.fast.unschedulable(), self.plain.unschedulable());
        }
        let found = self.fast.find_anywhere(profile, cluster, task, limits, None);
        match (&found, &right) {
            // Without a single score the words are those of when it was first found.
            (Found::Nothing(old), Found::Nothing(new)) if !profile.has_score_plugins() => {
                prop_assert_eq!(old.nodes, new.nodes);
            }
            (Found::Node { score, .. }, Found::Node { score: other, .. }) => {
                prop_assert_eq!(score.to_bits(), other.to_bits());
                prop_assert_eq!(&found, &right);
            }
            _ => prop_assert_eq!(&found, &right),
        }
        Ok(right)
    }
}

/// One of the items, whatever the number.
fn pick<T: Copy>(items: &[T], i: usize) -> Option<T> {
    items.get(i % items.len().max(1)).copied()
}

fn tasks_that(cluster: &ClusterState, are: impl Fn(TaskStatus) -> bool) -> Vec<TaskId> {
    cluster.tasks().filter(|(_, task)| are(task.status())).map(|(id, _)| id).collect()
}

/// What was tried is kept; what has its node is bound.
fn settle(cluster: &mut ClusterState, start: krafla_model::journal::Savepoint) {
    cluster.keep_since(start);
    for task in tasks_that(cluster, |status| status == TaskStatus::Allocated) {
        cluster.begin_bind(task).expect("it has its node");
        cluster.bind_done(task);
    }
    for task in cluster.reserved().collect::<Vec<_>>() {
        cluster.give_up_reservation(task);
    }
}

fn told(cluster: &ClusterState, task: TaskId) -> PodSpec {
    let own = cluster.task(task);
    let node = own.node().and_then(|node| cluster.get_node(node)).map(|node| node.name().clone());
    PodSpec {
        uid: own.uid.clone(),
        name: own.name.clone(),
        group: own.group.clone(),
        shape: Arc::clone(&cluster.shape_of(task).spec),
        priority: 1,
        claims: own.claims.to_vec(),
        phase: if node.is_some() { PodPhase::Running } else { PodPhase::Pending },
        node,
        ..PodSpec::default()
    }
}

/// Plays a case. Answers how many searches were answered from what is kept.
fn play(case: &Case) -> Result<u64, TestCaseError> {
    let mut cluster = ClusterState::new();
    let kinds = || (0..case.copies).flat_map(|_| &case.nodes);
    for (i, kind) in kinds().enumerate() {
        cluster.apply(node(i, kind));
    }
    let mut queue = QueueSpec { name: "default".into(), ..QueueSpec::default() };
    if TIERS.get(case.configuration).is_some_and(|tier| tier.contains("nodegroup")) {
        let (required, preferred) = (vec!["a".into()], vec!["b".into()]);
        queue.node_groups = Some(NodeGroupAffinity { required, preferred, ..NodeGroupAffinity::default() });
        queue.node_group_limits = vec![("a".into(), Amounts::default().with("cpu", 3_000))];
    }
    cluster.apply(Event::Queue(queue));
    let group =
        PodGroupSpec { uid: "g".into(), name: "g".into(), namespace: "default".into(), ..PodGroupSpec::default() };
    cluster.apply(Event::PodGroup(group));
    for thing in claims::world().iter().chain(&case.things) {
        cluster.apply(claims::event(thing));
    }
    let shapes: Vec<(Arc<PodShape>, Uses)> = case.pods.iter().map(|kind| (Arc::new(shape(kind)), kind.uses)).collect();
    let mut n_pods = 0;
    for (shape, uses) in shapes.iter().cycle().take(shapes.len() * 6) {
        for event in claims::claiming(pod(n_pods, shape), n_pods, *uses) {
            cluster.apply(event);
        }
        n_pods += 1;
    }
    let mut pair = Pair { plugins: plugins(case.configuration), fast: Searcher::default(), plain: Searcher::plain() };
    let start = cluster.savepoint();
    for step in &case.steps {
        if !matches!(step, Step::Place(..) | Step::Evict(_) | Step::Reprieve(_) | Step::Undo(_)) {
            settle(&mut cluster, start);
        }
        let nodes: Vec<NodeId> = cluster.nodes().to_vec();
        match step {
            Step::Place(i, limits) => {
                let Some(task) = pick(&tasks_that(&cluster, |s| s == TaskStatus::Pending), *i) else { continue };
                if let Found::Node { node, room, .. } = pair.ask(&cluster, task, LIMITS[*limits])? {
                    let done = match room {
                        Room::Now => cluster.allocate(task, node),
                        Room::AfterRelease => cluster.pipeline(task, node),
                    };
                    prop_assert!(done.is_ok(), "{:?}", done);
                    if room == Room::Now {
                        let profile = pair.plugins.profile_for(&cluster, task);
                        let chosen = profile.run_choose_plugins(&cluster, task, node);
                        prop_assert!(chosen.is_ok(), "{:?}", chosen.err());
                        cluster.choose(task, chosen.unwrap_or_default());
                    }
                }
            }
            Step::Evict(i) => {
                if let Some(task) = pick(&tasks_that(&cluster, |s| s.is_allocated()), *i) {
                    let _ = cluster.evict(task);
                }
            }
            Step::Reprieve(i) => {
                if let Some(task) = pick(&tasks_that(&cluster, |s| s == TaskStatus::Releasing), *i) {
                    let _ = cluster.reprieve(task);
                }
            }
            Step::Undo(n) => (0..*n).for_each(|_| _ = cluster.undo_one(start)),
            Step::Bind => {}
            Step::Node(i, kind) => drop(cluster.apply(node(*i % (nodes.len() + 2), kind))),
            Step::NodeGone(i) => {
                if let Some(name) = pick(&nodes, *i).map(|node| cluster.node(node).name().clone()) {
                    cluster.apply(Event::NodeGone(name));
                }
            }
            Step::Pod(kind) => {
                for event in claims::claiming(pod(n_pods, &Arc::new(shape(kind))), n_pods, kind.uses) {
                    cluster.apply(event);
                }
                n_pods += 1;
            }
            Step::PodGone(i) => {
                if let Some(task) = pick(&tasks_that(&cluster, |_| true), *i) {
                    let uid = cluster.task(task).uid.clone();
                    cluster.apply(Event::PodGone(uid));
                }
            }
            Step::PodEnds(i) | Step::PodTerminates(i) => {
                if let Some(task) = pick(&tasks_that(&cluster, |s| s.is_allocated()), *i) {
                    let mut pod = told(&cluster, task);
                    match step {
                        Step::PodEnds(_) => pod.phase = PodPhase::Succeeded,
                        _ => pod.deleting = true,
                    }
                    cluster.apply(Event::Pod(pod));
                }
            }
            Step::Thing(thing) => drop(cluster.apply(claims::event(thing))),
            Step::Written => claims::written(&cluster).into_iter().for_each(|event| drop(cluster.apply(event))),
            Step::NamespaceLabel(is_there) => {
                let labels =
                    if *is_there { [("team".into(), "x".into())].into_iter().collect() } else { Default::default() };
                cluster.apply(Event::Namespace(NamespaceSpec { name: "default".into(), labels }));
            }
            Step::Service(whom, is_there) => {
                let workload = Workload { kind: "Service".into(), name: APPS[*whom].into() };
                let namespace = "default".into();
                cluster.apply(match is_there {
                    true => Event::Workload(WorkloadSpec { namespace, workload, selector: Some(is_app(*whom)) }),
                    false => Event::WorkloadGone { namespace, workload },
                });
            }
        }
        for (i, task) in tasks_that(&cluster, |s| s == TaskStatus::Pending).into_iter().enumerate().take(4) {
            pair.ask(&cluster, task, LIMITS[i % LIMITS.len()])?;
        }
    }
    prop_assert_eq!(discrepancies(&cluster), vec![]);
    Ok(pair.fast.n_answered_from_kept())
}

proptest! {
    #[test]
    fn what_is_kept_answers_as_all_plugins_about_all_nodes(case in case()) {
        play(&case)?;
    }
}

/// The other test would hold too if nothing were ever kept.
#[test]
fn what_is_kept_is_used_where_plugins_allow_it() {
    use kinds::Says;
    let node = NodeKind {
        cpu: 8,
        memory: 8,
        gpus: 0,
        devices: false,
        zone: Some(0),
        ssd: true,
        taint: None,
        cordoned: false,
        image: Some(0),
    };
    let pod = PodKind {
        cpu: 1,
        memory: 1,
        gpus: 0,
        share: 0,
        labelled: 0,
        says: Says::Nothing,
        image: Some(0),
        port: false,
        uses: Uses::Nothing,
    };
    let spreads = Says::Spreads { must_hold: true, over_zones: true, skew: 2 };
    let near = Says::WantsNear { required: true, whom: 0 };
    let away = Says::WantsAway { required: false, whom: 0, in_zone: true };
    let bound = |n| [Thing::bound_claim(n), Thing::volume_of(n)];
    let things: Vec<Thing> = (0..6).flat_map(bound).chain((0..2).map(Thing::slice_of)).collect();
    for configuration in [0, 2, 3, 4, 5, 7, CONFIGURATIONS - 2] {
        let plain = [Says::Nothing, Says::PrefersSsd, spreads, near, away].map(|says| (says, Uses::Nothing));
        let claiming = [Uses::Volumes { first: 0, n: 1, ephemeral: false }, Uses::one_device()];
        for (says, uses) in plain.into_iter().chain(claiming.map(|uses| (Says::Nothing, uses))) {
            let case = Case {
                configuration,
                nodes: vec![node.clone(), NodeKind { zone: Some(1), ssd: false, ..node.clone() }],
                copies: 40,
                pods: vec![PodKind { says, uses, ..pod.clone() }],
                things: things.clone(),
                steps: vec![Step::Place(0, 1); 6],
            };
            let kept = play(&case).expect("both searches agree");
            assert!(kept >= 40, "{kept} of 48, configuration {configuration}, {says:?}, {uses:?}");
        }
    }
}
