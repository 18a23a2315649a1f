//! kube-scheduler's log, as far as it tells of scores and of preemption.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use anyhow::Context as _;

/// What begins a line about one plugin's score of one node, after its header.
const SCORED: &str = "] \"Plugin scored node for pod\" ";

/// The same about a victim that was evicted, and about the end of a preemption.
const EVICTED: &str = "] \"Preemptor Pod preempted victim Pod\" ";
const DONE: &str = "] \"Async Preemption finished completely\" ";

/// A preemption, as the log tells of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Preempted {
    /// The node.
    pub(crate) node: String,
    /// Who was evicted, as `namespace/name`.
    pub(crate) victims: Vec<String>,
    /// Whether all of them were.
    pub(crate) done: bool,
}

/// Scores by node, then by plugin.
type Scores = BTreeMap<String, BTreeMap<String, i64>>;

/// A log that is read while it grows.
pub(crate) struct Log {
    file: BufReader<File>,
    /// The beginning of a line whose end has not been written yet.
    begun: String,
    /// By `namespace/name`.
    scores: BTreeMap<String, Scores>,
    preemptions: BTreeMap<String, Preempted>,
}

impl Log {
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let file = File::open(path).with_context(|| path.display().to_string())?;
        Ok(Self {
            file: BufReader::new(file),
            begun: String::new(),
            scores: BTreeMap::new(),
            preemptions: BTreeMap::new(),
        })
    }

    /// The scores for a pod. What was said of others is forgotten.
    pub(crate) fn scores(&mut self, pod: &str) -> anyhow::Result<Scores> {
        self.read()?;
        let scores = self.scores.remove(pod).unwrap_or_default();
        self.scores.clear();
        Ok(scores)
    }

    /// What a pod's preemption has come to; `None` if it began none.
    pub(crate) fn preemption(&mut self, pod: &str) -> anyhow::Result<Option<Preempted>> {
        self.read()?;
        Ok(self.preemptions.get(pod).cloned())
    }

    fn read(&mut self) -> anyhow::Result<()> {
        while self.file.read_line(&mut self.begun)? > 0 {
            if !self.begun.ends_with('\n') {
                continue;
            }
            if let Some((pod, plugin, node, score)) = scored(&self.begun) {
                let nodes = self.scores.entry(pod.to_owned()).or_default();
                nodes.entry(node.to_owned()).or_default().insert(plugin.to_owned(), score);
            } else if let Some((preemptor, node, victim)) = evicted(&self.begun) {
                let preempted = self.preemptions.entry(preemptor.to_owned()).or_default();
                preempted.node = node.to_owned();
                match victim {
                    Some(victim) => preempted.victims.push(victim.to_owned()),
                    None => preempted.done = true,
                }
            }
            self.begun.clear();
        }
        Ok(())
    }
}

/// Preemptor, node and victim of a line; the end of a preemption has no victim.
fn evicted(line: &str) -> Option<(&str, &str, Option<&str>)> {
    let (_, fields) = line.split_once(EVICTED).or_else(|| line.split_once(DONE))?;
    Some((quoted(fields, "preemptor")?, quoted(fields, "node")?, quoted(fields, "victim")))
}

/// The text of a field.
fn quoted<'a>(fields: &'a str, key: &str) -> Option<&'a str> {
    fields.split_once(&format!("{key}=\""))?.1.split('"').next()
}

/// Pod, plugin, node and score of a line.
fn scored(line: &str) -> Option<(&str, &str, &str, i64)> {
    let (_, fields) = line.split_once(SCORED)?;
    let score = fields.split_once("score=")?.1.trim().parse().ok()?;
    Some((quoted(fields, "pod")?, quoted(fields, "plugin")?, quoted(fields, "node")?, score))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_about_a_score() {
        let line = "I1130 14:01:02.000000 12 schedule_one.go:984] \"Plugin scored node for pod\" pod=\"red/p-1\" \
                    plugin=\"NodeAffinity\" node=\"n-3\" score=200\n";
        assert_eq!(scored(line), Some(("red/p-1", "NodeAffinity", "n-3", 200)));
        assert_eq!(scored("I1130 something else"), None);
    }

    #[test]
    fn lines_about_a_preemption() {
        let line = "I1130 14:01:02.000000 12 executor.go:153] \"Preemptor Pod preempted victim Pod\" \
                    preemptor=\"red/p\" victim=\"blue/v\" node=\"n\"\n";
        assert_eq!(evicted(line), Some(("red/p", "n", Some("blue/v"))));
        let line = "I1130 14:01:02.000000 12 executor.go:310] \"Async Preemption finished completely\" \
                    preemptor=\"red/p\" node=\"n\" result=\"success\"\n";
        assert_eq!(evicted(line), Some(("red/p", "n", None)));
    }
}
