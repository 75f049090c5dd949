//! The vector kernel: sixteen lanes at a time, several vectors abreast.

use crate::fib::parts::overflow::width_mask;
use crate::net::Key;
use crate::simd::{WIDE, kernel};

use super::layout::{Entry, GROUP_BITS, half_bits, windows};
use super::scalar::{View, each};

kernel! {
    /// Looks up the keys one after the other, with the instructions of the set.
    pub(super) fn singles<K: Key>(view: &View<'_>, keys: &[u32], found: &mut [u32])
    scalar each::<K>;
    vector op {
        #[allow(unused_imports)]
        use op as _;
        for (&key, found) in keys.iter().zip(found) {
            *found = view.find(const { windows(K::BITS) }, key, u64::count_ones);
        }
    }
}

kernel! {
    /// Looks up at least sixteen keys; `found` has one word for each. Returns whether any of them is of a deeper slot, and then
    /// its word is all ones of the width.
    pub(super) fn batch<K: Key>(view: &View<'_>, keys: &[u32], found: &mut [u32]) -> bool;
    vector op {
        use op::wide;
        let windows = const { windows(K::BITS) };
        let words = view.words;
        let direct_at = wide::count(32 - windows.direct_bits);
        let numbers = wide::splat((1 << GROUP_BITS) - 1);
        let half_bit = wide::splat(1 << (31 - windows.direct_bits));
        let slot_at = wide::count(32 - windows.direct_bits - windows.slot_bits);
        let slots = wide::splat((1 << half_bits(windows)) - 1);
        let width = wide::count(view.width);
        let ones = wide::splat(width_mask(view.width));
        let [none, one, seven, byte, half] = [0, 1, 7, 0xff, 0xffff].map(|word| wide::splat(word));
        let (last, all) = (wide::splat(63), wide::splat(64));

        let mut deeper = 0;

        // Looks up the keys of the `$count` vectors, in step: every stage is a loop over them, so that their loads overlap.
        macro_rules! group {
            ($count:literal, $keys:expr, $found:expr) => {{
                let (keys, found): (&[[u32; WIDE]], &mut [[u32; WIDE]]) = ($keys, $found);
                let mut key = [none; $count];
                let (mut entry, mut base) = (key, key);
                for at in 0..$count {
                    key[at] = wide::load(&keys[at]);
                    let direct = wide::shr_by(key[at], direct_at);
                    let by = wide::sub(last, wide::and(direct, numbers));
                    let [rank, first] = wide::ranks_and_upper(words, wide::shr::<{ GROUP_BITS as i32 }>(direct), by);
                    entry[at] = wide::at_bytes(words, wide::add(first, wide::shl::<2>(rank)));
                    base[at] = first;
                }
                let mut places = [none; $count];
                for at in 0..$count {
                    let mask = wide::and(entry[at], half);
                    let place = wide::add(base[at], wide::shr::<{ Entry::PLACE_AT as i32 }>(entry[at]));
                    let second = wide::test(key[at], half_bit);
                    let slot = wide::and(wide::shr_by(key[at], slot_at), slots);
                    // The stored bytes of the key's half, those before the slot's, and whether the slot's is one.
                    let own = wide::select(second, wide::shr::<8>(mask), wide::and(mask, byte));
                    let bit = wide::shlv(one, wide::shr::<3>(slot));
                    let before = wide::and(own, wide::sub(bit, one));
                    let counts = wide::byte_counts(wide::or(mask, wide::shl::<16>(before)));
                    let first_bytes = wide::and(counts, byte);
                    let within = wide::keep(wide::test(own, bit), wide::add(wide::and(slot, seven), one));
                    let bits = wide::add(wide::shl::<3>(wide::shr::<16>(counts)), within);
                    let stored = wide::add(place, wide::keep(second, first_bytes));
                    let rank = wide::ranks_at(words, stored, wide::sub(all, bits));
                    // The first half has its values before the place, the second half after all stored bytes.
                    let bytes = wide::add(first_bytes, wide::and(wide::shr::<8>(counts), byte));
                    let after = wide::add(wide::add(place, bytes), wide::shl_by(rank, width));
                    let ahead = wide::sub(place, wide::shl_by(wide::add(rank, one), width));
                    places[at] = wide::select(second, after, ahead);
                }
                for at in 0..$count {
                    let value = wide::and(wide::at_bytes(words, places[at]), ones);
                    let alone = wide::eq(wide::and(entry[at], half), none);
                    let value = wide::select(alone, wide::shr::<{ Entry::PLACE_AT as i32 }>(entry[at]), value);
                    wide::store(&mut found[at], value);
                    deeper |= wide::bits(wide::eq(value, ones));
                }
            }};
        }

        let whole = keys.len() / WIDE;
        let (vectors, found_vectors) = (keys.as_chunks::<WIDE>().0, found.as_chunks_mut::<WIDE>().0);
        let mut at = 0;
        while at + 4 <= whole {
            group!(4, &vectors[at..at + 4], &mut found_vectors[at..at + 4]);
            at += 4;
        }
        if at + 2 <= whole {
            group!(2, &vectors[at..at + 2], &mut found_vectors[at..at + 2]);
            at += 2;
        }
        if at < whole {
            group!(1, &vectors[at..at + 1], &mut found_vectors[at..at + 1]);
        }
        if !keys.len().is_multiple_of(WIDE) {
            // The last sixteen keys. Some of them are looked up a second time, so that every lane has a key.
            let last = keys.len() - WIDE;
            group!(1, keys[last..].as_chunks().0, found[last..].as_chunks_mut().0);
        }
        deeper != 0
    }
}
