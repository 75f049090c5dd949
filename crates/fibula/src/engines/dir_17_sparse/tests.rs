//! Forms of entries and units, what groups share, and what the check finds.

use core::sync::atomic::Ordering::Relaxed;

use super::layout::{Dir17Sparse, Entry, GROUP_BITS};
use super::unit::UnitBytes;
use crate::fib::Fib;
use crate::fib::parts::overflow::DEEP;
use crate::memory::{Cell, Limits};
use crate::net::{NextHop, Prefix, Route, RouteSlice};

/// A table of these routes.
fn build(routes: &[(Prefix<u32>, u32)]) -> Dir17Sparse<u32> {
    let mut routes: Vec<_> =
        routes.iter().map(|&(prefix, id)| Route::new(prefix, NextHop::new(id).unwrap())).collect();
    routes.sort_by_key(|route| (route.prefix.addr(), route.prefix.len()));
    let table = Dir17Sparse::build(&RouteSlice::new(&routes).unwrap(), Limits::default()).unwrap();
    table.check().unwrap();
    table
}

fn routes(texts: &[(&str, u32)]) -> Vec<(Prefix<u32>, u32)> {
    texts.iter().map(|&(prefix, id)| (prefix.parse().unwrap(), id)).collect()
}

/// Which values of the leading bits in the group of a key have other entries than those before, and the byte of the first entry.
fn group(table: &Dir17Sparse<u32>, key: u32) -> (u32, u32) {
    let word = table.words[key as usize >> (15 + GROUP_BITS)].read();
    (word as u32, (word >> 32) as u32)
}

#[test]
fn a_bitmap_is_stored_without_its_zero_bytes() {
    // Changes at slots 0 (none, as it is first), 7, 8 and 63 of the first half, and at 70 of the second.
    let mut slots = [1; 128];
    slots[7] = 2;
    slots[63] = 3;
    slots[70..].fill(4);
    let unit = UnitBytes::new(&slots, None, 0);
    assert_eq!(unit.mask, 0b0000_0001_1000_0011);
    assert_eq!(unit.bytes(), [3, 1, 2, 1, 0x80, 1, 0x80, 0x40, 1, 4]);
    assert_eq!(unit.before, 4);
    // The values have 16 bits here, and the place of a map follows those of the second half.
    slots[70..].fill(DEEP);
    let unit = UnitBytes::new(&slots, Some(0x0403_0201), 1);
    let before = [3, 0, 1, 0, 2, 0, 1, 0];
    assert_eq!(unit.bytes(), [&before[..], &[0x80, 1, 0x80, 0x40, 1, 0, 0xff, 0xff, 1, 2, 3, 4]].concat());
    let read = UnitBytes::read(unit.bytes(), unit.before, unit.mask, 128, 1).unwrap();
    let values: Vec<u32> = slots.iter().map(|&slot| slot.min(0xffff) as u32).collect();
    assert_eq!(read, (values, Some(0x0403_0201)));
}

#[test]
fn halves_of_one_value_each_have_a_mask_all_the_same() {
    let table = build(&routes(&[("10.0.0.0/18", 7), ("10.0.64.0/18", 8)]));
    for (key, id) in [(0x0a00_0000, 7), (0x0a00_3fff, 7), (0x0a00_4000, 8), (0x0a00_7fff, 8)] {
        assert_eq!(table.lookup_key(key), NextHop::new(id), "{key:x}");
    }
    assert_eq!(table.lookup_key(0x0a00_8000), None);
}

#[test]
fn next_hops_are_in_entries_where_they_fit() {
    // Half of the routes need more than a byte and more than an entry.
    let table =
        build(&routes(&[("10.0.0.0/8", 65_535), ("11.0.0.0/8", 65_536), ("12.0.0.0/8", 0xffff_fffe)]));
    assert_eq!(table.width, 2);
    for (key, id) in [(0x0a12_3456, 65_535), (0x0b12_3456, 65_536), (0x0c12_3456, 0xffff_fffe)] {
        assert_eq!(table.lookup_key(key), NextHop::new(id), "{key:x}");
    }
    let entry = |key: u32| {
        let (changes, base) = group(&table, key);
        assert_eq!(changes, 0, "one entry for the whole group");
        let longs = crate::simd::Longs::new(&table.words);
        Entry(longs.long_at(base) as u32)
    };
    assert_eq!(entry(0x0a12_3456), Entry::new(0, 65_535));
    assert_ne!(entry(0x0b12_3456).mask(), 0);
}

#[test]
fn groups_of_one_next_hop_share_an_entry() {
    let table = build(&routes(&[("10.0.0.0/8", 7), ("20.0.0.0/8", 7), ("30.0.0.0/8", 8)]));
    assert_eq!(group(&table, 0x0a00_0000), group(&table, 0x1412_3456));
    assert_ne!(group(&table, 0x0a00_0000), group(&table, 0x1e00_0000));
    // Four next hops, none among them, in 4,096 groups.
    let bytes = 8 * (table.words.len() - super::layout::PADDING - 4096);
    assert_eq!(bytes, 16);
}

#[test]
fn units_share_the_bytes_that_they_have_in_common() {
    // The first unit ends with 5, and the values of the next one, last first, begin with it.
    let one =
        UnitBytes::new(&core::array::from_fn::<_, 128, _>(|slot| if slot < 100 { 4 } else { 5 }), None, 0);
    let two =
        UnitBytes::new(&core::array::from_fn::<_, 128, _>(|slot| if slot < 10 { 6 } else { 5 }), None, 0);
    assert_eq!((one.bytes().last(), two.bytes().first()), (Some(&5), Some(&5)));
    assert_eq!(two.overlap(one.bytes()), 1);
    assert_eq!(two.overlap(&[]), 0);
    assert_eq!(two.overlap(two.bytes()), two.bytes().len().min(16));
    let table = build(&routes(&[
        ("10.0.0.0/17", 4),
        ("10.0.100.0/22", 5),
        ("10.0.104.0/21", 5),
        ("10.0.112.0/20", 5),
        ("10.0.128.0/17", 5),
        ("10.0.128.0/21", 6),
    ]));
    for (key, id) in [(0x0a00_63ff, 4), (0x0a00_6400, 5), (0x0a00_87ff, 6), (0x0a00_8800, 5)] {
        assert_eq!(table.lookup_key(key), NextHop::new(id), "{key:x}");
    }
}

#[test]
fn host_routes_and_wide_next_hops_are_below() {
    let mut table =
        routes(&[("10.0.0.0/8", 7), ("10.0.1.2/32", 9), ("10.0.127.255/32", 10), ("11.0.0.0/17", 70_000)]);
    // Enough others that a byte is the width.
    table.extend((0..6400).map(|at| (Prefix::masked(0x6000_0000 | at << 9, 24).unwrap(), 1 + at % 200)));
    let table = build(&table);
    assert_eq!(table.width, 0);
    for (key, id) in [
        (0x0a00_0101, 7),
        (0x0a00_0102, 9),
        (0x0a00_0103, 7),
        (0x0a00_7fff, 10),
        (0x0a00_7ffe, 7),
        (0x0b00_0000, 70_000),
        (0x0b00_7fff, 70_000),
        (0x0b00_8000, 0),
    ] {
        assert_eq!(table.lookup_key(key), NextHop::new(id), "{key:x}");
        // A batch that is answered by vectors.
        let mut results = [None; 21];
        table.lookup_batch(&[key; 21], &mut results);
        assert_eq!(results, [NextHop::new(id); 21], "{key:x}");
    }
}

/// A changed next hop is another table. Every other change is found, and none is fatal.
#[test]
fn the_check_finds_each_bit_that_is_changed() {
    let table =
        build(&routes(&[("10.0.0.0/8", 7), ("10.0.1.0/24", 8), ("10.0.1.2/32", 9), ("10.0.200.0/22", 300)]));
    let keys: Vec<u32> = (0..=0xffff).map(|at| 0x0a00_0000 | at << 4).collect();
    // The entry of no next hop, which most groups share, is the first of the bytes; 10.0.0.0/12 is a group of its own.
    let first = 4096;
    let own = 0xa0;
    let mut passed = 0;
    for word in [0, own, own + 1, first - 1].into_iter().chain(first..table.words.len()) {
        for bit in 0..64 {
            let before = table.words[word].read();
            table.words[word].store(before ^ 1 << bit, Relaxed);
            if table.check().is_ok() {
                let mut found = vec![None; keys.len()];
                table.lookup_batch(&keys, &mut found);
                for (&key, found) in keys.iter().zip(found) {
                    assert_eq!(table.lookup_key(key), found, "bit {bit} of word {word}, {key:x}");
                }
                passed += 1;
            }
            table.words[word].store(before, Relaxed);
        }
    }
    // The bits of next hops: in the two entries and, a byte each, between the changes of two units.
    assert!((6 * 8..=10 * 8).contains(&passed), "{passed} bits");
    table.check().unwrap();
}
