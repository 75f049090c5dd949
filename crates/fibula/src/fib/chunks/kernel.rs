//! The vector kernels: a block of keys in stages, eight lanes at a time.

use crate::net::NextHop;
use crate::simd::{Bytes, LANES, Present, Words, kernel};

use super::layout::{Entry, Form, MAP_BITS, width_mask};
use super::lookup::{self, View};

/// Keys of a block: what a stage works through before the next one begins. Their entries and addresses fit the
/// first-level cache, and a lane's number fits a byte.
pub(super) const BLOCK: usize = 256;

/// Looks a block up, of keys that `align` turns into words aligned to the left.
pub(super) fn lookup<K: Copy>(
    isa: Present,
    view: View<'_>,
    keys: &[K],
    results: &mut [Option<NextHop>],
    align: impl Fn(K) -> u32,
) {
    let count = keys.len();
    if count < LANES {
        for (&key, result) in keys.iter().zip(results) {
            *result = NextHop::new(view.find(align(key)));
        }
        return;
    }
    // Lanes behind the last key look up address 0 and are dropped.
    let mut words = [0; BLOCK];
    for (word, &key) in words.iter_mut().zip(keys) {
        *word = align(key);
    }
    let mut found = [0; BLOCK];
    let padded = count.next_multiple_of(LANES);
    match view.geometry.form {
        Form::Rank => block::<false>(isa, view, &words[..padded], &mut found[..padded]),
        Form::Dense => block::<true>(isa, view, &words[..padded], &mut found[..padded]),
    }
    NextHop::words(results).copy_from_slice(&found[..count]);
}

/// The scalar kernel, where no vectors are to be used.
fn scalar<const DENSE: bool>(view: View<'_>, keys: &[u32], found: &mut [u32]) {
    lookup::block(view, keys, found);
}

kernel! {
    /// Next hops of a block of keys, a multiple of [`LANES`] and at most [`BLOCK`] of them.
    fn block[const DENSE: bool](view: View<'_>, keys: &[u32], found: &mut [u32])
    scalar scalar::<DENSE>;
    vector op {
        let geometry = view.geometry;
        let (direct, words, bytes) = (Words::new(view.direct), Words::new(view.area), Bytes::new(view.area));
        let (keys, _) = keys.as_chunks::<LANES>();
        let (found, _) = found.as_chunks_mut::<LANES>();
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
        let mut addresses = [[0; LANES]; BLOCK / LANES];

        // Second stage: where the values stand. Lanes without a chunk load nothing.
        for ((keys, found), addresses) in keys.iter().zip(&*found).zip(&mut addresses) {
            let entry = op::load(found);
            let slot = op::shr_by(op::shl_by(op::load(keys), slot_from), slot_at);
            let shift = op::and(op::shr::<{ Entry::SHIFT_AT as i32 }>(entry), op::splat(7));
            let slot = op::shrv(slot, shift);
            let width = op::and(op::shr::<{ Entry::WIDTH_AT as i32 }>(entry), three);
            let offset = op::and(entry, offset_bits);
            let (base, index) = if DENSE {
                (op::shl::<2>(offset), slot)
            } else {
                let place = op::shr::<12>(op::mul16(slot, op::splat(171)));
                let bit = op::sub(slot, op::mul16(place, op::splat(MAP_BITS)));
                let map = op::gather_where(op::sign(entry), words, op::add(offset, place));
                let up_to = op::shrv(op::splat(0x00ff_ffff), op::sub(op::splat(MAP_BITS - 1), bit));
                let rank = op::add(op::shr::<24>(map), op::popcount(op::and(map, up_to)));
                (op::add(op::shl::<2>(offset), op::pick(head_bytes, shift)), rank)
            };
            op::store(addresses, op::add(base, op::shlv(index, width)));
        }

        // Third stage: the values. Lanes whose value says that they are deeper are noted.
        let mut deep = [0u8; BLOCK + LANES];
        let mut deep_count = 0;
        for (at, (found, addresses)) in found.iter_mut().zip(&addresses).enumerate() {
            let entry = op::load(found);
            let in_chunk = op::sign(entry);
            let width = op::and(op::shr::<{ Entry::WIDTH_AT as i32 }>(entry), three);
            let mask = op::pick(width_masks, width);
            let value = op::and(op::gather_bytes_where(in_chunk, bytes, op::load(addresses)), mask);
            let deeper = op::bits(op::both(in_chunk, op::eq(value, mask)));
            op::store(found, op::select(in_chunk, value, entry));
            if deeper != 0 {
                let lanes: &mut [u8; LANES] = deep[deep_count..].first_chunk_mut().expect("room for a vector");
                *lanes = lanes_of(deeper, at);
                deep_count += deeper.count_ones() as usize;
            }
        }
        if deep_count == 0 {
            return;
        }

        // Fourth stage: what lies below the chunks, for full vectors of the lanes that need it.
        let (keys, found) = (keys.as_flattened(), found.as_flattened_mut());
        let deep_words = op::splat(geometry.deep_words());
        let rest_head_bytes = op::load(&geometry.rest_head_words().map(|words| 4 * words));
        let rest_from = op::count(geometry.direct_bits + geometry.chunk_bits);
        let rest_at = op::count(32 - geometry.rest_bits);
        for lanes in deep[..deep_count].chunks(LANES) {
            let mut some = [keys[usize::from(lanes[0])]; LANES];
            for (key, &lane) in some.iter_mut().zip(lanes) {
                *key = keys[usize::from(lane)];
            }
            let key = op::load(&some);
            let chunk = op::gather(direct, op::shr_by(key, direct_at));
            let slot = op::shr_by(op::shl_by(key, slot_from), slot_at);
            let place = op::shr::<12>(op::mul16(slot, op::splat(171)));
            let bit = op::sub(slot, op::mul16(place, op::splat(MAP_BITS)));
            let maps = op::sub(op::and(chunk, offset_bits), deep_words);
            let map = op::gather(words, op::add(maps, place));
            let up_to = op::shrv(op::splat(0x00ff_ffff), op::sub(op::splat(MAP_BITS - 1), bit));
            let rank = op::add(op::shr::<24>(map), op::popcount(op::and(map, up_to)));
            let entry = op::gather(words, op::sub(maps, rank));

            let in_chunk = op::sign(entry);
            let rest = op::shr_by(op::shl_by(key, rest_from), rest_at);
            let shift = op::and(op::shr::<{ Entry::SHIFT_AT as i32 }>(entry), op::splat(7));
            let sparse = op::eq(shift, op::splat(Entry::SPARSE));
            let slot = op::shrv(rest, shift);
            let place = op::shr::<12>(op::mul16(slot, op::splat(171)));
            let bit = op::sub(slot, op::mul16(place, op::splat(MAP_BITS)));
            let offset = op::and(entry, offset_bits);
            // A sparse chunk's only word is the one that place 0 names: its slot is at most 1 after the shift.
            let map = op::gather_where(in_chunk, words, op::add(offset, place));
            let up_to = op::shrv(op::splat(0x00ff_ffff), op::sub(op::splat(MAP_BITS - 1), bit));
            let rank = op::add(op::shr::<24>(map), op::popcount(op::and(map, up_to)));
            let rank = op::select(sparse, op::bytes_below(map, rest), rank);
            let width = op::and(op::shr::<{ Entry::WIDTH_AT as i32 }>(entry), three);
            let base = op::add(op::shl::<2>(offset), op::pick(rest_head_bytes, shift));
            let value = op::gather_bytes_where(in_chunk, bytes, op::add(base, op::shlv(rank, width)));
            let value = op::and(value, op::pick(width_masks, width));
            op::store(&mut some, op::select(in_chunk, value, entry));
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
