//! kube-scheduler's log, as far as it tells of scores.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use anyhow::Context as _;

/// What begins a line about one plugin's score of one node, after its header.
const SCORED: &str = "] \"Plugin scored node for pod\" ";

/// Scores by node, then by plugin.
type Scores = BTreeMap<String, BTreeMap<String, i64>>;

/// A log that is read while it grows.
pub(crate) struct Log {
    file: BufReader<File>,
    /// The beginning of a line whose end has not been written yet.
    begun: String,
    /// By `namespace/name`.
    scores: BTreeMap<String, Scores>,
}

impl Log {
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let file = File::open(path).with_context(|| path.display().to_string())?;
        Ok(Self { file: BufReader::new(file), begun: String::new(), scores: BTreeMap::new() })
    }

    /// What was said of a pod so far. Others are forgotten.
    pub(crate) fn scores(&mut self, pod: &str) -> anyhow::Result<Scores> {
        while self.file.read_line(&mut self.begun)? > 0 {
            if !self.begun.ends_with('\n') {
                continue;
            }
            if let Some((pod, plugin, node, score)) = read(&self.begun) {
                let nodes = self.scores.entry(pod.to_owned()).or_default();
                nodes.entry(node.to_owned()).or_default().insert(plugin.to_owned(), score);
            }
            self.begun.clear();
        }
        let scores = self.scores.remove(pod).unwrap_or_default();
        self.scores.clear();
        Ok(scores)
    }
}

/// Pod, plugin, node and score of a line.
fn read(line: &str) -> Option<(&str, &str, &str, i64)> {
    let (_, fields) = line.split_once(SCORED)?;
    let quoted = |key: &str| fields.split_once(key)?.1.split('"').next();
    let score = fields.split_once("score=")?.1.trim().parse().ok()?;
    Some((quoted("pod=\"")?, quoted("plugin=\"")?, quoted("node=\"")?, score))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_about_a_score() {
        let line = "I1130 14:01:02.000000 12 schedule_one.go:984] \"Plugin scored node for pod\" pod=\"red/p-1\" \
                    plugin=\"NodeAffinity\" node=\"n-3\" score=200\n";
        assert_eq!(read(line), Some(("red/p-1", "NodeAffinity", "n-3", 200)));
        assert_eq!(read("I1130 something else"), None);
    }
}
