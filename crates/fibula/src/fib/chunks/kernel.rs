//! The vector kernel: a block of keys in stages, eight lanes at a time.

use crate::fib::parts::bitmap::{MAP_BITS, MAP_MASK};
use crate::fib::parts::lanes::BLOCK;
use crate::fib::parts::lanes::Deferred;
use crate::fib::parts::overflow::{Entry, WIDTH_MASKS};
use crate::simd::{Bytes, LANES, Words, kernel};

use super::layout::head_words;
use super::scalar::{View, block as scalar};

kernel! {
    /// What the direct table and the chunks have for a block of keys; lanes whose slots are deeper are noted.
    pub(super) fn block(view: View<'_>, keys: &[[u32; LANES]], found: &mut [[u32; LANES]], noted: &mut Deferred)
    scalar scalar;
    vector op {
        let windows = view.windows;
        let (direct, words, bytes) = (Words::new(view.direct), Words::new(view.area), Bytes::new(view.area));
        let three = op::splat(3);
        let width_masks = op::load(&WIDTH_MASKS);
        let offset_bits = op::splat(Entry::OFFSET);

        // First stage: all direct entries.
        let direct_at = op::count(32 - windows.direct_bits);
        for (keys, found) in keys.iter().zip(&mut *found) {
            op::store(found, op::gather(direct, op::shr_by(op::load(keys), direct_at)));
        }

        // Stage between: where the values stand. Lanes without a chunk load nothing.
        let head_bytes = op::load(&head_words(windows).map(|words| 4 * words));
        let slot_from = op::count(windows.direct_bits);
        let slot_at = op::count(32 - windows.slot_bits);
        let mut addresses = [[0; LANES]; BLOCK];
        for ((keys, found), addresses) in keys.iter().zip(&*found).zip(&mut addresses) {
            let entry = op::load(found);
            let slot = op::shr_by(op::shl_by(op::load(keys), slot_from), slot_at);
            let shift = op::and(op::shr::<{ Entry::SHIFT_AT as i32 }>(entry), op::splat(7));
            let slot = op::shrv(slot, shift);
            let width = op::and(op::shr::<{ Entry::WIDTH_AT as i32 }>(entry), three);
            let offset = op::and(entry, offset_bits);
            let place = op::shr::<12>(op::mul16(slot, op::splat(171)));
            let bit = op::sub(slot, op::mul16(place, op::splat(MAP_BITS)));
            let map = op::gather_where(op::sign(entry), words, op::add(offset, place));
            let up_to = op::shrv(op::splat(MAP_MASK), op::sub(op::splat(MAP_BITS - 1), bit));
            let rank = op::add(op::shr::<24>(map), op::popcount(op::and(map, up_to)));
            let base = op::add(op::shl::<2>(offset), op::pick(head_bytes, shift));
            op::store(addresses, op::add(base, op::shlv(rank, width)));
        }

        // Last stage: the values.
        for (at, (found, addresses)) in found.iter_mut().zip(&addresses).enumerate() {
            let entry = op::load(found);
            let in_chunk = op::sign(entry);
            let width = op::and(op::shr::<{ Entry::WIDTH_AT as i32 }>(entry), three);
            let mask = op::pick(width_masks, width);
            let value = op::and(op::gather_bytes_where(in_chunk, bytes, op::load(addresses)), mask);
            let deeper = op::bits(op::both(in_chunk, op::eq(value, mask)));
            op::store(found, op::select(in_chunk, value, entry));
            if deeper != 0 {
                noted.vector(at, deeper);
            }
        }
    }
}
