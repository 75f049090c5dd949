//! Lookups: sixteen keys or more by the kernel of the instruction set, fewer keys one by one.

use crate::fib::parts::lanes;
use crate::fib::parts::overflow::width_mask;
use crate::fib::{CheckError, Fib, Sections};
use crate::memory::Memory;
use crate::net::{Key, NextHop};
use crate::simd::{self, Present, WIDE};

use super::kernel;
use super::layout::{Dir17Sparse, windows};

/// The most keys that are left-aligned at once.
const ALIGNED: usize = 256;

impl<K: Key> Dir17Sparse<K> {
    /// Looks up left-aligned keys.
    fn lookup_aligned(&self, isa: Present, keys: &[u32], found: &mut [u32]) {
        let view = self.view();
        // The kernel answers the last sixteen keys as one vector, so it needs at least as many.
        if keys.len() < WIDE || isa == Present::SCALAR {
            return kernel::singles::<K>(isa, &view, keys, found);
        }
        if kernel::batch::<K>(isa, &view, keys, found) {
            let ones = width_mask(self.width);
            for (&key, found) in keys.iter().zip(found).filter(|(_, found)| **found == ones) {
                *found = view.find_deeper(const { windows(K::BITS) }, key);
            }
        }
    }
}

impl<K: Key> Fib<K> for Dir17Sparse<K> {
    #[inline]
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        let set = simd::chosen();
        let ones = |bits| set.count_ones(bits);
        NextHop::new(self.view().find(const { windows(K::BITS) }, lanes::aligned(key), ones))
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        let found = NextHop::words(results);
        if let Some(keys) = K::as_ipv4(keys) {
            return self.lookup_aligned(isa, keys, found);
        }
        for (keys, found) in keys.chunks(ALIGNED).zip(found.chunks_mut(ALIGNED)) {
            let mut aligned = [0; ALIGNED];
            for (aligned, &key) in aligned.iter_mut().zip(keys) {
                *aligned = lanes::aligned(key);
            }
            self.lookup_aligned(isa, &aligned[..keys.len()], found);
        }
    }

    fn memory(&self) -> Memory {
        self.words.memory() + self.below.memory()
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk()
    }

    fn sections(&self) -> Option<Sections<'_>> {
        Some(self.parts())
    }
}
