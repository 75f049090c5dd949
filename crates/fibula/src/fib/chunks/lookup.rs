//! Lookups: the kernel of the instruction set for full vectors of keys, portable code for everything else.

use crate::fib::parts::lanes::{self, Deferred};
use crate::fib::{CheckError, Fib};
use crate::memory::{self, Memory};
use crate::net::{Key, NextHop};
use crate::simd::{LANES, Present};

use super::kernel;
use super::layout::Chunks;

impl<K: Key> Fib<K> for Chunks<K> {
    #[inline]
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        NextHop::new(self.find(key))
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        if keys.len() < LANES {
            for (&key, result) in keys.iter().zip(results) {
                *result = NextHop::new(self.find(key));
            }
            return;
        }
        let (view, below) = (self.view(), self.below());
        lanes::for_each_block(keys, results, |keys, found| {
            let mut noted = Deferred::new();
            kernel::block(isa, view, keys, found, &mut noted);
            below.answer(isa, &mut noted, keys, found, |key| view.map_of(key));
        });
    }

    fn memory(&self) -> Memory {
        memory::of(&self.direct) + memory::of(&self.area) + memory::of(&self.below)
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk()
    }
}
