//! What a cluster is: quantities, resources, ids, tasks, jobs, queues, nodes; the state of it all, its journal and its
//! books.
//!
//! Absent on purpose: Kubernetes types (they stop in `krafla-api`), I/O, clocks, threads, floats in amounts, and hash
//! maps that can be iterated.

pub mod apply;
mod apply_objects;
pub mod budget;
mod by_node;
pub mod check;
pub mod cluster_event;
pub mod devices;
pub mod dra;
pub mod elastic_quota;
pub mod event;
pub mod ids;
pub mod job;
pub mod journal;
pub mod labels;
pub mod ledger;
pub mod name;
pub mod news;
pub mod node;
mod node_log;
pub mod plain_number;
pub mod pod;
pub mod pod_affinity;
pub mod pod_details;
pub mod priority;
pub mod quantity;
pub mod queue;
mod queue_tree;
pub mod reservation;
pub mod resources;
pub mod service;
pub mod shape;
pub mod state;
pub mod storage;
pub mod subgroup;
pub mod taints;
pub mod task;
pub mod task_status;
pub mod time;
pub mod unchecked;
pub mod usage;

pub use budget::{Budget, BudgetSpec};
pub use by_node::ByNode;
pub use elastic_quota::{ElasticQuota, ElasticQuotaSpec};
pub use event::{Event, Problem, QuotaSpec};
pub use ids::{JobId, NodeId, QueueId, ShapeId, TaskId};
pub use job::{Job, JobPhase, PodGroupSpec};
pub use name::Name;
pub use news::News;
pub use node::{Node, NodeSpec};
pub use pod::{PodPhase, PodShape, PodSpec, QUEUE_GATE};
pub use pod_details::PodDetails;
pub use queue::{Queue, QueueSpec};
pub use reservation::Reservation;
pub use resources::{Amounts, Limit, Limits, ResourceId, ResourceNames, Resources, Shortfall};
pub use shape::Shape;
pub use state::ClusterState;
pub use task::{QueueGate, Task};
pub use task_status::TaskStatus;
pub use time::Time;
pub use unchecked::Unchecked;
pub use usage::{NodeUsage, NodeUsageSpec, PodUsageSpec};
