//! Peer Down (RFC 7854 section 4.9, RFC 9069 section 5.3): a session of the router has ended, and its routes with it.

use super::peer::{PeerHeader, Peers};
use super::{Kind, Message, Sink};
use crate::mrt::{Reading, Skipped};

pub(super) const KIND: Kind = Kind { name: "Peer Down", number: 2, decode };

fn decode(message: &Message, peers: &mut Peers, sink: &mut dyn Sink) -> Reading<()> {
    let mut at = message.cursor();
    let Some(header) = PeerHeader::read(&mut at, sink)? else { return Ok(()) };
    let start = at.position();
    // The bytes after the reason only explain it.
    let reason = at.u8("reason")?;
    if peers.remove(&header.id) {
        sink.down(&header, reason);
    } else {
        // FRR sends a Peer Down for every attempt to begin a session.
        sink.skipped(Skipped::STATE_CHANGE, start);
    }
    Ok(())
}
