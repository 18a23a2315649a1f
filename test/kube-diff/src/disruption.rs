//! How bad a preemption is, by Kubernetes' criteria in their order, reckoned from the objects alone.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;

use crate::world::label;

/// A disruption; the smaller is better.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Disruption {
    violations: usize,
    highest: i32,
    sum: i64,
    victims: usize,
    earliest_start: Reverse<i64>,
}

/// That of evicting `victims`, who are among the pods of one node, for a pod of this priority.
pub(crate) fn disruption(
    on_node: &[&Pod],
    victims: &[String],
    budgets: &[PodDisruptionBudget],
    priority: i32,
) -> Disruption {
    let mut lower: Vec<&Pod> = on_node.iter().copied().filter(|pod| priority_of(pod) < priority).collect();
    lower.sort_by_key(|pod| (Reverse(priority_of(pod)), start_of(pod)));
    let violating = violating(&lower, budgets);
    let gone: Vec<&Pod> = lower.into_iter().filter(|pod| victims.contains(&label(pod))).collect();
    let highest = gone.iter().map(|pod| priority_of(pod)).max().unwrap_or(i32::MIN);
    let at_the_top = gone.iter().filter(|pod| priority_of(pod) == highest);
    Disruption {
        violations: gone.iter().filter(|pod| violating.contains(&label(pod))).count(),
        highest,
        sum: gone.iter().map(|pod| i64::from(priority_of(pod)) + (1 << 31)).sum(),
        victims: gone.len(),
        earliest_start: Reverse(at_the_top.map(|pod| start_of(pod)).min().unwrap_or(i64::MAX)),
    }
}

/// Pods, of these in their order of importance, whose eviction would break a budget once those before them are gone.
fn violating(pods: &[&Pod], budgets: &[PodDisruptionBudget]) -> Vec<String> {
    let mut left: BTreeMap<&str, i32> = BTreeMap::new();
    let mut violating = Vec::new();
    for pod in pods {
        let mut violates = false;
        for budget in budgets.iter().filter(|budget| protects(budget, pod)) {
            let name = budget.metadata.name.as_deref().unwrap_or_default();
            let allowed = budget.status.as_ref().and_then(|status| status.disruptions_allowed).unwrap_or(0);
            let left = left.entry(name).or_insert(allowed);
            *left -= 1;
            violates |= *left < 0;
        }
        if violates {
            violating.push(label(pod));
        }
    }
    violating
}

/// Whether a budget, which here selects by equal labels alone, means a pod.
fn protects(budget: &PodDisruptionBudget, pod: &Pod) -> bool {
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    let wanted = selector.and_then(|selector| selector.match_labels.as_ref());
    let labels = pod.metadata.labels.as_ref();
    budget.metadata.namespace == pod.metadata.namespace
        && labels.is_some_and(|labels| {
            wanted.is_some_and(|wanted| wanted.iter().all(|(key, value)| labels.get(key) == Some(value)))
        })
}

pub(crate) fn priority_of(pod: &Pod) -> i32 {
    pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or(0)
}

fn start_of(pod: &Pod) -> i64 {
    let start = pod.status.as_ref().and_then(|status| status.start_time.as_ref());
    start.map_or(i64::MAX, |time| time.0.as_millisecond())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_criteria_in_their_order() {
        let pod = |name: &str, priority: i32, start: &str| -> Pod {
            serde_json::from_value(json!({
                "metadata": { "name": name, "namespace": "x", "labels": { "app": "web" } },
                "spec": { "priority": priority, "containers": [] },
                "status": { "startTime": start },
            }))
            .expect("a pod")
        };
        let pods = [
            pod("a", 5, "2026-01-01T00:00:01Z"),
            pod("b", 5, "2026-01-01T00:00:02Z"),
            pod("c", 1, "2026-01-01T00:00:03Z"),
        ];
        let pods: Vec<&Pod> = pods.iter().collect();
        let of = |names: &[&str], budgets: &[PodDisruptionBudget]| {
            let victims: Vec<String> = names.iter().map(|name| format!("x/{name}")).collect();
            disruption(&pods, &victims, budgets, 10)
        };
        assert!(of(&["c"], &[]) < of(&["a"], &[]), "a lower priority");
        assert!(of(&["a"], &[]) < of(&["a", "c"], &[]), "fewer");
        assert!(of(&["b"], &[]) < of(&["a"], &[]), "who started later");
        let budget: PodDisruptionBudget = serde_json::from_value(json!({
            "metadata": { "name": "web", "namespace": "x" },
            "spec": { "selector": { "matchLabels": { "app": "web" } } },
            "status": { "disruptionsAllowed": 2, "currentHealthy": 3, "desiredHealthy": 1, "expectedPods": 3 },
        }))
        .expect("a budget");
        // The two most important have used the budget up.
        assert!(of(&["a", "b"], std::slice::from_ref(&budget)) < of(&["c"], &[budget]));
    }
}
