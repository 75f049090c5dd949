//! The data that lookups read.

use fibula::unstable::memory::Buffer;
use fibula::unstable::parts::ranges::Range;

/// The ranges of a table, in ascending order.
///
/// A [`Buffer`] is a vector that respects memory limits and takes huge pages once it is large.
#[derive(Debug)]
pub(super) struct SortedRanges<K> {
    pub(super) ranges: Buffer<Range<K>>,
}
