//! VRFs: many tables in one handle, which change while other threads look up.
//!
//! A [`Vrfs`] holds any number of tables of both families. A [`Reader`](crate::Reader) looks up in all of them, one address or columns of
//! (VRF, address) in any mix.
//!
//! ```text
//! Vrfs ── mutex ── writer: for each VRF its RIBs; blocks with their counts; editors of engines; retired units
//!   │
//!   └── root ──> directory: a word for each VRF, for both families
//!           │       ├── few routes: a block, shared by all VRFs that have the same ones
//!           │       └── many routes: a structure of its own, as a live table has
//!           ├──> IPv4: blocks; structures
//!           └──> IPv6: blocks; structures
//! ```
//!
//! - `block/`: the routes of a small VRF in one family, which never change: a change makes another block. `arena.rs`: all
//!   blocks of a family; equal ones are one.
//! - `family.rs`: a table in a block or an engine, and the moves from one to the other. `writer.rs`: the order in which
//!   a change is made: first all that can fail, then the stores. `roots.rs`: the pointers that readers start from.
//! - `column.rs`: columns: rows in blocks side by side, those in structures sorted by structure.
//! - Readers and the writer share one domain of epochs, that of [`live`](crate::live), whatever the number of VRFs.
//!
//! `docs/adr/0012-vrfs.md` says why it is so, `docs/guide/vrfs.md` how it is used.

mod arena;
mod block;
mod column;
mod family;
mod options;
mod reader;
mod roots;
mod table;
#[cfg(test)]
mod tests;
mod writer;

use core::fmt;

pub use options::{Options, Statistics};
pub use table::Vrfs;

/// The number of a VRF: the index of its word in the directory. [`Vrfs::create`] gives them out, small ones first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Vrf(u32);

impl Vrf {
    /// Returns the VRF of this number, which need not exist.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    #[inline(always)]
    fn index(self) -> usize {
        self.0 as usize
    }
}

impl From<u32> for Vrf {
    fn from(number: u32) -> Self {
        Self(number)
    }
}

impl From<u16> for Vrf {
    fn from(number: u16) -> Self {
        Self(number.into())
    }
}

impl From<Vrf> for u32 {
    fn from(vrf: Vrf) -> Self {
        vrf.0
    }
}

impl fmt::Display for Vrf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A block of its own as a structure, so that the test machine tries it as it does those of the registry.
#[doc(hidden)]
pub mod internals {
    pub use super::block::engines;
}
