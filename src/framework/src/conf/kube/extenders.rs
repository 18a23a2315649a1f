//! `extenders`: HTTP services that filter, score, bind and choose victims.

use std::collections::BTreeMap;

use super::fields::{self, Level, get};
use super::scalars::{duration, flag, integer, items, required, text};
use crate::conf::names::shown;
use crate::conf::policy::{ExtenderPolicy, ExtenderTls, ManagedResource};
use crate::conf::reader::Reader;
use crate::conf::tree::{Entry, Node, Span};

/// Wait for an answer where nothing is said.
const DEFAULT_TIMEOUT_MS: u64 = 5_000;

/// Reads all of them; ignorable ones come last, as kube-scheduler asks them.
pub(super) fn read(reader: &mut Reader<'_>, entry: Option<&Entry>) -> Vec<ExtenderPolicy> {
    let mut extenders = Vec::new();
    let mut binder: Option<Span> = None;
    let mut resources: BTreeMap<String, Span> = BTreeMap::new();
    for item in items(reader, entry, "write a list of `- urlPrefix: …`") {
        extenders.extend(extender(reader, item, &mut binder, &mut resources));
    }
    extenders.sort_by_key(|extender| extender.ignorable);
    extenders
}

fn extender(
    reader: &mut Reader<'_>,
    node: &Node,
    binder: &mut Option<Span>,
    resources: &mut BTreeMap<String, Span>,
) -> Option<ExtenderPolicy> {
    let entries = fields::entries(reader, Level::Extender, node, None)?;
    let mut words = |key: &str| {
        let entry = get(entries, key)?;
        text(reader, entry).filter(|text| !text.is_empty())
    };
    let (filter_verb, preempt_verb) = (words("filterVerb"), words("preemptVerb"));
    let (prioritize_verb, bind_verb) = (words("prioritizeVerb"), words("bindVerb"));
    let example = "write for example `urlPrefix: http://extender.kube-system:8888`";
    let url = required(reader, get(entries, "urlPrefix"), "an extender needs a `urlPrefix`", &node.at, example);
    let weight = get(entries, "weight").map(|entry| (entry, integer(reader, entry, i64::MIN, i64::MAX).unwrap_or(1)));
    let positive = weight.is_some_and(|(_, weight)| weight > 0);
    if prioritize_verb.is_some() && !positive {
        let at = weight.map_or(&node.at, |(entry, _)| &entry.value.at);
        let message = "an extender with a `prioritizeVerb` needs a positive `weight`";
        reader.error(at, message, "", Some("write `weight: 1`".to_owned()));
    }
    if let (Some(_), Some(entry)) = (&bind_verb, get(entries, "bindVerb")) {
        match binder {
            Some(first) => {
                let line = reader.line_of(first);
                let help = format!("the first one is at line {line}; keep one of them");
                reader.error(&entry.at, "only one extender may bind", "second", Some(help));
            }
            None => *binder = Some(entry.at.clone()),
        }
    }
    let mut is = |key: &str| get(entries, key).and_then(|entry| flag(reader, entry)).unwrap_or(false);
    let (enable_https, node_cache_capable, ignorable) = (is("enableHTTPS"), is("nodeCacheCapable"), is("ignorable"));
    let timeout = get(entries, "httpTimeout").and_then(|entry| duration(reader, entry)).filter(|ms| *ms > 0);
    let tls = get(entries, "tlsConfig").map(|entry| tls(reader, entry));
    let managed = items(reader, get(entries, "managedResources"), "write a list of `- name: …`");
    let managed_resources = managed.iter().filter_map(|item| managed_resource(reader, item, resources)).collect();
    Some(ExtenderPolicy {
        url_prefix: url?.0,
        filter_verb,
        preempt_verb,
        prioritize_verb,
        weight: weight.map_or(1, |(_, weight)| weight),
        bind_verb,
        enable_https,
        tls,
        http_timeout_ms: timeout.unwrap_or(DEFAULT_TIMEOUT_MS),
        node_cache_capable,
        managed_resources,
        ignorable,
    })
}

fn tls(reader: &mut Reader<'_>, above: &Entry) -> ExtenderTls {
    let entries = fields::entries(reader, Level::Tls, &above.value, Some(&above.at)).unwrap_or_default();
    let mut words = |key: &str| get(entries, key).and_then(|entry| text(reader, entry)).unwrap_or_default();
    let mut tls = ExtenderTls {
        server_name: words("serverName"),
        cert_file: words("certFile"),
        key_file: words("keyFile"),
        ca_file: words("caFile"),
        cert_data: words("certData"),
        key_data: words("keyData"),
        ca_data: words("caData"),
        ..ExtenderTls::default()
    };
    let insecure = get(entries, "insecure");
    tls.insecure = insecure.and_then(|entry| flag(reader, entry)).unwrap_or(false);
    if let (Some(entry), true) = (insecure, tls.insecure && !(tls.ca_file.is_empty() && tls.ca_data.is_empty())) {
        let message = "`insecure` together with a certificate authority would check nothing";
        reader.error(&entry.at, message, "", Some("take one of them out".to_owned()));
    }
    for key in ["certData", "keyData", "caData"] {
        if let Some(entry) = get(entries, key)
            && entry.value.text().is_some_and(|text| !is_base64(text))
        {
            let help = "write what `base64 --wrap=0 FILE` prints".to_owned();
            reader.error(&entry.value.at, format!("`{key}` has to be base64"), "not base64", Some(help));
        }
    }
    tls
}

fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    text.len().is_multiple_of(4)
        && text.len() - body.len() <= 2
        && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/')
}

fn managed_resource(
    reader: &mut Reader<'_>,
    node: &Node,
    known: &mut BTreeMap<String, Span>,
) -> Option<ManagedResource> {
    let entries = fields::entries(reader, Level::ManagedResource, node, None)?;
    let what = "a managed resource needs a `name`";
    let (name, at) = required(reader, get(entries, "name"), what, &node.at, "write for example `example.com/gpu`")?;
    if !is_extended(&name) {
        let message = format!("{} is not an extended resource", shown(&name));
        let help = "write a name with a domain of its own, such as `example.com/gpu`".to_owned();
        reader.error(&at, message, "", Some(help));
    }
    if let Some(first) = known.get(&name) {
        let help = "a resource belongs to one extender";
        reader.twice(&at, &format!("the managed resource {}", shown(&name)), &first.clone(), Some(help));
    }
    known.insert(name.clone(), at);
    let ignored_by_scheduler =
        get(entries, "ignoredByScheduler").and_then(|entry| flag(reader, entry)).unwrap_or(false);
    Some(ManagedResource { name, ignored_by_scheduler })
}

/// Whether a resource is one of those that a domain other than Kubernetes' own defines.
fn is_extended(name: &str) -> bool {
    name.split_once('/').is_some_and(|(domain, rest)| {
        let own = domain == "kubernetes.io" || domain.ends_with(".kubernetes.io");
        let valid = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        !own && !domain.is_empty() && !rest.is_empty() && valid(domain) && valid(rest)
    }) && !name.starts_with("requests.")
}
