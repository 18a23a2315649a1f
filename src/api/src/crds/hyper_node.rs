//! Volcano's HyperNode: a domain of the network.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;

use super::schema::{DNS_NAME, Rule, label_selector, time};
use super::{fields, object};

/// The most members, and the longest expression. What it may cost to compile all expressions is their product, and with
/// these just what the API server allows a rule.
const MOST_MEMBERS: u32 = 8_192;
const LONGEST_PATTERN: u32 = 1_024;

/// What a condition may be called.
const CONDITION_TYPE: &str =
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";
/// What a condition's reason may be.
const CONDITION_REASON: &str = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$";

object! {
    /// A domain of the network: nodes, or smaller domains, that are near to each other.
    HyperNode: "topology.volcano.sh" "v1alpha1" "HyperNode" "hypernodes" ClusterResourceScope {
        /// What is wanted.
        spec: HyperNodeFields,
        /// What is.
        status: HyperNodeStatusFields,
    }
}

fields! {
    /// What is wanted.
    #[derive(JsonSchema)]
    #[schemars(extend("required" = ["tier"]))]
    HyperNodeFields {
        /// How far its members are from each other: the smaller, the nearer.
        #[schemars(range(min = 0))]
        tier: i64,
        /// The tier's name.
        #[schemars(length(max = 253))]
        tier_name: String,
        /// What it consists of.
        #[schemars(length(min = 1, max = MOST_MEMBERS))]
        members: Vec<MemberFields>,
    }

    /// Nodes or smaller HyperNodes.
    #[derive(JsonSchema)]
    #[schemars(extend("required" = ["type"]))]
    #[schemars(transform = Rule::new(
        "!has(self.selector) || !has(self.selector.labelMatch) || self.type == 'Node'",
        "labelMatch selects nodes; set type to Node, or select HyperNodes by exactMatch or regexMatch",
    ).at(".selector.labelMatch"))]
    MemberFields {
        /// Whether these are nodes or HyperNodes.
        #[schemars(extend("enum" = ["Node", "HyperNode"]))]
        r#type: String,
        /// Which ones.
        selector: SelectorFields,
    }

    /// Which nodes or HyperNodes, told in one of three ways.
    #[derive(JsonSchema)]
    #[schemars(transform = Rule::new(
        "(has(self.exactMatch) ? 1 : 0) + (has(self.regexMatch) ? 1 : 0) + (has(self.labelMatch) ? 1 : 0) == 1",
        "set exactly one of exactMatch, regexMatch and labelMatch",
    ))]
    SelectorFields {
        /// The one of this name.
        exact_match: ExactMatchFields,
        /// All whose name matches.
        regex_match: RegexMatchFields,
        /// Nodes with these labels.
        #[schemars(schema_with = "label_selector")]
        label_match: LabelSelector,
    }

    /// The one of this name.
    #[derive(JsonSchema)]
    #[schemars(extend("required" = ["name"]))]
    ExactMatchFields {
        /// The name.
        #[schemars(length(min = 1, max = 253), regex(pattern = DNS_NAME))]
        name: String,
    }

    /// All whose name matches.
    #[derive(JsonSchema)]
    #[schemars(extend("required" = ["pattern"]))]
    RegexMatchFields {
        /// A regular expression in the syntax of RE2. It matches anywhere in the name; use ^ and $ to match all of it.
        // The rule is true of each expression that can be compiled; of another one the API server says why it cannot.
        #[schemars(length(min = 1, max = LONGEST_PATTERN), transform = Rule::new(
            "''.matches(self) in [true, false]",
            "must be a regular expression in the syntax of RE2",
        ))]
        pattern: String,
    }

    /// What is.
    #[derive(JsonSchema)]
    HyperNodeStatusFields {
        /// What was found out about it.
        conditions: Vec<ConditionFields>,
        /// How many nodes it has.
        #[schemars(range(min = 0))]
        node_count: i64,
    }

    /// What was found out about a HyperNode.
    #[derive(JsonSchema)]
    #[schemars(extend("required" = ["type", "status", "lastTransitionTime", "reason", "message"]))]
    ConditionFields {
        /// What it is about.
        #[schemars(length(max = 316), regex(pattern = CONDITION_TYPE))]
        r#type: String,
        /// `True`, `False` or `Unknown`.
        #[schemars(extend("enum" = ["True", "False", "Unknown"]))]
        status: String,
        /// The generation of the object that it was found of.
        #[schemars(range(min = 0))]
        observed_generation: i64,
        /// Since when.
        #[schemars(schema_with = "time")]
        last_transition_time: String,
        /// Why, in a word.
        #[schemars(length(min = 1, max = 1024), regex(pattern = CONDITION_REASON))]
        reason: String,
        /// Why, for people.
        #[schemars(length(max = 32_768))]
        message: String,
    }
}
