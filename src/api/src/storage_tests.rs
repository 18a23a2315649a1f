use krafla_model::labels::Labels;
use krafla_model::storage::StorageObject;
use serde_json::{Value, json};

use super::*;
use crate::object::Object;

fn read(object: Value) -> (Option<StorageObject>, Vec<String>) {
    let (object, problems) = Object::read(&object).expect("an object");
    assert!(problems.is_empty(), "{problems:?}");
    let (event, problems) = Converter::new().event(&object);
    let object = event.map(|event| match event {
        krafla_model::Event::Storage(object) => object,
        other => panic!("{other:?}"),
    });
    (object, problems.into_iter().map(|problem| format!("{} {}", problem.object, problem.message)).collect())
}

fn claim(spec: Value, annotations: Value) -> ClaimSpec {
    let meta = json!({"name": "c", "namespace": "ns", "uid": "u", "annotations": annotations});
    let object = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec});
    match read(object) {
        (Some(StorageObject::Claim(claim)), problems) if problems.is_empty() => claim,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_claim_is_read_with_all_that_a_volume_has_to_suit() {
    let spec = json!({
        "accessModes": ["ReadWriteOnce", "ReadOnlyMany"], "storageClassName": "fast", "volumeMode": "Block",
        "resources": {"requests": {"storage": "1Gi"}}, "selector": {"matchLabels": {"a": "b"}},
    });
    let read = claim(spec, json!({}));
    assert_eq!((&*read.namespace, &*read.name, &*read.uid, &*read.class), ("ns", "c", "u", "fast"));
    assert_eq!(read.access_modes, AccessModes::READ_WRITE_ONCE.and(AccessModes::READ_ONLY_MANY));
    assert!(read.block && read.request == Some(1 << 30) && read.selector.is_some() && !read.is_bound());
    let bound = claim(json!({"volumeName": "v"}), json!({BIND_COMPLETED: "yes", SELECTED_NODE: "n", CLASS: "old"}));
    assert!(bound.is_bound() && bound.selected_node.as_deref() == Some("n") && *bound.class == *"old");
    assert!(!claim(json!({"volumeName": "v"}), json!({})).is_bound(), "its controller has not finished");
}

#[test]
fn a_volume_is_read_with_the_nodes_that_can_use_it() {
    let terms = json!([{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"]}]}]);
    let object = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"},
        "spec": {
            "capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local",
            "csi": {"driver": "d", "volumeHandle": "h"},
            "claimRef": {"namespace": "ns", "name": "c"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        },
        "status": {"phase": "Available"},
    });
    let (Some(StorageObject::Volume(volume)), _) = read(object) else { panic!("a volume") };
    let labels = |host: &str| Labels::from_iter([("kubernetes.io/hostname".into(), host.into())]);
    assert!(volume.is_usable_on(&labels("n1")) && !volume.is_usable_on(&labels("n2")));
    assert_eq!((volume.capacity, volume.phase, &*volume.class), (5 << 30, VolumePhase::Available, "local"));
    assert_eq!(volume.source, VolumeSource::Csi { driver: "d".into(), handle: "h".into() });
    assert!(volume.claim.expect("it names one").means(&claim(json!({}), json!({}))), "of any UID");
}

#[test]
fn what_cannot_be_read_keeps_the_object_out() {
    let meta = json!({"name": "c", "namespace": "ns"});
    for (field, spec) in [
        ("spec.resources.requests.storage is `1GB`", json!({"resources": {"requests": {"storage": "1GB"}}})),
        ("spec.selector: ", json!({"selector": {"matchExpressions": [{"key": "a", "operator": "Gt"}]}})),
    ] {
        let object = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec});
        let (object, problems) = read(object);
        assert!(object.is_none() && problems[0].contains(field), "{problems:?}");
        assert!(problems[0].starts_with("persistentvolumeclaim ns/c "), "{problems:?}");
    }
}

#[test]
fn classes_drivers_and_capacities_are_read() {
    let topologies = json!([{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}]);
    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}, "provisioner": "d",
        "volumeBindingMode": "WaitForFirstConsumer", "allowedTopologies": topologies,
    });
    let (Some(StorageObject::Class(class)), _) = read(class) else { panic!("a class") };
    let zone = |zone: &str| Labels::from_iter([("zone".into(), zone.into())]);
    assert!(
        class.waits_for_consumer && class.is_provisioned() && class.allows(&zone("a")) && !class.allows(&zone("b"))
    );
    let node = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "CSINode",
        "metadata": {"name": "n"},
        "spec": {"drivers": [{"name": "z", "nodeID": "n"}, {"name": "d", "nodeID": "n", "allocatable": {"count": 2}}]},
    });
    let (Some(StorageObject::Node(node)), _) = read(node) else { panic!("a CSINode") };
    assert_eq!(node.drivers, [("d".into(), Some(2)), ("z".into(), None)]);
    let capacity = |sizes: Value| {
        let mut object = json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity",
            "metadata": {"name": "c", "namespace": "ns"}, "storageClassName": "fast", "nodeTopology": {},
        });
        object.as_object_mut().expect("an object").extend(sizes.as_object().expect("an object").clone());
        let (Some(StorageObject::Capacity(capacity)), _) = read(object) else { panic!("a capacity") };
        (capacity.largest, capacity.capacity)
    };
    assert_eq!(capacity(json!({})), (None, 0));
    assert_eq!(capacity(json!({"capacity": "3Gi"})), (Some(3 << 30), 3 << 30));
    assert_eq!(capacity(json!({"capacity": "3Gi", "maximumVolumeSize": "1Gi"})), (Some(1 << 30), 3 << 30));
}
