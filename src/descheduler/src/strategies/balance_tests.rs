//! Pods that are wrong beside others: the facts of each strategy, as tables.

use krafla_model::labels::{Requirement, Selector, Test};
use krafla_model::pod_affinity::SpreadConstraint;
use krafla_model::usage::{NodeUsageSpec, PodUsageSpec};
use krafla_model::{Amounts, ClusterState, Event, Time};
use krafla_testkit::{JobScene, Scene};

use crate::testing::{Came, own, planned, policy, unplanned, with_evictor};

const LOW: &str = "thresholds: {cpu: 20, memory: 20}, targetThresholds: {cpu: 70, memory: 70}";

/// `n` pods of an owner of its own on a node.
fn on(scene: Scene, owner: &str, n: u32, asks: &str, node: &str) -> Scene {
    scene.job(owner, |job: JobScene| job.running(n, asks, node).each(|pod| own(pod, owner)))
}

fn nodes(sizes: &[(&str, &str)]) -> Scene {
    sizes.iter().fold(Scene::new(), |scene, (name, has)| scene.node(name, has))
}

fn low(cluster: ClusterState, arguments: &str) -> Came {
    unplanned(cluster, &policy("LowNodeUtilization", "balance", arguments, ""))
}

/// over the target in any resource is a source, under the threshold in all is a destination, both are needed.
#[test]
fn low_node_utilization_needs_busy_and_idle_nodes() {
    for (name, busy, idle, n_gone) in [
        ("busy and idle", "8c8Gi", "1c1Gi", 1),
        ("busy in memory alone", "1c8Gi", "1c1Gi", 1),
        ("just at the target", "7c7Gi", "1c1Gi", 0),
        ("nobody is idle: over in memory", "8c8Gi", "1c3Gi", 0),
        ("just at the threshold is idle", "8c8Gi", "2c2Gi", 1),
        ("all are idle", "1c1Gi", "1c1Gi", 0),
    ] {
        let scene = nodes(&[("hot", "10c10Gi"), ("cold", "10c10Gi")]);
        let scene = on(on(scene, "x", 1, busy, "hot"), "y", 1, idle, "cold");
        assert_eq!(low(scene.build(), LOW).gone().len(), n_gone, "{name}");
    }
}

/// pods go until the busy node is at its target, and no longer.
#[test]
fn low_node_utilization_stops_at_the_target() {
    let scene = nodes(&[("hot", "20c99Gi"), ("n1", "20c99Gi"), ("n2", "20c99Gi"), ("n3", "20c99Gi")]);
    let scene = on(scene, "x", 19, "1c1Gi", "hot");
    let scene = ["n1", "n2", "n3"].into_iter().fold(scene, |scene, node| on(scene, node, 1, "1c1Gi", node));
    assert_eq!(low(scene.build(), LOW).gone().len(), 5, "of 19 cores 14 stay, which are 70 percent of 20");
    let few = low(scene.build(), &format!("{LOW}, evictionLimits: {{node: 2}}"));
    assert_eq!(few.gone().len(), 2);
    let more_idle = low(scene.build(), &format!("{LOW}, numberOfNodes: 3"));
    assert_eq!(more_idle.gone().len(), 0, "three idle nodes are not more than three");
}

#[test]
fn low_node_utilization_takes_no_more_than_idle_nodes_can_have() {
    // Two nodes of 100 cores at their limit; the idle one may get 7 of its 10 cores.
    let scene = nodes(&[("hot", "100c99Gi"), ("cold", "10c99Gi")]);
    let scene = on(scene, "x", 100, "1c", "hot");
    assert_eq!(low(scene.build(), "thresholds: {cpu: 20}, targetThresholds: {cpu: 70}").gone().len(), 7);
}

#[test]
fn low_node_utilization_takes_the_least_important_first() {
    let scene = nodes(&[("hot", "10c99Gi"), ("cold", "10c99Gi")])
        .job("high", |job| job.task_priority(9).running(2, "2c", "hot").each(|pod| own(pod, "high")))
        .job("low", |job| job.task_priority(1).running(2, "2c", "hot").each(|pod| own(pod, "low")))
        .job("mid", |job| job.task_priority(5).running(1, "2c", "hot").each(|pod| own(pod, "mid")));
    let came = low(scene.build(), "thresholds: {cpu: 20}, targetThresholds: {cpu: 50}");
    assert_eq!(came.gone(), ["low-0", "low-1", "mid-0"]);
}

#[test]
fn low_node_utilization_by_deviation() {
    // 80, 40 and 0 percent: 40 on average.
    let scene = nodes(&[("a", "10c99Gi"), ("b", "10c99Gi"), ("c", "10c99Gi")]);
    let scene = on(on(scene, "x", 8, "1c", "a"), "y", 4, "1c", "b");
    for (by, n_gone) in [(10, 3), (20, 2), (39, 1), (40, 0)] {
        let arguments =
            format!("useDeviationThresholds: true, thresholds: {{cpu: {by}}}, targetThresholds: {{cpu: {by}}}");
        assert_eq!(low(scene.build(), &arguments).gone().len(), n_gone, "{by}");
    }
}

#[test]
fn low_node_utilization_leaves_namespaces_out_and_respects_taints() {
    let scene = nodes(&[("hot", "10c99Gi"), ("cold", "10c99Gi")]);
    let scene = on(scene, "x", 9, "1c", "hot");
    let excluded = "thresholds: {cpu: 20}, targetThresholds: {cpu: 70}, evictableNamespaces: {exclude: [default]}";
    assert_eq!(low(scene.build(), excluded).gone().len(), 0);
    let tainted = Scene::new().node("hot", "10c99Gi").tainted_node(
        "cold",
        "10c99Gi",
        "t",
        krafla_model::taints::Effect::NoSchedule,
    );
    let tainted = on(tainted, "x", 9, "1c", "hot");
    assert_eq!(low(tainted.build(), "thresholds: {cpu: 20}, targetThresholds: {cpu: 70}").gone().len(), 0);
}

/// what was measured counts where the policy says so, and without a fresh measurement nothing happens.
#[test]
fn low_node_utilization_by_measured_use() {
    let metrics = "metricsProviders: [{source: KubernetesMetrics}]\n";
    let arguments =
        "thresholds: {cpu: 20}, targetThresholds: {cpu: 70}, metricsUtilization: {source: KubernetesMetrics}";
    let by_use = policy("LowNodeUtilization", "balance", arguments, metrics);
    let used = |node: &str, cpu: i64, at: i64| {
        let used = Amounts::default().with("cpu", cpu).with("memory", 1);
        Event::NodeUsage(NodeUsageSpec { node: node.into(), at: Time(at), used, sample_ppm: None })
    };
    let scene = |cpu: i64, at: i64| {
        let scene = nodes(&[("hot", "10c99Gi"), ("cold", "10c99Gi")]).at(1_000_000);
        let scene = on(scene, "x", 4, "1c", "hot");
        let pods = ["x-0", "x-1", "x-2", "x-3"].map(|name| PodUsageSpec {
            namespace: "default".into(),
            name: name.into(),
            used: Amounts::default().with("cpu", 2_000),
        });
        scene.event(used("hot", cpu, at)).event(used("cold", 100, at)).event(Event::PodUsage(pods.into()))
    };
    for (cpu, at, n_gone) in [(9_000, 1_000_000, 1), (7_001, 1_000_000, 1), (7_000, 1_000_000, 0), (9_000, 600_000, 0)]
    {
        assert_eq!(unplanned(scene(cpu, at).build(), &by_use).gone().len(), n_gone, "{cpu} at {at}");
    }
}

#[test]
fn low_node_utilization_by_prometheus() {
    let rest = "metricsProviders: [{source: Prometheus, prometheus: {url: \"http://p\"}}]\n";
    let arguments = "thresholds: {MetricResource: 20}, targetThresholds: {MetricResource: 70}, \
                     metricsUtilization: {source: Prometheus, prometheus: {query: q}}";
    let sample = |node: &str, ppm: Option<i64>| {
        Event::NodeUsage(NodeUsageSpec { node: node.into(), sample_ppm: ppm, ..NodeUsageSpec::default() })
    };
    let scene = |cold: Option<i64>| {
        let scene = on(nodes(&[("hot", "10c99Gi"), ("cold", "10c99Gi")]), "x", 4, "1c", "hot");
        scene.event(sample("hot", Some(950_000))).event(sample("cold", cold))
    };
    let by_query = policy("LowNodeUtilization", "balance", arguments, rest);
    // Nobody knows what one pod uses: one of each node in a round.
    assert_eq!(unplanned(scene(Some(50_000)).build(), &by_query).gone().len(), 1);
    assert_eq!(unplanned(scene(None).build(), &by_query).gone().len(), 0, "a node without a value");
    let limited = policy("LowNodeUtilization", "balance", &format!("{arguments}, evictionLimits: {{node: 3}}"), rest);
    // Each has probably a fourth of it: after two of them the node is at 47 percent.
    assert_eq!(unplanned(scene(Some(50_000)).build(), &limited).gone().len(), 2);
}

#[test]
fn high_node_utilization_empties_the_emptiest() {
    let scene = nodes(&[("full", "10c99Gi"), ("nearly", "10c99Gi"), ("empty", "10c99Gi")]);
    let scene = on(on(on(scene, "x", 6, "1c", "full"), "y", 2, "1c", "nearly"), "z", 1, "1c", "empty");
    let high = |cluster: ClusterState, arguments: &str| {
        unplanned(cluster, &policy("HighNodeUtilization", "balance", arguments, "")).gone()
    };
    assert_eq!(high(scene.build(), "thresholds: {cpu: 20}"), ["z-0", "y-0", "y-1"]);
    assert_eq!(high(scene.build(), "thresholds: {cpu: 20}, numberOfNodes: 2"), [] as [&str; 0]);
    assert_eq!(high(scene.build(), "thresholds: {cpu: 60}"), [] as [&str; 0], "nobody is left to take them");
    let memory = "thresholds: {memory: 20, cpu: 20}, evictionModes: [OnlyThresholdingResources]";
    assert_eq!(high(scene.build(), memory).len(), 3);
    let none_asks = "thresholds: {memory: 20}, evictionModes: [OnlyThresholdingResources]";
    assert_eq!(high(scene.build(), none_asks).len(), 0);
    // With a plan, they go to the full one, and not to one another.
    let planned = planned(scene.build(), &policy("HighNodeUtilization", "balance", "thresholds: {cpu: 20}", ""));
    assert_eq!(planned.moves(), ["z-0 -> full", "y-0 -> full", "y-1 -> full"]);
}

/// as many as an even spread would have may stay on a node.
#[test]
fn duplicates() {
    for (name, here, there, n_nodes, gone) in [
        ("two on one of two nodes", 2, 0, 2, vec!["x-1"]),
        ("four on one of two nodes", 4, 0, 2, vec!["x-2", "x-3"]),
        ("three and one on three nodes: two each may be", 3, 1, 3, vec!["x-2"]),
        ("one each", 1, 1, 2, vec![]),
        ("nowhere else to go", 2, 0, 1, vec![]),
    ] {
        let mut scene = nodes(&[("a", "9c")]);
        for node in ["b", "c"].into_iter().take(n_nodes - 1) {
            scene = scene.node(node, "9c");
        }
        // A second node without a place, so that the round is not left out.
        if n_nodes == 1 {
            scene = scene.node_with("off", "9c", |spec| spec.unschedulable = true);
        }
        let scene = scene.job("x", |job| {
            let job = job.running(here, "1c", "a");
            let job = if there > 0 { job.running(there, "1c", "b") } else { job };
            job.each(|pod| own(pod, "x"))
        });
        let came = unplanned(scene.build(), &policy("RemoveDuplicates", "balance", "", ""));
        assert_eq!(came.gone(), gone, "{name}");
        let excluded = policy("RemoveDuplicates", "balance", "excludeOwnerKinds: [ReplicaSet]", "");
        assert_eq!(unplanned(scene.build(), &excluded).gone().len(), 0);
    }
}

/// the skew is brought within what the constraint allows, with as few moves as that takes.
#[test]
fn topology_spread() {
    for (sizes, max_skew, n_gone) in [
        (&[3, 1][..], 1, 1),
        (&[2, 1], 1, 0),
        (&[4, 0], 1, 2),
        (&[4, 0], 2, 1),
        (&[5, 1, 0], 1, 3),
        (&[6, 6, 0], 1, 4),
        (&[3, 3, 3], 1, 0),
        (&[9, 0, 0], 1, 6),
    ] {
        let spread = |must_hold: bool| SpreadConstraint {
            max_skew,
            topology_key: "kubernetes.io/hostname".into(),
            must_hold,
            selector: Some(Selector(vec![Requirement { key: "app".into(), test: Test::In(vec!["x".into()]) }])),
            min_domains: 1,
            honors_affinity: true,
            honors_taints: false,
        };
        let scene = |must_hold: bool| {
            let names = ["a", "b", "c"];
            let mut scene = nodes(&[]);
            for name in &names[..sizes.len()] {
                scene = scene.node(name, "99c");
            }
            scene.job("x", |job| {
                let job = job.shape(|shape| {
                    shape.labels.set("app".into(), "x".into());
                    shape.spread = vec![spread(must_hold)];
                });
                let placed = sizes.iter().zip(names).filter(|(n, _)| **n > 0);
                placed.fold(job, |job, (n, node)| job.running(*n, "1c", node)).each(|pod| own(pod, "x"))
            })
        };
        let name = "RemovePodsViolatingTopologySpreadConstraint";
        let came = unplanned(scene(true).build(), &policy(name, "balance", "", ""));
        assert_eq!(came.gone().len(), n_gone, "{sizes:?} with {max_skew}");
        let soft = unplanned(scene(false).build(), &policy(name, "balance", "", ""));
        assert_eq!(soft.gone().len(), 0, "ScheduleAnyway is not asked for");
        let both = policy(name, "balance", "constraints: [ScheduleAnyway]", "");
        assert_eq!(unplanned(scene(false).build(), &both).gone().len(), n_gone);
    }
}

/// what a policy enables at `deschedule` runs first, whatever the order of the file.
#[test]
fn deschedule_comes_before_balance() {
    let text = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles:\n- name: one\n  pluginConfig:\n  \
                - {name: RemoveDuplicates}\n  plugins: {balance: {enabled: [RemoveDuplicates]}}\n- name: two\n  \
                pluginConfig:\n  - {name: PodLifeTime, args: {maxPodLifeTimeSeconds: 10}}\n  plugins: {deschedule: \
                {enabled: [PodLifeTime]}}\n";
    let scene = nodes(&[("a", "9c"), ("b", "9c")]).at(60_000);
    let young = |pod: &mut krafla_model::PodSpec| {
        own(pod, "x");
        pod.created = Time(60_000);
    };
    let scene = scene.job("x", |job| job.running(2, "1c", "a").each(young)).job("old", |job| {
        job.running(1, "1c", "b").each(|pod| {
            own(pod, "old");
            pod.created = Time(1);
        })
    });
    let scene = scene.build();
    let came = unplanned(scene, text);
    let by: Vec<&str> = came.notes.iter().map(|note| note.strategy).collect();
    assert_eq!(by, ["PodLifeTime", "RemoveDuplicates"]);
}

#[test]
fn a_pod_that_fits_nowhere_stays_with_node_fit() {
    let scene = nodes(&[("hot", "10c99Gi"), ("cold", "2c99Gi")]);
    let scene = on(scene, "x", 3, "3c", "hot");
    let arguments = "thresholds: {cpu: 20}, targetThresholds: {cpu: 70}";
    let fits = with_evictor("LowNodeUtilization", "balance", arguments, "nodeFit: true");
    assert_eq!(unplanned(scene.build(), &fits).gone().len(), 0);
    assert_eq!(low(scene.build(), arguments).gone().len(), 1);
}
