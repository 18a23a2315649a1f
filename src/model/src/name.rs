//! A shared, immutable string: names, namespaces, labels, UIDs.
//!
//! Cloning copies a pointer, comparing two clones of one name compares pointers first. Correctness never depends on
//! that sharing: two equal names from different sources are equal.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A shared string. Ordered and hashed by content.
#[derive(Clone, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Name(Arc<str>);

impl Name {
    /// The text itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl std::hash::Hash for Name {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        &*self.0 == other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        &*self.0 == *other
    }
}

impl Default for Name {
    fn default() -> Self {
        Self(Arc::from(""))
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self(Arc::from(text))
    }
}

impl From<String> for Name {
    fn from(text: String) -> Self {
        Self(Arc::from(text))
    }
}

impl From<&String> for Name {
    fn from(text: &String) -> Self {
        Self(Arc::from(text.as_str()))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// Hands out one shared [`Name`] for each distinct text, so that a thousand pods of one template hold one copy.
#[derive(Debug, Default)]
pub struct NamePool {
    names: BTreeSet<Name>,
    /// Size at which unused names are dropped next.
    sweep_at: usize,
}

impl NamePool {
    /// The pool's copy of `text`. Cost: logarithmic in the pool, plus an occasional sweep that is linear in it.
    pub fn intern(&mut self, text: &str) -> Name {
        if let Some(name) = self.names.get(text) {
            return name.clone();
        }
        if self.names.len() >= self.sweep_at.max(1024) {
            self.names.retain(|name| Arc::strong_count(&name.0) > 1);
            self.sweep_at = self.names.len() * 2;
        }
        let name = Name::from(text);
        self.names.insert(name.clone());
        name
    }

    /// How many distinct names the pool holds now.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether the pool is empty.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_forgets_names_that_nobody_holds() {
        let mut pool = NamePool::default();
        let kept = pool.intern("kept");
        for i in 0..5_000 {
            pool.intern(&format!("passing-{i}"));
        }
        assert!(pool.len() < 3_000, "{}", pool.len());
        assert!(Arc::ptr_eq(&kept.0, &pool.intern("kept").0));
    }
}
