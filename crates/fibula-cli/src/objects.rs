//! Lists of objects in the forms that scripts read.

use std::io::{self, Write};

use serde_json::{Map, Value};

use crate::options::Format;

/// An object with its fields in order.
pub(crate) type Object = Map<String, Value>;

/// Writes records as CSV, as a JSON list, or as a JSON object a line. The text form is for people and each
/// command's own: here it is as JSON.
pub(crate) fn write(
    out: &mut dyn Write,
    format: Format,
    columns: &[&str],
    records: &[Object],
) -> io::Result<()> {
    match format {
        Format::Csv => write_csv(out, columns, records),
        Format::JsonLine => records.iter().try_for_each(|record| {
            serde_json::to_writer(&mut *out, record)?;
            writeln!(out)
        }),
        Format::Json | Format::Text => {
            serde_json::to_writer_pretty(&mut *out, records)?;
            writeln!(out)
        }
    }
}

fn write_csv(out: &mut dyn Write, columns: &[&str], records: &[Object]) -> io::Result<()> {
    writeln!(out, "{}", columns.join(","))?;
    for record in records {
        let fields: Vec<String> =
            columns.iter().map(|&column| csv_field(&plain(&record[column])).into_owned()).collect();
        writeln!(out, "{}", fields.join(","))?;
    }
    Ok(())
}

/// A value without JSON's marks; the elements of a list are separated by blanks.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

/// A field of CSV, in quotes where RFC 4180 section 2 wants them.
pub(crate) fn csv_field(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\"")).into()
    } else {
        text.into()
    }
}
