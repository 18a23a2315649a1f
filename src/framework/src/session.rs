//! A session: one pass over a frozen cluster, in which actions try and commit.

mod nominations;

use std::collections::{BTreeMap, BTreeSet};

use krafla_model::cluster_event::ClusterEvent;
use krafla_model::journal::{Operation, Refusal, Savepoint, Verb};
use krafla_model::{ClusterState, JobId, JobPhase, NodeId, QueueGate, QueueId, Reservation, TaskId, TaskStatus};
use tracing::debug;

use crate::action::Action;
use crate::conf::switches::Point;
use crate::descheduling::Descheduled;
use crate::effect::{Decision, EvictionCertificate};
use crate::plugin_set::PluginSet;
use crate::reason::Reason;
use crate::reasons::Reasons;
use crate::scheduling::point::ExtensionPoint;
use crate::scheduling::post_filter::{FailedAttempt, PostFilter};
use crate::scheduling::queue::SchedulingQueue;
use crate::scheduling::search::{Found, Prefer, Room, SearchLimits, Searcher};
use crate::scheduling::verdict::{Refusals, Verdict, Why};
use crate::scheduling::waiting::{GroupNote, Signal};
use crate::session_plugin::JobCondition;
use nominations::Nominations;

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
    /// Tasks that Permit sent back, and the plugin that did.
    sent_back: Vec<(TaskId, &'static str)>,
    /// Tasks whose own reason has a new code, in the order of the changes.
    newly_waiting_tasks: Vec<TaskId>,
    /// Nominations that stand whatever is promised at the end.
    nominations: Nominations,
    /// There is more to do than one session should.
    unfinished: bool,
    /// What became of pods that a descheduler looked at, in order.
    descheduled: Vec<Descheduled>,
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
    /// Tasks that had their place and lost it at Permit, in the order in which that was decided.
    pub sent_back: Vec<TaskId>,
    /// Tasks that wait for another reason of their own than before, in the order of the changes.
    pub newly_waiting_tasks: Vec<TaskId>,
    /// There is more to do: another session should follow at once.
    pub unfinished: bool,
    /// What became of pods that a descheduler looked at, in order.
    pub descheduled: Vec<Descheduled>,
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
        plugins.open_profiles(cluster);
        let mut session = Self {
            cluster,
            plugins,
            reasons,
            searcher,
            actions,
            decisions: Vec::new(),
            newly_waiting: Vec::new(),
            sent_back: Vec::new(),
            newly_waiting_tasks: Vec::new(),
            nominations: Nominations::default(),
            unfinished: false,
            descheduled: Vec::new(),
        };
        session.end_waits();
        session
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
    pub fn close(mut self) -> Outcome {
        self.take_promises_back();
        let promised = self.cluster.reserved();
        let promised = promised.filter_map(|task| Some((task, self.cluster.task(task).node()?)));
        let nominations: BTreeMap<TaskId, NodeId> = self.nominations.into_map().into_iter().chain(promised).collect();
        let nominations: Vec<(TaskId, NodeId)> = nominations.into_iter().collect();
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
        let sent_back = self.sent_back.into_iter().map(|(task, _)| task).collect();
        Outcome {
            decisions: self.decisions,
            conditions,
            changed,
            newly_waiting: self.newly_waiting,
            nominations,
            sent_back,
            newly_waiting_tasks: self.newly_waiting_tasks,
            unfinished: self.unfinished,
            descheduled: self.descheduled,
        }
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

    /// Lets a task through the gate of its queue, or takes that back. Nobody is told yet.
    pub fn set_queue_gate(&mut self, task: TaskId, gate: QueueGate) {
        self.cluster.set_queue_gate(task, gate);
    }

    /// Decides that a task loses the gate of its queue, which has let it through.
    pub fn open_gate(&mut self, task: TaskId) {
        self.decisions.push(Decision::OpenGate(task));
    }

    /// Admits a job to its queue.
    pub fn admit(&mut self, job: JobId) {
        self.cluster.set_job_phase(job, JobPhase::Inqueue);
        self.reasons.clear_job(job);
        self.plugins.job_enqueued(self.cluster, job);
    }

    /// Asks Permit about a task whose place is decided: it is bound, held back, or gives its place up again.
    fn permit(&mut self, task: TaskId) {
        let Some(node) = self.cluster.task(task).node() else { return };
        let (profile, waiting) = self.plugins.profile_for_mut(self.cluster, task);
        match profile.run_permit_plugins(self.cluster, task, node, waiting) {
            Ok(timers) if timers.is_empty() => {
                self.reasons.clear_task(task);
                self.decisions.push(Decision::Bind(task));
            }
            Ok(timers) => {
                let plugins = timers.keys().map(|plugin| (*plugin).to_owned()).collect();
                waiting.add(task, self.cluster.task(task).uid.clone(), self.cluster.now(), timers);
                let reason = Reason::WaitingForPermit { node: self.cluster.node(node).name().clone(), plugins };
                self.reasons.set_task(task, reason, self.cluster.now());
            }
            Err((plugin, why)) => self.send_back(task, plugin, &why),
        }
    }

    /// Carries out what has become of pods that waited at Permit. One that is sent back may make its plugin send back
    /// others.
    pub fn end_waits(&mut self) {
        while let Some((pod, signal)) = self.plugins.waiting.take_ended(self.cluster.now()) {
            match signal {
                Signal::Allowed => {
                    self.reasons.clear_task(pod.task);
                    self.decisions.push(Decision::Bind(pod.task));
                }
                Signal::Rejected { plugin, why } => self.send_back(pod.task, plugin, &why),
            }
        }
        self.remember_groups();
    }

    fn remember_groups(&mut self) {
        let now = self.cluster.now();
        for note in self.plugins.waiting.take_group_notes() {
            match note {
                GroupNote::Failed(group) => self.cluster.set_group_failure(group, true),
                GroupNote::Together(group) => self.cluster.set_group_failure(group, false),
                GroupNote::Paused(group, ms) => self.cluster.pause_group(group, now + ms),
            }
        }
    }

    /// Takes the node of a task away that was to be bound.
    fn send_back(&mut self, task: TaskId, plugin: &'static str, why: &Why) {
        if let Some(node) = self.cluster.task(task).node() {
            self.plugins.unreserve(self.cluster, task, node);
        }
        self.cluster.forget_assumed(task);
        let reason = Reason::refused_by_plugin(plugin, ExtensionPoint::Permit, why.text(self.cluster));
        self.reasons.set_task(task, reason, self.cluster.now());
        self.sent_back.push((task, plugin));
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

    /// Notes why a task waits that no job speaks for.
    pub fn explain_task(&mut self, task: TaskId, reason: Reason) {
        if self.reasons.set_task(task, reason, self.cluster.now()) {
            self.newly_waiting_tasks.push(task);
        }
    }

    /// Whether a task has its node in memory and waits at Permit.
    pub fn is_waiting_on_permit(&self, task: TaskId) -> bool {
        self.plugins.waiting.get(&self.cluster.task(task).uid).is_some()
    }

    /// Sends a task back that waits at Permit.
    pub fn reject_waiting(&mut self, task: TaskId, why: &'static str) {
        if let Some(pod) = self.plugins.waiting.get_mut(&self.cluster.task(task).uid) {
            pod.reject("Preemption", Why::Says(why));
        }
        self.end_waits();
    }

    /// There is more to do than one session should: what is decided goes out first.
    pub fn leave_unfinished(&mut self) {
        self.unfinished = true;
    }

    /// A pod that has ended is to be deleted, through an eviction. It holds no node.
    pub fn evict_finished(&mut self, task: TaskId, certificate: EvictionCertificate) {
        self.decisions.push(Decision::Evict(task, certificate));
    }

    /// Notes what became of a pod that a descheduler looked at.
    pub fn note_descheduled(&mut self, what: Descheduled) {
        self.descheduled.push(what);
    }

    /// Tasks that Permit has sent back in this session, and the plugin that did; each is told once.
    pub fn take_sent_back(&mut self) -> Vec<(TaskId, &'static str)> {
        std::mem::take(&mut self.sent_back)
    }

    /// Tasks that plugins want to be tried soon; each is told once.
    pub fn take_activated(&mut self) -> Vec<TaskId> {
        self.plugins.waiting.take_activated()
    }

    /// Tells the plugins at Permit what has changed, and carries out what they decide.
    pub fn tell_permit_plugins(&mut self, events: &[ClusterEvent]) {
        self.plugins.tell_permit_plugins(self.cluster, events);
        self.end_waits();
    }

    /// Lets `work` on the queue of pods that are scheduled one by one; `None` if there is none.
    pub fn with_queue<T>(
        &mut self,
        work: impl FnOnce(&mut SchedulingQueue, &PluginSet, &mut ClusterState) -> T,
    ) -> Option<T> {
        let mut queue = self.plugins.queue.take()?;
        let done = work(&mut queue, self.plugins, self.cluster);
        self.plugins.queue = Some(queue);
        Some(done)
    }

    /// The best of the first `enough` nodes that fit, from the one at `start` in tie order on and round, and how many
    /// were looked at.
    pub fn find_node_from(
        &mut self,
        task: TaskId,
        start: usize,
        enough: usize,
        limits: SearchLimits,
    ) -> (Found, usize) {
        let profile = self.plugins.profile_for(self.cluster, task);
        let found = self.searcher.find_from(profile, self.cluster, task, start, enough, limits);
        (found, self.searcher.looked_at())
    }

    /// Asks the PostFilter plugins about a task that the last search found no node for: the first that nominates a
    /// node, and what the others said.
    pub fn run_post_filter_plugins(
        &mut self,
        task: TaskId,
        refusals: &Refusals,
    ) -> (Option<(NodeId, Vec<TaskId>)>, String) {
        let unschedulable = self.searcher.unschedulable().to_vec();
        let mut words = Vec::new();
        let (profile, waiting) = self.plugins.profile_for_mut(self.cluster, task);
        let profile = &*profile;
        for plugin in profile.plugins(ExtensionPoint::PostFilter) {
            let before = self.cluster.savepoint();
            let mut attempt =
                FailedAttempt::new(task, &unschedulable, refusals, self.cluster, profile, self.searcher, waiting);
            let answer = plugin.post_filter(&mut attempt);
            attempt.undo(before);
            let idle = std::mem::take(&mut attempt.idle_claims);
            self.decisions.extend(idle.into_iter().map(|(namespace, name, uid)| Decision::Deallocate {
                namespace,
                name,
                uid,
            }));
            match answer {
                PostFilter::Nominate { node, victims } => return (Some((node, victims)), words.join(", ")),
                PostFilter::Unschedulable(said) => words.extend(Some(said).filter(|said| !said.is_empty())),
                PostFilter::Unresolvable(said) => {
                    words.push(said);
                    break;
                }
            }
        }
        (None, words.join(", "))
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
        self.searcher.verdict(self.plugins.profile_for(self.cluster, task), self.cluster, task, node, limits)
    }

    /// The best node for another task like this one.
    pub fn find_node_for_another(&mut self, task: TaskId, limits: SearchLimits) -> Found {
        let (plugins, cluster) = (&*self.plugins, &*self.cluster);
        let by_plugin = |scored: &[(NodeId, f64)]| plugins.best_node(cluster, task, scored);
        let prefer: Prefer<'_> = if plugins.has(Point::BestNode) { Some(&by_plugin) } else { None };
        self.searcher.find_anywhere(plugins.profile_for(cluster, task), cluster, task, limits, prefer)
    }

    /// The best of some nodes for another task like this one.
    pub fn find_node_among(&mut self, task: TaskId, candidates: &[NodeId], limits: SearchLimits) -> Found {
        let (plugins, cluster) = (&*self.plugins, &*self.cluster);
        self.searcher.find(plugins.profile_for(cluster, task), cluster, task, candidates, limits, None)
    }

    /// The best node for a task.
    pub fn find_node(&mut self, task: TaskId, limits: SearchLimits) -> Found {
        let nominated = self.cluster.task(task).nominated.as_deref().and_then(|name| self.cluster.find_node(name));
        let profile = self.plugins.profile_for(self.cluster, task);
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

    /// Gives a task room that is free now, and tells the plugins of Reserve.
    pub fn allocate(&mut self, task: TaskId, node: NodeId) -> Result<(), Refusal> {
        let before = self.session.cluster.savepoint();
        let profile = self.session.plugins.profile_for(self.session.cluster, task);
        let device = profile.choose_device(self.session.cluster, task, node);
        self.session.cluster.allocate_with(task, node, device)?;
        let operation = Operation { verb: Verb::Allocate, task, node };
        tell(self.session.plugins, self.session.cluster, operation, true);
        let (profile, waiting) = self.session.plugins.profile_for_mut(self.session.cluster, task);
        let chosen = profile.run_choose_plugins(self.session.cluster, task, node);
        let reserved = chosen.and_then(|choices| {
            self.session.cluster.choose(task, choices);
            profile.run_reserve_plugins_reserve(self.session.cluster, task, node)
        });
        if let Err((plugin, why)) = reserved {
            profile.run_reserve_plugins_unreserve(self.session.cluster, task, node, waiting);
            self.session.cluster.undo_one(before);
            tell_session_plugins(self.session.plugins, self.session.cluster, operation, false);
            let reason = Reason::refused_by_plugin(plugin, ExtensionPoint::Reserve, why.text(self.session.cluster));
            let now = self.session.cluster.now();
            self.session.reasons.set_task(task, reason, now);
            return Err(Refusal::Reserve);
        }
        Ok(())
    }

    /// Promises a task room that is being released.
    pub fn pipeline(&mut self, task: TaskId, node: NodeId) -> Result<(), Refusal> {
        self.session.cluster.pipeline(task, node)?;
        tell(self.session.plugins, self.session.cluster, Operation { verb: Verb::Pipeline, task, node }, true);
        Ok(())
    }

    /// Promises a task room whether or not there will be enough, as for a nominated pod.
    pub fn promise(&mut self, task: TaskId, node: NodeId) -> Result<(), Refusal> {
        self.session.cluster.promise(task, node)?;
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
                        self.session.permit(task);
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
        self.session.end_waits();
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

/// Tells every plugin what was done, or undone, to a task. Those of Reserve hear of what is undone; the caller asks them
/// about what is done.
fn tell(plugins: &mut PluginSet, cluster: &ClusterState, operation: Operation, done: bool) {
    if operation.verb == Verb::Allocate && !done {
        plugins.unreserve(cluster, operation.task, operation.node);
    }
    tell_session_plugins(plugins, cluster, operation, done);
}

fn tell_session_plugins(plugins: &mut PluginSet, cluster: &ClusterState, operation: Operation, done: bool) {
    let gains = (operation.verb != Verb::Evict) == done;
    for plugin in plugins.all_mut() {
        if gains {
            plugin.on_allocate(cluster, operation.task);
        } else {
            plugin.on_deallocate(cluster, operation.task);
        }
    }
}
