//! What nodes and pods really use: asked of the metrics server, or of Prometheus, and told to the engine.
//!
//! An answer is read up to a limit and within a time. What cannot be read is said once and changes nothing: what was
//! measured before stands, and is too old to count after five minutes.

mod fetch;
mod metrics_server;
mod prometheus;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use krafla_engine::Input;
use krafla_framework::conf::compile::compile;
use krafla_framework::{Catalogue, UsageSource};
use krafla_model::{Amounts, Event, Name, NodeUsageSpec, Time};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};

use crate::client::Clients;
use crate::inbox::Inbox;

/// How often the metrics server is asked, as the descheduler of Kubernetes does.
const ASK_EVERY: Duration = Duration::from_secs(5);
/// Every how many answers the engine is told: each time it looks at whoever waits.
const TELL_EVERY: u32 = 6;

/// One reading of a node.
type Reading = BTreeMap<Name, Amounts>;

/// Who wants to know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Whether plugins of the scheduler do.
    pub(crate) plugins: bool,
    /// Where the descheduler wants to know it from.
    pub(crate) descheduler: UsageSource,
}

impl Wanted {
    /// Where to ask. Plugins go by the metrics server.
    fn source(&self) -> UsageSource {
        let mut source = self.descheduler.clone();
        source.metrics_server |= self.plugins;
        source
    }
}

/// Plugins that go by the use of nodes.
const PLUGINS: [&str; 2] = ["usage", "rescheduling"];

/// Whether a configuration of the scheduler has such a plugin.
pub(crate) fn is_asked_for(text: &str, catalogue: &Catalogue) -> bool {
    let policy = compile(text, "", catalogue).policy;
    policy.is_some_and(|policy| PLUGINS.iter().any(|name| policy.plugin(name).is_some()))
}

/// Asks as long as there is somebody to tell, wherever that is to be asked. With `begins_round`, the first answer, or that there
/// is none, begins a round.
pub(crate) async fn follow(
    clients: Clients,
    mut wanted: watch::Receiver<Wanted>,
    inbox: Inbox,
    mut begins_round: bool,
) {
    loop {
        let now = wanted.borrow_and_update().source();
        tokio::select! {
            changed = wanted.changed() => if changed.is_err() { return },
            () = ask(&clients, &now, &inbox, &mut begins_round) => {}
        }
    }
}

/// Asks one source for ever.
async fn ask(clients: &Clients, source: &UsageSource, inbox: &Inbox, begins_round: &mut bool) {
    if *source == UsageSource::default() {
        std::future::pending::<()>().await;
    }
    let mut ticks = interval(ASK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut smooth, mut n, mut troubles) = (Reading::new(), 0_u32, Troubles::default());
    loop {
        ticks.tick().await;
        let tells = n % TELL_EVERY == 0;
        n = n.wrapping_add(1);
        for event in round(clients, source, &mut smooth, &mut troubles, tells).await {
            inbox.input(Input::Event(event)).await;
        }
        if std::mem::take(begins_round) {
            inbox.input(Input::Deschedule).await;
        }
    }
}

/// What each source said when it did not answer as it should. The same words are logged once, until it answers again.
#[derive(Debug, Default)]
struct Troubles(BTreeMap<&'static str, String>);

impl Troubles {
    fn hear<T>(&mut self, who: &'static str, answer: Result<T, String>) -> Option<T> {
        match answer {
            Ok(answer) => {
                if self.0.remove(who).is_some() {
                    info!("{who}: the use of nodes is known again");
                }
                Some(answer)
            }
            Err(why) => {
                if self.0.get(who) != Some(&why) {
                    warn!("the use of nodes is not known: {why}");
                    self.0.insert(who, why);
                }
                None
            }
        }
    }
}

/// One question to each source, and what is to be told of the answers. Who cannot answer keeps nobody else from it.
async fn round(
    clients: &Clients,
    source: &UsageSource,
    smooth: &mut Reading,
    troubles: &mut Troubles,
    tells: bool,
) -> Vec<Event> {
    let mut by_node: BTreeMap<Name, NodeUsageSpec> = BTreeMap::new();
    let mut events = Vec::new();
    let at = present();
    if source.metrics_server
        && let Some(new) = troubles.hear("nodes of the metrics server", metrics_server::nodes(clients, at).await)
    {
        smoothed(smooth, new);
        if tells {
            for (node, used) in smooth.iter() {
                let spec = NodeUsageSpec { node: node.clone(), at, used: used.clone(), sample_ppm: None };
                by_node.insert(node.clone(), spec);
            }
            let pods = troubles.hear("pods of the metrics server", metrics_server::pods(clients).await);
            events.extend(pods.map(Event::PodUsage));
        }
    }
    if let (Some(prometheus), true) = (&source.prometheus, tells)
        && let Some(samples) = troubles.hear("Prometheus", prometheus::samples(clients, prometheus).await)
    {
        for (node, ppm) in samples {
            let fresh = || NodeUsageSpec { node: node.clone(), at, ..NodeUsageSpec::default() };
            by_node.entry(node.clone()).or_insert_with(fresh).sample_ppm = Some(ppm);
        }
    }
    events.extend(by_node.into_values().map(Event::NodeUsage));
    events
}

/// A tenth of what is new, so that a moment's load moves nobody. Nodes that are not measured any more are forgotten.
fn smoothed(smooth: &mut Reading, new: Reading) {
    smooth.retain(|node, _| new.contains_key(node));
    for (node, used) in new {
        let Some(old) = smooth.get_mut(&node) else {
            smooth.insert(node, used);
            continue;
        };
        for (resource, amount) in used.iter() {
            let before = old.get(resource).unwrap_or(amount);
            old.set_amount(resource, before + (amount - before) / 10);
        }
    }
}

fn present() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moments_load_counts_a_tenth() {
        let reading = |cpu: i64| Reading::from([("n".into(), Amounts::default().with("cpu", cpu))]);
        let mut smooth = Reading::new();
        for (new, wanted) in [(1_000, 1_000), (2_000, 1_100), (2_000, 1_190), (0, 1_071)] {
            smoothed(&mut smooth, reading(new));
            assert_eq!(smooth["n"].get("cpu"), Some(wanted));
        }
        smoothed(&mut smooth, Reading::new());
        assert!(smooth.is_empty());
    }
}
