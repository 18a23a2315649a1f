//! Why a trace cannot be loaded at all.
//!
//! A bad line is no error: it becomes a [`Problem`](super::workload::Problem) beside the workload, and the rest loads.

use std::io;
use std::path::PathBuf;

/// A trace that cannot be used, by what the user has to do about it.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file system refused.
    #[error("{}: cannot be read", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file that the trace needs beside it is not there.
    #[error("{}: not found, and {needed_for} needs it", path.display())]
    NoSibling {
        /// The file that is missing.
        path: PathBuf,
        /// What cannot be done without it.
        needed_for: &'static str,
    },
    /// The file is larger than the importer takes.
    #[error("{}: larger than the {limit} bytes that are read; cut it", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit in bytes.
        limit: u64,
    },
    /// The file has more lines than the importer takes.
    #[error("{}: more than the {limit} lines that are read; cut it", path.display())]
    TooManyLines {
        /// The file.
        path: PathBuf,
        /// The limit in lines.
        limit: u64,
    },
    /// The file is not what its kind says: a pointer, an archive, an empty file.
    #[error("{}: {what}", path.display())]
    NotATrace {
        /// The file.
        path: PathBuf,
        /// What it is, and what to do.
        what: String,
    },
    /// The header lacks a column.
    #[error("{}: no column `{column}`{aliases}; the columns are: {found}", path.display())]
    NoColumn {
        /// The file.
        path: PathBuf,
        /// The column.
        column: &'static str,
        /// Other names that would do, as a part of the sentence.
        aliases: String,
        /// The columns of the file.
        found: String,
    },
    /// No line gave a job.
    #[error("{}: no job could be read{first}", path.display())]
    NoJobs {
        /// The file.
        path: PathBuf,
        /// The first problem, as a part of the sentence.
        first: String,
    },
    /// An option has no meaning.
    #[error("{option}: {message}")]
    Option {
        /// The option.
        option: &'static str,
        /// What is wrong with its value.
        message: String,
    },
}

/// `KIND:PATH` that names no trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// There is no colon, or nothing on one side of it.
    #[error("`{given}` is not KIND:PATH, such as swf:jobs.swf or manifests:cluster.yaml")]
    Shape {
        /// What was given.
        given: String,
    },
    /// The kind does not exist.
    #[error("there is no trace kind `{given}`{nearest}; kinds are: {kinds}")]
    Kind {
        /// What was given.
        given: String,
        /// The nearest kind, as a part of the sentence; empty if none is near.
        nearest: String,
        /// All kinds.
        kinds: String,
    },
}
