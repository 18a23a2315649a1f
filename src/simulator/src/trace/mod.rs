//! Public traces as workloads: one file an importer, one call for all of them.
//!
//! An importer reads columns by their header, invents nothing, and says in the workload's notes what its trace leaves
//! open. A bad line is reported and skipped. What is derived is derived on request only ([`options::Derive`]).
//!
//! Not here: playing a workload in virtual time, and scenarios, which are written by hand.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use self::error::{LoadError, SourceError};
use self::options::Options;
use self::workload::Workload;

pub mod error;
pub mod offered;
pub mod options;
pub mod workload;

mod acme;
mod cluster;
mod derive;
mod draft;
mod fields;
mod fit;
mod gang;
mod helios;
mod joblog;
mod json;
mod lines;
mod muri;
mod names;
mod openb;
mod philly;
mod philly_log;
mod problems;
pub(crate) mod random;
mod scale;
mod spot;
mod swf;
mod table;

#[cfg(test)]
pub(crate) mod real_data;
#[cfg(test)]
mod testkit;

/// Pods that a node may hold where a trace does not say: the kubelet's default.
const PODS_PER_NODE: i64 = 110;

/// A format of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Standard Workload Format 2.2, as in the Parallel Workloads Archive.
    Swf,
    /// Microsoft Philly: the original `cluster_job_log`, or the CSV cut that other artifacts carry.
    Philly,
    /// Alibaba cluster-trace-gpu-v2023, a pod list; the node list lies beside it.
    Openb,
    /// SenseTime Helios `cluster_log.csv`.
    Helios,
    /// Shanghai AI Lab Acme `trace_*.csv`.
    Acme,
    /// Alibaba cluster-trace-v2026-spot-gpu `job_info_df.csv`; the node list lies beside it.
    Spot,
    /// The Philly cuts of the Muri artifact.
    Muri,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 7] = [Self::Swf, Self::Philly, Self::Openb, Self::Helios, Self::Acme, Self::Spot, Self::Muri];

    /// The word before the colon of `KIND:PATH`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Swf => "swf",
            Self::Philly => "philly",
            Self::Openb => "openb",
            Self::Helios => "helios",
            Self::Acme => "acme",
            Self::Spot => "spot",
            Self::Muri => "muri",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = SourceError;

    fn from_str(given: &str) -> Result<Self, SourceError> {
        if let Some(kind) = Self::ALL.into_iter().find(|kind| kind.name() == given) {
            return Ok(kind);
        }
        // Manifests are no trace, and are named in the same place.
        let kinds: Vec<&str> = std::iter::once("manifests").chain(Self::ALL.map(Self::name)).collect();
        let nearest = kinds.iter().map(|kind| (distance(given, kind), kind)).min();
        // Three edits turn any short word into any other.
        let nearest =
            nearest.filter(|&(edits, _)| edits <= 2).map_or(String::new(), |(_, name)| format!(" (`{name}`?)"));
        Err(SourceError::Kind { given: fields::cut(given), nearest, kinds: kinds.join(", ") })
    }
}

/// A trace as a user names it: `KIND:PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The format.
    pub kind: Kind,
    /// The job list.
    pub path: PathBuf,
}

impl FromStr for Source {
    type Err = SourceError;

    fn from_str(given: &str) -> Result<Self, SourceError> {
        match given.split_once(':') {
            Some((kind, path)) if !kind.is_empty() && !path.is_empty() => {
                Ok(Self { kind: kind.parse()?, path: path.into() })
            }
            _ => Err(SourceError::Shape { given: fields::cut(given) }),
        }
    }
}

/// Reads a trace. The same file and options give the same workload, to the byte.
pub fn load(kind: Kind, path: &Path, options: &Options) -> Result<Workload, LoadError> {
    options::check(options)?;
    let draft = match kind {
        Kind::Swf => swf::read(path, options)?,
        Kind::Philly => philly::read(path)?,
        Kind::Openb => openb::read(path, options)?,
        Kind::Helios => helios::read(path)?,
        Kind::Acme => acme::read(path)?,
        Kind::Spot => spot::read(path, options)?,
        Kind::Muri => muri::read(path)?,
    };
    draft::finish(draft, path, kind.name(), options)
}

/// Insertions, deletions and replacements between two short words.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, char) in one.chars().take(40).enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (to, &wanted) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(char != wanted);
            diagonal = row[to + 1];
            row[to + 1] = replaced.min(row[to] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_a_kind_and_a_path() {
        let source: Source = "philly:a/b:c.csv".parse().expect("a source");
        assert_eq!(source, Source { kind: Kind::Philly, path: "a/b:c.csv".into() });
        for kind in Kind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
    }

    #[test]
    fn the_same_file_and_seed_give_the_same_workload() {
        let text = "timestamp,duration,num_gpus,cluster\n3,10,1,a\n2,20,16,b\n1,30,2,a\n";
        let derive = options::Derive { gangs: true, tenants: Some(3), priorities: true, ..Default::default() };
        let load = |seed| {
            let options =
                Options { seed, nodes: Some(3), time_compression: 0.5, derive: derive.clone(), ..Default::default() };
            testkit::load_first(Kind::Philly, &[("jobs.csv", text)], &options).expect("loads")
        };
        assert_eq!(load(1), load(1));
        assert!((2..9).any(|seed| load(seed).jobs != load(1).jobs));
    }

    #[test]
    fn a_wrong_kind_is_told_the_nearest() {
        let error = |text: &str| text.parse::<Source>().expect_err("wrong").to_string();
        assert_eq!(
            error("phily:x"),
            "there is no trace kind `phily` (`philly`?); kinds are: manifests, swf, philly, openb, helios, acme, spot, muri"
        );
        assert!(error("kubernetes:x").starts_with("there is no trace kind `kubernetes`; kinds are"));
        for text in ["swf", "swf:", ":x", ""] {
            assert_eq!(
                error(text),
                format!("`{text}` is not KIND:PATH, such as swf:jobs.swf or manifests:cluster.yaml")
            );
        }
    }
}
