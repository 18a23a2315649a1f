//! What do Kubernetes objects in the file come to, and how are some written?

use krafla_api::Hints;
use krafla_model::Time;
use serde_json::{Value, json};

use super::super::deed::Deed;
use super::{Both, Builder};
use crate::manifest;

pub(super) const VOLCANO: &str = "scheduling.volcano.sh/v1beta1";

impl Builder {
    pub(super) fn manifests(&mut self, manifests: &[Value]) -> Both {
        let assembled = manifest::assemble(manifests, &mut self.converter);
        self.notes.extend(assembled.problems);
        let objects = manifests.iter().flat_map(|manifest| match manifest.get("items").and_then(Value::as_array) {
            Some(items) => items.clone(),
            None => vec![manifest.clone()],
        });
        Both { happenings: assembled.happenings, deeds: objects.map(|object| self.put(object)).collect() }
    }

    /// An object of the file, at the time that it gives itself. A pod has the grace period of the scenario.
    fn put(&self, mut object: Value) -> (Time, Deed) {
        let meta = serde_json::from_value(object.get("metadata").cloned().unwrap_or_default()).unwrap_or_default();
        let at = Hints::read(&meta).0.submit_at_ms.unwrap_or(0);
        if object["kind"] == "Pod"
            && let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
        {
            spec.entry("terminationGracePeriodSeconds").or_insert_with(|| json!(whole_seconds(self.evict_grace_ms)));
        }
        (Time(at), Deed::Put(object))
    }
}

/// As an API server counts grace periods; a part of one counts as a whole one.
pub(super) fn whole_seconds(ms: i64) -> i64 {
    (ms.max(0) + 999) / 1_000
}

pub(super) fn manifest_of(object: &impl serde::Serialize) -> Result<Value, String> {
    serde_json::to_value(object).map_err(|why| why.to_string())
}

pub(super) fn set(object: &mut Value, key: &str, value: Option<Value>) {
    if let Some(value) = value {
        object[key] = value;
    }
}

pub(super) fn one_of(problems: &[krafla_model::Problem]) -> String {
    problems.first().map_or_else(|| "cannot be read".to_owned(), |problem| problem.message.clone())
}

/// Whether a manifest is an object of a kind, with a name.
pub(super) fn readable(manifest: &Value) -> Result<(), String> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    let named = text(manifest.get("metadata").and_then(|metadata| metadata.get("name")));
    let is_list = manifest.get("items").is_some();
    match (text(manifest.get("apiVersion")), text(manifest.get("kind")), named || is_list) {
        (true, true, true) => Ok(()),
        (false, ..) => Err("an object needs its `apiVersion`".to_owned()),
        (_, false, _) => Err("an object needs its `kind`".to_owned()),
        _ => Err("an object needs its `metadata.name`".to_owned()),
    }
}
