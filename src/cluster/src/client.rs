//! Clients of the API server, and how fast they may ask.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use thiserror::Error;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tower::util::{AndThenLayer, MapRequestLayer};

use crate::protobuf;

/// A watch that has been silent for this long is opened again. The server sends a bookmark about once a minute, so
/// only a dead connection is silent for longer.
const SILENCE: Duration = Duration::from_secs(150);

/// Where the API server is, and who asks.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// A kubeconfig; without one, that of the environment, or the service account of this pod.
    pub kubeconfig: Option<PathBuf>,
    /// The server's address, over that of the kubeconfig.
    pub master: Option<String>,
    /// Requests a second; 0 is without limit.
    pub qps: f64,
    /// Requests at once, above the rate.
    pub burst: u32,
    /// What is spoken where both sides know both.
    pub content_type: ContentType,
}

/// How objects are written on the wire, as client-go's `--kube-api-content-type` has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContentType {
    /// `application/vnd.kubernetes.protobuf`, for pods and their binds: what the server writes and reads fastest.
    #[default]
    Protobuf,
    /// `application/json`, for everything.
    Json,
}

impl FromStr for ContentType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            protobuf::PROTOBUF => Ok(Self::Protobuf),
            "application/json" => Ok(Self::Json),
            other => Err(format!("`{other}` is not spoken: write {} or application/json", protobuf::PROTOBUF)),
        }
    }
}

/// Why there is no client.
#[derive(Debug, Error)]
pub enum AccessError {
    /// The kubeconfig cannot be read.
    #[error("the kubeconfig {path} cannot be used: {error}")]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: kube::config::KubeconfigError,
    },
    /// No cluster is named anywhere.
    #[error("no cluster is named: {0}; give --kubeconfig FILE, set KUBECONFIG, or run in a pod with a service account")]
    Nowhere(kube::config::InferConfigError),
    /// The address is none.
    #[error("--master {0} is no address: write https://HOST:PORT")]
    Address(String),
    /// The client cannot be made.
    #[error("the client cannot be made: {0}")]
    Client(#[source] kube::Error),
}

/// Two clients of one server.
#[derive(Clone)]
pub struct Clients {
    /// For lists and watches: tries again by itself.
    pub watches: Client,
    /// For everything else. It never tries again by itself: whether a refused bind or eviction is tried again is the
    /// engine's decision.
    pub calls: Client,
    /// How fast `calls` may be used.
    pub throttle: Throttle,
    /// How `calls` are written.
    pub content_type: ContentType,
}

impl Access {
    /// The configuration of a client.
    pub async fn config(&self) -> Result<Config, AccessError> {
        let mut config = match &self.kubeconfig {
            Some(path) => {
                let unusable = |error| AccessError::Kubeconfig { path: path.clone(), error };
                let kubeconfig = Kubeconfig::read_from(path).map_err(unusable)?;
                Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.map_err(unusable)?
            }
            None => Config::infer().await.map_err(AccessError::Nowhere)?,
        };
        if let Some(master) = &self.master {
            config.cluster_url = master.parse().map_err(|_| AccessError::Address(master.clone()))?;
        }
        Ok(config)
    }

    /// Both clients.
    pub async fn clients(&self) -> Result<Clients, AccessError> {
        let mut config = self.config().await?;
        config.read_timeout = Some(SILENCE);
        let watches = self.client(config.clone())?;
        config.default_retry = false;
        let calls = self.client(config)?;
        let throttle = Throttle::new(self.qps, self.burst);
        Ok(Clients { watches, calls, throttle, content_type: self.content_type })
    }

    fn client(&self, config: Config) -> Result<Client, AccessError> {
        let builder = ClientBuilder::try_from(config).map_err(AccessError::Client)?;
        Ok(match self.content_type {
            ContentType::Json => builder.build(),
            ContentType::Protobuf => builder
                .with_layer(&MapRequestLayer::new(protobuf::ask))
                .with_layer(&AndThenLayer::new(protobuf::read))
                .build(),
        })
    }
}

/// A token bucket in front of the API server, as client-go's `--kube-api-qps` and `--kube-api-burst` have it.
#[derive(Clone)]
pub struct Throttle(Option<Arc<Bucket>>);

struct Bucket {
    /// Time that one request costs.
    cost: Duration,
    /// Time that may be saved up.
    burst: Duration,
    /// When the next request could be made if nothing were saved up.
    next: Mutex<Instant>,
}

impl Throttle {
    /// A bucket that refills with `qps` requests a second and holds `burst`.
    pub fn new(qps: f64, burst: u32) -> Self {
        if qps <= 0.0 || !qps.is_finite() {
            return Self(None);
        }
        let cost = Duration::from_secs_f64(1.0 / qps);
        let burst = cost.saturating_mul(burst.max(1));
        Self(Some(Arc::new(Bucket { cost, burst, next: Mutex::new(Instant::now()) })))
    }

    /// Waits for one's turn, first come, first served.
    pub async fn turn(&self) {
        let Some(bucket) = &self.0 else { return };
        let mut next = bucket.next.lock().await;
        let now = Instant::now();
        let due = (*next).max(now.checked_sub(bucket.burst).unwrap_or(now)) + bucket.cost;
        *next = due;
        if due > now {
            // Held while sleeping: later ones queue up behind.
            tokio::time::sleep_until(due).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_free_and_then_the_rate_holds() {
        let throttle = Throttle::new(100.0, 10);
        tokio::time::advance(Duration::from_secs(5)).await;
        let start = Instant::now();
        for _ in 0..10 {
            throttle.turn().await;
        }
        assert_eq!(start.elapsed(), Duration::ZERO, "the burst");
        for _ in 0..100 {
            throttle.turn().await;
        }
        let passed = start.elapsed().as_millis();
        assert!((990..=1_020).contains(&passed), "100 more at 100 a second took {passed} ms");
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_rate_nobody_waits() {
        let throttle = Throttle::new(0.0, 0);
        let start = Instant::now();
        for _ in 0..1_000 {
            throttle.turn().await;
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
    }
}
