//! What stands beside `profiles`: how often a pod is tried again, and what flags say here.

use super::fields::{self, Level, get};
use super::scalars::{duration, flag, integer, number, text};
use crate::conf::reader::Reader;
use crate::conf::tree::{Entry, Span, Tree};
use crate::scheduling::queue::QueueTimes;

const INT32: i64 = i32::MAX as i64;

/// What the top says for all profiles.
#[derive(Default)]
pub(super) struct Top {
    pub(super) percentage_of_nodes_to_score: Option<u8>,
    pub(super) queue_times: QueueTimes,
}

pub(super) fn read(reader: &mut Reader<'_>, entries: &[Entry]) -> Top {
    if let Some(entry) = get(entries, "parallelism") {
        integer(reader, entry, 1, INT32);
    }
    for key in ["enableProfiling", "enableContentionProfiling", "delayCacheUntilActive"] {
        if let Some(entry) = get(entries, key) {
            flag(reader, entry);
        }
    }
    if let Some(entry) = get(entries, "leaderElection") {
        leader_election(reader, entry);
    }
    if let Some(entry) = get(entries, "clientConnection") {
        client_connection(reader, entry);
    }
    Top {
        percentage_of_nodes_to_score: percentage(reader, get(entries, "percentageOfNodesToScore")),
        queue_times: queue_times(reader, entries),
    }
}

/// A share of the nodes, 0 to 100.
pub(super) fn percentage(reader: &mut Reader<'_>, entry: Option<&Entry>) -> Option<u8> {
    entry.and_then(|entry| integer(reader, entry, 0, 100)).and_then(|value| u8::try_from(value).ok())
}

fn queue_times(reader: &mut Reader<'_>, entries: &[Entry]) -> QueueTimes {
    let mut times = QueueTimes::default();
    let (initial, max) = (get(entries, "podInitialBackoffSeconds"), get(entries, "podMaxBackoffSeconds"));
    for (entry, time) in [(initial, &mut times.initial_backoff_ms), (max, &mut times.max_backoff_ms)] {
        if let Some(seconds) = entry.and_then(|entry| integer(reader, entry, 1, INT32)) {
            *time = seconds * 1_000;
        }
    }
    let Some(at) = max.or(initial) else { return times };
    let (initial, max) = (times.initial_backoff_ms / 1_000, times.max_backoff_ms / 1_000);
    if max < initial {
        let message = format!(
            "`podMaxBackoffSeconds` has to be at least `podInitialBackoffSeconds`, but {max} is less than {initial}"
        );
        let help = format!("write `podMaxBackoffSeconds: {initial}`");
        reader.error(&at.value.at, message, "too small", Some(help));
    }
    if times != QueueTimes::default() {
        let message = "the back-off of pods counts with --profile-only; in sessions it has no effect";
        let help = "a session tries a pod again when something has changed".to_owned();
        reader.warn(&at.at, message, "not in sessions", Some(help));
    }
    times
}

fn leader_election(reader: &mut Reader<'_>, above: &Entry) {
    let Some(entries) = fields::entries(reader, Level::LeaderElection, &above.value, Some(&above.at)) else { return };
    if let Some(entry) = get(entries, "leaderElect") {
        flag(reader, entry);
    }
    let mut times = [15_000_u64, 10_000, 2_000];
    let mut readable = true;
    for (time, key) in times.iter_mut().zip(["leaseDuration", "renewDeadline", "retryPeriod"]) {
        let Some(entry) = get(entries, key) else { continue };
        match duration(reader, entry) {
            Some(0) => {
                let message = format!("`{key}` has to be more than 0");
                reader.error(&entry.value.at, message, "too short", Some("write for example `10s`".to_owned()));
                readable = false;
            }
            Some(ms) => *time = ms,
            None => readable = false,
        }
    }
    let [lease, renew, retry] = times;
    let mut order = |long: &str, short: &str, why: &str| {
        let at = get(entries, long).or_else(|| get(entries, short)).map_or(&above.at, |entry| &entry.value.at);
        let message = format!("`{long}` has to be more than {why}");
        reader.error(at, message, "too short", Some("usual are 15s, 10s and 2s".to_owned()));
    };
    if readable && lease <= renew {
        order("leaseDuration", "renewDeadline", &format!("`renewDeadline`, which is {renew} ms"));
    }
    // Between two tries the elector adds up to a fifth.
    if readable && renew * 5 <= retry * 6 {
        order("renewDeadline", "retryPeriod", &format!("1.2 times `retryPeriod`, which is {retry} ms"));
    }
    if let Some(entry) = get(entries, "resourceLock")
        && let Some(lock) = text(reader, entry)
        && lock != "leases"
    {
        reader.error(&entry.value.at, "`resourceLock` has to be `leases`", "not leases", Some("write `leases`".into()));
    }
    for key in ["resourceName", "resourceNamespace"] {
        if let Some(entry) = get(entries, key)
            && text(reader, entry).is_some_and(|text| text.is_empty())
        {
            reader.error(&entry.value.at, format!("`{key}` is empty"), "empty", Some("take the line out".to_owned()));
        }
    }
    let differs = |entry: &&Entry| entry.key != "leaderElect" || matches!(entry.value.tree, Tree::Bool(false));
    if entries.iter().any(|entry| differs(&entry)) {
        elsewhere(reader, &above.at, "`leaderElection`", "the flags --leader-elect and --leader-elect-* say it");
    }
}

fn client_connection(reader: &mut Reader<'_>, above: &Entry) {
    let Some(entries) = fields::entries(reader, Level::ClientConnection, &above.value, Some(&above.at)) else {
        return;
    };
    for key in ["kubeconfig", "acceptContentTypes", "contentType"] {
        if let Some(entry) = get(entries, key) {
            text(reader, entry);
        }
    }
    if let Some(entry) = get(entries, "qps") {
        number(reader, entry);
    }
    if let Some(entry) = get(entries, "burst") {
        integer(reader, entry, 0, INT32);
    }
    let told = |key: &&str| get(entries, key).is_some();
    if ["kubeconfig", "qps", "burst"].iter().any(told) {
        let flags = "the flags --kubeconfig, --kube-api-qps and --kube-api-burst say it";
        elsewhere(reader, &above.at, "`clientConnection`", flags);
    }
}

/// Warns of what is read, and decided by something else.
fn elsewhere(reader: &mut Reader<'_>, at: &Span, what: &str, who: &str) {
    reader.warn(at, format!("{what} has no effect in this file"), "no effect", Some(who.to_owned()));
}
