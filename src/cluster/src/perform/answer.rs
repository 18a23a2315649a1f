//! What an answer of the API server to a write means.

use std::time::Duration;

use kube::Error;
use tokio::time::timeout;

/// How long a call that matters may take.
pub(crate) const CALL: Duration = Duration::from_secs(30);

/// What is known after a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It was done.
    Done,
    /// It was not done, and this is why.
    Refused { code: u16, message: String },
    /// Nobody knows whether it was done: the answer was lost, or the server failed on the way.
    Unknown { message: String },
}

impl Answer {
    /// Makes a call, and reads its result; after `most` nobody knows.
    pub(crate) async fn within<T>(most: Duration, call: impl Future<Output = Result<T, Error>>) -> Self {
        match timeout(most, call).await {
            Ok(result) => Self::of(&result),
            Err(_) => Self::silence(most),
        }
    }

    /// There was none.
    pub(crate) fn silence(most: Duration) -> Self {
        Self::Unknown { message: format!("no answer within {} s", most.as_secs()) }
    }

    /// Reads the result of a call.
    pub(crate) fn of<T>(result: &Result<T, Error>) -> Self {
        match result {
            Ok(_) => Self::Done,
            Err(Error::Api(status)) => match status.code {
                // 408 and all of 5xx: the server may have done it and failed afterwards.
                code @ (400..=407 | 409..=499) => Self::Refused { code, message: status.message.clone() },
                code => Self::Unknown { message: format!("{} ({code})", status.message) },
            },
            Err(error) => Self::Unknown { message: text_of(error) },
        }
    }
}

/// An error with its causes, once each.
pub(crate) fn text_of(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        cause = inner.source();
    }
    text
}
