//! Where the use of nodes and pods comes from.

use super::DeschedulerPolicy;
use super::fields::{self, Level, get, items};
use crate::conf::kube::scalars::{flag, required, text};
use crate::conf::names::{shown, suggest};
use crate::conf::reader::Reader;
use crate::conf::tree::{Entry, Node, Span};

const SOURCES: [&str; 2] = ["KubernetesMetrics", "Prometheus"];

pub(super) fn read(reader: &mut Reader<'_>, top: &[Entry], policy: &mut DeschedulerPolicy) {
    let collector = get(top, "metricsCollector").and_then(|entry| {
        let entries = fields::entries(reader, Level::Collector, &entry.value)?;
        flag(reader, get(entries, "enabled")?).filter(|on| *on).map(|_| entry)
    });
    if let Some(entry) = collector {
        let help = "write `metricsProviders: [{source: KubernetesMetrics}]`".to_owned();
        reader.warn(&entry.at, "`metricsCollector` is an old name", "deprecated", Some(help));
        policy.metrics_server = true;
    }
    let mut seen: Vec<(String, Span)> = Vec::new();
    for item in items(reader, get(top, "metricsProviders"), "write a list of `- source: …`") {
        let Some(entries) = fields::entries(reader, Level::Provider, item) else { continue };
        let what = "an entry of `metricsProviders` needs a `source`";
        let help = "write `source: KubernetesMetrics` or `source: Prometheus`";
        let Some((source, at)) = required(reader, get(entries, "source"), what, &item.at, help) else { continue };
        if !SOURCES.contains(&source.as_str()) {
            let message = format!("there is no source called {}", shown(&source));
            reader.error(&at, message, "unknown", suggest(&source, "sources", SOURCES));
            continue;
        }
        if let Some((_, first)) = seen.iter().find(|(known, _)| *known == source) {
            let first = first.clone();
            reader.twice(&at, &format!("the source `{source}`"), &first, None);
            continue;
        }
        seen.push((source.clone(), at.clone()));
        match (source.as_str(), get(entries, "prometheus")) {
            ("Prometheus", Some(entry)) => policy.prometheus = prometheus(reader, &entry.value),
            ("Prometheus", None) => {
                let help = "write `prometheus: {url: https://…}`".to_owned();
                reader.error(&at, "the source `Prometheus` needs `prometheus`", "", Some(help));
            }
            (_, Some(entry)) => {
                let help = "take it out".to_owned();
                reader.error(&entry.at, "`prometheus` belongs to the source `Prometheus`", "not here", Some(help));
            }
            (_, None) => {
                if collector.is_some() {
                    let help = "take `metricsCollector` out".to_owned();
                    let message = "the metrics server is asked by `metricsCollector` already";
                    reader.error(&at, message, "again", Some(help));
                }
                policy.metrics_server = true;
            }
        }
    }
}

fn prometheus(reader: &mut Reader<'_>, node: &Node) -> Option<(String, Option<(String, String)>)> {
    let entries = fields::entries(reader, Level::Prometheus, node)?;
    let example = "write `url: https://prometheus.example:9090`";
    let (url, at) = required(reader, get(entries, "url"), "`prometheus` needs a `url`", &node.at, example)?;
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    if rest.is_none_or(|rest| rest.is_empty() || rest.starts_with('/') || rest.contains(char::is_whitespace)) {
        let message = format!("the address {} cannot be read", shown(&url));
        reader.error(&at, message, "not an address", Some(example.to_owned()));
        return None;
    }
    let mut token = None;
    if let Some(entry) = get(entries, "authToken") {
        let above = fields::entries(reader, Level::Token, &entry.value)?;
        let Some(secret) = get(above, "secretReference") else {
            let help = "write `secretReference: {namespace: …, name: …}`, or take `authToken` out".to_owned();
            reader.error(&entry.at, "`authToken` needs a `secretReference`", "", Some(help));
            return None;
        };
        let fields = fields::entries(reader, Level::Secret, &secret.value)?;
        let mut part = |key: &str| {
            let Some(entry) = get(fields, key) else {
                let help = format!("write `{key}: …`");
                reader.error(&secret.at, format!("`secretReference` needs a `{key}`"), "", Some(help));
                return None;
            };
            let found = text(reader, entry);
            if found.as_ref().is_some_and(String::is_empty) {
                reader.error(&entry.value.at, format!("`{key}` is empty"), "empty", None);
            }
            found
        };
        let (namespace, name) = (part("namespace"), part("name"));
        token = Some((namespace?, name?));
    }
    Some((url, token))
}
