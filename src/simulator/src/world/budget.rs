//! PodDisruptionBudgets: the disruption controller's stand-in keeps their status up to date, and the Eviction API's asks
//! them.

use krafla_model::{BudgetSpec, Event, Name, PodPhase};

use super::World;
use super::store::{Pod, Store};

impl World {
    /// Takes in a budget. One that comes with a status keeps it; of the others the status is counted here from now on.
    pub(super) fn apply_budget(&mut self, budget: BudgetSpec) {
        let key = (budget.namespace.clone(), budget.name.clone());
        match budget.allowed {
            None => self.store.counted_budgets.insert(key.clone()),
            Some(_) => self.store.counted_budgets.remove(&key),
        };
        self.store.budgets.insert(key, budget.clone());
        self.stale_budgets.insert(budget.namespace.clone());
        self.tell(Event::Budget(budget));
    }

    pub(super) fn remove_budget(&mut self, namespace: &Name, name: &Name) {
        let key = (namespace.clone(), name.clone());
        self.store.budgets.remove(&key);
        self.store.counted_budgets.remove(&key);
    }

    /// Notes that a pod of a namespace has come, gone, or changed.
    pub(super) fn touch_budgets(&mut self, namespace: &Name) {
        if !self.store.counted_budgets.is_empty() {
            self.stale_budgets.insert(namespace.clone());
        }
    }

    /// The Eviction API's part: takes the disruption of a pod from the budget that protects it, or says why not. Pods that
    /// have ended, terminate or do not run yet need none.
    pub(super) fn take_from_budget(&mut self, index: usize) -> Result<(), String> {
        let pod = &self.store.pods[index];
        if pod.is_over() || pod.spec.deleting || pod.spec.phase == PodPhase::Pending {
            return Ok(());
        }
        let namespace = pod.spec.namespace();
        let protects = |budget: &&BudgetSpec| {
            let selector = budget.selector.as_ref();
            budget.namespace == *namespace && selector.is_some_and(|selector| selector.matches(&pod.spec.shape.labels))
        };
        let mut protecting = self.store.budgets.values().filter(protects);
        let Some(budget) = protecting.next() else { return Ok(()) };
        if let Some(other) = protecting.next() {
            let (one, other) = (&budget.name, &other.name);
            return Err(format!("500: the pod has more than one PodDisruptionBudget, {one} and {other}"));
        }
        let left = budget.allowed.unwrap_or(0).checked_sub(1).ok_or_else(|| {
            format!("429: PodDisruptionBudget {} allows 0 more disruptions now, 1 is needed", budget.name)
        })?;
        let key = (budget.namespace.clone(), budget.name.clone());
        if let Some(budget) = self.store.budgets.get_mut(&key) {
            budget.allowed = Some(left);
            self.spent_budgets.insert(key);
        }
        Ok(())
    }

    /// Tells of the budgets from which evictions were taken.
    fn tell_of_spent_budgets(&mut self) {
        for key in std::mem::take(&mut self.spent_budgets) {
            if let Some(budget) = self.store.budgets.get(&key).cloned() {
                self.tell(Event::Budget(budget));
            }
        }
    }

    /// Recounts the budgets of namespaces whose pods have changed, and tells of those that differ. Once an instant, after
    /// everything else in it.
    ///
    /// Cost: nothing where no pod of a namespace with a budget has changed, else the budgets of those namespaces times the
    /// pods ever made.
    pub(super) fn recount_budgets(&mut self) {
        // Pods first: who is told of a status knows of the evictions that it includes.
        self.tell_of_spent_budgets();
        for namespace in std::mem::take(&mut self.stale_budgets) {
            let keys = self.store.counted_budgets.iter().filter(|(ns, _)| *ns == namespace);
            for key in keys.cloned().collect::<Vec<_>>() {
                let allowed = self.store.budgets.get(&key).map(|budget| allowed(&self.store, budget));
                if let Some(budget) = self.store.budgets.get_mut(&key).filter(|budget| budget.allowed != allowed) {
                    budget.allowed = allowed;
                    let event = Event::Budget(budget.clone());
                    self.tell(event);
                }
            }
        }
    }
}

/// How many pods of a budget may be disrupted. There should be as many as there are that have not ended, and one more for
/// each that is about to be made again; healthy are those that run and do not terminate.
fn allowed(store: &Store, budget: &BudgetSpec) -> u32 {
    let Some((aim, selector)) = budget.aim.zip(budget.selector.as_ref()) else { return 0 };
    let matches = |pod: &&Pod| *pod.spec.namespace() == budget.namespace && selector.matches(&pod.spec.shape.labels);
    let (mut expected, mut healthy) = (0, 0);
    for pod in store.pods.iter().filter(|pod| !pod.is_over()).filter(matches) {
        expected += 1;
        healthy += u32::from(pod.spec.phase == PodPhase::Running && !pod.spec.deleting);
    }
    let awaited = store.awaited_pods.iter().map(|&i| &store.pods[i]).filter(matches).count();
    aim.allowed(expected + u32::try_from(awaited).unwrap_or(0), healthy)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use krafla_framework::Registry;
    use krafla_model::budget::{Aim, Share};
    use krafla_model::labels::{Labels, Requirement, Selector, Test};
    use krafla_model::{NodeSpec, PodGroupSpec, PodShape, Time};

    use super::super::{Controller, Happening, Life, Setup, Submission, Submitted, Unobserved};
    use super::*;

    fn registry() -> Registry {
        krafla_plugins::registry(krafla_actions::all())
    }

    fn pods(n: u32) -> Submission {
        let labels = Labels::from_iter([("app".into(), "x".into())]);
        let shape = Arc::new(PodShape { namespace: "default".into(), labels, ..PodShape::default() });
        let pod = |k| Submitted {
            name: format!("x-{k}").into(),
            shape: Arc::clone(&shape),
            priority: None,
            gates: Vec::new(),
            node: Some("n".into()),
            ours: true,
            life: Life { grace_ms: Some(10_000), controller: Controller::Recreate, ..Life::default() },
            attained_ms: None,
            details: None,
            restart_ms: 0,
            claims: Vec::new(),
            device_claims: Vec::new(),
        };
        Submission {
            group: PodGroupSpec { namespace: "default".into(), name: "x".into(), ..PodGroupSpec::default() },
            announced: true,
            joins: false,
            goes_with_pods: false,
            pods: (0..n).map(pod).collect(),
            kind: String::new(),
        }
    }

    fn budget(aim: Aim, allowed: Option<u32>) -> Happening {
        let app = Requirement { key: "app".into(), test: Test::In(vec!["x".into()]) };
        Happening::Object(Box::new(Event::Budget(BudgetSpec {
            namespace: "default".into(),
            name: "b".into(),
            selector: Some(Selector(vec![app])),
            aim: Some(aim),
            allowed,
            ..BudgetSpec::default()
        })))
    }

    /// A world with four running pods, one of which somebody evicts after 5 seconds, and what the scheduler is told of
    /// its budget at each of these seconds.
    fn told(aim: Aim, allowed: Option<u32>, seconds: &[i64]) -> Vec<Option<u32>> {
        let mut world = World::new(Setup::default(), registry);
        let node = NodeSpec { name: "n".into(), ..NodeSpec::default() };
        world.plan(Time(0), Happening::Object(Box::new(Event::Node(node))));
        world.plan(Time(0), budget(aim, allowed));
        world.plan(Time(0), Happening::Submit(Box::new(pods(4))));
        world.plan(Time(5_000), Happening::EvictFrom { namespace: None, name: "x-0".into() });
        let mut at = |second: &i64| {
            world.run_until(Time(second * 1_000), &mut Unobserved);
            let cluster = world.engine().cluster();
            cluster.budgets(&"default".into()).next().and_then(|budget| budget.spec.allowed)
        };
        seconds.iter().map(&mut at).collect()
    }

    #[test]
    fn a_budget_without_a_status_follows_its_pods() {
        use Aim::{MaxUnavailable, MinAvailable};
        use Share::{Count, Percent};
        // Evicted after 5 s, gone after 15 s, made again after 16 s; it has no node to go to then.
        let seconds = [1, 6, 15, 17];
        for (aim, want) in [
            (MinAvailable(Count(2)), [2, 1, 1, 1]),
            (MaxUnavailable(Count(2)), [2, 1, 1, 1]),
            (MaxUnavailable(Percent(30)), [2, 1, 1, 1]),
            (MinAvailable(Percent(60)), [1, 0, 0, 0]),
        ] {
            assert_eq!(told(aim, None, &seconds), want.map(Some), "{aim:?}");
        }
    }

    #[test]
    fn a_status_that_comes_with_the_budget_stays() {
        assert_eq!(told(Aim::MinAvailable(Share::Count(2)), Some(4), &[1, 6, 17]), [Some(4); 3]);
    }
}
