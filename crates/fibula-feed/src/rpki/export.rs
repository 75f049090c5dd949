//! Validated ROA payloads as relying-party software exports them.
//!
//! | form | of |
//! |---|---|
//! | CSV `ASN,IP Prefix,Max Length,Trust Anchor` | routinator, RIPE's validator |
//! | CSV with `Expires` after them | rpki-client |
//! | CSV `URI,ASN,IP Prefix,Max Length,Not Before,Not After` | RIPE NCC's archive |
//! | JSON `{"roas":[{"asn":..,"prefix":..,"maxLength":..}]}` | routinator, rpki-client, RIPE, OctoRPKI |
//!
//! An AS is a number or a text such as `AS64500`. An empty maximum length is that of the prefix.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

use fibula::net::{HostBits, IpPrefix};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::validate::Payload;
use crate::value::asn;

/// Bytes of a line of CSV, and of all that is not an entry in JSON.
const MOST_LINE_BYTES: u64 = 64 << 10;

/// Entries that are reported one by one.
const REPORTED: usize = 5;

/// The content of an export.
#[derive(Debug)]
pub struct Export {
    /// Its payloads, in order.
    pub payloads: Vec<Payload>,
    /// The number of entries that were left out, because they are not payloads.
    pub left_out: u64,
    /// The first of those: where they are, and why they were left out.
    pub first_left_out: Vec<String>,
}

/// Why an export cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum ExportError {
    /// The input failed.
    Io(io::Error),
    /// The input is no export, for this reason.
    Foreign(String),
    /// Too many entries are not payloads.
    LeftOut {
        /// The first of them, and why.
        first: String,
        /// Number of them.
        count: u64,
    },
}

impl From<io::Error> for ExportError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Foreign(why) => f.write_str(why),
            Self::LeftOut { first, count: 1 } => write!(f, "{first}; 1 entry was left out"),
            Self::LeftOut { first, count } => write!(f, "{first}; {count} entries were left out"),
        }
    }
}

impl core::error::Error for ExportError {}

/// Reads an export, which is not compressed. `name` stands for it in messages. Entries that are not payloads are left out, unless `strict` is
/// set, all are so, or they are more than a few.
///
/// # Errors
/// See [`ExportError`].
pub fn read(name: &str, input: impl Read, strict: bool) -> Result<Export, ExportError> {
    let mut input = BufReader::with_capacity(64 << 10, input);
    let mut taken = ParsedEntries { name, payloads: Vec::new(), first_bad: Vec::new(), bad: 0 };
    let head = input.fill_buf()?;
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    match head.trim_ascii_start().first() {
        Some(b'{') => json(input, &mut taken)?,
        Some(_) => csv(input, &mut taken)?,
        None => return Err(ExportError::Foreign(format!("{name}: the input is empty"))),
    }
    taken.finish(strict)
}

/// The entries that were read so far.
struct ParsedEntries<'n> {
    name: &'n str,
    payloads: Vec<Payload>,
    first_bad: Vec<String>,
    bad: u64,
}

impl ParsedEntries<'_> {
    fn add(&mut self, place: fmt::Arguments<'_>, payload: Result<Payload, String>) {
        match payload {
            Ok(payload) => self.payloads.push(payload),
            Err(why) => {
                self.bad += 1;
                if self.first_bad.len() < REPORTED {
                    self.first_bad.push(format!("{}{place}: {why}", self.name));
                }
            }
        }
    }

    /// Refuses an export that lost more than a few entries.
    fn finish(self, strict: bool) -> Result<Export, ExportError> {
        let Self { name, payloads, first_bad, bad } = self;
        let read = payloads.len() as u64;
        let Some(first) = first_bad.first() else {
            if payloads.is_empty() {
                return Err(ExportError::Foreign(format!("{name}: no payload in it; {FORMS}")));
            }
            return Ok(Export { payloads, left_out: 0, first_left_out: first_bad });
        };
        if strict || payloads.is_empty() || (bad > 10 && bad * 100 > read + bad) {
            return Err(ExportError::LeftOut { first: first.clone(), count: bad });
        }
        Ok(Export { payloads, left_out: bad, first_left_out: first_bad })
    }
}

const FORMS: &str = "exports of routinator, rpki-client and RIPE are read, as CSV and as JSON";

/// Returns the payload of an entry.
fn payload(prefix: &str, max_len: Option<u8>, asn: Option<u32>) -> Result<Payload, String> {
    let Some(asn) = asn else { return Err("it has no AS number".to_owned()) };
    let prefix =
        IpPrefix::parse(prefix.trim().as_bytes(), HostBits::Refuse).map_err(|error| error.to_string())?;
    let (len, bits) = match prefix {
        IpPrefix::V4(prefix) => (prefix.len(), 32),
        IpPrefix::V6(prefix) => (prefix.len(), 128),
    };
    let max_len = max_len.unwrap_or(len);
    if !(len..=bits).contains(&max_len) {
        return Err(format!("its maximum length is {max_len}, and that of {prefix} is from {len} to {bits}"));
    }
    Ok(Payload { prefix, max_len, asn })
}

/// The columns of CSV, by their numbers.
struct Header {
    asn: usize,
    prefix: usize,
    max_len: usize,
}

impl Header {
    fn of(line: &str) -> Option<Self> {
        let names: Vec<String> = fields(line).map(str::to_ascii_lowercase).collect();
        let at = |wanted: &[&str]| names.iter().position(|name| wanted.contains(&name.as_str()));
        Some(Self {
            asn: at(&["asn", "as", "origin as"])?,
            prefix: at(&["ip prefix", "prefix"])?,
            max_len: at(&["max length", "maxlength", "max_length", "maxlen"])?,
        })
    }
}

/// Returns the fields of a line. None of them has commas: names of trust anchors and URIs do not.
fn fields(line: &str) -> impl Iterator<Item = &str> {
    line.split(',').map(|field| field.trim().trim_matches('"'))
}

fn csv(mut input: impl BufRead, taken: &mut ParsedEntries<'_>) -> Result<(), ExportError> {
    let name = taken.name;
    let mut header = None;
    let (mut line, mut number) = (Vec::new(), 0_u64);
    loop {
        line.clear();
        let mut limited = input.by_ref().take(MOST_LINE_BYTES);
        let count = limited.read_until(b'\n', &mut line)?;
        if count == 0 {
            return Ok(());
        }
        number += 1;
        if count as u64 == MOST_LINE_BYTES {
            return Err(ExportError::Foreign(format!(
                "{name}:{number}: a line is longer than {MOST_LINE_BYTES} bytes"
            )));
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let Some(Header { asn: at_asn, prefix: at_prefix, max_len: at_max_len }) = &header else {
            header = Header::of(text);
            if header.is_none() {
                return Err(ExportError::Foreign(format!(
                    "{name}:{number}: not validated ROA payloads: {FORMS}"
                )));
            }
            continue;
        };
        let field = |at: &usize| fields(text).nth(*at).unwrap_or_default();
        let max_len = match field(at_max_len) {
            "" => Ok(None),
            digits => digits.parse().map(Some).map_err(|_| "its maximum length is not a number".to_owned()),
        };
        let entry = max_len.and_then(|max_len| payload(field(at_prefix), max_len, asn(field(at_asn))));
        taken.add(format_args!(":{number}"), entry);
    }
}

/// An entry of JSON. Its other fields are not looked at.
#[derive(Deserialize)]
struct Entry {
    #[serde(default, alias = "asID", alias = "as")]
    asn: Option<Asn>,
    #[serde(default)]
    prefix: Option<String>,
    #[serde(default, rename = "maxLength", alias = "max_length", alias = "maxLen")]
    max_len: Option<u64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Asn {
    Number(u32),
    Text(String),
}

fn json(input: impl Read, taken: &mut ParsedEntries<'_>) -> Result<(), ExportError> {
    let name = taken.name;
    let mut reader = serde_json::Deserializer::from_reader(input);
    let read = File(taken).deserialize(&mut reader).and_then(|()| reader.end());
    read.map_err(|error| {
        ExportError::Foreign(format!("{name}: not validated ROA payloads ({error}); {FORMS}"))
    })
}

/// The object of a file: one of its fields has the entries.
struct File<'t, 'n>(&'t mut ParsedEntries<'n>);

impl<'de> DeserializeSeed<'de> for File<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for File<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with a list 'roas'")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "roas" | "vrps" => map.next_value_seed(Entries(&mut *self.0))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// The entries, one at a time.
struct Entries<'t, 'n>(&'t mut ParsedEntries<'n>);

impl<'de> DeserializeSeed<'de> for Entries<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Entries<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of payloads")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut number = 0_u64;
        while let Some(Entry { asn: origin, prefix, max_len }) = list.next_element()? {
            number += 1;
            let origin = match origin {
                Some(Asn::Number(number)) => Some(number),
                Some(Asn::Text(text)) => asn(&text),
                None => None,
            };
            // A length above 255 is as wrong as one above 128.
            let max_len = max_len.map(|len| u8::try_from(len).unwrap_or(u8::MAX));
            let entry = payload(&prefix.unwrap_or_default(), max_len, origin);
            self.0.add(format_args!(": entry {number}"), entry);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<String>, String> {
        let mut taken = ParsedEntries { name: "x", payloads: Vec::new(), first_bad: Vec::new(), bad: 0 };
        let read = if text.starts_with('{') {
            json(text.as_bytes(), &mut taken)
        } else {
            csv(text.as_bytes(), &mut taken)
        };
        match read {
            Ok(()) => {}
            Err(ExportError::Foreign(text)) => return Err(text),
            Err(other) => panic!("{other:?}"),
        }
        let shown = |payload: &Payload| format!("{}-{} {}", payload.prefix, payload.max_len, payload.asn);
        Ok(taken.payloads.iter().map(shown).chain(taken.first_bad).collect())
    }

    #[test]
    fn all_exports_say_the_same() {
        let expected = ["192.0.2.0/24-24 64500".to_owned(), "2001:db8::/32-48 0".to_owned()];
        for text in [
            "ASN,IP Prefix,Max Length,Trust Anchor\nAS64500,192.0.2.0/24,24,arin\nAS0,2001:db8::/32,48,ripe\n",
            "ASN,IP Prefix,Max Length,Trust Anchor,Expires\nAS64500,192.0.2.0/24,24,arin,1\nAS0,2001:db8::/32,48,ripe,2\n",
            "\u{feff}\"ASN\",\"IP Prefix\",\"Max Length\",\"Trust Anchor\"\r\n\"AS64500\",\"192.0.2.0/24\",\"24\",\"x\"\r\n\"0\",\"2001:db8::/32\",\"48\",\"y\"\r\n",
            "URI,ASN,IP Prefix,Max Length,Not Before,Not After\nrsync://x/y.roa,AS64500,192.0.2.0/24,,a,b\nrsync://x/z.roa,AS0,2001:db8::/32,48,a,b\n",
            r#"{"metadata":{"x":[1]},"roas":[{"asn":"AS64500","prefix":"192.0.2.0/24","maxLength":24,"ta":"x"},{"asn":0,"prefix":"2001:db8::/32","maxLength":48,"source":[{"a":1}]}]}"#,
        ] {
            assert_eq!(read(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn entries_that_are_no_payloads_are_named() {
        let csv = "ASN,IP Prefix,Max Length\nx,192.0.2.0/24,24\nAS1,192.0.2.1/24,24\nAS1,192.0.2.0/24,23\nAS1,192.0.2.0/24,33\nAS1,192.0.2.0/24,y\n";
        let bad = read(csv).unwrap();
        assert_eq!(bad.len(), 5);
        assert_eq!(bad[0], "x:2: it has no AS number");
        assert_eq!(bad[2], "x:4: its maximum length is 23, and that of 192.0.2.0/24 is from 24 to 32");
        assert_eq!(bad[4], "x:6: its maximum length is not a number");
        let json = r#"{"roas":[{"asn":1},{"prefix":"192.0.2.0/24"},{"asn":1,"prefix":"192.0.2.0/24","maxLength":256}]}"#;
        assert_eq!(read(json).unwrap().len(), 3);
        for bad in [
            "192.0.2.0/24 64500\n",
            "{\"roas\":1}",
            "{\"roas\":[",
            "{\"roas\":[]} x",
            "{\"roas\":[{\"asn\":[]}]}",
        ] {
            assert!(read(bad).unwrap_err().contains("not validated ROA payloads"), "{bad}");
        }
    }
}
