//! Reads routes: MRT files, BGP updates and text tables, plain or compressed.
//!
//! - [`Loader`]: loads whole files and streams into [`LoadedRoutes`] with a [`Report`], counts the announcements and
//!   withdrawals of each peer, or calls you back for every event. [`Selection`] chooses the peers whose routes are
//!   taken.
//! - [`NextHops`]: the labels of the numbered next hops of a table. [`Value`] chooses the kind of labels, and
//!   [`Filter`] the routes that are taken.
//! - [`select`]: the rules of the best path, and the routes of all peers as they change.
//! - [`text`]: reads one line of text. Does no I/O.
//! - [`mrt`]: reads the records of route collectors and routing daemons. Does no I/O.
//! - [`bmp`]: reads the messages by which a router reports its peers to a monitoring station. Does no I/O.
//! - [`bgp`]: the messages and path attributes in them.
//! - [`event`]: the events that all of these report, for example that a peer announces a route.
//! - [`WantedColumns`]: the typed columns of values that a compiled table shall have.
//! - [`rpki`]: validated ROA payloads, and the validation states of routes by them.
//! - [`compression`]: gzip, bzip2, xz and zstd, recognised by their first bytes.
//!
//! ```
//! use fibula_feed::{LoadOptions, Loader, Source};
//!
//! let text = b"\
//! ## prefix and next hop
//! 0.0.0.0/0       192.0.2.1
//! 198.51.100.0/24 via 192.0.2.2
//! 198.51.100.0/33 192.0.2.3
//! 2001:db8::/32   64500
//! ";
//! let table = Loader::new(LoadOptions::default()).load(Source::reader("routes.txt", &text[..]))?;
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
pub mod bmp;
pub mod compression;
mod document;
pub mod event;
mod filter;
mod ledger;
mod load;
pub mod mmdb;
pub mod mrt;
mod next_hops;
mod ribs;
pub mod rpki;
pub mod select;
pub mod text;
mod value;
mod wanted_columns;

pub use document::{ByRule, Choice, Columns, Hostile, TableForm};
pub use filter::{AsPathPattern, CommunityPattern, Filter, PatternError};
pub use load::{
    BadLine, Content, LoadError, LoadOptions, LoadedRoutes, Loader, MAX_LINE_BYTES, MAX_UNSETTLED_BYTES,
    PeerCounts, PeerName, PeerNameError, Progress, Report, Selection, Source, THREAD_BYTES, TableOrder,
    Truncation,
};
pub use next_hops::{Label, NextHops, NextHopsError};
pub use value::{Facts, Value, ValueError, asn};
pub use wanted_columns::{WantedColumns, WantedColumnsError};
