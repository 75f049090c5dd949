//! JSON: one object a line, a list of objects, and the objects that routers print, with prefixes as names.

use fibula::net::{HostBits, IpPrefix};
use serde_json::{Map, Value};

use super::{Document, Kind, Reading, Record};
use crate::text::{LineError, LineErrorKind};

pub(super) const KIND: Kind = Kind { recognise };

/// Most bytes of one object. FRRouting prints a whole table as one.
const MOST_BYTES: usize = 1 << 30;

#[derive(Default)]
struct Json {
    /// The object that is not complete yet.
    text: String,
    depth: usize,
    in_string: bool,
    escaped: bool,
}

fn recognise(line: &str) -> Option<Box<dyn Document>> {
    let line = line.trim_start();
    // A configuration file, for example, begins with a section such as `[workspace]`: its list would not be one of objects.
    let inner = line.trim_start_matches(|c: char| c == '[' || c.is_ascii_whitespace());
    let is_json = line.starts_with(['{', '[']) && (inner.is_empty() || inner.starts_with(['{', ']']));
    is_json.then(|| Box::<Json>::default() as Box<dyn Document>)
}

impl Document for Json {
    fn line(&mut self, line: &str, each: &mut dyn FnMut(Record<'_>) -> Reading) -> Reading {
        let mut start = 0;
        let mut outcome = Ok(());
        for (at, byte) in line.bytes().enumerate() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' if self.depth > 0 => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' => {
                    if self.depth == 0 {
                        start = at;
                    }
                    self.depth += 1;
                }
                b'}' if self.depth > 0 => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        self.text.push_str(&line[start..=at]);
                        let read = object(&std::mem::take(&mut self.text), each);
                        outcome = outcome.and(read);
                    }
                }
                // A list around the objects, and what separates them.
                _ if self.depth == 0
                    && !matches!(byte, b'[' | b']' | b',')
                    && !byte.is_ascii_whitespace() =>
                {
                    return Err(LineError::new(LineErrorKind::NotJson, at));
                }
                _ => {}
            }
        }
        if self.depth > 0 {
            if self.text.len() + line.len() > MOST_BYTES {
                *self = Self::default();
                return Err(LineError::new(LineErrorKind::LineTooLong { limit_bytes: MOST_BYTES }, 0));
            }
            self.text.push_str(&line[start..]);
            self.text.push('\n');
        }
        outcome
    }
}

/// Reads an object: a route, or one with routes in it.
fn object(text: &str, each: &mut dyn FnMut(Record<'_>) -> Reading) -> Reading {
    let not_json = |_| LineError::new(LineErrorKind::NotJson, 0);
    let object: Map<String, Value> = serde_json::from_str(text).map_err(not_json)?;
    let mut record = Record::default();
    flatten(&object, "", &mut record);
    if record.is_route() {
        return each(record);
    }
    let mut found = false;
    let mut outcome = Ok(());
    for (name, value) in &object {
        let Value::Array(entries) = value else { continue };
        let entries = entries.iter().filter_map(Value::as_object);
        if IpPrefix::parse(name.as_bytes(), HostBits::Mask).is_ok() {
            // Of the routes of a prefix one is in use.
            let all: Vec<_> = entries.collect();
            let selected = all.iter().find(|entry| entry.get("selected") == Some(&Value::Bool(true)));
            let Some(entry) = selected.or(all.first()) else { continue };
            let mut record = Record::default();
            record.push("prefix", name.as_str());
            flatten(entry, "", &mut record);
            found = true;
            outcome = outcome.and(each(record));
            continue;
        }
        for entry in entries {
            let mut record = Record::default();
            flatten(entry, "", &mut record);
            if record.is_route() {
                found = true;
                outcome = outcome.and(each(record));
            }
        }
    }
    if found { outcome } else { Err(LineError::new(LineErrorKind::MissingField("prefix"), 0)) }
}

/// Adds the fields of an object, those of objects in it as `outer.inner`.
fn flatten<'a>(object: &'a Map<String, Value>, outer: &str, record: &mut Record<'a>) {
    let next_hop = if outer.is_empty() { next_hop(object) } else { None };
    if let Some(next_hop) = next_hop {
        record.push("next_hop", next_hop);
    }
    for (name, value) in object {
        let name = if outer.is_empty() { name.clone() } else { format!("{outer}.{name}") };
        match value {
            Value::String(text) => record.push(name, text.as_str()),
            Value::Null => record.push(name, ""),
            Value::Number(_) | Value::Bool(_) => record.push(name, value.to_string()),
            Value::Object(inner) => flatten(inner, &name, record),
            Value::Array(values) => {
                let texts: Vec<String> = values.iter().filter_map(plain).collect();
                if !texts.is_empty() {
                    record.push(name, texts.join(" "));
                }
            }
        }
    }
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns the next hop as FRRouting and Linux write it.
fn next_hop(object: &Map<String, Value>) -> Option<&str> {
    let find = |object: &Map<String, Value>, names: &[&'static str]| -> Option<&'static str> {
        names.iter().copied().find(|name| object.get(*name).is_some_and(Value::is_string))
    };
    if let Some(Value::Array(next_hops)) = object.get("nexthops") {
        let all: Vec<&Map<String, Value>> = next_hops.iter().filter_map(Value::as_object).collect();
        let active = all.iter().find(|next_hop| next_hop.get("active") == Some(&Value::Bool(true)));
        let next_hop = active.or(all.first())?;
        let name = find(next_hop, &["ip", "gateway", "interfaceName", "dev"])?;
        return next_hop.get(name)?.as_str();
    }
    let name = find(object, &["gateway", "dev", "type"])?;
    object.get(name)?.as_str()
}
