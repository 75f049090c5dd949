//! The end of a row: the next hop of a route and the values after it, in every format.

use std::io::Write;

use fibula_feed::Label;

use crate::load::Columns;
use crate::objects::csv_field;
use crate::options::Format;

/// Writes next hops and values.
#[derive(Debug, Clone)]
pub(crate) struct Fields {
    format: Format,
    /// The names of the values after the next hop, as columns.
    names: Vec<String>,
    /// The same for people.
    words: Vec<String>,
    implied: bool,
    /// Whether text output prints the first value instead of the next hop.
    in_place: bool,
    /// Between columns.
    separator: u8,
    /// Before each name.
    prefix: String,
    /// Whether something follows in the row.
    is_open: bool,
}

impl Fields {
    pub(crate) fn new(format: Format, columns: &Columns) -> Self {
        let names = columns.values.iter().map(|value| unlike_own(value.column())).collect();
        let words = columns.values.iter().map(ToString::to_string).collect();
        let (prefix, implied) = (String::new(), columns.implied);
        Self {
            format,
            names,
            words,
            in_place: columns.in_place,
            implied,
            separator: b',',
            prefix,
            is_open: false,
        }
    }

    /// Returns the fields as they are appended to a row of something else.
    pub(crate) fn appended(self, separator: u8, prefix: &str) -> Self {
        Self { separator, prefix: prefix.to_owned(), is_open: true, ..self }
    }

    /// Returns a field as it is between separators. Labels have no tabs.
    fn escaped(&self, text: String) -> String {
        match self.separator {
            b',' => csv_field(&text).into_owned(),
            b' ' => Label::Text(text.into()).line(),
            _ => text,
        }
    }

    /// Returns the text of a field without a value: nothing, but a mark where nothing would not be a field.
    pub(crate) fn absent(&self) -> &'static str {
        if self.separator == b' ' { "-" } else { "" }
    }

    /// Returns the names of all columns, separated.
    pub(crate) fn names(&self) -> String {
        self.list().join(&char::from(self.separator).to_string())
    }

    /// Returns the name of a column, as it is between separators.
    pub(crate) fn name(&self, name: &str) -> String {
        self.escaped(format!("{}{name}", self.prefix))
    }

    /// Returns the names of all columns, as they are between separators.
    pub(crate) fn list(&self) -> Vec<String> {
        let names = std::iter::once("next_hop").chain(self.names.iter().map(String::as_str));
        names.map(|name| self.name(name)).collect()
    }

    /// Appends the fields of a label, as they come after a comma in CSV, after a comma in an object of JSON, and after a
    /// blank in text.
    pub(crate) fn put(&self, label: &Label, out: &mut Vec<u8>) {
        let (next_hop, values) = match label.fields().split_first() {
            Some((next_hop, values)) => (next_hop.clone(), values),
            None => (Label::Absent, &[][..]),
        };
        match self.format {
            Format::Text => self.text(&next_hop, values, out),
            Format::Csv => {
                if next_hop != Label::Absent {
                    out.extend_from_slice(self.escaped(next_hop.to_string()).as_bytes());
                }
                for at in 0..self.names.len() {
                    out.push(self.separator);
                    let value = values.get(at).unwrap_or(&Label::Absent);
                    match value {
                        Label::Absent => out.extend_from_slice(self.absent().as_bytes()),
                        value => out.extend_from_slice(self.escaped(value.to_string()).as_bytes()),
                    }
                }
            }
            Format::Json | Format::JsonLine => {
                let next_hop = match next_hop {
                    Label::Absent => serde_json::Value::Null,
                    next_hop => next_hop.to_string().into(),
                };
                // Writing to a vector does not fail.
                let _ = write!(out, "{}:{next_hop}", self.key("next_hop"));
                for (at, name) in self.names.iter().enumerate() {
                    let value = json(values.get(at).unwrap_or(&Label::Absent));
                    let _ = write!(out, ",{}:{value}", self.key(name));
                }
            }
        }
    }

    fn key(&self, name: &str) -> serde_json::Value {
        format!("{}{name}", self.prefix).into()
    }

    fn text(&self, next_hop: &Label, values: &[Label], out: &mut Vec<u8>) {
        let mut named = self.words.iter().zip(values);
        let next_hop = match values.first() {
            Some(first) if self.in_place => {
                named.next();
                first
            }
            _ => next_hop,
        };
        let _ = write!(out, "{next_hop}");
        for (word, value) in named {
            // A field that was not requested is shown where it adds something.
            if !self.implied || (*value != Label::Absent && value != next_hop) {
                let _ = write!(out, " {word} {}", value.line());
            }
        }
    }

    /// Returns the fields where no route is found.
    pub(crate) fn empty(&self) -> String {
        match self.format {
            Format::Text => String::new(),
            Format::Csv => {
                let absent = self.absent();
                format!(
                    "{absent}{}",
                    format!("{}{absent}", char::from(self.separator)).repeat(self.names.len())
                )
            }
            Format::Json | Format::JsonLine => {
                let names = self.names.iter().map(|name| format!(",{}:null", self.key(name)));
                format!("{}:null{}", self.key("next_hop"), names.collect::<String>())
            }
        }
    }

    /// Returns the end of a row.
    pub(crate) fn tail(&self) -> &'static [u8] {
        match self.format {
            _ if self.is_open => b"",
            Format::Text | Format::Csv => b"\n",
            Format::JsonLine => b"}\n",
            Format::Json => b"}",
        }
    }
}

/// Returns the name of a value's column, unless that is the name of another: a table may have a column of any name.
fn unlike_own(name: String) -> String {
    if matches!(name.as_str(), "address" | "prefix" | "next_hop") { format!("value_{name}") } else { name }
}

/// Returns a value as JSON: numbers as numbers, absent ones as null.
pub(crate) fn json(label: &Label) -> serde_json::Value {
    match label {
        Label::Absent => serde_json::Value::Null,
        Label::Number(number) => (*number).into(),
        other => other.to_string().into(),
    }
}
