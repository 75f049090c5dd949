//! Lookups: kernels for the filters of full vectors of keys, portable code for everything else.

use crate::bloom::hash::{Hash, Stored};
use fibula::fib::{Applied, BuildError, CheckError, Fib, Sections, Updatable};
use fibula::net::{Change, Key, NextHop, Routes};
use fibula::unstable::memory::Memory;
use fibula::unstable::parts::lanes::{self, BLOCK};
use fibula::unstable::simd::{LANES, Present};

use super::layout::{Narrow, Vectors, Wide};
use super::scalar::{Candidates, KEYS, View};
use super::{export, kernel};

impl<K: Key> Fib<K> for Narrow<K> {
    #[inline]
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        self.table.one(key)
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        if !lanes::filled(isa, keys.len()) {
            return keys.iter().zip(results).for_each(|(&key, result)| *result = self.table.one(key));
        }
        let mut candidates = Candidates::none();
        lanes::for_each_block(keys, results, |keys, results| {
            self.block(isa, keys, results, &mut candidates);
        });
    }

    fn memory(&self) -> Memory {
        self.table.memory()
    }

    fn check(&self) -> Result<(), CheckError> {
        self.table.walk()
    }

    fn exported(&self) -> Option<Sections<'_>> {
        Some(export::sections(&self.table, Some(self.table.parameters.hashes)))
    }

    fn updatable(&mut self) -> Option<&mut dyn Updatable<K>> {
        Some(self)
    }
}

impl<K: Key> Narrow<K> {
    /// Looks up a block: filter and hash table of each level for all keys, then the direct array for those without an answer.
    fn block(
        &self,
        isa: Present,
        keys: &[[u32; LANES]],
        results: &mut [[u32; LANES]],
        candidates: &mut Candidates,
    ) {
        let hashes = self.table.parameters.hashes;
        let (mut firsts, mut passed) = ([[0; LANES]; BLOCK], [0; BLOCK]);
        let (firsts, passed) = (&mut firsts[..keys.len()], &mut passed[..keys.len()]);
        results.fill([0; LANES]);
        for level in self.table.levels.iter().filter(|level| level.count > 0) {
            self.probe(isa, hashes.filter, &View::of(level), keys, firsts, passed);
            candidates.take(passed, firsts);
            let (keys, results) = (keys.as_flattened(), results.as_flattened_mut());
            candidates.search(
                level,
                hashes,
                |lane| keys[lane],
                |lane, next_hop| {
                    // An answer of a longer level stays.
                    if results[lane] == 0 {
                        results[lane] = next_hop;
                    }
                },
            );
        }
        let (direct, shift) = (&self.table.direct, 32 - u32::from(self.table.direct_bits));
        for (&key, result) in keys.as_flattened().iter().zip(results.as_flattened_mut()) {
            if *result == 0 {
                *result = direct[(u64::from(key) >> shift) as usize];
            }
        }
    }

    fn probe(
        &self,
        isa: Present,
        hash: Hash,
        view: &View<'_>,
        keys: &[[u32; LANES]],
        firsts: &mut [[u32; LANES]],
        passed: &mut [u8],
    ) {
        use kernel::{H2_S, KNUTH_S, MURMUR};
        match (self.vectors, hash) {
            (Vectors::Kernels, Hash::Murmur) => kernel::probe32::<MURMUR>(isa, view, keys, firsts, passed),
            (Vectors::Kernels, Hash::Knuth) => kernel::probe32::<KNUTH_S>(isa, view, keys, firsts, passed),
            (Vectors::Kernels, Hash::H2) => kernel::probe32::<H2_S>(isa, view, keys, firsts, passed),
            (Vectors::Compiler, Hash::Murmur) => {
                kernel::compiled32::<MURMUR>(isa, view, keys, firsts, passed);
            }
            (Vectors::Compiler, Hash::Knuth) => {
                kernel::compiled32::<KNUTH_S>(isa, view, keys, firsts, passed);
            }
            (Vectors::Compiler, Hash::H2) => kernel::compiled32::<H2_S>(isa, view, keys, firsts, passed),
        }
    }
}

impl<K: Key> Fib<K> for Wide<K> {
    #[inline]
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        self.table.one(key)
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        if !lanes::filled(isa, keys.len()) {
            return keys.iter().zip(results).for_each(|(&key, result)| *result = self.table.one(key));
        }
        let (mut open, mut candidates) = (OpenPrefixes::none(), Candidates::none());
        lanes::in_blocks(keys, results, |keys, results| {
            self.block(isa, keys.as_flattened(), results.as_flattened_mut(), &mut open, &mut candidates);
        });
    }

    fn memory(&self) -> Memory {
        self.table.memory()
    }

    fn check(&self) -> Result<(), CheckError> {
        self.table.walk()
    }

    fn exported(&self) -> Option<Sections<'_>> {
        Some(export::sections(&self.table, None))
    }

    fn updatable(&mut self) -> Option<&mut dyn Updatable<K>> {
        Some(self)
    }
}

/// The keys of a block that have no answer yet, in halves of 32 bits, one after the other.
struct OpenPrefixes {
    high: [[u32; LANES]; BLOCK],
    low: [[u32; LANES]; BLOCK],
    /// Their lanes in the block.
    lanes: [u8; KEYS],
    count: usize,
}

impl OpenPrefixes {
    fn none() -> Self {
        Self { high: [[0; LANES]; BLOCK], low: [[0; LANES]; BLOCK], lanes: [0; KEYS], count: 0 }
    }

    fn push(&mut self, lane: usize, key: u64) {
        let at = self.count;
        self.high.as_flattened_mut()[at] = (key >> 32) as u32;
        self.low.as_flattened_mut()[at] = key as u32;
        self.lanes[at] = lane as u8;
        self.count += 1;
    }

    fn key(&self, at: usize) -> u64 {
        u64::from(self.high.as_flattened()[at]) << 32 | u64::from(self.low.as_flattened()[at])
    }

    /// Drops the keys that have an answer.
    fn compact(&mut self, results: &[u32]) {
        let (high, low) = (self.high.as_flattened_mut(), self.low.as_flattened_mut());
        let mut kept = 0;
        for at in 0..self.count {
            let lane = self.lanes[at];
            (high[kept], low[kept], self.lanes[kept]) = (high[at], low[at], lane);
            kept += usize::from(results[usize::from(lane)] == 0);
        }
        self.count = kept;
    }
}

impl<K: Key> Wide<K> {
    /// Looks up a block: the levels, longest first, for the keys that have no answer yet.
    fn block(
        &self,
        isa: Present,
        keys: &[K],
        results: &mut [u32],
        open: &mut OpenPrefixes,
        candidates: &mut Candidates,
    ) {
        let table = &self.table;
        let hashes = table.parameters.hashes;
        open.count = 0;
        for (lane, (&key, result)) in keys.iter().zip(&mut *results).enumerate() {
            *result = table.find_long(key);
            if *result == 0 {
                open.push(lane, u64::of(key));
            }
        }
        let (mut firsts, mut passed) = ([[0; LANES]; BLOCK], [0; BLOCK]);
        for level in table.levels.iter().filter(|level| level.count > 0) {
            let vectors = open.count.div_ceil(LANES);
            if vectors == 0 {
                return;
            }
            let view = View::of(level);
            let (high, low) = (&open.high[..vectors], &open.low[..vectors]);
            let (firsts, passed) = (&mut firsts[..vectors], &mut passed[..vectors]);
            match self.vectors {
                Vectors::Kernels => kernel::probe64(isa, &view, high, low, firsts, passed),
                Vectors::Compiler => kernel::compiled64(isa, &view, high, low, firsts, passed),
            }
            // The lanes after the last key have none.
            passed[vectors - 1] &= u8::MAX >> (vectors * LANES - open.count);
            candidates.take(passed, firsts);
            candidates.search(
                level,
                hashes,
                |at| open.key(at),
                |at, next_hop| {
                    results[usize::from(open.lanes[at])] = next_hop;
                },
            );
            open.compact(results);
        }
        for &lane in &open.lanes[..open.count] {
            results[usize::from(lane)] = table.direct[0];
        }
    }
}

impl<K: Key> Updatable<K> for Narrow<K> {
    fn apply(&mut self, changes: &[Change<K>], after: &dyn Routes<K>) -> Result<Applied, BuildError> {
        self.table.apply(changes, after)
    }
}

impl<K: Key> Updatable<K> for Wide<K> {
    fn apply(&mut self, changes: &[Change<K>], after: &dyn Routes<K>) -> Result<Applied, BuildError> {
        self.table.apply(changes, after)
    }
}
