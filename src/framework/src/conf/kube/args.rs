//! `args` of plugins that are read in more than one place, or whose plugin a build may lack.

use crate::conf::arguments::Value;
use crate::conf::plugin_args::read;
use crate::registry::ArgumentProblem;

/// `DefaultPreemptionArgs`: how many nodes preemption tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefaultPreemptionArgs {
    /// Share of all nodes, in percent.
    pub min_candidate_nodes_percentage: i64,
    /// And at least this many.
    pub min_candidate_nodes_absolute: i64,
}

impl DefaultPreemptionArgs {
    /// Reads `args`; nothing is all defaults.
    pub fn read(args: &Value) -> Result<Self, Vec<ArgumentProblem>> {
        read(args, &["minCandidateNodesPercentage", "minCandidateNodesAbsolute"], |args| {
            let read = Self {
                min_candidate_nodes_percentage: args.integer("minCandidateNodesPercentage", 0..=100, 10),
                min_candidate_nodes_absolute: args.integer("minCandidateNodesAbsolute", 0..=i64::from(i32::MAX), 100),
            };
            if (read.min_candidate_nodes_percentage, read.min_candidate_nodes_absolute) == (0, 0) {
                let message = "both it and `minCandidateNodesPercentage` are 0; preemption would try no node at all";
                args.problem("minCandidateNodesAbsolute", message);
            }
            read
        })
    }
}

/// `VolumeBindingArgs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeBindingArgs {
    /// Longest wait for volumes before the bind, in seconds.
    pub bind_timeout_seconds: i64,
    /// Score of a node by how much of its storage would be used: points of (percent, score of 0 to 10). As a rule the
    /// emptiest is the best.
    pub shape: Vec<(i64, i64)>,
}

impl VolumeBindingArgs {
    /// Reads `args`; nothing is all defaults.
    pub fn read(args: &Value) -> Result<Self, Vec<ArgumentProblem>> {
        read(args, &["bindTimeoutSeconds", "shape"], |args| {
            let mut shape = args.shape("shape");
            if shape.is_empty() {
                shape = vec![(0, 10), (100, 0)];
            }
            Self { bind_timeout_seconds: args.integer("bindTimeoutSeconds", 0..=i64::MAX, 600), shape }
        })
    }
}

/// `DynamicResourcesArgs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DynamicResourcesArgs {
    /// Longest search for devices on one node, in milliseconds; 0 is without limit.
    pub filter_timeout_ms: u64,
    /// Longest wait for devices to become ready, in milliseconds.
    pub binding_timeout_ms: u64,
}

impl DynamicResourcesArgs {
    /// Reads `args`; nothing is all defaults.
    pub fn read(args: &Value) -> Result<Self, Vec<ArgumentProblem>> {
        read(args, &["filterTimeout", "bindingTimeout"], |args| Self {
            filter_timeout_ms: args.duration_ms("filterTimeout", 0, 10_000),
            binding_timeout_ms: args.duration_ms("bindingTimeout", 1_000, 600_000),
        })
    }
}

/// `CoschedulingArgs` of scheduler-plugins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoschedulingArgs {
    /// Wait at Permit where the group does not say, in seconds.
    pub permit_waiting_time_seconds: i64,
    /// How long members are refused after their group was, in seconds; 0 is not at all.
    pub pod_group_backoff_seconds: i64,
    /// Share of missing members, in percent, up to which one failed member does not reject the group.
    pub pod_group_reject_percentage: i64,
}

impl CoschedulingArgs {
    /// Reads `args`; nothing is all defaults.
    pub fn read(args: &Value) -> Result<Self, Vec<ArgumentProblem>> {
        let fields = ["permitWaitingTimeSeconds", "podGroupBackoffSeconds", "podGroupRejectPercentage"];
        // The upper limit keeps times in milliseconds far from what 64 bits can count.
        let seconds = 0..=i64::from(i32::MAX);
        read(args, &fields, |args| Self {
            permit_waiting_time_seconds: args.integer(fields[0], seconds.clone(), 60),
            pod_group_backoff_seconds: args.integer(fields[1], seconds, 0),
            pod_group_reject_percentage: args.integer(fields[2], 0..=100, 10),
        })
    }
}

pub(super) fn check_default_preemption(args: &Value) -> Result<(), Vec<ArgumentProblem>> {
    DefaultPreemptionArgs::read(args).map(drop)
}

pub(super) fn check_volume_binding(args: &Value) -> Result<(), Vec<ArgumentProblem>> {
    VolumeBindingArgs::read(args).map(drop)
}

pub(super) fn check_dynamic_resources(args: &Value) -> Result<(), Vec<ArgumentProblem>> {
    DynamicResourcesArgs::read(args).map(drop)
}

pub(super) fn check_coscheduling(args: &Value) -> Result<(), Vec<ArgumentProblem>> {
    CoschedulingArgs::read(args).map(drop)
}
