//! What was moved where, so that nothing goes round in circles, and what did not help is not done again soon.
//!
//! - A pod that was moved stays, and so do those of its template on that node, for the cool-down.
//! - A template goes from one node to another at most once in the cool-down, and not back.
//! - Where a move did not make its node less full, the template stays there for twice as long, the next time for four
//!   times, up to [`MOST_DOUBLINGS`].
//!
//! It outlives a change of the policy, as text: a line for each move, and one for each template that moving did not help. It does
//! not outlive a restart: the first round after one may move again what was moved before.

use std::collections::BTreeMap;
use std::fmt;

use krafla_model::{ClusterState, Name, TaskId, Time};

/// Longest pause after moves that did not help: 16 cool-downs.
const MOST_DOUBLINGS: u32 = 4;
/// First words of a line.
const MOVE: &str = "moved";
const VAIN: &str = "in-vain";

/// Pods that one controller makes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Template {
    namespace: Name,
    /// Kind and name of the owner; or the group; or the pod itself.
    of: (Name, Name),
}

impl Template {
    pub(crate) fn of(cluster: &ClusterState, id: TaskId) -> Self {
        let task = cluster.task(id);
        let owner = task.details.as_ref().and_then(|details| details.owners.first());
        let of = match (owner, &task.group) {
            (Some(owner), _) => (owner.kind.clone(), owner.name.clone()),
            (None, Some(group)) => ("PodGroup".into(), group.clone()),
            (None, None) => ("Pod".into(), task.name.clone()),
        };
        Self { namespace: cluster.namespace_of(id).clone(), of }
    }
}

#[derive(Clone, Debug)]
struct Move {
    template: Template,
    from: Name,
    to: Name,
    at: Time,
    /// How full the node was, if the move was to make it less so and nobody has looked since.
    load_before: Option<i64>,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    cool_down_ms: i64,
    moves: Vec<Move>,
    /// How often in a row moving a template off a node did not help, and when that was seen last.
    vain: BTreeMap<(Template, Name), (u32, Time)>,
}

impl Memory {
    pub(crate) fn new(cool_down_ms: i64) -> Self {
        Self { cool_down_ms, ..Self::default() }
    }

    /// Forgets what is long past. Cost: linear in what is remembered.
    pub(crate) fn begin_round(&mut self, now: Time) {
        // Longer than anybody has to stay, so that the next move is known to be another one of the same kind.
        let (short, long) = (self.cool_down_ms, self.cool_down_ms << (MOST_DOUBLINGS + 1));
        self.moves.retain(|one| now.0 - one.at.0 < short || one.load_before.is_some());
        self.vain.retain(|_, (_, at)| now.0 - at.0 < long);
    }

    /// Looks whether earlier moves made their nodes less full. `load` knows how full a node is now.
    pub(crate) fn judge(&mut self, now: Time, load: impl Fn(&Name) -> Option<i64>) {
        for one in self.moves.iter_mut().filter(|one| one.at < now) {
            let Some(before) = one.load_before.take() else { continue };
            let key = (one.template.clone(), one.from.clone());
            match load(&one.from) {
                Some(after) if after >= before => {
                    let (times, at) = self.vain.entry(key).or_insert((0, now));
                    *times = (*times + 1).min(MOST_DOUBLINGS);
                    *at = now;
                }
                _ => drop(self.vain.remove(&key)),
            }
        }
    }

    /// Why a template may not leave a node now; what this round moves is its own affair.
    pub(crate) fn must_stay(&self, template: &Template, from: &Name, now: Time) -> Option<&'static str> {
        let of_it = |one: &&Move| one.template == *template && one.at < now && now.0 - one.at.0 < self.cool_down_ms;
        if self.moves.iter().filter(of_it).any(|one| one.to == *from) {
            return Some("moved here a moment ago");
        }
        let key = (template.clone(), from.clone());
        if let Some((times, at)) = self.vain.get(&key)
            && now.0 - at.0 < self.cool_down_ms << times
        {
            return Some("moving it did not help before");
        }
        None
    }

    /// Whether a template may go from one node to another. `again`: also where it went so a moment ago.
    pub(crate) fn may_go(&self, template: &Template, from: &Name, to: &Name, again: Again, now: Time) -> bool {
        let is_recent = |one: &&Move| one.template == *template && one.at < now && now.0 - one.at.0 < self.cool_down_ms;
        !self.moves.iter().filter(is_recent).any(|one| {
            let back = one.from == *to && one.to == *from;
            let same = one.from == *from && one.to == *to && again == Again::NotSoon;
            back || same
        })
    }

    /// Takes over what another one knew, as it writes it. Lines that cannot be read are left out.
    pub(crate) fn recall(&mut self, text: &str) {
        for line in text.lines() {
            if self.recall_line(line).is_none() {
                tracing::warn!(line, "a line of the memory cannot be read");
            }
        }
    }

    fn recall_line(&mut self, line: &str) -> Option<()> {
        let mut words = line.split('\t');
        let what = words.next()?;
        let mut word = || words.next().map(Name::from);
        let template = Template { namespace: word()?, of: (word()?, word()?) };
        let from = word()?;
        match what {
            MOVE => {
                let (to, at, load) = (word()?, word()?, word()?);
                let load_before = if load.is_empty() { None } else { Some(load.parse().ok()?) };
                self.moves.push(Move { template, from, to, at: Time(at.parse().ok()?), load_before });
            }
            VAIN => {
                let (times, at) = (word()?, word()?);
                self.vain.insert((template, from), (times.parse().ok()?, Time(at.parse().ok()?)));
            }
            _ => return None,
        }
        Some(())
    }

    /// Notes a move.
    pub(crate) fn note(&mut self, template: Template, from: Name, to: Name, load_before: Option<i64>, now: Time) {
        self.moves.push(Move { template, from, to, at: now, load_before });
    }
}

/// A line for each thing that is remembered, its words parted by tabs, which no name has.
impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let template = |of: &Template| format!("{}\t{}\t{}", of.namespace, of.of.0, of.of.1);
        for one in &self.moves {
            let load = one.load_before.map(|load| load.to_string()).unwrap_or_default();
            let Move { template: of, from, to, at, .. } = one;
            writeln!(f, "{MOVE}\t{}\t{from}\t{to}\t{}\t{load}", template(of), at.0)?;
        }
        for ((of, from), (times, at)) in &self.vain {
            writeln!(f, "{VAIN}\t{}\t{from}\t{times}\t{}", template(of), at.0)?;
        }
        Ok(())
    }
}

/// Whether a template may take the same way twice within the cool-down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// A rule is broken where it is, and will not be where it goes.
    Allowed,
    /// Loads come and go.
    NotSoon,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(name: &str) -> Template {
        Template { namespace: "default".into(), of: ("ReplicaSet".into(), name.into()) }
    }

    #[test]
    fn what_was_moved_stays_and_does_not_go_back() {
        let mut memory = Memory::new(100);
        let (a, b, c): (Name, Name, Name) = ("a".into(), "b".into(), "c".into());
        memory.note(template("x"), a.clone(), b.clone(), None, Time(0));
        // Within the round it is nobody's business.
        assert_eq!(memory.must_stay(&template("x"), &b, Time(0)), None);
        for (now, stays) in [(1, true), (99, true), (100, false)] {
            let now = Time(now);
            assert_eq!(memory.must_stay(&template("x"), &b, now).is_some(), stays, "{now}");
            assert_eq!(memory.must_stay(&template("x"), &a, now), None);
            assert_eq!(memory.must_stay(&template("y"), &b, now), None);
            assert_eq!(memory.may_go(&template("x"), &b, &a, Again::Allowed, now), !stays);
            assert_eq!(memory.may_go(&template("x"), &a, &b, Again::NotSoon, now), !stays);
            assert!(memory.may_go(&template("x"), &a, &b, Again::Allowed, now));
            assert!(memory.may_go(&template("x"), &a, &c, Again::NotSoon, now));
        }
    }

    #[test]
    fn moves_that_do_not_help_are_made_less_and_less_often() {
        let mut memory = Memory::new(100);
        let (a, b): (Name, Name) = ("a".into(), "b".into());
        let mut now = 0;
        for pause in [200, 400, 800, 1_600, 1_600] {
            memory.note(template("x"), a.clone(), b.clone(), Some(90), Time(now));
            now += 10;
            memory.begin_round(Time(now));
            memory.judge(Time(now), |_| Some(90));
            let stays = |at: i64| memory.must_stay(&template("x"), &a, Time(at)).is_some();
            assert!(stays(now + pause - 1) && !stays(now + pause), "{pause}");
            now += pause;
        }
        memory.note(template("x"), a.clone(), b, Some(90), Time(now));
        memory.judge(Time(now + 10), |_| Some(89));
        assert_eq!(memory.must_stay(&template("x"), &a, Time(now + 10)), None);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let (a, b): (Name, Name) = ("a".into(), "b".into());
        let mut memory = Memory::new(100);
        memory.note(template("x"), a.clone(), b.clone(), Some(90), Time(1));
        memory.judge(Time(2), |_| Some(95));
        memory.note(template("y"), b.clone(), a.clone(), Some(-1), Time(3));
        memory.note(template("z"), b.clone(), a.clone(), None, Time(4));
        let mut other = Memory::new(100);
        other.recall(&memory.to_string());
        assert_eq!(other.to_string(), memory.to_string());
        assert_eq!(memory.to_string().lines().count(), 4);
        for (name, node) in [("x", &b), ("x", &a), ("y", &a), ("z", &a), ("z", &b)] {
            let now = Time(50);
            assert_eq!(other.must_stay(&template(name), node, now), memory.must_stay(&template(name), node, now));
        }
        let before = other.to_string();
        other.recall(
            "moved\tdefault\nslept\tdefault\tReplicaSet\tx\ta\t1\t2\nin-vain\tdefault\tReplicaSet\tx\ta\tmany\t2",
        );
        assert_eq!(other.to_string(), before, "what cannot be read changes nothing");
    }
}
