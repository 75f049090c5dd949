//! Lookups: the kernel of the chosen instruction set.

use core::sync::atomic::Ordering;

use crate::fib::parts::units::Units;
use crate::fib::{CheckError, Fib, Sections};
use crate::memory::Memory;
use crate::net::{Key, NextHop};
use crate::simd::{self, LINE_WORDS, Present};

use super::NAME;
use super::kernel;
use super::layout::{DirBtree, OBJECT_WORDS, numbers};

impl<K: Key> Fib<K> for DirBtree<K> {
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        NextHop::new(kernel::one(simd::chosen(), &self.view(), key))
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        kernel::batch(isa, &self.view(), keys, NextHop::words(results));
    }

    fn prefetches_keys(&self, _isa: Present) -> bool {
        true
    }

    fn memory(&self) -> Memory {
        let lists = [&self.table_units, &self.line_units, &self.object_units].map(Units::memory);
        let arrays = [(&self.tables, 1), (&self.lines, LINE_WORDS), (&self.objects, OBJECT_WORDS)];
        let used = |at: usize, words: usize, all: usize| {
            self.ends
                .as_ref()
                .map_or(all, |ends| (ends[at].load(Ordering::Relaxed) as usize * words).min(all))
        };
        let arrays = arrays.into_iter().enumerate();
        arrays
            .map(|(at, (array, words))| array.memory_of(used(at, words, array.len())))
            .chain(lists)
            .fold(Memory::default(), |all, part| all + part)
    }

    fn check(&self) -> Result<(), CheckError> {
        self.check_of(self.halves())
    }

    fn sections(&self) -> Option<Sections<'_>> {
        Some(self.parts(NAME))
    }

    fn exported(&self) -> Option<Sections<'_>> {
        Some(self.parts(NAME).with_numbers(&numbers::<K>()))
    }
}
