use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use super::*;

/// An API whose objects change while somebody waits.
struct Fake {
    objects: Mutex<BTreeMap<String, Value>>,
    claims: ClaimsToBind,
    /// What happens in each wait: once for each; nothing afterwards.
    meanwhile: Mutex<Vec<Change>>,
    written: Mutex<Vec<String>>,
}

type Change = Box<dyn FnOnce(&mut BTreeMap<String, Value>) + Send>;

fn path(object: ObjectRef<'_>) -> String {
    format!("{} {}", object.kind, object.name)
}

fn merge(into: &mut Value, patch: &Value) {
    match patch {
        Value::Object(fields) => {
            for (key, value) in fields {
                merge(&mut into[key], value);
            }
        }
        other => *into = other.clone(),
    }
}

impl ObjectApi for Fake {
    fn get<'a>(&'a self, object: ObjectRef<'a>) -> Later<'a, Result<Option<String>, String>> {
        let found =
            self.objects.lock().unwrap_or_else(PoisonError::into_inner).get(&path(object)).map(Value::to_string);
        Box::pin(async move { Ok(found) })
    }

    fn patch<'a>(&'a self, object: ObjectRef<'a>, patch: &'a str) -> Later<'a, Result<(), String>> {
        let patch: Value = serde_json::from_str(patch).expect("JSON");
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let known = objects.get_mut(&path(object)).expect("it was read before");
        let same = known["metadata"]["resourceVersion"] == patch["metadata"]["resourceVersion"];
        if same {
            merge(known, &patch);
            self.written.lock().unwrap_or_else(PoisonError::into_inner).push(path(object));
        }
        Box::pin(async move { if same { Ok(()) } else { Err("conflict".to_owned()) } })
    }

    fn patch_status<'a>(&'a self, object: ObjectRef<'a>, patch: &'a str) -> Later<'a, Result<(), String>> {
        self.patch(object, patch)
    }

    fn changed<'a>(&'a self, _: ObjectRef<'a>, at_most_ms: u64) -> Later<'a, u64> {
        let mut meanwhile = self.meanwhile.lock().unwrap_or_else(PoisonError::into_inner);
        let happens = (at_most_ms > 0 && !meanwhile.is_empty()).then(|| meanwhile.remove(0));
        let passed = if happens.is_some() { 1_000.min(at_most_ms) } else { at_most_ms };
        if let Some(change) = happens {
            change(&mut self.objects.lock().unwrap_or_else(PoisonError::into_inner));
        }
        Box::pin(async move { passed })
    }

    fn claims(&self, _: &str) -> Option<&ClaimsToBind> {
        Some(&self.claims)
    }
}

fn run(fake: &Fake) -> Result<(), String> {
    let pod = PodRef { uid: "u".into(), namespace: "ns".into(), name: "p".into() };
    let mut later = VolumeBinder.pre_bind(fake, &pod, "n");
    match later.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("the fake never waits"),
    }
}

/// The pod `p`, the node `n` in zone `a`, the claim `c` and the volume `v`.
fn fake(choice: ClaimChoice, volume: Value, meanwhile: Vec<Change>) -> Fake {
    let named = |name: &str| json!({"name": name, "uid": "u", "resourceVersion": "1"});
    let objects = [
        ("Pod p", json!({"metadata": named("p")})),
        ("Node n", json!({"metadata": {"name": "n", "labels": {"zone": "a"}}})),
        ("PersistentVolumeClaim c", json!({"metadata": named("c"), "spec": {}})),
        ("PersistentVolume v", json!({"metadata": named("v"), "spec": volume})),
    ];
    Fake {
        objects: Mutex::new(objects.into_iter().map(|(path, object)| (path.to_owned(), object)).collect()),
        claims: ClaimsToBind { plugin: VolumeBinding::NAME.into(), timeout_ms: 10_000, choices: vec![choice] },
        meanwhile: Mutex::new(meanwhile),
        written: Mutex::default(),
    }
}

fn chosen() -> ClaimChoice {
    ClaimChoice::Volume { claim: "c".into(), volume: "v".into() }
}

fn made() -> ClaimChoice {
    ClaimChoice::Provision { claim: "c".into() }
}

/// The controller gives the claim its volume.
fn binds() -> Change {
    Box::new(|objects| {
        let claim = objects.get_mut("PersistentVolumeClaim c").expect("it is there");
        merge(claim, &json!({"metadata": {"annotations": {BIND_COMPLETED: "yes"}}, "spec": {"volumeName": "v"}}));
    })
}

fn sets(path: &'static str, patch: Value) -> Change {
    Box::new(move |objects| merge(objects.get_mut(path).expect("it is there"), &patch))
}

#[test]
fn a_chosen_volume_is_named_on_its_claim_and_waited_for() {
    let fake = fake(chosen(), json!({}), vec![Box::new(|_| {}), binds()]);
    assert_eq!(run(&fake), Ok(()));
    assert_eq!(*fake.written.lock().expect("unpoisoned"), ["PersistentVolume v"]);
    let objects = fake.objects.lock().expect("unpoisoned");
    let volume = &objects["PersistentVolume v"];
    assert_eq!(volume["spec"]["claimRef"]["uid"], "u");
    assert_eq!(
        (&volume["spec"]["claimRef"]["namespace"], &volume["spec"]["claimRef"]["name"]),
        (&json!("ns"), &json!("c"))
    );
    assert_eq!(volume["metadata"]["annotations"][BOUND_BY_CONTROLLER], "yes");
}

#[test]
fn a_volume_to_be_made_is_asked_for_with_its_node() {
    let fake = fake(made(), json!({}), vec![binds()]);
    assert_eq!(run(&fake), Ok(()));
    let objects = fake.objects.lock().expect("unpoisoned");
    assert_eq!(objects["PersistentVolumeClaim c"]["metadata"]["annotations"][SELECTED_NODE], "n");
}

/// what takes too long, or cannot come right any more, stops the bind.
#[test]
fn a_wait_ends_with_its_time_or_when_nothing_more_can_come_of_it() {
    let elsewhere = json!([{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}]);
    let elsewhere = json!({"nodeAffinity": {"required": {"nodeSelectorTerms": elsewhere}}});
    let of_another = json!({"claimRef": {"namespace": "ns", "name": "d", "uid": "w"}});
    let gives_up = sets("PersistentVolumeClaim c", json!({"metadata": {"annotations": {SELECTED_NODE: null}}}));
    let resets = sets("PersistentVolume v", json!({"spec": {"claimRef": null}}));
    let again = sets("Pod p", json!({"metadata": {"uid": "another"}}));
    let gone: Change = Box::new(|objects| drop(objects.remove("PersistentVolumeClaim c")));
    for (fake, why) in [
        (fake(made(), json!({}), Vec::new()), "binding volumes: persistentvolumeclaim \"c\" has no volume after 10 s"),
        (fake(chosen(), of_another, Vec::new()), "persistentvolume \"v\" is for the claim ns/d by now"),
        (fake(made(), json!({}), vec![gives_up]), "provisioning failed for PVC \"c\""),
        (fake(chosen(), json!({}), vec![resets]), "ClaimRef got reset for pv \"v\""),
        (fake(made(), elsewhere, vec![binds()]), "pv \"v\" node affinity doesn't match node \"n\""),
        (fake(made(), json!({}), vec![again]), "pod does not exist any more"),
        (fake(made(), json!({}), vec![gone]), "persistentvolumeclaim \"c\" not found"),
    ] {
        assert_eq!(run(&fake), Err(why.to_owned()));
    }
}

#[test]
fn what_was_written_before_is_not_written_again() {
    let own = json!({"claimRef": {"namespace": "ns", "name": "c", "uid": "u"}});
    let written = fake(chosen(), own, vec![binds()]);
    assert_eq!(run(&written), Ok(()));
    assert!(written.written.lock().expect("unpoisoned").is_empty());
    let other_node = fake(made(), json!({}), Vec::new());
    let selected = json!({"metadata": {"annotations": {SELECTED_NODE: "m"}}});
    sets("PersistentVolumeClaim c", selected)(&mut other_node.objects.lock().expect("unpoisoned"));
    let why = "the volume of persistentvolumeclaim \"c\" is being made for node m";
    assert_eq!(run(&other_node), Err(why.to_owned()));
}
