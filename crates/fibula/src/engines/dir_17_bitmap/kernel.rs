//! The vector kernel: sixteen lanes at a time, several vectors abreast.

use core::sync::atomic::{Ordering, fence};

use crate::net::Key;
use crate::simd::{Leading, Longs, Present, WIDE, fetch_at, kernel};

use super::layout::{Entry, Windows, deeper};
use super::record::Record;
use super::scalar::{View, batch as scalar};

/// Most vectors abreast.
const ABREAST: usize = 4;

/// From this number of deeper lanes on, all lanes of a vector are answered at once.
const MANY: u32 = 4;

kernel! {
    /// Looks up the keys one after the other, with the instructions of the set.
    pub(super) fn singles<K: Key>(view: &View<'_>, keys: &[u32], found: &mut [u32])
    scalar singles_portable::<K>;
    vector op {
        #[allow(unused_imports)]
        use op as _;
        for (&key, found) in keys.iter().zip(found) {
            *found = view.find(const { Windows::new(K::BITS) }, key, u64::count_ones);
        }
    }
}

fn singles_portable<K: Key>(view: &View<'_>, keys: &[u32], found: &mut [u32]) {
    for (&key, found) in keys.iter().zip(found) {
        *found = view.find(const { Windows::new(K::BITS) }, key, u64::count_ones);
    }
}

fn portable<K: Key>(_: Present, view: &View<'_>, keys: &[u32], found: &mut [u32]) {
    scalar::<K>(view, keys, found);
}

kernel! {
    /// Answers the lanes of some vectors whose slots are deeper, given their entries.
    fn deepen<K: Key>(
        view: &View<'_>,
        lanes: &[u32],
        keys: &[[u32; WIDE]],
        entries: &[[u32; WIDE]],
        found: &mut [[u32; WIDE]],
    )
    vector op {
        use op::wide;
        let windows = const { Windows::new(K::BITS) };
        let units = Longs::new(view.units);
        let place_at = wide::count(Entry::PLACE_AT - view.step);
        let slots = wide::splat(windows.half() as u32 - 1);
        let one = wide::splat(1);
        let byte = wide::splat(0xff);
        // Lanes that need a list wait, so that its words arrive while other vectors are answered.
        let mut listed = [0; ABREAST];
        for ((((&lanes, keys), entries), found), listed) in
            lanes.iter().zip(keys).zip(entries).zip(&mut *found).zip(&mut listed)
        {
            *listed = lanes;
            if lanes.count_ones() >= MANY {
                let key = wide::load(keys);
                let place = wide::shr_by(wide::and(wide::load(entries), wide::splat(Entry::PLACE)), place_at);
                let second = wide::test(key, wide::splat(windows.half_bit()));
                let slot = wide::and(wide::shr_by(key, wide::count(windows.below_slot())), slots);
                // A record is found by the rank of its slot among the deeper slots.
                let first_map = wide::sub(place, one);
                let map = wide::sub(first_map, wide::keep(second, one));
                let before = wide::keep(second, wide::ranks(units, first_map, wide::splat(0)));
                let rank = wide::add(before, wide::ranks(units, map, wide::sub(wide::splat(63), slot)));
                let record = wide::shl::<3>(wide::sub(wide::sub(first_map, one), rank));
                let most = wide::at_bytes(units, record);
                // The upper half of a record is 4 bytes further on.
                let other = wide::at_bytes(units, wide::add(record, wide::splat(4)));
                let rest_at = wide::count(windows.below_slot() - windows.rest_bits);
                let rest = wide::and(wide::shr_by(key, rest_at), wide::splat(windows.rests() as u32 - 1));
                let from = wide::up_to(wide::and(most, byte), rest);
                let inside = wide::both(from, wide::up_to(rest, wide::and(other, byte)));
                let told = wide::shr::<{ Record::NEXT_HOP_AT as i32 }>(wide::select(inside, other, most));
                let lists = wide::test(most, wide::splat(Record::LIST));
                let (mut answers, mut begin) = ([0; WIDE], [0; WIDE]);
                wide::store(&mut answers, told);
                *listed &= wide::bits(lists);
                for_each_lane(lanes & !*listed, |lane| found[lane] = answers[lane]);
                wide::store(&mut begin, wide::sub(place, wide::but(wide::splat(Record::LIST), most)));
                for_each_lane(*listed, |lane| fetch_at(view.units, begin[lane] as usize));
            }
        }
        for (((&listed, keys), entries), found) in listed.iter().zip(keys).zip(entries).zip(found) {
            for_each_lane(listed, |lane| {
                found[lane] = view.find_deeper(windows, Entry(entries[lane]), keys[lane]);
            });
        }
    }
}

/// Calls `each` for the lanes whose bits are set.
#[inline(always)]
fn for_each_lane(mut lanes: u32, mut each: impl FnMut(usize)) {
    while lanes != 0 {
        each(lanes.trailing_zeros() as usize % WIDE);
        lanes &= lanes - 1;
    }
}

kernel! {
    /// Looks up at least sixteen keys; `found` has one word for each. `set` is the set again.
    pub(super) fn batch<K: Key>(set: Present, view: &View<'_>, keys: &[u32], found: &mut [u32])
    scalar portable::<K>;
    vector op {
        use op::wide;
        let windows = const { Windows::new(K::BITS) };
        let direct = Leading::new(view.direct, windows.direct_bits);
        let units = Longs::new(view.units);
        let place_at = wide::count(Entry::PLACE_AT - view.step);
        let places = wide::splat(Entry::PLACE);
        let half_bit = wide::splat(windows.half_bit());
        let slots = wide::splat(windows.half() as u32 - 1);
        let beyond = wide::splat(64 - windows.half() as u32);
        let (uniform_halves, none) = (Entry::UNIFORM_HALF.map(|bit| wide::splat(bit)), wide::splat(0));
        // Indexed by the two lowest bits of an entry, which are the width. There is no width of 3, so its element is not used.
        let all_ones = wide::eight(&core::array::from_fn(|bits| deeper((bits as u32 % 4).min(2))));

        // Looks up the keys of the `$count` vectors from `$at` on, in step: every stage is a loop over them, so that their
        // loads overlap, and everything between the stages stays in registers.
        macro_rules! group {
            ($count:literal, $keys:expr, $found:expr) => {{
                let (keys, found): (&[[u32; WIDE]], &mut [[u32; WIDE]]) = ($keys, $found);
                let mut key = [wide::splat(0); $count];
                let mut entry = key;
                for at in 0..$count {
                    key[at] = wide::load(&keys[at]);
                    entry[at] = wide::gather_leading(direct, key[at]);
                }
                // A writer publishes a unit by its entry, so the entries are loaded before anything of their units.
                fence(Ordering::Acquire);
                let places = core::array::from_fn::<_, $count, _>(|at| {
                    let (key, entry) = (key[at], entry[at]);
                    let second = wide::test(key, half_bit);
                    let place = wide::shr_by(wide::and(entry, places), place_at);
                    let offset = wide::keep(second, wide::shr::<{ Entry::OFFSET_AT as i32 }>(entry));
                    let below = wide::shr_by(key, wide::count(windows.below_slot()));
                    // Together 63 less the slot: a shift by it drops the bits of later slots.
                    let by = wide::or(wide::but(below, slots), beyond);
                    // The rank is 0 where a half has one value.
                    let uniform = wide::select(second, uniform_halves[1], uniform_halves[0]);
                    let counts = wide::eq(wide::and(entry, uniform), none);
                    wide::ranked(units, wide::add(place, offset), by, counts, entry)
                });
                let mut deeper_lanes = [0; $count];
                let mut any = 0;
                for at in 0..$count {
                    let ones = wide::pick(all_ones, entry[at]);
                    let value = wide::and(wide::at_places(units, places[at]), ones);
                    wide::store(&mut found[at], value);
                    deeper_lanes[at] = wide::bits(wide::eq(value, ones));
                    any |= deeper_lanes[at];
                }
                // Entries leave their registers only if some lane needs them again.
                if any != 0 {
                    let mut entries = [[0; WIDE]; $count];
                    for at in 0..$count {
                        wide::store(&mut entries[at], entry[at]);
                    }
                    deepen::<K>(set, view, &deeper_lanes, keys, &entries, found);
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
    }
}
