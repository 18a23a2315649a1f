//! What the tests of this crate share.

use std::fmt::Write;

use krafla_framework::Registry;
use krafla_testkit::{Outcome, Scene};

/// Every action and plugin.
pub(crate) fn registry() -> Registry {
    Registry { actions: krafla_actions::all(), plugins: crate::all() }
}

/// A configuration in Volcano's form. A plugin is written `gang enableJobReady=false binpack.weight=3`: its name, then
/// switches and arguments.
pub(crate) fn conf(actions: &str, tiers: &[&[&str]]) -> String {
    let mut text = format!("actions: \"{actions}\"\ntiers:\n");
    for tier in tiers {
        text += "- plugins:\n";
        for plugin in *tier {
            let mut words = plugin.split(' ');
            let name = words.next().unwrap_or_default();
            let pairs: Vec<(&str, &str)> = words.filter_map(|word| word.split_once('=')).collect();
            let (switches, arguments): (Vec<_>, Vec<_>) =
                pairs.into_iter().partition(|(key, _)| krafla_framework::conf::switches::switch(key).is_some());
            let _ = writeln!(text, "  - name: {name}");
            for (key, value) in switches {
                let _ = writeln!(text, "    {key}: {value}");
            }
            if !arguments.is_empty() {
                text += "    arguments:\n";
            }
            for (key, value) in arguments {
                let _ = writeln!(text, "      {key}: {value}");
            }
        }
    }
    text
}

/// A session with these actions and one tier of plugins.
pub(crate) fn run(scene: &Scene, actions: &str, plugins: &[&str]) -> Outcome {
    krafla_testkit::run(scene.build(), &registry(), &conf(actions, &[plugins]))
}

/// Scores of the nodes, in tie order, for a pod.
pub(crate) fn scores(scene: &Scene, plugins: &[&str], pod: &str) -> Vec<f64> {
    krafla_testkit::scores(&scene.build(), &registry(), &conf("allocate", &[plugins]), pod)
}

/// Why a node does not take a pod, and whether an eviction there could change that; `None` if it takes it.
pub(crate) fn objection(scene: &Scene, plugins: &[&str], pod: &str, node: &str) -> Option<(&'static str, bool)> {
    use krafla_framework::{Verdict, Why};
    let said = |why| match why {
        Why::Says(text) => text,
        Why::Short(_) => "short",
    };
    match krafla_testkit::verdict(&scene.build(), &registry(), &conf("allocate", &[plugins]), pod, node) {
        Ok(_) | Err(Verdict::Fits) => None,
        Err(Verdict::Unschedulable(why)) => Some((said(why), true)),
        Err(Verdict::Unresolvable(why)) => Some((said(why), false)),
    }
}

/// Whether the compiler takes a plugin with these switches and arguments.
pub(crate) fn compiles(plugin: &str) -> bool {
    let text = conf("allocate", &[&[plugin]]);
    krafla_framework::conf::compile::compile(&text, "test.conf", &registry().catalogue()).policy.is_some()
}
