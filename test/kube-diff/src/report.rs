//! What is printed: progress, and pods and nodes as manifests.

use std::io::{IsTerminal as _, Write as _};

use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;

use crate::world::World;

/// The most nodes that are printed for a pod.
const MOST_NODES: usize = 3;

/// Prints a pod, and nodes, as manifests.
pub(crate) async fn print(world: &World, pod: &Pod, mut nodes: Vec<String>) -> anyhow::Result<()> {
    println!("{}", manifest(serde_json::to_value(pod)?, "Pod")?);
    nodes.sort();
    nodes.dedup();
    for node in nodes.iter().take(MOST_NODES) {
        println!("---\n{}", manifest(world.node(node).await?, "Node")?);
    }
    Ok(())
}

/// An object without what a reader does not ask for.
fn manifest(mut object: Value, kind: &str) -> anyhow::Result<String> {
    object["apiVersion"] = "v1".into();
    object["kind"] = kind.into();
    if let Some(meta) = object["metadata"].as_object_mut() {
        for field in ["managedFields", "resourceVersion", "generation", "creationTimestamp"] {
            meta.remove(field);
        }
    }
    Ok(serde_saphyr::to_string(&object)?)
}

/// Says how far it is.
pub(crate) fn progress(n: u32, of: u32, words: &str) {
    let mut out = std::io::stderr();
    if out.is_terminal() {
        let _ = write!(out, "\r\x1b[K{n}/{of} pods, {words}");
    } else if n.is_multiple_of(100) {
        let _ = writeln!(out, "{n}/{of} pods, {words}");
    }
}

/// Makes room for lines that stay.
pub(crate) fn clear_progress() {
    let mut out = std::io::stderr();
    if out.is_terminal() {
        let _ = write!(out, "\r\x1b[K");
    }
}
