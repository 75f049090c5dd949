//! Where routes come from: MRT files, BGP updates and text tables, plain or compressed.
//!
//! - [`text`]: one line of text to a route, or to what a peer said. Does no I/O.
//! - [`mrt`]: the records of route collectors and routing daemons. Does no I/O.
//! - [`bgp`]: the messages and path attributes in them.
//! - [`event`]: what all of these say: who announces or withdraws what.
//! - [`compression`]: gzip, bzip2, xz and zstd, told apart by their first bytes.
//! - [`load`](load()), [`load_all`], [`load_reader`]: whole files to a [`Table`] and a [`Report`] of what was met on the
//!   way; [`Selection`] says whose routes are taken. [`survey`] counts them, [`events`] tells what was said.
//! - [`NextHops`]: what the numbered next hops of a table stand for.
//!
//! ```
//! use fibula_feed::{LoadOptions, load_reader};
//!
//! let text = b"\
//! ## prefix and next hop
//! 0.0.0.0/0       192.0.2.1
//! 198.51.100.0/24 via 192.0.2.2
//! 198.51.100.0/33 192.0.2.3
//! 2001:db8::/32   64500
//! ";
//! let table = load_reader("routes.txt", &text[..], &LoadOptions::default(), &mut |_| ())?;
//!
//! let next_hop = table.ribs.v4.lookup(0xc633_6401).expect("a default route matches all");
//! assert_eq!(table.next_hops.label(next_hop).unwrap().to_string(), "192.0.2.2");
//! assert_eq!((table.ribs.v4.len(), table.ribs.v6.len()), (2, 1));
//! assert_eq!(
//!     table.report().first_bad[0].to_string(),
//!     "routes.txt:4:14: prefix length 33 is above the 32 bits of IPv4",
//! );
//! # Ok::<(), fibula_feed::LoadError>(())
//! ```

pub mod bgp;
pub mod compression;
pub mod event;
mod ledger;
mod load;
pub mod mrt;
mod next_hops;
pub mod text;

pub use load::{
    BadLine, Content, LoadError, LoadOptions, MAX_LINE_BYTES, MAX_UNSETTLED_BYTES, PeerCounts, PeerName,
    PeerNameError, Progress, Report, Selection, THREAD_BYTES, Table, Truncation, events, events_reader, load,
    load_all, load_reader, survey, survey_reader,
};
pub use next_hops::{Label, NextHops, NextHopsError};
