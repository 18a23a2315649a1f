//! Profiles as a KubeSchedulerConfiguration in which nothing is left to defaults.

use super::upstream::PLUGINS;
use super::{KIND, VERSION};
use crate::conf::catalogue::Catalogue;
use crate::conf::policy::{ExtenderPolicy, Policy, ProfilePolicy};
use crate::conf::print::{Page, flow, quoted, scalar};
use crate::scheduling::point::ExtensionPoint;
use crate::scheduling::queue::QueueTimes;

/// The text; compiling it gives an equal policy, but for keys of extenders, which are not shown.
pub(in crate::conf) fn yaml(policy: &Policy, catalogue: &Catalogue) -> String {
    let mut page = Page::default();
    page.line(0, "# What is in force: at each point who is asked, in order, with the weight of each score.");
    page.line(0, &format!("# actions: {}", quoted(&policy.actions.join(", "))));
    for tier in &policy.tiers {
        let names: Vec<&str> = tier.plugins.iter().map(|entry| entry.name.as_str()).collect();
        page.line(0, &format!("# a tier: {}", names.join(", ")));
    }
    let missing: Vec<&str> = PLUGINS
        .iter()
        .filter(|plugin| plugin.default_weight.is_some() && catalogue.node_plugin(plugin.name).is_none())
        .map(|plugin| plugin.name)
        .collect();
    if !missing.is_empty() {
        page.line(0, &format!("# of kube-scheduler's defaults not in this build yet: {}", missing.join(", ")));
    }
    page.line(0, &format!("apiVersion: {VERSION}"));
    page.line(0, &format!("kind: {KIND}"));
    if policy.queue_times != QueueTimes::default() {
        page.line(0, &format!("podInitialBackoffSeconds: {}", policy.queue_times.initial_backoff_ms / 1_000));
        page.line(0, &format!("podMaxBackoffSeconds: {}", policy.queue_times.max_backoff_ms / 1_000));
    }
    page.line(0, "profiles:");
    for profile in &policy.profiles {
        page.profile(profile);
    }
    if !policy.extenders.is_empty() {
        page.line(0, "extenders:");
    }
    for extender in &policy.extenders {
        page.extender(extender);
    }
    page.text
}

impl Page {
    fn profile(&mut self, profile: &ProfilePolicy) {
        self.line(0, &format!("- schedulerName: {}", scalar(&profile.name)));
        if let Some(percentage) = profile.percentage_of_nodes_to_score {
            self.line(2, &format!("percentageOfNodesToScore: {percentage}"));
        }
        self.line(2, "plugins:");
        self.line(4, "multiPoint:");
        self.line(6, "disabled: [{name: \"*\"}]");
        for (point, members) in &profile.points {
            self.line(4, &format!("{}:", point.key()));
            self.line(6, "enabled:");
            for (name, weight) in members {
                self.line(6, &format!("- name: {}", scalar(name)));
                if *point == ExtensionPoint::Score {
                    self.line(8, &format!("weight: {weight}"));
                }
            }
        }
        if !profile.arguments.is_empty() {
            self.line(2, "pluginConfig:");
        }
        for (name, value) in &profile.arguments {
            self.line(2, &format!("- name: {}", scalar(name)));
            self.line(4, &format!("args: {}", flow(value)));
        }
    }

    fn extender(&mut self, extender: &ExtenderPolicy) {
        self.line(0, &format!("- urlPrefix: {}", quoted(&extender.url_prefix)));
        for (key, verb) in [
            ("filterVerb", &extender.filter_verb),
            ("preemptVerb", &extender.preempt_verb),
            ("prioritizeVerb", &extender.prioritize_verb),
            ("bindVerb", &extender.bind_verb),
        ] {
            if let Some(verb) = verb {
                self.line(2, &format!("{key}: {}", quoted(verb)));
            }
        }
        self.line(2, &format!("weight: {}", extender.weight));
        self.line(2, &format!("enableHTTPS: {}", extender.enable_https));
        self.line(2, &format!("httpTimeout: {}ms", extender.http_timeout_ms));
        self.line(2, &format!("nodeCacheCapable: {}", extender.node_cache_capable));
        self.line(2, &format!("ignorable: {}", extender.ignorable));
        if let Some(tls) = &extender.tls {
            self.line(2, "tlsConfig:");
            self.line(4, &format!("insecure: {}", tls.insecure));
            // Keys are not shown: who may see the configuration need not have them.
            for (key, text) in
                [("serverName", &tls.server_name), ("certFile", &tls.cert_file), ("keyFile", &tls.key_file)]
            {
                if !text.is_empty() {
                    self.line(4, &format!("{key}: {}", quoted(text)));
                }
            }
            for (key, text) in [("caFile", &tls.ca_file), ("certData", &tls.cert_data), ("caData", &tls.ca_data)] {
                if !text.is_empty() {
                    self.line(4, &format!("{key}: {}", quoted(text)));
                }
            }
            if !tls.key_data.is_empty() {
                self.line(4, "# keyData: (not shown)");
            }
        }
        if !extender.managed_resources.is_empty() {
            self.line(2, "managedResources:");
        }
        for resource in &extender.managed_resources {
            self.line(2, &format!("- name: {}", scalar(&resource.name)));
            self.line(4, &format!("ignoredByScheduler: {}", resource.ignored_by_scheduler));
        }
    }
}
