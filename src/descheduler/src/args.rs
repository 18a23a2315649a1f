//! What strategies take in common: which pods they are about, and amounts in percent.

use std::collections::BTreeMap;

use krafla_framework::Value;
use krafla_framework::conf::plugin_args::PluginArgs;
use krafla_framework::conf::selectors::label_selector;
use krafla_model::labels::Selector;
use krafla_model::{ClusterState, Name, TaskId};

/// Which pods a strategy is about.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Choice {
    include: Vec<Name>,
    exclude: Vec<Name>,
    selector: Option<Selector>,
}

impl Choice {
    /// Reads `namespaces` and `labelSelector`.
    pub(crate) fn read(args: &mut PluginArgs<'_, '_>) -> Self {
        let (mut include, mut exclude) = (Vec::new(), Vec::new());
        if let Some(mut namespaces) = args.map("namespaces", &["include", "exclude"]) {
            include = names(&mut namespaces, "include");
            exclude = names(&mut namespaces, "exclude");
            if !include.is_empty() && !exclude.is_empty() {
                namespaces.problem("exclude", "both `include` and `exclude` are given; keep one of them");
            }
        }
        Self { include, exclude, selector: label_selector(args, "labelSelector") }
    }

    /// Whether a pod is one of them.
    pub(crate) fn takes(&self, cluster: &ClusterState, task: TaskId) -> bool {
        let shape = &cluster.shape_of(task).spec;
        self.takes_namespace(&shape.namespace)
            && self.selector.as_ref().is_none_or(|selector| selector.matches(&shape.labels))
    }

    /// Whether pods of a namespace are.
    pub(crate) fn takes_namespace(&self, namespace: &Name) -> bool {
        (self.include.is_empty() || self.include.contains(namespace)) && !self.exclude.contains(namespace)
    }
}

/// A list of names.
pub(crate) fn names(args: &mut PluginArgs<'_, '_>, key: &str) -> Vec<Name> {
    args.texts(key).into_iter().map(|(_, text)| text.into()).collect()
}

/// A whole number that need not be there.
pub(crate) fn optional(args: &mut PluginArgs<'_, '_>, key: &str, least: i64) -> Option<i64> {
    args.get(key)?;
    Some(args.integer(key, least..=i64::from(u32::MAX), least))
}

/// Percentages by resource, in millionths; from 0 to 100.
pub(crate) fn thresholds(args: &mut PluginArgs<'_, '_>, key: &str) -> BTreeMap<Name, i64> {
    let mut read = BTreeMap::new();
    match args.get(key) {
        None => {}
        Some(Value::Map(map)) => {
            for (resource, value) in map {
                match ppm(value) {
                    Some(ppm) => drop(read.insert(resource.as_str().into(), ppm)),
                    None => {
                        let message = format!("`{resource}` has to be a number from 0 to 100; write for example `20`");
                        args.problem(key, message);
                    }
                }
            }
        }
        Some(_) => args.problem(key, "it has to be a mapping of resources to percentages; write for example `cpu: 20`"),
    }
    read
}

/// Hundredths as millionths.
fn ppm(value: &Value) -> Option<i64> {
    match value {
        Value::Integer(percent @ 0..=100) => Some(percent * 10_000),
        #[allow(clippy::cast_possible_truncation, reason = "from 0 to a million")]
        Value::Number(percent) if (0.0..=100.0).contains(percent) => Some((percent * 10_000.0).round() as i64),
        _ => None,
    }
}
