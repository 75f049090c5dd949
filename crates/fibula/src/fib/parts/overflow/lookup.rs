//! Lookups below slots: the lanes that a kernel has deferred, or one key.

use crate::fib::parts::bitmap;
use crate::fib::parts::lanes::{BLOCK, Deferred};
use crate::simd::{LANES, Present, byte_of};

use super::record::{Entry, Record, width_mask};
use super::{Windows, kernel};

/// An area of deeper slots, as lookups see it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Overflow<'a> {
    pub(crate) windows: Windows,
    pub(crate) area: &'a [u32],
}

impl Overflow<'_> {
    /// Answers the deferred lanes of a block. `map_of` gives the place of the map for a key.
    #[inline]
    pub(crate) fn answer(
        self,
        isa: Present,
        deferred: &mut Deferred,
        keys: &[[u32; LANES]],
        found: &mut [[u32; LANES]],
        map_of: impl Fn(u32) -> u32,
    ) {
        if deferred.lanes().is_empty() {
            return;
        }
        let (keys, found) = (keys.as_flattened(), found.as_flattened_mut());
        let lanes = deferred.lanes();
        // Few lanes do not fill a vector, and wait for one another in it.
        if isa == Present::SCALAR || lanes.len() < LANES {
            for &lane in lanes {
                let key = keys[usize::from(lane)];
                found[usize::from(lane)] = self.find(map_of(key), key);
            }
            return;
        }
        // Those that fill the last vector up do what the first lane does.
        let lanes = deferred.filled();
        let vectors = lanes.len() / LANES;
        let mut asked = [[0; LANES]; BLOCK];
        let mut maps = [[0; LANES]; BLOCK];
        for ((&lane, asked), map) in lanes.iter().zip(asked.as_flattened_mut()).zip(maps.as_flattened_mut()) {
            *asked = keys[usize::from(lane)];
            *map = map_of(*asked);
        }
        kernel::answer(isa, self, &asked[..vectors], &mut maps[..vectors]);
        for (&lane, &word) in lanes.iter().zip(maps.as_flattened()) {
            found[usize::from(lane)] = word;
        }
    }

    /// Next hop of a key in a deeper slot, by the place of its chunk's map.
    #[inline]
    pub(crate) fn find(self, map: u32, key: u32) -> u32 {
        let map = map as usize;
        let (word, bit) = bitmap::place(self.windows.slot(key));
        let rank = bitmap::rank(self.area[map + word as usize], bit) as usize;
        let at = map - 2 * rank;
        let record = Record([self.area[at], self.area[at + 1]]);
        let rest = self.windows.rest(key);
        record.entry().map_or_else(|| record.answer(rest), |entry| self.wide(entry, rest))
    }

    #[cold]
    fn wide(self, entry: Entry, rest: u32) -> u32 {
        let at = if entry.shift() == Entry::SPARSE {
            let rank = bytes_below(self.area[entry.offset()], rest);
            4 * (entry.offset() + 1) + ((rank as usize) << entry.width())
        } else {
            ranked(self.area, entry, rest >> entry.shift(), self.windows.rests() >> entry.shift())
        };
        value(self.area, at, entry.width())
    }
}

/// Byte at which the value of one of so many slots of a chunk stands, by the rank of the slot in its map.
#[inline(always)]
pub(crate) fn ranked(area: &[u32], entry: Entry, slot: u32, slots: usize) -> usize {
    let (word, bit) = bitmap::place(slot);
    let rank = bitmap::rank(area[entry.offset() + word as usize], bit);
    let values = entry.offset() + bitmap::words(slots as u32) as usize;
    4 * values + ((rank as usize) << entry.width())
}

/// The value at a byte of an area.
#[inline(always)]
pub(crate) fn value(area: &[u32], at: usize, width: u32) -> u32 {
    // Most chunks hold bytes: a branch that is predicted, where shifts would be counted for all.
    if width == 0 {
        return u32::from(byte_of(area, at));
    }
    // A value lies within one word: chunks begin at words, and widths divide them.
    (area[at / 4] >> (8 * (at % 4))) & width_mask(width)
}

/// How many of the four bytes are below the limit.
#[inline]
fn bytes_below(bytes: u32, limit: u32) -> u32 {
    bytes.to_ne_bytes().into_iter().map(|byte| u32::from(u32::from(byte) < limit)).sum()
}
