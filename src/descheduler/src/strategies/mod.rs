//! The strategies of the Kubernetes descheduler, a file each. Each is a function of the cluster and its arguments that asks
//! for evictions, in order.

pub(crate) mod anti_affinity;
mod containers;
pub(crate) mod duplicates;
pub(crate) mod failed_pods;
pub(crate) mod high_node_utilization;
pub(crate) mod low_node_utilization;
pub(crate) mod node_affinity;
pub(crate) mod node_taints;
pub(crate) mod pod_life_time;
pub(crate) mod too_many_restarts;
pub(crate) mod topology_spread;
mod utilization;

#[cfg(test)]
mod balance_facts_tests;
#[cfg(test)]
mod balance_tests;
#[cfg(test)]
mod deschedule_facts_tests;
#[cfg(test)]
mod deschedule_tests;
