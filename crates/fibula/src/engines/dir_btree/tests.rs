//! Properties that the conformance suite cannot test: the forms that a table takes, and when.

use super::layout::{BELOW, DirBtree, TREE_INTERVALS};
use super::storage::hash;
use super::update::Editor;
use crate::fib::in_place::InPlace;
use crate::fib::parts::lanes;
use crate::fib::{Applied, BuildError, Fib};
use crate::memory::Limits;
use crate::net::{NextHop, Prefix, Route, RouteSlice, Routes};
use crate::random::Random;
use crate::rib::Rib;

/// Builds a structure of these routes, checks it, and compares its answers at and next to the ends of each route.
pub(in crate::engines) fn judged<F: Fib<u128>>(
    table: impl IntoIterator<Item = (u128, u8, u32)>,
    build: impl FnOnce(&dyn Routes<u128>, Limits) -> Result<F, BuildError>,
) -> F {
    let mut routes: Vec<_> = table
        .into_iter()
        .map(|(bits, len, id)| Route::new(Prefix::masked(bits, len).unwrap(), NextHop::new(id).unwrap()))
        .collect();
    routes.sort_by_key(|route| (route.prefix.addr(), route.prefix.len()));
    let table = RouteSlice::new(&routes).unwrap();
    let fib = build(&table, Limits::default()).unwrap();
    fib.check().unwrap();
    let mut keys = Vec::new();
    for route in &routes {
        let (first, last) = (route.prefix.addr(), route.prefix.last());
        keys.extend([first, last, first.wrapping_sub(1), last.wrapping_add(1)]);
    }
    keys.extend([0, u128::MAX]);
    let oracle = crate::engines::binary_trie::BinaryTrie::build(&table, Limits::default()).unwrap();
    for &key in &keys {
        assert_eq!(fib.lookup_key(key), oracle.lookup_key(key), "{key:x}");
    }
    lanes::agree(&fib, &keys);
    // Adjacent keys of a batch come from places far apart.
    let scattered: Vec<_> = (0..keys.len()).map(|at| keys[at * 7919 % keys.len()]).collect();
    lanes::agree(&fib, &scattered);
    fib
}

fn build(table: impl IntoIterator<Item = (u128, u8, u32)>) -> DirBtree<u128> {
    judged(table, DirBtree::build)
}

#[test]
fn a_table_may_lie_anywhere() {
    build([]);
    build([(0, 0, 7)]);
    build([(0, 128, 1), (u128::MAX, 128, 2)]);
    build([(0, 1, 1), (1 << 127, 1, 2), (0x8000_0001 << 96, 32, 3)]);
    build([(0, 0, 9), (0x2000 << 112, 3, 1), (0x2a00 << 112, 12, 2)]);
    build([(0xfe80 << 112, 10, 1), (0xff00 << 112, 8, 2), (0x64_ff9b << 96, 96, 3), (0x1900 << 112, 16, 4)]);
}

#[test]
fn next_hops_that_do_not_fit_a_value_are_objects_and_shared() {
    let table = |id| (0..2000u128).map(move |at| (0x2001 << 112 | at << 81, 48, id));
    assert_eq!(build(table(0x7fff)).objects.len(), 0);
    for id in [0x8000, u32::MAX] {
        let objects = build(table(id)).objects.len();
        assert!((1..20).contains(&objects), "{objects}");
    }
    // Each route has another next hop, so leaves are far apart in their objects.
    let fib = build((0..40_000u128).map(|at| (0x2001 << 112 | at << 81, 48, BELOW + at as u32)));
    assert_eq!(fib.objects.len(), 80_000);
}

#[test]
fn a_next_hop_seen_long_ago_has_an_object_within_reach_of_the_leaf() {
    // None of these replaces the first object of `far` in the cache.
    let far = BELOW + 7;
    let others = (BELOW + 1000..).filter(|&id| hash(id.into()) != hash(far.into()));
    let mut ids: Vec<u32> = others.take(40_000).collect();
    ids[600] = far;
    ids[39_990] = far;
    build(ids.into_iter().enumerate().map(|(at, id)| (0x2001 << 112 | (at as u128) << 81, 48, id)));
}

#[test]
fn a_tree_takes_as_many_intervals_as_it_has_room_for() {
    for count in TREE_INTERVALS as u128 - 4..=TREE_INTERVALS as u128 + 4 {
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
fn close_routes_are_cut_apart() {
    // All the /36s of a /16: trees of many slots.
    build((0..1u128 << 16).map(|at| (0x2001 << 112 | at << 92, 36, 1 + at as u32 % 3)));
    // All the /48s of a /36.
    let deep = build((0..1u128 << 12).map(|at| (0x2001 << 112 | at << 80, 48, 1 + at as u32 % 3)));
    assert!(deep.tables.len() < 6000, "{}", deep.tables.len());
    let nested = (0..3000u128).map(|at| (0x2001_0db8_0000 << 80 | at << 80, 48, 1 + at as u32 % 2));
    let far = (0..1 << 12).map(|at| (0x2001_1000_0000 << 80 | at << 92, 36, 3));
    build(nested.chain(far));
}

#[test]
fn crowded_places_far_apart_take_few_words_a_route() {
    // In each of 64 /14s, a /40 has slightly more /48s than a tree takes intervals.
    let count = TREE_INTERVALS as u128 + 9;
    let site = |at: u128| (0x2000 + 4 * at) << 112 | 0x1234_5600 << 80 | (at % 7) << 100;
    let places =
        (0..64).flat_map(|at| (0..count).map(move |next| (site(at) + (next << 80), 48, 1 + next as u32 % 2)));
    let fib = build(places);
    assert!(fib.tables.len() < 64 * 1600 + (1 << 14), "{}", fib.tables.len());
}

#[test]
fn longer_prefixes_are_exact() {
    let site = 0x2001_0db8_0001 << 80;
    let hosts = (0..300u128).map(|at| (site | (at * at * 0x1_0001_0001), 128, 1 + at as u32));
    let nested = [(site, 48, 1000), (site | 7 << 64, 64, 1001), (site | 0xffff << 64, 65, 1002)];
    let fib = build(nested.into_iter().chain(hosts));
    assert!(fib.objects.len() > 300 * 4);
    build([(site | ((1 << 80) - 1), 128, 1), (site + (1 << 80), 128, 2)]);
}

/// The pieces of a block may be more than a value reaches from the leaf's base: other objects of the leaf come before them.
#[test]
fn a_crowded_upper_part_leaves_its_neighbours_within_reach() {
    let site = |at: u128| (0x2001_0db8_0000 + at) << 80;
    for ranges in [2_000, 9_000, 17_000, 40_000] {
        let crowded = (0..ranges).map(|at| (site(1) | at << 64, 64, 1 + at as u32 % 2));
        let others = [0, 2, 3, 4]
            .into_iter()
            .flat_map(|neighbour| (0..60).map(move |at| (site(neighbour) | at << 64, 64, 3 + at as u32 % 5)));
        let large = (5..9).map(|at| (site(at), 48, BELOW + at as u32));
        build(crowded.chain(others).chain(large));
    }
}

#[test]
fn hosts_far_apart_have_records() {
    let fib = build((0..50_000u128).map(|at| (0x2001 << 112 | at << 82, 128, 1)));
    assert_eq!(fib.objects.len(), 50_000 * 6);
}

#[test]
fn a_limit_on_memory_is_kept() {
    let routes: Vec<_> = (0..1000u128)
        .map(|at| Route::new(Prefix::masked(at << 80, 48).unwrap(), NextHop::new(1 + at as u32).unwrap()))
        .collect();
    let table = RouteSlice::new(&routes).unwrap();
    assert!(DirBtree::build(&table, Limits::within(1 << 12)).unwrap_err().out_of_memory().is_some());
}

#[test]
fn values_alone_are_told_apart() {
    build((0..4096u128).map(|at| ((0x2000 + at) << 112, 16, 1 + at as u32)));
}

#[test]
fn changes_within_a_slot_rewrite_one_tree() {
    let site = |at: u128| 0x2001 << 112 | at << 81;
    let fib = build((0..20_000).map(|at| (site(at), 48, 1 + at as u32 % 7)));
    for at in 0..20_000 {
        let lines = fib.lines_of_change(Prefix::masked(site(at), 48).unwrap()).unwrap();
        assert!((2..=18).contains(&lines), "{lines}");
        assert_eq!(fib.lines_of_change(Prefix::masked(site(at) | 7, 128).unwrap()), Some(lines + 2));
    }
    assert_eq!(fib.lines_of_change(Prefix::masked(0, 0).unwrap()), None);
    assert_eq!(fib.lines_of_change(Prefix::masked(0x2001 << 112, 16).unwrap()), None);
}

impl Random {
    /// Returns a route of a table like those of the Internet, and some that are not.
    fn route(&mut self) -> Route<u128> {
        let near = [0x2001 << 112, 0x2a00 << 112, 0x2600 << 112, 0x2804 << 112];
        let place = near[self.below(4) as usize] | u128::from(self.below(1 << 9)) << 103;
        let inside = u128::from(self.below(1 << 11)) << 80 | u128::from(self.below(4)) << 94;
        let (bits, len) = match self.below(100) {
            0..60 => (place | inside, 48),
            60..75 => (place | inside, 32 + self.below(16) as u8),
            75..85 => (place, 29 + self.below(8) as u8),
            85..93 => (place | inside | u128::from(self.below(99)), 49 + self.below(80) as u8),
            93..95 => (place | inside | u128::from(self.below(9)), 128),
            95 => (place, self.below(30) as u8),
            _ => (u128::from(self.below(1 << 30)) << 98 | place >> self.below(60), self.below(129) as u8),
        };
        let ids = if self.below(20) == 0 { 1 << 31 } else { 9 };
        Route::new(Prefix::masked(bits, len).unwrap(), NextHop::new(1 + self.below(ids) as u32).unwrap())
    }
}

#[test]
fn changes_in_place_answer_like_a_fresh_build() {
    let mut random = Random(7);
    let mut rib = Rib::new(Limits::default());
    for _ in 0..20_000 {
        rib.insert(random.route()).unwrap();
    }
    let mut editor = Editor::build(&rib, Limits::default()).unwrap();
    editor.check(&[]).unwrap();
    let mut retired = Vec::new();
    for round in 0..60 {
        let mut prefixes = Vec::new();
        let count = [1, 5, 64, 400][round % 4];
        while prefixes.len() < count {
            let route = random.route();
            if random.below(2) == 0 {
                rib.insert(route).unwrap();
                prefixes.push(route.prefix);
            } else if let Some(known) = rib.lookup_prefix(route.prefix.addr()) {
                rib.remove(known.prefix);
                prefixes.push(known.prefix);
            }
        }
        prefixes.sort_unstable();
        assert_eq!(editor.prepare(&prefixes, &rib, false).unwrap(), Applied::InPlace);
        if round % 5 == 1 {
            editor.abandon();
            editor.check(&retired).unwrap();
            assert_eq!(editor.prepare(&prefixes, &rib, false).unwrap(), Applied::InPlace);
        }
        let old = editor.reading();
        if round % 3 == 0 {
            editor.make_shadow().unwrap();
            editor.publish_shadow(&mut retired);
        } else {
            editor.publish(&mut retired);
        }
        drop(old);
        editor.check(&retired).unwrap();
        if round % 2 == 0 {
            retired.drain(..).for_each(|unit| editor.free(unit));
        }
        if editor.tidy(16).is_ok() {
            editor.publish(&mut retired);
            editor.check(&retired).unwrap();
        }
        let fib = editor.reading();
        let mut keys = Vec::new();
        for &prefix in &prefixes {
            let (first, last) = (prefix.addr(), prefix.last());
            keys.extend([first, last, first.wrapping_sub(1), last.wrapping_add(1)]);
        }
        keys.extend(rib.iter().step_by(1 + round % 7).map(|route| route.prefix.last().wrapping_add(1)));
        for &key in &keys {
            assert_eq!(fib.lookup_key(key), rib.lookup(key), "{key:x}");
        }
    }
}

#[test]
fn a_tree_of_two_tables_is_not_changed_for_one_of_them() {
    // Between two crowded places, at whose middle a table ends, a long interval is in one tree, which slots of both tables lead to.
    for (depth, crowded) in
        [20, 24, 28, 32, 34, 36].into_iter().flat_map(|depth| [40, 90, 170, 300].map(|n| (depth, n)))
    {
        let (middle, half) = (0x2001u128 << 112 | 1 << (128 - depth), 1u128 << (127 - depth));
        let mut rib = Rib::new(Limits::default());
        let insert = |rib: &mut Rib<u128>, bits, len, id| {
            let prefix = Prefix::masked(bits, len).unwrap();
            rib.insert(Route::new(prefix, NextHop::new(id).unwrap())).unwrap();
            prefix
        };
        insert(&mut rib, 0x2000 << 112, 3, 7);
        for at in 0..crowded {
            insert(&mut rib, middle - half - (1 << 80) - (at << 81), 48, 1 + at as u32 % 5);
            insert(&mut rib, middle + half + (at << 81), 48, 1 + at as u32 % 5);
        }
        let (mut editor, mut retired) = (Editor::build(&rib, Limits::default()).unwrap(), Vec::new());
        for (id, bits) in [(8, middle - half), (9, middle)] {
            let prefix = insert(&mut rib, bits, depth as u8 + 1, id);
            assert_eq!(editor.prepare(&[prefix], &rib, false).unwrap(), Applied::InPlace);
            editor.publish(&mut retired);
            editor.check(&retired).unwrap();
            let fib = editor.reading();
            for key in rib.iter().flat_map(|route| [route.prefix.addr(), route.prefix.last().wrapping_add(1)])
            {
                assert_eq!(fib.lookup_key(key), rib.lookup(key), "{key:x}, {depth}, {crowded}");
            }
        }
    }
}

/// Single changes of close prefixes with few next hops. Most begin or end inside intervals. Leaves become two, and trees
/// are replanted when they have too many.
#[test]
fn changes_inside_intervals_answer_like_the_routes() {
    let mut random = Random(5);
    let mut rib = Rib::new(Limits::default());
    let place = |random: &mut Random| {
        let len = [48, 48, 47, 46, 44, 40][random.below(6) as usize];
        let site = u128::from(random.below(1 << 10)) << 80 | u128::from(random.below(3)) << 100;
        Prefix::masked(0x2001 << 112 | site, len).unwrap()
    };
    let hop = |random: &mut Random| NextHop::new(1 + random.below(2) as u32).unwrap();
    for _ in 0..900 {
        let route = Route::new(place(&mut random), hop(&mut random));
        rib.insert(route).unwrap();
    }
    // In one of the three places a tree has an object.
    rib.insert(Route::new(Prefix::masked(0x2001 << 112 | 2 << 100 | 5, 128).unwrap(), hop(&mut random)))
        .unwrap();
    let mut editor = Editor::build(&rib, Limits::default()).unwrap();
    let mut retired = Vec::new();
    for round in 0..3_000 {
        let mut prefixes: Vec<_> = (0..1 + round % 17 / 15).map(|_| place(&mut random)).collect();
        for &prefix in &prefixes {
            match random.below(3) {
                0 => drop(rib.remove(prefix)),
                _ => drop(rib.insert(Route::new(prefix, hop(&mut random))).unwrap()),
            }
        }
        prefixes.sort_unstable();
        assert_eq!(editor.prepare(&prefixes, &rib, round % 5 == 0).unwrap(), Applied::InPlace);
        if round % 7 == 1 {
            editor.abandon();
            editor.check(&retired).unwrap();
            assert_eq!(editor.prepare(&prefixes, &rib, round % 5 == 0).unwrap(), Applied::InPlace);
        }
        if round % 5 == 0 {
            editor.make_shadow().unwrap();
            editor.publish_shadow(&mut retired);
        } else {
            editor.publish(&mut retired);
        }
        editor.check(&retired).unwrap();
        retired.drain(..).for_each(|unit| editor.free(unit));
        let fib = editor.reading();
        for prefix in prefixes.into_iter().chain((0..20).map(|_| place(&mut random))) {
            let (first, last) = (prefix.addr(), prefix.last());
            for key in [first, last, first - 1, last + 1] {
                assert_eq!(fib.lookup_key(key), rib.lookup(key), "{key:x}, round {round}");
            }
        }
    }
}

crate::fib::in_place_tests::stops_at_every_store!(|routes, limits| Ok(Box::new(Editor::build(
    routes, limits
)?)));
