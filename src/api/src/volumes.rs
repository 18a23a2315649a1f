//! The volumes of a pod, as far as they bind it to places.

use k8s_openapi::api::core::v1 as core;
use krafla_model::Name;
use krafla_model::name::NamePool;
use krafla_model::storage::{Disk, PodClaim, PodVolumes};

/// Reads them. The claim of an ephemeral volume is called `<pod>-<volume>`.
pub(crate) fn volumes(pod: &str, spec: &core::PodSpec, names: &mut NamePool) -> PodVolumes {
    let mut read = PodVolumes::default();
    for volume in spec.volumes.iter().flatten() {
        if let Some(claim) = &volume.persistent_volume_claim {
            read.claims.push(PodClaim { name: names.intern(&claim.claim_name), ephemeral: false });
        } else if volume.ephemeral.is_some() {
            read.claims.push(PodClaim { name: ephemeral_claim(pod, volume).into(), ephemeral: true });
        } else if let Some(disk) = disk(volume, names) {
            read.disks.push(disk);
        }
    }
    // Two mounts of one claim are one use of it.
    let mut seen: Vec<PodClaim> = Vec::new();
    read.claims.retain(|claim| !seen.contains(claim) && (seen.push(claim.clone()), true).1);
    read
}

/// Name of the claim of an ephemeral volume.
pub(crate) fn ephemeral_claim(pod: &str, volume: &core::Volume) -> String {
    format!("{pod}-{}", volume.name)
}

fn disk(volume: &core::Volume, names: &mut NamePool) -> Option<Disk> {
    if let Some(one) = &volume.gce_persistent_disk {
        let read_only = one.read_only == Some(true);
        return Some(Disk::GcePersistentDisk { name: names.intern(&one.pd_name), read_only });
    }
    if let Some(one) = &volume.aws_elastic_block_store {
        return Some(Disk::AwsElasticBlockStore { id: names.intern(&one.volume_id) });
    }
    if let Some(one) = &volume.iscsi {
        return Some(Disk::Iscsi { iqn: names.intern(&one.iqn), read_only: one.read_only == Some(true) });
    }
    if let Some(one) = &volume.rbd {
        let mut monitors: Vec<Name> = one.monitors.iter().map(|monitor| names.intern(monitor)).collect();
        monitors.sort_unstable();
        return Some(Disk::Rbd {
            monitors,
            pool: names.intern(one.pool.as_deref().filter(|pool| !pool.is_empty()).unwrap_or("rbd")),
            image: names.intern(&one.image),
            read_only: one.read_only == Some(true),
        });
    }
    let in_tree = [
        volume.azure_disk.as_ref().map(|one| ("kubernetes.io/azure-disk", &one.disk_uri)),
        volume.azure_file.as_ref().map(|one| ("kubernetes.io/azure-file", &one.share_name)),
        volume.cinder.as_ref().map(|one| ("kubernetes.io/cinder", &one.volume_id)),
        volume.portworx_volume.as_ref().map(|one| ("kubernetes.io/portworx-volume", &one.volume_id)),
        volume.vsphere_volume.as_ref().map(|one| ("kubernetes.io/vsphere-volume", &one.volume_path)),
    ];
    let (plugin, handle) = in_tree.into_iter().flatten().next()?;
    Some(Disk::InTree { plugin: names.intern(plugin), handle: names.intern(handle) })
}
