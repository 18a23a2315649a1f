//! The action of a round: profiles, points, strategies, and what is decided at the end.

use std::collections::BTreeMap;
use std::sync::Arc;

use krafla_framework::conf::descheduler::{DeschedulerPolicy, compile};
use krafla_framework::{Action, BuiltDescheduler, DescheduleResult, DeschedulerSettings, EvictionCertificate, Session};
use krafla_model::{NodeId, TaskId};
use tracing::{debug, info, warn};

use crate::limits::Reached;
use crate::memory::Memory;
use crate::policy::{Profile, profiles, strategies, usage};
use crate::round::{Leaving, Round};

/// Name of the action in certificates.
const NAME: &str = "deschedule";
/// With fewer nodes there is nowhere to go.
const FEWEST_NODES: usize = 2;

struct Deschedule {
    settings: DeschedulerSettings,
    policy: DeschedulerPolicy,
    profiles: Vec<Profile>,
    memory: Memory,
}

/// Makes the descheduler of a policy, or says what is wrong with it.
pub fn build(settings: &DeschedulerSettings) -> Result<BuiltDescheduler, Vec<String>> {
    let compiled = compile(&settings.text, &settings.file, &strategies(), settings.auto_enable);
    let mut rendered: Vec<String> = compiled.problems.iter().map(|problem| problem.render(&settings.text)).collect();
    let Some(policy) = compiled.policy else { return Err(rendered) };
    let profiles = profiles(&policy);
    let usage = usage(&policy, &profiles);
    for (asked, provided, source) in [
        (usage.metrics_server, policy.metrics_server, "KubernetesMetrics"),
        (asks_prometheus(&profiles), policy.prometheus.is_some(), "Prometheus"),
    ] {
        if asked && !provided {
            rendered.push(format!(
                "error: {}: a plugin takes its numbers from {source}, which `metricsProviders` does not have; write \
                 `metricsProviders: [{{source: {source}}}]`",
                settings.file
            ));
            return Err(rendered);
        }
    }
    let memory = Memory::new(settings.cool_down_ms);
    let action = Deschedule { settings: settings.clone(), policy, profiles, memory };
    Ok(BuiltDescheduler { action: Box::new(action), warnings: rendered, usage })
}

fn asks_prometheus(profiles: &[Profile]) -> bool {
    let mut usage = krafla_framework::UsageSource {
        prometheus: Some(krafla_framework::PrometheusSource::default()),
        ..krafla_framework::UsageSource::default()
    };
    for (_, strategy) in profiles.iter().flat_map(|profile| profile.deschedule.iter().chain(&profile.balance)) {
        strategy.needs(&mut usage);
    }
    usage.prometheus.is_some_and(|prometheus| !prometheus.query.is_empty())
}

impl Action for Deschedule {
    fn name(&self) -> &'static str {
        NAME
    }

    fn memory(&self) -> String {
        self.memory.to_string()
    }

    fn recall(&mut self, memory: &str) {
        self.memory.recall(memory);
    }

    fn execute(&mut self, session: &mut Session<'_>) {
        let Some(first) = self.profiles.first() else { return };
        let evictor = first.evictor.clone();
        self.memory.begin_round(session.cluster().now());
        let mut statement = session.statement();
        let mut round = Round::new(&mut statement, &self.settings, &self.policy, &mut self.memory, evictor);
        if round.nodes().len() < FEWEST_NODES {
            debug!(nodes = round.nodes().len(), "the round is left out: there are fewer than two nodes");
            return;
        }
        let at_deschedule = self.profiles.iter().map(|profile| (profile, &profile.deschedule));
        let at_balance = self.profiles.iter().map(|profile| (profile, &profile.balance));
        for (profile, strategies) in at_deschedule.chain(at_balance) {
            for (name, strategy) in strategies {
                round.enter(&profile.name, &profile.evictor, name);
                if let Err(why) = strategy.run(&mut round) {
                    warn!(profile = profile.name, strategy = name, "does nothing: {why}");
                }
            }
        }
        let (leaving, notes) = round.finish();
        for note in &notes {
            let to = note.destination.as_deref().unwrap_or("?");
            let pod = format!("{}/{}", note.pod.namespace, note.pod.name);
            match note.result {
                DescheduleResult::Refused(why) => debug!(pod, strategy = note.strategy, why = note.why, "stays: {why}"),
                _ => info!(
                    pod,
                    strategy = note.strategy,
                    from = &*note.node,
                    to,
                    "{}: {}",
                    note.result.as_str(),
                    note.why
                ),
            }
        }
        for note in notes {
            statement.session_mut().note_descheduled(note);
        }
        if self.settings.dry_run {
            return;
        }
        // What has ended holds no node that could be taken away.
        let by_task: BTreeMap<TaskId, Leaving> = leaving.into_iter().map(|one| (one.task, one)).collect();
        let ended: Vec<TaskId> = by_task
            .keys()
            .copied()
            .filter(|task| statement.session().cluster().task(*task).status().is_finished())
            .collect();
        let (kept, grace) = (self.settings.planning != krafla_framework::Planning::Off, self.policy.grace_seconds);
        let certificate = |cluster: &krafla_model::ClusterState, task: TaskId| {
            let name = |node: NodeId| cluster.node(node).name().clone();
            let one = &by_task[&task];
            EvictionCertificate {
                volcano_votes: false,
                action: NAME.to_owned(),
                beneficiary: String::new(),
                placements: Arc::new([]),
                node: name(one.node),
                destination: one.destination.filter(|_| kept).map(name),
                cause: Some(one.cause.clone()),
                grace_seconds: grace,
                shares: Vec::new(),
            }
        };
        statement.commit(certificate);
        for task in ended {
            let certificate = certificate(session.cluster(), task);
            session.evict_finished(task, certificate);
        }
    }
}

/// Whether a strategy has to end: nobody goes any more.
pub(crate) fn is_over(reached: Reached) -> bool {
    reached == Reached::Total
}
