//! Affinity between pods and topology spread constraints.
//!
//! What cannot be read and must hold keeps the pod out; what only ranks nodes is left out of the pod.

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use krafla_model::labels::{Requirement, Selector, Test};
use krafla_model::name::NamePool;
use krafla_model::pod_affinity::{Namespaces, PodTerm, PodTerms, SpreadConstraint, Workload};

use crate::duration::shown;
use crate::pod::controller_of;
use crate::report::{Report, namespace_of};
use crate::selectors;

/// Kinds of controllers that default spread constraints look at.
const SPREAD_KINDS: [&str; 3] = ["ReplicaSet", "ReplicationController", "StatefulSet"];

/// What a pod says about other pods.
#[derive(Default)]
pub(crate) struct Neighbours {
    pub(crate) affinity: PodTerms,
    pub(crate) anti_affinity: PodTerms,
    pub(crate) spread: Vec<SpreadConstraint>,
    pub(crate) workload: Option<Workload>,
}

/// Reads it. `None` if something that must hold cannot be read.
pub(crate) fn neighbours(
    spec: &core::PodSpec,
    meta: &ObjectMeta,
    names: &mut NamePool,
    report: &mut Report<'_>,
) -> Option<Neighbours> {
    let mut reader = Reader { meta, names, report, sound: true };
    let affinity = spec.affinity.as_ref();
    let (mut towards, mut away) = (PodTerms::default(), PodTerms::default());
    if let Some(terms) = affinity.and_then(|affinity| affinity.pod_affinity.as_ref()) {
        let required = terms.required_during_scheduling_ignored_during_execution.iter().flatten();
        let preferred = terms.preferred_during_scheduling_ignored_during_execution.iter().flatten();
        towards = reader.terms("pod affinity", required, preferred);
    }
    if let Some(terms) = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref()) {
        let required = terms.required_during_scheduling_ignored_during_execution.iter().flatten();
        let preferred = terms.preferred_during_scheduling_ignored_during_execution.iter().flatten();
        away = reader.terms("pod anti-affinity", required, preferred);
    }
    let spread = reader.spread(spec.topology_spread_constraints.iter().flatten());
    let sound = reader.sound;
    let workload = controller_of(meta).filter(|owner| spread.is_empty() && SPREAD_KINDS.contains(&&*owner.kind));
    let workload = workload.map(|owner| Workload { kind: names.intern(&owner.kind), name: names.intern(&owner.name) });
    sound.then_some(Neighbours { affinity: towards, anti_affinity: away, spread, workload })
}

struct Reader<'a, 'r> {
    meta: &'a ObjectMeta,
    names: &'a mut NamePool,
    report: &'a mut Report<'r>,
    /// Whether all that must hold could be read.
    sound: bool,
}

impl Reader<'_, '_> {
    fn terms<'t>(
        &mut self,
        what: &str,
        required: impl Iterator<Item = &'t core::PodAffinityTerm>,
        preferred: impl Iterator<Item = &'t core::WeightedPodAffinityTerm>,
    ) -> PodTerms {
        let mut read = PodTerms::default();
        for (i, term) in required.enumerate() {
            match self.term(term) {
                Ok(term) => read.required.push(term),
                Err(why) => {
                    self.report.say(format_args!("required {what}, term {i}: {why}; the pod is left out"));
                    self.sound = false;
                }
            }
        }
        for (i, term) in preferred.enumerate() {
            let weight = term.weight;
            match self.term(&term.pod_affinity_term) {
                _ if !(1..=100).contains(&weight) => self.report.say(format_args!(
                    "preferred {what}, term {i}: weight {weight} is not in 1 to 100; the term is ignored"
                )),
                Ok(term) => read.preferred.push((weight, term)),
                Err(why) => self.report.say(format_args!("preferred {what}, term {i}: {why}; the term is ignored")),
            }
        }
        read
    }

    fn term(&mut self, term: &core::PodAffinityTerm) -> Result<PodTerm, String> {
        if term.topology_key.is_empty() {
            return Err("it has no topologyKey".to_owned());
        }
        let mut selector = self.selector(term.label_selector.as_ref())?;
        // An API server has put these into the selector when the pod was made; its labels may be others by now.
        if let Some(selector) = &mut selector
            && self.meta.resource_version.is_none()
        {
            self.own_values(selector, term.match_label_keys.iter().flatten(), Test::In);
            self.own_values(selector, term.mismatch_label_keys.iter().flatten(), Test::NotIn);
        }
        let mut listed: Vec<_> = term.namespaces.iter().flatten().map(|name| self.names.intern(name)).collect();
        let by_label = term.namespace_selector.as_ref().map(|one| selectors::selector(one, self.names)).transpose()?;
        if listed.is_empty() && by_label.is_none() {
            listed.push(self.names.intern(namespace_of(self.meta)));
        }
        listed.sort_unstable();
        listed.dedup();
        Ok(PodTerm {
            topology_key: self.names.intern(&term.topology_key),
            selector,
            namespaces: Namespaces { names: listed, selector: by_label },
        })
    }

    fn spread<'t>(
        &mut self,
        constraints: impl Iterator<Item = &'t core::TopologySpreadConstraint>,
    ) -> Vec<SpreadConstraint> {
        let mut read = Vec::new();
        for (i, constraint) in constraints.enumerate() {
            let must_hold = constraint.when_unsatisfiable != "ScheduleAnyway";
            match self.constraint(constraint, must_hold) {
                Ok(constraint) => read.push(constraint),
                Err(why) if must_hold => {
                    self.report.say(format_args!("topology spread constraint {i}: {why}; the pod is left out"));
                    self.sound = false;
                }
                Err(why) => {
                    self.report.say(format_args!("topology spread constraint {i}: {why}; it is ignored"));
                }
            }
        }
        read
    }

    fn constraint(
        &mut self,
        constraint: &core::TopologySpreadConstraint,
        must_hold: bool,
    ) -> Result<SpreadConstraint, String> {
        let honors = |policy: &Option<String>, usual: bool, field: &str| match policy.as_deref() {
            None => Ok(usual),
            Some("Honor") => Ok(true),
            Some("Ignore") => Ok(false),
            Some(other) => Err(format!("{field} is `{}`; it is Honor or Ignore", shown(other))),
        };
        let positive = |value: i32, field: &str| match u32::try_from(value) {
            Ok(value @ 1..) => Ok(value),
            _ => Err(format!("{field} is {value}; it is at least 1")),
        };
        if !matches!(&*constraint.when_unsatisfiable, "DoNotSchedule" | "ScheduleAnyway") {
            let found = shown(&constraint.when_unsatisfiable);
            return Err(format!("whenUnsatisfiable is `{found}`; it is DoNotSchedule or ScheduleAnyway"));
        }
        if constraint.topology_key.is_empty() {
            return Err("it has no topologyKey".to_owned());
        }
        let mut selector = self.selector(constraint.label_selector.as_ref())?;
        if let Some(selector) = &mut selector {
            self.own_values(selector, constraint.match_label_keys.iter().flatten(), Test::In);
        }
        Ok(SpreadConstraint {
            max_skew: positive(constraint.max_skew, "maxSkew")?,
            topology_key: self.names.intern(&constraint.topology_key),
            must_hold,
            selector,
            min_domains: positive(constraint.min_domains.unwrap_or(1), "minDomains")?,
            honors_affinity: honors(&constraint.node_affinity_policy, true, "nodeAffinityPolicy")?,
            honors_taints: honors(&constraint.node_taints_policy, false, "nodeTaintsPolicy")?,
        })
    }

    fn selector(&mut self, selector: Option<&LabelSelector>) -> Result<Option<Selector>, String> {
        selector.map(|selector| selectors::selector(selector, self.names)).transpose()
    }

    /// Adds the pod's own values of `keys`; keys that it lacks are left out.
    fn own_values<'k>(
        &mut self,
        selector: &mut Selector,
        keys: impl Iterator<Item = &'k String>,
        test: fn(Vec<krafla_model::Name>) -> Test,
    ) {
        for key in keys {
            if let Some(value) = self.meta.labels.as_ref().and_then(|labels| labels.get(key)) {
                let requirement =
                    Requirement { key: self.names.intern(key), test: test(vec![self.names.intern(value)]) };
                if !selector.0.contains(&requirement) {
                    selector.0.push(requirement);
                }
            }
        }
    }
}
