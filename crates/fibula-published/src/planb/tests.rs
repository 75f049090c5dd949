//! Nodes that only papers compare: the library's tests look into trees of its own.

use fibula::fib::Fib;
use fibula::net::{Key, Keys, NextHop, Prefix, Route, RouteSlice, Toy};
use fibula::unstable::memory::Limits;
use fibula::unstable::parts::ranges::Merge;
use fibula::unstable::planb::{
    Node, Node2x64, Node4x64, Node8x64, Node16x32, Node16x64, Node32x32, PlanB, upper_bits,
};
use fibula::unstable::simd::Present;

fn hop(id: u32) -> NextHop {
    NextHop::new(id).unwrap()
}

/// Prefixes as long as words, with a gap after each, so that every one of them has a rank of its own and the gap the next.
fn every_set_finds_every_rank<K: Key, N: Node>() {
    let len = upper_bits::<K>();
    let most = (1u128 << len) - 1;
    for count in (0..=60).chain([163, 900, 1_500]) {
        let step = most / (count + 1);
        if step < 2 {
            break;
        }
        // From the last address down, on both sides of the bit that signed comparisons take for a sign.
        let words: Vec<u128> = (0..count).rev().map(|at| most - at * step).collect();
        let routes: Vec<Route<K>> = (1..)
            .zip(&words)
            .map(|(id, &word)| Route::new(Prefix::of(K::from_bits(word << (K::BITS - len)), len), hop(id)))
            .collect();
        let set = RouteSlice::new(&routes).unwrap();
        let fib = PlanB::<K, N>::build(&set, Merge::Never, Limits::default()).unwrap();
        fib.check().unwrap();
        let rest = (1u128 << (K::BITS - len)) - 1;
        let asked = words.iter().flat_map(|&word| [word.saturating_sub(1), word, (word + 1).min(most)]);
        let (keys, want): (Vec<K>, Vec<Option<NextHop>>) = [0, most]
            .into_iter()
            .chain(asked)
            .map(|word| {
                let key = K::from_bits(word << (K::BITS - len) | word.wrapping_mul(0x9e37_79b9) & rest);
                (key, words.binary_search(&word).ok().map(|at| routes[at].next_hop))
            })
            .unzip();
        let network: Vec<K::Bytes> = keys.iter().map(|key| key.to_network()).collect();
        assert!(keys.iter().zip(&want).all(|(&key, &want)| fib.lookup_key(key) == want));
        for isa in Present::all() {
            for length in (1..=70).chain([256]) {
                let mut results = vec![NextHop::new(u32::MAX); keys.len()];
                for (keys, results) in keys.chunks(length).zip(results.chunks_mut(length)) {
                    fib.lookup_batch_on(isa, keys, results);
                }
                assert_eq!(results, want, "{isa:?}, {count} prefixes, batches of {length}");
                results.fill(NextHop::new(u32::MAX));
                for (keys, results) in network.chunks(length).zip(results.chunks_mut(length)) {
                    fib.lookup_keys_on(isa, Keys::Network(keys), results);
                }
                assert_eq!(results, want, "{isa:?}, {count} prefixes in network order, batches of {length}");
            }
        }
    }
}

#[test]
fn every_set_finds_every_rank_in_nodes_of_every_width() {
    every_set_finds_every_rank::<Toy<8>, Node2x64>();
    every_set_finds_every_rank::<Toy<8>, Node4x64>();
    every_set_finds_every_rank::<u128, Node8x64>();
    every_set_finds_every_rank::<u128, Node16x64>();
    every_set_finds_every_rank::<u32, Node16x32>();
    every_set_finds_every_rank::<u32, Node32x32>();
}
