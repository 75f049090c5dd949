//! Peer Up (RFC 7854 section 4.10): a session of the router has begun.

use fibula::net::Dual;

use super::information;
use super::open::Open;
use super::peer::{MessageFormat, PeerHeader, PeerTable, Peers};
use super::{Kind, Message, Sink};
use crate::bgp::AsWidth;
use crate::mrt::Reading;

pub(super) const KIND: Kind = Kind { name: "Peer Up", number: 3, decode };

fn decode(message: &Message, peers: &mut Peers, sink: &mut dyn Sink) -> Reading<()> {
    let mut at = message.cursor();
    let Some(header) = PeerHeader::read(&mut at, sink)? else { return Ok(()) };
    at.take(16 + 2 + 2, "local address and ports")?;
    let sent = Open::read(&mut at)?;
    let received = Open::read(&mut at)?;
    information::read(&mut at, |_, _| Ok(()))?;

    let both = |one: Dual<bool>, other: Dual<bool>| Dual::new(one.v4 && other.v4, one.v6 && other.v6);
    let mut add_path = both(sent.receives, received.sends);
    if let PeerTable::LocRib { .. } = header.table {
        // A Loc-RIB has no peer: both messages are the router's own, and define how it writes (RFC 9069 section 5.1).
        add_path = Dual::new(sent.sends.v4 || add_path.v4, sent.sends.v6 || add_path.v6);
    }
    let four_octets = sent.four_octets && received.four_octets;
    // Without four bytes in the session, a router writes paths as they came or in four bytes all the same (RFC 7854 section 4.2).
    let width = four_octets.then_some(AsWidth::Four);
    peers.insert(header.id, MessageFormat { width, add_path });
    sink.up(&header, both(sent.families(), received.families()));
    Ok(())
}
