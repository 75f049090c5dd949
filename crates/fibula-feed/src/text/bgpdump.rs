//! The lines of `bgpdump -m` and `bgpdump -M`: fields between bars, a route, a withdrawal or a session's state a line.
//!
//! ```text
//! TABLE_DUMP2|TIME|B|PEER|AS|PREFIX|AS-PATH|ORIGIN|NEXT-HOP|LOCAL-PREF|MED|COMMUNITIES|AG|AGGREGATOR|     -m
//! BGP4MP|TIME|W|PEER|AS|PREFIX
//! BGP4MP|TIME|STATE|PEER|AS|OLD|NEW
//! TABLE_DUMP2|MM/DD/YY HH:MM:SS|B|PEER|AS|PREFIX|AS-PATH|ORIGIN                                          -M
//! ```
//!
//! Lines of bgpkit-parser have no type, and the action comes first: `A|TIME|PEER|AS|PREFIX|...`.
//! Lines of MRT type `BGP` begin with `BGP|`. The first field ends in `_AP` where a path identifier follows the prefix.
//! Lines of `-M` have no next hop; the peer's address is used instead.

use core::net::{Ipv4Addr, Ipv6Addr};
use std::fmt::Write as _;
use std::io;

use fibula::net::{HostBits, IpPrefix};

use super::error::{LineError, LineErrorKind};
use super::fields::{Field, LineFields};
use super::updates::{peer, time};
use super::{Form, Line, bgpreader, next_hop, prefix};
use crate::event::{Action, Announcement, Event, Path, Peer, Time};
use crate::next_hops::Label;

pub(super) const FORM: Form = Form {
    name: "bgpdump",
    syntax: "TYPE|TIME|B|PEER|AS|PREFIX|AS-PATH|ORIGIN|NEXT-HOP|...",
    example: "TABLE_DUMP2|1400824800|B|192.0.2.2|64500|198.51.100.0/24|64500 64501|IGP|192.0.2.1|0|0||NAG||",
    recognises,
    decode,
};

/// `Established` of RFC 4271 section 8.2.2, as RFC 6396 section 4.4.1 counts.
const ESTABLISHED: u32 = 6;

fn recognises(fields: &LineFields<'_>) -> bool {
    let first = fields.words().first().map_or(&b""[..], |word| word.bytes);
    let begins = |with: &[u8]| first.starts_with(with);
    begins(b"BGP|")
        || has_no_type(first)
        || (begins(b"TABLE_DUMP") || begins(b"BGP4MP")) && first.contains(&b'|')
}

/// Returns whether the action comes first: only then is the first field a letter alone.
fn has_no_type(line: &[u8]) -> bool {
    matches!(line, [b'A' | b'W', b'|', ..])
}

/// The fields of a line, one after the other.
pub(super) struct Bars<'a> {
    rest: Option<Field<'a>>,
    end: usize,
}

impl<'a> Bars<'a> {
    pub(super) fn of(line: &'a [u8]) -> Self {
        Self { rest: Some(Field { bytes: line, offset: 0 }), end: line.len() }
    }

    pub(super) fn next(&mut self, what: &'static str) -> Result<Field<'a>, LineError> {
        let field = self.rest.ok_or(LineError::new(LineErrorKind::MissingField(what), self.end))?;
        let Some(bar) = memchr::memchr(b'|', field.bytes) else {
            self.rest = None;
            return Ok(field);
        };
        self.rest = Some(Field { bytes: &field.bytes[bar + 1..], offset: field.offset + bar + 1 });
        Ok(Field { bytes: &field.bytes[..bar], offset: field.offset })
    }
}

fn decode(fields: &LineFields<'_>, host_bits: HostBits) -> Result<Line, LineError> {
    let line = fields.line();
    let mut bars = Bars::of(line);
    let first = bars.next("type")?;
    let no_type = has_no_type(line);
    let add_path = first.bytes.ends_with(b"_AP");
    let when = bars.next("time")?;
    // The date of -M; nothing here depends on it.
    let time = if when.bytes.contains(&b'/') { Time::default() } else { time(when)? };
    let action = if no_type { first } else { bars.next("action")? };
    let peer = peer(bars.next("peer")?, bars.next("peer's AS")?)?;
    let action = match action.bytes {
        b"STATE" => return state(&mut bars, time, peer),
        b"B" => Said::Route { dumped: true },
        b"A" => Said::Route { dumped: false },
        b"W" => Said::Withdrawal,
        _ => {
            return Err(LineError::new(
                LineErrorKind::NotAWord { wanted: "B, A, W or STATE" },
                action.offset,
            ));
        }
    };
    let prefix = prefix::parse(bars.next("prefix")?, host_bits)?;
    let id = if add_path { Some(number(bars.next("path identifier")?)?) } else { None };
    let path = Path { prefix, id };
    let action = match action {
        Said::Withdrawal => Action::Withdraw(path),
        Said::Route { dumped } => {
            let path_len = Some(path_len(bars.next("AS path")?)?);
            bars.next("origin")?;
            let next_hop = match bars.next("next hop") {
                // bgpdump prints this address for a route without a next hop.
                Ok(Field { bytes: b"255.255.255.255", offset }) => {
                    return Err(LineError::new(LineErrorKind::NoNextHop, offset));
                }
                Ok(field) => next_hop::parse(field)?,
                Err(_) => Label::Address(peer.address),
            };
            Action::Announce(Announcement { path, next_hop, path_len, dumped, attributes: None })
        }
    };
    Ok(Line::Event(Event { time, peer: Some(peer), action }))
}

/// The fields of a line of bgpdump that hold attributes.
#[derive(Debug, Clone, Copy)]
pub struct BgpdumpFields<'a>(&'a str);

impl<'a> BgpdumpFields<'a> {
    /// Returns the fields of a line, if it is one of bgpdump.
    #[must_use]
    pub fn of(line: &'a [u8]) -> Option<Self> {
        let line = core::str::from_utf8(line).ok()?.trim_start();
        let fields = LineFields::split(line.as_bytes());
        (recognises(&fields) || bgpreader::recognises(&fields)).then_some(Self(line))
    }

    /// Returns whether a line is one of bgpkit-parser or bgpreader.
    #[must_use]
    pub fn is_of_other_tool(line: &[u8]) -> bool {
        has_no_type(line) || bgpreader::recognises_line(line)
    }

    fn field(&self, number: usize) -> Option<&'a str> {
        if has_no_type(self.0.as_bytes()) {
            return self.0.split('|').nth(number - 1);
        }
        // A path identifier comes after the prefix.
        let more = usize::from(self.0.split('|').next().is_some_and(|kind| kind.ends_with("_AP")));
        self.0.split('|').nth(number + more)
    }

    /// Returns the AS path.
    #[must_use]
    pub fn as_path(&self) -> &'a str {
        let number = if self.is_of_bgpreader() { bgpreader::AS_PATH } else { 6 };
        self.field(number).unwrap_or_default()
    }

    /// Returns the communities; lines of `-M` have none.
    #[must_use]
    pub fn communities(&self) -> Option<&'a str> {
        self.field(if self.is_of_bgpreader() { bgpreader::COMMUNITIES } else { 11 })
    }

    fn is_of_bgpreader(&self) -> bool {
        bgpreader::recognises_line(self.0.as_bytes())
    }
}

enum Said {
    Route { dumped: bool },
    Withdrawal,
}

fn state(bars: &mut Bars<'_>, time: Time, peer: Peer) -> Result<Line, LineError> {
    let before = number(bars.next("old state")?)?;
    let after = number(bars.next("new state")?)?;
    let action =
        if before == ESTABLISHED && after != ESTABLISHED { Action::SessionEnd } else { Action::Nothing };
    Ok(Line::Event(Event { time, peer: Some(peer), action }))
}

fn number(field: Field<'_>) -> Result<u32, LineError> {
    next_hop::parse_digits(field.bytes)
        .ok_or(LineError::new(LineErrorKind::NotAWord { wanted: "a number" }, field.offset))
}

/// Returns the length of the AS path as route selection counts it: a set in braces counts as one AS, a confederation in
/// parentheses or brackets does not count.
pub(super) fn path_len(field: Field<'_>) -> Result<u32, LineError> {
    let mut len = 0;
    let mut inside = None;
    for (at, &byte) in field.bytes.iter().enumerate() {
        let begins = at == 0 || matches!(field.bytes[at - 1], b' ');
        match (byte, inside) {
            (b'{' | b'(' | b'[', None) => {
                len += u32::from(byte == b'{');
                inside = Some(byte);
            }
            (b'}', Some(b'{')) | (b')', Some(b'(')) | (b']', Some(b'[')) => inside = None,
            (b'0'..=b'9', None) => len += u32::from(begins),
            (b'0'..=b'9' | b',', Some(_)) | (b' ', _) => {}
            _ => return Err(LineError::new(LineErrorKind::NotAnOrigin, field.offset + at)),
        }
    }
    Ok(len)
}

/// Writes an event as a line of `bgpdump -m`; session states are left out. Routes of feeds without attributes get empty
/// fields.
///
/// The errors of `out`.
/// Those of `out`.
pub fn write(event: &Event, out: &mut dyn io::Write) -> io::Result<()> {
    let (path, letter, kind) = match &event.action {
        Action::Announce(route) if route.dumped => {
            let first = route.attributes.as_ref().is_some_and(|known| known.is_of_first_version());
            (route.path, 'B', if first { "TABLE_DUMP" } else { "TABLE_DUMP2" })
        }
        Action::Announce(route) => (route.path, 'A', "BGP4MP"),
        Action::Withdraw(path) => (*path, 'W', "BGP4MP"),
        Action::SessionEnd | Action::Nothing => return Ok(()),
    };
    // BIRD dumps its own routes as those of this peer.
    let unnamed = match path.prefix {
        IpPrefix::V4(_) => Peer { address: Ipv4Addr::UNSPECIFIED.into(), asn: 0 },
        IpPrefix::V6(_) => Peer { address: Ipv6Addr::UNSPECIFIED.into(), asn: 0 },
    };
    let peer = event.peer.unwrap_or(unnamed);
    let mut line = String::new();
    // Writing to a string does not fail.
    let _ = line.write_str(kind);
    if event.time.micros.is_some() {
        line.push_str("_ET");
    }
    line.push_str(if path.id.is_some() { "_AP|" } else { "|" });
    let _ = write!(line, "{}", event.time.seconds);
    if let Some(micros) = event.time.micros {
        let _ = write!(line, ".{micros:06}");
    }
    let _ = write!(line, "|{letter}|{}|{}|{}", peer.address, peer.asn, path.prefix);
    if let Some(id) = path.id {
        let _ = write!(line, "|{id}");
    }
    if let Action::Announce(route) = &event.action {
        attributes(route, &mut line);
    }
    line.push('\n');
    out.write_all(line.as_bytes())
}

fn attributes(route: &Announcement, line: &mut String) {
    let next_hop = &route.next_hop;
    let Some(attributes) = &route.attributes else {
        let _ = write!(line, "||INCOMPLETE|{next_hop}|0|0||NAG||");
        return;
    };
    let local_preference = attributes.local_preference().unwrap_or(0);
    let discriminator = attributes.multi_exit_discriminator().unwrap_or(0);
    let communities = attributes.communities();
    let aggregated = if attributes.atomic_aggregate() { "AG" } else { "NAG" };
    let _ = write!(
        line,
        "|{}|{}|{next_hop}|{local_preference}|{discriminator}|{communities}|{aggregated}|",
        attributes.as_path(),
        attributes.origin(),
    );
    if let Some((asn, address)) = attributes.aggregator() {
        let _ = write!(line, "{asn} {address}");
    }
    line.push('|');
}
