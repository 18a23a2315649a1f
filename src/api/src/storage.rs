//! Claims, volumes, storage classes and what drivers say of nodes.
//!
//! Decided here, for what cannot be read: a size or a selector of a claim, of a volume or of an amount of storage keeps the
//! object out, since a pod could only be placed on a guess by it. A node affinity that cannot be read matches no node.

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::storage::v1 as storage;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use krafla_model::labels::{NodeSelectorTerm, Requirement, Selector, Test};
use krafla_model::quantity::{self, Unit};
use krafla_model::storage::{
    AccessModes, AttachmentSpec, ClaimRef, ClaimSpec, CsiDriverSpec, CsiNodeSpec, StorageCapacitySpec,
    StorageClassSpec, VolumePhase, VolumeSource, VolumeSpec,
};
use krafla_model::{Name, Problem};

use crate::converter::Converter;
use crate::duration::shown;
use crate::pod::controller_of;
use crate::report::{Report, annotation};
use crate::selectors;

/// The class, as it was written before there was a field for it; it goes before the field.
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

impl Converter {
    /// Reads a PersistentVolumeClaim.
    pub fn claim(&mut self, claim: &core::PersistentVolumeClaim) -> (Option<ClaimSpec>, Vec<Problem>) {
        let mut report = Report::namespaced("persistentvolumeclaim", &claim.metadata);
        let read = self.read_claim(claim, &mut report);
        (read, report.into_problems())
    }

    fn read_claim(&mut self, claim: &core::PersistentVolumeClaim, report: &mut Report<'_>) -> Option<ClaimSpec> {
        let meta = &claim.metadata;
        let identity = self.identity(meta, report)?;
        let spec = claim.spec.as_ref();
        let status = claim.status.as_ref();
        let request = spec.and_then(|spec| spec.resources.as_ref()?.requests.as_ref()?.get(STORAGE));
        let request = request.map(|size| bytes(size, "spec.resources.requests.storage", report)).transpose().ok()?;
        let selector = spec.and_then(|spec| spec.selector.as_ref());
        let selector = selector.map(|one| self.storage_selector(one, "spec.selector", report)).transpose().ok()?;
        let names = &mut self.names;
        let owner = controller_of(meta).map(|owner| Name::from(&owner.uid));
        Some(ClaimSpec {
            class: class_of(meta, spec.and_then(|spec| spec.storage_class_name.as_deref()), names),
            access_modes: access_modes(spec.and_then(|spec| spec.access_modes.as_deref())),
            block: is_block(spec.and_then(|spec| spec.volume_mode.as_deref())),
            request,
            selector,
            volume: names.intern(spec.and_then(|spec| spec.volume_name.as_deref()).unwrap_or_default()),
            bind_completed: annotation(meta, BIND_COMPLETED).is_some(),
            lost: status.and_then(|status| status.phase.as_deref()) == Some("Lost"),
            deleting: meta.deletion_timestamp.is_some(),
            selected_node: annotation(meta, SELECTED_NODE).map(|node| names.intern(node)),
            owner,
            namespace: identity.namespace,
            name: identity.name,
            uid: identity.uid,
        })
    }

    /// Reads a PersistentVolume.
    pub fn volume(&mut self, volume: &core::PersistentVolume) -> (Option<VolumeSpec>, Vec<Problem>) {
        let mut report = Report::cluster_wide("persistentvolume", &volume.metadata);
        let read = self.read_volume(volume, &mut report);
        (read, report.into_problems())
    }

    fn read_volume(&mut self, volume: &core::PersistentVolume, report: &mut Report<'_>) -> Option<VolumeSpec> {
        let meta = &volume.metadata;
        let identity = self.identity(meta, report)?;
        let spec = volume.spec.clone().unwrap_or_default();
        let capacity = spec.capacity.as_ref().and_then(|capacity| capacity.get(STORAGE));
        let capacity = capacity.map(|size| bytes(size, "spec.capacity.storage", report)).transpose().ok()?;
        let affinity = spec.node_affinity.as_ref().and_then(|affinity| affinity.required.as_ref());
        let affinity = affinity.map(|required| self.volume_affinity(required, report));
        let names = &mut self.names;
        let claim = spec.claim_ref.as_ref().map(|claim| ClaimRef {
            namespace: names.intern(claim.namespace.as_deref().unwrap_or_default()),
            name: names.intern(claim.name.as_deref().unwrap_or_default()),
            uid: names.intern(claim.uid.as_deref().unwrap_or_default()),
        });
        Some(VolumeSpec {
            labels: selectors::labels(meta.labels.iter().flatten(), names),
            class: class_of(meta, spec.storage_class_name.as_deref(), names),
            access_modes: access_modes(spec.access_modes.as_deref()),
            block: is_block(spec.volume_mode.as_deref()),
            capacity: capacity.unwrap_or(0),
            affinity,
            claim,
            phase: match volume.status.as_ref().and_then(|status| status.phase.as_deref()) {
                Some("Available") => VolumePhase::Available,
                Some("Bound") => VolumePhase::Bound,
                Some("Released") => VolumePhase::Released,
                Some("Failed") => VolumePhase::Failed,
                _ => VolumePhase::Pending,
            },
            deleting: meta.deletion_timestamp.is_some(),
            source: self.source(&spec),
            name: identity.name,
        })
    }

    fn volume_affinity(&mut self, required: &core::NodeSelector, report: &mut Report<'_>) -> Vec<NodeSelectorTerm> {
        let terms = required.node_selector_terms.iter().enumerate();
        terms
            .filter_map(|(i, term)| match selectors::node_term(term, &mut self.names) {
                Ok(term) => Some(term),
                Err(why) => {
                    report.say(format_args!("node affinity, term {i}: {why}; the term matches no node"));
                    None
                }
            })
            .collect()
    }

    /// Where the data of a volume are, as far as limits of nodes depend on it.
    fn source(&mut self, spec: &core::PersistentVolumeSpec) -> VolumeSource {
        if let Some(csi) = &spec.csi {
            return VolumeSource::Csi {
                driver: self.names.intern(&csi.driver),
                handle: Name::from(&csi.volume_handle),
            };
        }
        let in_tree = [
            spec.aws_elastic_block_store.as_ref().map(|one| ("kubernetes.io/aws-ebs", &one.volume_id)),
            spec.gce_persistent_disk.as_ref().map(|one| ("kubernetes.io/gce-pd", &one.pd_name)),
            spec.azure_disk.as_ref().map(|one| ("kubernetes.io/azure-disk", &one.disk_uri)),
            spec.azure_file.as_ref().map(|one| ("kubernetes.io/azure-file", &one.share_name)),
            spec.cinder.as_ref().map(|one| ("kubernetes.io/cinder", &one.volume_id)),
            spec.portworx_volume.as_ref().map(|one| ("kubernetes.io/portworx-volume", &one.volume_id)),
            spec.vsphere_volume.as_ref().map(|one| ("kubernetes.io/vsphere-volume", &one.volume_path)),
        ];
        match in_tree.into_iter().flatten().next() {
            Some((plugin, handle)) => {
                VolumeSource::InTree { plugin: self.names.intern(plugin), handle: Name::from(handle) }
            }
            None => VolumeSource::Other,
        }
    }

    /// Reads a StorageClass.
    pub fn storage_class(&mut self, class: &storage::StorageClass) -> (Option<StorageClassSpec>, Vec<Problem>) {
        let mut report = Report::cluster_wide("storageclass", &class.metadata);
        let Some(identity) = self.identity(&class.metadata, &mut report) else { return (None, report.into_problems()) };
        let names = &mut self.names;
        let allowed = class.allowed_topologies.iter().flatten().map(|term| {
            let conditions = term.match_label_expressions.iter().flatten();
            let requirement = |one: &core::TopologySelectorLabelRequirement| Requirement {
                key: Name::from(&one.key),
                test: Test::In(one.values.iter().map(Name::from).collect()),
            };
            Selector(conditions.map(requirement).collect())
        });
        let spec = StorageClassSpec {
            allowed_topologies: allowed.collect(),
            provisioner: names.intern(&class.provisioner),
            waits_for_consumer: class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer"),
            name: identity.name,
        };
        (Some(spec), report.into_problems())
    }

    /// Reads a CSINode.
    pub fn csi_node(&mut self, node: &storage::CSINode) -> (Option<CsiNodeSpec>, Vec<Problem>) {
        let mut report = Report::cluster_wide("csinode", &node.metadata);
        let Some(identity) = self.identity(&node.metadata, &mut report) else { return (None, report.into_problems()) };
        let limit = |driver: &storage::CSINodeDriver| driver.allocatable.as_ref()?.count.map(i64::from);
        let names = &mut self.names;
        let mut drivers: Vec<(Name, Option<i64>)> =
            node.spec.drivers.iter().map(|driver| (names.intern(&driver.name), limit(driver))).collect();
        drivers.sort_unstable();
        let spec = CsiNodeSpec { drivers, name: identity.name };
        (Some(spec), report.into_problems())
    }

    /// Reads a CSIDriver.
    pub fn csi_driver(&mut self, driver: &storage::CSIDriver) -> (Option<CsiDriverSpec>, Vec<Problem>) {
        let mut report = Report::cluster_wide("csidriver", &driver.metadata);
        let identity = self.identity(&driver.metadata, &mut report);
        let spec = identity.map(|identity| CsiDriverSpec {
            name: identity.name,
            storage_capacity: driver.spec.storage_capacity == Some(true),
            needed_on_node: driver.spec.prevent_pod_scheduling_if_missing == Some(true),
        });
        (spec, report.into_problems())
    }

    /// Reads a CSIStorageCapacity.
    pub fn storage_capacity(
        &mut self,
        capacity: &storage::CSIStorageCapacity,
    ) -> (Option<StorageCapacitySpec>, Vec<Problem>) {
        let mut report = Report::namespaced("csistoragecapacity", &capacity.metadata);
        let read = self.read_capacity(capacity, &mut report);
        (read, report.into_problems())
    }

    fn read_capacity(
        &mut self,
        capacity: &storage::CSIStorageCapacity,
        report: &mut Report<'_>,
    ) -> Option<StorageCapacitySpec> {
        let identity = self.identity(&capacity.metadata, report)?;
        let largest = match (&capacity.maximum_volume_size, &capacity.capacity) {
            (Some(size), _) => Some(bytes(size, "maximumVolumeSize", report)),
            (None, Some(size)) => Some(bytes(size, "capacity", report)),
            (None, None) => None,
        };
        let all = capacity.capacity.as_ref().map(|size| bytes(size, "capacity", report));
        let nodes = capacity.node_topology.as_ref();
        Some(StorageCapacitySpec {
            capacity: all.transpose().ok()?.unwrap_or(0),
            largest: largest.transpose().ok()?,
            nodes: nodes.map(|one| self.storage_selector(one, "nodeTopology", report)).transpose().ok()?,
            class: self.names.intern(&capacity.storage_class_name),
            namespace: identity.namespace,
            name: identity.name,
        })
    }

    /// Reads a VolumeAttachment.
    pub fn attachment(&mut self, attachment: &storage::VolumeAttachment) -> (Option<AttachmentSpec>, Vec<Problem>) {
        let mut report = Report::cluster_wide("volumeattachment", &attachment.metadata);
        let identity = self.identity(&attachment.metadata, &mut report);
        let spec = &attachment.spec;
        let names = &mut self.names;
        let read = identity.map(|identity| AttachmentSpec {
            name: identity.name,
            attacher: names.intern(&spec.attacher),
            node: names.intern(&spec.node_name),
            volume: names.intern(spec.source.persistent_volume_name.as_deref().unwrap_or_default()),
        });
        (read, report.into_problems())
    }

    fn storage_selector(
        &mut self,
        one: &LabelSelector,
        field: &str,
        report: &mut Report<'_>,
    ) -> Result<Selector, Unreadable> {
        selectors::selector(one, &mut self.names).map_err(|why| {
            report.say(format_args!("{field}: {why}; it is left out"));
            Unreadable
        })
    }
}

const STORAGE: &str = "storage";

/// Something that was reported as unreadable.
struct Unreadable;

fn bytes(size: &Quantity, field: &str, report: &mut Report<'_>) -> Result<i64, Unreadable> {
    quantity::parse(&size.0, Unit::One).map_err(|error| {
        report.say(format_args!("{field} is `{}`: {error}; it is left out", shown(&size.0)));
        Unreadable
    })
}

fn class_of(meta: &ObjectMeta, field: Option<&str>, names: &mut krafla_model::name::NamePool) -> Name {
    names.intern(annotation(meta, CLASS).or(field).unwrap_or_default())
}

fn is_block(mode: Option<&str>) -> bool {
    mode == Some("Block")
}

fn access_modes(modes: Option<&[String]>) -> AccessModes {
    modes.into_iter().flatten().fold(AccessModes::default(), |all, mode| {
        all.and(match mode.as_str() {
            "ReadWriteOnce" => AccessModes::READ_WRITE_ONCE,
            "ReadOnlyMany" => AccessModes::READ_ONLY_MANY,
            "ReadWriteMany" => AccessModes::READ_WRITE_MANY,
            "ReadWriteOncePod" => AccessModes::READ_WRITE_ONCE_POD,
            _ => AccessModes::default(),
        })
    })
}

#[cfg(test)]
#[path = "storage_tests.rs"]
mod tests;
