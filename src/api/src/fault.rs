//! From untyped to typed values, with the field that does not fit named by its path.
//!
//! serde says what does not fit but not where. The path is found afterwards, and only then, by taking parts away until
//! the complaint changes.

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::Value;

/// One step into a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// To the value of a key.
    Key(String),
    /// To an item of a list.
    Item(usize),
}

/// Why a value is not of its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Where in the value.
    pub(crate) path: Vec<Step>,
    /// What does not fit.
    pub(crate) message: String,
}

impl Fault {
    /// A fault of the value as a whole.
    pub(crate) fn whole(message: impl Into<String>) -> Self {
        Self { path: Vec::new(), message: message.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.path.iter().enumerate() {
            match step {
                Step::Item(at) => write!(f, "[{at}]")?,
                Step::Key(key) if key.contains(['.', ' ', '[']) => write!(f, "[{key:?}]")?,
                Step::Key(key) if i == 0 => f.write_str(key)?,
                Step::Key(key) => write!(f, ".{key}")?,
            }
        }
        if !self.path.is_empty() {
            f.write_str(": ")?;
        }
        f.write_str(&self.message)
    }
}

/// Reads as a switch the text at the fault, if a switch is wanted there and the text is one of YAML 1.1's: `yes`, `off`.
/// Says whether it did.
pub(crate) fn mend_switch(value: &mut Value, fault: &Fault) -> bool {
    if !fault.message.ends_with("expected a boolean") {
        return false;
    }
    let Some(part) = at_mut(value, &fault.path) else { return false };
    let switch = match part.as_str().map(str::to_ascii_lowercase).as_deref() {
        Some("y" | "yes" | "on") => true,
        Some("n" | "no" | "off") => false,
        _ => return false,
    };
    *part = Value::Bool(switch);
    true
}

/// The largest value, in scalars, in which a fault's path is looked for. The search reads the value once for each part on
/// the way.
const LARGEST_SEARCHED: usize = 2_000;

/// Reads a value as a `T`.
pub(crate) fn typed<T: DeserializeOwned>(value: &Value) -> Result<Box<T>, Fault> {
    match T::deserialize(value) {
        Ok(read) => Ok(Box::new(read)),
        Err(error) => {
            let message = error.to_string();
            let path = if n_scalars(value) <= LARGEST_SEARCHED { culprit::<T>(value, &message) } else { Vec::new() };
            Err(Fault { path, message })
        }
    }
}

/// The innermost part without which the complaint is another one, or none.
fn culprit<T: DeserializeOwned>(value: &Value, message: &str) -> Vec<Step> {
    let complaint = |value: &Value| T::deserialize(value).err().map(|error| error.to_string());
    let mut path = Vec::new();
    loop {
        let steps: Vec<Step> = match at(value, &path) {
            Some(Value::Object(map)) => map.keys().cloned().map(Step::Key).collect(),
            Some(Value::Array(list)) => (0..list.len()).map(Step::Item).collect(),
            _ => return path,
        };
        let guilty = steps.into_iter().find(|step| {
            let mut trial = value.clone();
            match (at_mut(&mut trial, &path), step) {
                (Some(Value::Object(map)), Step::Key(key)) => {
                    map.remove(key);
                }
                (Some(Value::Array(list)), Step::Item(i)) => {
                    list.remove(*i);
                }
                _ => return false,
            }
            complaint(&trial).as_deref() != Some(message)
        });
        match guilty {
            Some(step) => path.push(step),
            None => return path,
        }
    }
}

fn at<'a>(value: &'a Value, path: &[Step]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.get(key),
        Step::Item(i) => value.get(i),
    })
}

fn at_mut<'a>(value: &'a mut Value, path: &[Step]) -> Option<&'a mut Value> {
    path.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.get_mut(key),
        Step::Item(i) => value.get_mut(i),
    })
}

fn n_scalars(value: &Value) -> usize {
    match value {
        Value::Object(map) => map.values().map(n_scalars).sum(),
        Value::Array(list) => list.iter().map(n_scalars).sum(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_field_that_does_not_fit_is_named() {
        for (pod, text) in [
            (
                json!({"spec": {"containers": [{"name": "a"}, {"name": "b", "ports": [{"containerPort": "http"}]}]}}),
                "spec.containers[1].ports[0].containerPort: invalid type: string \"http\", expected i32",
            ),
            (
                json!({"metadata": {"labels": {"a.b/c": 1}}}),
                "metadata.labels[\"a.b/c\"]: invalid type: integer `1`, expected a string",
            ),
            (json!({"spec": []}), "spec: invalid type: sequence, expected PodSpec"),
            (json!([1]), "invalid type: sequence, expected Pod"),
        ] {
            assert_eq!(typed::<Pod>(&pod).expect_err(text).to_string(), text);
        }
    }
}
