//! Longest-prefix match for IPv4 and IPv6: routing tables, and lookup structures that answer one address or a batch.
//!
//! A [`Table`] holds routes and changes while other threads look addresses up in it, each with a [`Reader`]:
//!
//! ```
//! use std::net::Ipv4Addr;
//!
//! use fibula::Table;
//! use fibula::net::{IpPrefix, NextHop};
//!
//! let (one, two) = (NextHop::try_from(1)?, NextHop::try_from(2)?);
//! let table = Table::new()?;
//! table.insert("192.0.2.0/24".parse::<IpPrefix>()?, one)?;
//!
//! let mut reader = table.reader()?;
//! let mut pin = reader.pin();
//! assert_eq!(pin.lookup(Ipv4Addr::new(192, 0, 2, 129)), Some(one));
//! table.insert("192.0.2.128/25".parse::<IpPrefix>()?, two)?;
//! pin.refresh();
//! assert_eq!(pin.lookup(Ipv4Addr::new(192, 0, 2, 129)), Some(two));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A value of any type for each prefix is a [`PrefixMap`](map::PrefixMap), or an [`IpPrefixMap`](map::IpPrefixMap) for
//! both families:
//!
//! ```
//! use std::net::IpAddr;
//!
//! use fibula::ipnet::IpNet;
//! use fibula::map::IpPrefixMap;
//!
//! let mut sites = IpPrefixMap::new();
//! sites.insert("192.0.2.0/24".parse::<IpNet>()?, "office");
//! sites.insert("192.0.2.128/25".parse::<IpNet>()?, "lab");
//! assert_eq!(sites.lookup("192.0.2.129".parse::<IpAddr>()?), Some(&"lab"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A table that does not change, or only as a whole, is a [`Rib`](rib::Rib), compiled into a lookup structure with
//! [`fib::build`]:
//!
//! ```
//! use fibula::fib;
//! use fibula::net::{NextHop, Route};
//! use fibula::rib::Rib;
//!
//! let (one, two) = (NextHop::try_from(1)?, NextHop::try_from(2)?);
//! let mut rib = Rib::<u32>::default();
//! rib.insert(Route::new("192.0.2.0/24".parse()?, one))?;
//! rib.insert(Route::new("192.0.2.128/25".parse()?, two))?;
//!
//! let fib = fib::build(&rib)?;
//! let keys = [0xc000_0201, 0xc000_0281, 0xc000_0301];
//! let mut next_hops = [None; 3];
//! fib.lookup_batch(&keys, &mut next_hops);
//! assert_eq!(next_hops, [Some(one), Some(two), None]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Words
//!
//! - An address is an integer in host order: `u32` for IPv4, `u128` for IPv6 ([`net::Key`]). Lookups also take
//!   [`Ipv4Addr`](std::net::Ipv4Addr) and [`Ipv6Addr`](std::net::Ipv6Addr), prefixes convert from and to [`ipnet`].
//! - A [`NextHop`](net::NextHop) is a number other than 0, whose meaning is up to you: usually an index into a table of
//!   your own.
//! - `lookup` is the longest match, for an address. `get` is exact, for a prefix.
//! - The *RIB* is the table itself: ordered, and changed route by route. A *FIB* is a structure built from it for fast
//!   lookups. On full tables a FIB looks batches up more than a hundred times as fast as the RIB and takes 10 to 50 ms
//!   to build: it pays from some 100,000 lookups on.
//!
//! # Which module
//!
//! | to | use |
//! |---|---|
//! | change a table while threads look addresses up in it | [`Table`], [`live`] |
//! | hold and change routes | [`rib`] |
//! | keep a value of any type for each prefix: access lists, GeoIP, tariffs | [`map`] |
//! | combine sets of prefixes or of addresses | [`map::PrefixSet`], [`map::AddressSet`] |
//! | hold both families | [`rib::DualRib`], [`fib::DualFib`] |
//! | read addresses and prefixes, convert them, turn ranges into prefixes, pass batches of packets | [`net`] |
//! | build the structure that suits the table | [`fib::build`], or [`auto::build`] for small batches or little memory |
//! | build a structure by name | [`fib::registry::find`] and [`Algorithm::build`](fib::registry::Algorithm::build) |
//! | also get the length of the matched prefix | [`fib::WithLength`] |
//! | change a structure of one's own in place, or learn that it must be built again | [`build_updatable`](fib::registry::Algorithm::build_updatable), [`Fib::updatable`](fib::Fib::updatable) |
//! | give every address the same answer with fewer routes, or compare the answers of two tables | [`aggregate`] |
//! | save a compiled table in a file, open it or share it among processes, follow it as it is replaced | [`file`](mod@file) |
//! | limit memory, and see what a structure takes | [`memory`] |
//! | choose the instruction set | [`simd`] |
//! | verify a structure | [`Fib::check`](fib::Fib::check), [`check`] |
//!
//! Structures are `Send + Sync` and are shared by reference. Builds never abort for lack of memory: they return an
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
pub mod simd;
#[doc(hidden)]
pub mod unstable;
pub mod vrf;

pub use live::{Pinned, Reader, Table};
pub use vrf::{Vrf, Vrfs};
