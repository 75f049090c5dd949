//! The engines: one folder each, with the chapter that explains it.
//!
//! | engine | take it when |
//! |---|---|
//! | [`dir_17_bitmap`] | IPv4, full tables: the least memory, fast changes, batches of any size |
//! | [`dir_18_lines`] | IPv4, full tables: batches of 64 keys and more, the fastest changes |
//! | [`dir_24_8`] | IPv4, where 34 MB do not matter and keys come one by one |
//! | [`range_btree`] | IPv4, up to a few thousand routes |
//! | [`dir_btree`] | IPv6 |
//! | [`planb`] | IPv6, up to some fifty routes |
//! | [`binary_trie`] | as an oracle: it judges the others, slowly |
//!
//! [`fib::build`](crate::fib::build) chooses; [`registry`](crate::fib::registry) finds them by name. A program that names an
//! [`Engine`] by its type links that one alone:
//!
//! ```
//! use fibula::engines::{DirBtree, Engine};
//! use fibula::rib::Rib;
//!
//! let rib = Rib::<u128>::default();
//! let fib = DirBtree::build(&rib, Default::default())?;
//! assert_eq!(fib.lookup(1_u128), None);
//! # Ok::<(), fibula::fib::BuildError>(())
//! ```
//!
//! An engine for one family does not compile for the other:
//!
//! ```compile_fail,E0277
//! # use fibula::engines::{DirBtree, Engine};
//! let rib = fibula::rib::Rib::<u32>::default();
//! DirBtree::build(&rib, Default::default());
//! ```

// An engine that is missing from the list below is dead code.
#![cfg_attr(
    any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")),
    deny(dead_code)
)]

// The modules are public for their chapters; nothing in them is.
pub mod binary_trie;
pub mod dir_17_bitmap;
pub mod dir_18_lines;
pub mod dir_24_8;
pub mod dir_btree;
pub mod planb;
pub mod range_btree;

use crate::fib::registry::Algorithm;
use crate::fib::{BuildError, Fib};
use crate::memory::Limits;
use crate::net::{Ipv4Key, Ipv6Key, Key, Routes};

// The list, the oracle first, each with the keys it serves: tests, fuzz targets, the command and the documents follow from it.
crate::__engines! {
    /// Returns the engines for keys of this kind, in the list's order.
    pub fn algorithms;
    binary_trie: Key,
    range_btree: Ipv4Key,
    dir_24_8: Ipv4Key,
    dir_17_bitmap: Ipv4Key,
    dir_18_lines: Ipv4Key,
    planb: Ipv6Key,
    dir_btree: Ipv6Key,
}

/// An engine by type.
pub trait Engine<K: Key> {
    /// Returns what is known of it.
    fn algorithm() -> Algorithm<K>;

    /// Builds it from routes in order, within `limits`.
    ///
    /// # Errors
    /// When memory runs out, or the format is too small for the table.
    fn build(routes: &dyn Routes<K>, limits: Limits) -> Result<Box<dyn Fib<K>>, BuildError> {
        Self::algorithm().build(routes, limits)
    }
}

macro_rules! by_type {
    ($($Name:ident: $module:ident, $Keys:ident;)*) => {$(
        #[doc = concat!("The engine of [`", stringify!($module), "`].")]
        #[derive(Debug)]
        pub enum $Name {}

        impl<K: $Keys> Engine<K> for $Name {
            fn algorithm() -> Algorithm<K> {
                let [algorithm] = $module::algorithms();
                algorithm
            }
        }
    )*};
}

by_type! {
    BinaryTrie: binary_trie, Key;
    RangeBtree: range_btree, Ipv4Key;
    Dir248: dir_24_8, Ipv4Key;
    Dir17Bitmap: dir_17_bitmap, Ipv4Key;
    Dir18Lines: dir_18_lines, Ipv4Key;
    PlanB: planb, Ipv6Key;
    DirBtree: dir_btree, Ipv6Key;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    /// The compiler reports a module that the list lacks; this reports a folder without a `mod` line.
    #[test]
    fn every_folder_is_a_module_of_the_list() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/engines");
        let folders: BTreeSet<String> = fs::read_dir(folder)
            .unwrap()
            .map(Result::unwrap)
            .filter(|entry| entry.file_type().unwrap().is_dir())
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        assert_eq!(folders, super::NAMES.iter().copied().map(str::to_owned).collect());
    }
}
