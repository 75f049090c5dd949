//! Lookups, one by one, and changes.

use fibula::fib::{Applied, BuildError, CheckError, Fib, Updatable};
use fibula::net::{Change, Key, NextHop, Routes};
use fibula::unstable::memory::Memory;

use super::BloomNaive;

impl<K: Key> Fib<K> for BloomNaive<K> {
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        self.0.one(key)
    }

    fn memory(&self) -> Memory {
        self.0.memory()
    }

    fn check(&self) -> Result<(), CheckError> {
        self.0.walk()
    }

    fn updatable(&mut self) -> Option<&mut dyn Updatable<K>> {
        Some(self)
    }
}

impl<K: Key> Updatable<K> for BloomNaive<K> {
    fn apply(&mut self, changes: &[Change<K>], after: &dyn Routes<K>) -> Result<Applied, BuildError> {
        self.0.apply(changes, after)
    }
}
