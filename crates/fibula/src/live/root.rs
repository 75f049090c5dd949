//! The one pointer from which readers start. It leads to the engines of both families. VRFs have roots of another type.

#![allow(unsafe_code, reason = "readers follow a pointer that the writer swaps, kept alive by their pins")]

use core::marker::PhantomData;
use core::ops::Deref;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::sync::Arc;

use crate::fib::Fib;

use super::epoch::{Domain, ReaderSlot};

/// The engines that readers look up in.
pub struct TableRoots {
    pub(super) v4: Arc<dyn Fib<u32>>,
    pub(super) v6: Arc<dyn Fib<u128>>,
}

/// The current roots of a table.
pub(crate) struct CurrentRoot<T = TableRoots> {
    current: AtomicPtr<T>,
}

/// Roots that new pins do not see any more. Dropped when no reader can be in them.
pub(crate) struct OldRoot<T = TableRoots>(*mut T);

// SAFETY: it owns the roots, which are `Send` and `Sync`; readers only borrow them.
unsafe impl<T: Send + Sync> Send for OldRoot<T> {}

impl<T> CurrentRoot<T> {
    pub(crate) fn new(roots: T) -> Self {
        Self { current: AtomicPtr::new(Box::into_raw(Box::new(roots))) }
    }

    /// Pins a reader of this table, until the guard is dropped.
    ///
    /// # Safety
    /// Old roots of this table are dropped only when they are collected from a list of the slot's domain, to which they
    /// came by [`swap`](Self::swap) in the epoch of the swap.
    #[inline]
    pub(crate) unsafe fn pin<'r>(&'r self, slot: &'r mut ReaderSlot) -> Pinned<'r, T> {
        // The pin comes first, because roots that were loaded before it could be dropped.
        let epoch = slot.pin();
        Pinned { roots: self.load(), epoch, root: self, slot, alone: PhantomData }
    }

    #[inline]
    fn load(&self) -> *const T {
        // Acquire, because the roots were written before they were swapped in.
        self.current.load(Ordering::Acquire)
    }

    /// Publishes other roots, and returns the old ones, to be retired.
    pub(crate) fn swap(&self, roots: T) -> OldRoot<T> {
        OldRoot(self.current.swap(Box::into_raw(Box::new(roots)), Ordering::AcqRel))
    }
}

impl<T> Drop for CurrentRoot<T> {
    fn drop(&mut self) {
        drop(OldRoot(*self.current.get_mut()));
    }
}

impl<T> Drop for OldRoot<T> {
    fn drop(&mut self) {
        // SAFETY: the pointer came from a box, and this is its only owner since the swap.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// A pinned slot, and the roots that it keeps alive.
pub(crate) struct Pinned<'r, T = TableRoots> {
    roots: *const T,
    epoch: u64,
    root: &'r CurrentRoot<T>,
    slot: &'r mut ReaderSlot,
    /// Neither `Send` nor `Sync`, as is the pointer.
    alone: PhantomData<*const ()>,
}

impl<T> Pinned<'_, T> {
    /// Moves the pin to the present state: later lookups see the changes up to now.
    #[inline]
    pub(crate) fn refresh(&mut self) {
        // The epoch first: roots that were loaded before it could be dropped under the new pin.
        self.epoch = self.slot.refresh();
        self.roots = self.root.load();
    }

    /// Returns the domain of the pin.
    #[inline]
    pub(crate) fn domain(&self) -> &Domain {
        self.slot.domain()
    }

    /// Returns the epoch of the pin.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }
}

impl<T> Deref for Pinned<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the slot was pinned before the pointer was loaded, and has been pinned since. These roots were retired, if
        // they were, in the epoch of the pin or a later one, and are not dropped before the pin ends.
        unsafe { &*self.roots }
    }
}

impl<T> Drop for Pinned<'_, T> {
    fn drop(&mut self) {
        self.slot.unpin();
    }
}
