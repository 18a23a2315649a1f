//! What a pod asks for.
//!
//! The rule is Kubernetes': the sum over the containers and the restartable init containers; at least what any init
//! container needs together with the restartable ones before it; pod-level amounts in place of that where they are set;
//! overhead on top. A resource that is named only in limits is asked for to that limit, which the API server fills in
//! and a manifest does not.
//!
//! Not looked at: amounts of a resize in progress (`status.resize`), and the pod slot, which the model adds.

use k8s_openapi::api::core::v1::{Container, PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use krafla_model::Amounts;
use krafla_model::name::NamePool;
use krafla_model::shape::{DEFAULT_CPU, DEFAULT_MEMORY};

use crate::keys;
use crate::quantities::{self, ResourceList};
use crate::report::{Report, annotation};

const LEFT_OUT: &str = "the pod is left out";

/// Reads what a pod asks for. `None` when an amount cannot be read: a pod whose needs are not known is better kept out
/// than placed on a guess.
pub(crate) fn request(spec: &PodSpec, names: &mut NamePool, report: &mut Report<'_>) -> Option<Amounts> {
    let mut reader = Reader { names, report, unnamed: &Amounts::default(), complete: true };
    let sum = reader.pod(spec);
    reader.complete.then(|| without_zeros(&sum))
}

/// CPU and memory of a pod as resource scores see them, in milli-CPU and bytes: a container that names none of it counts
/// as 100 milli-CPU or 200 MiB; naming 0 is naming it. `None` if that is what the model makes of `request` by itself.
pub(crate) fn scored_request(
    spec: &PodSpec,
    meta: &ObjectMeta,
    request: &Amounts,
    names: &mut NamePool,
) -> Option<(i64, i64)> {
    let written = annotation(meta, keys::SCORED_REQUEST).and_then(|text| text.split_once(','));
    if let Some((cpu, memory)) = written
        && let (Ok(cpu @ 0..), Ok(memory @ 0..)) = (cpu.trim().parse(), memory.trim().parse())
    {
        return Some((cpu, memory));
    }
    // What cannot be read has been said with the request.
    let mut unheard = Report::namespaced("pod", meta);
    let unnamed = Amounts::default().with("cpu", DEFAULT_CPU).with("memory", DEFAULT_MEMORY);
    let sum = Reader { names, report: &mut unheard, unnamed: &unnamed, complete: true }.pod(spec);
    let of = |amounts: &Amounts, resource| amounts.get(resource).unwrap_or(0);
    let scored = (of(&sum, "cpu"), of(&sum, "memory"));
    let plain = |resource, least| Some(of(request, resource)).filter(|amount| *amount > 0).unwrap_or(least);
    (scored != (plain("cpu", DEFAULT_CPU), plain("memory", DEFAULT_MEMORY))).then_some(scored)
}

/// Whether an init container goes on running beside the others.
pub(crate) fn is_restartable(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

struct Reader<'a, 'b> {
    names: &'a mut NamePool,
    report: &'a mut Report<'b>,
    /// What a container counts as that does not name a resource.
    unnamed: &'a Amounts,
    complete: bool,
}

impl Reader<'_, '_> {
    fn pod(&mut self, spec: &PodSpec) -> Amounts {
        let mut sum = Amounts::default();
        for (i, container) in spec.containers.iter().enumerate() {
            sum.add(&self.container(container, "containers", i));
        }
        let mut sidecars = Amounts::default();
        let mut peak = Amounts::default();
        for (i, container) in spec.init_containers.iter().flatten().enumerate() {
            let mut own = self.container(container, "initContainers", i);
            if is_restartable(container) {
                sum.add(&own);
                sidecars.add(&own);
                peak.raise_to(&sidecars);
            } else {
                own.add(&sidecars);
                peak.raise_to(&own);
            }
        }
        sum.raise_to(&peak);
        if let Some(whole) = &spec.resources {
            self.pod_level(whole, &mut sum);
        }
        let overhead = self.list(spec.overhead.as_ref(), format_args!("spec.overhead"));
        sum.add(&overhead);
        sum
    }

    fn container(&mut self, container: &Container, list: &str, i: usize) -> Amounts {
        let Some(resources) = &container.resources else { return self.unnamed.clone() };
        let mut own = self.list(resources.requests.as_ref(), format_args!("spec.{list}[{i}].resources.requests"));
        let only_limited = only_limited(resources);
        own.add(&self.list(Some(&only_limited), format_args!("spec.{list}[{i}].resources.limits")));
        for (resource, amount) in self.unnamed.iter() {
            if own.get(resource).is_none() {
                own.set_amount(resource, amount);
            }
        }
        own
    }

    /// Pod-level requests stand in place of what was added up; pod-level limits only where nothing was.
    fn pod_level(&mut self, whole: &ResourceRequirements, sum: &mut Amounts) {
        let requests = self.list(whole.requests.as_ref(), format_args!("spec.resources.requests"));
        for (resource, amount) in requests.iter().filter(|(resource, _)| is_pod_level(resource)) {
            sum.set_amount(resource, amount);
        }
        let limits = self.list(Some(&only_limited(whole)), format_args!("spec.resources.limits"));
        for (resource, amount) in limits.iter().filter(|(resource, _)| is_pod_level(resource)) {
            if sum.get(resource).is_none() {
                sum.set_amount(resource, amount);
            }
        }
    }

    fn list(&mut self, list: Option<&ResourceList>, field: std::fmt::Arguments<'_>) -> Amounts {
        let (amounts, complete) = quantities::reported(list, field, LEFT_OUT, self.names, self.report);
        self.complete &= complete;
        amounts
    }
}

/// Limits of resources that are not in the requests.
fn only_limited(resources: &ResourceRequirements) -> ResourceList {
    let requested = |name: &String| resources.requests.as_ref().is_some_and(|requests| requests.contains_key(name));
    let limits = resources.limits.iter().flatten();
    limits.filter(|(name, _)| !requested(name)).map(|(name, amount)| (name.clone(), amount.clone())).collect()
}

/// Resources that may be asked for by a pod as a whole.
fn is_pod_level(resource: &str) -> bool {
    matches!(resource, "cpu" | "memory") || resource.starts_with("hugepages-")
}

/// The amounts that ask for something. Nothing and absent are the same to the model, and should be one shape.
fn without_zeros(amounts: &Amounts) -> Amounts {
    let mut kept = Amounts::default();
    for (resource, amount) in amounts.iter().filter(|(resource, amount)| *amount != 0 && *resource != "pods") {
        kept.set_amount(resource, amount);
    }
    kept
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(spec: Value) -> (Option<Amounts>, Vec<String>) {
        let meta = ObjectMeta { name: Some("p".into()), ..Default::default() };
        let mut report = Report::namespaced("pod", &meta);
        let spec = serde_json::from_value(spec).expect("a pod spec");
        let amounts = request(&spec, &mut NamePool::default(), &mut report);
        (amounts, report.into_problems().into_iter().map(|problem| problem.message).collect())
    }

    #[test]
    fn resource_scores_take_something_for_a_container_that_names_nothing() {
        let of = |spec: Value| {
            let meta = ObjectMeta { name: Some("p".into()), ..Default::default() };
            let spec = serde_json::from_value(spec).expect("a pod spec");
            let mut names = NamePool::default();
            let request = request(&spec, &mut names, &mut Report::namespaced("pod", &meta)).expect("amounts");
            scored_request(&spec, &meta, &request, &mut names)
        };
        const MIB: i64 = 1 << 20;
        let bare = json!({"name": "b"});
        let zero = json!({"name": "z", "resources": {"requests": {"cpu": "0", "memory": "0"}}});
        let full = json!({"name": "f", "resources": {"requests": {"cpu": "1", "memory": "1Mi"}}});
        for (name, spec, want) in [
            ("one that names nothing is the model's default", json!({"containers": [bare]}), None),
            ("one that names all is its request", json!({"containers": [full]}), None),
            ("each counts", json!({"containers": [bare, full, cpu("1")]}), Some((2_100, 401 * MIB))),
            ("naming 0 is naming it", json!({"containers": [zero]}), Some((0, 0))),
            (
                "init containers too",
                json!({"containers": [zero], "initContainers": [{"name": "s", "restartPolicy": "Always"}, bare]}),
                Some((200, 400 * MIB)),
            ),
        ] {
            assert_eq!(of(spec), want, "{name}");
        }
    }

    fn cpu(text: &str) -> Value {
        json!({"name": "c", "resources": {"requests": {"cpu": text}}})
    }

    fn sidecar(text: &str) -> Value {
        json!({"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": text}}})
    }

    #[test]
    fn requests_add_up_as_in_kubernetes() {
        let of = |cpu: i64| Amounts::default().with("cpu", cpu);
        for (name, spec, want) in [
            ("nothing", json!({"containers": [{"name": "c"}]}), Amounts::default()),
            ("containers add up", json!({"containers": [cpu("1"), cpu("500m")]}), of(1_500)),
            (
                "an init container counts if it needs more",
                json!({"containers": [cpu("1"), cpu("1")], "initContainers": [cpu("3"), cpu("1")]}),
                of(3_000),
            ),
            (
                "and not if it needs less",
                json!({"containers": [cpu("1"), cpu("1")], "initContainers": [cpu("1500m")]}),
                of(2_000),
            ),
            ("a sidecar runs beside", json!({"containers": [cpu("1")], "initContainers": [sidecar("1")]}), of(2_000)),
            (
                "an init container after a sidecar runs with it",
                json!({"containers": [cpu("1")], "initContainers": [sidecar("1"), cpu("3")]}),
                of(4_000),
            ),
            (
                "an init container before a sidecar runs without it",
                json!({"containers": [cpu("1")], "initContainers": [cpu("3"), sidecar("1")]}),
                of(3_000),
            ),
            (
                "overhead comes on top",
                json!({"containers": [cpu("1")], "initContainers": [cpu("3")], "overhead": {"cpu": "250m"}}),
                of(3_250),
            ),
            (
                "a resource named only in limits is asked for (A-104)",
                json!({"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 4}}}]}),
                Amounts::default().with("nvidia.com/gpu", 4_000),
            ),
            (
                "a limit above a request changes nothing",
                json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "4"}}}]}),
                of(1_000),
            ),
            (
                "a request of zero stays zero under a limit",
                json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": 0}, "limits": {"cpu": "4"}}}]}),
                Amounts::default(),
            ),
            (
                "pod-level requests stand in place of the sum, overhead on top",
                json!({"containers": [cpu("1")], "overhead": {"cpu": "1"}, "resources": {"requests": {"cpu": "3"}}}),
                of(4_000),
            ),
            (
                "a pod-level limit counts where nothing is asked for",
                json!({"containers": [cpu("1")], "resources": {"limits": {"cpu": "9", "memory": "1Gi"}}}),
                of(1_000).with("memory", 1 << 30),
            ),
            (
                "pod-level amounts are cpu, memory and huge pages only",
                json!({"containers": [cpu("1")], "resources": {"requests": {"nvidia.com/gpu": "3"}}}),
                of(1_000),
            ),
            (
                "numbers need no quotes",
                json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": 0.5, "memory": 1024}}}]}),
                of(500).with("memory", 1_024),
            ),
        ] {
            assert_eq!(read(spec), (Some(want), vec![]), "{name}");
        }
    }

    #[test]
    fn an_unreadable_amount_keeps_the_pod_out_and_is_named() {
        let (amounts, problems) =
            read(json!({"containers": [cpu("1"), cpu("two")], "initContainers": [sidecar("-1")]}));
        assert_eq!(amounts, None);
        assert_eq!(problems.len(), 2);
        assert!(
            problems[0].starts_with("spec.containers[1].resources.requests.cpu is `two`: no number"),
            "{problems:?}"
        );
        assert!(problems[0].ends_with("; the pod is left out"), "{problems:?}");
        assert!(problems[1].starts_with("spec.initContainers[0].resources.requests.cpu is `-1`: a negative"));
    }
}
