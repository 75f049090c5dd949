//! A table of next hops: values of any type that routes lead to by number, and weighted groups of them.
//!
//! # The idea
//!
//! A route has the number of its next hop ([`NextHop`](crate::net::NextHop)), and [`NextHops`] has the value of each number.
//! To change or withdraw a next hop, one word is stored there. All routes through it follow at once, whether there are
//! two or a million. A *group* spreads the flows of its routes over several next hops, its *members*, by weight.
//!
//! ```text
//! address ── Table ──> number ── words ──> hop: slot ── values ──> T
//!                                  │
//!                                  └─────> group: buckets ── flow hash ──> member ── words ──> hop: slot ── values ──> T
//! ```
//!
//! A reader of next hops takes the flow hash with each lookup and returns members, never groups: no caller can forget to
//! resolve one. It pins the table and its next hops with one word, so that the values that it finds stay in place
//! ([`live`](crate::live)). These documents speak of a table, but all [`Vrfs`](crate::vrf::Vrfs) of a handle work the same
//! way: they have their next hops in common, and lookups take a VRF too.
//!
//! ```
//! use std::net::Ipv4Addr;
//!
//! use fibula::Table;
//! use fibula::hops::{NextHops, Resolved};
//! use fibula::net::IpPrefix;
//!
//! let table = Table::new()?;
//! let hops = NextHops::new(&table)?;
//! let (left, right) = (hops.add("left")?, hops.add("right")?);
//! let both = hops.add_group(&[(left, 1), (right, 3)])?;
//! table.insert("192.0.2.0/24".parse::<IpPrefix>()?, both)?;
//!
//! let mut reader = hops.reader()?;
//! let address = Ipv4Addr::new(192, 0, 2, 1);
//! let flow_hash = 0x1234_5678; // of the packet's addresses, ports and protocol
//! assert!(matches!(reader.pin().lookup(address, flow_hash), Resolved::Found { .. }));
//!
//! // One link fails: its flows move to the other link, and no other flow moves.
//! hops.withdraw(right)?;
//! assert!(matches!(reader.pin().lookup(address, flow_hash), Resolved::Found { value: &"left", .. }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Numbers
//!
//! Numbers are given out from 1 up, because small numbers keep structures in their narrow forms. A number has one *hold* for
//! each call of [`add`](NextHops::add) or [`add_group`](NextHops::add_group) that returned it;
//! [`release`](NextHops::release) ends one hold. A number without a hold is *leaving*: it still resolves for the routes and
//! groups that have it. The table counts its routes by next hop. Once no route and no group has a leaving number, the number
//! is retired. It becomes free when all readers that were pinned at that time have unpinned, and a free number is given out
//! before any new one. So no lookup resolves a number by a meaning that the number got later.
//!
//! # Withdrawn
//!
//! A withdrawn next hop keeps its number, its holds and its routes, but leads nowhere. Its routes still match: addresses do
//! *not* fall back to a shorter prefix, because that would need a change of the table for each route. They resolve to
//! [`Resolved::Withdrawn`]. Readers count such lookups ([`Statistics::withdrawn_lookups`]), and a router treats them as
//! unreachable. [`change`](NextHops::change) brings the next hop back, again by one store. However, numbers that were never
//! given out, or are free, resolve to [`Resolved::Unknown`], which is counted separately.
//!
//! # Groups
//!
//! A group has a table of *buckets*, a power of two of them, each with the number of a member. The hash of a flow selects its
//! bucket. The hash is multiplied first, so that a hash of few bits spreads too. A new group gives each member its share of
//! the buckets by weight, to within one bucket (largest remainder). The groups are *resilient* (the Linux kernel's name for
//! groups with buckets; RFC 2992 analyses how many flows other schemes move):
//!
//! - A member that is withdrawn, or leaves the group, vacates its buckets, and the other members divide them. No other bucket
//!   changes.
//! - A member that comes back or joins, or whose weight grows, takes as many buckets as its share lacks. They come from
//!   members that have more than their share. No other bucket changes.
//! - [`Statistics::moved_buckets`] counts every bucket that changes its member.
//!
//! A few microseconds pass between the store that withdraws a member and the stores to its buckets. During that time, its
//! flows go to the member of the next bucket that is not withdrawn: there is no moment in which a group with a live member
//! resolves to nothing. A group is withdrawn if all its members are.
//!
//! Groups with the same members, weights (up to a common factor) and buckets are one group with one number: `add_group`
//! returns it again. [`change_group`](NextHops::change_group) replaces the members of a group with a single hold, for all
//! of its routes by one store.
//!
//! # Layout
//!
//! ```text
//! words     64 bits a number   kind (2); for a hop its slot, for a group the place and size of its buckets
//! buckets   32 bits each       the number of a member; the buckets of a group are adjacent
//! values    a slot a hop       a state and the T, in place
//! ```
//!
//! All three are in segments that never move ([`live`](crate::live) has them, and `slots.rs` has the two steps in which a
//! value ends). A hop is one load after the table's lookup. A group is three loads, and the second one is of a bucket.
//!
//! # Invariants
//!
//! 1. The word of a number leads to an open slot, or to buckets each of which has the number of a member of the group.
//! 2. If any member of a group is not withdrawn, no bucket has one that is, except between the stores of one call.
//! 3. Each member lists its groups, each group once.
//! 4. The list of groups by members has each group once, and none that is retired.
//! 5. A free number has no word, and no route. A block of buckets is free, retired, or of one group.
//! 6. All that can fail in a call comes before its first store.

mod assign;
mod blocks;
mod check;
mod error;
mod group;
mod next_hops;
mod reader;
mod routed;
mod shared;
mod state;
#[cfg(test)]
mod tests;
mod vrf;
#[cfg(test)]
mod vrf_tests;
mod word;
mod words;

pub use error::HopsError;
pub use next_hops::{NextHops, Statistics};
pub use reader::{Counts, Resolved};
#[doc(hidden)]
pub use routed::Routed;

/// The most buckets that a group has.
#[doc(hidden)]
pub const MOST_BUCKETS: usize = 1 << 16;
