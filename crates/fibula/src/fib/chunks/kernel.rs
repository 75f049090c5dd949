//! The vector kernels: a block of keys in stages, eight lanes at a time.

use crate::fib::parts::lanes::BLOCK;
use crate::simd::{LANES, Words, kernel};

use super::layout::{Entry, MAP_BITS, width_mask};
use super::lookup::{View, block as scalar};

kernel! {
    /// Next hops of a block of keys. `DENSE` is the form of the table's chunks.
    pub(super) fn block[const DENSE: bool](
        view: View<'_>,
        keys: &[[u32; LANES]],
        found: &mut [[u32; LANES]],
    )
    scalar scalar::<DENSE>;
    vector op {
        let geometry = view.geometry;
        let (direct, words, bytes) = (Words::new(view.direct), Words::new(view.area), view.bytes);
        let three = op::splat(3);
        let width_masks = op::load(&WIDTH_MASKS);
        let offset_bits = op::splat(Entry::OFFSET);

        // First stage: all direct entries.
        let direct_at = op::count(32 - geometry.direct_bits);
        for (keys, found) in keys.iter().zip(&mut *found) {
            op::store(found, op::gather(direct, op::shr_by(op::load(keys), direct_at)));
        }

        let head_bytes = op::load(&geometry.head_words().map(|words| 4 * words));
        let slot_from = op::count(geometry.direct_bits);
        let slot_at = op::count(32 - geometry.chunk_bits);
        let mut deep = [0u8; BLOCK * LANES + LANES];
        let mut deep_count = 0;

        // Last stage: the values. Lanes whose value says that they are deeper are noted.
        let mut answer = |at: usize, found: &mut [u32; LANES], entry: op::V, width: op::V, address: op::V| {
            let in_chunk = op::sign(entry);
            let mask = op::pick(width_masks, width);
            let value = op::and(op::gather_bytes_where(in_chunk, bytes, address), mask);
            let deeper = op::bits(op::both(in_chunk, op::eq(value, mask)));
            op::store(found, op::select(in_chunk, value, entry));
            if deeper != 0 {
                let lanes: &mut [u8; LANES] = deep[deep_count..].first_chunk_mut().expect("room for a vector");
                *lanes = lanes_of(deeper, at);
                deep_count += deeper.count_ones() as usize;
            }
        };
        if DENSE {
            for (at, (keys, found)) in keys.iter().zip(&mut *found).enumerate() {
                let entry = op::load(found);
                let slot = op::shr_by(op::shl_by(op::load(keys), slot_from), slot_at);
                let shift = op::and(op::shr::<{ Entry::SHIFT_AT as i32 }>(entry), op::splat(7));
                let width = op::and(op::shr::<{ Entry::WIDTH_AT as i32 }>(entry), three);
                let base = op::shl::<2>(op::and(entry, offset_bits));
                answer(at, found, entry, width, op::add(base, op::shlv(op::shrv(slot, shift), width)));
            }
        } else {
            // Stage between: where the values stand. Lanes without a chunk load nothing.
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
                let up_to = op::shrv(op::splat(0x00ff_ffff), op::sub(op::splat(MAP_BITS - 1), bit));
                let rank = op::add(op::shr::<24>(map), op::popcount(op::and(map, up_to)));
                let base = op::add(op::shl::<2>(offset), op::pick(head_bytes, shift));
                op::store(addresses, op::add(base, op::shlv(rank, width)));
            }
            for (at, (found, addresses)) in found.iter_mut().zip(&addresses).enumerate() {
                let entry = op::load(found);
                let width = op::and(op::shr::<{ Entry::WIDTH_AT as i32 }>(entry), three);
                answer(at, found, entry, width, op::load(addresses));
            }
        }
        if deep_count == 0 {
            return;
        }

        // What lies below the chunks, in stages of its own over the lanes that need it; those that fill the last
        // vector up do what the first lane does.
        let (keys, found) = (keys.as_flattened(), found.as_flattened_mut());
        let (below, below_bytes) = (Words::new(view.deep), view.deep_bytes);
        let vectors = deep_count.div_ceil(LANES);
        let filler = deep[0];
        deep[deep_count..vectors * LANES].fill(filler);
        let (lanes, _) = deep[..vectors * LANES].as_chunks::<LANES>();
        let mut deep_keys = [[0; LANES]; BLOCK];
        let mut places = [[0; LANES]; BLOCK];

        // The place of the map.
        for ((lanes, deep_keys), places) in lanes.iter().zip(&mut deep_keys).zip(&mut places) {
            *deep_keys = lanes.map(|lane| keys[usize::from(lane)]);
            let chunk = op::gather(direct, op::shr_by(op::load(deep_keys), direct_at));
            op::store(places, op::gather(words, op::sub(op::and(chunk, offset_bits), op::splat(1))));
        }
        // The place of the deeper chunk's entry, by the rank of the slot in the map.
        for (deep_keys, places) in deep_keys[..vectors].iter().zip(&mut places) {
            let slot = op::shr_by(op::shl_by(op::load(deep_keys), slot_from), slot_at);
            let place = op::shr::<12>(op::mul16(slot, op::splat(171)));
            let bit = op::sub(slot, op::mul16(place, op::splat(MAP_BITS)));
            let map = op::gather(below, op::add(op::load(places), place));
            let up_to = op::shrv(op::splat(0x00ff_ffff), op::sub(op::splat(MAP_BITS - 1), bit));
            let rank = op::add(op::shr::<24>(map), op::popcount(op::and(map, up_to)));
            op::store(places, op::sub(op::load(places), rank));
        }
        // The entry.
        for places in &mut places[..vectors] {
            op::store(places, op::gather(below, op::load(places)));
        }
        // The place of the value: `deep_keys` takes it, `places` keeps the entry.
        let rest_head_bytes = op::load(&geometry.rest_head_words().map(|words| 4 * words));
        let rest_from = op::count(geometry.direct_bits + geometry.chunk_bits);
        let rest_at = op::count(32 - geometry.rest_bits);
        for (deep_keys, places) in deep_keys[..vectors].iter_mut().zip(&places) {
            let entry = op::load(places);
            let rest = op::shr_by(op::shl_by(op::load(deep_keys), rest_from), rest_at);
            let shift = op::and(op::shr::<{ Entry::SHIFT_AT as i32 }>(entry), op::splat(7));
            let sparse = op::eq(shift, op::splat(Entry::SPARSE));
            let slot = op::shrv(rest, shift);
            let place = op::shr::<12>(op::mul16(slot, op::splat(171)));
            let bit = op::sub(slot, op::mul16(place, op::splat(MAP_BITS)));
            let offset = op::and(entry, offset_bits);
            // A sparse chunk's only word is the one that place 0 names: its slot is at most 1 after the shift.
            let map = op::gather_where(op::sign(entry), below, op::add(offset, place));
            let up_to = op::shrv(op::splat(0x00ff_ffff), op::sub(op::splat(MAP_BITS - 1), bit));
            let rank = op::add(op::shr::<24>(map), op::popcount(op::and(map, up_to)));
            let rank = op::select(sparse, op::bytes_below(map, rest), rank);
            let width = op::and(op::shr::<{ Entry::WIDTH_AT as i32 }>(entry), three);
            let base = op::add(op::shl::<2>(offset), op::pick(rest_head_bytes, shift));
            op::store(deep_keys, op::add(base, op::shlv(rank, width)));
        }
        // The value.
        for ((lanes, addresses), entries) in lanes.iter().zip(&deep_keys).zip(&places) {
            let entry = op::load(entries);
            let width = op::and(op::shr::<{ Entry::WIDTH_AT as i32 }>(entry), three);
            let value = op::gather_bytes_where(op::sign(entry), below_bytes, op::load(addresses));
            let value = op::and(value, op::pick(width_masks, width));
            let mut some = [0; LANES];
            op::store(&mut some, op::select(op::sign(entry), value, entry));
            for (&word, &lane) in some.iter().zip(lanes) {
                found[usize::from(lane)] = word;
            }
        }
    }
}

/// [`width_mask`] as a register holds it.
const WIDTH_MASKS: [u32; LANES] =
    [width_mask(0), width_mask(1), width_mask(2), 0, width_mask(0), width_mask(1), width_mask(2), 0];

/// The numbers of the lanes of vector `at` whose bits are set, one behind the other; what follows them is of no
/// account.
#[inline]
fn lanes_of(bits: u32, at: usize) -> [u8; LANES] {
    let first = (at * LANES) as u64;
    // A carry between bytes cannot happen: lane numbers stay below 256.
    (u64::from_le_bytes(LANES_OF[bits as usize]) + first * 0x0101_0101_0101_0101).to_le_bytes()
}

static LANES_OF: [[u8; LANES]; 256] = {
    let mut table = [[0; LANES]; 256];
    let mut bits = 0;
    while bits < 256 {
        let (mut lane, mut count) = (0, 0);
        while lane < LANES {
            if bits >> lane & 1 == 1 {
                table[bits][count] = lane as u8;
                count += 1;
            }
            lane += 1;
        }
        bits += 1;
    }
    table
};
