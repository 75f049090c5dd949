//! The data that lookups read.

use fibula::unstable::memory::Buffer;

/// The ranges of a table.
#[derive(Debug)]
pub(crate) struct RangeSearch<K> {
    /// First address of each range.
    pub(super) starts: Buffer<K>,
    /// Next hop of each range, 0 for no route.
    pub(super) next_hops: Buffer<u32>,
}

/// Searches that a portable batch runs side by side.
pub(super) const LANES: usize = 8;
