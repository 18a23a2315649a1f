//! Protobuf on the wire, JSON within.
//!
//! An API server writes and reads its own kinds faster in protobuf than in JSON, and its time is what limits binds. So pods
//! are listed, watched and bound in protobuf, as kube-scheduler does; two layers of the client turn what comes back into the
//! JSON that everybody else reads. What scheduling does not ask for is left out on the way. A server that answers in JSON
//! all the same is understood too.

mod binding;
mod envelope;
mod schema;
mod transcode;

use futures::{StreamExt, TryStreamExt, stream};
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, BodyStream, Full, StreamBody};
use kube::client::Body;
use prost::bytes::Bytes;
use thiserror::Error;
use tower::BoxError;

pub(crate) use self::binding::binding;
use self::envelope::Frames;

/// The media type.
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// What is asked for: protobuf, and JSON from who does not have it.
const EITHER: HeaderValue = HeaderValue::from_static("application/vnd.kubernetes.protobuf,application/json");

/// Why bytes could not be read.
#[derive(Debug, Error)]
pub(crate) enum Malformed {
    /// They are no message.
    #[error("protobuf: {0}")]
    Wire(#[from] prost::DecodeError),
    /// They end before the message does.
    #[error("protobuf: the message ends early")]
    Short,
    /// A field does not have the form that it should.
    #[error("protobuf: field {0} has another form")]
    Form(&'static str),
    /// Nobody knows how to read it.
    #[error("protobuf: an object of kind `{0}` was not asked for")]
    Kind(String),
    /// They do not begin as Kubernetes' objects do.
    #[error("protobuf: this is no object of Kubernetes")]
    Magic,
}

type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

/// Asks for protobuf where its answer can be read: lists and watches of pods, and calls that are made in it.
pub(crate) fn ask(mut request: Request<Body>) -> Request<Body> {
    let of_pods = request.method() == Method::GET && request.uri().path().ends_with("/pods");
    let in_protobuf = request.headers().get(CONTENT_TYPE).is_some_and(|value| value == PROTOBUF);
    if of_pods || in_protobuf {
        request.headers_mut().insert(ACCEPT, EITHER);
    }
    request
}

/// Turns an answer in protobuf into JSON; any other stays as it is.
pub(crate) async fn read<B>(answer: Response<B>) -> Result<Answer, BoxError>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let (mut head, body) = answer.into_parts();
    let media = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !media.starts_with(PROTOBUF) {
        return Ok(Response::from_parts(head, body.map_err(Into::into).boxed_unsync()));
    }
    let is_stream = media.contains("stream=watch");
    head.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    head.headers.remove(CONTENT_LENGTH);
    if is_stream {
        return Ok(Response::from_parts(head, lines(body)));
    }
    let whole = body.collect().await.map_err(Into::into)?.to_bytes();
    let mut text = Vec::with_capacity(whole.len());
    envelope::object(whole, &mut text)?;
    Ok(Response::from_parts(head, Full::from(text).map_err(|never| match never {}).boxed_unsync()))
}

/// A line of JSON for each frame of a watch.
fn lines<B>(body: B) -> UnsyncBoxBody<Bytes, BoxError>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let chunks = TryStreamExt::map_err(BodyStream::new(body), Into::into).boxed();
    let frames = stream::try_unfold((chunks, Frames::default()), |(mut chunks, mut frames)| async move {
        while let Some(chunk) = chunks.next().await {
            let Ok(data) = chunk?.into_data() else { continue };
            let mut text = Vec::with_capacity(data.len());
            frames.push(data, &mut text)?;
            if !text.is_empty() {
                return Ok::<_, BoxError>(Some((http_body::Frame::data(Bytes::from(text)), (chunks, frames))));
            }
        }
        Ok(None)
    });
    StreamBody::new(frames).boxed_unsync()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use k8s_openapi::api::core::v1::{Binding, ObjectReference};
    use kube::client::ClientBuilder;
    use kube::core::Status;
    use prost::Message;
    use serde_json::{Value, json};
    use tower::util::{AndThenLayer, MapRequestLayer};

    use super::*;

    /// `v1.Status`, as far as these tests need it.
    #[derive(Clone, PartialEq, Message)]
    struct StatusMessage {
        #[prost(string, tag = "2")]
        status: String,
        #[prost(string, tag = "3")]
        message: String,
        #[prost(int32, tag = "6")]
        code: i32,
    }

    /// What a client gets of a server that answers with these chunks.
    async fn answer(code: u16, media: &'static str, chunks: Vec<Vec<u8>>) -> Result<Vec<Value>, String> {
        let service = tower::service_fn(move |request: Request<Body>| {
            assert_eq!(request.headers().get(ACCEPT), Some(&EITHER));
            let frames =
                chunks.clone().into_iter().map(|chunk| Ok::<_, Infallible>(http_body::Frame::data(chunk.into())));
            let body = StreamBody::new(stream::iter(frames));
            let answer = Response::builder().status(code).header(CONTENT_TYPE, media).body(body);
            async move { Ok::<_, BoxError>(answer.expect("an answer")) }
        });
        let layered = ClientBuilder::new(service, "default")
            .with_layer(&MapRequestLayer::new(ask))
            .with_layer(&AndThenLayer::new(read));
        let request = Request::get("/api/v1/pods?watch=1").body(Vec::new()).expect("a request");
        let text = layered.build().request_text(request).await.map_err(|error| error.to_string())?;
        Ok(text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect())
    }

    fn status(code: i32) -> Vec<u8> {
        let message = StatusMessage { status: "Failure".to_owned(), message: "gone".to_owned(), code };
        envelope::sealed("v1", "Status", &message)
    }

    #[tokio::test]
    async fn a_refusal_is_understood() {
        let why = answer(410, PROTOBUF, vec![status(410)]).await.expect_err("a refusal");
        assert!(why.contains("gone"), "{why}");
    }

    #[tokio::test]
    async fn who_answers_in_json_is_understood() {
        let pod = json!({ "kind": "Pod" });
        let got = answer(200, "application/json", vec![pod.to_string().into_bytes()]).await;
        assert_eq!(got, Ok(vec![pod]));
    }

    #[tokio::test]
    async fn frames_of_a_watch_may_be_cut_anywhere() {
        let object = status(410);
        // WatchEvent: 1 is its type, 2 its object, in which 1 are the bytes.
        let inner = [vec![10, u8::try_from(object.len()).expect("short")], object].concat();
        let event = [b"\x0a\x05ERROR\x12".to_vec(), vec![u8::try_from(inner.len()).expect("short")], inner].concat();
        let frame = [u32::try_from(event.len()).expect("short").to_be_bytes().to_vec(), event].concat();
        let both = [frame.clone(), frame].concat();
        for size in 1..=both.len() {
            let chunks = both.chunks(size).map(<[u8]>::to_vec).collect();
            let got = answer(200, "application/vnd.kubernetes.protobuf;stream=watch", chunks).await.expect("lines");
            let object =
                json!({ "apiVersion": "v1", "kind": "Status", "status": "Failure", "message": "gone", "code": 410 });
            let line = json!({ "type": "ERROR", "object": object });
            assert_eq!(got, [line.clone(), line], "{size}");
        }
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_an_error_and_no_panic() {
        for body in [b"{}".to_vec(), b"k8s\0".to_vec(), b"k8s\0\xff".to_vec(), envelope::sealed("v1", "Node", &())] {
            answer(200, PROTOBUF, vec![body]).await.expect_err("an error");
        }
    }

    #[test]
    fn a_bind_has_what_binds_say() {
        let target = ObjectReference { kind: Some("Node".into()), name: Some("n1".into()), ..Default::default() };
        let bytes = binding(Binding { metadata: Default::default(), target });
        // Magic; the kind; then the object: empty metadata, and the target.
        assert_eq!(bytes, b"k8s\0\x0a\x0d\x0a\x02v1\x12\x07Binding\x12\x0e\x0a\x00\x12\x0a\x0a\x04Node\x1a\x02n1");
    }

    #[test]
    fn success_is_a_status_too() {
        let mut text = Vec::new();
        let message = StatusMessage { status: "Success".to_owned(), message: String::new(), code: 201 };
        envelope::object(envelope::sealed("v1", "Status", &message).into(), &mut text).expect("an object");
        let status: Status = serde_json::from_slice(&text).expect("a status");
        assert_eq!(status.code, 201);
    }
}
