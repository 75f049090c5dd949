//! Lookup structures: what a table is compiled into so that addresses find their route fast.
//!
//! [`Fib`] is what every structure answers, [`registry`] lists them all. A structure knows `net`, `memory`
//! and [`parts`], never another structure and never the RIB: it is built from any [`Routes`](crate::net::Routes).

mod contract;
mod matches;
pub mod parts;
pub mod registry;

// One folder a structure: a `mod` line here and its name in the list below.
pub mod binary_trie;
pub mod chunks;
pub mod dir_24_8;
pub mod dxr;
pub mod forest;
pub mod linear;
pub mod lines;
pub mod planb;
pub mod poptrie;
pub mod radix;
pub mod range_search;

pub use crate::check::CheckError;
pub use contract::{Applied, BuildError, Fib, Updatable};
pub use matches::{Match, WithLength};

use crate::auto::{self, Workload};
use crate::memory::Limits;
use crate::net::{Key, Routes};

// The list, oracles first: tests, fuzz targets, benchmarks, the command and the documents follow from it.
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

/// Builds the structure that [`auto`] chooses for these routes, with default [`Limits`].
///
/// `routes` is a [`Rib`](crate::rib::Rib), a [`RouteSlice`](crate::net::RouteSlice) or anything else with ordered
/// routes. For lookups other than in batches of 256, or for less memory, use [`auto::build`]; for a structure of your
/// choice, [`Algorithm::build`](registry::Algorithm::build).
///
/// # Errors
/// When memory runs out.
pub fn build<K: Key>(routes: &dyn Routes<K>) -> Result<Box<dyn Fib<K>>, BuildError> {
    auto::build(routes, Workload::default(), Limits::default())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    /// The compiler reports a module that the list lacks; this reports a folder without a `mod` line.
    #[test]
    fn every_folder_is_a_module_of_the_list() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/fib");
        let folders: BTreeSet<String> = fs::read_dir(folder)
            .unwrap()
            .map(Result::unwrap)
            .filter(|entry| entry.file_type().unwrap().is_dir())
            .map(|entry| entry.file_name().into_string().unwrap())
            .filter(|name| name != "parts")
            .collect();
        assert_eq!(folders, super::STRUCTURES.iter().copied().map(str::to_owned).collect());
    }
}
