//! A profile: the configured set of node-level plugins, for each extension point in its order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use krafla_model::cluster_event::ClusterEvent;
use krafla_model::storage::ClaimChoice;
use krafla_model::{ClusterState, JobId, Name, NodeId, TaskId};

use crate::effect::ClaimsToBind;
use crate::scheduling::binding::BindingPlugin;
use crate::scheduling::extender::{EXTENDER_BIND, Extenders};
use crate::scheduling::plugin::{NodePlugin, Permit, Scope};
use crate::scheduling::point::ExtensionPoint;
use crate::scheduling::search::FIT;
use crate::scheduling::verdict::Why;
use crate::scheduling::waiting::WaitingPods;

/// A plugin in a profile, and what it is there for.
pub struct ProfileEntry {
    pub(crate) plugin: Box<dyn NodePlugin>,
    pub(crate) points: BTreeSet<ExtensionPoint>,
    /// What its score is multiplied by; 0 if it does not score.
    pub(crate) weight: f64,
}

impl ProfileEntry {
    /// A plugin that only filters.
    pub fn filter(plugin: Box<dyn NodePlugin>) -> Self {
        Self { plugin, points: FILTERING.into(), weight: 0.0 }
    }

    /// A plugin that only scores.
    pub fn score(plugin: Box<dyn NodePlugin>, weight: f64) -> Self {
        Self { plugin, points: SCORING.into(), weight }
    }

    /// A plugin that does both.
    pub fn both(plugin: Box<dyn NodePlugin>, weight: f64) -> Self {
        Self { plugin, points: FILTERING.into_iter().chain(SCORING).collect(), weight }
    }

    /// A plugin that takes part in these points.
    pub fn at(plugin: Box<dyn NodePlugin>, points: BTreeSet<ExtensionPoint>, weight: f64) -> Self {
        Self { plugin, points, weight }
    }

    /// Takes points away from it.
    pub(crate) fn without(&mut self, points: &[ExtensionPoint]) {
        self.points.retain(|point| !points.contains(point));
    }
}

pub(crate) const FILTERING: [ExtensionPoint; 2] = [ExtensionPoint::PreFilter, ExtensionPoint::Filter];
pub(crate) const SCORING: [ExtensionPoint; 2] = [ExtensionPoint::PreScore, ExtensionPoint::Score];

/// The configured set of node-level plugins.
#[derive(Default)]
pub struct Profile {
    name: Name,
    percentage_of_nodes_to_score: Option<u8>,
    bounds_scores: bool,
    /// Whether promised room counts beside all that is there, rather than being what terminates.
    promises_beside: bool,
    /// Who has a say from outside.
    pub(crate) extenders: Option<Extenders>,
    /// Plugins that take part on the way to the bind, in order.
    binding: Vec<Name>,
    pub(crate) entries: Vec<ProfileEntry>,
    order: BTreeMap<ExtensionPoint, Vec<usize>>,
    pub(crate) pre_filters: Vec<usize>,
    pub(crate) filters: Vec<usize>,
    /// How many of the filters stand before NodeResourcesFit; 0 where it is not named.
    before_fit: usize,
    pub(crate) pre_scorers: Vec<usize>,
    pub(crate) scorers: Vec<usize>,
}

impl Profile {
    /// A profile of these plugins, asked in their order at each of their points.
    pub fn new(entries: Vec<ProfileEntry>) -> Self {
        let at = |point| entries.iter().enumerate().filter(move |(_, entry)| entry.points.contains(&point));
        let order = ExtensionPoint::ALL.map(|point| (point, at(point).map(|(i, _)| i).collect())).into();
        Self { bounds_scores: false, ..Self::ordered(Name::default(), None, entries, order) }
    }

    /// A profile of these plugins, with the order of each point: places in `entries`.
    pub fn ordered(
        name: Name,
        percentage_of_nodes_to_score: Option<u8>,
        entries: Vec<ProfileEntry>,
        order: BTreeMap<ExtensionPoint, Vec<usize>>,
    ) -> Self {
        let at = |point| order.get(&point).into_iter().flatten().copied();
        let pre_filters = at(ExtensionPoint::PreFilter).collect();
        let filters: Vec<usize> =
            at(ExtensionPoint::Filter).filter(|&i| entries[i].plugin.filter_scope().is_some()).collect();
        let fit = at(ExtensionPoint::Filter).position(|i| entries[i].plugin.name() == FIT).unwrap_or(0);
        let before_fit = at(ExtensionPoint::Filter).take(fit).filter(|i| filters.contains(i)).count();
        let pre_scorers = at(ExtensionPoint::PreScore).collect();
        let scores = |&i: &usize| entries[i].plugin.score_scope().is_some() && entries[i].weight != 0.0;
        let scorers = at(ExtensionPoint::Score).filter(scores).collect();
        Self {
            name,
            percentage_of_nodes_to_score,
            bounds_scores: true,
            promises_beside: false,
            extenders: None,
            binding: Vec::new(),
            entries,
            order,
            pre_filters,
            filters,
            before_fit,
            pre_scorers,
            scorers,
        }
    }

    /// With the plugins that a shell asks on the way to the bind: those of a build that have a side for it, in the order of
    /// PreBind, Bind and PostBind.
    #[must_use]
    pub(crate) fn with_binding(mut self, known: &[Arc<dyn BindingPlugin>]) -> Self {
        let mut names: Vec<Name> = Vec::new();
        for point in [ExtensionPoint::PreBind, ExtensionPoint::Bind, ExtensionPoint::PostBind] {
            for name in self.plugins(point).map(NodePlugin::name) {
                if known.iter().any(|plugin| plugin.name() == name) && !names.iter().any(|seen| **seen == *name) {
                    names.push(name.into());
                }
            }
        }
        self.binding = names;
        self
    }

    /// The name by which pods choose it (`spec.schedulerName`); empty if it serves all.
    pub fn profile_name(&self) -> &Name {
        &self.name
    }

    /// How many of all nodes, in percent, have to be found fit before the best of them is chosen; `None` if nothing was
    /// said, 0 if the size of the cluster decides.
    pub fn percentage_of_nodes_to_score(&self) -> Option<u8> {
        self.percentage_of_nodes_to_score
    }

    /// What the Reserve plugins choose for the claims of a task that has just been given a node.
    pub fn run_choose_plugins(
        &self,
        cluster: &ClusterState,
        task: TaskId,
        node: NodeId,
    ) -> Result<Vec<ClaimChoice>, (&'static str, Why)> {
        let mut choices = Vec::new();
        for plugin in self.plugins(ExtensionPoint::Reserve) {
            choices.extend(plugin.choose(cluster, task, node).map_err(|why| (plugin.name(), why))?);
        }
        Ok(choices)
    }

    /// Plugins that a shell asks on the way to a task's bind, in order, and what it has to write for its claims.
    pub fn way_to_bind(&self, cluster: &ClusterState, task: TaskId) -> (Vec<Name>, Vec<ClaimsToBind>) {
        let (mut names, mut claims) = (Vec::new(), Vec::new());
        if self.extenders.as_ref().is_some_and(|extenders| extenders.bind(cluster, cluster.shape_of(task))) {
            names.push(EXTENDER_BIND.into());
        }
        for name in &self.binding {
            let entry = self.entries.iter().find(|entry| entry.plugin.name() == name.as_str());
            let own = entry.and_then(|entry| entry.plugin.claims_to_bind(cluster, task));
            if own.is_some() || !entry.is_some_and(|entry| entry.plugin.binds_only_claims()) {
                names.push(name.clone());
            }
            claims.extend(own);
        }
        (names, claims)
    }

    /// Whether extenders filter or score nodes for a task.
    pub(crate) fn extenders_choose(&self, cluster: &ClusterState, task: TaskId) -> bool {
        self.extenders.as_ref().is_some_and(|extenders| extenders.choose(cluster, cluster.shape_of(task)))
    }

    /// Whether any plugin filters nodes.
    pub fn has_filter_plugins(&self) -> bool {
        !self.filters.is_empty()
    }

    /// Whether any plugin is asked when no node fits.
    pub fn has_post_filter_plugins(&self) -> bool {
        self.has(ExtensionPoint::PostFilter)
    }

    /// Whether any plugin scores nodes.
    pub fn has_score_plugins(&self) -> bool {
        !self.scorers.is_empty()
    }

    /// Whether any plugin takes part in `point`.
    pub fn has(&self, point: ExtensionPoint) -> bool {
        self.order.get(&point).is_some_and(|members| !members.is_empty())
    }

    /// For each point the names of its plugins, in order; points without any are left out.
    pub fn list_plugins(&self) -> BTreeMap<ExtensionPoint, Vec<&'static str>> {
        let names = |members: &Vec<usize>| members.iter().map(|&i| self.entries[i].plugin.name()).collect();
        self.order.iter().filter(|(_, members)| !members.is_empty()).map(|(point, m)| (*point, names(m))).collect()
    }

    /// The plugins of a point, in order.
    pub fn plugins(&self, point: ExtensionPoint) -> impl DoubleEndedIterator<Item = &dyn NodePlugin> {
        self.order.get(&point).into_iter().flatten().map(|&i| &*self.entries[i].plugin)
    }

    /// Whether `ask` holds for any of the plugins of these names. One that the profile lacks counts as one that may be
    /// helped by anything.
    pub fn any_plugin(&self, names: &BTreeSet<String>, ask: impl Fn(&dyn NodePlugin) -> bool) -> bool {
        let named = |name: &String| self.entries.iter().find(|entry| entry.plugin.name() == name);
        names.iter().any(|name| named(name).is_none_or(|entry| ask(&*entry.plugin)))
    }

    /// The first PreEnqueue plugin that keeps a task out of the queue, and why.
    pub fn run_pre_enqueue_plugins(&self, cluster: &ClusterState, task: TaskId) -> Result<(), (&'static str, Why)> {
        let mut plugins = self.plugins(ExtensionPoint::PreEnqueue);
        plugins.try_for_each(|plugin| plugin.pre_enqueue(cluster, task).map_err(|why| (plugin.name(), why)))
    }

    /// Tells the Reserve plugins that a task was given a node. The first that refuses ends it; the caller then calls
    /// [`Self::run_reserve_plugins_unreserve`].
    pub fn run_reserve_plugins_reserve(
        &mut self,
        cluster: &ClusterState,
        task: TaskId,
        node: NodeId,
    ) -> Result<(), (&'static str, Why)> {
        let Self { order, entries, .. } = self;
        for &i in order.get(&ExtensionPoint::Reserve).into_iter().flatten() {
            let plugin = &mut entries[i].plugin;
            plugin.reserve(cluster, task, node).map_err(|why| (plugin.name(), why))?;
        }
        Ok(())
    }

    /// Tells every Reserve plugin, last first, that a task's node is taken away again.
    pub fn run_reserve_plugins_unreserve(
        &mut self,
        cluster: &ClusterState,
        task: TaskId,
        node: NodeId,
        waiting: &mut WaitingPods,
    ) {
        let Self { order, entries, .. } = self;
        for &i in order.get(&ExtensionPoint::Reserve).into_iter().flatten().rev() {
            entries[i].plugin.unreserve(cluster, task, node, waiting);
        }
    }

    /// Tells the plugins that a session begins; answers whether any of them says other things than before.
    pub fn open(&mut self, cluster: &ClusterState) -> bool {
        let mut changed = false;
        for entry in &mut self.entries {
            changed |= entry.plugin.open(cluster);
        }
        changed
    }

    /// Which device of the node serves a task that asks for a share of one, if a plugin says so.
    pub fn choose_device(&self, cluster: &ClusterState, task: TaskId, node: NodeId) -> Option<u8> {
        if cluster.shape_of(task).spec.gpu_share_milli == 0 {
            return None;
        }
        self.plugins(ExtensionPoint::Score).find_map(|plugin| plugin.choose_device(cluster, task, node))
    }

    /// The group with which a task is tried, if a plugin at Permit names one, and that plugin.
    pub fn pod_group(&self, cluster: &ClusterState, task: TaskId) -> Option<(JobId, &'static str)> {
        let mut plugins = self.plugins(ExtensionPoint::Permit);
        plugins.find_map(|plugin| Some((plugin.pod_group(cluster, task)?, plugin.name())))
    }

    /// Asks the Permit plugins. A rejection ends it; who says Wait is noted with its timer, and the next is asked.
    ///
    /// Answers the timers, by plugin; none if all approve.
    pub fn run_permit_plugins(
        &mut self,
        cluster: &ClusterState,
        task: TaskId,
        node: NodeId,
        waiting: &mut WaitingPods,
    ) -> Result<BTreeMap<&'static str, i64>, (&'static str, Why)> {
        let Self { order, entries, .. } = self;
        let mut timers = BTreeMap::new();
        for &i in order.get(&ExtensionPoint::Permit).into_iter().flatten() {
            let plugin = &mut entries[i].plugin;
            match plugin.permit(cluster, task, node, waiting) {
                Permit::Approve => {}
                Permit::Wait { timeout_ms } => {
                    timers.insert(plugin.name(), timeout_ms.clamp(0, super::plugin::MAX_PERMIT_WAIT_MS));
                }
                Permit::Reject(why) => return Err((plugin.name(), why)),
            }
        }
        Ok(timers)
    }

    /// Tells the Permit plugins what has changed, if anybody waits for them.
    pub fn tell_permit_plugins(&mut self, cluster: &ClusterState, events: &[ClusterEvent], waiting: &mut WaitingPods) {
        let Self { order, entries, .. } = self;
        for &i in order.get(&ExtensionPoint::Permit).into_iter().flatten() {
            for event in events {
                if waiting.is_empty() {
                    return;
                }
                entries[i].plugin.cluster_changed(cluster, event, waiting);
            }
        }
    }

    /// Tells the PostBind plugins that a task is bound.
    pub fn run_post_bind_plugins(&mut self, cluster: &ClusterState, task: TaskId, node: NodeId) {
        let Self { order, entries, .. } = self;
        for &i in order.get(&ExtensionPoint::PostBind).into_iter().flatten() {
            entries[i].plugin.post_bind(cluster, task, node);
        }
    }

    /// Whether final scores have to be between 0 and 100, as Kubernetes' are. Volcano's plugins have no bounds.
    pub(crate) fn bounds_scores(&self) -> bool {
        self.bounds_scores
    }

    /// For pods one by one: a promise is a nomination, and counts beside all that is on the node, what terminates included,
    /// as in kube-scheduler. A session promises what is being released.
    #[must_use]
    pub(crate) fn with_nominations(self) -> Self {
        Self { promises_beside: true, ..self }
    }

    /// With these extenders, which all profiles of a configuration share.
    #[must_use]
    pub(crate) fn with_extenders(self, extenders: Option<Extenders>) -> Self {
        Self { extenders, ..self }
    }

    /// See [`Self::with_nominations`].
    pub(crate) fn promises_beside(&self) -> bool {
        self.promises_beside
    }

    /// The filters that are asked before NodeResourcesFit.
    pub(crate) fn filters_before_fit(&self) -> &[usize] {
        &self.filters[..self.before_fit]
    }

    /// Whether the filter at this place looks at one node only. Then room that shrinks can only turn a yes into a no.
    pub(crate) fn filters_by_node(&self, entry: usize) -> bool {
        self.filter_scope(entry) <= Scope::Node
    }

    /// What the filter at this place looks at.
    pub(crate) fn filter_scope(&self, entry: usize) -> Scope {
        self.entries[entry].plugin.filter_scope().unwrap_or(Scope::Nothing)
    }

    /// What the score at this place looks at.
    pub(crate) fn score_scope(&self, entry: usize) -> Scope {
        self.entries[entry].plugin.score_scope().unwrap_or(Scope::Nothing)
    }
}
