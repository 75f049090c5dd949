//! The lookup of deferred lanes, in full vectors and in stages.

use crate::fib::parts::bitmap::{MAP_BITS, MAP_MASK};
use crate::simd::{Cell32, LANES, Words, kernel};

use super::Overflow;
use super::record::{OverflowEntry, SlotRecord, width_mask};

/// [`width_mask`] as a register holds it.
pub(crate) const WIDTH_MASKS: [u32; LANES] =
    [width_mask(0), width_mask(1), width_mask(2), 0, width_mask(0), width_mask(1), width_mask(2), 0];

kernel! {
    /// Looks up keys in deeper slots; `words` holds the places of their maps at first, and the next hops afterwards.
    pub(super) fn answer<C: Cell32>(below: Overflow<'_, C>, keys: &[[u32; LANES]], words: &mut [[u32; LANES]])
    vector op {
        let windows = below.windows;
        let area = Words::new(below.area);

        // The place of the record, by the rank of the slot in the map.
        let slot_from = op::count(windows.direct_bits);
        let slot_at = op::count(32 - windows.slot_bits);
        for (keys, words) in keys.iter().zip(&mut *words) {
            let slot = op::shr_by(op::shl_by(op::load(keys), slot_from), slot_at);
            let place = op::shr::<12>(op::mul16(slot, op::splat(171)));
            let bit = op::sub(slot, op::mul16(place, op::splat(MAP_BITS)));
            let map = op::gather_cells(area, op::add(op::load(words), place));
            let up_to = op::shrv(op::splat(MAP_MASK), op::sub(op::splat(MAP_BITS - 1), bit));
            let rank = op::add(op::shr::<24>(map), op::popcount(op::and(map, up_to)));
            op::store(words, op::sub(op::load(words), op::shl::<1>(rank)));
        }

        let rest_from = op::count(windows.direct_bits + windows.slot_bits);
        let rest_at = op::count(32 - windows.rest_bits);
        let rest_head_bytes = core::array::from_fn(|shift| match shift as u32 {
            OverflowEntry::SPARSE => 4,
            shift => 4 * crate::fib::parts::bitmap::words((windows.rests() >> shift) as u32),
        });
        let rest_head_bytes = op::load(&rest_head_bytes);
        let width_masks = op::load(&WIDTH_MASKS);
        for (keys, words) in keys.iter().zip(words) {
            let at = op::load(words);
            let (most, other) = (op::gather_cells(area, at), op::gather_cells(area, op::add(at, op::splat(1))));
            let rest = op::shr_by(op::shl_by(op::load(keys), rest_from), rest_at);
            let byte = op::splat(0xff);
            let from = op::up_to(op::and(most, byte), rest);
            let inside = op::both(from, op::up_to(rest, op::and(other, byte)));
            let next_hop = op::shr::<{ SlotRecord::NEXT_HOP_AT as i32 }>(op::select(inside, other, most));
            let wide = op::sign(most);
            if op::bits(wide) == 0 {
                op::store(words, next_hop);
                continue;
            }
            // Rare: the place of the value by the rank in a map or among the changes of a sparse chunk, and the value.
            let shift = op::and(op::shr::<{ OverflowEntry::SHIFT_AT as i32 }>(most), op::splat(7));
            let sparse = op::eq(shift, op::splat(OverflowEntry::SPARSE));
            let slot = op::shrv(rest, shift);
            let place = op::shr::<12>(op::mul16(slot, op::splat(171)));
            let bit = op::sub(slot, op::mul16(place, op::splat(MAP_BITS)));
            let offset = op::and(most, op::splat(OverflowEntry::OFFSET));
            // A sparse chunk has one word only, at place 0: its slot is at most 1 after the shift.
            let map = op::gather_cells(area, op::keep(wide, op::add(offset, place)));
            let up_to = op::shrv(op::splat(MAP_MASK), op::sub(op::splat(MAP_BITS - 1), bit));
            let rank = op::add(op::shr::<24>(map), op::popcount(op::and(map, up_to)));
            let rank = op::select(sparse, op::bytes_below(map, rest), rank);
            let width = op::and(op::shr::<{ OverflowEntry::WIDTH_AT as i32 }>(most), op::splat(3));
            let base = op::add(op::shl::<2>(offset), op::pick(rest_head_bytes, shift));
            // A value is within one word. Lanes without a wide chunk read the first one, so that they miss no cache.
            let byte = op::keep(wide, op::add(base, op::shlv(rank, width)));
            let word = op::gather_cells(area, op::shr::<2>(byte));
            let value = op::shrv(word, op::shl::<3>(op::and(byte, op::splat(3))));
            let value = op::and(value, op::pick(width_masks, width));
            op::store(words, op::select(wide, value, next_hop));
        }
    }
}
