//! What the scenario does to the cluster.

use krafla_model::task::ordinal_of;
use krafla_simulator::scenario::{Deed, Target, TargetKind};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{CONFIGURED_WITHIN, MOST_TOLD_APART, Player, TRY_AGAIN, has_gangs, next_second};
use crate::admission;
use crate::ground::Kind;
use crate::hands::Trouble;
use crate::seen::{Key, key_of};

impl Player<'_> {
    /// Does everything of one moment. PodGroups come last, so that a scheduler does not see the jobs of one moment much
    /// before each other; a scheduler of somebody may want them first, and sees the nodes of the start last.
    pub(super) async fn do_all(&mut self, mut deeds: Vec<Deed>, first: bool) {
        let guest = matches!(self.ground.kind, Kind::Guest(_));
        if first && guest {
            deeds.sort_by_key(|deed| matches!(deed, Deed::Put(object) if object["kind"] == "Node"));
        }
        let mut groups = Vec::new();
        let mut batch: Vec<Value> = Vec::new();
        for deed in deeds {
            match deed {
                Deed::Put(object) => {
                    if batch.last().is_some_and(|last| last["kind"] != object["kind"]) {
                        self.put(std::mem::take(&mut batch)).await;
                    }
                    batch.push(object);
                    continue;
                }
                deed => {
                    self.put(std::mem::take(&mut batch)).await;
                    self.do_one(deed, guest, &mut groups).await;
                }
            }
        }
        self.put(batch).await;
        let troubles = self.hands.put_all(groups).await;
        self.trouble(troubles);
        self.touched = Instant::now();
    }

    async fn put(&mut self, objects: Vec<Value>) {
        let mut objects = objects;
        if let Kind::Guest(guest) = &self.ground.kind {
            let use_nodes = guest.use_nodes;
            let knows_groups = self.knows_groups;
            objects.retain(|object| {
                !(use_nodes && object["kind"] == "Node") && (knows_groups || object["kind"] != "Queue")
            });
            objects.iter_mut().filter(|object| object["kind"] == "Node").for_each(admission::for_kwok);
        }
        for object in &objects {
            match object["kind"].as_str() {
                Some("ResourceQuota") => {
                    self.quotas.insert(key_of(object).0);
                }
                Some("PodGroup") => {
                    let queue = object["spec"]["queue"].as_str().unwrap_or(krafla_model::queue::DEFAULT_QUEUE);
                    self.eyes.seen().submitted(&key_of(object), queue);
                }
                _ => {}
            }
        }
        let troubles = self.hands.put_all(objects).await;
        self.trouble(troubles);
    }

    async fn do_one(&mut self, deed: Deed, guest: bool, groups: &mut Vec<Value>) {
        let done = match deed {
            Deed::Put(_) => Ok(()),
            Deed::Submit { group, pods, recreate } => {
                self.submit(group, pods, recreate, guest, groups).await;
                Ok(())
            }
            Deed::Delete(target) => self.delete(&target).await,
            Deed::Evict(target) => self.evict(&target).await,
            Deed::Ungate(target) => self.ungate(&target).await,
            Deed::Configure(text) => self.configure(&text).await,
            // Such files are skipped.
            Deed::Rollout(..) => Ok(()),
            Deed::Fault(_) => {
                self.stop_krafla().await;
                self.start_krafla();
                Ok(())
            }
        };
        if let Err(trouble) = done {
            self.trouble(vec![trouble]);
        }
    }

    async fn submit(
        &mut self,
        group: Option<Value>,
        pods: Vec<Value>,
        recreate: bool,
        guest: bool,
        groups: &mut Vec<Value>,
    ) {
        let group = group.filter(|_| self.knows_groups);
        let key = group.as_ref().map(key_of);
        if let (Some(group), Some(key)) = (&group, &key) {
            let queue = group["spec"]["queue"].as_str().unwrap_or_default();
            self.eyes.seen().submitted(key, queue);
        }
        if recreate {
            for pod in &pods {
                let mut again = pod.clone();
                again["spec"]["schedulingGates"] = json!([]);
                self.recreated.insert(key_of(pod));
                self.templates.insert(key_of(pod), again);
            }
        }
        if let (Some(group), true) = (&group, guest) {
            let done = self.hands.make_group(group).await;
            self.trouble(done.err().into_iter().collect());
        }
        // Where there is a quota, pods are made when their job has been let in, as Volcano's controller does.
        let held_back = key.clone().filter(|key| self.quotas.contains(&key.0));
        match held_back {
            Some(key) => {
                let now = Instant::now();
                self.later.extend(pods.into_iter().map(|pod| (now, Some(key.clone()), pod)));
            }
            None if self.are_told_apart(&pods) => {
                for (i, pod) in pods.into_iter().enumerate() {
                    if i > 0 {
                        self.wait_until(next_second()).await;
                    }
                    self.make_pods(vec![pod]).await;
                }
            }
            None => self.make_pods(pods).await,
        }
        groups.extend(group.filter(|_| !guest));
    }

    /// Whether the file tells equal pods apart that schedulers order by age, and those of one age by UID, which is
    /// chance. Then each has to have an age of its own, and an API server counts ages in seconds.
    fn are_told_apart(&self, pods: &[Value]) -> bool {
        let names = || pods.iter().map(|pod| pod["metadata"]["name"].as_str().unwrap_or_default());
        (2..=MOST_TOLD_APART).contains(&pods.len())
            && names().any(|name| self.named.contains(name))
            && names().any(|name| ordinal_of(name).is_none())
    }

    pub(super) async fn make_pods(&mut self, pods: Vec<Value>) {
        let (refused, troubles) = self.hands.make_pods(pods).await;
        self.later.extend(refused.into_iter().map(|pod| (Instant::now() + TRY_AGAIN, None, pod)));
        self.trouble(troubles);
    }

    async fn delete(&mut self, target: &Target) -> Result<(), Trouble> {
        let name = &target.name;
        match target.kind {
            TargetKind::Job => {
                let found = {
                    let mut seen = self.eyes.seen();
                    let found = seen.find_job(target.namespace.as_deref(), name).map(|job| {
                        let pods = seen.live_pods(&job.pods).map(|pod| (pod.spec.uid.clone(), pod.spec.name.clone()));
                        (job.key.clone(), pods.collect::<Vec<_>>())
                    });
                    if let Some((key, pods)) = &found {
                        seen.deleted(key);
                        pods.iter().for_each(|(uid, _)| seen.hands_on(uid));
                    }
                    found
                };
                let (key, pods) = found.ok_or_else(|| format!("there is no job {name} to delete"))?;
                self.later.retain(|(_, job, _)| job.as_ref() != Some(&key));
                if self.knows_groups {
                    self.hands.delete_group(&key).await?;
                }
                for (_, pod) in pods {
                    self.hands.delete_pod(&key.0, &pod, false).await?;
                }
                Ok(())
            }
            TargetKind::Pod => {
                let (namespace, name) = self.own_pod(target)?;
                self.hands.delete_pod(&namespace, &name, false).await
            }
            TargetKind::Queue => self.hands.delete_queue(name).await,
            TargetKind::Node => {
                self.hands.delete_node(name).await?;
                // The collector of pods without a node waits for a minute; here they go with it, as in the simulator.
                let lost: Vec<(String, String)> = {
                    let mut seen = self.eyes.seen();
                    let on_it = seen.pods.iter().filter(|pod| pod.holds() && pod.spec.node.as_deref() == Some(name));
                    let lost: Vec<_> = on_it
                        .map(|pod| (pod.spec.uid.clone(), pod.spec.namespace().to_string(), pod.spec.name.to_string()))
                        .collect();
                    lost.iter().for_each(|(uid, ..)| seen.hands_on(uid));
                    lost.into_iter().map(|(_, namespace, name)| (namespace, name)).collect()
                };
                for (namespace, pod) in lost {
                    self.hands.delete_pod(&namespace, &pod, true).await?;
                }
                Ok(())
            }
        }
    }

    /// A pod that the player does something to.
    fn own_pod(&self, target: &Target) -> Result<Key, Trouble> {
        let mut seen = self.eyes.seen();
        let found = seen.find_pod(target.namespace.as_deref(), &target.name);
        let (uid, key) = found
            .map(|pod| (pod.spec.uid.clone(), (pod.spec.namespace().to_string(), pod.spec.name.to_string())))
            .ok_or_else(|| format!("there is no pod {}", target.name))?;
        seen.hands_on(&uid);
        Ok(key)
    }

    async fn evict(&mut self, target: &Target) -> Result<(), Trouble> {
        let (namespace, name) = self.own_pod(target)?;
        self.hands.evict(&namespace, &name).await
    }

    async fn ungate(&mut self, target: &Target) -> Result<(), Trouble> {
        let pods: Vec<Key> = {
            let seen = self.eyes.seen();
            let namespace = target.namespace.as_deref();
            let gated = |pod: &crate::seen::Pod| {
                let is = !pod.spec.gates.is_empty();
                is.then(|| (pod.spec.namespace().to_string(), pod.spec.name.to_string()))
            };
            match target.kind {
                TargetKind::Job => {
                    let job = seen.find_job(namespace, &target.name);
                    job.into_iter().flat_map(|job| seen.live_pods(&job.pods)).filter_map(gated).collect()
                }
                _ => seen.find_pod(namespace, &target.name).and_then(gated).into_iter().collect(),
            }
        };
        if pods.is_empty() {
            return Err(format!("{} {} has no scheduling gate to take off", target.kind.as_str(), target.name));
        }
        for (namespace, name) in pods {
            self.hands.ungate(&namespace, &name).await?;
        }
        Ok(())
    }

    async fn configure(&mut self, text: &str) -> Result<(), Trouble> {
        // Renamed into its place, so that no half of it is read.
        let new = self.folder.path().join("new.conf");
        std::fs::write(&new, text).map_err(|error| format!("the configuration file: {error}"))?;
        std::fs::rename(&new, self.configuration()).map_err(|error| format!("the configuration file: {error}"))?;
        if let Kind::Sandbox { registry, .. } = &self.ground.kind {
            self.gangs &= has_gangs("config", text, *registry);
        }
        self.wait_until(Instant::now() + CONFIGURED_WITHIN).await;
        Ok(())
    }
}
