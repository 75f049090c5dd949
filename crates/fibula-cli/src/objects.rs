//! Lists of objects in the formats that scripts read.

use std::io::{self, Write};

use serde_json::{Map, Value};

use crate::options::Format;

/// An object with its fields in order.
pub type Object = Map<String, Value>;

/// Writes objects as CSV, as a JSON list, or as one JSON object per line. Each command writes its own text; here
/// [`Format::Text`] means JSON.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(out: &mut dyn Write, format: Format, columns: &[&str], records: &[Object]) -> io::Result<()> {
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

/// Returns a value without JSON's punctuation; the elements of a list are separated by spaces.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

/// Returns a field of CSV, in quotes if RFC 4180 section 2 requires them.
pub(crate) fn csv_field(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\"")).into()
    } else {
        text.into()
    }
}
