//! A level: the entries of one prefix length in a chained hash table, which is searched only where the filter has the key.

use fibula::unstable::memory::{self, Budget, Buffer, Memory, OutOfMemory};

use super::divisor::Divisor;
use super::filter::Filter;
use super::hash::{Hashes, Sequence, Stored};
use super::sizes::Ratio;

/// The end of a chain.
pub(crate) const END: u32 = u32::MAX;

/// Most entries of a level.
pub(crate) const ENTRIES_MAX: u64 = 1 << 26;

/// A prefix with its next hop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<S> {
    /// The prefix, zeros after it.
    pub(crate) key: S,
    /// The next hop; 0 for a free entry.
    pub(crate) next_hop: u32,
    /// The next entry of the bucket, or the next free one; [`END`] for none.
    pub(crate) next: u32,
}

/// The prefixes of one length, expanded ones included.
#[derive(Debug)]
pub(crate) struct Level<S> {
    /// Their length.
    pub(crate) len: u8,
    /// The shortest length that is expanded to it.
    pub(crate) shortest: u8,
    pub(crate) filter: Filter,
    /// The first entry of each bucket.
    pub(crate) heads: Buffer<u32>,
    /// The number of buckets: as many as there are entries to be expected.
    pub(crate) buckets: Divisor,
    pub(crate) entries: Buffer<Entry<S>>,
    /// The first free entry.
    pub(crate) free: u32,
    /// Number of entries that are not free.
    pub(crate) count: usize,
    /// Number of entries that filter and buckets are sized for; 0 while they take no memory.
    pub(crate) capacity: usize,
    /// Entries that a batch of changes may add. Only such a batch uses it, as well as the next one.
    pub(super) wanted: u64,
    /// Entries before the batch.
    pub(super) before: usize,
}

impl<S: Stored> Level<S> {
    /// Returns a level without entries, which takes no memory.
    pub(crate) fn empty(shortest: u8, len: u8) -> Self {
        Self {
            len,
            shortest,
            filter: Filter::none(),
            heads: Buffer::new(),
            buckets: Divisor::new(1),
            entries: Buffer::new(),
            free: END,
            count: 0,
            capacity: 0,
            wanted: 0,
            before: 0,
        }
    }

    /// Returns the next hop of the entry that contains a key, 0 if there is none.
    #[inline]
    pub(crate) fn find<H: Hashes<S>>(&self, key: S, hashes: H) -> u32 {
        if self.count == 0 {
            return 0;
        }
        let key = key.masked(self.len);
        let mut sequence = hashes.sequence(key);
        let first = sequence.next();
        if !self.filter.has(first) || (1..self.filter.hashes).any(|_| !self.filter.has(sequence.next())) {
            return 0;
        }
        self.search(self.head(hashes.bucket(key, first, &mut sequence)), key)
    }

    /// Returns the first entry of the bucket of a hash.
    #[inline]
    pub(crate) fn head(&self, hash: u32) -> u32 {
        self.heads[self.buckets.remainder(hash) as usize]
    }

    /// Returns the next hop of a masked key in the chain from `at` on, 0 if it has none.
    #[inline]
    pub(crate) fn search(&self, mut at: u32, key: S) -> u32 {
        while let Some(entry) = self.entries.get(at as usize) {
            if entry.key == key {
                return entry.next_hop;
            }
            at = entry.next;
        }
        0
    }

    /// Returns the bucket of a masked key.
    pub(crate) fn bucket_of<H: Hashes<S>>(&self, key: S, hashes: H) -> usize {
        let mut sequence = hashes.sequence(key);
        let first = sequence.next();
        for _ in 1..self.filter.hashes {
            sequence.next();
        }
        self.buckets.remainder(hashes.bucket(key, first, &mut sequence)) as usize
    }

    /// Makes room for as many entries more than there are, with filter and buckets for them.
    ///
    /// # Errors
    /// When memory runs out; the level has the same entries.
    pub(crate) fn reserve<H: Hashes<S>>(
        &mut self,
        more: usize,
        ratio: Ratio,
        hashes: H,
        budget: &mut Budget,
    ) -> Result<(), OutOfMemory> {
        let count = self.count + more;
        let free = self.entries.len() - self.count;
        budget.reserve(&mut self.entries, more.saturating_sub(free))?;
        // A filter with twice the entries it was sized for has nearly twice the false positives.
        if count > 2 * self.capacity {
            self.resize(count, ratio, hashes, budget)?;
        }
        Ok(())
    }

    /// Sizes filter and buckets for so many entries, and enters those that there are.
    ///
    /// # Errors
    /// When memory runs out; the level is unchanged.
    pub(crate) fn resize<H: Hashes<S>>(
        &mut self,
        capacity: usize,
        ratio: Ratio,
        hashes: H,
        budget: &mut Budget,
    ) -> Result<(), OutOfMemory> {
        let filter = Filter::new(capacity, ratio, budget)?;
        let mut heads = match budget.buffer(capacity) {
            Ok(heads) => heads,
            Err(error) => {
                filter.free(budget);
                return Err(error);
            }
        };
        heads.resize(capacity, END);
        core::mem::replace(&mut self.filter, filter).free(budget);
        budget.free(core::mem::replace(&mut self.heads, heads));
        (self.buckets, self.capacity) = (Divisor::new(capacity as u32), capacity);
        for at in 0..self.entries.len() {
            if self.entries[at].next_hop != 0 {
                self.link(at as u32, hashes);
            }
        }
        Ok(())
    }

    /// Counts an entry in the filter, and puts it first in its bucket.
    fn link<H: Hashes<S>>(&mut self, at: u32, hashes: H) {
        let key = self.entries[at as usize].key;
        let bucket = self.bucket_of(key, hashes);
        self.entries[at as usize].next = self.heads[bucket];
        self.heads[bucket] = at;
        self.filter.insert(&mut hashes.sequence(key));
    }

    /// Adds an entry, for which room was made, or changes its next hop.
    pub(crate) fn put<H: Hashes<S>>(&mut self, key: S, next_hop: u32, hashes: H) {
        let mut at = self.heads[self.bucket_of(key, hashes)];
        while let Some(entry) = self.entries.get_mut(at as usize) {
            if entry.key == key {
                // Stored twice, it would be counted twice.
                entry.next_hop = next_hop;
                return;
            }
            at = entry.next;
        }
        self.add(key, next_hop, hashes);
    }

    /// Adds an entry that is not there, for which room was made.
    pub(crate) fn add<H: Hashes<S>>(&mut self, key: S, next_hop: u32, hashes: H) {
        let entry = Entry { key, next_hop, next: END };
        let at = self.free;
        if at == END {
            self.entries.push(entry);
            self.link((self.entries.len() - 1) as u32, hashes);
        } else {
            self.free = self.entries[at as usize].next;
            self.entries[at as usize] = entry;
            self.link(at, hashes);
        }
        self.count += 1;
    }

    /// Removes an entry, if it is there.
    pub(crate) fn take<H: Hashes<S>>(&mut self, key: S, hashes: H) {
        if self.count == 0 {
            return;
        }
        let bucket = self.bucket_of(key, hashes);
        let (mut before, mut at) = (END, self.heads[bucket]);
        while let Some(&entry) = self.entries.get(at as usize) {
            if entry.key != key {
                (before, at) = (at, entry.next);
                continue;
            }
            match self.entries.get_mut(before as usize) {
                Some(before) => before.next = entry.next,
                None => self.heads[bucket] = entry.next,
            }
            self.entries[at as usize] = Entry { next_hop: 0, next: self.free, ..entry };
            self.free = at;
            self.count -= 1;
            self.filter.remove(&mut hashes.sequence(key));
            return;
        }
    }

    /// Returns the memory.
    pub(crate) fn memory(&self) -> Memory {
        let entries = memory::of(&self.entries);
        let free = (self.entries.len() - self.count) * size_of::<Entry<S>>();
        let entries = Memory { lookup_bytes: entries.lookup_bytes - free, ..entries };
        self.filter.memory() + memory::of(&self.heads) + entries
    }
}
