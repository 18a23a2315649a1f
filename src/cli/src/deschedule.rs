//! `krafla deschedule`: which running pods of a cluster should be somewhere else. Once, or in a loop; or only said.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use clap::{Args, ValueEnum};
use krafla_api::parse_duration;
use krafla_cluster::{Access, Descheduling, Election, Metrics, Scope, Selection, Settings};
use krafla_engine::Options;
use krafla_framework::{DescheduleResult, Descheduled, DeschedulerSettings, Planning};
use tokio::sync::watch;

use crate::console;
use crate::registry::registry;
use crate::schedule::{address_of, identity, stop_on_signal};

/// Evict pods that should be somewhere else, as the descheduler of Kubernetes does.
///
/// Reads its DeschedulerPolicy (v1alpha2). A pod that should move for the sake of a better place is evicted only if the
/// scheduler's own search finds one. Evictions go through the Eviction API, so that disruption budgets are asked. Beside
/// Krafla's scheduler, run it as a part of that: `krafla schedule --descheduler-policy FILE`, which keeps the place.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The DeschedulerPolicy; read again when it changes.
    #[arg(long, value_name = "FILE", alias = "policy-config-file")]
    policy: PathBuf,
    /// Pause between rounds; without it there is one round, and the end.
    #[arg(long, value_name = "TIME", alias = "descheduling-interval")]
    interval: Option<String>,
    /// Say what would be done, and evict nobody.
    #[arg(long)]
    dry_run: bool,
    /// Enable plugins that the policy configures and enables nowhere.
    #[arg(long)]
    auto_enable: bool,
    /// What is known of where pods will go.
    #[arg(long, value_name = "HOW", value_enum, default_value = "foreseen")]
    planning: How,
    /// How long what was moved is left in peace.
    #[arg(long, value_name = "TIME", default_value = "30m")]
    cool_down: String,
    /// Alpha features: `EvictionsInBackground=true`.
    #[arg(long, value_name = "GATES", value_delimiter = ',')]
    feature_gates: Vec<String>,
    /// Configuration of the scheduler that places the pods: a scheduler.conf, or a KubeSchedulerConfiguration.
    #[arg(long, value_name = "FILE")]
    scheduler_conf: Option<PathBuf>,
    /// Kubeconfig; default: $KUBECONFIG or ~/.kube/config, and in a pod its service account.
    #[arg(long, value_name = "FILE", alias = "client-connection-kubeconfig")]
    kubeconfig: Option<PathBuf>,
    /// Requests to the API server a second; 0 is without limit.
    #[arg(long, value_name = "N", default_value = "50", alias = "client-connection-qps")]
    kube_api_qps: f64,
    /// Requests at once, above that rate.
    #[arg(long, value_name = "N", default_value = "100", alias = "client-connection-burst")]
    kube_api_burst: u32,
    /// Act only while holding the Lease kube-system/descheduler; needs --interval.
    #[arg(long)]
    leader_elect: bool,
    /// Serve /metrics there.
    #[arg(long, value_name = "ADDRESS")]
    metrics_address: Option<String>,
}

/// What is known of where pods will go.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum How {
    /// Nothing, as in the descheduler of Kubernetes.
    Off,
    /// Where the scheduler would place them now.
    Foreseen,
}

const EXAMPLES: &str = "\
Examples:
  krafla deschedule --policy rebalance.yaml --dry-run
      what one round would do

  krafla deschedule --policy rebalance.yaml
      one round, as a CronJob would have it

  krafla deschedule --policy rebalance.yaml --interval 5m --leader-elect
      a round every five minutes";

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let settings = settings_of(arguments)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no runtime")?;
    runtime.block_on(async {
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(stop_on_signal(stop)?);
        krafla_cluster::run(settings, registry(), None, stopped).await?;
        Ok(ExitCode::SUCCESS)
    })
}

/// The one feature gate that there is.
fn in_background(gates: &[String]) -> anyhow::Result<bool> {
    let mut on = false;
    for gate in gates {
        match gate.split_once('=') {
            Some(("EvictionsInBackground", "true")) => on = true,
            Some(("EvictionsInBackground", "false")) => on = false,
            Some((name, "true" | "false")) if name != "EvictionsInBackground" => {
                bail!("--feature-gates {gate}: there is no gate {name}; there is EvictionsInBackground")
            }
            _ => bail!("--feature-gates {gate}: write EvictionsInBackground=true or =false"),
        }
    }
    Ok(on)
}

fn settings_of(arguments: Arguments) -> anyhow::Result<Settings> {
    let duration = |flag: &str, text: &str| parse_duration(text).map_err(|why| anyhow!("{flag} {text}: {why}"));
    let interval_ms = arguments.interval.as_deref().map_or(Ok(0), |text| duration("--interval", text))?;
    let once = interval_ms == 0;
    if once && arguments.leader_elect {
        bail!("--leader-elect needs --interval: who has one round leads nobody");
    }
    let seconds = |n: u64| Duration::from_secs(n);
    // Nobody is harmed by a dry run, so it needs no lead.
    let election = (arguments.leader_elect && !arguments.dry_run).then(|| Election {
        namespace: "kube-system".to_owned(),
        name: "descheduler".to_owned(),
        identity: identity(),
        lease: seconds(137),
        renew_deadline: seconds(107),
        retry: seconds(26),
    });
    let descheduler = DeschedulerSettings {
        interval_ms,
        auto_enable: arguments.auto_enable,
        dry_run: arguments.dry_run,
        planning: match arguments.planning {
            How::Off => Planning::Off,
            How::Foreseen => Planning::Foreseen,
        },
        cool_down_ms: duration("--cool-down", &arguments.cool_down)?,
        in_background: in_background(&arguments.feature_gates)?,
        ..DeschedulerSettings::default()
    };
    Ok(Settings {
        access: Access {
            kubeconfig: arguments.kubeconfig,
            qps: arguments.kube_api_qps,
            burst: arguments.kube_api_burst,
            ..Access::default()
        },
        scope: Scope {
            scheduler_names: ["volcano".to_owned()].into(),
            default_queue: "default".to_owned(),
            ..Scope::default()
        },
        configuration: arguments.scheduler_conf,
        configuration_required: true,
        engine: Options { only_deschedules: true, ..Options::default() },
        election,
        controllers: "-*".parse::<Selection>().map_err(|why| anyhow!(why))?,
        metrics_address: arguments.metrics_address.as_deref().map(address_of).transpose()?,
        health_address: None,
        levels: None,
        binds_at_once: 1,
        record: None,
        descheduler: Some(Descheduling {
            policy: arguments.policy,
            settings: descheduler,
            alone: true,
            once,
            tell: Some(Box::new(tell)),
        }),
        metrics: Metrics::new(),
    })
}

/// A line for each pod of a round, and one for the round.
fn tell(notes: &[Descheduled]) {
    let (mut n, mut text) = (0, String::new());
    for note in notes {
        let Descheduled { pod, node, strategy, why, destination, result, .. } = note;
        let pod = format!("{}/{}", pod.namespace, pod.name);
        let to = destination.as_ref().map(|to| format!(", for {to}")).unwrap_or_default();
        let (line, goes) = match result {
            DescheduleResult::Evicted => (format!("evicts {pod} from {node}{to}: {strategy}: {why}"), true),
            DescheduleResult::DryRun => (format!("would evict {pod} from {node}{to}: {strategy}: {why}"), true),
            DescheduleResult::Refused(reason) => {
                (format!("leaves {pod} on {node}: {reason}; {strategy}: {why}"), false)
            }
        };
        n += usize::from(goes);
        text += &line;
        text.push('\n');
    }
    // A reader that has gone away changes nothing about what is done.
    let _ = console::print(&text);
    console::say(&format!("a round is over: {n} pods go"));
}
