//! The search for devices on small clusters, and who has what.

use std::sync::Arc;

use super::*;
use crate::event::Event;
use crate::labels::{NodeSelectorTerm, Requirement, Test};
use crate::node::NodeSpec;
use crate::pod::{PodShape, PodSpec};
use crate::taints::{Effect, Match, Taint, Toleration};

const DRIVER: &str = "gpu.example.com";

fn q(text: &str) -> Quantity {
    Quantity::parse(text).expect("a quantity")
}

fn device(name: &str, model: &str, index: i64) -> DeviceSpec {
    DeviceSpec {
        name: name.into(),
        access: DeviceAccess::Node("n".into()),
        attributes: vec![("index".into(), Attribute::Int(index)), ("model".into(), Attribute::Text(model.into()))],
        ..DeviceSpec::default()
    }
}

fn slice(name: &str, pool: &str, devices: Vec<DeviceSpec>) -> ResourceSliceSpec {
    ResourceSliceSpec {
        name: name.into(),
        driver: DRIVER.into(),
        pool: pool.into(),
        generation: 1,
        slices: 1,
        devices,
        counters: Vec::new(),
    }
}

fn alternative(count: Option<u32>, selector: &str) -> Alternative {
    let selectors = Some(selector).filter(|text| !text.is_empty()).map(Name::from).into_iter().collect();
    Alternative { class: "gpu".into(), selectors, count, ..Alternative::default() }
}

fn request(name: &str, count: Option<u32>, selector: &str) -> DeviceRequest {
    DeviceRequest { name: name.into(), alternatives: vec![alternative(count, selector)] }
}

fn claim(name: &str, requests: Vec<DeviceRequest>) -> ResourceClaimSpec {
    ResourceClaimSpec {
        namespace: "ns".into(),
        name: name.into(),
        uid: format!("uid-{name}").into(),
        requests,
        ..ResourceClaimSpec::default()
    }
}

/// A cluster with the nodes `n` and `m`, a class `gpu` of the driver, and these slices and claims.
fn cluster(slices: Vec<ResourceSliceSpec>, claims: Vec<ResourceClaimSpec>) -> ClusterState {
    let mut cluster = ClusterState::new();
    let room = crate::resources::Amounts::default().with("pods", 110);
    for name in ["n", "m"] {
        let labels = [("rack".into(), Name::from(format!("rack-{name}")))].into_iter().collect();
        cluster.apply(Event::Node(NodeSpec {
            name: name.into(),
            labels,
            allocatable: room.clone(),
            ..NodeSpec::default()
        }));
    }
    let selectors = vec![format!("device.driver == '{DRIVER}'").into()];
    cluster.apply(Event::DeviceClass(DeviceClassSpec { name: "gpu".into(), selectors, has_config: false }));
    slices.into_iter().for_each(|slice| drop(cluster.apply(Event::ResourceSlice(slice))));
    claims.into_iter().for_each(|claim| drop(cluster.apply(Event::ResourceClaim(Box::new(claim)))));
    cluster
}

/// A pod with these claims.
fn pod(cluster: &mut ClusterState, name: &str, claims: &[&str]) -> TaskId {
    let of = |claim: &&str| PodClaim { name: (*claim).into(), claim: Some((*claim).into()), generated: false };
    let shape = Arc::new(PodShape { namespace: "ns".into(), ..PodShape::default() });
    let claims = claims.iter().map(of).collect();
    cluster.apply(Event::Pod(PodSpec { uid: name.into(), name: name.into(), shape, claims, ..PodSpec::default() }));
    cluster.find_task(name).expect("it was just told of")
}

fn plan_on(cluster: &ClusterState, task: TaskId, node: &str) -> Plan {
    cluster.plan_claims(task, cluster.find_node(node).expect("a node"), USUAL_STEPS)
}

/// What a pod with one claim gets on `n`: `request:device` each; or why nothing.
fn gets(slices: Vec<ResourceSliceSpec>, spec: ResourceClaimSpec) -> Result<Vec<String>, Obstacle> {
    let mut cluster = cluster(slices, vec![spec.clone()]);
    let task = pod(&mut cluster, "p", &[&spec.name]);
    match plan_on(&cluster, task, "n") {
        Plan::Fits { choices, .. } => Ok(shown(&choices)),
        Plan::Blocked(obstacle) => Err(obstacle),
    }
}

fn shown(choices: &[DeviceChoice]) -> Vec<String> {
    let all = choices.iter().flat_map(|choice| &choice.allocation.devices);
    all.map(|one| format!("{}:{}", one.request, one.device)).collect()
}

fn four() -> Vec<ResourceSliceSpec> {
    let models = [("a", "x", 0), ("b", "y", 1), ("c", "y", 2), ("d", "x", 3)];
    vec![slice("s", "n", models.map(|(name, model, index)| device(name, model, index)).into())]
}

fn short(asked: Option<u32>, matching: u32, free: u32) -> Obstacle {
    Obstacle::Short(Shortage { claim: "c".into(), request: "r".into(), asked, matching, free })
}

const Y: &str = "device.attributes['gpu.example.com'].model == 'y'";

#[test]
fn counts_selectors_and_all() {
    let one = |request: DeviceRequest| gets(four(), claim("c", vec![request]));
    assert_eq!(one(request("r", Some(2), "")), Ok(vec!["r:a".into(), "r:b".into()]));
    assert_eq!(one(request("r", Some(2), Y)), Ok(vec!["r:b".into(), "r:c".into()]));
    assert_eq!(one(request("r", None, Y)), Ok(vec!["r:b".into(), "r:c".into()]));
    assert_eq!(one(request("r", Some(3), Y)), Err(short(Some(3), 2, 2)));
    assert_eq!(one(request("r", None, "false")), Err(short(None, 0, 0)));
    // The first request leaves what the second needs.
    let both = claim("c", vec![request("any", Some(2), ""), request("y", Some(2), Y)]);
    assert_eq!(gets(four(), both), Ok(["any:a", "any:d", "y:b", "y:c"].map(str::to_owned).into()));
}

#[test]
fn constraints_hold_over_the_requests_that_they_name() {
    let constraint = |requests: &[&str], attribute: &str, distinct| DeviceConstraint {
        requests: requests.iter().map(|name| (*name).into()).collect(),
        attribute: format!("{DRIVER}/{attribute}").into(),
        distinct,
    };
    let with = |constraint: DeviceConstraint, count| {
        let spec = claim("c", vec![request("r", Some(count), "")]);
        gets(four(), ResourceClaimSpec { constraints: vec![constraint], ..spec })
    };
    assert_eq!(with(constraint(&[], "model", false), 2), Ok(vec!["r:a".into(), "r:d".into()]));
    assert_eq!(with(constraint(&[], "model", true), 2), Ok(vec!["r:a".into(), "r:b".into()]));
    assert_eq!(with(constraint(&["other"], "model", false), 2), Ok(vec!["r:a".into(), "r:b".into()]));
    assert_eq!(with(constraint(&[], "model", false), 3), Err(Obstacle::NoCombination { claim: "c".into() }));
    assert_eq!(with(constraint(&[], "nobody", false), 1), Err(Obstacle::NoCombination { claim: "c".into() }));
}

#[test]
fn the_first_alternative_that_can_be_had_is_taken_and_counts() {
    let either = |first: u32| DeviceRequest {
        name: "r".into(),
        alternatives: vec![
            Alternative { name: "many".into(), ..alternative(Some(first), Y) },
            Alternative { name: "one".into(), ..alternative(Some(1), "") },
        ],
    };
    for (first, devices, score) in [(2, vec!["r/many:b", "r/many:c"], 8), (3, vec!["r/one:a"], 7)] {
        let mut cluster = cluster(four(), vec![claim("c", vec![either(first)])]);
        let task = pod(&mut cluster, "p", &["c"]);
        let Plan::Fits { choices, score: found } = plan_on(&cluster, task, "n") else { panic!("it fits") };
        assert_eq!((shown(&choices), found), (devices.into_iter().map(str::to_owned).collect(), score));
    }
}

#[test]
fn a_pool_counts_when_its_newest_generation_is_complete() {
    let of = |name: &str, generation, slices, device_name: &str| ResourceSliceSpec {
        generation,
        slices,
        ..slice(name, "n", vec![device(device_name, "x", 0)])
    };
    let asks = || claim("c", vec![request("r", Some(1), "")]);
    assert_eq!(gets(vec![of("s1", 1, 1, "old"), of("s2", 2, 1, "new")], asks()), Ok(vec!["r:new".into()]));
    assert_eq!(gets(vec![of("s1", 1, 1, "old"), of("s2", 2, 2, "new")], asks()), Err(short(Some(1), 0, 0)));
    assert_eq!(gets(vec![of("s1", 2, 2, "a"), of("s2", 2, 2, "b")], asks()), Ok(vec!["r:a".into()]));
    assert_eq!(
        gets(vec![of("s1", 2, 2, "a"), of("s2", 2, 2, "a")], asks()),
        Err(short(Some(1), 0, 0)),
        "one name twice"
    );
}

#[test]
fn taints_keep_devices_from_claims_that_do_not_tolerate_them() {
    let taint = |effect| Taint { key: "broken".into(), value: "".into(), effect };
    let tainted =
        |effect| vec![slice("s", "n", vec![DeviceSpec { taints: vec![taint(effect)], ..device("a", "x", 0) }])];
    let asks = |tolerations: Vec<Toleration>| {
        let alternative = Alternative { tolerations, ..alternative(Some(1), "") };
        claim("c", vec![DeviceRequest { name: "r".into(), alternatives: vec![alternative] }])
    };
    let tolerates = Toleration { key: Some("broken".into()), test: Match::Exists, effect: None };
    for effect in [Effect::NoSchedule, Effect::NoExecute] {
        assert_eq!(gets(tainted(effect), asks(Vec::new())), Err(short(Some(1), 0, 0)));
        assert_eq!(gets(tainted(effect), asks(vec![tolerates.clone()])), Ok(vec!["r:a".into()]));
    }
}

#[test]
fn devices_that_draw_on_the_same_counters_are_not_given_out_beyond_them() {
    let part = |name: &str, memory: &str| DeviceSpec {
        consumes: vec![("gpu-0".into(), "memory".into(), q(memory))],
        ..device(name, "x", 0)
    };
    let mut offered = slice("s", "n", vec![part("whole", "80Gi"), part("half-1", "40Gi"), part("half-2", "40Gi")]);
    offered.counters = vec![("gpu-0".into(), "memory".into(), q("80Gi"))];
    let two = claim("c", vec![request("r", Some(2), "")]);
    assert_eq!(gets(vec![offered.clone()], two), Ok(vec!["r:half-1".into(), "r:half-2".into()]));
    let three = claim("c", vec![request("r", Some(3), "")]);
    assert_eq!(gets(vec![offered.clone()], three), Err(Obstacle::NoCombination { claim: "c".into() }));
    // One half is given out: the whole is gone too.
    let mut given = claim("other", Vec::new());
    let half =
        AllocatedDevice { driver: DRIVER.into(), pool: "n".into(), device: "half-1".into(), ..Default::default() };
    given.allocation = Some(Arc::new(Allocation { devices: vec![half], ..Allocation::default() }));
    let mut cluster = cluster(vec![offered], vec![given, claim("c", vec![request("r", Some(1), "")])]);
    let task = pod(&mut cluster, "p", &["c"]);
    let Plan::Fits { choices, .. } = plan_on(&cluster, task, "n") else { panic!("it fits") };
    assert_eq!(shown(&choices), ["r:half-2"]);
    cluster.apply(Event::ResourceClaimGone { namespace: "ns".into(), name: "other".into() });
    let Plan::Fits { choices, .. } = plan_on(&cluster, task, "n") else { panic!("it fits") };
    assert_eq!(shown(&choices), ["r:whole"]);
}

#[test]
fn a_shared_device_is_given_out_in_parts() {
    let capacity = Capacity { value: q("10Gi"), range: Some((q("1Gi"), None, Some(q("2Gi")))), ..Capacity::default() };
    let shared = DeviceSpec { shared: true, capacity: vec![("memory".into(), capacity)], ..device("a", "x", 0) };
    let asks = |name: &str, amount: &str| {
        let alternative = Alternative { capacity: vec![("memory".into(), q(amount))], ..alternative(Some(1), "") };
        claim(name, vec![DeviceRequest { name: "r".into(), alternatives: vec![alternative] }])
    };
    let claims = vec![asks("c1", "4Gi"), asks("c2", "5Gi"), asks("c3", "1Gi")];
    let mut cluster = cluster(vec![slice("s", "n", vec![shared])], claims);
    let task = pod(&mut cluster, "p", &["c1", "c2"]);
    let Plan::Fits { choices, .. } = plan_on(&cluster, task, "n") else { panic!("it fits") };
    let parts: Vec<String> =
        choices.iter().map(|choice| choice.allocation.devices[0].consumed[0].1.to_string()).collect();
    assert_eq!(parts, ["5Gi", "5Gi"], "rounded up to a step");
    let shares: Vec<_> = choices.iter().map(|choice| choice.allocation.devices[0].share.clone()).collect();
    assert!(shares[0].is_some() && shares[0] != shares[1], "{shares:?}");
    let third = pod(&mut cluster, "q", &["c1", "c2", "c3"]);
    assert!(matches!(plan_on(&cluster, third, "n"), Plan::Blocked(Obstacle::NoCombination { .. })));
}

#[test]
fn devices_of_the_network_bring_their_nodes_along() {
    let term = |rack: &str| NodeSelectorTerm {
        labels: vec![Requirement { key: "rack".into(), test: Test::In(vec![rack.into()]) }],
        name: Vec::new(),
    };
    let access = DeviceAccess::Selector(vec![term("rack-m")]);
    let mut cluster = cluster(
        vec![slice("s", "fabric", vec![DeviceSpec { access, ..device("a", "x", 0) }])],
        vec![claim("c", vec![request("r", Some(1), "")])],
    );
    let task = pod(&mut cluster, "p", &["c"]);
    assert!(matches!(plan_on(&cluster, task, "n"), Plan::Blocked(Obstacle::Short(_))));
    let Plan::Fits { choices, .. } = plan_on(&cluster, task, "m") else { panic!("it fits") };
    assert_eq!(choices[0].allocation.nodes, Some(vec![term("rack-m")]));
}

#[test]
fn admin_access_takes_nothing_from_anybody() {
    let mut looks = request("r", None, "");
    looks.alternatives[0].admin_access = true;
    let mut cluster = cluster(four(), vec![claim("admin", vec![looks]), claim("c", vec![request("r", Some(4), "")])]);
    let (admin, user) = (pod(&mut cluster, "p", &["admin"]), pod(&mut cluster, "q", &["c"]));
    let n = cluster.find_node("n").expect("a node");
    for task in [user, admin] {
        let Plan::Fits { choices, .. } = plan_on(&cluster, task, "n") else { panic!("it fits") };
        cluster.allocate(task, n).expect("there is room");
        cluster.choose(task, choices.into_iter().map(|one| ClaimChoice::Devices(Box::new(one))).collect());
    }
    assert_eq!(cluster.task(admin).choices().len(), 1);
    assert_eq!(crate::check::discrepancies(&cluster), []);
}

#[test]
fn what_a_placement_chose_is_undone_with_it() {
    let claims = vec![claim("c", vec![request("r", Some(4), "")]), claim("d", vec![request("r", Some(1), "")])];
    let mut cluster = cluster(four(), claims);
    let (first, second) = (pod(&mut cluster, "p", &["c"]), pod(&mut cluster, "q", &["d"]));
    let n = cluster.find_node("n").expect("a node");
    let before = cluster.savepoint();
    let Plan::Fits { choices, .. } = plan_on(&cluster, first, "n") else { panic!("it fits") };
    cluster.allocate(first, n).expect("there is room");
    cluster.choose(first, choices.into_iter().map(|one| ClaimChoice::Devices(Box::new(one))).collect());
    let short = Shortage { claim: "d".into(), request: "r".into(), asked: Some(1), matching: 4, free: 0 };
    assert_eq!(plan_on(&cluster, second, "n"), Plan::Blocked(Obstacle::Short(short)));
    assert_eq!(crate::check::discrepancies(&cluster), []);
    while cluster.undo_one(before).is_some() {}
    assert!(matches!(plan_on(&cluster, second, "n"), Plan::Fits { .. }));
    assert_eq!(crate::check::discrepancies(&cluster), []);
}

#[test]
fn a_decision_and_the_report_of_it_count_once_and_the_report_has_the_last_word() {
    let mut cluster = cluster(four(), vec![claim("c", vec![request("r", Some(1), "")])]);
    let task = pod(&mut cluster, "p", &["c"]);
    let n = cluster.find_node("n").expect("a node");
    let Plan::Fits { choices, .. } = plan_on(&cluster, task, "n") else { panic!("it fits") };
    let allocation = Arc::clone(&choices[0].allocation);
    cluster.allocate(task, n).expect("there is room");
    cluster.choose(task, choices.into_iter().map(|one| ClaimChoice::Devices(Box::new(one))).collect());
    let reported = ResourceClaimSpec {
        allocation: Some(allocation),
        reserved_for: vec!["p".into()],
        ..claim("c", vec![request("r", Some(1), "")])
    };
    cluster.apply(Event::ResourceClaim(Box::new(reported.clone())));
    let known = cluster.dynamic_resources().claim(&"ns".into(), &"c".into()).expect("a claim");
    assert_eq!(cluster.dynamic_resources().consumers(known, &"p".into()), (1, true));
    cluster.apply(Event::PodGone("p".into()));
    let other = pod(&mut cluster, "q", &["c"]);
    assert!(matches!(plan_on(&cluster, other, "n"), Plan::Fits { .. }), "it shares the claim");
    assert_eq!(plan_on(&cluster, other, "m"), Plan::Blocked(Obstacle::Elsewhere { claim: "c".into() }));
    assert_eq!(crate::check::discrepancies(&cluster), []);
    cluster.apply(Event::ResourceClaim(Box::new(claim("c", vec![request("r", Some(1), "")]))));
    assert!(cluster.dynamic_resources().usage.is_empty());
}

#[test]
fn a_search_that_takes_too_long_is_given_up() {
    let many: Vec<DeviceSpec> = (0..40).map(|i| device(&format!("d{i:02}"), &i.to_string(), i % 20)).collect();
    let constraint =
        DeviceConstraint { requests: Vec::new(), attribute: format!("{DRIVER}/index").into(), distinct: true };
    let spec = claim("c", vec![request("r", Some(21), "")]);
    let spec = ResourceClaimSpec { constraints: vec![constraint], ..spec };
    assert_eq!(gets(vec![slice("s", "n", many)], spec), Err(Obstacle::TooManySteps(USUAL_STEPS)));
}

#[test]
fn expressions_are_kept_as_long_as_they_are_used_and_asked_again_when_a_pool_changes() {
    let mut cluster = cluster(Vec::new(), vec![claim("c", vec![request("r", Some(1), Y)])]);
    let task = pod(&mut cluster, "p", &["c"]);
    cluster.apply(Event::ResourceSlice(slice("s", "n", vec![device("a", "x", 0)])));
    assert!(matches!(plan_on(&cluster, task, "n"), Plan::Blocked(Obstacle::Short(_))));
    cluster
        .apply(Event::ResourceSlice(ResourceSliceSpec { generation: 2, ..slice("s", "n", vec![device("a", "y", 0)]) }));
    assert!(matches!(plan_on(&cluster, task, "n"), Plan::Fits { .. }));
    let texts = |cluster: &ClusterState| cluster.dynamic_resources.selectors.ids().count();
    for i in 0..1_000 {
        let spec = claim("x", vec![request("r", Some(1), &format!("{i} == 0"))]);
        cluster.apply(Event::ResourceClaim(Box::new(spec)));
    }
    assert!(texts(&cluster) < 300, "{}", texts(&cluster));
    assert!(matches!(plan_on(&cluster, task, "n"), Plan::Fits { .. }));
}
