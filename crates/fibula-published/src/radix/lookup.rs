//! Lookups, which the tree itself answers.

use fibula::fib::{CheckError, Fib, Updatable};
use fibula::net::{Key, NextHop};
use fibula::unstable::memory::Memory;

use super::Radix;

impl<K: Key> Fib<K> for Radix<K> {
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        self.tree.lookup(key)
    }

    fn memory(&self) -> Memory {
        self.tree.memory()
    }

    fn check(&self) -> Result<(), CheckError> {
        self.tree.check()
    }

    fn updatable(&mut self) -> Option<&mut dyn Updatable<K>> {
        Some(self)
    }
}
