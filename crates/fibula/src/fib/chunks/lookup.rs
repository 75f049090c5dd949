//! Scalar lookups, one key at a time and a batch in stages.

use crate::fib::{CheckError, Fib};
use crate::memory::{self, Memory};
use crate::net::{Key, NextHop};
use crate::simd::Present;

use super::Chunks;
use super::kernel::{self, BLOCK};
use super::layout::{Entry, Form, Geometry, MAP_BITS, PADDING, map_place, map_rank, width_mask};

/// A table as kernels see it.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) geometry: Geometry,
    pub(super) direct: &'a [u32],
    pub(super) area: &'a [u32],
}

impl View<'_> {
    /// Next hop of a key that is aligned to the left, 0 for no route.
    #[inline]
    pub(super) fn find(self, key: u32) -> u32 {
        let entry = Entry(self.direct[self.geometry.direct(key)]);
        if entry.is_chunk() { self.find_in(entry, key) } else { entry.0 }
    }

    /// Next hop of a key whose direct entry names a chunk.
    #[inline]
    pub(super) fn find_in(self, entry: Entry, key: u32) -> u32 {
        let slot = self.geometry.slot(key) >> entry.shift();
        let at = match self.geometry.form {
            Form::Dense => 4 * entry.offset() + ((slot as usize) << entry.width()),
            Form::Rank => {
                let slots = (1 << self.geometry.chunk_bits) >> entry.shift();
                self.ranked(entry, slot, slots)
            }
        };
        let value = self.value(at, entry.width());
        if value == width_mask(entry.width()) { self.deeper(entry, key) } else { value }
    }

    /// Byte at which the value of a slot of a rank chunk stands.
    #[inline]
    fn ranked(self, entry: Entry, slot: u32, slots: u32) -> usize {
        let (word, bit) = map_place(slot);
        let rank = map_rank(self.area[entry.offset() + word as usize], bit);
        let values = entry.offset() + super::layout::map_words(slots) as usize;
        4 * values + ((rank as usize) << entry.width())
    }

    /// The value at a byte of the area.
    #[inline]
    fn value(self, at: usize, width: u32) -> u32 {
        // A value lies within one word: chunks begin at words, and widths divide them.
        (self.area[at / 4] >> (8 * (at % 4))) & width_mask(width)
    }

    /// Next hop of a key in a slot that its chunk says is deeper.
    #[cold]
    pub(super) fn deeper(self, entry: Entry, key: u32) -> u32 {
        let map = entry.offset() - self.geometry.deep_words() as usize;
        let (word, bit) = map_place(self.geometry.slot(key));
        let rank = map_rank(self.area[map + word as usize], bit) as usize;
        let deep = Entry(self.area[map - rank]);
        if !deep.is_chunk() {
            return deep.0;
        }
        let slot = self.geometry.rest(key);
        let at = if deep.shift() == Entry::SPARSE {
            let rank = bytes_below(self.area[deep.offset()], slot);
            4 * (deep.offset() + 1) + ((rank as usize) << deep.width())
        } else {
            let slots = (1 << self.geometry.rest_bits) >> deep.shift();
            self.ranked(deep, slot >> deep.shift(), slots)
        };
        self.value(at, deep.width())
    }
}

/// How many of the four bytes are below the limit.
#[inline]
fn bytes_below(bytes: u32, limit: u32) -> u32 {
    bytes.to_ne_bytes().into_iter().map(|byte| u32::from(u32::from(byte) < limit)).sum()
}

/// A block in two stages: all direct entries first, then the chunks of those keys that need one. No branch
/// depends on a key but the loop over what is left, so that the loads of many keys are under way together.
pub(super) fn block(view: View<'_>, keys: &[u32], words: &mut [u32]) {
    let mut left = [0u8; BLOCK + 1];
    let mut count = 0;
    for (at, (&key, word)) in keys.iter().zip(&mut *words).enumerate() {
        *word = view.direct[view.geometry.direct(key)];
        left[count] = at as u8;
        count += (*word >> 31) as usize;
    }
    for &at in &left[..count] {
        let at = usize::from(at);
        words[at] = view.find_in(Entry(words[at]), keys[at]);
    }
}

impl<K: Key> Chunks<K> {
    #[inline]
    pub(super) fn view(&self) -> View<'_> {
        View { geometry: self.geometry, direct: &self.direct, area: &self.area }
    }
}

/// The key's bits, aligned to the left.
#[inline]
fn aligned<K: Key>(key: K) -> u32 {
    key.window(0, K::BITS) << (32 - u32::from(K::BITS))
}

impl<K: Key> Fib<K> for Chunks<K> {
    #[inline]
    fn lookup(&self, key: K) -> Option<NextHop> {
        NextHop::new(self.view().find(aligned(key)))
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        let view = self.view();
        for (keys, results) in keys.chunks(BLOCK).zip(results.chunks_mut(BLOCK)) {
            kernel::lookup(isa, view, keys, results, aligned);
        }
    }

    fn memory(&self) -> Memory {
        let both = memory::of(&self.direct) + memory::of(&self.area);
        Memory { lookup_bytes: both.lookup_bytes - size_of_val(&self.area[..PADDING]), ..both }
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk()
    }
}

const _: () = assert!(MAP_BITS == 24 && BLOCK == 256);
