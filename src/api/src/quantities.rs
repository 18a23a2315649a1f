//! Resource lists: amounts by name, each read exactly or reported.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use krafla_model::Amounts;
use krafla_model::name::NamePool;
use krafla_model::quantity::QuantityError;

use crate::duration::shown;
use crate::report::Report;

/// A resource list as Kubernetes has it.
pub type ResourceList = BTreeMap<String, Quantity>;

/// An amount that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// The resource.
    pub resource: String,
    /// What is written.
    pub text: String,
    /// Why it is no quantity.
    pub error: QuantityError,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is `{}`: {}", shown(&self.resource), shown(&self.text), self.error)
    }
}

/// Reads a resource list. What cannot be read is not in the amounts; the caller decides what that means for the object.
pub fn amounts(list: &ResourceList, names: &mut NamePool) -> (Amounts, Vec<Unread>) {
    let mut amounts = Amounts::default();
    let mut unread = Vec::new();
    for (resource, quantity) in list {
        if let Err(error) = amounts.set(&names.intern(resource), &quantity.0) {
            unread.push(Unread { resource: resource.clone(), text: quantity.0.clone(), error });
        }
    }
    (amounts, unread)
}

/// The same of a list that may be missing: reports what cannot be read with the field and the consequence. The second
/// value says whether all of it was read.
pub(crate) fn reported(
    list: Option<&ResourceList>,
    field: fmt::Arguments<'_>,
    consequence: &str,
    names: &mut NamePool,
    report: &mut Report<'_>,
) -> (Amounts, bool) {
    let Some(list) = list else { return (Amounts::default(), true) };
    let (amounts, unread) = amounts(list, names);
    for one in &unread {
        report.say(format_args!("{field}.{one}; {consequence}"));
    }
    (amounts, unread.is_empty())
}

/// Whether nodes have `resource`: quota names such as `requests.cpu` and `count/pods` are none of theirs. Volcano drops
/// the same names, and its PodGroup controller writes them into `minResources`.
pub(crate) fn is_of_nodes(resource: &str) -> bool {
    if ["requests.", "limits.", "count/"].into_iter().any(|prefix| resource.starts_with(prefix)) {
        return false;
    }
    matches!(resource, "cpu" | "memory" | "pods" | "ephemeral-storage")
        || resource.contains('/')
        || resource.starts_with("hugepages-")
        || resource.starts_with("attachable-volumes-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_readable_is_read_and_the_rest_is_named() {
        let list: ResourceList = [("cpu", "500m"), ("memory", "16GB"), ("nvidia.com/gpu", "-1"), ("pods", "110")]
            .into_iter()
            .map(|(name, text)| (name.to_owned(), Quantity(text.to_owned())))
            .collect();
        let (read, unread) = amounts(&list, &mut NamePool::default());
        assert_eq!(read, Amounts::default().with("cpu", 500).with("pods", 110));
        let texts: Vec<String> = unread.iter().map(ToString::to_string).collect();
        assert!(texts[0].starts_with("memory is `16GB`: unknown suffix `GB` (did you mean `Gi`?)"), "{texts:?}");
        assert!(texts[1].starts_with("nvidia.com/gpu is `-1`: a negative quantity"), "{texts:?}");
    }

    #[test]
    fn quota_names_are_not_of_nodes() {
        for name in ["cpu", "pods", "nvidia.com/gpu", "hugepages-2Mi", "ephemeral-storage"] {
            assert!(is_of_nodes(name), "{name}");
        }
        for name in ["requests.cpu", "limits.nvidia.com/gpu", "count/pods", "requests.nvidia.com/gpu", "gpu"] {
            assert!(!is_of_nodes(name), "{name}");
        }
    }
}
