//! The trait `Fib`.

use fibula::fib::{CheckError, Fib, Updatable};
use fibula::net::{Key, NextHop};
use fibula::unstable::memory::{self, Memory};
use fibula::unstable::simd::Present;

use super::layout::Hbs;

impl<K: Key> Fib<K> for Hbs<K> {
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        self.one(key)
    }

    fn lookup_batch_on(&self, _isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        self.batch(keys, results);
    }

    fn memory(&self) -> Memory {
        let slots = self.tables.iter().map(|table| memory::of(&table.slots));
        slots.fold(memory::of(self.tree.array()) + memory::of(&self.tables), |sum, table| sum + table)
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk()
    }

    fn updatable(&mut self) -> Option<&mut dyn Updatable<K>> {
        Some(self)
    }
}
