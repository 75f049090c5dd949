//! Texts in which a line alone is not a route: tables with columns, JSON, and the output of routers and of Linux.
//!
//! A document takes lines, or for JSON a stream, and yields records: where a route applies, and named fields. [`Value`]
//! chooses which of the fields becomes the label of a route. Does no I/O except for the stream of JSON.

mod bird;
mod columns;
mod csv;
mod forms;
mod head;
mod hostile;
mod ip_route;
mod json;
mod list;
mod names;
mod netstat;
mod record;
mod show_bgp;
#[cfg(test)]
mod tests;
mod vtysh;

use crate::text::LineError;
use crate::value::Value;

pub use forms::{Choice, Hostile, TableForm};
pub(crate) use forms::{Reader, Settled, families, settle};
pub(crate) use head::TextHead;
pub(crate) use json::JsonReader;
pub(crate) use names::is_place;
pub(crate) use record::{Addresses, TableRecord};

/// Names of the columns of a table, or their numbers from 1 if it has no header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Columns {
    /// The column with the prefix.
    pub prefix: Option<String>,
    /// The column with the first address of a range.
    pub first: Option<String>,
    /// The column with the last address of a range.
    pub last: Option<String>,
    /// The columns that a route leads to.
    pub values: Vec<String>,
}

impl Columns {
    /// Returns whether any column is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether the columns that say where a route applies are named.
    fn places(&self) -> bool {
        self.prefix.is_some() || self.first.is_some() || self.last.is_some()
    }

    /// Returns the place of the prefix, or those of the ends of a range; `None` if a column is missing.
    #[expect(clippy::type_complexity, reason = "two ways to say where a route applies")]
    fn place(&self, names: &[String]) -> Option<(Option<usize>, Option<(usize, usize)>)> {
        let find = |name: &Option<String>| {
            let name = name.as_ref()?;
            names
                .iter()
                .position(|own| own == name)
                .or_else(|| names.iter().position(|own| names::is_same(own, name)))
        };
        if self.prefix.is_some() {
            return Some((Some(find(&self.prefix)?), None));
        }
        Some((None, Some((find(&self.first)?, find(&self.last)?))))
    }
}

/// Settings for the reader of a document.
pub(crate) struct Settings<'a> {
    pub(crate) columns: &'a Columns,
    /// The values that will be requested of each route.
    pub(crate) values: &'a [Value],
}

/// Tells the reader to stop; the [`Take`] has recorded why.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stop;

/// Why a route that was read well is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ByRule {
    /// Its router does not use it: another route of the prefix is selected, or its next hop is gone.
    NotInUse,
    /// It applies to packets from certain sources only.
    SourceSpecific,
}

/// Receives the routes and faults of a document.
pub(crate) trait Take {
    /// Takes a route, which began on this line.
    fn record(&mut self, record: &TableRecord<'_>, line: u64, text: &str) -> Result<(), Stop>;

    /// Counts an entry that cannot be read.
    fn bad(&mut self, line: u64, error: LineError, text: &str) -> Result<(), Stop>;

    /// Counts a route that is not taken.
    fn by_rule(&mut self, rule: ByRule);

    /// Counts the bytes that were looked at.
    fn work(&mut self, bytes: usize);
}

/// A text that is read line by line.
pub(crate) trait Document {
    /// Takes a line without its line feed, and its number.
    fn line(&mut self, line: &str, number: u64, take: &mut dyn Take) -> Result<(), Stop>;

    /// Takes the end of the text.
    fn end(&mut self, take: &mut dyn Take) -> Result<(), Stop> {
        let _ = take;
        Ok(())
    }
}
