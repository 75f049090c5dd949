//! The state that readers and the writer share.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::live::ValueSlots;

use super::state::HopsState;
use super::words::HopWords;

/// The next hops of a table or of VRFs.
pub struct SharedHops<T, R> {
    pub(super) routed: R,
    /// The word of each number, at the number less one.
    pub(super) words: Arc<HopWords>,
    pub(super) values: Arc<ValueSlots<T>>,
    /// Always taken after the lock of the routes.
    pub(super) state: Mutex<HopsState<T>>,
    pub(super) tallies: Mutex<MissCounts>,
}

/// A reader's count of its lookups that led nowhere. Only that reader writes it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct MissCount {
    pub(super) withdrawn: AtomicU64,
    pub(super) unknown: AtomicU64,
}

impl MissCount {
    #[inline]
    pub(super) fn count(&self, withdrawn: u64, unknown: u64) {
        for (tally, more) in [(&self.withdrawn, withdrawn), (&self.unknown, unknown)] {
            if more > 0 {
                // Not an atomic addition, because no other thread stores to this word.
                tally.store(tally.load(Ordering::Relaxed) + more, Ordering::Relaxed);
            }
        }
    }

    fn read(&self) -> [u64; 2] {
        [&self.withdrawn, &self.unknown].map(|tally| tally.load(Ordering::Relaxed))
    }
}

/// The tallies of all readers.
#[derive(Debug, Default)]
pub(super) struct MissCounts {
    readers: Vec<Arc<MissCount>>,
    /// The counts of readers that were dropped.
    past: [u64; 2],
}

impl MissCounts {
    /// Adds a reader; `None` if memory runs out.
    pub(super) fn add(&mut self) -> Option<Arc<MissCount>> {
        self.readers.try_reserve(1).ok()?;
        let tally = Arc::new(MissCount::default());
        self.readers.push(Arc::clone(&tally));
        Some(tally)
    }

    /// Removes a reader that is dropped, and keeps its counts.
    pub(super) fn remove(&mut self, tally: &Arc<MissCount>) {
        let [withdrawn, unknown] = tally.read();
        self.past = [self.past[0] + withdrawn, self.past[1] + unknown];
        self.readers.retain(|reader| !Arc::ptr_eq(reader, tally));
    }

    /// Returns the number of lookups of withdrawn numbers, and of unknown ones.
    pub(super) fn sum(&self) -> [u64; 2] {
        self.readers.iter().map(|reader| reader.read()).fold(self.past, |[a, b], [c, d]| [a + c, b + d])
    }
}
