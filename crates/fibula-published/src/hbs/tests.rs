//! The tree: its best form, leaves that are added to it, and when it is turned.

use super::layout::Hbs;
use super::tree::{LENGTHS, MARKED, Tree};
use fibula::fib::{Applied, Fib, Updatable};
use fibula::net::{Change, Key, NextHop, Prefix, Route, RouteSlice};
use fibula::rib::Rib;
use fibula::unstable::memory::{Budget, Limits};
use fibula::unstable::testing::Random;

fn route<K: Key>(bits: u128, len: u8, id: u32) -> Route<K> {
    Route::new(Prefix::masked(K::from_bits(bits), len).unwrap(), NextHop::new(id).unwrap())
}

fn shaped(weights: &[(u8, usize)]) -> Tree {
    let mut budget = Budget::default();
    let mut tree = Tree::new(128, &mut budget).unwrap();
    tree.shape(weights, &mut budget).unwrap();
    assert!(tree.is_in_order());
    assert_eq!(budget.used_bytes(), 128 * 128);
    tree
}

/// All trees of few lengths.
fn least_steps(weights: &[(u8, usize)]) -> usize {
    let all: usize = weights.iter().map(|&(_, routes)| routes).sum();
    let roots = 0..weights.len();
    all + roots.map(|at| least_steps(&weights[..at]) + least_steps(&weights[at + 1..])).min().unwrap_or(0)
}

#[test]
fn no_tree_has_fewer_steps() {
    let mut random = Random(1);
    for count in 0..9 {
        let weights: Vec<_> = (0..count).map(|len| (len + 1, 1 + random.below(100) as usize)).collect();
        assert_eq!(shaped(&weights).steps(&weights), least_steps(&weights));
    }
}

#[test]
fn a_marker_has_a_bit_for_each_length() {
    // All weight is on the first length, which would have all others to the right.
    let weights: Vec<_> = (1..=LENGTHS as u8).map(|len| (len, if len == 1 { 1 << 20 } else { 1 })).collect();
    let tree = shaped(&weights);
    assert_eq!((0..LENGTHS).map(|rank| tree.to_the_right(rank) - rank).max(), Some(MARKED));
    let routes: Vec<_> = (1..=LENGTHS as u8).map(|len| route::<u128>(u128::MAX, len, len.into())).collect();
    let hbs = Hbs::build(&RouteSlice::new(&routes).unwrap(), Limits::default()).unwrap();
    hbs.check().unwrap();
    assert_eq!(hbs.lookup_key(u128::MAX - 1), NextHop::new(127));
}

#[test]
fn leaves_are_added_wherever_they_belong() {
    let mut random = Random(2);
    for _ in 0..50 {
        let mut tree = shaped(&[]);
        let mut refused = 0;
        for _ in 0..300 {
            let len = 1 + random.below(128) as u8;
            let (there, depths) = (tree.rank(len).is_ok(), tree.lens().to_vec());
            match tree.add(len) {
                Some(rank) => assert_eq!((tree.lens()[rank], there), (len, false)),
                None => {
                    assert_eq!(tree.lens(), depths);
                    refused += usize::from(!there);
                }
            }
            assert!(tree.is_in_order());
        }
        assert!(tree.len() > 60 && refused < 300, "{} lengths, {refused} refused", tree.len());
    }
}

/// The ways to the lengths that are to the right of a marker pass it.
#[test]
fn what_is_marked_is_to_the_right() {
    let weights: Vec<_> = [3, 9, 16, 17, 24, 30, 31, 32].map(|len| (len, usize::from(len))).to_vec();
    let tree = shaped(&weights);
    for rank in 0..8 {
        let marked: Vec<_> = tree.marked(rank).collect();
        let expected: Vec<_> = (0..rank).filter(|&at| tree.to_the_right(at) >= rank).collect();
        let mut sorted = marked.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, expected, "{marked:?}");
    }
}

/// A table of short routes becomes one of long ones: the tree follows, and tables that need not change stay.
#[test]
fn the_tree_turns_as_lengths_gain_and_lose_routes() {
    let mut rib = Rib::<u128>::default();
    for at in 0..200u128 {
        rib.insert(route(at << 100, 28, 1)).unwrap();
        rib.insert(route(at << 96, 32, 2)).unwrap();
    }
    let mut hbs = Hbs::build(&rib, Limits::default()).unwrap();
    let mut turned = 0;
    let mut before = hbs.tree.part(0, hbs.tree.len() - 1);
    for at in 0..4_000u128 {
        let change = Change::Insert(route(0x2001 << 112 | at << 70, 48 + (at % 9) as u8, 3 + at as u32 % 7));
        rib.apply(&[change]).unwrap();
        assert_eq!(hbs.apply(&[change], &rib), Ok(Applied::InPlace));
        let root = hbs.tree.part(0, hbs.tree.len() - 1);
        turned += usize::from(hbs.tree.lens()[root] != before as u8);
        before = hbs.tree.lens()[root].into();
        if at % 500 == 0 {
            hbs.check().unwrap();
        }
    }
    hbs.check().unwrap();
    assert!(turned > 1, "{turned}");
    let (weights, count) = super::build::of_lengths(core::array::from_fn(|len| {
        hbs.tree.rank(len as u8).map_or(0, |rank| hbs.tables[rank].routes)
    }));
    let best = shaped(&weights[..count]);
    assert!(hbs.tree.steps(&weights[..count]) * 8 <= best.steps(&weights[..count]) * 9 + 8 * 600);
    // Lengths without routes leave.
    let short: Vec<_> = rib.iter().map(|route| route.prefix).filter(|prefix| prefix.len() > 40).collect();
    for prefix in short {
        rib.remove(prefix).unwrap();
        assert_eq!(hbs.apply(&[Change::Remove(prefix)], &rib), Ok(Applied::InPlace));
    }
    hbs.check().unwrap();
    assert_eq!(hbs.tree.lens().iter().filter(|&&len| len <= 40).count(), 2);
    for key in [7 << 100 | 1, 7 << 100 | 1 << 99, 3 << 96, 200 << 100] {
        assert_eq!(hbs.lookup_key(key), rib.lookup(key));
    }
}

#[test]
fn a_length_without_a_bit_has_the_tables_built_anew() {
    let mut rib = Rib::<u128>::default();
    let mut hbs = Hbs::build(&rib, Limits::default()).unwrap();
    let mut outcomes = Vec::new();
    for len in 1..=128 {
        let change = Change::Insert(route(u128::MAX, len, len.into()));
        rib.apply(&[change]).unwrap();
        let applied = hbs.apply(&[change], &rib).unwrap();
        outcomes.push(applied);
        if applied != Applied::InPlace {
            hbs.check().unwrap();
            hbs = Hbs::build(&rib, Limits::default()).unwrap();
        }
        hbs.check().unwrap();
        assert_eq!(hbs.lookup_key(u128::MAX), NextHop::new(len.into()));
    }
    assert!(outcomes.iter().filter(|&&applied| applied == Applied::InPlace).count() > 100);
}
