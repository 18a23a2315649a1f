//! PodDisruptionBudgets.

use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{self as meta, LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use krafla_model::budget::{Aim, BudgetSpec, Share};
use krafla_model::{Name, Time};

use super::{label_requirement, list, text, time};

/// Writes a PodDisruptionBudget with its status, if it has one. What counts healthy pods in it is left at 0: only the
/// disruption controller reads that.
pub fn budget(budget: &BudgetSpec) -> PodDisruptionBudget {
    let (min_available, max_unavailable) = match budget.aim {
        Some(Aim::MinAvailable(share)) => (Some(written(share)), None),
        Some(Aim::MaxUnavailable(share)) => (None, Some(written(share))),
        None => (None, None),
    };
    let selector = budget.selector.as_ref().map(|selector| LabelSelector {
        match_expressions: list(selector.0.iter().map(label_requirement).collect()),
        match_labels: None,
    });
    PodDisruptionBudget {
        metadata: ObjectMeta { name: text(&budget.name), namespace: text(&budget.namespace), ..ObjectMeta::default() },
        spec: Some(PodDisruptionBudgetSpec {
            min_available,
            max_unavailable,
            selector,
            ..PodDisruptionBudgetSpec::default()
        }),
        status: budget.allowed.map(|allowed| PodDisruptionBudgetStatus {
            disruptions_allowed: Some(allowed.try_into().unwrap_or(i32::MAX)),
            disrupted_pods: Some(budget.disrupted.iter().filter_map(disrupted).collect()),
            ..PodDisruptionBudgetStatus::default()
        }),
    }
}

/// An entry of the list. When the disruption began is not kept.
fn disrupted(pod: &Name) -> Option<(String, meta::Time)> {
    Some((pod.to_string(), time(Time(0))?))
}

fn written(share: Share) -> IntOrString {
    match share {
        Share::Count(n) => IntOrString::Int(i32::try_from(n).unwrap_or(i32::MAX)),
        Share::Percent(percent) => IntOrString::String(format!("{percent}%")),
    }
}
