//! Pods of all priorities on a full cluster: where each makes room, and whose.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::bail;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use krafla_api::Object;
use krafla_model::Time;
use serde_json::{Value, json};

use crate::disruption::{Disruption, disruption, priority_of};
use crate::generate::{APPS, GPU, NAMESPACES};
use crate::ours::Preemption;
use crate::report;
use crate::stage::{Verdict, create, patch_status};
use crate::world::{World, key, label};

/// How many nodes and budgets there are.
const NODES: usize = 8;
const BUDGETS: usize = 6;
/// How long a preemption may take.
const DONE_WITHIN: Duration = Duration::from_secs(30);
/// A pod that is answered differently waits so long until both are asked once more.
const ONCE_MORE_AFTER: Duration = Duration::from_millis(600);
/// Pods began to run from here on, in seconds since 1970: in the past, and no two at one time.
const BEGINNING: u32 = 1_700_000_000;

/// What was counted.
#[derive(Default)]
pub(crate) struct Tally {
    pods: u32,
    bound: u32,
    same: u32,
    equal: u32,
    smaller: u32,
    helpless: u32,
    passing: u32,
    pub(crate) differences: u32,
}

/// How two answers compare.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Compared {
    /// Nobody preempts.
    Helpless,
    /// The same node and the same victims.
    Same,
    /// Other victims, and as bad by every criterion.
    Equal,
    /// Krafla's victims are the smaller disruption.
    Smaller,
    Different,
}

/// Both answers about a pod.
struct Asked {
    pod: Pod,
    /// Whether kube-scheduler bound it at once, and whether Krafla would.
    bound: (bool, bool),
    theirs: Preemption,
    ours: Preemption,
    disruptions: Option<(Disruption, Disruption)>,
}

/// Compares the preemption of so many pods.
pub(crate) async fn run(world: &mut World, n_pods: u32) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    for _ in 0..NODES {
        world.add_node().await?;
    }
    let mut budgets = Vec::new();
    for _ in 0..BUDGETS {
        budgets.push(add_budget(world).await?);
    }
    for n in 1..=n_pods {
        if world.dice.chance(20) {
            let at = world.dice.index(budgets.len());
            budgets[at] = change_budget(world, &budgets[at]).await?;
        }
        world.stage.settle().await;
        let manifest = next_pod(world);
        let mut asked = ask(world, &manifest, &budgets).await?;
        let mut compared = asked.compare();
        if compared == Compared::Different && asked.theirs.is_none() {
            // Nobody is gone yet, so that both can be asked once more: kube-scheduler may not have known all.
            world.remove(&asked.pod).await?;
            tokio::time::sleep(ONCE_MORE_AFTER).await;
            asked = ask(world, &manifest, &budgets).await?;
            compared = asked.compare();
            tally.passing += u32::from(compared != Compared::Different);
        }
        tally.count(compared, asked.bound.0);
        if compared == Compared::Different {
            report::clear_progress();
            println!("\n# difference: pod {}", label(&asked.pod));
            println!("# kube-scheduler: bound at once {}, preempts {:?}", asked.bound.0, asked.theirs);
            println!("# Krafla: bound at once {}, preempts {:?}", asked.bound.1, asked.ours);
            if let Some((theirs, ours)) = &asked.disruptions {
                println!("# disruptions: {theirs:?} and {ours:?}");
            }
            let nodes = [&asked.theirs, &asked.ours].into_iter().flatten().map(|(node, _)| node.clone()).collect();
            report::print(world, &asked.pod, nodes).await?;
        }
        settle(world, asked).await?;
        report::progress(n, n_pods, &format!("{} preemptions, {} differences", tally.preemptions(), tally.differences));
    }
    Ok(tally)
}

/// Victims are gone; a pod that made room runs elsewhere, or not at all, so that the next one finds a cluster with holes.
async fn settle(world: &mut World, asked: Asked) -> anyhow::Result<()> {
    if let Some((_, victims)) = &asked.theirs {
        world.forget(victims);
    }
    if !asked.bound.0 {
        return world.remove(&asked.pod).await;
    }
    let start = BEGINNING + u32::try_from(world.dice.between(0, 1 << 24)).unwrap_or(0);
    let (namespace, name) = key(&asked.pod);
    let started = k8s_openapi::jiff::Timestamp::from_second(i64::from(start))?.to_string();
    let status = json!({ "status": { "phase": "Running", "startTime": started } });
    let pod: Pod = patch_status(&world.stage.of::<Pod>(namespace), name, &status).await?;
    world.follow(pod, &Verdict::Bound(String::new())).await
}

/// A pod that is apt to need room. Its place is free as soon as it is deleted.
fn next_pod(world: &mut World) -> Value {
    let mut manifest = world.next_pod();
    manifest["spec"]["terminationGracePeriodSeconds"] = json!(0);
    manifest["spec"]["nodeSelector"] = Value::Null;
    if world.dice.chance(70) {
        manifest["spec"]["affinity"]["nodeAffinity"] = Value::Null;
        manifest["spec"]["tolerations"] = json!([{ "operator": "Exists" }]);
    }
    let mut resources = json!({ "requests": { "cpu": format!("{}m", world.dice.between(200, 2500)) } });
    if world.dice.chance(60) {
        resources["requests"]["memory"] = json!(format!("{}Mi", world.dice.between(100, 6000)));
    }
    if world.dice.chance(20) {
        resources["limits"] = json!({ GPU: world.dice.between(1, 3).to_string() });
    }
    manifest["spec"]["containers"][0]["resources"] = resources;
    let classes = ["low", "usual", "middle", "middle", "high"];
    manifest["spec"]["priorityClassName"] = json!(world.dice.pick(&classes));
    manifest
}

async fn ask(world: &mut World, manifest: &Value, budgets: &[PodDisruptionBudget]) -> anyhow::Result<Asked> {
    let pod = world.create_pod(manifest).await?;
    let uid = pod.metadata.uid.clone().unwrap_or_default();
    let fits = world.ours.answer(&uid).is_some_and(|answer| answer.chosen.is_some());
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let now = Time(i64::try_from(now.as_millis())?);
    let ours = if fits { None } else { world.ours.preemption(&uid, now).flatten() };
    let (namespace, name) = key(&pod);
    let (seen, verdict) = world.stage.verdict(namespace, name).await?;
    let nominated = seen.status.as_ref().and_then(|status| status.nominated_node_name.as_ref()).is_some();
    let begun = Instant::now();
    let preempted = loop {
        let preempted = world.stage.log.preemption(&label(&pod))?;
        let waits = match &preempted {
            Some(preempted) => !preempted.done,
            None => nominated,
        };
        if !waits {
            break preempted;
        }
        if begun.elapsed() > DONE_WITHIN {
            bail!("kube-scheduler did not end the preemption of {}: {preempted:?}", label(&pod));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    let theirs = preempted.map(|preempted| {
        let mut victims = preempted.victims;
        victims.sort();
        (preempted.node, victims)
    });
    let bound = matches!(verdict, Verdict::Bound(_)) && theirs.is_none();
    let of = |preemption: &(String, Vec<String>)| {
        let is_on = |pod: &&Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.as_ref() == Some(&preemption.0));
        let on_node: Vec<&Pod> = world.placed.iter().filter(is_on).collect();
        disruption(&on_node, &preemption.1, budgets, priority_of(&pod))
    };
    let disruptions = theirs.as_ref().zip(ours.as_ref()).map(|(theirs, ours)| (of(theirs), of(ours)));
    Ok(Asked { pod: seen, bound: (bound, fits), theirs, ours, disruptions })
}

impl Asked {
    fn compare(&self) -> Compared {
        if self.bound.0 != self.bound.1 {
            return Compared::Different;
        }
        match (&self.theirs, &self.ours) {
            (None, None) => Compared::Helpless,
            (theirs, ours) if theirs == ours => Compared::Same,
            _ => match &self.disruptions {
                Some((theirs, ours)) if ours == theirs => Compared::Equal,
                Some((theirs, ours)) if ours < theirs => Compared::Smaller,
                _ => Compared::Different,
            },
        }
    }
}

impl Tally {
    fn count(&mut self, compared: Compared, bound: bool) {
        self.pods += 1;
        let place = match compared {
            Compared::Helpless if bound => &mut self.bound,
            Compared::Helpless => &mut self.helpless,
            Compared::Same => &mut self.same,
            Compared::Equal => &mut self.equal,
            Compared::Smaller => &mut self.smaller,
            Compared::Different => &mut self.differences,
        };
        *place += 1;
    }

    fn preemptions(&self) -> u32 {
        self.same + self.equal + self.smaller
    }
}

async fn add_budget(world: &mut World) -> anyhow::Result<PodDisruptionBudget> {
    let name = world.name("b");
    let namespace = world.dice.pick(&NAMESPACES);
    let manifest = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": { "name": name, "namespace": namespace },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": world.dice.pick(&APPS) } } },
    });
    let budget = create(&world.stage.of::<PodDisruptionBudget>(namespace), &manifest).await?;
    change_budget(world, &budget).await
}

/// No controller runs: what a budget allows is said here.
async fn change_budget(world: &mut World, budget: &PodDisruptionBudget) -> anyhow::Result<PodDisruptionBudget> {
    let allowed = world.dice.between(0, 2);
    let status = json!({ "disruptionsAllowed": allowed, "currentHealthy": 3, "desiredHealthy": 1, "expectedPods": 3 });
    let meta = &budget.metadata;
    let api = world.stage.of::<PodDisruptionBudget>(meta.namespace.as_deref().unwrap_or_default());
    let name = meta.name.as_deref().unwrap_or_default();
    let budget: PodDisruptionBudget = patch_status(&api, name, &json!({ "status": status })).await?;
    world.tell(Object::DisruptionBudget(Box::new(budget.clone())));
    Ok(budget)
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counts = BTreeMap::from([
            ("bound at once", self.bound),
            ("helped by nothing", self.helpless),
            ("the same node and victims", self.same),
            ("other victims, as good by every criterion", self.equal),
            ("a smaller disruption", self.smaller),
        ]);
        writeln!(f, "pods compared: {}", self.pods)?;
        for (what, n) in counts {
            writeln!(f, "  {what}: {n}")?;
        }
        writeln!(f, "passing differences: {} (none when both were asked once more)", self.passing)?;
        write!(f, "differences: {}", self.differences)
    }
}
