//! The edge: Kubernetes objects, as they are written, to events of the model.
//!
//! [`read_manifests`] reads files of YAML or JSON into [`Object`]s; a [`Converter`] turns objects, from files or from a
//! watch, into what the model takes. Both answer with a value and what is wrong with the input, and never fail: one bad
//! object must not stop the cluster.
//!
//! [`writer`] is the way back.
//!
//! Absent on purpose: any client of the API server, and I/O of any kind. The caller reads the files.

mod budget;
mod converter;
pub mod crds;
mod details;
mod devices;
mod duration;
mod fault;
mod group;
mod hints;
mod job_group;
pub mod json;
pub mod keys;
pub mod manifests;
mod node;
mod object;
mod places;
mod pod;
mod pod_affinity;
mod policy;
pub mod quantities;
mod queue;
mod report;
mod request;
mod selectors;
mod spread;
mod storage;
mod storage_object;
mod volumes;
pub mod workload;
pub mod writer;
mod yaml;

pub use converter::Converter;
pub use crds::definition::definitions;
pub use duration::parse_duration;
pub use group::{implicit_group_name, label_gang_group};
pub use hints::Hints;
pub use manifests::{Located, LocatedProblem, Manifests, ReadOptions, Severity, read_manifests};
pub use object::Object;
pub use pod::{group_of, label_gang};
pub use report::DEFAULT_NAMESPACE;
pub use spread::Selecting;
pub use storage_object::StorageManifest;
pub use workload::{Part, Workload, WorkloadKind, ephemeral_claims};
