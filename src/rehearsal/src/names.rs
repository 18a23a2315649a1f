//! Names: a scenario may call a job `J1`, an API server takes lower case only.
//!
//! What is sent has a name that the server takes, and what is seen gets the name that the file gave it back. So nobody
//! but this module knows that there are two.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as core;
use krafla_api::crds::{PodGroup, Queue};
use krafla_api::keys;
use krafla_simulator::scenario::Deed;
use serde_json::Value;

/// Where objects name others, beside their own names: in annotations and labels, and in the spec.
const NAMING: [&str; 4] = [keys::GROUP_NAME, keys::VOLCANO_GROUP_NAME, keys::COSCHEDULING_GROUP, keys::QUEUE_NAME];
const NAMING_IN_SPEC: [&str; 4] = ["queue", "parent", "priorityClassName", "nodeName"];

/// A name as an API server takes it: a name of DNS. One that is such a name already stays.
pub(crate) fn sent(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-.".contains(c) { c.to_ascii_lowercase() } else { '-' };
    name.chars().map(plain).collect()
}

/// Gives an object, and what it names, the names that are sent.
pub(crate) fn send(object: &mut Value) {
    rename(object, &mut |name| *name = sent(name));
}

fn rename(object: &mut Value, with: &mut dyn FnMut(&mut String)) {
    let mut at = |value: Option<&mut Value>| {
        if let Some(Value::String(name)) = value {
            with(name);
        }
    };
    if let Some(meta) = object.get_mut("metadata") {
        at(meta.get_mut("name"));
        at(meta.get_mut("namespace"));
        for map in ["annotations", "labels"] {
            for key in NAMING {
                at(meta.get_mut(map).and_then(|map| map.get_mut(key)));
            }
        }
    }
    for key in NAMING_IN_SPEC {
        at(object.get_mut("spec").and_then(|spec| spec.get_mut(key)));
    }
}

/// The names of a file by those that are sent, where they differ.
#[derive(Default)]
pub(crate) struct Names(BTreeMap<String, String>);

impl Names {
    /// The names of what a scenario does. `Err`: two names that would be one.
    pub(crate) fn of<'a>(deeds: impl Iterator<Item = &'a Deed>) -> Result<Self, String> {
        let mut all: BTreeMap<String, String> = BTreeMap::new();
        let mut twice = None;
        let mut note = |name: &mut String| match all.get(&sent(name)) {
            Some(known) if known != name => twice = twice.take().or(Some((known.clone(), name.clone()))),
            Some(_) => {}
            None => {
                all.insert(sent(name), name.clone());
            }
        };
        for deed in deeds {
            match deed {
                Deed::Put(object) => rename(&mut object.clone(), &mut note),
                Deed::Submit { group, pods, .. } => {
                    pods.iter().chain(group).for_each(|object| rename(&mut object.clone(), &mut note));
                }
                _ => {}
            }
        }
        if let Some((one, other)) = twice {
            return Err(format!("`{one}` and `{other}` are one name for an API server"));
        }
        all.retain(|sent, name| sent != name);
        Ok(Self(all))
    }

    fn restore(&self, name: &mut String) {
        if let Some(own) = self.0.get(name) {
            name.clone_from(own);
        }
    }

    fn restore_some(&self, name: Option<&mut String>) {
        if let Some(name) = name {
            self.restore(name);
        }
    }

    /// Gives a pod that was seen its names back.
    pub(crate) fn pod(&self, mut pod: core::Pod) -> core::Pod {
        if self.0.is_empty() {
            return pod;
        }
        self.restore_some(pod.metadata.name.as_mut());
        self.restore_some(pod.metadata.namespace.as_mut());
        for map in [&mut pod.metadata.annotations, &mut pod.metadata.labels] {
            for key in NAMING {
                self.restore_some(map.as_mut().and_then(|map| map.get_mut(key)));
            }
        }
        self.restore_some(pod.spec.as_mut().and_then(|spec| spec.node_name.as_mut()));
        self.restore_some(pod.status.as_mut().and_then(|status| status.nominated_node_name.as_mut()));
        pod
    }

    /// The same for a PodGroup.
    pub(crate) fn group(&self, mut group: PodGroup) -> PodGroup {
        self.restore_some(group.metadata.name.as_mut());
        self.restore_some(group.metadata.namespace.as_mut());
        self.restore_some(group.spec.as_mut().and_then(|spec| spec.queue.as_mut()));
        group
    }

    /// The same for a node.
    pub(crate) fn node(&self, mut node: core::Node) -> core::Node {
        self.restore_some(node.metadata.name.as_mut());
        node
    }

    /// The same for a queue.
    pub(crate) fn queue(&self, mut queue: Queue) -> Queue {
        self.restore_some(queue.metadata.name.as_mut());
        self.restore_some(queue.spec.as_mut().and_then(|spec| spec.parent.as_mut()));
        queue
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, group: &str) -> Value {
        json!({"metadata": {"name": name, "annotations": {keys::GROUP_NAME: group}}, "spec": {"nodeName": "N_1"}})
    }

    #[test]
    fn what_is_sent_comes_back_under_its_own_name() {
        let file = pod("J1-0", "J1");
        let deed = Deed::Put(file.clone());
        let names = Names::of([&deed].into_iter()).expect("names");
        let mut sent = file.clone();
        send(&mut sent);
        assert_eq!(
            sent,
            json!({
                "metadata": {"name": "j1-0", "annotations": {keys::GROUP_NAME: "j1"}}, "spec": {"nodeName": "n-1"},
            })
        );
        let seen = names.pod(krafla_api::json::pod(with_containers(sent)).expect("a pod"));
        assert_eq!(seen, krafla_api::json::pod(with_containers(file)).expect("a pod"));
    }

    fn with_containers(mut pod: Value) -> Value {
        pod["spec"]["containers"] = json!([]);
        pod
    }

    #[test]
    fn two_names_that_would_be_one_are_told() {
        let deeds = [Deed::Put(pod("J1", "a")), Deed::Put(pod("j1", "a"))];
        assert!(Names::of(deeds.iter()).is_err_and(|why| why.contains("`J1` and `j1`")));
    }
}
