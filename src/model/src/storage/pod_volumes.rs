//! The volumes of a pod, as far as they bind it to places.

use serde::{Deserialize, Serialize};

use crate::name::Name;

/// What a pod uses. Most pods have none of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct PodVolumes {
    /// Claims in its namespace, in the order of its volumes.
    pub claims: Vec<PodClaim>,
    /// Disks that it names itself.
    pub disks: Vec<Disk>,
}

impl PodVolumes {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.claims.is_empty() && self.disks.is_empty()
    }
}

/// A claim that a pod uses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PodClaim {
    /// Its name; that of an ephemeral volume is `<pod>-<volume>`.
    pub name: Name,
    /// Whether it is made for this pod alone, and goes with it.
    pub ephemeral: bool,
}

/// A disk that a pod names itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Disk {
    /// A persistent disk of Google Compute Engine.
    GcePersistentDisk {
        /// Its name.
        name: Name,
        /// Whether it is only read.
        read_only: bool,
    },
    /// A volume of AWS Elastic Block Store.
    AwsElasticBlockStore {
        /// Its id.
        id: Name,
    },
    /// A disk by iSCSI.
    Iscsi {
        /// Its qualified name.
        iqn: Name,
        /// Whether it is only read.
        read_only: bool,
    },
    /// An image of Ceph.
    Rbd {
        /// Monitors; sorted.
        monitors: Vec<Name>,
        /// The pool.
        pool: Name,
        /// The image.
        image: Name,
        /// Whether it is only read.
        read_only: bool,
    },
    /// One of another plugin, which counts only where a node has limits.
    InTree {
        /// The plugin: `kubernetes.io/cinder`.
        plugin: Name,
        /// What it calls the disk.
        handle: Name,
    },
}

impl Disk {
    /// Whether two pods on one node cannot both have theirs.
    pub fn conflicts(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::GcePersistentDisk { name, read_only },
                Self::GcePersistentDisk { name: other, read_only: other_read_only },
            ) => name == other && !(*read_only && *other_read_only),
            (Self::AwsElasticBlockStore { id }, Self::AwsElasticBlockStore { id: other }) => id == other,
            (Self::Iscsi { iqn, read_only }, Self::Iscsi { iqn: other, read_only: other_read_only }) => {
                iqn == other && !(*read_only && *other_read_only)
            }
            (
                Self::Rbd { monitors, pool, image, read_only },
                Self::Rbd { monitors: others, pool: other_pool, image: other_image, read_only: other_read_only },
            ) => {
                monitors.iter().any(|monitor| others.contains(monitor))
                    && (pool, image) == (other_pool, other_image)
                    && !(*read_only && *other_read_only)
            }
            _ => false,
        }
    }

    /// Whether some disk may conflict with it.
    pub fn is_exclusive(&self) -> bool {
        !matches!(self, Self::InTree { .. })
    }

    /// Plugin and handle of one that a driver may have taken over.
    pub fn in_tree(&self) -> Option<(&str, &Name)> {
        match self {
            Self::GcePersistentDisk { name, .. } => Some(("kubernetes.io/gce-pd", name)),
            Self::AwsElasticBlockStore { id } => Some(("kubernetes.io/aws-ebs", id)),
            Self::InTree { plugin, handle } => Some((plugin, handle)),
            Self::Iscsi { .. } | Self::Rbd { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_is_only_read_may_be_shared_and_ebs_never() {
        let gce = |read_only| Disk::GcePersistentDisk { name: "d".into(), read_only };
        let iscsi = |read_only| Disk::Iscsi { iqn: "q".into(), read_only };
        let ebs = || Disk::AwsElasticBlockStore { id: "d".into() };
        let rbd = |monitors: &[&str], read_only| Disk::Rbd {
            monitors: monitors.iter().map(|monitor| (*monitor).into()).collect(),
            pool: "p".into(),
            image: "i".into(),
            read_only,
        };
        for (one, other, conflict) in [
            (gce(true), gce(true), false),
            (gce(true), gce(false), true),
            (iscsi(true), iscsi(true), false),
            (iscsi(false), iscsi(true), true),
            (ebs(), ebs(), true),
            (ebs(), gce(false), false),
            (rbd(&["a", "b"], false), rbd(&["b"], true), true),
            (rbd(&["a", "b"], true), rbd(&["b"], true), false),
            (rbd(&["a"], false), rbd(&["b"], false), false),
        ] {
            assert_eq!(one.conflicts(&other), conflict, "{one:?} {other:?}");
            assert_eq!(other.conflicts(&one), conflict, "{other:?} {one:?}");
        }
    }
}
