//! Entries of areas, records of deeper slots, and values of 8, 16 or 32 bits.

use crate::fib::CheckError;
use crate::simd::Cell32;

/// An entry: a next hop, or the place of a chunk in an area.
///
/// ```text
/// 0 nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn    next hop n, 0 for no route
/// 1 sss ww oooooooooooooooooooooooooo  chunk whose first word is o; slots are 2^s of its level's;
///                                      values of 8, 16 or 32 bits (w = 0, 1, 2); s = 7: a sparse chunk
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OverflowEntry(pub(crate) u32);

impl OverflowEntry {
    /// The bit that tells a chunk from a next hop.
    pub(crate) const CHUNK: u32 = 1 << 31;
    /// The shift that marks a sparse chunk.
    pub(crate) const SPARSE: u32 = 7;
    /// Lowest bit of the shift.
    pub(crate) const SHIFT_AT: u32 = 28;
    /// Lowest bit of the width.
    pub(crate) const WIDTH_AT: u32 = 26;
    /// The bits of the offset, which are also its greatest value.
    pub(crate) const OFFSET: u32 = (1 << Self::WIDTH_AT) - 1;

    /// Returns the entry of a chunk.
    pub(crate) fn chunk(shift: u32, width: u32, offset: u32) -> Self {
        debug_assert!(shift <= Self::SPARSE && width <= 2 && offset <= Self::OFFSET);
        Self(Self::CHUNK | shift << Self::SHIFT_AT | width << Self::WIDTH_AT | offset)
    }

    #[inline]
    pub(crate) fn is_chunk(self) -> bool {
        self.0 & Self::CHUNK != 0
    }

    #[inline]
    pub(crate) fn shift(self) -> u32 {
        self.0 >> Self::SHIFT_AT & 7
    }

    /// Returns the binary logarithm of the bytes of a value.
    #[inline]
    pub(crate) fn width(self) -> u32 {
        self.0 >> Self::WIDTH_AT & 3
    }

    #[inline]
    pub(crate) fn offset(self) -> usize {
        (self.0 & Self::OFFSET) as usize
    }
}

/// The answer of a deeper slot; the [module](super) shows the bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotRecord(pub(crate) [u32; 2]);

impl SlotRecord {
    /// Lowest bit of a next hop.
    pub(crate) const NEXT_HOP_AT: u32 = 8;
    /// The first next hop that is too large.
    pub(crate) const NEXT_HOPS: u32 = 1 << 23;

    /// Returns a record without a wide chunk, if one can hold `slots`.
    pub(crate) fn narrow(slots: &[u32]) -> Option<Self> {
        let (most, last) = (slots[0], slots.len() - 1);
        let first = slots.iter().position(|&word| word != most).unwrap_or(0);
        let other = slots[first];
        let end = first + slots[first..].iter().take_while(|&&word| word == other).count() - 1;
        let alone = first == 0 || slots[end + 1..].iter().all(|&word| word == most);
        // One next hop for all addresses is one stretch.
        let end = if first == 0 { last } else { end };
        let fits = most < Self::NEXT_HOPS && other < Self::NEXT_HOPS && alone;
        fits.then_some(Self([most, other].map(|word| word << Self::NEXT_HOP_AT)))
            .map(|Self([most, other])| Self([most | first as u32, other | end as u32]))
    }

    /// Returns the record of a wide chunk.
    pub(crate) fn wide(entry: OverflowEntry) -> Self {
        Self([entry.0, 0])
    }

    /// Returns the entry of the wide chunk, if there is one.
    #[inline]
    pub(crate) fn entry(self) -> Option<OverflowEntry> {
        OverflowEntry(self.0[0]).is_chunk().then_some(OverflowEntry(self.0[0]))
    }

    /// Returns the next hop of all addresses, if they have the same one and no wide chunk.
    pub(crate) fn uniform(self) -> Option<u32> {
        let [most, other] = self.0.map(|word| word >> Self::NEXT_HOP_AT);
        (self.entry().is_none() && most == other).then_some(most)
    }

    /// Returns the next hop of an address of the slot. The record must not have a wide chunk.
    #[inline]
    pub(crate) fn answer(self, rest: u32) -> u32 {
        let [most, other] = self.0;
        let inside = (most & 0xff) <= rest && rest <= (other & 0xff);
        (if inside { other } else { most }) >> Self::NEXT_HOP_AT
    }
}

/// Returns a value of this width with all bits set, which marks a deeper slot in a chunk.
#[inline]
pub(crate) const fn width_mask(width: u32) -> u32 {
    match width {
        0 => 0xff,
        1 => 0xffff,
        _ => u32::MAX,
    }
}

/// Number of widths that values can have.
pub(crate) const WIDTHS: usize = 3;

/// Returns whether a value of this width can be the next hop. All ones mean that a slot is deeper.
pub(crate) const fn holds(width: u32, word: u32) -> bool {
    word < width_mask(width)
}

/// Returns the width that values up to `greatest` need.
pub(crate) fn width_of(greatest: u32) -> u32 {
    (0..2).find(|&width| greatest <= width_mask(width)).unwrap_or(2)
}

/// Returns values of this width, read from word `first` of an area on.
pub(crate) fn values_at<C: Cell32>(
    area: &[C],
    first: usize,
    count: usize,
    width: u32,
) -> Result<Vec<u32>, CheckError> {
    CheckError::unless(width <= 2, "values are of 8, 16 or 32 bits", first)?;
    let words = area.get(first..first + (count << width).div_ceil(4));
    let words = words.ok_or(CheckError::new("values are within the area", first))?;
    let value = |at: usize| {
        let byte = at << width;
        words[byte / 4].read() >> (8 * (byte % 4)) & width_mask(width)
    };
    Ok((0..count).map(value).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_holds_one_stretch_that_differs() {
        let plain = [5; 16];
        for first in 0..16 {
            for end in first..16 {
                let mut slots = plain;
                slots[first..=end].fill(9);
                let record = SlotRecord::narrow(&slots).unwrap();
                assert_eq!(record.entry(), None);
                assert!((0..16).all(|rest| record.answer(rest) == slots[rest as usize]), "{first} to {end}");
            }
        }
    }

    #[test]
    fn a_record_refuses_what_it_cannot_hold() {
        let edge = SlotRecord::NEXT_HOPS;
        assert!(SlotRecord::narrow(&[1, 2, 1, 2]).is_none());
        assert!(SlotRecord::narrow(&[1, 2, 3]).is_none());
        for slots in [[1, edge], [edge, 1], [edge, edge]] {
            assert!(SlotRecord::narrow(&slots).is_none());
        }
        assert!(SlotRecord::narrow(&[edge - 1, 1]).is_some());
    }
}
