//! Columns of addresses in, columns of ids out.
//!
//! A [`Column`] borrows addresses as programs and data engines hold them: integers, bytes in network order at any distance, text,
//! arrays of Arrow ([`arrow`]), dictionaries, with nulls, and both families in one column. A [`TableView`] looks all of its rows
//! up and writes an id for each.
//!
//! ```
//! use fibula::fib::DualFib;
//! use fibula::net::{IpPrefix, NextHop};
//! use fibula::rib::DualRib;
//! use fibula_column::{Column, LookupOptions, TableView};
//!
//! let mut ribs = DualRib::default();
//! ribs.insert("192.0.2.0/24".parse::<IpPrefix>()?, NextHop::try_from(7)?)?;
//! ribs.insert("2001:db8::/32".parse::<IpPrefix>()?, NextHop::try_from(9)?)?;
//! let fibs = DualFib::build(&ribs)?;
//!
//! let texts: [&[u8]; 4] = [b"192.0.2.1", b"2001:db8::1", b"203.0.113.1", b"192.0.2.256"];
//! let mut ids = [0; 4];
//! let counts = TableView::from(&fibs).lookup(&Column::texts(&texts), &mut ids, &LookupOptions::default())?;
//! assert_eq!(ids, [7, 9, 0, 0]);
//! assert_eq!((counts.invalid, counts.first_invalid), (1, Some(3)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Rules
//!
//! - Order is kept, the input is never modified, and nothing of it is kept after the call. Nobody may write to it meanwhile.
//! - An id is the number of a [`NextHop`](fibula::net::NextHop). It is 0 where a row is null, where no route matches, and where a
//!   row is invalid; the last are counted ([`LookupCounts`]), or the first is an error ([`LookupOptions::refuse_invalid`]).
//! - A null row is never invalid, whatever its bytes are.
//! - Text is an address alone, of either family, in any spelling that `inet_pton` takes and in no other. A blank, a zone (`%eth0`) and a prefix length make a
//!   row invalid.
//! - IPv4-mapped IPv6 addresses (`::ffff:0:0/96`) are looked up among the IPv6 routes, or among the IPv4 routes where
//!   [`LookupOptions::v4_mapped`] says so.
//! - A family without routes finds nothing; its addresses are not invalid.
//!
//! # Costs
//!
//! A column of `u32`, or of `u128` with the default options, is one batch of its engine. Other kinds are converted 256 rows at a
//! time on the stack. A dictionary is looked up once, entry by entry, and takes five bytes for each entry. Nothing else allocates,
//! except threads and errors.

pub mod arrow;
mod bitmap;
mod block;
mod column;
mod engines;
mod error;
mod import;
mod live;
mod lookup;
mod options;
mod prefixes;
mod rows;
mod text;
mod threads;
mod values;
mod vrf;

pub use bitmap::Bitmap;
pub use column::{AddressLayout, Column};
pub use error::{ColumnError, RowFault};
pub use live::lookup_pinned;
pub use lookup::TableView;
pub use options::{LookupCounts, LookupOptions, V4MappedRule};
pub use prefixes::PrefixView;
pub use rows::{ByteRows, EntryNumbers};
pub use values::{ValueColumn, ValueData, texts_of};
pub use vrf::lookup_in_vrfs;
