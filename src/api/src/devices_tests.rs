//! What is read of classes, slices and claims.

use serde_json::{Value, json};

use super::*;

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("it fits its type")
}

fn said(problems: Vec<Problem>) -> Vec<String> {
    problems.into_iter().map(|problem| format!("{}: {}", problem.object, problem.message)).collect()
}

#[test]
fn a_slice_has_devices_with_all_that_allocation_depends_on() {
    let (slice, problems) = Converter::new().resource_slice(&read(json!({
        "metadata": {"name": "s"},
        "spec": {
            "driver": "gpu.example.com", "nodeName": "n0",
            "pool": {"name": "n0", "generation": 3, "resourceSliceCount": 2},
            "sharedCounters": [{"name": "gpu-0", "counters": {"memory": {"value": "80Gi"}}}],
            "devices": [
                {
                    "name": "gpu-0",
                    "attributes": {"model": {"string": "A100"}, "other.example.com/index": {"int": 1}, "v": {"version": "1.2.3"}},
                    "capacity": {"memory": {"value": "40Gi", "requestPolicy": {
                        "default": "1Gi", "validRange": {"min": "1Gi", "max": "40Gi", "step": "1Gi"},
                    }}},
                    "taints": [{"key": "broken", "effect": "NoSchedule"}, {"key": "seen", "effect": "None"}],
                    "consumesCounters": [{"counterSet": "gpu-0", "counters": {"memory": {"value": "40Gi"}}}],
                    "allowMultipleAllocations": true,
                },
                {"name": "gpu-1", "bindingConditions": ["ready"], "bindingFailureConditions": ["failed"]},
                {"name": "gpu-2", "capacity": {"memory": {"value": "much"}}},
            ],
        },
    })));
    assert_eq!(
        said(problems),
        ["resourceslice s: device gpu-2: capacity memory: `much` is no quantity; the device is left out"]
    );
    let slice = slice.expect("a slice");
    assert_eq!((&*slice.driver, &*slice.pool, slice.generation, slice.slices), ("gpu.example.com", "n0", 3, 2));
    let [first, second] = &slice.devices[..] else { panic!("{:?}", slice.devices) };
    assert_eq!(first.access, DeviceAccess::Node("n0".into()));
    assert_eq!(first.attributes[1], ("other.example.com/index".into(), Attribute::Int(1)));
    assert_eq!((first.taints.len(), first.consumes.len(), first.shared), (1, 1, true));
    let gi = |n: i64| Quantity::whole(n << 30);
    assert_eq!(first.capacity[0].1.range, Some((gi(1), Some(gi(40)), Some(gi(1)))));
    assert!(second.needs_preparation && !first.needs_preparation);
}

#[test]
fn each_device_may_have_nodes_of_its_own() {
    let term =
        json!({"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r1"]}]}]});
    let (slice, problems) = Converter::new().resource_slice(&read(json!({
        "metadata": {"name": "s"},
        "spec": {
            "driver": "d", "perDeviceNodeSelection": true, "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "a", "allNodes": true}, {"name": "b", "nodeName": "n"}, {"name": "c", "nodeSelector": term}],
        },
    })));
    assert_eq!(said(problems), [""; 0]);
    let access: Vec<DeviceAccess> = slice.expect("a slice").devices.into_iter().map(|device| device.access).collect();
    assert_eq!(access[..2], [DeviceAccess::Everywhere, DeviceAccess::Node("n".into())]);
    assert!(matches!(&access[2], DeviceAccess::Selector(terms) if terms.len() == 1));
}

#[test]
fn a_claim_has_requests_alternatives_and_what_it_was_given() {
    let (claim, problems) = Converter::new().resource_claim(&read(json!({
        "metadata": {
            "name": "c", "namespace": "ns", "uid": "u",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "pod", "controller": true}],
        },
        "spec": {"devices": {
            "requests": [
                {"name": "one", "exactly": {
                    "deviceClassName": "gpu", "selectors": [{"cel": {"expression": "true"}}],
                    "tolerations": [{"key": "broken", "operator": "Exists"}],
                    "capacity": {"requests": {"memory": "10Gi"}},
                }},
                {"name": "all", "exactly": {"deviceClassName": "nic", "allocationMode": "All", "adminAccess": true}},
                {"name": "either", "firstAvailable": [
                    {"name": "big", "deviceClassName": "big"}, {"name": "small", "deviceClassName": "small", "count": 2},
                ]},
            ],
            "constraints": [{"requests": ["one", "either/big"], "matchAttribute": "example.com/numa"}],
        }},
        "status": {
            "allocation": {"devices": {"results": [
                {"request": "either/small", "driver": "d", "pool": "p", "device": "x", "consumedCapacity": {"memory": "1Gi"}},
            ]}},
            "reservedFor": [{"resource": "pods", "name": "p", "uid": "pod"}],
        },
    })));
    assert_eq!(said(problems), [""; 0]);
    let claim = claim.expect("a claim");
    assert_eq!((claim.owner.as_deref(), claim.reserved_for.len()), (Some("pod"), 1));
    let [one, all, either] = &claim.requests[..] else { panic!("{:?}", claim.requests) };
    assert_eq!((one.alternatives[0].count, all.alternatives[0].count), (Some(1), None));
    assert!(all.alternatives[0].admin_access && one.alternatives[0].tolerations.len() == 1);
    assert_eq!(
        either.alternatives.iter().map(|one| (&*one.name, one.count)).collect::<Vec<_>>(),
        [("big", Some(1)), ("small", Some(2))]
    );
    let allocation = claim.allocation.expect("it was given something");
    assert_eq!(&*allocation.devices[0].request, "either/small");
}

#[test]
fn what_a_claim_asks_for_and_cannot_be_read_makes_pods_wait() {
    for (request, part) in [
        (json!({"name": "r"}), "neither `exactly` nor `firstAvailable`"),
        (
            json!({"name": "r", "exactly": {"deviceClassName": "c", "allocationMode": "Some"}}),
            "allocationMode is `Some`",
        ),
        (json!({"name": "r", "exactly": {"deviceClassName": "c", "count": -1}}), "the count is -1"),
    ] {
        let (claim, problems) = Converter::new().resource_claim(&read(json!({
            "metadata": {"name": "c", "namespace": "ns"}, "spec": {"devices": {"requests": [request]}},
        })));
        let why = claim.and_then(|claim| claim.unreadable).expect("it is unreadable");
        assert!(why.starts_with("request r: ") && why.contains(part), "{why}");
        assert_eq!(problems.len(), 1);
    }
}

#[test]
fn claims_of_a_pod_are_named_by_it_or_made_for_it() {
    let pod: core::Pod = read(json!({
        "metadata": {"name": "p"},
        "spec": {"containers": [], "resourceClaims": [
            {"name": "shared", "resourceClaimName": "c"},
            {"name": "own", "resourceClaimTemplateName": "t"},
            {"name": "late", "resourceClaimTemplateName": "t"},
            {"name": "needless", "resourceClaimTemplateName": "t"},
        ]},
        "status": {"resourceClaimStatuses": [{"name": "own", "resourceClaimName": "p-own-1"}, {"name": "needless"}]},
    }));
    let (sources, claims) = claims_of(&pod, &mut NamePool::default());
    assert_eq!(sources.len(), 4);
    let claims: Vec<(&str, Option<&str>)> = claims.iter().map(|one| (&*one.name, one.claim.as_deref())).collect();
    assert_eq!(claims, [("shared", Some("c")), ("own", Some("p-own-1")), ("late", None)]);
}
