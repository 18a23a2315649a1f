//! When pods get their node, as a watch sees it, and the figures of scheduler_perf from that.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use futures::{AsyncBufReadExt, StreamExt};
use kube::Client;
use kube::api::{Request, WatchParams};
use serde::Deserialize;
use tokio::task::JoinHandle;

/// How often the count is taken.
const SAMPLE: Duration = Duration::from_secs(1);

/// A watch of all pods, which notes when one first has a node.
pub(crate) struct Counter {
    bound: Arc<Mutex<Vec<(String, Instant)>>>,
    watch: JoinHandle<anyhow::Result<()>>,
}

#[derive(Deserialize)]
struct Change {
    object: Seen,
}

#[derive(Deserialize)]
struct Seen {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    name: String,
}

#[derive(Default, Deserialize)]
struct Spec {
    #[serde(default, rename = "nodeName")]
    node: Option<String>,
}

impl Counter {
    /// Begins to watch. No pod is there yet.
    pub(crate) fn start(client: Client) -> Self {
        let bound: Arc<Mutex<Vec<(String, Instant)>>> = Arc::default();
        let watch = tokio::spawn(watch(client, Arc::clone(&bound)));
        Self { bound, watch }
    }

    /// Pods that have a node and whose name begins so.
    pub(crate) fn bound(&self, prefix: &str) -> usize {
        let bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        bound.iter().filter(|(name, _)| name.starts_with(prefix)).count()
    }

    /// Waits until `n` pods whose name begins so have a node. `Err` if none gets one for `patience`.
    pub(crate) async fn until(&self, prefix: &str, n: usize, patience: Duration) -> anyhow::Result<()> {
        let mut last = (self.bound(prefix), Instant::now());
        loop {
            let now = self.bound(prefix);
            if now >= n {
                return Ok(());
            }
            if self.watch.is_finished() {
                bail!("the watch of pods has ended");
            }
            if now > last.0 {
                last = (now, Instant::now());
            }
            if last.1.elapsed() > patience {
                bail!("{now} of {n} pods have a node, and none got one for {} s", patience.as_secs());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Figures of the pods whose name begins so, from `begun` on.
    pub(crate) fn figures(&self, prefix: &str, begun: Instant) -> Figures {
        let bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        let times = bound.iter().filter(|(name, _)| name.starts_with(prefix));
        figures(times.map(|(_, at)| at.saturating_duration_since(begun)).collect())
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

async fn watch(client: Client, bound: Arc<Mutex<Vec<(String, Instant)>>>) -> anyhow::Result<()> {
    let request = Request::new("/api/v1/pods").watch(&WatchParams::default().timeout(290), "0")?;
    let mut seen = BTreeSet::new();
    loop {
        let mut lines = std::pin::pin!(client.request_stream(request.clone()).await?.lines());
        while let Some(line) = lines.next().await {
            let line = line.context("the watch of pods")?;
            let Ok(Change { object }) = serde_json::from_str(&line) else { continue };
            if object.spec.node.is_some() && seen.insert(object.metadata.name.clone()) {
                bound.lock().unwrap_or_else(PoisonError::into_inner).push((object.metadata.name, Instant::now()));
            }
        }
    }
}

/// Pods a second, by upstream's method: counted every second, the first second left out, and seconds without any pod
/// share those of the next.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    pub(crate) average: f64,
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    /// The longest time between two pods.
    pub(crate) longest_gap: Duration,
}

#[allow(clippy::cast_precision_loss, reason = "rates for people")]
fn figures(mut times: Vec<Duration>) -> Figures {
    times.sort_unstable();
    let longest_gap = times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default();
    let Some(last) = times.last() else { return Figures::default() };
    let n_samples = usize::try_from(last.as_secs()).unwrap_or(0) + 1;
    let mut counts = vec![0_usize; n_samples];
    for time in &times {
        counts[usize::try_from(time.as_secs()).unwrap_or(0)] += 1;
    }
    let (mut samples, mut skipped) = (Vec::new(), 0);
    // The last second is not whole.
    let whole = if n_samples > 2 { &counts[1..n_samples - 1] } else { &counts[..] };
    for &count in whole {
        if count == 0 {
            skipped += 1;
            continue;
        }
        let each = count as f64 / (skipped + 1) as f64 / SAMPLE.as_secs_f64();
        samples.extend(std::iter::repeat_n(each, skipped + 1));
        skipped = 0;
    }
    samples.sort_by(f64::total_cmp);
    let at = |percent: usize| {
        let place = (samples.len() * percent).div_ceil(100).saturating_sub(1);
        samples.get(place).copied().unwrap_or(0.0)
    };
    let average = samples.iter().sum::<f64>() / samples.len().max(1) as f64;
    Figures { average, p50: at(50), p90: at(90), p99: at(99), longest_gap }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_without_a_pod_share_those_of_the_next() {
        let at = |seconds: f64| Duration::from_secs_f64(seconds);
        let mut times = vec![at(0.5)];
        times.extend((0..100).map(|i| at(1.0 + f64::from(i) / 200.0)));
        times.extend((0..60).map(|i| at(3.0 + f64::from(i) / 200.0)));
        times.push(at(4.2));
        let figures = figures(times);
        // 100 in the second second, none in the third, 60 in the fourth: 100, 30, 30.
        assert!((figures.average - 160.0 / 3.0).abs() < 1e-9, "{figures:?}");
        assert_eq!((figures.p50, figures.p99), (30.0, 100.0));
        assert!(figures.longest_gap > Duration::from_millis(1_400));
    }
}
