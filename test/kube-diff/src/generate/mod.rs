//! Random objects, as manifests: few values for each field, so that they meet.

pub(crate) mod affinity;
pub(crate) mod nodes;
pub(crate) mod pods;
pub(crate) mod storage;
pub(crate) mod surroundings;

pub(crate) const NAMESPACES: [&str; 4] = ["blue", "green", "red", "white"];
pub(crate) const APPS: [&str; 5] = ["batch", "cache", "db", "web", "mail"];
pub(crate) const TIERS: [&str; 2] = ["back", "front"];
pub(crate) const REVISIONS: [&str; 3] = ["1", "2", "3"];
pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";
pub(crate) const REGION: &str = "topology.kubernetes.io/region";
pub(crate) const HOSTNAME: &str = "kubernetes.io/hostname";
/// Keys of node labels by which pods are spread, drawn together or kept apart; the last two are on few nodes.
pub(crate) const TOPOLOGIES: [&str; 5] = [ZONE, HOSTNAME, REGION, "disk", "rack"];
/// A resource beside those that every node has.
pub(crate) const GPU: &str = "example.com/gpu";
/// Classes of priority; the first is that of pods that name none.
pub(crate) const PRIORITIES: [(&str, i32); 4] = [("usual", 0), ("low", -10), ("middle", 50), ("high", 1000)];
/// A class of runtimes whose pods have an overhead.
pub(crate) const RUNTIME: &str = "boxed";

/// Images, with their sizes in bytes. Pods name some of them without their tag.
pub(crate) const IMAGES: [(&str, i64); 7] = [
    ("registry.example/small:latest", 12 << 20),
    ("registry.example/base:1.2", 80 << 20),
    ("registry.example/web:latest", 310_000_001),
    ("registry.example:5000/db:14", 750 << 20),
    ("registry.example/train:latest", 2_900_000_000),
    ("registry.example/model:v3", 900 << 20),
    ("registry.example:5000/tool:latest", 51 << 20),
];

/// Taints, so that tolerations may fit: key, value.
pub(crate) const TAINTS: [(&str, &str); 5] =
    [("dedicated", "ml"), ("dedicated", "web"), ("spot", ""), ("maintenance", "soon"), ("noisy", "yes")];
pub(crate) const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
