//! Lookups: sixteen keys or more by the kernel of the instruction set, fewer keys one by one.

use core::sync::atomic::Ordering;

use crate::fib::parts::units::Units;
use crate::fib::{CheckError, Fib, Sections};
use crate::memory::Memory;
use crate::net::{Key, NextHop};
use crate::simd::{self, Present, WIDE};

use super::kernel;
use super::layout::{Dir17Bitmap, PADDING, Windows};

/// The most keys that are left-aligned at once.
const ALIGNED: usize = 256;

impl<K: Key> Dir17Bitmap<K> {
    /// Looks up left-aligned keys.
    #[inline(always)]
    fn lookup_aligned(&self, isa: Present, keys: &[u32], found: &mut [u32]) {
        let view = self.view();
        // The kernel answers the last sixteen keys as one vector, so it needs at least as many.
        if keys.len() < WIDE {
            kernel::singles::<K>(isa, &view, keys, found);
        } else {
            kernel::batch::<K>(isa, isa, &view, keys, found);
        }
    }
}

impl<K: Key> Fib<K> for Dir17Bitmap<K> {
    #[inline]
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        let key = crate::fib::parts::lanes::aligned(key);
        let set = simd::chosen();
        NextHop::new(self.view().find(const { Windows::new(K::BITS) }, key, |bits| set.count_ones(bits)))
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
                *aligned = crate::fib::parts::lanes::aligned(key);
            }
            self.lookup_aligned(isa, &aligned[..keys.len()], found);
        }
    }

    fn memory(&self) -> Memory {
        let words = (self.end.load(Ordering::Relaxed) + PADDING).min(self.units.len());
        let lists = self.allotted.as_ref().map(Units::memory).unwrap_or_default();
        self.direct.memory() + self.units.memory_of(words) + lists
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk()
    }

    fn sections(&self) -> Option<Sections<'_>> {
        Some(self.parts())
    }

    fn exported(&self) -> Option<Sections<'_>> {
        Some(self.parts().with_numbers(&Self::WINDOWS.numbers()))
    }
}
