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
//! its value. Because of this, maps have the order and the queries of a `Rib`, and can use the engines of [`fib`](crate::fib).
//!
//! # Operations
//!
//! An operation has the same name in every type that has it. Operations of [`SharedPrefixMap`] return a `Result`, because other
//! threads change the map too, and pass values to closures or copy them. Threads look addresses up in a [`SharedPrefixMap`]
//! with a [`Pinned`].
//!
//! <!-- of the sources -->
//!
//! | | [`PrefixMap`] | [`IpPrefixMap`] | [`PrefixSet`] | [`SharedPrefixMap`] | [`Pinned`] |
//! |---|---|---|---|---|---|
//! | `aggregate` | yes | yes | | | |
//! | `check` | yes | yes | yes | yes | |
//! | `clear` | yes | yes | yes | yes | |
//! | `compile` | yes | yes | | | |
//! | `contains` | yes | yes | yes | yes | |
//! | `covers` | yes | yes | yes | yes | |
//! | `difference` | yes | | yes | | |
//! | `entry` | yes | yes | | | |
//! | `extend` | yes | yes | yes | yes | |
//! | `from_entries` | yes | yes | yes | yes | |
//! | `from_iter` | yes | yes | yes | | |
//! | `get` | yes | yes | | yes | |
//! | `get_mut` | yes | yes | | | |
//! | `insert` | yes | yes | yes | yes | |
//! | `into_iter` | yes | yes | yes | | |
//! | `is_empty` | yes | yes | yes | yes | |
//! | `iter` | yes | yes | yes | yes | |
//! | `iter_after` | yes | yes | yes | yes | |
//! | `iter_mut` | yes | yes | | | |
//! | `keys` | yes | yes | | | |
//! | `len` | yes | yes | yes | yes | |
//! | `lookup` | yes | yes | | yes | yes |
//! | `lookup_batch` | yes | yes | yes | | yes |
//! | `lookup_mut` | yes | yes | | | |
//! | `lookup_prefix` | yes | yes | yes | yes | |
//! | `memory` | yes | yes | yes | yes | |
//! | `new` | yes | yes | yes | yes | |
//! | `overlaps` | yes | yes | yes | yes | |
//! | `parent` | yes | yes | yes | yes | |
//! | `remove` | yes | yes | yes | yes | |
//! | `remove_subnets` | yes | yes | yes | | |
//! | `replace` | yes | yes | yes | yes | |
//! | `retain` | yes | yes | yes | yes | |
//! | `set_limits` | yes | yes | yes | | |
//! | `shrink` | yes | yes | yes | | |
//! | `subnets` | yes | yes | yes | yes | |
//! | `try_from_entries` | yes | yes | yes | | |
//! | `try_insert` | yes | yes | yes | | |
//! | `try_replace` | yes | yes | yes | | |
//! | `values` | yes | yes | | | |
//! | `values_mut` | yes | yes | | | |
//! | `within` | yes | yes | yes | | |
//!
//! Operations of one type alone:
//!
//! - [`PrefixMap`] has `compile_covers`, `compile_each`, `compile_for`, `covers_batch`, `covers_prefixes`,
//!   `insert_range`, `intersection_with`, `join`, `merge_with`, `rib`, `try_insert_range`, `union_with`
//! - [`PrefixSet`] has `intersection`, `is_disjoint`, `is_subset`, `is_superset`, `overlaps_set`,
//!   `symmetric_difference`, `union`
//! - [`SharedPrefixMap`] has `apply`, `entries`, `flush`, `for_each`, `from_entries_interning`, `interning`,
//!   `maintain`, `reader`, `value_count`, `with`
//! - [`Pinned`] has `batch`
//!
//! <!-- end -->

#[cfg(doc)]
use crate::Pinned;

mod address_operations;
mod addresses;
mod aggregate;
mod compiled;
mod compiled_covers;
mod entry;
mod ip;
mod iter;
mod join;
#[cfg(test)]
mod operations_tests;
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
pub use entry::Entry;
pub use ip::{CompiledIpMap, IpPrefixMap};
#[doc(hidden)]
pub use iter::{Covers, IntoIter, Iter, IterMut};
pub use prefix_map::PrefixMap;
pub use set::PrefixSet;
pub use shared::SharedPrefixMap;
#[doc(hidden)]
pub use shared_read::MapEntries;
