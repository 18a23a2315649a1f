//! A control plane of real parts on this machine: etcd, kube-apiserver and kube-controller-manager, and a stand-in for
//! the kubelets of all nodes. For end-to-end tests, and for playing scenarios on it.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use krafla_sandbox::{Assets, ControlPlane, Kubelet, KubeletOptions, Options, create_nodes, node};
//!
//! let control_plane = ControlPlane::start(&Assets::find()?, Options::new()).await?;
//! let client = control_plane.client()?;
//! create_nodes(&client, [node("n0", "8", "32Gi").holds("nvidia.com/gpu", "4")]).await?;
//! let _kubelet = Kubelet::start(client, KubeletOptions::default());
//! # Ok(())
//! # }
//! ```
//!
//! Each control plane has its own folder, ports and processes, so that tests may run side by side. When its value is
//! dropped, or this process dies, the processes are killed and the folder is removed.
//!
//! Absent on purpose: containers, a network, node heartbeats and the controller that would miss them. A node is ready
//! because its object says so.

mod assets;
mod certificates;
mod control_plane;
mod error;
mod kubelet;
mod nodes;
mod nursery;
mod options;
mod ports;

pub use assets::{Assets, Missing};
pub use control_plane::ControlPlane;
pub use error::Error;
pub use kubelet::{EXIT_CODE, Grace, Kubelet, KubeletOptions};
pub use nodes::{NodeBuilder, create_nodes, node, set_ready};
pub use options::{CONTROLLERS, Options};
