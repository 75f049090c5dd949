//! Table files: compiled tables that are ready as soon as they are opened.
//!
//! For each family, a file can hold an engine for lookups, the routes that it was built from, or both. It can also hold columns of
//! values: what next hops stand for, by their numbers. [`save`] writes a file, [`TableFile::open`] opens a verified copy, and [`TableFile::map`]
//! uses the file where it lies, so that many processes share its pages. A [`Follower`] notices when the file is replaced.
//!
//! ```
//! use fibula::file::{self, ColumnBuilder, ColumnType, ColumnValue, Contents, TableFile};
//! use fibula::net::{NextHop, Route};
//! use fibula::rib::Rib;
//!
//! # let folder = std::env::temp_dir().join(format!("fibula-file-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let path = folder.join("table.fibula");
//! let one = NextHop::try_from(1)?;
//! let mut rib = Rib::<u32>::default();
//! rib.insert(Route::new("192.0.2.0/24".parse()?, one))?;
//! let fib = fibula::fib::build(&rib)?;
//!
//! let mut names = ColumnBuilder::new("name", ColumnType::Text);
//! names.push(Some(ColumnValue::Text("gateway".into())))?;
//! let names = names.finish();
//! let mut contents = Contents { columns: vec![&names], ..Contents::default() };
//! contents.v4.fib = Some(&*fib);
//! contents.v4.routes = Some(&rib);
//! file::save(&path, &contents)?;
//!
//! let table = TableFile::open(&path)?;
//! let next_hop = table.lookup([192, 0, 2, 1]).expect("the route is there");
//! let names = table.column("name").expect("it was saved");
//! assert_eq!(names.value(next_hop), Some(ColumnValue::Text("gateway".into())));
//! let fib = table.v4.fib.as_ref().expect("it was saved");
//! assert_eq!(fib.lookup(0xc000_0201), Some(one));
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Which engines
//!
//! | engine | copied | mapped |
//! |---|---|---|
//! | `dir-17-bitmap`, `dir-17-sparse`, `dir-18-lines`, `dir-btree`, `dir-btree-byte` | yes | yes: all their words are atomic, and no lookup in them depends on what words say to end |
//! | `range-btree`, `planb` | yes | copied and verified: see [`Part::is_mapped`] |
//! | others | no: save the routes, and build from them | no |
//!
//! [`Engine::is_saved`](crate::fib::registry::Engine::is_saved) and
//! [`is_mapped`](crate::fib::registry::Engine::is_mapped) return the same. An engine that changes in place is saved as it is
//! at that moment, and opened as one that does not change. A program may lack the engine of a file: one of
//! another crate or of a later version, or one that was left out ([`Engines`](crate::fib::registry::Engines)). The routes next to it are then
//! compiled again ([`Part::replaced`]); without routes the file is refused.
//!
//! An engine with the lengths of matched prefixes ([`WithLength`](crate::fib::WithLength)) is saved with them. The engine of the opened
//! file then has them too ([`Fib::with_length`](crate::fib::Fib::with_length)).
//!
//! # Values
//!
//! The next hops of a table are ids of rows, from 1 on. Each [`StoredColumn`] has a name, a type, and a value, or none, for each id. Of
//! a mapped file they are read where they lie: opening one costs the same for a million values as for none. Files of version 1 have
//! bytes by id instead ([`Contents::values`]), which are read as one column, [`VALUE`], and are copied. Their ids may have gaps.
//!
//! # The format
//!
//! All numbers are little-endian. Big-endian machines convert as they copy, and do not map.
//!
//! ```text
//! header, 64 bytes       magic "\x89FIBULA\n" | version, 1 or 2 | 0x01020304 | sections | families | bytes of the file
//!                        | CRC of the section table | zeros | CRC of what is before
//! section table          a line of 64 bytes a section:
//!                        name, 32 bytes | width of a word | CRC | offset | bytes | flags, bit 0: needed
//! sections               in the order of the table; small ones aligned to 64 bytes, others to 4 KiB, arrays of engines
//!                        from 2 MiB on to 2 MiB; zeros between them
//! ```
//!
//! | section | content |
//! |---|---|
//! | `ipv4/structure` | text: `algorithm NAME`, then a line `NAME NUMBER` for each number that shapes it |
//! | `ipv4/structure/ARRAY` | an array of the engine; the first lines of its `open.rs` list them |
//! | `ipv4/routes/addresses`, `/lengths`, `/next-hops` | the routes in order, by column: words of 32, 16 and 32 bits |
//! | `ipv4/matches` | version 2: words of 64 bits. The next hops of the engine number them from 1 on; the lower half is the next hop, the upper half the length of the matched prefix |
//! | `ipv6/...` | the same; an address is two words of 64 bits, the upper one first |
//! | `values/next-hops`, `/ends`, `/bytes` | version 1: next hops that stand for bytes, ascending; where the bytes of each end; the bytes |
//! | `values/columns` | version 2: text, a line `TYPE COUNT NAME` for each column. The sections of the first are `values/0/...`, and so on |
//! | `values/0/valid` | a bit for each value, the lowest of a byte first, if some are missing |
//! | `values/0/words` | of `u32`, words of 32 bits; of `u64`, `i64` and `f64`, words of 64 |
//! | `values/0/bits` | of `bool`, a bit for each value |
//! | `values/0/offsets`, `/bytes` | of `text` and `bytes`: words of 32 or 64 bits, one more than values; value number `i` is the bytes from offset `i` to the next one |
//!
//! Checksums are CRC-32 (IEEE 802.3). A program refuses a file if it does not know the version or a needed section. It skips
//! other sections that it does not know. Magic, version and the header's checksum have the same places in all versions. A file without
//! columns and matches is written as version 1, which programs read that know version 1 alone.
//!
//! # What a file promises
//!
//! - **Whole or not at all.** At every moment, the name belongs to the old file or to the new one ([`save`]).
//! - **A copy is verified.** Every checksum is verified, and every invariant that [`Fib::check`](crate::fib::Fib::check) knows.
//!   A file that is truncated, altered, foreign or newer is refused with the reason. Checksums find damage, but they do not
//!   stop an attacker who makes a false file: such a file can give any answer, but lookups stay within its arrays.
//! - **A mapped file is trusted**, see [`TableFile::map`]. Values are checked against the bounds of their column at each access.
//! - **Nothing compares** the engine with the routes: a program that saves both asserts that they belong together.
//!
//! # Cost
//!
//! A full IPv4 table (901,899 routes) is opened by copy in 2 ms, with its routes in 14 ms, and mapped in 12 us; saving it
//! takes 20 and 80 ms. Both families with 82,607 values are mapped in 20 us. `docs/adr/0011-table-files.md` has the figures and how to repeat them.

mod column;
mod column_builder;
mod columns;
mod contents;
mod error;
mod follow;
mod format;
mod open;
mod part;
mod routes;
mod save;
mod source;
mod table;
#[cfg(test)]
mod tests;

/// Bytes that [`is_table_file`] looks at.
#[doc(hidden)]
pub const MAGIC_BYTES: usize = format::MAGIC.len();

#[doc(hidden)]
/// Returns whether a file that begins with these bytes is a table file, of whatever version, good or not.
#[must_use]
pub fn is_table_file(head: &[u8]) -> bool {
    head.starts_with(&format::MAGIC)
}

/// The newest version that this code reads, and writes where a file needs it.
const VERSION: u32 = 2;

pub use column::{ColumnOffsets, ColumnType, ColumnValue, ColumnWords, StoredColumn};
pub use column_builder::{ColumnBuilder, ColumnRefusal};
pub use columns::VALUE;
pub use contents::{Contents, Half};
pub use error::FileError;
pub use follow::{FileStamp, Follower};
pub use part::Part;
pub use routes::StoredRoutes;
pub use save::save;
pub use table::TableFile;
