//! Routes as rows, in every output format.

use std::io::{self, Write};

use fibula::net::{Key, Route};
use fibula_feed::{NextHops, Table};
use serde_json::Value;

use crate::objects::{self, Object};
use crate::options::Format;

const COLUMNS: &[&str] = &["prefix", "next_hop"];

/// Writes routes one by one.
pub(crate) struct Rows<'a> {
    out: &'a mut dyn Write,
    format: Format,
    count: u64,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(out: &'a mut dyn Write, format: Format) -> io::Result<Self> {
        match format {
            Format::Csv => writeln!(out, "{}", COLUMNS.join(","))?,
            Format::Json => out.write_all(b"[")?,
            Format::Text | Format::JsonLine => {}
        }
        Ok(Self { out, format, count: 0 })
    }

    pub(crate) fn add<K: Key>(&mut self, route: Route<K>, next_hops: &NextHops) -> io::Result<()> {
        let label = next_hops.label(route.next_hop).map(ToString::to_string).unwrap_or_default();
        self.count += 1;
        match self.format {
            Format::Text => writeln!(self.out, "{} {label}", route.prefix),
            Format::Csv => writeln!(self.out, "{},{}", route.prefix, objects::csv_field(&label)),
            Format::JsonLine => writeln!(self.out, "{}", object(route.prefix.to_string(), label)),
            Format::Json => {
                let comma = if self.count > 1 { "," } else { "" };
                write!(self.out, "{comma}\n  {}", object(route.prefix.to_string(), label))
            }
        }
    }

    /// Ends the output, and returns the number of routes.
    pub(crate) fn end(self) -> io::Result<u64> {
        if self.format == Format::Json {
            self.out.write_all(if self.count > 0 { b"\n]\n" } else { b"]\n" })?;
        }
        Ok(self.count)
    }
}

fn object(prefix: String, next_hop: String) -> Value {
    let mut record = Object::new();
    record.insert("prefix".to_owned(), prefix.into());
    record.insert("next_hop".to_owned(), next_hop.into());
    record.into()
}

/// Writes all routes of a table.
pub(crate) fn write_all(table: &Table, out: &mut dyn Write, format: Format) -> io::Result<()> {
    let mut rows = Rows::new(out, format)?;
    table.ribs.v4.iter().try_for_each(|route| rows.add(route, &table.next_hops))?;
    table.ribs.v6.iter().try_for_each(|route| rows.add(route, &table.next_hops))?;
    rows.end().map(|_| ())
}
