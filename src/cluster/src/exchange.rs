//! One question over HTTP to somebody whose answer may be huge or wrong. How long it may take is for the asker to say.

use http_body_util::{BodyExt, LengthLimitError, Limited};
use kube::Client;
use kube::client::Body;

use crate::perform::text_of;

/// Of an answer that refuses, so much is read, in bytes; longer ones are pages for browsers.
const MOST_OF_AN_ERROR: usize = 64 << 10;
/// Of that, so much is said, in characters.
const MOST_WORDS: usize = 300;

/// The beginning of a text, on one line.
fn words(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MOST_WORDS).collect();
    text.trim().to_owned()
}

/// Sends a request, and answers the body of a success. `Err` says what went wrong; of more than `largest` bytes nothing is kept.
pub(crate) async fn exchange(client: &Client, request: http::Request<Body>, largest: usize) -> Result<Vec<u8>, String> {
    let answer = client.send(request).await.map_err(|error| text_of(&error))?;
    let status = answer.status();
    if !status.is_success() {
        let said = Limited::new(answer.into_body(), MOST_OF_AN_ERROR).collect().await;
        let said = said.map(|said| words(&said.to_bytes())).unwrap_or_default();
        return Err(if said.is_empty() {
            format!("it answers {status}")
        } else {
            format!("it answers {status}: {said}")
        });
    }
    match Limited::new(answer.into_body(), largest).collect().await {
        Ok(read) => Ok(read.to_bytes().to_vec()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(format!("the answer is larger than {} MiB: {error}", largest >> 20))
        }
        Err(error) => Err(format!("the answer cannot be read: {error}")),
    }
}
