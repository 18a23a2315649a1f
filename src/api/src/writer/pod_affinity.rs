//! Affinity between pods, and topology spread constraints.

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, OwnerReference};
use krafla_model::labels::Selector;
use krafla_model::pod_affinity::{PodTerm, PodTerms, SpreadConstraint, Workload};

use super::{label_requirement, list};

pub(super) fn affinity(terms: &PodTerms) -> Option<core::PodAffinity> {
    (!terms.is_empty()).then(|| core::PodAffinity {
        required_during_scheduling_ignored_during_execution: required(terms),
        preferred_during_scheduling_ignored_during_execution: preferred(terms),
    })
}

pub(super) fn anti_affinity(terms: &PodTerms) -> Option<core::PodAntiAffinity> {
    (!terms.is_empty()).then(|| core::PodAntiAffinity {
        required_during_scheduling_ignored_during_execution: required(terms),
        preferred_during_scheduling_ignored_during_execution: preferred(terms),
    })
}

fn required(terms: &PodTerms) -> Option<Vec<core::PodAffinityTerm>> {
    list(terms.required.iter().map(term).collect())
}

fn preferred(terms: &PodTerms) -> Option<Vec<core::WeightedPodAffinityTerm>> {
    let weighted = |(weight, one): &(i32, PodTerm)| core::WeightedPodAffinityTerm {
        weight: *weight,
        pod_affinity_term: term(one),
    };
    list(terms.preferred.iter().map(weighted).collect())
}

fn term(term: &PodTerm) -> core::PodAffinityTerm {
    core::PodAffinityTerm {
        topology_key: term.topology_key.to_string(),
        label_selector: term.selector.as_ref().map(selector),
        namespaces: list(term.namespaces.names.iter().map(ToString::to_string).collect()),
        namespace_selector: term.namespaces.selector.as_ref().map(selector),
        ..core::PodAffinityTerm::default()
    }
}

pub(super) fn spread(constraint: &SpreadConstraint) -> core::TopologySpreadConstraint {
    let count = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
    let policy = |honors: bool| Some(if honors { "Honor" } else { "Ignore" }.to_owned());
    core::TopologySpreadConstraint {
        max_skew: count(constraint.max_skew),
        topology_key: constraint.topology_key.to_string(),
        when_unsatisfiable: if constraint.must_hold { "DoNotSchedule" } else { "ScheduleAnyway" }.to_owned(),
        label_selector: constraint.selector.as_ref().map(selector),
        // The API server takes it only from constraints that must hold.
        min_domains: (constraint.min_domains > 1).then(|| count(constraint.min_domains)),
        node_affinity_policy: policy(constraint.honors_affinity),
        node_taints_policy: policy(constraint.honors_taints),
        match_label_keys: None,
    }
}

pub(super) fn owner(workload: &Workload) -> OwnerReference {
    let api_version = if workload.kind == "ReplicationController" { "v1" } else { "apps/v1" };
    OwnerReference {
        api_version: api_version.to_owned(),
        kind: workload.kind.to_string(),
        name: workload.name.to_string(),
        controller: Some(true),
        ..OwnerReference::default()
    }
}

fn selector(selector: &Selector) -> LabelSelector {
    LabelSelector { match_expressions: list(selector.0.iter().map(label_requirement).collect()), match_labels: None }
}
