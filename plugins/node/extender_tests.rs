//! Extenders in a profile, with calls that a test answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use krafla_engine::{Engine, Input, Options};
use krafla_framework::conf::policy::{ExtenderPolicy, ManagedResource, Policy, ProfilePolicy};
use krafla_framework::scheduling::extender::{EXTENDER_BIND, Filtered};
use krafla_framework::{Effect, ExtenderCalls, NodeVictims, PodRef, Value};
use krafla_model::{Name, Time};
use krafla_testkit::Scene;

/// Answers by the extender's address, and what it was asked.
#[derive(Default)]
struct Answers {
    filters: BTreeMap<&'static str, Result<Filtered, String>>,
    scores: BTreeMap<&'static str, Result<BTreeMap<String, i64>, String>>,
    /// Nodes to which it agrees, and whether it spares the least important victim.
    agrees: Option<(&'static str, bool)>,
    asked: Mutex<Vec<String>>,
}

impl Answers {
    fn note(&self, to: &ExtenderPolicy, pod: &PodRef, nodes: &[&str]) {
        let said = format!("{} about {}: {}", to.url_prefix, pod.name, nodes.join(" "));
        self.asked.lock().expect("no test panics with it").push(said);
    }
}

impl ExtenderCalls for Answers {
    fn configured(&self, _: &[ExtenderPolicy]) {}

    fn filter(&self, to: &ExtenderPolicy, pod: &PodRef, nodes: &[&str]) -> Result<Filtered, String> {
        self.note(to, pod, nodes);
        self.filters.get(&*to.url_prefix).cloned().unwrap_or_else(|| Ok(passing(nodes)))
    }

    fn prioritize(&self, to: &ExtenderPolicy, pod: &PodRef, nodes: &[&str]) -> Result<BTreeMap<String, i64>, String> {
        self.note(to, pod, nodes);
        self.scores.get(&*to.url_prefix).cloned().unwrap_or_else(|| Ok(BTreeMap::new()))
    }

    fn process_preemption(
        &self,
        to: &ExtenderPolicy,
        pod: &PodRef,
        victims: &BTreeMap<Name, NodeVictims<PodRef>>,
    ) -> Result<BTreeMap<String, NodeVictims<String>>, String> {
        let nodes: Vec<&str> = victims.keys().map(|node| &**node).collect();
        self.note(to, pod, &nodes);
        let Some((agreed, spares)) = self.agrees else { return Ok(BTreeMap::new()) };
        let chosen = victims.iter().filter(|(node, _)| ***node == *agreed).map(|(node, victims)| {
            let kept = victims.pods.len() - usize::from(spares);
            let pods = victims.pods.iter().take(kept).map(|pod| pod.uid.to_string()).collect();
            (node.to_string(), NodeVictims { pods, budget_violations: victims.budget_violations })
        });
        Ok(chosen.collect())
    }
}

fn passing(nodes: &[&str]) -> Filtered {
    Filtered { passed: nodes.iter().map(|&node| node.to_owned()).collect(), ..Filtered::default() }
}

fn extender(url: &str) -> ExtenderPolicy {
    ExtenderPolicy { url_prefix: url.to_owned(), weight: 1, ..ExtenderPolicy::default() }
}

fn filtering(url: &str) -> ExtenderPolicy {
    ExtenderPolicy { filter_verb: Some("filter".to_owned()), ..extender(url) }
}

/// What an engine does with a scene, pods one by one, and what was asked.
fn decide(scene: &Scene, extenders: Vec<ExtenderPolicy>, answers: Answers) -> (Vec<Effect>, Vec<String>) {
    decide_with(scene, extenders, answers, |_| {})
}

fn decide_with(
    scene: &Scene,
    extenders: Vec<ExtenderPolicy>,
    answers: Answers,
    edit: impl FnOnce(&mut ProfilePolicy),
) -> (Vec<Effect>, Vec<String>) {
    let answers = Arc::new(answers);
    let mut registry = crate::testing::registry();
    registry.extender_calls = Some(answers.clone());
    let mut profile = ProfilePolicy::default_profile(&registry);
    edit(&mut profile);
    let policy = Policy { profiles: vec![profile], extenders, ..Policy::default() }.one_by_one();
    let options = Options { profile_only: true, events: true, ..Options::default() };
    let mut engine = Engine::with_policy(registry, options, policy);
    let step = engine.step(Time(0), scene.events().into_iter().map(Input::Event));
    let asked = answers.asked.lock().expect("no test panics with it").clone();
    (step.effects, asked)
}

fn bound_to(effects: &[Effect]) -> Option<&str> {
    effects.iter().find_map(|effect| if let Effect::Bind { node, .. } = effect { Some(&**node) } else { None })
}

fn said(effects: &[Effect]) -> String {
    let message =
        |effect: &Effect| if let Effect::Event { message, .. } = effect { Some(message.clone()) } else { None };
    effects.iter().filter_map(message).collect()
}

fn three_nodes() -> Scene {
    let scene = ["a", "b", "c"].into_iter().fold(Scene::new(), |scene, node| scene.node(node, "4c"));
    scene.job("p", |job| job.pending(1, "1c"))
}

#[test]
fn they_are_asked_one_after_another_about_what_is_left() {
    let left = |nodes: [&str; 2]| Ok(passing(&nodes));
    let filters = [("one", left(["b", "c"])), ("two", Ok(passing(&["c"])))].into();
    let (effects, asked) =
        decide(&three_nodes(), vec![filtering("one"), filtering("two")], Answers { filters, ..Answers::default() });
    assert_eq!(bound_to(&effects), Some("c"));
    assert_eq!(asked, ["one about p-0: a b c", "two about p-0: b c"]);
}

#[test]
fn their_objections_are_told_and_unresolvable_goes_first() {
    let why =
        |nodes: &[(&str, &str)]| nodes.iter().map(|(node, why)| ((*node).to_owned(), (*why).to_owned())).collect();
    let said_of = Filtered {
        passed: BTreeSet::new(),
        failed: why(&[("a", "no licence"), ("b", "no licence")]),
        unresolvable: why(&[("b", "wrong building")]),
    };
    let filters = [("one", Ok(said_of))].into();
    let (effects, _) = decide(&three_nodes(), vec![filtering("one")], Answers { filters, ..Answers::default() });
    assert_eq!(bound_to(&effects), None);
    let said = said(&effects);
    assert!(said.contains("0/3 nodes are available: 1 no licence, 1 node(s) were left out by an extender"), "{said}");
    assert!(said.contains("1 wrong building"), "{said}");
}

#[test]
fn one_that_fails_ends_the_attempt_unless_it_may_be_ignored() {
    let failing = || Answers { filters: [("one", Err("no answer".to_owned()))].into(), ..Answers::default() };
    let (effects, _) = decide(&three_nodes(), vec![filtering("one")], failing());
    assert_eq!(bound_to(&effects), None);
    assert!(said(&effects).contains("extender one: no answer"), "{}", said(&effects));
    let ignorable = ExtenderPolicy { ignorable: true, ..filtering("one") };
    let (effects, _) = decide(&three_nodes(), vec![ignorable], failing());
    assert!(bound_to(&effects).is_some());
}

#[test]
fn scores_of_up_to_ten_count_ten_times_their_weight() {
    let scores = |url, node: &str, score| (url, Ok(BTreeMap::from([(node.to_owned(), score)])));
    let scoring = |url, weight| ExtenderPolicy { prioritize_verb: Some("score".to_owned()), weight, ..extender(url) };
    let decided = |first, second| {
        let scores = [scores("one", "b", 10), scores("two", "c", 9), ("broken", Err("no answer".to_owned()))].into();
        let extenders = vec![scoring("one", first), scoring("two", second), scoring("broken", 100)];
        let (effects, _) = decide(&three_nodes(), extenders, Answers { scores, ..Answers::default() });
        bound_to(&effects).map(str::to_owned)
    };
    assert_eq!(decided(1, 1).as_deref(), Some("b"));
    assert_eq!(decided(1, 2).as_deref(), Some("c"));
}

#[test]
fn only_pods_that_ask_for_what_it_manages_are_its_business() {
    let managed = ManagedResource { name: "example.com/fpga".to_owned(), ignored_by_scheduler: true };
    let manager =
        ExtenderPolicy { managed_resources: vec![managed], bind_verb: Some("bind".to_owned()), ..filtering("manager") };
    let plugins = |scene: &Scene| {
        let (effects, asked) = decide(scene, vec![manager.clone()], Answers::default());
        let plugins = |effect: &Effect| match effect {
            Effect::Bind { plugins, .. } => Some(plugins.iter().any(|plugin| **plugin == *EXTENDER_BIND)),
            _ => None,
        };
        (effects.iter().find_map(plugins), asked.len())
    };
    assert_eq!(plugins(&three_nodes()), (Some(false), 0));
    let scene = Scene::new().node("a", "4c,example.com/fpga=2").job("p", |job| job.pending(1, "1c,example.com/fpga=1"));
    assert_eq!(plugins(&scene), (Some(true), 1));
}

#[test]
fn what_an_extender_looks_after_no_node_has_to_have() {
    let scene = Scene::new().node("a", "4c").job("p", |job| job.pending(1, "1c,example.com/fpga=1,b.org/x=1"));
    let decided = |fields: &[(&str, &str)]| {
        let list = |text: &str| Value::List(vec![Value::Text(text.to_owned())]);
        let fit = Value::Map(fields.iter().map(|(key, text)| ((*key).to_owned(), list(text))).collect());
        let edit = |profile: &mut ProfilePolicy| {
            profile.arguments.insert("NodeResourcesFit".to_owned(), fit);
        };
        let (effects, _) = decide_with(&scene, Vec::new(), Answers::default(), edit);
        (bound_to(&effects).is_some(), said(&effects))
    };
    let by_name = ("ignoredResources", "example.com/fpga");
    assert!(decided(&[by_name]).1.contains("1 Insufficient b.org/x"), "{}", decided(&[by_name]).1);
    assert!(decided(&[by_name, ("ignoredResourceGroups", "b.org")]).0);
}

#[test]
fn a_preemption_goes_where_they_agree_and_only_as_far() {
    let victims = |agrees| {
        let scene = ["a", "b"].into_iter().fold(Scene::new(), |scene, node| scene.node(node, "4c"));
        let scene = scene
            .job("low", |job| job.running(1, "4c", "a").running(1, "4c", "b"))
            .job("high", |job| job.task_priority(10).pending(1, "4c"));
        let extender = ExtenderPolicy { preempt_verb: Some("preempt".to_owned()), ..extender("one") };
        let (effects, asked) = decide(&scene, vec![extender], Answers { agrees, ..Answers::default() });
        assert_eq!(asked, ["one about high-0: a b"]);
        let evicted =
            |effect: &Effect| if let Effect::Evict { pod, .. } = effect { Some(pod.name.to_string()) } else { None };
        (effects.iter().filter_map(evicted).collect::<Vec<_>>(), said(&effects))
    };
    assert_eq!(victims(Some(("b", false))).0, ["low-1"]);
    assert!(victims(Some(("b", true))).0.is_empty(), "nobody has to go, says the extender");
    let (nobody, said) = victims(None);
    assert!(nobody.is_empty());
    assert!(said.contains("No extender agrees to a preemption"), "{said}");
}
