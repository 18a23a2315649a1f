//! The schedulers: each a process with the admin's kubeconfig and equal client limits.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, bail};
use krafla_sandbox::Assets;
use krafla_test_bench::memory::peak_bytes;
use krafla_test_bench::workloads::{Kind, Workload};

use crate::server::{Server, cpu_of};

/// Calls a second that each client may make, as in scheduler_perf.
const QPS: u32 = 5_000;

/// kube-scheduler's configuration: its defaults, and those limits.
const KUBE_SCHEDULER: &str = "
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: { leaderElect: false }
clientConnection: { kubeconfig: KUBECONFIG, qps: QPS, burst: QPS }
";

/// A scheduler that is timed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Contender {
    /// Krafla: pods one by one, or sessions where there are gangs.
    Krafla,
    /// The real kube-scheduler.
    KubeScheduler,
    /// No scheduler at all: who makes a pod binds it at once. No scheduler on the same machine can be faster.
    BareBinds,
    /// Any other: a name, and a command for `sh`, in which `{kubeconfig}` is the file.
    Other(String, String),
}

impl FromStr for Contender {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=') {
            Some((name, command)) if !name.is_empty() && !command.is_empty() => {
                Ok(Self::Other(name.to_owned(), command.to_owned()))
            }
            _ => Err("write NAME=COMMAND; {kubeconfig} in the command is replaced by the file".to_owned()),
        }
    }
}

impl Contender {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Krafla => "krafla",
            Self::KubeScheduler => "kube-scheduler",
            Self::BareBinds => "bare binds",
            Self::Other(name, _) => name,
        }
    }

    /// Whether it can place the pods of a workload.
    pub(crate) fn takes_part(&self, workload: &Workload) -> bool {
        match self {
            Self::Krafla | Self::Other(..) => true,
            Self::KubeScheduler => !workload.has_gangs(),
            Self::BareBinds => workload.kind == Kind::Basic,
        }
    }

    /// Starts it, if it is a process. What it says goes to a file beside the server's.
    pub(crate) fn start(&self, krafla: &Path, server: &Server, gangs: bool) -> anyhow::Result<Option<Running>> {
        let (kubeconfig, folder) = (server.control_plane.kubeconfig(), server.control_plane.folder());
        let mut command = match self {
            Self::Krafla => {
                let mut command = Command::new(krafla);
                command.args(["schedule", "--leader-elect=false", "--listen-address=127.0.0.1:0"]);
                command.arg(format!("--kube-api-qps={QPS}")).arg(format!("--kube-api-burst={QPS}"));
                command.arg("--kubeconfig").arg(kubeconfig).env("KRAFLA_LOG", "warn");
                command.env("DEBUG_SOCKET_DIR", folder.join("sockets"));
                if !gangs {
                    command.arg("--profile-only");
                }
                command
            }
            Self::KubeScheduler => {
                let program = Assets::find()?.program("kube-scheduler").context(
                    "there is no kube-scheduler beside the API server; hack/control-plane/build --all makes it",
                )?;
                let file = folder.join("perf-kube-scheduler.yaml");
                let text = KUBE_SCHEDULER
                    .replace("KUBECONFIG", &kubeconfig.display().to_string())
                    .replace("QPS", &QPS.to_string());
                std::fs::write(&file, text)?;
                let mut command = Command::new(program);
                command.arg("--config").arg(file).arg("--secure-port=0");
                command
            }
            Self::BareBinds => return Ok(None),
            Self::Other(_, line) => {
                let mut command = Command::new("sh");
                command
                    .arg("-c")
                    .arg(format!("exec {}", line.replace("{kubeconfig}", &kubeconfig.display().to_string())));
                command
            }
        };
        let log = folder.join(format!("perf-{}.log", self.name()));
        let file = std::fs::File::create(&log)?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let child = command.spawn().with_context(|| format!("{}: cannot be run", self.name()))?;
        Ok(Some(Running { child, log }))
    }
}

/// A scheduler that runs.
pub(crate) struct Running {
    child: Child,
    log: PathBuf,
}

impl Running {
    /// Processor time that it has used.
    pub(crate) fn cpu(&self) -> Duration {
        cpu_of(&self.child.id().to_string())
    }

    /// The most memory that it has held, in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        peak_bytes(&self.child.id().to_string())
    }

    /// `Err` with the end of its log if it has ended.
    pub(crate) fn still_runs(&mut self) -> anyhow::Result<()> {
        let Some(status) = self.child.try_wait()? else { return Ok(()) };
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let tail: Vec<&str> = log.lines().rev().take(10).collect();
        bail!("it ended with {status}:\n{}", tail.into_iter().rev().collect::<Vec<_>>().join("\n"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
