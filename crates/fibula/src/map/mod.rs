//! Maps from prefixes to values of any type, and sets of prefixes and of addresses.
//!
//! | to | use |
//! |---|---|
//! | keep a value of any type for each prefix, of one family | [`PrefixMap`] |
//! | the same for both families, with addresses of either | [`IpPrefixMap`] |
//! | change a map of both families while other threads look up in it | [`SharedPrefixMap`] |
//! | look up many addresses in a map that does not change | [`PrefixMap::compile`], [`CompiledMap`] |
//! | find *all* prefixes around an address, not only the longest | [`PrefixMap::covers`]; in bulk [`PrefixMap::covers_batch`], [`PrefixMap::compile_covers`] |
//! | combine two maps prefix by prefix | [`PrefixMap::join`], [`PrefixMap::union_with`] and their neighbours |
//! | keep prefixes without values; unions, intersections and differences of them | [`PrefixSet`] |
//! | the same of the addresses that prefixes contain; the fewest prefixes for them | [`AddressSet`] |
//! | map addresses from a first to a last one | [`PrefixMap::insert_range`], [`prefixes_of`] |
//!
//! A map is changed by its owner (`&mut self`), but for [`SharedPrefixMap`], in which other threads look up while it changes. It
//! is built on a [`Table`](crate::Table), whose routes have next hops.
//!
//! A map keeps its prefixes in a [`Rib`](crate::rib::Rib) and its values in a list; the next hop of a route is the place of
//! its value. So maps have the order and the queries of that table, and the structures of [`fib`](crate::fib).

mod address_operations;
mod addresses;
mod aggregate;
mod compiled;
mod compiled_covers;
mod entry;
mod ip;
mod iter;
mod join;
mod prefix_map;
mod range;
#[cfg(feature = "serde")]
mod serde;
mod set;
mod set_operations;
mod shared;
mod shared_bulk;
#[cfg(test)]
mod shared_bulk_tests;
mod shared_read;
mod shared_reader;
#[cfg(test)]
mod shared_tests;
mod slab;
#[cfg(test)]
mod tests;
mod traits;

#[doc(hidden)]
pub use crate::net::PrefixesOf;
pub use crate::net::prefixes_of;
pub use addresses::AddressSet;
pub use compiled::CompiledMap;
pub use compiled_covers::CompiledCovers;
pub use entry::{Entry, OccupiedEntry, VacantEntry};
pub use ip::{CompiledIpMap, IpEntry, IpPrefixMap};
pub use iter::Covers;
#[doc(hidden)]
pub use iter::{IntoIter, Iter, IterMut};
pub use prefix_map::PrefixMap;
pub use set::PrefixSet;
pub use shared::SharedPrefixMap;
pub use shared_read::MapEntries;
pub use shared_reader::{MapReader, PinnedMap};
