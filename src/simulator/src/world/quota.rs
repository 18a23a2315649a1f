//! The quota controller's stand-in: keeps the use of each ResourceQuota up to date.

use krafla_model::{Amounts, Event, Name};

use super::World;

impl World {
    /// Recounts the quotas of a namespace from its pods that have not ended, and tells of those that differ.
    ///
    /// Pods of a job that stands at the door do not count: Volcano's controllers make them once it was let in.
    /// Cost: nothing for a namespace without a quota, else linear in pods ever made.
    pub(super) fn recount_quotas(&mut self, namespace: &Name) {
        let first = (namespace.clone(), Name::default());
        let keys: Vec<(Name, Name)> = self
            .store
            .quotas
            .range(first..)
            .map(|(key, _)| key.clone())
            .take_while(|(ns, _)| ns == namespace)
            .collect();
        for key in keys {
            let mut used = Amounts::default();
            let hard = self.store.quotas[&key].hard.clone();
            for (resource, _) in hard.iter() {
                let pods = self.store.pods.iter().filter(|pod| {
                    !pod.is_over()
                        && pod.spec.namespace() == namespace
                        && (pod.spec.node.is_some() || !self.store.jobs[pod.job].is_at_the_door())
                });
                let amount: i64 = match resource.as_str() {
                    "pods" | "count/pods" => pods.map(|_| 1).sum(),
                    name => {
                        let plain = name.strip_prefix("requests.").unwrap_or(name);
                        pods.map(|pod| pod.spec.shape.request.get(plain).unwrap_or(0)).sum()
                    }
                };
                used.set_amount(resource, amount);
            }
            if let Some(quota) = self.store.quotas.get_mut(&key).filter(|quota| quota.used != used) {
                quota.used = used;
                let event = Event::Quota(quota.clone());
                self.tell(event);
            }
        }
    }
}
