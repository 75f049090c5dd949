//! What the test machine cannot know: the variants, and changes beyond what levels were sized for.

use fibula::net::{Change, Key, NextHop, Prefix, Route, RouteSlice};
use fibula::rib::Rib;
use fibula::unstable::memory::Limits;
use fibula::unstable::simd::Present;

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        crate::bloom::hash::fmix64(self.0)
    }
}

/// Routes like those of a full table: most of them long, many below others.
fn table<K: Key>(count: usize, longest: u8, random: &mut Random) -> Rib<K> {
    let mut rib = Rib::default();
    let mut last = K::ZERO;
    for at in 0..count as u64 {
        let bits = u128::from(random.next()) << 64 | u128::from(random.next());
        let len = longest - (random.next() % (u64::from(longest) / 2)) as u8;
        let keep = K::mask(longest / 3);
        let addr = if at % 3 == 0 {
            K::from_bits(bits)
        } else {
            last.and(keep).or(K::from_bits(bits).and(keep.not()))
        };
        last = addr;
        let route = Route::new(Prefix::masked(addr, len).unwrap(), NextHop::new(1 + at as u32 % 9).unwrap());
        rib.insert(route).unwrap();
    }
    rib
}

fn keys<K: Key>(rib: &Rib<K>, random: &mut Random) -> Vec<K> {
    let mut keys = Vec::new();
    for route in rib.iter() {
        let bits = u128::from(random.next()) << 64 | u128::from(random.next());
        let inside = route.prefix.addr().or(K::from_bits(bits).and(K::mask(route.prefix.len()).not()));
        keys.extend([inside, route.prefix.last(), K::from_bits(bits)]);
        keys.extend(route.prefix.last().next());
    }
    keys
}

/// Every variant answers as the table does, with every instruction set.
fn variants_answer<K: Key>(count: usize, longest: u8) {
    let mut random = Random(5);
    let rib = table::<K>(count, longest, &mut random);
    let keys = keys(&rib, &mut random);
    let expected: Vec<_> = keys.iter().map(|&key| rib.lookup(key)).collect();
    let variants = crate::variants::<K>();
    assert!(variants.len() > 20);
    for variant in variants {
        assert_eq!(crate::find::<K>(variant.name).unwrap().name, variant.name);
        let fib = match variant.build(&rib, Limits::default()) {
            Ok(fib) => fib,
            Err(error) if error.is_limit() => {
                let few = variant.name.ends_with('2') || variant.name.ends_with('3');
                assert!(variant.name.starts_with("bloomfwd-greedy:") && few, "{error}");
                continue;
            }
            Err(error) => panic!("{}: {error}", variant.name),
        };
        fib.check().unwrap();
        for (&key, &next_hop) in keys.iter().zip(&expected) {
            assert_eq!(fib.lookup(key), next_hop, "{}: {}", variant.name, key.address());
        }
        let mut results = vec![None; keys.len()];
        for isa in Present::all() {
            results.fill(None);
            fib.lookup_batch_on(isa, &keys, &mut results);
            assert!(results == expected, "{}, {}", variant.name, isa.isa());
        }
    }
}

#[test]
fn every_pair_of_hashes_and_every_ratio_answers() {
    variants_answer::<u32>(500, 28);
}

#[test]
fn every_number_of_levels_answers() {
    variants_answer::<u128>(150, 60);
}

/// A level that outgrows its size, and one that shrinks to nothing.
#[test]
fn levels_grow_and_shrink_in_place() {
    let mut random = Random(8);
    let goal = table::<u32>(3_000, 30, &mut random);
    let engine = crate::find::<u32>("bloomfwd").unwrap();
    let mut fib = engine.build(&RouteSlice::new(&[]).unwrap(), Limits::default()).unwrap();
    let empty = fib.memory();
    let mut now = Rib::<u32>::default();
    let routes: Vec<_> = goal.iter().collect();
    for some in routes.chunks(100) {
        let changes: Vec<_> = some.iter().map(|&route| Change::Insert(route)).collect();
        some.iter().for_each(|&route| {
            now.insert(route).unwrap();
        });
        fib.updatable().unwrap().apply(&changes, &now).unwrap();
        fib.check().unwrap();
    }
    let keys = keys(&goal, &mut random);
    assert!(keys.iter().all(|&key| fib.lookup(key) == goal.lookup(key)));
    let removals: Vec<_> = routes.iter().map(|route| Change::Remove(route.prefix)).collect();
    let none = Rib::<u32>::default();
    assert!(none.is_empty());
    fib.updatable().unwrap().apply(&removals, &none).unwrap();
    fib.check().unwrap();
    assert!(keys.iter().all(|&key| fib.lookup(key).is_none()));
    assert!(fib.memory().lookup_bytes > empty.lookup_bytes, "filters and buckets keep their size");
}

/// The removal of something large that is not there does not take time in proportion to its size.
#[test]
fn what_is_not_there_is_removed_at_once() {
    let route = Route::new("2001:db8::/48".parse().unwrap(), NextHop::new(1).unwrap());
    let engine = crate::find::<u128>("bloomfwd").unwrap();
    let routes = [route];
    let routes = RouteSlice::new(&routes).unwrap();
    let mut fib = engine.build(&routes, Limits::default()).unwrap();
    for len in 1..48 {
        let change = Change::Remove(Prefix::masked(route.prefix.addr(), len).unwrap());
        fib.updatable().unwrap().apply(&[change], &routes).unwrap();
    }
    assert_eq!(fib.lookup(route.prefix.addr()), NextHop::new(1));
    fib.check().unwrap();
}
