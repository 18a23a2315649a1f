//! Small clusters for tests: one line a node or job, and one call that runs a session on them.
//!
//! Amounts are written `2c4Gi3g10p`: cores (or `500m`), memory, GPUs, pod slots. What is left out is absent; a node
//! without pod slots has 110.

mod amounts;
mod run;
mod scene;

pub use amounts::amounts;
pub use run::{Outcome, ask, policy, run, run_one_by_one, scores, task_named, verdict};
pub use scene::{JobScene, QueueScene, Scene};
