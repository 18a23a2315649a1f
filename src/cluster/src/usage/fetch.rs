//! One question, whose answer may be slow, huge or wrong.

use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use kube::Client;
use kube::client::Body;
use tokio::time::timeout;

use crate::perform::text_of;

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
    let call = async {
        let answer = client.send(request).await.map_err(|error| failed(text_of(&error)))?;
        let status = answer.status();
        if !status.is_success() {
            return Err(failed(format!("it answers {status}")));
        }
        let read = Limited::new(answer.into_body(), bounds.largest).collect().await;
        match read {
            Ok(read) => Ok(read.to_bytes().to_vec()),
            Err(error) if error.is::<http_body_util::LengthLimitError>() => {
                Err(failed(format!("the answer is larger than {} MiB", bounds.largest >> 20)))
            }
            Err(error) => Err(failed(format!("the answer cannot be read: {error}"))),
        }
    };
    let silence = || failed(format!("no whole answer within {} ms", bounds.longest.as_millis()));
    timeout(bounds.longest, call).await.unwrap_or_else(|_| Err(silence()))
}
