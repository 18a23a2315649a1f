//! One session on a scene.

use std::collections::BTreeMap;

use krafla_framework::conf::compile::compile;
use krafla_framework::conf::policy::ProfilePolicy;
use krafla_framework::{
    Decision, PluginSet, Policy, Reasons, Registry, Room, SearchLimits, Searcher, Session, Verdict,
};
use krafla_model::check::discrepancies;
use krafla_model::{ClusterState, JobPhase, TaskId, TaskStatus};

/// What a session decided, in words.
#[derive(Debug)]
pub struct Outcome {
    /// `pod -> node`, in the order of the decisions.
    pub binds: Vec<String>,
    /// Evicted pods, in the order of the decisions.
    pub evictions: Vec<String>,
    /// Code and text of the reason of each job that has one, by the job's name.
    pub reasons: BTreeMap<String, (&'static str, String)>,
    /// Phases by the job's name.
    pub phases: BTreeMap<String, JobPhase>,
    /// The cluster afterwards, binds on their way.
    pub cluster: ClusterState,
}

/// Runs one session with a configuration in Volcano's form.
///
/// # Panics
/// If the configuration has an error, or if the books are off afterwards.
pub fn run(cluster: ClusterState, registry: &Registry, conf: &str) -> Outcome {
    run_policy(cluster, registry, &policy(registry, conf))
}

/// Runs one session that schedules pods one by one, with kube-scheduler's default profile.
///
/// # Panics
/// If the books are off afterwards.
pub fn run_one_by_one(cluster: ClusterState, registry: &Registry) -> Outcome {
    let profiles = vec![ProfilePolicy::default_profile(registry)];
    run_policy(cluster, registry, &Policy { profiles, ..Policy::default() }.one_by_one())
}

fn run_policy(cluster: ClusterState, registry: &Registry, policy: &Policy) -> Outcome {
    let mut cluster = cluster;
    let mut actions: Vec<_> = policy
        .actions
        .iter()
        .filter_map(|name| registry.actions.iter().find(|builder| builder.info.name == name))
        .map(|builder| (builder.build)(policy.action_arguments(builder.info.name)))
        .collect();
    let names: Vec<&'static str> = actions.iter().map(|action| action.name()).collect();
    let mut plugins = PluginSet::build(policy, registry);
    let mut reasons = Reasons::default();
    let mut searcher = Searcher::default();
    let mut session = Session::open(&mut cluster, &mut plugins, &mut reasons, &mut searcher, &names);
    for action in &mut actions {
        session.run(&mut **action);
    }
    let closed = session.close();
    assert_eq!(discrepancies(&cluster), [], "the books are off");
    let mut outcome = Outcome {
        binds: Vec::new(),
        evictions: Vec::new(),
        reasons: BTreeMap::new(),
        phases: BTreeMap::new(),
        cluster,
    };
    let cluster = &outcome.cluster;
    for decision in &closed.decisions {
        match decision {
            Decision::Bind(task) => {
                let node = cluster.task(*task).node().expect("a bound task has a node");
                outcome.binds.push(format!("{} -> {}", cluster.task(*task).name, cluster.node(node).name()));
            }
            Decision::OpenGate(_) | Decision::Deallocate { .. } => {}
            Decision::Evict(task, _) => outcome.evictions.push(cluster.task(*task).name.to_string()),
        }
    }
    for (id, job) in cluster.jobs() {
        outcome.phases.insert(job.spec.name.to_string(), job.phase);
        if let Some(standing) = reasons.job(id) {
            outcome.reasons.insert(job.spec.name.to_string(), (standing.reason.code(), standing.reason.to_string()));
        }
    }
    outcome
}

/// Opens a session in which no action runs, and asks it something. What it tries is given up again.
///
/// # Panics
/// If the configuration has an error.
pub fn ask<T>(
    cluster: &mut ClusterState,
    registry: &Registry,
    conf: &str,
    question: impl FnOnce(&mut Session<'_>) -> T,
) -> T {
    let mut plugins = PluginSet::build(&policy(registry, conf), registry);
    let mut reasons = Reasons::default();
    let mut searcher = Searcher::default();
    let mut session = Session::open(cluster, &mut plugins, &mut reasons, &mut searcher, &[]);
    let answer = question(&mut session);
    session.close();
    answer
}

/// What each node, in tie order, scores for a pod; whether it would fit is not asked.
///
/// # Panics
/// If the configuration has an error, or if there is no such pod.
pub fn scores(cluster: &ClusterState, registry: &Registry, conf: &str, pod: &str) -> Vec<f64> {
    let plugins = PluginSet::build(&policy(registry, conf), registry);
    let task = task_named(cluster, pod);
    let mut searcher = Searcher::default();
    // The filters leave what the scores need.
    let _ = searcher.find(plugins.profile_for(cluster, task), cluster, task, cluster.nodes(), ANYWHERE, None);
    let scores = searcher.scores(plugins.profile_for(cluster, task), cluster, task, cluster.nodes());
    scores.expect("every plugin scores").to_vec()
}

/// What one node says about a pod.
///
/// # Panics
/// If the configuration has an error, or if there is no such pod or node.
pub fn verdict(
    cluster: &ClusterState,
    registry: &Registry,
    conf: &str,
    pod: &str,
    node: &str,
) -> Result<Room, Verdict> {
    let plugins = PluginSet::build(&policy(registry, conf), registry);
    let node = cluster.find_node(node).expect("the node exists");
    Searcher::default().verdict(
        plugins.profile_for(cluster, task_named(cluster, pod)),
        cluster,
        task_named(cluster, pod),
        node,
        ANYWHERE,
    )
}

/// The task of the pod of this name.
///
/// # Panics
/// If there is none.
pub fn task_named(cluster: &ClusterState, pod: &str) -> TaskId {
    let found = cluster.tasks().find(|(_, task)| task.name == pod);
    found.unwrap_or_else(|| panic!("no pod `{pod}`")).0
}

const ANYWHERE: SearchLimits = SearchLimits { may_start: true, may_wait: true };

/// A configuration in Volcano's form.
///
/// # Panics
/// If it has an error.
pub fn policy(registry: &Registry, conf: &str) -> Policy {
    let compiled = compile(conf, "test.conf", &registry.catalogue());
    let problems = || compiled.problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    compiled.policy.clone().unwrap_or_else(|| panic!("{}", problems()))
}

impl Outcome {
    /// How many pods of a job were bound.
    pub fn n_bound(&self, job: &str) -> usize {
        let is_its = |bind: &&String| {
            let pod = bind.split(' ').next().unwrap_or_default();
            pod.rsplit_once('-').is_some_and(|(owner, _)| owner == job)
        };
        self.binds.iter().filter(is_its).count()
    }

    /// The cluster once every bind that is on its way has been carried out.
    pub fn settled(self) -> ClusterState {
        let mut cluster = self.cluster;
        let binding: Vec<TaskId> =
            cluster.tasks().filter(|(_, task)| task.status() == TaskStatus::Binding).map(|(id, _)| id).collect();
        for task in binding {
            cluster.bind_done(task);
        }
        cluster
    }
}
