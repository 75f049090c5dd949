//! Arrays of words that one writer may change while readers look.

use core::fmt;
use core::ops::Deref;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::{Buffer, Memory};

/// An integer with an atomic form.
pub(crate) trait Word: Copy + Default + Send + Sync + fmt::Debug + 'static {
    /// The atomic form, with the same size.
    type Atomic: Send + Sync;
}

impl Word for u32 {
    type Atomic = AtomicU32;
}

impl Word for u64 {
    type Atomic = AtomicU64;
}

const _: () = assert!(align_of::<AtomicU64>() <= super::ALIGN_BYTES && size_of::<AtomicU64>() == 8);

/// A filled [`Buffer`] whose elements are atomic: shared references read and write them. All accesses to one array have
/// the size of its elements, since atomic accesses of several sizes that race are undefined.
pub(crate) struct Shared<T: Word>(Buffer<T>);

impl<T: Word> Shared<T> {
    /// Returns the memory, all of which lookups can access.
    #[must_use]
    pub(crate) fn memory(&self) -> Memory {
        super::of(&self.0)
    }
}

impl<T: Word> From<Buffer<T>> for Shared<T> {
    fn from(words: Buffer<T>) -> Self {
        Self(words)
    }
}

impl<T: Word> Deref for Shared<T> {
    type Target = [T::Atomic];

    #[inline]
    #[allow(unsafe_code)]
    fn deref(&self) -> &[T::Atomic] {
        // SAFETY: the buffer's elements are initialised, as large as their atomic form and aligned for it (blocks begin at
        // cache lines). The buffer owns them, and no plain reference to them is made while it is wrapped.
        unsafe { core::slice::from_raw_parts(self.0.start().cast::<T::Atomic>(), self.0.count()) }
    }
}

impl<T: Word> Default for Shared<T> {
    fn default() -> Self {
        Self(Buffer::new())
    }
}

impl<T: Word> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("len", &self.0.count()).finish_non_exhaustive()
    }
}

/// An element of a table, plain or atomic.
pub(crate) trait Cell: Sync {
    /// Its value.
    type Value: Word;

    /// Returns the value. Of an atomic element, the load is relaxed.
    fn read(&self) -> Self::Value;
}

impl Cell for u32 {
    type Value = Self;

    #[inline(always)]
    fn read(&self) -> Self {
        *self
    }
}

impl Cell for u64 {
    type Value = Self;

    #[inline(always)]
    fn read(&self) -> Self {
        *self
    }
}

impl Cell for AtomicU32 {
    type Value = u32;

    #[inline(always)]
    fn read(&self) -> u32 {
        self.load(Ordering::Relaxed)
    }
}

impl Cell for AtomicU64 {
    type Value = u64;

    #[inline(always)]
    fn read(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Budget, Limits};

    #[test]
    fn shared_words_are_those_of_the_buffer_and_can_be_stored() {
        let mut budget = Budget::new(Limits::default());
        let mut buffer = budget.buffer::<u32>(3).unwrap();
        buffer.extend_from_slice(&[7, 8, 9]);
        let bytes = super::super::of(&buffer);
        let shared = Shared::from(buffer);
        assert_eq!((shared.len(), shared.memory()), (3, bytes));
        shared[1].store(1, Ordering::Relaxed);
        assert_eq!(shared.iter().map(Cell::read).collect::<Vec<_>>(), [7, 1, 9]);
        assert_eq!(Shared::<u64>::default().len(), 0);
    }
}
