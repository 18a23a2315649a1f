//! `krafla schedule`: the scheduler on a real cluster, in place of `vc-scheduler`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use krafla_api::parse_duration;
use krafla_cluster::{Access, ContentType, Descheduling, Election, Metrics, Scope, Selection, Settings};
use krafla_engine::Options;
use krafla_framework::conf::compile::compile;
use krafla_framework::conf::policy::DEFAULT_PROFILE;
use krafla_framework::{DeschedulerSettings, Planning, Registry};
use serde::{Deserialize, Deserializer, Serialize};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing::{info, warn};

use crate::logging::Logging;
use crate::registry::registry;
use crate::settings::layered;
use crate::{console, spans};

/// Run the scheduler on a cluster.
///
/// Replaces Volcano's scheduler: the same flags, the same objects, the same metrics and events. It also makes PodGroups
/// for plain pods and keeps the states of queues, so that no other component of Volcano is needed for pods, Spark,
/// Kubeflow Trainer and KubeRay. Pods ask for it by `schedulerName: volcano`.
///
/// Every flag can also stand in a YAML file (`--settings`, with the flag's name as key) and in the environment
/// (KRAFLA_SCHEDULE_KUBE_API_QPS=500). Flags win over the environment, and that over the file.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    flags: Box<Flags>,
    /// Read settings from this YAML file.
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// Volcano's chart ends its arguments with `2>&1`, which no shell reads.
    #[arg(hide = true, value_parser = ["2>&1"])]
    leftovers: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  krafla crds | kubectl apply -f -
      the custom resources, once

  krafla schedule --scheduler-conf scheduler.conf
      with the kubeconfig of the shell, a configuration in Volcano's form, and leader election

  krafla schedule --kubeconfig ~/.kube/test --leader-elect=false --enable-metrics
      on a test cluster, with metrics at http://localhost:8080/metrics

  curl --unix-socket /tmp/klog-socks/klog-klog.sock 'http://x/setlevel?level=4&duration=5m'
      log decisions for five minutes";

/// Accepted so that existing manifests work; without effect here, and each says why.
const COMPATIBILITY: &str = "Accepted for compatibility only";
const ELECTION: &str = "Leader election";
const PAGES: &str = "Pages and logs";
const DESCHEDULER: &str = "Descheduler";

// A switch in Go's way: bare, or with `=false`.
macro_rules! flags {
    ($($(#[$attribute:meta])* $name:ident: $type:ty,)*) => {
        /// What may be told. One list for flags, the settings file and the environment.
        #[derive(Args, Clone, Debug, Default, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        struct Flags {
            $($(#[$attribute])* $name: Option<$type>,)*
        }
    };
}

flags! {
    /// API server, over that of the kubeconfig.
    #[arg(long, value_name = "URL")]
    master: String,
    /// Kubeconfig; default: $KUBECONFIG or ~/.kube/config, and in a pod its service account.
    #[arg(long, value_name = "FILE")]
    kubeconfig: PathBuf,
    /// Schedule pods with this schedulerName; may be repeated [default: the names of the profiles that are configured;
    /// else volcano, or with --profile-only default-scheduler].
    #[arg(long, value_name = "NAME")]
    #[serde(deserialize_with = "list")]
    scheduler_name: Vec<String>,
    /// Configuration in Volcano's form, or a KubeSchedulerConfiguration; read again when it changes. Without it the
    /// built-in one is in force.
    #[arg(long, value_name = "FILE")]
    scheduler_conf: PathBuf,
    /// Refuse names in a KubeSchedulerConfiguration that kube-scheduler would refuse, instead of taking them as aliases.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    strict_upstream_config: bool,
    /// Schedule pods one by one by their profile, as kube-scheduler does, without PodGroups and queues.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    profile_only: bool,
    /// Another name of --scheduler-conf, as kube-scheduler has it: a KubeSchedulerConfiguration, or Volcano's form.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// End when the configuration cannot be used at the start, instead of running with the built-in one.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    disable_default_scheduler_config: bool,
    /// Longest pause between a session that decided something and the next [default: 1s].
    #[arg(long, value_name = "TIME")]
    schedule_period: String,
    /// Queue of PodGroups that name none; made if missing [default: default].
    #[arg(long, value_name = "NAME")]
    default_queue: String,
    /// Use PriorityClasses for the priority of PodGroups [default: true].
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    priority_class: bool,
    /// Use only nodes with one of these labels, `key:value`; commas between, or repeated.
    #[arg(long, value_name = "KEY:VALUE", value_delimiter = ',')]
    #[serde(deserialize_with = "list")]
    node_selector: Vec<String>,
    /// Requests to the API server a second; 0 is without limit [default: 2000].
    #[arg(long, value_name = "N")]
    kube_api_qps: f64,
    /// Requests at once, above that rate [default: 2000].
    #[arg(long, value_name = "N")]
    kube_api_burst: u32,
    /// How pods and binds are written on the wire: application/vnd.kubernetes.protobuf, or application/json where something
    /// on the way does not know that [default: application/vnd.kubernetes.protobuf].
    #[arg(long, value_name = "TYPE")]
    kube_api_content_type: String,
    /// Binds on their way at once [default: 100].
    #[arg(long, value_name = "N")]
    binds_at_once: usize,
    /// Controllers that run in this process: pg-controller, queue-controller; `*` is all, `-x` is without x
    /// [default: *].
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    controllers: String,
    /// Run the descheduler with this DeschedulerPolicy; read again when it changes.
    #[arg(long, value_name = "FILE", help_heading = DESCHEDULER)]
    descheduler_policy: PathBuf,
    /// Pause between its rounds [default: 5m].
    #[arg(long, value_name = "TIME", help_heading = DESCHEDULER)]
    descheduling_interval: String,
    /// How long it leaves in peace what it has moved [default: 30m].
    #[arg(long, value_name = "TIME", help_heading = DESCHEDULER)]
    descheduler_cool_down: String,
    /// How long room is kept for a pod that takes the place of one that was moved [default: 5m].
    #[arg(long, value_name = "TIME", help_heading = DESCHEDULER)]
    descheduler_keep: String,
    /// Enable plugins that the policy configures and enables nowhere.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true, help_heading = DESCHEDULER)]
    descheduler_auto_enable: bool,
    /// Say what would be done, and evict nobody.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true, help_heading = DESCHEDULER)]
    descheduler_dry_run: bool,
    /// Let somebody else take on evictions of pods that say so, and count them until they are done (EvictionsInBackground).
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true, help_heading = DESCHEDULER)]
    descheduler_evictions_in_background: bool,
    /// Order equal nodes by a hash of this seed instead of by name.
    #[arg(long, value_name = "N")]
    shuffle_ties: u64,
    /// Record what the scheduler is told and decides, for `krafla replay`; needs --leader-elect=false.
    #[arg(long, value_name = "FILE")]
    record: PathBuf,

    /// Schedule only while holding a Lease, so that several replicas can run [default: true].
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true, help_heading = ELECTION)]
    leader_elect: bool,
    /// How long the others wait for a renewal before one takes over [default: 15s].
    #[arg(long, value_name = "TIME", help_heading = ELECTION)]
    leader_elect_lease_duration: String,
    /// How long the leader tries to renew before it stops scheduling [default: 10s].
    #[arg(long, value_name = "TIME", help_heading = ELECTION)]
    leader_elect_renew_deadline: String,
    /// Pause between two tries [default: 2s].
    #[arg(long, value_name = "TIME", help_heading = ELECTION)]
    leader_elect_retry_period: String,
    /// Name of the Lease [default: volcano].
    #[arg(long, value_name = "NAME", help_heading = ELECTION)]
    leader_elect_resource_name: String,
    /// Namespace of the Lease [default: volcano-system].
    #[arg(long, value_name = "NAME", help_heading = ELECTION)]
    leader_elect_resource_namespace: String,
    /// Kind of the lock; only `leases` exists.
    #[arg(long, value_name = "KIND", help_heading = ELECTION)]
    leader_elect_resource_lock: String,
    /// Deprecated name of --leader-elect-resource-namespace.
    #[arg(long, value_name = "NAME", help_heading = ELECTION)]
    lock_object_namespace: String,

    /// Serve /metrics at --listen-address [default: false].
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true, help_heading = PAGES)]
    enable_metrics: bool,
    /// Where /metrics is [default: :8080].
    #[arg(long, value_name = "ADDRESS", help_heading = PAGES)]
    listen_address: String,
    /// Serve /healthz and /readyz at --healthz-address [default: false].
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true, help_heading = PAGES)]
    enable_healthz: bool,
    /// Where /healthz and /readyz are [default: :11251].
    #[arg(long, value_name = "ADDRESS", help_heading = PAGES)]
    healthz_address: String,
    /// What is logged, as klog counts it: up to 3 info, 4 debug, from 5 on trace.
    #[arg(short = 'v', long = "v", value_name = "N", help_heading = PAGES)]
    v: u8,

    /// Lists are complete before anything is decided, however long they take.
    #[arg(long, value_name = "TIME", help_heading = COMPATIBILITY)]
    resource_sync_timeout: String,
    /// Watches do not need it.
    #[arg(long, value_name = "TIME", help_heading = COMPATIBILITY)]
    resync_period: String,
    /// All nodes are looked at.
    #[arg(long, value_name = "N", help_heading = COMPATIBILITY)]
    minimum_feasible_nodes: i32,
    /// All nodes are looked at.
    #[arg(long, value_name = "N", help_heading = COMPATIBILITY)]
    minimum_percentage_nodes_to_find: i32,
    /// All nodes are looked at.
    #[arg(long, value_name = "N", help_heading = COMPATIBILITY)]
    percentage_nodes_to_find: i32,
    /// Go plugins cannot be loaded; anything but an empty text is refused.
    #[arg(long, value_name = "DIR", help_heading = COMPATIBILITY)]
    plugins_dir: String,
    /// How much storage there is always counts, where drivers say so.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true, help_heading = COMPATIBILITY)]
    csi_storage: bool,
    /// Volumes count against the limits of nodes as kube-scheduler counts them.
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = COMPATIBILITY)]
    #[serde(deserialize_with = "list")]
    ignored_provisioners: Vec<String>,
    /// There are no profiling pages.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true, help_heading = COMPATIBILITY)]
    enable_pprof: bool,
    /// `--record` writes what the scheduler knows.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true, help_heading = COMPATIBILITY)]
    cache_dumper: bool,
    /// `--record` writes what the scheduler knows.
    #[arg(long, value_name = "DIR", help_heading = COMPATIBILITY)]
    cache_dump_dir: String,
    /// One task reads all objects.
    #[arg(long, value_name = "N", help_heading = COMPATIBILITY)]
    node_worker_threads: u32,
    /// Gates are left to whoever set them.
    #[arg(long, value_name = "N", help_heading = COMPATIBILITY)]
    gate_removal_worker_num: i32,
    /// Only `none`; others are refused.
    #[arg(long, value_name = "MODE", help_heading = COMPATIBILITY)]
    scheduler_sharding_mode: String,
    /// There is no sharding.
    #[arg(long, value_name = "NAME", help_heading = COMPATIBILITY)]
    scheduler_sharding_name: String,
    /// Feature gates of Volcano: what is built is on.
    #[arg(long, value_name = "LIST", help_heading = COMPATIBILITY)]
    feature_gates: String,
    /// Health pages are served without TLS.
    #[arg(long, value_name = "FILE", help_heading = COMPATIBILITY)]
    ca_cert_file: String,
    /// Health pages are served without TLS.
    #[arg(long, value_name = "FILE", help_heading = COMPATIBILITY)]
    tls_cert_file: String,
    /// Health pages are served without TLS.
    #[arg(long, value_name = "FILE", help_heading = COMPATIBILITY)]
    tls_private_key_file: String,
    /// Logs go to standard error.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true, help_heading = COMPATIBILITY)]
    logtostderr: bool,
    /// Logs go to standard error.
    #[arg(long, value_name = "LEVEL", help_heading = COMPATIBILITY)]
    stderrthreshold: String,
    /// Logs are not held back.
    #[arg(long, value_name = "TIME", help_heading = COMPATIBILITY)]
    log_flush_frequency: String,
}

/// A list, or one text with commas.
fn list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        List(Vec<String>),
        Text(String),
    }
    Ok(Option::<Either>::deserialize(deserializer)?.map(|either| match either {
        Either::List(list) => list,
        Either::Text(text) => text.split(',').map(|word| word.trim().to_owned()).filter(|w| !w.is_empty()).collect(),
    }))
}

pub(crate) fn run(arguments: &Arguments, logging: &Logging) -> anyhow::Result<ExitCode> {
    let flags = layered("KRAFLA_SCHEDULE", arguments.settings.as_deref(), &*arguments.flags)?;
    if let Some(level) = flags.v {
        logging.set(Some(krafla_cluster::filter_of(level))).map_err(|why| anyhow!(why))?;
    }
    let metrics = Metrics::new();
    spans::measure(&metrics);
    let settings = settings_of(&flags, logging, metrics)?;
    warn_of(&flags);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no runtime")?;
    runtime.block_on(async {
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(stop_on_signal(stop)?);
        let strict_upstream = flags.strict_upstream_config.unwrap_or(false);
        krafla_cluster::run(settings, Registry { strict_upstream, ..registry() }, None, stopped).await?;
        console::say("stopped; everything that was on its way is done");
        Ok(ExitCode::SUCCESS)
    })
}

fn settings_of(flags: &Flags, logging: &Logging, metrics: Metrics) -> anyhow::Result<Settings> {
    refuse_what_cannot_be(flags)?;
    let profile_only = flags.profile_only.unwrap_or(false);
    let given = |path: &Option<PathBuf>| path.clone().filter(|path| !path.as_os_str().is_empty());
    let configuration = match (given(&flags.scheduler_conf), given(&flags.config)) {
        (Some(one), Some(other)) if one != other => bail!("--scheduler-conf and --config name two files; give one"),
        (one, other) => one.or(other),
    };
    let names = match &flags.scheduler_name {
        Some(names) => names.clone(),
        None => profile_names(configuration.as_deref(), profile_only),
    };
    let elect = flags.leader_elect.unwrap_or(true);
    if flags.record.is_some() && elect {
        bail!("--record needs --leader-elect=false: a recording begins with the first decision and ends with the last");
    }
    let page = |on: Option<bool>, address: &Option<String>, default: &str| -> anyhow::Result<Option<SocketAddr>> {
        on.unwrap_or(false).then(|| address_of(address.as_deref().unwrap_or(default))).transpose()
    };
    let setter = logging.clone();
    let folder = std::env::var_os("DEBUG_SOCKET_DIR").map_or_else(|| "/tmp/klog-socks".into(), PathBuf::from);
    Ok(Settings {
        access: Access {
            kubeconfig: flags.kubeconfig.clone().filter(|path| !path.as_os_str().is_empty()),
            master: flags.master.clone().filter(|text| !text.is_empty()),
            qps: flags.kube_api_qps.unwrap_or(2_000.0),
            burst: flags.kube_api_burst.unwrap_or(2_000),
            content_type: flags.kube_api_content_type.as_deref().map_or(Ok(ContentType::default()), |text| {
                text.parse().map_err(|why| anyhow!("--kube-api-content-type: {why}"))
            })?,
        },
        scope: Scope {
            scheduler_names: names.into_iter().collect(),
            node_labels: node_labels(flags.node_selector.as_deref().unwrap_or_default())?,
            ignore_priority_classes: !flags.priority_class.unwrap_or(true),
            profile_only,
            default_queue: flags.default_queue.clone().unwrap_or_else(|| "default".to_owned()),
        },
        configuration,
        configuration_required: flags.disable_default_scheduler_config.unwrap_or(false),
        engine: Options {
            period_ms: duration("--schedule-period", flags.schedule_period.as_deref().unwrap_or("1s"))?,
            profile_only,
            only_deschedules: false,
            events: true,
            tie_seed: flags.shuffle_ties,
            plain_search: false,
        },
        election: elect.then(|| election(flags)).transpose()?,
        controllers: match &flags.controllers {
            Some(text) => text.parse().map_err(|why| anyhow!("--controllers: {why}"))?,
            None => Selection::default(),
        },
        metrics_address: page(flags.enable_metrics, &flags.listen_address, ":8080")?,
        health_address: page(flags.enable_healthz, &flags.healthz_address, ":11251")?,
        levels: Some((folder, Arc::new(move |filter: Option<&str>| setter.set(filter)))),
        binds_at_once: flags.binds_at_once.unwrap_or(100).max(1),
        record: flags.record.clone(),
        descheduler: descheduling(flags)?,
        metrics,
    })
}

fn descheduling(flags: &Flags) -> anyhow::Result<Option<Descheduling>> {
    let Some(policy) = flags.descheduler_policy.clone().filter(|path| !path.as_os_str().is_empty()) else {
        return Ok(None);
    };
    let time = |name: &str, text: &Option<String>, default: &str| duration(name, text.as_deref().unwrap_or(default));
    let interval_ms = time("--descheduling-interval", &flags.descheduling_interval, "5m")?;
    if interval_ms == 0 {
        bail!("--descheduling-interval 0: rounds need a pause between them; `krafla deschedule` has a single one");
    }
    let settings = DeschedulerSettings {
        interval_ms,
        auto_enable: flags.descheduler_auto_enable.unwrap_or(false),
        dry_run: flags.descheduler_dry_run.unwrap_or(false),
        planning: Planning::Kept,
        cool_down_ms: time("--descheduler-cool-down", &flags.descheduler_cool_down, "30m")?,
        keep_ms: time("--descheduler-keep", &flags.descheduler_keep, "5m")?,
        in_background: flags.descheduler_evictions_in_background.unwrap_or(false),
        ..DeschedulerSettings::default()
    };
    Ok(Some(Descheduling { policy, settings, alone: false, once: false, tell: None }))
}

/// The names of the profiles in a configuration, by which pods ask for this scheduler. A file that cannot be read, or is
/// wrong, is told of later.
fn profile_names(path: Option<&std::path::Path>, profile_only: bool) -> Vec<String> {
    let text = path.and_then(|path| std::fs::read_to_string(path).ok());
    let policy = text.and_then(|text| compile(&text, "", &registry().catalogue()).policy);
    let names: Vec<String> =
        policy.into_iter().flat_map(|policy| policy.profiles).map(|profile| profile.name).collect();
    match names.is_empty() {
        false => names,
        true if profile_only => vec![DEFAULT_PROFILE.to_owned()],
        true => vec!["volcano".to_owned()],
    }
}

fn election(flags: &Flags) -> anyhow::Result<Election> {
    let time = |name: &str, text: &Option<String>, default: &str| -> anyhow::Result<Duration> {
        let ms = duration(name, text.as_deref().unwrap_or(default))?;
        Ok(Duration::from_millis(u64::try_from(ms).unwrap_or(0)))
    };
    let lock = flags.leader_elect_resource_lock.as_deref().unwrap_or("leases");
    if lock != "leases" {
        bail!("--leader-elect-resource-lock {lock}: only leases exist");
    }
    let usual = |alone: &str, with_queues: &str| {
        if flags.profile_only == Some(true) { alone.to_owned() } else { with_queues.to_owned() }
    };
    let deprecated = flags.lock_object_namespace.clone().filter(|text| !text.is_empty());
    let namespace = deprecated.or_else(|| flags.leader_elect_resource_namespace.clone());
    Ok(Election {
        namespace: namespace.unwrap_or_else(|| usual("kube-system", "volcano-system")),
        name: flags.leader_elect_resource_name.clone().unwrap_or_else(|| usual("kube-scheduler", "volcano")),
        identity: identity(),
        lease: time("--leader-elect-lease-duration", &flags.leader_elect_lease_duration, "15s")?,
        renew_deadline: time("--leader-elect-renew-deadline", &flags.leader_elect_renew_deadline, "10s")?,
        retry: time("--leader-elect-retry-period", &flags.leader_elect_retry_period, "2s")?,
    })
}

/// Unique among the candidates: the host, this process, and when it began.
pub(crate) fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = std::env::var("HOSTNAME").unwrap_or(host);
    let began = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
    format!("{}_{}-{began:x}", host.trim(), std::process::id())
}

fn duration(flag: &str, text: &str) -> anyhow::Result<i64> {
    parse_duration(text).map_err(|why| anyhow!("{flag} {text}: {why}"))
}

/// An address in Go's form: a port alone is that of every interface.
pub(crate) fn address_of(text: &str) -> anyhow::Result<SocketAddr> {
    let full = if text.starts_with(':') { format!("0.0.0.0{text}") } else { text.to_owned() };
    full.parse().map_err(|_| anyhow!("{text} is no address to listen at: write :8080 or 127.0.0.1:8080"))
}

fn node_labels(entries: &[String]) -> anyhow::Result<Vec<(String, String)>> {
    let read = |entry: &String| {
        let (key, value) = entry.split_once(':').or_else(|| entry.split_once('='))?;
        Some((key.trim().to_owned(), value.trim().to_owned()))
    };
    let labels =
        entries.iter().map(|entry| read(entry).ok_or_else(|| anyhow!("--node-selector {entry}: write key:value")));
    labels.collect()
}

/// What would change decisions, and cannot be honoured, is not passed over.
fn refuse_what_cannot_be(flags: &Flags) -> anyhow::Result<()> {
    if let Some(folder) = flags.plugins_dir.as_deref().filter(|text| !text.is_empty()) {
        bail!("--plugins-dir {folder}: Go plugins cannot be loaded; build them in, see docs/plugins");
    }
    if let Some(mode) = flags.scheduler_sharding_mode.as_deref().filter(|mode| !["", "none"].contains(mode)) {
        bail!("--scheduler-sharding-mode {mode}: there is no sharding; one scheduler has all nodes");
    }
    if std::env::var("MULTI_SCHEDULER_ENABLE").is_ok_and(|text| text == "true") {
        bail!("MULTI_SCHEDULER_ENABLE=true: there is no partition among schedulers; run replicas with leader election");
    }
    Ok(())
}

fn warn_of(flags: &Flags) {
    let tls = [&flags.ca_cert_file, &flags.tls_cert_file, &flags.tls_private_key_file];
    if tls.into_iter().flatten().any(|text| !text.is_empty()) {
        warn!("health pages are served without TLS: probes must use the scheme HTTP");
    }
    if flags.enable_pprof == Some(true) {
        warn!("--enable-pprof: there are no profiling pages");
    }
}

pub(crate) fn stop_on_signal(stop: watch::Sender<bool>) -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM cannot be heard")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT cannot be heard")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => info!("told to stop"),
            _ = interrupt.recv() => info!("interrupted"),
        }
        stop.send_replace(true);
        // The other end lives as long as the process.
        interrupt.recv().await;
        std::process::exit(130);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_go_does() {
        assert_eq!(address_of(":8080").expect("read").to_string(), "0.0.0.0:8080");
        assert_eq!(address_of("127.0.0.1:9").expect("read").to_string(), "127.0.0.1:9");
        assert!(address_of("8080").is_err());
    }

    #[test]
    fn a_node_selector_is_key_and_value() {
        let read = node_labels(&["zone:a".to_owned(), "pool=b".to_owned()]).expect("read");
        assert_eq!(read, [("zone".to_owned(), "a".to_owned()), ("pool".to_owned(), "b".to_owned())]);
        assert!(node_labels(&["zone".to_owned()]).is_err());
    }
}
