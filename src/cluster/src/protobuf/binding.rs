//! A bind, in protobuf.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Binding;
use prost::Message;

use super::envelope::sealed;

/// `v1.Binding`, as far as a bind says something.
#[derive(Clone, PartialEq, Message)]
struct BindingMessage {
    #[prost(message, optional, tag = "1")]
    metadata: Option<MetaMessage>,
    #[prost(message, optional, tag = "2")]
    target: Option<TargetMessage>,
}

/// `metav1.ObjectMeta`.
#[derive(Clone, PartialEq, Message)]
struct MetaMessage {
    #[prost(string, optional, tag = "1")]
    name: Option<String>,
    #[prost(string, optional, tag = "3")]
    namespace: Option<String>,
    #[prost(string, optional, tag = "5")]
    uid: Option<String>,
    #[prost(btree_map = "string, string", tag = "12")]
    annotations: BTreeMap<String, String>,
}

/// `v1.ObjectReference`.
#[derive(Clone, PartialEq, Message)]
struct TargetMessage {
    #[prost(string, optional, tag = "1")]
    kind: Option<String>,
    #[prost(string, optional, tag = "3")]
    name: Option<String>,
}

/// The bytes of a bind.
pub(crate) fn binding(binding: Binding) -> Vec<u8> {
    let Binding { metadata, target } = binding;
    let metadata = MetaMessage {
        name: metadata.name,
        namespace: metadata.namespace,
        uid: metadata.uid,
        annotations: metadata.annotations.unwrap_or_default(),
    };
    let target = TargetMessage { kind: target.kind, name: target.name };
    sealed("v1", "Binding", &BindingMessage { metadata: Some(metadata), target: Some(target) })
}
