//! The lines of `bgpreader` of BGPStream: fields between bars.
//!
//! ```text
//! R|R|TIME|PROJECT|COLLECTOR|ROUTER|ROUTER-IP|AS|PEER|PREFIX|NEXT-HOP|AS-PATH|ORIGIN-AS|COMMUNITIES|OLD|NEW
//! ```
//!
//! The first field is `R` in a table dump and `U` among updates, the second one the kind: `R`, `A`, `W` or `S`.

use fibula::net::HostBits;

use super::bgpdump::{Bars, path_len};
use super::error::{LineError, LineErrorKind};
use super::fields::LineFields;
use super::updates::{peer, time};
use super::{Form, Line, next_hop, prefix};
use crate::event::{Action, Announcement, Event, Path};

pub(super) const FORM: Form = Form {
    name: "bgpreader",
    syntax: "R|R|TIME|PROJECT|COLLECTOR|ROUTER|ROUTER-IP|AS|PEER|PREFIX|NEXT-HOP|AS-PATH|...",
    example: "R|R|1400824800.0|ris|rrc00|||64500|192.0.2.2|198.51.100.0/24|192.0.2.1|64500 64501|64501|64500:7||",
    recognises,
    decode,
};

/// The numbers of the fields with attributes.
pub(super) const AS_PATH: usize = 11;
pub(super) const COMMUNITIES: usize = 13;

pub(super) fn recognises(fields: &LineFields<'_>) -> bool {
    fields.words().first().is_some_and(|word| recognises_line(word.bytes))
}

pub(super) fn recognises_line(line: &[u8]) -> bool {
    matches!(line, [b'R' | b'U', b'|', b'R' | b'A' | b'W' | b'S', b'|', ..])
}

fn decode(fields: &LineFields<'_>, host_bits: HostBits) -> Result<Line, LineError> {
    let mut bars = Bars::of(fields.line());
    bars.next("type")?;
    let kind = bars.next("kind")?;
    let time = time(bars.next("time")?)?;
    for what in ["project", "collector", "router", "router's address"] {
        bars.next(what)?;
    }
    let asn = bars.next("peer's AS")?;
    let peer = peer(bars.next("peer")?, asn)?;
    let event = |action| Ok(Line::Event(Event { time, peer: Some(peer), action }));
    if kind.bytes == b"S" {
        for what in ["prefix", "next hop", "AS path", "origin AS", "communities"] {
            bars.next(what)?;
        }
        let (before, after) = (bars.next("old state")?, bars.next("new state")?);
        let ends = before.bytes == b"ESTABLISHED" && after.bytes != b"ESTABLISHED";
        return event(if ends { Action::SessionEnd } else { Action::Nothing });
    }
    let path = Path { prefix: prefix::parse(bars.next("prefix")?, host_bits)?, id: None };
    if kind.bytes == b"W" {
        return event(Action::Withdraw(path));
    }
    let next_hop = bars.next("next hop")?;
    if next_hop.bytes.is_empty() {
        return Err(LineError::new(LineErrorKind::NoNextHop, next_hop.offset));
    }
    let next_hop = next_hop::parse(next_hop)?;
    let path_len = Some(path_len(bars.next("AS path")?)?);
    let dumped = kind.bytes == b"R";
    event(Action::Announce(Announcement { path, next_hop, path_len, dumped, attributes: None }))
}
