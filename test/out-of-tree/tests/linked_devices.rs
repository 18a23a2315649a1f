//! A Permit plugin that looks at the devices which pods have been given.

use krafla_engine::{Engine, Input, Options};
use krafla_framework::conf::policy::{Policy, ProfilePolicy};
use krafla_framework::{Effect, ExtensionPoint};
use krafla_model::dra::{
    AllocatedDevice, Allocation, Alternative, DeviceAccess, DeviceClassSpec, DeviceRequest, DeviceSpec, PodClaim,
    ResourceClaimSpec, ResourceSliceSpec,
};
use krafla_model::{Event, PodSpec, Time};
use krafla_out_of_tree::linked_devices::PAIR;
use krafla_testkit::Scene;

fn engine() -> Engine {
    let mut registry = krafla_plugins::registry(krafla_actions::all());
    krafla_out_of_tree::extend(&mut registry);
    let mut profile = ProfilePolicy::default_profile(&registry);
    profile.points.entry(ExtensionPoint::Permit).or_default().push(("LinkedDevices".to_owned(), 1));
    let policy = Policy { profiles: vec![profile], ..Policy::default() }.one_by_one();
    Engine::with_policy(registry, Options { profile_only: true, ..Options::default() }, policy)
}

fn claim(name: &str, device: Option<&str>) -> Input {
    let alternative = Alternative { class: "gpu".into(), count: Some(1), ..Alternative::default() };
    let given = device.map(|device| {
        let one = AllocatedDevice {
            request: "g".into(),
            driver: "gpu.example.com".into(),
            pool: "n".into(),
            device: device.into(),
            ..AllocatedDevice::default()
        };
        Allocation { devices: vec![one], ..Allocation::default() }.into()
    });
    Input::Event(Event::ResourceClaim(Box::new(ResourceClaimSpec {
        namespace: "default".into(),
        name: name.into(),
        uid: format!("uid-{name}").into(),
        requests: vec![DeviceRequest { name: "g".into(), alternatives: vec![alternative] }],
        allocation: given,
        ..ResourceClaimSpec::default()
    })))
}

fn binds(engine: &mut Engine, at: i64, inputs: Vec<Input>) -> Vec<String> {
    let step = engine.step(Time(at), inputs);
    let mut bound: Vec<String> = step
        .effects
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::Bind { pod, .. } => Some(pod.name.to_string()),
            _ => None,
        })
        .collect();
    bound.sort();
    bound
}

//
#[test]
fn a_pod_waits_at_permit_until_the_neighbouring_device_is_free() {
    let member = |claim: &'static str| {
        let own = PodClaim { name: "g".into(), claim: Some(claim.into()), generated: false };
        move |job: krafla_testkit::JobScene| {
            let job = job.shape(|shape| shape.labels.set(PAIR.into(), "one".into()));
            job.pending(1, "1c").each(move |pod: &mut PodSpec| pod.claims = vec![own.clone()])
        }
    };
    let device =
        |name: &str| DeviceSpec { name: name.into(), access: DeviceAccess::Node("n".into()), ..DeviceSpec::default() };
    let slice = ResourceSliceSpec {
        name: "n".into(),
        driver: "gpu.example.com".into(),
        pool: "n".into(),
        generation: 1,
        slices: 1,
        devices: ["gpu-0", "gpu-1"].map(device).into(),
        counters: Vec::new(),
    };
    let class = DeviceClassSpec { name: "gpu".into(), ..DeviceClassSpec::default() };
    let scene = Scene::new()
        .node("n", "8c")
        .event(Event::DeviceClass(class))
        .event(Event::ResourceSlice(slice))
        .job("left", member("left"))
        .job("right", member("right"));
    let mut engine = engine();
    let claims = [claim("taken", Some("gpu-1")), claim("left", None), claim("right", None)];
    let told: Vec<Input> = claims.into_iter().chain(scene.events().into_iter().map(Input::Event)).collect();
    assert_eq!(binds(&mut engine, 0, told), [""; 0]);
    assert_eq!(engine.configuration().plugins().waiting().len(), 1, "one has its device, and waits for the other");
    assert_eq!(binds(&mut engine, 5_000, vec![claim("taken", None)]), ["left-0", "right-0"]);
    assert_eq!(engine.configuration().plugins().waiting().len(), 0);
}
