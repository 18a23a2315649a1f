//! Nodes, PodGroups and queues, as they come, change and go. See [`crate::apply`].

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::cluster_event::{About, ActionType, ClusterEvent, EventResource, node_changes};
use crate::devices::Devices;
use crate::dra::ResourceClaimSpec;
use crate::event::Problem;
use crate::ids::{JobId, NodeId, QueueId, TaskId};
use crate::job::{Job, JobBooks, PodGroupSpec};
use crate::ledger::Place;
use crate::name::Name;
use crate::node::{Node, NodeBooks, NodeSpec};
use crate::queue::{Queue, QueueSpec, ROOT_QUEUE};
use crate::resources::{Amounts, Limits, Resources};
use crate::state::ClusterState;
use crate::storage::AttachedVolumes;
use crate::time::Time;

impl ClusterState {
    pub(crate) fn apply_node(&mut self, spec: NodeSpec, problems: &mut Vec<Problem>) {
        self.room_version += 1;
        self.nodes_changed();
        let allocatable = self.intern_all(&spec.allocatable, &format!("node {}", spec.name), problems);
        self.totals.allocatable.add(&allocatable);
        match self.find_node(&spec.name) {
            Some(id) => {
                self.count_images(id, false);
                let action = node_changes(&self.nodes[id].spec, &spec);
                self.note(|state| ClusterEvent {
                    resource: EventResource::Node,
                    action,
                    about: About::Node { node: id, before: Some(Box::new(state.nodes[id].spec.clone())) },
                });
                let node = &mut self.nodes[id];
                self.totals.allocatable.sub(&node.allocatable);
                let devices_changed = node.spec.gpu_devices != spec.gpu_devices;
                node.allocatable = allocatable;
                node.spec = spec;
                self.touch_spec(id);
                if devices_changed {
                    self.rebuild_devices(id);
                }
                self.count_images(id, true);
                self.refresh_overdraft(id);
            }
            None => {
                let name = spec.name.clone();
                let books = NodeBooks { devices: Devices::idle(spec.gpu_devices), ..NodeBooks::default() };
                let id = self.nodes.insert(Node { spec, allocatable, books, version: self.version });
                self.node_by_name.insert(name.clone(), id);
                let mut attached = AttachedVolumes::default();
                self.count_attachments(id, &mut attached);
                self.nodes[id].books.attached = attached;
                self.count_images(id, true);
                let about = About::Node { node: id, before: None };
                self.note(|_| ClusterEvent { resource: EventResource::Node, action: ActionType::ADD, about });
                self.put_in_order(id);
                for task in self.homeless.remove(&name).unwrap_or_default() {
                    self.move_in(task, Some(id));
                }
            }
        }
    }

    pub(crate) fn remove_node(&mut self, name: &Name) {
        let Some(id) = self.node_by_name.remove(name) else { return };
        self.forget_node_usage(name);
        self.forget_reservations(|kept| kept.node == id);
        for task in self.nodes[id].books.tasks.clone() {
            self.move_in(task, None);
            self.homeless.entry(name.clone()).or_default().insert(task);
        }
        self.count_images(id, false);
        self.overdrawn.remove(&id);
        if let Some(node) = self.nodes.remove(id) {
            self.totals.allocatable.sub(&node.allocatable);
        }
        self.reorder_nodes();
    }

    /// Devices may be had that could not be had before.
    pub(crate) fn devices_changed(&mut self, resource: EventResource) {
        self.room_version += 1;
        self.nodes_changed();
        self.note_other(resource, ActionType::ADD.and(ActionType::UPDATE));
    }

    pub(crate) fn apply_claim(&mut self, spec: ResourceClaimSpec) {
        let known = self.dynamic_resources.claim(&spec.namespace, &spec.name);
        let action = if known.is_some() { ActionType::UPDATE } else { ActionType::ADD };
        let had = known.is_some_and(|known| known.spec().allocation.is_some());
        self.note_claim(&spec.namespace, &spec.name, action, had && spec.allocation.is_none());
        self.dynamic_resources.set_claim(spec);
    }

    pub(crate) fn remove_claim(&mut self, namespace: &Name, name: &Name) {
        let known = self.dynamic_resources.claim(namespace, name);
        let had = known.is_some_and(|known| known.spec().allocation.is_some());
        self.note_claim(namespace, name, ActionType::DELETE, had);
        self.dynamic_resources.remove_claim(namespace, name);
    }

    fn note_claim(&mut self, namespace: &Name, name: &Name, action: ActionType, freed: bool) {
        self.room_version += 1;
        self.nodes_changed();
        let about = About::Claim { namespace: namespace.clone(), name: name.clone(), freed };
        self.note(|_| ClusterEvent { resource: EventResource::ResourceClaim, action, about });
    }

    /// What could run nowhere may run somewhere now.
    fn nodes_changed(&mut self) {
        for job in std::mem::take(&mut self.unplaceable_jobs) {
            if let Some(job) = self.jobs.get_mut(job) {
                job.unplaceable = false;
            }
        }
    }

    /// Puts nodes in tie order: by name, or by a seeded hash of it.
    pub(crate) fn reorder_nodes(&mut self) {
        let mut order: Vec<NodeId> = self.node_by_name.values().copied().collect();
        order.sort_by_cached_key(|&id| self.tie_key(id));
        self.node_order = order;
        self.renumber_nodes(0);
    }

    /// Puts a new node in its place. Cost: the nodes behind it.
    fn put_in_order(&mut self, id: NodeId) {
        let key = self.tie_key(id);
        let at = self.node_order.partition_point(|&other| self.tie_key(other) < key);
        self.node_order.insert(at, id);
        self.renumber_nodes(at);
    }

    /// What nodes are ordered by.
    fn tie_key(&self, id: NodeId) -> (u64, Name) {
        let name = self.nodes[id].name();
        let hash = self.tie_seed.map_or(0, |seed| {
            let mut hasher = DefaultHasher::new();
            (seed, name).hash(&mut hasher);
            hasher.finish()
        });
        (hash, name.clone())
    }

    fn renumber_nodes(&mut self, from: usize) {
        for at in from..self.node_order.len() {
            self.node_rank[self.node_order[at]] = u32::try_from(at).unwrap_or(u32::MAX);
        }
        self.room_version += 1;
        self.touch_all_nodes();
    }

    fn move_in(&mut self, task: TaskId, node: Option<NodeId>) {
        let status = self.tasks[task].status;
        let devices = node
            .map(|node| &self.nodes[node])
            .and_then(|host| host.books.devices.choose(host.device_request(self.shape_of(task))))
            .unwrap_or_default();
        let choices = self.tasks[task].choices.clone();
        self.relocate(task, Place { status, node, devices, choices });
    }

    /// Deals the devices of a node out again: their number has changed.
    fn rebuild_devices(&mut self, id: NodeId) {
        let tasks = self.nodes[id].books.tasks.clone();
        for &task in &tasks {
            self.move_in(task, None);
        }
        self.nodes[id].books.devices = Devices::idle(self.nodes[id].spec.gpu_devices);
        for task in tasks {
            self.move_in(task, Some(id));
        }
    }

    fn count_images(&mut self, id: NodeId, present: bool) {
        for (image, _) in &self.nodes[id].spec.images {
            if present {
                *self.image_spread.entry(image.clone()).or_default() += 1;
            } else if let Some(n) = self.image_spread.get_mut(image) {
                *n -= 1;
                if *n == 0 {
                    self.image_spread.remove(image);
                }
            }
        }
    }

    pub(crate) fn apply_pod_group(&mut self, spec: PodGroupSpec, problems: &mut Vec<Problem>) {
        let key = (spec.namespace.clone(), spec.name.clone());
        let label = format!("podgroup {}/{}", spec.namespace, spec.name);
        let min_resources = spec.min_resources.as_ref().map(|min| self.intern_known(min, &label, problems));
        let queue = self.find_queue(&spec.queue);
        let priority = self.priority_classes.value(&spec.priority_class);
        // The same name with another UID is another PodGroup; its pods are found again by name.
        if let Some(&old) = self.job_by_key.get(&key)
            && self.jobs[old].spec.uid != spec.uid
        {
            self.remove_pod_group(&key.0, &key.1);
        }
        let Some(&id) = self.job_by_key.get(&key) else {
            let phase = spec.phase;
            let seen = self.now;
            let id = self.jobs.insert(Job {
                spec,
                min_resources,
                queue: None,
                priority,
                phase,
                seen,
                failed_at: None,
                retry_at: Time::default(),
                ran_ms: 0,
                unplaceable: false,
                tasks: Default::default(),
                books: JobBooks::default(),
            });
            self.job_by_key.insert(key.clone(), id);
            self.set_role_minimums(id);
            self.enter_queue(id, queue);
            for task in self.orphans.remove(&key).unwrap_or_default() {
                self.join_group(task, Some(key.1.clone()));
            }
            self.changed_jobs.insert(id);
            self.refresh_waiting(id);
            return;
        };
        let job = &mut self.jobs[id];
        job.unplaceable = false;
        job.spec = spec;
        job.min_resources = min_resources;
        job.priority = priority;
        self.set_role_minimums(id);
        if self.jobs[id].queue != queue {
            self.enter_queue(id, queue);
        }
        self.changed_jobs.insert(id);
        self.refresh_waiting(id);
    }

    pub(crate) fn remove_pod_group(&mut self, namespace: &Name, name: &Name) {
        let key = (namespace.clone(), name.clone());
        let Some(id) = self.job_by_key.remove(&key) else { return };
        self.forget_reservations(|kept| kept.job == Some(id));
        let tasks: Vec<TaskId> = self.jobs[id].tasks.iter().copied().collect();
        for task in tasks {
            let group = self.tasks[task].group.clone();
            self.join_group(task, group);
        }
        self.enter_queue(id, None);
        self.jobs.remove(id);
        self.waiting_jobs.remove(&id);
        self.changed_jobs.remove(&id);
    }

    fn set_role_minimums(&mut self, id: JobId) {
        let job = &mut self.jobs[id];
        for role in &mut job.books.roles {
            role.min = 0;
        }
        for (name, min) in job.spec.min_task_member.clone() {
            job.books.role_mut(&name).min = min;
        }
    }

    /// Moves a job and what it holds to another queue.
    fn enter_queue(&mut self, id: JobId, queue: Option<QueueId>) {
        let tasks: Vec<TaskId> = self.jobs[id].tasks.iter().copied().collect();
        for &task in &tasks {
            self.uncharge(task);
        }
        let own = self.reservations.iter().filter(|(_, kept)| kept.job == Some(id)).map(|(number, _)| *number);
        let kept: Vec<_> = own.collect::<Vec<_>>().into_iter().map(|number| (number, self.leave(number))).collect();
        if let Some(old) = self.jobs[id].queue.take() {
            self.queues[old].jobs.remove(&id);
        }
        self.jobs[id].queue = queue;
        if let Some(new) = queue {
            self.queues[new].jobs.insert(id);
        }
        for task in tasks {
            self.charge(task);
        }
        for (number, reservation) in kept {
            if let Some(reservation) = reservation {
                self.enter(number, reservation);
            }
        }
    }

    pub(crate) fn refresh_priorities(&mut self) {
        let classes = &self.priority_classes;
        for (id, job) in self.jobs.iter_mut() {
            let priority = classes.value(&job.spec.priority_class);
            if job.priority != priority {
                job.priority = priority;
                self.changed_jobs.insert(id);
            }
        }
    }

    pub(crate) fn apply_queue(&mut self, spec: QueueSpec, problems: &mut Vec<Problem>) {
        let label = format!("queue {}", spec.name);
        let capability = self.intern_limits(&spec.capability, &label, problems);
        let deserved = self.intern_all(&spec.deserved, &label, problems);
        let guarantee = self.intern_all(&spec.guarantee, &label, problems);
        let node_group_limits = spec
            .node_group_limits
            .iter()
            .map(|(group, amounts)| (group.clone(), self.intern_limits(amounts, &label, problems)))
            .collect();
        if let Some(error) = &spec.node_group_limits_error {
            problems.push(Problem { object: label, message: error.clone() });
        }
        let name = spec.name.clone();
        match self.find_queue(&name) {
            Some(id) => {
                let queue = &mut self.queues[id];
                let moved = queue.spec.parent != spec.parent;
                queue.spec = spec;
                queue.capability = capability;
                queue.deserved = deserved;
                queue.guarantee = guarantee;
                queue.node_group_limits = node_group_limits;
                if moved {
                    self.rebuild_queue_tree(problems);
                }
            }
            None => {
                let id = self.queues.insert(Queue {
                    spec,
                    capability,
                    deserved,
                    guarantee,
                    node_group_limits,
                    jobs: Default::default(),
                    held: Default::default(),
                    path: Default::default(),
                });
                self.queue_by_name.insert(name.clone(), id);
                self.rebuild_queue_tree(problems);
                let homeless: Vec<JobId> = self
                    .jobs
                    .iter()
                    .filter(|(_, job)| job.queue.is_none() && job.spec.queue == name)
                    .map(|(id, _)| id)
                    .collect();
                for job in homeless {
                    self.enter_queue(job, Some(id));
                }
            }
        }
    }

    pub(crate) fn remove_queue(&mut self, name: &Name, problems: &mut Vec<Problem>) {
        let Some(id) = self.queue_by_name.remove(name) else { return };
        let jobs: Vec<JobId> = self.queues[id].jobs.iter().copied().collect();
        for job in jobs {
            self.enter_queue(job, None);
        }
        self.queues.remove(id);
        self.rebuild_queue_tree(problems);
    }

    /// Finds every queue's ancestors anew, and counts what is held below each. Cost: linear in queues and jobs.
    fn rebuild_queue_tree(&mut self, problems: &mut Vec<Problem>) {
        let root = self.find_queue(ROOT_QUEUE);
        let parents: BTreeMap<QueueId, Option<QueueId>> = self
            .queue_by_name
            .values()
            .map(|&id| {
                let spec = &self.queues[id].spec;
                let parent = if spec.parent.is_empty() { root } else { self.find_queue(&spec.parent) };
                (id, parent.filter(|_| spec.name != ROOT_QUEUE))
            })
            .collect();
        let (mut paths, on_cycle) = crate::queue_tree::paths(&parents);
        for id in on_cycle {
            let spec = &self.queues[id].spec;
            problems.push(Problem {
                object: format!("queue {}", spec.name),
                message: format!(
                    "is its own ancestor through parent `{}`; it stands alone until that is mended",
                    spec.parent
                ),
            });
        }
        for (id, queue) in self.queues.iter_mut() {
            queue.path = paths.remove(&id).unwrap_or_default().into();
            queue.held = Default::default();
        }
        for (_, job) in self.jobs.iter() {
            let Some(own) = job.queue else { continue };
            for above in self.queues[own].path.clone() {
                let held = &mut self.queues[above].held;
                held.allocated.add(&job.books.held.allocated);
                held.pipelined.add(&job.books.held.pipelined);
                held.releasing.add(&job.books.held.releasing);
                held.pending.add(&job.books.held.pending);
            }
        }
        let kept: Vec<_> = self.reservations().copied().collect();
        for reservation in kept {
            let Some(own) = reservation.job.and_then(|job| self.jobs[job].queue) else { continue };
            for above in self.queues[own].path.clone() {
                self.queues[above].held.reserved.add(&self.shapes.get(reservation.shape).request);
            }
        }
    }

    pub(crate) fn intern_all(&mut self, amounts: &Amounts, object: &str, problems: &mut Vec<Problem>) -> Resources {
        let mut resources = Resources::default();
        for (name, amount) in amounts.iter() {
            match self.names.intern(name) {
                Some(id) => resources.set(id, amount),
                None => problems.push(too_many_names(object, name)),
            }
        }
        resources
    }

    /// Like `intern_all`, but leaves out what is no resource of a node: quota names such as `requests.cpu`.
    fn intern_known(&mut self, amounts: &Amounts, object: &str, problems: &mut Vec<Problem>) -> Resources {
        let mut of_nodes = Amounts::default();
        for (name, amount) in amounts.iter() {
            let of_quota = ["requests.", "limits.", "count/"].iter().any(|prefix| name.starts_with(prefix));
            if !of_quota {
                of_nodes.set_amount(name, amount);
            }
        }
        self.intern_all(&of_nodes, object, problems)
    }

    pub(crate) fn intern_limits(&mut self, amounts: &Amounts, object: &str, problems: &mut Vec<Problem>) -> Limits {
        let mut limits = Limits::default();
        for (name, amount) in amounts.iter() {
            match self.names.intern(name) {
                Some(id) => limits.set(id, amount),
                None => problems.push(too_many_names(object, name)),
            }
        }
        limits
    }
}

fn too_many_names(object: &str, name: &Name) -> Problem {
    Problem {
        object: object.to_owned(),
        message: format!(
            "names `{name}`, but the cluster already uses {} distinct resource names, the most there may be; it is ignored",
            crate::resources::MAX_RESOURCE_NAMES
        ),
    }
}
