//! The bookkeeping of epochs, and a short run with real threads. `fibula-proof` runs the protocol under loom; these tests
//! are not in `epoch/`, because it includes that folder.

use std::thread;
use std::time::{Duration, Instant};

use super::epoch::{Domain, ReaderSlot, RetireList, Stalled};
use super::sync::{Arc, AtomicU64, Ordering, fence};
use crate::memory::{Budget, Limits};

fn domain() -> Arc<Domain> {
    Arc::new(Domain::new(Limits::default()))
}

fn retired(room: usize) -> RetireList<u32> {
    let mut retired = RetireList::default();
    retired.reserve(room, &mut Budget::default()).unwrap();
    retired
}

/// Retires an item of 10 bytes and ends the epoch.
fn change(retired: &mut RetireList<u32>, domain: &Domain, item: u32) {
    retired.retire(domain, item, 10);
    retired.advance(domain);
}

fn collected(retired: &mut RetireList<u32>, domain: &Domain) -> Vec<u32> {
    let mut items = Vec::new();
    retired.collect(domain, |item| items.push(item));
    items
}

#[test]
fn items_are_reclaimed_in_order_once_no_pin_is_as_old() {
    let domain = domain();
    let mut retired = retired(8);
    let (one, two) = (ReaderSlot::register(&domain).unwrap(), ReaderSlot::register(&domain).unwrap());
    assert_eq!((domain.epoch(), one.pin()), (1, 1));
    change(&mut retired, &domain, 1);
    change(&mut retired, &domain, 2);
    assert_eq!(two.pin(), 3);
    change(&mut retired, &domain, 3);
    assert_eq!((retired.len(), retired.bytes(), retired.oldest()), (3, 30, Some(1)));
    assert_eq!(collected(&mut retired, &domain), []);
    assert_eq!(retired.stalled(&domain), Some(Stalled { reader: 0, epochs: 3 }));

    assert_eq!(one.refresh(), 4);
    assert_eq!(collected(&mut retired, &domain), [1, 2]);
    assert_eq!((retired.bytes(), retired.oldest()), (10, Some(3)));
    assert_eq!(retired.stalled(&domain), Some(Stalled { reader: 1, epochs: 1 }));
    two.unpin();
    assert_eq!(retired.stalled(&domain), None);
    assert_eq!(collected(&mut retired, &domain), [3]);
    assert_eq!((retired.len(), retired.bytes(), retired.oldest()), (0, 0, None));
}

#[test]
fn what_this_epoch_retired_is_kept_even_without_readers() {
    let domain = domain();
    let mut retired = retired(2);
    retired.retire(&domain, 1, 10);
    assert_eq!(collected(&mut retired, &domain), []);
    let reader = ReaderSlot::register(&domain).unwrap();
    reader.pin();
    // No reader holds it up: the epoch has not ended.
    assert_eq!(retired.stalled(&domain), None);
    assert_eq!(retired.wait(&domain, 0, Duration::MAX, |_| ()), Ok(()));
    reader.unpin();
    assert_eq!(retired.advance(&domain), 2);
    retired.retire(&domain, 2, 10);
    assert_eq!(collected(&mut retired, &domain), [1]);
}

#[test]
fn slots_are_given_back_idle_and_reused_lowest_first() {
    let domain = domain();
    let mut readers: Vec<_> = (0..100).map(|_| ReaderSlot::register(&domain).unwrap()).collect();
    assert!(readers.iter().map(ReaderSlot::number).eq(0..100));
    assert_eq!(domain.readers(), 100);
    readers.iter().for_each(|reader| assert_eq!(reader.pin(), 1));
    let mut retired = retired(1);
    change(&mut retired, &domain, 7);
    let stays = readers.remove(42);
    // All of these are pinned when they are dropped.
    drop(readers);
    assert_eq!(domain.readers(), 1);
    assert_eq!(collected(&mut retired, &domain), []);
    assert_eq!(retired.stalled(&domain), Some(Stalled { reader: 42, epochs: 1 }));
    let bytes = domain.memory().allocated_bytes;
    let again: Vec<_> = (0..99).map(|_| ReaderSlot::register(&domain).unwrap()).collect();
    assert!(again.iter().map(ReaderSlot::number).eq((0..100).filter(|&number| number != 42)));
    assert_eq!(domain.memory().allocated_bytes, bytes);
    drop(stays);
    assert_eq!(collected(&mut retired, &domain), [7]);
}

#[test]
fn a_stalled_reader_is_named_when_the_time_is_over() {
    let domain = domain();
    let mut retired = retired(3);
    let _idle = ReaderSlot::register(&domain).unwrap();
    let stalled = ReaderSlot::register(&domain).unwrap();
    stalled.pin();
    (0..3).for_each(|item| change(&mut retired, &domain, item));
    let result = retired.wait(&domain, 20, Duration::from_millis(2), |_| panic!("reclaimed early"));
    let error = result.unwrap_err();
    assert_eq!(error, Stalled { reader: 1, epochs: 3 });
    assert_eq!(error.to_string(), "reader 1 has been pinned for 3 epochs");
    // Nothing to wait for: the bytes are within the limit.
    assert_eq!(retired.wait(&domain, 30, Duration::ZERO, |_| ()), Ok(()));
    thread::scope(|scope| {
        scope.spawn(move || {
            thread::sleep(Duration::from_millis(5));
            drop(stalled);
        });
        let mut items = Vec::new();
        retired.wait(&domain, 0, Duration::from_secs(60), |item| items.push(item)).unwrap();
        assert_eq!(items, [0, 1, 2]);
    });
}

#[test]
fn room_is_reserved_or_refused_and_refusals_change_nothing() {
    let domain = domain();
    let mut retired = RetireList::<u64>::default();
    let mut budget = Budget::default();
    retired.reserve(10, &mut budget).unwrap();
    (0..10).for_each(|item| retired.retire(&domain, item, 1));
    let room = retired.memory().allocated_bytes;
    assert_eq!(budget.used_bytes(), room);

    // Old and new room exist side by side while the items move.
    budget.set_limits(Limits::within(3 * room));
    retired.reserve(22, &mut budget).unwrap();
    assert_eq!((retired.memory().allocated_bytes, budget.used_bytes()), (2 * room, 2 * room));
    let error = retired.reserve(1_000, &mut budget).unwrap_err();
    assert_eq!((error.limit_bytes, error.used_bytes), (Some(3 * room), 2 * room));
    budget.set_limits(Limits::default());
    let error = retired.reserve(usize::MAX, &mut budget).unwrap_err();
    assert_eq!((error.limit_bytes, budget.used_bytes()), (None, 2 * room));

    retired.advance(&domain);
    retired.shrink(&mut budget);
    assert_eq!(retired.len(), 10);
    let mut items = Vec::new();
    assert_eq!(retired.collect(&domain, |item| items.push(item)), None);
    assert!(items.into_iter().eq(0..10));
    retired.shrink(&mut budget);
    assert_eq!((retired.memory().allocated_bytes, budget.used_bytes()), (0, 0));
}

#[test]
#[should_panic(expected = "no room was reserved")]
fn retiring_without_room_is_misuse() {
    RetireList::default().retire(&domain(), 1, 1);
}

#[test]
fn readers_beyond_the_memory_limit_are_refused() {
    let domain = Arc::new(Domain::new(Limits::within(16 * 256)));
    let readers: Vec<_> = std::iter::from_fn(|| ReaderSlot::register(&domain).ok()).collect();
    assert!((8..16).contains(&readers.len()), "{}", readers.len());
    assert_eq!(ReaderSlot::register(&domain).unwrap_err().limit_bytes, Some(16 * 256));
    assert_eq!(domain.readers(), readers.len());
    drop(readers);
    assert_eq!(ReaderSlot::register(&domain).unwrap().number(), 0);
}

/// Units of a few words that all hold the version that the entry names.
struct Toy {
    /// A unit and its version, in one word.
    entry: AtomicU64,
    units: Vec<[AtomicU64; 4]>,
}

impl Toy {
    const UNITS: u64 = 16;

    fn write(&self, unit: u64, version: u64) {
        self.units[unit as usize].iter().for_each(|word| word.store(version, Ordering::Relaxed));
    }

    /// Returns the version, the same in all words.
    fn read(&self) -> u64 {
        let entry = self.entry.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        let (unit, version) = (entry % Self::UNITS, entry / Self::UNITS);
        let words = self.units[unit as usize].each_ref().map(|word| word.load(Ordering::Relaxed));
        assert_eq!(words, [version; 4]);
        version
    }
}

/// A reader that pins, refreshes and is sometimes replaced by another.
fn read_until_end(toy: &Toy, domain: &Arc<Domain>, ended: &AtomicU64) -> u64 {
    let (mut reads, mut last) = (0, 0);
    while ended.load(Ordering::Relaxed) == 0 {
        let slot = ReaderSlot::register(domain).unwrap();
        for _ in 0..100 {
            slot.pin();
            for step in 0..20 {
                let version = toy.read();
                assert!(version >= last, "version {version} after {last}");
                (last, reads) = (version, reads + 1);
                if step % 5 == 4 {
                    slot.refresh();
                }
            }
            slot.unpin();
        }
    }
    reads
}

#[test]
fn readers_in_threads_see_whole_units_while_the_writer_reuses_them() {
    // For a time, as a writer that waits for readers without a core is slow.
    let end = Instant::now() + Duration::from_millis(300);
    let domain = domain();
    let toy = Toy {
        entry: AtomicU64::new(0),
        units: (0..Toy::UNITS).map(|_| [const { AtomicU64::new(0) }; 4]).collect(),
    };
    let ended = AtomicU64::new(0);
    let mut retired = RetireList::<u64>::default();
    let mut free: Vec<u64> = (1..Toy::UNITS).collect();
    retired.reserve(free.len(), &mut Budget::default()).unwrap();
    let mut version = 0;
    thread::scope(|scope| {
        let readers = [(); 3].map(|()| scope.spawn(|| read_until_end(&toy, &domain, &ended)));
        let mut live = 0;
        while version < 100 || Instant::now() < end {
            version += 1;
            retired.wait(&domain, 8 * 14, Duration::from_secs(60), |unit| free.push(unit)).unwrap();
            let unit = free.pop().unwrap();
            toy.write(unit, version);
            toy.entry.store(unit + version * Toy::UNITS, Ordering::Release);
            retired.retire(&domain, live, 8);
            retired.advance(&domain);
            live = unit;
        }
        ended.store(1, Ordering::Relaxed);
        assert!(readers.into_iter().all(|reader| reader.join().unwrap() > 0));
    });
    assert_eq!(retired.collect(&domain, |unit| free.push(unit)), None);
    assert_eq!((free.len() as u64, toy.read()), (Toy::UNITS - 1, version));
}
