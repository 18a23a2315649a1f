//! What the plugin decides one by one, and what it writes.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use krafla_framework::effect::ClaimsToBind;
use krafla_framework::{BindingPlugin, Later, ObjectApi, ObjectRef, PodRef};
use krafla_model::dra::{
    AllocatedDevice, Allocation, Alternative, DeviceAccess, DeviceChoice, DeviceClassSpec, DeviceRequest, DeviceSpec,
    PodClaim, ResourceClaimSpec, ResourceSliceSpec,
};
use krafla_model::labels::{NodeSelectorTerm, Test};
use krafla_model::storage::ClaimChoice;
use krafla_model::{Event, Name, PodSpec};
use krafla_testkit::{JobScene, Scene};
use serde_json::{Value, json};

use super::{ClaimWriter, DynamicResources};
use crate::testing::{objections_one_by_one, run, run_one_by_one, scores_one_by_one};

fn device(name: &str, node: &str) -> DeviceSpec {
    DeviceSpec { name: name.into(), access: DeviceAccess::Node(node.into()), ..DeviceSpec::default() }
}

fn slice(node: &str, devices: &[&str]) -> Event {
    Event::ResourceSlice(ResourceSliceSpec {
        name: node.into(),
        driver: "gpu.example.com".into(),
        pool: node.into(),
        generation: 1,
        slices: 1,
        devices: devices.iter().map(|name| device(name, node)).collect(),
        counters: Vec::new(),
    })
}

fn alternative(name: &str, selector: &str) -> Alternative {
    let selectors = Some(selector).filter(|text| !text.is_empty()).map(Name::from).into_iter().collect();
    Alternative { name: name.into(), class: "gpu".into(), selectors, count: Some(1), ..Alternative::default() }
}

fn claim(name: &str, alternatives: Vec<Alternative>) -> ResourceClaimSpec {
    ResourceClaimSpec {
        namespace: "default".into(),
        name: name.into(),
        uid: format!("uid-{name}").into(),
        requests: vec![DeviceRequest { name: "g".into(), alternatives }],
        ..ResourceClaimSpec::default()
    }
}

fn told(claim: ResourceClaimSpec) -> Event {
    Event::ResourceClaim(Box::new(claim))
}

/// Two nodes, of which `b` has a device, and a class.
fn scene() -> Scene {
    let class = DeviceClassSpec { name: "gpu".into(), ..DeviceClassSpec::default() };
    Scene::new().node("a", "8c").node("b", "8c").event(Event::DeviceClass(class)).event(slice("b", &["d0"]))
}

/// A job of one pod with this claim.
fn user(claim: &'static str) -> impl Fn(JobScene) -> JobScene {
    move |job| {
        let own = PodClaim { name: "g".into(), claim: Some(claim.into()), generated: false };
        job.pending(1, "1c").each(move |pod: &mut PodSpec| pod.claims = vec![own.clone()])
    }
}

//
#[test]
fn a_claim_is_reserved_with_its_device_so_that_the_next_pod_finds_it_taken() {
    for run in [run_one_by_one as fn(&Scene) -> _, |scene: &Scene| run(scene, "allocate", &["gang", "predicates"])] {
        let scene = scene()
            .event(told(claim("c", vec![alternative("", "")])))
            .event(told(claim("d", vec![alternative("", "")])))
            .job("p", user("c"))
            .job("q", user("d"));
        let outcome = run(&scene);
        assert_eq!(outcome.binds, ["p-0 -> b"]);
        let cluster = &outcome.cluster;
        let task = krafla_testkit::task_named(cluster, "p-0");
        let [ClaimChoice::Devices(choice)] = cluster.task(task).choices() else { panic!("one claim") };
        assert_eq!((&*choice.name, &*choice.allocation.devices[0].device), ("c", "d0"));
    }
}

#[test]
fn why_a_claim_is_not_served() {
    let said = |scene: Scene| objections_one_by_one(&scene.job("p", user("c")), "p-0");
    let one = |claims: Vec<Alternative>| said(scene().event(told(claim("c", claims))));
    let short = "cannot allocate all claims: request g of claim c asks for 1 device(s), 0 of 0 that match are free";
    assert_eq!(one(vec![alternative("", "false")]), [(short.to_owned(), 2)]);
    assert_eq!(said(scene()), [("claim 1 of 1: resourceclaim \"c\" not found".to_owned(), 2)]);
    let missing = Alternative { class: "nic".into(), ..alternative("", "") };
    let why = "request g of claim c: device class nic does not exist";
    assert_eq!(one(vec![missing]), [(why.to_owned(), 2)]);
    let unreadable = one(vec![alternative("", "device.")]);
    assert!(
        unreadable[0].0.starts_with("claim c: expression 0 of request g cannot be read: at byte 7"),
        "{unreadable:?}"
    );
    let failed = one(vec![alternative("", "device.attributes['x'].y == 1")]);
    assert!(failed.iter().any(|(why, _)| why.contains("no such key: y")), "{failed:?}");
    let many = ResourceClaimSpec {
        reserved_for: (0..256).map(|i| format!("pod-{i}").into()).collect(),
        ..claim("c", vec![alternative("", "")])
    };
    assert_eq!(said(scene().event(told(many)))[0].0, "resourceclaim \"c\" is used by 256 pods, the most there may be");
}

#[test]
fn earlier_alternatives_are_better() {
    let either = vec![alternative("first", "device.driver == 'gpu.example.com'"), alternative("second", "true")];
    let class = DeviceClassSpec { name: "gpu".into(), ..DeviceClassSpec::default() };
    let other = Event::ResourceSlice(ResourceSliceSpec {
        name: "a".into(),
        driver: "old.example.com".into(),
        pool: "a".into(),
        generation: 1,
        slices: 1,
        devices: vec![device("d0", "a")],
        counters: Vec::new(),
    });
    let scene = scene().event(Event::DeviceClass(class)).event(other).event(told(claim("c", either)));
    let scene = scene.job("p", user("c"));
    assert_eq!(scores_one_by_one(&scene, DynamicResources::NAME, "p-0"), [174.0, 200.0], "of 100, times its weight");
    assert_eq!(run_one_by_one(&scene).binds, ["p-0 -> b"]);
}

/// Objects by plural and name, each with a version that moves with every write.
#[derive(Default)]
struct Server {
    objects: Mutex<BTreeMap<String, Value>>,
    /// Writes that are refused as if somebody had come between.
    conflicts: Mutex<u32>,
    claims: Vec<ClaimsToBind>,
}

impl Server {
    fn with(choice: DeviceChoice, objects: &[(&str, Value)]) -> Self {
        let choices = vec![ClaimChoice::Devices(Box::new(choice))];
        let claims = ClaimsToBind { plugin: DynamicResources::NAME.into(), timeout_ms: 0, choices };
        let objects = objects.iter().map(|(path, object)| ((*path).to_owned(), object.clone())).collect();
        Self { objects: Mutex::new(objects), conflicts: Mutex::new(0), claims: vec![claims] }
    }

    fn object(&self, path: &str) -> Value {
        self.objects.lock().expect("unpoisoned")[path].clone()
    }

    fn write(&self, object: ObjectRef<'_>, patch: &str) -> Result<(), String> {
        let patch: Value = serde_json::from_str(patch).map_err(|error| error.to_string())?;
        let mut objects = self.objects.lock().expect("unpoisoned");
        let stored = objects.get_mut(&path_of(object)).ok_or("not found")?;
        let mut conflicts = self.conflicts.lock().expect("unpoisoned");
        if *conflicts > 0 || patch["metadata"]["resourceVersion"] != stored["metadata"]["resourceVersion"] {
            *conflicts = conflicts.saturating_sub(1);
            return Err("the object has been modified".to_owned());
        }
        merge(stored, &patch);
        let version = stored["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse::<u32>().ok());
        stored["metadata"]["resourceVersion"] = json!((version.unwrap_or(0) + 1).to_string());
        Ok(())
    }
}

fn path_of(object: ObjectRef<'_>) -> String {
    format!("{}/{}", object.plural, object.name)
}

fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else { return };
    for (key, value) in patch {
        match value {
            Value::Null => drop(into.as_object_mut().map(|into| into.remove(key))),
            Value::Object(_) if into[key].is_object() => merge(&mut into[key], value),
            _ => into[key] = value.clone(),
        }
    }
}

impl ObjectApi for Server {
    fn get<'a>(&'a self, object: ObjectRef<'a>) -> Later<'a, Result<Option<String>, String>> {
        let found = self.objects.lock().expect("unpoisoned").get(&path_of(object)).map(ToString::to_string);
        Box::pin(async move { Ok(found) })
    }

    fn patch<'a>(&'a self, object: ObjectRef<'a>, patch: &'a str) -> Later<'a, Result<(), String>> {
        Box::pin(async move { self.write(object, patch) })
    }

    fn patch_status<'a>(&'a self, object: ObjectRef<'a>, patch: &'a str) -> Later<'a, Result<(), String>> {
        Box::pin(async move { self.write(object, patch) })
    }

    fn changed<'a>(&'a self, _: ObjectRef<'a>, _: u64) -> Later<'a, u64> {
        Box::pin(async { 0 })
    }

    fn claims(&self, plugin: &str) -> Option<&ClaimsToBind> {
        self.claims.iter().find(|claims| claims.plugin == plugin)
    }
}

/// Nothing here ever waits.
fn now<T>(work: impl Future<Output = T>) -> T {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("it waits"),
    }
}

fn pod() -> PodRef {
    PodRef { uid: "u1".into(), namespace: "default".into(), name: "p".into() }
}

fn choice() -> DeviceChoice {
    let device = AllocatedDevice {
        request: "g".into(),
        driver: "gpu.example.com".into(),
        pool: "b".into(),
        device: "d0".into(),
        ..AllocatedDevice::default()
    };
    let name = vec![Test::In(vec!["b".into()])];
    let allocation = Allocation {
        devices: vec![device],
        nodes: Some(vec![NodeSelectorTerm { labels: Vec::new(), name }]),
        configured: vec![("g".into(), "gpu".into())],
    };
    let (namespace, name, uid) = ("default".into(), "c".into(), "uid-c".into());
    DeviceChoice { namespace, name, uid, allocation: Arc::new(allocation) }
}

fn class() -> (&'static str, Value) {
    let opaque = json!({ "driver": "gpu.example.com", "parameters": { "of": "class" } });
    ("deviceclasses/gpu", json!({ "spec": { "config": [{ "opaque": opaque }] } }))
}

fn written(status: Value) -> (&'static str, Value) {
    let tolerations = json!([{ "key": "broken", "operator": "Exists" }]);
    let request = json!({ "name": "g", "exactly": { "deviceClassName": "gpu", "tolerations": tolerations } });
    let config = json!([{ "requests": ["g"], "opaque": { "driver": "gpu.example.com", "parameters": {} } }]);
    let claim = json!({
        "metadata": { "name": "c", "uid": "uid-c", "resourceVersion": "7" },
        "spec": { "devices": { "requests": [request], "config": config } },
        "status": status,
    });
    ("resourceclaims/c", claim)
}

#[test]
fn the_claim_says_what_it_was_given_and_who_may_use_it() {
    let server = Server::with(choice(), &[class(), written(json!({}))]);
    assert_eq!(now(ClaimWriter.pre_bind(&server, &pod(), "b")), Ok(()));
    let claim = server.object("resourceclaims/c");
    assert_eq!(claim["metadata"]["finalizers"], json!(["resource.kubernetes.io/delete-protection"]));
    let allocation = &claim["status"]["allocation"];
    let result = json!({
        "request": "g", "driver": "gpu.example.com", "pool": "b", "device": "d0",
        "tolerations": [{ "key": "broken", "operator": "Exists" }],
    });
    assert_eq!(allocation["devices"]["results"], json!([result]));
    let sources: Vec<&Value> =
        allocation["devices"]["config"].as_array().expect("a list").iter().map(|one| &one["source"]).collect();
    assert_eq!(sources, ["FromClass", "FromClaim"]);
    let field = json!({ "key": "metadata.name", "operator": "In", "values": ["b"] });
    assert_eq!(allocation["nodeSelector"], json!({ "nodeSelectorTerms": [{ "matchFields": [field] }] }));
    assert_eq!(claim["status"]["reservedFor"], json!([{ "resource": "pods", "name": "p", "uid": "u1" }]));
    // Once more changes nothing.
    assert_eq!(now(ClaimWriter.pre_bind(&server, &pod(), "b")), Ok(()));
    assert_eq!(server.object("resourceclaims/c"), claim);
    now(ClaimWriter.undo_pre_bind(&server, &pod(), "b"));
    let status = server.object("resourceclaims/c")["status"].clone();
    assert!(status["allocation"].is_null() && status["reservedFor"].is_null(), "{status}");
}

#[test]
fn whoever_comes_between_is_not_overwritten() {
    let given = |device: &str| {
        let result = json!({ "request": "g", "driver": "gpu.example.com", "pool": "b", "device": device });
        json!({ "allocation": { "devices": { "results": [result] } }, "reservedFor": [{ "uid": "u0", "name": "other" }] })
    };
    let server = Server::with(choice(), &[class(), written(given("d0"))]);
    *server.conflicts.lock().expect("unpoisoned") = 3;
    assert_eq!(now(ClaimWriter.pre_bind(&server, &pod(), "b")), Ok(()), "after three conflicts");
    assert_eq!(server.object("resourceclaims/c")["status"]["reservedFor"].as_array().map(Vec::len), Some(2));
    now(ClaimWriter.undo_pre_bind(&server, &pod(), "b"));
    assert_eq!(server.object("resourceclaims/c")["status"], given("d0"), "others go on using it");
    for (status, part) in [
        (given("d1"), "has been given other devices meanwhile"),
        (
            json!({ "allocation": given("d0")["allocation"], "reservedFor": vec![json!({ "uid": "x" }); 256] }),
            "used by 256",
        ),
    ] {
        let server = Server::with(choice(), &[class(), written(status.clone())]);
        let why = now(ClaimWriter.pre_bind(&server, &pod(), "b")).expect_err("it is refused");
        assert!(why.contains(part), "{why}");
        assert_eq!(server.object("resourceclaims/c")["status"], status);
    }
    let server = Server::with(DeviceChoice { uid: "old".into(), ..choice() }, &[class(), written(json!({}))]);
    let why = now(ClaimWriter.pre_bind(&server, &pod(), "b")).expect_err("it is refused");
    assert!(why.contains("another has its name"), "{why}");
    let server = Server::with(choice(), &[class(), written(json!({}))]);
    *server.conflicts.lock().expect("unpoisoned") = 100;
    assert!(now(ClaimWriter.pre_bind(&server, &pod(), "b")).is_err(), "it gives up");
}
