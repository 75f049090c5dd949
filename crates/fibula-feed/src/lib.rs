//! Where routes come from: text tables, plain or compressed.
//!
//! - [`text`]: one line of text to a prefix and what it leads to. Does no I/O.
//! - [`compression`]: gzip, bzip2, xz and zstd, told apart by their first bytes.
//! - [`load`](load()), [`load_reader`]: a whole file to a [`Table`] and a [`Report`] of what was met on the way.
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
//! let next_hop = table.v4.lookup(0xc633_6401).expect("a default route matches all");
//! assert_eq!(table.next_hops.label(next_hop).unwrap().to_string(), "192.0.2.2");
//! assert_eq!((table.v4.len(), table.v6.len()), (2, 1));
//! assert_eq!(
//!     table.report.first_bad[0].to_string(),
//!     "routes.txt:4:14: prefix length 33 is above the 32 bits of IPv4",
//! );
//! # Ok::<(), fibula_feed::LoadError>(())
//! ```

pub mod compression;
mod load;
mod next_hops;
pub mod text;

pub use load::{
    BadLine, LoadError, LoadOptions, MAX_LINE_BYTES, Progress, Report, Table, Truncation, load, load_reader,
};
pub use next_hops::{Label, NextHops, NextHopsError};
