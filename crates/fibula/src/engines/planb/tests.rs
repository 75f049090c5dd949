//! What the conformance suite cannot know: the paper's figures, the printed example, the edges of the format.

use crate::fib::Fib;
use crate::fib::parts::ranges::Merge;
use crate::memory::{Budget, Buffer, Limits};
use crate::net::{Key, Keys, NextHop, Prefix, Route, RouteSlice, Toy};
use crate::simd::Present;

use super::build::tree;
use super::layout::{Codes, Node, Node2x64, Node8x64, PlanB, lower_max, upper_bits, upper_max, word};
use super::statistics::{Capacity, TreeShape, capacity};

type PlanB6 = PlanB<u128, Node8x64>;

fn hop(id: u32) -> NextHop {
    NextHop::new(id).unwrap()
}

fn planb(table: &[(&str, u32)], merge: Merge) -> PlanB6 {
    let mut routes: Vec<_> = table
        .iter()
        .map(|&(prefix, id)| Route::new(prefix.parse::<Prefix<u128>>().unwrap(), hop(id)))
        .collect();
    routes.sort();
    let fib = PlanB6::build(&RouteSlice::new(&routes).unwrap(), merge, Limits::default()).unwrap();
    fib.check().unwrap();
    fib
}

fn answer(fib: &PlanB6, address: &str) -> u32 {
    let key = address.parse::<core::net::Ipv6Addr>().unwrap().to_bits();
    let single = fib.lookup_key(key);
    for isa in Present::all() {
        let mut batch = [None; 23];
        fib.lookup_batch_on(isa, &[key; 23], &mut batch);
        assert_eq!(batch, [single; 23]);
    }
    NextHop::word(single)
}

/// Two keys a node, keys 10, 20 .. 180. The printed lines make the root 90 150 and find 6 keys below 75, not 7.
#[test]
fn separators_are_the_least_keys_below_their_child() {
    let keys: Vec<u64> = (1..=18).map(|at| at * 10).collect();
    let shape = TreeShape::of(2, keys.len());
    let nodes = tree::<Node2x64>(&mut Budget::default(), &shape, &keys).unwrap();
    let internal: Vec<u64> = nodes[..4].iter().flat_map(Node::keys).copied().collect();
    assert_eq!(internal, [70, 130, 30, 50, 90, 110, 150, 170]);
    let leaves: Vec<u64> = nodes[4..].iter().flat_map(Node::keys).copied().collect();
    assert_eq!(leaves, keys);
    let fib = PlanB::<Toy<8>, Node2x64> {
        nodes,
        leaf_first: shape.internal_nodes,
        levels: shape.internal_levels,
        codes: Codes::Narrow(Buffer::new()),
        next_hops: vec![0],
        blocks: Default::default(),
        merge: Merge::Never,
        keys: core::marker::PhantomData,
    };
    assert_eq!(fib.rank(75), 7);
    for word in 0..=200 {
        assert_eq!(fib.rank(word), keys.iter().filter(|&&key| key < word).count(), "{word}");
    }
    assert_eq!(fib.rank(u64::MAX), 18);
}

/// A full tree whose last subtree is exactly full: larger addresses stay in the last leaf.
#[test]
fn every_count_of_keys_finds_every_rank() {
    for count in 0..=60 {
        let keys: Vec<u64> = (1..=count).map(|at| at * 2).collect();
        let shape = TreeShape::of(2, keys.len());
        let nodes = tree::<Node2x64>(&mut Budget::default(), &shape, &keys).unwrap();
        let fib = PlanB::<Toy<8>, Node2x64> {
            nodes,
            leaf_first: shape.internal_nodes,
            levels: shape.internal_levels,
            codes: Codes::Narrow(Buffer::new()),
            next_hops: Vec::new(),
            blocks: Default::default(),
            merge: Merge::Never,
            keys: core::marker::PhantomData,
        };
        for word in (0..=count * 2 + 2).chain([u64::MAX - 1, u64::MAX]) {
            assert_eq!(fib.rank(word), keys.iter().filter(|&&key| key < word).count(), "{count} {word}");
        }
    }
}

/// A tree over the ends of intervals whose next hops are their numbers, from 1.
fn numbered<K: Key, N: Node>(ends: &[u64]) -> PlanB<K, N> {
    let words: Vec<N::Word> = ends.iter().map(|&end| word::<K, N::Word>(end)).collect();
    let shape = TreeShape::of(N::KEYS, words.len());
    let mut codes = Budget::default().buffer(words.len() + 1).unwrap();
    codes.extend(1..=words.len() as u16 + 1);
    PlanB {
        nodes: tree::<N>(&mut Budget::default(), &shape, &words).unwrap(),
        leaf_first: shape.internal_nodes,
        levels: shape.internal_levels,
        codes: Codes::Narrow(codes),
        next_hops: (0..=words.len() as u32 + 1).collect(),
        blocks: Default::default(),
        merge: Merge::Never,
        keys: core::marker::PhantomData,
    }
}

/// Looks up the first and last address of every interval, and both ends of the space, in batches of every length.
fn every_set_finds_every_rank<K: Key, N: Node>() {
    for count in (0..=60).chain([163, 900, 1_500]) {
        // As many ends as fit, on both sides of the bit that signed comparisons take for a sign.
        let ends: Vec<u64> = (1..=count).map(|at| upper_max::<K>() / (count + 1) * at).collect();
        let mut ends: Vec<u64> = ends.into_iter().filter(|&end| end < upper_max::<K>()).collect();
        ends.dedup();
        let fib = numbered::<K, N>(&ends);
        let below = |half: u64| ends.iter().filter(|&&end| end < half).count() as u32;
        let key = |half: u64, rest: u64| {
            K::from_bits(
                u128::from(half) << (K::BITS - upper_bits::<K>()) | u128::from(rest & lower_max::<K>()),
            )
        };
        let halves: Vec<u64> = [0, upper_max::<K>()]
            .into_iter()
            .chain(ends.iter().flat_map(|&end| [end, end + 1, end.saturating_sub(1)]))
            .collect();
        let keys: Vec<K> = halves.iter().map(|&half| key(half, half.wrapping_mul(0x9e37_79b9))).collect();
        let want: Vec<_> = halves.iter().map(|&half| NextHop::new(below(half) + 1)).collect();
        for isa in Present::all() {
            for length in (1..=70).chain([256]) {
                for (keys, want) in keys.chunks(length).zip(want.chunks(length)) {
                    let mut results = vec![NextHop::new(u32::MAX); keys.len()];
                    fib.lookup_batch_on(isa, keys, &mut results);
                    assert_eq!(results, want, "{isa:?}, {count} keys, batches of {length}");
                    let network: Vec<K::Bytes> = keys.iter().map(|key| key.to_network()).collect();
                    results.fill(NextHop::new(u32::MAX));
                    fib.lookup_keys_on(isa, Keys::Network(&network), &mut results);
                    assert_eq!(results, want, "{isa:?}, {count} keys in network order, batches of {length}");
                }
            }
        }
    }
}

/// Trees of five and six levels have kernels of their own.
#[test]
fn deep_trees_find_every_rank() {
    for count in [52_489, 472_393] {
        let ends: Vec<u64> = (1..=count).map(|at| u64::MAX / (count + 1) * at).collect();
        let words = &ends;
        let shape = TreeShape::of(8, words.len());
        let mut codes = Budget::default().buffer(words.len() + 1).unwrap();
        codes.extend((0..=words.len()).map(|at| (at % 1_000) as u16 + 1));
        let fib = PlanB::<u128, Node8x64> {
            nodes: tree::<Node8x64>(&mut Budget::default(), &shape, words).unwrap(),
            leaf_first: shape.internal_nodes,
            levels: shape.internal_levels,
            codes: Codes::Narrow(codes),
            next_hops: (0..=1_000).collect(),
            blocks: Default::default(),
            merge: Merge::Never,
            keys: core::marker::PhantomData,
        };
        assert_eq!(fib.levels, if count < 472_393 { 5 } else { 6 });
        let keys: Vec<u128> = (0..2_000)
            .map(|at| ends[at * 7_919 % ends.len()])
            .flat_map(|end| [u128::from(end) << 64, u128::from(end + 1) << 64])
            .collect();
        let rank = |key: u128| ends.partition_point(|&end| end < (key >> 64) as u64) as u32;
        let want: Vec<_> = keys.iter().map(|&key| NextHop::new(rank(key) % 1_000 + 1)).collect();
        assert!(keys.iter().zip(&want).all(|(&key, &want)| fib.lookup_key(key) == want));
        let network: Vec<[u8; 16]> = keys.iter().map(|key| key.to_be_bytes()).collect();
        for isa in Present::all() {
            for length in [1, 7, 61, 4_000] {
                let mut results = vec![None; keys.len()];
                for (keys, results) in keys.chunks(length).zip(results.chunks_mut(length)) {
                    fib.lookup_batch_on(isa, keys, results);
                }
                assert_eq!(results, want, "{isa:?}, {count} keys, batches of {length}");
                results.fill(None);
                for (keys, results) in network.chunks(length).zip(results.chunks_mut(length)) {
                    fib.lookup_keys_on(isa, Keys::Network(keys), results);
                }
                assert_eq!(results, want, "{isa:?}, {count} keys in network order, batches of {length}");
            }
        }
    }
}

#[test]
fn every_set_finds_every_rank_of_the_registered_trees() {
    every_set_finds_every_rank::<Toy<8>, Node2x64>();
    every_set_finds_every_rank::<u128, Node8x64>();
}

/// Section 3.2. It prints 6,560 internal nodes for five levels, and 0.45 MB, which fits 7,381.
#[test]
fn capacities_of_section_3_2() {
    let five = Capacity {
        internal_levels: 5,
        internal_nodes: 7_381,
        leaf_nodes: 59_049,
        keys: 472_392,
        internal_bytes: 472_384,
        leaf_bytes: 3_779_136,
    };
    assert_eq!(capacity::<Node8x64>(5), five);
    let mib = |bytes: u64| (bytes as f64 / 1_048_576.0 * 100.0).round() / 100.0;
    assert_eq!((mib(five.leaf_bytes), mib(five.internal_bytes)), (3.60, 0.45));
    let six = capacity::<Node8x64>(6);
    assert_eq!(six.keys, 4_251_528);
    assert_eq!((mib(six.leaf_bytes), mib(six.internal_bytes)), (32.44, 4.05));
    assert_eq!(capacity::<Node8x64>(0).keys, 8);
    // 2N intervals of N prefixes, and one key less: 235,466 prefixes fit five levels, 238,498 do not.
    assert!(2 * 235_466 <= five.keys && 2 * 238_498 > five.keys);
    assert_eq!(TreeShape::of(8, 472_392).internal_levels, 5);
    assert_eq!(TreeShape::of(8, 472_393).internal_levels, 6);
}

#[test]
fn an_empty_table_is_one_leaf_of_sentinels() {
    let fib = planb(&[], Merge::Never);
    assert_eq!(fib.nodes[..], [Node8x64::SENTINELS]);
    let statistics = fib.statistics();
    assert_eq!((statistics.intervals, statistics.internal_levels, statistics.leaf_nodes), (1, 0, 1));
    assert_eq!(answer(&fib, "::"), 0);
    assert_eq!(answer(&fib, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), 0);
}

/// The published loop counts sentinels as keys that are not above all ones, and reads past the end of the leaves.
#[test]
fn the_last_address_is_answered() {
    // From one key, a leaf that is not full, to nine, two leaves and a root with one separator.
    for count in 1..=9 {
        let names: Vec<String> = (0..count).map(|at| format!("{:x}::/16", 0xffff - 2 * at)).collect();
        let table: Vec<(&str, u32)> = names.iter().zip(1..).map(|(name, id)| (name.as_str(), id)).collect();
        for merge in [Merge::Never, Merge::EqualNeighbours] {
            let fib = planb(&table, merge);
            assert_eq!(answer(&fib, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), 1);
            assert_eq!(answer(&fib, "ffff:ffff:ffff:ffff::"), 1);
            assert_eq!(answer(&fib, "fffe:ffff:ffff:ffff::"), 0);
        }
    }
}

/// Several events at one address leave one key; starts of nested routes and ends do not confuse each other.
#[test]
fn intervals_as_printed_and_merged() {
    let table =
        [("2001:db8::/32", 1), ("2001:db8::/48", 2), ("2001:db8:1::/48", 1), ("2001:db8:ffff::/48", 2)];
    let printed = planb(&table, Merge::Never).statistics();
    assert_eq!((printed.intervals, printed.next_hops), (6, 2));
    let merged = planb(&table, Merge::EqualNeighbours).statistics();
    assert_eq!((merged.intervals, merged.next_hops), (5, 2));
    assert_eq!((merged.blocks, merged.value_bits), (0, 16));
}

#[test]
fn prefixes_beyond_the_half_make_blocks() {
    let table = [
        ("2001:db8::/32", 1),
        ("2001:db8:0:1::/64", 2),
        ("2001:db8:0:1::5/128", 3),
        ("2001:db8:0:1:8000::/65", 4),
        ("2001:db8:0:2::/127", 5),
        ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128", 6),
    ];
    for merge in [Merge::Never, Merge::EqualNeighbours] {
        let fib = planb(&table, merge);
        let statistics = fib.statistics();
        assert_eq!(statistics.blocks, 3);
        // 2, 3, 2, 4; 5, 1; none, 6. The second block adjoins the first, so there is no interval between them.
        assert_eq!(statistics.block_ranges, 8);
        assert_eq!(statistics.intervals, 7, "none, 1, block, block, 1, none, block");
        for (address, id) in [
            ("2001:db8::ffff", 1),
            ("2001:db8:0:1::4", 2),
            ("2001:db8:0:1::5", 3),
            ("2001:db8:0:1::6", 2),
            ("2001:db8:0:1:7fff:ffff:ffff:ffff", 2),
            ("2001:db8:0:1:8000::", 4),
            ("2001:db8:0:1:ffff:ffff:ffff:ffff", 4),
            ("2001:db8:0:2::1", 5),
            ("2001:db8:0:2::2", 1),
            ("2001:db8:0:3::", 1),
            ("2001:db9::", 0),
            ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe", 0),
            ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 6),
        ] {
            assert_eq!(answer(&fib, address), id, "{address}");
        }
    }
}

/// 65,536 codes are 16 bits wide, one more makes them 32: next hops and blocks count together.
#[test]
fn codes_widen_when_16_bits_are_used_up() {
    let build = |hosts: u32, next_hops: u32| {
        let mut routes = Vec::new();
        for at in 0..hosts {
            routes.push(Route::new(Prefix::host((u128::from(at) << 65) | 1), hop(9)));
        }
        for at in 0..next_hops {
            routes.push(Route::new(Prefix::of((1 << 120) | (u128::from(at) << 80), 48), hop(10 + at * 3)));
        }
        let fib = PlanB6::build(&RouteSlice::new(&routes).unwrap(), Merge::Never, Limits::default()).unwrap();
        fib.check().unwrap();
        for route in &routes {
            assert_eq!(fib.lookup_key(route.prefix.last()), Some(route.next_hop));
        }
        let statistics = fib.statistics();
        assert_eq!((statistics.blocks, statistics.next_hops), (hosts as usize, next_hops as usize));
        assert_eq!(fib.memory().allocated_bytes, fib.memory().lookup_bytes);
        statistics.value_bits
    };
    // Code 0 is no route.
    assert_eq!(build(0, 65_535), 16);
    assert_eq!(build(0, 65_536), 32);
    assert_eq!(build(65_000, 535), 16);
    assert_eq!(build(65_000, 536), 32);
}

/// Hostile tables: the deepest nesting, and host routes side by side in one block.
#[test]
fn hostile_tables_stay_exact() {
    let nested: Vec<Route<u128>> =
        (0..=128).map(|len| Route::new(Prefix::of(u128::MAX, len), hop(u32::from(len) + 1))).collect();
    let fib = PlanB6::build(&RouteSlice::new(&nested).unwrap(), Merge::Never, Limits::default()).unwrap();
    fib.check().unwrap();
    let statistics = fib.statistics();
    assert_eq!((statistics.intervals, statistics.blocks, statistics.block_ranges), (65, 1, 65));
    for len in 0..=128 {
        // The first address that leaves the prefix one bit longer.
        let key = if len == 128 { u128::MAX } else { !(1 << (127 - len)) };
        assert_eq!(fib.lookup_key(key), Some(hop(len + 1)), "{len}");
    }
    let hosts: Vec<Route<u128>> =
        (0..5_000).map(|at| Route::new(Prefix::host((7 << 64) | (at * 2)), hop(at as u32 % 5 + 1))).collect();
    let fib = PlanB6::build(&RouteSlice::new(&hosts).unwrap(), Merge::Never, Limits::default()).unwrap();
    fib.check().unwrap();
    assert_eq!((fib.statistics().blocks, fib.statistics().block_ranges), (1, 10_000));
    for route in &hosts {
        let key = route.prefix.addr();
        assert_eq!((fib.lookup_key(key), fib.lookup_key(key + 1)), (Some(route.next_hop), None));
    }
}

/// `check` finds damage that a test of answers may miss.
#[test]
fn check_finds_planted_damage() {
    let names: Vec<String> = (0..200).map(|at| format!("2001:db8:{:x}::/48", at * 2)).collect();
    let mut table: Vec<(&str, u32)> = names.iter().zip(1..).map(|(name, id)| (name.as_str(), id)).collect();
    table.push(("2001:db8::5/128", 7));
    let sound = planb(&table, Merge::EqualNeighbours);
    type Damage = (&'static str, fn(&mut PlanB6));
    let damage: [Damage; 9] = [
        ("(1) as few levels", |fib| fib.levels += 1),
        ("(1) no leaf of sentinels", |fib| {
            let mut more = Budget::default().buffer(fib.nodes.len() + 1).unwrap();
            more.extend_from_slice(&fib.nodes);
            more.push(Node8x64::SENTINELS);
            fib.nodes = more;
        }),
        ("(2) leaf keys ascend", |fib| fib.nodes[fib.leaf_first + 3].keys_mut()[2] = 0),
        ("(2) sentinels fill", |fib| fib.nodes.last_mut().unwrap().keys_mut()[7] = u64::MAX - 1),
        ("(3) separator", |fib| fib.nodes[0].keys_mut()[1] -= 1),
        ("(4) merged neighbours", |fib| {
            if let Codes::Narrow(codes) = &mut fib.codes {
                codes[9] = codes[10];
            }
        }),
        ("(5) other codes", |fib| fib.next_hops[4] = 0),
        ("(6) every block is named", |fib| fib.blocks.first.push(3)),
        ("(7) the last piece", |fib| *fib.blocks.ends.last_mut().unwrap() -= 1),
    ];
    for (invariant, plant) in damage {
        let mut fib = sound.clone();
        plant(&mut fib);
        let error = fib.check().unwrap_err().to_string();
        assert!(error.contains(invariant), "{error}, not {invariant}");
    }
}
