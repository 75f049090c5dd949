//! MRT files (RFC 6396, RFC 8050): tables and updates as route collectors and routing daemons archive them. Does no
//! I/O.
//!
//! - [`Header`], [`Frame`]: find the records in a run of bytes, and find them again after damage.
//! - [`decode`]: reports the content of a record to a [`Sink`].
//! - [`KINDS`]: the kinds of records. To add one: a file that defines its `KIND`, and a line there.
//!
//! | kind | content |
//! |---|---|
//! | `TABLE_DUMP` | one route of one peer, with AS numbers of two bytes |
//! | `TABLE_DUMP_V2` | first the list of peers, then one prefix a record with the routes of all peers |
//! | `BGP4MP`, `BGP4MP_ET` | messages as they came from a peer, and the states of its session |
//! | `BGP` | the same as recorded until about 2001, for IPv4 peers |
//!
//! Unicast routes are read. Everything else that is recognised (multicast, VPNs, OSPF, IS-IS, session messages) is
//! reported by its kind, as a [`Skipped`].
//!
//! Every fault has its offset in the (decompressed) file. If a record cannot be decoded, its content before the fault
//! still counts. Where no record begins at the expected place, reading resumes at the next place from which two records
//! follow each other.

mod bgp4mp;
mod bgp_legacy;
mod cursor;
mod fault;
mod frame;
#[cfg(test)]
mod frame_tests;
mod skipped;
mod table_dump;
mod table_dump_v2;
#[cfg(test)]
pub(crate) mod tests;

use crate::event::{Event, Path, Peer};
use bytes::Bytes;

pub(crate) use cursor::{Cursor, Reading};
pub(crate) use fault::FaultKind;
pub use fault::{Fault, Reason};
pub use frame::{Frame, Header, MAX_RECORD_BYTES};
pub(crate) use frame::{begins_with_header, is_mrt};
pub use skipped::Skipped;
pub use table_dump_v2::PeerIndexTable;

/// The kinds of records.
pub const KINDS: &[Kind] =
    &[table_dump::KIND, table_dump_v2::KIND, bgp4mp::KIND, bgp4mp::KIND_ET, bgp_legacy::KIND];

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
    decode: fn(&Record, Option<&PeerIndexTable>, &mut dyn Sink) -> Reading<()>,
}

/// A record: its header and the bytes after it.
#[derive(Debug, Clone)]
pub struct Record {
    /// The header.
    pub header: Header,
    /// The bytes after the header.
    pub body: Bytes,
}

impl Record {
    /// Returns a cursor over the whole body.
    fn cursor(&self) -> Cursor<'_> {
        Cursor::new(&self.body, Header::BYTES)
    }
}

/// How a record mentions a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mention {
    /// As a line of a table dump.
    Listed,
    /// In an update, as announced.
    Announced,
    /// In an update, as withdrawn.
    Withdrawn,
}

/// Receives the content of records.
pub trait Sink {
    /// Called once for every route of a peer; `index` is the peer's place in the list of a `TABLE_DUMP_V2`. Returns
    /// whether the route is wanted; one that is not is passed over without decoding it.
    fn wants(&mut self, peer: &Peer, index: Option<u16>, path: &Path, mention: Mention) -> bool;
    /// A route, a withdrawal, the end of a session.
    fn event(&mut self, event: Event);
    /// A fault that does not keep the rest of the record from being read.
    fn fault(&mut self, fault: Fault);
    /// Content that was recognised and left out, at `offset` of the record.
    fn skipped(&mut self, kind: Skipped, offset: usize);
}

/// Reads a record and reports its content to `sink`. `peers` is the latest list of peers before it.
///
/// Offsets of faults count from the beginning of the record.
///
/// # Errors
/// When the record cannot be read to its end. Its content before the fault has been reported.
pub fn decode(record: &Record, peers: Option<&PeerIndexTable>, sink: &mut dyn Sink) -> Result<(), Fault> {
    match KINDS.iter().find(|kind| kind.number == record.header.kind) {
        Some(kind) => (kind.decode)(record, peers, sink),
        None => {
            // Framing accepts no other numbers.
            let kind = Skipped::record(record.header.kind);
            sink.skipped(kind.unwrap_or(Skipped::with_routes("other MRT records")), 4);
            Ok(())
        }
    }
}
