//! Pods one after the other, before both schedulers: who fits where, with which scores.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use crate::answer::{Answer, FITS_FOR_KRAFLA, differences, objections};
use crate::report;
use crate::stage::{Verdict, create, delete_now};
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
        let waiting = world.claims_that_wait(&manifest).await?;
        let (mut pod, mut theirs, mut ours) = ask(world, &manifest).await?;
        let mut found = differences(&theirs, &ours);
        if !found.is_empty() {
            let first = found.remove(0).words;
            // kube-scheduler may not have known yet what changed before.
            world.remove(&pod).await?;
            world.renew_claims(&mut manifest, waiting).await?;
            tokio::time::sleep(ONCE_MORE_AFTER).await;
            (pod, theirs, ours) = ask(world, &manifest).await?;
            found = differences(&theirs, &ours);
            if found.is_empty() {
                report::clear_progress();
                println!("passed when asked once more: pod {}: {first}", label(&pod));
                tally.passing += 1;
            }
        }
        tally.pods += 1;
        tally.bound += u32::from(theirs.chosen.is_some());
        tally.scored += u32::from(theirs.feasible.len() > 1);
        if !found.is_empty() {
            report::clear_progress();
            println!("\n# difference: pod {}", label(&pod));
            for difference in &found {
                println!("# {}: {}", difference.about, difference.words);
                if let (true, Some(node)) = (difference.about == FITS_FOR_KRAFLA, &difference.node) {
                    println!(
                        "#   kube-scheduler, asked about {node} alone: {}",
                        asked_about(world, &manifest, node).await?
                    );
                }
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

/// What kube-scheduler says of a pod that may go to one node alone. The pod is one more, and goes again.
async fn asked_about(world: &mut World, manifest: &Value, node: &str) -> anyhow::Result<String> {
    let mut twin = manifest.clone();
    let name = format!("{}-twin", twin["metadata"]["name"].as_str().unwrap_or_default());
    twin["metadata"]["name"] = json!(name);
    let only = json!({ "key": "metadata.name", "operator": "In", "values": [node] });
    let required = &mut twin["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    match required["nodeSelectorTerms"].as_array_mut() {
        Some(terms) => terms.iter_mut().for_each(|term| term["matchFields"] = json!([only])),
        None => *required = json!({ "nodeSelectorTerms": [{ "matchFields": [only] }] }),
    }
    let namespace = twin["metadata"]["namespace"].as_str().unwrap_or_default();
    let api = world.stage.of::<Pod>(namespace);
    create(&api, &twin).await?;
    let (_, verdict) = world.stage.verdict(namespace, &name).await?;
    delete_now(&api, &name).await?;
    Ok(match verdict {
        Verdict::Bound(_) => "it fits".to_owned(),
        Verdict::Refused(words) => words,
    })
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
