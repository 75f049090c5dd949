//! Every table of narrow keys, against answers and least numbers of routes that are found by trying everything.

use core::ops::ControlFlow;

use super::*;
use crate::net::{Change, NextHop, Route, Toy};
use crate::random::Random;
use crate::rib::RibError;

fn answers<K: Key>(rib: &Rib<K>) -> Vec<Option<NextHop>> {
    (0..1_u128 << K::BITS)
        .map(|bits| rib.lookup_prefix(K::from_bits(bits)).map(|route| route.next_hop))
        .collect()
}

/// Returns the fewest routes in a block with these answers, where `inherited` is what it gets from above.
fn least(answers: &[Option<NextHop>], inherited: Option<NextHop>) -> usize {
    let mut hops: Vec<_> = answers.iter().copied().flatten().collect();
    hops.sort_unstable();
    hops.dedup();
    let below = |word: Option<NextHop>| match answers {
        &[answer] => {
            if answer == word {
                0
            } else {
                1000
            }
        }
        _ => {
            let (left, right) = answers.split_at(answers.len() / 2);
            least(left, word) + least(right, word)
        }
    };
    let with_route = hops.iter().map(|&hop| 1 + below(Some(hop))).min().unwrap_or(1000);
    with_route.min(below(inherited))
}

fn table<K: Key>(answers: &[Option<NextHop>]) -> Rib<K> {
    let mut rib = Rib::default();
    for (bits, next_hop) in answers.iter().enumerate() {
        if let Some(next_hop) = *next_hop {
            rib.insert(Route::new(Prefix::host(K::from_bits(bits as u128)), next_hop)).unwrap();
        }
    }
    rib
}

#[test]
fn every_table_of_a_space_is_as_small_as_can_be() {
    for number in 0..4_u32.pow(8) {
        let wanted: Vec<_> = (0..8).map(|at| NextHop::new(number / 4_u32.pow(at) % 4)).collect();
        let fewest = minimal(&table::<Toy<3>>(&wanted), Limits::default()).unwrap();
        assert_eq!(answers(&fewest), wanted);
        assert_eq!(fewest.len(), least(&wanted, None), "{wanted:?}");
    }
}

fn random_change<K: Key>(random: &mut Random) -> Change<K> {
    let len = random.below(u64::from(K::BITS) + 1).max(random.below(u64::from(K::BITS) + 1)) as u8;
    let prefix = Prefix::masked(K::from_bits(random.below(1 << K::BITS).into()), len).unwrap();
    match NextHop::new(random.below(4) as u32) {
        None => Change::Remove(prefix),
        Some(next_hop) => Change::Insert(Route::new(prefix, next_hop)),
    }
}

fn follows<K: Key>(rounds: usize) {
    let mut random = Random(K::BITS.into());
    let mut rib = Rib::<K>::default();
    let mut aggregated = Aggregated::new(&rib, Limits::default()).unwrap();
    let mut saved = 0;
    for round in 0..rounds {
        if round % 200 == 199 {
            aggregated.rebuild(&rib).unwrap();
            assert_eq!(aggregated.rib().len(), minimal(&rib, Limits::default()).unwrap().len());
        }
        let before: Vec<_> = aggregated.rib().iter().collect();
        let changes: Vec<Change<K>> =
            (0..[1, 1, 2, 7][round % 4]).map(|_| random_change(&mut random)).collect();
        let mut log = Vec::new();
        rib.apply_logged(&changes, &mut log).unwrap();
        let mut prefixes: Vec<_> = changes.iter().map(Change::prefix).collect();
        prefixes.sort_unstable();
        aggregated.follow(&prefixes, &rib).unwrap();
        aggregated.check(&rib).unwrap();
        assert_eq!(answers(aggregated.rib()), answers(&rib));
        if random.below(4) == 0 {
            aggregated.undo();
            rib.undo(&mut log);
            assert_eq!(aggregated.rib().iter().collect::<Vec<_>>(), before);
            aggregated.check(&rib).unwrap();
        }
        saved += i64::try_from(rib.len()).unwrap() - i64::try_from(aggregated.rib().len()).unwrap();
    }
    assert!(saved > 0, "{saved}");
}

#[test]
fn an_aggregated_table_follows_changes_and_takes_them_back() {
    follows::<Toy<3>>(2000);
    follows::<Toy<6>>(2000);
    follows::<Toy<10>>(500);
}

#[test]
fn halves_that_come_to_have_one_answer_are_one_route() {
    let mut rib = table::<Toy<3>>(&[1, 2, 1, 1, 1, 1, 1, 1].map(NextHop::new));
    let mut aggregated = Aggregated::new(&rib, Limits::default()).unwrap();
    let odd = Prefix::host(Toy::from_bits(1));
    rib.insert(Route::new(odd, NextHop::new(1).unwrap())).unwrap();
    aggregated.follow(&[odd], &rib).unwrap();
    let routes: Vec<_> = aggregated.rib().iter().collect();
    assert_eq!(routes, [Route::new(Prefix::ALL, NextHop::new(1).unwrap())]);
}

#[test]
fn a_table_is_loose_when_it_could_be_smaller_and_minimal_when_it_is_rebuilt() {
    // Pairs of addresses that come to have one answer after they had two, each time below another route.
    let hops = [1, 2].map(|id| NextHop::new(id).unwrap());
    let mut rib = Rib::<u32>::default();
    let mut aggregated = Aggregated::new(&rib, Limits::default()).unwrap();
    assert!(!aggregated.is_loose(0));
    for at in 0..200_u32 {
        let prefix = Prefix::masked(at << 8, 24).unwrap();
        rib.insert(Route::new(prefix, hops[at as usize % 2])).unwrap();
        aggregated.follow(&[prefix], &rib).unwrap();
    }
    assert!(aggregated.is_loose(rib.len()));
    aggregated.rebuild(&rib).unwrap();
    aggregated.check(&rib).unwrap();
    assert!(!aggregated.is_loose(rib.len()) && aggregated.rib().len() < 110, "{}", aggregated.rib().len());
}

#[test]
fn memory_refused_leaves_an_aggregated_table_as_it_was() {
    let limits = Limits::within(64 << 10);
    let mut random = Random(1);
    let mut rib = Rib::<u32>::default();
    let mut aggregated = Aggregated::new(&rib, limits).unwrap();
    let mut refused = 0;
    for _ in 0..2000 {
        let prefix = Prefix::masked((random.below(1 << 31) as u32) << 1, 24).unwrap();
        let route = Route::new(prefix, NextHop::new(1 + random.below(9) as u32).unwrap());
        let was = rib.insert(route).unwrap();
        if aggregated.follow(&[prefix], &rib).is_err() {
            refused += 1;
            assert_eq!(was, None);
            rib.remove(prefix);
            aggregated.check(&rib).unwrap();
        }
    }
    assert!(refused > 0 && !aggregated.rib().is_empty());
    let error = Aggregated::new(&rib, Limits::within(100)).unwrap_err();
    assert_eq!(error.limit_bytes, Some(100));
}

#[test]
fn differences_are_all_runs_of_other_answers() {
    let mut random = Random(7);
    for _ in 0..500 {
        let [a, b] = [(); 2].map(|()| {
            let changes: Vec<Change<Toy<6>>> =
                (0..random.below(20)).map(|_| random_change(&mut random)).collect();
            let mut rib = Rib::default();
            rib.apply(&changes).map_err(|error: RibError| error).unwrap();
            rib
        });
        let mut left = answers(&a).into_iter().zip(answers(&b)).collect::<Vec<_>>();
        let unequal = left.iter().filter(|(a, b)| a != b).count();
        let mut found = 0;
        let ended = differences(
            [&a, &b],
            |[a, b]| a == b,
            |difference| {
                let (first, last) = difference.addresses;
                for bits in first.to_bits()..=last.to_bits() {
                    let [a, b] = difference.answers;
                    assert_eq!(left[bits as usize], (a, b));
                    assert_ne!(a, b);
                    left[bits as usize] = (None, None);
                    found += 1;
                }
                ControlFlow::Continue(())
            },
        );
        assert_eq!((ended, found), (Ok(ControlFlow::Continue(())), unequal));
        let first = first_difference(&a, &b).unwrap().map(|difference| difference.addresses.0.to_bits());
        let wanted = answers(&a).iter().zip(answers(&b)).position(|(&a, b)| a != b);
        assert_eq!(first, wanted.map(|at| at as u128));
    }
}
