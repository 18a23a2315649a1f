//! Fields of the messages that are read, by number. Numbers never change, and what is new is skipped until it stands here.
//!
//! Of a pod it is what `thin_pod` keeps. From Kubernetes 1.37's `generated.proto`, and its Go types for what may be empty.

use super::transcode::{Field, Fields, Form};

/// How to read an object of this kind.
pub(super) fn fields_of(kind: &str) -> Option<Fields> {
    match kind {
        "Pod" => Some(POD),
        "PodList" => Some(POD_LIST),
        "Status" => Some(STATUS),
        _ => None,
    }
}

const fn field(tag: u32, name: &'static str, form: Form) -> Field {
    Field { tag, name, form, may_be_empty: false }
}

const fn text(tag: u32, name: &'static str) -> Field {
    field(tag, name, Form::Text)
}

const fn maybe_text(tag: u32, name: &'static str) -> Field {
    Field { tag, name, form: Form::Text, may_be_empty: true }
}

const fn integer(tag: u32, name: &'static str) -> Field {
    field(tag, name, Form::Integer)
}

const fn maybe_integer(tag: u32, name: &'static str) -> Field {
    Field { tag, name, form: Form::Integer, may_be_empty: true }
}

const fn truth(tag: u32, name: &'static str) -> Field {
    field(tag, name, Form::Bool)
}

const fn maybe_truth(tag: u32, name: &'static str) -> Field {
    Field { tag, name, form: Form::Bool, may_be_empty: true }
}

const fn time(tag: u32, name: &'static str) -> Field {
    field(tag, name, Form::Time)
}

const fn texts(tag: u32, name: &'static str) -> Field {
    field(tag, name, Form::Texts)
}

const fn integers(tag: u32, name: &'static str) -> Field {
    field(tag, name, Form::Integers)
}

const fn texts_by_key(tag: u32, name: &'static str) -> Field {
    field(tag, name, Form::TextMap)
}

const fn quantities(tag: u32, name: &'static str) -> Field {
    field(tag, name, Form::QuantityMap)
}

const fn present(tag: u32, name: &'static str) -> Field {
    field(tag, name, Form::Present)
}

const fn message(tag: u32, name: &'static str, fields: Fields) -> Field {
    field(tag, name, Form::Message(fields))
}

const fn messages(tag: u32, name: &'static str, fields: Fields) -> Field {
    field(tag, name, Form::Messages(fields))
}

/// A list that is there when it is empty.
const fn every_message(tag: u32, name: &'static str, fields: Fields) -> Field {
    Field { tag, name, form: Form::Messages(fields), may_be_empty: true }
}

const fn inline(tag: u32, fields: Fields) -> Field {
    field(tag, "", Form::Inline(fields))
}

const STATUS: Fields = &[
    message(1, "metadata", LIST_META),
    text(2, "status"),
    text(3, "message"),
    text(4, "reason"),
    message(5, "details", STATUS_DETAILS),
    integer(6, "code"),
];

const STATUS_DETAILS: Fields = &[
    text(1, "name"),
    text(2, "group"),
    text(3, "kind"),
    text(6, "uid"),
    messages(4, "causes", STATUS_CAUSE),
    integer(5, "retryAfterSeconds"),
];

const STATUS_CAUSE: Fields = &[text(1, "reason"), text(2, "message"), text(3, "field")];

const POD_LIST: Fields = &[message(1, "metadata", LIST_META), every_message(2, "items", POD)];

const LIST_META: Fields = &[text(2, "resourceVersion"), text(3, "continue"), maybe_integer(4, "remainingItemCount")];

const POD: Fields =
    &[message(1, "metadata", OBJECT_META), message(2, "spec", POD_SPEC), message(3, "status", POD_STATUS)];

const POD_STATUS: Fields = &[
    text(1, "phase"),
    messages(2, "conditions", POD_CONDITION),
    text(4, "reason"),
    text(11, "nominatedNodeName"),
    time(7, "startTime"),
    messages(10, "initContainerStatuses", CONTAINER_STATUS),
    messages(8, "containerStatuses", CONTAINER_STATUS),
    text(9, "qosClass"),
    messages(13, "ephemeralContainerStatuses", CONTAINER_STATUS),
    text(14, "resize"),
    messages(15, "resourceClaimStatuses", POD_RESOURCE_CLAIM_STATUS),
];

const POD_RESOURCE_CLAIM_STATUS: Fields = &[text(1, "name"), maybe_text(2, "resourceClaimName")];

const CONTAINER_STATUS: Fields = &[
    text(1, "name"),
    message(2, "state", CONTAINER_STATE),
    message(3, "lastState", CONTAINER_STATE),
    truth(4, "ready"),
    integer(5, "restartCount"),
    quantities(10, "allocatedResources"),
    message(11, "resources", RESOURCE_REQUIREMENTS),
];

const CONTAINER_STATE: Fields = &[
    message(1, "waiting", CONTAINER_STATE_WAITING),
    present(2, "running"),
    message(3, "terminated", CONTAINER_STATE_TERMINATED),
];

const CONTAINER_STATE_TERMINATED: Fields = &[integer(1, "exitCode"), text(3, "reason")];

const CONTAINER_STATE_WAITING: Fields = &[text(1, "reason")];

const POD_CONDITION: Fields =
    &[text(1, "type"), text(2, "status"), time(4, "lastTransitionTime"), text(5, "reason"), text(6, "message")];

const POD_SPEC: Fields = &[
    messages(1, "volumes", VOLUME),
    messages(20, "initContainers", CONTAINER),
    messages(2, "containers", CONTAINER),
    texts_by_key(7, "nodeSelector"),
    text(10, "nodeName"),
    truth(11, "hostNetwork"),
    message(18, "affinity", AFFINITY),
    text(19, "schedulerName"),
    messages(22, "tolerations", TOLERATION),
    text(24, "priorityClassName"),
    maybe_integer(25, "priority"),
    maybe_text(31, "preemptionPolicy"),
    quantities(32, "overhead"),
    messages(33, "topologySpreadConstraints", TOPOLOGY_SPREAD_CONSTRAINT),
    maybe_truth(37, "hostUsers"),
    messages(38, "schedulingGates", POD_SCHEDULING_GATE),
    messages(39, "resourceClaims", POD_RESOURCE_CLAIM),
    message(40, "resources", RESOURCE_REQUIREMENTS),
    message(43, "schedulingGroup", POD_SCHEDULING_GROUP),
];

const POD_SCHEDULING_GROUP: Fields = &[maybe_text(1, "podGroupName")];

const POD_RESOURCE_CLAIM: Fields =
    &[text(1, "name"), maybe_text(3, "resourceClaimName"), maybe_text(4, "resourceClaimTemplateName")];

const POD_SCHEDULING_GATE: Fields = &[text(1, "name")];

const TOPOLOGY_SPREAD_CONSTRAINT: Fields = &[
    integer(1, "maxSkew"),
    text(2, "topologyKey"),
    text(3, "whenUnsatisfiable"),
    message(4, "labelSelector", LABEL_SELECTOR),
    maybe_integer(5, "minDomains"),
    maybe_text(6, "nodeAffinityPolicy"),
    maybe_text(7, "nodeTaintsPolicy"),
    texts(8, "matchLabelKeys"),
];

const TOLERATION: Fields =
    &[text(1, "key"), text(2, "operator"), text(3, "value"), text(4, "effect"), maybe_integer(5, "tolerationSeconds")];

const AFFINITY: Fields = &[
    message(1, "nodeAffinity", NODE_AFFINITY),
    message(2, "podAffinity", POD_AFFINITY),
    message(3, "podAntiAffinity", POD_AFFINITY),
];

/// PodAntiAffinity has the same.
const POD_AFFINITY: Fields = &[
    messages(1, "requiredDuringSchedulingIgnoredDuringExecution", POD_AFFINITY_TERM),
    messages(2, "preferredDuringSchedulingIgnoredDuringExecution", WEIGHTED_POD_AFFINITY_TERM),
];

const WEIGHTED_POD_AFFINITY_TERM: Fields = &[integer(1, "weight"), message(2, "podAffinityTerm", POD_AFFINITY_TERM)];

const POD_AFFINITY_TERM: Fields = &[
    message(1, "labelSelector", LABEL_SELECTOR),
    texts(2, "namespaces"),
    text(3, "topologyKey"),
    message(4, "namespaceSelector", LABEL_SELECTOR),
    texts(5, "matchLabelKeys"),
    texts(6, "mismatchLabelKeys"),
];

const NODE_AFFINITY: Fields = &[
    message(1, "requiredDuringSchedulingIgnoredDuringExecution", NODE_SELECTOR),
    messages(2, "preferredDuringSchedulingIgnoredDuringExecution", PREFERRED_SCHEDULING_TERM),
];

const PREFERRED_SCHEDULING_TERM: Fields = &[integer(1, "weight"), message(2, "preference", NODE_SELECTOR_TERM)];

const NODE_SELECTOR: Fields = &[messages(1, "nodeSelectorTerms", NODE_SELECTOR_TERM)];

const NODE_SELECTOR_TERM: Fields = &[
    messages(1, "matchExpressions", NODE_SELECTOR_REQUIREMENT),
    messages(2, "matchFields", NODE_SELECTOR_REQUIREMENT),
];

const NODE_SELECTOR_REQUIREMENT: Fields = &[text(1, "key"), text(2, "operator"), texts(3, "values")];

const CONTAINER: Fields = &[
    text(1, "name"),
    text(2, "image"),
    messages(6, "ports", CONTAINER_PORT),
    message(8, "resources", RESOURCE_REQUIREMENTS),
    maybe_text(24, "restartPolicy"),
    messages(25, "restartPolicyRules", CONTAINER_RESTART_RULE),
];

const CONTAINER_RESTART_RULE: Fields =
    &[text(1, "action"), message(2, "exitCodes", CONTAINER_RESTART_RULE_ON_EXIT_CODES)];

const CONTAINER_RESTART_RULE_ON_EXIT_CODES: Fields = &[text(1, "operator"), integers(2, "values")];

const RESOURCE_REQUIREMENTS: Fields =
    &[quantities(1, "limits"), quantities(2, "requests"), messages(3, "claims", RESOURCE_CLAIM)];

const RESOURCE_CLAIM: Fields = &[text(1, "name"), text(2, "request")];

const CONTAINER_PORT: Fields =
    &[integer(2, "hostPort"), integer(3, "containerPort"), text(4, "protocol"), text(5, "hostIP")];

const VOLUME: Fields = &[text(1, "name"), inline(2, VOLUME_SOURCE)];

const VOLUME_SOURCE: Fields = &[
    present(1, "hostPath"),
    present(2, "emptyDir"),
    message(3, "gcePersistentDisk", GCE_DISK),
    message(4, "awsElasticBlockStore", AWS_DISK),
    message(8, "iscsi", ISCSI),
    message(10, "persistentVolumeClaim", PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE),
    message(11, "rbd", RBD),
    message(13, "cinder", CINDER_VOLUME_SOURCE),
    message(18, "azureFile", AZURE_FILE_VOLUME_SOURCE),
    message(20, "vsphereVolume", VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE),
    message(22, "azureDisk", AZURE_DISK_VOLUME_SOURCE),
    message(24, "portworxVolume", PORTWORX_VOLUME_SOURCE),
    message(28, "csi", CSI),
    message(29, "ephemeral", EPHEMERAL_VOLUME_SOURCE),
];

const EPHEMERAL_VOLUME_SOURCE: Fields = &[message(1, "volumeClaimTemplate", PERSISTENT_VOLUME_CLAIM_TEMPLATE)];

const PERSISTENT_VOLUME_CLAIM_TEMPLATE: Fields =
    &[message(1, "metadata", OBJECT_META), message(2, "spec", PERSISTENT_VOLUME_CLAIM_SPEC)];

const PERSISTENT_VOLUME_CLAIM_SPEC: Fields = &[
    texts(1, "accessModes"),
    message(4, "selector", LABEL_SELECTOR),
    message(2, "resources", VOLUME_RESOURCE_REQUIREMENTS),
    text(3, "volumeName"),
    maybe_text(5, "storageClassName"),
    maybe_text(6, "volumeMode"),
    message(7, "dataSource", TYPED_LOCAL_OBJECT_REFERENCE),
    message(8, "dataSourceRef", TYPED_OBJECT_REFERENCE),
    maybe_text(9, "volumeAttributesClassName"),
];

const TYPED_OBJECT_REFERENCE: Fields =
    &[maybe_text(1, "apiGroup"), text(2, "kind"), text(3, "name"), maybe_text(4, "namespace")];

const TYPED_LOCAL_OBJECT_REFERENCE: Fields = &[maybe_text(1, "apiGroup"), text(2, "kind"), text(3, "name")];

const VOLUME_RESOURCE_REQUIREMENTS: Fields = &[quantities(1, "limits"), quantities(2, "requests")];

const LABEL_SELECTOR: Fields =
    &[texts_by_key(1, "matchLabels"), messages(2, "matchExpressions", LABEL_SELECTOR_REQUIREMENT)];

const LABEL_SELECTOR_REQUIREMENT: Fields = &[text(1, "key"), text(2, "operator"), texts(3, "values")];

const CSI: Fields = &[text(1, "driver")];

const PORTWORX_VOLUME_SOURCE: Fields = &[text(1, "volumeID")];

const AZURE_DISK_VOLUME_SOURCE: Fields = &[text(1, "diskName"), text(2, "diskURI")];

const VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE: Fields = &[text(1, "volumePath")];

const AZURE_FILE_VOLUME_SOURCE: Fields = &[text(1, "secretName"), text(2, "shareName")];

const CINDER_VOLUME_SOURCE: Fields = &[text(1, "volumeID")];

const RBD: Fields = &[texts(1, "monitors"), text(2, "image"), text(4, "pool"), truth(8, "readOnly")];

const PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE: Fields = &[text(1, "claimName"), truth(2, "readOnly")];

const ISCSI: Fields = &[text(1, "targetPortal"), text(2, "iqn"), integer(3, "lun"), truth(6, "readOnly")];

const AWS_DISK: Fields = &[text(1, "volumeID"), truth(4, "readOnly")];

const GCE_DISK: Fields = &[text(1, "pdName"), truth(4, "readOnly")];

const OBJECT_META: Fields = &[
    text(1, "name"),
    text(3, "namespace"),
    text(5, "uid"),
    text(6, "resourceVersion"),
    time(8, "creationTimestamp"),
    time(9, "deletionTimestamp"),
    texts_by_key(11, "labels"),
    texts_by_key(12, "annotations"),
    messages(13, "ownerReferences", OWNER_REFERENCE),
];

const OWNER_REFERENCE: Fields =
    &[text(5, "apiVersion"), text(1, "kind"), text(3, "name"), text(4, "uid"), maybe_truth(6, "controller")];
