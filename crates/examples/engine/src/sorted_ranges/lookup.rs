//! Lookups. Batches look up one key after another, as the trait does by default.

use fibula::fib::{CheckError, Fib};
use fibula::net::{Key, NextHop};
use fibula::unstable::memory::{self, Memory};

use super::layout::SortedRanges;

impl<K: Key> Fib<K> for SortedRanges<K> {
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        // At least one range starts at or before the key, because the first one starts at the first address.
        let after = self.ranges.partition_point(|range| range.start <= key);
        self.ranges[after - 1].next_hop
    }

    fn memory(&self) -> Memory {
        memory::of(&self.ranges)
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk()
    }
}
