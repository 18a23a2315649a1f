//! What a scheduler says of one pod, and where two of them differ.

use std::collections::{BTreeMap, BTreeSet};

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Nodes that fit.
    pub(crate) feasible: BTreeSet<String>,
    /// What each plugin adds to a node, its weight included: by node, then by plugin. Empty where nothing was to be
    /// chosen. A plugin that adds nothing anywhere may be left out.
    pub(crate) scores: BTreeMap<String, BTreeMap<String, i64>>,
    /// The node that was chosen.
    pub(crate) chosen: Option<String>,
    /// How many nodes made which objection, where none fits.
    pub(crate) objections: BTreeMap<String, u32>,
    /// Why other nodes do not fit, if that is known.
    pub(crate) against: BTreeMap<String, String>,
}

impl Answer {
    fn total(&self, node: &str) -> i64 {
        self.scores.get(node).map_or(0, |plugins| plugins.values().sum())
    }

    fn score(&self, node: &str, plugin: &str) -> i64 {
        self.scores.get(node).and_then(|plugins| plugins.get(plugin)).copied().unwrap_or(0)
    }

    fn is_best(&self, node: &str) -> bool {
        self.feasible.contains(node) && self.feasible.iter().all(|other| self.total(other) <= self.total(node))
    }
}

/// What a difference is about where a node fits for Krafla and not for kube-scheduler, which does not say why.
pub(crate) const FITS_FOR_KRAFLA: &str = "fits for Krafla";

/// A difference: what it is about, the node that it shows at, and the words.
#[derive(Clone, Debug)]
pub(crate) struct Difference {
    pub(crate) about: String,
    pub(crate) node: Option<String>,
    pub(crate) words: String,
}

/// Where Krafla's answer is another than kube-scheduler's.
pub(crate) fn differences(theirs: &Answer, ours: &Answer) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut say = |about: &str, node: Option<&str>, words: String| {
        found.push(Difference { about: about.to_owned(), node: node.map(str::to_owned), words });
    };
    let why = |node: &String| ours.against.get(node).map_or("", String::as_str);
    for node in theirs.feasible.difference(&ours.feasible) {
        say("feasible", Some(node), format!("{node} fits for kube-scheduler alone; Krafla: {}", why(node)));
    }
    for node in ours.feasible.difference(&theirs.feasible) {
        say(FITS_FOR_KRAFLA, Some(node), format!("{node} fits for Krafla alone"));
    }
    if theirs.feasible != ours.feasible {
        return found; // scores are relative to what fits
    }
    let plugins: BTreeSet<&String> =
        theirs.scores.values().chain(ours.scores.values()).flat_map(BTreeMap::keys).collect();
    for plugin in plugins {
        let differs = |node: &&String| theirs.score(node, plugin) != ours.score(node, plugin);
        let nodes: Vec<&String> = theirs.feasible.iter().filter(differs).collect();
        if let Some(first) = nodes.first() {
            let words = format!(
                "{plugin} scores {} nodes otherwise; {first}: {} for kube-scheduler, {} for Krafla",
                nodes.len(),
                theirs.score(first, plugin),
                ours.score(first, plugin)
            );
            say(plugin, Some(first), words);
        }
    }
    match (&theirs.chosen, &ours.chosen) {
        (Some(real), Some(own)) if !ours.is_best(real) || !theirs.is_best(own) => {
            say("choice", Some(own), format!("kube-scheduler chose {real}, and Krafla {own}"));
        }
        (Some(_), Some(_)) | (None, None) => {}
        (real, own) => say("choice", None, format!("kube-scheduler chose {real:?}, and Krafla {own:?}")),
    }
    if first_of_volumes(&theirs.objections, &ours.objections) != ours.objections {
        say("objections", None, format!("kube-scheduler: {:?}; Krafla: {:?}", theirs.objections, ours.objections));
    }
    found
}

/// kube-scheduler counts every objection of VolumeBinding to a node, and Krafla the first alone: what the former says beyond
/// that of the second and third.
fn first_of_volumes(theirs: &BTreeMap<String, u32>, ours: &BTreeMap<String, u32>) -> BTreeMap<String, u32> {
    const ALSO: [&str; 2] =
        ["node(s) didn't find available persistent volumes to bind", "node(s) did not have enough free storage"];
    let mut first = theirs.clone();
    if !theirs.contains_key("node(s) didn't match PersistentVolume's node affinity") {
        return first;
    }
    for words in ALSO {
        let own = ours.get(words).copied().unwrap_or(0);
        match first.get_mut(words) {
            Some(count) if own == 0 && *count > 0 => drop(first.remove(words)),
            Some(count) if *count > own => *count = own,
            _ => {}
        }
    }
    first
}

/// The objections in the words of a condition: `0/5 nodes are available: 3 Insufficient cpu, 2 node(s) ...`. What PreFilter
/// says stands there once, for all nodes.
pub(crate) fn objections(message: &str) -> BTreeMap<String, u32> {
    let Some((nodes, list)) = message.split_once(" nodes are available: ") else { return BTreeMap::new() };
    let nodes = nodes.strip_prefix("0/").and_then(|nodes| nodes.parse().ok());
    let list = list.split(". ").next().unwrap_or_default();
    let counted = |part: &str| {
        let (count, words) = part.trim().split_once(' ')?;
        Some((words.trim_end_matches('.').to_owned(), count.parse().ok()?))
    };
    let by_node: BTreeMap<String, u32> = list.split(", ").filter_map(counted).collect();
    match nodes {
        Some(nodes) if by_node.is_empty() => BTreeMap::from([(list.trim_end_matches('.').to_owned(), nodes)]),
        _ => by_node,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objections_are_read_from_the_message() {
        let message = "0/5 nodes are available: 2 Insufficient cpu, 3 node(s) were unschedulable. preemption: 0/5 \
                       nodes are available: 5 Preemption is not helpful for scheduling.";
        let want = BTreeMap::from([("Insufficient cpu".to_owned(), 2), ("node(s) were unschedulable".to_owned(), 3)]);
        assert_eq!(objections(message), want);
        let of_all = "0/13 nodes are available: persistentvolumeclaim \"c\" not found. not found";
        assert_eq!(objections(of_all), BTreeMap::from([("persistentvolumeclaim \"c\" not found".to_owned(), 13)]));
    }

    #[test]
    fn further_objections_of_volume_binding_do_not_count() {
        let of = |pairs: &[(&str, u32)]| {
            pairs.iter().map(|(words, n)| ((*words).to_owned(), *n)).collect::<BTreeMap<_, _>>()
        };
        let (elsewhere, space) =
            ("node(s) didn't match PersistentVolume's node affinity", "node(s) did not have enough free storage");
        assert_eq!(first_of_volumes(&of(&[(elsewhere, 4), (space, 3)]), &of(&[(elsewhere, 4)])), of(&[(elsewhere, 4)]));
        assert_eq!(first_of_volumes(&of(&[(space, 3)]), &of(&[])), of(&[(space, 3)]), "it is the only one");
    }

    fn answer(scores: &[(&str, i64)], chosen: &str) -> Answer {
        Answer {
            feasible: scores.iter().map(|(node, _)| (*node).to_owned()).collect(),
            scores: scores.iter().map(|(node, n)| ((*node).to_owned(), [("P".to_owned(), *n)].into())).collect(),
            chosen: Some(chosen.to_owned()),
            ..Answer::default()
        }
    }

    #[test]
    fn any_of_the_best_may_be_chosen_and_no_other() {
        let theirs = answer(&[("a", 3), ("b", 3), ("c", 1)], "a");
        assert!(differences(&theirs, &answer(&[("a", 3), ("b", 3), ("c", 1)], "b")).is_empty());
        assert_eq!(differences(&theirs, &answer(&[("a", 3), ("b", 3), ("c", 1)], "c"))[0].about, "choice");
        assert_eq!(differences(&theirs, &answer(&[("a", 3), ("b", 2), ("c", 1)], "a"))[0].about, "P");
        assert_eq!(differences(&theirs, &answer(&[("a", 3), ("b", 3)], "a"))[0].about, "feasible");
    }
}
