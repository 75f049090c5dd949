//! TABLE_DUMP_V2 (RFC 6396 section 4.3, RFC 8050 section 4): the peers once, then one prefix a record with all its
//! routes.

use fibula::net::Family;

use super::table_dump::Dumped;
use super::{Cursor, FaultKind, Header, Kind, Mention, Reading, Record, Sink, Skipped};
use crate::bgp::{self, AsWidth};
use crate::event::{Path, Peer};

pub(super) const KIND: Kind = Kind { name: "TABLE_DUMP_V2", number: 13, subtypes: 13, decode };

const PEER_INDEX_TABLE: u16 = 1;

/// The list of peers to which the records after it refer by number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PeerIndexTable {
    peers: Vec<Peer>,
}

impl PeerIndexTable {
    /// Reads the list; `None` if the record is of another kind.
    ///
    /// # Errors
    /// When it is damaged: none of it can be used, because peers are numbered from its beginning.
    pub fn read(record: &Record) -> Option<Result<Self, super::Fault>> {
        let Header { kind, subtype, .. } = record.header;
        (kind == KIND.number && subtype == PEER_INDEX_TABLE).then(|| peers(record.cursor()))
    }

    /// Returns the peers.
    #[must_use]
    pub fn peers(&self) -> &[Peer] {
        &self.peers
    }
}

/// Reads the list of peers (RFC 6396 section 4.3.1).
fn peers(mut at: Cursor<'_>) -> Reading<PeerIndexTable> {
    at.take(4, "collector")?;
    let len = at.u16("length of the view's name")?;
    at.take(len.into(), "name of the view")?;
    let count = at.u16("number of peers")?;
    let mut peers = Vec::new();
    for _ in 0..count {
        let kind = at.u8("type of the peer")?;
        at.take(4, "BGP identifier of the peer")?;
        let address = at.address(kind & 1 != 0)?;
        let asn = at.asn(kind & 2 != 0)?;
        peers.push(Peer { address, asn });
    }
    Ok(PeerIndexTable { peers })
}

fn decode(record: &Record, peers: Option<&PeerIndexTable>, sink: &mut dyn Sink) -> Reading<()> {
    let skipped = |kind: Skipped, sink: &mut dyn Sink| {
        sink.skipped(kind, 6);
        Ok(())
    };
    let (family, add_path) = match record.header.subtype {
        // Read before, because other records depend on it.
        PEER_INDEX_TABLE => return Ok(()),
        2 => (Family::Ipv4, false),
        4 => (Family::Ipv6, false),
        8 => (Family::Ipv4, true),
        10 => (Family::Ipv6, true),
        3 | 9 => return skipped(Skipped::family(1, 2), sink),
        5 | 11 => return skipped(Skipped::family(2, 2), sink),
        // RFC 6397: where the peers are.
        7 => return skipped(Skipped::without_routes("GEO_PEER_TABLE"), sink),
        6 | 12 => return generic(record, peers, sink),
        subtype => return Err(FaultKind::Subtype { kind: KIND.name, subtype }.at(6)),
    };
    let mut at = record.cursor();
    at.take(4, "sequence number")?;
    entries(record, at, family, add_path, peers, sink)
}

/// Reads a RIB_GENERIC record (RFC 6396 section 4.3.3), which may be of any family; unicast is read.
fn generic(record: &Record, peers: Option<&PeerIndexTable>, sink: &mut dyn Sink) -> Reading<()> {
    let mut at = record.cursor();
    at.take(4, "sequence number")?;
    let start = at.position();
    match bgp::family(at.u16("address family")?, at.u8("subsequent address family")?) {
        Ok(family) => entries(record, at, family, record.header.subtype == 12, peers, sink),
        Err(other) => {
            sink.skipped(other, start);
            Ok(())
        }
    }
}

fn entries(
    record: &Record,
    mut at: Cursor<'_>,
    family: Family,
    add_path: bool,
    peers: Option<&PeerIndexTable>,
    sink: &mut dyn Sink,
) -> Reading<()> {
    let start = at.position();
    let (prefix, fault) = bgp::prefix(&mut at, family)?;
    if let Some(fault) = fault {
        sink.fault(fault.at(start));
    }
    let Some(peers) = peers else { return Err(FaultKind::NoPeerTable.at(start)) };
    let count = at.u16("number of routes")?;
    for _ in 0..count {
        let index_at = at.position();
        let index = at.u16("peer")?;
        let since = at.u32("time of the route")?;
        let id = if add_path { Some(at.u32("path identifier")?) } else { None };
        let len = at.u16("attribute length")?;
        let from = at.position();
        at.take(len.into(), "attributes")?;
        let Some(&peer) = peers.peers.get(usize::from(index)) else {
            sink.fault(FaultKind::PeerIndex { index, peers: peers.peers.len() }.at(index_at));
            continue;
        };
        let path = Path { prefix, id };
        if !sink.wants(&peer, Some(index), &path, Mention::Listed) {
            continue;
        }
        let (time, width) = (record.header.time, AsWidth::Four);
        let is_second_version = true;
        let route = Dumped { time, peer, path, width, family, next_hop: None, since, is_second_version };
        if let Err(fault) = route.tell(record, from, len, sink) {
            sink.fault(fault);
        }
    }
    if !at.is_empty() {
        sink.fault(FaultKind::Surplus(at.remaining()).at(at.position()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::mrt::tests::{attributes, nlri, peer_table, record, told};

    #[test]
    fn generic_records_hold_any_family() {
        let path = attributes(2, 4, "192.0.2.9");
        let generic = |subtype: u16, family: [u8; 3], id: &[u8]| {
            let route = [&[0, 0, 1, 2, 3, 4][..], id, &(path.len() as u16).to_be_bytes(), &path].concat();
            let body = [&[0, 0, 0, 1][..], &family, &nlri("10.0.0.0/8"), &[0, 1], &route].concat();
            told(&[peer_table(&["192.0.2.1"]), record(13, subtype, &body)].concat())
        };
        assert_eq!(generic(6, [0, 1, 1], &[]), ["192.0.2.1 + 10.0.0.0/8 via 192.0.2.9 (2)"]);
        assert_eq!(generic(12, [0, 1, 1], &[0, 0, 0, 9]), ["192.0.2.1 + 10.0.0.0/8 #9 via 192.0.2.9 (2)"]);
        assert_eq!(generic(6, [0, 1, 128], &[]), ["byte 16: IPv4 VPN"]);
    }
}
