//! Lookups, by the width of values: the kernel of the instruction set for full vectors of keys, single lookups for
//! everything else.

use crate::fib::parts::intervals;
use crate::fib::parts::lanes::{self, BLOCK, Deferred};
use crate::fib::{CheckError, Fib};
use crate::memory::{self, Memory};
use crate::net::{Key, NextHop};
use crate::simd::{self, LANES, Present};

use super::kernel;
use super::layout::{Forest, NARROW, WIDE, cut};
use super::scalar::{Scratch, below_place};

/// Most vectors of a short batch.
const SHORT: usize = 4;

impl<K: Key> Forest<K> {
    fn one<const LEAF_KEYS: u32>(&self, isa: Present, key: K) -> u32 {
        let upper = intervals::upper(key, cut::<K>().upper_bits);
        self.answer::<LEAF_KEYS>(kernel::one::<K, LEAF_KEYS>(isa, self.view(), upper), key)
    }

    fn batch<const LEAF_KEYS: u32>(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        if keys.len() < LANES {
            for (&key, result) in keys.iter().zip(results) {
                *result = NextHop::new(self.one::<LEAF_KEYS>(isa, key));
            }
            return;
        }
        // Clearing scratch space for whole blocks would take a third of the time of a short batch.
        if keys.len() <= SHORT * LANES {
            self.blocks_of::<SHORT, LEAF_KEYS>(isa, keys, results);
        } else {
            self.blocks_of::<BLOCK, LEAF_KEYS>(isa, keys, results);
        }
    }

    /// Looks up a batch in blocks of at most `VECTORS` vectors.
    fn blocks_of<const VECTORS: usize, const LEAF_KEYS: u32>(
        &self,
        isa: Present,
        keys: &[K],
        results: &mut [Option<NextHop>],
    ) {
        let view = self.view();
        let mut windows = [[0; LANES]; VECTORS];
        let mut scratch = Scratch { windows: &mut windows, noted: Deferred::new(), next: &[] };
        let mut done = 0;
        lanes::in_blocks(keys, results, |block, found| {
            // The keys of the next block are fetched during this one, as the first stage has no time to wait for them.
            done += BLOCK * LANES;
            scratch.next = &keys[keys.len().min(done)..keys.len().min(done + BLOCK * LANES)];
            scratch.noted.clear();
            kernel::block::<K, LEAF_KEYS>(isa, view, block, found, &mut scratch);
            let (block, found) = (block.as_flattened(), found.as_flattened_mut());
            let below = || scratch.noted.lanes().iter().map(|&lane| usize::from(lane));
            below().for_each(|lane| self.records.fetch(below_place::<LEAF_KEYS>(found[lane])));
            below().for_each(|lane| found[lane] = self.find_below::<LEAF_KEYS>(found[lane], block[lane]));
        });
    }
}

impl<K: Key> Fib<K> for Forest<K> {
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        let isa = simd::chosen();
        NextHop::new(if self.leaf_keys == NARROW {
            self.one::<NARROW>(isa, key)
        } else {
            self.one::<WIDE>(isa, key)
        })
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        if self.leaf_keys == NARROW {
            self.batch::<NARROW>(isa, keys, results);
        } else {
            self.batch::<WIDE>(isa, keys, results);
        }
    }

    fn memory(&self) -> Memory {
        memory::of(&self.direct)
            + memory::of(&self.slots)
            + memory::of(&self.lines)
            + memory::of(&self.records.words)
            + self.blocks.memory()
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk()
    }
}
