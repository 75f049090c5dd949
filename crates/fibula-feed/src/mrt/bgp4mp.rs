//! BGP4MP and BGP4MP_ET (RFC 6396 section 4.4, RFC 8050 section 3): messages of a session, and its states.

use fibula::net::Dual;

use super::table_dump::Dumped;
use super::{Cursor, FaultKind, Header, Kind, Mention, PeerIndexTable, Reading, Record, Sink, Skipped};
use crate::bgp::{self, AsWidth, PeerSession};
use crate::event::{Action, Event, Peer, Time};

pub(super) const KIND: Kind = Kind { name: "BGP4MP", number: 16, subtypes: 12, decode };
/// The same after four bytes of microseconds (RFC 6396 section 3).
pub(super) const KIND_ET: Kind = Kind { name: "BGP4MP_ET", number: 17, subtypes: 12, decode };

/// State numbers of RFC 4271 section 8.2.2, from 1.
const ESTABLISHED: u16 = 6;

fn decode(record: &Record, _: Option<&PeerIndexTable>, sink: &mut dyn Sink) -> Reading<()> {
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
    let width = Some(if four { AsWidth::Four } else { AsWidth::Two });
    let add_path = Dual::new(add_path, add_path);
    let base = at.position();
    let session = PeerSession { time, peer, width, add_path };
    bgp::message(&record.body.slice(base - Header::BYTES..), base, &session, sink)
}

/// Reads a BGP4MP_ENTRY (RFC 6396 appendix B.2), which OpenBGPD still writes: a route of a table.
fn entry(record: &Record, time: Time, mut at: Cursor<'_>, sink: &mut dyn Sink) -> Reading<()> {
    let peer = peer(&mut at, false)?;
    at.take(4, "view and status")?;
    let since = at.u32("time of the route")?;
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
    let path = prefix.into();
    let is_second_version = true;
    let route = Dumped { time, peer, path, width: AsWidth::Two, family, next_hop, since, is_second_version };
    route.tell(record, from, len, sink)
}

#[cfg(test)]
mod tests {
    use crate::mrt::tests::{attributes, nlri, octets, record, told};

    /// `BGP4MP_ENTRY` of the peer 192.0.2.1 in the AS 7.
    fn entry(family: [u8; 3], next_hop: &[u8], prefix: &[u8], attributes: &[u8]) -> Vec<u8> {
        let ends = [&[0, 7, 0, 8, 0, 0, 0, 1][..], &octets("192.0.2.1"), &octets("192.0.2.255")].concat();
        let table =
            [&[0, 1, 0, 1, 1, 2, 3, 4][..], &family, &[next_hop.len() as u8], next_hop, prefix].concat();
        let len = (attributes.len() as u16).to_be_bytes();
        record(16, 2, &[&ends[..], &table, &len, attributes].concat())
    }

    #[test]
    fn entries_are_routes_of_a_table() {
        let (v4, v6) = ([0, 1, 1], [0, 2, 1]);
        let path = attributes(2, 2, "192.0.2.9");
        // NEXT_HOP counts where both are there.
        let next_hop = octets("192.0.2.8");
        assert_eq!(
            told(&entry(v4, &next_hop, &nlri("10.0.0.0/8"), &path)),
            ["192.0.2.1 + 10.0.0.0/8 via 192.0.2.9 (2)"]
        );
        let without = &path[..path.len() - 7];
        assert_eq!(
            told(&entry(v4, &next_hop, &nlri("10.0.0.0/8"), without)),
            ["192.0.2.1 + 10.0.0.0/8 via 192.0.2.8 (2)"]
        );
        assert_eq!(
            told(&entry(v6, &octets("2001:db8::9"), &nlri("2001:db8::/32"), without)),
            ["192.0.2.1 + 2001:db8::/32 via 2001:db8::9 (2)"]
        );
        // An empty next hop is none.
        assert_eq!(
            told(&entry(v4, &[], &nlri("10.0.0.0/8"), without)),
            [
                "byte 44: route without a next hop; the peer's address is used instead",
                "192.0.2.1 + 10.0.0.0/8 via 192.0.2.1 (2)",
            ]
        );
    }

    #[test]
    fn what_is_wrong_with_an_entry_is_placed() {
        let path = attributes(2, 2, "192.0.2.9");
        let next_hop = octets("192.0.2.8");
        assert_eq!(
            told(&entry([0, 1, 2], &next_hop, &nlri("10.0.0.0/8"), &path)),
            ["byte 36: IPv4 multicast"]
        );
        assert_eq!(
            told(&entry([0, 1, 1], &next_hop[1..], &nlri("10.0.0.0/8"), &path)),
            ["byte 40: a next hop cannot have 3 bytes"]
        );
        assert_eq!(
            told(&entry([0, 1, 1], &next_hop, &[33, 10, 0, 0, 0, 0], &path)),
            ["byte 44: prefix length 33 is above the 32 bits of the family"]
        );
        assert_eq!(
            told(&entry([0, 1, 1], &next_hop, &[7, 11], &path)),
            [
                "byte 44: bits set after the prefix length; read as 10.0.0.0/7",
                "192.0.2.1 + 10.0.0.0/7 via 192.0.2.9 (2)",
            ]
        );
    }
}
