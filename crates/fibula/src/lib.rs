//! Longest-prefix match for IPv4 and IPv6: `lookup` is the longest match, `get` is exact.
//!
//! - [`net`]: addresses, prefixes, routes, changes, batches.
//! - [`rib`]: the table itself, ordered and changeable: the truth.
//! - [`fib`]: the structures that answer fast, and the [registry](fib::registry) of them all.
//! - [`auto`]: which of them to take for a table and its use.
//! - [`check`]: what the walk of a structure over itself can find.
//! - [`memory`]: how much a structure takes and may take.
//!
//! ```
//! use fibula::fib::registry;
//! use fibula::memory::Limits;
//! use fibula::net::{NextHop, Route};
//! use fibula::rib::Rib;
//!
//! let mut rib = Rib::<u32>::new(Limits::default());
//! rib.insert(Route::new("192.0.2.0/24".parse()?, NextHop::new(1).unwrap()))?;
//! rib.insert(Route::new("192.0.2.128/25".parse()?, NextHop::new(2).unwrap()))?;
//!
//! let algorithm = registry::find("range-search")?;
//! let fib = algorithm.build(&rib, Limits::default())?;
//! let keys = [0xc000_0201, 0xc000_0281, 0xc000_0301];
//! let mut next_hops = [None; 3];
//! fib.lookup_batch(&keys, &mut next_hops);
//! assert_eq!(next_hops, [NextHop::new(1), NextHop::new(2), None]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// A machine for which there are no vector kernels compiles only what stands beside them.
#![cfg_attr(
    not(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little"))),
    allow(dead_code, unused_imports, unused_macros)
)]

/// The prefix types of [`ipnet`], which conversions take and give.
pub use ipnet;

pub mod auto;
pub mod check;
pub mod fib;
pub mod memory;
pub mod net;
pub mod radix;
pub mod rib;
pub mod simd;
