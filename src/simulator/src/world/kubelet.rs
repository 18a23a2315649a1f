//! Binds, kubelets and evictions: how a pod gets its node, runs and ends.

use krafla_engine::{Input, Outcome};
use krafla_framework::effect::ClaimsToBind;
use krafla_model::{Event, Name, PodPhase};

use super::agenda::Happening;
use super::faults::{Answer, Verb};
use super::{PodChange, Restart, World};

/// How long the scheduler waits for an answer to a call before it takes it for refused, in milliseconds.
const CALL_TIMEOUT_MS: i64 = 30_000;

impl World {
    pub(super) fn bind_called(&mut self, uid: &Name, node: Name, claims: Vec<ClaimsToBind>) {
        let Some(pod) = self.pod_index(uid) else { return };
        let refused = |message: &str| Happening::BindRefused { pod, message: message.to_owned() };
        match self.faults.answer(Verb::Bind, self.now) {
            Answer::Yes => self.plan(self.now + self.setup.bind_latency_ms, Happening::BindLands { pod, node, claims }),
            Answer::No(message) => self.plan(self.now + self.setup.bind_latency_ms, refused(&message)),
            Answer::Silence => self.plan(self.now + CALL_TIMEOUT_MS, refused("the call timed out")),
            Answer::Lost => {
                self.plan(self.now + self.setup.bind_latency_ms, Happening::BindLands { pod, node, claims });
                self.plan(self.now + CALL_TIMEOUT_MS, refused("the call timed out"));
            }
        }
    }

    pub(super) fn nominated(&mut self, uid: &Name, node: Option<Name>) {
        if let Some(index) = self.pod_index(uid) {
            self.store.pods[index].spec.nominated = node;
            self.tell_of_pod(index);
        }
    }

    pub(super) fn bind_lands(&mut self, index: usize, node: &Name, claims: &[ClaimsToBind]) {
        let pod = &self.store.pods[index];
        if pod.gone || pod.spec.deleting || pod.spec.node.is_some() || !self.store.nodes.contains_key(node) {
            let message = if pod.spec.node.is_some() { "pod is already assigned to a node" } else { "not found" };
            return self.bind_fails(index, message.to_owned());
        }
        let namespace = pod.spec.namespace().clone();
        let uid = pod.spec.uid.clone();
        let written = self.carry_out_choices(&namespace, node, claims);
        if let Err(message) = written.and_then(|()| self.give_devices(&uid, claims)) {
            return self.bind_fails(index, message);
        }
        self.attach(index, node.clone());
        let pod = self.store.pods[index].spec.uid.clone();
        self.inbox.push(Input::Outcome(Outcome::Bound { pod }));
        if self.setup.start_latency_ms == 0 {
            self.starts(index);
        } else {
            self.tell_of_pod(index);
            self.plan(self.now + self.setup.start_latency_ms, Happening::Starts { pod: index });
        }
    }

    /// Gives a pod its node.
    pub(super) fn attach(&mut self, index: usize, node: Name) {
        let pod = &mut self.store.pods[index];
        pod.spec.node = Some(node);
        pod.spec.scheduled_at = Some(self.now);
        pod.bound = Some(self.now);
        let job = &mut self.store.jobs[pod.job];
        job.holding += 1;
        if job.placed.is_none() && job.holding + job.succeeded >= job.min_member.max(1) {
            job.placed = Some(self.now);
        }
        self.changes.push((index, PodChange::Bound));
    }

    pub(super) fn bind_fails(&mut self, index: usize, message: String) {
        let pod = self.store.pods[index].spec.uid.clone();
        self.inbox.push(Input::Outcome(Outcome::BindRefused { pod, message }));
    }

    pub(super) fn starts(&mut self, index: usize) {
        let now = self.now;
        let pod = &mut self.store.pods[index];
        if pod.is_over() || pod.spec.deleting || pod.spec.phase != PodPhase::Pending {
            return;
        }
        pod.spec.phase = PodPhase::Running;
        pod.started = Some(now);
        pod.spec.started = Some(now);
        let (job, runtime) = (pod.job, pod.life.runtime_ms.map(|ms| ms.saturating_add(pod.restart_ms)));
        self.store.jobs[job].started.get_or_insert(now);
        self.rollout_sees(job);
        self.changes.push((index, PodChange::Started));
        if let Some(ms) = runtime {
            self.plan(now + ms, Happening::Ends { pod: index });
        }
        self.tell_of_pod(index);
    }

    pub(super) fn ends(&mut self, index: usize) {
        let pod = &mut self.store.pods[index];
        if pod.is_over() {
            return;
        }
        pod.spec.phase = PodPhase::Succeeded;
        let owner = pod.job;
        let lost = pod.gpu_time(pod.restart_ms);
        let job = &mut self.store.jobs[owner];
        job.lost_gpu = job.lost_gpu.saturating_add(lost);
        job.succeeded += 1;
        self.changes.push((index, PodChange::Ended));
        self.leave(index);
        self.tell_of_pod(index);
        let uid = self.store.pods[index].spec.uid.clone();
        self.release_claims(&uid);
        if self.store.jobs[owner].alive == 0 {
            self.store.jobs[owner].finished = Some(self.now);
            self.store.n_finished += 1;
            if self.setup.collect_finished {
                self.collect(owner);
            }
        }
    }

    /// Takes a pod off the books of its job: it has ended or is gone.
    fn leave(&mut self, index: usize) {
        let pod = &self.store.pods[index];
        let job = &mut self.store.jobs[pod.job];
        job.alive = job.alive.saturating_sub(1);
        if pod.spec.node.is_some() {
            job.holding = job.holding.saturating_sub(1);
        }
        self.recount_quotas(&self.store.pods[index].spec.namespace().clone());
    }

    /// The scheduler evicts a pod, or deletes it, which no budget is asked about.
    pub(super) fn evict_called(&mut self, uid: &Name, delete: bool) {
        self.evictions += 1;
        let Some(index) = self.pod_index(uid) else { return };
        let pod = self.store.pods[index].spec.uid.clone();
        let answer = match self.faults.answer(Verb::Evict, self.now) {
            Answer::Yes | Answer::Lost if !delete => {
                self.take_from_budget(index).map_or_else(Answer::No, |()| Answer::Yes)
            }
            other => other,
        };
        match answer {
            Answer::Yes | Answer::Lost => {
                self.store.pods[index].evicted = true;
                let owner = self.store.pods[index].job;
                self.store.jobs[owner].evictions += 1;
                self.changes.push((index, PodChange::Evicted));
                self.inbox.push(Input::Outcome(Outcome::Evicted { pod }));
                self.terminate(index);
            }
            Answer::No(message) => self.inbox.push(Input::Outcome(Outcome::EvictRefused { pod, message })),
            Answer::Silence => {
                let message = "the call timed out".to_owned();
                self.inbox.push(Input::Outcome(Outcome::EvictRefused { pod, message }));
            }
        }
    }

    pub(super) fn evicted_by_someone(&mut self, namespace: Option<&Name>, name: &Name) {
        match self.store.find_pod_named(namespace, name) {
            Some(index) => self.terminate(index),
            None => self.report(krafla_model::Problem {
                object: format!("pod {name}"),
                message: "cannot be evicted: there is no such pod".to_owned(),
            }),
        }
    }

    /// Begins a pod's end: it is gone after its grace period, at once if it never had a node.
    pub(super) fn terminate(&mut self, index: usize) {
        let pod = &mut self.store.pods[index];
        if pod.gone || pod.spec.deleting {
            return;
        }
        pod.spec.deleting = true;
        let running = pod.spec.node.is_some() && !pod.is_over();
        let grace = if running { pod.life.grace_ms.unwrap_or(self.setup.evict_grace_ms) } else { 0 };
        if grace > 0 {
            self.tell_of_pod(index);
            self.plan(self.now + grace, Happening::Terminated { pod: index });
        } else {
            self.terminated(index);
        }
    }

    pub(super) fn terminated(&mut self, index: usize) {
        if self.store.pods[index].gone {
            return;
        }
        let was_over = self.store.pods[index].is_over();
        self.store.remove_pod(index);
        if !was_over {
            self.leave(index);
            self.save(index);
        }
        self.changes.push((index, PodChange::Gone));
        self.rollout_sees(self.store.pods[index].job);
        let spec = &self.store.pods[index].spec;
        let (uid, namespace) = (spec.uid.clone(), spec.namespace().clone());
        self.touch_budgets(&namespace);
        self.tell(Event::PodGone(uid.clone()));
        self.drop_ephemeral_claims(&uid);
        self.release_claims(&uid);
        if was_over {
            self.forget_group_without_pods(index);
        } else {
            self.after_loss(index);
        }
    }

    /// Keeps what a pod has done for the one that may be made in its place, and counts what is lost of it.
    fn save(&mut self, index: usize) {
        let (now, restart) = (self.now, self.setup.restart);
        let pod = &mut self.store.pods[index];
        let Some(started) = pod.started else { return };
        let ran_ms = now - started;
        pod.spec.attained_ms = Some(pod.spec.attained_ms.unwrap_or(0).saturating_add(ran_ms));
        let lost_ms = match restart {
            Restart::FromStart => ran_ms,
            Restart::FromCheckpoint { cost_ms } => {
                let again_ms = ran_ms.min(pod.restart_ms);
                pod.life.runtime_ms = pod.life.runtime_ms.map(|ms| (ms - (ran_ms - again_ms)).max(0));
                pod.restart_ms = cost_ms;
                again_ms
            }
        };
        let (owner, lost) = (pod.job, pod.gpu_time(lost_ms));
        let job = &mut self.store.jobs[owner];
        job.lost_gpu = job.lost_gpu.saturating_add(lost);
    }

    /// Tells the scheduler how a pod stands, if it is any of its business.
    pub(super) fn tell_of_pod(&mut self, index: usize) {
        let namespace = self.store.pods[index].spec.namespace().clone();
        self.touch_budgets(&namespace);
        let pod = &self.store.pods[index];
        if pod.ours || pod.spec.node.is_some() {
            self.tell(Event::Pod(pod.spec.clone()));
        }
    }
}
