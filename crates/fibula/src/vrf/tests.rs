//! VRFs as a whole: what changes of one do to it, to the others, to memory and to readers.

use core::net::{IpAddr, Ipv4Addr};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::collections::BTreeMap;
use std::thread;

use crate::live::{TableError, TableKey};
use crate::memory::Limits;
use crate::net::{Change, Key, NextHop, Prefix, Route};
use crate::random::Random;
use crate::rib::{DualRib, Rib};
use crate::simd::Present;

use super::{Options, Vrf, Vrfs};

fn hop(id: u32) -> NextHop {
    NextHop::new(id).unwrap()
}

/// Tables of more than a few dozen routes have structures.
fn options() -> Options {
    Options { small_routes: 24, patience: Duration::ZERO, ..Options::default() }
}

fn prefix<K: Key>(random: &mut Random) -> Prefix<K> {
    let len = [0, 6, 8, 12, 16, 18, 20, 24, 24, 28, 32][random.below(11) as usize] * (K::BITS / 32);
    let bits = (u128::from(random.below(1 << 9)) << (K::BITS - 14)) | (u128::from(random.below(4)) * 0x0101);
    Prefix::masked(K::from_bits(bits), len).unwrap()
}

fn change<K: Key>(random: &mut Random, of: u32) -> Change<K> {
    let prefix = prefix(random);
    match random.below(3) {
        0 => Change::Remove(prefix),
        // The next hops of a VRF are its own, so that no other table can have them.
        at => Change::Insert(Route::new(prefix, hop(of * 1000 + 1 + (at + random.below(500)) as u32))),
    }
}

fn table(random: &mut Random, routes: u64, of: u32) -> DualRib {
    let mut table = DualRib::default();
    for _ in 0..routes {
        let id = of * 1000 + 1 + random.below(500) as u32;
        table.v4.insert(Route::new(prefix(random), hop(id))).unwrap();
        table.v6.insert(Route::new(prefix(random), hop(id))).unwrap();
    }
    table
}

type Model = BTreeMap<Vrf, DualRib>;

/// Compares lookups of one family in all VRFs with the model's, alone and in columns of several lengths.
fn agrees<K: TableKey>(vrfs: &Vrfs, model: &Model, rib: fn(&DualRib) -> &Rib<K>, random: &mut Random) {
    let mut reader = vrfs.reader().unwrap();
    let pin = reader.pin();
    let numbers: Vec<Vrf> = (0..700).map(|_| Vrf::new(random.below(12) as u32)).collect();
    let keys: Vec<K> = numbers
        .iter()
        .map(|_| {
            let prefix = prefix::<K>(random);
            if random.below(2) == 0 { prefix.addr() } else { prefix.last() }
        })
        .collect();
    let expected: Vec<_> = numbers
        .iter()
        .zip(&keys)
        .map(|(vrf, &key)| {
            model.get(vrf).and_then(|ribs| rib(ribs).lookup_prefix(key)).map(|route| route.next_hop)
        })
        .collect();
    for ((&vrf, &key), &expected) in numbers.iter().zip(&keys).zip(&expected) {
        assert_eq!(pin.lookup(vrf, key), expected, "{} in {vrf}", key.address());
    }
    for isa in Present::all() {
        for count in [0, 1, 7, 16, 17, 64, 65, 256, 257, 700] {
            let mut found = vec![NextHop::new(u32::MAX); count];
            pin.batch(&numbers[..count], &keys[..count]).isa(isa).run(&mut found);
            assert_eq!(found, expected[..count], "{} {count}", isa.isa());
        }
    }
    for &vrf in numbers.iter().take(12) {
        let mut found = vec![None; keys.len()];
        pin.batch_in(vrf, &keys).run(&mut found);
        for (&key, &found) in keys.iter().zip(&found) {
            assert_eq!(found, pin.lookup(vrf, key));
        }
    }
}

#[test]
fn vrfs_follow_their_own_routes_and_no_others() {
    let mut random = Random(11);
    let vrfs = Vrfs::with_options(options()).unwrap();
    let mut model = Model::new();
    for round in 0..100 {
        let there: Vec<Vrf> = model.keys().copied().collect();
        let one = |random: &mut Random| there.get(random.below(there.len().max(1) as u64) as usize).copied();
        match (random.below(8), one(&mut random)) {
            (0 | 1, _) | (_, None) if there.len() < 10 => {
                let vrf = vrfs.create().unwrap();
                assert!(model.insert(vrf, DualRib::default()).is_none(), "{vrf} is new");
            }
            (2, Some(vrf)) => {
                let routes = vrfs.delete(vrf).unwrap();
                let expected = model.remove(&vrf).unwrap();
                assert!(routes.iter().eq(expected.iter()));
            }
            (3 | 4, Some(vrf)) => {
                let count = [0, 3, 20, 60][random.below(4) as usize];
                let mut routes = table(&mut random, count, vrf.number());
                let before = model.insert(vrf, DualRib::new(routes.v4.clone(), routes.v6.clone())).unwrap();
                vrfs.swap(vrf, &mut routes).unwrap();
                assert!(routes.iter().eq(before.iter()));
            }
            (5, Some(vrf)) => {
                let v4: Vec<_> = (0..random.below(20)).map(|_| change(&mut random, vrf.number())).collect();
                let v6: Vec<_> = (0..random.below(20)).map(|_| change(&mut random, vrf.number())).collect();
                vrfs.apply_atomic(vrf, &v4, &v6).unwrap();
                let ribs = model.get_mut(&vrf).unwrap();
                ribs.v4.apply(&v4).unwrap();
                ribs.v6.apply(&v6).unwrap();
            }
            (_, Some(vrf)) => {
                let v4: Vec<Change<u32>> =
                    (0..random.below(20)).map(|_| change(&mut random, vrf.number())).collect();
                vrfs.apply(vrf, &v4).unwrap();
                model.get_mut(&vrf).unwrap().v4.apply(&v4).unwrap();
            }
            (_, None) => {}
        }
        if round % 9 == 0 {
            vrfs.maintain().unwrap();
        }
        vrfs.check().unwrap_or_else(|error| panic!("round {round}: {error}"));
        agrees(&vrfs, &model, |ribs| &ribs.v4, &mut random);
        agrees(&vrfs, &model, |ribs| &ribs.v6, &mut random);
    }
    let statistics = vrfs.statistics().unwrap();
    assert_eq!((statistics.vrfs, statistics.totals.retired_bytes), (model.len(), 0));
    assert!(statistics.totals.rebuilt > 3, "some tables had structures");
}

#[test]
fn equal_tables_share_what_lookups_read() {
    let mut random = Random(3);
    let vrfs = Vrfs::new().unwrap();
    let routes = table(&mut random, 100, 1);
    let copy = || DualRib::new(routes.v4.clone(), routes.v6.clone());
    let all: Vec<Vrf> = (0..50).map(|_| vrfs.create().unwrap()).collect();
    vrfs.swap(all[0], &mut copy()).unwrap();
    let first = vrfs.statistics().unwrap();
    for &vrf in &all[1..] {
        vrfs.swap(vrf, &mut copy()).unwrap();
    }
    let last = vrfs.statistics().unwrap();
    assert_eq!((last.block_count.v4, last.block_count.v6), (1, 1));
    assert_eq!((last.in_blocks.v4, last.blocks), (50, first.blocks));
    vrfs.check().unwrap();

    // One of them changes: it alone has another block. Taken back, it shares the old one again.
    let one: Prefix<u32> = "9.9.9.9/32".parse().unwrap();
    vrfs.insert(all[7], one, hop(5)).unwrap();
    assert_eq!(vrfs.statistics().unwrap().block_count.v4, 2);
    let mut reader = vrfs.reader().unwrap();
    let pin = reader.pin();
    assert_eq!(pin.lookup(all[7], one.addr()), Some(hop(5)));
    assert_ne!(pin.lookup(all[8], one.addr()), Some(hop(5)));
    drop(pin);
    vrfs.remove(all[7], one).unwrap();
    assert_eq!(vrfs.statistics().unwrap().block_count.v4, 1);
    vrfs.check().unwrap();
    for vrf in all {
        vrfs.delete(vrf).unwrap();
    }
    let empty = vrfs.statistics().unwrap();
    assert_eq!((empty.block_count.v4, empty.vrfs, empty.routes.held_bytes()), (0, 0, 0));
    vrfs.check().unwrap();
}

#[test]
fn a_number_is_not_given_to_another_vrf_while_a_reader_may_know_it() {
    let vrfs = Vrfs::with_options(Options { vrfs: 2, ..options() }).unwrap();
    let [first, second] = [vrfs.create().unwrap(), vrfs.create().unwrap()];
    assert_eq!(vrfs.create(), Err(TableError::NoVrfLeft { vrfs: 2 }));
    let all: Prefix<u32> = Prefix::ALL;
    vrfs.insert(first, all, hop(1)).unwrap();
    vrfs.insert(second, all, hop(2)).unwrap();
    let mut reader = vrfs.reader().unwrap();
    let pin = reader.pin();
    assert_eq!(pin.try_lookup(first, Ipv4Addr::LOCALHOST), Ok(Some(hop(1))));
    vrfs.delete(first).unwrap();
    assert_eq!(pin.try_lookup(first, Ipv4Addr::LOCALHOST), Err(TableError::UnknownVrf(first)));
    assert_eq!(vrfs.create(), Err(TableError::NoVrfLeft { vrfs: 2 }));
    drop(pin);
    let again = vrfs.create().unwrap();
    assert_eq!(again, first);
    let pin = reader.pin();
    assert!(pin.contains(again) && !pin.contains(Vrf::new(9)));
    assert_eq!(pin.lookup(again, 7_u32), None);
    vrfs.check().unwrap();
}

#[test]
fn unknown_vrfs_are_errors_for_the_writer_and_empty_for_readers() {
    let vrfs = Vrfs::new().unwrap();
    let nobody = Vrf::new(5);
    let prefix: Prefix<u32> = Prefix::ALL;
    assert_eq!(vrfs.insert(nobody, prefix, hop(1)), Err(TableError::UnknownVrf(nobody)));
    assert_eq!(vrfs.delete(nobody).unwrap_err(), TableError::UnknownVrf(nobody));
    assert_eq!(vrfs.len(nobody), Err(TableError::UnknownVrf(nobody)));
    let mut routes = DualRib::default();
    routes.insert(prefix, hop(3)).unwrap();
    assert!(vrfs.swap(nobody, &mut routes).is_err());
    assert_eq!(routes.len(), 1);
    let mut reader = vrfs.reader().unwrap();
    let mut found = [Some(hop(1)); 3];
    reader.pin().lookup_batch(&[0_u32, 5, u32::MAX], &[1_u32, 2, 3], &mut found);
    assert_eq!(found, [None; 3]);
    assert!(reader.pin().batch(&[0_u32], &[1_u32, 2]).try_run(&mut [None; 2]).is_err());
    assert_eq!(TableError::UnknownVrf(nobody).to_string(), "there is no VRF 5");
}

#[test]
fn what_is_refused_leaves_everything_as_it_was() {
    let mut random = Random(5);
    let limits = Limits { memory_bytes: Some(40_000), huge_pages: false };
    let vrfs = Vrfs::with_options(Options { limits, ..options() }).unwrap();
    let [one, two] = [vrfs.create().unwrap(), vrfs.create().unwrap()];
    let mut routes = table(&mut random, 12, 1);
    let expected = DualRib::new(routes.v4.clone(), routes.v6.clone());
    vrfs.swap(one, &mut routes).unwrap();
    // Structures of their own are more than the limit.
    for count in [40, 400] {
        let mut large = table(&mut random, count, 2);
        let before = DualRib::new(large.v4.clone(), large.v6.clone());
        assert!(matches!(
            vrfs.swap(two, &mut large),
            Err(TableError::Routes(_) | TableError::Structure(_) | TableError::Memory(_))
        ));
        assert!(large.iter().eq(before.iter()), "the routes are given back");
        vrfs.check().unwrap();
    }
    // The second family is refused when the first one is made.
    let mut large = table(&mut random, 3, 2);
    for _ in 0..3_000 {
        large.v6.insert(Route::new(prefix(&mut random), hop(1 + random.below(500) as u32))).unwrap();
    }
    let before = DualRib::new(large.v4.clone(), large.v6.clone());
    assert!(matches!(
        vrfs.swap(two, &mut large),
        Err(TableError::Routes(_) | TableError::Structure(_) | TableError::Memory(_))
    ));
    assert!(large.iter().eq(before.iter()), "the routes are given back");
    let many: Vec<_> = (0..300).map(|_| Change::Insert(Route::new(prefix(&mut random), hop(1)))).collect();
    assert!(vrfs.apply::<u32>(one, &many).is_err());
    assert!(vrfs.apply_atomic(one, &[], &[Change::Remove(Prefix::ALL)]).is_ok());
    let mut left = expected.v6.clone();
    left.remove(Prefix::ALL);
    let routes = vrfs.routes(one).unwrap();
    assert!(routes.v4.iter().eq(expected.v4.iter()) && routes.v6.iter().eq(left.iter()));
    assert_eq!(vrfs.len(two), Ok(0));
    vrfs.check().unwrap();
}

#[test]
fn a_reader_that_stays_pinned_is_named_and_holds_what_it_sees() {
    let mut random = Random(9);
    let vrfs = Vrfs::with_options(Options { retired_bytes: 1 << 10, ..options() }).unwrap();
    let vrf = vrfs.create().unwrap();
    let first = table(&mut random, 60, 1);
    vrfs.swap(vrf, &mut DualRib::new(first.v4.clone(), first.v6.clone())).unwrap();
    let mut reader = vrfs.reader().unwrap();
    let pin = reader.pin();
    // Large tables take turns with small ones of other next hops, in the same places.
    let stalled = (0..200).find_map(|round| {
        let mut routes = table(&mut random, [50, 5][round % 2], 2);
        vrfs.swap(vrf, &mut routes).err()
    });
    let Some(TableError::Stalled { reader: number, .. }) = stalled else {
        panic!("{stalled:?}");
    };
    for route in first.v4.iter() {
        let key = route.prefix.last();
        assert_eq!(pin.lookup(vrf, key), first.v4.lookup(key), "an old directory leads to what it led to");
    }
    drop(pin);
    assert_eq!(number, reader.number());
    vrfs.swap(vrf, &mut table(&mut random, 9, 3)).unwrap();
    assert_eq!(vrfs.statistics().unwrap().totals.retired_bytes, 0);
    vrfs.check().unwrap();
}

#[test]
fn tables_that_shrink_go_into_blocks() {
    let mut random = Random(21);
    let vrfs = Vrfs::with_options(options()).unwrap();
    let vrf = vrfs.create().unwrap();
    let mut routes = table(&mut random, 100, 1);
    vrfs.swap(vrf, &mut routes).unwrap();
    assert_eq!(vrfs.statistics().unwrap().structure_count.v4, 1);
    let all: Vec<_> =
        vrfs.routes(vrf).unwrap().v4.iter().skip(3).map(|route| Change::Remove(route.prefix)).collect();
    vrfs.apply(vrf, &all).unwrap();
    vrfs.maintain().unwrap();
    let statistics = vrfs.statistics().unwrap();
    assert_eq!((statistics.structure_count.v4, statistics.structure_count.v6), (0, 1));
    assert_eq!(vrfs.routes(vrf).unwrap().v4.len(), 3);
    vrfs.check().unwrap();
}

#[test]
fn a_block_is_not_written_over_while_a_reader_is_in_it() {
    let vrfs = Vrfs::with_options(options()).unwrap();
    let [one, two] = [vrfs.create().unwrap(), vrfs.create().unwrap()];
    let all: Prefix<u32> = Prefix::ALL;
    vrfs.insert(one, all, hop(1)).unwrap();
    let mut reader = vrfs.reader().unwrap();
    let pin = reader.pin();
    let before = vrfs.statistics().unwrap().blocks.v4.lookup_bytes;
    vrfs.delete(one).unwrap();
    // The lines of the old block are not those of the new one, although nothing has the old one any more.
    vrfs.insert(two, all, hop(2)).unwrap();
    let during = vrfs.statistics().unwrap();
    assert_eq!((during.blocks.v4.lookup_bytes, during.totals.retired_bytes), (before + 64, 64));
    drop(pin);
    vrfs.insert(two, all, hop(3)).unwrap();
    vrfs.insert(two, all, hop(4)).unwrap();
    assert_eq!(vrfs.statistics().unwrap().totals.retired_bytes, 0);
    vrfs.check().unwrap();
}

#[test]
fn rows_of_many_structures_are_told_apart() {
    // More than are sorted by place.
    const VRFS: u32 = 130;
    let vrfs = Vrfs::with_options(Options { small_routes: 0, ..options() }).unwrap();
    for id in 1..=VRFS {
        let vrf = vrfs.create().unwrap();
        vrfs.insert(vrf, Prefix::<u128>::ALL, hop(id)).unwrap();
    }
    assert_eq!(vrfs.statistics().unwrap().structure_count.v6, VRFS as usize);
    let mut random = Random(2);
    let rows: Vec<u32> = (0..1500).map(|_| random.below(u64::from(VRFS)) as u32).collect();
    let mut found = vec![None; rows.len()];
    let mut reader = vrfs.reader().unwrap();
    reader.pin().lookup_batch(&rows, &vec![0_u128; rows.len()], &mut found);
    assert!(rows.iter().zip(&found).all(|(row, found)| *found == Some(hop(row + 1))));
}

/// Next hops of a VRF are those of its tenant, `tenant * 4096 + version`. Readers see those of a tenant that had the number
/// since the pin began, and of no other.
#[test]
fn readers_never_see_a_route_of_another_vrf() {
    const NUMBERS: usize = 8;
    let vrfs = Vrfs::with_options(Options { vrfs: NUMBERS as u32, ..options() }).unwrap();
    // The tenant of each number, 0 for none.
    let tenants: Vec<AtomicU64> = (0..NUMBERS).map(|_| AtomicU64::new(0)).collect();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        for seed in 0..2 {
            let (mut reader, tenants, is_done) = (vrfs.reader().unwrap(), &tenants, &is_done);
            scope.spawn(move || {
                let mut random = Random(seed + 100);
                let mut found = vec![None; 300];
                while !is_done.load(Ordering::Relaxed) {
                    let before: Vec<u64> =
                        tenants.iter().map(|tenant| tenant.load(Ordering::SeqCst)).collect();
                    let pin = reader.pin();
                    let rows: Vec<u32> = (0..300).map(|_| random.below(NUMBERS as u64) as u32).collect();
                    let keys: Vec<u32> =
                        rows.iter().map(|_| random.below(1 << 9) as u32 * (1 << 18)).collect();
                    pin.lookup_batch(&rows, &keys, &mut found);
                    drop(pin);
                    let after: Vec<u64> =
                        tenants.iter().map(|tenant| tenant.load(Ordering::SeqCst)).collect();
                    for (&row, found) in rows.iter().zip(&found) {
                        let Some(next_hop) = *found else { continue };
                        let tenant = u64::from(next_hop.id() / 4096);
                        let (first, last) = (before[row as usize], after[row as usize]);
                        // Tenants ascend: whoever had the number meanwhile is between the two.
                        assert!(tenant % NUMBERS as u64 == u64::from(row), "{tenant} in {row}");
                        assert!(first <= tenant && tenant <= last, "{first} {tenant} {last}");
                    }
                }
            });
        }
        let mut random = Random(1);
        let mut there: BTreeMap<Vrf, u64> = BTreeMap::new();
        let mut next = 0;
        for version in 0..1500_u32 {
            let vrf = Vrf::new(random.below(NUMBERS as u64) as u32);
            let Some(&tenant) = there.get(&vrf) else {
                if let Ok(vrf) = vrfs.create() {
                    next += NUMBERS as u64;
                    let tenant = next + u64::from(vrf.number());
                    tenants[vrf.index()].store(tenant, Ordering::SeqCst);
                    there.insert(vrf, tenant);
                }
                continue;
            };
            let id = hop(tenant as u32 * 4096 + version % 4096);
            match random.below(6) {
                0 => {
                    vrfs.delete(vrf).unwrap();
                    there.remove(&vrf);
                }
                1 => {
                    let mut routes = DualRib::default();
                    for _ in 0..random.below(50) {
                        routes.v4.insert(Route::new(prefix(&mut random), id)).unwrap();
                    }
                    vrfs.swap(vrf, &mut routes).unwrap();
                }
                2 => vrfs
                    .apply_atomic(vrf, &[Change::Insert(Route::new(prefix(&mut random), id))], &[])
                    .map(drop)
                    .unwrap(),
                _ => {
                    let changes: Vec<_> = (0..1 + random.below(5))
                        .map(|_| match random.below(3) {
                            0 => Change::Remove(prefix::<u32>(&mut random)),
                            _ => Change::Insert(Route::new(prefix(&mut random), id)),
                        })
                        .collect();
                    vrfs.apply(vrf, &changes).map(drop).unwrap();
                }
            }
        }
        is_done.store(true, Ordering::Relaxed);
    });
    vrfs.check().unwrap();
}

#[test]
fn the_routes_around_a_prefix_are_those_of_its_vrf() {
    let mut random = Random(29);
    let vrfs = Vrfs::with_options(options()).unwrap();
    // Without routes, in a block, and in a structure.
    for count in [0, 12, 200] {
        let vrf = vrfs.create().unwrap();
        let mut routes = table(&mut random, count, vrf.number());
        let model = DualRib::new(routes.v4.clone(), routes.v6.clone());
        vrfs.swap(vrf, &mut routes).unwrap();
        for _ in 0..200 {
            let (v4, v6) = (prefix::<u32>(&mut random), prefix::<u128>(&mut random));
            let scan: Vec<_> = model.v4.iter().filter(|route| route.prefix.covers(v4)).collect();
            assert_eq!(vrfs.covers(vrf, v4).unwrap(), scan);
            let scan: Vec<_> = model.v6.iter().filter(|route| route.prefix.covers(v6)).collect();
            assert_eq!(vrfs.covers(vrf, v6).unwrap(), scan);
            for address in [v4.network().into(), IpAddr::from(v6.network())] {
                let around = model.iter().filter(|(prefix, _)| prefix.contains(address));
                let longest = around.max_by_key(|(prefix, _)| prefix.len());
                assert_eq!(vrfs.lookup_prefix(vrf, address).unwrap(), longest);
            }
        }
    }
    let unknown = Vrf::new(99);
    assert_eq!(vrfs.covers(unknown, Prefix::<u32>::ALL), Err(TableError::UnknownVrf(unknown)));
    assert_eq!(vrfs.lookup_prefix(unknown, Ipv4Addr::LOCALHOST), Err(TableError::UnknownVrf(unknown)));
}

#[test]
fn a_vrf_is_its_number() {
    assert_eq!((u32::from(Vrf::new(70_000)), u32::from(Vrf::from(7_u16))), (70_000, 7));
}
