//! Values under readers: when they are dropped, what refusals leave, and threads.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Weak, mpsc};
use std::time::Duration;

use super::SharedPrefixMap;
use crate::live::{Options, TableError};
use crate::memory::Limits;
use crate::net::IpPrefix;
use crate::random::Random;

pub(super) fn prefix(text: &str) -> IpPrefix {
    text.parse().unwrap()
}

/// Counts how many there are, and how often one was dropped.
#[derive(Debug)]
pub(super) struct Counted(pub(super) Arc<AtomicUsize>, pub(super) u32);

impl Counted {
    pub(super) fn new(count: &Arc<AtomicUsize>, number: u32) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count), number)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Calls the map when it is dropped, and counts how often it answered.
pub(super) struct Calling(
    pub(super) Weak<SharedPrefixMap<Calling>>,
    pub(super) Arc<AtomicUsize>,
    pub(super) u32,
);

impl Drop for Calling {
    fn drop(&mut self) {
        let Some(map) = self.0.upgrade() else { return };
        let (answered, answer) = mpsc::channel();
        // From another thread: a call under the lock would wait for ever, and so would the test.
        std::thread::spawn(move || answered.send(map.value_count().is_ok()));
        let is_answered = answer.recv_timeout(Duration::from_secs(60)).unwrap_or(false);
        self.1.fetch_add(usize::from(is_answered), Ordering::Relaxed);
    }
}

impl PartialEq for Calling {
    fn eq(&self, other: &Self) -> bool {
        self.2 == other.2
    }
}

impl Eq for Calling {}

impl Hash for Calling {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.2.hash(hasher);
    }
}

#[test]
fn values_may_call_the_map_when_they_are_dropped() {
    let count = Arc::new(AtomicUsize::new(0));
    let map = Arc::new(SharedPrefixMap::interning(Options::default()).unwrap());
    let value = |number| Calling(Arc::downgrade(&map), Arc::clone(&count), number);
    // The second of two equal ones, the one that is replaced, and the one whose last prefix is removed.
    map.insert(prefix("10.0.0.0/8"), value(1)).unwrap();
    map.apply([(prefix("10.1.0.0/16"), Some(value(1))), (prefix("10.2.0.0/16"), Some(value(2)))]).unwrap();
    map.apply([(prefix("10.2.0.0/16"), Some(value(3))), (prefix("10.1.0.0/16"), None)]).unwrap();
    map.remove(prefix("10.0.0.0/8")).unwrap();
    for _ in 0..4 {
        map.maintain().unwrap();
    }
    assert_eq!((count.load(Ordering::Relaxed), map.value_count()), (3, Ok(1)));
    map.check().unwrap();
}

#[test]
fn values_are_dropped_once_no_reader_has_them() {
    let count = Arc::new(AtomicUsize::new(0));
    let map = SharedPrefixMap::new().unwrap();
    assert_eq!(map.insert(prefix("10.0.0.0/8"), Counted::new(&count, 1)), Ok(false));
    let mut reader = map.reader().unwrap();
    let pin = reader.pin();
    let found = pin.lookup(0x0a00_0001_u32).unwrap();
    assert_eq!(map.insert(prefix("10.0.0.0/8"), Counted::new(&count, 2)), Ok(true));
    for _ in 0..4 {
        map.maintain().unwrap();
        map.check().unwrap();
    }
    assert_eq!((found.1, count.load(Ordering::Relaxed)), (1, 2));
    assert_eq!(pin.lookup(0x0a00_0001_u32).unwrap().1, 2);
    drop(pin);
    for _ in 0..4 {
        map.maintain().unwrap();
    }
    assert_eq!((count.load(Ordering::Relaxed), map.value_count()), (1, Ok(1)));
    assert_eq!(map.remove(prefix("10.0.0.0/8")), Ok(true));
    assert_eq!(map.remove(prefix("10.0.0.0/8")), Ok(false));
    assert_eq!(map.is_empty(), Ok(true));
    map.check().unwrap();
    map.insert(prefix("10.0.0.0/8"), Counted::new(&count, 3)).unwrap();
    drop((reader, map));
    assert_eq!(count.load(Ordering::Relaxed), 0);
}

#[test]
fn both_families_by_single_lookups_and_batches() {
    let map = SharedPrefixMap::new().unwrap();
    let changes = [
        ("10.0.0.0/8", Some(1)),
        ("10.1.0.0/16", Some(2)),
        ("2001:db8::/32", Some(3)),
        ("10.1.0.0/16", None),
    ];
    assert_eq!(map.apply(changes.map(|(text, value)| (prefix(text), value))), Ok(4));
    map.insert(prefix("10.2.0.0/16"), 4).unwrap();
    let mut reader = map.reader().unwrap();
    let pin = reader.pin();
    let mut found = [None; 3];
    pin.lookup_batch(&[0x0a01_0000_u32, 0x0a02_0000, 0x0b00_0000], &mut found);
    assert_eq!(found, [Some(&1), Some(&4), None]);
    assert_eq!(pin.lookup(0x2001_0db8_u128 << 96), Some(&3));
    assert!(pin.batch(&[0_u32]).try_run(&mut found).is_err());
    assert_eq!(map.get(prefix("10.2.0.0/16"), |&value| value), Ok(Some(4)));
    assert_eq!(map.get(prefix("10.2.0.0/17"), |&value| value), Ok(None));
    let mut all = Vec::new();
    map.for_each(|prefix, &value| all.push((prefix.to_string(), value))).unwrap();
    let expected = [("10.0.0.0/8", 1), ("10.2.0.0/16", 4), ("2001:db8::/32", 3)];
    assert_eq!(all, expected.map(|(prefix, value)| (prefix.to_owned(), value)));
    drop(pin);
    map.check().unwrap();
}

#[test]
fn equal_values_share_a_slot_in_interning_maps() {
    let map = SharedPrefixMap::interning(Options::default()).unwrap();
    for third in 0..200 {
        map.insert(prefix(&format!("10.0.{third}.0/24")), (third % 3).to_string()).unwrap();
    }
    assert_eq!(map.value_count(), Ok(3));
    map.check().unwrap();
    for third in 0..200 {
        map.insert(prefix(&format!("10.0.{third}.0/24")), "same".to_owned()).unwrap();
    }
    map.maintain().unwrap();
    map.maintain().unwrap();
    assert_eq!(map.value_count(), Ok(1));
    map.check().unwrap();
}

#[test]
fn refused_changes_leave_the_map_as_it_was() {
    let count = Arc::new(AtomicUsize::new(0));
    for kibibytes in [0, 1, 4, 16, 64, 1 << 20] {
        let options = Options {
            limits: Limits::within(kibibytes << 10),
            retired_bytes: 0,
            patience: Duration::ZERO,
            ..Options::default()
        };
        let Ok(map) = SharedPrefixMap::with(options) else { continue };
        let mut reader = map.reader().unwrap();
        let pin = reader.pin();
        let mut inserted = 0;
        // A limit, or the pin, refuses at some time.
        let refused = (0..1 << 16).find_map(|number| {
            let at = IpPrefix::from(core::net::Ipv4Addr::from(number << 12));
            let changes = (0..3).map(|more| (at, Some(Counted::new(&count, more))));
            let result = if number % 2 == 0 {
                map.insert(at, Counted::new(&count, 9)).map(drop)
            } else {
                map.apply(changes).map(drop)
            };
            inserted += usize::from(result.is_ok());
            result.err()
        });
        let is_expected = |error| {
            matches!(
                error,
                TableError::Stalled { .. }
                    | TableError::Memory(_)
                    | TableError::Routes(_)
                    | TableError::Structure(_)
            )
        };
        assert!(refused.is_some_and(is_expected), "{kibibytes}");
        map.check().unwrap();
        assert_eq!(map.len(), Ok(inserted));
        drop(pin);
        for _ in 0..4 {
            let _ = map.maintain();
        }
        map.check().unwrap();
        assert_eq!(count.load(Ordering::Relaxed), inserted, "{kibibytes}");
        drop((reader, map));
        assert_eq!(count.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn readers_meanwhile_find_values_that_were_current() {
    let rounds = if cfg!(miri) { 20 } else { 3000 };
    let options = Options::default();
    for map in [SharedPrefixMap::new().unwrap(), SharedPrefixMap::interning(options).unwrap()] {
        // A value is its place, its version, and both again.
        let value = |place: u32, version: u32| vec![place, version, place.wrapping_mul(7) ^ version];
        const PLACES: u32 = 16;
        let address = |place: u32| 0x0a00_0000 | place << 16;
        for place in 0..PLACES {
            map.insert(prefix(&format!("10.{place}.0.0/16")), value(place, 0)).unwrap();
        }
        let published: Vec<_> = (0..PLACES).map(|_| AtomicU32::new(0)).collect();
        let begun: Vec<_> = (0..PLACES).map(|_| AtomicU32::new(0)).collect();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let mut reader = map.reader().unwrap();
                let (published, begun, is_over) = (&published, &begun, &is_over);
                scope.spawn(move || {
                    let keys: Vec<u32> = (0..PLACES).map(address).collect();
                    let mut is_last = false;
                    while !is_last {
                        is_last = is_over.load(Ordering::Relaxed);
                        let before: Vec<_> = published.iter().map(|at| at.load(Ordering::Acquire)).collect();
                        let pin = reader.pin();
                        let mut found = vec![None; keys.len()];
                        pin.lookup_batch(&keys, &mut found);
                        for (place, found) in found.into_iter().enumerate() {
                            let [at, version, sum] = found.unwrap()[..] else {
                                panic!("a value has three parts")
                            };
                            assert_eq!((at as usize, sum), (place, at.wrapping_mul(7) ^ version));
                            let newest = begun[place].load(Ordering::Acquire);
                            assert!((before[place]..=newest).contains(&version));
                        }
                    }
                });
            }
            let mut random = Random(4);
            for _ in 0..rounds {
                let place = random.below(PLACES.into()) as u32;
                let version = begun[place as usize].fetch_add(1, Ordering::AcqRel) + 1;
                map.insert(prefix(&format!("10.{place}.0.0/16")), value(place, version)).unwrap();
                published[place as usize].store(version, Ordering::Release);
            }
            is_over.store(true, Ordering::Relaxed);
        });
        map.check().unwrap();
    }
}
