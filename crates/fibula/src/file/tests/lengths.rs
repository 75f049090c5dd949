//! Engines that return the length of the matched prefix, in files.

use super::*;
use crate::fib::{self, WithLength};
use crate::memory::Memory;
use crate::simd::Present;

/// Asserts next hops, and next hops with lengths, by single lookups and batches of every instruction set.
fn assert_lengths<K: Key>(fib: &dyn Fib<K>, rib: &Rib<K>, name: &str) {
    let with_length = fib.with_length().expect("it was saved with lengths");
    let keys = keys(rib);
    let expected: Vec<_> = keys.iter().map(|&key| rib.lookup_prefix(key)).collect();
    let told = |found: Option<fib::Match>| found.map(|found| (found.next_hop, found.prefix_len));
    let wanted: Vec<_> =
        expected.iter().map(|route| route.map(|route| (route.next_hop, route.prefix.len()))).collect();
    assert!(keys.iter().map(|&key| told(with_length.lookup(key))).eq(wanted.iter().copied()), "{name}");
    let mut found = vec![None; keys.len()];
    with_length.lookup_batch(&keys, &mut found);
    assert!(found.into_iter().map(told).eq(wanted), "{name}");
    for isa in Present::all() {
        let mut found = vec![None; keys.len()];
        fib.lookup_batch_on(isa, &keys, &mut found);
        assert!(
            found.into_iter().eq(expected.iter().map(|route| route.map(|route| route.next_hop))),
            "{name}"
        );
    }
    assert_answers(fib, rib);
}

fn every_engine<K: Key>(
    put: for<'a> fn(&mut Contents<'a>, Half<'a, K>),
    part: fn(&TableFile) -> &super::super::Part<K>,
) {
    let folder = Folder::new(&format!("lengths-{}", K::BITS));
    let path = folder.path("table.fibula");
    for engine in fib::engines::<K>().into_iter().filter(registry::Engine::is_saved) {
        for (routes, next_hops) in [(1, 1), (30, 3), (700, 20)] {
            let rib = table::<K>(7 + routes as u64, routes, next_hops);
            let fib = WithLength::build(&engine, &rib, Limits::default()).unwrap();
            assert!(fib.pairs() >= 1 && fib.pairs() <= routes);
            let mut contents = Contents::default();
            put(&mut contents, Half::new(&fib, &rib));
            super::super::save(&path, &contents).unwrap();
            assert_eq!(bytes(&contents)[8..12], 2_u32.to_le_bytes());
            let (copied, mapped) = (TableFile::open(&path).unwrap(), TableFile::map(&path).unwrap());
            for file in [&copied, &mapped] {
                let part = part(file);
                assert_eq!(part.engine, Some(engine.name));
                assert_lengths(&**part.fib.as_ref().unwrap(), &rib, engine.name);
                assert!(part.routes.as_ref().unwrap().iter().eq(rib.iter()));
                file.verify().unwrap();
                let mut again = Contents::default();
                let fib = part.fib.as_deref().unwrap();
                put(&mut again, Half::new(fib, &rib));
                assert_eq!(bytes(&again), std::fs::read(&path).unwrap(), "{}", engine.name);
            }
            assert!(copied.memory() != Memory::default());
        }
    }
}

#[test]
fn lengths_of_matched_prefixes_are_in_files_of_every_engine() {
    every_engine::<u32>(|contents, half| contents.v4 = half, |file| &file.v4);
    every_engine::<u128>(|contents, half| contents.v6 = half, |file| &file.v6);
}
