//! One load, or two.

use crate::fib::{CheckError, Fib};
use crate::memory::{self, Memory};
use crate::net::{Key, NextHop};
use crate::simd::Present;

use super::Dir248;
use super::layout::SEGMENT;

impl<K: Key> Dir248<K> {
    /// The entry of the first table.
    #[inline]
    fn entry(&self, key: K) -> u16 {
        self.first[key.window(0, Self::LEADING) as usize]
    }

    /// What an entry of the first table comes to for this key.
    #[inline]
    fn resolve(&self, entry: u16, key: K) -> Option<NextHop> {
        let code = if entry & SEGMENT == 0 {
            entry
        } else {
            let segment = usize::from(entry & !SEGMENT) << Self::REST;
            self.segments[segment | key.window(Self::LEADING, Self::REST) as usize]
        };
        NextHop::new(self.next_hops[usize::from(code)])
    }
}

impl<K: Key> Fib<K> for Dir248<K> {
    #[inline]
    fn lookup(&self, key: K) -> Option<NextHop> {
        self.resolve(self.entry(key), key)
    }

    fn lookup_batch_on(&self, _isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        for (&key, result) in keys.iter().zip(results) {
            *result = self.resolve(self.entry(key), key);
        }
    }

    fn memory(&self) -> Memory {
        memory::of(&self.first) + memory::of(&self.segments) + memory::of(&self.next_hops)
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk()
    }
}
