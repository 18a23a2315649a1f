//! The stand-in for the controller of a Deployment: it replaces the pods of a job by those of a new revision, a few at a
//! time, and waits for the new ones to run before it goes on. Both revisions belong to one PodGroup.

use krafla_model::{Name, PodPhase};

use super::World;
use super::agenda::Happening;
use super::objects::{Controller, Submitted};

/// How long the controller takes to see what has changed, in milliseconds.
const SEES_MS: i64 = 1_000;

/// How a rollout goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// How many pods there may be beyond those that there should be.
    pub surge: u32,
    /// How many of those that there should be may be missing.
    pub unavailable: u32,
}

/// A rollout under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rollout {
    pace: Pace,
    /// How many pods there should be.
    replicas: u32,
    /// Pods of the new revision made so far, those that were made again left out.
    made: u32,
}

impl World {
    /// Begins to replace the pods of a job; a rollout that was under way gives way to it.
    pub(super) fn begin_rollout(&mut self, namespace: Option<&Name>, name: &Name, pace: Pace) {
        let Some(job) = self.store.find_job(namespace, name) else {
            let message = "cannot be rolled out: there is no such job".to_owned();
            return self.report(krafla_model::Problem { object: format!("job {name}"), message });
        };
        let earlier = self.store.jobs[job].rollout.map(|rollout| rollout.replicas);
        let replicas = earlier.unwrap_or_else(|| self.store.jobs[job].alive);
        let owner = &mut self.store.jobs[job];
        owner.revision += 1;
        owner.rollout = Some(Rollout { pace, replicas, made: 0 });
        self.advance_rollout(job);
    }

    /// A pod of a job has changed: the controller will see it.
    pub(super) fn rollout_sees(&mut self, job: usize) {
        if self.store.jobs[job].rollout.is_some() {
            self.plan(self.now + SEES_MS, Happening::RolloutSees { job });
        }
    }

    /// Makes and deletes as many pods as the pace allows.
    pub(super) fn advance_rollout(&mut self, job: usize) {
        let owner = &self.store.jobs[job];
        let Some(mut rollout) = owner.rollout.filter(|_| !owner.deleted) else { return };
        let (revision, name) = (owner.revision, owner.name.clone());
        let alive: Vec<usize> = owner
            .pods
            .iter()
            .copied()
            .filter(|&pod| !self.store.pods[pod].is_over() && !self.store.pods[pod].spec.deleting)
            .collect();
        let is_ready = |pod: &usize| self.store.pods[*pod].spec.phase == PodPhase::Running;
        let (mut old, new): (Vec<usize>, Vec<usize>) =
            alive.iter().partition(|&&pod| self.store.pods[pod].revision < revision);
        let mut n_alive = u32::try_from(alive.len()).unwrap_or(u32::MAX);
        let mut n_ready = u32::try_from(alive.iter().filter(|pod| is_ready(pod)).count()).unwrap_or(u32::MAX);
        if old.is_empty() && rollout.made == rollout.replicas && new.iter().all(is_ready) {
            self.store.jobs[job].rollout = None;
            return;
        }
        let least = rollout.replicas.saturating_sub(rollout.pace.unavailable);
        old.sort_by_key(|pod| (is_ready(pod), *pod));
        let mut leave = Vec::new();
        for pod in old {
            let ready = is_ready(&pod);
            if if ready { n_ready > least } else { n_alive > least } {
                n_ready -= u32::from(ready);
                n_alive -= 1;
                leave.push(pod);
            }
        }
        let template = alive.first().copied();
        let mut make = Vec::new();
        while rollout.made < rollout.replicas && n_alive < rollout.replicas.saturating_add(rollout.pace.surge) {
            make.push(Name::from(format!("{name}-r{revision}-{}", rollout.made)));
            rollout.made += 1;
            n_alive += 1;
        }
        self.store.jobs[job].rollout = Some(rollout);
        if let Some(template) = template {
            for name in make {
                self.make_next(job, template, name);
            }
        }
        for pod in leave {
            // Its place is taken by the new revision.
            self.store.pods[pod].life.controller = Controller::None;
            self.terminate(pod);
        }
    }

    /// Makes a pod of the new revision like one of the old.
    fn make_next(&mut self, job: usize, template: usize, name: Name) {
        let old = &self.store.pods[template];
        let plan = Submitted {
            priority: Some(old.spec.priority),
            ours: old.ours,
            ..Submitted::new(name, old.spec.shape.clone(), old.life)
        };
        self.make_pod(job, plan);
    }
}
