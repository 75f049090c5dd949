//! Lookups in portable code, and the view of the tables that kernels read.

use crate::net::{Key, NextHop};
use crate::simd::{Halves, Words};

use super::layout::{Dir248, PAD, SEGMENT};

/// The tables as kernels read them, and how the parts of a key lie in a lane of 32 bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) first: Halves<'a>,
    pub(super) segments: Halves<'a>,
    /// Next hop of each code; unused where codes are ids.
    pub(super) next_hops: Words<'a>,
    /// Right shift of a lane that leaves the index into the first table.
    pub(super) index_shift: u32,
    /// Right shift of a lane that leaves the key.
    pub(super) key_shift: u32,
    /// Bits of the key that select an entry of a segment.
    pub(super) segment_bits: u32,
}

impl<K: Key> Dir248<K> {
    /// Returns the tables as kernels read them.
    pub(super) fn view(&self) -> View<'_> {
        View {
            first: Halves::new(&self.first),
            // A gather needs a table even where no entry leads to a segment.
            segments: Halves::new(if self.segments.len() > PAD { &self.segments } else { &self.first }),
            next_hops: Words::new(self.next_hops.as_deref().unwrap_or(&[0])),
            index_shift: u32::from(32 - Self::LEADING),
            key_shift: u32::from(32 - K::BITS),
            segment_bits: Self::REST.into(),
        }
    }

    /// Returns the entry of the first table.
    #[inline]
    fn entry(&self, key: K) -> u16 {
        self.first[key.window(0, Self::LEADING) as usize]
    }

    /// Returns the code that an entry of the first table leads to for this key.
    #[inline]
    fn resolve(&self, entry: u16, key: K) -> u16 {
        if entry & SEGMENT == 0 {
            return entry;
        }
        let segment = usize::from(entry & !SEGMENT) << Self::REST;
        self.segments[segment | key.window(Self::LEADING, Self::REST) as usize]
    }

    /// Looks up one key.
    #[inline]
    pub(super) fn one(&self, key: K) -> Option<NextHop> {
        let code = self.resolve(self.entry(key), key);
        NextHop::new(match &self.next_hops {
            None => code.into(),
            Some(next_hops) => next_hops[usize::from(code)],
        })
    }

    /// Looks up a batch.
    pub(super) fn batch(&self, keys: &[K], results: &mut [Option<NextHop>]) {
        let codes = keys.iter().map(|&key| self.resolve(self.entry(key), key));
        match &self.next_hops {
            None => results.iter_mut().zip(codes).for_each(|(to, code)| *to = NextHop::new(code.into())),
            Some(next_hops) => {
                let words = codes.map(|code| next_hops[usize::from(code)]);
                results.iter_mut().zip(words).for_each(|(to, word)| *to = NextHop::new(word));
            }
        }
    }
}
