//! The reclamation of live tables under loom, which runs each model in every order of its steps, and with every value that
//! the memory orderings let a load return.
//!
//! The sources are the library's own: this includes them, with loom's atomics and locks in place of the standard ones. The
//! tables are toys: one entry, or a root with two, and a few units of two words. What is modelled here is what readers and
//! the writer of a real table do around the module.

use std::cell::Cell;

use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::thread;

#[allow(dead_code, reason = "not all of it is modelled")]
#[path = "../../fibula/src/live/epoch/mod.rs"]
mod epoch;

/// In place of the library's.
mod memory {
    pub(crate) use fibula::memory::*;
}

/// In place of the standard atomics and locks.
mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
    pub(crate) use loom::sync::{Arc, Mutex, MutexGuard};
    pub(crate) use std::sync::PoisonError;

    loom::lazy_static! {
        static ref FENCES: AtomicU64 = AtomicU64::new(0);
    }

    /// A fence. Loom changes threads before accesses, and not before fences: it would run a store and the fence after it
    /// as one step. So there is an access before each fence in the one order of all threads.
    pub(crate) fn fence(order: Ordering) {
        if order == Ordering::SeqCst {
            FENCES.fetch_add(1, Ordering::Relaxed);
        }
        loom::sync::atomic::fence(order);
    }
}

use epoch::{Domain, ReaderSlot, RetireList};
use memory::{Budget, Limits};
use sync::{Arc, AtomicU64, Ordering, fence};

/// Runs a model in all orders that interrupt a thread at most `preemptions` times.
fn model(preemptions: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(run);
}

/// Notes accesses: loom fails if an access and a write are not ordered by what happened before. Loads and stores of words
/// alone would not show that a store overtakes an earlier load, because loom runs each thread in its own order.
#[derive(Debug)]
struct Accesses(UnsafeCell<()>);

#[allow(unsafe_code)]
// SAFETY: nothing is stored in it; loom checks the accesses that threads report.
unsafe impl Sync for Accesses {}

/// What an entry leads to. Both words hold the version that the entry names.
struct Unit {
    words: [AtomicU64; 2],
    accesses: Accesses,
}

impl Unit {
    fn new() -> Self {
        Self { words: [AtomicU64::new(0), AtomicU64::new(0)], accesses: Accesses(UnsafeCell::new(())) }
    }

    fn write(&self, values: [u64; 2]) {
        self.accesses.0.with_mut(|_| ());
        self.words.iter().zip(values).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
    }

    fn read(&self) -> [u64; 2] {
        self.accesses.0.with(|_| ());
        self.words.each_ref().map(|word| word.load(Ordering::Relaxed))
    }
}

/// The storage of a table: an entry and its units. An entry is a version and the place of a unit.
struct Toy<const UNITS: usize> {
    domain: Arc<Domain>,
    entry: AtomicU64,
    units: [Unit; UNITS],
}

const PLACES: u64 = 8;

fn entry(version: u64, place: u64) -> u64 {
    version * PLACES + place
}

impl<const UNITS: usize> Toy<UNITS> {
    /// Version 0, in the unit 0.
    fn new() -> std::sync::Arc<Self> {
        let domain = Arc::new(Domain::new(Limits::default()));
        std::sync::Arc::new(Self {
            domain,
            entry: AtomicU64::new(entry(0, 0)),
            units: [(); UNITS].map(|()| Unit::new()),
        })
    }

    fn register(&self) -> ReaderSlot {
        ReaderSlot::register(&self.domain).unwrap()
    }

    /// Reads as a pinned reader does; returns the version.
    fn read(&self) -> u64 {
        let entry = self.entry.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        let version = entry / PLACES;
        assert_eq!(self.units[(entry % PLACES) as usize].read(), [version; 2], "version {version} is mixed");
        version
    }

    /// Makes `changes` of the entry, as far as there are free units.
    fn write(&self, changes: u64) {
        let mut retired = RetireList::default();
        retired.reserve(changes as usize, &mut Budget::default()).unwrap();
        let mut free: Vec<u64> = (1..UNITS as u64).collect();
        let mut live = 0;
        for version in 1..=changes {
            let Some(place) = free.pop() else { return };
            self.units[place as usize].write([version; 2]);
            self.entry.store(entry(version, place), Ordering::Release);
            retired.retire(&self.domain, live, 1);
            retired.advance(&self.domain);
            live = place;
            retired.collect(&self.domain, |place| free.push(place));
        }
    }
}

/// A reader and two changes, the second of which takes the unit of version 0 if it is free.
fn reader_beside_two_changes(read: fn(&Toy<2>, &ReaderSlot)) {
    model(3, move || {
        let toy = Toy::<2>::new();
        let slot = toy.register();
        let reader = thread::spawn({
            let toy = toy.clone();
            move || read(&toy, &slot)
        });
        toy.write(2);
        reader.join().unwrap();
    });
}

#[test]
fn a_pinned_reader_sees_whole_units() {
    reader_beside_two_changes(|toy, slot| {
        let ended = slot.pin() - 1;
        assert!(toy.read() >= ended, "a change that ended before the pin is invisible");
        slot.unpin();
    });
}

#[test]
fn a_reader_may_pin_again() {
    reader_beside_two_changes(|toy, slot| {
        slot.pin();
        let first = toy.read();
        slot.unpin();
        slot.pin();
        assert!(toy.read() >= first);
        slot.unpin();
    });
}

#[test]
fn a_reader_may_refresh_instead() {
    reader_beside_two_changes(|toy, slot| {
        slot.pin();
        let first = toy.read();
        let ended = slot.refresh() - 1;
        assert!(toy.read() >= first.max(ended));
        slot.unpin();
    });
}

#[test]
fn two_readers_hold_up_what_either_sees() {
    // Three take five seconds.
    model(2, || {
        let toy = Toy::<2>::new();
        let readers = [(); 2].map(|()| {
            let (toy, slot) = (toy.clone(), toy.register());
            thread::spawn(move || {
                slot.pin();
                toy.read();
                slot.unpin();
                // Dropped by the other thread: the orders of the locks of two drops would take minutes.
                slot
            })
        });
        toy.write(2);
        for reader in readers {
            reader.join().unwrap();
        }
    });
}

#[test]
fn a_reader_may_register_and_go_while_the_writer_collects() {
    model(3, || {
        let toy = Toy::<2>::new();
        let reader = thread::spawn({
            let toy = toy.clone();
            move || {
                let slot = toy.register();
                slot.pin();
                toy.read();
                // Dropped while pinned.
            }
        });
        toy.write(2);
        reader.join().unwrap();
        assert_eq!((toy.domain.readers(), toy.register().number()), (0, 0));
    });
}

/// A root leads to a unit that holds two entries; both change at once.
#[test]
fn a_root_that_is_swapped_shows_all_of_a_change_or_nothing() {
    model(3, || {
        // The units 0 and 1 take turns as the unit of entries; 2 and 4, then 3 and 5, are what these lead to.
        let toy = Toy::<6>::new();
        toy.units[0].write([entry(0, 2), entry(0, 4)]);
        let slot = toy.register();
        let reader = thread::spawn({
            let toy = toy.clone();
            move || {
                slot.pin();
                let root = toy.entry.load(Ordering::Relaxed);
                fence(Ordering::Acquire);
                let entries = toy.units[root as usize].read();
                let versions = entries.map(|entry| {
                    let version = entry / PLACES;
                    assert_eq!(toy.units[(entry % PLACES) as usize].read(), [version; 2]);
                    version
                });
                assert_eq!(versions[0], versions[1], "half of a change");
                slot.unpin();
            }
        });
        let mut retired = RetireList::default();
        retired.reserve(6, &mut Budget::default()).unwrap();
        let freed = Cell::new(0);
        for version in 1..=2 {
            let (old, new) = ((version + 1) % 2, version % 2);
            if version > 1 && freed.get() < 3 {
                break;
            }
            freed.set(0);
            for place in [2 + new, 4 + new] {
                toy.units[place as usize].write([version; 2]);
            }
            toy.units[new as usize].write([entry(version, 2 + new), entry(version, 4 + new)]);
            toy.entry.store(new, Ordering::Release);
            for place in [old, 2 + old, 4 + old] {
                retired.retire(&toy.domain, place, 1);
            }
            retired.advance(&toy.domain);
            retired.collect(&toy.domain, |_| freed.set(freed.get() + 1));
        }
        reader.join().unwrap();
    });
}
