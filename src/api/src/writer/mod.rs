//! The way back: values of the model, written as Kubernetes objects.
//!
//! The law: what a [`Converter`](crate::Converter) reads of a written object is the value that was written, in every
//! field. Whatever several objects say alike is written in one form: a pod's request stands at its first container,
//! selectors are expressions.
//!
//! Two things are findings of the reader rather than fields of an object. Why a queue's limits in node groups cannot be
//! read (`node_group_limits_error`) comes back as another text, since the one that could not be read is not kept; and
//! of a time, an API server keeps whole seconds.
//!
//! A written object may still lack what an API server insists upon and scheduling does not depend on, such as an image:
//! that is for whoever sends it.

mod budget;
mod group;
mod node;
mod pod;
mod pod_affinity;
mod policy;
mod queue;
#[cfg(test)]
mod tests;
mod volumes;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use k8s_openapi::jiff::Timestamp;
use krafla_model::budget::Share;
use krafla_model::labels::{Labels, Requirement, Test};
use krafla_model::resources::unit_of;
use krafla_model::{Amounts, Name, Time, quantity};

pub use budget::budget;
pub use group::pod_group;
pub use node::node;
pub use pod::pod;
pub use policy::{elastic_quota, priority_class, quota};
pub use queue::queue;

use crate::quantities::ResourceList;

/// A text that stands in an object only if there is something to say.
fn text(name: &Name) -> Option<String> {
    Some(name.to_string()).filter(|text| !text.is_empty())
}

/// A list that stands in an object only if something is in it.
fn list<T>(items: Vec<T>) -> Option<Vec<T>> {
    Some(items).filter(|items| !items.is_empty())
}

fn map(labels: &Labels) -> Option<BTreeMap<String, String>> {
    let map: BTreeMap<_, _> = labels.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    Some(map).filter(|map| !map.is_empty())
}

fn amounts(amounts: &Amounts) -> ResourceList {
    let written = |(name, amount): (&Name, i64)| (name.to_string(), Quantity(quantity::format(amount, unit_of(name))));
    amounts.iter().map(written).collect()
}

/// The same, missing if there is none.
fn some_amounts(given: &Amounts) -> Option<ResourceList> {
    Some(amounts(given)).filter(|list| !list.is_empty())
}

/// `3` or `30%`.
fn share(share: Share) -> String {
    match share {
        Share::Count(n) => n.to_string(),
        Share::Percent(percent) => format!("{percent}%"),
    }
}

/// None for times that a calendar does not have.
fn time(time: Time) -> Option<meta::Time> {
    Timestamp::from_millisecond(time.0).ok().map(meta::Time)
}

/// Annotations of which those without a value are left out.
fn annotations<const N: usize>(pairs: [(&str, Option<String>); N]) -> Option<BTreeMap<String, String>> {
    let given: BTreeMap<_, _> = pairs.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect();
    Some(given).filter(|given| !given.is_empty())
}

/// Operator and values of a condition.
fn condition(test: &Test) -> (&'static str, Option<Vec<String>>) {
    let values = |values: &[Name]| Some(values.iter().map(ToString::to_string).collect());
    match test {
        Test::In(all) => ("In", values(all)),
        Test::NotIn(all) => ("NotIn", values(all)),
        Test::Exists => ("Exists", None),
        Test::DoesNotExist => ("DoesNotExist", None),
        Test::Gt(bound) => ("Gt", Some(vec![bound.to_string()])),
        Test::Lt(bound) => ("Lt", Some(vec![bound.to_string()])),
    }
}

fn label_requirement(requirement: &Requirement) -> meta::LabelSelectorRequirement {
    let (operator, values) = condition(&requirement.test);
    meta::LabelSelectorRequirement { key: requirement.key.to_string(), operator: operator.to_owned(), values }
}
