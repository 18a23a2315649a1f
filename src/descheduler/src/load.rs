//! How full nodes are, by what is asked of them or by what was measured.

use std::collections::BTreeMap;

use krafla_framework::UsageSource;
use krafla_model::usage::WHOLE_PPM;
use krafla_model::{ClusterState, Name, NodeId, ResourceId, TaskId};

/// The resource that the answer of Prometheus goes by.
pub(crate) const SAMPLE: &str = "MetricResource";
/// What was measured longer ago says nothing, in milliseconds; as in Volcano.
const STALE_MS: i64 = 300_000;

/// What tells how full a node is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Source {
    /// What its pods ask for.
    #[default]
    Requests,
    /// The metrics server.
    MetricsServer,
    /// The answer to a query.
    Prometheus {
        /// The query.
        query: String,
    },
}

/// One resource that is looked at.
#[derive(Clone, Debug)]
pub(crate) struct Dimension {
    pub(crate) name: Name,
    /// `None`: the answer of Prometheus, or a resource that no node has.
    id: Option<ResourceId>,
}

/// How full one node is, by dimension.
#[derive(Clone, Debug, Default)]
pub(crate) struct Load {
    pub(crate) used: Vec<i64>,
    pub(crate) capacity: Vec<i64>,
}

/// How full nodes are.
pub(crate) struct Loads {
    source: Source,
    pub(crate) dimensions: Vec<Dimension>,
    by_node: BTreeMap<NodeId, Load>,
}

impl Load {
    /// The part that is used, in millionths; of a resource that the node has not, nothing.
    pub(crate) fn share(&self, i: usize) -> i64 {
        share(self.used[i], self.capacity[i])
    }

    /// Whether more than so many millionths are used.
    pub(crate) fn is_over(&self, i: usize, ppm: i64) -> bool {
        i128::from(self.used[i]) * i128::from(WHOLE_PPM) > i128::from(ppm) * i128::from(self.capacity[i])
            && self.capacity[i] > 0
    }

    /// So much of dimension `i` as these millionths are of it.
    pub(crate) fn part(&self, i: usize, ppm: i64) -> i64 {
        i64::try_from(i128::from(self.capacity[i]) * i128::from(ppm) / i128::from(WHOLE_PPM)).unwrap_or(i64::MAX)
    }

    pub(crate) fn add(&mut self, amounts: &[i64]) {
        self.used.iter_mut().zip(amounts).for_each(|(used, more)| *used = used.saturating_add(*more));
    }

    pub(crate) fn sub(&mut self, amounts: &[i64]) {
        self.used.iter_mut().zip(amounts).for_each(|(used, less)| *used = used.saturating_sub(*less));
    }
}

fn share(part: i64, whole: i64) -> i64 {
    if whole <= 0 {
        return 0;
    }
    i64::try_from(i128::from(part) * i128::from(WHOLE_PPM) / i128::from(whole)).unwrap_or(i64::MAX)
}

impl Source {
    /// Where the shell has to ask.
    pub(crate) fn needs(&self, usage: &mut UsageSource) {
        match self {
            Self::Requests => {}
            Self::MetricsServer => usage.metrics_server = true,
            Self::Prometheus { query } => {
                if let Some(prometheus) = &mut usage.prometheus {
                    prometheus.query.clone_from(query);
                }
            }
        }
    }
}

impl Loads {
    /// Looks at nodes. `Err` says whose use is not known.
    pub(crate) fn measure(
        cluster: &ClusterState,
        source: &Source,
        names: Vec<Name>,
        nodes: &[NodeId],
    ) -> Result<Self, String> {
        let dimension = |name: Name| Dimension { id: cluster.names().find(&name).filter(|_| name != SAMPLE), name };
        let dimensions: Vec<Dimension> = names.into_iter().map(dimension).collect();
        let mut loads = Self { source: source.clone(), dimensions, by_node: BTreeMap::new() };
        for &node in nodes {
            let load = loads.of_node(cluster, node)?;
            loads.by_node.insert(node, load);
        }
        Ok(loads)
    }

    fn of_node(&self, cluster: &ClusterState, id: NodeId) -> Result<Load, String> {
        let node = cluster.node(id);
        let mut asked = node.books().used.clone();
        asked.sub(&node.books().releasing);
        asked.add(&node.books().pipelined);
        let measured = || {
            let measured = cluster.node_usage(id).filter(|usage| cluster.now().0 - usage.at.0 <= STALE_MS);
            measured.ok_or_else(|| format!("the use of node {} was not measured in the last 5 minutes", node.name()))
        };
        let mut load = Load::default();
        for Dimension { name, id } in &self.dimensions {
            let (used, capacity) = match (&self.source, id) {
                (Source::Prometheus { .. }, _) => {
                    let sample = measured()?.sample_ppm;
                    let no_sample = || format!("Prometheus has no value for node {}", node.name());
                    (sample.ok_or_else(no_sample)?, WHOLE_PPM)
                }
                (Source::MetricsServer, Some(id)) if *id != ResourceId::PODS => {
                    (measured()?.used.get(*id), node.allocatable.get(*id))
                }
                (_, Some(id)) => (asked.get(*id), node.allocatable.get(*id)),
                (_, None) => (0, 0),
            };
            debug_assert!(!name.is_empty());
            load.used.push(used);
            load.capacity.push(capacity);
        }
        Ok(load)
    }

    /// How full a node is, with what was shifted.
    pub(crate) fn of(&self, node: NodeId) -> &Load {
        &self.by_node[&node]
    }

    /// What a pod uses; `None` if nobody can say.
    pub(crate) fn of_pod(&self, cluster: &ClusterState, task: TaskId) -> Option<Vec<i64>> {
        if let Source::Prometheus { .. } = self.source {
            return None;
        }
        let request = &cluster.shape_of(task).request;
        let measured = cluster.pod_usage(task).filter(|_| self.source == Source::MetricsServer);
        let amount = |dimension: &Dimension| match (dimension.id, measured) {
            (None, _) => 0,
            (Some(id), Some(measured)) if id != ResourceId::PODS => measured.get(id),
            (Some(id), _) => request.get(id),
        };
        Some(self.dimensions.iter().map(amount).collect())
    }

    /// What a pod probably uses, where only its node is measured: as much of that as it has of what pods there ask for.
    pub(crate) fn estimate(&self, cluster: &ClusterState, task: TaskId, node: NodeId) -> Vec<i64> {
        if let Some(known) = self.of_pod(cluster, task) {
            return known;
        }
        let books = &cluster.node(node).books();
        let cpu = |amounts: &krafla_model::Resources| amounts.get(ResourceId::CPU);
        let (own, all) = (cpu(&cluster.shape_of(task).request), cpu(&books.used));
        let n = i64::try_from(books.tasks.len()).unwrap_or(1).max(1);
        let part = if all > 0 { share(own, all) } else { WHOLE_PPM / n };
        let of_sample = |used: &i64| {
            i64::try_from(i128::from(*used) * i128::from(part) / i128::from(WHOLE_PPM)).unwrap_or(i64::MAX)
        };
        self.of(node).used.iter().map(of_sample).collect()
    }

    /// A pod leaves one node for another, if that is known.
    pub(crate) fn shift(&mut self, amounts: &[i64], from: NodeId, to: Option<NodeId>) {
        if let Some(load) = self.by_node.get_mut(&from) {
            load.sub(amounts);
        }
        if let Some(load) = to.and_then(|to| self.by_node.get_mut(&to)) {
            load.add(amounts);
        }
    }
}
