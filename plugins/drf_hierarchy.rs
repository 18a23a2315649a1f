//! The tree of hierarchical dominant-resource fairness (Bhattacharya et al., SoCC '13), for `drf` with `enableHierarchy`.
//!
//! Its leaves are jobs. What a branch counts as holding is not the sum of what is below it: children that can still grow
//! are first lowered to the smallest share over weight among them, so that a child that was served early does not hold
//! back its siblings, and those that cannot grow count in full.

use std::collections::BTreeMap;

use krafla_framework::{Rank, RelativeShare};
use krafla_model::queue::ROOT_QUEUE;
use krafla_model::{ClusterState, JobId, Name, QueueId, ResourceId, Resources, TaskId};
use ordered_float::OrderedFloat;

use crate::water_filling::{Claim, divide};

/// What the share of a node is divided by.
type Weight = OrderedFloat<f64>;

const ONE: Weight = OrderedFloat(1.0);
/// The node above all others.
const ROOT: usize = 0;

/// What a job or a branch counts as to the branch above it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Standing {
    held: Resources,
    /// The dominant share of `held`.
    share: OrderedFloat<f64>,
    /// Whether it can hold no more, whoever gets the next turn.
    saturated: bool,
}

#[derive(Clone, Debug)]
struct Node {
    parent: usize,
    weight: Weight,
    nodes: BTreeMap<Name, usize>,
    jobs: Vec<JobId>,
    standing: Standing,
    /// All that is held below it.
    sum: Resources,
    /// What it is due; see [`Hierarchy::divide`].
    due: Resources,
}

#[derive(Clone, Debug)]
struct Leaf {
    node: usize,
    /// Held and asked for.
    wanted: Resources,
    standing: Standing,
}

/// Queues and jobs as one tree, with what each counts as. Kept current by [`Hierarchy::follow`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Hierarchy {
    /// The root first, and each node after the one above it.
    nodes: Vec<Node>,
    leaves: BTreeMap<JobId, Leaf>,
    /// Nodes from below the root to each queue's own.
    places: BTreeMap<QueueId, Vec<usize>>,
    depth: usize,
    total: Resources,
    /// What is neither held nor promised.
    free: Resources,
    /// Resources of which nothing is free.
    scarce: Vec<ResourceId>,
}

impl Hierarchy {
    /// Of a cluster. Cost: queues times depth, and the jobs.
    pub(crate) fn of(cluster: &ClusterState) -> Self {
        let mut tree = Self { total: cluster.totals().allocatable.clone(), ..Self::default() };
        tree.nodes.push(Node::below(ROOT));
        // By age, so that a queue that comes later does not change the weight of a level that others have named.
        let mut queues: Vec<_> =
            cluster.queues().map(|(id, queue)| (queue.spec.created, &queue.spec.name, id)).collect();
        queues.sort_unstable();
        for (.., id) in queues {
            let place = tree.grow(&levels(cluster, id));
            let node = place.last().copied().unwrap_or(ROOT);
            tree.depth = tree.depth.max(place.len());
            tree.places.insert(id, place);
            for job in cluster.queue(id).jobs() {
                let held = cluster.job(job).held();
                // Who neither holds nor asks for anything would count as one that can still grow.
                if !held.wanted().is_zero() {
                    let standing = Standing { held: held.claimed(), ..Standing::default() };
                    tree.leaves.insert(job, Leaf { node, wanted: held.wanted(), standing });
                    if let Some(node) = tree.nodes.get_mut(node) {
                        node.jobs.push(job);
                    }
                }
            }
        }
        tree.free = cluster.totals().future_idle();
        tree.scarce = tree.scarcity();
        tree.settle_all();
        tree
    }

    /// A job got or lost something. Cost: the children of each node above it; all jobs when a resource ran out, or is
    /// there again.
    pub(crate) fn follow(&mut self, cluster: &ClusterState, job: JobId) {
        let Some(leaf) = self.leaves.get_mut(&job) else { return };
        let held = cluster.job(job).held();
        leaf.standing.held = held.claimed();
        leaf.wanted = held.wanted();
        self.free = cluster.totals().future_idle();
        self.settle(job);
    }

    /// The keys of a queue: of each level below the root whether it can still grow, then its share over its weight, so
    /// that two queues are compared where their branches part. The number of keys is the same for all.
    pub(crate) fn rank(&self, queue: QueueId, rank: &mut Rank) {
        let place = self.places.get(&queue).map_or(&[][..], Vec::as_slice);
        for node in place.iter().filter_map(|i| self.nodes.get(*i)) {
            let (saturated, share) = node.key();
            rank.first_if(!saturated);
            rank.ascending(share);
        }
        for _ in place.len()..self.depth {
            (0..2).for_each(|_| rank.ascending(0.0));
        }
    }

    /// Who of `candidates` gives back for `reclaimer`, in their order: whoever's queue comes after the reclaimer's still,
    /// when the reclaimer has what it asks for and all victims so far are gone.
    ///
    /// That the reclaimer's job would then have all it wants does not put it last: it is asked as one that wants more.
    pub(crate) fn victims(&self, cluster: &ClusterState, reclaimer: TaskId, candidates: &[TaskId]) -> Vec<TaskId> {
        let own = |task: TaskId| {
            let job = cluster.task(task).job?;
            Some((job, cluster.job(job).queue?))
        };
        let Some((job, queue)) = own(reclaimer) else { return Vec::new() };
        let request = &cluster.shape_of(reclaimer).request;
        let mut then = self.clone();
        if let Some(leaf) = then.leaves.get_mut(&job) {
            leaf.wanted.add(request);
        }
        then.give(job, request);
        let mut victims = Vec::new();
        for &candidate in candidates {
            let Some((theirs, other)) = own(candidate).filter(|(_, other)| *other != queue) else { continue };
            let request = &cluster.shape_of(candidate).request;
            then.take(theirs, request);
            if then.is_before(queue, other) {
                victims.push(candidate);
            } else {
                then.give(theirs, request);
            }
        }
        victims
    }

    /// Divides each resource of the cluster between branches, from the root down: by weight, and to none more than is wanted
    /// below it. Jobs that stand at the door want nothing. `more` is wanted by a queue besides.
    ///
    /// What branches count as, which orders queues, cannot say who may take from whom: it may grow by a loss and shrink by
    /// a gain, so that pods could be taken back and forth for ever. Cost: the jobs, and branches times resources.
    pub(crate) fn divide(&mut self, cluster: &ClusterState, more: Option<(QueueId, &Resources)>) {
        let mut jobs: BTreeMap<usize, Vec<Resources>> = BTreeMap::new();
        for (&id, leaf) in &self.leaves {
            let (job, held) = (cluster.job(id), cluster.job(id).held());
            jobs.entry(leaf.node).or_default().push(if job.is_pending() { held.claimed() } else { held.wanted() });
        }
        if let Some((queue, more)) = more {
            let node = self.places.get(&queue).and_then(|place| place.last()).copied().unwrap_or(ROOT);
            jobs.entry(node).or_default().push(more.clone());
        }
        let mut wanted = vec![Resources::default(); self.nodes.len()];
        for at in (0..self.nodes.len()).rev() {
            jobs.get(&at).into_iter().flatten().for_each(|job| wanted[at].add(job));
            if at != ROOT {
                let below = wanted[at].clone();
                wanted[self.nodes[at].parent].add(&below);
            }
        }
        if let Some(root) = self.nodes.get_mut(ROOT) {
            root.due = self.total.clone();
        }
        for at in 0..self.nodes.len() {
            let below: Vec<usize> = self.nodes[at].nodes.values().copied().collect();
            if below.is_empty() {
                continue;
            }
            let branches = below.iter().map(|&i| (self.nodes[i].weight, &wanted[i]));
            let claimants: Vec<(Weight, &Resources)> =
                branches.chain(jobs.get(&at).into_iter().flatten().map(|job| (ONE, job))).collect();
            let mut dues = vec![Resources::default(); below.len()];
            for (resource, amount) in self.nodes[at].due.iter() {
                let claim = |(weight, wants): &(Weight, &Resources)| Claim {
                    weight: in_thousandths(*weight),
                    floor: 0,
                    ceiling: wants.get(resource),
                };
                let claims: Vec<Claim> = claimants.iter().map(claim).collect();
                for (due, part) in dues.iter_mut().zip(divide(amount, &claims)) {
                    due.set(resource, part);
                }
            }
            for (i, due) in below.into_iter().zip(dues) {
                self.nodes[i].due = due;
            }
        }
    }

    /// All that the branches of two queues hold of a resource, relative to what they are due of it, where they part: of `one`
    /// with `more`, and of `other`. `None` if one is below the other.
    pub(crate) fn shares_where_they_part(
        &self,
        resource: ResourceId,
        one: QueueId,
        more: &Resources,
        other: QueueId,
    ) -> Option<[RelativeShare; 2]> {
        let (one, other) = (self.places.get(&one)?, self.places.get(&other)?);
        let (one, other) = one.iter().zip(other).find(|(one, other)| one != other)?;
        let (one, other) = (self.nodes.get(*one)?, self.nodes.get(*other)?);
        let only = |amount: i64| Resources::default().with(resource, amount);
        let share = |node: &Node, held: i64| {
            RelativeShare::of(&only(held), &only(node.due.get(resource)), &only(self.total.get(resource)))
        };
        Some([share(one, one.sum.get(resource) + more.get(resource)), share(other, other.sum.get(resource))])
    }

    /// What the queues hold from which a queue could take with `more`; at most, since each may lose only a part of it.
    pub(crate) fn could_reclaim(&self, cluster: &ClusterState, queue: QueueId, more: &Resources) -> Resources {
        let mut then = self.clone();
        then.divide(cluster, Some((queue, more)));
        let mut sum = Resources::default();
        for (id, other) in cluster.queues().filter(|(id, other)| *id != queue && other.spec.reclaimable) {
            for (resource, _) in more.iter().filter(|(resource, asked)| *resource != ResourceId::PODS && *asked > 0) {
                let shares = then.shares_where_they_part(resource, queue, more, id);
                if shares.is_some_and(|[gained, share]| gained.may_take_from(&share)) {
                    let held = other.jobs().map(|job| cluster.job(job).held().claimed().get(resource)).sum::<i64>();
                    sum.set(resource, sum.get(resource) + held);
                }
            }
        }
        sum
    }

    fn give(&mut self, job: JobId, amount: &Resources) {
        if let Some(leaf) = self.leaves.get_mut(&job) {
            leaf.standing.held.add(amount);
            self.free.sub(amount);
            self.settle(job);
        }
    }

    fn take(&mut self, job: JobId, amount: &Resources) {
        if let Some(leaf) = self.leaves.get_mut(&job) {
            leaf.standing.held.sub(amount);
            self.free.add(amount);
            self.settle(job);
        }
    }

    /// Whether a queue comes strictly first, as far as the shorter of the two paths goes.
    fn is_before(&self, one: QueueId, two: QueueId) -> bool {
        let keys =
            |queue| self.places.get(&queue).into_iter().flatten().filter_map(|i| Some(self.nodes.get(*i)?.key()));
        keys(one).zip(keys(two)).find(|(one, two)| one != two).is_some_and(|(one, two)| one < two)
    }

    /// The nodes of a path from below the root, made where they are missing. A weight above 1 that is named first stays.
    fn grow(&mut self, levels: &[(Name, Weight)]) -> Vec<usize> {
        let mut place = Vec::with_capacity(levels.len());
        let mut at = ROOT;
        for (name, weight) in levels {
            let next = self.nodes.len();
            let known = self.nodes.get_mut(at).map_or(next, |node| *node.nodes.entry(name.clone()).or_insert(next));
            if known == next {
                self.nodes.push(Node::below(at));
            }
            at = known;
            if let Some(node) = self.nodes.get_mut(at).filter(|node| node.weight <= ONE) {
                node.weight = (*weight).max(ONE);
            }
            place.push(at);
        }
        place
    }

    fn scarcity(&self) -> Vec<ResourceId> {
        self.total.iter().map(|(id, _)| id).filter(|id| self.free.get(*id) <= 0).collect()
    }

    /// Renews what a job counts as, and with it the branches above it.
    fn settle(&mut self, job: JobId) {
        let scarce = self.scarcity();
        if scarce != self.scarce {
            self.scarce = scarce;
            return self.settle_all();
        }
        let Some(leaf) = self.leaves.get_mut(&job) else { return };
        leaf.settle(&self.total, &self.scarce);
        let mut at = leaf.node;
        loop {
            self.settle_node(at);
            if at == ROOT {
                break;
            }
            at = self.nodes.get(at).map_or(ROOT, |node| node.parent);
        }
    }

    fn settle_all(&mut self) {
        for leaf in self.leaves.values_mut() {
            leaf.settle(&self.total, &self.scarce);
        }
        for node in (0..self.nodes.len()).rev() {
            self.settle_node(node);
        }
    }

    fn settle_node(&mut self, at: usize) {
        let Some(node) = self.nodes.get(at) else { return };
        let branches = node.nodes.values().filter_map(|i| self.nodes.get(*i)).map(|node| (node.weight, &node.standing));
        let jobs = node.jobs.iter().filter_map(|job| Some((ONE, &self.leaves.get(job)?.standing)));
        let children: Vec<(Weight, &Standing)> = branches.chain(jobs).collect();
        let standing = together(&children, &self.total);
        let mut sum = Resources::default();
        for below in node.nodes.values().filter_map(|i| self.nodes.get(*i)) {
            sum.add(&below.sum);
        }
        for leaf in node.jobs.iter().filter_map(|job| self.leaves.get(job)) {
            sum.add(&leaf.standing.held);
        }
        if let Some(node) = self.nodes.get_mut(at) {
            (node.standing, node.sum) = (standing, sum);
        }
    }
}

impl Node {
    fn below(parent: usize) -> Self {
        Self {
            parent,
            weight: ONE,
            nodes: BTreeMap::new(),
            jobs: Vec::new(),
            standing: Standing::default(),
            sum: Resources::default(),
            due: Resources::default(),
        }
    }

    fn key(&self) -> (bool, OrderedFloat<f64>) {
        (self.standing.saturated, self.standing.share / self.weight)
    }
}

impl Leaf {
    /// A job can hold no more when it has all it wants of something that it holds, or when nobody can get more of that.
    fn settle(&mut self, total: &Resources, scarce: &[ResourceId]) {
        let (held, wanted) = (&self.standing.held, &self.wanted);
        let at_its_end = |(id, amount): (ResourceId, i64)| {
            amount > 0 && wanted.get(id) > 0 && (amount >= wanted.get(id) || scarce.contains(&id))
        };
        let saturated = held.iter().any(at_its_end);
        self.standing.share = held.dominant_share(total);
        self.standing.saturated = saturated;
    }
}

/// What a branch counts as, from its children with their weights.
///
/// Children are lowered to the same share *over weight*: lowered to the same share, a branch would stand for less the
/// smaller the weight of its smallest child is, and take from others what that child does not get.
fn together(children: &[(Weight, &Standing)], total: &Resources) -> Standing {
    let holding = || children.iter().filter(|(_, child)| child.share > OrderedFloat(0.0));
    let growing = holding().filter(|(_, child)| !child.saturated);
    let least = growing.map(|(weight, child)| child.share / weight).min().unwrap_or_default();
    let mut held = Resources::default();
    for (weight, child) in holding() {
        if child.saturated {
            held.add(&child.held);
        } else {
            held.add(&lowered(&child.held, least * weight / child.share));
        }
    }
    let share = held.dominant_share(total);
    Standing { held, share, saturated: children.iter().all(|(_, child)| child.saturated) }
}

/// A weight as the whole number that amounts are divided by.
fn in_thousandths(weight: Weight) -> u32 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is clamped to what fits")]
    let whole = (weight.into_inner() * 1_000.0).round().clamp(1.0, f64::from(u32::MAX)) as u32;
    whole
}

/// A part of amounts, in whole units, so that equal parts are equal.
fn lowered(amounts: &Resources, part: OrderedFloat<f64>) -> Resources {
    let mut lowered = Resources::default();
    for (id, amount) in amounts.iter() {
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "at most the amount itself")]
        let amount = (amount as f64 * part.into_inner()).round() as i64;
        lowered.set(id, amount);
    }
    lowered
}

/// A queue's path from below the root, with weights: what its annotations say, else its parents.
fn levels(cluster: &ClusterState, id: QueueId) -> Vec<(Name, Weight)> {
    let queue = cluster.queue(id);
    if let [_, below @ ..] = &queue.spec.hierarchy[..] {
        return below.iter().map(|level| (level.name.clone(), level.weight)).collect();
    }
    let path = queue.path().iter().map(|id| &cluster.queue(*id).spec);
    let below = path.filter(|spec| spec.name != ROOT_QUEUE);
    below.map(|spec| (spec.name.clone(), OrderedFloat(f64::from(spec.weight)))).collect()
}

#[cfg(test)]
mod tests {
    use krafla_testkit::{Outcome, Scene};

    use crate::testing::{queue_order, reclaims, run};

    const HDRF: &str = "drf enableHierarchy=true";

    fn held(outcome: &Outcome) -> Vec<String> {
        let cluster = &outcome.cluster;
        let held = |job: &krafla_model::Job| {
            let mut held = job.held().allocated.clone();
            held.set(krafla_model::ResourceId::PODS, 0);
            format!("{}: {}", job.spec.name, cluster.names().format_all(&held))
        };
        cluster.jobs().map(|(_, job)| held(job)).collect()
    }

    /// Ten cores and ten gibibytes for `sci`, and for `dev` and `prod` of `eng`.
    fn two_branches() -> Scene {
        Scene::new()
            .node("n", "10c10Gi50p")
            .queue("sci", |queue| queue.hierarchy("root/sci", "100/50"))
            .queue("dev", |queue| queue.hierarchy("root/eng/dev", "100/50/50"))
            .queue("prod", |queue| queue.hierarchy("root/eng/prod", "100/50/50"))
    }

    #[test]
    fn a_branch_of_two_demands_gets_as_much_as_a_single_queue() {
        let scene = two_branches()
            .job("pg1", |job| job.queue("sci").pending(10, "1c1Gi"))
            .job("pg21", |job| job.queue("dev").pending(10, "1c"))
            .job("pg22", |job| job.queue("prod").pending(10, "1Gi"));
        let outcome = run(&scene, "allocate", &[HDRF, "predicates"]);
        assert_eq!(held(&outcome), ["pg1: cpu 5, memory 5Gi", "pg21: cpu 5", "pg22: memory 5Gi"]);
    }

    /// The second published case, with the queues placed by `place`.
    fn four_branches(
        place: impl Fn(krafla_testkit::QueueScene, &str, &str) -> krafla_testkit::QueueScene,
    ) -> [Vec<String>; 2] {
        let mut scene = Scene::new().node("n", "30c30Gi500p").queue("pg3", |queue| place(queue, "", "pg3"));
        for (above, name) in [("", "pg1"), ("", "pg2"), ("pg3", "pg31"), ("pg3", "pg32"), ("", "pg4")] {
            scene = scene.queue(name, |queue| place(queue, above, name));
        }
        for (name, asks) in [("pg1", "1c"), ("pg2", "1c"), ("pg31", "1c"), ("pg32", "1Gi"), ("pg4", "1Gi")] {
            scene = scene.job(name, |job| job.queue(name).pending(30, asks));
        }
        let outcome = run(&scene, "allocate", &[HDRF, "predicates"]);
        [
            held(&outcome),
            ["pg1: cpu 10", "pg2: cpu 10", "pg31: cpu 10", "pg32: memory 15Gi", "pg4: memory 15Gi"]
                .map(String::from)
                .to_vec(),
        ]
    }

    #[test]
    fn a_child_that_cannot_grow_does_not_hold_back_its_sibling() {
        let [got, want] = four_branches(|queue, above, name| match above {
            "" => queue.hierarchy(&format!("root/{name}"), "100/25"),
            above => queue.hierarchy(&format!("root/{above}/{name}"), "100/25/50"),
        });
        assert_eq!(got, want);
    }

    #[test]
    fn without_annotations_parents_and_weights_are_the_tree() {
        let [got, want] = four_branches(|queue, above, _| match above {
            "" => queue.weight(25),
            above => queue.parent(above).weight(50),
        });
        assert_eq!(got, want);
    }

    #[test]
    fn weights_divide_at_each_level() {
        let scene = Scene::new()
            .node("n", "12c100p")
            .queue("a", |queue| queue.hierarchy("root/a", "1/2"))
            .queue("b1", |queue| queue.hierarchy("root/b/b1", "1/1/3"))
            .queue("b2", |queue| queue.hierarchy("root/b/b2", "1/1/1"))
            .job("ja", |job| job.queue("a").pending(20, "1c"))
            .job("jb1", |job| job.queue("b1").pending(20, "1c"))
            .job("jb2", |job| job.queue("b2").pending(20, "1c"));
        let outcome = run(&scene, "allocate", &[HDRF, "predicates"]);
        let bound = ["ja", "jb1", "jb2"].map(|job| outcome.n_bound(job));
        assert_eq!(bound, [8, 3, 1]);
    }

    #[test]
    fn a_broken_place_harms_itself_only() {
        // Whatever a queue of its own branch says, the others get what they get without its jobs.
        let jobs = |scene: Scene| {
            scene
                .job("pg1", |job| job.queue("sci").pending(10, "1c1Gi"))
                .job("pg21", |job| job.queue("dev").pending(10, "1c"))
                .job("pg22", |job| job.queue("prod").pending(10, "1Gi"))
        };
        let want = held(&run(&jobs(two_branches()), "allocate", &[HDRF, "predicates"]));
        for scene in [
            // A weight that counts as 1, for a level that others have named.
            two_branches().queue("broken", |queue| queue.hierarchy("root/eng/broken", "1/1/1")),
            Scene::new()
                .node("n", "10c10Gi50p")
                .queue("broken", |queue| queue.hierarchy("root/eng/broken", "1/1/1"))
                .queue("sci", |queue| queue.hierarchy("root/sci", "100/50"))
                .queue("dev", |queue| queue.hierarchy("root/eng/dev", "100/50/50"))
                .queue("prod", |queue| queue.hierarchy("root/eng/prod", "100/50/50")),
            // A parent that is not there, the root itself.
            two_branches().queue("broken", |queue| queue.parent("nobody")),
            two_branches().queue("broken", |queue| queue.hierarchy("root", "1")),
        ] {
            let outcome = run(&jobs(scene), "allocate", &[HDRF, "predicates"]);
            assert_eq!(held(&outcome), want);
        }
    }

    #[test]
    fn a_missing_weight_costs_the_branch_nothing_of_its_own() {
        let scene = two_branches()
            .queue("broken", |queue| queue.hierarchy("root/eng/broken", "1/1/1"))
            .job("pg1", |job| job.queue("sci").pending(10, "1c1Gi"))
            .job("pg21", |job| job.queue("dev").pending(10, "1c"))
            .job("pg22", |job| job.queue("prod").pending(10, "1Gi"))
            .job("pg23", |job| job.queue("broken").pending(10, "1c"));
        let outcome = run(&scene, "allocate", &[HDRF, "predicates"]);
        let held = held(&outcome);
        assert_eq!(held[0], "pg1: cpu 5, memory 5Gi", "{held:?}");
        assert_eq!(held[2], "pg22: memory 5Gi", "{held:?}");
        // By its weight of 1 beside 50 it gets one task, the first.
        assert_eq!([outcome.n_bound("pg21"), outcome.n_bound("pg23")], [4, 1]);
    }

    #[test]
    fn queues_are_compared_where_their_branches_part() {
        let scene = two_branches()
            .job("a", |job| job.queue("sci").running(2, "1c1Gi", "n").pending(8, "1c1Gi"))
            .job("b", |job| job.queue("dev").running(5, "1c", "n").pending(5, "1c"))
            .job("c", |job| job.queue("prod").running(1, "1Gi", "n").pending(9, "1Gi"));
        // `eng` counts as 0.1 of both, less than the 0.2 of `sci`, though `dev` holds half of the cores.
        let order: Vec<String> = queue_order(&scene, HDRF).into_iter().filter(|name| name != "default").collect();
        assert_eq!(order, ["prod", "dev", "sci"]);
    }

    #[test]
    fn each_victim_counts_as_gone_for_those_after_it() {
        let scene = two_branches()
            .job("a", |job| job.queue("sci").running(8, "1c", "n").pending(2, "1c"))
            .job("b", |job| job.queue("dev").running(1, "1c", "n").pending(4, "1c"))
            .job("c", |job| job.queue("prod").running(1, "1c", "n").pending(4, "1c"));
        let sci: Vec<String> = (0..8).map(|i| format!("a-{i}")).collect();
        let sci: Vec<&str> = sci.iter().map(String::as_str).collect();
        // With its task `eng` counts as 0.3; once a core is free again its jobs can grow, and it counts as 0.2.
        let (_, victims) = reclaims(&scene, HDRF, "b-1", &sci);
        assert_eq!(victims, sci[..5], "down to 0.3");
        let (_, victims) = reclaims(&scene, HDRF, "a-8", &["b-0", "c-0"]);
        assert_eq!(victims, [""; 0], "the richer queue takes nothing");
        let (_, victims) = reclaims(&scene, HDRF, "b-1", &["c-0"]);
        assert_eq!(victims, [""; 0], "equals take nothing from each other");
    }
}
