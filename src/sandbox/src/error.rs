use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// Why a control plane, or a part of it, does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file, a folder, a port or a process could not be had.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// What the system answered.
        source: std::io::Error,
    },
    /// The certificates could not be made.
    #[error("certificates: {0}")]
    Certificates(#[from] rcgen::Error),
    /// A part ended while it was waited for. Its folder is left for a look.
    #[error("{part} ended at its start ({status}); the end of {log}:\n{tail}", log = .log.display())]
    Ended {
        /// The program.
        part: &'static str,
        /// How it ended.
        status: ExitStatus,
        /// Its whole log.
        log: PathBuf,
        /// The last lines of it.
        tail: String,
    },
    /// A part runs and does not answer. Its folder is left for a look.
    #[error("{part} is not ready after {after:?}; the end of {log}:\n{tail}", log = .log.display())]
    NotReady {
        /// The program.
        part: &'static str,
        /// How long it was waited for.
        after: Duration,
        /// Its whole log.
        log: PathBuf,
        /// The last lines of it.
        tail: String,
    },
    /// A part was asked for that does not run, or to be started a second time.
    #[error("{0}")]
    Misuse(String),
    /// A kubeconfig that was written here could not be read again.
    #[error("kubeconfig: {0}")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    /// A client could not be made.
    #[error("client: {0}")]
    Client(#[from] kube::Error),
}

impl Error {
    /// For `map_err`: an I/O error with what was tried.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}
