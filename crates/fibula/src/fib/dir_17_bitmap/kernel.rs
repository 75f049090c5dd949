//! The vector kernel: sixteen lanes at a time, several vectors abreast.

use core::sync::atomic::{Ordering, fence};

use crate::net::Key;
use crate::simd::{Longs, WIDE, Words, kernel};

use super::layout::{Entry, Windows, deeper};
use super::record::Record;
use super::scalar::{View, batch as scalar};

/// Deeper lanes of a vector from which on all of its lanes are answered at once.
const MANY: u32 = 4;

kernel! {
    /// Looks up the keys one after the other, with the instructions of the set.
    pub(super) fn singles<K: Key>(view: &View<'_>, keys: &[u32], found: &mut [u32])
    scalar singles_portable::<K>;
    vector op {
        #[allow(unused_imports)]
        use op as _;
        for (&key, found) in keys.iter().zip(found) {
            *found = view.find(const { Windows::new(K::BITS) }, key);
        }
    }
}

fn singles_portable<K: Key>(view: &View<'_>, keys: &[u32], found: &mut [u32]) {
    for (&key, found) in keys.iter().zip(found) {
        *found = view.find(const { Windows::new(K::BITS) }, key);
    }
}

kernel! {
    /// Looks up at least sixteen keys, as many as there are words for what is found.
    pub(super) fn batch<K: Key>(view: &View<'_>, keys: &[u32], found: &mut [u32])
    scalar scalar::<K>;
    vector op {
        use op::wide;
        let windows = const { Windows::new(K::BITS) };
        let (direct, units) = (Words::new(view.direct), Longs::new(view.units));
        let place_at = wide::count(Entry::PLACE_AT - view.step);
        let places = wide::splat(Entry::PLACE);
        let half_bit = wide::splat(windows.half_bit());
        let slots = wide::splat(windows.half() as u32 - 1);
        let last_slot = wide::splat(63);
        // By the lowest bits of a width.
        let all_ones = wide::eight(&core::array::from_fn(|width| deeper(width as u32 % 4)));
        let three = wide::splat(3);

        // What the keys of the vectors from `$at` on find, `$count` vectors in step: every stage is a loop over them, so
        // that their loads overlap, and everything between the stages stays in registers.
        macro_rules! group {
            ($count:literal, $keys:expr, $found:expr) => {{
                let (keys, found): (&[[u32; WIDE]], &mut [[u32; WIDE]]) = ($keys, $found);
                let mut key = [wide::splat(0); $count];
                let mut entry = key;
                for at in 0..$count {
                    key[at] = wide::load(&keys[at]);
                    let index = wide::shr_by(key[at], wide::count(32 - windows.direct_bits));
                    entry[at] = wide::gather(direct, index);
                }
                // A writer publishes a unit by its entry.
                fence(Ordering::Acquire);
                let mut value_at = key;
                for at in 0..$count {
                    let (key, entry) = (key[at], entry[at]);
                    let second = wide::test(key, half_bit);
                    let place = wide::shr_by(wide::and(entry, places), place_at);
                    let offset = wide::keep(second, wide::shr::<{ Entry::OFFSET_AT as i32 }>(entry));
                    let word = wide::add(place, offset);
                    let slot = wide::and(wide::shr_by(key, wide::count(windows.below_slot())), slots);
                    // 64 and more, which leave nothing of a bitmap, where a half has one value.
                    let flag = wide::select(second, wide::shr::<1>(entry), entry);
                    let uniform = wide::shl::<6>(wide::and(flag, wide::splat(1)));
                    let rank = wide::ranks(units, word, wide::or(wide::sub(last_slot, slot), uniform));
                    let width = wide::and(wide::shr::<{ Entry::WIDTH_AT as i32 }>(entry), three);
                    let first = wide::add(wide::shl::<3>(word), wide::splat(8));
                    value_at[at] = wide::add(first, wide::shlv(rank, width));
                }
                let mut deeper_lanes = [0; $count];
                let mut any = 0;
                for at in 0..$count {
                    let width = wide::shr::<{ Entry::WIDTH_AT as i32 }>(entry[at]);
                    let ones = wide::pick(all_ones, wide::and(width, three));
                    let value = wide::and(wide::at_bytes(units, value_at[at]), ones);
                    wide::store(&mut found[at], value);
                    deeper_lanes[at] = wide::bits(wide::eq(value, ones));
                    any |= deeper_lanes[at];
                }
                if any != 0 {
                    for at in 0..$count {
                        let mut lanes = deeper_lanes[at];
                        if lanes.count_ones() >= MANY {
                            let (key, entry) = (key[at], entry[at]);
                            let second = wide::test(key, half_bit);
                            let place = wide::shr_by(wide::and(entry, places), place_at);
                            let slot = wide::and(wide::shr_by(key, wide::count(windows.below_slot())), slots);
                            let by = wide::sub(last_slot, slot);
                            let one = wide::splat(1);
                            let first_map = wide::sub(place, one);
                            let map = wide::sub(first_map, wide::keep(second, one));
                            let all = wide::keep(second, wide::ranks(units, first_map, wide::splat(0)));
                            let rank = wide::add(all, wide::ranks(units, map, by));
                            let record = wide::shl::<3>(wide::sub(wide::sub(place, wide::splat(2)), rank));
                            let most = wide::at_bytes(units, record);
                            let other = wide::at_bytes(units, wide::add(record, wide::splat(4)));
                            let rest_at = wide::count(windows.below_slot() - windows.rest_bits);
                            let rests = wide::splat(windows.rests() as u32 - 1);
                            let rest = wide::and(wide::shr_by(key, rest_at), rests);
                            let byte = wide::splat(0xff);
                            let from = wide::up_to(wide::and(most, byte), rest);
                            let inside = wide::both(from, wide::up_to(rest, wide::and(other, byte)));
                            let told = wide::shr::<{ Record::NEXT_HOP_AT as i32 }>(wide::select(inside, other, most));
                            let lists = wide::bits(wide::test(most, wide::splat(Record::LIST)));
                            let mut answers = [0; WIDE];
                            wide::store(&mut answers, told);
                            let mut told = lanes & !lists;
                            while told != 0 {
                                let lane = told.trailing_zeros() as usize % WIDE;
                                found[at][lane] = answers[lane];
                                told &= told - 1;
                            }
                            lanes &= lists;
                        }
                        while lanes != 0 {
                            let lane = lanes.trailing_zeros() as usize % WIDE;
                            let mut entries = [0; WIDE];
                            wide::store(&mut entries, entry[at]);
                            found[at][lane] = view.find_deeper(windows, Entry(entries[lane]), keys[at][lane]);
                            lanes &= lanes - 1;
                        }
                    }
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
        if keys.len() % WIDE != 0 {
            // The last sixteen keys, some of them for the second time, so that every lane has a key.
            let last = keys.len() - WIDE;
            group!(1, keys[last..].as_chunks().0, found[last..].as_chunks_mut().0);
        }
    }
}
