//! What lookups touch.

use crate::memory::Buffer;

/// The ranges of a table.
#[derive(Debug)]
pub(crate) struct RangeSearch<K> {
    /// First address of each range.
    pub(super) starts: Buffer<K>,
    /// Where each range leads, 0 for nowhere.
    pub(super) next_hops: Buffer<u32>,
}

/// Searches that run side by side in a batch. Sixteen gained nothing over eight, four lost a quarter.
pub(super) const LANES: usize = 8;
