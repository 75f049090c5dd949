//! The table as a whole: what changes do to lookups, to memory and to each other.

use core::net::{Ipv4Addr, Ipv6Addr};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use core::time::Duration;
use std::sync::{Mutex, mpsc};
use std::thread;

use crate::engines::{BinaryTrie, Dir17Bitmap, Dir18Lines, Dir248, EngineType, PlanB, RangeBtree};
use crate::fib::registry::Engine;
use crate::memory::Limits;
use crate::net::{Change, IpPrefix, Key, NextHop, Prefix, Route};
use crate::random::Random;
use crate::rib::{DualRib, Rib};

use super::family::{FamilyWriter, When};
use super::{Options, Outcome, Table, TableError, TableKey};

fn hop(id: u32) -> NextHop {
    NextHop::new(id).unwrap()
}

impl Random {
    /// A prefix in a small part of the space, so that prefixes meet.
    pub(super) fn prefix<K: Key>(&mut self, lengths: &[u8]) -> Prefix<K> {
        let len = lengths[self.below(lengths.len() as u64) as usize];
        let bits = u128::from(self.below(1 << 12)) << (K::BITS - 20) | u128::from(self.below(1 << 10));
        Prefix::masked(K::from_bits(bits | 10 << (K::BITS - 8)), len).unwrap()
    }

    pub(super) fn change<K: Key>(&mut self, lengths: &[u8], hops: u64) -> Change<K> {
        let prefix = self.prefix(lengths);
        match self.below(3) {
            0 => Change::Remove(prefix),
            _ => Change::Insert(Route::new(prefix, hop(1 + self.below(hops) as u32))),
        }
    }
}

fn agrees<K: TableKey>(table: &Table, rib: &Rib<K>, keys: &[K]) {
    let mut reader = table.reader().unwrap();
    let pin = reader.pin();
    let mut found = vec![None; keys.len()];
    pin.lookup_batch(keys, &mut found);
    for (&key, &found) in keys.iter().zip(&found) {
        let expected = rib.lookup_prefix(key).map(|route| route.next_hop);
        assert_eq!((found, pin.lookup(key)), (expected, expected), "{}", key.address());
    }
}

/// Applies changes in batches of many sizes, and compares with a table that has the same.
fn follows<K: TableKey>(options: Options, lengths: &[u8], rounds: usize) {
    let mut random = Random(7);
    let table = Table::from_routes(DualRib::default(), options).unwrap();
    let mut rib = Rib::<K>::default();
    for round in 0..rounds {
        let hops = if round % 5 == 4 { 100_000 } else { 300 };
        let changes: Vec<Change<K>> =
            (0..1 + random.below(64)).map(|_| random.change(lengths, hops)).collect();
        let outcome = table.apply(&changes).unwrap();
        assert_eq!(outcome.changed + outcome.unchanged + outcome.absent, changes.len());
        rib.apply(&changes).unwrap();
        let keys: Vec<K> = changes
            .iter()
            .flat_map(|change| [change.prefix().addr(), change.prefix().last()])
            .chain((0..50).map(|_| random.prefix::<K>(&[K::BITS]).addr()))
            .collect();
        agrees(&table, &rib, &keys);
        table.check().unwrap();
    }
    assert_eq!(table.len().unwrap(), rib.len());
    let statistics = table.statistics().unwrap();
    assert!(statistics.totals.changed > 0 && statistics.retired_bytes == 0, "{statistics:?}");
    let parts = statistics.routes + statistics.structures.v4 + statistics.structures.v6;
    assert_eq!(table.memory().unwrap(), parts + statistics.bookkeeping);
}

pub(super) const V4: &[u8] = &[0, 8, 12, 14, 16, 17, 18, 20, 22, 24, 24, 24, 24, 26, 30, 32, 32];
pub(super) const V6: &[u8] = &[0, 12, 20, 24, 28, 32, 36, 40, 44, 48, 48, 48, 52, 56, 64, 96, 127, 128];

#[test]
fn the_default_structures_follow_the_routes() {
    follows::<u32>(Options::default(), V4, 300);
    follows::<u128>(Options::default(), V6, 60);
}

#[test]
fn structures_of_fewer_routes_follow_the_routes() {
    for aggregate in [Options::default(), Options::of::<RangeBtree, PlanB>()] {
        let aggregate = Options { aggregate: true, ..aggregate };
        follows::<u32>(aggregate, V4, 100);
        follows::<u128>(aggregate, V6, 30);
    }
    let table =
        Table::from_routes(DualRib::default(), Options { aggregate: true, ..Options::default() }).unwrap();
    let prefix = |at: u32| Prefix::<u32>::masked(at << 8, 24).unwrap();
    for at in 0..400 {
        let _ = table.insert(prefix(at), hop(1 + at % 2)).unwrap();
    }
    // One next hop would do for each two blocks, below a route with the other.
    let before = table.statistics().unwrap().routes.held_bytes();
    let _ = table.maintain().unwrap();
    assert!(table.statistics().unwrap().routes.held_bytes() < before);
    table.check().unwrap();
}

#[test]
fn every_structure_follows_the_routes() {
    for engine in crate::fib::engines::<u32>() {
        follows::<u32>(Options { ipv4: engine, ..Options::default() }, &V4[3..], 3);
    }
    for engine in crate::fib::engines::<u128>() {
        follows::<u128>(Options { ipv6: engine, ..Options::default() }, &V6[3..], 3);
    }
}

/// Changes of one answer each, in a part of the space that is full of routes and in one with few, whose units come to have one next
/// hop. Old pins see nothing of those that are atomic.
fn stores_single_answers(options: Options) {
    let mut random = Random(3);
    let mut rib = Rib::<u32>::default();
    let full = |at: u64, len| Prefix::<u32>::masked(10 << 24 | (at as u32) << 8, len).unwrap();
    rib.insert(Route::new("11.0.0.0/8".parse().unwrap(), hop(1))).unwrap();
    for at in 0..2_000 {
        rib.insert(Route::new(full(at, 24), hop(1 + random.below(2) as u32))).unwrap();
    }
    let table = Table::from_routes(DualRib::new(rib.clone(), Rib::default()), options).unwrap();
    let mut reader = table.reader().unwrap();
    for round in 0..500 {
        let change = |_| {
            let len = [16, 18, 19, 20, 22, 23, 24, 24, 24][random.below(9) as usize];
            let sparse = (1 << 16) + random.below(8) * 64 + random.below(2);
            let prefix =
                if random.below(3) == 0 { full(sparse, 24) } else { full(random.below(1 << 11), len) };
            match random.below(2) {
                0 => Change::Remove(prefix),
                _ => Change::Insert(Route::new(prefix, hop(1 + random.below(2) as u32))),
            }
        };
        let changes: Vec<Change<u32>> = (0..1 + round % 5 / 4).map(change).collect();
        let keys: Vec<u32> = changes
            .iter()
            .flat_map(|change| [change.prefix().addr(), change.prefix().last()])
            .flat_map(|key| [key, key - 1, key + 1])
            .collect();
        if round % 3 == 0 {
            let pin = reader.pin();
            let _ = table.apply_atomic(&changes, &[]).unwrap();
            assert!(keys.iter().all(|&key| pin.lookup(key) == rib.lookup(key)), "round {round}");
        } else {
            let _ = table.apply(&changes).unwrap();
        }
        rib.apply(&changes).unwrap();
        agrees(&table, &rib, &keys);
        table.check().unwrap();
    }
}

#[test]
fn changes_of_one_answer_follow_the_routes() {
    stores_single_answers(Options::default());
    stores_single_answers(Options::of::<Dir18Lines, PlanB>());
}

#[test]
fn clear_outcomes_for_what_changes_nothing() {
    let table = Table::new().unwrap();
    let prefix: Prefix<u32> = "10.0.0.0/8".parse().unwrap();
    let before = table.remove(prefix).unwrap();
    assert_eq!((before.changed, before.absent), (0, 1));
    let first = table.insert(prefix, hop(1)).unwrap();
    assert!(first.changed == 1 && first.version > before.version);
    let again = table.insert(prefix, hop(1)).unwrap();
    assert_eq!((again.changed, again.unchanged, again.version), (0, 1, first.version));
    assert_eq!(table.get(prefix).unwrap(), Some(hop(1)));
    assert_eq!(table.lookup(Ipv4Addr::new(10, 2, 3, 4)).unwrap(), Some(hop(1)));
    assert!(Options::default().ipv4.in_place.is_some() && Options::default().ipv6.in_place.is_some());
}

/// One route for each of some /24s and a /18 above: what a stalled reader holds up is named and bounded, and lookups and
/// later changes are as if nothing had been tried.
#[test]
fn a_stalled_reader_is_named_and_bounds_hold() {
    let options = Options { retired_bytes: 4_000, patience: Duration::from_millis(5), ..Options::default() };
    let table = Table::from_routes(DualRib::default(), options).unwrap();
    let [mut stalled, mut other] = [table.reader().unwrap(), table.reader().unwrap()];
    let (number, pin) = (stalled.number(), stalled.pin());
    let prefix = |at: u32| Prefix::masked(at << 8, 24).unwrap();
    let mut refused = None;
    for at in 0..10_000 {
        drop(other.pin());
        if let Err(error) = table.insert(prefix(at % 128), hop(1 + at)) {
            refused = Some((at, error));
            break;
        }
    }
    let (at, error) = refused.expect("the limit is reached");
    let TableError::Stalled { reader, versions, retired_bytes } = error.clone() else { panic!("{error}") };
    assert!(reader == number && versions > 10 && (4_000..6_000).contains(&retired_bytes), "{error}");
    assert!(error.to_string().contains(&format!("reader {number} ")), "{error}");
    assert_eq!(table.get(prefix(at % 128)).unwrap(), at.checked_sub(127).map(hop));
    table.check().unwrap();
    drop(pin);
    assert_eq!(table.insert(prefix(at % 128), hop(7)).unwrap().changed, 1);
    table.maintain().unwrap();
    assert_eq!(table.statistics().unwrap().retired_bytes, 0);
    drop(stalled);
    assert_eq!(table.statistics().unwrap().readers, 1);
    table.check().unwrap();
}

/// A change that is refused at once would fail here: a reader moves on only after the changes have come to a halt.
#[test]
fn a_change_at_the_limit_waits_for_a_reader_that_moves_on() {
    const CHANGES: u32 = 10_000;
    let options = Options { retired_bytes: 4_000, patience: Duration::from_secs(60), ..Options::default() };
    let table = Table::from_routes(DualRib::default(), options).unwrap();
    let mut reader = table.reader().unwrap();
    let (made, (pinned, begin)) = (AtomicU32::new(0), mpsc::channel());
    thread::scope(|scope| {
        let stalled = scope.spawn(|| {
            let pin = reader.pin();
            pinned.send(()).unwrap();
            let mut before = u32::MAX;
            while before != made.load(Ordering::Relaxed) {
                before = made.load(Ordering::Relaxed);
                thread::sleep(Duration::from_millis(50));
            }
            drop(pin);
            before
        });
        begin.recv().unwrap();
        for at in 0..CHANGES {
            let prefix = Prefix::<u32>::masked((at % 128) << 8, 24).unwrap();
            assert_eq!(table.insert(prefix, hop(1 + at)).unwrap().changed, 1);
            made.store(at + 1, Ordering::Relaxed);
        }
        assert!(stalled.join().unwrap() < CHANGES);
    });
    table.check().unwrap();
}

/// Next hops count versions; a reader takes only those that were current at some time since its pin.
#[test]
fn answers_are_never_older_than_the_pin_nor_newer_than_now() {
    let table = Table::new().unwrap();
    let slots = 64;
    let prefix = |at: u32| Prefix::<u32>::masked(10 << 24 | at << 10 | (at % 3) << 8, 24).unwrap();
    // Versions that are being published, and that are.
    let (begun, ended) = (AtomicU32::new(1), AtomicU32::new(1));
    let all = |version| -> Vec<_> {
        (0..slots).map(|at| Change::Insert(Route::new(prefix(at), hop(version)))).collect()
    };
    let _ = table.apply(&all(1)).unwrap();
    let (stop, seen) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for number in 0..2 {
            let (table, begun, ended, stop, seen) = (&table, &begun, &ended, &stop, &seen);
            scope.spawn(move || {
                let mut reader = table.reader().unwrap();
                let keys: Vec<u32> = (0..256).map(|at| prefix(at % slots).addr() | at).collect();
                let mut found = vec![None; keys.len()];
                while !stop.load(Ordering::Relaxed) {
                    let least = ended.load(Ordering::SeqCst);
                    let mut pin = reader.pin();
                    if number == 1 {
                        pin.refresh();
                    }
                    pin.lookup_batch(&keys, &mut found);
                    let most = begun.load(Ordering::SeqCst);
                    for found in found.iter().map(|found| found.map_or(0, NextHop::id)) {
                        assert!((least..=most).contains(&found), "{found} of {least} to {most}");
                    }
                    seen.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut version = 1;
        while version < 3_000 || seen.load(Ordering::Relaxed) < 1_000 {
            version += 1;
            begun.store(version, Ordering::SeqCst);
            let _ = table.apply(&all(version)).unwrap();
            ended.store(version, Ordering::SeqCst);
        }
        stop.store(true, Ordering::Relaxed);
    });
    table.check().unwrap();
    table.maintain().unwrap();
    assert_eq!(table.statistics().unwrap().retired_bytes, 0);
}

#[test]
fn atomic_changes_are_seen_all_or_not_at_all() {
    let table = Table::new().unwrap();
    let v4: Vec<Prefix<u32>> = (1..9).map(|at: u32| Prefix::masked(at << 24 | 5, 32).unwrap()).collect();
    let v6: Vec<Prefix<u128>> = (1..9).map(|at: u128| Prefix::masked(at << 100, 40).unwrap()).collect();
    let all = |version: u32| {
        let hop = hop(version);
        let insert4 = v4.iter().map(|&prefix| Change::Insert(Route::new(prefix, hop))).collect::<Vec<_>>();
        let insert6 = v6.iter().map(|&prefix| Change::Insert(Route::new(prefix, hop))).collect::<Vec<_>>();
        table.apply_atomic(&insert4, &insert6).unwrap()
    };
    assert_eq!(all(1).changed, 16);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut reader = table.reader().unwrap();
            let mut pins = 0;
            while !stop.load(Ordering::Relaxed) || pins == 0 {
                let pin = reader.pin();
                let first = pin.lookup(v4[0].addr());
                for _ in 0..3 {
                    assert!(v4.iter().all(|prefix| pin.lookup(prefix.addr()) == first));
                    assert!(v6.iter().all(|prefix| pin.lookup(prefix.addr()) == first));
                }
                pins += 1;
            }
        });
        for version in 2..300 {
            let _ = all(version);
        }
        stop.store(true, Ordering::Relaxed);
    });
    table.check().unwrap();
}

#[test]
fn a_pin_sees_nothing_of_atomic_changes_after_it() {
    for ipv4 in [Dir17Bitmap::engine(), Dir18Lines::engine(), Dir248::engine()] {
        let table = Table::from_routes(DualRib::default(), Options { ipv4, ..Options::default() }).unwrap();
        // Two /24 of one line, so that a changed value could be stored where it is.
        let prefixes: [Prefix<u32>; 2] = ["10.0.0.0/24", "10.0.1.0/24"].map(|prefix| prefix.parse().unwrap());
        let insert = |at: usize, id| Change::Insert(Route::new(prefixes[at], hop(id)));
        let _ = table.apply(&[insert(0, 1), insert(1, 2)]).unwrap();
        let mut reader = table.reader().unwrap();
        let pin = reader.pin();
        for id in 3..6 {
            let _ = table.apply_atomic(&[insert(0, id)], &[]).unwrap();
            assert_eq!(pin.lookup(prefixes[0].addr()), Some(hop(1)), "{}", ipv4.name);
        }
        drop(pin);
        assert_eq!(reader.pin().lookup(prefixes[0].addr()), Some(hop(5)), "{}", ipv4.name);
    }
}

#[test]
fn lookups_go_on_while_a_thread_holds_the_table() {
    let table = Table::new().unwrap();
    let prefix: Prefix<u32> = "10.0.0.0/8".parse().unwrap();
    let _ = table.insert(prefix, hop(3)).unwrap();
    let mut reader = table.reader().unwrap();
    let (ask, asked) = mpsc::channel();
    let (answer, answered) = mpsc::channel();
    thread::spawn(move || {
        while asked.recv().is_ok() {
            let mut found = [None];
            let mut pin = reader.pin();
            pin.refresh();
            pin.lookup_batch(&[10u32 << 24], &mut found);
            answer.send([pin.lookup(10u32 << 24), found[0]]).unwrap();
        }
    });
    // The routes are read under the lock that changes take.
    let mut routes = 0;
    table
        .for_each::<u32>(|_| {
            ask.send(()).unwrap();
            assert_eq!(answered.recv_timeout(Duration::from_secs(60)), Ok([Some(hop(3)); 2]));
            routes += 1;
        })
        .unwrap();
    assert_eq!(routes, 1);
}

#[test]
fn a_writer_that_panics_leaves_lookups_as_they_were() {
    let table = Table::new().unwrap();
    let prefix: Prefix<u32> = "10.0.0.0/8".parse().unwrap();
    let _ = table.insert(prefix, hop(3)).unwrap();
    let mut reader = table.reader().unwrap();
    let handle = table.clone();
    let panicked = thread::spawn(move || handle.for_each::<u32>(|_| panic!("on purpose"))).join();
    assert!(panicked.is_err());
    let refused = [
        table.insert(prefix, hop(4)),
        table.apply_atomic(&[Change::Remove(prefix)], &[]),
        table.set_engine(Dir18Lines::engine()),
        table.maintain(),
        table.flush(),
    ];
    assert_eq!(refused, [const { Err(TableError::Poisoned) }; 5]);
    assert_eq!(reader.pin().lookup(10u32 << 24), Some(hop(3)));
    assert!(table.check().is_err());
}

#[test]
fn a_thread_maintains_the_table_until_it_is_told() {
    let table = Table::new().unwrap();
    let maintenance = table.maintain_every(Duration::from_millis(1)).unwrap();
    // A record, which is not stored in place.
    let prefix: Prefix<u32> = "10.0.0.1/32".parse().unwrap();
    let mut reader = table.reader().unwrap();
    let pin = reader.pin();
    let _ = table.insert(prefix, hop(3)).unwrap();
    let _ = table.insert(prefix, hop(4)).unwrap();
    assert!(table.statistics().unwrap().retired_bytes > 0);
    drop(pin);
    while table.statistics().unwrap().retired_bytes > 0 {
        thread::sleep(Duration::from_millis(1));
    }
    drop(maintenance);
}

/// Changes wait as the options say, and are all there after `flush`.
fn catches_up<K: TableKey>(options: Options) -> Outcome {
    let mut random = Random(11);
    let table = Table::from_routes(DualRib::default(), options).unwrap();
    let mut rib = Rib::<K>::default();
    let mut most = 0;
    for round in 0..40 {
        let hops = if round % 5 == 4 { 100_000 } else { 300 };
        let changes: Vec<Change<K>> = (0..1 + random.below(64)).map(|_| random.change(V4, hops)).collect();
        most = most.max(table.apply(&changes).unwrap().waiting);
        rib.apply(&changes).unwrap();
        table.check().unwrap();
        if round % 10 == 9 {
            assert_eq!(table.flush().unwrap().waiting, 0);
            let keys: Vec<K> = (0..500).map(|_| random.prefix::<K>(&[K::BITS]).addr()).collect();
            agrees(&table, &rib, &keys);
        }
    }
    assert!(most > 0, "something waits");
    table.statistics().unwrap().totals
}

#[test]
fn calls_that_need_not_wait_for_a_build_return_while_it_lasts() {
    /// Held while no build may end.
    static GATE: Mutex<()> = Mutex::new(());
    let gated = Engine {
        build: |routes, limits| {
            drop(GATE.lock());
            RangeBtree::engine().build(routes, limits)
        },
        ..RangeBtree::engine()
    };
    let options = Options { background: true, ipv4: gated, ..Options::default() };
    let table = Table::from_routes(DualRib::default(), options).unwrap();
    let may_end = AtomicBool::new(false);
    thread::scope(|scope| {
        // A failure lets go of these, so that the thread ends.
        let held = GATE.lock().unwrap();
        let (told, waiting) = mpsc::channel();
        let (begin, flushing) = mpsc::channel();
        let (table, may_end) = (&table, &may_end);
        scope.spawn(move || {
            for at in 1..4 {
                let prefix = Prefix::<u32>::masked(at << 24, 8).unwrap();
                told.send(table.insert(prefix, hop(at)).unwrap().waiting).unwrap();
                told.send(table.maintain().unwrap().waiting).unwrap();
            }
            flushing.recv().unwrap();
            assert_eq!(table.flush().unwrap().waiting, 0);
            assert!(may_end.load(Ordering::SeqCst), "a flush waits for the build");
        });
        for expected in [1, 1, 2, 2, 3, 3] {
            assert_eq!(waiting.recv_timeout(Duration::from_secs(60)), Ok(expected));
        }
        begin.send(()).unwrap();
        // Time for a flush that does not wait to return.
        thread::sleep(Duration::from_millis(50));
        may_end.store(true, Ordering::SeqCst);
        drop(held);
    });
    assert_eq!(table.reader().unwrap().pin().lookup(3u32 << 24), Some(hop(3)));
}

#[test]
fn changes_wait_for_others_until_their_time_is_over() {
    let long = Options { coalesce: Duration::from_secs(1_000), ..Options::default() };
    assert!(catches_up::<u32>(long).version < 12, "most calls publish nothing");
    catches_up::<u128>(long);
    let table = Table::from_routes(DualRib::default(), long).unwrap();
    let prefix: Prefix<u32> = "10.0.0.0/8".parse().unwrap();
    let mut reader = table.reader().unwrap();
    let waits = table.insert(prefix, hop(1)).unwrap();
    assert_eq!((waits.changed, waits.waiting), (1, 1));
    // The routes have it, lookups do not.
    assert_eq!((table.get(prefix), reader.pin().lookup(10u32 << 24)), (Ok(Some(hop(1))), None));
    let published = table.maintain().unwrap();
    assert!(published.waiting == 0 && published.version > waits.version);
    assert_eq!(reader.pin().lookup(10u32 << 24), Some(hop(1)));
    // A pin that sees atomic changes sees what waited before them.
    let _ = table.insert(prefix, hop(2)).unwrap();
    let other = Change::Insert(Route::new("20.0.0.0/8".parse().unwrap(), hop(3)));
    // Those of the other family too.
    let prefix6: Prefix<u128> = "2001:db8::/32".parse().unwrap();
    assert_eq!(table.insert(prefix6, hop(4)).unwrap().waiting, 2);
    assert_eq!(reader.pin().lookup(prefix6.addr()), None);
    assert_eq!(table.apply_atomic(&[other], &[]).unwrap().waiting, 0);
    assert_eq!(reader.pin().lookup(10u32 << 24), Some(hop(2)));
    assert_eq!(reader.pin().lookup(prefix6.addr()), Some(hop(4)));
    let table = Table::from_routes(DualRib::default(), Options { coalesce: Duration::from_nanos(1), ..long })
        .unwrap();
    let first = table.insert(prefix, hop(1)).unwrap().waiting;
    thread::sleep(Duration::from_millis(1));
    assert_eq!((first, table.remove(prefix).unwrap().waiting), (1, 0));
}

#[test]
fn structures_are_built_in_the_background() {
    let rebuilt = Options { background: true, ..Options::of::<RangeBtree, PlanB>() };
    catches_up::<u32>(rebuilt);
    catches_up::<u128>(rebuilt);
    let table = Table::from_routes(DualRib::default(), rebuilt).unwrap();
    let prefix: Prefix<u32> = "10.0.0.0/8".parse().unwrap();
    let mut reader = table.reader().unwrap();
    assert_eq!(table.insert(prefix, hop(1)).unwrap().waiting, 1);
    while table.maintain().unwrap().waiting > 0 {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(reader.pin().lookup(10u32 << 24), Some(hop(1)));
    // Atomic changes do not leave others to a build.
    let prefix6: Prefix<u128> = "2001:db8::/32".parse().unwrap();
    assert_eq!(table.insert(prefix6, hop(4)).unwrap().waiting, 1);
    assert_eq!(table.apply_atomic(&[Change::Remove(prefix)], &[]).unwrap().waiting, 0);
    assert_eq!(reader.pin().lookup(10u32 << 24), None);
    assert_eq!(reader.pin().lookup(prefix6.addr()), Some(hop(4)));
}

/// Routes that are changed back while a structure is built are not in it.
#[test]
fn what_is_taken_back_does_not_come_with_a_structure() {
    for engine in [RangeBtree::engine(), BinaryTrie::engine()] {
        let mut family = FamilyWriter::<u32>::new(Rib::default(), engine, &Options::default()).unwrap();
        let insert = |text: &str, id| [Change::Insert(Route::new(text.parse().unwrap(), hop(id)))];
        let prepare = |family: &mut FamilyWriter<u32>, changes: &[Change<u32>]| {
            family.prepare(changes, When::Soon, false, false, &mut Outcome::default()).unwrap()
        };
        let ready = prepare(&mut family, &insert("10.0.0.0/8", 7));
        assert!(!ready.replaces() && !ready.is_in_place());
        family.undo();
        assert_eq!(family.waiting(), 0);
        let mut ready = prepare(&mut family, &[]);
        while !ready.replaces() {
            thread::sleep(Duration::from_millis(1));
            ready = prepare(&mut family, &[]);
        }
        family.publish(ready, false, &mut Vec::new());
        while family.waiting() > 0 {
            let ready = prepare(&mut family, &[]);
            family.publish(ready, false, &mut Vec::new());
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(family.reading().lookup_key(10u32 << 24), None, "{}", engine.name);
        family.check(&[]).unwrap();
    }
}

#[test]
fn routes_are_iterated_while_they_change() {
    let table = Table::new().unwrap();
    assert_eq!(table.iter::<u32>().count(), 0);
    let prefix = |at: u32| Prefix::<u32>::masked(at << 12, 24).unwrap();
    let all: Vec<_> = (0..2_000).map(|at| Change::Insert(Route::new(prefix(at), hop(1)))).collect();
    let _ = table.apply(&all).unwrap();
    let mut seen = Vec::new();
    for route in table.iter::<u32>() {
        let route = route.unwrap();
        // Every other route goes, far before and far after the place where the iteration is.
        let at = seen.len() as u32 % 1_000 * 2 + 1;
        let _ = table.remove(prefix(at)).unwrap();
        seen.push(route.prefix);
    }
    assert!(seen.is_sorted() && seen.windows(2).all(|two| two[0] < two[1]));
    assert!((0..2_000).step_by(2).all(|at| seen.binary_search(&prefix(at)).is_ok()));
    let left: Vec<_> = table.iter::<u32>().map(|route| route.unwrap()).collect();
    assert_eq!(left, table.subnets(Prefix::<u32>::ALL).unwrap());
    assert_eq!(table.iter::<u128>().count(), 0);
}

/// What changes need is given back: a limit that holds for some holds for all.
#[test]
fn a_limit_on_memory_is_not_used_up_by_changes() {
    fn change_for_long<K: TableKey>() {
        let limits = Limits { memory_bytes: Some(3 << 20), ..Limits::default() };
        let table = Table::from_routes(DualRib::default(), Options { limits, ..Options::default() }).unwrap();
        let prefix =
            |at: u64| Prefix::<K>::masked(K::from_bits(u128::from(at) << (K::BITS - 22)), 22).unwrap();
        for at in 0..40_000 {
            let route = Route::new(prefix(at % 500), hop(1 + at as u32 % 300));
            let changes = [Change::Insert(route), Change::Remove(prefix((at + 250) % 500))];
            table.apply(&changes).unwrap_or_else(|error| panic!("call {at}: {error}"));
        }
        table.check().unwrap();
    }
    change_for_long::<u32>();
    change_for_long::<u128>();
}

/// A call that is refused before the fewer routes follow it takes back nothing of the calls before.
#[test]
fn a_refused_call_leaves_the_fewer_routes_of_earlier_calls() {
    let limits = Limits { memory_bytes: Some(3 << 20), ..Limits::default() };
    let options = Options { limits, aggregate: true, ..Options::default() };
    let table = Table::from_routes(DualRib::within(limits), options).unwrap();
    let prefix = |at: u32, len| Prefix::masked(at, len).unwrap();
    table.insert(prefix(0x0a00_0000, 8), hop(1)).unwrap();
    // The table has no room for so many routes.
    let routes = (0..400_000).map(|at| Route::new(prefix(0x1400_0000 + (at << 8), 24), hop(2 + at % 7)));
    let many: Vec<Change<u32>> = routes.map(Change::Insert).collect();
    let refused = table.apply(&many);
    assert!(matches!(refused, Err(TableError::Routes(_))), "{refused:?}");
    // What is around this route is made from the fewer routes again.
    table.insert(prefix(0x0a01_0000, 24), hop(2)).unwrap();
    assert_eq!(table.lookup(0x0a01_0001_u32).unwrap(), Some(hop(2)));
    assert_eq!(table.lookup(0x0a01_0101_u32).unwrap(), Some(hop(1)));
    assert_eq!(table.lookup(0x0a00_0001_u32).unwrap(), Some(hop(1)));
    assert_eq!(table.lookup(0x1400_0001_u32).unwrap(), None);
    table.check().unwrap();
}

/// Returns a prefix of any length; half of them extend one of `others`, so that many contain another.
fn nested<K: Key>(random: &mut Random, others: &[Prefix<K>]) -> Prefix<K> {
    let mut bits = (0..4).fold(0, |bits, _| bits << 32 | u128::from(random.below(1 << 31)) << 1);
    let mut least = 0;
    if !others.is_empty() && random.below(2) == 0 {
        let other = others[random.below(others.len() as u64) as usize];
        least = other.len();
        let mask = K::mask(least);
        bits = K::from_bits(bits).and(mask.not()).or(other.addr()).to_bits();
    }
    let len = least + random.below(u64::from(K::BITS - least) + 1) as u8;
    Prefix::masked(K::from_bits(bits), len).unwrap()
}

/// Compares a table's routes around prefixes and addresses with a scan of all routes.
fn finds_covers<K: TableKey>(random: &mut Random, routes: usize, ends: bool)
where
    IpPrefix: From<Prefix<K>>,
{
    let table = Table::new().unwrap();
    let mut prefixes: Vec<Prefix<K>> = Vec::new();
    for _ in 0..routes {
        prefixes.push(nested(random, &prefixes));
    }
    if ends {
        prefixes.extend([Prefix::ALL, Prefix::host(K::ZERO), Prefix::host(K::MAX)]);
    }
    prefixes.sort_unstable();
    prefixes.dedup();
    let all: Vec<Route<K>> =
        prefixes.iter().zip(1..).map(|(&prefix, id)| Route::new(prefix, hop(id))).collect();
    table.apply(&all.iter().map(|&route| Change::Insert(route)).collect::<Vec<_>>()).unwrap();

    let mut wanted = vec![Prefix::ALL, Prefix::host(K::ZERO), Prefix::host(K::MAX)];
    wanted.extend(&prefixes);
    wanted.extend(prefixes.iter().map(|prefix| Prefix::host(prefix.last())));
    wanted.extend((0..200).map(|_| nested(random, &prefixes)));
    for prefix in wanted {
        // Prefixes that contain the same one come in the order of their lengths.
        let scanned: Vec<_> = all.iter().copied().filter(|route| route.prefix.covers(prefix)).collect();
        assert_eq!(table.covers(prefix).unwrap(), scanned, "{prefix}");

        let around = |route: &&Route<K>| route.prefix.contains(prefix.addr());
        let longest = all.iter().filter(around).max_by_key(|route| route.prefix.len());
        let expected = longest.map(|route| (IpPrefix::from(route.prefix), route.next_hop));
        let found = match IpPrefix::from(prefix) {
            IpPrefix::V4(prefix) => table.lookup_prefix(prefix.network()),
            IpPrefix::V6(prefix) => table.lookup_prefix(prefix.network()),
        };
        assert_eq!(found.unwrap(), expected, "{prefix}");
    }
}

#[test]
fn the_routes_around_a_prefix_are_those_of_a_scan() {
    let mut random = Random(23);
    for (routes, ends) in [(0, false), (0, true), (1, false), (40, false), (300, false), (300, true)] {
        finds_covers::<u32>(&mut random, routes, ends);
        finds_covers::<u128>(&mut random, routes, ends);
    }
}

#[test]
fn routes_of_one_family_are_not_around_prefixes_of_the_other() {
    let table = Table::new().unwrap();
    table.insert(Prefix::<u32>::ALL, hop(1)).unwrap();
    assert_eq!(table.covers(Prefix::<u128>::ALL).unwrap(), []);
    assert_eq!(table.lookup_prefix(Ipv6Addr::UNSPECIFIED).unwrap(), None);
    let default = (Prefix::<u32>::ALL.into(), hop(1));
    assert_eq!(table.lookup_prefix(Ipv4Addr::BROADCAST).unwrap(), Some(default));
}
