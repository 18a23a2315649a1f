//! What a control plane is to be like.

use std::time::Duration;

/// The controllers that run when nothing else is said: those that make, count, quota and remove pods.
///
/// Not among them is what would need a true kubelet (node lifecycle, taint eviction), a cloud or volumes.
pub const CONTROLLERS: [&str; 11] = [
    "cronjob-controller",
    "daemonset-controller",
    "deployment-controller",
    "disruption-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "pod-garbage-collector-controller",
    "replicaset-controller",
    "resourcequota-controller",
    "statefulset-controller",
];

/// Options of a control plane, to be chained.
#[derive(Clone, Debug)]
#[must_use]
pub struct Options {
    pub(crate) controllers: Vec<String>,
    pub(crate) users: Vec<User>,
    pub(crate) api_server_flags: Vec<String>,
    pub(crate) controller_manager_flags: Vec<String>,
    pub(crate) feature_gates: Vec<String>,
    pub(crate) api_server_port: Option<u16>,
    pub(crate) ready_within: Duration,
    pub(crate) keep_folder: bool,
}

/// Somebody whom the API server knows.
#[derive(Clone, Debug)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) groups: Vec<String>,
    pub(crate) token: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            controllers: CONTROLLERS.map(str::to_owned).to_vec(),
            users: Vec::new(),
            api_server_flags: Vec::new(),
            controller_manager_flags: Vec::new(),
            feature_gates: Vec::new(),
            api_server_port: None,
            // All of them take four seconds; a machine that compiles beside them takes longer.
            ready_within: Duration::from_secs(120),
            keep_folder: std::env::var_os("KRAFLA_SANDBOX_KEEP").is_some_and(|value| !value.is_empty()),
        }
    }
}

impl Options {
    /// All controllers of [`CONTROLLERS`], no user but the administrator.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs these controllers of kube-controller-manager, and no others.
    pub fn controllers<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.controllers = names.into_iter().map(Into::into).collect();
        self
    }

    /// Runs this controller too.
    pub fn also_controller(mut self, name: impl Into<String>) -> Self {
        self.controllers.push(name.into());
        self
    }

    /// Runs no kube-controller-manager at all. It is a second quicker to start.
    pub fn no_controllers(mut self) -> Self {
        self.controllers.clear();
        self
    }

    /// Lets a user in, with a token of its own. What it may do is for RBAC objects to say: at first nothing. A service
    /// account is a user named `system:serviceaccount:<namespace>:<name>`, and gets its usual groups.
    pub fn user(mut self, name: impl Into<String>, groups: &[&str]) -> Self {
        let name = name.into();
        let mut groups: Vec<_> = groups.iter().map(|group| (*group).to_owned()).collect();
        if let Some(account) = name.strip_prefix("system:serviceaccount:") {
            let namespace = account.split(':').next().unwrap_or_default();
            groups.extend(["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]);
        }
        self.users.push(User { name, groups, token: token() });
        self
    }

    /// The same, with a token of the caller's choice.
    pub fn user_with_token(self, name: impl Into<String>, groups: &[&str], token: impl Into<String>) -> Self {
        let mut options = self.user(name, groups);
        if let Some(user) = options.users.last_mut() {
            user.token = token.into();
        }
        options
    }

    /// A flag for kube-apiserver, with its dashes, such as `--runtime-config=scheduling.k8s.io/v1beta1=true`. It stands
    /// after ours, and so wins.
    pub fn api_server_flag(mut self, flag: impl Into<String>) -> Self {
        self.api_server_flags.push(flag.into());
        self
    }

    /// A flag for kube-controller-manager.
    pub fn controller_manager_flag(mut self, flag: impl Into<String>) -> Self {
        self.controller_manager_flags.push(flag.into());
        self
    }

    /// Turns a feature on in both, such as `GenericWorkload`.
    pub fn feature(mut self, name: &str) -> Self {
        self.feature_gates.push(format!("{name}=true"));
        self
    }

    /// Turns a feature off in both.
    pub fn without_feature(mut self, name: &str) -> Self {
        self.feature_gates.push(format!("{name}=false"));
        self
    }

    /// The port of kube-apiserver, instead of a free one.
    pub fn api_server_port(mut self, port: u16) -> Self {
        self.api_server_port = Some(port);
        self
    }

    /// How long each part may take until it answers; two minutes by default.
    pub fn ready_within(mut self, time: Duration) -> Self {
        self.ready_within = time;
        self
    }

    /// Leaves the folder with data and logs after the end, as `KRAFLA_SANDBOX_KEEP=1` in the environment does for all.
    pub fn keep_folder(mut self) -> Self {
        self.keep_folder = true;
        self
    }
}

/// Not to be guessed by others on this machine; from the seeds that the standard library has from the system.
pub(crate) fn token() -> String {
    use std::hash::{BuildHasher as _, RandomState};
    let part = || RandomState::new().hash_one("krafla sandbox");
    format!("{:016x}{:016x}", part(), part())
}
