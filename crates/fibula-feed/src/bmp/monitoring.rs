//! Route Monitoring (RFC 7854 section 4.6): an UPDATE of a peer.

use fibula::net::Dual;

use super::peer::{MessageFormat, PeerHeader, PeerTable, Peers};
use super::{Header, Kind, Message, Sink};
use crate::bgp::{self, AsWidth, PeerSession};
use crate::mrt::{FaultKind, Reading, Skipped};

pub(super) const KIND: Kind = Kind { name: "Route Monitoring", number: 0, decode };

fn decode(message: &Message, peers: &mut Peers, sink: &mut dyn Sink) -> Reading<()> {
    let mut at = message.cursor();
    let Some(header) = PeerHeader::read(&mut at, sink)? else { return Ok(()) };
    let start = at.position();
    if header.table == PeerTable::AdjRibOut {
        sink.skipped(Skipped::without_routes("BMP Adj-RIB-Out"), start);
        return Ok(());
    }
    let codec = match peers.get(&header.id) {
        Some(codec) => codec,
        None if peers.may_begin_untold(&header) => {
            let codec = MessageFormat { width: Some(AsWidth::Four), add_path: Dual::default() };
            peers.insert(header.id, codec);
            sink.up(&header, Dual::new(true, true));
            codec
        }
        None => {
            sink.fault(FaultKind::NotUp(header.peer.address).at(start));
            return Ok(());
        }
    };
    if !sink.routes(&header) {
        return Ok(());
    }
    let update = message.body.slice(start - Header::BYTES..);
    // Bytes after the UPDATE would be routes that are lost: the lengths must agree.
    at.take(16, "marker of the message")?;
    let len = at.u16("message length")?;
    if usize::from(len) != update.len() {
        return Err(FaultKind::MessageLength { len, have: update.len() }.at(start + 16));
    }
    if let Some(family) = bgp::end_of_rib(&update) {
        sink.end_of_rib(&header, family);
        return Ok(());
    }
    let width = if header.two_octets { Some(AsWidth::Two) } else { codec.width };
    let session = PeerSession { time: header.time, peer: header.peer, width, add_path: codec.add_path };
    match bgp::message(&update, start, &session, sink) {
        // Announcements without a next hop have been taken as withdrawals (RFC 7606 section 2): all routes are known.
        Err(fault) if fault.is_without_next_hop() => {
            sink.fault(fault);
            Ok(())
        }
        done => done,
    }
}
