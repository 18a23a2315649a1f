use krafla_engine::{Engine, Input, Options, Outcome};
use krafla_framework::Effect;
use krafla_framework::conf::policy::{Policy, ProfilePolicy};
use krafla_model::labels::{Requirement, Selector, Test};
use krafla_model::storage::{
    ClaimSpec, CsiDriverSpec, PodClaim, StorageCapacitySpec, StorageClassSpec, StorageObject, VolumeSpec,
};
use krafla_model::{Event, Time};
use krafla_testkit::{JobScene, Scene, task_named};

use super::super::volume_scenes::{Stored, bound, claim, named, uses, volume, waiting_class};
use super::*;
use crate::testing::{objections_one_by_one, run, run_one_by_one, scores_one_by_one};

fn pod<'a>(claims: &'a [&'a str]) -> impl Fn(JobScene) -> JobScene + 'a {
    move |job| job.shape(uses(claims)).pending(1, "1c")
}

/// Two nodes and a class of volumes that are made by hand.
fn local() -> Scene {
    Scene::new().node("a", "8c").node("b", "8c").has(StorageObject::Class(waiting_class("local", "")))
}

/// What was chosen for a pod, in words.
fn chosen(cluster: &ClusterState, pod: &str) -> Vec<String> {
    let choices = cluster.task(task_named(cluster, pod)).choices();
    let words = |choice: &ClaimChoice| match choice {
        ClaimChoice::Volume { claim, volume } => format!("{claim}: {volume}"),
        ClaimChoice::Provision { claim } => format!("{claim}: new"),
        ClaimChoice::Devices(choice) => format!("{}: devices", choice.name),
    };
    choices.iter().map(words).collect()
}

fn engine() -> Engine {
    let registry = crate::testing::registry();
    let profiles = vec![ProfilePolicy::default_profile(&registry)];
    let policy = Policy { profiles, ..Policy::default() }.one_by_one();
    Engine::with_policy(registry, Options { profile_only: true, ..Options::default() }, policy)
}

/// Binds that a step decides, with what is to be written for claims.
fn step(engine: &mut Engine, now: i64, inputs: Vec<Input>) -> Vec<String> {
    let bind = |effect: Effect| match effect {
        Effect::Bind { pod, node, plugins, claims } => {
            let claims: Vec<&ClaimChoice> = claims.iter().flat_map(|claims| &claims.choices).collect();
            assert_eq!(plugins.iter().any(|name| *name == VolumeBinding::NAME), !claims.is_empty());
            Some(format!("{} -> {node} {}", pod.name, claims.len()))
        }
        _ => None,
    };
    engine.step(Time(now), inputs).effects.into_iter().filter_map(bind).collect()
}

fn told(object: StorageObject) -> Vec<Input> {
    vec![Input::Event(Event::Storage(object))]
}

/// a pod whose claim is not there, or has no volume yet, is held; it is tried as soon as that changes.
#[test]
fn a_pod_is_held_until_its_claim_is_there_and_bound() {
    let scene = Scene::new().node("n", "4c").job("p", pod(&["my-pvc"]));
    let not_there = "persistentvolumeclaim \"my-pvc\" not found".to_owned();
    assert_eq!(objections_one_by_one(&scene, "p-0"), [(not_there, 1)]);
    let mut engine = engine();
    let inputs = scene.events().into_iter().map(Input::Event).collect();
    assert!(step(&mut engine, 0, inputs).is_empty());
    assert!(step(&mut engine, 20_000, told(StorageObject::Claim(claim("other", "", 1)))).is_empty());
    let mine = claim("my-pvc", "", 1);
    assert!(step(&mut engine, 30_000, told(StorageObject::Claim(mine.clone()))).is_empty());
    let unbound = scene.has(StorageObject::Claim(mine.clone()));
    let immediate = "pod has unbound immediate PersistentVolumeClaims".to_owned();
    assert_eq!(objections_one_by_one(&unbound, "p-0"), [(immediate, 1)]);
    assert!(step(&mut engine, 50_000, told(StorageObject::Volume(named(volume("v", "", 1, ""), "my-pvc")))).is_empty());
    assert_eq!(step(&mut engine, 70_000, told(StorageObject::Claim(bound(mine, "v")))), ["p-0 -> n 0"]);
}

#[test]
fn what_is_wrong_with_a_claim_is_said() {
    let of = |claim: ClaimSpec| {
        let scene = local().job("p", pod(&["c"])).has(StorageObject::Claim(claim));
        objections_one_by_one(&scene, "p-0").remove(0).0
    };
    let lost = ClaimSpec { lost: true, ..bound(claim("c", "", 1), "v") };
    assert_eq!(of(lost), "persistentvolumeclaim \"c\" bound to non-existent persistentvolume \"v\"");
    let deleting = ClaimSpec { deleting: true, ..claim("c", "local", 1) };
    assert_eq!(of(deleting), "persistentvolumeclaim \"c\" is being deleted");
    let dangling = bound(claim("c", "local", 1), "v");
    assert_eq!(of(dangling), "persistentvolume \"v\" not found", "VolumeZone looks first");
    assert_eq!(of(claim("c", "local", 1)), Misfits::NOTHING);
    let ephemeral = |shape: &mut krafla_model::PodShape| {
        shape.volumes.claims = vec![PodClaim { name: "p-0-scratch".into(), ephemeral: true }];
    };
    let scene = local().job("p", |job| job.shape(ephemeral).pending(1, "1c"));
    let waiting = "waiting for ephemeral volume controller to create the persistentvolumeclaim \"p-0-scratch\"";
    assert_eq!(objections_one_by_one(&scene, "p-0")[0].0, waiting);
    let not_its_own = scene.clone().has(StorageObject::Claim(claim("p-0-scratch", "local", 1)));
    let not_owner = "PVC default/p-0-scratch was not created for pod default/p-0 (pod is not owner)";
    assert_eq!(objections_one_by_one(&not_its_own, "p-0")[0].0, not_owner);
    let own = ClaimSpec { owner: Some("default/p-0".into()), ..claim("p-0-scratch", "local", 1) };
    let scene = scene.has(StorageObject::Claim(own)).has(StorageObject::Volume(volume("v", "local", 1, "b")));
    assert_eq!(run_one_by_one(&scene).binds, ["p-0 -> b"]);
}

struct Misfits;

impl Misfits {
    const NOTHING: &'static str = "node(s) didn't find available persistent volumes to bind";
    const ELSEWHERE: &'static str = "node(s) didn't match PersistentVolume's node affinity";
    const NO_SPACE: &'static str = "node(s) did not have enough free storage";
}

#[test]
fn a_bound_claim_keeps_its_pod_to_the_nodes_of_its_volume() {
    let scene = local()
        .has(StorageObject::Claim(bound(claim("c", "local", 1), "v")))
        .has(StorageObject::Volume(named(volume("v", "local", 1, "b"), "c")));
    assert_eq!(run_one_by_one(&scene.clone().job("p", pod(&["c"]))).binds, ["p-0 -> b"]);
    let elsewhere = scene.job("p", |job| pod(&["c"])(job.selects("kubernetes.io/hostname", "a")));
    let objections = objections_one_by_one(&elsewhere, "p-0");
    assert!(
        objections.contains(&("node(s) didn't match Pod's node affinity/selector".to_owned(), 1)),
        "{objections:?}"
    );
    let gone = local()
        .has(StorageObject::Claim(bound(claim("c", "local", 1), "v")))
        .has(StorageObject::Volume(named(volume("v", "local", 1, "z"), "c")))
        .job("p", pod(&["c"]));
    assert_eq!(objections_one_by_one(&gone, "p-0"), [(Misfits::ELSEWHERE.to_owned(), 2)]);
}

/// The smallest volume that will do, and one that names the claim before all.
#[test]
fn the_volume_is_the_nearest_in_size() {
    let scene = local()
        .has(StorageObject::Claim(claim("c", "local", 5)))
        .has(StorageObject::Volume(volume("small", "local", 4, "a")))
        .has(StorageObject::Volume(volume("large", "local", 50, "a")))
        .has(StorageObject::Volume(volume("fits", "local", 6, "a")))
        .has(StorageObject::Volume(volume("other-class", "fast", 5, "a")))
        .has(StorageObject::Volume(VolumeSpec { block: true, ..volume("device", "local", 5, "a") }))
        .has(StorageObject::Volume(VolumeSpec { deleting: true, ..volume("going", "local", 5, "a") }))
        .has(StorageObject::Volume(VolumeSpec { phase: Default::default(), ..volume("new", "local", 5, "a") }))
        .has(StorageObject::Volume(VolumeSpec { access_modes: Default::default(), ..volume("modes", "local", 5, "a") }))
        .has(StorageObject::Volume(named(volume("taken", "local", 5, "a"), "somebody")))
        .job("p", pod(&["c"]));
    let outcome = run_one_by_one(&scene);
    assert_eq!(
        (&*outcome.binds, chosen(&outcome.cluster, "p-0")),
        (&["p-0 -> a".to_owned()][..], vec!["c: fits".into()])
    );
    let meant = scene.has(StorageObject::Volume(named(volume("meant", "local", 50, "b"), "c")));
    let outcome = run_one_by_one(&meant);
    assert_eq!(
        (&*outcome.binds, chosen(&outcome.cluster, "p-0")),
        (&["p-0 -> b".to_owned()][..], vec!["c: meant".into()])
    );
}

/// The smallest claim chooses first, so that a small one does not take what only serves a large one.
#[test]
fn two_claims_of_one_pod_get_two_volumes_of_one_node() {
    let scene = local()
        .has(StorageObject::Claim(claim("big", "local", 9)))
        .has(StorageObject::Claim(claim("small", "local", 1)))
        .has(StorageObject::Volume(volume("a1", "local", 9, "a")))
        .has(StorageObject::Volume(volume("b1", "local", 10, "b")))
        .has(StorageObject::Volume(volume("b2", "local", 9, "b")))
        .job("p", pod(&["big", "small"]));
    let outcome = run_one_by_one(&scene);
    assert_eq!(outcome.binds, ["p-0 -> b"]);
    assert_eq!(chosen(&outcome.cluster, "p-0"), ["small: b2", "big: b1"]);
}

/// what was chosen for a pod at Reserve nobody else gets, and it is free again when that is undone.
#[test]
fn two_pods_never_get_one_volume() {
    let scene = local()
        .has(StorageObject::Claim(claim("c1", "local", 1)))
        .has(StorageObject::Claim(claim("c2", "local", 1)))
        .has(StorageObject::Volume(volume("v", "local", 1, "b")))
        .job("p", pod(&["c1"]))
        .job("q", pod(&["c2"]));
    let mut engine = engine();
    let inputs = scene.events().into_iter().map(Input::Event).collect();
    assert_eq!(step(&mut engine, 0, inputs), ["p-0 -> b 1"]);
    let refused = Outcome::BindRefused { pod: "default/p-0".into(), message: "binding volumes: timed out".into() };
    let (before, more) = (engine.cluster().storage().clone(), volume("w", "local", 1, "a"));
    assert!(engine.cluster().is_chosen(&volume("v", "local", 1, "b"), task_named(engine.cluster(), "q-0")));
    let freed = step(&mut engine, 60_000, vec![Input::Outcome(refused)]);
    assert_eq!(engine.cluster().storage(), &before, "nobody was told of anything");
    assert_eq!(freed, ["q-0 -> b 1"], "the room of the one that failed is the other's; it pauses");
    assert_eq!(step(&mut engine, 120_000, told(StorageObject::Volume(more))), ["p-0 -> a 1"]);
    assert_eq!(krafla_model::check::discrepancies(engine.cluster()), []);
}

#[test]
fn a_claim_that_two_pods_use_keeps_the_second_where_the_first_went() {
    let both = local()
        .has(StorageObject::Class(waiting_class("made", "driver")))
        .has(StorageObject::Claim(claim("shared", "made", 1)))
        .job("p", |job| pod(&["shared"])(job.selects("kubernetes.io/hostname", "b")))
        .job("q", pod(&["shared"]));
    let outcome = run_one_by_one(&both);
    assert_eq!(outcome.binds, ["p-0 -> b", "q-0 -> b"]);
    let selected = ClaimSpec { selected_node: Some("a".into()), ..claim("shared", "made", 1) };
    let written = local()
        .has(StorageObject::Class(waiting_class("made", "driver")))
        .has(StorageObject::Claim(selected))
        .job("p", |job| pod(&["shared"])(job.selects("kubernetes.io/hostname", "b")));
    let objections = objections_one_by_one(&written, "p-0");
    assert_eq!(objections[0].0, Misfits::NOTHING, "{objections:?}");
}

#[test]
fn volumes_are_made_where_the_class_allows_it() {
    let on_b = Selector(vec![Requirement { key: "kubernetes.io/hostname".into(), test: Test::In(vec!["b".into()]) }]);
    let class = StorageClassSpec { allowed_topologies: vec![on_b], ..waiting_class("made", "driver") };
    let scene =
        local().has(StorageObject::Class(class)).has(StorageObject::Claim(claim("c", "made", 1))).job("p", pod(&["c"]));
    let outcome = run_one_by_one(&scene);
    assert_eq!(
        (&*outcome.binds, chosen(&outcome.cluster, "p-0")),
        (&["p-0 -> b".to_owned()][..], vec!["c: new".into()])
    );
}

/// So much storage of the class `made` on a node.
fn capacity(node: &str, gib: i64) -> StorageObject {
    let test = Test::In(vec![node.into()]);
    StorageObject::Capacity(StorageCapacitySpec {
        namespace: "driver".into(),
        name: node.into(),
        class: "made".into(),
        nodes: Some(Selector(vec![Requirement { key: "kubernetes.io/hostname".into(), test }])),
        largest: Some(gib << 30),
        capacity: gib << 30,
    })
}

fn driver(storage_capacity: bool) -> StorageObject {
    StorageObject::Driver(CsiDriverSpec { name: "driver".into(), storage_capacity, needed_on_node: false })
}

/// Scores of the nodes a and b for the pod `p-0`.
fn scores(scene: &Scene, args: VolumeBindingArgs) -> [f64; 2] {
    let cluster = scene.build();
    let plugin = VolumeBinding::new(args);
    let (task, mut state) = (task_named(&cluster, "p-0"), CycleState::default());
    assert_eq!(plugin.pre_filter(&cluster, task, &mut state), PreFilter::All);
    let nodes = ["a", "b"].map(|name| cluster.find_node(name).expect("a node"));
    if plugin.pre_score(&cluster, task, &nodes, &mut state) == PreScore::Skip {
        return [0.0; 2];
    }
    nodes.map(|node| plugin.score(&cluster, task, node, &state))
}

/// As kube-scheduler 1.37: the part that is taken of the volumes that are there, or of the storage for new ones.
#[test]
fn the_node_whose_storage_is_emptiest_is_the_best() {
    let made = || {
        local()
            .has(StorageObject::Class(waiting_class("made", "driver")))
            .has(driver(true))
            .has(capacity("a", 8))
            .has(capacity("b", 40))
            .has(StorageObject::Claim(claim("m1", "made", 4)))
            .has(StorageObject::Claim(claim("m2", "made", 2)))
    };
    let there = || {
        made()
            .has(StorageObject::Claim(claim("c", "local", 3)))
            .has(StorageObject::Volume(volume("a1", "local", 4, "a")))
            .has(StorageObject::Volume(volume("b1", "local", 10, "b")))
    };
    let args = |shape: &[(i64, i64)]| VolumeBindingArgs {
        shape: shape.to_vec(),
        ..VolumeBindingArgs::read(&Value::Null).expect("all defaults")
    };
    const EMPTIEST: &[(i64, i64)] = &[(0, 10), (100, 0)];
    type Row = (Scene, &'static [&'static str], &'static [(i64, i64)], [f64; 2]);
    let table: [Row; 7] = [
        (made(), &["m1"], EMPTIEST, [50.0, 90.0]),
        (made(), &["m1", "m2"], EMPTIEST, [25.0, 85.0]),
        (there(), &["c"], EMPTIEST, [25.0, 70.0]),
        // Volumes that are there alone count, if there are any.
        (there(), &["c", "m1"], EMPTIEST, [25.0, 70.0]),
        (made(), &["m1"], &[(0, 0), (100, 10)], [50.0, 10.0]),
        (made().has(driver(false)), &["m1"], EMPTIEST, [0.0, 0.0]),
        (made().has(StorageObject::Claim(bound(claim("own", "local", 1), "v"))), &["own"], EMPTIEST, [0.0, 0.0]),
    ];
    for (i, (scene, claims, shape, wanted)) in table.into_iter().enumerate() {
        assert_eq!(scores(&scene.job("p", pod(claims)), args(shape)), wanted, "row {i}");
    }
    let scene = made().job("p", pod(&["m1"]));
    assert_eq!(scores_one_by_one(&scene, "VolumeBinding", "p-0"), [50.0, 90.0], "in the default profile");
    assert_eq!(run_one_by_one(&scene).binds, ["p-0 -> b"]);
}

#[test]
fn volumes_are_made_where_there_is_enough_storage() {
    let scene = |driver: StorageObject| {
        local()
            .has(StorageObject::Class(waiting_class("made", "driver")))
            .has(driver)
            .has(capacity("a", 4))
            .has(capacity("b", 5))
            .has(StorageObject::Claim(claim("c", "made", 5)))
    };
    assert_eq!(run_one_by_one(&scene(driver(true)).job("p", pod(&["c"]))).binds, ["p-0 -> b"]);
    let objections = objections_one_by_one(&scene(driver(true)).has(capacity("b", 3)).job("p", pod(&["c"])), "p-0");
    assert_eq!(objections, [(Misfits::NO_SPACE.to_owned(), 2)]);
    assert_eq!(run_one_by_one(&scene(driver(false)).job("p", pod(&["c"]))).binds, ["p-0 -> a"], "it does not say");
}

/// A gang gives the volumes of its members back when it does not get together; two pods with claims of their own do not
/// share an answer.
#[test]
fn a_gang_gets_all_of_its_volumes_or_none() {
    let gang = |min: u32| {
        move |job: JobScene| {
            let job = job.min(min);
            let claims = ["c0", "c1", "c2"];
            claims.iter().fold(job, |job, claim| job.shape(uses(&[*claim])).pending(1, "1c"))
        }
    };
    let scene = ["c0", "c1", "c2", "late"]
        .into_iter()
        .fold(local(), |scene, name| scene.has(StorageObject::Claim(claim(name, "local", 1))))
        .has(StorageObject::Volume(volume("a1", "local", 1, "a")))
        .has(StorageObject::Volume(volume("b1", "local", 1, "b")));
    let plugins = ["priority", "gang", "predicates"];
    let short = scene.clone().job("g", gang(3)).job("late", pod(&["late"]));
    assert_eq!(run(&short, "allocate", &plugins).binds, ["late-0 -> a"]);
    let enough = scene.has(StorageObject::Volume(volume("b2", "local", 1, "b"))).job("g", gang(3));
    let outcome = run(&enough, "allocate", &plugins);
    assert_eq!(outcome.binds, ["g-0 -> a", "g-1 -> b", "g-2 -> b"]);
    assert_eq!(chosen(&outcome.cluster, "g-2"), ["c2: b2"]);
}

#[test]
fn a_session_without_the_plugin_looks_at_no_claim() {
    let scene = Scene::new().node("n", "4c").job("p", pod(&["c"]));
    let off = "predicates predicate.VolumeBindingEnable=false predicate.VolumeZoneEnable=false predicate.NodeVolumeLimitsEnable=false";
    assert_eq!(run(&scene, "allocate", &[off]).binds, ["p-0 -> n"]);
    assert_eq!(run(&scene, "allocate", &["predicates"]).binds, [""; 0]);
    assert_eq!(run(&scene, "allocate", &["predicates enablePredicate=false"]).binds, ["p-0 -> n"]);
}
