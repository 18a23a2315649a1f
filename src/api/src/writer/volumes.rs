//! Volumes of pods.

use k8s_openapi::api::core::v1 as core;
use krafla_model::Name;
use krafla_model::storage::{Disk, PodClaim, PodVolumes};

use super::{list, text};

/// Writes the volumes of a pod of this name.
pub(super) fn volumes(pod: &Name, volumes: &PodVolumes) -> Option<Vec<core::Volume>> {
    let claims = volumes.claims.iter().enumerate().map(|(i, one)| claim(pod, i, one));
    let disks = volumes.disks.iter().enumerate().map(|(i, one)| disk(i, one));
    list(claims.chain(disks).collect())
}

fn claim(pod: &Name, i: usize, claim: &PodClaim) -> core::Volume {
    if claim.ephemeral {
        // Its claim is called `<pod>-<volume>`.
        let name = claim.name.strip_prefix(pod.as_str()).and_then(|rest| rest.strip_prefix('-'));
        return core::Volume {
            name: name.unwrap_or(&claim.name).to_owned(),
            ephemeral: Some(core::EphemeralVolumeSource::default()),
            ..core::Volume::default()
        };
    }
    core::Volume {
        name: format!("claim-{i}"),
        persistent_volume_claim: Some(core::PersistentVolumeClaimVolumeSource {
            claim_name: claim.name.to_string(),
            read_only: None,
        }),
        ..core::Volume::default()
    }
}

fn disk(i: usize, disk: &Disk) -> core::Volume {
    let mut volume = core::Volume { name: format!("disk-{i}"), ..core::Volume::default() };
    match disk {
        Disk::GcePersistentDisk { name, read_only } => {
            volume.gce_persistent_disk = Some(core::GCEPersistentDiskVolumeSource {
                pd_name: name.to_string(),
                read_only: Some(*read_only),
                ..Default::default()
            });
        }
        Disk::AwsElasticBlockStore { id } => {
            volume.aws_elastic_block_store =
                Some(core::AWSElasticBlockStoreVolumeSource { volume_id: id.to_string(), ..Default::default() });
        }
        Disk::Iscsi { iqn, read_only } => {
            volume.iscsi = Some(core::ISCSIVolumeSource {
                iqn: iqn.to_string(),
                read_only: Some(*read_only),
                ..Default::default()
            });
        }
        Disk::Rbd { monitors, pool, image, read_only } => {
            volume.rbd = Some(core::RBDVolumeSource {
                monitors: monitors.iter().map(ToString::to_string).collect(),
                pool: text(pool),
                image: image.to_string(),
                read_only: Some(*read_only),
                ..Default::default()
            });
        }
        Disk::InTree { plugin, handle } => in_tree(&mut volume, plugin, handle.to_string()),
    }
    volume
}

fn in_tree(volume: &mut core::Volume, plugin: &str, handle: String) {
    match plugin {
        "kubernetes.io/azure-disk" => {
            volume.azure_disk = Some(core::AzureDiskVolumeSource { disk_uri: handle, ..Default::default() });
        }
        "kubernetes.io/azure-file" => {
            volume.azure_file = Some(core::AzureFileVolumeSource { share_name: handle, ..Default::default() });
        }
        "kubernetes.io/portworx-volume" => {
            volume.portworx_volume = Some(core::PortworxVolumeSource { volume_id: handle, ..Default::default() });
        }
        "kubernetes.io/vsphere-volume" => {
            let source = core::VsphereVirtualDiskVolumeSource { volume_path: handle, ..Default::default() };
            volume.vsphere_volume = Some(source);
        }
        _ => volume.cinder = Some(core::CinderVolumeSource { volume_id: handle, ..Default::default() }),
    }
}
