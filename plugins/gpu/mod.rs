//! Where pods go that ask for GPUs, whole or in shares: by what a placement leaves of the others.
//!
//! [`fragmentation`] measures how much of a node's idle GPUs the usual pods cannot use; `fgd` keeps that small. The others
//! are what it is compared with (`krafla simulate --experiment fgd`), and may be named in a profile as well. All of them
//! look at one node at a time, but [`random`].

pub mod best_fit;
pub mod clustering;
pub mod dot_product;
pub mod fgd;
pub mod fragmentation;
pub mod packing;
pub mod random;

use krafla_framework::ExtensionPoint::{PreScore, Score};
use krafla_framework::registry::{Build, NodePluginBuilder, NodePluginInfo};
use krafla_framework::{ExtensionPoint, NodePlugin};
use krafla_model::devices::WHOLE;
use krafla_model::node::Node;
use krafla_model::{ResourceId, Shape};
use smallvec::SmallVec;

/// What a node has left for pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Thousandths of a core.
    pub cpu_milli: i64,
    /// Thousandths of each device.
    pub devices: SmallVec<[u16; 8]>,
}

impl Left {
    /// Of a node. One whose GPUs are only counted has whole devices.
    pub fn of(node: &Node) -> Self {
        let books = node.books();
        let left = |resource| (node.allocatable.get(resource) - books.used.get(resource)).max(0);
        let devices = if books.devices.is_empty() {
            let n = usize::try_from(left(ResourceId::GPU) / i64::from(WHOLE)).unwrap_or(0);
            SmallVec::from_elem(WHOLE, n.min(usize::from(u8::MAX)))
        } else {
            books.devices.used().iter().map(|used| WHOLE.saturating_sub(*used)).collect()
        };
        Self { cpu_milli: left(ResourceId::CPU), devices }
    }

    /// Thousandths of all devices together.
    pub fn gpu_milli(&self) -> i64 {
        self.devices.iter().map(|left| i64::from(*left)).sum()
    }

    /// Devices that nobody uses.
    pub fn idle_devices(&self) -> usize {
        self.devices.iter().filter(|left| **left == WHOLE).count()
    }

    /// After a pod has come; `device` serves it if it asks for a share. Whole devices go in order.
    pub fn less(&self, ask: &Ask, device: Option<u8>) -> Self {
        let mut after = self.clone();
        after.cpu_milli -= ask.cpu_milli;
        match device {
            Some(device) => {
                if let Some(left) = after.devices.get_mut(usize::from(device)) {
                    *left = left.saturating_sub(ask.gpu_milli);
                }
            }
            None => {
                let idle = after.devices.iter_mut().filter(|left| **left == WHOLE);
                idle.take(usize::from(ask.devices)).for_each(|left| *left = 0);
            }
        }
        after
    }

    /// The devices that could serve a share, in order.
    pub fn serving(&self, milli: u16) -> impl Iterator<Item = u8> {
        (0_u8..).zip(&self.devices).filter(move |(_, left)| **left >= milli).map(|(device, _)| device)
    }

    /// The fullest device that could serve a share; of equal ones the first.
    pub fn best_fit(&self, milli: u16) -> Option<u8> {
        self.serving(milli).min_by_key(|device| self.devices[usize::from(*device)])
    }
}

/// What a pod asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ask {
    /// Thousandths of a core.
    pub cpu_milli: i64,
    /// Devices; 1 for a share.
    pub devices: u8,
    /// Thousandths of each device; 0 without devices.
    pub gpu_milli: u16,
}

impl Ask {
    /// Of a shape.
    pub fn of(shape: &Shape) -> Self {
        let share = shape.spec.gpu_share_milli;
        let whole = u8::try_from(shape.request.get(ResourceId::GPU) / i64::from(WHOLE)).unwrap_or(u8::MAX);
        let (devices, gpu_milli) = match (share, whole) {
            (0, 0) => (0, 0),
            (0, whole) => (whole, WHOLE),
            (share, _) => (1, share),
        };
        Self { cpu_milli: shape.request.get(ResourceId::CPU), devices, gpu_milli }
    }

    /// Whether it asks for a part of one device.
    pub fn is_share(&self) -> bool {
        self.devices == 1 && self.gpu_milli < WHOLE
    }

    /// Thousandths of all its devices together.
    pub fn all_gpu_milli(&self) -> i64 {
        i64::from(self.devices) * i64::from(self.gpu_milli)
    }
}

/// The plugins of this folder that a profile may name.
pub fn all() -> Vec<NodePluginBuilder> {
    const SCORE: &[ExtensionPoint] = &[Score];
    let one = |name, about, points, make: fn() -> Box<dyn NodePlugin>| NodePluginBuilder {
        info: NodePluginInfo { name, about, points, default_weight: None },
        build: Build::Plain(make),
    };
    vec![
        NodePluginBuilder {
            info: NodePluginInfo {
                name: fgd::NAME,
                about: "the placement that fragments idle GPUs least",
                points: SCORE,
                default_weight: None,
            },
            build: Build::From(|args| Ok(Box::new(fgd::Gradient::from_args(args)?))),
        },
        one(best_fit::NAME, "the node with the least CPU and GPU left", SCORE, || Box::new(best_fit::BestFit)),
        one(clustering::NAME, "nodes that run pods with as many GPUs", SCORE, || Box::new(clustering::Clustering)),
        one(dot_product::NAME, "nodes whose rest is unlike the pod", SCORE, || Box::new(dot_product::DotProduct)),
        one(packing::NAME, "shared devices first, idle nodes last", SCORE, || Box::new(packing::Packing)),
        NodePluginBuilder {
            info: NodePluginInfo {
                name: random::NAME,
                about: "any node",
                points: &[PreScore, Score],
                default_weight: None,
            },
            build: Build::From(|args| Ok(Box::new(random::Random::from_args(args)?))),
        },
    ]
}
