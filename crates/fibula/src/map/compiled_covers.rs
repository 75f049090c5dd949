//! All matches of an address, from an engine.
//!
//! The engine finds the longest match, and a link leads from each prefix to the next shorter one around it.

use core::fmt;

use crate::auto::{self, Workload};
use crate::fib::{BuildError, Fib};
use crate::memory::{self, Limits, Memory};
use crate::net::{IntoPrefix, Key, NextHop, Prefix};

use super::compiled::{BLOCK, Renumbered};
use super::prefix_map::PrefixMap;
use super::slab::{index, number};

/// A map that no longer changes, compiled to find *all* prefixes that contain an address or a prefix.
///
/// One lookup finds the longest match, at the speed of an engine of [`fib`](crate::fib). Each shorter match then costs one step.
pub struct CompiledCovers<K, V> {
    /// Leads to the longest match: next hop `n` is link `n - 1`.
    fib: Box<dyn Fib<K>>,
    links: Vec<Link<K>>,
    /// One for each link.
    values: Vec<V>,
}

#[derive(Debug, Clone, Copy)]
struct Link<K> {
    prefix: Prefix<K>,
    /// The longest prefix around this one.
    parent: Option<NextHop>,
}

/// Most prefixes that contain an address: one of each length.
const MOST: usize = 129;

impl<K: Key, V: Clone> PrefixMap<K, V> {
    /// Compiles the map for [`covers`](CompiledCovers::covers) of many addresses or prefixes.
    ///
    /// # Errors
    /// When memory runs out. (The lists of prefixes and values allocate as usual.)
    pub fn compile_covers(&self) -> Result<CompiledCovers<K, V>, BuildError> {
        let mut links: Vec<Link<K>> = Vec::with_capacity(self.len());
        let mut values = Vec::with_capacity(self.len());
        let mut numbers = vec![None; self.values.end()];
        let mut around: Option<NextHop> = None;
        for route in &self.rib {
            // Prefixes come in order, so the last link that still contains this prefix is the longest one around it.
            while let Some(at) = around
                && !links[index(at)].prefix.covers(route.prefix)
            {
                around = links[index(at)].parent;
            }
            links.push(Link { prefix: route.prefix, parent: around });
            values.push(self.values.get(route.next_hop).clone());
            around = Some(number(links.len() - 1));
            numbers[index(route.next_hop)] = around;
        }
        let routes = Renumbered { rib: &self.rib, numbers };
        let fib = auto::build(&routes, Workload::default(), Limits::default())?;
        Ok(CompiledCovers { fib, links, values })
    }
}

impl<K: Key, V> CompiledCovers<K, V> {
    /// Returns all prefixes that contain an address or a prefix, itself included, with their values, shortest first.
    pub fn covers(&self, prefix: impl IntoPrefix<K>) -> impl Iterator<Item = (Prefix<K>, &V)> {
        let prefix = prefix.into_prefix();
        let mut chain = [None; MOST];
        // Every prefix around `prefix` contains its first address, so one lookup finds the start of the chain.
        let count = self.chain(self.fib.lookup_key(prefix.addr()), prefix, &mut chain);
        chain.into_iter().take(count).rev().flatten().map(|at| self.item(at))
    }

    /// Calls `each` for all prefixes that contain each address, with the index of the address: address by address,
    /// shortest prefix first. Allocates nothing.
    pub fn covers_batch<'a>(&'a self, keys: &[K], mut each: impl FnMut(usize, Prefix<K>, &'a V)) {
        let mut longest = [None; BLOCK];
        for (number, block) in keys.chunks(BLOCK).enumerate() {
            let longest = &mut longest[..block.len()];
            self.fib.lookup_batch(block, longest);
            for (at, (&key, &found)) in block.iter().zip(&*longest).enumerate() {
                self.report(found, Prefix::host(key), |prefix, value| {
                    each(number * BLOCK + at, prefix, value);
                });
            }
        }
    }

    /// Like [`covers_batch`](Self::covers_batch), for prefixes: those that contain all of each, itself included.
    pub fn covers_prefixes<'a>(
        &'a self,
        prefixes: &[Prefix<K>],
        mut each: impl FnMut(usize, Prefix<K>, &'a V),
    ) {
        let (mut keys, mut longest) = ([K::ZERO; BLOCK], [None; BLOCK]);
        for (number, block) in prefixes.chunks(BLOCK).enumerate() {
            let (keys, longest) = (&mut keys[..block.len()], &mut longest[..block.len()]);
            for (key, prefix) in keys.iter_mut().zip(block) {
                *key = prefix.addr();
            }
            self.fib.lookup_batch(keys, longest);
            for (at, (&prefix, &found)) in block.iter().zip(&*longest).enumerate() {
                self.report(found, prefix, |prefix, value| each(number * BLOCK + at, prefix, value));
            }
        }
    }

    /// Calls `each` for the prefixes around `prefix`, shortest first, from the longest match of its first address.
    #[inline]
    fn report<'a>(
        &'a self,
        longest: Option<NextHop>,
        prefix: Prefix<K>,
        mut each: impl FnMut(Prefix<K>, &'a V),
    ) {
        // Returns before an array of 129 numbers is cleared for nothing.
        if longest.is_none() {
            return;
        }
        let mut chain = [None; MOST];
        let count = self.chain(longest, prefix, &mut chain);
        // The chain is longest first, and callers are promised the shortest first.
        for at in chain[..count].iter().rev().flatten() {
            let (prefix, value) = self.item(*at);
            each(prefix, value);
        }
    }

    /// Writes the prefixes that contain `prefix` to `chain`, longest first, and returns their number. The lookup may have found
    /// longer ones, because it looked up the first address of `prefix`: those are skipped.
    #[inline]
    fn chain(
        &self,
        longest: Option<NextHop>,
        prefix: Prefix<K>,
        chain: &mut [Option<NextHop>; MOST],
    ) -> usize {
        let mut count = 0;
        let mut next = longest;
        while let Some(at) = next {
            let link = &self.links[index(at)];
            // The address of `prefix` may be in longer prefixes, which do not contain all of `prefix`.
            if link.prefix.len() <= prefix.len() {
                chain[count] = next;
                count += 1;
            }
            next = link.parent;
        }
        count
    }

    #[inline]
    fn item(&self, at: NextHop) -> (Prefix<K>, &V) {
        (self.links[index(at)].prefix, &self.values[index(at)])
    }

    /// Returns the number of prefixes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// Returns whether there are no prefixes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Returns the memory of the engine, the links and the values. Memory that values allocate themselves is not included.
    #[must_use]
    pub fn memory(&self) -> Memory {
        self.fib.memory() + memory::of(&self.links) + memory::of(&self.values)
    }
}

/// Shows the number of prefixes and the memory.
impl<K: Key, V> fmt::Debug for CompiledCovers<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompiledCovers")
            .field("prefixes", &self.links.len())
            .field("fib", &self.fib)
            .finish_non_exhaustive()
    }
}
