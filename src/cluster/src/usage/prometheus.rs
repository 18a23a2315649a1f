//! Prometheus: the answer to one query, a value for each node.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use krafla_framework::PrometheusSource;
use krafla_model::Name;
use krafla_model::usage::WHOLE_PPM;
use kube::{Api, Client, Config};
use serde::Deserialize;

use super::fetch::{Bounds, LONGEST, get};
use crate::client::Clients;
use crate::perform::text_of;

/// A sample has some 200 bytes.
const BOUNDS: Bounds = Bounds { largest: 16 << 20, longest: LONGEST };
/// Where a pod has the token of its service account.
const OWN_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";
/// The key of a token in a secret.
const TOKEN: &str = "prometheusAuthToken";
/// The label that names the node.
const INSTANCE: &str = "instance";

#[derive(Deserialize)]
struct Answer {
    status: String,
    #[serde(default)]
    error: String,
    data: Option<Data>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    result_type: String,
    result: serde_json::Value,
}

#[derive(Deserialize)]
struct Sample {
    metric: BTreeMap<String, String>,
    value: (f64, String),
}

/// What the query answers for each node, in millionths.
pub(super) async fn samples(clients: &Clients, source: &PrometheusSource) -> Result<BTreeMap<Name, i64>, String> {
    let client = client(&source.url)?;
    let token = token(clients, source).await?;
    ask(&client, source, token.as_deref(), BOUNDS).await
}

async fn ask(
    client: &Client,
    source: &PrometheusSource,
    token: Option<&str>,
    bounds: Bounds,
) -> Result<BTreeMap<Name, i64>, String> {
    let who = format!("Prometheus at {}", source.url);
    let path = format!("/api/v1/query?query={}", encoded(&source.query));
    let body = get(client, &path, token, &who, bounds).await?;
    read(&body).map_err(|why| format!("{who}: {why}"))
}

/// A client of this address alone, which tries nothing twice.
fn client(url: &str) -> Result<Client, String> {
    let address = url.trim_end_matches('/').parse().map_err(|_| format!("{url} is no address"))?;
    let mut config = Config::new(address);
    config.default_retry = false;
    config.connect_timeout = Some(Duration::from_secs(5));
    Client::try_from(config).map_err(|error| text_of(&error))
}

/// Read anew each time: tokens end.
async fn token(clients: &Clients, source: &PrometheusSource) -> Result<Option<String>, String> {
    let Some((namespace, name)) = &source.token else {
        return Ok(tokio::fs::read_to_string(OWN_TOKEN).await.ok().map(|token| token.trim().to_owned()));
    };
    clients.throttle.turn().await;
    let api: Api<Secret> = Api::namespaced(clients.calls.clone(), namespace);
    let secret = api.get(name).await.map_err(|error| format!("the secret {namespace}/{name}: {}", text_of(&error)))?;
    let token = secret.data.and_then(|data| data.get(TOKEN).cloned());
    let token = token.ok_or_else(|| format!("the secret {namespace}/{name} has no key {TOKEN}"))?;
    String::from_utf8(token.0).map(|token| Some(token.trim().to_owned())).map_err(|_| "the token is no text".to_owned())
}

fn read(body: &[u8]) -> Result<BTreeMap<Name, i64>, String> {
    let answer: Answer =
        serde_json::from_slice(body).map_err(|error| format!("its answer is not what it should be: {error}"))?;
    if answer.status != "success" {
        return Err(format!("the query failed: {}", answer.error));
    }
    let data = answer.data.ok_or("its answer has no data")?;
    if data.result_type != "vector" {
        return Err(format!("the query yields a {}, and a vector is needed", data.result_type));
    }
    let samples: Vec<Sample> =
        serde_json::from_value(data.result).map_err(|error| format!("its answer is not what it should be: {error}"))?;
    let mut read = BTreeMap::new();
    for Sample { metric, value: (_, text) } in samples {
        let node = metric.get(INSTANCE).ok_or("a value has no label `instance`; it has to be the node's name")?;
        let value: f64 = text.parse().map_err(|_| format!("the value of {node} is {text:?}, not a number"))?;
        if !(0.0..=1.0).contains(&value) {
            return Err(format!("the value of {node} is {text}, and has to be from 0 to 1"));
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "from 0 to a million")]
        let ppm = (value * WHOLE_PPM as f64).round() as i64;
        if read.insert(Name::from(node.as_str()), ppm).is_some() {
            return Err(format!("there are several values of {node}; the query has to yield one for each node"));
        }
    }
    Ok(read)
}

/// A query in an address.
fn encoded(query: &str) -> String {
    let mut text = String::new();
    for byte in query.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::time::sleep;

    use super::*;

    const REAL: &str = r#"{"status":"success","data":{"resultType":"vector","result":[
        {"metric":{"instance":"n1"},"value":[1704067200.123,"0.9512345"]},
        {"metric":{"__name__":"x","instance":"n2","job":"node"},"value":[1704067200,"0"]}],"stats":{}}}"#;

    #[test]
    fn real_and_wrong_answers() {
        let read_real = read(REAL.as_bytes()).expect("read");
        assert_eq!(read_real, BTreeMap::from([("n1".into(), 951_235), ("n2".into(), 0)]));
        let of =
            |result: &str| format!(r#"{{"status":"success","data":{{"resultType":"vector","result":[{result}]}}}}"#);
        for (body, wanted) in [
            ("<html>".to_owned(), "not what it should be"),
            (
                r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#.to_owned(),
                "the query failed: parse error",
            ),
            (
                r#"{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}"#.to_owned(),
                "a vector is needed",
            ),
            (of(r#"{"metric":{},"value":[1,"0.5"]}"#), "no label `instance`"),
            (of(r#"{"metric":{"instance":"n"},"value":[1,"NaN"]}"#), "has to be from 0 to 1"),
            (of(r#"{"metric":{"instance":"n"},"value":[1,"95"]}"#), "has to be from 0 to 1"),
            (of(r#"{"metric":{"instance":"n"},"value":[1,"much"]}"#), "not a number"),
            (
                of(r#"{"metric":{"instance":"n"},"value":[1,"0"]},{"metric":{"instance":"n"},"value":[1,"0"]}"#),
                "several values of n",
            ),
        ] {
            let why = read(body.as_bytes()).expect_err(&body);
            assert!(why.contains(wanted), "{body}: {why}");
        }
    }

    #[test]
    fn a_query_in_an_address() {
        assert_eq!(encoded("a:b{c=\"d\"} / 2"), "a%3Ab%7Bc%3D%22d%22%7D%20%2F%202");
    }

    /// Stands in for Prometheus: answers one request with these pieces, one every so often.
    async fn stand_in(pieces: Vec<Vec<u8>>, pause: Duration) -> PrometheusSource {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut asked = vec![0; 4_096];
            let n = stream.read(&mut asked).await.expect("a request");
            let asked = String::from_utf8_lossy(&asked[..n]).to_string();
            assert!(asked.starts_with("GET /api/v1/query?query=up%3A%3A1 "), "{asked}");
            assert!(asked.to_lowercase().contains("authorization: bearer secret"), "{asked}");
            for piece in pieces {
                if stream.write_all(&piece).await.is_err() {
                    return;
                }
                sleep(pause).await;
            }
        });
        PrometheusSource { url, query: "up::1".to_owned(), token: None }
    }

    fn head(length: usize) -> Vec<u8> {
        format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n").into_bytes()
    }

    async fn answer(pieces: Vec<Vec<u8>>, pause: Duration, bounds: Bounds) -> Result<BTreeMap<Name, i64>, String> {
        let source = stand_in(pieces, pause).await;
        ask(&client(&source.url).expect("a client"), &source, Some("secret"), bounds).await
    }

    #[tokio::test]
    async fn an_answer_may_come_in_pieces_and_late_but_not_too_late() {
        let body = REAL.as_bytes();
        let pieces = || vec![head(body.len()), body[..50].to_vec(), body[50..].to_vec()];
        let bounds = Bounds { largest: 1 << 20, longest: Duration::from_secs(5) };
        assert_eq!(answer(pieces(), Duration::from_millis(50), bounds).await.expect("read").len(), 2);
        let (began, short) = (Instant::now(), Bounds { longest: Duration::from_millis(200), ..bounds });
        let why = answer(pieces(), Duration::from_secs(20), short).await.expect_err("too late");
        assert!(why.contains("no whole answer within 200 ms"), "{why}");
        assert!(began.elapsed() < Duration::from_secs(5));
    }

    #[tokio::test]
    async fn an_answer_may_not_be_huge() {
        let bounds = Bounds { largest: 1 << 20, longest: Duration::from_secs(5) };
        let pieces = std::iter::once(head(1 << 30)).chain((0..64).map(|_| vec![b' '; 1 << 16])).collect();
        let why = answer(pieces, Duration::from_millis(1), bounds).await.expect_err("too large");
        assert!(why.contains("larger than 1 MiB"), "{why}");
    }

    #[tokio::test]
    async fn an_error_is_said() {
        let bounds = Bounds { largest: 1 << 20, longest: Duration::from_secs(5) };
        let refused = b"HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno".to_vec();
        let why = answer(vec![refused], Duration::ZERO, bounds).await.expect_err("refused");
        assert!(why.contains("it answers 403 Forbidden: no"), "{why}");
    }
}
