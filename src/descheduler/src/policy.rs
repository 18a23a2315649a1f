//! From a compiled policy to strategies.

use krafla_framework::conf::descheduler::{DeschedulerPolicy, PolicyPoint, StrategyInfo};
use krafla_framework::registry::ArgumentProblem;
use krafla_framework::{PrometheusSource, UsageSource, Value};

use crate::evictor::DefaultEvictor;
use crate::round::Round;
use crate::strategies as all;

/// A strategy with its arguments.
pub(crate) trait Strategy: Send {
    /// Asks for evictions, in order. `Err`: why it could not look.
    fn run(&self, round: &mut Round<'_, '_, '_>) -> Result<(), String>;

    /// Says where the use of nodes and pods has to be asked.
    fn needs(&self, _: &mut UsageSource) {}
}

type Make = fn(&Value) -> Result<Box<dyn Strategy>, Vec<ArgumentProblem>>;

/// What a build knows of a strategy.
struct Known {
    info: StrategyInfo,
    make: Make,
}

const EVICTOR: &str = "DefaultEvictor";

macro_rules! strategy {
    ($name:literal, $alias:expr, $point:expr, $module:ident) => {
        Known {
            info: StrategyInfo {
                name: $name,
                alias: $alias,
                points: &[$point],
                check: |args| all::$module::read(args).map(drop),
            },
            make: |args| all::$module::read(args).map(|read| Box::new(read) as Box<dyn Strategy>),
        }
    };
}

use PolicyPoint::{Balance, Deschedule};

const KNOWN: &[Known] = &[
    strategy!("PodLifeTime", None, Deschedule, pod_life_time),
    strategy!("RemoveFailedPods", None, Deschedule, failed_pods),
    strategy!("RemovePodsHavingTooManyRestarts", None, Deschedule, too_many_restarts),
    strategy!("RemovePodsViolatingInterPodAntiAffinity", None, Deschedule, anti_affinity),
    strategy!("RemovePodsViolatingNodeAffinity", None, Deschedule, node_affinity),
    strategy!("RemovePodsViolatingNodeTaints", None, Deschedule, node_taints),
    strategy!("RemoveDuplicates", None, Balance, duplicates),
    strategy!(
        "RemovePodsViolatingTopologySpreadConstraint",
        Some("RemovePodsViolatingTopologySpread"),
        Balance,
        topology_spread
    ),
    strategy!("LowNodeUtilization", None, Balance, low_node_utilization),
    strategy!("HighNodeUtilization", None, Balance, high_node_utilization),
];

/// Every plugin that a policy may name.
pub fn strategies() -> Vec<StrategyInfo> {
    let evictor = StrategyInfo {
        name: EVICTOR,
        alias: None,
        points: &[PolicyPoint::Filter, PolicyPoint::PreEvictionFilter],
        check: |args| DefaultEvictor::read(args).map(drop),
    };
    KNOWN.iter().map(|known| known.info).chain([evictor]).collect()
}

/// A profile that can be run.
pub(crate) struct Profile {
    pub(crate) name: String,
    pub(crate) evictor: DefaultEvictor,
    pub(crate) deschedule: Vec<(&'static str, Box<dyn Strategy>)>,
    pub(crate) balance: Vec<(&'static str, Box<dyn Strategy>)>,
}

/// Makes the strategies of a policy whose arguments have been checked.
pub(crate) fn profiles(policy: &DeschedulerPolicy) -> Vec<Profile> {
    let mut profiles = Vec::new();
    for profile in &policy.profiles {
        let told = |name: &str| profile.arguments.get(name).unwrap_or(&Value::Null);
        let make = |names: &[String]| {
            let known = |name: &String| KNOWN.iter().find(|known| known.info.name == name);
            let made = |known: &Known| Some((known.info.name, (known.make)(told(known.info.name)).ok()?));
            names.iter().filter_map(known).filter_map(made).collect::<Vec<_>>()
        };
        let Ok(evictor) = DefaultEvictor::read(told(EVICTOR)) else { continue };
        profiles.push(Profile {
            name: profile.name.clone(),
            evictor,
            deschedule: make(&profile.deschedule),
            balance: make(&profile.balance),
        });
    }
    profiles
}

/// Where the use of nodes and pods comes from, for all strategies together.
pub(crate) fn usage(policy: &DeschedulerPolicy, profiles: &[Profile]) -> UsageSource {
    let prometheus = policy.prometheus.clone();
    let mut usage = UsageSource {
        metrics_server: false,
        prometheus: prometheus.map(|(url, token)| PrometheusSource { url, query: String::new(), token }),
    };
    for (_, strategy) in profiles.iter().flat_map(|profile| profile.deschedule.iter().chain(&profile.balance)) {
        strategy.needs(&mut usage);
    }
    usage.prometheus = usage.prometheus.filter(|prometheus| !prometheus.query.is_empty());
    usage
}
