//! Items that are out of use, while readers may still read them.

use std::collections::VecDeque;

use super::{Domain, SeenPin, Stalled};
use crate::memory::{Budget, Memory, OutOfMemory};

/// The writer's list of retired items, in the order of the epochs. All calls take the same domain.
///
/// A list that is dropped drops its items at once, even while readers are pinned. If that would harm a reader, keep the
/// list where readers keep it alive.
#[derive(Debug)]
pub(crate) struct RetireList<T> {
    items: VecDeque<RetiredItem<T>>,
    /// The sum over the items.
    bytes: usize,
}

#[derive(Debug)]
struct RetiredItem<T> {
    /// The epoch in which it was retired.
    epoch: u64,
    bytes: usize,
    content: T,
}

impl<T> Default for RetireList<T> {
    fn default() -> Self {
        Self { items: VecDeque::new(), bytes: 0 }
    }
}

impl<T> RetireList<T> {
    /// Makes room for `additional` more items, so that a change can fail before its first store and not after it.
    ///
    /// # Errors
    /// When the limit is reached or there is no memory; the list is unchanged.
    pub(crate) fn reserve(&mut self, additional: usize, budget: &mut Budget) -> Result<(), OutOfMemory> {
        let needed = self.items.len().saturating_add(additional);
        if needed <= self.items.capacity() {
            return Ok(());
        }
        // Twice as many, because the list grows by one change at a time and must not be copied at each.
        let mut capacity = needed.max(2 * self.items.capacity()).max(16);
        loop {
            match self.grow(capacity, budget) {
                // Near the limit, grow by less.
                Err(_) if capacity > needed => capacity = needed + (capacity - needed) / 2,
                result => return result,
            }
        }
    }

    fn grow(&mut self, capacity: usize, budget: &mut Budget) -> Result<(), OutOfMemory> {
        let mut items = VecDeque::new();
        let bytes = capacity.saturating_mul(size_of::<RetiredItem<T>>());
        let no_memory = |used_bytes| OutOfMemory { wanted_bytes: bytes, used_bytes, limit_bytes: None };
        // No allocator gives more, and a budget could not add it.
        if isize::try_from(bytes).is_err() {
            return Err(no_memory(budget.used_bytes()));
        }
        // Charged before the allocation, so that a limit refuses it without a request to the system.
        budget.charge(bytes)?;
        if items.try_reserve_exact(capacity).is_err() {
            budget.release(bytes);
            return Err(no_memory(budget.used_bytes()));
        }
        items.append(&mut self.items);
        self.replace(items, budget);
        Ok(())
    }

    /// Frees the room of an empty list, which is large after a reader has stalled.
    pub(crate) fn shrink(&mut self, budget: &mut Budget) {
        if self.items.is_empty() {
            self.replace(VecDeque::new(), budget);
        }
    }

    fn replace(&mut self, items: VecDeque<RetiredItem<T>>, budget: &mut Budget) {
        budget.release(self.memory().allocated_bytes);
        self.items = items;
    }

    /// Retires what the change that is being published takes out of use. `bytes` counts towards
    /// [`bytes`](Self::bytes).
    ///
    /// # Panics
    /// When there is no room: [`reserve`](Self::reserve) comes first.
    pub(crate) fn retire(&mut self, domain: &Domain, content: T, bytes: usize) {
        assert!(self.items.len() < self.items.capacity(), "no room was reserved for a retired item");
        self.bytes += bytes;
        // Tagged with the present epoch, because readers that were pinned in it may have loaded the old entry.
        self.items.push_back(RetiredItem { epoch: domain.epoch(), bytes, content });
    }

    /// Ends the epoch, after all entries of the change are stored, and returns the next. A change that retires nothing
    /// needs no call.
    pub(crate) fn advance(&mut self, domain: &Domain) -> u64 {
        domain.advance()
    }

    /// Reclaims items that no reader can still see: passes them to `free`, the oldest first. Returns the reader that keeps the
    /// oldest remaining item.
    pub(crate) fn collect(&mut self, domain: &Domain, mut free: impl FnMut(T)) -> Option<Stalled> {
        let epoch = domain.epoch();
        // Without a look at the slots: the fence of this epoch is still to come.
        if self.oldest()? >= epoch {
            return None;
        }
        let pin = domain.oldest_pin();
        // Items of the oldest pin's own epoch stay: its reader may have loaded an entry before it was replaced.
        let end = pin.map_or(epoch, |pin| pin.epoch);
        while self.oldest().is_some_and(|oldest| oldest < end) {
            if let Some(RetiredItem { bytes, content, .. }) = self.items.pop_front() {
                self.bytes -= bytes;
                free(content);
            }
        }
        self.stalled_by(pin, epoch)
    }

    /// Returns the reader that keeps the oldest item from being freed, if one does.
    pub(crate) fn stalled(&self, domain: &Domain) -> Option<Stalled> {
        self.stalled_by(domain.oldest_pin(), domain.epoch())
    }

    fn stalled_by(&self, oldest_pin: Option<SeenPin>, epoch: u64) -> Option<Stalled> {
        let oldest = self.oldest()?;
        // A later pin does not keep the item, and an item of this epoch waits for the writer alone.
        let pin = oldest_pin.filter(|pin| pin.epoch <= oldest && oldest < epoch)?;
        Some(Stalled { reader: pin.reader, epochs: epoch - pin.epoch })
    }

    /// Returns all items, the oldest first.
    pub(crate) fn items(&self) -> impl Iterator<Item = &T> {
        self.items.iter().map(|item| &item.content)
    }

    /// Returns the bytes of all items.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of items.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns the epoch in which the oldest item was retired.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.items.front().map(|item| item.epoch)
    }

    /// Returns the memory of the list itself.
    pub(crate) fn memory(&self) -> Memory {
        Memory { allocated_bytes: self.items.capacity() * size_of::<RetiredItem<T>>(), ..Memory::default() }
    }
}
