//! Log lines and spans, to standard error.

use std::io::IsTerminal;
use std::sync::Arc;

use anyhow::anyhow;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, reload};

use crate::spans::SpanTimes;

/// What is logged, and how to change that.
#[derive(Clone)]
pub(crate) struct Logging {
    handle: reload::Handle<EnvFilter, Registry>,
    at_start: Arc<str>,
}

/// Starts logging what `filter` lets pass.
pub(crate) fn start(filter: &str) -> anyhow::Result<Logging> {
    let parsed = read(filter).map_err(|_| {
        anyhow!("--log {filter}: use error, warn, info, debug, trace or off, or a filter such as krafla_engine=debug")
    })?;
    let colour = std::io::stderr().is_terminal();
    let (parsed, handle) = reload::Layer::new(parsed);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(colour).without_time();
    tracing_subscriber::registry().with(lines.with_filter(parsed)).with(SpanTimes::layer()).init();
    Ok(Logging { handle, at_start: filter.into() })
}

/// A level is for Krafla's own lines: the client's would repeat each failed call, whose caller says what it means.
fn read(filter: &str) -> Result<EnvFilter, tracing_subscriber::filter::ParseError> {
    let only_a_level = !filter.contains(['=', ',']);
    let quiet = if only_a_level { ",kube_client::client::builder=off" } else { "" };
    EnvFilter::try_new(format!("{filter}{quiet}"))
}

impl Logging {
    /// Logs what `filter` lets pass from now on; what was set at the start, if `None`.
    pub(crate) fn set(&self, filter: Option<&str>) -> Result<(), String> {
        let filter = filter.unwrap_or(&self.at_start);
        let parsed = read(filter).map_err(|error| format!("{filter}: {error}"))?;
        self.handle.reload(parsed).map_err(|error| error.to_string())
    }
}
