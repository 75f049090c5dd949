//! A full table that changes for long, beside readers that stall: on the way it answers like routes that are changed in the same way, and at
//! the end like a table that is built from its routes, in hardly more bytes.
//!
//! `FIBULA_CHURN` is the number of changes for each family (1,000,000), of which a hundred million take minutes.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use fibula::engines::{Dir248, DirBtree};
use fibula::live::{Options, Outcome, Table, TableError, TableKey};
use fibula::net::{Change, Key, NextHop, Prefix, Route};
use fibula::rib::{DualRib, Rib};
use fibula_workload::random::Random;
use fibula_workload::table::{Profile, TableSpec, generate};

/// Routes that come and go below those of the table.
const EXTRA: usize = 20_000;

/// Changes between two comparisons with the oracle.
const COMPARED: usize = 10_000;

/// Changes between two calls of `maintain`.
const MAINTAINED: usize = 50_000;

fn changes() -> usize {
    let text = std::env::var("FIBULA_CHURN").unwrap_or_else(|_| "1000000".to_owned());
    text.parse().expect("FIBULA_CHURN is a number of changes")
}

/// What happens to the routes of a table.
struct Churn<K: Key> {
    random: Random,
    routes: Vec<Route<K>>,
    present: Vec<bool>,
    extra: Vec<Option<Prefix<K>>>,
}

impl<K: Key> Churn<K> {
    fn new(routes: Vec<Route<K>>) -> Self {
        let present = vec![true; routes.len()];
        Self { random: Random::new(3), routes, present, extra: vec![None; EXTRA] }
    }

    fn next_hop(&mut self) -> NextHop {
        // Few, some that need wider values, and seldom ones that need the widest.
        let id = match self.random.below(1_000) {
            0 => 70_000 + self.random.below(9),
            1..50 => 250 + self.random.below(100),
            _ => 1 + self.random.below(200),
        };
        NextHop::new(id as u32).expect("not 0")
    }

    fn change(&mut self) -> Change<K> {
        let at = self.random.below(self.routes.len() as u64) as usize;
        match self.random.below(4) {
            // Another next hop.
            0 if self.present[at] => {
                self.routes[at].next_hop = self.next_hop();
                Change::Insert(self.routes[at])
            }
            // A route below one of the table, in the place of an older one.
            1 => {
                let place = self.random.below(EXTRA as u64) as usize;
                if let Some(old) = self.extra[place].take() {
                    return Change::Remove(old);
                }
                let above = self.routes[at].prefix;
                let len = above.len() + self.random.below(u64::from(K::BITS - above.len()) + 1) as u8;
                let inside = K::from_bits(self.random.wide() >> (128 - u32::from(K::BITS)));
                let bits = above.addr().xor(inside.and(above.last().xor(above.addr())));
                let prefix = Prefix::masked(bits, len).expect("a length of the family");
                if self.routes.binary_search_by_key(&prefix, |route| route.prefix).is_ok() {
                    return Change::Remove(prefix);
                }
                self.extra[place] = Some(prefix);
                Change::Insert(Route::new(prefix, self.next_hop()))
            }
            _ => {
                self.present[at] = !self.present[at];
                match self.present[at] {
                    true => Change::Insert(self.routes[at]),
                    false => Change::Remove(self.routes[at].prefix),
                }
            }
        }
    }
}

/// Stops the readers when it is dropped, so that a writer that panics does not leave them running for ever.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does a piece of the writer's work, again whenever readers hold it up; returns how often they did.
fn held_up<T>(work: impl Fn() -> Result<T, TableError>) -> u64 {
    let mut stalls = 0;
    loop {
        match work() {
            Ok(_) => return stalls,
            Err(TableError::Stalled { .. }) => stalls += 1,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Looks up and stalls until it is told to stop.
fn stall<K: TableKey>(table: &Table, seed: u64, stop: &AtomicBool, lookups: &AtomicU64) {
    let mut random = Random::new(seed);
    let mut reader = table.reader().unwrap();
    let mut found = vec![None; 256];
    while !stop.load(Ordering::Relaxed) {
        let pin = reader.pin();
        for _ in 0..1 + random.below(5) {
            let keys: Vec<K> =
                (0..256).map(|_| K::from_bits(random.wide() >> (128 - u32::from(K::BITS)))).collect();
            pin.lookup_batch(&keys, &mut found);
            assert!(found.iter().flatten().all(|next_hop| next_hop.id() < 70_100));
            lookups.fetch_add(256, Ordering::Relaxed);
        }
        if random.below(10) == 0 {
            thread::sleep(Duration::from_millis(random.below(10)));
        }
        drop(pin);
        thread::sleep(Duration::from_millis(1));
    }
}

/// Compares a pin with the oracle: at both ends of what has just changed, beside these, and at random addresses.
fn compare<K: TableKey>(table: &Table, oracle: &Rib<K>, batch: &[Change<K>], random: &mut Random) {
    let ends = batch.iter().flat_map(|change| {
        let (first, last) = (change.prefix().addr(), change.prefix().last());
        [Some(first), Some(last), first.previous(), last.next()].into_iter().flatten()
    });
    let mut keys: Vec<K> = ends.collect();
    keys.extend((0..1_024).map(|_| K::from_bits(random.wide() >> (128 - u32::from(K::BITS)))));
    let mut reader = table.reader().unwrap();
    let mut found = vec![None; keys.len()];
    reader.pin().lookup_batch(&keys, &mut found);
    for (&key, &found) in keys.iter().zip(&found) {
        assert_eq!(found, oracle.lookup(key), "{}", key.address());
    }
}

/// Returns made routes.
fn made<K: TableKey>(routes: usize) -> Vec<Route<K>> {
    let spec = TableSpec { routes, next_hops: 200, seed: 1 };
    generate(&spec, &Profile::of::<K>()).unwrap()
}

/// Loads a table of the folder of real ones.
fn real(name: &str) -> DualRib {
    let folder = std::env::var_os("FIBULA_DATA").expect("FIBULA_DATA names the folder of real tables");
    let path = std::path::Path::new(&folder).join(format!("{name}.txt.xz"));
    fibula_feed::Loader::new(fibula_feed::LoadOptions::default()).load(&path).unwrap().ribs
}

/// What differs from family to family.
struct Family<K: Key> {
    ribs: fn(Rib<K>) -> DualRib,
    atomically: fn(&Table, &[Change<K>]) -> Result<Outcome, TableError>,
}

const IPV4: Family<u32> = Family {
    ribs: |v4| DualRib::new(v4, Rib::default()),
    atomically: |table, changes| table.apply_atomic(changes, &[]),
};

const IPV6: Family<u128> = Family {
    ribs: |v6| DualRib::new(Rib::default(), v6),
    atomically: |table, changes| table.apply_atomic(&[], changes),
};

fn churn<K: TableKey>(routes: Vec<Route<K>>, family: &Family<K>, options: Options, changes: usize) {
    let mut rib = Rib::<K>::default();
    rib.apply(&routes.iter().copied().map(Change::Insert).collect::<Vec<_>>()).unwrap();
    let mut oracle = rib.clone();
    let options = Options { retired_bytes: 1 << 20, patience: Duration::from_millis(1), ..options };
    let table = Table::from_routes((family.ribs)(rib), options).unwrap();
    let mut churn = Churn::new(routes);
    let (stop, lookups, mut stalls) = (AtomicBool::new(false), AtomicU64::new(0), 0);
    thread::scope(|scope| {
        for seed in 0..2 {
            let (table, stop, lookups) = (&table, &stop, &lookups);
            scope.spawn(move || stall::<K>(table, seed, stop, lookups));
        }
        let _stop = Stop(&stop);
        let (mut done, mut batch) = (0, Vec::new());
        while done < changes {
            let count = 1 + churn.random.below(200) as usize;
            batch.clear();
            batch.extend((0..count).map(|_| churn.change()));
            // One call in four is seen all or not at all.
            stalls += held_up(|| match count % 4 {
                0 => (family.atomically)(&table, &batch),
                _ => table.apply(&batch),
            });
            oracle.apply(&batch).unwrap();
            if done / COMPARED != (done + count) / COMPARED {
                compare(&table, &oracle, &batch, &mut churn.random);
            }
            if done / MAINTAINED != (done + count) / MAINTAINED {
                stalls += held_up(|| table.maintain());
            }
            done += count;
        }
    });
    let maintained = table.maintain().unwrap();
    assert_eq!((maintained.waiting, table.statistics().unwrap().retired_bytes), (0, 0));
    table.check().unwrap();
    let fresh = Table::from_routes(table.routes().unwrap(), options).unwrap();
    let [mut reader, mut expected] = [&table, &fresh].map(|table| table.reader().unwrap());
    let [pin, expected] = [reader.pin(), expected.pin()];
    let ends: Vec<K> =
        churn.routes.iter().flat_map(|route| [route.prefix.addr(), route.prefix.last()]).collect();
    let some: Vec<K> = (0..100_000)
        .map(|_| K::from_bits(churn.random.wide() >> (128 - u32::from(K::BITS))))
        .chain(churn.extra.iter().flatten().flat_map(|prefix| [prefix.addr(), prefix.last()]))
        .chain(ends)
        .collect();
    let mut found = [vec![None; some.len()], vec![None; some.len()]];
    pin.lookup_batch(&some, &mut found[0]);
    expected.lookup_batch(&some, &mut found[1]);
    assert!(found[0] == found[1], "{} of {} answers", found[0].len(), some.len());
    let [now, then] = [&table, &fresh].map(|table| {
        let structures = table.statistics().unwrap().structures;
        (structures.v4 + structures.v6).lookup_bytes
    });
    let totals = table.statistics().unwrap().totals;
    println!(
        "{} changes, {} structures built anew, {stalls} calls held up by readers, {} lookups; {now} bytes, {:.3} of a fresh \
         build",
        totals.changed,
        totals.rebuilt,
        lookups.load(Ordering::Relaxed),
        now as f64 / then as f64
    );
    assert!(now <= then + then / 4, "{now} bytes, {then} when built anew");
}

#[test]
fn ipv4_tables_are_as_new_after_long_changes() {
    churn::<u32>(made(300_000), &IPV4, Options::default(), changes());
}

#[test]
fn tables_of_dir_24_8_are_as_new_after_long_changes() {
    let options = Options::of::<Dir248, DirBtree>();
    // A change of a short prefix stores up to 2^24 words.
    churn::<u32>(made(300_000), &IPV4, options, changes() / 5);
}

#[test]
fn ipv6_tables_are_as_new_after_long_changes() {
    churn::<u128>(made(100_000), &IPV6, Options::default(), changes());
}

#[test]
#[ignore = "a real table: set FIBULA_DATA to its folder"]
fn real_ipv4_tables_are_as_new_after_long_changes() {
    let routes = real("dfz4-2023").v4.iter().collect();
    churn::<u32>(routes, &IPV4, Options::default(), changes());
}

#[test]
#[ignore = "a real table: set FIBULA_DATA to its folder"]
fn real_ipv6_tables_are_as_new_after_long_changes() {
    let routes = real("dfz6-2024").v6.iter().collect();
    churn::<u128>(routes, &IPV6, Options::default(), changes());
}
