//! Lookup structures: what a table is compiled into so that addresses find their route fast.
//!
//! [`Fib`] is what every structure answers, [`registry`] lists them all. A structure knows `net`, `memory`
//! and [`parts`], never another structure and never the RIB: it is built from any [`Routes`](crate::net::Routes).

mod contract;
mod labels;
pub mod parts;
pub mod registry;

pub use crate::check::CheckError;
pub use contract::{Applied, BuildError, Fib, Updatable};
pub use labels::{Match, WithLength};

// The list. A structure is a folder of this one and a name here; tests, fuzzers, benchmarks, the command
// and the documents follow. Oracles first.
registry::algorithms! {
    linear,
    binary_trie,
    radix,
    range_search,
    planb,
    dir_24_8,
    dxr,
    poptrie,
    chunks,
    lines,
    forest,
}
