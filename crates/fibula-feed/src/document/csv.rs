//! Comma-separated values (RFC 4180), with a header that names the columns, or with the prefix in the first one.

use fibula::net::{HostBits, IpPrefix};

use super::{Document, Kind, PREFIX, Reading, Record};
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
    fields.iter().for_each(|name| header.push(name.as_str(), "x"));
    if header.is_route() {
        return Some(Box::new(Csv { names: fields, at_header: true }));
    }
    IpPrefix::parse(fields[0].trim().as_bytes(), HostBits::Mask).ok()?;
    // Columns without names are numbered from 1.
    let names =
        (1..=fields.len()).map(|number| if number == 1 { PREFIX[0].to_owned() } else { number.to_string() });
    Some(Box::new(Csv { names: names.collect(), at_header: false }))
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
fn fields(line: &str) -> Result<Vec<String>, LineError> {
    let line = line.strip_suffix('\r').unwrap_or(line);
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
                fields.push(std::mem::take(&mut field));
                at_start = true;
                continue;
            }
            c => field.push(c),
        }
        at_start = false;
    }
    if quoted {
        return Err(LineError::new(LineErrorKind::NotQuoted, line.len()));
    }
    fields.push(field);
    Ok(fields)
}
