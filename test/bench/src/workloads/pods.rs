//! Pods.

use serde_json::{Value, json};

use super::objects::{DEVICE, HOSTNAME, THE_NODE, ZONE, namespace};
use super::{INIT, Kind, MEASURED, Workload};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const AFFINITY: &str = "podAffinity";
const ANTI_AFFINITY: &str = "podAntiAffinity";

pub(super) fn init(workload: &Workload, i: usize) -> Value {
    let name = format!("{INIT}{i:05}");
    match workload.kind {
        Kind::Unschedulable => {
            let mut pod = plain(&name);
            requests(&mut pod)["cpu"] = json!("200");
            pod
        }
        Kind::Preemption => {
            let mut pod = plain(&name);
            requests(&mut pod)["cpu"] = json!("900m");
            pod["spec"]["terminationGracePeriodSeconds"] = json!(0);
            pod
        }
        Kind::WhileGated | Kind::GatedAffinity => {
            let mut pod = of_kind(workload, &name, i);
            pod["spec"]["schedulingGates"] = json!([{ "name": "test.example.com/gate" }]);
            pod
        }
        Kind::Deleting => {
            let mut pod = plain(&name);
            pod["metadata"]["finalizers"] = json!(["test.example.com/finalizer"]);
            pod
        }
        // As upstream: plain pods, and others only where it says so.
        Kind::TopologySpreading | Kind::PreferredTopologySpreading | Kind::InTreeVolumes => plain(&name),
        Kind::MatchingAntiAffinity => of_kind(&Workload { kind: Kind::PodAntiAffinity, ..*workload }, &name, i),
        Kind::Mixed => {
            let kinds = [
                Kind::Basic,
                Kind::PodAffinity,
                Kind::PodAntiAffinity,
                Kind::PreferredPodAffinity,
                Kind::PreferredPodAntiAffinity,
            ];
            let mut pod = of_kind(&Workload { kind: kinds[i % kinds.len()], ..*workload }, &name, i);
            // Each kind is among itself.
            let text = pod.to_string().replace("blue", &format!("color-{}", i % kinds.len()));
            pod = serde_json::from_str(&text).unwrap_or(pod);
            pod
        }
        Kind::AcrossNamespaces { .. } => {
            let mut pod = of_kind(workload, &name, i);
            pod["metadata"]["namespace"] = json!(namespace(i));
            pod
        }
        _ => of_kind(workload, &name, i),
    }
}

pub(super) fn measured(workload: &Workload, i: usize) -> Value {
    let name = format!("{MEASURED}{i:05}");
    match workload.kind {
        Kind::Preemption => {
            let mut pod = plain(&name);
            pod["spec"]["priorityClassName"] = json!("high");
            pod["spec"]["priority"] = json!(1_000);
            requests(&mut pod)["cpu"] = json!("3");
            pod
        }
        Kind::Mixed => plain(&name),
        Kind::AcrossNamespaces { .. } => {
            let mut pod = of_kind(workload, &name, i);
            pod["metadata"]["namespace"] = json!(namespace(0));
            pod
        }
        _ => of_kind(workload, &name, i),
    }
}

fn plain(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": "default", "labels": { "app": "perf", "color": "blue" } },
        "spec": {
            "schedulerName": "default-scheduler",
            "containers": [{
                "name": "pause", "image": "registry.example.com/pause:1",
                "resources": { "requests": { "cpu": "100m", "memory": "500Mi" } },
            }],
        },
    })
}

fn requests(pod: &mut Value) -> &mut Value {
    &mut pod["spec"]["containers"][0]["resources"]["requests"]
}

/// A pod as the counted ones are.
fn of_kind(workload: &Workload, name: &str, i: usize) -> Value {
    let mut pod = plain(name);
    let like = json!({ "matchLabels": { "color": "blue" } });
    let term = |key: &str| json!({ "labelSelector": like, "topologyKey": key });
    let preferred = |term: Value| json!([{ "weight": 1, "podAffinityTerm": term }]);
    let spread = |skew: u32, key: &str, when: &str| json!({ "maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": like });
    let spec = &mut pod["spec"];
    match workload.kind {
        Kind::Basic
        | Kind::Unschedulable
        | Kind::Preemption
        | Kind::WhileGated
        | Kind::Deleting
        | Kind::MatchingAntiAffinity
        | Kind::Mixed
        | Kind::DefaultTopologySpreading => {}
        Kind::Daemonset => {
            let field = json!({ "key": "metadata.name", "operator": "In", "values": [THE_NODE] });
            spec["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"] = json!([{ "matchFields": [field] }]);
            requests(&mut pod)["memory"] = json!("100Mi");
        }
        Kind::ExtendedResource => {
            let one = json!({ DEVICE: "1" });
            spec["containers"][0]["resources"] = json!({ "requests": one, "limits": one });
        }
        Kind::NodeAffinity => {
            let zones = json!([{ "key": ZONE, "operator": "In", "values": ["zone1", "zone2"] }]);
            spec["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"] = json!([{ "matchExpressions": zones }]);
        }
        Kind::PodAffinity | Kind::GatedAffinity => spec["affinity"][AFFINITY][REQUIRED] = json!([term(ZONE)]),
        Kind::PodAntiAffinity => spec["affinity"][ANTI_AFFINITY][REQUIRED] = json!([term(HOSTNAME)]),
        Kind::PreferredPodAffinity => spec["affinity"][AFFINITY][PREFERRED] = preferred(term(HOSTNAME)),
        Kind::PreferredPodAntiAffinity => spec["affinity"][ANTI_AFFINITY][PREFERRED] = preferred(term(HOSTNAME)),
        Kind::AcrossNamespaces { anti, required } => {
            let mut term = term(if anti || !required { HOSTNAME } else { ZONE });
            term["namespaceSelector"] = json!({ "matchLabels": { "team": "devops" } });
            let side = if anti { ANTI_AFFINITY } else { AFFINITY };
            let (when, terms) = if required { (REQUIRED, json!([term])) } else { (PREFERRED, preferred(term)) };
            spec["affinity"][side][when] = terms;
        }
        Kind::TopologySpreading => spec["topologySpreadConstraints"] = json!([spread(5, ZONE, "DoNotSchedule")]),
        Kind::PreferredTopologySpreading => {
            spec["topologySpreadConstraints"] = json!([spread(5, ZONE, "ScheduleAnyway")]);
        }
        Kind::NodeInclusion => {
            let mut spread = spread(1, HOSTNAME, "DoNotSchedule");
            spread["nodeTaintsPolicy"] = json!("Honor");
            spec["topologySpreadConstraints"] = json!([spread]);
        }
        Kind::Secrets => {
            spec["volumes"] = json!([{ "name": "secret", "secret": { "secretName": "secret", "optional": true } }]);
        }
        Kind::InTreeVolumes | Kind::CsiVolumes => {
            spec["volumes"] = json!([{ "name": "volume", "persistentVolumeClaim": { "claimName": name } }]);
        }
        Kind::DeviceClaims => {
            spec["resourceClaims"] = json!([{ "name": "device", "resourceClaimName": name }]);
            spec["containers"][0]["resources"]["claims"] = json!([{ "name": "device" }]);
        }
        Kind::HostPorts => {
            spec["containers"][0]["ports"] = json!([{ "containerPort": 80, "hostPort": 80, "protocol": "TCP" }]);
        }
        Kind::NativeGangs(size) => {
            spec["schedulingGroup"] = json!({ "podGroupName": format!("gang-{}", i / size) });
        }
        Kind::Gangs(size) => {
            spec["schedulerName"] = json!("volcano");
            spec["containers"][0]["resources"]["requests"] = json!({ "cpu": "1", "memory": "1Gi" });
            let group = format!("gang-{}", i / size);
            pod["metadata"]["annotations"] = json!({ "scheduling.k8s.io/group-name": group });
        }
    }
    pod
}
