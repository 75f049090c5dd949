//! Longest-prefix match for IPv4 and IPv6: routing tables, and engines that answer one address or a batch.
//!
#![doc = include_str!("../choose.md")]
//!
//! [`IpPrefixMap`]: map::IpPrefixMap
//! [`PrefixMap`]: map::PrefixMap
//! [`CompiledIpMap`]: map::CompiledIpMap
//! [`SharedPrefixMap`]: map::SharedPrefixMap
//! [`Batch`]: net::Batch
//! [`PrefixSet`]: map::PrefixSet
//! [`AddressSet`]: map::AddressSet
//! [`Rib`]: rib::Rib
//! [`NextHops`]: hops::NextHops
//! [`fib::build`]: fib::build
//! [`Fib`]: fib::Fib
//! [`TableFile`]: file::TableFile
//! [`TableFile::map`]: file::TableFile::map
//! [`file::save`]: file::save
//! [`Follower`]: file::Follower
//!
//! # Words
//!
//! - An address is an integer in host order: `u32` for IPv4, `u128` for IPv6 ([`net::Key`]). Lookups also take
//!   [`Ipv4Addr`](std::net::Ipv4Addr) and [`Ipv6Addr`](std::net::Ipv6Addr), prefixes convert from and to [`ipnet`].
//! - A [`NextHop`](net::NextHop) is a number other than 0, whose meaning is up to you: usually an index into a table of
//!   your own.
//! - `lookup` is the longest match, for an address. `get` is exact, for a prefix.
//! - The *RIB* is the table itself: ordered, and changed route by route. A *FIB* is an engine built from it for fast
//!   lookups. On full tables a FIB looks batches up more than a hundred times as fast as the RIB and takes 10 to 50 ms
//!   to build: it pays off after about 100,000 lookups.
//!
//! # Modules
//!
//! | module | it has |
//! |---|---|
//! | [`live`] | [`Table`] and its readers |
//! | [`map`] | maps from prefixes to values; sets of prefixes and of addresses |
//! | [`vrf`] | [`Vrfs`]: many tables in one handle |
//! | [`hops`] | next hops by number, and weighted groups of them |
//! | [`rib`] | routes in order, of one family or of both ([`rib::DualRib`]) |
//! | [`fib`] | engines for lookups: [`fib::build`], engines by name, both families ([`fib::DualFib`]), the length of the match ([`fib::WithLength`]) |
//! | [`engines`] | each engine as a type, with its chapter |
//! | [`auto`] | the choice of an engine for small batches or little memory |
//! | [`net`] | addresses, prefixes and routes; ranges as prefixes; batches as packets have them |
//! | [`file`](mod@file) | compiled tables in files, opened, shared among processes, followed |
//! | [`aggregate`] | the fewest routes with the same answers; the first difference of two tables |
//! | [`memory`] | limits, and the bytes that an engine takes |
//! | [`check`] | the invariants of an engine, verified |
//!
//! Items that these pages do not show are for engines in other crates and for measurements. They are public, and any version may
//! change them: the module `unstable` lists most of them, `simd` has the instruction sets of this CPU.
//!
//! Engines are `Send + Sync` and are shared by reference. Builds never abort for lack of memory: they return an
//! error.
//!
//! # Features and platforms
//!
//! One feature, off by default: `serde` writes and reads prefixes, maps and sets with the crate of this name. Without it the
//! crate depends on [`ipnet`] and `crc32fast` (table files) alone, and on Linux on `libc` (huge pages, mapped files). It
//! compiles for every target with the standard library; batches use AVX2, AVX-512 or NEON kernels if the CPU supports them,
//! which is detected when the program runs. Rust 1.89 or later.
//!
//! Tables in files (MRT, bgpdump, text) are read by the crate `fibula-feed`; the command is `fibula-cli`.

// Targets without vector kernels do not use the parts that only kernels need.
#![cfg_attr(
    not(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little"))),
    allow(dead_code, unused_imports, unused_macros)
)]

/// The crate whose prefix types convert from and to [`net::Prefix`].
pub use ipnet;

pub mod aggregate;
pub mod auto;
pub mod check;
pub mod engines;
pub mod fib;
pub mod file;
pub mod hops;
pub mod live;
pub mod map;
pub mod memory;
pub mod net;
#[doc(hidden)]
pub mod radix;
#[cfg(any(test, feature = "testing"))]
mod random;
pub mod rib;
#[doc(hidden)]
pub mod simd;
#[doc(hidden)]
pub mod unstable;
pub mod vrf;

pub use live::{Pinned, Reader, Table};
pub use vrf::{Vrf, Vrfs};
