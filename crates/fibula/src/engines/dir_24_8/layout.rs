//! The data that lookups read.

use core::marker::PhantomData;
use core::sync::atomic::AtomicU32;

use crate::memory::{Buffer, Cell, Shared};
use crate::net::Key;

/// The two tables and the dictionary.
#[derive(Debug, Clone)]
pub(crate) struct Dir248<K> {
    /// A code, or [`SEGMENT`] and the number of a segment, for each value of the leading bits; then [`PAD`] entries.
    pub(super) first: Buffer<u16>,
    /// The codes of one segment after the other; then [`PAD`] entries.
    pub(super) segments: Buffer<u16>,
    /// The next hop of each code, 0 for no route; `None` if codes are the ids of the next hops.
    pub(super) next_hops: Option<Vec<u32>>,
    pub(super) keys: PhantomData<fn(K)>,
}

/// The same arrays in words that one writer changes: two entries a word, the first one in the lower half.
#[derive(Debug)]
pub(super) struct Live<K> {
    pub(super) first: Shared<u32>,
    /// Segments in any order, with room for [`SEGMENTS_MAX`].
    pub(super) segments: Shared<u32>,
    /// The next hop of each code, with room for all codes; `None` if codes are the ids of the next hops.
    pub(super) next_hops: Option<Shared<u32>>,
    /// The number of segments up to the last one, and the number of codes.
    pub(super) used: [AtomicU32; 2],
    pub(super) keys: PhantomData<fn(K)>,
}

/// The bit that is set in the number of a segment and clear in a code.
pub(super) const SEGMENT: u16 = 1 << 15;

/// Entries of padding at the end of each table: a gather of an entry also reads the 16 bits that follow it.
pub(super) const PAD: usize = 1;

/// Most segments that 15 bits can number.
pub(super) const SEGMENTS_MAX: u64 = 1 << 15;

/// Most next hops that 15 bits can number in addition to "no route".
pub(super) const NEXT_HOPS_MAX: u64 = (1 << 15) - 1;

/// Entries of a word of a table that changes.
pub(super) const HALVES: usize = 2;

/// Most entries of a segment.
pub(super) const SPAN_MAX: usize = 256;

impl<K: Key> Dir248<K> {
    /// Bits of the key that select an entry of a segment: 8 of 32.
    pub(super) const REST: u8 = if K::BITS < 4 { 1 } else { K::BITS / 4 };
    /// Bits of the key that select an entry of the first table: 24 of 32.
    pub(super) const LEADING: u8 = K::BITS - Self::REST;
    /// Entries of the first table.
    pub(super) const ENTRIES: usize = 1 << Self::LEADING;
    /// Entries of a segment.
    pub(super) const SPAN: usize = 1 << Self::REST;
    /// How a key is cut, as the chapter names it.
    pub(super) const NUMBERS: [(&'static str, u32); 2] =
        [("direct-bits", Self::LEADING as u32), ("rest-bits", Self::REST as u32)];
    /// The largest id that entries hold directly: any of 15 bits. In the tests' small spaces it is so small that tables of
    /// both forms occur.
    pub(super) const ID_MAX: u32 = if K::BITS == 32 { NEXT_HOPS_MAX as u32 } else { 2 };
}

const _: () = assert!(Dir248::<u32>::LEADING == 24 && Dir248::<u32>::REST == 8);
const _: () = assert!(Dir248::<u32>::SPAN == SPAN_MAX && SPAN_MAX.is_multiple_of(HALVES));

/// Returns an entry of the word that has it.
#[inline(always)]
pub(super) fn half_of(word: u32, at: usize) -> u16 {
    (word >> (16 * (at % HALVES))) as u16
}

/// Returns an entry of a table that changes.
#[inline(always)]
pub(super) fn half(words: &[AtomicU32], at: usize) -> u16 {
    half_of(words[at / HALVES].read(), at)
}

/// Returns a word of two entries.
pub(super) fn word_of(low: u16, high: u16) -> u32 {
    u32::from(high) << 16 | u32::from(low)
}
