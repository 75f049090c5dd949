//! The BGP Monitoring Protocol (RFC 7854, RFC 8671, RFC 9069), with which a router reports its peers and their routes
//! to a monitoring station. Does no I/O.
//!
//! - [`Header`], [`Frame`]: find the messages in a run of bytes.
//! - [`decode`]: reports the content of a message to a [`Sink`]. [`Peers`] records which peers are up, and how their
//!   routes are written.
//! - [`KINDS`]: the kinds of messages. To add one: a file that defines its `KIND`, and a line there.
//!
//! | kind | content |
//! |---|---|
//! | Route Monitoring | an UPDATE of a peer, before or after the router's policy, or of the table that the router uses |
//! | Statistics Report, Route Mirroring | left out, counted |
//! | Peer Down, Peer Up | a session of the router ends or begins; the messages that opened it define how routes are written |
//! | Initiation, Termination | the name of the router, and its reason to end the session |
//!
//! Routes that a router announces to its own peers (Adj-RIB-Out) are left out, as are peers and messages of unknown
//! kinds. They are all reported by kind, as a [`Skipped`]. Reading does not resume after damage, because a withdrawal
//! may have been lost: close the session, and the router will send everything again.

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
    /// The bytes after the header.
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

/// Receives the content of messages. Routes are reported to the methods of [`mrt::Sink`].
pub trait Sink: mrt::Sink {
    /// A peer is up and exchanges routes of these families. If it was up before, the earlier session has ended.
    fn up(&mut self, peer: &PeerHeader, families: Dual<bool>);
    /// A peer is down, for a reason by RFC 7854 section 4.9: none of its routes hold any more.
    fn down(&mut self, peer: &PeerHeader, reason: u8);
    /// Routes of a peer follow. Returns whether they are wanted; if not, they are passed over without decoding them.
    fn routes(&mut self, peer: &PeerHeader) -> bool;
    /// All routes of a family in a table of the peer have been sent.
    fn end_of_rib(&mut self, peer: &PeerHeader, family: Family);
    /// The router has identified itself: by its name, or by its description if it sends no name.
    fn router(&mut self, name: &str);
    /// The router is about to end the session, for a reason.
    fn ends(&mut self, reason: &str);
}

/// Reads a message and reports its content to `sink`. `peers` holds the peers that are up after the messages before it.
///
/// Offsets of faults count from the beginning of the message.
///
/// # Errors
/// When the message is damaged. Some or all of its content is then unknown, so the session is of no use any more.
pub fn decode(message: &Message, peers: &mut Peers, sink: &mut dyn Sink) -> Result<(), Fault> {
    match KINDS.iter().find(|kind| kind.number == message.header.kind) {
        Some(kind) => (kind.decode)(message, peers, sink),
        None => {
            sink.skipped(Skipped::without_routes("BMP messages of unknown types"), Header::BYTES - 1);
            Ok(())
        }
    }
}
