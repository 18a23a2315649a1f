//! Log lines and spans, to standard error.

use anyhow::Context;
use tracing_subscriber::EnvFilter;

/// Starts logging what `filter` lets pass.
pub(crate) fn start(filter: &str) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(filter).with_context(|| format!("--log {filter}"))?;
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).without_time().init();
    Ok(())
}
