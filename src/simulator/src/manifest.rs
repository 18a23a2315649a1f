//! Manifests as a workload: the stand-in for API server and controllers that makes pods, PodGroups and everything else
//! of what files say.
//!
//! Every pod is taken for this scheduler, whatever `schedulerName` says: who feeds a cluster's manifests to a simulator
//! wants to see them scheduled. Pods that have ended are left out; pods that have a node run there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use krafla_api::manifests::Severity;
use krafla_api::{
    Converter, Hints, Located, LocatedProblem, Object, ReadOptions, Workload, ephemeral_claims, group_of,
    implicit_group_name, keys, label_gang, label_gang_group, read_manifests,
};
use krafla_model::queue::{DEFAULT_QUEUE, ROOT_QUEUE};
use krafla_model::storage::ClaimSpec;
use krafla_model::{Event, JobPhase, Name, PodGroupSpec, PodPhase, Problem, QueueSpec, Time};
use serde_json::Value;

use crate::world::{Controller, Happening, Life, Submission, Submitted};

/// Names under which pods of scenarios ask for this scheduler.
pub const SCHEDULER_NAMES: [&str; 2] = ["volcano", "krafla"];

/// What objects come to.
#[derive(Default)]
pub struct Assembled {
    /// What happens when, in order of time; of one time in the order of the files.
    pub happenings: Vec<(Time, Happening)>,
    /// What people call the PodGroups that a controller makes, by namespace and name: the owner's name.
    pub shown: BTreeMap<(Name, Name), String>,
    /// What cannot be used, in words.
    pub problems: Vec<String>,
    /// Kinds that are not read and the like, in words.
    pub notes: Vec<String>,
}

/// Assembles objects that stand in another file, such as a scenario.
pub fn assemble(objects: &[Value], converter: &mut Converter) -> Assembled {
    let mut all = Vec::new();
    let mut problems = Vec::new();
    for object in objects {
        let read = read_manifests(&object.to_string(), "manifest", &ReadOptions::default());
        problems.extend(read.problems);
        all.extend(read.objects);
    }
    assemble_all(all, problems, converter, false)
}

/// Assembles the objects of files.
pub fn assemble_files(
    objects: Vec<Located<Object>>,
    problems: Vec<LocatedProblem>,
    converter: &mut Converter,
) -> Assembled {
    assemble_all(objects, problems, converter, true)
}

fn assemble_all(
    objects: Vec<Located<Object>>,
    problems: Vec<LocatedProblem>,
    converter: &mut Converter,
    complete: bool,
) -> Assembled {
    let mut assembler = Assembler {
        converter,
        complete,
        groups: BTreeMap::new(),
        plan: Vec::new(),
        jobs: BTreeMap::new(),
        owners: BTreeSet::new(),
        made_for: BTreeMap::new(),
        out: Assembled::default(),
    };
    for problem in problems {
        let list =
            if problem.severity == Severity::Note { &mut assembler.out.notes } else { &mut assembler.out.problems };
        list.push(problem.to_string());
    }
    // PodGroups first: pods may stand before theirs.
    for located in &objects {
        if matches!(located.value, Object::PodGroup(_) | Object::CoschedulingGroup(_) | Object::KubernetesGroup(_)) {
            assembler.known_group(located);
        }
    }
    if complete {
        assembler.standing_queues(&objects);
    }
    assembler.owners = objects.iter().filter_map(|located| owner_of_pods(&located.value)).collect();
    for located in &objects {
        assembler.object(located);
    }
    assembler.finish()
}

/// Whether a pod has a priority of its own, so that its class does not count.
pub fn own_priority(pod: &Pod) -> bool {
    let annotated = pod.metadata.annotations.as_ref().is_some_and(|a| a.contains_key(keys::TASK_PRIORITY));
    annotated || pod.spec.as_ref().is_some_and(|spec| spec.priority.is_some())
}

/// The UID of the controller of a pod, or of what makes pods.
fn owner_of_pods(object: &Object) -> Option<String> {
    let is_of_pods = matches!(object, Object::Pod(_) | Object::Workload(_));
    let owner = controller(object.metadata().filter(|_| is_of_pods)?)?;
    Some(owner.uid.clone()).filter(|uid| !uid.is_empty())
}

fn controller(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// Kind and name of what controls a pod; its own if nothing does. For a ReplicaSet that is of a Deployment, that.
fn controlled_by(pod: &Pod) -> (String, String) {
    let meta = &pod.metadata;
    let Some(owner) = controller(meta) else { return ("Pod".to_owned(), meta.name.clone().unwrap_or_default()) };
    let hash = meta.labels.as_ref().and_then(|labels| labels.get("pod-template-hash"));
    let deployment = hash.and_then(|hash| owner.name.strip_suffix(hash.as_str())?.strip_suffix('-'));
    match deployment.filter(|_| owner.kind == "ReplicaSet") {
        Some(name) => ("Deployment".to_owned(), name.to_owned()),
        None => (owner.kind.clone(), owner.name.clone()),
    }
}

type Key = (Name, Name);

struct Assembler<'a> {
    converter: &'a mut Converter,
    /// Whether there will be no other objects than these.
    complete: bool,
    /// PodGroups that the files have.
    groups: BTreeMap<Key, PodGroupSpec>,
    /// Submissions by time and PodGroup, and other objects, in the order of the files.
    plan: Vec<(Time, Planned)>,
    /// Where in `plan` the submission of a PodGroup at a time is.
    jobs: BTreeMap<(Time, Name, Name), usize>,
    /// UIDs of those whose pods, or what makes them, are among the objects: a dump has them already.
    owners: BTreeSet<String>,
    /// Kind and name of what a controller made a PodGroup for.
    made_for: BTreeMap<Key, (String, String)>,
    out: Assembled,
}

/// Where a PodGroup comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// The objects have it, or make it as a controller would from theirs.
    Manifest,
    /// A controller makes it for one pod.
    ForThePod,
    /// Pods name it, and it is not there.
    Unknown,
}

impl Origin {
    fn of_announced(announced: bool) -> Self {
        if announced { Self::Manifest } else { Self::Unknown }
    }
}

enum Planned {
    Other(Happening),
    Job(Box<Submission>),
}

impl Assembler<'_> {
    /// The queues that Volcano makes when it starts, where the objects do not have them.
    fn standing_queues(&mut self, objects: &[Located<Object>]) {
        let has = |name: &str| {
            let is_it = |object: &Object| object.metadata().is_some_and(|meta| meta.name.as_deref() == Some(name));
            objects.iter().any(|located| matches!(located.value, Object::Queue(_)) && is_it(&located.value))
        };
        for name in [ROOT_QUEUE, DEFAULT_QUEUE].into_iter().filter(|name| !has(name)) {
            let queue = QueueSpec { name: name.into(), reclaimable: name != ROOT_QUEUE, ..QueueSpec::default() };
            self.plan.push((Time(0), Planned::Other(Happening::Object(Box::new(Event::Queue(queue))))));
        }
    }

    fn known_group(&mut self, located: &Located<Object>) {
        let (event, problems) = self.converter.event(&located.value);
        self.report(located, problems);
        let Some(Event::PodGroup(mut group)) = event else { return };
        // A group that a dump shows as running starts anew here.
        group.phase = JobPhase::Pending;
        let at = Self::submit_at(located);
        let key = (group.namespace.clone(), group.name.clone());
        let owner = located.value.metadata().and_then(controller);
        // Volcano's controller calls the PodGroup of a Job by the Job's name and UID.
        if let Some(owner) = owner.filter(|owner| *group.name == *format!("{}-{}", owner.name, owner.uid)) {
            self.made_for.insert(key.clone(), (owner.kind.clone(), owner.name.clone()));
        }
        self.groups.insert(key, group.clone());
        self.join(at, Origin::Manifest, group, "PodGroup", Vec::new());
    }

    fn object(&mut self, located: &Located<Object>) {
        match &located.value {
            Object::PodGroup(_) | Object::CoschedulingGroup(_) | Object::KubernetesGroup(_) => {}
            Object::Pod(pod) => self.pod(located, pod),
            Object::Workload(workload) => self.workload(located, workload),
            Object::ClaimTemplate(template) => {
                let (spec, problems) = self.converter.claim_template(template);
                self.report(located, problems);
                if let Some(spec) = spec {
                    let happening = Happening::ClaimTemplate(Box::new(spec));
                    self.plan.push((Self::submit_at(located), Planned::Other(happening)));
                }
            }
            object => {
                let (event, problems) = self.converter.event(object);
                self.report(located, problems);
                if let Some(event) = event {
                    let at = Self::submit_at(located);
                    self.plan.push((at, Planned::Other(Happening::Object(Box::new(event)))));
                }
            }
        }
    }

    fn pod(&mut self, located: &Located<Object>, pod: &Pod) {
        let hints = Self::hints(located);
        let at = Time(hints.submit_at_ms.unwrap_or(0));
        let Some(submitted) = self.submitted(located, pod, hints, Controller::None) else { return };
        let claims = self.claims(located, &ephemeral_claims(pod));
        let submitted = Submitted { claims, ..submitted };
        let (group, announced) = match self.group_for(located, pod, None) {
            Some(found) => found,
            None => return,
        };
        let kind = pod.metadata.labels.as_ref().and_then(|labels| labels.get("app.kubernetes.io/component"));
        let origin = if group_of(pod).is_none() { Origin::ForThePod } else { Origin::of_announced(announced) };
        self.join(at, origin, group, kind.map_or("Pod", String::as_str), vec![submitted]);
    }

    fn workload(&mut self, located: &Located<Object>, workload: &Workload) {
        if workload.metadata.uid.as_ref().is_some_and(|uid| self.owners.contains(uid)) {
            return;
        }
        let owner = Self::hints(located);
        let kind = workload.kind.as_str();
        let (job_group, problems) = self.converter.job_group(workload, |_| 0);
        self.report(located, problems);
        if let Some(group) = &job_group {
            let key = (group.namespace.clone(), group.name.clone());
            let name = workload.metadata.name.clone().unwrap_or_default();
            self.made_for.entry(key.clone()).or_insert_with(|| (kind.to_owned(), name));
            self.groups.entry(key).or_insert_with(|| group.clone());
        }
        for part in &workload.parts {
            if part.replicas == 0 && job_group.is_none() {
                continue;
            }
            let template = workload.pod(part, 0);
            let (own, said) = Hints::read(&template.metadata);
            self.say(located, said);
            let hints = own.or(owner);
            let at = Time(hints.submit_at_ms.unwrap_or(0));
            let Some(first) = self.submitted(located, &template, hints, Controller::Recreate) else { continue };
            let found = match &job_group {
                Some(group) => Some((group.clone(), true)),
                None => self.group_for(located, &template, Some(&workload.metadata)),
            };
            let Some((group, announced)) = found else { continue };
            let of_template = |i| Submitted { name: workload.pod_name(part, i).into(), ..first.clone() };
            let pods = match first.shape.volumes.claims.is_empty() {
                true => (0..part.replicas).map(of_template).collect(),
                // Each may have claims of its own.
                false => (0..part.replicas)
                    .filter_map(|i| {
                        let pod = workload.pod(part, i);
                        let submitted = self.submitted(located, &pod, hints, Controller::Recreate)?;
                        Some(Submitted { claims: self.claims(located, &workload.claims(part, &pod)), ..submitted })
                    })
                    .collect(),
            };
            self.join(at, Origin::of_announced(announced), group, kind, pods);
        }
    }

    /// The PodGroup of a pod, and whether it exists: the one it names, one that its labels declare, or one that the
    /// controller makes.
    fn group_for(
        &mut self,
        located: &Located<Object>,
        pod: &Pod,
        owner: Option<&ObjectMeta>,
    ) -> Option<(PodGroupSpec, bool)> {
        let namespace: Name = pod.metadata.namespace.as_deref().unwrap_or(krafla_api::DEFAULT_NAMESPACE).into();
        if let Some(name) = group_of(pod) {
            let key = (namespace, Name::from(name));
            if let Some(group) = self.groups.get(&key) {
                return Some((group.clone(), true));
            }
            if let Some((name, min)) = label_gang(pod) {
                let (group, problems) = self.converter.pod_group(&label_gang_group(pod, name, min));
                self.report(located, problems);
                let group = group?;
                self.groups.insert(key, group.clone());
                return Some((group, true));
            }
            if self.complete {
                let message =
                    format!("names the PodGroup `{name}`, which is not among the objects; its pods will wait for it");
                self.out.problems.push(format!("{}:{}: {message}", located.file, located.line));
            }
            let (group, _) = self.converter.implicit_group(pod, owner);
            return Some((PodGroupSpec { name: name.into(), ..group? }, false));
        }
        let (group, problems) = self.converter.implicit_group(pod, owner);
        self.report(located, problems);
        let mut group = group?;
        group.name = implicit_group_name(pod).into();
        let key = (namespace, group.name.clone());
        self.made_for.entry(key.clone()).or_insert_with(|| controlled_by(pod));
        Some((self.groups.entry(key).or_insert(group).clone(), true))
    }

    /// A pod as it will be submitted; `None` if it cannot be read or has ended.
    fn submitted(
        &mut self,
        located: &Located<Object>,
        pod: &Pod,
        hints: Hints,
        controller: Controller,
    ) -> Option<Submitted> {
        let (spec, problems) = self.converter.pod(pod);
        self.report(located, problems);
        let mut spec = spec?;
        if matches!(controller, Controller::Recreate) && !spec.shape.controlled {
            Arc::make_mut(&mut spec.shape).controlled = true;
        }
        if matches!(spec.phase, PodPhase::Succeeded | PodPhase::Failed) || spec.deleting {
            return None;
        }
        let grace = pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
        let life = Life {
            runtime_ms: hints.runtime_ms,
            estimate_ms: hints.estimate_ms,
            grace_ms: grace.map(|seconds| seconds.max(0).saturating_mul(1_000)),
            controller,
        };
        Some(Submitted {
            priority: own_priority(pod).then_some(spec.priority),
            gates: spec.gates,
            node: spec.node,
            attained_ms: spec.attained_ms,
            details: spec.details,
            device_claims: spec.claims,
            ..Submitted::new(spec.name, spec.shape, life)
        })
    }

    /// Claims that controllers make for a pod.
    fn claims(&mut self, located: &Located<Object>, claims: &[PersistentVolumeClaim]) -> Vec<ClaimSpec> {
        let mut specs = Vec::new();
        for claim in claims {
            let (spec, problems) = self.converter.claim(claim);
            self.report(located, problems);
            specs.extend(spec);
        }
        specs
    }

    /// Adds pods to the submission of their PodGroup at this time.
    fn join(&mut self, at: Time, origin: Origin, group: PodGroupSpec, kind: &str, pods: Vec<Submitted>) {
        let key = (at, group.namespace.clone(), group.name.clone());
        if let Some(Planned::Job(job)) = self.jobs.get(&key).map(|&i| &mut self.plan[i].1) {
            if job.kind == "PodGroup" {
                job.kind = kind.to_owned();
            }
            job.pods.extend(pods);
            return;
        }
        self.jobs.insert(key, self.plan.len());
        let submission = Submission {
            group,
            announced: origin != Origin::Unknown,
            joins: true,
            goes_with_pods: origin == Origin::ForThePod,
            pods,
            kind: kind.to_owned(),
        };
        self.plan.push((at, Planned::Job(Box::new(submission))));
    }

    /// The hints of an object; what is wrong with them the reader of manifests has said.
    fn hints(located: &Located<Object>) -> Hints {
        located.value.metadata().map(|meta| Hints::read(meta).0).unwrap_or_default()
    }

    fn submit_at(located: &Located<Object>) -> Time {
        Time(Self::hints(located).submit_at_ms.unwrap_or(0))
    }

    fn say(&mut self, located: &Located<Object>, problems: Vec<String>) {
        for problem in problems {
            self.out.problems.push(format!("{}:{}: {problem}", located.file, located.line));
        }
    }

    fn report(&mut self, located: &Located<Object>, problems: Vec<Problem>) {
        for Problem { object, message } in problems {
            self.out.problems.push(format!("{}:{}: {object}: {message}", located.file, located.line));
        }
    }

    /// The name of the owner stands for a PodGroup that was made for it, with its kind before it if that is what tells
    /// it from another: `statefulset/web`.
    fn shown(&self) -> BTreeMap<Key, String> {
        let mut n_of: BTreeMap<(&str, &str), u32> = BTreeMap::new();
        for key @ (namespace, name) in self.groups.keys() {
            let name = self.made_for.get(key).map_or(name.as_ref(), |(_, name)| name);
            *n_of.entry((namespace, name)).or_default() += 1;
        }
        let shown = |namespace: &Name, (kind, name): &(String, String)| {
            let alone = n_of.get(&(namespace.as_ref(), name.as_str())) == Some(&1);
            if alone { name.clone() } else { format!("{}/{name}", kind.to_lowercase()) }
        };
        self.made_for.iter().map(|(key, owner)| (key.clone(), shown(&key.0, owner))).collect()
    }

    fn finish(mut self) -> Assembled {
        self.out.shown = self.shown();
        self.plan.sort_by_key(|(at, _)| *at);
        self.out.happenings = self
            .plan
            .into_iter()
            .map(|(at, planned)| match planned {
                Planned::Other(happening) => (at, happening),
                Planned::Job(job) => (at, Happening::Submit(job)),
            })
            .collect();
        self.out
    }
}
