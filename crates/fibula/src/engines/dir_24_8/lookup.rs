//! Lookups: vector kernels for full vectors of keys, portable code for everything else.

use core::sync::atomic::Ordering;

use crate::fib::parts::lanes;
use crate::fib::{CheckError, Fib, Sections};
use crate::memory::{self, Memory};
use crate::net::{Key, NextHop};
use crate::simd::Present;

use super::layout::{Dir248, HALVES, Live};
use super::scalar::Lookup;
use super::{NAME, kernel};

/// Keys of a batch up to which one after the other is faster than gathers: those of one call overlap with the next one's loads.
const FEW: usize = 64;

impl<K: Key> Fib<K> for Dir248<K> {
    #[inline]
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        self.one(key)
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        if isa == Present::SCALAR || keys.len() <= FEW {
            return self.batch(keys, results);
        }
        let view = self.view();
        // By form once a block: without a dictionary, a kernel has no load for it.
        lanes::for_each_block(keys, results, |keys, results| match self.next_hops {
            None => kernel::block::<false>(isa, &view, keys, results),
            Some(_) => kernel::block::<true>(isa, &view, keys, results),
        });
    }

    fn memory(&self) -> Memory {
        let dictionary = self.next_hops.as_ref().map(memory::of);
        memory::of(&self.first) + memory::of(&self.segments) + dictionary.unwrap_or_default()
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk()
    }

    fn exported(&self) -> Option<Sections<'_>> {
        let sections = Sections::new(NAME, &[("dictionary", self.next_hops.is_some().into())])
            .with_numbers(&Self::NUMBERS)
            .with("first", &self.first[..])
            .with("segments", &self.segments[..]);
        Some(match &self.next_hops {
            Some(next_hops) => sections.with("next-hops", &next_hops[..]),
            None => sections,
        })
    }
}

impl<K: Key> Fib<K> for Live<K> {
    #[inline]
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        self.one(key)
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        if isa == Present::SCALAR || keys.len() <= FEW {
            return self.batch(keys, results);
        }
        let view = self.view();
        lanes::for_each_block(keys, results, |keys, results| match self.next_hops {
            None => kernel::live_block::<false>(isa, &view, keys, results),
            Some(_) => kernel::live_block::<true>(isa, &view, keys, results),
        });
    }

    fn memory(&self) -> Memory {
        // Up to the last ones in use. Lookups never touch the rest of the arrays, which is room to grow.
        let [segments, codes] = [0, 1].map(|array| self.used[array].load(Ordering::Relaxed) as usize);
        let dictionary = self.next_hops.as_ref().map(|next_hops| next_hops.memory_of(codes));
        let segments = self.segments.memory_of(segments * Dir248::<K>::SPAN / HALVES);
        self.first.memory() + segments + dictionary.unwrap_or_default()
    }

    fn check(&self) -> Result<(), CheckError> {
        self.reached().map(drop)
    }
}
