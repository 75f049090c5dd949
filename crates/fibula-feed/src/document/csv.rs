//! Comma-separated values (RFC 4180), with a header that names the columns; or with the prefix in the first one, or the ends of a
//! range in the first two.

use std::borrow::Cow;
use std::net::IpAddr;

use fibula::net::{HostBits, IpPrefix, parse_address};

use super::{Document, FIRST, Kind, LAST, PREFIX, Reading, Record};
use crate::text::{LineError, LineErrorKind};

pub(super) const KIND: Kind = Kind { recognise };

struct Csv {
    names: Vec<String>,
    /// Whether the next line is the header.
    at_header: bool,
}

fn recognise(line: &str) -> Option<Box<dyn Document>> {
    let fields = fields(line).ok()?;
    if fields.len() < 2 || line.starts_with('#') {
        return None;
    }
    let mut header = Record::default();
    fields.iter().for_each(|name| header.push(&**name, "x"));
    if header.is_route() {
        let names = fields.into_iter().map(Cow::into_owned).collect();
        return Some(Box::new(Csv { names, at_header: true }));
    }
    let places = if begins_with_range(&fields) {
        &[FIRST[0], LAST[0]][..]
    } else {
        IpPrefix::parse(fields[0].trim().as_bytes(), HostBits::Mask).ok()?;
        &[PREFIX[0]]
    };
    // Columns without names are numbered from 1.
    let name = |at: usize| places.get(at).map_or_else(|| (at + 1).to_string(), |&name| name.to_owned());
    Some(Box::new(Csv { names: (0..fields.len()).map(name).collect(), at_header: false }))
}

/// Returns whether two addresses that can be the ends of a range come before a value. Two addresses alone are a host and its next
/// hop.
fn begins_with_range(fields: &[Cow<'_, str>]) -> bool {
    let [first, last, _, ..] = fields else { return false };
    match (parse_address(first.trim().as_bytes()), parse_address(last.trim().as_bytes())) {
        (Ok(IpAddr::V4(first)), Ok(IpAddr::V4(last))) => first <= last,
        (Ok(IpAddr::V6(first)), Ok(IpAddr::V6(last))) => first <= last,
        _ => false,
    }
}

impl Document for Csv {
    fn line(&mut self, line: &str, each: &mut dyn FnMut(Record<'_>) -> Reading) -> Reading {
        if std::mem::take(&mut self.at_header) || line.trim().is_empty() || line.starts_with('#') {
            return Ok(());
        }
        let mut record = Record::default();
        for (name, value) in self.names.iter().zip(fields(line)?) {
            record.push(name.as_str(), value);
        }
        each(record)
    }
}

/// Returns the fields of a line.
fn fields(line: &str) -> Result<Vec<Cow<'_, str>>, LineError> {
    let line = line.strip_suffix('\r').unwrap_or(line);
    if !line.contains('"') {
        return Ok(line.split(',').map(Cow::Borrowed).collect());
    }
    let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = line.chars().peekable();
    let mut at_start = true;
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            '"' if quoted => quoted = false,
            '"' if at_start => quoted = true,
            ',' if !quoted => {
                fields.push(Cow::Owned(std::mem::take(&mut field)));
                at_start = true;
                continue;
            }
            c => field.push(c),
        }
        at_start = false;
    }
    if quoted {
        return Err(LineError::new(LineErrorKind::UnterminatedQuote, line.len()));
    }
    fields.push(Cow::Owned(field));
    Ok(fields)
}
