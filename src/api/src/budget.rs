//! PodDisruptionBudgets.
//!
//! Decided here, for what cannot be read: a budget with a selector that cannot be read is left out, since whom it
//! protects would be a guess. A limit that cannot be read allows nothing, so that the budget protects more rather than
//! less.

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use krafla_model::budget::{Aim, BudgetSpec, Share};
use krafla_model::labels::Selector;
use krafla_model::{Name, Problem};

use crate::converter::Converter;
use crate::duration::shown;
use crate::keys;
use crate::report::Report;
use crate::selectors;

impl Converter {
    /// Reads a PodDisruptionBudget.
    ///
    /// A status that is older than the spec counts as none, as it does for the API server: nothing may be evicted until
    /// the disruption controller has counted anew.
    pub fn budget(&mut self, budget: &PodDisruptionBudget) -> (Option<BudgetSpec>, Vec<Problem>) {
        let mut report = Report::namespaced("poddisruptionbudget", &budget.metadata);
        let read = self.read_budget(budget, &mut report);
        (read, report.into_problems())
    }

    fn read_budget(&mut self, budget: &PodDisruptionBudget, report: &mut Report<'_>) -> Option<BudgetSpec> {
        let identity = self.identity(&budget.metadata, report)?;
        let spec = budget.spec.as_ref();
        let selector = match spec.and_then(|spec| spec.selector.as_ref()) {
            Some(selector) => Some(self.budget_selector(selector, report)?),
            None => {
                if self.first_time(format!("selector {}/{}", identity.namespace, identity.name)) {
                    report.say("has no selector, so it protects no pod; an empty one protects all of the namespace");
                }
                None
            }
        };
        let generation = budget.metadata.generation;
        let is_current = |observed: Option<i64>| observed.is_none_or(|seen| generation.is_none_or(|now| seen >= now));
        let status = budget.status.as_ref().filter(|status| is_current(status.observed_generation));
        let listed = status.and_then(|status| status.disrupted_pods.as_ref());
        Some(BudgetSpec {
            selector,
            aim: spec.and_then(|spec| aim(spec.min_available.as_ref(), spec.max_unavailable.as_ref(), report)),
            allowed: status.map(|status| status.disruptions_allowed.unwrap_or(0).try_into().unwrap_or(0)),
            // The map is sorted by name.
            disrupted: listed.into_iter().flatten().map(|(pod, _)| Name::from(pod)).collect(),
            namespace: identity.namespace,
            name: identity.name,
        })
    }

    fn budget_selector(&mut self, selector: &LabelSelector, report: &mut Report<'_>) -> Option<Selector> {
        let mut read = match selectors::selector(selector, &mut self.names) {
            Ok(read) => read,
            Err(why) => {
                report.say(format_args!("selector: {why}; the budget is left out"));
                return None;
            }
        };
        // Pods of one template are known by one set of labels, without those that differ between them.
        let is_kept = |key: &str| !keys::INDEX_LABELS.contains(&key);
        if let Some(lost) = read.0.iter().find(|one| !is_kept(&one.key)) {
            report.say(format_args!(
                "selects by `{}`, which differs between pods of one template and is not kept; the condition counts as met",
                lost.key
            ));
        }
        read.0.retain(|one| is_kept(&one.key));
        Some(read)
    }
}

fn aim(min: Option<&IntOrString>, max: Option<&IntOrString>, report: &mut Report<'_>) -> Option<Aim> {
    match (max, min) {
        (Some(max), min) => {
            if min.is_some() {
                report.say("has both minAvailable and maxUnavailable; maxUnavailable counts");
            }
            share("maxUnavailable", max, report).map(Aim::MaxUnavailable)
        }
        (None, Some(min)) => share("minAvailable", min, report).map(Aim::MinAvailable),
        (None, None) => {
            report.say("has neither minAvailable nor maxUnavailable; no pod of it may be evicted");
            None
        }
    }
}

/// A count or a percentage; `None`, and reported, if it is neither.
fn share(field: &str, value: &IntOrString, report: &mut Report<'_>) -> Option<Share> {
    let read = match value {
        IntOrString::Int(n) => u32::try_from(*n).ok().map(Share::Count),
        IntOrString::String(text) => {
            let percent = text.strip_suffix('%').and_then(|number| number.parse::<u32>().ok());
            percent.map(Share::Percent)
        }
    };
    if read.is_none() {
        let text = match value {
            IntOrString::Int(n) => n.to_string(),
            IntOrString::String(text) => text.clone(),
        };
        report.say(format_args!(
            "{field} is `{}`; write a number of pods or a percentage such as 50%; until then no pod of it may be evicted",
            shown(&text)
        ));
    }
    read
}

#[cfg(test)]
mod tests {
    use krafla_model::labels::Labels;
    use serde_json::{Value, json};

    use super::*;

    fn read(value: Value) -> (Option<BudgetSpec>, Vec<String>) {
        let mut whole = json!({"metadata": {"name": "b", "namespace": "ns"}});
        for (key, value) in value.as_object().expect("fields") {
            whole[key] = value.clone();
        }
        let (budget, problems) = Converter::new().budget(&serde_json::from_value(whole).expect("a budget"));
        (budget, problems.into_iter().map(|problem| problem.message).collect())
    }

    fn sound(value: Value) -> BudgetSpec {
        let (budget, problems) = read(value);
        assert_eq!(problems, [""; 0]);
        budget.expect("a budget")
    }

    #[test]
    fn a_budget_is_whom_it_protects_and_how_many_may_go() {
        let budget = sound(json!({
            "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "x"}}},
            "status": {
                "disruptionsAllowed": 3, "currentHealthy": 5, "desiredHealthy": 2, "expectedPods": 5,
                "disruptedPods": {"z": "1970-01-01T00:00:00Z", "a": "1970-01-01T00:00:00Z"},
            },
        }));
        assert_eq!((budget.namespace.as_str(), budget.name.as_str()), ("ns", "b"));
        assert_eq!((budget.allowed, budget.aim), (Some(3), Some(Aim::MinAvailable(Share::Count(2)))));
        assert_eq!(budget.disrupted, ["a", "z"]);
    }

    #[test]
    fn selectors_match_as_in_policy_v1() {
        let labels = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(key, value)| (Name::from(*key), Name::from(*value))).collect::<Labels>()
        };
        let expression = |operator: &str, values: &[&str]| {
            let mut one = json!({"key": "app", "operator": operator});
            if !values.is_empty() {
                one["values"] = json!(values);
            }
            json!({"matchExpressions": [one]})
        };
        for (selector, pod, matches) in [
            (json!({}), &[] as &[(&str, &str)], true), // an empty selector matches every pod
            (json!({}), &[("app", "x")], true),
            (json!({"matchLabels": {"app": "x"}}), &[("app", "x"), ("tier", "a")], true),
            (json!({"matchLabels": {"app": "x"}}), &[("app", "y")], false),
            (json!({"matchLabels": {"app": "x", "tier": "a"}}), &[("app", "x")], false),
            (json!({"matchLabels": {"app": "x"}}), &[], false),
            (expression("In", &["x", "y"]), &[("app", "y")], true),
            (expression("In", &["x"]), &[], false),
            (expression("NotIn", &["x"]), &[("app", "x")], false),
            (expression("NotIn", &["x"]), &[], true),
            (expression("Exists", &[]), &[("app", "")], true),
            (expression("Exists", &[]), &[], false),
            (expression("DoesNotExist", &[]), &[("app", "x")], false),
            (expression("DoesNotExist", &[]), &[], true),
        ] {
            let budget = sound(json!({"spec": {"maxUnavailable": 1, "selector": selector.clone()}}));
            assert_eq!(budget.selector.expect("one").matches(&labels(pod)), matches, "{selector} on {pod:?}");
        }
    }

    #[test]
    fn a_missing_selector_protects_nobody_and_an_unreadable_one_leaves_the_budget_out() {
        let (budget, problems) = read(json!({"spec": {"maxUnavailable": 1}}));
        assert!(budget.expect("a budget").selector.is_none());
        assert!(problems[0].contains("has no selector"), "{problems:?}");
        let bad = json!({"matchExpressions": [{"key": "app", "operator": "Gt", "values": ["1"]}]});
        let (budget, problems) = read(json!({"spec": {"maxUnavailable": 1, "selector": bad}}));
        assert!(budget.is_none() && problems[0].contains("the budget is left out"), "{problems:?}");
    }

    #[test]
    fn labels_of_single_pods_are_not_kept_and_the_condition_counts_as_met() {
        let by_index = json!({"matchLabels": {"statefulset.kubernetes.io/pod-name": "db-0", "app": "db"}});
        let (budget, problems) = read(json!({"spec": {"maxUnavailable": 1, "selector": by_index}}));
        assert_eq!(budget.and_then(|budget| budget.selector).map(|selector| selector.0.len()), Some(1));
        assert!(problems[0].contains("is not kept"), "{problems:?}");
    }

    #[test]
    fn limits_are_counts_or_percentages() {
        use Aim::{MaxUnavailable as Max, MinAvailable as Min};
        use Share::{Count, Percent};
        for (spec, want, complaint) in [
            (json!({"minAvailable": 2}), Some(Min(Count(2))), ""),
            (json!({"minAvailable": "50%"}), Some(Min(Percent(50))), ""),
            (json!({"maxUnavailable": 0}), Some(Max(Count(0))), ""),
            (json!({"maxUnavailable": "30%"}), Some(Max(Percent(30))), ""),
            (json!({"maxUnavailable": -1}), None, "maxUnavailable is `-1`"),
            (json!({"minAvailable": "2"}), None, "minAvailable is `2`"),
            (json!({"minAvailable": "%"}), None, "minAvailable is `%`"),
            (json!({"minAvailable": 1, "maxUnavailable": 2}), Some(Max(Count(2))), "has both"),
            (json!({}), None, "has neither"),
        ] {
            let mut with_selector = spec.clone();
            with_selector["selector"] = json!({});
            let (budget, problems) = read(json!({"spec": with_selector}));
            assert_eq!(budget.expect("a budget").aim, want, "{spec}");
            assert_eq!(problems.is_empty(), complaint.is_empty(), "{problems:?}");
            assert!(problems.iter().all(|problem| problem.contains(complaint)), "{problems:?}");
        }
    }

    #[test]
    fn a_status_counts_if_it_is_of_this_spec() {
        let status = |observed: Value, allowed: i32| {
            let mut status = json!({
                "disruptionsAllowed": allowed, "currentHealthy": 5, "desiredHealthy": 2, "expectedPods": 5,
            });
            if !observed.is_null() {
                status["observedGeneration"] = observed;
            }
            sound(json!({
                "metadata": {"name": "b", "generation": 3},
                "spec": {"minAvailable": 2, "selector": {}}, "status": status,
            }))
            .allowed
        };
        assert_eq!(status(json!(3), 1), Some(1));
        assert_eq!(status(json!(2), 1), None);
        assert_eq!(status(Value::Null, 1), Some(1));
        assert_eq!(status(json!(3), -2), Some(0));
        assert_eq!(sound(json!({"spec": {"minAvailable": 2, "selector": {}}})).allowed, None);
    }
}
