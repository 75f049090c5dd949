//! TABLE_DUMP (RFC 6396 section 4.2): one route of one peer a record.

use core::net::IpAddr;
use std::sync::Arc;

use fibula::net::{Family, IpPrefix, Key, Prefix};

use super::{Cursor, Fault, FaultKind, Header, Kind, Mention, PeerIndexTable, Reading, Record, Sink};
use crate::bgp::{AsWidth, Attributes};
use crate::event::{Action, Announcement, Event, Path, Peer, Time};
use crate::next_hops::Label;

pub(super) const KIND: Kind = Kind { name: "TABLE_DUMP", number: 12, subtypes: 3, decode };

fn decode(record: &Record, _: Option<&PeerIndexTable>, sink: &mut dyn Sink) -> Reading<()> {
    let mut at = record.cursor();
    let family = match record.header.subtype {
        1 => Family::Ipv4,
        2 => Family::Ipv6,
        subtype => return Err(FaultKind::Subtype { kind: KIND.name, subtype }.at(6)),
    };
    at.take(4, "view and sequence number")?;
    // Early writers put several routes after one view and sequence number.
    loop {
        route(record, &mut at, family, sink)?;
        if at.is_empty() {
            return Ok(());
        }
    }
}

/// Returns whether the routes of a record end where its header says. `bytes` begin with the record.
pub(super) fn ends_at(header: Header, bytes: &[u8]) -> bool {
    let address = match (header.kind, header.subtype) {
        (12, 1) => 4,
        (12, 2) => 16,
        _ => return false,
    };
    // The view and the sequence number come first. Each route has a prefix, its length, a status, a time, a peer and its AS.
    let mut at = Header::BYTES + 4;
    while at < header.record_bytes() {
        at += 2 * address + 8;
        let Some([high, low]) = bytes.get(at..at + 2) else { return false };
        at += 2 + usize::from(u16::from_be_bytes([*high, *low]));
    }
    at == header.record_bytes()
}

fn route(record: &Record, at: &mut Cursor<'_>, family: Family, sink: &mut dyn Sink) -> Reading<()> {
    let v6 = family == Family::Ipv6;
    let start = at.position();
    let (prefix, set) = if v6 { prefix::<u128>(at)? } else { prefix::<u32>(at)? };
    let status_at = at.position();
    let status = at.u8("status")?;
    let since = at.u32("time of the route")?;
    let address = at.address(v6)?;
    let peer = Peer { address, asn: at.asn(false)? };
    let len = at.u16("attribute length")?;
    let from = at.position();
    at.take(len.into(), "attributes")?;
    // RFC 6396 section 4.2 fixes the status at 1. Another value is only reported, because nothing depends on it.
    if status != 1 {
        sink.fault(FaultKind::Status(status.into()).at(status_at));
    }
    if !sink.wants(&peer, None, &prefix.into(), Mention::Listed) {
        return Ok(());
    }
    if set {
        sink.fault(FaultKind::TrailingBits(prefix).at(start));
    }
    let route = Dumped {
        time: record.header.time,
        peer,
        path: prefix.into(),
        width: AsWidth::Two,
        family,
        next_hop: None,
        since,
        is_second_version: false,
    };
    route.tell(record, from, len, sink)
}

/// Reads an address and the length after it.
fn prefix<K: Key>(at: &mut Cursor<'_>) -> Reading<(IpPrefix, bool)>
where
    IpPrefix: From<Prefix<K>>,
{
    let mut network = K::Bytes::default();
    let bytes = at.take(network.as_ref().len(), "prefix")?;
    network.as_mut().copy_from_slice(bytes);
    let key = K::from_network(network);
    let len_at = at.position();
    let len = at.u8("prefix length")?;
    let prefix =
        Prefix::masked(key, len).map_err(|_| FaultKind::PrefixLength { len, bits: K::BITS }.at(len_at))?;
    Ok((prefix.into(), prefix.addr() != key))
}

/// A route of a table dump, whose attributes come next.
pub(super) struct Dumped {
    pub(super) time: Time,
    pub(super) peer: Peer,
    pub(super) path: Path,
    pub(super) width: AsWidth,
    pub(super) family: Family,
    /// The next hop that the record has outside its attributes.
    pub(super) next_hop: Option<IpAddr>,
    /// When the collector received the route.
    pub(super) since: u32,
    /// Whether the record is one of `TABLE_DUMP_V2`.
    pub(super) is_second_version: bool,
}

impl Dumped {
    /// Reads the `len` bytes of attributes at `from` of the record and reports the route.
    pub(super) fn tell(self, record: &Record, from: usize, len: u16, sink: &mut dyn Sink) -> Reading<()> {
        let start = from - Header::BYTES;
        let section = record.body.slice(start..start + usize::from(len));
        let mut faults: Vec<Fault> = Vec::new();
        let decoded = Attributes::decode(&section, from, self.width, Some(self.family), &mut faults);
        faults.into_iter().for_each(|fault| sink.fault(fault));
        let mut attributes = decoded?.attributes;
        attributes.set_dumped(self.since, self.is_second_version);
        attributes.missing().for_each(|fault| sink.fault(fault.at(from)));
        // Some daemons dump routes of IPv6 without one.
        let next_hop = attributes.next_hop().or(self.next_hop).unwrap_or_else(|| {
            sink.fault(FaultKind::PeerForNextHop.at(from));
            self.peer.address
        });
        let path_len = attributes.path_len();
        let attributes = Some(Arc::new(attributes));
        let next_hop = Label::Address(next_hop);
        let route = Announcement { path: self.path, next_hop, path_len, dumped: true, attributes };
        sink.event(Event { time: self.time, peer: Some(self.peer), action: Action::Announce(route) });
        Ok(())
    }
}
