//! The code that one would write first: a hash table for each prefix length, tried from the longest to the shortest.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use fibula::net::{Key, NextHop, Prefix, Routes};

/// The name, as the tour prints it.
pub(super) const HASH_BY_LENGTH: &str = "hash-by-length";

/// Hash tables by prefix length, longest first.
pub(super) struct HashByLength<K> {
    lengths: Vec<(u8, HashMap<K, NextHop>)>,
}

impl<K: Key> HashByLength<K> {
    pub(super) fn build(routes: &dyn Routes<K>) -> Self {
        let mut tables: BTreeMap<u8, HashMap<K, NextHop>> = BTreeMap::new();
        let _ = routes.visit(Prefix::ALL, &mut |route| {
            let (addr, len) = (route.prefix.addr(), route.prefix.len());
            tables.entry(len).or_default().insert(addr, route.next_hop);
            ControlFlow::Continue(())
        });
        Self { lengths: tables.into_iter().rev().collect() }
    }

    pub(super) fn lookup(&self, key: K) -> Option<NextHop> {
        self.lengths.iter().find_map(|(len, table)| table.get(&key.and(K::mask(*len))).copied())
    }

    /// Returns about how many bytes lookups may touch: buckets, an eighth of them always empty, each with a byte for its tag.
    pub(super) fn lookup_bytes(&self) -> usize {
        let buckets: usize = self.lengths.iter().map(|(_, table)| table.capacity() * 8 / 7).sum();
        buckets * (size_of::<(K, NextHop)>() + 1)
    }
}
