//! The record of a MaxMind database as the text of fields of a JSON object, of bounded length.

use core::fmt;
use std::io::Write;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Most bytes of the text of a record.
const MOST_BYTES: usize = 64 << 10;

/// The fields of a record: `,"name":value` for each. A record that is no map has one field, `value`.
#[derive(Default)]
pub(super) struct RecordText(pub(super) Vec<u8>);

impl<'de> Deserialize<'de> for RecordText {
    fn deserialize<D: Deserializer<'de>>(record: D) -> Result<Self, D::Error> {
        let mut text = Vec::new();
        record.deserialize_any(RecordFields(&mut text))?;
        Ok(Self(text))
    }
}

/// Writes the fields of the record itself.
struct RecordFields<'t>(&'t mut Vec<u8>);

/// Writes a value.
struct JsonWriter<'t>(&'t mut Vec<u8>);

fn too_long<E: Error>() -> E {
    E::custom(format_args!("the record is longer than {MOST_BYTES} bytes"))
}

fn push<E: Error>(text: &mut Vec<u8>, bytes: &[u8]) -> Result<(), E> {
    if text.len() + bytes.len() > MOST_BYTES {
        return Err(too_long());
    }
    text.extend_from_slice(bytes);
    Ok(())
}

fn string<E: Error>(text: &mut Vec<u8>, value: &str) -> Result<(), E> {
    // Escapes take six bytes for one at most.
    if text.len() + value.len() > MOST_BYTES {
        return Err(too_long());
    }
    serde_json::to_writer(&mut *text, value).map_err(E::custom)
}

fn plain<E: Error>(text: &mut Vec<u8>, value: impl fmt::Display) -> Result<(), E> {
    if text.len() > MOST_BYTES {
        return Err(too_long());
    }
    write!(text, "{value}").map_err(E::custom)
}

macro_rules! values {
    ($($name:ident($kind:ty)),*) => {
        $(fn $name<E: Error>(self, value: $kind) -> Result<(), E> {
            plain(self.0, value)
        })*
    };
}

impl<'de> Visitor<'de> for JsonWriter<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of a MaxMind database")
    }

    values!(visit_bool(bool), visit_i64(i64), visit_u64(u64), visit_u128(u128), visit_i128(i128));

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        // JSON has no number for these: infinities and NaN.
        if value.is_finite() { plain(self.0, value) } else { push(self.0, b"null") }
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        string(self.0, value)
    }

    fn visit_bytes<E: Error>(self, value: &[u8]) -> Result<(), E> {
        string(self.0, &String::from_utf8_lossy(&value[..value.len().min(MOST_BYTES)]))
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        push(self.0, b"null")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        push(self.0, b"[")?;
        let begin = self.0.len();
        loop {
            let before = self.0.len();
            if before > begin {
                push(self.0, b",")?;
            }
            if values.next_element_seed(JsonWriter(&mut *self.0))?.is_none() {
                self.0.truncate(before);
                return push(self.0, b"]");
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        push(self.0, b"{")?;
        let begin = self.0.len();
        loop {
            let before = self.0.len();
            if before > begin {
                push(self.0, b",")?;
            }
            if fields.next_key_seed(JsonWriter(&mut *self.0))?.is_none() {
                self.0.truncate(before);
                return push(self.0, b"}");
            }
            push(self.0, b":")?;
            fields.next_value_seed(JsonWriter(&mut *self.0))?;
        }
    }
}

impl<'de> DeserializeSeed<'de> for JsonWriter<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for RecordFields<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record of a MaxMind database")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        loop {
            let before = self.0.len();
            push(self.0, b",")?;
            if fields.next_key_seed(JsonWriter(&mut *self.0))?.is_none() {
                self.0.truncate(before);
                return Ok(());
            }
            let is_prefix = &self.0[before..] == b",\"prefix\"";
            push(self.0, b":")?;
            fields.next_value_seed(JsonWriter(&mut *self.0))?;
            // The network has this name.
            if is_prefix {
                self.0.truncate(before);
            }
        }
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        push(self.0, b",\"value\":")?;
        string(self.0, value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        push(self.0, b",\"value\":")?;
        plain(self.0, value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        push(self.0, b",\"value\":")?;
        plain(self.0, value)
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<(), E> {
        push(self.0, b",\"value\":")?;
        plain(self.0, value)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        push(self.0, b",\"value\":")?;
        plain(self.0, value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        push(self.0, b",\"value\":")?;
        JsonWriter(self.0).visit_f64(value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, values: A) -> Result<(), A::Error> {
        push(self.0, b",\"value\":")?;
        JsonWriter(self.0).visit_seq(values)
    }
}
