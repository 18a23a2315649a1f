//! Tests of KubeSchedulerConfiguration, from text to profiles and problems.

mod args;
mod extenders;
mod fields;
mod merging;
mod printed;
mod validation;

use crate::conf::catalogue::Catalogue;
use crate::conf::compile::{Compiled, compile};
use crate::conf::plugin_args::read;
use crate::conf::policy::{Policy, ProfilePolicy};
use crate::registry::{Build, NodePluginBuilder, NodePluginInfo};
use crate::scheduling::plugin::NodePlugin;
use crate::scheduling::point::ExtensionPoint;

use super::upstream::{LEGACY, PLUGINS};

struct Dummy;

impl NodePlugin for Dummy {
    fn name(&self) -> &'static str {
        "Dummy"
    }
}

/// Kube-scheduler's plugins but for the volumes and DynamicResources; one that is not in the default profile, `Ours`; and
/// one that takes arguments, `Tuned`.
fn catalogue() -> Catalogue {
    use ExtensionPoint::{Filter, Score};
    let plain = |name, points, default_weight| NodePluginBuilder {
        info: NodePluginInfo { name, about: "", points, default_weight },
        build: Build::Plain(|| Box::new(Dummy)),
    };
    let missing = |name: &str| name.starts_with("Volume") || ["DynamicResources", "QOSSort"].contains(&name);
    let theirs = PLUGINS.iter().chain(LEGACY).filter(|plugin| !missing(plugin.name));
    let mut node_plugins: Vec<_> =
        theirs.map(|plugin| plain(plugin.name, plugin.points, plugin.default_weight)).collect();
    node_plugins.push(plain("Ours", &[Filter, Score], None));
    node_plugins.push(plain("Idle", &[], None));
    node_plugins.push(NodePluginBuilder {
        build: Build::From(|args| {
            read(args, &["strength", "words", "inner"], |args| {
                args.integer("strength", 0..=10, 1);
                args.texts("words");
                if let Some(mut inner) = args.map("inner", &["on", "pace"]) {
                    inner.bool("on", false);
                    inner.one_of("pace", &[("Slow", 1), ("Fast", 2)], 1);
                }
            })?;
            Ok(Box::new(Dummy))
        }),
        ..plain("Tuned", &[Filter, Score], None)
    });
    Catalogue { node_plugins, ..Catalogue::default() }
}

/// Compiles as `kube.yaml`.
fn run(source: &str) -> Compiled {
    compile(source, "kube.yaml", &catalogue())
}

/// Three lines long.
const HEAD: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

/// One profile whose first line is line 4.
fn one(profile: &str) -> String {
    format!("{HEAD}profiles:\n{profile}")
}

fn problems(compiled: &Compiled) -> String {
    compiled.problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// The policy of a source without any error.
fn policy(source: &str) -> Policy {
    let compiled = run(source);
    assert_eq!(compiled.errors().count(), 0, "{}\n{source}", problems(&compiled));
    compiled.policy.expect("there is no error")
}

/// The plugins of a point, in order; those of `score` with their weights.
fn at(profile: &ProfilePolicy, point: ExtensionPoint) -> String {
    let shown = |(name, weight): &(String, i64)| {
        if point == ExtensionPoint::Score { format!("{name}={weight}") } else { name.clone() }
    };
    profile.points.get(&point).into_iter().flatten().map(shown).collect::<Vec<_>>().join(" ")
}

/// A problem that a source should have: severity and place, a part of the message, a part of the help.
type Expected<'a> = (&'a str, &'a str, &'a str);

/// Checks that `source` has exactly the problems `want`, from the top down.
fn expect(name: &str, source: &str, want: &[Expected<'_>]) {
    expect_by(&catalogue(), name, source, want);
}

fn expect_by(catalogue: &Catalogue, name: &str, source: &str, want: &[Expected<'_>]) {
    let compiled = compile(source, "kube.yaml", catalogue);
    let all = problems(&compiled);
    assert_eq!(compiled.problems.len(), want.len(), "{name}: {all}");
    for (problem, (place, message, help)) in compiled.problems.iter().zip(want) {
        let found = format!("{} {}:{}", problem.severity, problem.line, problem.column);
        assert_eq!(found, *place, "{name}: {all}");
        assert!(problem.message.contains(message), "{name}: {all}");
        assert!(problem.help.as_deref().unwrap_or("").contains(help), "{name}: {all}");
        // A range or a type that an argument has to have says it all.
        let says_it_all = problem.message.starts_with("`args` of");
        assert!(problem.help.is_some() || says_it_all, "{name}: nothing says what to write: {all}");
        assert!(!problem.render(source).is_empty(), "{name}");
    }
    assert_eq!(compiled.policy.is_none(), compiled.errors().count() > 0, "{name}: {all}");
}
