//! One load, or two.

use crate::fib::parts::lanes;
use crate::fib::{CheckError, Fib};
use crate::memory::{self, Memory};
use crate::net::{Key, NextHop};
use crate::simd::{Halves, Present, Words};

use super::Dir248;
use super::kernel::{self, Lanes};
use super::layout::{PAD, SEGMENT};

impl<K: Key> Dir248<K> {
    /// The entry of the first table.
    #[inline]
    fn entry(&self, key: K) -> u16 {
        self.first[key.window(0, Self::LEADING) as usize]
    }

    /// The code that an entry of the first table comes to for this key.
    #[inline]
    fn resolve(&self, entry: u16, key: K) -> u16 {
        if entry & SEGMENT == 0 {
            return entry;
        }
        let segment = usize::from(entry & !SEGMENT) << Self::REST;
        self.segments[segment | key.window(Self::LEADING, Self::REST) as usize]
    }

    fn batch(&self, keys: &[K], results: &mut [Option<NextHop>]) {
        let codes = keys.iter().map(|&key| self.resolve(self.entry(key), key));
        match &self.next_hops {
            None => results.iter_mut().zip(codes).for_each(|(to, code)| *to = NextHop::new(code.into())),
            Some(next_hops) => {
                let words = codes.map(|code| next_hops[usize::from(code)]);
                results.iter_mut().zip(words).for_each(|(to, word)| *to = NextHop::new(word));
            }
        }
    }

    fn lanes(&self) -> Lanes<'_> {
        Lanes {
            first: Halves::new(&self.first),
            // Where there is none, there is no entry that asks for one.
            segments: Halves::new(if self.segments.len() > PAD { &self.segments } else { &self.first }),
            next_hops: Words::new(self.next_hops.as_deref().unwrap_or(&[0])),
            behind_leading: u32::from(32 - Self::LEADING),
            behind_key: u32::from(32 - K::BITS),
            rest: Self::REST.into(),
        }
    }
}

impl<K: Key> Fib<K> for Dir248<K> {
    #[inline]
    fn lookup(&self, key: K) -> Option<NextHop> {
        let code = self.resolve(self.entry(key), key);
        NextHop::new(match &self.next_hops {
            None => code.into(),
            Some(next_hops) => next_hops[usize::from(code)],
        })
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        if !lanes::filled(isa, keys.len()) {
            return self.batch(keys, results);
        }
        let lanes = self.lanes();
        lanes::for_each_block(keys, results, |keys, results| match self.next_hops {
            None => kernel::block::<false>(isa, lanes, keys, results),
            Some(_) => kernel::block::<true>(isa, lanes, keys, results),
        });
    }

    fn memory(&self) -> Memory {
        let dictionary = self.next_hops.as_ref().map(memory::of);
        memory::of(&self.first) + memory::of(&self.segments) + dictionary.unwrap_or_default()
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk()
    }
}
