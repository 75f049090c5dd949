//! Lookups in portable code, and the views of the tables that kernels read.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::memory::Cell;
use crate::net::{Key, NextHop};
use crate::simd::{Halves, Words};

use super::layout::{Dir248, HALVES, Live, PAD, SEGMENT, half, half_of};

/// The tables as kernels read them, and how a lane of 32 bits is cut into the parts of a key.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) first: Halves<'a>,
    pub(super) segments: Halves<'a>,
    /// The next hop of each code; unused if codes are ids.
    pub(super) next_hops: Words<'a>,
    /// The right shift of a lane that leaves the index into the first table.
    pub(super) index_shift: u32,
    /// The right shift of a lane that leaves the key.
    pub(super) key_shift: u32,
    /// Bits of the key that select an entry of a segment.
    pub(super) segment_bits: u32,
}

/// The same for tables that a writer may change, with two entries a word.
#[derive(Debug, Clone, Copy)]
pub(super) struct LiveView<'a> {
    pub(super) first: Words<'a, AtomicU32>,
    pub(super) segments: Words<'a, AtomicU32>,
    pub(super) next_hops: Words<'a, AtomicU32>,
    pub(super) index_shift: u32,
    pub(super) key_shift: u32,
    pub(super) segment_bits: u32,
}

impl<K: Key> Dir248<K> {
    /// Returns the tables as kernels read them.
    pub(super) fn view(&self) -> View<'_> {
        View {
            first: Halves::new(&self.first),
            // A gather needs a table even if no entry leads to a segment.
            segments: Halves::new(if self.segments.len() > PAD { &self.segments } else { &self.first }),
            // Kernels are given an array even if codes are ids. They do not read it then.
            next_hops: Words::new(self.next_hops.as_deref().unwrap_or(&[0])),
            index_shift: u32::from(32 - Self::LEADING),
            key_shift: u32::from(32 - K::BITS),
            segment_bits: Self::REST.into(),
        }
    }
}

impl<K: Key> Live<K> {
    /// Returns the tables as kernels read them.
    pub(super) fn view(&self) -> LiveView<'_> {
        LiveView {
            first: Words::new(&self.first),
            segments: Words::new(&self.segments),
            // As above: any array will do if codes are ids.
            next_hops: Words::new(self.next_hops.as_deref().unwrap_or(&self.first)),
            index_shift: u32::from(32 - Dir248::<K>::LEADING),
            key_shift: u32::from(32 - K::BITS),
            segment_bits: Dir248::<K>::REST.into(),
        }
    }
}

/// Lookups in either form of the tables.
pub(super) trait Lookup<K: Key> {
    /// A next hop of the dictionary.
    type Id: Cell<Value = u32>;

    /// Returns an entry of the first table. It is loaded before everything that it leads to.
    fn entry(&self, at: usize) -> u16;

    /// Returns an entry of the segments.
    fn code(&self, at: usize) -> u16;

    /// Returns the dictionary; `None` if codes are ids.
    fn next_hops(&self) -> Option<&[Self::Id]>;

    /// Returns the code of a key.
    #[inline]
    fn resolve(&self, key: K) -> u16 {
        let entry = self.entry(key.window(0, Dir248::<K>::LEADING) as usize);
        if entry & SEGMENT == 0 {
            return entry;
        }
        let segment = usize::from(entry & !SEGMENT) << Dir248::<K>::REST;
        self.code(segment | key.window(Dir248::<K>::LEADING, Dir248::<K>::REST) as usize)
    }

    /// Looks up one key.
    #[inline]
    fn one(&self, key: K) -> Option<NextHop> {
        let code = self.resolve(key);
        NextHop::new(match self.next_hops() {
            None => code.into(),
            Some(next_hops) => next_hops[usize::from(code)].read(),
        })
    }

    /// Looks up a batch.
    fn batch(&self, keys: &[K], results: &mut [Option<NextHop>]) {
        let codes = keys.iter().map(|&key| self.resolve(key));
        match self.next_hops() {
            None => results.iter_mut().zip(codes).for_each(|(to, code)| *to = NextHop::new(code.into())),
            Some(next_hops) => {
                let words = codes.map(|code| next_hops[usize::from(code)].read());
                results.iter_mut().zip(words).for_each(|(to, word)| *to = NextHop::new(word));
            }
        }
    }
}

impl<K: Key> Lookup<K> for Dir248<K> {
    type Id = u32;

    #[inline]
    fn entry(&self, at: usize) -> u16 {
        self.first[at]
    }

    #[inline]
    fn code(&self, at: usize) -> u16 {
        self.segments[at]
    }

    #[inline]
    fn next_hops(&self) -> Option<&[u32]> {
        self.next_hops.as_deref()
    }
}

impl<K: Key> Lookup<K> for Live<K> {
    type Id = AtomicU32;

    #[inline]
    fn entry(&self, at: usize) -> u16 {
        // A writer publishes segments and codes by entries, so the entry is loaded before both.
        half_of(self.first[at / HALVES].load(Ordering::Acquire), at)
    }

    #[inline]
    fn code(&self, at: usize) -> u16 {
        half(&self.segments, at)
    }

    #[inline]
    fn next_hops(&self) -> Option<&[AtomicU32]> {
        self.next_hops.as_deref()
    }
}
