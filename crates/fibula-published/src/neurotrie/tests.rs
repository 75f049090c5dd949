//! The choice of strides against every choice there is, and the variants.

use super::build::Choice;
use super::layout::{LEAF, Neurotrie, node, node_of};
use super::strides::{Span, best, price};
use super::{choice, variants};
use fibula::fib::Fib;
use fibula::net::{Key, NextHop, Prefix, Route, Toy};
use fibula::rib::Rib;
use fibula::unstable::memory::Limits;
use fibula::unstable::testing::Random;

type K = Toy<8>;

fn table<K: Key>(routes: u64, random: &mut Random) -> Rib<K> {
    let mut rib = Rib::default();
    for _ in 0..routes {
        let bits = u128::from(random.below(1 << 30)) << (u32::from(K::BITS).max(31) - 31)
            | u128::from(random.below(8));
        let prefix = Prefix::masked(K::from_bits(bits), random.below(u64::from(K::BITS) + 1) as u8).unwrap();
        rib.insert(Route::new(prefix, NextHop::new(1 + random.below(9) as u32).unwrap())).unwrap();
    }
    rib
}

/// The ranges after the first one, its code, and the routes.
type Lists = (Vec<(K, u32)>, u32, Vec<(K, u8)>);

fn lists(rib: &Rib<K>) -> Lists {
    let mut answers = (0..=255u16).map(|at| {
        let key = K::from_bits(at.into());
        (key, NextHop::word(rib.lookup(key)))
    });
    let first = answers.next().unwrap().1;
    let mut last = first;
    let ranges = answers.filter(|&(_, code)| core::mem::replace(&mut last, code) != code).collect();
    (ranges, first, rib.iter().map(|route| (route.prefix.addr(), route.prefix.len())).collect())
}

/// Entries and accesses of all tries of a span.
fn every(span: &Span<'_, K>) -> Vec<(u32, f64)> {
    fn below(span: &Span<'_, K>, bits: u8) -> Vec<(u32, f64)> {
        if bits == 0 || !span.is_divided() {
            return every(span);
        }
        let [left, right] = span.halves().map(|half| below(&half, bits - 1));
        left.iter().flat_map(|one| right.iter().map(|two| (one.0 + two.0, one.1 + two.1))).collect()
    }
    if !span.is_divided() {
        return vec![(0, 0.0)];
    }
    let keys = span.from_above + span.routes.len() as f64;
    let nodes = (1..=8 - span.len).flat_map(|stride| {
        below(span, stride)
            .into_iter()
            .map(move |(entries, accesses)| (entries + (1 << stride), accesses + keys))
    });
    // Only those that none beats in both.
    let mut all: Vec<_> = nodes.collect();
    all.sort_by(|one, two| one.0.cmp(&two.0).then(one.1.total_cmp(&two.1)));
    let mut least = f64::INFINITY;
    all.retain(|&(_, accesses)| {
        let is_better = accesses < least - 1e-9;
        least = least.min(accesses);
        is_better
    });
    all
}

#[test]
fn no_trie_has_a_lesser_sum_or_within_its_entries_fewer_accesses() {
    let mut random = Random(1);
    let mut strides = std::collections::BTreeSet::new();
    for round in 0..60 {
        let rib = table::<K>(1 + round % 12, &mut random);
        let (ranges, code, routes) = lists(&rib);
        let span = Span { first: K::ZERO, len: 0, ranges: &ranges, code, routes: &routes, from_above: 0.0 };
        let all = every(&span);
        for price in [0.0, 0.01, 0.1, 0.5, 1.0, 4.0, 100.0] {
            let sum = |entries: f64, accesses: f64| accesses + price * entries;
            let least = all.iter().map(|&(entries, accesses)| sum(entries.into(), accesses));
            let least = least.min_by(f64::total_cmp).unwrap();
            let found = best(&span, price);
            assert!((sum(found.entries(), found.accesses()) - least).abs() < 1e-6, "{round} {price}");
            strides.insert(found.stride);
        }
        for budget in [4.0, 16.0, 40.0, 300.0] {
            let found = best(&span, price(&span, budget));
            let smallest = all.iter().map(|one| f64::from(one.0)).min_by(f64::total_cmp).unwrap();
            assert!(found.entries() <= budget.max(smallest), "{round} {budget}");
            let within = all.iter().filter(|one| f64::from(one.0) <= found.entries()).map(|one| one.1);
            let fewest = within.min_by(f64::total_cmp).unwrap();
            assert!(found.accesses() <= fewest + 1e-6, "{round} {budget}");
        }
    }
    assert!(strides.len() > 5, "{strides:?}");
}

/// Keys of every route, at every address of it, weighted alike.
#[test]
fn accesses_are_those_of_the_routes_keys() {
    let mut random = Random(2);
    for round in 0..40 {
        let rib = table::<K>(1 + round % 9, &mut random);
        let (ranges, code, routes) = lists(&rib);
        let span = Span { first: K::ZERO, len: 0, ranges: &ranges, code, routes: &routes, from_above: 0.0 };
        let Choice::Best { a_route, more } = choice::<K>() else { panic!("the choice is not the best one") };
        let chosen = best(&span, price(&span, f64::from(more) + f64::from(a_route) * rib.len() as f64));
        let trie = Neurotrie::<K>::build(&rib, choice::<K>(), Limits::default()).unwrap();
        assert_eq!(trie.entries.len() as f64, chosen.entries());
        let steps = |key: K| {
            let (mut entry, mut offset, mut steps) = (trie.root, 0, 0.0);
            while entry & LEAF == 0 {
                let (first, stride) = node_of(entry);
                entry = trie.entries[first + key.window(offset, stride) as usize];
                (offset, steps) = (offset + stride, steps + 1.0);
            }
            steps
        };
        let mut accesses = 0.0;
        for route in rib.iter() {
            let (first, last) = (route.prefix.addr().to_bits(), route.prefix.last().to_bits());
            let sum: f64 = (first..=last).map(|bits| steps(K::from_bits(bits))).sum();
            accesses += sum / (last - first + 1) as f64;
        }
        assert!((accesses - chosen.accesses()).abs() < 1e-6, "{accesses} {}", chosen.accesses());
    }
}

#[test]
fn an_entry_has_room_for_place_and_stride() {
    for (first, stride) in [(0, 1), (2, 16), ((1 << 28) - 2, 7)] {
        assert_eq!(node_of(node(first, stride)), (first, stride));
        assert_eq!(node(first, stride) & LEAF, 0);
    }
}

#[test]
fn every_choice_gives_the_same_answers() {
    fn compare<K: Key>() {
        let mut random = Random(3);
        let rib = table::<K>(1_000, &mut random);
        for variant in variants::<K>() {
            let trie = variant.build(&rib, Limits::default()).unwrap();
            trie.check().unwrap();
            for _ in 0..5_000 {
                let bits = u128::from(random.below(1 << 30)) << (K::BITS - 31) | u128::from(random.below(8));
                let key = K::from_bits(bits);
                assert_eq!(trie.lookup_key(key), rib.lookup(key), "{}", variant.name);
            }
        }
    }
    compare::<u32>();
    compare::<u128>();
}

/// Ids with the bit that marks a leaf have codes.
#[test]
fn next_hops_of_32_bits_are_answered() {
    let mut rib = Rib::<u32>::default();
    for (len, id) in [(8, u32::MAX), (16, LEAF), (24, 7)] {
        rib.insert(Route::new(Prefix::masked(0x0a01_0203, len).unwrap(), NextHop::new(id).unwrap())).unwrap();
    }
    let trie = Neurotrie::build(&rib, choice::<u32>(), Limits::default()).unwrap();
    trie.check().unwrap();
    for key in [0x0a00_0000, 0x0a01_0000, 0x0a01_0203, 0x0b00_0000] {
        assert_eq!(trie.lookup_key(key), rib.lookup(key));
    }
}
