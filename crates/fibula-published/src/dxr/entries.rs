//! The access of searches to the formats.

use core::sync::atomic::AtomicU32;

use fibula::unstable::memory::Cell;

use super::geometry::Split;
use super::layout::{Compact, HALVES, SHORT, SHORT_CODE_BITS, Wide};

/// A chunk as searches read it: every `1 << stride`-th of the halves from `first` on.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Chunk {
    pub(super) first: usize,
    pub(super) entries: usize,
    pub(super) stride: u32,
}

/// Halves that sort by base.
pub(super) trait Sorted: Copy {
    /// Returns those from one on.
    fn from(self, first: usize) -> Self;

    /// Returns one.
    fn at(self, index: usize) -> u16;
}

impl Sorted for &[u16] {
    #[inline(always)]
    fn from(self, first: usize) -> Self {
        &self[first..]
    }

    #[inline(always)]
    fn at(self, index: usize) -> u16 {
        self[index]
    }
}

/// The halves of words that a writer may change, from one of them on.
#[derive(Debug, Clone, Copy)]
pub(super) struct LiveHalves<'a> {
    words: &'a [AtomicU32],
    first: usize,
}

impl<'a> LiveHalves<'a> {
    /// Returns all halves of these words.
    #[inline(always)]
    pub(super) fn of(words: &'a [AtomicU32]) -> Self {
        Self { words, first: 0 }
    }
}

impl Sorted for LiveHalves<'_> {
    #[inline(always)]
    fn from(self, first: usize) -> Self {
        Self { first: self.first + first, ..self }
    }

    #[inline(always)]
    fn at(self, index: usize) -> u16 {
        let half = self.first + index;
        (self.words[half / HALVES].read() >> (16 * (half % HALVES))) as u16
    }
}

/// The access to a format: direct entries, and halves that sort by base.
pub(super) trait Entries {
    /// A direct entry.
    type Direct: Copy + Default;

    /// All halves.
    type Halves<'a>: Sorted
    where
        Self: 'a;

    /// Returns the direct entry of this index.
    fn direct(&self, index: usize) -> Self::Direct;

    /// Whether there is a writer, who publishes what direct entries lead to by storing them: all else is read after them.
    const LIVE: bool;

    /// Returns whether the entry holds a next hop, and if so its word.
    fn in_place(&self, direct: Self::Direct) -> (bool, u32);

    /// Returns the chunk of an entry that holds no next hop.
    fn chunk(&self, direct: Self::Direct) -> Chunk;

    /// Returns the word to compare with the halves of the chunk: the greatest half of a range that starts at or before
    /// these trailing bits of the key.
    fn probe(&self, direct: Self::Direct, low: u32, dropped: u8) -> u16;

    /// Returns the halves.
    fn halves(&self) -> Self::Halves<'_>;

    /// Returns the word of the next hop of the range found at this half.
    fn answer(&self, chunk: Chunk, found: usize) -> u32;
}

impl Split {
    /// Returns whether a direct entry holds a code of a next hop.
    #[inline(always)]
    pub(super) fn is_in_place(self, direct: u32) -> bool {
        direct >> self.position_bits == 0
    }

    /// Returns the chunk of an entry that holds none.
    #[inline(always)]
    pub(super) fn chunk(self, direct: u32) -> Chunk {
        let size = (direct & !SHORT) >> self.position_bits;
        Chunk {
            first: (self.position(direct) as usize) << (self.shift + 1),
            entries: self.entries(size),
            stride: u32::from(direct & SHORT == 0),
        }
    }

    /// Returns the position of the chunk of an entry.
    #[inline(always)]
    pub(super) fn position(self, direct: u32) -> u32 {
        direct & ((1 << self.position_bits) - 1)
    }
}

/// Returns the word to compare with the halves of a chunk in the paper's format.
#[inline(always)]
pub(super) fn probe(direct: u32, low: u32, dropped: u8) -> u16 {
    // Any code counts as "at" the base.
    let short = low >> dropped << SHORT_CODE_BITS | 0xff;
    (if direct & SHORT == 0 { low } else { short }) as u16
}

/// Returns the bits of a half that are its code, where it has one.
#[inline(always)]
pub(super) fn code_mask(chunk: Chunk) -> u16 {
    if chunk.stride == 0 { 0xff } else { 0xffff }
}

/// Returns the base and the code of an entry of a chunk in the paper's format.
pub(super) fn base_and_code(halves: impl Sorted, chunk: Chunk, dropped: u8, at: usize) -> (u32, u32) {
    let half = |half: usize| u32::from(halves.at(half));
    let first = chunk.first + (at << chunk.stride);
    match chunk.stride {
        0 => (half(first) >> SHORT_CODE_BITS << dropped, half(first) & 0xff),
        _ => (half(first), half(first + 1)),
    }
}

impl Entries for Compact {
    type Direct = u32;
    type Halves<'a> = &'a [u16];
    const LIVE: bool = false;

    #[inline]
    fn direct(&self, index: usize) -> u32 {
        self.direct[index]
    }

    #[inline]
    fn in_place(&self, direct: u32) -> (bool, u32) {
        let here = self.split.is_in_place(direct);
        // A position is not a code. Reading code 0 instead needs no branch.
        let code = if here { direct as usize } else { 0 };
        (here, self.next_hops[code])
    }

    #[inline]
    fn chunk(&self, direct: u32) -> Chunk {
        self.split.chunk(direct)
    }

    #[inline]
    fn probe(&self, direct: u32, low: u32, dropped: u8) -> u16 {
        probe(direct, low, dropped)
    }

    #[inline]
    fn halves(&self) -> &[u16] {
        &self.ranges
    }

    #[inline]
    fn answer(&self, chunk: Chunk, found: usize) -> u32 {
        self.next_hops[usize::from(self.ranges[found + chunk.stride as usize] & code_mask(chunk))]
    }
}

impl Entries for Wide {
    type Direct = [u32; 2];
    type Halves<'a> = &'a [u16];
    const LIVE: bool = false;

    #[inline]
    fn direct(&self, index: usize) -> [u32; 2] {
        self.direct[index]
    }

    #[inline]
    fn in_place(&self, direct: [u32; 2]) -> (bool, u32) {
        (direct[1] == 0, direct[0])
    }

    #[inline]
    fn chunk(&self, [first, further]: [u32; 2]) -> Chunk {
        wide_chunk(first, further)
    }

    #[inline]
    fn probe(&self, _: [u32; 2], low: u32, _: u8) -> u16 {
        low as u16
    }

    #[inline]
    fn halves(&self) -> &[u16] {
        &self.bases
    }

    #[inline]
    fn answer(&self, _: Chunk, found: usize) -> u32 {
        self.next_hops[found]
    }
}

/// Returns the chunk of the two words of a direct entry in the wide format.
#[inline(always)]
pub(super) fn wide_chunk(first: u32, further: u32) -> Chunk {
    Chunk { first: first as usize, entries: further as usize + 1, stride: 0 }
}
