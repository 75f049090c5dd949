//! Properties that the conformance suite cannot test: which next hops have codes, where objects are, and hostile words.

use core::sync::atomic::Ordering::Relaxed;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::layout::{BELOW, DirBtreeByte, LEAF_INTERVALS, OBJECT};
use crate::engines::dir_btree::layout::LEAVES;
use crate::engines::dir_btree::tests::judged;
use crate::fib::Fib;
use crate::memory::{Cell, Limits};
use crate::net::{NextHop, Prefix, Route, RouteSlice};
use crate::random::Random;
use crate::simd::{CODED_VALUES, LINE_UNITS, LINE_WORDS, Present};

fn build(table: impl IntoIterator<Item = (u128, u8, u32)>) -> DirBtreeByte<u128> {
    judged(table, DirBtreeByte::build)
}

/// The next hops of codes, in their order.
fn next_hops(fib: &DirBtreeByte<u128>) -> Vec<u32> {
    let words = fib.trees.lines[..CODED_VALUES].iter().map(Cell::read);
    words.take_while(|word| word & BELOW == 0).collect()
}

/// A /48 of its own.
fn site(at: u128) -> u128 {
    0x2001 << 112 | at << 81
}

#[test]
fn a_table_may_lie_anywhere() {
    assert_eq!(next_hops(&build([])), [0]);
    build([(0, 0, 7)]);
    build([(0, 128, 1), (u128::MAX, 128, 2)]);
    build([(0, 1, 1), (1 << 127, 1, 2), (0x8000_0001 << 96, 32, 3)]);
    build([(0, 0, 9), (0x2000 << 112, 3, 1), (0x2a00 << 112, 12, 2)]);
    build([(0xfe80 << 112, 10, 1), (0xff00 << 112, 8, 2), (0x64_ff9b << 96, 96, 3), (0x1900 << 112, 16, 4)]);
}

#[test]
fn the_most_frequent_next_hops_have_codes() {
    // Each of 2 to 400 is used that many times.
    let ids = (2..=400u32).flat_map(|id| (0..id).map(move |_| id));
    let fib = build(ids.enumerate().map(|(at, id)| (site(at as u128), 48, id)));
    let coded = next_hops(&fib);
    assert_eq!(coded.len(), OBJECT as usize);
    let most_frequent: Vec<u32> = (147..=400).rev().collect();
    assert_eq!((coded[0], &coded[1..]), (0, &most_frequent[..]));
    // Each /48 with another next hop has an object.
    let others: usize = (2..147).sum();
    assert_eq!(fib.trees.objects.len(), 2 * others);
}

#[test]
fn the_255th_next_hop_is_the_first_object() {
    // "No route" has a code too.
    for (count, objects) in [(254, 0), (255, 1), (256, 2), (600, 346)] {
        let fib = build((0..count).map(|at| (site(at), 48, 1 + at as u32)));
        assert_eq!(fib.trees.objects.len(), 2 * objects, "{count}");
    }
}

#[test]
fn next_hops_with_the_highest_bit_are_objects() {
    // The highest bit tells words of objects, so no next hop with it has a code.
    for (id, objects) in [(BELOW - 1, 0), (BELOW, 2000), (u32::MAX, 2000)] {
        let fib = build((0..2000).map(|at| (site(at), 48, id)));
        assert_eq!(fib.trees.objects.len(), 2 * objects);
    }
}

#[test]
fn objects_of_every_size_are_passed() {
    // The /48s of one place are neighbours in leaves: next hops without codes, records of one to eight prefixes, and blocks.
    let place = |at: u128| (0x2001_0db8_0000 + at) << 80;
    // However, most intervals elsewhere have codes, so that the table has both.
    let coded = (0..300u128).map(|at| (site(1 << 20 | at), 48, 1 + at as u32 % 254));
    let coded = coded.clone().chain(coded.map(|(bits, len, id)| (bits | 1 << 90, len, id)));
    let crowded = (0..300u128).flat_map(|at| {
        let wide = [(place(at), 48, BELOW + at as u32 % 7)];
        let inside =
            (0..at % 12).map(move |part| (place(at) | part << 66, 62 + (part % 9) as u8, 1 + part as u32));
        wide.into_iter().filter(move |_| at % 3 > 0).chain(inside)
    });
    build(coded.chain(crowded));
}

#[test]
fn a_tree_takes_as_many_intervals_as_it_has_room_for() {
    let most = (LEAVES * LEAF_INTERVALS) as u128;
    assert_eq!(most, 221);
    for count in most - 4..=most + 4 {
        build((0..count).map(|at| (0x2001_0db8_0000 << 80 | at << 80, 48, 1 + at as u32 % 2)));
    }
    // One leaf or two, and every number of intervals in the last one.
    for count in 1..=2 * LEAF_INTERVALS as u128 {
        build((0..count).map(|at| (0x2001_0db8_0000 << 80 | at << 80, 48, 1 + at as u32 % 2)));
    }
}

#[test]
fn windows_of_both_halves_are_in_trees_of_their_own() {
    for len in [18, 20, 32, 48] {
        let half = 1u128 << (len - 17);
        let around =
            [0, 1, half - 1, half, half + 1, 2 * half - 1].map(|bits| 0x2001 << 112 | bits << (128 - len));
        let unique = around.iter().enumerate().filter(|&(at, bits)| !around[..at].contains(bits));
        build(unique.map(|(at, &bits)| (bits, len as u8, 1 + at as u32)));
    }
}

#[test]
fn a_crowded_upper_part_leaves_its_neighbours_their_objects() {
    let site = |at: u128| (0x2001_0db8_0000 + at) << 80;
    for ranges in [2_000, 17_000] {
        let crowded = (0..ranges).map(|at| (site(1) | at << 64, 64, 1 + at as u32 % 2));
        let others = [0, 2, 3, 4]
            .into_iter()
            .flat_map(|neighbour| (0..60).map(move |at| (site(neighbour) | at << 64, 64, 3 + at as u32 % 5)));
        let large = (5..9).map(|at| (site(at), 48, BELOW + at as u32));
        build(crowded.chain(others).chain(large));
    }
}

#[test]
fn a_limit_on_memory_is_kept() {
    let routes: Vec<_> = (0..1000u128)
        .map(|at| Route::new(Prefix::masked(at << 80, 48).unwrap(), NextHop::new(1 + at as u32).unwrap()))
        .collect();
    let table = RouteSlice::new(&routes).unwrap();
    for bytes in [1 << 10, 1 << 12, 1 << 14] {
        let refused = DirBtreeByte::build(&table, Limits::within(bytes)).unwrap_err();
        assert!(refused.out_of_memory().is_some());
    }
}

/// A table with codes, objects of each kind, and trees of several leaves.
fn mixed() -> (DirBtreeByte<u128>, Vec<u128>) {
    let many = (0..400u128).map(|at| (site(at), 48, 1 + at as u32));
    let long = (0..40u128).map(|at| (site(at) | at << 70, 60 + (at % 30) as u8, BELOW + at as u32));
    let fib = build(many.chain(long));
    let keys = (0..400).flat_map(|at| (0..10).map(move |part| site(at) | part << 70 | at << 80)).collect();
    (fib, keys)
}

#[test]
fn the_check_finds_codes_that_are_none_and_slots_that_lead_to_next_hops() {
    let (fib, _) = mixed();
    let lines = &fib.trees.lines;
    // Each change is undone, because the next one is told apart by its error.
    let change = |at: usize, word: u32| {
        let before = lines[at].swap(word, Relaxed);
        let error = fib.check().unwrap_err().to_string();
        lines[at].store(before, Relaxed);
        fib.check().unwrap();
        error
    };
    assert!(change(OBJECT as usize, 7).contains("the last code is that of objects"));
    assert!(change(OBJECT as usize, BELOW | 1).contains("have one bit"));
    assert!(change(3, BELOW).contains("have one bit"));
    // The table of one next hop has codes 0 and 1 alone.
    let fib = build((0..100).map(|at| (site(at), 48, 1)));
    let last = fib.trees.lines.len() - 1;
    for at in last - 3..last {
        fib.trees.lines[at].store(0x0202_0202, Relaxed);
    }
    fib.trees.lines[last].store(2, Relaxed);
    let error = fib.check().unwrap_err().to_string();
    assert!(error.contains("values are next hops or objects"), "{error}");
    // The first slot of the first tree leads to the next hops.
    let (fib, _) = mixed();
    let head = (CODED_VALUES / LINE_WORDS) as u32 * LINE_UNITS;
    let slot = fib.trees.tables.iter().position(|word| word.read() == head).unwrap();
    fib.trees.tables[slot].store(head - LINE_UNITS, Relaxed);
    assert!(fib.check().is_err());
}

/// Lookups end, and read nothing outside, whatever words there are. The check then says so, or all lookups agree.
#[test]
fn whatever_the_words_are_lookups_end() {
    let (fib, keys) = mixed();
    // A lookup that meets a place outside stops with a message, and there would be many.
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let mut random = Random(3);
    let (mut passed, mut stopped) = (0, 0);
    for round in 0..400 {
        let arrays = [&fib.trees.tables, &fib.trees.lines, &fib.trees.objects];
        let array = arrays[round % 3];
        let at = random.below(array.len() as u64) as usize;
        let word = if round % 2 == 0 {
            array[at].read() ^ 1 << random.below(32)
        } else {
            random.below(1 << 32) as u32
        };
        let before = array[at].swap(word, Relaxed);
        let is_right = fib.check().is_ok();
        for isa in Present::all() {
            let mut found = vec![None; keys.len()];
            let answered =
                catch_unwind(AssertUnwindSafe(|| fib.lookup_batch_on(isa, &keys, &mut found))).is_ok();
            assert!(answered || !is_right, "{round}");
            stopped += usize::from(!answered);
            if is_right {
                assert!(keys.iter().zip(found).all(|(&key, found)| fib.lookup_key(key) == found), "{round}");
            }
        }
        passed += usize::from(is_right);
        array[at].store(before, Relaxed);
    }
    std::panic::set_hook(quiet);
    assert!(passed < 300 && stopped > 0, "{passed} {stopped}");
    fib.check().unwrap();
}
