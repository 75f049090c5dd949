//! Bit maps with counts, which give the rank of a bit by one load.
//!
//! A word of a map covers 24 bits; its upper 8 bits count the set bits of the words before it. The rank of a bit is this
//! count plus the set bits up to it.

use crate::fib::CheckError;
use crate::memory::{Buffer, Cell};
use crate::simd::Cell32;

/// Number of bits that one word of a map covers.
pub(crate) const MAP_BITS: u32 = 24;

/// Those bits, set.
pub(crate) const MAP_MASK: u32 = (1 << MAP_BITS) - 1;

/// Returns the number of words of a map of this many bits, at least one.
pub(crate) const fn words(bits: u32) -> u32 {
    if bits <= MAP_BITS { 1 } else { bits.div_ceil(MAP_BITS) }
}

/// Returns the word of a map that covers a bit, and the place of the bit in it.
#[inline]
pub(crate) fn place(bit: u32) -> (u32, u32) {
    // 171 / 4096 is 1/24 for all that 8 bits can hold, and stays within 16 bits.
    let word = (bit * 171) >> 12;
    (word, bit - word * MAP_BITS)
}

/// Returns the number of set bits of the whole map up to and including a bit.
#[inline]
pub(crate) fn rank(word: u32, bit: u32) -> u32 {
    (word >> MAP_BITS) + (word & (MAP_MASK >> (MAP_BITS - 1 - bit))).count_ones()
}

/// Appends a map.
///
/// # Panics
/// When there is no room.
pub(crate) fn append(area: &mut Buffer<u32>, bits: impl Iterator<Item = bool>) {
    let (mut word, mut count) = (0, 0);
    let mut slots = 0;
    for bit in bits {
        if slots == MAP_BITS {
            area.push(word);
            count += (word & MAP_MASK).count_ones();
            (word, slots) = (count << MAP_BITS, 0);
        }
        word |= u32::from(bit) << slots;
        slots += 1;
    }
    area.push(word);
}

/// Returns the bits of the map at word `at`.
pub(crate) fn read<C: Cell32>(area: &[C], at: usize, bits: usize) -> Result<Vec<bool>, CheckError> {
    let map = area.get(at..at.saturating_add(words(bits as u32) as usize));
    let map = map.ok_or(CheckError::new("a map is within the area", at))?;
    let mut found = Vec::with_capacity(bits);
    let mut count = 0;
    for (index, word) in map.iter().map(Cell::read).enumerate() {
        CheckError::unless(word >> MAP_BITS == count, "a word of a map counts those before it", at + index)?;
        found.extend((0..MAP_BITS).map(|bit| word >> bit & 1 == 1));
        count += (word & MAP_MASK).count_ones();
    }
    let rest = found.split_off(bits.min(found.len()));
    CheckError::unless(!rest.contains(&true), "a map has no bits after the last one", at)?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_finds_its_word() {
        for bit in 0..256 {
            assert_eq!(place(bit), (bit / 24, bit % 24));
        }
        assert_eq!(words(256), 11);
    }
}
