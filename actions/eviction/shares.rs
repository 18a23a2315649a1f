//! The rule of moves between queues: who gains ends below what the other had.

use std::collections::{BTreeMap, BTreeSet};

use krafla_framework::{Dues, RelativeShare, Session, ShareMove};
use krafla_model::{ClusterState, QueueId, ResourceId, Resources, TaskId};

use super::plan::Plan;
use super::{Against, Beneficiary};

/// How shares of two queues are compared.
#[derive(Clone, Copy)]
pub(crate) enum ShareRule<'d> {
    /// By what they hold of what they are due.
    Due(&'d Dues),
    /// By what their branches hold of what those are due where they part, of each resource that one gets from the other.
    Branches,
}

/// What a queue is to gain.
pub(crate) struct Gain<'g> {
    more: &'g Resources,
    /// Its share with that, where it is the same towards all others.
    share: Option<RelativeShare>,
}

/// Shares of the queue that gains and of one that loses.
type Pair = [RelativeShare; 2];
/// What a decision moves: by the queue that loses.
pub(super) type Shares = BTreeMap<QueueId, Compared>;

/// The queues that are compared, which may be above those that gain and lose, with their shares: one pair, or one for each
/// resource that is given.
pub(super) struct Compared {
    queues: [QueueId; 2],
    pairs: Vec<Pair>,
}

impl Beneficiary<'_> {
    /// What the job's queue gains with `more`.
    pub(crate) fn gain<'g>(&self, cluster: &ClusterState, more: &'g Resources) -> Gain<'g> {
        let share = match self.against {
            Against::OtherQueues(ShareRule::Due(dues)) => Some(due_share(cluster, dues, self.queue, more)),
            _ => None,
        };
        Gain { more, share }
    }

    /// Whether the share rule lets `victim` go, as things stand. Within a queue no share is moved.
    pub(crate) fn makes_shares_more_equal(&self, session: &Session<'_>, gain: &Gain<'_>, victim: TaskId) -> bool {
        let Against::OtherQueues(rule) = self.against else { return true };
        let cluster = session.cluster();
        let Some(queue) = queue_of(cluster, victim) else { return false };
        if let (ShareRule::Due(dues), Some(own)) = (rule, gain.share) {
            let [gainer, loser] = session.plugins().compared(cluster, self.queue, queue);
            let gained = if gainer == self.queue { own } else { due_share(cluster, dues, gainer, gain.more) };
            let share = due_share(cluster, dues, loser, &Resources::default());
            // Whether the loser's share really falls is seen once the whole decision is known.
            let no_larger = || gained == due_share(cluster, dues, gainer, &Resources::default()) && share.is_over();
            return gained.may_take_from(&share) || no_larger();
        }
        let given = given(&cluster.shape_of(victim).request, gain.more);
        let pairs = self.pairs(session, rule, queue, &given, gain.more);
        !pairs.is_empty() && pairs.iter().all(|[gained, share]| gained.may_take_from(share))
    }

    /// The shares of the job's queue with `more`, and of `loser`.
    fn pairs(
        &self,
        session: &Session<'_>,
        rule: ShareRule<'_>,
        loser: QueueId,
        given: &BTreeSet<ResourceId>,
        more: &Resources,
    ) -> Vec<Pair> {
        let (cluster, plugins) = (session.cluster(), session.plugins());
        match rule {
            ShareRule::Due(dues) => {
                let [gainer, loser] = plugins.compared(cluster, self.queue, loser);
                vec![[due_share(cluster, dues, gainer, more), due_share(cluster, dues, loser, &Resources::default())]]
            }
            ShareRule::Branches => {
                given.iter().filter_map(|resource| plugins.branch_shares(*resource, self.queue, more, loser)).collect()
            }
        }
    }

    /// Shares that a plan moves, as things stand; none within a queue.
    pub(super) fn shares(&self, session: &Session<'_>, plan: &Plan) -> Shares {
        let Against::OtherQueues(rule) = self.against else { return Shares::new() };
        let cluster = session.cluster();
        let mut asked = Resources::default();
        for (task, _) in &plan.placements {
            asked.add(&cluster.shape_of(*task).request);
        }
        let mut by_loser: BTreeMap<QueueId, BTreeSet<ResourceId>> = BTreeMap::new();
        for &victim in plan.evictions.iter().flatten() {
            if let Some(queue) = queue_of(cluster, victim) {
                by_loser.entry(queue).or_default().extend(given(&cluster.shape_of(victim).request, &asked));
            }
        }
        let nothing = Resources::default();
        let compared = |(queue, given)| {
            let queues = match rule {
                ShareRule::Due(_) => session.plugins().compared(cluster, self.queue, queue),
                ShareRule::Branches => [self.queue, queue],
            };
            (queue, Compared { queues, pairs: self.pairs(session, rule, queue, &given, &nothing) })
        };
        by_loser.into_iter().map(compared).collect()
    }

    /// Whether the share rule holds for a decision as a whole.
    pub(super) fn is_fair(&self, before: &Shares, after: &Shares) -> bool {
        let more_equal = |(before, after): (&Pair, &Pair)| {
            RelativeShare::makes_more_equal([&before[0], &after[0]], [&before[1], &after[1]])
        };
        before.keys().all(|queue| both(before, after, queue).all(more_equal))
    }

    /// How the shares move with a victim, for its certificate: of the resource where they come closest.
    pub(super) fn moves_of(
        &self,
        cluster: &ClusterState,
        victim: TaskId,
        before: &Shares,
        after: &Shares,
    ) -> Vec<ShareMove> {
        let Some(loser) = queue_of(cluster, victim) else { return Vec::new() };
        let distance = |(before, after): &(&Pair, &Pair)| before[1].entitled - after[0].entitled;
        let before_all = before;
        let Some((before, after)) = both(before, after, &loser).min_by_key(distance) else { return Vec::new() };
        let Some(compared) = before_all.get(&loser) else { return Vec::new() };
        let queues = compared.queues.map(|queue| cluster.queue(queue).spec.name.clone());
        let moved = queues.into_iter().zip(before.iter().zip(after));
        moved.map(|(queue, (before, after))| ShareMove { queue, before: *before, after: *after }).collect()
    }
}

/// Pairs before and after a decision, of one queue that loses.
fn both<'s>(before: &'s Shares, after: &'s Shares, loser: &QueueId) -> impl Iterator<Item = (&'s Pair, &'s Pair)> {
    let pairs = |shares: &'s Shares| shares.get(loser).map_or(&[][..], |compared| &compared.pairs);
    pairs(before).iter().zip(pairs(after))
}

fn due_share(cluster: &ClusterState, dues: &Dues, queue: QueueId, more: &Resources) -> RelativeShare {
    dues.share(queue, &cluster.queue(queue).held().claimed().plus(more))
}

/// What a victim gives of what is asked for; everybody gives a pod slot.
fn given(has: &Resources, asked: &Resources) -> BTreeSet<ResourceId> {
    let counts = |id: &ResourceId| *id != ResourceId::PODS && asked.get(*id) > 0;
    has.iter().filter(|(_, amount)| *amount > 0).map(|(id, _)| id).filter(counts).collect()
}

/// The queue of a task's job.
pub(super) fn queue_of(cluster: &ClusterState, task: TaskId) -> Option<QueueId> {
    cluster.job(cluster.task(task).job?).queue
}
