//! `nodegroup`: which groups of nodes a queue may use, would rather use, and how much of each.
//!
//! A node's group is its label `volcano.sh/nodegroup-name`. With `enableHierarchy` a queue without an affinity of its
//! own has that of its nearest ancestor.

use std::collections::BTreeMap;

use krafla_framework::conf::catalogue::ArgumentKind::Bool;
use krafla_framework::session_plugin::SessionPlugin;
use krafla_framework::{
    ArgumentInfo, CycleState, NodePlugin, PluginEntry, PluginInfo, Point, PreFilter, ProfileEntry, Room, Scope,
    Verdict, Why,
};
use krafla_model::queue::NodeGroupAffinity;
use krafla_model::{ClusterState, Name, NodeId, Queue, Resources, TaskId};

/// Name, arguments and points.
pub const INFO: PluginInfo = PluginInfo {
    name: "nodegroup",
    about: "which groups of nodes a queue may use",
    arguments: &[
        ArgumentInfo::new("strict", Bool, "true", "nodes without a group are for nobody"),
        ArgumentInfo::new("enablePreferredOrder", Bool, "false", "earlier preferred groups score higher"),
    ],
    points: &[Point::Predicate, Point::NodeOrder, Point::Hierarchy],
};

/// The label that names a node's group.
pub const GROUP_LABEL: &str = "volcano.sh/nodegroup-name";

#[derive(Clone, Copy)]
struct NodeGroup {
    strict: bool,
    preferred_order: bool,
    inherits: bool,
}

/// Makes the plugin.
pub fn build(entry: &PluginEntry) -> Box<dyn SessionPlugin> {
    Box::new(NodeGroup {
        strict: entry.arguments.bool("strict", true),
        preferred_order: entry.arguments.bool("enablePreferredOrder", false),
        inherits: entry.switches.hierarchy(),
    })
}

impl SessionPlugin for NodeGroup {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn points(&self) -> &'static [Point] {
        INFO.points
    }

    fn node_plugins(&self) -> Vec<ProfileEntry> {
        vec![ProfileEntry::both(Box::new(*self), 1.0)]
    }
}

/// What the task's queue holds in each group; counted only for queues that have limits there.
struct HeldByGroup(BTreeMap<Name, Resources>);

impl NodeGroup {
    fn affinity<'a>(&self, cluster: &'a ClusterState, queue: &'a Queue) -> Option<&'a NodeGroupAffinity> {
        if queue.spec.node_groups.is_some() || !self.inherits {
            return queue.spec.node_groups.as_ref();
        }
        queue.path().iter().rev().find_map(|above| cluster.queue(*above).spec.node_groups.as_ref())
    }
}

fn queue_of(cluster: &ClusterState, task: TaskId) -> Option<&Queue> {
    let job = cluster.job(cluster.task(task).job?);
    Some(cluster.queue(job.queue?))
}

fn group_of(cluster: &ClusterState, node: NodeId) -> Option<&Name> {
    cluster.node(node).spec.labels.get(GROUP_LABEL)
}

impl NodePlugin for NodeGroup {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn filter_scope(&self) -> Option<Scope> {
        Some(Scope::Domain)
    }

    fn score_scope(&self) -> Option<Scope> {
        Some(Scope::Domain)
    }

    fn pre_filter(&self, cluster: &ClusterState, task: TaskId, state: &mut CycleState) -> PreFilter {
        let Some(queue) = queue_of(cluster, task) else { return PreFilter::All };
        if queue.spec.node_group_limits_error.is_some() {
            return PreFilter::Reject(Why::Says("node group resource limit annotation invalid"));
        }
        let mut held: BTreeMap<Name, Resources> = BTreeMap::new();
        if !queue.node_group_limits.is_empty() {
            for other in queue.jobs().flat_map(|job| cluster.job(job).tasks()) {
                // The node of one that has ended may be gone.
                let holder = Some(cluster.task(other)).filter(|holder| !holder.status().is_finished());
                let group = holder.and_then(|holder| group_of(cluster, holder.node()?));
                if let Some(group) = group {
                    held.entry(group.clone()).or_default().add(&cluster.shape_of(other).request);
                }
            }
        }
        state.put(HeldByGroup(held));
        PreFilter::All
    }

    fn filter(&self, cluster: &ClusterState, task: TaskId, node: NodeId, _: Room, state: &CycleState) -> Verdict {
        let no = |text| Verdict::Unresolvable(Why::Says(text));
        let Some(queue) = queue_of(cluster, task) else { return Verdict::Fits };
        let affinity = self.affinity(cluster, queue);
        let Some(group) = group_of(cluster, node) else {
            return if !self.strict && affinity.is_none() { Verdict::Fits } else { no("node group label not found") };
        };
        let Some(affinity) = affinity else { return no("node group affinity not specified") };
        // Volcano lets a preferred anti-affinity allow again what a required one forbade.
        let allowed = (affinity.required.contains(group) || affinity.preferred.contains(group))
            && !affinity.anti_required.contains(group);
        if !allowed && !affinity.anti_preferred.contains(group) {
            return no("node does not satisfy the node group affinity");
        }
        let limits = queue.node_group_limits.iter().find(|(limited, _)| limited == group);
        let nothing = Resources::default();
        let held = state.get::<HeldByGroup>().and_then(|held| held.0.get(group)).unwrap_or(&nothing);
        match limits.and_then(|(_, limits)| cluster.shape_of(task).request.first_over(held, limits)) {
            Some(_) => no("node group resource limit exceeded"),
            None => Verdict::Fits,
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "an index into a short list")]
    fn score(&self, cluster: &ClusterState, task: TaskId, node: NodeId, _: &CycleState) -> f64 {
        let affinity = queue_of(cluster, task).and_then(|queue| self.affinity(cluster, queue));
        let (Some(affinity), Some(group)) = (affinity, group_of(cluster, node)) else { return 0.0 };
        if affinity.anti_preferred.contains(group) {
            return -1.0;
        }
        let mut score = 0.0;
        if affinity.required.contains(group) {
            score += 100.0;
        }
        if let Some(index) = affinity.preferred.iter().position(|preferred| preferred == group) {
            let n = affinity.preferred.len() as f64;
            score += if self.preferred_order { 50.0 * (n - index as f64) / n } else { 50.0 };
        }
        score
    }
}

#[cfg(test)]
mod tests {
    use krafla_model::{Event, QueueSpec};
    use krafla_testkit::{Scene, amounts};

    use super::*;
    use crate::testing::{conf, objection, registry, run, scores};

    fn names(groups: &[&str]) -> Vec<Name> {
        groups.iter().map(|group| Name::from(*group)).collect()
    }

    fn affinity(required: &[&str], preferred: &[&str]) -> NodeGroupAffinity {
        NodeGroupAffinity { required: names(required), preferred: names(preferred), ..Default::default() }
    }

    fn anti(required: &[&str], preferred: &[&str]) -> NodeGroupAffinity {
        NodeGroupAffinity { anti_required: names(required), anti_preferred: names(preferred), ..Default::default() }
    }

    /// Nodes `bare`, `g1`, `g2` and `g3`, each of its group, and a pod of queue `q`.
    fn scene(edit: impl Fn(&mut QueueSpec)) -> Scene {
        let groups = ["g1", "g2", "g3"];
        groups
            .into_iter()
            .fold(Scene::new().node("bare", "8c32Gi"), |s, group| s.labelled_node(group, "8c32Gi", GROUP_LABEL, group))
            .queue("q", |queue| queue.with(edit))
            .job("p", |job| job.queue("q").pending(2, "2c4Gi"))
    }

    const NO_LABEL: Option<(&str, bool)> = Some(("node group label not found", false));
    const NO_AFFINITY: Option<(&str, bool)> = Some(("node group affinity not specified", false));
    const NOT_LISTED: Option<(&str, bool)> = Some(("node does not satisfy the node group affinity", false));
    const OVER_LIMIT: Option<(&str, bool)> = Some(("node group resource limit exceeded", false));

    #[test]
    fn a_queue_is_confined_to_its_groups() {
        let answers = |plugin: &str, affinity: Option<NodeGroupAffinity>| {
            let scene = scene(|queue| queue.node_groups = affinity.clone());
            ["bare", "g1", "g2", "g3"].map(|node| objection(&scene, &[plugin], "p-0", node))
        };
        let both = NodeGroupAffinity { anti_required: names(&["g1"]), ..affinity(&["g1", "g2"], &[]) };
        let again = NodeGroupAffinity { anti_required: names(&["g1"]), ..anti(&["g1"], &["g1"]) };
        for (name, groups, want) in [
            ("required", affinity(&["g1"], &[]), [NO_LABEL, None, NOT_LISTED, NOT_LISTED]),
            ("preferred confines too", affinity(&[], &["g2"]), [NO_LABEL, NOT_LISTED, None, NOT_LISTED]),
            ("both", affinity(&["g1"], &["g2"]), [NO_LABEL, None, None, NOT_LISTED]),
            ("forbidden beats required", both, [NO_LABEL, NOT_LISTED, None, NOT_LISTED]),
            ("anti-affinity alone allows nothing", anti(&["g1"], &[]), [NO_LABEL, NOT_LISTED, NOT_LISTED, NOT_LISTED]),
            ("but what it merely dislikes", anti(&["g1"], &["g2"]), [NO_LABEL, NOT_LISTED, None, NOT_LISTED]),
            ("disliked beats forbidden", again, [NO_LABEL, None, NOT_LISTED, NOT_LISTED]),
        ] {
            for plugin in ["nodegroup", "nodegroup strict=false"] {
                assert_eq!(answers(plugin, Some(groups.clone())), want, "{name}, {plugin}");
            }
        }
        assert_eq!(answers("nodegroup", None), [NO_LABEL, NO_AFFINITY, NO_AFFINITY, NO_AFFINITY]);
        assert_eq!(answers("nodegroup strict=false", None), [None, NO_AFFINITY, NO_AFFINITY, NO_AFFINITY]);
    }

    #[test]
    fn groups_score_by_how_much_the_queue_likes_them() {
        let of = |plugin: &str, affinity: Option<NodeGroupAffinity>| {
            scores(&scene(|queue| queue.node_groups = affinity.clone()), &[plugin], "p-0")
        };
        let ordered = "nodegroup enablePreferredOrder=true";
        for (name, plugin, groups, want) in [
            ("required", "nodegroup", affinity(&["g1"], &[]), [0.0, 100.0, 0.0, 0.0]),
            ("required and preferred", "nodegroup", affinity(&["g1"], &["g1", "g2"]), [0.0, 150.0, 50.0, 0.0]),
            (
                "disliked",
                "nodegroup",
                NodeGroupAffinity { anti_preferred: names(&["g1"]), ..affinity(&["g1"], &[]) },
                [0.0, -1.0, 0.0, 0.0],
            ),
            ("two in order", ordered, affinity(&[], &["g1", "g2"]), [0.0, 50.0, 25.0, 0.0]),
            ("two without order", "nodegroup", affinity(&[], &["g1", "g2"]), [0.0, 50.0, 50.0, 0.0]),
            ("four in order", ordered, affinity(&[], &["g3", "g2", "g0", "g1"]), [0.0, 12.5, 37.5, 50.0]),
        ] {
            assert_eq!(of(plugin, Some(groups)), want, "{name}");
        }
        assert_eq!(of("nodegroup", None), [0.0; 4]);
    }

    #[test]
    fn limits_hold_what_the_queue_has_in_a_group() {
        let limited = |limits: &'static str| {
            move |queue: &mut QueueSpec| {
                queue.node_groups = Some(affinity(&[], &["g1", "g2"]));
                queue.node_group_limits = vec![("g1".into(), amounts(limits))];
            }
        };
        let on = |scene: &Scene, node| objection(scene, &["nodegroup"], "p-0", node);
        assert_eq!(on(&scene(limited("3c8Gi")), "g1"), None);
        assert_eq!(on(&scene(limited("1c")), "g1"), OVER_LIMIT);
        assert_eq!(on(&scene(limited("3c")), "g1"), None, "memory is not limited");
        let running = scene(limited("3c8Gi")).job("r", |job| job.queue("q").running(1, "2c4Gi", "g1"));
        assert_eq!([on(&running, "g1"), on(&running, "g2")], [OVER_LIMIT, None]);
        let others = scene(limited("3c8Gi")).job("r", |job| job.running(1, "2c4Gi", "g1"));
        assert_eq!(on(&others, "g1"), None, "another queue's pods do not count");
        let terminating = scene(limited("3c8Gi")).job("r", |job| job.queue("q").releasing(1, "2c4Gi", "g1"));
        assert_eq!(on(&terminating, "g1"), OVER_LIMIT, "what terminates counts until it is gone");
        let mut pod = running.events().into_iter().find_map(|event| match event {
            Event::Pod(pod) if pod.name == "r-0" => Some(pod),
            _ => None,
        });
        pod.as_mut().unwrap().phase = krafla_model::PodPhase::Succeeded;
        let ended = running.event(Event::Pod(pod.unwrap()));
        assert_eq!(on(&ended, "g1"), None, "what has ended does not count");
        let gone = ended.event(Event::NodeGone("g1".into()));
        assert_eq!(on(&gone, "g2"), None, "nor does its node have to be there");
        // Two pods of one session: the second finds the group full.
        let both = scene(limited("3c8Gi"));
        assert_eq!(run(&both, "allocate", &["nodegroup"]).binds, ["p-0 -> g1", "p-1 -> g2"]);
    }

    #[test]
    fn limits_that_cannot_be_read_keep_the_queue_out_everywhere() {
        let mut cluster = scene(|queue| queue.node_groups = Some(affinity(&["g1"], &[]))).build();
        let mut queue = cluster.queue(cluster.find_queue("q").unwrap()).spec.clone();
        queue.node_group_limits_error = Some("unexpected end of JSON input".to_owned());
        assert_eq!(cluster.apply(Event::Queue(queue)).len(), 1, "and say so");
        let text = "node group resource limit annotation invalid";
        for node in ["bare", "g1", "g2"] {
            let verdict =
                krafla_testkit::verdict(&cluster, &registry(), &conf("allocate", &[&["nodegroup"]]), "p-0", node);
            assert_eq!(verdict, Err(Verdict::Unresolvable(Why::Says(text))), "{node}");
        }
    }

    #[test]
    fn a_queue_without_groups_may_have_those_of_its_nearest_ancestor() {
        let family = Scene::new()
            .labelled_node("g1", "8c", GROUP_LABEL, "g1")
            .labelled_node("g2", "8c", GROUP_LABEL, "g2")
            .queue("root", |queue| queue.with(|q| q.node_groups = Some(affinity(&["g1"], &[]))))
            .queue("dept", |queue| queue.with(|q| q.node_groups = Some(affinity(&["g2"], &[]))))
            .queue("team", |queue| queue.with(|q| q.parent = "dept".into()))
            .queue("lone", |queue| queue)
            .queue("own", |queue| {
                queue.with(|q| {
                    q.parent = "dept".into();
                    q.node_groups = Some(affinity(&["g1"], &[]));
                })
            });
        let family =
            ["team", "lone", "own"].into_iter().fold(family, |s, q| s.job(q, |job| job.queue(q).pending(1, "1c")));
        let tree = run(&family, "allocate", &["nodegroup enableHierarchy=true"]).binds;
        assert_eq!(tree, ["team-0 -> g2", "lone-0 -> g1", "own-0 -> g1"]);
        assert_eq!(run(&family, "allocate", &["nodegroup"]).binds, ["own-0 -> g1"], "not without enableHierarchy");
    }
}
