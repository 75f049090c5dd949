//! The trait `Fib`.

use fibula::fib::{CheckError, Fib, Updatable};
use fibula::net::{Key, NextHop};
use fibula::unstable::memory::{self, Memory};
use fibula::unstable::simd::Present;

use super::layout::{Multibit, Slot};

impl<K: Key> Fib<K> for Multibit<K> {
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        self.find(key)
    }

    fn lookup_batch_on(&self, _isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        self.find_all(keys, results);
    }

    fn memory(&self) -> Memory {
        let slots = Memory {
            lookup_bytes: (self.nodes() << self.stride) * size_of::<Slot>(),
            ..memory::of(&self.slots)
        };
        slots + Memory { lookup_bytes: 0, ..memory::of(&self.lens) }
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk()
    }

    fn updatable(&mut self) -> Option<&mut dyn Updatable<K>> {
        Some(self)
    }
}
