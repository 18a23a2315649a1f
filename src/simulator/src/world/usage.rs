//! What nodes and pods use, and when somebody measures it.

use std::collections::BTreeMap;

use krafla_model::resources::unit_of;
use krafla_model::usage::WHOLE_PPM;
use krafla_model::{Amounts, Event, Name, NodeUsageSpec, PodPhase, PodUsageSpec};

use super::{Happening, World};

/// How often it is measured, in milliseconds: as the metrics server does.
const PERIOD_MS: i64 = 15_000;

/// Something that uses more or less from now on.
#[derive(Clone, Debug, PartialEq)]
pub struct Use {
    /// Who.
    pub of: UseOf,
    /// How much.
    pub amounts: Amounts,
    /// Of a node: what the policy's query answers for it, in millionths; else the part of its CPU that is used.
    pub sample_ppm: Option<i64>,
}

/// Who uses something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UseOf {
    /// A pod, by name; one that is made again uses as much.
    Pod(Name),
    /// Each pod of a job, by its name.
    Job(Name),
    /// A node, beside what its pods use.
    Node(Name),
}

/// What is used. A pod of which nothing is said uses what it asks for.
#[derive(Debug, Default)]
pub(super) struct Usage {
    said: BTreeMap<UseOf, Use>,
    is_measured: bool,
}

impl World {
    pub(super) fn changes_use(&mut self, change: Use) {
        self.usage.said.insert(change.of.clone(), change);
        let first = !std::mem::replace(&mut self.usage.is_measured, true);
        if first {
            self.agenda.add(self.now, Happening::Measure);
        } else {
            self.tell_usage();
        }
    }

    pub(super) fn measure(&mut self) {
        self.tell_usage();
        self.agenda.add(self.now + PERIOD_MS, Happening::Measure);
    }

    fn tell_usage(&mut self) {
        let mut by_node: BTreeMap<Name, Amounts> = BTreeMap::new();
        let mut pods = Vec::new();
        for pod in self.store.pods.iter().filter(|pod| !pod.gone && pod.spec.phase == PodPhase::Running) {
            let Some(node) = pod.spec.node.clone() else { continue };
            let job = &self.store.jobs[pod.job].name;
            let said = self.usage.said.get(&UseOf::Pod(pod.spec.name.clone()));
            let said = said.or_else(|| self.usage.said.get(&UseOf::Job(job.clone())));
            let used = said.map_or(&pod.spec.shape.request, |said| &said.amounts).clone();
            by_node.entry(node).or_default().add(&used);
            let (namespace, name) = (pod.spec.namespace().clone(), pod.spec.name.clone());
            pods.push(PodUsageSpec { namespace, name, used });
        }
        let mut events = Vec::new();
        for (name, node) in &self.store.nodes {
            let mut used = by_node.remove(name).unwrap_or_default();
            let said = self.usage.said.get(&UseOf::Node(name.clone()));
            if let Some(said) = said {
                used.add(&said.amounts);
            }
            let cpu = |amounts: &Amounts| i128::from(amounts.get("cpu").unwrap_or(0));
            let whole = cpu(&node.allocatable).max(1);
            let of_cpu = i64::try_from(cpu(&used) * i128::from(WHOLE_PPM) / whole).unwrap_or(i64::MAX);
            let sample_ppm = Some(said.and_then(|said| said.sample_ppm).unwrap_or(of_cpu));
            events.push(Event::NodeUsage(NodeUsageSpec { node: name.clone(), at: self.now, used, sample_ppm }));
        }
        events.push(Event::PodUsage(pods));
        for event in events {
            self.tell(event);
        }
    }
}

/// Reads amounts as a file has them.
pub fn amounts(written: &BTreeMap<String, String>) -> Result<Amounts, String> {
    let mut read = Amounts::default();
    for (resource, text) in written {
        let amount =
            krafla_model::quantity::parse(text, unit_of(resource)).map_err(|why| format!("`{resource}`: {why}"))?;
        read.set_amount(&resource.as_str().into(), amount);
    }
    Ok(read)
}
