//! The virtual-time shell: a model API server with kubelets, controllers and faults about one engine; scenarios,
//! importers of traces and manifests, and reports.

pub mod experiment;
pub mod fairness;
mod invariants;
pub mod manifest;
mod observe;
pub mod play;
pub mod record;
pub mod report;
pub mod scenario;
pub mod trace;
pub mod world;
