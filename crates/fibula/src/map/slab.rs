//! The values of a map, each in a numbered slot.

use core::fmt;

use crate::memory::{self, Budget, Limits, Memory, OutOfMemory};
use crate::net::NextHop;

/// Values by number: slot `n` is next hop `n + 1` of the map's table. Freed slots are chained and reused.
pub(super) struct Slab<V> {
    slots: Vec<SlabSlot<V>>,
    /// The next hop of the first free slot; `None` if all have values.
    free: Option<NextHop>,
    budget: Budget,
}

#[derive(Clone)]
enum SlabSlot<V> {
    Value(V),
    /// A free slot, with the next one of the chain.
    Free(Option<NextHop>),
}

impl<V> Slab<V> {
    pub(super) fn new(limits: Limits) -> Self {
        Self { slots: Vec::new(), free: None, budget: Budget::new(limits) }
    }

    /// Makes room for so many values without using a free slot.
    pub(super) fn reserve(&mut self, values: usize) -> Result<(), OutOfMemory> {
        let needed = self.slots.len().saturating_add(values);
        // The number of a slot is its index + 1, and has to fit into 32 bits.
        if needed >= u32::MAX as usize {
            return Err(OutOfMemory {
                wanted_bytes: values.saturating_mul(size_of::<SlabSlot<V>>()),
                used_bytes: self.budget.used_bytes(),
                limit_bytes: Some((u32::MAX as usize).saturating_mul(size_of::<SlabSlot<V>>())),
            });
        }
        self.budget.reserve_an_eighth(&mut self.slots, values)
    }

    /// Makes room for one value.
    #[inline]
    pub(super) fn reserve_one(&mut self) -> Result<(), OutOfMemory> {
        if self.free.is_some() { Ok(()) } else { self.reserve(1) }
    }

    /// Returns the next hop that [`put`](Self::put) will give to its value.
    #[inline]
    pub(super) fn next(&self) -> NextHop {
        self.free.unwrap_or_else(|| number(self.slots.len()))
    }

    /// Stores a value, for which there must be room.
    #[inline]
    pub(super) fn put(&mut self, value: V) -> NextHop {
        let at = self.next();
        if self.free.is_some() {
            if let SlabSlot::Free(next) =
                core::mem::replace(&mut self.slots[index(at)], SlabSlot::Value(value))
            {
                self.free = next;
            }
        } else {
            debug_assert!(self.slots.len() < self.slots.capacity());
            self.slots.push(SlabSlot::Value(value));
        }
        at
    }

    /// Returns the number of slots.
    pub(super) fn end(&self) -> usize {
        self.slots.len()
    }

    /// Stores a value after the last slot, for which there must be room.
    pub(super) fn push(&mut self, value: V) {
        debug_assert!(self.slots.len() < self.slots.capacity());
        self.slots.push(SlabSlot::Value(value));
    }

    #[inline]
    pub(super) fn get(&self, at: NextHop) -> &V {
        match &self.slots[index(at)] {
            SlabSlot::Value(value) => value,
            SlabSlot::Free(_) => unreachable!("every route of a map has a value"),
        }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, at: NextHop) -> &mut V {
        match &mut self.slots[index(at)] {
            SlabSlot::Value(value) => value,
            SlabSlot::Free(_) => unreachable!("every route of a map has a value"),
        }
    }

    /// Frees a slot and returns its value.
    pub(super) fn take(&mut self, at: NextHop) -> V {
        // The free list runs through the free slots themselves, so that a removal needs no memory.
        match core::mem::replace(&mut self.slots[index(at)], SlabSlot::Free(self.free)) {
            SlabSlot::Value(value) => {
                self.free = Some(at);
                value
            }
            SlabSlot::Free(_) => unreachable!("every route of a map has a value"),
        }
    }

    /// Returns the values in the order of their slots, `None` for a free one.
    pub(super) fn slots(&self) -> impl Iterator<Item = Option<&V>> {
        self.slots.iter().map(|slot| match slot {
            SlabSlot::Value(value) => Some(value),
            SlabSlot::Free(_) => None,
        })
    }

    /// As [`slots`](Self::slots), to change them.
    pub(super) fn slots_mut(&mut self) -> impl Iterator<Item = Option<&mut V>> {
        self.slots.iter_mut().map(|slot| match slot {
            SlabSlot::Value(value) => Some(value),
            SlabSlot::Free(_) => None,
        })
    }

    /// As [`slots`](Self::slots), to take them.
    pub(super) fn into_slots(self) -> impl Iterator<Item = Option<V>> {
        self.slots.into_iter().map(|slot| match slot {
            SlabSlot::Value(value) => Some(value),
            SlabSlot::Free(_) => None,
        })
    }

    /// Drops all values and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.slots.clear();
        self.free = None;
    }

    /// Frees spare capacity after the last slot.
    pub(super) fn shrink(&mut self) {
        self.budget.shrink(&mut self.slots);
    }

    pub(super) fn limits(&self) -> Limits {
        self.budget.limits()
    }

    pub(super) fn set_limits(&mut self, limits: Limits) {
        self.budget.set_limits(limits);
    }

    pub(super) fn memory(&self) -> Memory {
        memory::of(&self.slots)
    }
}

impl<V: Clone> Clone for Slab<V> {
    fn clone(&self) -> Self {
        let slots = self.slots.clone();
        let budget = self.budget.of_copy(&slots);
        Self { slots, free: self.free, budget }
    }
}

impl<V> fmt::Debug for Slab<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slab").field("slots", &self.slots.len()).finish_non_exhaustive()
    }
}

/// Returns the index of a next hop's slot.
#[inline]
pub(super) fn index(at: NextHop) -> usize {
    at.id() as usize - 1
}

/// Returns the next hop of a slot's index, which is below `u32::MAX`.
#[inline]
pub(super) fn number(index: usize) -> NextHop {
    NextHop::new(index as u32 + 1).expect("an index below the largest word")
}
