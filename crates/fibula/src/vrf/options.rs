//! Options, errors and statistics of a set of VRFs.

use core::time::Duration;

use crate::fib::registry::Engine;
use crate::live::Outcome;
use crate::memory::{Limits, Memory, OutOfMemory};
use crate::net::Dual;

/// How [`Vrfs`](super::Vrfs) are kept. Name only the fields that differ: `Options { limits, ..Options::default() }`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Maximum number of VRFs at a time. The directory reserves 8 bytes of addresses for each of them, and takes memory only for
    /// numbers that were ever used. Default: 65,536.
    pub vrfs: u32,
    /// Maximum number of routes that a VRF keeps in a block, for each family. VRFs with equal routes share a block, and each
    /// change rebuilds it. With more routes, the VRF has an engine of its own, which changes in place. Default: 16,384.
    pub small_routes: usize,
    /// The engine of VRFs with many IPv4 routes. Default: `dir-17-bitmap`.
    pub ipv4: Engine<u32>,
    /// The engine of VRFs with many IPv6 routes. Default: `dir-btree`.
    pub ipv6: Engine<u128>,
    /// Limits on everything that VRFs share, blocks and lists, and on the routes and each engine of a VRF, each by itself.
    /// Default: none.
    pub limits: Limits,
    /// Most bytes that were replaced and that readers may still see. Default: 64 MiB.
    pub retired_bytes: usize,
    /// How long a change waits at that limit for readers to move on, before it is refused; zero refuses at once.
    /// Default: 1 second.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        let tables = crate::live::Options::default();
        Self {
            vrfs: 1 << 16,
            small_routes: 1 << 14,
            ipv4: tables.ipv4,
            ipv6: tables.ipv6,
            limits: tables.limits,
            retired_bytes: tables.retired_bytes,
            patience: tables.patience,
        }
    }
}

impl Options {
    /// Returns the options of an engine.
    pub(super) fn of_structure(&self) -> crate::live::Options {
        // By default a table neither collects changes nor builds in the background, so a VRF's changes are published
        // by their call.
        crate::live::Options {
            ipv4: self.ipv4,
            ipv6: self.ipv6,
            limits: self.limits,
            ..crate::live::Options::default()
        }
    }
}

/// Returns the error where the system refuses memory.
pub(super) fn no_memory(wanted_bytes: usize) -> OutOfMemory {
    OutOfMemory { wanted_bytes, used_bytes: 0, limit_bytes: None }
}

/// Memory and counts of VRFs, and totals of their changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Number of VRFs.
    pub vrfs: usize,
    /// Routes of all VRFs.
    pub route_count: Dual<usize>,
    /// Memory of these routes.
    pub routes: Memory,
    /// Memory of the directory. A lookup reads one word of it.
    pub directory: Memory,
    /// Memory of the blocks, including retired ones.
    pub blocks: Dual<Memory>,
    /// Number of distinct blocks.
    pub block_count: Dual<usize>,
    /// Number of tables stored as (possibly shared) blocks.
    pub in_blocks: Dual<usize>,
    /// Memory of engines.
    pub structures: Dual<Memory>,
    /// Number of engines.
    pub structure_count: Dual<usize>,
    /// Memory of the lists of the writer and the slots of readers.
    pub bookkeeping: Memory,
    /// The number of the reader that keeps the oldest retired unit from being freed, and the changes since its pin.
    pub stalled: Option<(usize, u64)>,
    /// Number of readers.
    pub readers: usize,
    /// Changes since the VRFs were made.
    pub totals: Outcome,
}

impl Statistics {
    /// Returns the memory that lookups can touch.
    #[must_use]
    pub fn lookup(&self) -> Memory {
        let (blocks, structures) = (self.blocks, self.structures);
        self.directory + blocks.v4 + blocks.v6 + structures.v4 + structures.v6
    }
}
