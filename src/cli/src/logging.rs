//! Log lines and spans, to standard error.

use std::io::IsTerminal;

use anyhow::anyhow;
use tracing_subscriber::EnvFilter;

/// Starts logging what `filter` lets pass.
pub(crate) fn start(filter: &str) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(filter).map_err(|_| {
        anyhow!("--log {filter}: use error, warn, info, debug, trace or off, or a filter such as krafla_engine=debug")
    })?;
    let colour = std::io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    lines.with_ansi(colour).without_time().init();
    Ok(())
}
