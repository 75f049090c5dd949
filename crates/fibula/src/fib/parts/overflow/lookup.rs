//! Lookups in the overflow: of the lanes that a kernel has deferred, or of one key.

use core::sync::atomic::{Ordering, fence};

use crate::fib::parts::bitmap;
use crate::fib::parts::lanes::{BLOCK, Deferred};
use crate::simd::{Cell32, LANES, Present};

use super::record::{OverflowEntry, SlotRecord, width_mask};
use super::{Overflow, kernel};

impl<C: Cell32> Overflow<'_, C> {
    /// Answers the deferred lanes of a block. `map_of` returns the place of the map of a lane, given its key.
    #[inline]
    pub(crate) fn answer(
        self,
        isa: Present,
        deferred: &mut Deferred,
        keys: &[[u32; LANES]],
        found: &mut [[u32; LANES]],
        map_of: impl Fn(usize, u32) -> u32,
    ) {
        if deferred.lanes().is_empty() {
            return;
        }
        let (keys, found) = (keys.as_flattened(), found.as_flattened_mut());
        let lanes = deferred.lanes();
        // A few lanes would not fill a vector, and would wait for one another in it.
        if isa == Present::SCALAR || lanes.len() < LANES {
            for lane in lanes.iter().copied().map(usize::from) {
                found[lane] = self.find(map_of(lane, keys[lane]), keys[lane]);
            }
            return;
        }
        // Lanes that pad the last vector repeat the first lane.
        let lanes = deferred.filled();
        let vectors = lanes.len() / LANES;
        let mut asked = [[0; LANES]; BLOCK];
        let mut maps = [[0; LANES]; BLOCK];
        for ((&lane, asked), map) in lanes.iter().zip(asked.as_flattened_mut()).zip(maps.as_flattened_mut()) {
            *asked = keys[usize::from(lane)];
            *map = map_of(usize::from(lane), *asked);
        }
        if C::CHANGES {
            fence(Ordering::Acquire);
        }
        kernel::answer(isa, self, &asked[..vectors], &mut maps[..vectors]);
        for (&lane, &word) in lanes.iter().zip(maps.as_flattened()) {
            found[usize::from(lane)] = word;
        }
    }

    /// Returns the next hop of a key in a deeper slot, whose chunk has its map at `map`.
    #[inline]
    pub(crate) fn find(self, map: u32, key: u32) -> u32 {
        if C::CHANGES {
            // The place of a map publishes what it leads to.
            fence(Ordering::Acquire);
        }
        let map = map as usize;
        let (word, bit) = bitmap::place(self.windows.slot(key));
        let rank = bitmap::rank(self.area[map + word as usize].read(), bit) as usize;
        let at = map - 2 * rank;
        let record = SlotRecord([self.area[at].read(), self.area[at + 1].read()]);
        let rest = self.windows.rest(key);
        record.entry().map_or_else(|| record.answer(rest), |entry| self.wide(entry, rest))
    }

    #[cold]
    fn wide(self, entry: OverflowEntry, rest: u32) -> u32 {
        let at = if entry.shift() == OverflowEntry::SPARSE {
            let rank = bytes_below(self.area[entry.offset()].read(), rest);
            4 * (entry.offset() + 1) + ((rank as usize) << entry.width())
        } else {
            ranked(self.area, entry, rest >> entry.shift(), self.windows.rests() >> entry.shift())
        };
        value(self.area, at, entry.width())
    }
}

/// Returns the byte offset of the value of a slot, by its rank in the map of the chunk.
#[inline(always)]
fn ranked<C: Cell32>(area: &[C], entry: OverflowEntry, slot: u32, slots: usize) -> usize {
    let (word, bit) = bitmap::place(slot);
    let rank = bitmap::rank(area[entry.offset() + word as usize].read(), bit);
    let values = entry.offset() + bitmap::words(slots as u32) as usize;
    4 * values + ((rank as usize) << entry.width())
}

/// Returns the value at a byte offset of an area.
#[inline(always)]
pub(crate) fn value<C: Cell32>(area: &[C], at: usize, width: u32) -> u32 {
    // Most chunks hold bytes: a branch that is predicted costs less than shifts for all.
    if width == 0 {
        return C::byte_of(area, at);
    }
    // A value is within one word: chunks begin at words, and widths divide them.
    (area[at / 4].read() >> (8 * (at % 4))) & width_mask(width)
}

/// Counts the bytes that are below the limit.
#[inline]
fn bytes_below(bytes: u32, limit: u32) -> u32 {
    bytes.to_ne_bytes().into_iter().map(|byte| u32::from(u32::from(byte) < limit)).sum()
}
