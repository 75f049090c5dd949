//! What listeners are told: a copy that makes the same stores has the same words after every publication. Whether it answers
//! alike between any two stores is tested where structures are, for all addresses of narrow keys (`fib/in_place_tests.rs`).

use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::engines::{Dir18Lines, Dir248, DirBtree, EngineType, PlanB, RangeBtree};
use crate::fib::in_place_tests::Mirror;
use crate::memory::Limits;
use crate::net::{Change, Dual, Family, NextHop, Prefix, Route};
use crate::random::Random;
use crate::rib::{DualRib, Rib};

use super::tests::{V4, V6};
use super::{Listener, Options, Rooms, Stored, Structure, Table, TableError, TableKey};

/// What was told of one family, or of both.
#[derive(Default)]
struct Copy {
    v4: OfFamily,
    v6: OfFamily,
    version: u64,
    /// Stores since the last publication.
    stores: usize,
}

#[derive(Default)]
struct OfFamily {
    mirror: Mirror,
    generation: u32,
    engine: &'static str,
    /// Structures, stores of whole arrays and of parts.
    told: [usize; 3],
}

/// A listener that the test can look into.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Copy>>);

impl Shared {
    fn with<R>(&self, with: impl FnOnce(&mut Copy) -> R) -> R {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Copy {
    fn family(&mut self, family: Family) -> &mut OfFamily {
        if family == Family::Ipv4 { &mut self.v4 } else { &mut self.v6 }
    }
}

impl Listener for Shared {
    fn structure(&mut self, structure: &Structure<'_>) {
        self.with(|copy| {
            copy.stores += 1;
            let family = copy.family(structure.family);
            assert!(structure.generation == family.generation + 1 || family.told[0] == 0);
            *family = OfFamily { mirror: Mirror::default(), ..*family };
            family.told[0] += 1;
            (family.generation, family.engine) = (structure.generation, structure.engine);
        });
    }

    fn stored(&mut self, stored: &Stored<'_>) {
        self.with(|copy| {
            copy.stores += 1;
            let family = copy.family(stored.family);
            assert_eq!(stored.generation, family.generation);
            assert!(stored.first + stored.words.len() <= stored.room);
            family.told[if stored.is_whole { 1 } else { 2 }] += 1;
            family.mirror.store(stored.array, stored.first, stored.words, stored.is_whole);
        });
    }

    fn published(&mut self, version: u64) {
        self.with(|copy| {
            assert!(core::mem::take(&mut copy.stores) > 0, "a publication of nothing");
            assert!(version > copy.version, "{version} after {}", copy.version);
            copy.version = version;
            copy.v4.mirror.published();
            copy.v6.mirror.published();
        });
    }
}

/// Asserts that the copy has the words of the structure, and answers as the routes say if nothing waits.
fn agrees<K: TableKey>(table: &Table, copy: &Shared, rib: &Rib<K>, keys: &[K]) {
    let writer = table.lock().unwrap();
    let family = K::writer(&writer);
    copy.with(|copy| {
        let waits = writer.waiting() > 0;
        let of_family = copy.family(K::FAMILY);
        assert_eq!(of_family.generation, family.generation);
        let Some(editor) = family.editor() else { return };
        of_family.mirror.assert_equals(editor);
        let is_right = |key, found| found == rib.lookup_prefix(key).map(|route| route.next_hop);
        if !waits {
            of_family.mirror.assert_answers(&editor.mirrored(), is_right, keys);
        }
    });
}

/// Changes a table for long, and compares a copy with it after every call.
fn follows<K: TableKey>(options: Options, lengths: &[u8], rounds: usize) -> [usize; 3] {
    let mut random = Random(17);
    let mut rib = Rib::<K>::default();
    for _ in 0..3_000 {
        rib.apply(&[random.change(lengths, 300)]).unwrap();
    }
    let (mut v4, mut v6) = (Rib::default(), Rib::default());
    let all: Vec<_> = rib.iter().map(Change::Insert).collect();
    let (of_v4, of_v6) = K::split(&all);
    v4.apply(of_v4).unwrap();
    v6.apply(of_v6).unwrap();
    let table = Table::from_routes(DualRib::new(v4, v6), options).unwrap();
    let copy = Shared::default();
    table.listen(copy.clone()).unwrap();
    let mut reader = table.reader().unwrap();
    for round in 0..rounds {
        let hops = if round % 5 == 4 { 100_000 } else { 300 };
        let mut changes: Vec<Change<K>> =
            (0..1 + random.below(64)).map(|_| random.change(lengths, hops)).collect();
        if round == rounds / 2 {
            // What is left takes much less when it is built anew.
            changes = rib.iter().skip(rib.len() / 9).map(|route| Change::Remove(route.prefix)).collect();
        }
        rib.apply(&changes).unwrap();
        // What was replaced meanwhile is free only later.
        let pin = (round % 3 == 0).then(|| reader.pin());
        let (v4, v6) = K::split(&changes);
        let _ = if round % 7 == 3 { table.apply_atomic(v4, v6) } else { table.apply(&changes) }.unwrap();
        let addresses = changes.iter().flat_map(|change| [change.prefix().addr(), change.prefix().last()]);
        let keys: Vec<K> = addresses.take(200).collect();
        agrees(&table, &copy, &rib, &keys);
        drop(pin);
        match round % 10 {
            4 => drop(table.flush().unwrap()),
            7 => drop(table.maintain().unwrap()),
            _ => {}
        }
        agrees(&table, &copy, &rib, &keys);
    }
    let end = table.flush().unwrap();
    assert!(end.waiting == 0 && copy.with(|copy| copy.version) >= end.version);
    table.check().unwrap();
    copy.with(|copy| copy.family(K::FAMILY).told)
}

#[test]
fn a_copy_of_the_default_structures_has_their_words() {
    for told in [follows::<u32>(Options::default(), V4, 150), follows::<u128>(Options::default(), V6, 60)] {
        // The first structure and the one after most routes have gone; atomic changes; all others.
        assert!(told[0] > 1 && told[1] > 10 && told[2] > 1_000, "{told:?}");
    }
}

#[test]
fn a_copy_of_dir_18_lines_has_its_words() {
    let told = follows::<u32>(Options::of::<Dir18Lines, DirBtree>(), &V4[1..], 60);
    assert!(told[0] > 1 && told[1] > 10 && told[2] > 1_000, "{told:?}");
}

#[test]
fn a_copy_of_dir_24_8_has_its_words() {
    // Few changes: each comparison is of 8 million words.
    let told = follows::<u32>(Options::of::<Dir248, DirBtree>(), &V4[1..], 12);
    assert!(told[0] > 1 && told[1] > 3 && told[2] > 100, "{told:?}");
}

#[test]
fn a_copy_follows_changes_that_wait() {
    let coalesce = Options { coalesce: Duration::from_secs(1_000), ..Options::default() };
    let background = Options { background: true, ..Options::default() };
    for options in [coalesce, background] {
        follows::<u32>(options, V4, 60);
        follows::<u128>(options, V6, 30);
    }
}

#[test]
fn a_structure_that_is_built_in_the_background_is_told_of() {
    let options = Options { background: true, ..Options::default() };
    let routes = |count: u32| {
        (0..count).map(|at| Route::new(Prefix::<u32>::masked(at << 10, 24).unwrap(), hop(1 + at % 999)))
    };
    let mut rib = Rib::default();
    for route in routes(40_000) {
        rib.insert(route).unwrap();
    }
    let table = Table::from_routes(DualRib::new(rib, Rib::default()), options).unwrap();
    let copy = Shared::default();
    table.listen(copy.clone()).unwrap();
    let gone: Vec<_> = routes(39_000).map(|route| Change::Remove(route.prefix)).collect();
    let _ = table.apply(&gone).unwrap();
    while copy.with(|copy| copy.v4.generation) == 0 {
        let _ = table.maintain().unwrap();
        thread::sleep(Duration::from_millis(1));
    }
    let rib = table.routes().unwrap().v4;
    agrees(&table, &copy, &rib, &[0, 39_000 << 10, 39_999 << 10 | 77, u32::MAX]);
    assert_eq!(copy.with(|copy| (copy.v4.told[0], copy.v4.engine)), (2, "dir-17-bitmap"));
}

fn hop(id: u32) -> NextHop {
    NextHop::new(id).unwrap()
}

#[test]
fn structures_without_arrays_that_change_are_named() {
    let table = Table::from_routes(DualRib::default(), Options::of::<RangeBtree, PlanB>()).unwrap();
    let prefix: Prefix<u32> = "10.0.0.0/8".parse().unwrap();
    let _ = table.insert(prefix, hop(1)).unwrap();
    let copy = Shared::default();
    table.listen(copy.clone()).unwrap();
    let seen = |copy: &Shared| copy.with(|copy| (copy.v4.engine, copy.v4.generation, copy.v4.told));
    assert_eq!(seen(&copy), ("range-btree", 1, [1, 0, 0]));
    let _ = table.insert(prefix, hop(2)).unwrap();
    assert_eq!(seen(&copy), ("range-btree", 2, [2, 0, 0]));
    // Changes that are refused or change nothing are not told of, nor is anything afterwards.
    let _ = table.insert(prefix, hop(2)).unwrap();
    assert!(table.stop_listening().unwrap().is_some() && table.stop_listening().unwrap().is_none());
    let _ = table.insert(prefix, hop(3)).unwrap();
    assert_eq!(seen(&copy), ("range-btree", 2, [2, 0, 0]));
}

#[test]
fn another_engine_is_told_of_whole_and_by_its_name() {
    let table = Table::from_routes(DualRib::default(), Options::default()).unwrap();
    let prefix: Prefix<u32> = "10.0.0.0/8".parse().unwrap();
    let _ = table.insert(prefix, hop(1)).unwrap();
    let copy = Shared::default();
    table.listen(copy.clone()).unwrap();
    let seen = |copy: &Shared| copy.with(|copy| (copy.v4.engine, copy.v4.generation, copy.v4.told[0]));
    assert_eq!(seen(&copy), ("dir-17-bitmap", 0, 1));
    let _ = table.set_engine(Dir18Lines::engine()).unwrap();
    assert_eq!(seen(&copy), ("dir-18-lines", 1, 2));
    let _ = table.insert(prefix, hop(2)).unwrap();
    let rib = table.routes().unwrap().v4;
    agrees(&table, &copy, &rib, &[0, 10 << 24, 10 << 24 | 77, 11 << 24]);
    assert_eq!(seen(&copy), ("dir-18-lines", 1, 2));
    // A listener without room for it keeps the engine that there is.
    let _ = table.stop_listening().unwrap();
    table.listen_within(Shared::default(), Dual::new(Rooms([1 << 20; 4]), Rooms::default())).unwrap();
    let refused = table.set_engine(Dir248::engine()).unwrap_err();
    assert!(matches!(refused, TableError::Room { engine: "dir-24-8", .. }), "{refused}");
    assert_eq!(table.engine::<u32>().unwrap().name, "dir-18-lines");
}

#[test]
fn a_listener_that_panics_leaves_lookups_as_they_are() {
    struct Panics;
    impl Listener for Panics {
        fn structure(&mut self, _: &Structure<'_>) {}
        fn stored(&mut self, stored: &Stored<'_>) {
            assert!(stored.is_whole, "on purpose");
        }
    }
    let table =
        Table::from_routes(DualRib::default(), Options { limits: Limits::default(), ..Options::default() })
            .unwrap();
    let prefix: Prefix<u32> = "10.0.0.0/8".parse().unwrap();
    let _ = table.insert(prefix, hop(1)).unwrap();
    let mut reader = table.reader().unwrap();
    table.listen(Panics).unwrap();
    let handle = table.clone();
    assert!(thread::spawn(move || handle.insert(prefix, hop(2))).join().is_err());
    assert_eq!(table.remove(prefix), Err(TableError::Poisoned));
    assert_eq!(reader.pin().lookup(10u32 << 24), Some(hop(1)));
}

/// Fills a table until a listener that has no room left refuses a change. Returns the array that was full.
fn outgrows<K: TableKey>(options: Options, rooms: [usize; 4], len: u8) -> u8 {
    let table = Table::from_routes(DualRib::default(), options).unwrap();
    let copy = Shared::default();
    let rooms = Rooms(rooms);
    let of = |family| if family == K::FAMILY { rooms } else { Rooms::default() };
    table.listen_within(copy.clone(), Dual::new(of(Family::Ipv4), of(Family::Ipv6))).unwrap();
    let mut rib = Rib::<K>::default();
    let mut random = Random(29);
    let (mut refused, mut full, mut rounds) = (0, None, 0);
    while refused < 12 {
        rounds += 1;
        let before = table.statistics().unwrap().totals.version;
        assert!(rounds < 5_000, "nothing is full");
        let changes: Vec<Change<K>> = (0..64)
            .map(|_| {
                // All over the space, so that no prefix is taken twice for long.
                let high = u128::from(random.below(1 << 31)) << (K::BITS - 31);
                let bits = high | u128::from(random.below(1 << 16));
                let prefix = Prefix::masked(K::from_bits(bits), len - 4 * random.below(2) as u8).unwrap();
                Change::Insert(Route::new(prefix, hop(1 + random.below(200) as u32)))
            })
            .collect();
        let is_refused = match table.apply(&changes) {
            Ok(_) => {
                rib.apply(&changes).unwrap();
                false
            }
            Err(TableError::Room { family, array, words, room, .. }) => {
                assert!(family == K::FAMILY && words > room && room == rooms.0[usize::from(array)]);
                assert_eq!(table.statistics().unwrap().totals.version, before);
                (refused, full) = (refused + 1, Some(array));
                true
            }
            Err(other) => panic!("{other}"),
        };
        if is_refused && refused % 3 == 0 {
            // Because fewer routes have room, changes that remove some are made.
            let gone: Vec<_> = rib.iter().step_by(3).map(|route| Change::Remove(route.prefix)).collect();
            if table.apply(&gone).is_ok() {
                rib.apply(&gone).unwrap();
            }
        }
        // Not every time, because a comparison is of all words.
        if is_refused || rounds % 32 == 0 {
            let keys: Vec<K> = changes.iter().map(|change| change.prefix().addr()).collect();
            agrees(&table, &copy, &rib, &keys);
            copy.with(|copy| copy.family(K::FAMILY).mirror.assert_within(&rooms));
        }
    }
    table.check().unwrap();
    full.unwrap()
}

#[test]
fn a_table_that_outgrows_its_listener_is_refused_and_serves() {
    let lines = Options::of::<Dir18Lines, DirBtree>();
    let all = usize::MAX;
    assert_eq!(outgrows::<u32>(Options::default(), [all, 9_000, all, all], 24), 1);
    assert_eq!(outgrows::<u32>(lines, [all, 16 * 900, all, all], 24), 1);
    assert_eq!(outgrows::<u32>(lines, [all, all, 1_000, all], 24), 2);
    assert_eq!(outgrows::<u32>(lines, [all, all, all, 5_000], 28), 3);
    assert_eq!(outgrows::<u128>(Options::default(), [2_000, all, all, all], 40), 0);
    assert_eq!(outgrows::<u128>(Options::default(), [all, 16 * 300, all, all], 60), 1);
    assert_eq!(outgrows::<u128>(Options::default(), [all, all, 4_000, all], 100), 2);
}

#[test]
fn a_listener_without_room_is_not_taken() {
    let table = Table::new().unwrap();
    let few = |array: usize| {
        let mut rooms = [usize::MAX; 4];
        rooms[array] = 1;
        Rooms(rooms)
    };
    let prefix: Prefix<u32> = "10.0.0.0/8".parse().unwrap();
    let _ = table.insert(prefix, hop(1)).unwrap();
    let first = Shared::default();
    table.listen(first.clone()).unwrap();
    for rooms in [Dual::new(few(1), Rooms::default()), Dual::new(Rooms::default(), few(0))] {
        let refused = table.listen_within(Shared::default(), rooms);
        assert!(matches!(refused, Err(TableError::Room { words, room: 1, .. }) if words > 1), "{refused:?}");
        let message = refused.unwrap_err().to_string();
        assert!(message.contains("has room for 1: make the copy again with more room"), "{message}");
    }
    // The first listener still listens, and nothing limits the table.
    let _ = table.insert(prefix, hop(2)).unwrap();
    assert_eq!(copy_version(&first), table.statistics().unwrap().totals.version);
    // An engine that is rebuilt at every change has no arrays, so nothing is limited.
    let rebuilt = Table::from_routes(DualRib::default(), Options::of::<RangeBtree, PlanB>()).unwrap();
    rebuilt.listen_within(Shared::default(), Dual::new(few(0), few(0))).unwrap();
}

fn copy_version(copy: &Shared) -> u64 {
    copy.with(|copy| copy.version)
}

#[test]
fn a_listener_may_call_its_table_when_it_is_dropped() {
    struct Asks(Table);
    impl Listener for Asks {
        fn structure(&mut self, _: &Structure<'_>) {}
        fn stored(&mut self, _: &Stored<'_>) {}
    }
    impl Drop for Asks {
        fn drop(&mut self) {
            assert!(self.0.is_empty().unwrap());
        }
    }
    let (sender, receiver) = std::sync::mpsc::channel();
    let ask = move || {
        let table = Table::new().unwrap();
        table.listen(Asks(table.clone())).unwrap();
        table.listen(Asks(table.clone())).unwrap();
        drop(table.stop_listening().unwrap());
        sender.send(()).unwrap();
    };
    thread::spawn(ask);
    // Generous, because nothing but a deadlock takes so long.
    receiver.recv_timeout(Duration::from_secs(60)).expect("no deadlock");
}
