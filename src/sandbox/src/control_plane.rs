//! The processes of a control plane, and the way to reach it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Namespace;
use kube::api::GetParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::Request;
use kube::{Api, Client, Config};
use serde_json::json;

use crate::assets::Assets;
use crate::certificates::Certificates;
use crate::error::Error;
use crate::nursery::{Nursery, Part};
use crate::options::{Options, User, token};
use crate::ports::Port;

/// The user that may do everything.
const ADMIN: &str = "admin";
/// How often a part that starts is asked whether it is ready, and how long it may take to answer.
const ASK_EVERY: Duration = Duration::from_millis(50);
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Admission plugins that do harm here: each taints, mounts or holds back something that only a part which does not run
/// would lift again.
const NO_ADMISSION: &str = "TaintNodesByCondition,ServiceAccount,StorageObjectInUseProtection";

/// A running control plane. Dropped, its processes are killed and its folder is removed; the same happens when this
/// process dies, so that it may stand in a `static`.
#[derive(Debug)]
pub struct ControlPlane {
    // In this order they are dropped: parts first, and the nursery, which removes the folder, last.
    kube_scheduler: Option<Part>,
    controller_manager: Option<Part>,
    api_server: Option<Part>,
    etcd: Option<Part>,
    assets: Assets,
    options: Options,
    folder: PathBuf,
    etcd_port: Port,
    api_server_port: Port,
    controller_manager_port: Port,
    authority: String,
    users: BTreeMap<String, Access>,
    nursery: Nursery,
}

/// Where a part stands, if it runs.
type PartOf = fn(&mut ControlPlane) -> &mut Option<Part>;

/// How one user gets in.
#[derive(Debug)]
struct Access {
    token: String,
    kubeconfig: PathBuf,
    config: Config,
}

impl ControlPlane {
    /// Starts the parts, and waits until each answers. Takes about four seconds and 420 MB on two
    /// cores; without controllers half a second and 90 MB less.
    ///
    /// When a part does not come up, the folder with the logs is left, and the error says where.
    pub async fn start(assets: &Assets, options: Options) -> Result<Self, Error> {
        let mut this = Self::prepare(assets, options).await?;
        let begun = Instant::now();
        let done = this.start_parts().await;
        tracing::debug!(took = ?begun.elapsed(), url = this.url(), ok = done.is_ok(), "control plane");
        done.map(|()| this)
    }

    /// Where the API server listens.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.api_server_port.number)
    }

    /// The certificate authority of its servers, in PEM.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The folder with keys, data, and a log a part.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A kubeconfig file that may do everything.
    pub fn kubeconfig(&self) -> &Path {
        &self.access(ADMIN).kubeconfig
    }

    /// The kubeconfig file of a user of the options.
    ///
    /// # Panics
    ///
    /// When the options named no such user. The same holds for the other functions that take one.
    pub fn kubeconfig_for(&self, user: &str) -> &Path {
        &self.access(user).kubeconfig
    }

    /// The bearer token of a user.
    pub fn token_for(&self, user: &str) -> &str {
        &self.access(user).token
    }

    /// The configuration of a client that may do everything.
    pub fn config(&self) -> Config {
        self.config_for(ADMIN)
    }

    /// The configuration of a user's client.
    pub fn config_for(&self, user: &str) -> Config {
        self.access(user).config.clone()
    }

    /// A client that may do everything. A new one each time, since a client belongs to the runtime that made it.
    pub fn client(&self) -> Result<Client, Error> {
        self.client_for(ADMIN)
    }

    /// A user's client.
    pub fn client_for(&self, user: &str) -> Result<Client, Error> {
        Ok(Client::try_from(self.config_for(user))?)
    }

    /// Process ids of the API server and of etcd, as far as they run.
    pub fn server_processes(&self) -> Vec<u32> {
        [&self.api_server, &self.etcd].into_iter().flatten().map(Part::id).collect()
    }

    /// Kills the API server, as a crash would: connections break, and what was acknowledged is kept.
    pub fn kill_api_server(&mut self) {
        self.api_server = None;
    }

    /// Starts a killed API server again, at the same port and with the same data, and waits until it is ready.
    pub async fn start_api_server(&mut self) -> Result<(), Error> {
        let port = self.api_server_port.number;
        let flags = [
            format!("--etcd-servers={}", self.etcd_url()),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            self.file_flag("--tls-cert-file", "server.crt"),
            self.file_flag("--tls-private-key-file", "server.key"),
            self.file_flag("--token-auth-file", "tokens.csv"),
            self.file_flag("--service-account-key-file", "service-account.pub"),
            self.file_flag("--service-account-signing-key-file", "service-account.key"),
            format!("--service-account-issuer=https://127.0.0.1:{port}"),
            "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            format!("--disable-admission-plugins={NO_ADMISSION}"),
            "--allow-privileged=true".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
            // A test's burst of calls is to meet the scheduler's limits, not the server's; these are ten times the usual.
            "--enable-priority-and-fairness=false".to_owned(),
            "--max-requests-inflight=4000".to_owned(),
            "--max-mutating-requests-inflight=2000".to_owned(),
        ];
        let flags = flags.into_iter().chain(self.gates()).chain(self.options.api_server_flags.clone()).collect();
        self.spawn("kube-apiserver", |this| &mut this.api_server, flags)?;
        let config = self.config();
        self.wait(|this| &mut this.api_server, probe(config, "readyz")).await?;
        self.wait_for_default_namespace().await
    }

    /// Kills etcd and starts it again at the same port and with the same data; the API server meanwhile answers with
    /// errors, and recovers by itself.
    pub async fn restart_etcd(&mut self) -> Result<(), Error> {
        self.kill_etcd();
        self.start_etcd().await
    }

    /// Kills etcd alone.
    pub fn kill_etcd(&mut self) {
        self.etcd = None;
    }

    /// Starts a killed etcd again, and waits until it is healthy.
    pub async fn start_etcd(&mut self) -> Result<(), Error> {
        let data = self.folder.join("etcd");
        let flags = vec![
            format!("--data-dir={}", data.display()),
            format!("--listen-client-urls={}", self.etcd_url()),
            format!("--advertise-client-urls={}", self.etcd_url()),
            // Nobody else joins, so any port will do.
            "--listen-peer-urls=http://127.0.0.1:0".to_owned(),
            // Killing the process loses nothing all the same: only a crash of the machine would.
            "--unsafe-no-fsync".to_owned(),
            "--log-level=warn".to_owned(),
        ];
        self.spawn("etcd", |this| &mut this.etcd, flags)?;
        let config = Config::new(self.etcd_url().parse().map_err(|error| Error::Misuse(format!("{error}")))?);
        self.wait(|this| &mut this.etcd, probe(config, "health")).await
    }

    /// Kills kube-controller-manager, so that no controller acts from now on.
    pub fn kill_controller_manager(&mut self) {
        self.controller_manager = None;
    }

    /// Starts a killed kube-controller-manager again. Does nothing when the options want no controllers.
    pub async fn start_controller_manager(&mut self) -> Result<(), Error> {
        if self.options.controllers.is_empty() {
            return Ok(());
        }
        let port = self.controller_manager_port.number;
        let flags = [
            format!("--kubeconfig={}", self.kubeconfig().display()),
            format!("--controllers={}", self.options.controllers.join(",")),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            self.file_flag("--tls-cert-file", "server.crt"),
            self.file_flag("--tls-private-key-file", "server.key"),
            "--leader-elect=false".to_owned(),
            // Its usual 20 calls a second would make a test wait for pods rather than for the scheduler.
            "--kube-api-qps=1000".to_owned(),
            "--kube-api-burst=2000".to_owned(),
        ];
        let flags =
            flags.into_iter().chain(self.gates()).chain(self.options.controller_manager_flags.clone()).collect();
        self.spawn("kube-controller-manager", |this| &mut this.controller_manager, flags)?;
        let mut config = self.config();
        config.cluster_url =
            format!("https://127.0.0.1:{port}").parse().map_err(|error| Error::Misuse(format!("{error}")))?;
        self.wait(|this| &mut this.controller_manager, probe(config, "healthz")).await
    }

    /// Starts kube-scheduler with a configuration, in YAML, and these flags, and answers where its log is. It serves no
    /// port, so whether it schedules is seen by what becomes of pods. `hack/control-plane/build --all` builds it.
    pub fn start_kube_scheduler(&mut self, configuration: &str, flags: &[&str]) -> Result<PathBuf, Error> {
        write(&self.folder.join("kube-scheduler.yaml"), configuration)?;
        let own = [self.file_flag("--config", "kube-scheduler.yaml"), "--secure-port=0".to_owned()];
        let flags = own.into_iter().chain(flags.iter().map(|flag| (*flag).to_owned())).collect();
        self.spawn("kube-scheduler", |this| &mut this.kube_scheduler, flags)?;
        Ok(self.folder.join("kube-scheduler.log"))
    }

    /// Why kube-scheduler no longer runs, if it does not.
    pub fn kube_scheduler_ended(&mut self) -> Option<String> {
        let part = self.kube_scheduler.as_mut()?;
        part.ended().map(|status| format!("kube-scheduler ended with {status}:\n{}", part.tail()))
    }

    /// Ends all processes and removes the folder, as dropping it does.
    pub fn stop(self) {}

    async fn prepare(assets: &Assets, options: Options) -> Result<Self, Error> {
        let folder = tempfile::Builder::new()
            .prefix("krafla-sandbox-")
            .tempdir()
            .map_err(Error::io("a folder for a control plane"))?;
        let certificates = Certificates::make()?;
        let mut users = options.users.clone();
        users.insert(0, User { name: ADMIN.to_owned(), groups: vec!["system:masters".to_owned()], token: token() });
        let row = |user: &User| format!("{},{},{},\"{}\"\n", user.token, user.name, user.name, user.groups.join(","));
        let tokens: String = users.iter().map(row).collect();
        for (name, text) in [
            ("ca.crt", &certificates.authority),
            ("server.crt", &certificates.server),
            ("server.key", &certificates.server_key),
            ("service-account.key", &certificates.service_account_key),
            ("service-account.pub", &certificates.service_account_public_key),
            ("tokens.csv", &tokens),
        ] {
            write(&folder.path().join(name), text)?;
        }
        let free = || Port::free().map_err(Error::io("a port"));
        let api_server_port = options.api_server_port.map_or_else(free, |number| Ok(Port::fixed(number)))?;
        let mut accesses = BTreeMap::new();
        for (index, user) in users.into_iter().enumerate() {
            let url = format!("https://127.0.0.1:{}", api_server_port.number);
            let path = folder.path().join(format!("kubeconfig-{index}"));
            let kubeconfig = kubeconfig(&url, &folder.path().join("ca.crt"), &user);
            write(&path, &kubeconfig.to_string())?;
            let read = Kubeconfig::read_from(&path)?;
            let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
            accesses.insert(user.name, Access { token: user.token, kubeconfig: path, config });
        }
        let (etcd_port, controller_manager_port) = (free()?, free()?);
        let remove = (!options.keep_folder).then_some(folder.path());
        let nursery = Nursery::open(remove).map_err(Error::io("a shell that ends the control plane"))?;
        Ok(Self {
            kube_scheduler: None,
            controller_manager: None,
            api_server: None,
            etcd: None,
            assets: assets.clone(),
            options,
            folder: folder.keep(),
            etcd_port,
            api_server_port,
            controller_manager_port,
            authority: certificates.authority,
            users: accesses,
            nursery,
        })
    }

    async fn start_parts(&mut self) -> Result<(), Error> {
        self.start_etcd().await?;
        self.start_api_server().await?;
        self.start_controller_manager().await
    }

    fn access(&self, user: &str) -> &Access {
        let known = || self.users.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        self.users.get(user).unwrap_or_else(|| panic!("the control plane has no user {user}; it has {}", known()))
    }

    fn etcd_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.etcd_port.number)
    }

    fn file_flag(&self, flag: &str, file: &str) -> String {
        format!("{flag}={}", self.folder.join(file).display())
    }

    fn gates(&self) -> Option<String> {
        let gates = &self.options.feature_gates;
        (!gates.is_empty()).then(|| format!("--feature-gates={}", gates.join(",")))
    }

    fn spawn(&mut self, part: &'static str, place: PartOf, flags: Vec<String>) -> Result<(), Error> {
        if place(self).as_mut().is_some_and(|part| part.ended().is_none()) {
            return Err(Error::Misuse(format!("{part} runs already; kill it first")));
        }
        let log = self.folder.join(format!("{part}.log"));
        let program = self.assets.folder().join(part);
        let started = self.nursery.spawn(part, &program, &flags, &log);
        *place(self) = Some(started.map_err(Error::io(program.display().to_string()))?);
        Ok(())
    }

    /// Waits until a part answers. Fails at once when it has ended; its folder is then left for a look.
    async fn wait(&mut self, part: PartOf, ready: impl AsyncFn() -> bool) -> Result<(), Error> {
        let begun = Instant::now();
        let limit = self.options.ready_within;
        let Some(part) = part(self) else { return Ok(()) };
        let error = loop {
            if let Some(status) = part.ended() {
                break Error::Ended { part: part.name, status, log: part.log.clone(), tail: part.tail() };
            }
            if ready().await {
                tracing::debug!(part = part.name, took = ?begun.elapsed(), "ready");
                return Ok(());
            }
            if begun.elapsed() > limit {
                break Error::NotReady { part: part.name, after: limit, log: part.log.clone(), tail: part.tail() };
            }
            tokio::time::sleep(ASK_EVERY).await;
        };
        self.nursery.keep_folder();
        Err(error)
    }

    /// It is made by a controller of the server itself, a moment after the server says that it is ready.
    async fn wait_for_default_namespace(&mut self) -> Result<(), Error> {
        let namespaces: Api<Namespace> = Api::all(self.client()?);
        self.wait(|this| &mut this.api_server, async || namespaces.get("default").await.is_ok()).await
    }
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    std::fs::write(path, text).map_err(Error::io(path.display().to_string()))
}

/// A kubeconfig; JSON is YAML too.
fn kubeconfig(url: &str, authority: &Path, user: &User) -> serde_json::Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "sandbox",
        "clusters": [{ "name": "sandbox", "cluster": { "server": url, "certificate-authority": authority } }],
        "users": [{ "name": user.name, "user": { "token": user.token } }],
        "contexts": [{ "name": "sandbox", "context": { "cluster": "sandbox", "user": user.name } }],
    })
}

/// Asks a server at a path whether it is well. A server without an answer is not.
fn probe(mut config: Config, path: &'static str) -> impl AsyncFn() -> bool {
    config.default_retry = false;
    let client = Client::try_from(config);
    async move || {
        let Ok(client) = &client else { return false };
        let Ok(request) = Request::new("").get(path, &GetParams::default()) else { return false };
        tokio::time::timeout(ANSWER_WITHIN, client.request_text(request)).await.is_ok_and(|answer| answer.is_ok())
    }
}
