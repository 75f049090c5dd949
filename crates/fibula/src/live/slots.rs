//! Values of any type. Readers get them by number without a lock; the writer adds, replaces and drops them.
//!
//! A slot is empty, open or closed. The writer fills an empty slot and opens it; readers get the values of open ones. A value
//! goes in two steps. Each step waits until the readers that were pinned at its beginning have moved on
//! ([`epoch`](super::epoch)):
//!
//! ```text
//! retire   the table does not lead to the slot any more. Readers that found its number before still get the value
//! close    after the first step: no reader finds the number in the table. A caller that has it from elsewhere gets nothing
//! take     after the second step: no reader has a reference. The slot is empty, and the writer drops the value
//! ```
//!
//! The second step makes [`PinnedValues::get`] safe for any number, wherever the caller has it from.

#![allow(
    unsafe_code,
    reason = "readers borrow values in slots that the writer fills and empties, kept by their pins"
)]

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use crate::memory::{Budget, Limits, Memory, OutOfMemory};

use super::epoch::{Domain, RetireList};
use super::reader::Pin;
use super::segments::Segments;

const EMPTY: u32 = 0;
const OPEN: u32 = 1;
const CLOSED: u32 = 2;

struct ValueSlot<V> {
    state: AtomicU32,
    value: UnsafeCell<MaybeUninit<V>>,
}

impl<V> ValueSlot<V> {
    fn empty() -> Self {
        Self { state: AtomicU32::new(EMPTY), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }
}

/// The slots, as readers share them.
pub(crate) struct ValueSlots<V> {
    domain: Arc<Domain>,
    slots: Segments<ValueSlot<V>>,
}

// SAFETY: any thread that shares the slots borrows values (`V: Sync`), and one of them drops values that another made
// (`V: Send`). States are atomic, and the value in a slot is written only while no thread reads it: see `ValueStore`.
unsafe impl<V: Send + Sync> Sync for ValueSlots<V> {}

/// Values, as a pinned reader has them.
pub(crate) struct PinnedValues<'p, V> {
    slots: &'p ValueSlots<V>,
}

impl<V> Clone for PinnedValues<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for PinnedValues<'_, V> {}

impl<V> ValueSlots<V> {
    /// Returns the values for as long as a pin.
    ///
    /// # Panics
    /// When the pin is of another table.
    #[inline]
    pub(crate) fn read<'p>(&'p self, pin: &'p impl Pin) -> PinnedValues<'p, V> {
        // A pin of another domain would not keep these values from being dropped.
        assert!(core::ptr::eq(pin.domain(), &*self.domain), "the pin is of another table");
        PinnedValues { slots: self }
    }

    /// Returns the value of a slot, for the writer, which drops none meanwhile.
    fn get(&self, at: u32) -> Option<&V> {
        let slot = self.slots.get(at)?;
        if slot.state.load(Ordering::Acquire) == EMPTY {
            return None;
        }
        // SAFETY: the slot is not empty, so nothing is written to it while this writer is borrowed.
        let value = unsafe { &*slot.value.get() };
        // SAFETY: a slot that is not empty was filled before.
        Some(unsafe { value.assume_init_ref() })
    }
}

impl<'p, V> PinnedValues<'p, V> {
    /// Returns the value of an open slot.
    #[inline]
    pub(crate) fn get(self, at: u32) -> Option<&'p V> {
        let slot = self.slots.slots.get(at)?;
        if slot.state.load(Ordering::Acquire) != OPEN {
            return None;
        }
        // SAFETY: the slot was open while this reader was pinned. It is written to again only two grace periods later, the
        // second of which begins when it is closed, so after the load above; and the pin outlives `'p`.
        let value = unsafe { &*slot.value.get() };
        // SAFETY: the value was written before the slot was opened, which the load acquires.
        Some(unsafe { value.assume_init_ref() })
    }
}

impl<V> Drop for ValueSlots<V> {
    fn drop(&mut self) {
        for slot in self.slots.iter_mut() {
            if *slot.state.get_mut() != EMPTY {
                // SAFETY: it was filled, and nothing else has the slots any more.
                unsafe { slot.value.get_mut().assume_init_drop() };
            }
        }
    }
}

/// A slot whose value goes.
#[derive(Debug, Clone, Copy)]
enum LeavingValue {
    Retired(u32),
    Closed(u32),
}

/// The writer's side: fills slots, and takes values out when no reader has them. Freed slots are reused first. All calls are made
/// by the one writer of the domain.
pub(crate) struct ValueStore<V> {
    slots: Arc<ValueSlots<V>>,
    leaving: RetireList<LeavingValue>,
    /// Slots that are empty, with room for all that there are.
    free: Vec<u32>,
    /// Slots that are to be closed, with room for all that there are.
    closing: Vec<u32>,
    /// Values that nobody has any more, until the writer takes them.
    gone: Vec<V>,
    end: u32,
    budget: Budget,
}

impl<V: Send + Sync> ValueStore<V> {
    pub(crate) fn new(domain: Arc<Domain>, limits: Limits) -> Self {
        Self {
            slots: Arc::new(ValueSlots { domain, slots: Segments::new() }),
            leaving: RetireList::default(),
            free: Vec::new(),
            closing: Vec::new(),
            gone: Vec::new(),
            end: 0,
            budget: Budget::new(limits),
        }
    }

    /// Returns the slots for readers.
    pub(crate) fn slots(&self) -> &Arc<ValueSlots<V>> {
        &self.slots
    }

    /// Reserves space for this number of values, and for the lists that dropping them needs.
    ///
    /// # Errors
    /// When memory runs out.
    pub(crate) fn reserve(&mut self, values: usize) -> Result<(), OutOfMemory> {
        let more = values.saturating_sub(self.free.len());
        if more == 0 {
            return Ok(());
        }
        let full = OutOfMemory { wanted_bytes: usize::MAX, used_bytes: 0, limit_bytes: None };
        let end = u32::try_from(self.end as usize + more).map_err(|_| full)?;
        let Self { slots, leaving, free, closing, budget, .. } = self;
        let all = end as usize;
        slots.slots.reserve(end, budget, ValueSlot::empty)?;
        budget.reserve(free, all - free.len())?;
        budget.reserve(closing, all - closing.len())?;
        // Room for every value to leave at once, because `retire` and `collect` must not fail.
        leaving.reserve(all - leaving.len(), budget)
    }

    /// Puts a value into a slot and opens it.
    ///
    /// # Panics
    /// When there is no room: [`reserve`](Self::reserve) comes first.
    pub(crate) fn put(&mut self, value: V) -> u32 {
        let at = self.free.pop().unwrap_or_else(|| {
            self.end += 1;
            self.end - 1
        });
        let slot = self.slots.slots.get(at).expect("room was reserved for a value");
        // SAFETY: the slot is empty: no reader has a reference into it, and none gets one before the store below.
        unsafe { (*slot.value.get()).write(value) };
        // Release: a reader that sees the slot open sees the value.
        slot.state.store(OPEN, Ordering::Release);
        at
    }

    /// Returns the value of a slot, which stays there until [`collect`](Self::collect).
    pub(crate) fn get(&self, at: u32) -> Option<&V> {
        self.slots.get(at)
    }

    /// Begins the end of a value that the table does not lead to any more.
    pub(crate) fn retire(&mut self, at: u32) {
        let domain = &self.slots.domain;
        self.leaving.retire(domain, LeavingValue::Retired(at), size_of::<ValueSlot<V>>());
    }

    /// Ends the epoch, after all stores of a change.
    pub(crate) fn advance(&mut self) -> u64 {
        self.leaving.advance(&self.slots.domain)
    }

    /// Returns the values that no reader has any more. The caller drops them without holding a lock, because their
    /// destructors may call the table.
    #[must_use]
    pub(crate) fn take_gone(&mut self) -> Vec<V> {
        core::mem::take(&mut self.gone)
    }

    /// Adds a value that no slot takes to those that no reader has. Without memory it is dropped at once.
    pub(crate) fn discard(&mut self, value: V) {
        if self.gone.try_reserve(1).is_ok() {
            self.gone.push(value);
        }
    }

    /// Closes slots that no lookup finds, and empties slots that no reader has. Without memory for the list of values, these
    /// are dropped at once.
    pub(crate) fn collect(&mut self) {
        let Self { slots, leaving, free, closing, gone, .. } = self;
        let ValueSlots { domain, slots } = &**slots;
        leaving.collect(domain, |item| match item {
            LeavingValue::Retired(at) => closing.push(at),
            LeavingValue::Closed(at) => {
                if let Some(slot) = slots.get(at) {
                    // Before the value is taken out: if its destructor panics, nothing takes the slot for filled.
                    slot.state.store(EMPTY, Ordering::Relaxed);
                    // SAFETY: it was closed for a grace period: no reader has a reference, and the writer is this one.
                    let value = unsafe { &*slot.value.get() };
                    // Room for this was reserved together with the slot.
                    free.push(at);
                    // SAFETY: it was filled before it was opened. The slot is empty now, so the value is nowhere else.
                    let value = unsafe { value.assume_init_read() };
                    if gone.try_reserve(1).is_ok() {
                        gone.push(value);
                    }
                }
            }
        });
        // Nothing was closed, so no epoch has to end.
        if closing.is_empty() {
            return;
        }
        for at in closing.drain(..) {
            if let Some(slot) = slots.get(at) {
                // Readers that loaded the state before may still borrow the value. That is why the slot waits for a second grace
                // period.
                slot.state.store(CLOSED, Ordering::Release);
                leaving.retire(domain, LeavingValue::Closed(at), size_of::<ValueSlot<V>>());
            }
        }
        // The second grace period of the closed slots begins here.
        leaving.advance(domain);
    }

    /// Returns the number of values, those that are leaving included.
    pub(crate) fn len(&self) -> usize {
        self.end as usize - self.free.len()
    }

    /// Returns the number of values that readers may still have, though the table does not lead to them.
    pub(crate) fn leaving(&self) -> usize {
        self.leaving.len()
    }

    /// Returns the memory of slots and lists. Memory that values allocate themselves is not included.
    pub(crate) fn memory(&self) -> Memory {
        let lists = crate::memory::allocated(&self.free)
            + crate::memory::allocated(&self.closing)
            + crate::memory::allocated(&self.gone);
        let lists = Memory { allocated_bytes: lists, ..Memory::default() };
        self.slots.slots.memory() + lists + self.leaving.memory()
    }

    /// Returns whether a slot is open, and not leaving.
    pub(crate) fn is_kept(&self, at: u32) -> bool {
        let is_open = self.slots.slots.get(at).is_some_and(|slot| slot.state.load(Ordering::Relaxed) == OPEN);
        is_open
            && !self.leaving.items().any(|&item| matches!(item, LeavingValue::Retired(gone) if gone == at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::Table;
    use crate::live::readable::Readable as _;

    #[test]
    fn values_go_in_two_steps() {
        let table = Table::new().unwrap();
        let mut keeper = ValueStore::new(Arc::clone(Table::domain(&table)), Limits::default());
        let value = Arc::new(7);
        keeper.reserve(1).unwrap();
        let at = keeper.put(Arc::clone(&value));
        let slots = Arc::clone(keeper.slots());
        let (mut early, mut late) = (table.reader().unwrap(), table.reader().unwrap());
        let pin = early.pin();
        assert_eq!(slots.read(&pin).get(at).map(|value| **value), Some(7));
        assert!(slots.read(&pin).get(at + 1).is_none() && slots.read(&pin).get(u32::MAX).is_none());
        keeper.retire(at);
        keeper.advance();
        keeper.collect();
        // The number was found under the pin, and is still good.
        assert!(slots.read(&pin).get(at).is_some());
        assert!(!keeper.is_kept(at));
        drop(pin);
        // A reader that has the number from elsewhere.
        let pin = late.pin();
        let found = slots.read(&pin).get(at).unwrap();
        keeper.collect();
        keeper.collect();
        assert_eq!((**found, Arc::strong_count(&value)), (7, 2));
        assert!(slots.read(&pin).get(at).is_none() && keeper.take_gone().is_empty());
        drop(pin);
        keeper.collect();
        assert_eq!(Arc::strong_count(&value), 2);
        assert_eq!(keeper.take_gone().len(), 1);
        assert_eq!(Arc::strong_count(&value), 1);
        keeper.reserve(1).unwrap();
        assert_eq!((keeper.put(Arc::clone(&value)), keeper.len()), (at, 1));
        drop((keeper, slots));
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    #[should_panic(expected = "the pin is of another table")]
    fn a_pin_of_another_table_is_refused() {
        let (one, two) = (Table::new().unwrap(), Table::new().unwrap());
        let keeper = ValueStore::<u32>::new(Arc::clone(Table::domain(&one)), Limits::default());
        let mut reader = two.reader().unwrap();
        let pin = reader.pin();
        let _ = keeper.slots().read(&pin);
    }
}
