//! Where the programs come from.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The programs without which there is no control plane.
const NEEDED: [&str; 3] = ["etcd", "kube-apiserver", "kube-controller-manager"];
/// As `hack/control-plane/build` names its folder.
const FOLDER: &str = "krafla/control-plane-1.37.2";
const SCRIPT: &str = "hack/control-plane/build";

/// A folder with the programs of a control plane.
#[derive(Clone, Debug)]
pub struct Assets {
    folder: PathBuf,
}

/// Why there are no programs. Its text says what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Missing {
    /// `KUBEBUILDER_ASSETS` names a folder that lacks some.
    #[error("KUBEBUILDER_ASSETS names {folder}, which has no {lacks}; put them there, or unset it", folder = .folder.display())]
    Incomplete {
        /// The folder.
        folder: PathBuf,
        /// The programs that are not in it.
        lacks: String,
    },
    /// Neither the programs nor what builds them.
    #[error(
        "there is no etcd, kube-apiserver and kube-controller-manager on this machine, and {why}; install Go and run \
         hack/control-plane/build in a checkout of Krafla, or set KUBEBUILDER_ASSETS to a folder that has them"
    )]
    NoBuild {
        /// What is missing for a build.
        why: &'static str,
    },
    /// The build failed. It has said why on standard error.
    #[error("{script} failed: {why}; its messages are above, and it can be run again by hand", script = .script.display())]
    BuildFailed {
        /// The script.
        script: PathBuf,
        /// How it failed.
        why: String,
    },
}

impl Assets {
    /// Finds the programs: in `KUBEBUILDER_ASSETS`; or else where `hack/control-plane/build` puts them; or else by
    /// running it, which takes minutes the first time and says so on standard error.
    pub fn find() -> Result<Self, Missing> {
        if let Some(folder) = variable("KUBEBUILDER_ASSETS") {
            let lacks = lacks(&folder);
            return if lacks.is_empty() {
                Ok(Self { folder })
            } else {
                Err(Missing::Incomplete { folder, lacks: lacks.join(", ") })
            };
        }
        if let Some(folder) = built_folder().filter(|folder| lacks(folder).is_empty()) {
            return Ok(Self { folder });
        }
        let script = script().ok_or(Missing::NoBuild { why: "this is not a checkout of Krafla" })?;
        if !has_go() {
            return Err(Missing::NoBuild { why: "there is no Go to build them" });
        }
        build(&script)
    }

    /// The programs for a test, or nothing when it is to be skipped: then one line on standard error says so. With
    /// `KRAFLA_E2E=required` in the environment, nothing is skipped.
    ///
    /// # Panics
    ///
    /// When nothing may be skipped, and when `KUBEBUILDER_ASSETS` names a folder that lacks a program.
    pub fn for_test() -> Option<Self> {
        // A process looks, builds and complains once, for all of its tests.
        static FOUND: OnceLock<Result<Assets, Missing>> = OnceLock::new();
        let found = FOUND.get_or_init(|| {
            let found = Self::find();
            if let Err(missing) = &found {
                // Past the test harness, which holds back what a test that passes prints.
                drop(writeln!(std::io::stderr(), "\nNOT TESTED end to end: {missing}"));
            }
            found
        });
        let missing = match found {
            Ok(assets) => return Some(assets.clone()),
            Err(missing) => missing,
        };
        assert!(
            std::env::var_os("KRAFLA_E2E").is_none_or(|value| value != "required"),
            "KRAFLA_E2E=required: {missing}"
        );
        // Somebody said where they are, and erred.
        assert!(!matches!(missing, Missing::Incomplete { .. }), "{missing}");
        None
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A program of the folder, if it is there: `kube-scheduler` after `hack/control-plane/build --all`.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        let path = self.folder.join(name);
        path.is_file().then_some(path)
    }
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn lacks(folder: &Path) -> Vec<&'static str> {
    NEEDED.into_iter().filter(|name| !folder.join(name).is_file()).collect()
}

/// Where the script puts them; it says the same in bash.
fn built_folder() -> Option<PathBuf> {
    variable("KRAFLA_CONTROL_PLANE").or_else(|| {
        let cache = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")))?;
        Some(cache.join(FOLDER))
    })
}

/// The script of the checkout that this was built from or is run in.
fn script() -> Option<PathBuf> {
    let here = std::env::current_dir().ok();
    [Some(PathBuf::from(env!("CARGO_MANIFEST_DIR"))), here]
        .into_iter()
        .flatten()
        .find_map(|start| start.ancestors().map(|folder| folder.join(SCRIPT)).find(|script| script.is_file()))
}

fn has_go() -> bool {
    let version = Command::new("go").arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

fn build(script: &Path) -> Result<Assets, Missing> {
    let failed = |why: String| Missing::BuildFailed { script: script.to_owned(), why };
    let output = Command::new(script)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(output.status.to_string()));
    }
    let folder = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let lacks = lacks(&folder);
    if lacks.is_empty() { Ok(Assets { folder }) } else { Err(failed(format!("it made no {}", lacks.join(", ")))) }
}
