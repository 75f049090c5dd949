//! MRT files (RFC 6396, RFC 8050): tables and updates as route collectors and routing daemons archive them. Does no
//! I/O.
//!
//! - [`Header`], [`Frame`]: records, found one behind another, and found again behind damage.
//! - [`decode`]: what a record says, told to a [`Sink`].
//! - [`KINDS`]: the kinds of records. To add one: a file that defines its `KIND`, and a line there.
//!
//! | kind | what it holds |
//! |---|---|
//! | `TABLE_DUMP` | a route of a peer a record, AS numbers of two bytes |
//! | `TABLE_DUMP_V2` | the list of peers first, then a prefix a record with the routes of all its peers |
//! | `BGP4MP`, `BGP4MP_ET` | messages as they came from a peer, and the states of its session |
//!
//! Routes of unicast are read; multicast, VPNs and other families are counted and left out, as are records of other
//! kinds (OSPF, IS-IS).
//!
//! Every fault has its offset in the (decompressed) file. A record that does not decode is left out, and what it told
//! before the fault counts. Where no record begins at the place where one should, the next place from which two follow
//! each other is looked for.

mod bgp4mp;
mod cursor;
mod fault;
mod frame;
mod table_dump;
mod table_dump_v2;
#[cfg(test)]
pub(crate) mod tests;

use bytes::Bytes;
use fibula::net::Family;

use crate::event::{Event, Peer};

pub(crate) use cursor::{Cursor, Reading};
pub(crate) use fault::FaultKind;
pub use fault::{Fault, Reason};
pub(crate) use frame::is_mrt;
pub use frame::{Frame, Header, MAX_RECORD_BYTES};
pub use table_dump_v2::PeerTable;

/// The kinds of records.
pub const KINDS: &[Kind] = &[table_dump::KIND, table_dump_v2::KIND, bgp4mp::KIND, bgp4mp::KIND_ET];

/// A kind of records.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Kind {
    /// Its name in RFC 6396.
    pub name: &'static str,
    /// Its number.
    pub number: u16,
    /// Its subtypes are below this.
    subtypes: u16,
    decode: fn(&Record, Option<&PeerTable>, &mut dyn Sink) -> Reading<()>,
}

/// A record: its header, and the bytes behind it.
#[derive(Debug, Clone)]
pub struct Record {
    /// The header.
    pub header: Header,
    /// What follows it.
    pub body: Bytes,
}

impl Record {
    /// The whole body, as the decoders read it.
    fn cursor(&self) -> Cursor<'_> {
        Cursor::new(&self.body, Header::BYTES)
    }
}

/// What is told while records are decoded.
pub trait Sink {
    /// Told once for every route that is announced (`announced`) or withdrawn; `index` is the place of the peer in the
    /// list of a `TABLE_DUMP_V2`. False where the route is not wanted: it is passed over unread.
    fn wants(&mut self, peer: &Peer, index: Option<u16>, family: Family, announced: bool) -> bool;
    /// A route, a withdrawal, the end of a session.
    fn event(&mut self, event: Event);
    /// Something that is wrong and does not keep the rest of the record from being read.
    fn fault(&mut self, fault: Fault);
    /// Routes of a family that is not read.
    fn other_family(&mut self);
}

/// Reads a record and tells `sink` what it says. `peers` is the latest list of peers before it.
///
/// Offsets of faults count from the beginning of the record.
///
/// # Errors
/// When the record cannot be read to its end; what came before the fault was told.
pub fn decode(record: &Record, peers: Option<&PeerTable>, sink: &mut dyn Sink) -> Result<(), Fault> {
    match KINDS.iter().find(|kind| kind.number == record.header.kind) {
        Some(kind) => (kind.decode)(record, peers, sink),
        None => {
            sink.other_family();
            Ok(())
        }
    }
}
