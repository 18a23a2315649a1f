//! What the tests of this crate share: rounds on scenes.

use krafla_framework::conf::policy::ProfilePolicy;
use krafla_framework::{
    Decision, DescheduleResult, Descheduled, DeschedulerSettings, Planning, PluginSet, Policy, Reasons, Registry,
    Searcher, Session,
};
use krafla_model::check::discrepancies;
use krafla_model::pod_details::Owner;
use krafla_model::{ClusterState, Name, PodDetails};
use std::sync::Arc;

use crate::build;

/// A policy with one profile, whose only strategy has these arguments.
pub(crate) fn policy(strategy: &str, point: &str, arguments: &str, rest: &str) -> String {
    format!(
        "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\n{rest}profiles:\n- name: p\n  pluginConfig:\n  \
         - name: {strategy}\n    args: {{{arguments}}}\n  plugins: {{{point}: {{enabled: [{strategy}]}}}}\n"
    )
}

/// The same, with arguments of the evictor.
pub(crate) fn with_evictor(strategy: &str, point: &str, arguments: &str, evictor: &str) -> String {
    policy(strategy, point, arguments, "")
        .replace("  pluginConfig:\n", &format!("  pluginConfig:\n  - name: DefaultEvictor\n    args: {{{evictor}}}\n"))
}

pub(crate) fn registry() -> Registry {
    Registry { descheduler: Some(build), ..krafla_plugins::registry(krafla_actions::all()) }
}

/// What one round came to.
#[derive(Debug)]
pub(crate) struct Came {
    pub(crate) decisions: Vec<Decision>,
    pub(crate) notes: Vec<Descheduled>,
}

impl Came {
    /// Names of the pods that go, in order.
    pub(crate) fn gone(&self) -> Vec<String> {
        self.goes(|note| note.pod.name.to_string())
    }

    /// The same with where they go: `pod -> node`.
    pub(crate) fn moves(&self) -> Vec<String> {
        self.goes(|note| format!("{} -> {}", note.pod.name, note.destination.as_deref().unwrap_or("?")))
    }

    fn goes(&self, show: impl Fn(&Descheduled) -> String) -> Vec<String> {
        let goes = |note: &&Descheduled| !matches!(note.result, DescheduleResult::Refused(_));
        self.notes.iter().filter(goes).map(show).collect()
    }

    /// Why pods stay, in order.
    pub(crate) fn refusals(&self) -> Vec<String> {
        let one = |note: &Descheduled| match note.result {
            DescheduleResult::Refused(why) => Some(format!("{}: {why}", note.pod.name)),
            _ => None,
        };
        self.notes.iter().filter_map(one).collect()
    }
}

pub(crate) fn settings(policy: &str, planning: Planning) -> DeschedulerSettings {
    DeschedulerSettings { file: "policy.yaml".into(), text: policy.into(), planning, ..DeschedulerSettings::default() }
}

/// A descheduler that may have several rounds.
pub(crate) struct Rounds(Box<dyn krafla_framework::Action>);

impl Rounds {
    pub(crate) fn new(settings: &DeschedulerSettings) -> Self {
        Self(build(settings).unwrap_or_else(|problems| panic!("{}", problems.join("\n"))).action)
    }

    /// Takes over what another one remembers.
    pub(crate) fn inherit(&mut self, other: &Self) {
        self.0.recall(&other.0.memory());
    }

    /// One round, with kube-scheduler's default profile.
    pub(crate) fn next(&mut self, cluster: &mut ClusterState) -> Came {
        let registry = registry();
        let profiles = vec![ProfilePolicy::default_profile(&registry)];
        let policy = Policy { profiles, ..Policy::builtin() };
        let mut plugins = PluginSet::build(&policy, &registry);
        let (mut reasons, mut searcher) = (Reasons::default(), Searcher::default());
        let mut session = Session::open(cluster, &mut plugins, &mut reasons, &mut searcher, &[]);
        session.run(&mut *self.0);
        let outcome = session.close();
        assert_eq!(discrepancies(cluster), [], "the books are off");
        Came { decisions: outcome.decisions, notes: outcome.descheduled }
    }
}

/// One round as the descheduler of Kubernetes has it: nobody knows where pods will go.
pub(crate) fn unplanned(mut cluster: ClusterState, policy: &str) -> Came {
    Rounds::new(&settings(policy, Planning::Off)).next(&mut cluster)
}

/// One round that plans.
pub(crate) fn planned(mut cluster: ClusterState, policy: &str) -> Came {
    Rounds::new(&settings(policy, Planning::Kept)).next(&mut cluster)
}

/// A ReplicaSet that owns a pod.
pub(crate) fn owned_by(name: &str) -> PodDetails {
    let owner = Owner { kind: "ReplicaSet".into(), name: name.into(), uid: Name::from(name) };
    PodDetails { owners: vec![owner], ..PodDetails::default() }
}

/// Makes a pod one of a ReplicaSet.
pub(crate) fn own(pod: &mut krafla_model::PodSpec, name: &str) {
    Arc::make_mut(&mut pod.shape).controlled = true;
    pod.details = Some(Arc::new(owned_by(name)));
}
