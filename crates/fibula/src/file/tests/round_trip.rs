//! Contents that are written are read again.

use std::ops::ControlFlow;

use super::*;
use crate::fib;
use crate::net::{Change, Routes};

/// Opens the contents of a file with one engine, and compares.
fn assert_same<K: Key>(fib: &dyn Fib<K>, rib: &Rib<K>, write: impl Fn(&dyn Fib<K>) -> Vec<u8>, name: &str) {
    let file = open(&write(fib)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let check = |engine: Option<&str>, fib: &dyn core::fmt::Debug| {
        assert_eq!(engine, Some(name), "{fib:?}");
    };
    file.verify().unwrap();
    let keys = keys(rib);
    let answers: Vec<_> = keys.iter().map(|&key| rib.lookup(key)).collect();
    let found: Vec<_> = if K::BITS == 32 {
        check(file.v4.engine, &file.v4);
        keys.iter().map(|key| file.v4.lookup(key.to_bits() as u32)).collect()
    } else {
        check(file.v6.engine, &file.v6);
        keys.iter().map(|key| file.v6.lookup(key.to_bits())).collect()
    };
    assert!(found == answers, "{name}");
}

fn write_v4(fib: &dyn Fib<u32>) -> Vec<u8> {
    let mut contents = Contents::default();
    contents.v4.fib = Some(fib);
    bytes(&contents)
}

fn write_v6(fib: &dyn Fib<u128>) -> Vec<u8> {
    let mut contents = Contents::default();
    contents.v6.fib = Some(fib);
    bytes(&contents)
}

/// Every engine that files can hold, as it is built and as it is after changes in place.
fn every_structure<K: Key>(write: impl Fn(&dyn Fib<K>) -> Vec<u8> + Copy) -> Vec<&'static str> {
    let mut saved = Vec::new();
    for engine in fib::engines::<K>() {
        assert_eq!(
            engine.build(&Rib::default(), Limits::default()).unwrap().sections().is_some(),
            engine.is_saved()
        );
        if !engine.is_saved() {
            continue;
        }
        saved.push(engine.name);
        for (routes, next_hops) in [(0, 1), (5, NARROW), (30, NARROW), (700, NARROW), (300, 1 << 31)] {
            let mut rib = table::<K>(routes as u64, routes, next_hops);
            let fib = engine.build(&rib, Limits::default()).unwrap();
            assert_same(&*fib, &rib, write, engine.name);
            let mut fib = engine.build_updatable(&rib, Limits::default()).unwrap();
            if let Some(fib) = fib.updatable() {
                for route in table::<K>(99, 20, next_hops).iter() {
                    let change = Change::Insert(route);
                    rib.apply(&[change]).unwrap();
                    if fib.apply(&[change], &rib).unwrap() != fib::Applied::InPlace {
                        break;
                    }
                    assert_same(&*fib, &rib, write, engine.name);
                }
            }
        }
    }
    saved
}

#[test]
fn every_structure_that_files_hold_answers_as_before() {
    assert_eq!(
        every_structure::<u32>(write_v4),
        ["range-btree", "dir-17-bitmap", "dir-17-sparse", "dir-18-lines"]
    );
    assert_eq!(every_structure::<u128>(write_v6), ["planb", "dir-btree-byte", "dir-btree"]);
}

#[test]
fn structures_that_files_do_not_hold_are_refused_by_their_way_out() {
    let fib = build::<u32>("dir-24-8", &Rib::default());
    let mut contents = Contents::default();
    contents.v4.fib = Some(&*fib);
    let error = contents.write(Vec::new()).unwrap_err();
    assert!(error.to_string().starts_with("files cannot hold this engine"), "{error}");
    assert!(!error.is_damage() && error.path().is_none());
}

#[test]
fn a_file_has_both_families_routes_and_values() {
    let (bytes, v4, v6) = small(1);
    let file = open(&bytes).unwrap();
    assert_is(&file, &v4, &v6);
    assert_eq!(file.value(NextHop::new(2).unwrap()), Some(ColumnValue::Text("xxxxxxxxxx".into())));
    assert_eq!(file.value(NextHop::new(4).unwrap()), None);
    let route = v4.iter().next().unwrap();
    assert_eq!(
        file.lookup(core::net::Ipv4Addr::from_bits(route.prefix.addr())),
        v4.lookup(route.prefix.addr())
    );
    assert!(!file.is_mapped() && file.memory().lookup_bytes > 0);
    assert!(open(&super::bytes(&Contents::default())).unwrap().v4.is_empty());
}

#[test]
fn stored_routes_are_routes() {
    fn assert_routes<K: Key>(stored: &dyn Routes<K>, rib: &Rib<K>) {
        assert_eq!(stored.len(), rib.len());
        let visited = |routes: &dyn Routes<K>, within: Prefix<K>| {
            let mut all = Vec::new();
            let _ = routes.visit(within, &mut |route| {
                all.push(route);
                ControlFlow::Continue(())
            });
            all
        };
        let few = rib.iter().step_by(7).map(|route| route.prefix).chain([Prefix::ALL]);
        for prefix in few {
            let shorter = Prefix::of(prefix.addr(), prefix.len().saturating_sub(5));
            for prefix in [prefix, shorter, Prefix::host(prefix.last())] {
                assert_eq!(visited(stored, prefix), visited(rib, prefix), "{prefix}");
                assert_eq!(stored.parent(prefix), rib.parent(prefix), "{prefix}");
            }
        }
    }
    let (v4, v6) = (table::<u32>(3, 900, NARROW), table::<u128>(4, 700, NARROW));
    let mut contents = Contents::default();
    contents.v4.routes = Some(&v4);
    contents.v6.routes = Some(&v6);
    let file = open(&bytes(&contents)).unwrap();
    let (stored4, stored6) = (file.v4.routes.as_ref().unwrap(), file.v6.routes.as_ref().unwrap());
    assert_routes(stored4, &v4);
    assert_routes(stored6, &v6);
    for key in keys(&v4) {
        assert_eq!(stored4.lookup_prefix(key), v4.lookup_prefix(key));
        assert_eq!(file.v4.lookup(key), v4.lookup(key));
    }
    for key in keys(&v6) {
        assert_eq!(stored6.lookup_prefix(key), v6.lookup_prefix(key));
    }
    assert_answers(&*fib::build(stored4).unwrap(), &v4);
}
