//! `tdm`: nodes that are lent to batch work at some hours of the day, and taken back after them.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use krafla_framework::conf::window::DailyWindow;
use krafla_framework::reasons::Reasons;
use krafla_framework::session_plugin::{Comparison, JobCondition, SessionPlugin, Unwanted, Victims, Vote};
use krafla_framework::{
    ArgumentInfo, ArgumentKind, CycleState, NodePlugin, PluginEntry, PluginInfo, Point, ProfileEntry, Rank, Room,
    Scope, Value, Verdict, Why,
};
use krafla_model::budget::Aim;
use krafla_model::{ClusterState, Job, JobId, NodeId, TaskId, TaskStatus, Time};

/// Name, arguments and points.
pub const INFO: PluginInfo = PluginInfo {
    name: "tdm",
    about: "lend nodes to batch work at some hours of the day",
    arguments: &[
        ArgumentInfo::new(
            "tdm.revocable-zone.*",
            ArgumentKind::DailyWindow,
            "",
            "when the nodes of a zone may be used, such as 22:00-06:00",
        ),
        ArgumentInfo::new(PERIOD, ArgumentKind::Duration, "1m", "shortest time between two rounds of evictions"),
        ArgumentInfo::new(
            OFFSET,
            ArgumentKind::Integer { min: -1_080, max: 1_080 },
            "0",
            "how many minutes the clock of the windows is ahead of UTC",
        ),
    ],
    points: &[
        Point::Predicate,
        Point::NodeOrder,
        Point::Preemptable,
        Point::VictimTasks,
        Point::JobOrder,
        Point::JobPipelined,
        Point::JobStarving,
    ],
};

const ZONE: &str = "tdm.revocable-zone.";
const PERIOD: &str = "tdm.evict.period";
const OFFSET: &str = "tdm.utc-offset-minutes";
/// The label of a revocable node: its zone.
const ZONE_LABEL: &str = "volcano.sh/revocable-zone";
/// The highest score of a node, as in Kubernetes.
const BEST: f64 = 100.0;

/// The zones, and the hours of each.
struct Zones {
    windows: BTreeMap<String, DailyWindow>,
    offset_ms: i64,
}

/// What a node is in a zone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It is in none.
    Plain,
    /// Its zone may be used now.
    Open,
    /// Its zone may not be used now.
    Closed,
    /// Nobody has said when its zone may be used.
    Unknown,
}

impl Zones {
    fn window(&self, cluster: &ClusterState, node: NodeId) -> Option<&DailyWindow> {
        self.windows.get(zone(cluster, node)?)
    }

    fn standing(&self, cluster: &ClusterState, node: NodeId) -> Standing {
        if zone(cluster, node).is_none() {
            return Standing::Plain;
        }
        match self.window(cluster, node) {
            None => Standing::Unknown,
            Some(window) if window.is_open(cluster.now(), self.offset_ms) => Standing::Open,
            Some(_) => Standing::Closed,
        }
    }

    /// Pods that may be evicted and run on nodes whose hours are over. Cost: linear in nodes and in what is there.
    fn overdue(&self, cluster: &ClusterState) -> Vec<TaskId> {
        let closed = cluster.nodes().iter().filter(|node| self.standing(cluster, **node) == Standing::Closed);
        let tasks = closed.flat_map(|node| cluster.node(*node).books().tasks.iter().copied());
        tasks.filter(|task| is_preemptable(cluster, *task) && runs(cluster, *task)).collect()
    }
}

impl Zones {
    /// Why a task should leave its node, in words.
    fn why(&self, cluster: &ClusterState, task: TaskId) -> String {
        let node = cluster.task(task).node();
        let (name, zone) = node
            .map_or(("?", "?"), |node| (cluster.node(node).name().as_str(), zone(cluster, node).unwrap_or_default()));
        let hours = self.windows.get(zone).map(DailyWindow::to_string).unwrap_or_default();
        format!("node {name} is outside of the hours {hours} of its zone `{zone}`")
    }
}

fn zone(cluster: &ClusterState, node: NodeId) -> Option<&str> {
    let zone = cluster.node(node).spec.labels.get(ZONE_LABEL)?;
    Some(zone.as_str()).filter(|zone| !zone.is_empty())
}

fn is_preemptable(cluster: &ClusterState, task: TaskId) -> bool {
    !cluster.shape_of(task).spec.protected
}

fn runs(cluster: &ClusterState, task: TaskId) -> bool {
    cluster.task(task).status() == TaskStatus::Running
}

struct Tdm {
    zones: Arc<Zones>,
    period_ms: i64,
    /// Whether evictions are due in this session.
    due: bool,
    /// When they were due last.
    last_round: Option<Time>,
    /// Whether this session carries a round out.
    asked: bool,
    /// When the answers change next, as the last session left the cluster.
    wake: Time,
}

/// Makes the plugin.
pub fn build(entry: &PluginEntry) -> Box<dyn SessionPlugin> {
    let arguments = &entry.arguments;
    let window = |(zone, value): (&str, &Value)| match value {
        Value::Text(text) => Some((zone.to_owned(), DailyWindow::parse(text)?)),
        _ => None,
    };
    let zones = Zones {
        windows: arguments.with_prefix(ZONE).filter_map(window).collect(),
        offset_ms: arguments.integer(OFFSET, 0) * 60_000,
    };
    Box::new(Tdm {
        zones: Arc::new(zones),
        period_ms: i64::try_from(arguments.duration_ms(PERIOD, 60_000)).unwrap_or(i64::MAX),
        due: false,
        last_round: None,
        asked: false,
        wake: Time::NEVER,
    })
}

impl SessionPlugin for Tdm {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn points(&self) -> &'static [Point] {
        INFO.points
    }

    fn node_plugins(&self) -> Vec<ProfileEntry> {
        vec![ProfileEntry::both(Box::new(RevocableNodes(Arc::clone(&self.zones))), 1.0)]
    }

    fn open(&mut self, cluster: &ClusterState) {
        let now = cluster.now();
        self.asked = false;
        self.due = self.last_round.is_none_or(|last| now >= last + self.period_ms);
        if self.due {
            self.last_round = Some(now);
        }
    }

    fn before_action(&mut self, _: &ClusterState, action: &str) {
        self.asked |= action == "shuffle";
    }

    /// Cost: linear in nodes, and in the tasks that wait.
    fn close(&mut self, cluster: &ClusterState, _: &Reasons, _: &[JobId], _: &mut Vec<JobCondition>) {
        self.wake = if self.zones.windows.is_empty() { Time::NEVER } else { self.next_change(cluster) };
    }

    /// Jobs that may not be evicted go first.
    fn job_order(&self, cluster: &ClusterState, job: JobId, rank: &mut Rank) {
        rank.ascending(i32::from(cluster.job(job).spec.preemptable == Some(true)));
    }

    fn job_pipelined(&self, cluster: &ClusterState, job: JobId) -> Vote {
        crate::gang::minimum_is_promised(cluster, job)
    }

    fn job_starving(&self, cluster: &ClusterState, job: JobId) -> bool {
        let job = cluster.job(job);
        job.spec.preemptable != Some(true) && job.counts().of(TaskStatus::Pending) > 0
    }

    /// Who may run on revocable nodes evicts nobody: there will be room there in its hours.
    fn preemptable(&self, cluster: &ClusterState, preemptor: TaskId, candidates: &[TaskId]) -> Victims {
        if is_preemptable(cluster, preemptor) || cluster.shape_of(preemptor).spec.revocable {
            return Victims::Only(Vec::new());
        }
        let is_plain = |task: TaskId| cluster.task(task).node().is_some_and(|node| zone(cluster, node).is_none());
        let fit = candidates.iter().copied();
        let fit = fit.filter(|task| is_preemptable(cluster, *task) && runs(cluster, *task) && is_plain(*task));
        Victims::Only(as_jobs_allow(cluster, fit))
    }

    /// It looks at the shape of the preemptor alone.
    fn preempts_no_more(&self, _: &ClusterState, _: JobId, _: JobId) -> Comparison {
        Comparison::Now
    }

    fn victim_tasks(&self, cluster: &ClusterState, _: &[TaskId]) -> Vec<Unwanted> {
        if !self.due {
            return Vec::new();
        }
        let mut overdue = self.zones.overdue(cluster);
        overdue.sort_by_cached_key(|task| {
            let task = cluster.task(*task);
            let (ordinal, created, uid) = task.default_order();
            (task.priority, Reverse((ordinal, created, uid.clone())))
        });
        let leave = as_jobs_allow(cluster, overdue.into_iter());
        leave.into_iter().map(|task| Unwanted { task, why: self.zones.why(cluster, task) }).collect()
    }

    fn wakes_at(&self, cluster: &ClusterState) -> Time {
        if self.wake > cluster.now() { self.wake } else { Time::NEVER }
    }
}

impl Tdm {
    /// When a zone opens for which somebody waits, closes on somebody, or the next round of evictions is due.
    fn next_change(&self, cluster: &ClusterState) -> Time {
        let tasks = cluster.waiting_jobs().flat_map(|job| cluster.job(job).tasks());
        let mut waiting = tasks.filter(|task| cluster.task(*task).status() == TaskStatus::Pending);
        let somebody_waits = waiting.any(|task| cluster.shape_of(task).spec.revocable);
        let (now, mut next) = (cluster.now(), Time::NEVER);
        for &node in cluster.nodes() {
            let Some(window) = self.zones.window(cluster, node) else { continue };
            let is_open = window.is_open(now, self.zones.offset_ms);
            if (is_open && !cluster.node(node).books().tasks.is_empty()) || (!is_open && somebody_waits) {
                next = next.min(window.next_change(now, self.zones.offset_ms));
            }
        }
        // A round is asked for as long as somebody is still there: more than its job allows, or protected. None if nobody
        // carries rounds out.
        if (!self.due || self.asked) && !self.zones.overdue(cluster).is_empty() {
            next = next.min(self.last_round.map_or(Time::NEVER, |last| last + self.period_ms));
        }
        next
    }
}

/// Of each job as many as it can do without, in their order. Pods without a job are left out.
fn as_jobs_allow(cluster: &ClusterState, tasks: impl Iterator<Item = TaskId>) -> Vec<TaskId> {
    let mut left: BTreeMap<JobId, u32> = BTreeMap::new();
    let mut victims = Vec::new();
    for task in tasks {
        let Some(id) = cluster.task(task).job else { continue };
        let left = left.entry(id).or_insert_with(|| dispensable(cluster.job(id)));
        if *left > 0 {
            *left -= 1;
            victims.push(task);
        }
    }
    victims
}

/// How many pods of a job may be moved out at once; one if it says nothing.
fn dispensable(job: &Job) -> u32 {
    let n_tasks = u32::try_from(job.n_tasks()).unwrap_or(u32::MAX);
    let running = job.counts().of(TaskStatus::Running);
    let finished = job.counts().sum(TaskStatus::is_finished);
    match job.spec.stays {
        Some(Aim::MaxUnavailable(most)) => {
            let unavailable = n_tasks.saturating_sub(finished).saturating_sub(running);
            most.of(n_tasks).saturating_sub(unavailable)
        }
        Some(Aim::MinAvailable(least)) => running.saturating_sub(least.of(n_tasks)),
        None => 1,
    }
}

/// Filter and score: revocable nodes are for pods that may run there, in their hours, and for these the best.
struct RevocableNodes(Arc<Zones>);

impl NodePlugin for RevocableNodes {
    fn name(&self) -> &'static str {
        INFO.name
    }

    /// The answer depends on the time, which is the cluster's and not the node's.
    fn filter_scope(&self) -> Option<Scope> {
        Some(if self.0.windows.is_empty() { Scope::Spec } else { Scope::Cluster })
    }

    fn score_scope(&self) -> Option<Scope> {
        self.filter_scope()
    }

    fn filter(&self, cluster: &ClusterState, task: TaskId, node: NodeId, _: Room, _: &CycleState) -> Verdict {
        let unresolvable = |text| Verdict::Unresolvable(Why::Says(text));
        match self.0.standing(cluster, node) {
            Standing::Plain => Verdict::Fits,
            Standing::Unknown => unresolvable("node(s) were in a revocable zone that has no hours"),
            Standing::Closed => unresolvable("node(s) were in a revocable zone outside of its hours"),
            Standing::Open if cluster.shape_of(task).spec.revocable => Verdict::Fits,
            Standing::Open => unresolvable("node(s) were revocable, which the pod does not allow"),
        }
    }

    fn score(&self, cluster: &ClusterState, task: TaskId, node: NodeId, _: &CycleState) -> f64 {
        let suits = cluster.shape_of(task).spec.revocable && self.0.standing(cluster, node) == Standing::Open;
        if suits { BEST } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use krafla_framework::Arguments;
    use krafla_model::budget::Share;
    use krafla_testkit::{JobScene, Scene, task_named};

    use super::*;
    use crate::testing::{compiles, objection, run, scores};

    const HOUR: i64 = 3_600_000;
    const NIGHT: &str = "tdm tdm.revocable-zone.rz=22:00-06:00";

    fn plugin(arguments: &[(&str, &str)]) -> Box<dyn SessionPlugin> {
        let arguments: Arguments =
            arguments.iter().map(|(key, text)| (*key, Value::Text((*text).to_owned()))).collect();
        build(&PluginEntry { arguments, ..PluginEntry::default() })
    }

    fn night() -> Box<dyn SessionPlugin> {
        plugin(&[("tdm.revocable-zone.rz", "22:00-06:00")])
    }

    /// A plain node, and one of the zone `rz`.
    fn nodes(at: i64) -> Scene {
        Scene::new().at(at).node("plain", "9c").labelled_node("lent", "9c", ZONE_LABEL, "rz")
    }

    fn revocable(job: JobScene) -> JobScene {
        job.shape(|shape| shape.revocable = true)
    }

    fn protected(job: JobScene) -> JobScene {
        job.shape(|shape| shape.protected = true)
    }

    #[test]
    fn revocable_nodes_take_who_allows_it_in_their_hours() {
        let closed = "node(s) were in a revocable zone outside of its hours";
        let pods =
            |at| nodes(at).job("yes", |job| revocable(job).pending(1, "1c")).job("no", |job| job.pending(1, "1c"));
        for (at, pod, node, want) in [
            (23 * HOUR, "yes-0", "lent", None),
            (24 * HOUR + HOUR / 2, "yes-0", "lent", None), // in Volcano closed from midnight to 22:00
            (30 * HOUR, "yes-0", "lent", None),
            (31 * HOUR, "yes-0", "lent", Some(closed)),
            (12 * HOUR, "no-0", "lent", Some(closed)),
            (23 * HOUR, "no-0", "lent", Some("node(s) were revocable, which the pod does not allow")),
            (12 * HOUR, "no-0", "plain", None),
            (12 * HOUR, "yes-0", "plain", None),
        ] {
            let found = objection(&pods(at), &[NIGHT], pod, node);
            assert_eq!(found, want.map(|text| (text, false)), "{pod} on {node} at {at}");
        }
        let nobodys = "node(s) were in a revocable zone that has no hours";
        assert_eq!(objection(&pods(0), &["tdm"], "yes-0", "lent"), Some((nobodys, false)));
    }

    #[test]
    fn a_revocable_node_in_its_hours_is_the_best_for_who_allows_it() {
        let pods =
            |at| nodes(at).job("yes", |job| revocable(job).pending(1, "1c")).job("no", |job| job.pending(1, "1c"));
        let of = |at, pod| {
            let scene = pods(at);
            let names: Vec<String> =
                scene.build().nodes().iter().map(|node| scene.build().node(*node).name().to_string()).collect();
            let found = scores(&scene, &[NIGHT], pod);
            names.iter().zip(found).find(|(name, _)| *name == "lent").map(|(_, score)| score)
        };
        assert_eq!(of(23 * HOUR, "yes-0"), Some(100.0));
        assert_eq!(of(23 * HOUR, "no-0"), Some(0.0));
        assert_eq!(of(12 * HOUR, "yes-0"), Some(0.0), "in Volcano an error that keeps the pod from every node");
        let scene = nodes(12 * HOUR).job("a", |job| revocable(job).pending(1, "1c"));
        assert_eq!(run(&scene, "allocate", &[NIGHT]).binds, ["a-0 -> plain"]);
        let scene = nodes(23 * HOUR).job("a", |job| revocable(job).pending(1, "1c"));
        assert_eq!(run(&scene, "allocate", &[NIGHT]).binds, ["a-0 -> lent"]);
    }

    /// Names of victims among all running pods, of those that a plugin names.
    fn names(cluster: &ClusterState, victims: &[TaskId]) -> Vec<String> {
        victims.iter().map(|task| cluster.task(*task).name.to_string()).collect()
    }

    /// Names of those that should leave.
    fn named(cluster: &ClusterState, tdm: &dyn SessionPlugin) -> Vec<String> {
        let tasks: Vec<TaskId> = tdm.victim_tasks(cluster, &[]).into_iter().map(|unwanted| unwanted.task).collect();
        names(cluster, &tasks)
    }

    #[test]
    fn a_pod_that_needs_its_room_evicts_batch_work_of_plain_nodes() {
        let cluster = nodes(23 * HOUR)
            .job("batch", |job| protected(job.running(2, "1c", "plain")).running(1, "1c", "plain"))
            .job("night", |job| revocable(job).running(1, "1c", "lent"))
            .job("p", |job| protected(revocable(protected(job.pending(1, "1c")).pending(1, "1c")).pending(1, "1c")))
            .build();
        let running: Vec<TaskId> = cluster.tasks().map(|(id, _)| id).filter(|id| runs(&cluster, *id)).collect();
        let of = |preemptor| match night().preemptable(&cluster, task_named(&cluster, preemptor), &running) {
            Victims::Only(victims) => names(&cluster, &victims),
            Victims::Abstain => vec!["no opinion".to_owned()],
        };
        assert_eq!(of("p-0"), [""; 0], "may itself be evicted");
        assert_eq!(of("p-1"), ["batch-0"], "one of a job that says nothing, none of the revocable node");
        assert_eq!(of("p-2"), [""; 0], "may wait for a revocable node");
    }

    #[test]
    fn each_job_says_how_many_pods_it_can_do_without() {
        use Aim::{MaxUnavailable as Max, MinAvailable as Min};
        use Share::{Count, Percent};
        for (stays, n_preemptable, n_running, want) in [
            (Some(Max(Percent(30))), 3, 5, 2),
            (Some(Max(Percent(99))), 3, 5, 3),
            (Some(Max(Percent(50))), 5, 5, 3),
            (Some(Max(Count(3))), 5, 5, 3),
            (Some(Max(Count(3))), 4, 4, 2), // one of the five does not run yet
            (Some(Min(Count(3))), 5, 5, 2),
            (Some(Min(Percent(30))), 5, 5, 3),
            (Some(Min(Count(5))), 4, 4, 0), // Volcano: one
            (None, 5, 5, 1),
        ] {
            let job = |job: JobScene| {
                let job = job.group(|group| group.stays = stays).running(n_preemptable, "1c", "lent");
                protected(job).running(n_running - n_preemptable, "1c", "lent").pending(5 - n_running, "1c")
            };
            let both = nodes(12 * HOUR).job("a", job).job("b", job).build();
            let mut tdm = night();
            tdm.open(&both);
            let victims = named(&both, &*tdm);
            let of = |name: &str| victims.iter().filter(|victim| victim.starts_with(name)).count();
            assert_eq!((of("a-"), of("b-")), (want, want), "{stays:?}, {n_preemptable} of {n_running}");
        }
    }

    #[test]
    fn pods_leave_when_the_hours_are_over_at_most_once_a_period() {
        let at = |at, node: &str| nodes(at).job("a", |job| job.running(1, "1c", node)).build();
        let mut tdm = plugin(&[("tdm.revocable-zone.rz", "22:00-06:00"), (PERIOD, "2m")]);
        let mut leave = |cluster: &ClusterState| {
            tdm.open(cluster);
            named(cluster, &*tdm)
        };
        assert_eq!(leave(&at(5 * HOUR, "lent")), [""; 0], "in its hours");
        assert_eq!(leave(&at(12 * HOUR, "plain")), [""; 0], "a plain node");
        assert_eq!(leave(&at(13 * HOUR, "lent")), ["a-0"]);
        assert_eq!(leave(&at(13 * HOUR + 119_999, "lent")), [""; 0], "within the period");
        assert_eq!(leave(&at(13 * HOUR + 120_000, "lent")), ["a-0"]);
    }

    #[test]
    fn the_lowest_and_youngest_leave_first() {
        let cluster = nodes(12 * HOUR)
            .job("a", |job| {
                let job = job.group(|group| group.stays = Some(Aim::MinAvailable(Share::Count(1))));
                job.running(1, "1c", "lent").task_priority(9).running(2, "1c", "lent")
            })
            .build();
        let mut tdm = night();
        tdm.open(&cluster);
        assert_eq!(named(&cluster, &*tdm), ["a-0", "a-2"]);
    }

    #[test]
    fn jobs_that_may_not_be_evicted_go_first_and_starve_while_they_wait() {
        let may = |may: Option<bool>| move |job: JobScene| job.group(|group| group.preemptable = may).pending(1, "9c");
        let scene = Scene::new().node("n", "9c").job("may", may(Some(true))).job("may-not", may(None));
        assert_eq!(run(&scene, "allocate", &["tdm"]).binds, ["may-not-0 -> n"]);
        let cluster = scene.build();
        let starving: Vec<bool> = cluster.jobs().map(|(id, _)| night().job_starving(&cluster, id)).collect();
        assert_eq!(starving, [false, true]);
    }

    #[test]
    fn it_asks_to_be_woken_when_the_hours_begin_or_end_for_somebody() {
        let waits = |job: JobScene| revocable(job).pending(1, "1c");
        let runs_there = |job: JobScene| job.running(1, "1c", "lent");
        for (name, scene, want) in [
            ("somebody waits for the evening", nodes(12 * HOUR).job("a", waits), Time(22 * HOUR)),
            ("who waits would not go there", nodes(12 * HOUR).job("a", |job| job.pending(1, "1c")), Time::NEVER),
            ("somebody runs there at night", nodes(23 * HOUR).job("a", runs_there), Time(30 * HOUR + 1_000)),
            ("nobody does", nodes(23 * HOUR), Time::NEVER),
            ("a round was due and left somebody", nodes(12 * HOUR).job("a", runs_there), Time::NEVER),
        ] {
            let cluster = scene.build();
            let mut tdm = night();
            tdm.open(&cluster);
            tdm.close(&cluster, &Reasons::default(), &[], &mut Vec::new());
            assert_eq!(tdm.wakes_at(&cluster), want, "{name}");
        }
        for (action, first) in [("allocate", Time::NEVER), ("shuffle", Time(12 * HOUR + 60_000))] {
            let mut tdm = night();
            for (at, want) in [(12 * HOUR, first), (12 * HOUR + 20_000, Time(12 * HOUR + 60_000))] {
                let cluster = nodes(at).job("a", runs_there).build();
                tdm.open(&cluster);
                tdm.before_action(&cluster, action);
                tdm.close(&cluster, &Reasons::default(), &[], &mut Vec::new());
                assert_eq!(tdm.wakes_at(&cluster), want, "the next round");
            }
        }
    }

    #[test]
    fn arguments_are_windows_of_the_day() {
        assert!(compiles(NIGHT));
        assert!(compiles("tdm tdm.revocable-zone.rz=9:00-17:30 tdm.evict.period=90s tdm.utc-offset-minutes=-330"));
        for wrong in ["tdm.revocable-zone.rz=22:00_06:00", "tdm.revocable-zone.rz=22:0-6:0", "tdm.evict.period=5"] {
            assert!(!compiles(&format!("tdm {wrong}")), "{wrong}");
        }
    }
}
