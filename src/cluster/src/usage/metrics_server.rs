//! The metrics server: `metrics.k8s.io`, through the API server.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time as Written;
use krafla_model::{Amounts, Name, PodUsageSpec, Time, quantity, resources};
use serde::Deserialize;

use super::Reading;
use super::fetch::{Bounds, LONGEST, get};
use crate::client::Clients;

/// 150,000 pods take some 60 MiB.
const BOUNDS: Bounds = Bounds { largest: 128 << 20, longest: LONGEST };
const WHO: &str = "the metrics server";
/// What was measured longer ago is not believed, in milliseconds.
const STALE_MS: i64 = 300_000;

#[derive(Deserialize)]
struct List<T> {
    items: Vec<T>,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    namespace: String,
}

#[derive(Deserialize)]
struct NodeMetrics {
    metadata: Metadata,
    timestamp: Option<Written>,
    usage: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct PodMetrics {
    metadata: Metadata,
    #[serde(default)]
    containers: Vec<ContainerMetrics>,
}

#[derive(Deserialize)]
struct ContainerMetrics {
    usage: BTreeMap<String, String>,
}

/// What each node uses; those that were not measured for long are left out.
pub(super) async fn nodes(clients: &Clients, now: Time) -> Result<Reading, String> {
    clients.throttle.turn().await;
    let body = get(&clients.calls, "/apis/metrics.k8s.io/v1beta1/nodes", None, WHO, BOUNDS).await?;
    read_nodes(&body, now)
}

fn read_nodes(body: &[u8], now: Time) -> Result<Reading, String> {
    let list: List<NodeMetrics> = parse(body)?;
    let mut read = Reading::new();
    for item in list.items {
        let age = item.timestamp.map_or(0, |at| now.0 - at.0.as_millisecond());
        if age <= STALE_MS {
            read.insert(Name::from(item.metadata.name), amounts(&item.usage)?);
        }
    }
    Ok(read)
}

/// What each pod uses.
pub(super) async fn pods(clients: &Clients) -> Result<Vec<PodUsageSpec>, String> {
    clients.throttle.turn().await;
    let body = get(&clients.calls, "/apis/metrics.k8s.io/v1beta1/pods", None, WHO, BOUNDS).await?;
    read_pods(&body)
}

fn read_pods(body: &[u8]) -> Result<Vec<PodUsageSpec>, String> {
    let list: List<PodMetrics> = parse(body)?;
    let mut read = Vec::with_capacity(list.items.len());
    for item in list.items {
        let mut used = Amounts::default();
        for container in &item.containers {
            used.add(&amounts(&container.usage)?);
        }
        read.push(PodUsageSpec { namespace: item.metadata.namespace.into(), name: item.metadata.name.into(), used });
    }
    Ok(read)
}

fn parse<T: for<'de> Deserialize<'de>>(body: &[u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|error| format!("{WHO}: its answer is not what it should be: {error}"))
}

fn amounts(usage: &BTreeMap<String, String>) -> Result<Amounts, String> {
    let mut read = Amounts::default();
    for resource in ["cpu", "memory"] {
        let Some(text) = usage.get(resource) else { continue };
        let amount = quantity::parse(text, resources::unit_of(resource));
        let amount = amount.map_err(|why| format!("{WHO}: {resource} is {text:?}: {why}"))?;
        read.set_amount(&resource.into(), amount);
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_answers() {
        // As metrics-server 0.8 writes them.
        let nodes = br#"{"kind":"NodeMetricsList","apiVersion":"metrics.k8s.io/v1beta1","metadata":{},"items":[
            {"metadata":{"name":"n1","creationTimestamp":"2026-01-01T00:00:00Z","labels":{"a":"b"}},
             "timestamp":"1970-01-01T00:10:00Z","window":"10.062s","usage":{"cpu":"156340517n","memory":"1528148Ki"}},
            {"metadata":{"name":"old"},"timestamp":"1970-01-01T00:00:00Z","window":"10s","usage":{"cpu":"1","memory":"1"}}]}"#;
        let read = read_nodes(nodes, Time(601_000)).expect("read");
        assert_eq!(read.len(), 1, "what is old is left out");
        assert_eq!((read["n1"].get("cpu"), read["n1"].get("memory")), (Some(157), Some(1_528_148 << 10)));
        let pods = br#"{"items":[{"metadata":{"name":"p","namespace":"ns"},"timestamp":"2026-01-01T00:00:00Z","window":"1s",
            "containers":[{"name":"a","usage":{"cpu":"1","memory":"1Mi"}},{"name":"b","usage":{"cpu":"500m","memory":"1Mi"}}]}]}"#;
        let read = read_pods(pods).expect("read");
        assert_eq!((&*read[0].namespace, read[0].used.get("cpu")), ("ns", Some(1_500)));
    }

    #[test]
    fn wrong_answers() {
        for body in [&b""[..], b"[]", b"{\"items\": 7}", b"{\"items\":[{\"metadata\":{}}]}", b"<html>"] {
            let why = read_nodes(body, Time(0)).expect_err("refused");
            assert!(why.contains("not what it should be"), "{why}");
        }
        let why = read_nodes(br#"{"items":[{"metadata":{"name":"n"},"usage":{"cpu":"much"}}]}"#, Time(0))
            .expect_err("refused");
        assert!(why.contains("cpu is \"much\""), "{why}");
    }
}
