//! What Kubernetes puts around a message: four bytes and the kind around an object, a length around an event of a watch.

use prost::Message;
use prost::bytes::{Buf, Bytes, BytesMut};

use super::Malformed;
use super::schema::fields_of;
use super::transcode::{text, write_fields};

/// How an object begins.
const MAGIC: &[u8] = b"k8s\0";
/// Bytes of a frame's length.
const LENGTH: usize = 4;

/// `runtime.Unknown`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Unknown {
    #[prost(message, optional, tag = "1")]
    pub(super) type_meta: Option<TypeMeta>,
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) raw: Bytes,
}

/// `runtime.TypeMeta`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TypeMeta {
    #[prost(string, tag = "1")]
    pub(super) api_version: String,
    #[prost(string, tag = "2")]
    pub(super) kind: String,
}

/// `metav1.WatchEvent`.
#[derive(Clone, PartialEq, Message)]
struct WatchEvent {
    #[prost(string, tag = "1")]
    kind: String,
    #[prost(message, optional, tag = "2")]
    object: Option<RawExtension>,
}

/// `runtime.RawExtension`.
#[derive(Clone, PartialEq, Message)]
struct RawExtension {
    #[prost(bytes = "bytes", tag = "1")]
    raw: Bytes,
}

/// An object's bytes.
pub(super) fn sealed(api_version: &str, kind: &str, message: &impl Message) -> Vec<u8> {
    let type_meta = TypeMeta { api_version: api_version.to_owned(), kind: kind.to_owned() };
    let unknown = Unknown { type_meta: Some(type_meta), raw: message.encode_to_vec().into() };
    let mut bytes = MAGIC.to_vec();
    unknown.encode_raw(&mut bytes);
    bytes
}

/// Writes an object as JSON.
pub(super) fn object(mut bytes: Bytes, out: &mut Vec<u8>) -> Result<(), Malformed> {
    if !bytes.starts_with(MAGIC) {
        return Err(Malformed::Magic);
    }
    bytes.advance(MAGIC.len());
    let Unknown { type_meta, raw } = Unknown::decode(bytes)?;
    let TypeMeta { api_version, kind } = type_meta.unwrap_or_default();
    let fields = fields_of(&kind).ok_or(Malformed::Kind(kind.clone()))?;
    out.extend_from_slice(b"{\"apiVersion\":");
    text(&api_version, out);
    out.extend_from_slice(b",\"kind\":");
    text(&kind, out);
    write_fields(&raw, fields, false, out)?;
    out.push(b'}');
    Ok(())
}

/// Puts the frames of a watch together from what comes in.
#[derive(Default)]
pub(super) struct Frames(BytesMut);

impl Frames {
    /// Writes a line for each frame that is whole now.
    pub(super) fn push(&mut self, data: Bytes, out: &mut Vec<u8>) -> Result<(), Malformed> {
        self.0.extend_from_slice(&data);
        loop {
            let Some(length) = self.0.first_chunk::<LENGTH>() else { return Ok(()) };
            let end = LENGTH + u32::from_be_bytes(*length) as usize;
            if self.0.len() < end {
                return Ok(());
            }
            let mut frame = self.0.split_to(end).freeze();
            frame.advance(LENGTH);
            event(frame, out)?;
        }
    }
}

fn event(frame: Bytes, out: &mut Vec<u8>) -> Result<(), Malformed> {
    let WatchEvent { kind, object: content } = WatchEvent::decode(frame)?;
    out.extend_from_slice(b"{\"type\":");
    text(&kind, out);
    out.extend_from_slice(b",\"object\":");
    object(content.unwrap_or_default().raw, out)?;
    out.extend_from_slice(b"}\n");
    Ok(())
}
