//! `pdb`: no more pods are evicted than their PodDisruptionBudgets allow.

use std::collections::BTreeMap;

use krafla_framework::session_plugin::{Comparison, EvictionKind, SessionPlugin, Victims};
use krafla_framework::{PluginEntry, PluginInfo, Point};
use krafla_model::{Budget, ClusterState, JobId, Name, ShapeId, TaskId};

/// Name, arguments and points.
pub const INFO: PluginInfo = PluginInfo {
    name: "pdb",
    about: "evict no more pods than their budgets allow",
    arguments: &[],
    points: &[Point::Preemptable, Point::Reclaimable, Point::UnifiedEvictable, Point::Evictable],
};

struct Pdb;

/// Makes the plugin.
pub fn build(_: &PluginEntry) -> Box<dyn SessionPlugin> {
    Box::new(Pdb)
}

impl SessionPlugin for Pdb {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn points(&self) -> &'static [Point] {
        INFO.points
    }

    fn preemptable(&self, cluster: &ClusterState, _: TaskId, candidates: &[TaskId]) -> Victims {
        within_budgets(cluster, candidates)
    }

    /// One victim may use up what another would need.
    fn preempts_no_more(&self, cluster: &ClusterState, _: JobId, _: JobId) -> Comparison {
        if cluster.has_budgets() { Comparison::Unknown } else { Comparison::Always }
    }

    fn reclaims_no_more(&self, cluster: &ClusterState, job: JobId, than: JobId) -> Comparison {
        self.preempts_no_more(cluster, job, than)
    }

    fn reclaimable(&self, cluster: &ClusterState, _: TaskId, candidates: &[TaskId]) -> Victims {
        within_budgets(cluster, candidates)
    }

    fn unified_evictable(&self, cluster: &ClusterState, _: EvictionKind, _: JobId, candidates: &[TaskId]) -> Victims {
        within_budgets(cluster, candidates)
    }

    fn evictable(&self, cluster: &ClusterState, candidates: &[TaskId]) -> Victims {
        within_budgets(cluster, candidates)
    }
}

/// A budget, and how many of its pods may still go.
struct Account<'a> {
    budget: &'a Budget,
    /// Counted when it is first asked for.
    left: Option<i64>,
}

/// Candidates, in their order, as long as every budget of each has some left.
///
/// Cost: candidates times the budgets of one pod, and once for each of these budgets the tasks that terminate.
fn within_budgets(cluster: &ClusterState, candidates: &[TaskId]) -> Victims {
    let mut accounts: BTreeMap<&Name, Vec<Account<'_>>> = BTreeMap::new();
    // Which budgets of its namespace protect a shape, by their place.
    let mut protecting: BTreeMap<ShapeId, Vec<usize>> = BTreeMap::new();
    let mut victims = Vec::new();
    for &candidate in candidates {
        let task = cluster.task(candidate);
        let namespace = cluster.namespace_of(candidate);
        let accounts = accounts
            .entry(namespace)
            .or_insert_with(|| cluster.budgets(namespace).map(|budget| Account { budget, left: None }).collect());
        let mine = protecting.entry(task.shape).or_insert_with(|| {
            (0..accounts.len()).filter(|&i| accounts[i].budget.protects(cluster, candidate)).collect()
        });
        // A pod that a budget lists is part of what its status allows.
        let charged: Vec<usize> = mine.iter().copied().filter(|&i| !accounts[i].budget.lists(&task.name)).collect();
        let has_some = |account: &mut Account<'_>| {
            let budget = account.budget;
            *account.left.get_or_insert_with(|| budget.left(cluster)) > 0
        };
        if charged.iter().all(|&i| has_some(&mut accounts[i])) {
            for i in charged {
                accounts[i].left = accounts[i].left.map(|left| left - 1);
            }
            victims.push(candidate);
        }
    }
    Victims::Only(victims)
}

#[cfg(test)]
mod tests {
    use krafla_model::labels::{Requirement, Selector, Test};
    use krafla_model::{BudgetSpec, Event, PodSpec};
    use krafla_testkit::{JobScene, Scene, task_named};

    use super::*;
    use crate::testing::{conf, registry};

    /// A budget for pods with `key=value`; for all of the namespace if that is empty.
    fn budget(name: &str, label: &str, allowed: u32) -> BudgetSpec {
        let one = label
            .split_once('=')
            .map(|(key, value)| Requirement { key: key.into(), test: Test::In(vec![value.into()]) });
        BudgetSpec {
            namespace: "default".into(),
            name: name.into(),
            selector: Some(Selector(one.into_iter().collect())),
            allowed: Some(allowed),
            ..BudgetSpec::default()
        }
    }

    fn labelled(job: JobScene, labels: &str) -> JobScene {
        job.shape(|shape| {
            for (key, value) in labels.split(',').filter_map(|label| label.split_once('=')) {
                shape.labels.set(key.into(), value.into());
            }
        })
    }

    /// Jobs of these labels with this many running pods.
    fn scene(jobs: &[(&str, &str, u32)], budgets: &[BudgetSpec]) -> Scene {
        let scene = jobs.iter().fold(Scene::new().node("n", "99c"), |scene, (name, labels, n)| {
            scene.job(name, |job| labelled(job, labels).running(*n, "1c", "n"))
        });
        budgets.iter().cloned().map(Event::Budget).fold(scene, Scene::event)
    }

    fn running(cluster: &ClusterState) -> Vec<TaskId> {
        cluster
            .tasks()
            .filter(|(_, task)| task.status() == krafla_model::TaskStatus::Running)
            .map(|(id, _)| id)
            .collect()
    }

    fn names(cluster: &ClusterState, victims: Victims) -> Vec<String> {
        let Victims::Only(victims) = victims else { panic!("an opinion") };
        victims.into_iter().map(|task| cluster.task(task).name.to_string()).collect()
    }

    /// Who may go of those who run, which is the same at every point.
    fn victims(cluster: &ClusterState) -> Vec<String> {
        let candidates = running(cluster);
        let (job, _) = cluster.jobs().next().unwrap();
        let answers = [
            Pdb.preemptable(cluster, candidates[0], &candidates),
            Pdb.reclaimable(cluster, candidates[0], &candidates),
            Pdb.unified_evictable(cluster, EvictionKind::GangPreempt, job, &candidates),
            Pdb.unified_evictable(cluster, EvictionKind::GangReclaim, job, &candidates),
        ];
        let [first, rest @ ..] = answers.map(|answer| names(cluster, answer));
        assert!(rest.iter().all(|answer| *answer == first), "{first:?}, {rest:?}");
        first
    }

    #[test]
    fn as_many_go_as_every_budget_allows_in_the_order_of_the_candidates() {
        let listing =
            |pods: &[&str], budget| BudgetSpec { disrupted: pods.iter().map(|pod| (*pod).into()).collect(), ..budget };
        let elsewhere = BudgetSpec { namespace: "other".into(), ..budget("b", "", 0) };
        let nobodys = BudgetSpec { selector: None, ..budget("b", "", 0) };
        let uncounted = BudgetSpec { allowed: None, ..budget("b", "app=a", 0) };
        for (name, jobs, budgets, want) in [
            ("no budget", &[("a", "app=a", 2_u32)] as &[(&str, &str, u32)], vec![], &["a-0", "a-1"] as &[&str]),
            ("nothing allowed", &[("a", "app=a", 2)], vec![budget("b", "app=a", 0)], &[]),
            ("one allowed", &[("a", "app=a", 2)], vec![budget("b", "app=a", 1)], &["a-0"]),
            ("another's budget", &[("a", "app=a", 2)], vec![budget("b", "app=b", 0)], &["a-0", "a-1"]),
            ("another namespace", &[("a", "app=a", 1)], vec![elsewhere], &["a-0"]),
            ("no labels, no match", &[("a", "", 2)], vec![budget("b", "app=a", 0)], &["a-0", "a-1"]),
            ("no labels, a budget for all", &[("a", "", 2)], vec![budget("b", "", 1)], &["a-0"]),
            ("a budget without a selector", &[("a", "app=a", 1)], vec![nobodys], &["a-0"]),
            ("a budget that nobody has counted", &[("a", "app=a", 1)], vec![uncounted], &[]),
            ("listed already", &[("a", "app=a", 3)], vec![listing(&["a-1"], budget("b", "app=a", 1))], &["a-0", "a-1"]),
            (
                "two budgets, the smaller one decides",
                &[("a", "app=a,tier=x", 3)],
                vec![budget("app", "app=a", 2), budget("tier", "tier=x", 1)],
                &["a-0"],
            ),
            (
                // In Volcano a-0 and a-1 would use up the first budget on their way to being rejected by the second.
                "who is rejected uses nothing up",
                &[("a", "app=a,tier=x", 2), ("b", "app=a", 2)],
                vec![budget("app", "app=a", 1), budget("tier", "tier=x", 0)],
                &["b-0"],
            ),
        ] {
            let cluster = scene(jobs, &budgets).build();
            assert_eq!(victims(&cluster), want, "{name}");
        }
    }

    #[test]
    fn expressions_select_too() {
        for (test, want) in [
            (Test::In(vec!["a".into(), "b".into()]), &["c-0"] as &[&str]),
            (Test::NotIn(vec!["a".into()]), &["a-0"]),
            (Test::Exists, &[]),
            (Test::DoesNotExist, &["a-0", "b-0", "c-0"]),
        ] {
            let selector = Some(Selector(vec![Requirement { key: "app".into(), test: test.clone() }]));
            let budget = BudgetSpec { selector, ..budget("b", "", 0) };
            let jobs = [("a", "app=a", 1), ("b", "app=b", 1), ("c", "app=c", 1)];
            assert_eq!(victims(&scene(&jobs, &[budget]).build()), want, "{test:?}");
        }
    }

    /// What the watch says of a pod once it is being deleted.
    fn deleted(cluster: &ClusterState, pod: &str) -> Event {
        let id = task_named(cluster, pod);
        let task = cluster.task(id);
        Event::Pod(PodSpec {
            uid: task.uid.clone(),
            name: task.name.clone(),
            group: task.group.clone(),
            shape: cluster.shape_of(id).spec.clone(),
            created: task.created,
            priority: task.priority,
            node: Some("n".into()),
            phase: task.phase,
            deleting: true,
            ..PodSpec::default()
        })
    }

    /// What a session does that decides to evict a pod.
    fn evict(cluster: &mut ClusterState, pod: &str) {
        let (task, savepoint) = (task_named(cluster, pod), cluster.savepoint());
        cluster.evict(task).unwrap();
        cluster.keep_since(savepoint);
    }

    #[test]
    fn an_eviction_counts_once_before_the_controller_knows_and_after() {
        let told = |allowed, disrupted: &[&str]| {
            let disrupted = disrupted.iter().map(|pod| (*pod).into()).collect();
            Event::Budget(BudgetSpec { disrupted, ..budget("b", "app=a", allowed) })
        };
        let mut cluster = scene(&[("a", "app=a", 4)], &[budget("b", "app=a", 2)]).build();
        let left = |cluster: &ClusterState| victims(cluster).len();
        assert_eq!(left(&cluster), 2);
        evict(&mut cluster, "a-0");
        assert_eq!(left(&cluster), 1, "the next session, before anybody has told the status");
        cluster.apply(told(2, &[]));
        assert_eq!(left(&cluster), 1, "an older status comes in");
        cluster.apply(told(1, &["a-0"]));
        assert_eq!(left(&cluster), 1, "the API server has noted the eviction");
        let event = deleted(&cluster, "a-0");
        cluster.apply(event);
        assert_eq!(left(&cluster), 1, "the pod terminates");
        cluster.apply(told(1, &[]));
        assert_eq!(left(&cluster), 1, "the controller has seen the deletion, and lists the pod no more");
        cluster.apply(told(2, &[]));
        assert_eq!(left(&cluster), 2, "a replacement is healthy while the pod still terminates");
        cluster.apply(Event::PodGone("default/a-0".into()));
        assert_eq!(left(&cluster), 2);
    }

    #[test]
    fn a_pod_that_somebody_deletes_counts_until_the_controller_has_seen_it() {
        let mut cluster = scene(&[("a", "app=a", 4)], &[budget("b", "app=a", 2)]).build();
        let event = deleted(&cluster, "a-3");
        cluster.apply(event);
        assert_eq!(victims(&cluster), ["a-0"]);
        cluster.apply(Event::Budget(budget("b", "app=a", 1)));
        assert_eq!(victims(&cluster), ["a-0"]);
    }

    #[test]
    fn what_a_session_tries_counts_and_what_it_takes_back_does_not() {
        let mut cluster = scene(&[("a", "app=a", 3)], &[budget("b", "app=a", 2)]).build();
        let tasks = running(&cluster);
        let conf = conf("allocate", &[&["pdb"]]);
        krafla_testkit::ask(&mut cluster, &registry(), &conf, |session| {
            let named = |session: &krafla_framework::Session<'_>| {
                session.plugins().preemptable(session.cluster(), tasks[0], &tasks[1..]).len()
            };
            let mut statement = session.statement();
            statement.evict(tasks[0]).unwrap();
            assert_eq!(named(statement.session()), 1);
            drop(statement);
            assert_eq!(named(session), 2);
        });
    }

    #[test]
    fn it_names_no_victims_of_its_own() {
        // In Volcano it would hand every running pod within its budgets to `shuffle`.
        let mut cluster = scene(&[("a", "app=a", 2)], &[]).build();
        let tasks = running(&cluster);
        let conf = conf("allocate", &[&["pdb"]]);
        let named = krafla_testkit::ask(&mut cluster, &registry(), &conf, |session| {
            session.plugins().victim_tasks(session.cluster(), &tasks)
        });
        assert_eq!(named, []);
    }
}
