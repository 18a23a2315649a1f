//! The shape of the queue tree: who is above whom, and what is wrong with it.

use std::collections::BTreeMap;

use petgraph::graphmap::DiGraphMap;
use petgraph::visit::{Dfs, Reversed};

use crate::ids::QueueId;

/// Paths from the top to each queue, given each queue's parent (`None`: it is at the top).
///
/// A queue on a cycle, or below one, answers with itself alone: one wrong queue harms itself, not the cluster. The
/// second part names the queues that sit on a cycle. Cost: linear in queues times depth.
pub(crate) fn paths(parents: &BTreeMap<QueueId, Option<QueueId>>) -> (BTreeMap<QueueId, Vec<QueueId>>, Vec<QueueId>) {
    let mut graph = DiGraphMap::<u32, ()>::new();
    let index: BTreeMap<QueueId, u32> = parents.keys().copied().zip(0..).collect();
    for (queue, parent) in parents {
        graph.add_node(index[queue]);
        if let Some(parent) = parent.as_ref().and_then(|parent| index.get(parent)) {
            graph.add_edge(*parent, index[queue], ());
        }
    }
    let ids: Vec<QueueId> = index.keys().copied().collect();
    let mut on_cycle: Vec<QueueId> = petgraph::algo::tarjan_scc(&graph)
        .into_iter()
        .filter(|part| part.len() > 1 || graph.contains_edge(part[0], part[0]))
        .flatten()
        .map(|i| ids[i as usize])
        .collect();
    on_cycle.sort_unstable();
    let mut paths = BTreeMap::new();
    for &queue in &ids {
        let mut upwards = Vec::new();
        let mut walk = Dfs::new(Reversed(&graph), index[&queue]);
        while let Some(i) = walk.next(Reversed(&graph)) {
            upwards.push(ids[i as usize]);
        }
        let broken = upwards.iter().any(|above| on_cycle.binary_search(above).is_ok());
        if broken {
            upwards.truncate(1);
        }
        upwards.reverse();
        paths.insert(queue, upwards);
    }
    (paths, on_cycle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Id;

    #[test]
    fn a_cycle_isolates_its_queues_and_those_below() {
        let q = |i| QueueId::from_index(i);
        let parents = BTreeMap::from([
            (q(0), None),
            (q(1), Some(q(0))),
            (q(2), Some(q(1))),
            (q(3), Some(q(4))),
            (q(4), Some(q(3))),
            (q(5), Some(q(4))),
            (q(6), Some(q(6))),
        ]);
        let (paths, on_cycle) = paths(&parents);
        assert_eq!(paths[&q(2)], vec![q(0), q(1), q(2)]);
        assert_eq!(paths[&q(5)], vec![q(5)]);
        assert_eq!(on_cycle, vec![q(3), q(4), q(6)]);
    }
}
