//! When pods get their node, as the API server itself notes it, and the figures of scheduler_perf from that.
//!
//! A watch of the pods would take the server's time, and on a busy server it is seconds late: what it shows as a pause
//! between two binds is none. The audit log has the moment of each bind, and costs both schedulers the same little.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;
use tempfile::TempDir;

/// How often the count is taken.
const SAMPLE: Duration = Duration::from_secs(1);
/// Only binds are noted, and only once they are done.
const POLICY: &str = "
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [create]
  resources: [{ group: '', resources: [pods/binding] }]
- level: None
";

/// Where an API server notes binds.
pub(crate) struct AuditLog {
    folder: TempDir,
}

impl AuditLog {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let folder = TempDir::new().context("a folder for the audit log")?;
        std::fs::write(folder.path().join("policy.yaml"), POLICY)?;
        File::create(folder.path().join("audit.log"))?;
        Ok(Self { folder })
    }

    /// Flags of the API server.
    pub(crate) fn flags(&self) -> [String; 2] {
        let folder = self.folder.path().display();
        [format!("--audit-policy-file={folder}/policy.yaml"), format!("--audit-log-path={folder}/audit.log")]
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("audit.log")
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Noted {
    object_ref: Object,
    response_status: Status,
    stage_timestamp: Timestamp,
}

#[derive(Deserialize)]
struct Object {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct Status {
    code: u16,
}

/// Reads the log while it grows.
pub(crate) struct Counter {
    lines: BufReader<File>,
    /// A line of which the end has not been written yet.
    begun: String,
    bound: BTreeMap<String, Timestamp>,
}

impl Counter {
    pub(crate) fn of(log: &AuditLog) -> anyhow::Result<Self> {
        let path = log.path();
        let open = |path: &Path| File::open(path).with_context(|| path.display().to_string());
        Ok(Self { lines: BufReader::new(open(&path)?), begun: String::new(), bound: BTreeMap::new() })
    }

    fn read(&mut self) -> anyhow::Result<()> {
        while self.lines.read_line(&mut self.begun)? > 0 && self.begun.ends_with('\n') {
            let noted: Noted = serde_json::from_str(&self.begun).context("the audit log")?;
            if noted.response_status.code < 300 {
                self.bound.entry(noted.object_ref.name).or_insert(noted.stage_timestamp);
            }
            self.begun.clear();
        }
        Ok(())
    }

    /// Pods that have a node and whose name begins so.
    fn bound(&self, prefix: &str) -> usize {
        self.bound.keys().filter(|name| name.starts_with(prefix)).count()
    }

    /// Waits until `n` pods whose name begins so have a node. `Err` if none gets one for `patience`.
    pub(crate) async fn until(&mut self, prefix: &str, n: usize, patience: Duration) -> anyhow::Result<()> {
        let mut last = (self.bound(prefix), Instant::now());
        loop {
            self.read()?;
            let now = self.bound(prefix);
            if now >= n {
                return Ok(());
            }
            if now > last.0 {
                last = (now, Instant::now());
            }
            if last.1.elapsed() > patience {
                bail!("{now} of {n} pods have a node, and none got one for {} s", patience.as_secs());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Figures of the pods whose name begins so, from `begun` on.
    pub(crate) fn figures(&self, prefix: &str, begun: Timestamp) -> Figures {
        let since = |at: &Timestamp| Duration::try_from(at.duration_since(begun)).unwrap_or_default();
        figures(self.bound.iter().filter(|(name, _)| name.starts_with(prefix)).map(|(_, at)| since(at)).collect())
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
