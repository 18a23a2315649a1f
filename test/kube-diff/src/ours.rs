//! Krafla's answers, on a model that is told the same objects.

use std::collections::BTreeMap;

use krafla_api::{Converter, Object};
use krafla_framework::conf::policy::ProfilePolicy;
use krafla_framework::{Found, PluginSet, Policy, Reasons, SearchLimits, Searcher, Session};
use krafla_model::{ClusterState, NodeId, TaskId, Time};

use crate::answer::Answer;

/// Krafla with kube-scheduler's default profile, pods one by one.
pub(crate) struct Ours {
    converter: Converter,
    pub(crate) cluster: ClusterState,
    plugins: PluginSet,
    reasons: Reasons,
    searcher: Searcher,
}

/// What DefaultPreemption says: the node and who has to go, if anything helps.
pub(crate) type Preemption = Option<(String, Vec<String>)>;

impl Ours {
    pub(crate) fn new() -> Self {
        let registry = krafla_plugins::registry(krafla_actions::all());
        let profiles = vec![ProfilePolicy::default_profile(&registry)];
        let policy = Policy { profiles, ..Policy::default() }.one_by_one();
        Self {
            converter: Converter::new(),
            cluster: ClusterState::new(),
            plugins: PluginSet::build(&policy, &registry),
            reasons: Reasons::default(),
            searcher: Searcher::default(),
        }
    }

    /// An object is new, or other than before. Answers what is wrong with it.
    pub(crate) fn apply(&mut self, object: &Object) -> Vec<String> {
        let (event, mut problems) = self.converter.event(object);
        if let Some(event) = event {
            problems.extend(self.cluster.apply(event));
        }
        problems.into_iter().map(|problem| format!("{}: {}", problem.object, problem.message)).collect()
    }

    /// An object is gone.
    pub(crate) fn gone(&mut self, object: &Object) {
        if let Some(event) = self.converter.gone(object) {
            let _ = self.cluster.apply(event);
        }
    }

    /// What becomes of a pod that waits; `None` if it is not in the model.
    pub(crate) fn answer(&mut self, uid: &str) -> Option<Answer> {
        let task = self.cluster.find_task(uid)?;
        let before = self.cluster.savepoint();
        for (other, node) in self.nominated_before(task) {
            let _ = self.cluster.promise(other, node);
        }
        let answer = self.search(task);
        while self.cluster.undo_one(before).is_some() {}
        Some(answer)
    }

    /// Pods that were nominated for a node and come before `task`, as the action `schedule-one` takes them.
    fn nominated_before(&self, task: TaskId) -> Vec<(TaskId, NodeId)> {
        let cluster = &self.cluster;
        let priority = cluster.task(task).priority;
        let before = |other: &TaskId| *other != task && cluster.task(*other).priority >= priority;
        let node = |other: TaskId| Some((other, cluster.find_node(cluster.task(other).nominated.as_deref()?)?));
        cluster.nominees().filter(before).filter_map(node).collect()
    }

    #[allow(clippy::cast_possible_truncation, reason = "scores are whole numbers of at most some hundreds")]
    fn search(&mut self, task: TaskId) -> Answer {
        let now = SearchLimits { may_start: true, may_wait: false };
        let (cluster, searcher) = (&self.cluster, &mut self.searcher);
        let profile = self.plugins.profile_for(cluster, task);
        let found = searcher.find(profile, cluster, task, cluster.nodes(), now, None);
        let name = |node: NodeId| cluster.node(node).name().to_string();
        let feasible: Vec<NodeId> = searcher.feasible().to_vec();
        let mut answer = Answer { feasible: feasible.iter().map(|node| name(*node)).collect(), ..Answer::default() };
        match found {
            Found::Node { node, .. } => answer.chosen = Some(name(node)),
            Found::Nothing(refusals) => answer.objections = refusals.objections,
        }
        if feasible.len() > 1 {
            let mut scores: BTreeMap<String, BTreeMap<String, i64>> = BTreeMap::new();
            let tell = |plugin: &'static str, weighted: &[f64]| {
                for (node, score) in feasible.iter().zip(weighted) {
                    scores.entry(name(*node)).or_default().insert(plugin.to_owned(), *score as i64);
                }
            };
            let _ = searcher.scores_by_plugin(profile, cluster, task, &feasible, tell);
            answer.scores = scores;
        }
        for &node in cluster.nodes() {
            if let Err(verdict) = searcher.verdict(profile, cluster, task, node, now) {
                let why = verdict.why().map(|why| why.text(cluster)).unwrap_or_default();
                answer.against.insert(name(node), why);
            }
        }
        answer
    }

    /// Whom a pod that fits nowhere would evict, and where.
    pub(crate) fn preemption(&mut self, uid: &str, now: Time) -> Option<Preemption> {
        let task = self.cluster.find_task(uid)?;
        self.cluster.set_now(now);
        let Self { cluster, plugins, reasons, searcher, .. } = self;
        let mut session = Session::open(cluster, plugins, reasons, searcher, &[]);
        let as_it_is = SearchLimits { may_start: true, may_wait: false };
        let (found, _) = session.find_node_from(task, 0, usize::MAX, as_it_is);
        let nominated = match found {
            Found::Node { .. } => None,
            Found::Nothing(refusals) => session.run_post_filter_plugins(task, &refusals).0,
        };
        session.close();
        let cluster = &self.cluster;
        Some(nominated.map(|(node, victims)| {
            let label = |victim: &TaskId| format!("{}/{}", cluster.namespace_of(*victim), cluster.task(*victim).name);
            let mut names: Vec<String> = victims.iter().map(label).collect();
            names.sort();
            (cluster.node(node).name().to_string(), names)
        }))
    }
}
