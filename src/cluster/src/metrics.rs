//! Numbers for Prometheus: Volcano's names, and kube-scheduler's where the meaning is the same.
//!
//! Volcano counts in gauges what this library would give the suffix `_total`; those stay gauges here, so that the names
//! on existing dashboards hold.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use krafla_engine::Engine;
use krafla_framework::Descheduled;
use krafla_model::{ClusterState, JobPhase, Name, ResourceId, TaskId, TaskStatus, Time};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets_range};
use prometheus_client::registry::Registry;

type Integers<L> = Family<L, Gauge<i64, AtomicI64>>;
type Reals<L> = Family<L, Gauge<f64, AtomicU64>>;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueLabel {
    queue_name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueResource {
    queue_name: String,
    resource: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabel {
    result: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ActionLabel {
    action: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
#[allow(non_snake_case, reason = "the label is spelled so on Volcano's dashboards")]
struct PluginLabels {
    plugin: String,
    OnSession: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StageLabel {
    stage: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PoolLabel {
    queue: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DeschedulerLabels {
    result: String,
    strategy: String,
    profile: String,
    namespace: String,
    node: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct JobLabels {
    job_name: String,
    queue: String,
    job_namespace: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct JobLabel {
    job_id: String,
}

/// When a job was made, and when one of its pods was bound last; in milliseconds since 1970.
#[derive(Clone, Copy)]
struct JobTimes {
    made: i64,
    bound: i64,
}

/// All metrics. Cloning shares them.
#[derive(Clone)]
pub struct Metrics(Arc<All>);

struct All {
    registry: Registry,
    sessions: Histogram,
    actions: Family<ActionLabel, Histogram, fn() -> Histogram>,
    plugins: Family<PluginLabels, Histogram, fn() -> Histogram>,
    stages: Family<StageLabel, Histogram, fn() -> Histogram>,
    tasks: Family<StageLabel, Histogram, fn() -> Histogram>,
    attempts: Family<ResultLabel, Counter>,
    binds: Family<ResultLabel, Counter>,
    evictions: Family<ResultLabel, Counter>,
    descheduled: Family<DeschedulerLabels, Counter>,
    rounds: Histogram,
    events: Family<ResultLabel, Counter>,
    cycles: Counter,
    discrepancies: Counter,
    panics: Counter,
    configurations: Family<ResultLabel, Counter>,
    configuration_current: Gauge,
    leading: Gauge,
    pending_pods: Integers<PoolLabel>,
    unscheduled_jobs: Gauge,
    preemption_victims: Gauge,
    eviction_transactions: Family<ActionLabel, Counter>,
    unscheduled_tasks: Integers<JobLabel>,
    job_latency: Histogram,
    job_duration: Reals<JobLabels>,
    job_start: Reals<JobLabels>,
    job_last: Reals<JobLabels>,
    job_times: Mutex<BTreeMap<(Name, Name), JobTimes>>,
    known_queues: Mutex<BTreeSet<Name>>,
    queues: QueueFamilies,
    groups: [Integers<QueueLabel>; 5],
}

#[derive(Default)]
struct QueueFamilies {
    amounts: [Amounts; 5],
    share: Reals<QueueLabel>,
    weight: Integers<QueueLabel>,
    overused: Integers<QueueLabel>,
}

/// One amount of a queue, as Volcano splits it.
#[derive(Default)]
struct Amounts {
    milli_cpu: Integers<QueueLabel>,
    memory_bytes: Integers<QueueLabel>,
    scalar_resources: Integers<QueueResource>,
}

/// Amounts of a queue in the order of [`QueueFamilies::amounts`].
const AMOUNTS: [&str; 5] = ["allocated", "request", "deserved", "capacity", "inqueue"];
const PHASES: [JobPhase; 5] =
    [JobPhase::Pending, JobPhase::Inqueue, JobPhase::Running, JobPhase::Unknown, JobPhase::Completed];

fn milliseconds(from: f64, to: f64, n: u16) -> Histogram {
    Histogram::new(exponential_buckets_range(from, to, n))
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// All metrics, at zero.
    pub fn new() -> Self {
        let mut all = All {
            registry: Registry::default(),
            sessions: milliseconds(1.0, 5_000.0, 20),
            actions: Family::new_with_constructor(|| milliseconds(1.0, 2_000.0, 20)),
            plugins: Family::new_with_constructor(|| milliseconds(0.1, 100.0, 15)),
            stages: Family::new_with_constructor(|| milliseconds(0.1, 500.0, 20)),
            tasks: Family::new_with_constructor(|| milliseconds(50.0, 60_000.0, 30)),
            attempts: Family::default(),
            binds: Family::default(),
            evictions: Family::default(),
            descheduled: Family::default(),
            rounds: Histogram::new(exponential_buckets_range(0.001, 100.0, 20)),
            events: Family::default(),
            cycles: Counter::default(),
            discrepancies: Counter::default(),
            panics: Counter::default(),
            configurations: Family::default(),
            configuration_current: Gauge::default(),
            leading: Gauge::default(),
            pending_pods: Family::default(),
            unscheduled_jobs: Gauge::default(),
            preemption_victims: Gauge::default(),
            eviction_transactions: Family::default(),
            unscheduled_tasks: Family::default(),
            job_latency: milliseconds(100.0, 120_000.0, 30),
            job_duration: Family::default(),
            job_start: Family::default(),
            job_last: Family::default(),
            job_times: Mutex::default(),
            known_queues: Mutex::default(),
            queues: QueueFamilies::default(),
            groups: Default::default(),
        };
        all.register();
        Self(Arc::new(all))
    }

    /// The text that Prometheus reads.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.0.registry);
        text
    }

    /// A session has run.
    pub(crate) fn session(&self, took: Duration) {
        self.0.cycles.inc();
        self.0.sessions.observe(in_ms(took));
    }

    /// An action has run.
    pub fn action(&self, name: &str, took: Duration) {
        self.0.actions.get_or_create(&ActionLabel { action: name.to_owned() }).observe(in_ms(took));
    }

    /// A hook of a plugin has run.
    pub fn plugin(&self, name: &str, hook: &str, took: Duration) {
        let on_session = if hook == "open" { "OnSessionOpen" } else { "OnSessionClose" };
        let labels = PluginLabels { plugin: name.to_owned(), OnSession: on_session.to_owned() };
        self.0.plugins.get_or_create(&labels).observe(in_ms(took));
    }

    /// A bind has its outcome.
    pub(crate) fn bind(&self, took: Duration, bound: bool) {
        self.0.binds.get_or_create(&result(if bound { "bound" } else { "refused" })).inc();
        self.0.attempts.get_or_create(&result(if bound { "scheduled" } else { "error" })).inc();
        self.0.stages.get_or_create(&StageLabel { stage: "Bind".to_owned() }).observe(in_ms(took));
    }

    /// A pod is bound.
    pub(crate) fn pod_bound(&self, cluster: &ClusterState, task: TaskId, now: Time) {
        let task = cluster.task(task);
        let age = |made: Time| f64_of(now.0.saturating_sub(made.0).max(0));
        self.0.tasks.get_or_create(&StageLabel { stage: "Bound".to_owned() }).observe(age(task.created));
        let Some(job) = task.job.map(|job| &cluster.job(job).spec) else { return };
        self.0.job_latency.observe(age(job.created));
        let times = JobTimes { made: job.created.0, bound: now.0 };
        let mut all = self.0.job_times.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert((job.namespace.clone(), job.name.clone()), times);
    }

    /// A session has decided evictions for one job: by which action, and how many.
    pub(crate) fn victims_chosen(&self, action: &str, victims: usize) {
        self.0.preemption_victims.set(i64::try_from(victims).unwrap_or(i64::MAX));
        self.0.eviction_transactions.get_or_create(&ActionLabel { action: action.to_owned() }).inc();
    }

    /// An eviction has its outcome.
    pub(crate) fn eviction(&self, evicted: bool) {
        self.0.evictions.get_or_create(&result(if evicted { "evicted" } else { "refused" })).inc();
    }

    /// A descheduler wanted a pod to go, and this came of it.
    pub(crate) fn descheduled(&self, what: &Descheduled, result: &str) {
        let labels = DeschedulerLabels {
            result: result.to_owned(),
            strategy: what.strategy.to_owned(),
            profile: what.profile.clone(),
            namespace: what.pod.namespace.to_string(),
            node: what.node.to_string(),
        };
        self.0.descheduled.get_or_create(&labels).inc();
    }

    /// A descheduler has had a round.
    pub(crate) fn round(&self, took: Duration) {
        self.0.rounds.observe(took.as_secs_f64());
    }

    pub(crate) fn event_written(&self) {
        self.0.events.get_or_create(&result("written")).inc();
    }

    pub(crate) fn event_dropped(&self) {
        self.0.events.get_or_create(&result("dropped")).inc();
    }

    /// Whether this process leads.
    pub(crate) fn leads(&self, leads: bool) {
        self.0.leading.set(i64::from(leads));
    }

    /// Takes the numbers of the engine. Cost: linear in queues and jobs; called once a second at most.
    pub(crate) fn observe(&self, engine: &Engine) {
        let all = &*self.0;
        let raise = |counter: &Counter, to: u64| {
            counter.inc_by(to.saturating_sub(counter.get()));
        };
        raise(&all.discrepancies, engine.discrepancies());
        raise(&all.panics, engine.panics());
        let health = engine.health();
        raise(&all.configurations.get_or_create(&result("accepted")), health.accepted);
        raise(&all.configurations.get_or_create(&result("refused")), health.refused);
        all.configuration_current.set(i64::from(health.current));

        let cluster = engine.cluster();
        let names = cluster.names();
        let mut waiting = 0;
        let (mut admitted, mut gated) = (0, 0);
        // Volcano's label is the name alone: jobs of one name in several namespaces share a series.
        all.unscheduled_tasks.clear();
        for (_, job) in cluster.jobs() {
            if job.is_starving() && job.n_tasks() > 0 {
                waiting += 1;
                let short = job.min_available().saturating_sub(job.n_ready());
                let label = JobLabel { job_id: job.spec.name.to_string() };
                all.unscheduled_tasks.get_or_create(&label).inc_by(i64::from(short));
            }
            admitted += i64::from(job.counts().of(TaskStatus::Pending));
            gated += i64::from(job.counts().of(TaskStatus::Gated));
        }
        all.unscheduled_jobs.set(waiting);
        all.pending_pods.get_or_create(&PoolLabel { queue: "active".to_owned() }).set(admitted);
        all.pending_pods.get_or_create(&PoolLabel { queue: "gated".to_owned() }).set(gated);

        self.observe_jobs(cluster);
        self.forget_queues(cluster);
        for (id, queue) in cluster.queues() {
            let label = QueueLabel { queue_name: queue.spec.name.to_string() };
            let deserved = engine.configuration().plugins().deserved(id);
            let held = queue.held();
            let wanted = held.wanted();
            let mut inqueue = krafla_model::Resources::default();
            let mut phases = [0_i64; 5];
            for job in queue.jobs() {
                let job = cluster.job(job);
                phases[PHASES.iter().position(|phase| *phase == job.phase).unwrap_or_default()] += 1;
                if job.phase == JobPhase::Inqueue {
                    inqueue.add(&job.inqueue_reservation());
                }
            }
            for (family, n) in all.groups.iter().zip(phases) {
                family.get_or_create(&label).set(n);
            }
            // In the order of `AMOUNTS`.
            let rows: [Vec<(ResourceId, i64)>; 5] = [
                held.allocated.iter().collect(),
                wanted.iter().collect(),
                deserved.iter().flat_map(krafla_model::Resources::iter).collect(),
                queue.capability.iter().collect(),
                inqueue.iter().collect(),
            ];
            for (family, amounts) in all.queues.amounts.iter().zip(rows) {
                // What is no longer held is 0, not its last value.
                family.milli_cpu.get_or_create(&label).set(0);
                family.memory_bytes.get_or_create(&label).set(0);
                for (resource, amount) in amounts {
                    match resource {
                        ResourceId::CPU => {
                            family.milli_cpu.get_or_create(&label).set(amount);
                        }
                        ResourceId::MEMORY => {
                            family.memory_bytes.get_or_create(&label).set(amount);
                        }
                        ResourceId::PODS => {}
                        other => {
                            let labels = QueueResource {
                                queue_name: label.queue_name.clone(),
                                resource: names.name(other).to_string(),
                            };
                            family.scalar_resources.get_or_create(&labels).set(amount);
                        }
                    }
                }
            }
            all.queues.weight.get_or_create(&label).set(i64::from(queue.spec.weight));
            if let Some(deserved) = &deserved {
                let share = held.allocated.dominant_share(deserved).into_inner();
                all.queues.share.get_or_create(&label).set(if share.is_finite() { share } else { 0.0 });
                all.queues.overused.get_or_create(&label).set(i64::from(share > 1.0));
            }
        }
    }

    /// The series of jobs that there are; those of jobs that are gone go.
    fn observe_jobs(&self, cluster: &ClusterState) {
        let all = &*self.0;
        let mut times = all.job_times.lock().unwrap_or_else(PoisonError::into_inner);
        times.retain(|(namespace, name), _| cluster.find_job(namespace, name).is_some());
        for family in [&all.job_duration, &all.job_start, &all.job_last] {
            family.clear();
        }
        for ((namespace, name), JobTimes { made, bound }) in &*times {
            let Some(job) = cluster.find_job(namespace, name) else { continue };
            let labels = JobLabels {
                job_name: name.to_string(),
                queue: cluster.job(job).spec.queue.to_string(),
                job_namespace: namespace.to_string(),
            };
            all.job_duration.get_or_create(&labels).set(f64_of(bound - made));
            all.job_start.get_or_create(&labels).set(f64_of(*made) / 1_000.0);
            all.job_last.get_or_create(&labels).set(f64_of(*bound) / 1_000.0);
        }
    }

    /// The series of queues that are gone go; so do those of resources, which are then set anew.
    fn forget_queues(&self, cluster: &ClusterState) {
        let all = &*self.0;
        for family in &all.queues.amounts {
            family.scalar_resources.clear();
        }
        let now: BTreeSet<Name> = cluster.queues().map(|(_, queue)| queue.spec.name.clone()).collect();
        let mut known = all.known_queues.lock().unwrap_or_else(PoisonError::into_inner);
        for name in known.difference(&now) {
            self.forget_queue(name);
        }
        *known = now;
    }

    fn forget_queue(&self, name: &str) {
        let label = QueueLabel { queue_name: name.to_owned() };
        let all = &*self.0;
        for family in &all.queues.amounts {
            family.milli_cpu.remove(&label);
            family.memory_bytes.remove(&label);
        }
        for family in &all.groups {
            family.remove(&label);
        }
        all.queues.share.remove(&label);
        all.queues.weight.remove(&label);
        all.queues.overused.remove(&label);
    }
}

impl All {
    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register(
            "volcano_e2e_scheduling_latency_milliseconds",
            "One whole session, open to close",
            self.sessions.clone(),
        );
        registry.register("volcano_action_scheduling_latency_milliseconds", "One action", self.actions.clone());
        registry.register(
            "volcano_plugin_scheduling_latency_milliseconds",
            "One hook of a plugin",
            self.plugins.clone(),
        );
        registry.register("volcano_scheduling_stage_duration_milliseconds", "One call of a stage", self.stages.clone());
        registry.register(
            "volcano_task_scheduling_latency_milliseconds",
            "From the making of a pod to a stage",
            self.tasks.clone(),
        );
        registry.register(
            "descheduler_pods_evicted",
            "Pods that a strategy wanted to go, by what came of it",
            self.descheduled.clone(),
        );
        registry.register("descheduler_loop_duration_seconds", "One round", self.rounds.clone());
        registry.register("volcano_unschedule_job_count", "Jobs that are not ready", self.unscheduled_jobs.clone());
        registry.register(
            "volcano_unschedule_task_count",
            "Pods that a job lacks to be ready",
            self.unscheduled_tasks.clone(),
        );
        registry.register(
            "volcano_e2e_job_scheduling_latency_milliseconds",
            "From the making of a PodGroup to the bind of each of its pods",
            self.job_latency.clone(),
        );
        registry.register(
            "volcano_e2e_job_scheduling_duration",
            "From the making of a PodGroup to its latest bind, in milliseconds",
            self.job_duration.clone(),
        );
        registry.register(
            "volcano_e2e_job_scheduling_start_time",
            "When a PodGroup was made, in seconds since 1970",
            self.job_start.clone(),
        );
        registry.register(
            "volcano_e2e_job_scheduling_last_time",
            "When a pod of a PodGroup was bound last, in seconds since 1970",
            self.job_last.clone(),
        );
        for (name, family) in AMOUNTS.iter().zip(&self.queues.amounts) {
            registry.register(
                format!("volcano_queue_{name}_milli_cpu"),
                "CPU of a queue, in thousandths",
                family.milli_cpu.clone(),
            );
            registry.register(
                format!("volcano_queue_{name}_memory_bytes"),
                "Memory of a queue",
                family.memory_bytes.clone(),
            );
            registry.register(
                format!("volcano_queue_{name}_scalar_resources"),
                "Other resources of a queue, in thousandths",
                family.scalar_resources.clone(),
            );
        }
        registry.register("volcano_queue_share", "What a queue holds by what it is due", self.queues.share.clone());
        registry.register("volcano_queue_weight", "The weight of a queue", self.queues.weight.clone());
        registry.register(
            "volcano_queue_overused",
            "Whether a queue holds more than its due",
            self.queues.overused.clone(),
        );
        for (phase, family) in PHASES.iter().zip(&self.groups) {
            let name = format!("volcano_queue_pod_group_{}_count", phase.as_str().to_lowercase());
            registry.register(name, "PodGroups of a queue in a phase", family.clone());
        }
        registry.register("scheduler_schedule_attempts", "Binds by result", self.attempts.clone());
        registry.register("scheduler_pending_pods", "Pods that wait, by pool", self.pending_pods.clone());
        registry.register(
            "volcano_pod_preemption_victims",
            "Pods evicted by the last decision that evicted any",
            self.preemption_victims.clone(),
        );
        registry.register(
            "volcano_eviction_transactions",
            "Decisions that evicted pods for a job, by action",
            self.eviction_transactions.clone(),
        );
        registry.register("krafla_binds", "Binds by result", self.binds.clone());
        registry.register("krafla_evictions", "Evictions by result", self.evictions.clone());
        registry.register("krafla_events", "Kubernetes events by result", self.events.clone());
        registry.register("krafla_sessions", "Sessions that have run", self.cycles.clone());
        registry.register(
            "krafla_ledger_discrepancies",
            "Books that were off and have been healed",
            self.discrepancies.clone(),
        );
        registry.register("krafla_session_panics", "Sessions that were dropped", self.panics.clone());
        registry.register("krafla_configurations", "Configurations by result", self.configurations.clone());
        registry.register(
            "krafla_configuration_current",
            "1 if the configuration in force is the one in the file",
            self.configuration_current.clone(),
        );
        registry.register("krafla_leading", "1 if this process leads", self.leading.clone());
    }
}

fn result(text: &str) -> ResultLabel {
    ResultLabel { result: text.to_owned() }
}

#[allow(clippy::cast_precision_loss, reason = "times in milliseconds are below 2^53")]
fn f64_of(n: i64) -> f64 {
    n as f64
}

fn in_ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_on_volcanos_dashboards() {
        let metrics = Metrics::new();
        metrics.session(Duration::from_millis(3));
        metrics.action("allocate", Duration::from_millis(2));
        metrics.plugin("gang", "open", Duration::from_micros(200));
        metrics.bind(Duration::from_millis(5), true);
        let text = metrics.text();
        for name in [
            "volcano_e2e_scheduling_latency_milliseconds_bucket",
            "volcano_action_scheduling_latency_milliseconds_count{action=\"allocate\"}",
            "volcano_plugin_scheduling_latency_milliseconds_sum{plugin=\"gang\",OnSession=\"OnSessionOpen\"}",
            "scheduler_schedule_attempts_total{result=\"scheduled\"} 1",
            "krafla_binds_total{result=\"bound\"} 1",
        ] {
            assert!(text.contains(name), "{name} is missing in\n{text}");
        }
    }
}
