//! `PodTopologySpreadArgs`.

use krafla_framework::Value;
use krafla_framework::conf::plugin_args::{PluginArgs, read};
use krafla_framework::conf::selectors::is_label_key;
use krafla_framework::registry::ArgumentProblem;
use krafla_model::pod_affinity::SpreadConstraint;

use super::{Defaults, PodTopologySpread};

const FIELDS: &[&str] = &[
    "maxSkew",
    "topologyKey",
    "whenUnsatisfiable",
    "minDomains",
    "nodeAffinityPolicy",
    "nodeTaintsPolicy",
    "labelSelector",
    "matchLabelKeys",
];
const POLICIES: [(&str, bool); 2] = [("Honor", true), ("Ignore", false)];

impl PodTopologySpread {
    /// From its `args`.
    pub fn from_args(args: &Value) -> Result<Self, Vec<ArgumentProblem>> {
        read(args, &["defaultConstraints", "defaultingType"], |args| {
            let mut constraints: Vec<SpreadConstraint> = Vec::new();
            for (path, item) in args.list("defaultConstraints") {
                let mut item = args.item(path, item, FIELDS);
                let constraint = constraint(&mut item);
                let is_same = |known: &SpreadConstraint| {
                    known.topology_key == constraint.topology_key && known.must_hold == constraint.must_hold
                };
                if constraints.iter().any(is_same) {
                    let message = "another constraint has this key and this `whenUnsatisfiable`; keep one of them";
                    item.problem("topologyKey", message);
                }
                constraints.push(constraint);
            }
            let is_list = args.one_of("defaultingType", &[("System", false), ("List", true)], false);
            if !is_list && !constraints.is_empty() {
                let message = "there are constraints, but `defaultingType` is System; write `defaultingType: List`";
                args.problem("defaultConstraints", message);
            }
            let defaults = if is_list { Defaults::List(constraints) } else { Defaults::System };
            Self { defaults, promises_reach_domains: false }
        })
    }
}

fn constraint(args: &mut PluginArgs<'_, '_>) -> SpreadConstraint {
    let max_skew = args.integer("maxSkew", 1..=i64::from(i32::MAX), 1);
    let topology_key = args.text("topologyKey").unwrap_or_default();
    if !is_label_key(topology_key) {
        let message = format!("`{topology_key}` cannot be the key of a label; write `topology.kubernetes.io/zone`");
        args.problem("topologyKey", message);
    }
    let must_hold = args.one_of("whenUnsatisfiable", &[("DoNotSchedule", true), ("ScheduleAnyway", false)], false);
    for (key, example) in [("maxSkew", "`maxSkew: 1`"), ("whenUnsatisfiable", "DoNotSchedule or ScheduleAnyway")] {
        if args.get(key).is_none() {
            args.problem(key, format!("it is missing; write {example}"));
        }
    }
    let min_domains = args.integer("minDomains", 1..=i64::from(i32::MAX), 1);
    if args.get("minDomains").is_some() && !must_hold {
        args.problem("minDomains", "it needs `whenUnsatisfiable: DoNotSchedule`; take it out");
    }
    for key in ["labelSelector", "matchLabelKeys"] {
        if args.get(key).is_some() {
            args.problem(key, "default constraints take theirs from what selects the pod; take it out");
        }
    }
    SpreadConstraint {
        max_skew: u32::try_from(max_skew).unwrap_or(1),
        topology_key: topology_key.into(),
        must_hold,
        selector: None,
        min_domains: u32::try_from(min_domains).unwrap_or(1),
        honors_affinity: args.one_of("nodeAffinityPolicy", &POLICIES, true),
        honors_taints: args.one_of("nodeTaintsPolicy", &POLICIES, false),
    }
}
