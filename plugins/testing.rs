//! What the tests of this crate share.

use std::fmt::Write;

use krafla_framework::conf::policy::ProfilePolicy;
use krafla_framework::{Found, PluginSet, Policy, Registry, SearchLimits, Searcher};
use krafla_model::{ClusterState, JobPhase};
use krafla_testkit::{JobScene, Outcome, Scene};

/// Every action and plugin.
pub(crate) fn registry() -> Registry {
    crate::registry(krafla_actions::all())
}

/// A configuration in Volcano's form. A plugin is written `gang enableJobReady=false binpack.weight=3`: its name, then
/// switches and arguments.
pub(crate) fn conf(actions: &str, tiers: &[&[&str]]) -> String {
    let mut text = format!("actions: \"{actions}\"\ntiers:\n");
    for tier in tiers {
        text += "- plugins:\n";
        for plugin in *tier {
            let mut words = plugin.split(' ');
            let name = words.next().unwrap_or_default();
            let pairs: Vec<(&str, &str)> = words.filter_map(|word| word.split_once('=')).collect();
            let (switches, arguments): (Vec<_>, Vec<_>) =
                pairs.into_iter().partition(|(key, _)| krafla_framework::conf::switches::switch(key).is_some());
            let _ = writeln!(text, "  - name: {name}");
            for (key, value) in switches {
                let _ = writeln!(text, "    {key}: {value}");
            }
            if !arguments.is_empty() {
                text += "    arguments:\n";
            }
            for (key, value) in arguments {
                let _ = writeln!(text, "      {key}: {value}");
            }
        }
    }
    text
}

/// A session with these actions and one tier of plugins.
pub(crate) fn run(scene: &Scene, actions: &str, plugins: &[&str]) -> Outcome {
    krafla_testkit::run(scene.build(), &registry(), &conf(actions, &[plugins]))
}

/// A session that schedules pods one by one, with kube-scheduler's default profile.
pub(crate) fn run_one_by_one(scene: &Scene) -> Outcome {
    krafla_testkit::run_one_by_one(scene.build(), &registry())
}

/// What the nodes object to a pod in kube-scheduler's default profile.
pub(crate) fn objections_one_by_one(scene: &Scene, pod: &str) -> Vec<(String, u32)> {
    let (cluster, mut searcher, plugins) = one_by_one(scene);
    let task = krafla_testkit::task_named(&cluster, pod);
    let now = SearchLimits { may_start: true, may_wait: false };
    match searcher.find(plugins.profile_for(&cluster, task), &cluster, task, cluster.nodes(), now, None) {
        Found::Node { .. } => Vec::new(),
        Found::Nothing(refusals) => refusals.objections.into_iter().collect(),
    }
}

/// What a plugin of that profile adds to the nodes, in tie order, its weight included.
pub(crate) fn scores_one_by_one(scene: &Scene, plugin: &str, pod: &str) -> Vec<f64> {
    let (cluster, mut searcher, plugins) = one_by_one(scene);
    let task = krafla_testkit::task_named(&cluster, pod);
    let profile = plugins.profile_for(&cluster, task);
    let now = SearchLimits { may_start: true, may_wait: false };
    let _ = searcher.find(profile, &cluster, task, cluster.nodes(), now, None);
    let mut said = Vec::new();
    let tell = |name: &'static str, scores: &[f64]| {
        if name == plugin {
            said = scores.to_vec();
        }
    };
    searcher.scores_by_plugin(profile, &cluster, task, cluster.nodes(), tell).expect("every plugin scores");
    said
}

fn one_by_one(scene: &Scene) -> (ClusterState, Searcher, PluginSet) {
    let registry = registry();
    let profiles = vec![ProfilePolicy::default_profile(&registry)];
    let plugins = PluginSet::build(&Policy { profiles, ..Policy::default() }.one_by_one(), &registry);
    (scene.build(), Searcher::default(), plugins)
}

/// Scores of the nodes, in tie order, for a pod.
pub(crate) fn scores(scene: &Scene, plugins: &[&str], pod: &str) -> Vec<f64> {
    krafla_testkit::scores(&scene.build(), &registry(), &conf("allocate", &[plugins]), pod)
}

/// Why a node does not take a pod, and whether an eviction there could change that; `None` if it takes it.
pub(crate) fn objection(scene: &Scene, plugins: &[&str], pod: &str, node: &str) -> Option<(&'static str, bool)> {
    use krafla_framework::{Verdict, Why};
    let said = |why| match why {
        Why::Says(text) => text,
        Why::Told(_) => "told",
        Why::Short(_) => "short",
    };
    match krafla_testkit::verdict(&scene.build(), &registry(), &conf("allocate", &[plugins]), pod, node) {
        Ok(_) | Err(Verdict::Fits) => None,
        Err(Verdict::Unschedulable(why)) => Some((said(why), true)),
        Err(Verdict::Unresolvable(why) | Verdict::Error(why)) => Some((said(why), false)),
    }
}

/// Whether the compiler takes a plugin with these switches and arguments.
pub(crate) fn compiles(plugin: &str) -> bool {
    let text = conf("allocate", &[&[plugin]]);
    krafla_framework::conf::compile::compile(&text, "test.conf", &registry().catalogue()).policy.is_some()
}

/// What a configuration of one plugin says to a reclaim: whether `pod` may reclaim at all, and who of `candidates`, in
/// this order, would give back.
pub(crate) fn reclaims(scene: &Scene, plugin: &str, pod: &str, candidates: &[&str]) -> (bool, Vec<String>) {
    let mut cluster = scene.build();
    krafla_testkit::ask(&mut cluster, &registry(), &conf("allocate", &[&[plugin]]), |session| {
        let (cluster, plugins) = (session.cluster(), session.plugins());
        let reclaimer = krafla_testkit::task_named(cluster, pod);
        let queue = cluster.task(reclaimer).job.and_then(|job| cluster.job(job).queue).expect("the pod has a queue");
        let candidates: Vec<_> = candidates.iter().map(|pod| krafla_testkit::task_named(cluster, pod)).collect();
        let victims = plugins.reclaimable(cluster, reclaimer, &candidates);
        let names = victims.iter().map(|task| cluster.task(*task).name.to_string()).collect();
        (plugins.preemptive(cluster, queue, &[reclaimer]), names)
    })
}

/// Queues in the order in which they take turns.
pub(crate) fn queue_order(scene: &Scene, plugin: &str) -> Vec<String> {
    let mut cluster = scene.build();
    krafla_testkit::ask(&mut cluster, &registry(), &conf("allocate", &[&[plugin]]), |session| {
        let cluster = session.cluster();
        let mut ranks: Vec<_> = cluster.queues().map(|(id, _)| session.plugins().queue_rank(cluster, id)).collect();
        ranks.sort_unstable();
        ranks.into_iter().map(|(.., id)| cluster.queue(id).spec.name.to_string()).collect()
    })
}

/// What each queue is due, by name, without the pod slots; queues that are due nothing are left out.
pub(crate) fn dues(scene: &Scene, plugin: &str) -> Vec<String> {
    let mut cluster = scene.build();
    krafla_testkit::ask(&mut cluster, &registry(), &conf("allocate", &[&[plugin]]), |session| {
        let cluster = session.cluster();
        let due = |id| Some(crate::queue_limits::without_pods(&session.plugins().deserved(id)?));
        let all = cluster.queues().filter_map(|(id, queue)| Some((&queue.spec.name, due(id)?)));
        all.filter(|(_, due)| !due.is_zero())
            .map(|(name, due)| format!("{name}: {}", cluster.names().format_all(&due)))
            .collect()
    })
}

/// A job of one pod that runs on a node.
pub(crate) fn runs(queue: &'static str, asks: &'static str, node: &'static str) -> impl Fn(JobScene) -> JobScene {
    move |job| {
        let job = job.queue(queue).min(1).min_resources(asks).running(1, asks, node);
        job.group(|group| group.phase = JobPhase::Running)
    }
}

/// A job of one pod that stands at the door.
pub(crate) fn waits(queue: &'static str, asks: &'static str) -> impl Fn(JobScene) -> JobScene {
    move |job| job.queue(queue).min(1).min_resources(asks).at_the_door().pending(1, asks)
}
