//! The one pointer from which readers start: to what both families are looked up in.

#![allow(unsafe_code, reason = "readers follow a pointer that the writer swaps, kept alive by their pins")]

use core::marker::PhantomData;
use core::ops::Deref;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::sync::Arc;

use crate::fib::Fib;

use super::epoch::Slot;

/// What readers look up in.
pub(super) struct Roots {
    pub(super) v4: Arc<dyn Fib<u32>>,
    pub(super) v6: Arc<dyn Fib<u128>>,
}

/// The current roots of a table.
pub(super) struct Root {
    current: AtomicPtr<Roots>,
}

/// Roots that new pins do not see any more. Dropped when no reader can be in them.
pub(super) struct OldRoot(*mut Roots);

// SAFETY: it owns the roots, which are `Send` and `Sync`; readers only borrow them.
unsafe impl Send for OldRoot {}

impl Root {
    pub(super) fn new(roots: Roots) -> Self {
        Self { current: AtomicPtr::new(Box::into_raw(Box::new(roots))) }
    }

    /// Pins a reader of this table, until the guard is dropped.
    ///
    /// # Safety
    /// Old roots of this table are dropped only when they are collected from a list of the slot's domain, to which they
    /// came by [`swap`](Self::swap) in the epoch of the swap.
    #[inline]
    pub(super) unsafe fn pin<'r>(&'r self, slot: &'r mut Slot) -> Pinned<'r> {
        let epoch = slot.pin();
        Pinned { roots: self.load(), epoch, root: self, slot, alone: PhantomData }
    }

    #[inline]
    fn load(&self) -> *const Roots {
        self.current.load(Ordering::Acquire)
    }

    /// Publishes other roots, and returns the old ones, to be retired.
    pub(super) fn swap(&self, roots: Roots) -> OldRoot {
        OldRoot(self.current.swap(Box::into_raw(Box::new(roots)), Ordering::AcqRel))
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        drop(OldRoot(*self.current.get_mut()));
    }
}

impl Drop for OldRoot {
    fn drop(&mut self) {
        // SAFETY: the pointer came from a box, and this is its only owner since the swap.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// A pinned slot, and the roots that it keeps alive.
pub(super) struct Pinned<'r> {
    roots: *const Roots,
    epoch: u64,
    root: &'r Root,
    slot: &'r mut Slot,
    /// Neither `Send` nor `Sync`, as is the pointer.
    alone: PhantomData<*const ()>,
}

impl Pinned<'_> {
    /// Pins anew: changes since the last time are seen from here on.
    #[inline]
    pub(super) fn refresh(&mut self) {
        self.epoch = self.slot.refresh();
        self.roots = self.root.load();
    }

    /// Returns the epoch of the pin.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }
}

impl Deref for Pinned<'_> {
    type Target = Roots;

    #[inline]
    fn deref(&self) -> &Roots {
        // SAFETY: the slot was pinned before the pointer was loaded, and has been pinned since. These roots were retired, if
        // they were, in the epoch of the pin or a later one, and are not dropped before the pin ends.
        unsafe { &*self.roots }
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        self.slot.unpin();
    }
}
