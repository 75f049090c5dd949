//! Reads one line of text: a route, or an event of a peer. Does no I/O.
//!
//! A line is in one of the forms of [`FORMS`]; every line is recognised by itself, so a file may mix them. Fields are
//! separated by blanks and tabs. A line that is blank, or whose first field starts with `#` or `;`, is a comment; so is
//! the rest of a line from a later word with such a beginning on. A carriage return at the end of a line is ignored.
//!
//! Numbers with a leading zero, in an octet or in a prefix length, are refused, because other tools may read them as
//! octal.

mod bgpdump;
#[cfg(test)]
mod bgpdump_tests;
mod bgpreader;
mod error;
mod fields;
mod netmask;
mod next_hop;
mod pfx2as;
mod prefix;
mod range;
#[cfg(test)]
mod tests;
mod updates;

use core::fmt;

use fibula::net::{HostBits, IpPrefix};

use crate::event::Event;
use crate::next_hops::Label;
use fields::LineFields;

pub use bgpdump::{BgpdumpFields, write as write_bgpdump};
pub(crate) use error::LineErrorKind;
pub use error::{LineError, Reason};
pub use range::RangeEntry;

/// All forms of lines. A line is in the first form that recognises it; the last recognises any.
///
/// To add a form: a file that defines its `FORM`, and a line here.
pub const FORMS: &[Form] =
    &[bgpdump::FORM, bgpreader::FORM, updates::FORM, range::FORM, pfx2as::FORM, netmask::FORM, prefix::FORM];

/// A form of lines.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Form {
    /// Its name, in lower case with hyphens.
    pub name: &'static str,
    /// Its syntax.
    pub syntax: &'static str,
    /// A line in this form.
    pub example: &'static str,
    recognises: fn(&LineFields<'_>) -> bool,
    decode: fn(&LineFields<'_>, HostBits) -> Result<Line, LineError>,
}

impl fmt::Debug for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Form").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The content of a line.
#[derive(Debug, Clone)]
pub enum Line {
    /// A route of a table that names no peers.
    Route(Entry),
    /// Routes of such a table, given as a range of addresses.
    Range(RangeEntry),
    /// An event of a peer.
    Event(Event),
}

/// A prefix and its next hop. Prints as a line that is read back as the same entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The prefix.
    pub prefix: IpPrefix,
    /// The next hop.
    pub next_hop: Label,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.prefix, self.next_hop.line())
    }
}

/// Reads a label: a number, an address, AS numbers or a name.
pub(crate) fn label(word: &[u8]) -> Result<Label, LineError> {
    next_hop::parse(fields::Field { bytes: word, offset: 0 })
}

/// Reads a prefix, an address, or an address and a netmask: `192.0.2.0/255.255.255.0`.
pub(crate) fn place(text: &str, host_bits: HostBits) -> Result<IpPrefix, LineError> {
    prefix::parse(fields::Field { bytes: text.as_bytes(), offset: 0 }, host_bits)
}

/// Reads an address and its netmask, or the length of its prefix.
pub(crate) fn masked(address: &str, mask: &str, host_bits: HostBits) -> Result<IpPrefix, LineError> {
    netmask::join(address.as_bytes(), mask.as_bytes(), 0, host_bits)
}

/// Returns whether a text is a netmask: bits of a prefix and none after them.
pub(crate) fn is_netmask(text: &str) -> bool {
    netmask::length(text.as_bytes()).is_some()
}

/// Reads one line, without its line feed; `None` if it is blank or a comment.
///
/// # Errors
/// When the line cannot be read. The error has the fault and its column.
pub fn decode(line: &[u8], host_bits: HostBits) -> Result<Option<Line>, LineError> {
    let fields = LineFields::split(line);
    if fields.is_empty() || fields.is_comment() {
        return Ok(None);
    }
    let form = FORMS.iter().find(|form| (form.recognises)(&fields)).expect("the last recognises any");
    (form.decode)(&fields, host_bits).map(Some)
}
