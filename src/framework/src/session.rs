//! A session: one pass over a frozen cluster, in which actions try and commit.

use std::collections::BTreeSet;

use krafla_model::journal::{Operation, Refusal, Savepoint, Verb};
use krafla_model::{ClusterState, JobId, JobPhase, NodeId, QueueId, Reservation, TaskId, TaskStatus};
use tracing::debug;

use crate::action::Action;
use crate::conf::switches::Point;
use crate::effect::{Decision, EvictionCertificate};
use crate::plugin_set::PluginSet;
use crate::reason::Reason;
use crate::reasons::Reasons;
use crate::search::{Found, Prefer, Room, SearchLimits, Searcher};
use crate::session_plugin::JobCondition;
use crate::verdict::Verdict;

/// One session. It borrows the cluster, so what it sees stands still, and opening it costs nothing.
pub struct Session<'a> {
    cluster: &'a mut ClusterState,
    plugins: &'a mut PluginSet,
    reasons: &'a mut Reasons,
    searcher: &'a mut Searcher,
    actions: &'a [&'static str],
    decisions: Vec<Decision>,
    /// Jobs whose reason has a new code, in the order of the changes.
    newly_waiting: Vec<JobId>,
}

/// What a closed session leaves behind.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What was committed, in order.
    pub decisions: Vec<Decision>,
    /// Conditions for PodGroups.
    pub conditions: Vec<JobCondition>,
    /// Jobs whose books or phase have moved, by id.
    pub changed: Vec<JobId>,
    /// Jobs that wait for another reason than before, in the order of the changes.
    pub newly_waiting: Vec<JobId>,
    /// Tasks for which room is kept that is being released, or until that of the others of their gang is, and where; by
    /// id.
    pub nominations: Vec<(TaskId, NodeId)>,
}

impl<'a> Session<'a> {
    /// Opens a session and every plugin. Where no `enqueue` stands at the door, every job is let in first: the plugins
    /// divide the cluster among those that are in.
    pub fn open(
        cluster: &'a mut ClusterState,
        plugins: &'a mut PluginSet,
        reasons: &'a mut Reasons,
        searcher: &'a mut Searcher,
        actions: &'a [&'static str],
    ) -> Self {
        reasons.forget_promises();
        if !actions.contains(&"enqueue") {
            let at_the_door: Vec<JobId> = cluster.waiting_jobs().filter(|job| cluster.job(*job).is_pending()).collect();
            for job in at_the_door {
                cluster.set_job_phase(job, JobPhase::Inqueue);
            }
        }
        for plugin in plugins.all_mut() {
            let _span = tracing::debug_span!("plugin", name = plugin.name(), hook = "open").entered();
            plugin.open(cluster);
        }
        Self { cluster, plugins, reasons, searcher, actions, decisions: Vec::new(), newly_waiting: Vec::new() }
    }

    /// Runs one action.
    pub fn run(&mut self, action: &mut dyn Action) {
        let _span = tracing::debug_span!("action", name = action.name()).entered();
        for plugin in self.plugins.all_mut() {
            plugin.before_action(self.cluster, action.name());
        }
        action.execute(self);
    }

    /// Closes it: reservations that were not committed are given up, plugins have the last word.
    pub fn close(self) -> Outcome {
        let promised = self.cluster.reserved();
        let nominations: Vec<(TaskId, NodeId)> =
            promised.filter_map(|task| Some((task, self.cluster.task(task).node()?))).collect();
        // In the opposite order of their making nothing more would happen: each concerns one task.
        for task in self.cluster.reserved().collect::<Vec<_>>() {
            if let Some(operation) = self.cluster.give_up_reservation(task) {
                tell(self.plugins, self.cluster, operation, false);
            }
        }
        self.cluster.set_nominations(&nominations);
        let changed = self.cluster.take_changed_jobs();
        let mut conditions = Vec::new();
        for plugin in self.plugins.all_mut() {
            let _span = tracing::debug_span!("plugin", name = plugin.name(), hook = "close").entered();
            plugin.close(self.cluster, self.reasons, &changed, &mut conditions);
        }
        Outcome { decisions: self.decisions, conditions, changed, newly_waiting: self.newly_waiting, nominations }
    }

    /// The cluster, to be read.
    pub fn cluster(&self) -> &ClusterState {
        self.cluster
    }

    /// The plugins' answers.
    pub fn plugins(&self) -> &PluginSet {
        self.plugins
    }

    /// Current reasons.
    pub fn reasons(&self) -> &Reasons {
        self.reasons
    }

    /// Whether the configuration has an action of this name.
    pub fn has_action(&self, name: &str) -> bool {
        self.actions.contains(&name)
    }

    /// Admits a job to its queue.
    pub fn admit(&mut self, job: JobId) {
        self.cluster.set_job_phase(job, JobPhase::Inqueue);
        self.reasons.clear_job(job);
        self.plugins.job_enqueued(self.cluster, job);
    }

    /// Notes whether a job can run on no node as nodes are now; admission keeps nothing free for such a one.
    pub fn set_unplaceable(&mut self, job: JobId, unplaceable: bool) {
        self.cluster.set_unplaceable(job, unplaceable);
    }

    /// Notes why a job waits.
    pub fn explain_job(&mut self, job: JobId, reason: Reason) {
        let now = self.cluster.now();
        if self.reasons.set_job(job, reason, now) {
            self.newly_waiting.push(job);
            debug!(job = %self.cluster.job_label(job), code = self.reasons.job(job).map(|s| s.reason.code()), "waits");
        }
    }

    /// The job waits no longer, if nothing else of it does.
    pub fn clear_reason(&mut self, job: JobId) {
        if self.cluster.job(job).counts().sum(|s| s.is_waiting()) == 0 {
            self.reasons.clear_job(job);
        }
    }

    /// Notes what a task was promised in this session.
    pub fn explain_promise(&mut self, task: TaskId, reason: Reason) {
        let now = self.cluster.now();
        self.reasons.set_promised(task, reason, now);
    }

    /// Begins to try something. What is not committed or held is undone when the statement drops.
    pub fn statement(&mut self) -> Statement<'_, 'a> {
        let savepoint = self.cluster.savepoint();
        Statement { session: self, savepoint }
    }

    /// Whether a task may be placed for its queue's sake: now, after a release, or why not.
    pub fn allocatable(&self, queue: QueueId, task: TaskId) -> Result<Room, Reason> {
        match self.plugins.allocatable(self.cluster, queue, task, Room::Now) {
            None => Ok(Room::Now),
            Some(reason) => match self.plugins.allocatable(self.cluster, queue, task, Room::AfterRelease) {
                None => Ok(Room::AfterRelease),
                Some(_) => Err(reason),
            },
        }
    }

    /// What one node says about a task: when it has room, or its objection.
    pub fn verdict(&mut self, task: TaskId, node: NodeId, limits: SearchLimits) -> Result<Room, Verdict> {
        self.searcher.verdict(self.plugins.profile(), self.cluster, task, node, limits)
    }

    /// The best node for another task like this one.
    pub fn find_node_for_another(&mut self, task: TaskId, limits: SearchLimits) -> Found {
        let (plugins, cluster) = (&*self.plugins, &*self.cluster);
        let by_plugin = |scored: &[(NodeId, f64)]| plugins.best_node(cluster, task, scored);
        let prefer: Prefer<'_> = if plugins.has(Point::BestNode) { Some(&by_plugin) } else { None };
        self.searcher.find_anywhere(plugins.profile(), cluster, task, limits, prefer)
    }

    /// The best node for a task.
    pub fn find_node(&mut self, task: TaskId, limits: SearchLimits) -> Found {
        let nominated = self.cluster.task(task).nominated.as_deref().and_then(|name| self.cluster.find_node(name));
        let profile = self.plugins.profile();
        if let Some(node) = nominated
            && let Ok(room) = self.searcher.verdict(profile, self.cluster, task, node, limits)
        {
            return Found::Node { node, room, score: 0.0 };
        }
        self.find_node_for_another(task, limits)
    }
}

/// A scope over the journal: operations are applied at once and undone unless kept.
#[must_use = "a statement that is dropped undoes what it did"]
pub struct Statement<'s, 'a> {
    session: &'s mut Session<'a>,
    savepoint: Savepoint,
}

impl<'a> Statement<'_, 'a> {
    /// The session, to be read.
    pub fn session(&self) -> &Session<'a> {
        self.session
    }

    /// The session, for searches and notes. It cannot change the books.
    pub fn session_mut(&mut self) -> &mut Session<'a> {
        self.session
    }

    /// Gives a task room that is free now.
    pub fn allocate(&mut self, task: TaskId, node: NodeId) -> Result<(), Refusal> {
        self.session.cluster.allocate(task, node)?;
        tell(self.session.plugins, self.session.cluster, Operation { verb: Verb::Allocate, task, node }, true);
        Ok(())
    }

    /// Promises a task room that is being released.
    pub fn pipeline(&mut self, task: TaskId, node: NodeId) -> Result<(), Refusal> {
        self.session.cluster.pipeline(task, node)?;
        tell(self.session.plugins, self.session.cluster, Operation { verb: Verb::Pipeline, task, node }, true);
        Ok(())
    }

    /// Takes a task's node away.
    pub fn evict(&mut self, task: TaskId) -> Result<(), Refusal> {
        self.session.cluster.evict(task)?;
        let Some(node) = self.session.cluster.task(task).node() else { return Ok(()) };
        tell(self.session.plugins, self.session.cluster, Operation { verb: Verb::Evict, task, node }, true);
        Ok(())
    }

    /// Gives a task back what its eviction took.
    pub fn reprieve(&mut self, task: TaskId) -> Result<(), Refusal> {
        let Some(node) = self.session.cluster.task(task).node() else { return Err(Refusal::NoNode) };
        self.session.cluster.reprieve(task)?;
        tell(self.session.plugins, self.session.cluster, Operation { verb: Verb::Reprieve, task, node }, true);
        Ok(())
    }

    /// Keeps room for a task that is yet to come.
    pub fn reserve(&mut self, reservation: Reservation) -> Result<(), Refusal> {
        self.session.cluster.reserve(reservation).map(|_| ())
    }

    /// Gives up what is kept for a task, so that it can be placed there, or elsewhere. Answers where that was.
    pub fn lift_reservation(&mut self, task: TaskId) -> Option<NodeId> {
        self.session.cluster.lift_reservation(task)
    }

    /// A statement within this one: dropping it undoes only what was done since.
    pub fn nested(&mut self) -> Statement<'_, 'a> {
        self.session.statement()
    }

    /// Whether nothing has been tried.
    pub fn is_empty(&self) -> bool {
        self.session.cluster.operations_since(self.savepoint).next().is_none()
    }

    /// Turns what was tried into decisions. `certificate` says what each eviction is for.
    pub fn commit(self, certificate: impl Fn(&ClusterState, TaskId) -> EvictionCertificate) {
        let operations: Vec<Operation> = self.session.cluster.operations_since(self.savepoint).collect();
        let mut evicted = BTreeSet::new();
        for Operation { verb, task, .. } in operations {
            match verb {
                Verb::Allocate if self.session.cluster.task(task).status() == TaskStatus::Allocated => {
                    if self.session.cluster.begin_bind(task).is_ok() {
                        self.session.reasons.clear_task(task);
                        self.session.decisions.push(Decision::Bind(task));
                    }
                }
                // Unless it was reprieved afterwards; once, if it was evicted again.
                Verb::Evict
                    if self.session.cluster.task(task).status() == TaskStatus::Releasing && evicted.insert(task) =>
                {
                    let certificate = certificate(self.session.cluster, task);
                    self.session.decisions.push(Decision::Evict(task, certificate));
                }
                Verb::Allocate | Verb::Pipeline | Verb::Evict | Verb::Reprieve => {}
            }
        }
        self.session.cluster.keep_since(self.savepoint);
    }

    /// Commits a statement that evicts nobody.
    pub fn commit_binds(self) {
        self.commit(|_, _| unreachable!("the statement evicts nobody"));
    }

    /// Keeps what was tried until the session closes, without telling anyone: the room stays reserved.
    pub fn hold(self) {
        self.session.cluster.keep_since(self.savepoint);
    }

    /// Leaves what was tried to the statement around this one.
    pub fn merge(mut self) {
        self.savepoint = self.session.cluster.savepoint();
    }
}

impl Drop for Statement<'_, '_> {
    fn drop(&mut self) {
        while let Some(operation) = self.session.cluster.undo_one(self.savepoint) {
            tell(self.session.plugins, self.session.cluster, operation, false);
        }
    }
}

/// Tells every plugin what was done, or undone, to a task.
fn tell(plugins: &mut PluginSet, cluster: &ClusterState, operation: Operation, done: bool) {
    let gains = (operation.verb != Verb::Evict) == done;
    for plugin in plugins.all_mut() {
        if gains {
            plugin.on_allocate(cluster, operation.task);
        } else {
            plugin.on_deallocate(cluster, operation.task);
        }
    }
}
