//! Changed prefixes to work: the chunks that are dirty, each once; and threads that sweep them.
//!
//! Prefixes ascend, so a list of work items says for every chunk whether it is dirty, as a bit for each would, and only the
//! dirty ones are looked at.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use fibula::net::{Key, NextHop, Prefix, Routes};
use fibula::unstable::memory::{Budget, Limits, OutOfMemory};

use super::sweep::{Swept, sweep};

/// Binary logarithm of the most chunks of an item, so that threads get equal shares of what a short prefix makes dirty.
const ITEM_CHUNKS: u8 = 6;

/// Items that a thread takes at once.
const TAKEN: usize = 4;

/// Appends items: prefixes that the dirty chunks fill, ascending, none of them twice. Returns the number of chunks.
pub(super) fn items<K: Key>(
    prefixes: &[Prefix<K>],
    k: u8,
    items: &mut Vec<Prefix<K>>,
    budget: &mut Budget,
) -> Result<usize, OutOfMemory> {
    let (mut done, mut chunks) = (None, 0);
    for prefix in prefixes {
        // A chunk at least; and no more than its part of the chunks of a short prefix.
        let whole = Prefix::masked(prefix.addr(), prefix.len().min(k)).unwrap_or(*prefix);
        if done.is_some_and(|done| whole.last() <= done) {
            continue;
        }
        done = Some(whole.last());
        let len = whole.len().max(k.saturating_sub(ITEM_CHUNKS));
        budget.reserve(items, 1 << (len - whole.len()))?;
        for part in 0..1u128 << (len - whole.len()) {
            let addr = K::from_bits(whole.addr().to_bits() | part << (K::BITS - len));
            items.extend(Prefix::masked(addr, len));
            chunks += 1 << (k - len);
        }
    }
    Ok(chunks)
}

/// What a thread has swept.
#[derive(Default)]
pub(super) struct Share<K> {
    /// The items, each with the number of ranges up to its last one.
    pub(super) items: Vec<(Prefix<K>, usize)>,
    pub(super) swept: Vec<Swept>,
    budget: Budget,
}

impl<K: Key> Share<K> {
    fn take(
        &mut self,
        routes: &dyn Routes<K>,
        items: &[Prefix<K>],
        next: &AtomicUsize,
    ) -> Result<(), OutOfMemory> {
        loop {
            let first = next.fetch_add(TAKEN, Ordering::Relaxed).min(items.len());
            if first == items.len() {
                return Ok(());
            }
            for &item in &items[first..items.len().min(first + TAKEN)] {
                sweep(routes, item, &mut self.swept, &mut self.budget, |next_hop, _| {
                    Ok(NextHop::word(next_hop))
                })?;
                self.budget.push(&mut self.items, (item, self.swept.len()))?;
            }
        }
    }

    /// Returns the bytes of the lists.
    pub(super) fn bytes(&self) -> usize {
        self.budget.used_bytes()
    }
}

/// Sweeps items by so many threads, this one among them. `limits` are those of all shares together.
pub(super) fn sweep_together<K: Key>(
    routes: &(dyn Routes<K> + Sync),
    items: &[Prefix<K>],
    threads: usize,
    limits: Limits,
) -> Result<Vec<Share<K>>, OutOfMemory> {
    let limits = Limits { memory_bytes: limits.memory_bytes.map(|bytes| bytes / threads), ..limits };
    let next = &AtomicUsize::new(0);
    let work = move || {
        let mut share = Share { items: Vec::new(), swept: Vec::new(), budget: Budget::new(limits) };
        share.take(routes, items, next).map(|()| share)
    };
    thread::scope(|scope| {
        // Where the system has no more threads, there are fewer.
        let others: Vec<_> =
            (1..threads).map_while(|_| thread::Builder::new().spawn_scoped(scope, work).ok()).collect();
        let own = work();
        let others = others
            .into_iter()
            .map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        core::iter::once(own).chain(others).collect()
    })
}
