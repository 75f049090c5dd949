//! Records: the next hops of the addresses in one deeper slot.

use super::layout::{Windows, deeper, value_words, width_of};

/// A record, which lies before the bitmaps of its unit.
///
/// ```text
/// lower half                                  upper half
/// 0 vvvvvvvvvvvvvvvvvvvvvvv ffffffff   wwwwwwwwwwwwwwwwwwwwwwww llllllll   next hop w from address f to l, v for others
/// 1 ddddddddddddddddddddddddddddddd    c...                      s  ww      a list, d words before the first bitmap
///
/// list:  eight last addresses before a change, ascending, then all ones (s = 1), or a bitmap of changes (s = 0);
///        then a value of 2^w bytes for each range
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record(pub(super) u64);

/// The list that a record with several changes leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct List {
    /// The number of words from the first word of the list to the first bitmap of the unit.
    pub(super) distance: usize,
    /// Whether the changes are listed rather than mapped.
    pub(super) sparse: bool,
    /// Binary logarithm of the bytes of a value.
    pub(super) width: u32,
}

impl Record {
    /// Lowest bit of a next hop in its half.
    pub(super) const NEXT_HOP_AT: u32 = 8;
    /// The first next hop that is too large for a record.
    const NEXT_HOPS: u32 = 1 << 23;
    /// The bit of the lower half that is set for a list.
    pub(super) const LIST: u32 = 1 << 31;
    /// Most changes that can be listed.
    pub(super) const SPARSE_MAX: usize = 8;

    /// Returns a record without a list, if one can hold these next hops.
    pub(super) fn narrow(rests: &[u32]) -> Option<Self> {
        let (most, last) = (rests[0], rests.len() - 1);
        // A stretch cannot begin at the first address, so 0 means that there is none.
        let first = rests.iter().position(|&word| word != most).unwrap_or(0);
        let other = rests[first];
        let end = first + rests[first..].iter().take_while(|&&word| word == other).count() - 1;
        let alone = first == 0 || rests[end + 1..].iter().all(|&word| word == most);
        // If all addresses have one next hop, they are one stretch.
        let end = if first == 0 { last } else { end };
        let fits = most < Self::NEXT_HOPS && other < Self::NEXT_HOPS && alone;
        let half = |word: u32, at: usize| u64::from(word << Self::NEXT_HOP_AT | at as u32);
        fits.then(|| Self(half(most, first) | half(other, end) << 32))
    }

    /// Returns the record of a list.
    pub(super) fn list(list: List) -> Self {
        let upper = u64::from(list.sparse) << 2 | u64::from(list.width);
        Self(upper << 32 | u64::from(Self::LIST | list.distance as u32))
    }

    /// Returns the list, if there is one.
    #[inline]
    pub(super) fn as_list(self) -> Option<List> {
        let (lower, upper) = (self.0 as u32, (self.0 >> 32) as u32);
        (lower & Self::LIST != 0).then_some(List {
            distance: (lower & !Self::LIST) as usize,
            sparse: upper & 4 != 0,
            width: upper & 3,
        })
    }

    /// Returns the next hop of an address of the slot. The record must not lead to a list.
    #[inline]
    pub(super) fn answer(self, rest: u32) -> u32 {
        let [most, other] = [self.0 as u32, (self.0 >> 32) as u32];
        let inside = (most & 0xff) <= rest && rest <= (other & 0xff);
        (if inside { other } else { most }) >> Self::NEXT_HOP_AT
    }
}

/// Passes the words of the list of these next hops to `push`. Returns its form, with a distance of 0.
pub(super) fn push_list(rests: &[u32], mut push: impl FnMut(u64)) -> List {
    let changed = |at: &usize| *at > 0 && rests[*at] != rests[*at - 1];
    let changes = || (0..rests.len()).filter(changed);
    let sparse = changes().count() <= Record::SPARSE_MAX;
    if sparse {
        // Unused bytes are all ones, so that no address comes after them.
        push(changes().rev().fold(u64::MAX, |word, at| word << 8 | (at - 1) as u64));
    } else {
        for first in (0..rests.len()).step_by(64) {
            let inside = (first..rests.len().min(first + 64)).filter(changed);
            push(inside.fold(0, |word, at| word | 1 << (at - first)));
        }
    }
    // One less than the greatest value is enough, because all ones do not mean a deeper slot in lists.
    let width = width_of(rests.iter().max().copied().unwrap_or(0).saturating_sub(1));
    push_values(width, core::iter::once(0).chain(changes()).map(|at| rests[at]), push);
    List { distance: 0, sparse, width }
}

/// Returns the number of words of a list. `word` returns each word by its number.
pub(super) fn list_words(windows: Windows, list: List, word: impl Fn(usize) -> u64) -> usize {
    let last = windows.rests() - 1;
    let (head, changes) = if list.sparse {
        let before = word(0).to_le_bytes();
        // Nothing changes after the last address, so a byte of that number is unused.
        (1, before.iter().filter(|&&before| usize::from(before) < last).count())
    } else {
        let maps = windows.map_words();
        (maps, (0..maps).map(|at| word(at).count_ones() as usize).sum())
    };
    head + value_words(changes + 1, list.width)
}

/// Passes values of 2^`width` bytes to `push`, packed into words.
pub(super) fn push_values(width: u32, values: impl Iterator<Item = u32>, mut push: impl FnMut(u64)) {
    let (bits, mut word, mut filled) = (8 << width, 0, 0);
    for value in values {
        word |= u64::from(value & deeper(width)) << filled;
        filled += bits;
        if filled == u64::BITS {
            push(word);
            (word, filled) = (0, 0);
        }
    }
    if filled > 0 {
        push(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_holds_one_stretch_that_differs() {
        for first in 0..16 {
            for end in first..16 {
                let mut rests = [5; 16];
                rests[first..=end].fill(9);
                let record = Record::narrow(&rests).unwrap();
                assert_eq!(record.as_list(), None);
                assert!((0..16).all(|rest| record.answer(rest) == rests[rest as usize]), "{first} to {end}");
            }
        }
    }

    #[test]
    fn a_record_refuses_what_it_cannot_hold() {
        let edge = Record::NEXT_HOPS;
        assert!(Record::narrow(&[1, 2, 1, 2]).is_none());
        assert!(Record::narrow(&[1, 2, 3]).is_none());
        for rests in [[1, edge], [edge, 1], [edge, edge]] {
            assert!(Record::narrow(&rests).is_none());
        }
        assert!(Record::narrow(&[edge - 1, 1]).is_some());
    }

    #[test]
    fn a_list_is_found_again() {
        for (sparse, width, distance) in [(true, 0, 5), (false, 2, (1 << 31) - 1)] {
            let list = List { distance, sparse, width };
            assert_eq!(Record::list(list).as_list(), Some(list));
        }
    }
}
