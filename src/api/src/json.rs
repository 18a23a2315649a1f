//! Objects from JSON values, for callers that put them together themselves. Here, so that the code that reads
//! Kubernetes' many types is made once.

use k8s_openapi::api::core::v1::{Node, Pod};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::crds::{PodGroup, Queue};

/// A pod; `Err` says what does not fit.
pub fn pod(value: Value) -> Result<Pod, String> {
    read(value)
}

/// A node; `Err` says what does not fit.
pub fn node(value: Value) -> Result<Node, String> {
    read(value)
}

/// Volcano's PodGroup; `Err` says what does not fit.
pub fn pod_group(value: Value) -> Result<PodGroup, String> {
    read(value)
}

/// Volcano's Queue; `Err` says what does not fit.
pub fn queue(value: Value) -> Result<Queue, String> {
    read(value)
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|why| why.to_string())
}
