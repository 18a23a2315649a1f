//! One day, and what it came to.

use std::collections::BTreeMap;

use krafla_engine::CycleReport;
use krafla_framework::{DeschedulerSettings, Planning, Registry};
use krafla_model::{Name, Time};
use serde::Serialize;

use super::load::{loads, measure, plan};
use super::{COOL_DOWN, HOUR, Options, ROUND};
use crate::world::{Happening, Observer, PodChange, Setup, World};

const POLICY: &str = "\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
maxNoOfPodsToEvictPerNode: 3
metricsProviders: [{source: KubernetesMetrics}]
profiles:
- name: rebalance
  pluginConfig:
  - name: LowNodeUtilization
    args:
      thresholds: {cpu: 40}
      targetThresholds: {cpu: 55}
      metricsUtilization: {source: KubernetesMetrics}
  plugins: {balance: {enabled: [LowNodeUtilization]}}
";
const SCHEDULER: &str = "\
actions: \"enqueue, allocate\"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: pdb}]
- plugins: [{name: predicates}, {name: nodeorder}]
";

/// What a day came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Day {
    /// Evictions in each hour.
    pub moves: Vec<u32>,
    /// How full the fullest node was at the begin of each round, in permille.
    pub hottest_permille: Vec<i64>,
    /// Times that a template went between two nodes again within the cool-down, either way.
    pub ping_pongs: u32,
    /// Pods that came back to the node they were taken from.
    pub returned: u32,
    /// Disruption budgets that were overspent after some round.
    pub overspent: u32,
}

impl Day {
    /// Moves in some hours.
    pub fn moves_in(&self, hours: std::ops::Range<usize>) -> u32 {
        self.moves.iter().take(hours.end).skip(hours.start).sum()
    }

    /// The fullest node of an hour, in permille: the most that was measured in it.
    pub fn hottest_in(&self, hour: usize) -> Option<i64> {
        // The first round is at the end of the first interval.
        let of = |round: usize| usize::try_from(ROUND * (i64::try_from(round).unwrap_or(0) + 1) / HOUR).unwrap_or(0);
        let measured = self.hottest_permille.iter().enumerate().filter(|(round, _)| of(*round) == hour);
        measured.map(|(_, hottest)| *hottest).max()
    }
}

/// Watches who goes where.
#[derive(Default)]
struct Watch {
    day: Day,
    /// Pods that were evicted and have not come back: from where, and when.
    away: BTreeMap<Name, (Name, i64)>,
    /// Moves by template: between which two nodes, and when the pod was evicted.
    moved: BTreeMap<Name, Vec<(Name, Name, i64)>>,
}

impl Observer for Watch {
    fn cycle(&mut self, world: &World, report: &CycleReport) {
        if report.had_round {
            let cluster = world.engine().cluster();
            let over = cluster.budgets(&"default".into()).filter(|budget| budget.left(cluster) < 0).count();
            self.day.overspent += u32::try_from(over).unwrap_or(u32::MAX);
        }
    }

    fn pod(&mut self, world: &World, pod: usize, change: PodChange) {
        let pod = &world.pod(pod).spec;
        let Some(node) = pod.node.clone() else { return };
        match change {
            PodChange::Evicted => {
                let hour = usize::try_from(world.now().0 / HOUR).unwrap_or(0);
                self.day.moves.resize(self.day.moves.len().max(hour + 1), 0);
                self.day.moves[hour] += 1;
                self.away.insert(pod.name.clone(), (node, world.now().0));
            }
            PodChange::Bound => {
                let Some((from, at)) = self.away.remove(&pod.name) else { return };
                let owner = pod.details.as_ref().and_then(|details| details.owners.first());
                let Some(template) = owner.map(|owner| owner.name.clone()) else { return };
                self.day.returned += u32::from(from == node);
                let moves = self.moved.entry(template).or_default();
                let same = |(a, b, when): &(Name, Name, i64)| {
                    let pair = (*a == from && *b == node) || (*a == node && *b == from);
                    pair && at > *when && at - when < COOL_DOWN
                };
                self.day.ping_pongs += u32::from(moves.iter().any(same));
                moves.push((from, node, at));
            }
            _ => {}
        }
    }
}

/// Plays a day. `tell_hour` is called after each hour.
pub(super) fn play(options: &Options, planning: Planning, registry: fn() -> Registry, tell_hour: &dyn Fn()) -> Day {
    let descheduler = DeschedulerSettings {
        file: "policy.yaml".into(),
        text: POLICY.into(),
        planning,
        cool_down_ms: COOL_DOWN,
        ..DeschedulerSettings::default()
    };
    let setup = Setup {
        descheduler: Some(descheduler),
        configuration: Some(("scheduler.conf".into(), SCHEDULER.into())),
        start_latency_ms: 2_000,
        evict_grace_ms: 5_000,
        ..Setup::default()
    };
    let mut world = World::new(setup, registry);
    plan(&mut world, options);
    let (mut watch, end) = (Watch::default(), i64::from(options.hours) * HOUR);
    for at in (1..).map(|round| round * ROUND) {
        world.run_until(Time(at), &mut watch);
        if at % HOUR == 0 {
            tell_hour();
        }
        if at >= end {
            break;
        }
        let (events, hottest) = measure(&world, &loads(options, Time(at)));
        watch.day.hottest_permille.push(hottest);
        for event in events {
            world.plan(Time(at), Happening::Object(Box::new(event)));
        }
        world.plan(Time(at), Happening::Deschedule);
    }
    watch.day.moves.resize(usize::try_from(options.hours).unwrap_or(0), 0);
    watch.day
}
