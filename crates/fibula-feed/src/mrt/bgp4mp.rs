//! BGP4MP and BGP4MP_ET (RFC 6396 section 4.4, RFC 8050 section 3): messages of a session, and its states.

use super::table_dump::Dumped;
use super::{Cursor, FaultKind, Header, Kind, Mention, PeerTable, Reading, Record, Sink, Skipped};
use crate::bgp::{self, AsWidth, Session};
use crate::event::{Action, Event, Peer, Time};

pub(super) const KIND: Kind = Kind { name: "BGP4MP", number: 16, subtypes: 12, decode };
/// The same after four bytes of microseconds (RFC 6396 section 3).
pub(super) const KIND_ET: Kind = Kind { name: "BGP4MP_ET", number: 17, subtypes: 12, decode };

/// State numbers of RFC 4271 section 8.2.2, from 1.
const ESTABLISHED: u16 = 6;

fn decode(record: &Record, _: Option<&PeerTable>, sink: &mut dyn Sink) -> Reading<()> {
    let mut at = record.cursor();
    let mut time = record.header.time;
    if record.header.kind == KIND_ET.number {
        time.micros = Some(at.u32("microseconds")?);
    }
    match record.header.subtype {
        subtype @ (0 | 5) => state_change(time, at, subtype == 5, sink),
        subtype @ (1 | 4 | 8 | 9) => {
            let four = matches!(subtype, 4 | 9);
            message(record, time, at, four, matches!(subtype, 8 | 9), sink)
        }
        2 => entry(record, time, at, sink),
        subtype @ (3 | 6 | 7 | 10 | 11) => {
            // BGP4MP_SNAPSHOT names a file. LOCAL messages were sent by the recorder: they hold none of the peer's
            // routes.
            let name = if subtype == 3 { "BGP4MP_SNAPSHOT" } else { "BGP4MP local messages" };
            sink.skipped(Skipped::without_routes(name), 6);
            Ok(())
        }
        subtype => Err(FaultKind::Subtype { kind: KIND.name, subtype }.at(6)),
    }
}

/// Reads both ends (peer and local AS, interface, address family, peer and local address), and returns the peer.
fn peer(at: &mut Cursor<'_>, four: bool) -> Reading<Peer> {
    let asn = at.asn(four)?;
    at.asn(four)?;
    at.take(2, "interface")?;
    let family_at = at.position();
    let v6 = match at.u16("address family")? {
        1 => false,
        2 => true,
        family => return Err(FaultKind::AddressFamily(family).at(family_at)),
    };
    let address = at.address(v6)?;
    at.address(v6)?;
    Ok(Peer { address, asn })
}

fn state_change(time: Time, mut at: Cursor<'_>, four: bool, sink: &mut dyn Sink) -> Reading<()> {
    let peer = peer(&mut at, four)?;
    state(time, peer, at, sink)
}

/// Reads the old and the new state of a session.
pub(super) fn state(time: Time, peer: Peer, mut at: Cursor<'_>, sink: &mut dyn Sink) -> Reading<()> {
    let start = at.position();
    let before = at.u16("old state")?;
    let after = at.u16("new state")?;
    if before == ESTABLISHED && after != ESTABLISHED {
        sink.event(Event { time, peer: Some(peer), action: Action::SessionEnd });
    } else {
        sink.skipped(Skipped::STATE_CHANGE, start);
    }
    Ok(())
}

fn message(
    record: &Record,
    time: Time,
    mut at: Cursor<'_>,
    four: bool,
    add_path: bool,
    sink: &mut dyn Sink,
) -> Reading<()> {
    let peer = peer(&mut at, four)?;
    let width = if four { AsWidth::Four } else { AsWidth::Two };
    let base = at.position();
    let session = Session { time, peer, width, add_path };
    bgp::message(&record.body.slice(base - Header::BYTES..), base, &session, sink)
}

/// Reads a BGP4MP_ENTRY (RFC 6396 appendix B.2), which OpenBGPD still writes: a route of a table.
fn entry(record: &Record, time: Time, mut at: Cursor<'_>, sink: &mut dyn Sink) -> Reading<()> {
    let peer = peer(&mut at, false)?;
    at.take(2 + 2 + 4, "view, status and time")?;
    let family_at = at.position();
    let family = match bgp::family(at.u16("address family")?, at.u8("subsequent address family")?) {
        Ok(family) => family,
        Err(other) => {
            sink.skipped(other, family_at);
            return Ok(());
        }
    };
    let len = at.u8("next hop length")?;
    let next_hop_at = at.position();
    let next_hop = at.take(len.into(), "next hop")?;
    let next_hop = bgp::next_hop(next_hop).ok_or_else(|| FaultKind::NextHopLength(len).at(next_hop_at))?;
    let start = at.position();
    let (prefix, fault) = bgp::prefix(&mut at, family)?;
    let len = at.u16("attribute length")?;
    let from = at.position();
    at.take(len.into(), "attributes")?;
    if !sink.wants(&peer, None, &prefix.into(), Mention::Listed) {
        return Ok(());
    }
    if let Some(fault) = fault {
        sink.fault(fault.at(start));
    }
    let route = Dumped { time, peer, path: prefix.into(), width: AsWidth::Two, family, next_hop };
    route.tell(record, from, len, sink)
}
