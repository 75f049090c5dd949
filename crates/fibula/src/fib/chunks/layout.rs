//! What lookups touch: the direct table, the area that holds the chunks, and what lies below them.

use core::marker::PhantomData;

use crate::memory::Buffer;
use crate::net::Key;

/// The engine. [`Form`] says what its chunks look like.
#[derive(Debug, Clone)]
pub struct Chunks<K> {
    pub(super) geometry: Geometry,
    /// By the leading bits of the key: an [`Entry`].
    pub(super) direct: Buffer<u32>,
    /// Chunks, in front of each with deeper slots the place of its map in `deep`, and [`PADDING`] words.
    pub(super) area: Buffer<u32>,
    /// Deeper chunks, behind those of one chunk their list and map, and [`PADDING`] words.
    pub(super) deep: Buffer<u32>,
    pub(super) keys: PhantomData<fn(K)>,
}

/// What the chunks of the first level hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A bit map of where the answer changes and one value a range: small.
    Rank,
    /// One value a slot: fast.
    Dense,
}

/// How the bits of a key are cut into three windows, the first one leading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Geometry {
    pub(super) form: Form,
    /// Bits that select an entry of the direct table.
    pub(super) direct_bits: u32,
    /// Bits that select a slot of a chunk, at most 8.
    pub(super) chunk_bits: u32,
    /// Bits that select a slot of a deeper chunk, at most 8.
    pub(super) rest_bits: u32,
}

impl Geometry {
    /// The windows for keys of this width: 16, 8 and 8 bits of 32 for rank chunks, 18, 6 and 8 for dense ones.
    pub(super) const fn new(form: Form, key_bits: u8) -> Self {
        let key_bits = key_bits as u32;
        let rest_bits = at_least_one(key_bits / 4);
        let chunk_bits = at_least_one(match form {
            Form::Rank => at_most(key_bits / 2, 8),
            Form::Dense => at_most(key_bits * 3 / 8, 6),
        });
        Self { form, direct_bits: key_bits - chunk_bits - rest_bits, chunk_bits, rest_bits }
    }

    /// Index into the direct table of a key whose bits are aligned to the left.
    #[inline]
    pub(super) fn direct(self, key: u32) -> usize {
        (key >> (32 - self.direct_bits)) as usize
    }

    /// Slot of the chunk.
    #[inline]
    pub(super) fn slot(self, key: u32) -> u32 {
        (key << self.direct_bits) >> (32 - self.chunk_bits)
    }

    /// Slot of the deeper chunk.
    #[inline]
    pub(super) fn rest(self, key: u32) -> u32 {
        (key << (self.direct_bits + self.chunk_bits)) >> (32 - self.rest_bits)
    }

    /// Words of the map that says which slots of a chunk are deeper.
    #[inline]
    pub(super) const fn deep_words(self) -> u32 {
        map_words(1 << self.chunk_bits)
    }

    /// Words before the values of a first-level chunk, by [`Entry::shift`].
    pub(super) fn head_words(self) -> [u32; 8] {
        core::array::from_fn(|shift| match self.form {
            Form::Rank => map_words((1 << self.chunk_bits) >> shift.min(Entry::SPARSE as usize - 1)),
            Form::Dense => 0,
        })
    }

    /// Words before the values of a deeper chunk, by [`Entry::shift`].
    pub(super) fn rest_head_words(self) -> [u32; 8] {
        core::array::from_fn(|shift| match shift as u32 {
            Entry::SPARSE => 1,
            shift => map_words((1 << self.rest_bits) >> shift),
        })
    }
}

/// Words of zeros at the end of an area, so that 32 bits can be read from its last byte on, and that it is never empty.
pub(super) const PADDING: usize = 1;

/// Slots that one word of a map covers; the upper 8 bits count the changes in the words before it.
pub(super) const MAP_BITS: u32 = 24;

/// Words of a map of this many slots.
pub(super) const fn map_words(slots: u32) -> u32 {
    if slots <= MAP_BITS { 1 } else { slots.div_ceil(MAP_BITS) }
}

/// The word of a map that covers a slot, and the slot's bit within it.
#[inline]
pub(super) fn map_place(slot: u32) -> (u32, u32) {
    // 171 / 4096 is 1/24 for all that 8 bits can hold, and stays within 16 bits.
    let word = (slot * 171) >> 12;
    (word, slot - word * MAP_BITS)
}

/// Set bits of a map up to a slot, the slot included, over the whole map.
#[inline]
pub(super) fn map_rank(word: u32, bit: u32) -> u32 {
    (word >> MAP_BITS) + (word & (0x00ff_ffff >> (MAP_BITS - 1 - bit))).count_ones()
}

/// An entry of the direct table or of a chunk's list of deeper chunks.
///
/// ```text
/// 0 nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn    next hop n, 0 for no route
/// 1 sss ww oooooooooooooooooooooooooo  chunk whose first word is o; slots are 2^s addresses of its level;
///                                      values of 8, 16 or 32 bits (w = 0, 1, 2); s = 7: a sparse chunk
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry(pub(super) u32);

impl Entry {
    /// The bit that tells a chunk from a next hop.
    pub(super) const CHUNK: u32 = 1 << 31;
    /// The shift that stands for a sparse chunk.
    pub(super) const SPARSE: u32 = 7;
    /// Lowest bit of the shift.
    pub(super) const SHIFT_AT: u32 = 28;
    /// Lowest bit of the width.
    pub(super) const WIDTH_AT: u32 = 26;
    /// The bits of the offset; its greatest value.
    pub(super) const OFFSET: u32 = (1 << Self::WIDTH_AT) - 1;

    /// The entry of a chunk.
    pub(super) fn chunk(shift: u32, width: u32, offset: u32) -> Self {
        debug_assert!(shift <= Self::SPARSE && width <= 2 && offset <= Self::OFFSET);
        Self(Self::CHUNK | shift << Self::SHIFT_AT | width << Self::WIDTH_AT | offset)
    }

    #[inline]
    pub(super) fn is_chunk(self) -> bool {
        self.0 & Self::CHUNK != 0
    }

    #[inline]
    pub(super) fn shift(self) -> u32 {
        self.0 >> Self::SHIFT_AT & 7
    }

    /// Binary logarithm of the bytes of a value.
    #[inline]
    pub(super) fn width(self) -> u32 {
        self.0 >> Self::WIDTH_AT & 3
    }

    #[inline]
    pub(super) fn offset(self) -> usize {
        (self.0 & Self::OFFSET) as usize
    }
}

/// The bits of a value of this width, all set: in a first-level chunk, that the slot is deeper.
#[inline]
pub(super) const fn width_mask(width: u32) -> u32 {
    match width {
        0 => 0xff,
        1 => 0xffff,
        _ => u32::MAX,
    }
}

const fn at_least_one(bits: u32) -> u32 {
    if bits == 0 { 1 } else { bits }
}

const fn at_most(bits: u32, limit: u32) -> u32 {
    if bits > limit { limit } else { bits }
}

impl<K: Key> Chunks<K> {
    /// The form of the chunks.
    #[must_use]
    pub fn form(&self) -> Form {
        self.geometry.form
    }
}

const _: () = {
    let rank = Geometry::new(Form::Rank, 32);
    assert!(rank.direct_bits == 16 && rank.chunk_bits == 8 && rank.rest_bits == 8);
    let dense = Geometry::new(Form::Dense, 32);
    assert!(dense.direct_bits == 18 && dense.chunk_bits == 6 && dense.rest_bits == 8);
    assert!(map_words(256) == 11);
};
