//! Routes as rows, in every output format.

use std::io::{self, Write};

use fibula::net::{Key, Route};
use fibula_feed::{Label, LoadedRoutes, NextHops};

use crate::fields::Fields;
use crate::load::Columns;
use crate::options::Format;

/// Writes routes one by one.
pub(crate) struct RouteRows<'a> {
    out: &'a mut dyn Write,
    format: Format,
    fields: Fields,
    row: Vec<u8>,
    count: u64,
}

impl<'a> RouteRows<'a> {
    pub(crate) fn new(out: &'a mut dyn Write, format: Format, columns: &Columns) -> io::Result<Self> {
        let fields = Fields::new(format, columns);
        match format {
            Format::Csv => writeln!(out, "prefix,{}", fields.names())?,
            Format::Json => out.write_all(b"[")?,
            Format::Text | Format::JsonLine => {}
        }
        Ok(Self { out, format, fields, row: Vec::new(), count: 0 })
    }

    pub(crate) fn add<K: Key>(&mut self, route: Route<K>, next_hops: &NextHops) -> io::Result<()> {
        let label = next_hops.label(route.next_hop).unwrap_or(&Label::Absent);
        self.put(&route.prefix, label)
    }

    /// Writes a prefix and the values of its label.
    pub(crate) fn put(&mut self, prefix: &dyn std::fmt::Display, label: &Label) -> io::Result<()> {
        self.count += 1;
        self.row.clear();
        let row = &mut self.row;
        match self.format {
            Format::Text => write!(row, "{prefix} ")?,
            Format::Csv => write!(row, "{prefix},")?,
            Format::JsonLine => write!(row, "{{\"prefix\":\"{prefix}\",")?,
            Format::Json => {
                let comma = if self.count > 1 { "," } else { "" };
                write!(row, "{comma}\n  {{\"prefix\":\"{prefix}\",")?;
            }
        }
        match self.format {
            // One value is a word that is read back.
            Format::Text if !matches!(label, Label::Fields(_)) => {
                row.extend_from_slice(label.line().as_bytes());
            }
            _ => self.fields.put(label, row),
        }
        row.extend_from_slice(self.fields.tail());
        self.out.write_all(row)
    }

    /// Ends the output, and returns the number of routes.
    pub(crate) fn end(self) -> io::Result<u64> {
        if self.format == Format::Json {
            self.out.write_all(if self.count > 0 { b"\n]\n" } else { b"]\n" })?;
        }
        Ok(self.count)
    }
}

/// Writes all routes of a table.
pub(crate) fn write_all(
    table: &LoadedRoutes,
    out: &mut dyn Write,
    format: Format,
    columns: &Columns,
) -> io::Result<u64> {
    let mut rows = RouteRows::new(out, format, columns)?;
    table.ribs.v4.iter().try_for_each(|route| rows.add(route, &table.next_hops))?;
    table.ribs.v6.iter().try_for_each(|route| rows.add(route, &table.next_hops))?;
    rows.end()
}
