pub use ipnet;
pub mod check;
pub mod memory;
pub mod net;
pub mod radix;
mod random;
pub mod rib;
pub mod simd;

/// The paths that macros name.
pub mod unstable {
    pub mod simd {
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        pub use crate::simd::aarch64::neon;
        #[cfg(target_arch = "x86_64")]
        pub use crate::simd::x86::{avx2, avx512, icelake};
        pub use crate::simd::*;
    }

    #[cfg(test)]
    pub mod testing {
        pub use crate::fib::in_place_tests::*;
    }
}

pub mod fib {
    mod contract;
    pub(crate) mod in_place;
    #[cfg(test)]
    pub(crate) mod in_place_tests;
    pub(crate) mod parts;
    pub mod registry;
    pub(crate) mod sections;

    pub use crate::check::CheckError;
    pub use crate::engines::engines;
    pub use contract::{Applied, BuildError, Fib, Updatable};
    pub use parts::ranges;
    pub(crate) use parts::units;
    pub use sections::{Elements, Sections};
}

pub mod engines {
    pub(crate) mod binary_trie;
    pub(crate) mod dir_17_bitmap;
    pub(crate) mod dir_18_lines;
    pub(crate) mod dir_btree;
    pub(crate) mod planb;
    pub(crate) mod range_btree;

    crate::__engines! {
        pub fn engines;
        binary_trie: Key,
        range_btree: Ipv4Key,
        dir_17_bitmap: Ipv4Key,
        dir_18_lines: Ipv4Key,
        planb: Ipv6Key,
        dir_btree: Ipv6Key,
    }
}

#[cfg(test)]
extern crate self as fibula;
#[cfg(test)]
pub mod tables;
#[cfg(test)]
pub mod toy;

#[cfg(test)]
mod conformance {
    use crate::memory::Limits;
    use crate::net::{Key, RouteSlice, Toy};
    use crate::simd::Present;
    use crate::tables::{Model, Random};

    /// Every structure answers as the model does, alone and in batches, for random tables and at the edges of all
    /// prefixes; it is sound, and its memory within the limit that it says it needs.
    fn answers<K: Key>(tables: usize, routes: usize) {
        let mut random = Random(3);
        for round in 0..tables {
            let hops = [1, 9, 70_000][round % 3];
            let count = random.below(routes);
            let model = Model::<K>::random(&mut random, count, hops);
            let table = model.routes();
            let slice = RouteSlice::new(&table).unwrap();
            let mut keys = vec![K::ZERO, K::MAX];
            for route in &table {
                let (first, last) = (route.prefix.addr(), route.prefix.last());
                keys.extend([Some(first), Some(last), first.previous(), last.next()].into_iter().flatten());
            }
            let right: Vec<_> = keys.iter().map(|&key| model.lookup(key).map(|route| route.next_hop)).collect();
            for engine in crate::fib::engines::<K>() {
                let fib = match engine.build(&slice, Limits::default()) {
                    Err(error) if error.is_limit() => continue,
                    fib => fib.unwrap(),
                };
                fib.check().unwrap();
                let alone: Vec<_> = keys.iter().map(|&key| fib.lookup(key)).collect();
                assert_eq!(alone, right, "{}: {table:?}", engine.name);
                for isa in Present::all() {
                    let mut batch = vec![None; keys.len()];
                    fib.lookup_batch_on(isa, &keys, &mut batch);
                    assert_eq!(batch, right, "{}, {isa:?}: {table:?}", engine.name);
                }
                let held = fib.memory().held_bytes();
                assert!(engine.build(&slice, Limits::within(held / 2)).is_err() || held < 100, "{}", engine.name);
            }
        }
    }

    #[test]
    fn toy() {
        answers::<Toy<8>>(60, 40);
        answers::<Toy<16>>(20, 300);
    }

    #[test]
    fn families() {
        answers::<u32>(6, 300);
        answers::<u128>(20, 300);
    }
}
