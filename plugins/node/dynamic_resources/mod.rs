//! `DynamicResources`: a pod with claims of devices runs where its claims have them, or can get them.
//!
//! The search for devices is the model's ([`krafla_model::dra`]); here it is asked at each extension point. What it finds
//! is part of the pod's place from Reserve on, and [`bind`] writes it before the pod is bound. As in kube-scheduler no
//! eviction frees a device: a claim keeps what it has until its controller has seen that nobody uses it.

mod bind;
#[cfg(test)]
mod tests;

use krafla_framework::conf::kube::args::DynamicResourcesArgs;
use krafla_framework::effect::ClaimsToBind;
use krafla_framework::node_plugin::default_normalize;
use krafla_framework::registry::ArgumentProblem;
use krafla_framework::{
    CycleState, FailedAttempt, NodePlugin, PostFilter, PreFilter, PreScore, Room, Scope, Value, Verdict, Why,
};
use krafla_model::cluster_event::{About, ActionType, ClusterEvent, EventResource};
use krafla_model::dra::{Claim, MAX_CONSUMERS, Obstacle, Outlook, Plan, device_choices};
use krafla_model::storage::ClaimChoice;
use krafla_model::{ClusterState, NodeId, TaskId};

pub(crate) use bind::ClaimWriter;

/// Devices that are tried in a millisecond of `filterTimeout`: the usual 10 s are as many as the search has by default.
const STEPS_A_MS: u64 = krafla_model::dra::USUAL_STEPS / 10_000;

/// See the module.
pub struct DynamicResources {
    /// How many devices the search on one node may try.
    steps: u64,
    /// `bindingTimeout`, in milliseconds.
    binding_timeout_ms: u64,
}

impl DynamicResources {
    /// The plugin's name.
    pub const NAME: &'static str = "DynamicResources";

    /// From `DynamicResourcesArgs`.
    pub fn from_args(args: &Value) -> Result<Self, Vec<ArgumentProblem>> {
        let args = DynamicResourcesArgs::read(args)?;
        Ok(Self { binding_timeout_ms: args.binding_timeout_ms, ..Self::with_timeout_ms(args.filter_timeout_ms) })
    }

    /// With so long a search on one node; 0 is without limit.
    pub fn with_timeout_ms(filter_timeout_ms: u64) -> Self {
        let steps = match filter_timeout_ms {
            0 => u64::MAX,
            ms => ms.saturating_mul(STEPS_A_MS),
        };
        Self { steps, binding_timeout_ms: 600_000 }
    }

    fn plan(&self, cluster: &ClusterState, task: TaskId, node: NodeId) -> Plan {
        cluster.plan_claims(task, node, self.steps)
    }
}

/// The claims of a task; `Err` says what is missing.
fn claims_of(cluster: &ClusterState, task: TaskId) -> Result<Vec<&Claim>, Why> {
    let pod = cluster.task(task);
    let found = cluster.dynamic_resources().claims_of(cluster.namespace_of(task), &pod.uid, &pod.claims);
    found.map_err(told)
}

/// Whether a claim that has nothing yet names alternatives.
fn has_choice(cluster: &ClusterState, task: TaskId) -> bool {
    if cluster.task(task).claims.is_empty() {
        return false;
    }
    let dra = cluster.dynamic_resources();
    let names_some = |claim: &&Claim| {
        let requests = &claim.spec().requests;
        dra.allocation(claim).is_none() && requests.iter().any(|request| !request.alternatives[0].name.is_empty())
    };
    claims_of(cluster, task).is_ok_and(|claims| claims.iter().any(names_some))
}

fn told(why: String) -> Why {
    Why::Told(why.into())
}

impl NodePlugin for DynamicResources {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn filter_scope(&self) -> Option<Scope> {
        Some(Scope::Task)
    }

    fn score_scope(&self) -> Option<Scope> {
        Some(Scope::Task)
    }

    fn score_scope_for(&self, cluster: &ClusterState, task: TaskId) -> Scope {
        if has_choice(cluster, task) { Scope::Task } else { Scope::Nothing }
    }

    fn pre_enqueue(&self, cluster: &ClusterState, task: TaskId) -> Result<(), Why> {
        claims_of(cluster, task).map(drop)
    }

    /// What keeps the pod from every node: a claim or a class that is missing, an expression that cannot be read, a claim
    /// that as many pods share as may.
    fn pre_filter(&self, cluster: &ClusterState, task: TaskId, state: &mut CycleState) -> PreFilter {
        let pod = cluster.task(task);
        if pod.claims.is_empty() {
            return PreFilter::Skip;
        }
        let claims = match claims_of(cluster, task) {
            Ok(claims) => claims,
            Err(why) => return PreFilter::Reject(why),
        };
        let dra = cluster.dynamic_resources();
        for claim in claims {
            let (consumers, is_one) = dra.consumers(claim, &pod.uid);
            if consumers >= MAX_CONSUMERS && !is_one {
                let name = &claim.spec().name;
                let why = format!("resourceclaim {name:?} is used by {consumers} pods, the most there may be");
                return PreFilter::Reject(told(why));
            }
            if dra.allocation(claim).is_none()
                && let Some(flaw) = dra.flaw(claim)
            {
                return PreFilter::Reject(told(flaw));
            }
        }
        state.put(cluster.outlook_for_claims(task));
        PreFilter::All
    }

    fn filter(&self, cluster: &ClusterState, task: TaskId, node: NodeId, _: Room, _: &CycleState) -> Verdict {
        match self.plan(cluster, task, node) {
            Plan::Fits { .. } => Verdict::Fits,
            Plan::Blocked(Obstacle::TooManySteps(steps)) => Verdict::Error(told(format!(
                "the search for devices was given up after {steps} of them had been tried"
            ))),
            Plan::Blocked(obstacle) => Verdict::Unresolvable(told(words(&obstacle))),
        }
    }

    fn rules_out(&self, cluster: &ClusterState, _: TaskId, node: NodeId, _: Room, state: &CycleState) -> bool {
        let needs = state.get::<Outlook>().map_or(0, |outlook| outlook.devices);
        cluster.dynamic_resources().is_too_few(cluster.node(node), needs)
    }

    fn may_fail(&self, _: &ClusterState, _: TaskId, state: &CycleState) -> bool {
        state.get::<Outlook>().is_none_or(|outlook| outlook.most_steps >= self.steps)
    }

    /// Takes back a claim's devices that nobody uses, so that it may get others where its pod can run.
    fn post_filter(&self, attempt: &mut FailedAttempt<'_>) -> PostFilter {
        let (cluster, task) = (attempt.cluster(), attempt.task);
        let Ok(claims) = claims_of(cluster, task) else { return PostFilter::Unschedulable(String::new()) };
        let dra = cluster.dynamic_resources();
        let idle = claims.into_iter().find(|claim| {
            claim.spec().allocation.is_some() && dra.consumers(claim, &cluster.task(task).uid) == (0, false)
        });
        let Some(idle) = idle.map(Claim::spec) else { return PostFilter::Unschedulable(String::new()) };
        let (namespace, name, uid) = (idle.namespace.clone(), idle.name.clone(), idle.uid.clone());
        let said = format!("deallocation of ResourceClaim {name} begun");
        attempt.deallocate(namespace, name, uid);
        PostFilter::Unschedulable(said)
    }

    /// Only alternatives make one node better than another.
    fn pre_score(&self, cluster: &ClusterState, task: TaskId, _: &[NodeId], _: &mut CycleState) -> PreScore {
        PreScore::when(has_choice(cluster, task))
    }

    #[allow(clippy::cast_precision_loss, reason = "8 for each of a few requests")]
    fn score(&self, cluster: &ClusterState, task: TaskId, node: NodeId, _: &CycleState) -> f64 {
        match self.plan(cluster, task, node) {
            Plan::Fits { score, .. } => score as f64,
            Plan::Blocked(_) => 0.0,
        }
    }

    fn normalizes(&self) -> bool {
        true
    }

    fn normalizes_by_extremes(&self) -> bool {
        true
    }

    fn normalize(&self, _: &ClusterState, _: &[NodeId], _: &CycleState, scores: &mut [f64]) {
        default_normalize(scores, false);
    }

    fn events(&self) -> Option<&'static [(EventResource, ActionType)]> {
        const NODE: ActionType = ActionType::ADD.and(ActionType::UPDATE_NODE_LABEL);
        const NEW: ActionType = ActionType::ADD.and(ActionType::UPDATE);
        const EVENTS: [(EventResource, ActionType); 5] = [
            (EventResource::Node, NODE.and(ActionType::UPDATE_NODE_ALLOCATABLE)),
            (EventResource::ResourceClaim, NEW.and(ActionType::DELETE)),
            (EventResource::Pod, ActionType::UPDATE_POD_GENERATED_CLAIM),
            (EventResource::DeviceClass, NEW),
            (EventResource::ResourceSlice, NEW),
        ];
        Some(&EVENTS)
    }

    /// Its own claims; and those of others that have devices no longer.
    fn helps(&self, cluster: &ClusterState, task: TaskId, event: &ClusterEvent) -> bool {
        match &event.about {
            About::Claim { namespace, name, freed } => {
                let own = cluster.task(task).claims.iter().any(|claim| claim.claim.as_ref() == Some(name));
                *freed || (own && namespace == cluster.namespace_of(task))
            }
            About::Pod { task: other, .. } => *other == Some(task),
            _ => true,
        }
    }

    fn has_a_say_in_placing(&self, cluster: &ClusterState, task: TaskId) -> bool {
        !cluster.task(task).claims.is_empty()
    }

    fn choose(&self, cluster: &ClusterState, task: TaskId, node: NodeId) -> Result<Vec<ClaimChoice>, Why> {
        if cluster.task(task).claims.is_empty() {
            return Ok(Vec::new());
        }
        match self.plan(cluster, task, node) {
            Plan::Fits { choices, .. } => {
                Ok(choices.into_iter().map(|choice| ClaimChoice::Devices(Box::new(choice))).collect())
            }
            Plan::Blocked(obstacle) => Err(told(words(&obstacle))),
        }
    }

    fn claims_to_bind(&self, cluster: &ClusterState, task: TaskId) -> Option<ClaimsToBind> {
        let own = device_choices(cluster.task(task).choices());
        let choices: Vec<ClaimChoice> = own.map(|choice| ClaimChoice::Devices(Box::new(choice.clone()))).collect();
        let claims = ClaimsToBind { plugin: Self::NAME.into(), timeout_ms: self.binding_timeout_ms, choices };
        (!claims.choices.is_empty()).then_some(claims)
    }

    fn binds_only_claims(&self) -> bool {
        true
    }
}

/// Why a node does not do, with the numbers. The node is not named: nodes that say the same are counted together.
fn words(obstacle: &Obstacle) -> String {
    match obstacle {
        Obstacle::Unusable(why) => why.clone(),
        Obstacle::Elsewhere { claim } => format!("resourceclaim {:?} not available on the node", claim.as_str()),
        Obstacle::Short(short) => {
            let asked = short.asked.map_or_else(|| "all".to_owned(), |asked| asked.to_string());
            format!(
                "cannot allocate all claims: request {} of claim {} asks for {asked} device(s), {} of {} that match are free",
                short.request, short.claim, short.free, short.matching
            )
        }
        Obstacle::NoCombination { claim } => {
            format!(
                "cannot allocate all claims: no devices satisfy all requests and constraints of claim {claim} at once"
            )
        }
        Obstacle::Failed(why) => format!("cannot allocate all claims: {why}"),
        Obstacle::TooManySteps(steps) => format!("cannot allocate all claims: {steps} devices were tried in vain"),
    }
}
