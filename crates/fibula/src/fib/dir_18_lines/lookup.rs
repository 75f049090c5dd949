//! Lookups, by the width of values: the kernel of the instruction set for full vectors of keys, portable code for
//! everything else.

use crate::fib::parts::lanes::{self, Deferred};
use crate::fib::{CheckError, Fib, Sections};
use crate::memory::{self, Memory};
use crate::net::{Key, NextHop};
use crate::simd::{LANES, Present};

use super::kernel;
use super::layout::Dir18Lines;

impl<K: Key> Dir18Lines<K> {
    fn batch<const WIDTH: u32>(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        let windows = const { Self::WINDOWS[WIDTH as usize] };
        let (view, below) = (self.view(windows), self.below(windows));
        lanes::for_each_block(keys, results, |keys, found| {
            let mut noted = Deferred::new();
            kernel::block::<WIDTH>(isa, &view, keys, found, &mut noted);
            below.answer(isa, &mut noted, keys, found, |key| self.map_of::<WIDTH>(key));
        });
    }
}

impl<K: Key> Fib<K> for Dir18Lines<K> {
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
        match self.width {
            0 => self.batch::<0>(isa, keys, results),
            1 => self.batch::<1>(isa, keys, results),
            _ => self.batch::<2>(isa, keys, results),
        }
    }

    fn memory(&self) -> Memory {
        memory::of(&self.direct) + memory::of(&self.lines) + memory::of(&self.maps) + memory::of(&self.below)
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk()
    }

    fn sections(&self) -> Option<Sections<'_>> {
        Some(self.parts())
    }
}
