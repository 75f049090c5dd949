//! Lists of prefixes, addresses and ranges without values: one a line, with a comment after it or none.

use fibula::net::HostBits;

use super::head::TextHead;
use super::record::{NamedFields, RouteScope, TableRecord};
use super::{Document, Settings, Stop, Take};

pub(super) fn claims(head: &TextHead<'_>, _: &Settings<'_>) -> usize {
    let is_entry = |line: &str| {
        entry(line).is_some_and(|place| {
            TableRecord::plain(place, &NamedFields::default()).addresses(HostBits::Mask).is_ok()
        })
    };
    head.count(is_entry)
}

pub(super) fn read() -> Box<dyn Document> {
    Box::new(List)
}

struct List;

/// Returns the prefix or range of a line, if the line has nothing else.
fn entry(line: &str) -> Option<RouteScope<'_>> {
    let text = line.find(['#', ';']).map_or(line, |at| &line[..at]).trim();
    let mut words = text.split_ascii_whitespace();
    Some(match [words.next(), words.next(), words.next(), words.next()] {
        [Some(prefix), None, ..] => match prefix.split_once('-') {
            Some((first, last)) => RouteScope::Range(first, last),
            None => RouteScope::Prefix(prefix),
        },
        [Some(address), Some(mask), None, None] if crate::text::is_netmask(mask) => {
            RouteScope::Masked(address, mask)
        }
        [Some(first), Some("-"), Some(last), None] => RouteScope::Range(first, last),
        [None, ..] => return None,
        _ => RouteScope::Prefix(text),
    })
}

impl Document for List {
    fn line(&mut self, line: &str, number: u64, take: &mut dyn Take) -> Result<(), Stop> {
        match entry(line) {
            Some(place) => take.record(&TableRecord::plain(place, &NamedFields::default()), number, line),
            None => Ok(()),
        }
    }
}
