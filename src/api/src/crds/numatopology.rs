//! Volcano's Numatopology: how the processors and memory of a node hang together.

use std::collections::BTreeMap;

use schemars::JsonSchema;

use super::{fields, object};

object! {
    /// How the processors and memory of the node of the same name hang together, as its agent reports it.
    Numatopology: "nodeinfo.volcano.sh" "v1alpha1" "Numatopology" "numatopologies" ClusterResourceScope {
        /// What the agent found.
        spec: NumatopologyFields,
    }
}

fields! {
    /// What the agent of a node found.
    #[derive(JsonSchema)]
    NumatopologyFields {
        /// The kubelet's policies: `CPUManagerPolicy` and `TopologyManagerPolicy`.
        policies: BTreeMap<String, String>,
        /// What the kubelet keeps for the system, by resource: cpu, memory and ephemeral-storage.
        res_reserved: BTreeMap<String, String>,
        /// What can be used, by resource.
        numares: BTreeMap<String, ResourceFields>,
        /// Where each processor is, by its number.
        cpu_detail: BTreeMap<String, CpuFields>,
        /// What pods have been given.
        pod_allocations: Vec<PodAllocationFields>,
    }

    /// What can be used of a resource.
    #[derive(JsonSchema)]
    ResourceFields {
        /// The numbers of the processors, such as `0-3,8`.
        allocatable: String,
        /// How many there are.
        capacity: i64,
    }

    /// Where a processor is.
    #[derive(JsonSchema)]
    CpuFields {
        /// Its NUMA node.
        #[schemars(range(min = 0))]
        numa: i64,
        /// Its socket.
        #[schemars(range(min = 0))]
        socket: i64,
        /// Its core.
        #[schemars(range(min = 0))]
        core: i64,
    }

    /// What a pod has been given.
    #[derive(JsonSchema)]
    PodAllocationFields {
        /// The pod's UID.
        uid: String,
        /// The pod's name.
        name: String,
        /// The pod's namespace.
        namespace: String,
        /// What its containers have been given.
        container_allocations: Vec<ContainerAllocationFields>,
    }

    /// What a container has been given.
    #[derive(JsonSchema)]
    ContainerAllocationFields {
        /// Its name.
        name: String,
        /// Numbers of processors, or an amount, by resource.
        allocations: BTreeMap<String, String>,
    }
}
