//! Next hops at the edges of what entries and leaves hold, and what a host route costs.

use super::Poptrie;
use super::layout::direct_bits;
use super::update;
use fibula::fib::{Applied, Fib};
use fibula::net::{Key, NextHop, Prefix, Route, RouteSlice};
use fibula::rib::Rib;
use fibula::unstable::in_place::{InPlace, TIDY};
use fibula::unstable::memory::Limits;
use fibula::unstable::testing::Random;

fn build<K: Key>(table: &[(u128, u8, u32)]) -> Poptrie<K> {
    let mut routes: Vec<_> = table
        .iter()
        .map(|&(bits, len, id)| {
            Route::new(Prefix::masked(K::from_bits(bits), len).unwrap(), NextHop::new(id).unwrap())
        })
        .collect();
    routes.sort_by_key(|route| (route.prefix.addr(), route.prefix.len()));
    let trie = Poptrie::build(&RouteSlice::new(&routes).unwrap(), Limits::default()).unwrap();
    trie.check().unwrap();
    trie
}

#[test]
fn next_hops_that_no_entry_or_narrow_leaf_can_hold_are_answered() {
    for id in [u32::from(u16::MAX), 1 << 16, (1 << 31) - 1, 1 << 31, u32::MAX] {
        let trie = build::<u32>(&[(0, 0, id), (0x0a00_0000, 8, 1), (0x0a01_0203, 32, id)]);
        for (key, expected) in
            [(0, id), (0x0a01_0202, 1), (0x0a01_0203, id), (0x0a01_0204, 1), (u32::MAX, id)]
        {
            assert_eq!(trie.lookup_key(key), NextHop::new(expected), "{key:x} {id}");
        }
    }
}

#[test]
fn a_host_route_takes_a_node_a_level() {
    assert_eq!(build::<u32>(&[(0x0a01_0203, 32, 1)]).nodes.len(), 3 * 3);
    assert_eq!(build::<u128>(&[(0x2001 << 112 | 7, 128, 1)]).nodes.len(), 19 * 3);
}

/// A stream of changes of one prefix each, beside a build of the same routes now and then.
fn churn<K: Key>() {
    let mut random = Random(5);
    let mut below = |end| random.below(end);
    let mut rib = Rib::<K>::default();
    let mut editor = update::build(&rib, Limits::default()).unwrap();
    let mut retired = Vec::new();
    for round in 0..24_000 {
        let bits = u128::from(below(1 << 8)) << (K::BITS - 12) | u128::from(below(1 << 14)) << (K::BITS - 26);
        let prefix = Prefix::masked(K::from_bits(bits), 18 + below(9) as u8).unwrap();
        // It grows, stays as large for a while, and shrinks again, after which units need a while to move.
        let most = if round < 18_000 { 5_000 } else { 500 };
        let prefixes = if rib.len() < most || below(2) == 0 && round < 18_000 {
            rib.insert(Route::new(prefix, NextHop::new(1 + below(30) as u32).unwrap())).unwrap();
            vec![prefix]
        } else {
            let near = Prefix::masked(K::from_bits(bits), 10).unwrap();
            let known: Vec<_> = rib.subnets(near).take(3).map(|route| route.prefix).collect();
            known.iter().for_each(|&prefix| assert!(rib.remove(prefix).is_some()));
            known
        };
        assert_eq!(editor.prepare(&prefixes, &rib, false).unwrap(), Applied::InPlace);
        editor.publish(&mut retired);
        retired.drain(..).for_each(|unit| editor.free(unit));
        editor.tidy(TIDY).unwrap();
        editor.publish(&mut retired);
        retired.drain(..).for_each(|unit| editor.free(unit));
        if round % 2_000 == 1_999 && !(18_000..23_000).contains(&round) {
            editor.check(&[]).unwrap();
            let fresh = Poptrie::build(&rib, Limits::default()).unwrap().memory();
            let [now, fresh] = [editor.reading().memory(), fresh]
                .map(|memory| memory.lookup_bytes - (4 << direct_bits(K::BITS)));
            assert!(4 * now <= 5 * fresh, "round {round}, {} routes: {now} bytes beside {fresh}", rib.len());
        }
    }
    assert!((400..600).contains(&rib.len()), "{}", rib.len());
}

#[test]
fn changes_leave_the_arrays_about_as_long_as_a_fresh_build_makes_them() {
    churn::<u32>();
    churn::<u128>();
}

#[test]
fn a_next_hop_that_narrow_leaves_cannot_hold_has_the_trie_built_anew() {
    let mut rib = Rib::<u32>::default();
    let mut change = |editor: &mut dyn InPlace<u32>, prefix: Prefix<u32>, id: u32| {
        rib.insert(Route::new(prefix, NextHop::new(id).unwrap())).unwrap();
        let applied = editor.prepare(&[prefix], &rib, false).unwrap();
        editor.abandon();
        editor.check(&[]).unwrap();
        (applied, update::build(&rib, Limits::default()).unwrap())
    };
    let editor = &mut *update::build(&Rib::default(), Limits::default()).unwrap();
    // An entry has room for 31 bits, and a leaf for 16 or 32.
    let (applied, mut editor) = change(editor, "10.0.0.0/18".parse().unwrap(), 1 << 16);
    assert_eq!(applied, Applied::InPlace);
    for (id, len) in [(1 << 31, 18), (u32::MAX, 24), (1, 18)] {
        let (applied, next) = change(&mut *editor, Prefix::masked(10 << 24, len).unwrap(), id);
        assert_eq!(applied, Applied::InPlace);
        editor = next;
    }
    let divided = Prefix::masked(11 << 24, 24).unwrap();
    let mut editor = update::build(&Rib::<u32>::default(), Limits::default()).unwrap();
    let (applied, _) = change(&mut *editor, divided, 1 << 16);
    assert_eq!(applied, Applied::NeedsRebuild("a next hop of more than 16 bits"));
}

fibula::unstable::testing::stops_at_every_store!(update::build);

/// Changes, several in a call, of few prefixes that lie in one another over four levels.
fn nested<K: Key>() {
    let at = |random: u64, ends: [u8; 4]| {
        let parts = ends
            .iter()
            .enumerate()
            .map(|(level, end)| u128::from(random >> (2 * level) & 3) << (K::BITS - end));
        K::from_bits(parts.sum())
    };
    let keys: Vec<K> = (0..1 << 8).map(|number| at(number, [18, 24, 30, 32])).collect();
    let mut random = Random(7);
    let mut rib = Rib::<K>::default();
    let mut editor = update::build(&rib, Limits::default()).unwrap();
    let mut retired = Vec::new();
    for round in 0..4_000 {
        let mut prefixes: Vec<Prefix<K>> = (0..[1, 1, 2, 9][round % 4])
            .map(|_| {
                Prefix::masked(at(random.below(1 << 8), [18, 24, 30, 32]), 17 + random.below(16) as u8)
                    .unwrap()
            })
            .collect();
        for &prefix in &prefixes {
            if random.below(3) == 0 {
                let _ = rib.remove(prefix);
            } else {
                rib.insert(Route::new(prefix, NextHop::new(1 + random.below(5) as u32).unwrap())).unwrap();
            }
        }
        prefixes.sort_unstable();
        prefixes.dedup();
        assert_eq!(editor.prepare(&prefixes, &rib, false).unwrap(), Applied::InPlace);
        if random.below(3) == 0 {
            editor.make_shadow().unwrap();
            editor.publish_shadow(&mut retired);
        } else {
            editor.publish(&mut retired);
        }
        retired.drain(..).for_each(|unit| editor.free(unit));
        editor.check(&[]).unwrap();
        let fib = editor.reading();
        for &key in &keys {
            let expected = rib.lookup_prefix(key).map(|route| route.next_hop);
            assert_eq!(fib.lookup_key(key), expected, "round {round}, {}", key.address());
        }
    }
}

#[test]
fn nested_prefixes_that_change_together_answer_like_the_routes() {
    nested::<u32>();
    nested::<u128>();
}
