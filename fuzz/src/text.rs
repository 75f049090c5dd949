//! Text tables: ours against a parser made of the standard library's splitting and numbers.
//!
//! The bytes are also loaded as a file, so that the decompressors see them too.

use std::net::IpAddr;

use fibula::net::{HostBits, IpPrefix};
use fibula_feed::event::{Action, Event};
use fibula_feed::text::{self, Entry, RangeEntry};
use fibula_feed::{Content, Label, LoadOptions, Loader, Source, TableForm};

pub(crate) fn compare(bytes: &[u8]) {
    let (mut entries, mut told, mut bad, mut lines) = (0, 0, 0, 0);
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        lines += 1;
        for host_bits in [HostBits::Mask, HostBits::Refuse] {
            let ours = text::decode(line, host_bits);
            if let Err(error) = &ours {
                assert!(error.column() <= line.len() + 1, "{error}");
            }
            let read = ours.is_ok();
            let entry = match ours {
                Ok(Some(text::Line::Event(event))) => {
                    told += u64::from(host_bits == HostBits::Refuse);
                    events(line, &event);
                    continue;
                }
                Ok(Some(text::Line::Range(entry))) => {
                    entries += if host_bits == HostBits::Refuse { range(line, &entry) } else { 0 };
                    continue;
                }
                Ok(Some(text::Line::Route(entry))) => Some(entry),
                _ => None,
            };
            if let Some(entry) = &entry {
                // Printing and parsing again gives the same.
                let again = text::decode(entry.to_string().as_bytes(), HostBits::Refuse);
                assert!(matches!(again, Ok(Some(text::Line::Route(again))) if again == *entry));
            }
            if host_bits == HostBits::Refuse {
                entries += u64::from(entry.is_some());
                bad += u64::from(!read);
            } else if let Ok(line) = std::str::from_utf8(line) {
                reference(line, entry.as_ref());
            }
        }
    }
    let mut options = LoadOptions::default();
    options.form = TableForm::named("lines");
    let Ok(table) = Loader::new(options).load(Source::reader("fuzz", bytes)) else { return };
    if table.report().compression != fibula_feed::compression::Compression::Plain {
        return;
    }
    let report = table.report();
    if report.content != Content::Text {
        return;
    }
    assert_eq!(report.lines, lines);
    table.ribs.v4.check().unwrap();
    table.ribs.v6.check().unwrap();
    if told > 0 {
        // Lines with peers and lines without do not mix, and one peer is selected.
        return;
    }
    assert_eq!(report.bad_lines, bad);
    assert_eq!(report.routes_v4 + report.routes_v6 + report.repeated, entries);
    assert_eq!(
        (report.routes_v4, report.routes_v6),
        (table.ribs.v4.len() as u64, table.ribs.v6.len() as u64)
    );
}

/// A range, against its ends as the standard library reads them, and its prefixes. Returns how many these are.
fn range(line: &[u8], range: &RangeEntry) -> u64 {
    let line = String::from_utf8_lossy(line);
    let words: Vec<&str> = line.split([' ', '\t']).filter(|word| !word.is_empty()).collect();
    let (first, last) = match words[..] {
        // Blanks may stand around the hyphen.
        [first, "-", last, ..] => (first, last),
        _ => words[0].trim_end_matches('\r').split_once('-').expect("a range has two ends"),
    };
    assert_eq!((Ok(range.first), Ok(range.last)), (first.parse(), last.parse()), "{line:?}");
    let number = |address| match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    };
    let (mut next, mut count) = (Some(number(range.first)), 0);
    for prefix in range.prefixes() {
        let (first, last) = match prefix {
            IpPrefix::V4(prefix) => (prefix.addr().into(), prefix.last().into()),
            IpPrefix::V6(prefix) => (prefix.addr(), prefix.last()),
        };
        assert_eq!(next, Some(first), "{line:?}");
        (next, count) = (last.checked_add(1), count + 1);
    }
    assert_eq!(next, number(range.last).checked_add(1), "{line:?}");
    count
}

/// An event of a peer, against the fields of the line as the standard library splits and reads them.
fn events(line: &[u8], event: &Event) {
    // Fields that are not read may hold anything.
    let line = String::from_utf8_lossy(line);
    let line = line.strip_suffix('\r').unwrap_or(&line);
    let barred: Vec<&str> = line.split('|').collect();
    let words: Vec<&str> = line.split([' ', '\t', '\r']).filter(|word| !word.is_empty()).collect();
    let (peer, asn, prefix) = match (&barred[..], &words[..]) {
        (&["R" | "U", "R" | "A" | "W" | "S", _, _, _, _, _, asn, peer, prefix, ..], _) => (peer, asn, prefix),
        (&["A" | "W", _, peer, asn, prefix, ..], _) => (peer, asn, prefix),
        (&[kind, _, _, peer, asn, prefix, ..], _) if kind.trim_start().starts_with(['T', 'B']) => {
            (peer, asn, prefix)
        }
        (_, &[_, "a" | "w", prefix, _, peer, asn, ..]) => (peer, asn, prefix),
        _ => panic!("{event:?} from {line:?}"),
    };
    let found = event.peer.expect("such lines name their peers");
    assert_eq!((Ok(found.address), Ok(found.asn)), (peer.parse(), asn.parse()), "{line:?}");
    let path = match &event.action {
        Action::Announce(route) => route.path,
        Action::Withdraw(path) => *path,
        Action::SessionEnd | Action::Nothing => return,
    };
    assert_eq!(Some(path.prefix), crate::address::reference(prefix), "{line:?}");
}

/// Where this reads an entry, ours must read the same one. It reads the plain forms only.
fn reference(line: &str, ours: Option<&Entry>) {
    let words: Vec<&str> = line.split([' ', '\t', '\r']).filter(|word| !word.is_empty()).collect();
    // What follows a word that begins so is a comment.
    if words.iter().any(|word| word.starts_with(['#', ';'])) {
        return;
    }
    let (written, next_hop) = match words[..] {
        [prefix, next_hop] | [prefix, "via", next_hop] if prefix.contains('/') => {
            (prefix.to_owned(), next_hop)
        }
        [address, len, origin] if !address.contains('/') => (format!("{address}/{len}"), origin),
        _ => return,
    };
    let Some(prefix) = crate::address::reference(&written) else { return };
    let label = match (next_hop.parse::<u32>(), next_hop.parse::<IpAddr>()) {
        (Ok(number), _) if !next_hop.starts_with('+') => Label::Number(number),
        (_, Ok(address)) if words.len() == 2 => Label::Address(address),
        _ => return,
    };
    // Ours does not take a carriage return inside a line for a blank.
    if line.trim_end_matches('\r').contains('\r') || line.ends_with("\r\r") {
        return;
    }
    // Ours refuses lengths that some tools read as octal.
    if written.split_once('/').is_some_and(|(_, len)| len.len() > 1 && len.starts_with('0')) {
        assert_eq!(ours, None, "{line:?}");
        return;
    }
    assert_eq!(ours, Some(&Entry { prefix, next_hop: label }), "{line:?}");
}
