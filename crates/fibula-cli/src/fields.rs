//! The end of a row: the next hop of a route and the values after it, in every format.

use std::io::Write;

use fibula::file::ColumnValue;
use fibula_feed::Label;

use crate::load::Columns;
use crate::objects::csv_field;
use crate::options::Format;

/// A value of a route: of a table that was loaded, or of a column of a compiled one.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shown<'a> {
    Absent,
    Label(&'a Label),
    Column(&'a ColumnValue<'a>),
}

impl<'a> Shown<'a> {
    pub(crate) fn of(label: &'a Label) -> Self {
        if *label == Label::Absent { Self::Absent } else { Self::Label(label) }
    }

    /// Returns the text; `None` if there is no value.
    pub(crate) fn text(self) -> Option<String> {
        match self {
            Self::Absent => None,
            Self::Label(label) => Some(label.to_string()),
            // Labels have no control characters either.
            Self::Column(value) => Some(value.to_string().replace(|c: char| c.is_control(), " ")),
        }
    }

    /// Returns the value as JSON: numbers as numbers and truth values as such. JSON has no infinite numbers, which are texts.
    fn json(self) -> serde_json::Value {
        match self {
            Self::Column(&ColumnValue::U32(number)) => number.into(),
            Self::Column(&ColumnValue::U64(number)) => number.into(),
            Self::Column(&ColumnValue::I64(number)) => number.into(),
            Self::Column(&ColumnValue::F64(number)) if number.is_finite() => number.into(),
            Self::Column(&ColumnValue::Bool(is_true)) => is_true.into(),
            Self::Label(label) => json(label),
            other => other.text().into(),
        }
    }

    /// Returns the text as a word of a line.
    fn line(self) -> String {
        match self {
            Self::Label(label) => label.line(),
            other => other.text().map_or_else(|| "-".to_owned(), |text| Label::Text(text.into()).line()),
        }
    }
}

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
        let fields: Vec<Shown<'_>> = label.fields().iter().map(Shown::of).collect();
        self.put_all(&fields, out);
    }

    /// Appends a next hop and the values after it.
    pub(crate) fn put_all(&self, fields: &[Shown<'_>], out: &mut Vec<u8>) {
        let (next_hop, values) = match fields.split_first() {
            Some((next_hop, values)) => (*next_hop, values),
            None => (Shown::Absent, &[][..]),
        };
        match self.format {
            Format::Text => self.text(next_hop, values, out),
            Format::Csv => {
                if let Some(text) = next_hop.text() {
                    out.extend_from_slice(self.escaped(text).as_bytes());
                }
                for at in 0..self.names.len() {
                    out.push(self.separator);
                    match values.get(at).and_then(|value| value.text()) {
                        None => out.extend_from_slice(self.absent().as_bytes()),
                        Some(text) => out.extend_from_slice(self.escaped(text).as_bytes()),
                    }
                }
            }
            Format::Json | Format::JsonLine => {
                let next_hop = serde_json::Value::from(next_hop.text());
                // Writing to a vector does not fail.
                let _ = write!(out, "{}:{next_hop}", self.key("next_hop"));
                for (at, name) in self.names.iter().enumerate() {
                    let value = values.get(at).map_or(serde_json::Value::Null, |value| value.json());
                    let _ = write!(out, ",{}:{value}", self.key(name));
                }
            }
        }
    }

    fn key(&self, name: &str) -> serde_json::Value {
        format!("{}{name}", self.prefix).into()
    }

    fn text(&self, next_hop: Shown<'_>, values: &[Shown<'_>], out: &mut Vec<u8>) {
        let mut named = self.words.iter().zip(values);
        let next_hop = match values.first() {
            Some(first) if self.in_place => {
                named.next();
                *first
            }
            _ => next_hop,
        };
        let shown = next_hop.text();
        out.extend_from_slice(shown.as_deref().unwrap_or("-").as_bytes());
        for (word, value) in named {
            // A field that was not requested is shown where it adds something.
            if !self.implied || value.text().is_some_and(|text| Some(text) != shown) {
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
