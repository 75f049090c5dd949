//! Lookups in a map that changes.

use core::sync::atomic::{Ordering, fence};
use std::sync::Arc;

use crate::live::epoch::Domain;
use crate::live::readable;
use crate::live::root::{CurrentRoot, TableRoots};
use crate::live::{Pinned, Table, TableError, TableKey};
use crate::net::{Batch, BatchLookup, IntoIpAddr, Keys, NextHop};

use super::compiled::BLOCK;
use super::shared::SharedPrefixMap;
use super::slab::index;

#[allow(private_interfaces)]
impl<V: Send + Sync> readable::Readable for SharedPrefixMap<V> {
    type Roots = TableRoots;
    type Handle = Self;
    type Own = ();

    #[inline]
    fn root(map: &Self) -> &CurrentRoot {
        Table::root(&map.shared.table)
    }

    fn domain(map: &Self) -> &Arc<Domain> {
        Table::domain(&map.shared.table)
    }

    fn own(_: &Self) -> Result<(), TableError> {
        Ok(())
    }
}

/// Lookups in a [`SharedPrefixMap`]. The references last as long as the pin, until its next `refresh`.
impl<V: Send + Sync> Pinned<'_, SharedPrefixMap<V>> {
    /// Returns the value of the longest prefix that contains an address.
    #[inline]
    #[must_use]
    pub fn lookup(&self, address: impl IntoIpAddr) -> Option<&V> {
        self.value(self.roots.lookup(address))
    }

    #[inline]
    fn value(&self, at: Option<NextHop>) -> Option<&V> {
        // The writer fills the slot before it stores the route. A lookup of one key may have no fence of its own, and without
        // this one it could see the route and an empty slot.
        fence(Ordering::Acquire);
        self.handle.shared.values.read(self).get(index(at?) as u32)
    }

    /// Looks up `keys`, writing the value of the longest prefix around `keys[i]` to `results[i]`.
    ///
    /// # Panics
    /// When the two differ in length.
    pub fn lookup_batch<'p, K: TableKey>(&'p self, keys: &[K], results: &mut [Option<&'p V>]) {
        self.batch(keys).run(results);
    }

    /// Returns a batch of lookups of keys in any of the shapes of [`Keys`], to be run: see [`Batch`].
    ///
    /// References in an array would end with the pin's next [`refresh`](Self::refresh), so the array could not be used again.
    /// [`for_each`](Batch::for_each) fills an array of your own results, which lives on:
    ///
    /// ```
    /// # use fibula::{ipnet::IpNet, map::SharedPrefixMap};
    /// let rules = SharedPrefixMap::new()?;
    /// rules.insert("192.0.2.0/24".parse::<IpNet>()?, true)?;
    /// let mut reader = rules.reader()?;
    /// let mut pin = reader.pin();
    /// // Made once, for all bursts.
    /// let (mut sources, mut is_permitted) = ([0_u32; 32], [false; 32]);
    /// let mut burst = 0;
    /// while burst < 1000 {
    ///     sources.fill(0xc000_0200 + burst);
    ///     // Rules that changed since the last burst count from here on.
    ///     pin.refresh();
    ///     pin.batch(&sources).for_each(|at, rule| is_permitted[at] = rule.copied().unwrap_or(false));
    ///     assert_eq!(is_permitted, [burst < 256; 32]);
    ///     burst += 1;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn batch<'k, 'p, K: TableKey>(
        &'p self,
        keys: impl Into<Keys<'k, K>>,
    ) -> Batch<'k, K, impl BatchLookup<K, Option<&'p V>>> {
        let values = self.handle.shared.values.read(self);
        let lookup = move |isa, _: usize, keys: Keys<'_, K>, results: &mut [Option<&'p V>]| {
            // Numbers on the stack: the caller's results are references, so the engine cannot write into them.
            let mut found = [None; BLOCK];
            keys.for_each_block(|first, block| {
                let results = &mut results[first..first + block.len()];
                for (keys, results) in block.chunks(BLOCK).zip(results.chunks_mut(BLOCK)) {
                    let found = &mut found[..keys.len()];
                    K::of(&self.roots).lookup_batch_on(isa, keys, found);
                    // As in `value`, but once for the numbers of a block.
                    fence(Ordering::Acquire);
                    for (result, at) in results.iter_mut().zip(found) {
                        // A slot that this pin finds stays open until the pin ends. `get` checks it all the same, because its safety
                        // must not depend on the table.
                        *result = at.and_then(|at| values.get(index(at) as u32));
                    }
                }
            });
        };
        Batch::new(keys.into(), lookup)
    }
}
