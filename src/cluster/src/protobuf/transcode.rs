//! From a message to JSON, by a table of its fields.

use k8s_openapi::jiff::Timestamp;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use super::Malformed;

/// Fields of a message that are read; others are skipped.
pub(super) type Fields = &'static [Field];

/// A field of a message.
pub(super) struct Field {
    pub(super) tag: u32,
    /// As JSON calls it.
    pub(super) name: &'static str,
    pub(super) form: Form,
    /// Whether it is there when it is empty: a pointer in Go, or a list without `omitempty`. Of other single values the
    /// server writes even those that JSON leaves out.
    pub(super) may_be_empty: bool,
}

/// What a field holds.
pub(super) enum Form {
    Text,
    Integer,
    Bool,
    Time,
    Message(Fields),
    /// A message whose fields JSON has among those of the message around it.
    Inline(Fields),
    Texts,
    Integers,
    Messages(Fields),
    TextMap,
    QuantityMap,
    /// A message of which it is enough to know that it is there.
    Present,
}

/// A value as it stands on the wire.
#[derive(Clone, Copy)]
enum Wire<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
}

impl<'a> Wire<'a> {
    fn bytes(self, of: &Field) -> Result<&'a [u8], Malformed> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Varint(_) => Err(Malformed::Form(of.name)),
        }
    }

    fn text(self, of: &Field) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes(of)?).map_err(|_| Malformed::Form(of.name))
    }

    fn integer(self, of: &Field) -> Result<i64, Malformed> {
        match self {
            Self::Varint(value) => Ok(value.cast_signed()),
            Self::Bytes(_) => Err(Malformed::Form(of.name)),
        }
    }
}

/// The next field of a message; what has neither of the two forms is passed over.
fn next<'a>(rest: &mut &'a [u8]) -> Result<Option<(u32, Wire<'a>)>, Malformed> {
    while !rest.is_empty() {
        let (tag, wire_type) = decode_key(rest)?;
        match wire_type {
            WireType::Varint => return Ok(Some((tag, Wire::Varint(decode_varint(rest)?)))),
            WireType::LengthDelimited => {
                let length = usize::try_from(decode_varint(rest)?).map_err(|_| Malformed::Short)?;
                let (value, after) = rest.split_at_checked(length).ok_or(Malformed::Short)?;
                *rest = after;
                return Ok(Some((tag, Wire::Bytes(value))));
            }
            other => skip_field(other, tag, rest, DecodeContext::default())?,
        }
    }
    Ok(None)
}

/// Writes the fields of `message` as members of an object that has been opened; `is_first` if it has none yet.
pub(super) fn write_fields(
    message: &[u8],
    fields: Fields,
    mut is_first: bool,
    out: &mut Vec<u8>,
) -> Result<bool, Malformed> {
    let mut values: Vec<(&'static Field, Wire<'_>)> = Vec::new();
    let mut rest = message;
    while let Some((tag, value)) = next(&mut rest)? {
        if let Some(field) = fields.iter().find(|field| field.tag == tag) {
            values.push((field, value));
        }
    }
    // What is repeated may lie apart.
    values.sort_by_key(|(field, _)| field.tag);
    for same in values.chunk_by(|(a, _), (b, _)| a.tag == b.tag) {
        let field = same[0].0;
        if let Form::Inline(inner) = field.form {
            for (_, value) in same {
                is_first = write_fields(value.bytes(field)?, inner, is_first, out)?;
            }
            continue;
        }
        let before = out.len();
        name(field, is_first, out);
        if write_value(field, same, out)? {
            is_first = false;
        } else {
            out.truncate(before);
        }
    }
    // A list has no bytes when it is empty.
    let is_missing = |field: &&Field| {
        field.may_be_empty
            && matches!(field.form, Form::Messages(_))
            && !values.iter().any(|(of, _)| of.tag == field.tag)
    };
    for field in fields.iter().filter(is_missing) {
        name(field, std::mem::take(&mut is_first), out);
        out.extend_from_slice(b"[]");
    }
    Ok(is_first)
}

fn name(field: &Field, is_first: bool, out: &mut Vec<u8>) {
    if !is_first {
        out.push(b',');
    }
    text(field.name, out);
    out.push(b':');
}

/// Writes what the field holds. `false` if JSON leaves it out.
fn write_value(field: &Field, values: &[(&Field, Wire<'_>)], out: &mut Vec<u8>) -> Result<bool, Malformed> {
    // Of what stands there twice, the last one counts.
    let Some(&(_, value)) = values.last() else { return Ok(false) };
    match field.form {
        Form::Text => {
            let value = value.text(field)?;
            text(value, out);
            Ok(field.may_be_empty || !value.is_empty())
        }
        Form::Integer => {
            let value = value.integer(field)?;
            integer(value, out);
            Ok(field.may_be_empty || value != 0)
        }
        Form::Bool => {
            let value = value.integer(field)? != 0;
            out.extend_from_slice(if value { b"true" } else { b"false" });
            Ok(field.may_be_empty || value)
        }
        Form::Time => time(field, value, out),
        Form::Message(inner) => object(value.bytes(field)?, inner, out).map(|()| true),
        Form::Present => {
            out.extend_from_slice(b"{}");
            Ok(true)
        }
        Form::Inline(_) => Ok(false),
        Form::Texts => list(values, out, |value, out| {
            text(value.text(field)?, out);
            Ok(())
        }),
        Form::Integers => list(values, out, |value, out| {
            integer(value.integer(field)?, out);
            Ok(())
        }),
        Form::Messages(inner) => list(values, out, |value, out| object(value.bytes(field)?, inner, out)),
        Form::TextMap => map(field, values, out, |value, out| {
            text(value.text(field)?, out);
            Ok(())
        }),
        Form::QuantityMap => map(field, values, out, |value, out| quantity(field, value, out)),
    }
}

fn list(
    values: &[(&Field, Wire<'_>)],
    out: &mut Vec<u8>,
    write: impl Fn(Wire<'_>, &mut Vec<u8>) -> Result<(), Malformed>,
) -> Result<bool, Malformed> {
    out.push(b'[');
    for (i, &(_, value)) in values.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write(value, out)?;
    }
    out.push(b']');
    Ok(true)
}

/// A map is a list of entries: key 1, value 2.
fn map(
    field: &Field,
    values: &[(&Field, Wire<'_>)],
    out: &mut Vec<u8>,
    write: impl Fn(Wire<'_>, &mut Vec<u8>) -> Result<(), Malformed>,
) -> Result<bool, Malformed> {
    out.push(b'{');
    for (i, &(_, entry)) in values.iter().enumerate() {
        let (mut key, mut value) = (Wire::Bytes(b""), Wire::Bytes(b""));
        let mut rest = entry.bytes(field)?;
        while let Some((tag, wire)) = next(&mut rest)? {
            match tag {
                1 => key = wire,
                2 => value = wire,
                _ => {}
            }
        }
        if i > 0 {
            out.push(b',');
        }
        text(key.text(field)?, out);
        out.push(b':');
        write(value, out)?;
    }
    out.push(b'}');
    Ok(true)
}

fn object(message: &[u8], fields: Fields, out: &mut Vec<u8>) -> Result<(), Malformed> {
    out.push(b'{');
    write_fields(message, fields, true, out)?;
    out.push(b'}');
    Ok(())
}

/// `resource.Quantity`: its text.
fn quantity(field: &Field, value: Wire<'_>, out: &mut Vec<u8>) -> Result<(), Malformed> {
    let mut amount = "0";
    let mut rest = value.bytes(field)?;
    while let Some((tag, value)) = next(&mut rest)? {
        if tag == 1 {
            amount = value.text(field)?;
        }
    }
    text(amount, out);
    Ok(())
}

/// `metav1.Time`: seconds and nanoseconds; without either it is no time.
fn time(field: &Field, value: Wire<'_>, out: &mut Vec<u8>) -> Result<bool, Malformed> {
    let (mut seconds, mut nanoseconds) = (None, 0);
    let mut rest = value.bytes(field)?;
    while let Some((tag, value)) = next(&mut rest)? {
        match tag {
            1 => seconds = Some(value.integer(field)?),
            2 => nanoseconds = i32::try_from(value.integer(field)?).map_err(|_| Malformed::Form(field.name))?,
            _ => {}
        }
    }
    let Some(seconds) = seconds else { return Ok(false) };
    let at = Timestamp::new(seconds, nanoseconds).map_err(|_| Malformed::Form(field.name))?;
    text(&at.to_string(), out);
    Ok(true)
}

pub(super) fn text(value: &str, out: &mut Vec<u8>) {
    // Writing to memory does not fail, and a string always has a JSON form.
    let _ = serde_json::to_writer(out, value);
}

fn integer(value: i64, out: &mut Vec<u8>) {
    let _ = serde_json::to_writer(out, &value);
}

#[cfg(test)]
mod tests {
    use prost::encoding::{encode_key, encode_varint};

    use super::*;

    const INNER: Fields = &[
        Field { tag: 1, name: "text", form: Form::Text, may_be_empty: false },
        Field { tag: 2, name: "pointer", form: Form::Text, may_be_empty: true },
    ];
    const OUTER: Fields = &[
        Field { tag: 1, name: "n", form: Form::Integer, may_be_empty: false },
        Field { tag: 2, name: "maybe", form: Form::Integer, may_be_empty: true },
        Field { tag: 3, name: "list", form: Form::Messages(INNER), may_be_empty: false },
        Field { tag: 4, name: "inner", form: Form::Message(INNER), may_be_empty: false },
        Field { tag: 5, name: "", form: Form::Inline(INNER), may_be_empty: false },
        Field { tag: 6, name: "amounts", form: Form::QuantityMap, may_be_empty: false },
        Field { tag: 7, name: "at", form: Form::Time, may_be_empty: false },
        Field { tag: 8, name: "yes", form: Form::Bool, may_be_empty: true },
    ];
    const LIST: Fields = &[Field { tag: 1, name: "items", form: Form::Messages(OUTER), may_be_empty: true }];

    fn varint(tag: u32, value: i64) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_key(tag, WireType::Varint, &mut bytes);
        encode_varint(value.cast_unsigned(), &mut bytes);
        bytes
    }

    fn bytes(tag: u32, value: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_key(tag, WireType::LengthDelimited, &mut bytes);
        encode_varint(value.len() as u64, &mut bytes);
        bytes.extend_from_slice(value);
        bytes
    }

    fn read(message: &[u8]) -> Result<String, Malformed> {
        let mut out = Vec::new();
        object(message, OUTER, &mut out)?;
        Ok(String::from_utf8(out).expect("JSON is UTF-8"))
    }

    #[test]
    fn fields_become_members() {
        let table: Vec<(Vec<u8>, &str)> = vec![
            (vec![], "{}"),
            (varint(1, 7), r#"{"n":7}"#),
            (varint(1, -7), r#"{"n":-7}"#),
            // What JSON leaves out, and what it does not.
            ([varint(1, 0), varint(2, 0), varint(8, 0)].concat(), r#"{"maybe":0,"yes":false}"#),
            (bytes(4, &[bytes(1, b""), bytes(2, b"")].concat()), r#"{"inner":{"pointer":""}}"#),
            (bytes(4, b""), r#"{"inner":{}}"#),
            (bytes(5, b""), "{}"),
            ([bytes(5, &bytes(1, b"a\"b")), varint(1, 1)].concat(), r#"{"n":1,"text":"a\"b"}"#),
            // Repeated fields may lie apart; of others the last one counts.
            (
                [bytes(3, &bytes(1, b"a")), varint(1, 1), bytes(3, b""), varint(1, 2)].concat(),
                r#"{"n":2,"list":[{"text":"a"},{}]}"#,
            ),
            // Numbers and forms that nobody knows are passed over: a varint, bytes, eight bytes, four bytes.
            (
                [varint(99, 1), bytes(98, b"x"), vec![0x99, 6], vec![0; 8], vec![0x9d, 6], vec![0; 4], varint(1, 3)]
                    .concat(),
                r#"{"n":3}"#,
            ),
            (bytes(6, &[bytes(1, b"cpu"), bytes(2, &bytes(1, b"100m"))].concat()), r#"{"amounts":{"cpu":"100m"}}"#),
            (bytes(7, &varint(1, 1_767_225_600)), r#"{"at":"2026-01-01T00:00:00Z"}"#),
            // Go's zero time.
            (bytes(7, b""), "{}"),
        ];
        for (message, expected) in table {
            assert_eq!(read(&message).expect(expected), expected);
        }
    }

    #[test]
    fn a_list_is_there_when_it_is_empty() {
        for (message, expected) in [(vec![], r#"{"items":[]}"#), (bytes(1, b""), r#"{"items":[{}]}"#)] {
            let mut out = Vec::new();
            object(&message, LIST, &mut out).expect(expected);
            assert_eq!(String::from_utf8(out).expect("JSON is UTF-8"), expected);
        }
    }

    #[test]
    fn what_is_cut_short_or_of_another_form_is_an_error() {
        let whole = [bytes(4, &bytes(1, b"abc")), varint(1, 300)].concat();
        assert!(read(&whole).is_ok());
        for end in 1..whole.len() {
            // Between two fields a message may end.
            assert_eq!(read(&whole[..end]).is_ok(), end == 7, "{end}");
        }
        let wrong = [bytes(1, b"x"), varint(4, 1), bytes(4, &varint(1, 1)), bytes(4, &bytes(1, &[0xff])), vec![7, 7]];
        for message in wrong {
            assert!(read(&message).is_err(), "{message:?}");
        }
    }
}
