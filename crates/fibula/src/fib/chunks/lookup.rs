//! Scalar lookups, one key at a time and a batch in stages.

use crate::fib::parts::lanes::{self, BLOCK};
use crate::fib::{CheckError, Fib};
use crate::memory::{self, Memory};
use crate::net::{Key, NextHop};
use crate::simd::{Bytes, LANES, Present};

use super::Chunks;
use super::kernel;
use super::layout::{Entry, Form, Geometry, map_place, map_rank, map_words, width_mask};

/// A table as kernels see it.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) geometry: Geometry,
    pub(super) direct: &'a [u32],
    pub(super) area: &'a [u32],
    pub(super) bytes: Bytes<'a>,
    pub(super) deep: &'a [u32],
    pub(super) deep_bytes: Bytes<'a>,
}

impl View<'_> {
    /// Next hop of a key that is aligned to the left, 0 for no route.
    #[inline(always)]
    pub(super) fn find(&self, geometry: Geometry, key: u32) -> u32 {
        let entry = Entry(self.direct[geometry.direct(key)]);
        if entry.is_chunk() { self.find_in(geometry, entry, key) } else { entry.0 }
    }

    /// Next hop of a key whose direct entry names a chunk.
    #[inline(always)]
    pub(super) fn find_in(&self, geometry: Geometry, entry: Entry, key: u32) -> u32 {
        let slot = geometry.slot(key) >> entry.shift();
        let at = match geometry.form {
            Form::Dense => 4 * entry.offset() + ((slot as usize) << entry.width()),
            Form::Rank => {
                let slots = (1 << geometry.chunk_bits) >> entry.shift();
                ranked(self.area, entry, slot, slots)
            }
        };
        let value = value(self.bytes, self.area, at, entry.width());
        if value == width_mask(entry.width()) { self.deeper(entry, key) } else { value }
    }

    /// Next hop of a key in a slot that its chunk says is deeper.
    #[cold]
    #[inline(never)]
    pub(super) fn deeper(&self, entry: Entry, key: u32) -> u32 {
        let map = self.area[entry.offset() - 1] as usize;
        let (word, bit) = map_place(self.geometry.slot(key));
        let rank = map_rank(self.deep[map + word as usize], bit) as usize;
        let deep = Entry(self.deep[map - rank]);
        if !deep.is_chunk() {
            return deep.0;
        }
        let slot = self.geometry.rest(key);
        let at = if deep.shift() == Entry::SPARSE {
            let rank = bytes_below(self.deep[deep.offset()], slot);
            4 * (deep.offset() + 1) + ((rank as usize) << deep.width())
        } else {
            let slots = (1 << self.geometry.rest_bits) >> deep.shift();
            ranked(self.deep, deep, slot >> deep.shift(), slots)
        };
        value(self.deep_bytes, self.deep, at, deep.width())
    }
}

/// Byte at which the value of a slot of a rank chunk stands.
#[inline(always)]
fn ranked(area: &[u32], entry: Entry, slot: u32, slots: u32) -> usize {
    let (word, bit) = map_place(slot);
    let rank = map_rank(area[entry.offset() + word as usize], bit);
    let values = entry.offset() + map_words(slots) as usize;
    4 * values + ((rank as usize) << entry.width())
}

/// The value at a byte of an area, which is seen as words and as bytes.
#[inline(always)]
fn value(bytes: Bytes<'_>, words: &[u32], at: usize, width: u32) -> u32 {
    // Most chunks hold bytes: a branch that is predicted, where shifts would be counted for all.
    if width == 0 {
        return u32::from(bytes.byte(at));
    }
    // A value lies within one word: chunks begin at words, and widths divide them.
    (words[at / 4] >> (8 * (at % 4))) & width_mask(width)
}

/// How many of the four bytes are below the limit.
#[inline]
fn bytes_below(bytes: u32, limit: u32) -> u32 {
    bytes.to_ne_bytes().into_iter().map(|byte| u32::from(u32::from(byte) < limit)).sum()
}

/// A block of keys without vectors.
pub(super) fn block<const DENSE: bool>(view: View<'_>, keys: &[[u32; LANES]], found: &mut [[u32; LANES]]) {
    const RANK: Geometry = Geometry::new(Form::Rank, 32);
    const DENSE_IPV4: Geometry = Geometry::new(Form::Dense, 32);
    // Windows that the compiler knows are shifts by constants.
    match view.geometry {
        DENSE_IPV4 if DENSE => straight(&view, DENSE_IPV4, keys, found),
        RANK if !DENSE => stages(&view, RANK, keys, found),
        geometry if DENSE => straight(&view, geometry, keys, found),
        geometry => stages(&view, geometry, keys, found),
    }
}

/// A block of a table with dense chunks, every key by the same instructions: those without a chunk read the first
/// byte of the area in vain.
#[inline(always)]
fn straight(view: &View<'_>, geometry: Geometry, keys: &[[u32; LANES]], found: &mut [[u32; LANES]]) {
    for (&key, word) in keys.as_flattened().iter().zip(found.as_flattened_mut()) {
        let entry = Entry(view.direct[geometry.direct(key)]);
        let in_chunk = (entry.0 as i32 >> 31) as u32;
        let slot = geometry.slot(key) >> entry.shift();
        let value = u32::from(view.bytes.byte(((4 * (entry.0 & Entry::OFFSET) + slot) & in_chunk) as usize));
        // Written out, because a choice becomes a branch.
        *word = value & in_chunk | entry.0 & !in_chunk;
        // Rare: values of more than a byte, and slots that are deeper.
        if in_chunk & (entry.width() | u32::from(value == width_mask(0))) != 0 {
            *word = view.find_in(geometry, entry, key);
        }
    }
}

/// A block in two stages: all direct entries first, then the chunks of those keys that need one. No branch depends on a
/// key but the loop over what is left, so that the loads of many keys are under way together.
#[inline(always)]
fn stages(view: &View<'_>, geometry: Geometry, keys: &[[u32; LANES]], found: &mut [[u32; LANES]]) {
    let (keys, found) = (keys.as_flattened(), found.as_flattened_mut());
    let mut left = [0u8; BLOCK * LANES + 1];
    let mut count = 0;
    for (at, (&key, word)) in keys.iter().zip(&mut *found).enumerate() {
        *word = view.direct[geometry.direct(key)];
        left[count] = at as u8;
        count += (*word >> 31) as usize;
    }
    for &at in &left[..count] {
        let at = usize::from(at);
        found[at] = view.find_in(geometry, Entry(found[at]), keys[at]);
    }
}

impl<K: Key> Chunks<K> {
    const RANK: Geometry = Geometry::new(Form::Rank, K::BITS);
    const DENSE: Geometry = Geometry::new(Form::Dense, K::BITS);

    #[inline]
    fn view(&self) -> View<'_> {
        View {
            geometry: self.geometry,
            direct: &self.direct,
            area: &self.area,
            bytes: Bytes::new(&self.area),
            deep: &self.deep,
            deep_bytes: Bytes::new(&self.deep),
        }
    }

    /// Next hop of one key, 0 for no route.
    #[inline]
    fn find(&self, key: K) -> u32 {
        let key = aligned(key);
        // The windows of a form are constants here.
        match self.form() {
            Form::Rank => self.view().find(Self::RANK, key),
            Form::Dense => self.view().find(Self::DENSE, key),
        }
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
        NextHop::new(self.find(key))
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        if keys.len() < LANES {
            for (&key, result) in keys.iter().zip(results) {
                *result = NextHop::new(self.find(key));
            }
            return;
        }
        let view = self.view();
        let block = match self.form() {
            Form::Rank => kernel::block::<false>,
            Form::Dense => kernel::block::<true>,
        };
        lanes::for_each_block(keys, results, |keys, found| block(isa, view, keys, found));
    }

    fn memory(&self) -> Memory {
        memory::of(&self.direct) + memory::of(&self.area) + memory::of(&self.deep)
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk()
    }
}
