//! The BGP Monitoring Protocol (RFC 7854, RFC 8671, RFC 9069): what a router tells a station of its peers and their routes. Does no
//! I/O.
//!
//! - [`Header`], [`Frame`]: find the messages in a run of bytes.
//! - [`decode`]: reports what a message says to a [`Sink`]. [`Peers`] holds which peers are up, and how their routes are written.
//! - [`KINDS`]: the kinds of messages. To add one: a file that defines its `KIND`, and a line there.
//!
//! | kind | what it holds |
//! |---|---|
//! | Route Monitoring | an UPDATE of a peer, before or after the router's policy, or of the table that the router uses |
//! | Statistics Report, Route Mirroring | left out, counted |
//! | Peer Down, Peer Up | a session of the router ends or begins; the messages that opened it say how routes are written |
//! | Initiation, Termination | who the router is, and why it ends the session |
//!
//! What a router tells its own peers (Adj-RIB-Out) is left out, as are peers and messages of kinds that are not known; all is
//! reported by its kind, as a [`Skipped`]. Nothing resumes after damage, as what was lost may be a withdrawal: the session is to be
//! closed, and the router then tells everything again.

mod frame;
mod information;
mod monitoring;
mod open;
mod peer;
mod peer_down;
mod peer_up;
#[cfg(test)]
mod tests;
mod unread;

use bytes::Bytes;
use fibula::net::{Dual, Family};

use crate::mrt::{self, Cursor, Fault, Reading, Skipped};

pub use frame::{Frame, Header};
pub use peer::{Distinguisher, DistinguisherError, PeerHeader, PeerId, PeerKind, PeerTable, Peers};

/// The kinds of messages.
pub const KINDS: &[Kind] = &[
    monitoring::KIND,
    unread::STATISTICS,
    peer_down::KIND,
    peer_up::KIND,
    information::INITIATION,
    information::TERMINATION,
    unread::MIRRORING,
];

/// A kind of messages.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Kind {
    /// Its name in RFC 7854.
    pub name: &'static str,
    /// Its number.
    pub number: u8,
    decode: fn(&Message, &mut Peers, &mut dyn Sink) -> Reading<()>,
}

/// A message: its header and the bytes after it.
#[derive(Debug, Clone)]
pub struct Message {
    /// The header.
    pub header: Header,
    /// What follows it.
    pub body: Bytes,
}

impl Message {
    /// Copies a message from its bytes, those of the header included.
    #[must_use]
    pub fn new(header: Header, bytes: &[u8]) -> Self {
        Self { header, body: Bytes::copy_from_slice(bytes.get(Header::BYTES..).unwrap_or_default()) }
    }

    /// Returns a cursor over the whole body.
    fn cursor(&self) -> Cursor<'_> {
        Cursor::new(&self.body, Header::BYTES)
    }
}

/// Receives what messages say; the routes themselves as [`mrt::Sink`] does.
pub trait Sink: mrt::Sink {
    /// A peer is up, which exchanges routes of these families. If it was up before, that session has ended.
    fn up(&mut self, peer: &PeerHeader, families: Dual<bool>);
    /// A peer is down, for a reason by RFC 7854 section 4.9: none of its routes hold any more.
    fn down(&mut self, peer: &PeerHeader, reason: u8);
    /// Routes of a peer follow. Returns whether they are wanted; if not, they are passed over without decoding them.
    fn routes(&mut self, peer: &PeerHeader) -> bool;
    /// All routes of a family that a table of the peer has have been told.
    fn end_of_rib(&mut self, peer: &PeerHeader, family: Family);
    /// The router says who it is: its name, or its description.
    fn router(&mut self, name: &str);
    /// The router is about to end the session, for a reason.
    fn ends(&mut self, reason: &str);
}

/// Reads a message and reports to `sink` what it says. `peers` holds those that are up by the messages before.
///
/// Offsets of faults count from the beginning of the message.
///
/// # Errors
/// When the message is damaged: what it says is not known, or only to that place, so that the session is of no use any more.
pub fn decode(message: &Message, peers: &mut Peers, sink: &mut dyn Sink) -> Result<(), Fault> {
    match KINDS.iter().find(|kind| kind.number == message.header.kind) {
        Some(kind) => (kind.decode)(message, peers, sink),
        None => {
            sink.skipped(Skipped::without_routes("BMP messages of unknown types"), Header::BYTES - 1);
            Ok(())
        }
    }
}
