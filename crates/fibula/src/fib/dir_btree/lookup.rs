//! Lookups: the kernel of the chosen instruction set.

use crate::fib::parts::units::Units;
use crate::fib::{CheckError, Fib};
use crate::memory::Memory;
use crate::net::{Key, NextHop};
use crate::simd::{self, Present};

use super::kernel;
use super::layout::DirBtree;

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
        [self.tables.memory(), self.lines.memory(), self.objects.memory()]
            .into_iter()
            .chain(lists)
            .fold(Memory::default(), |all, part| all + part)
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk().map(|_| ())
    }
}
