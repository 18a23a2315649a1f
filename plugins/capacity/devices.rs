//! Quotas of devices, which pods get by claims (DRA): `deviceclass/<class>` in a queue's capability is how many devices of
//! that class its claims may have, `<dimension>.deviceclass/<class>` how much of a capacity that its claims ask for.
//!
//! A claim counts once in each queue, however many pods share it. Of requests only those count that name their class and
//! a number, as in Volcano: neither alternatives nor `All`; and no devices that are only looked at.

use std::collections::{BTreeMap, BTreeSet};

use krafla_framework::{Room, Shortage};
use krafla_model::dra::Claim;
use krafla_model::{ClusterState, JobId, JobPhase, Name, QueueId, TaskId, TaskStatus};

use super::tree::Tree;

/// What stands before the name of a class.
const CLASS: &str = "deviceclass/";

/// Amounts in thousandths, by how a capability names them.
type Amounts = BTreeMap<Name, i64>;

/// The quotas, and what is used of them.
#[derive(Default)]
pub(super) struct Devices {
    /// Whether capacities count, beside devices.
    capacities: bool,
    quotas: BTreeMap<QueueId, Quota>,
    /// How each task counts that uses claims.
    tasks: BTreeMap<TaskId, Use>,
}

#[derive(Default)]
struct Quota {
    limits: Amounts,
    /// Classes that the limits name.
    classes: BTreeSet<Name>,
    /// Held and promised.
    claimed: Held,
    /// The same, and what is terminating.
    occupied: Held,
    /// What admission keeps.
    inqueue: Held,
}

/// Claims by UID, with how many tasks use each, and their sum.
#[derive(Default)]
struct Held {
    claims: BTreeMap<Name, u32>,
    sum: Amounts,
}

/// In which of the sums a task counts.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Use {
    claimed: bool,
    occupied: bool,
}

impl Use {
    fn of(status: TaskStatus) -> Self {
        let claimed = status.is_allocated() || status == TaskStatus::Pipelined;
        Self { claimed, occupied: claimed || status == TaskStatus::Releasing }
    }
}

impl Held {
    /// Counts or discounts one user of a claim.
    fn count(&mut self, claim: &Claim, demand: &Amounts, more: bool) {
        let uid = &claim.spec().uid;
        let users = self.claims.entry(uid.clone()).or_default();
        let first_or_last = *users == u32::from(!more);
        *users = if more { *users + 1 } else { users.saturating_sub(1) };
        if *users == 0 {
            self.claims.remove(uid);
        }
        if first_or_last {
            for (key, amount) in demand {
                let sum = self.sum.entry(key.clone()).or_default();
                *sum = if more { sum.saturating_add(*amount) } else { sum.saturating_sub(*amount) };
            }
        }
    }
}

impl Devices {
    /// Reads the quotas and counts what is used. Cost: nothing where no queue has such a quota; else the tasks.
    pub(super) fn of(cluster: &ClusterState, tree: &Tree, capacities: bool, keeps: bool) -> Self {
        let mut devices = Self { capacities, ..Self::default() };
        for (id, queue) in cluster.queues() {
            let mut quota = Quota::default();
            for (key, amount) in queue.spec.capability.iter() {
                if let Some((dimension, class)) = key.split_once(CLASS)
                    && (dimension.is_empty() || dimension.ends_with('.'))
                {
                    quota.limits.insert(key.clone(), amount);
                    quota.classes.insert(class.into());
                }
            }
            if !quota.limits.is_empty() {
                devices.quotas.insert(id, quota);
            }
        }
        if devices.quotas.is_empty() {
            return devices;
        }
        let with_claims: Vec<TaskId> =
            cluster.tasks().filter(|(_, task)| !task.claims.is_empty()).map(|(id, _)| id).collect();
        for task in with_claims {
            devices.follow(cluster, tree, task);
        }
        if keeps {
            for (id, job) in cluster.jobs() {
                if job.phase == JobPhase::Inqueue {
                    devices.keep(cluster, tree, id);
                }
            }
        }
        devices
    }

    /// Brings what is used up to date with where a task stands.
    pub(super) fn follow(&mut self, cluster: &ClusterState, tree: &Tree, id: TaskId) {
        if self.quotas.is_empty() || cluster.task(id).claims.is_empty() {
            return;
        }
        let (now, before) = (Use::of(cluster.task(id).status()), self.tasks.get(&id).copied().unwrap_or_default());
        if now == before {
            return;
        }
        self.tasks.insert(id, now);
        let claims = claims_of(cluster, id);
        for above in queue_of(cluster, id).into_iter().flat_map(|queue| tree.path(cluster, queue)) {
            let Some(quota) = self.quotas.get_mut(above) else { continue };
            for &claim in &claims {
                let demand = demand(claim, self.capacities);
                if now.claimed != before.claimed {
                    quota.claimed.count(claim, &demand, now.claimed);
                }
                if now.occupied != before.occupied {
                    quota.occupied.count(claim, &demand, now.occupied);
                }
            }
        }
    }

    /// Why a queue, or one above it, may not have the claims of a task.
    pub(super) fn over(
        &self,
        cluster: &ClusterState,
        tree: &Tree,
        queue: QueueId,
        task: TaskId,
        room: Room,
    ) -> Option<(QueueId, Shortage)> {
        if self.quotas.is_empty() || cluster.task(task).claims.is_empty() {
            return None;
        }
        let claims = claims_of(cluster, task);
        self.first_over(cluster, tree, queue, &claims, |quota| {
            vec![if room == Room::Now { &quota.occupied } else { &quota.claimed }]
        })
    }

    /// Why a queue, or one above it, may not be promised the claims of a job's minimum.
    pub(super) fn door(&self, cluster: &ClusterState, tree: &Tree, job: JobId) -> Option<(QueueId, Shortage)> {
        let queue = cluster.job(job).queue.filter(|_| !self.quotas.is_empty())?;
        let claims = minimum(cluster, job);
        self.first_over(cluster, tree, queue, &claims, |quota| vec![&quota.claimed, &quota.inqueue])
    }

    /// Admission keeps the claims of a job's minimum.
    pub(super) fn keep(&mut self, cluster: &ClusterState, tree: &Tree, job: JobId) {
        let Some(queue) = cluster.job(job).queue.filter(|_| !self.quotas.is_empty()) else { return };
        let claims = minimum(cluster, job);
        for above in tree.path(cluster, queue) {
            let Some(quota) = self.quotas.get_mut(above) else { continue };
            for &claim in claims.iter().filter(|claim| !quota.claimed.claims.contains_key(&claim.spec().uid)) {
                quota.inqueue.count(claim, &demand(claim, self.capacities), true);
            }
        }
    }

    fn first_over<'q>(
        &'q self,
        cluster: &ClusterState,
        tree: &Tree,
        queue: QueueId,
        claims: &[&Claim],
        held: impl Fn(&'q Quota) -> Vec<&'q Held>,
    ) -> Option<(QueueId, Shortage)> {
        for &above in tree.path(cluster, queue).iter().rev() {
            let Some(quota) = self.quotas.get(&above) else { continue };
            let held = held(quota);
            let mut asked = Amounts::new();
            for &claim in claims.iter().filter(|claim| !has(&held, claim)) {
                for (key, amount) in demand(claim, self.capacities) {
                    let sum = asked.entry(key).or_default();
                    *sum = sum.saturating_add(amount);
                }
            }
            for (key, asked) in asked {
                let Some((dimension, class)) = key.split_once(CLASS) else { continue };
                let limit = match quota.limits.get(&key) {
                    // A number of 0 is no limit, as in Volcano.
                    Some(0) if dimension.is_empty() => continue,
                    Some(limit) => *limit,
                    // Of a class that is limited every capacity has to be named.
                    None if !dimension.is_empty() && quota.classes.contains(class) => 0,
                    None => continue,
                };
                let used = held
                    .iter()
                    .fold(0_i64, |used, held| used.saturating_add(held.sum.get(&key).copied().unwrap_or_default()));
                if used.saturating_add(asked) > limit {
                    return Some((above, Shortage { resource: key, asked, used, limit }));
                }
            }
        }
        None
    }
}

fn has(held: &[&Held], claim: &Claim) -> bool {
    held.iter().any(|held| held.claims.contains_key(&claim.spec().uid))
}

/// What a claim asks for, as far as it counts.
fn demand(claim: &Claim, capacities: bool) -> Amounts {
    let mut demand = Amounts::new();
    for request in &claim.spec().requests {
        let [only] = &request.alternatives[..] else { continue };
        let Some(count) = only.count.filter(|_| only.name.is_empty() && !only.admin_access) else { continue };
        let mut add = |key: String, amount: i64| {
            let sum = demand.entry(key.into()).or_default();
            *sum = sum.saturating_add(amount.saturating_mul(i64::from(count)));
        };
        add(format!("{CLASS}{}", only.class), 1_000);
        for (dimension, amount) in only.capacity.iter().filter(|_| capacities) {
            let milli = i64::try_from(amount.nano().div_euclid(1_000_000)).unwrap_or(i64::MAX);
            add(format!("{dimension}.{CLASS}{}", only.class), milli);
        }
    }
    demand
}

/// The claims of a task; none while one of them is missing: then it is placed nowhere.
fn claims_of(cluster: &ClusterState, id: TaskId) -> Vec<&Claim> {
    let (task, namespace) = (cluster.task(id), cluster.namespace_of(id));
    cluster.dynamic_resources().claims_of(namespace, &task.uid, &task.claims).unwrap_or_default()
}

/// The claims of a job's minimum, each once: of so many of each role, or of the first by name that have any.
fn minimum(cluster: &ClusterState, id: JobId) -> Vec<&Claim> {
    let job = cluster.job(id);
    let mut tasks: Vec<TaskId> = job.tasks().filter(|task| !cluster.task(*task).claims.is_empty()).collect();
    tasks.sort_by_key(|task| (&cluster.task(*task).name, &cluster.task(*task).uid));
    let by_role = job.roles().iter().any(|role| role.min > 0);
    let mut left: BTreeMap<&Name, u32> = job.roles().iter().map(|role| (&role.name, role.min)).collect();
    let mut all = job.min_available();
    let mut claims: Vec<&Claim> = Vec::new();
    for task in tasks {
        let of_role = left.get_mut(&cluster.shape_of(task).spec.role).filter(|_| by_role);
        let left = of_role.unwrap_or(&mut all);
        if *left > 0 {
            *left -= 1;
            for claim in claims_of(cluster, task) {
                if !claims.iter().any(|known| known.spec().uid == claim.spec().uid) {
                    claims.push(claim);
                }
            }
        }
    }
    claims
}

fn queue_of(cluster: &ClusterState, task: TaskId) -> Option<QueueId> {
    cluster.job(cluster.task(task).job?).queue
}
