//! Labels and the selectors over them, compiled at the edge to shared names.

use serde::{Deserialize, Serialize};

use crate::name::Name;

/// Labels, sorted by key, each key once.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Labels(Vec<(Name, Name)>);

impl Labels {
    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&Name> {
        let at = self.0.binary_search_by(|(known, _)| known.as_str().cmp(key)).ok()?;
        Some(&self.0[at].1)
    }

    /// Sets the value of `key`.
    pub fn set(&mut self, key: Name, value: Name) {
        match self.0.binary_search_by(|(known, _)| known.cmp(&key)) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => self.0.insert(at, (key, value)),
        }
    }

    /// Keys and values, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, &Name)> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(Name, Name)> for Labels {
    fn from_iter<T: IntoIterator<Item = (Name, Name)>>(pairs: T) -> Self {
        let mut labels = Self::default();
        for (key, value) in pairs {
            labels.set(key, value);
        }
        labels
    }
}

/// One condition on one label key (or node field).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Requirement {
    /// The label key.
    pub key: Name,
    /// The condition on its value.
    pub test: Test,
}

/// The operators of Kubernetes' selectors, with their operands read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Test {
    /// Present, with one of these values.
    In(Vec<Name>),
    /// Absent, or with none of these values.
    NotIn(Vec<Name>),
    /// Present.
    Exists,
    /// Absent.
    DoesNotExist,
    /// Present, an integer, and greater.
    Gt(i64),
    /// Present, an integer, and smaller.
    Lt(i64),
}

impl Test {
    /// Whether a label with `value`, or without one, passes.
    pub fn passes(&self, value: Option<&str>) -> bool {
        let integer = || value.and_then(|text| text.parse::<i64>().ok());
        match self {
            Self::In(values) => value.is_some_and(|value| values.iter().any(|known| known == value)),
            Self::NotIn(values) => !value.is_some_and(|value| values.iter().any(|known| known == value)),
            Self::Exists => value.is_some(),
            Self::DoesNotExist => value.is_none(),
            Self::Gt(bound) => integer().is_some_and(|value| value > *bound),
            Self::Lt(bound) => integer().is_some_and(|value| value < *bound),
        }
    }
}

/// A label selector: every requirement must hold. An empty one matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Selector(pub Vec<Requirement>);

impl Selector {
    /// Whether `labels` satisfy every requirement.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.0.iter().all(|requirement| requirement.test.passes(labels.get(&requirement.key).map(Name::as_str)))
    }
}

/// One term of a node affinity: label conditions and field conditions, all of which must hold. The only field that
/// Kubernetes has is `metadata.name`. An empty term matches no node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeSelectorTerm {
    /// Conditions on the node's labels.
    pub labels: Vec<Requirement>,
    /// Conditions on the node's name.
    pub name: Vec<Test>,
}

impl NodeSelectorTerm {
    /// Whether a node of this name and these labels satisfies the term.
    pub fn matches(&self, name: &str, labels: &Labels) -> bool {
        if self.is_empty() {
            return false;
        }
        self.labels.iter().all(|r| r.test.passes(labels.get(&r.key).map(Name::as_str)))
            && self.name.iter().all(|test| test.passes(Some(name)))
    }

    /// Whether it has no condition at all.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.name.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_behave_as_in_kubernetes() {
        let one = |v: &str| vec![Name::from(v)];
        for (test, value, passes) in [
            (Test::In(one("a")), Some("a"), true),
            (Test::In(one("a")), Some("b"), false),
            (Test::In(one("a")), None, false),
            (Test::NotIn(one("a")), None, true),
            (Test::NotIn(one("a")), Some("a"), false),
            (Test::Exists, Some(""), true),
            (Test::Exists, None, false),
            (Test::DoesNotExist, None, true),
            (Test::Gt(5), Some("6"), true),
            (Test::Gt(5), Some("5"), false),
            (Test::Gt(5), Some("many"), false),
            (Test::Gt(5), None, false),
            (Test::Lt(5), Some("-1"), true),
        ] {
            assert_eq!(test.passes(value), passes, "{test:?} on {value:?}");
        }
    }

    #[test]
    fn an_empty_selector_matches_all_and_an_empty_term_nothing() {
        let labels = Labels::from_iter([("a".into(), "b".into())]);
        assert!(Selector::default().matches(&labels));
        assert!(!NodeSelectorTerm::default().matches("n", &labels));
    }
}
