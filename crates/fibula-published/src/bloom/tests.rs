//! What the test machine cannot know: the figures of the paper.

use std::collections::BTreeSet;

use fibula::net::{Key, NextHop, Prefix, Route, RouteSlice, Toy};
use fibula::unstable::memory::Limits;

use super::figures::{chosen_levels, expanded_group, false_positives};
use super::hash::{Murmur64, fmix64, short_bits};
use super::lengths::Choice;
use super::sizes::Ratio;
use super::table::{Expansion, Parameters, Table};

/// Table 5: m of the two filters for the seven tables, as printed, at the ratios of [`RATIOS`], after the number of prefixes
/// from Table 3. (Table 3's "11,3397" is 113,397, and Table 5's "2,22,732" is 222,732.)
const TABLE_5: [(u64, [u64; 5]); 14] = [
    (971_555, [9_312_412, 4_656_206, 2_434_631, 1_032_974, 213_057]),
    (113_397, [1_086_917, 543_459, 284_163, 120_566, 24_868]),
    (1_037_247, [9_942_074, 4_971_037, 2_599_250, 1_102_819, 227_463]),
    (67_397, [646_005, 323_003, 168_891, 71_658, 14_780]),
    (1_007_513, [9_657_071, 4_828_536, 2_524_739, 1_071_205, 220_942]),
    (209_488, [2_007_955, 1_003_978, 524_959, 222_732, 45_940]),
    (982_940, [9_421_538, 4_710_769, 2_463_161, 1_045_079, 215_553]),
    (19_863, [190_389, 95_195, 49_775, 21_119, 4_356]),
    (1_004_073, [9_624_099, 4_812_050, 2_516_119, 1_067_548, 220_188]),
    (203_360, [1_949_218, 974_609, 509_603, 216_216, 44_596]),
    (1_000_128, [9_586_286, 4_793_143, 2_506_233, 1_063_353, 219_323]),
    (151_391, [1_451_092, 725_546, 379_373, 160_962, 33_200]),
    (1_024_899, [9_823_717, 4_911_859, 2_568_307, 1_089_690, 224_755]),
    (147_201, [1_410_931, 705_466, 368_873, 156_507, 32_281]),
];

const RATIOS: [u8; 5] = [1, 10, 30, 60, 90];

#[test]
fn sizes_are_those_of_table_5() {
    for (entries, sizes) in TABLE_5 {
        let found = RATIOS.map(|percent| Ratio::percent(percent).bits(entries));
        assert_eq!(found, sizes, "{entries}");
    }
    assert_eq!(RATIOS.map(|percent| Ratio::percent(percent).hashes()), [7, 4, 2, 1, 1]);
}

/// Rounding k costs more than the wanted ratio.
#[test]
fn the_ratio_that_a_filter_has_is_not_quite_the_wanted_one() {
    let expected = RATIOS.map(|percent| (Ratio::percent(percent).expected() * 1_000.0).round());
    assert_eq!(expected, [10.0, 103.0, 302.0, 610.0, 990.0]);
}

/// Tables of prefixes that nest, with all lengths.
fn nested(round: u64) -> Vec<Route<Toy<16>>> {
    let mut prefixes = BTreeSet::new();
    for at in 0..60 {
        let bits = fmix64(round * 1_000 + at);
        let len = (bits >> 32) as u8 % 9;
        prefixes.insert(Prefix::masked(Toy::from_bits(u128::from(bits & 0xf0ff)), len).unwrap());
    }
    prefixes.into_iter().map(|prefix| Route::new(prefix, NextHop::new(1).unwrap())).collect()
}

/// What the routes of some lengths are when each is expanded on its own and no prefix counts twice.
fn expanded(routes: &[Route<Toy<16>>], shortest: u8, longest: u8) -> usize {
    let of = routes.iter().filter(|route| (shortest..=longest).contains(&route.prefix.len()));
    let slots = |bits: u128| bits >> (16 - longest);
    of.flat_map(|route| slots(route.prefix.addr().to_bits())..=slots(route.prefix.last().to_bits()))
        .collect::<BTreeSet<_>>()
        .len()
}

#[test]
fn prefixes_after_expansion_are_counted_without_expanding() {
    for round in 0..50 {
        let routes = nested(round);
        let slice = RouteSlice::new(&routes).unwrap();
        for (shortest, longest) in [(1, 8), (3, 8), (1, 4), (5, 5), (2, 7)] {
            let (before, after) = expanded_group(&slice, shortest, longest);
            let of = routes.iter().filter(|route| (shortest..=longest).contains(&route.prefix.len()));
            assert_eq!((before, after), (of.count() as u64, expanded(&routes, shortest, longest) as u128));
        }
        for choice in [Choice::Greedy, Choice::Exact, Choice::Capture] {
            let found = chosen_levels(&slice, choice, 3).unwrap();
            let mut shortest = 1;
            let mut actual = 0;
            for &len in &found.lengths {
                actual += expanded(&routes, shortest, len) as u128;
                shortest = len + 1;
            }
            assert_eq!(found.actual, actual, "{choice:?}");
            assert!(found.actual <= found.estimate, "capture only removes");
            let captured = chosen_levels(&slice, Choice::Capture, 3).unwrap();
            assert!(captured.actual <= found.actual, "{choice:?}");
        }
    }
}

/// Filters are sized for the prefixes that they get, no more and no fewer.
#[test]
fn levels_are_sized_for_what_they_have() {
    assert_eq!(short_bits::<Toy<16>, u64>(), 8);
    for round in 0..20 {
        let routes = nested(round);
        let choices = [Choice::Greedy, Choice::Exact, Choice::Capture].map(|choice| Expansion::Chosen {
            choice,
            levels: 3,
            strict: true,
        });
        for expansion in choices.into_iter().chain([Expansion::Naive, Expansion::Distinct]) {
            let ratio = Ratio::percent(10);
            let parameters = Parameters { name: "test", expansion, ratio, hashes: Murmur64 };
            let slice = RouteSlice::new(&routes).unwrap();
            let table = Table::<Toy<16>, u64, _>::build(&slice, parameters, Limits::default()).unwrap();
            for level in &table.levels {
                assert_eq!((level.capacity, level.entries.len()), (level.count, level.count));
            }
            table.walk().unwrap();
        }
    }
}

/// Full filters have the ratio that the rounded number of hashes gives.
#[test]
fn filters_have_the_expected_ratio() {
    let routes: Vec<Route<u32>> = (0..20_000u32)
        .map(|at| Route::new(Prefix::masked(at << 12 | 0x800, 24).unwrap(), NextHop::new(1).unwrap()))
        .collect();
    let slice = RouteSlice::new(&routes).unwrap();
    let keys: Vec<u32> = (0..50_000).map(|at| fmix64(at) as u32).collect();
    for percent in [1, 10, 30, 60] {
        let ratio = Ratio::percent(percent);
        let [of_32, of_24] = false_positives(&slice, ratio, &keys).unwrap();
        let found = of_24.unwrap();
        assert!((found - ratio.expected()).abs() < 0.01 + 0.05 * ratio.expected(), "{percent}: {found}");
        assert_eq!(of_32, None);
    }
}
