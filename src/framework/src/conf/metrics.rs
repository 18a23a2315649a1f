//! The section `metrics`: where the load of nodes comes from, for plugins that use it.
//!
//! Volcano reads it as one flat mapping of texts, dots in the keys included.

use super::arguments::Arguments;
use super::catalogue::{ArgumentInfo, ArgumentKind};
use super::check::{self, Owner};
use super::reader::Reader;
use super::tree::Entry;

/// The keys of the section.
pub const METRICS: &[ArgumentInfo] = &[
    ArgumentInfo::new(
        "type",
        ArgumentKind::OneOf(&["prometheus", "prometheus_adaptor", "elasticsearch"]),
        "",
        "where load is read from; without it, it is not read",
    ),
    text("address", "", "URL of the server"),
    ArgumentInfo::new("interval", ArgumentKind::Duration, "30s", "time between two readings"),
    ArgumentInfo::new("tls.insecureSkipVerify", ArgumentKind::Bool, "false", "take any certificate of the server"),
    text("elasticsearch.index", "\"metricbeat-*\"", "index that is searched"),
    text("elasticsearch.username", "", "user"),
    text("elasticsearch.password", "", "password"),
    text("elasticsearch.hostnameFieldName", "host.hostname", "field with the name of the node"),
];

const fn text(key: &'static str, default: &'static str, about: &'static str) -> ArgumentInfo {
    ArgumentInfo::new(key, ArgumentKind::Text, default, about)
}

/// Reads the section.
pub(super) fn metrics(reader: &mut Reader<'_>, section: &Entry) -> Arguments {
    let arguments = check::arguments(reader, Owner::Metrics, &section.value, METRICS);
    let kind = arguments.text("type", "");
    if matches!(kind, "prometheus" | "elasticsearch") && arguments.text("address", "").is_empty() {
        let message = format!("`metrics` of type `{kind}` has no address, so no load is ever read");
        let help = "add `address:` with the URL of the server".to_owned();
        reader.warn(&section.at, message, "no address", Some(help));
    }
    arguments
}
