//! One question over HTTP to somebody whose answer may be huge or wrong. How long it may take is for the asker to say.

use http_body_util::{BodyExt, LengthLimitError, Limited};
use kube::Client;
use kube::client::Body;

use crate::perform::text_of;

/// Sends a request, and answers the body of a success. `Err` says what went wrong; of more than `largest` bytes nothing is kept.
pub(crate) async fn exchange(client: &Client, request: http::Request<Body>, largest: usize) -> Result<Vec<u8>, String> {
    let answer = client.send(request).await.map_err(|error| text_of(&error))?;
    let status = answer.status();
    if !status.is_success() {
        return Err(format!("it answers {status}"));
    }
    match Limited::new(answer.into_body(), largest).collect().await {
        Ok(read) => Ok(read.to_bytes().to_vec()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(format!("the answer is larger than {} MiB: {error}", largest >> 20))
        }
        Err(error) => Err(format!("the answer cannot be read: {error}")),
    }
}
