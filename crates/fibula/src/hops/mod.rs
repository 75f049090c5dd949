//! Next hops as a table of their own: values of any type that routes lead to by number, and weighted groups of them.
//!
//! # The idea
//!
//! A route has the number of its next hop ([`NextHop`](crate::net::NextHop)), and [`NextHops`] has what the number means. To
//! change or withdraw a next hop is to store one word there, and all routes through it follow at once, whether there are
//! two or a million. A *group* spreads the flows of its routes over several next hops, its *members*, by weight.
//!
//! ```text
//! address ── Table ──> number ── words ──> hop: slot ── values ──> T
//!                                  │
//!                                  └─────> group: buckets ── flow hash ──> member ── words ──> hop: slot ── values ──> T
//! ```
//!
//! A reader of next hops takes the flow hash with each lookup and returns members, never groups: no caller can forget to
//! resolve one. It pins the table and its next hops with one word, so that what it finds stays in place ([`live`](crate::live)).
//! What is said of a table here is true of all [`Vrfs`](crate::vrf::Vrfs) of a handle together: they have their next hops in
//! common, and lookups take a VRF too.
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
//! // The link of the one fails: its flows go to the other, and the other's stay.
//! hops.withdraw(right)?;
//! assert!(matches!(reader.pin().lookup(address, flow_hash), Resolved::Found { value: &"left", .. }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Numbers
//!
//! Numbers are given out from 1 up, so that structures stay in their narrow forms. A number has as many *holds* as calls of
//! [`add`](NextHops::add) or [`add_group`](NextHops::add_group) that returned it; [`release`](NextHops::release) ends one. A
//! number without a hold is *leaving*: it still resolves for the routes and groups that have it. The table counts its
//! routes by next hop. Once no route and no group has a leaving number, it is retired; and when no reader is pinned that was
//! pinned then, it is free, and given out before any new one. So no lookup resolves a number by what it means later.
//!
//! # Withdrawn
//!
//! A withdrawn next hop keeps its number, its holds and its routes, but leads nowhere. Its routes still match: addresses do
//! *not* fall back to a shorter prefix, as that would need a change of the table for each route. They resolve to
//! [`Resolved::Withdrawn`], which readers count ([`Statistics::withdrawn_lookups`]), and which a router treats as
//! unreachable. [`change`](NextHops::change) brings the next hop back, again by one store. Numbers that were never given out,
//! or are free, resolve to [`Resolved::Unknown`], counted apart.
//!
//! # Groups
//!
//! A group has a table of *buckets*, a power of two of them, each with the number of a member. A flow belongs to the bucket that its hash
//! selects, multiplied first so that a hash of few bits spreads too. A new group gives each member its share of the buckets
//! by weight, to within one bucket (largest remainder). The groups are *resilient* (so the Linux kernel calls those with
//! buckets; RFC 2992 has the analysis of what other schemes move):
//!
//! - A member that is withdrawn, or leaves the group, vacates its buckets, which the others divide. No other bucket changes.
//! - A member that comes back or joins, or a weight that grows, takes as many buckets as its share lacks, from members that
//!   have more than theirs. No other bucket changes.
//! - [`Statistics::moved_buckets`] counts every bucket that changes its member.
//!
//! From the store that withdraws a member to those of its buckets, a few microseconds, its flows go to the member of the next
//! bucket that is not withdrawn: there is no moment in which a group with a live member resolves to nothing. A group all of whose members are
//! withdrawn is withdrawn.
//!
//! Groups with the same members, weights (up to a common factor) and buckets are one group with one number: `add_group`
//! returns it again. [`change_group`](NextHops::change_group) replaces the members of a group with a single hold, for all
//! of its routes by one store.
//!
//! # Layout
//!
//! ```text
//! words     64 bits a number   kind (2), and of a hop its slot, of a group the place and size of its buckets
//! buckets   32 bits each       the number of a member; a group's are side by side
//! values    a slot a hop       a state and the T, in place
//! ```
//!
//! All three are in segments that never move ([`live`](crate::live) has them, and `slots.rs` the values' two steps to their
//! end). A hop is one load after the table's lookup, a group three, of which the second is of a bucket.
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

pub use error::HopsError;
pub use next_hops::{NextHops, Statistics};
pub use reader::{Counts, HopReader, PinnedHops, Resolved};
pub use routed::Routed;

/// The most buckets that a group has.
#[doc(hidden)]
pub const MOST_BUCKETS: usize = 1 << 16;
