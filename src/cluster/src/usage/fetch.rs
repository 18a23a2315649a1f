//! One question, whose answer may be slow.

use std::time::Duration;

use kube::Client;
use kube::client::Body;
use tokio::time::timeout;

use crate::exchange::exchange;

/// Longest wait for a whole answer.
pub(super) const LONGEST: Duration = Duration::from_secs(10);

/// How much is read, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// In bytes.
    pub(super) largest: usize,
    pub(super) longest: Duration,
}

/// Asks, and answers the body. `what` is who is asked, for messages.
pub(super) async fn get(
    client: &Client,
    path: &str,
    token: Option<&str>,
    what: &str,
    bounds: Bounds,
) -> Result<Vec<u8>, String> {
    let failed = |why: String| format!("{what}: {why}");
    let mut request = http::Request::get(path).header(http::header::ACCEPT, "application/json");
    if let Some(token) = token {
        request = request.header(http::header::AUTHORIZATION, format!("Bearer {token}"));
    }
    let request = request.body(Body::empty()).map_err(|error| failed(error.to_string()))?;
    let silence = || Err(format!("no whole answer within {} ms", bounds.longest.as_millis()));
    let answer = timeout(bounds.longest, exchange(client, request, bounds.largest)).await;
    answer.unwrap_or_else(|_| silence()).map_err(failed)
}
