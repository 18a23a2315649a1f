//! Pods one after the other, before both schedulers: who fits where, with which scores.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;

use crate::answer::{Answer, differences, objections};
use crate::report;
use crate::stage::Verdict;
use crate::world::{World, key, label};

/// How long a pod that was answered differently waits until both are asked once more.
const ONCE_MORE_AFTER: Duration = Duration::from_millis(600);

/// What was counted.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) pods: u32,
    bound: u32,
    /// Pods with a choice between several nodes.
    scored: u32,
    /// Differences that were none when both were asked once more.
    passing: u32,
    pub(crate) differences: u32,
    /// By what they are about.
    about: BTreeMap<String, u32>,
}

/// Compares so many pods, and prints what differs.
pub(crate) async fn run(world: &mut World, n_pods: u32) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    world.fill().await?;
    world.stage.settle().await;
    for n in 1..=n_pods {
        world.change().await?;
        let mut manifest = world.next_pod();
        world.add_volumes(&mut manifest).await?;
        let (mut pod, mut theirs, mut ours) = ask(world, &manifest).await?;
        let mut found = differences(&theirs, &ours);
        if !found.is_empty() {
            // kube-scheduler may not have known yet what changed before.
            world.remove(&pod).await?;
            tokio::time::sleep(ONCE_MORE_AFTER).await;
            (pod, theirs, ours) = ask(world, &manifest).await?;
            found = differences(&theirs, &ours);
            tally.passing += u32::from(found.is_empty());
        }
        tally.pods += 1;
        tally.bound += u32::from(theirs.chosen.is_some());
        tally.scored += u32::from(theirs.feasible.len() > 1);
        if !found.is_empty() {
            report::clear_progress();
            println!("\n# difference: pod {}", label(&pod));
            for difference in &found {
                println!("# {}: {}", difference.about, difference.words);
            }
            let nodes = found.iter().filter_map(|difference| difference.node.clone()).collect();
            report::print(world, &pod, nodes).await?;
            tally.differences += 1;
            for difference in &found {
                *tally.about.entry(difference.about.clone()).or_default() += 1;
            }
        }
        let verdict = theirs.chosen.map_or(Verdict::Refused(String::new()), Verdict::Bound);
        world.follow(pod, &verdict).await?;
        report::progress(n, n_pods, &format!("{} bound, {} differences", tally.bound, tally.differences));
    }
    Ok(tally)
}

/// Both answers about a pod that is made for it.
async fn ask(world: &mut World, manifest: &Value) -> anyhow::Result<(Pod, Answer, Answer)> {
    let pod = world.create_pod(manifest).await?;
    let (namespace, name) = key(&pod);
    let ours = world.ours.answer(pod.metadata.uid.as_deref().unwrap_or_default()).unwrap_or_default();
    let (pod, verdict) = world.stage.verdict(namespace, name).await?;
    world.follow_claims(&pod).await?;
    let scores = world.stage.log.scores(&format!("{namespace}/{name}"))?;
    let mut theirs = Answer { feasible: scores.keys().cloned().collect(), scores, ..Answer::default() };
    match verdict {
        Verdict::Bound(node) => {
            // Where one node fits, none is scored.
            theirs.feasible.insert(node.clone());
            theirs.chosen = Some(node);
        }
        Verdict::Refused(message) => theirs.objections = objections(&message),
    }
    Ok((pod, theirs, ours))
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "pods compared: {} ({} bound, {} with a choice of nodes)", self.pods, self.bound, self.scored)?;
        writeln!(f, "passing differences: {} (none when both were asked once more)", self.passing)?;
        write!(f, "differences: {}", self.differences)?;
        for (about, n) in &self.about {
            write!(f, "\n  {about}: {n}")?;
        }
        Ok(())
    }
}
