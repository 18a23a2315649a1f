//! Krafla's scheduler, as it runs for one scenario.

use std::path::PathBuf;

use krafla_cluster::{Access, Metrics, RunError, Scope, Selection, Settings};
use krafla_engine::Options;
use krafla_framework::Registry;
use krafla_simulator::manifest::SCHEDULER_NAMES;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A scheduler that runs until it is told to stop, or this is dropped.
pub(crate) struct Krafla {
    stop: watch::Sender<bool>,
    task: JoinHandle<Result<(), RunError>>,
}

impl Krafla {
    /// Starts it.
    pub(crate) fn start(
        kubeconfig: PathBuf,
        configuration: Option<PathBuf>,
        engine: Options,
        registry: fn() -> Registry,
    ) -> Self {
        let (stop, stopped) = watch::channel(false);
        let settings = Settings {
            access: Access { kubeconfig: Some(kubeconfig), ..Access::default() },
            scope: Scope {
                scheduler_names: SCHEDULER_NAMES.map(str::to_owned).into(),
                node_labels: Vec::new(),
                ignore_priority_classes: false,
                profile_only: engine.profile_only,
                default_queue: krafla_model::queue::DEFAULT_QUEUE.to_owned(),
            },
            configuration,
            configuration_required: false,
            engine,
            election: None,
            controllers: Selection::default(),
            metrics_address: None,
            health_address: None,
            levels: None,
            binds_at_once: 100,
            record: None,
            descheduler: None,
            metrics: Metrics::new(),
        };
        Self { stop, task: tokio::spawn(krafla_cluster::run(settings, registry(), None, stopped)) }
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&self) -> bool {
        self.task.is_finished()
    }

    /// Stops it, and says why it had ended, if it had, or that it did not end well.
    pub(crate) async fn stop(self) -> Option<String> {
        self.stop.send_replace(true);
        match self.task.await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(format!("the scheduler: {error}")),
            Err(error) => Some(format!("the scheduler: {error}")),
        }
    }
}
