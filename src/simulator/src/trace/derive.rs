//! Columns that the trace lacks, made up by rule and seed. The rules stand in [`Derive`](super::options::Derive).

use std::collections::BTreeMap;

use super::draft::Draft;
use super::fields::div_ceil;
use super::options::Options;
use super::random::{draw, pick};
use super::workload::{Deserved, GPU_MILLI, JobShape, NodeShape};

/// Widths of derived gangs and how many in a hundred jobs have them: most jobs of public GPU clusters are single pods,
/// and the wide ones hold most of the GPUs.
const GANGS: [(u32, u64); 4] = [(1, 70), (2, 15), (4, 10), (8, 5)];

/// Derived classes: name, value, jobs in a hundred.
const CLASSES: [(&str, i32, u64); 3] = [("low", 0, 30), ("normal", 500, 50), ("high", 1000, 20)];

/// Tenant k weighs `ZIPF / (k + 1)`, in whole numbers, so that 10,000 tenants still differ from 0.
const ZIPF: u64 = 1_000_000_000;

/// Fills in what the options ask for, with a note for each column.
pub(crate) fn derive(draft: &mut Draft, options: &Options) {
    let seed = options.seed;
    let rules = &options.derive;
    if rules.gangs {
        let n_jobs = sum(&mut draft.jobs, |job| gang(job, seed));
        draft.note(format!(
            "gangs are derived (seed {seed}): {n_jobs} jobs of one pod became 2, 4 or 8 pods, the work kept"
        ));
    }
    if let Some(n_tenants) = rules.tenants {
        draft.queues = (0..n_tenants).map(|tenant| (tenant_name(tenant as usize), 1)).collect();
        for job in &mut draft.jobs {
            tenant(job, seed, n_tenants);
        }
        draft.note(format!(
            "queues are derived (seed {seed}): {n_tenants} tenants of equal weight, users spread by 1/(k + 1)"
        ));
    }
    if rules.priorities {
        for (name, value, _) in CLASSES {
            draft.priorities.entry(name.into()).or_insert(value);
        }
        let n_jobs = sum(&mut draft.jobs, |job| priority(job, seed));
        draft.note(format!("priorities are derived (seed {seed}) for {n_jobs} jobs: low 30 %, normal 50 %, high 20 %"));
    }
    if let Some(milli) = rules.cpu_per_gpu {
        let n_jobs = sum(&mut draft.jobs, |job| cpu(job, milli));
        draft.note(format!("CPU is derived for {n_jobs} jobs: {milli} thousandths of a core for each GPU"));
    }
    if let Some(bytes) = rules.memory_per_gpu {
        let n_jobs = sum(&mut draft.jobs, |job| memory(job, bytes));
        draft.note(format!("memory is derived for {n_jobs} jobs: {bytes} bytes for each GPU"));
    }
}

/// What each queue is due of the cluster by its weight. Runs when the cluster has its size.
pub(crate) fn deserved(draft: &mut Draft) -> BTreeMap<String, Deserved> {
    let whole = |amount: fn(&NodeShape) -> i64| -> i128 {
        draft.nodes.iter().map(|node| i128::from(amount(node)) * i128::from(node.count)).sum()
    };
    let cpu = whole(|node| node.cpu_milli);
    let memory = whole(|node| node.memory_bytes);
    let gpu = whole(|node| node.gpus.saturating_mul(GPU_MILLI));
    let weights: i128 = draft.queues.values().copied().map(i128::from).sum();
    let part = |amount: i128, weight: u32| i64::try_from(amount * i128::from(weight) / weights).unwrap_or(i64::MAX);
    let due = |weight| Deserved {
        cpu_milli: part(cpu, weight),
        memory_bytes: part(memory, weight),
        gpu_milli: part(gpu, weight),
    };
    let dues: BTreeMap<String, Deserved> =
        draft.queues.iter().map(|(name, weight)| (name.clone(), due(*weight))).collect();
    draft.note(format!("`deserved` is derived for {} queues: the cluster by weight, {weights} in all", dues.len()));
    dues
}

/// Whether a rule changed a job.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Changed {
    Yes,
    No,
}

fn sum(jobs: &mut [JobShape], mut rule: impl FnMut(&mut JobShape) -> Changed) -> u64 {
    jobs.iter_mut().map(|job| u64::from(rule(job) == Changed::Yes)).sum()
}

fn gang(job: &mut JobShape, seed: u64) -> Changed {
    let (width, _) = GANGS[pick(draw(seed, &job.name, "gang"), GANGS.iter().map(|&(_, weight)| weight))];
    if job.n_pods() != 1 || width == 1 {
        return Changed::No;
    }
    job.roles[0].replicas = width;
    job.min_member = width;
    for time in [&mut job.runtime_ms, &mut job.estimate_ms].into_iter().flatten() {
        *time = div_ceil(*time, i64::from(width));
    }
    Changed::Yes
}

fn tenant(job: &mut JobShape, seed: u64, n_tenants: u32) {
    // A user named like a job would share its draw; the columns keep them apart.
    let draw = match &job.user {
        Some(user) => draw(seed, user, "tenant of user"),
        None => draw(seed, &job.name, "tenant of job"),
    };
    let name = tenant_name(pick(draw, (1..=u64::from(n_tenants)).map(|rank| ZIPF / rank)));
    job.namespace.clone_from(&name);
    job.queue = name;
}

fn tenant_name(tenant: usize) -> String {
    format!("tenant-{tenant}")
}

fn priority(job: &mut JobShape, seed: u64) -> Changed {
    if job.priority.is_some() {
        return Changed::No;
    }
    let at = pick(draw(seed, &job.name, "priority"), CLASSES.iter().map(|&(_, _, weight)| weight));
    job.priority = Some(CLASSES[at].0.into());
    job.preemptible = at == 0;
    Changed::Yes
}

fn cpu(job: &mut JobShape, milli: i64) -> Changed {
    let mut changed = Changed::No;
    for request in job.roles.iter_mut().map(|role| &mut role.request) {
        if request.cpu_milli == 0 && request.gpus > 0 {
            request.cpu_milli = request.gpu_demand_milli().saturating_mul(milli) / GPU_MILLI;
            changed = Changed::Yes;
        }
    }
    changed
}

fn memory(job: &mut JobShape, bytes: i64) -> Changed {
    let mut changed = Changed::No;
    for request in job.roles.iter_mut().map(|role| &mut role.request) {
        if request.memory_bytes == 0 && request.gpus > 0 {
            let exact = i128::from(bytes) * i128::from(request.gpu_demand_milli()) / i128::from(GPU_MILLI);
            request.memory_bytes = i64::try_from(exact).unwrap_or(i64::MAX);
            changed = Changed::Yes;
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::options::Derive;
    use crate::trace::testkit;
    use crate::trace::workload::PodShape;

    fn all() -> Options {
        let derive = Derive {
            gangs: true,
            tenants: Some(4),
            priorities: true,
            deserved: false,
            cpu_per_gpu: Some(6_000),
            memory_per_gpu: Some(32 << 30),
        };
        Options { seed: 3, derive, ..Options::default() }
    }

    fn derived(names: impl Iterator<Item = u64>, options: &Options) -> Draft {
        let bare = PodShape { gpus: 1, ..PodShape::default() };
        let job = |name: u64| testkit::job(&format!("j{name}"), 1, bare);
        let mut draft = Draft { jobs: names.map(job).collect(), ..Draft::default() };
        derive(&mut draft, options);
        draft
    }

    #[test]
    fn one_more_job_does_not_change_the_others() {
        let one = derived(0..200, &all());
        let other = derived((0..50).chain(1000..1001).chain(50..200), &all());
        let kept: Vec<_> = other.jobs.into_iter().filter(|job| job.name != "j1000").collect();
        assert_eq!(one.jobs, kept);
        let reseeded = derived(0..200, &Options { seed: 4, ..all() });
        assert_ne!(one.jobs, reseeded.jobs);
    }

    #[test]
    fn one_more_column_does_not_change_the_others() {
        let both = derived(0..100, &all());
        let only = Options { derive: Derive { tenants: Some(4), ..Derive::default() }, ..all() };
        let queues = |draft: &Draft| draft.jobs.iter().map(|job| job.queue.clone()).collect::<Vec<_>>();
        assert_eq!(queues(&both), queues(&derived(0..100, &only)));
    }

    #[test]
    fn a_derived_gang_keeps_the_work() {
        let draft = derived(0..100, &all());
        let wide = draft.jobs.iter().find(|job| job.n_pods() == 8).expect("one in twenty");
        assert_eq!((wide.min_member, wide.runtime_ms), (8, Some(1_250)));
        assert_eq!(wide.roles[0].request.cpu_milli, 6_000);
        assert_eq!(wide.roles[0].request.memory_bytes, 32 << 30);
    }

    #[test]
    fn a_user_has_one_tenant_and_the_first_tenant_has_most() {
        let mut jobs: Vec<_> = (0..1000).map(|at| testkit::job(&format!("j{at}"), 1, testkit::pod(1))).collect();
        jobs[0].user = Some("ada".into());
        jobs[1].user = Some("ada".into());
        let mut draft = Draft { jobs, ..Draft::default() };
        derive(&mut draft, &all());
        assert_eq!(draft.jobs[0].queue, draft.jobs[1].queue);
        let count = |tenant: &str| draft.jobs.iter().filter(|job| job.queue == tenant).count();
        // 1 : 1/2 : 1/3 : 1/4 of 1,000 is 480, 240, 160, 120.
        assert!((430..530).contains(&count("tenant-0")) && count("tenant-3") > 80);
    }

    #[test]
    fn what_a_queue_deserves_is_its_part_of_the_cluster() {
        let node = testkit::node("n", 3);
        let queues = [("a".to_owned(), 1), ("b".to_owned(), 3)].into();
        let mut draft = Draft { nodes: vec![node.clone()], queues, ..Draft::default() };
        let dues = deserved(&mut draft);
        assert_eq!(dues["a"].cpu_milli, node.cpu_milli * 3 / 4);
        assert_eq!(dues["b"].memory_bytes, node.memory_bytes * 9 / 4);
        assert_eq!(dues["b"].gpu_milli, node.gpus * 3_000 * 3 / 4);
        assert_eq!(draft.notes, ["`deserved` is derived for 2 queues: the cluster by weight, 4 in all"]);
    }

    #[test]
    fn each_derived_column_is_noted_and_none_is_by_default() {
        assert_eq!(derived(0..10, &all()).notes.len(), 5);
        let plain = derived(0..10, &Options::default());
        assert!(plain.notes.is_empty() && plain.jobs.iter().all(|job| job.priority.is_none()));
    }
}
