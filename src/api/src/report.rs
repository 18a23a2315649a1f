//! Collecting what is wrong with one object, and naming that object.

use std::fmt::Display;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use krafla_model::Problem;

/// The namespace of objects that name none, as `kubectl apply` fills it in.
pub const DEFAULT_NAMESPACE: &str = "default";

/// What is wrong with one object. The object's name is only written out when there is something to say.
pub(crate) struct Report<'a> {
    kind: &'static str,
    namespaced: bool,
    meta: &'a ObjectMeta,
    problems: Vec<Problem>,
}

impl<'a> Report<'a> {
    /// A report about an object that has a namespace.
    pub(crate) fn namespaced(kind: &'static str, meta: &'a ObjectMeta) -> Self {
        Self { kind, namespaced: true, meta, problems: Vec::new() }
    }

    /// A report about an object of the whole cluster.
    pub(crate) fn cluster_wide(kind: &'static str, meta: &'a ObjectMeta) -> Self {
        Self { kind, namespaced: false, meta, problems: Vec::new() }
    }

    /// Adds one thing.
    pub(crate) fn say(&mut self, message: impl Display) {
        let name = self.meta.name.as_deref().unwrap_or("(without a name)");
        let object = match self.namespaced {
            true => format!("{} {}/{name}", self.kind, namespace_of(self.meta)),
            false => format!("{} {name}", self.kind),
        };
        self.problems.push(Problem { object, message: message.to_string() });
    }

    /// What has been said.
    pub(crate) fn into_problems(self) -> Vec<Problem> {
        self.problems
    }
}

/// The namespace of an object that has one.
pub(crate) fn namespace_of(meta: &ObjectMeta) -> &str {
    meta.namespace.as_deref().filter(|text| !text.is_empty()).unwrap_or(DEFAULT_NAMESPACE)
}

/// The value of an annotation.
pub(crate) fn annotation<'a>(meta: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    meta.annotations.as_ref()?.get(key).map(String::as_str)
}

/// The value of a label.
pub(crate) fn label<'a>(meta: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    meta.labels.as_ref()?.get(key).map(String::as_str)
}

/// The value of an annotation, or else of a label of the same key.
pub(crate) fn annotation_or_label<'a>(meta: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    annotation(meta, key).or_else(|| label(meta, key))
}

/// A switch as Go's `ParseBool` reads it.
pub(crate) fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// `volcano.sh/preemptable`, annotation before label. What cannot be read is no, as in Volcano, and reported.
pub(crate) fn preemptable(meta: &ObjectMeta, report: &mut Report<'_>) -> Option<bool> {
    let text = annotation_or_label(meta, crate::keys::PREEMPTABLE)?;
    Some(parse_bool(text).unwrap_or_else(|| {
        report.say(format_args!(
            "{} is `{}`, which is neither true nor false; it counts as false",
            crate::keys::PREEMPTABLE,
            crate::duration::shown(text)
        ));
        false
    }))
}
