//! Plays a workload in the world and keeps the record of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use krafla_framework::Registry;
use krafla_model::labels::{Labels, NodeSelectorTerm, Requirement, Test};
use krafla_model::priority::PriorityClassSpec;
use krafla_model::resources::GPU_NAME;
use krafla_model::{Amounts, Event, Name, NodeSpec, PodGroupSpec, PodShape, Time};

use crate::observe::Recording;
use crate::record::Record;
use crate::trace::workload::{Deserved, GpuSharing, JobShape, NodeShape, RoleShape, Workload};
use crate::world::{Controller, Happening, Life, Setup, Submission, Submitted, World};

/// What is played.
pub enum Play {
    /// A trace.
    Trace(Workload),
    /// Objects of manifests, in order of time.
    Manifests {
        /// For the headline.
        title: String,
        /// What happens when.
        happenings: Vec<(Time, Happening)>,
        /// What people call jobs whose names a controller made, by namespace and name.
        shown: BTreeMap<(Name, Name), String>,
        /// Notes and problems of reading them.
        notes: Vec<String>,
        /// The same for what could not be used.
        problems: Vec<String>,
    },
}

/// How far a run has come, for whoever waits for it.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Jobs submitted so far.
    pub submitted: usize,
    /// Jobs in all.
    pub jobs: usize,
    /// Jobs that have ended.
    pub finished: usize,
    /// The virtual time.
    pub now: Time,
    /// Cycles so far.
    pub cycles: u64,
}

/// A world that has been played, and what is known of it.
pub struct Played {
    /// The world at its end.
    pub world: World,
    /// What reports are made of.
    pub record: Record,
    /// Standing invariants that did not hold, in words; empty is the only good answer.
    pub broken: Vec<String>,
}

/// Plays a workload to its end, or until `until`.
pub fn play(
    play: Play,
    setup: Setup,
    until: Option<Time>,
    registry: fn() -> Registry,
    prepare: impl FnOnce(&mut World),
    progress: &mut dyn FnMut(Progress),
) -> Played {
    let grace_ms = setup.evict_grace_ms;
    let mut world = World::new(setup, registry);
    prepare(&mut world);
    let end = until.unwrap_or(Time::NEVER);
    let (record, jobs) = match play {
        Play::Trace(workload) => {
            let mut record = Recording::new(title_of(&workload), grace_ms);
            record.note(crate::trace::offered::offered_load(&workload).to_string());
            workload.notes.iter().for_each(|note| record.note(note.clone()));
            workload.problems.iter().for_each(|problem| record.problem(problem.to_string()));
            let jobs = workload.jobs.len();
            play_trace(workload, &mut world, end, &mut record, progress);
            (record, jobs)
        }
        Play::Manifests { title, happenings, shown, notes, problems } => {
            let mut record = Recording::new(title, grace_ms);
            record.call(shown);
            notes.into_iter().for_each(|note| record.note(note));
            problems.into_iter().for_each(|problem| record.problem(problem));
            for (at, happening) in happenings {
                world.plan(at, happening);
            }
            (record, 0)
        }
    };
    let mut record = record;
    // What is left: the last jobs end, or wait for ever. In steps, so that there is something to show.
    while world.next_instant() <= end && world.next_instant() != Time::NEVER {
        let step = world.next_instant();
        world.run_until(step.min(end), &mut record);
        progress(report(&world, jobs.max(world.jobs().len())));
    }
    if end != Time::NEVER {
        world.run_until(end, &mut record);
    }
    let (record, broken) = record.finish(&world);
    Played { world, record, broken }
}

fn title_of(workload: &Workload) -> String {
    let n = workload.n_nodes();
    format!("{} on {n} node{}", workload.name, if n == 1 { "" } else { "s" })
}

fn report(world: &World, jobs: usize) -> Progress {
    Progress {
        submitted: world.jobs().len(),
        jobs,
        finished: world.n_finished(),
        now: world.now(),
        cycles: world.cycles(),
    }
}

/// Plans a whole workload at once; for those who drive the world themselves.
pub fn plan(world: &mut World, workload: Workload) {
    for event in cluster_of(&workload) {
        world.plan(Time(0), Happening::Object(Box::new(event)));
    }
    let mut shapes = Shapes::default();
    for job in &workload.jobs {
        world.plan(Time(job.submit_ms), Happening::Submit(Box::new(shapes.submission(job))));
    }
}

/// Submits jobs as their time comes, so that those far ahead take no memory.
fn play_trace(
    workload: Workload,
    world: &mut World,
    end: Time,
    record: &mut Recording,
    progress: &mut dyn FnMut(Progress),
) {
    for event in cluster_of(&workload) {
        world.plan(Time(0), Happening::Object(Box::new(event)));
    }
    let total = workload.jobs.len();
    let mut shapes = Shapes::default();
    let mut jobs = workload.jobs.into_iter().peekable();
    while let Some(first) = jobs.next() {
        let at = Time(first.submit_ms);
        if at > end {
            return;
        }
        if at > Time(0) {
            world.run_until(at + -1, record);
        }
        world.plan(at, Happening::Submit(Box::new(shapes.submission(&first))));
        while jobs.peek().is_some_and(|next| next.submit_ms == first.submit_ms) {
            if let Some(next) = jobs.next() {
                world.plan(at, Happening::Submit(Box::new(shapes.submission(&next))));
            }
        }
        progress(report(world, total));
    }
}

/// Nodes, queues and priority classes of a workload.
fn cluster_of(workload: &Workload) -> Vec<Event> {
    let mut events = Vec::new();
    for (name, value) in &workload.priorities {
        let class = PriorityClassSpec { name: name.into(), value: *value, global_default: false, preempts: true };
        events.push(Event::PriorityClass(class));
    }
    let queue = |name: &str, weight, deserved: Option<Deserved>| {
        Event::Queue(krafla_model::QueueSpec {
            name: name.into(),
            weight,
            reclaimable: name != "root",
            deserved: deserved.map(amounts_due).unwrap_or_default(),
            ..krafla_model::QueueSpec::default()
        })
    };
    for name in ["root", "default"] {
        if workload.queues.iter().all(|queue| queue.name != name) {
            events.push(queue(name, 1, None));
        }
    }
    events.extend(workload.queues.iter().map(|shape| queue(&shape.name, shape.weight, shape.deserved)));
    for shape in &workload.nodes {
        events.extend(shape.names().map(|name| Event::Node(node_of(shape, &name))));
    }
    events
}

fn amounts_due(due: Deserved) -> Amounts {
    let parts = [("cpu", due.cpu_milli), ("memory", due.memory_bytes), (GPU_NAME, due.gpu_milli)];
    parts.into_iter().filter(|(_, amount)| *amount > 0).fold(Amounts::default(), |all, (name, n)| all.with(name, n))
}

pub(crate) fn node_of(shape: &NodeShape, name: &str) -> NodeSpec {
    let mut allocatable = Amounts::default().with("cpu", shape.cpu_milli).with("pods", shape.pods);
    if shape.memory_bytes > 0 {
        allocatable.set_amount(&"memory".into(), shape.memory_bytes);
    }
    if shape.gpus > 0 {
        allocatable.set_amount(&GPU_NAME.into(), shape.gpus * 1_000);
    }
    let mut labels: Labels = shape.labels.iter().map(|(key, value)| (key.into(), value.into())).collect();
    labels.set("kubernetes.io/hostname".into(), name.into());
    let devices = if shape.gpu_sharing == GpuSharing::Shared { shape.gpus } else { 0 };
    NodeSpec {
        name: name.into(),
        labels,
        allocatable,
        gpu_devices: u8::try_from(devices).unwrap_or(u8::MAX),
        ..NodeSpec::default()
    }
}

/// Pod signatures made so far, so that equal pods share one.
#[derive(Default)]
pub(crate) struct Shapes(BTreeMap<PodShape, Arc<PodShape>>);

impl Shapes {
    fn submission(&mut self, job: &JobShape) -> Submission {
        let namespace = Name::from(&job.namespace);
        let class = Name::from(job.priority.as_deref().unwrap_or_default());
        let mut pods = Vec::new();
        let mut minimum = Amounts::default();
        let several = job.roles.len() > 1;
        for role in &job.roles {
            let shape = self.shape(job, role, &namespace, &class);
            let life = Life {
                runtime_ms: job.runtime_ms,
                estimate_ms: job.estimate_ms,
                grace_ms: None,
                controller: if job.preemptible { Controller::Recreate } else { Controller::None },
            };
            for k in 0..role.replicas {
                let name =
                    if several { format!("{}-{}-{k}", job.name, role.name) } else { format!("{}-{k}", job.name) };
                pods.push(Submitted::new(name.into(), Arc::clone(&shape), life));
            }
            for (resource, amount) in shape.request.iter() {
                let sum =
                    minimum.get(resource).unwrap_or(0).saturating_add(amount.saturating_mul(i64::from(role.replicas)));
                minimum.set_amount(resource, sum);
            }
        }
        let whole = pods.len() == job.min_member as usize;
        let group = PodGroupSpec {
            namespace,
            name: Name::from(&job.name),
            queue: Name::from(&job.queue),
            created: Time(job.submit_ms),
            priority_class: class,
            min_member: job.min_member,
            min_resources: whole.then_some(minimum),
            estimate_ms: job.estimate_ms,
            ..PodGroupSpec::default()
        };
        Submission { group, announced: true, joins: false, goes_with_pods: false, pods, kind: String::new() }
    }

    pub(crate) fn shape(&mut self, job: &JobShape, role: &RoleShape, namespace: &Name, class: &Name) -> Arc<PodShape> {
        let request = &role.request;
        let mut amounts = Amounts::default();
        for (name, amount) in
            [("cpu", request.cpu_milli), ("memory", request.memory_bytes), (GPU_NAME, request.gpu_demand_milli())]
        {
            if amount > 0 {
                amounts.set_amount(&name.into(), amount);
            }
        }
        let affinity = job.node_labels_any.as_ref().map(|(key, values)| {
            let test = Test::In(values.iter().map(Name::from).collect());
            vec![NodeSelectorTerm { labels: vec![Requirement { key: key.into(), test }], name: Vec::new() }]
        });
        let shape = PodShape {
            namespace: namespace.clone(),
            request: amounts,
            role: if job.roles.len() > 1 { Name::from(&role.name) } else { Name::default() },
            required_affinity: affinity,
            gpu_share_milli: u16::try_from(request.gpu_milli).unwrap_or(0),
            protected: !job.preemptible,
            priority_class: class.clone(),
            controlled: job.preemptible,
            ..PodShape::default()
        };
        Arc::clone(self.0.entry(shape.clone()).or_insert_with(|| Arc::new(shape)))
    }
}
