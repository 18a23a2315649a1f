//! What annotations tell the simulator about an object: when it comes and how long its pods run.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::duration::parse_duration;
use crate::keys;
use crate::report::annotation;

/// What an object says about its life in a simulation. All in milliseconds; none where it says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// `krafla.io/runtime`: how long each pod runs.
    pub runtime_ms: Option<i64>,
    /// `krafla.io/estimate`: how long its user expects each pod to run.
    pub estimate_ms: Option<i64>,
    /// `krafla.io/submit-at`: when the object is submitted, from the start.
    pub submit_at_ms: Option<i64>,
}

impl Hints {
    /// Reads the hints of an object. What cannot be read is missing, and said.
    pub fn read(meta: &ObjectMeta) -> (Self, Vec<String>) {
        let mut problems = Vec::new();
        let mut read = |key: &str| match parse_duration(annotation(meta, key)?) {
            Ok(ms) => Some(ms),
            Err(why) => {
                problems.push(format!("{key}: {why}; it is ignored"));
                None
            }
        };
        let hints = Self {
            runtime_ms: read(keys::RUNTIME),
            estimate_ms: read(keys::ESTIMATE),
            submit_at_ms: read(keys::SUBMIT_AT),
        };
        (hints, problems)
    }

    /// These hints, with those of `other` where they say nothing: a pod's before its owner's.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            runtime_ms: self.runtime_ms.or(other.runtime_ms),
            estimate_ms: self.estimate_ms.or(other.estimate_ms),
            submit_at_ms: self.submit_at_ms.or(other.submit_at_ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_read_and_what_cannot_be_is_said() {
        let meta = |pairs: &[(&str, &str)]| ObjectMeta {
            annotations: Some(pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()),
            ..ObjectMeta::default()
        };
        let (own, problems) = Hints::read(&meta(&[(keys::RUNTIME, "90s"), (keys::SUBMIT_AT, "soon")]));
        assert_eq!((own.runtime_ms, own.submit_at_ms), (Some(90_000), None));
        assert!(problems[0].starts_with("krafla.io/submit-at: `soon` is not a duration"), "{problems:?}");
        let (owners, _) = Hints::read(&meta(&[(keys::RUNTIME, "1h"), (keys::ESTIMATE, "1m")]));
        let both = own.or(owners);
        assert_eq!((both.runtime_ms, both.estimate_ms), (Some(90_000), Some(60_000)));
    }
}
