//! Which crate may reach which. Cargo keeps a crate from naming what its manifest does not list; this keeps the
//! manifests, and whatever they bring in, from listing what must not be there.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, MetadataCommand, PackageId};

/// Crates of the core: a function of what they are told. What they must not reach, directly or through others, and why.
const CORE: [&str; 7] = [
    "krafla-cel",
    "krafla-model",
    "krafla-framework",
    "krafla-actions",
    "krafla-plugins",
    "krafla-descheduler",
    "krafla-engine",
];
const FORBIDDEN_IN_CORE: [(&str, &str); 12] = [
    ("kube", "the core never sees the API server; events come in, effects go out"),
    ("kube-client", "the core never sees the API server; events come in, effects go out"),
    ("kube-core", "plugins see the model, never the API's types"),
    ("k8s-openapi", "plugins see the model, never the API's types"),
    ("tokio", "a session is synchronous; async is for shells"),
    ("hyper", "the core does no I/O"),
    ("reqwest", "the core does no I/O"),
    ("rand", "the same input gives the same bytes; randomness is derived from a seed that is told"),
    ("getrandom", "the same input gives the same bytes; nothing asks the system for randomness"),
    ("jiff", "the core is told the time"),
    ("chrono", "the core is told the time"),
    ("time", "the core is told the time"),
];

/// Of our own crates, those that each may name. Arrows go down only.
const MAY_NAME: [(&str, &[&str]); 15] = [
    ("krafla-cel", &[]),
    ("krafla-model", &["krafla-cel"]),
    ("krafla-framework", &["krafla-model"]),
    ("krafla-api", &["krafla-model"]),
    ("krafla-engine", &["krafla-model", "krafla-framework"]),
    ("krafla-actions", &["krafla-model", "krafla-framework"]),
    ("krafla-plugins", &["krafla-model", "krafla-framework"]),
    ("krafla-descheduler", &["krafla-model", "krafla-framework"]),
    ("krafla-simulator", &["krafla-model", "krafla-framework", "krafla-engine", "krafla-api", "krafla-certificates"]),
    ("krafla-cluster", &["krafla-model", "krafla-framework", "krafla-engine", "krafla-api"]),
    ("krafla-sandbox", &["krafla-api"]),
    (
        "krafla-rehearsal",
        &[
            "krafla-model",
            "krafla-framework",
            "krafla-engine",
            "krafla-api",
            "krafla-simulator",
            "krafla-cluster",
            "krafla-sandbox",
        ],
    ),
    ("krafla-testkit", &["krafla-model", "krafla-framework"]),
    ("krafla-certificates", &["krafla-model", "krafla-framework"]),
    // What a crate of somebody else has.
    ("krafla-out-of-tree", &["krafla", "krafla-model", "krafla-framework"]),
];

struct Graph {
    names: BTreeMap<PackageId, String>,
    edges: BTreeMap<PackageId, Vec<PackageId>>,
}

impl Graph {
    /// Normal and build dependencies of the workspace; what only tests use is left out.
    fn read() -> Self {
        let metadata = MetadataCommand::new().exec().expect("cargo metadata runs in a workspace");
        let names = metadata.packages.iter().map(|p| (p.id.clone(), p.name.to_string())).collect();
        let resolve = metadata.resolve.expect("the lock file resolves");
        let edges = resolve
            .nodes
            .into_iter()
            .map(|node| {
                let real = |kinds: &[cargo_metadata::DepKindInfo]| {
                    kinds.iter().any(|kind| kind.kind != DependencyKind::Development)
                };
                (node.id, node.deps.into_iter().filter(|dep| real(&dep.dep_kinds)).map(|dep| dep.pkg).collect())
            })
            .collect();
        Self { names, edges }
    }

    fn id(&self, name: &str) -> &PackageId {
        self.names
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(id, _)| id)
            .unwrap_or_else(|| panic!("no crate {name}"))
    }

    fn direct(&self, name: &str) -> BTreeSet<&str> {
        self.edges[self.id(name)].iter().map(|id| self.names[id].as_str()).collect()
    }

    /// A way from `from` to `to`, if there is one.
    fn way(&self, from: &str, to: &str) -> Option<Vec<String>> {
        let mut before: BTreeMap<&PackageId, &PackageId> = BTreeMap::new();
        let start = self.id(from);
        let mut line = vec![start];
        while let Some(here) = line.pop() {
            if self.names[here] == to {
                let mut way = vec![self.names[here].clone()];
                let mut at = here;
                while let Some(previous) = before.get(at) {
                    way.push(self.names[*previous].clone());
                    at = previous;
                }
                way.reverse();
                return Some(way);
            }
            for next in &self.edges[here] {
                if next != start && !before.contains_key(next) {
                    before.insert(next, here);
                    line.push(next);
                }
            }
        }
        None
    }
}

//
#[test]
fn the_core_reaches_no_io_no_clock_and_no_api_types() {
    let graph = Graph::read();
    for core in CORE {
        for (forbidden, why) in FORBIDDEN_IN_CORE {
            if let Some(way) = graph.way(core, forbidden) {
                panic!("{core} must not reach {forbidden}: {why}\n  it does so through {}", way.join(" -> "));
            }
        }
    }
}

//
#[test]
fn lints_keep_the_core_from_waiting() {
    for folder in ["actions", "plugins", "src/engine", "src/framework", "src/model"] {
        let lints = std::fs::read_to_string(format!("{}/../../{folder}/clippy.toml", env!("CARGO_MANIFEST_DIR")));
        let lints = lints.expect("a folder of the core has its lints");
        for blocking in ["std::thread::sleep", "std::net::TcpStream", "std::fs::File::open", "std::time::Instant::now"]
        {
            assert!(lints.contains(&format!("path = \"{blocking}\"")), "{folder}/clippy.toml lets {blocking} through");
        }
    }
}

#[test]
fn arrows_between_our_crates_go_down_only() {
    let graph = Graph::read();
    for (name, may) in MAY_NAME {
        for named in graph.direct(name).into_iter().filter(|named| named.starts_with("krafla")) {
            assert!(may.contains(&named), "{name} must not depend on {named}; it may depend on {may:?}");
        }
    }
}

#[test]
fn every_crate_of_ours_has_its_place_in_the_rules() {
    let graph = Graph::read();
    for name in graph.names.values().filter(|name| name.starts_with("krafla-") && !name.starts_with("krafla-test-")) {
        assert!(MAY_NAME.iter().any(|(known, _)| known == name), "say in MAY_NAME what {name} may depend on");
    }
}
