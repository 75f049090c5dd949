//! Arrays of words that one writer may change while readers look.

use core::fmt;
use core::ops::Deref;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

use super::{Buffer, Mapping, Memory, OutOfMemory, Words};

/// An integer with an atomic form.
pub trait Word: Copy + Default + Send + Sync + fmt::Debug + 'static {
    /// The atomic form, with the same size.
    type Atomic: Send + Cell<Value = Self>;

    /// Returns the value whose lowest byte is the first one in memory here.
    fn of_little_endian(self) -> Self;

    /// Stores the value where nothing reads it yet: the store is relaxed.
    fn write(self, to: &Self::Atomic);

    /// Returns an array of any width.
    fn words(array: &[Self::Atomic]) -> Words<'_>;
}

/// A filled [`Buffer`] whose elements are atomic: shared references read and write them. All accesses to one array have
/// the size of its elements, since atomic accesses of several sizes that race are undefined.
///
/// There may be several handles to the same elements, which are freed with the last one. The elements may also be words of a
/// `Mapping`, to which nothing is stored.
pub struct Shared<T: Word> {
    /// The buffer's first element, so that lookups need not ask it.
    start: *const T,
    len: usize,
    owner: Owner<T>,
}

/// Who frees the elements.
enum Owner<T> {
    Alone(Buffer<T>),
    Several(Arc<Buffer<T>>),
    /// A file, whose words nobody stores to here.
    Mapped(Arc<Mapping>),
}

#[allow(unsafe_code)]
// SAFETY: it is a buffer or a mapping that may be shared, and a copy of its address; elements are accessed as atomic ones only.
unsafe impl<T: Word> Send for Shared<T> {}
#[allow(unsafe_code)]
// SAFETY: as above.
unsafe impl<T: Word> Sync for Shared<T> {}

impl<T: Word> Shared<T> {
    /// Returns so many zeros. Large arrays take memory only where they are written; no limit counts them.
    ///
    /// # Errors
    /// When the system has no more addresses.
    pub fn zeros(len: usize, huge_pages: bool) -> Result<Self, OutOfMemory> {
        Buffer::zeros(len, huge_pages).map(Self::from).ok_or(OutOfMemory {
            wanted_bytes: len.saturating_mul(size_of::<T>()),
            used_bytes: 0,
            limit_bytes: None,
        })
    }

    /// Returns these words.
    #[cfg(any(test, feature = "testing"))]
    pub fn filled(words: impl Iterator<Item = T>) -> Self {
        let mut budget = super::Budget::default();
        let mut buffer = Buffer::new();
        for word in words {
            budget.push(&mut buffer, word).expect("a test has memory");
        }
        Self::from(buffer)
    }

    /// Returns words of a mapping.
    ///
    /// # Safety
    /// So many words from `start` on are within the mapping, aligned as their atomic form. Nothing may be stored to them:
    /// they are only ever looked up in.
    #[allow(unsafe_code)]
    pub(super) unsafe fn mapped(start: core::ptr::NonNull<T>, len: usize, mapping: Arc<Mapping>) -> Self {
        Self { start: start.as_ptr(), len, owner: Owner::Mapped(mapping) }
    }

    /// Returns another handle to the elements.
    pub fn another(&mut self) -> Self {
        let several = match core::mem::replace(&mut self.owner, Owner::Alone(Buffer::new())) {
            Owner::Alone(buffer) => Arc::new(buffer),
            Owner::Several(several) => several,
            Owner::Mapped(mapping) => {
                self.owner = Owner::Mapped(Arc::clone(&mapping));
                return Self { start: self.start, len: self.len, owner: Owner::Mapped(mapping) };
            }
        };
        self.owner = Owner::Several(Arc::clone(&several));
        Self { start: self.start, len: self.len, owner: Owner::Several(several) }
    }

    /// Returns whether there is no other handle to the elements, nor any reference of one that there was.
    pub fn is_alone(&mut self) -> bool {
        match &mut self.owner {
            Owner::Alone(_) => true,
            Owner::Several(several) => Arc::get_mut(several).is_some(),
            Owner::Mapped(_) => false,
        }
    }

    /// Returns the memory, all of which lookups can access.
    #[must_use]
    pub fn memory(&self) -> Memory {
        self.memory_of(self.len)
    }

    /// Returns the memory in use if only the first `used` elements have been written.
    #[must_use]
    pub fn memory_of(&self, used: usize) -> Memory {
        let all = match &self.owner {
            Owner::Alone(buffer) => super::of(buffer),
            Owner::Several(buffer) => super::of(&**buffer),
            Owner::Mapped(_) => return Mapping::memory(used * size_of::<T>()),
        };
        let lookup_bytes = used * size_of::<T>();
        if used == self.len {
            return all;
        }
        let huge = all.mapped_bytes.min(lookup_bytes.next_multiple_of(super::HUGE_PAGE_BYTES));
        let allocated_bytes = all.allocated_bytes.min(lookup_bytes);
        Memory { lookup_bytes, allocated_bytes, mapped_bytes: huge, huge_bytes: huge }
    }
}

impl<T: Word> From<Buffer<T>> for Shared<T> {
    fn from(words: Buffer<T>) -> Self {
        Self { start: words.start(), len: words.count(), owner: Owner::Alone(words) }
    }
}

impl<T: Word> Deref for Shared<T> {
    type Target = [T::Atomic];

    #[inline]
    #[allow(unsafe_code)]
    fn deref(&self) -> &[T::Atomic] {
        // SAFETY: the buffer's elements are initialised, as large as their atomic form and aligned for it (blocks begin at
        // cache lines). The buffer lives as long as its handles, and no plain reference to its elements is made while it
        // has any. Of a mapping, whoever made it promised the same, and that nothing is stored.
        unsafe { core::slice::from_raw_parts(self.start.cast::<T::Atomic>(), self.len) }
    }
}

impl<T: Word> Default for Shared<T> {
    fn default() -> Self {
        Self::from(Buffer::new())
    }
}

impl<T: Word> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("len", &self.len).finish_non_exhaustive()
    }
}

/// An element of a table, plain or atomic.
pub trait Cell: Sync {
    /// Its value.
    type Value: Word;

    /// Returns the value. Of an atomic element, the load is relaxed.
    fn read(&self) -> Self::Value;
}

macro_rules! words {
    ($($word:ty, $atomic:ty;)*) => {
        $(
            impl Word for $word {
                type Atomic = $atomic;

                #[inline(always)]
                fn of_little_endian(self) -> Self {
                    Self::from_le(self)
                }

                #[inline(always)]
                fn write(self, to: &$atomic) {
                    to.store(self, Ordering::Relaxed);
                }

                fn words(array: &[$atomic]) -> Words<'_> {
                    array.into()
                }
            }

            impl Cell for $word {
                type Value = Self;

                #[inline(always)]
                fn read(&self) -> Self {
                    *self
                }
            }

            impl Cell for $atomic {
                type Value = $word;

                #[inline(always)]
                fn read(&self) -> $word {
                    self.load(Ordering::Relaxed)
                }
            }

            const _: () = assert!(align_of::<$atomic>() <= super::ALIGN_BYTES && size_of::<$atomic>() == size_of::<$word>());
        )*
    };
}

words! {
    u8, AtomicU8;
    u16, AtomicU16;
    u32, AtomicU32;
    u64, AtomicU64;
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
        let mut shared = shared;
        let (copy, other) = (shared.another(), shared.another());
        drop(shared);
        copy[2].store(5, Ordering::Relaxed);
        drop(copy);
        assert_eq!([other[1].read(), other[2].read()], [1, 5]);
    }

    #[test]
    fn zeros_take_memory_where_they_are_written() {
        // Miri takes minutes for a million words.
        let large = if cfg!(miri) { 1 << 10 } else { 1 << 20 };
        for (len, huge_pages) in [(0, true), (5, false), (5, true), (large, true)] {
            let zeros = Shared::<u64>::zeros(len, huge_pages).unwrap();
            assert!(zeros.len() == len && zeros.iter().all(|word| word.read() == 0));
            assert_eq!(zeros.memory().lookup_bytes, 8 * len);
        }
        for huge_pages in [false, true] {
            let zeros = Shared::<u64>::zeros(1 << 22, huge_pages).unwrap();
            assert_eq!(zeros.as_ptr().align_offset(super::super::ALIGN_BYTES), 0);
        }
        let large = Shared::<u64>::zeros(1 << 22, true).unwrap();
        large[17].store(3, Ordering::Relaxed);
        let memory = large.memory_of(18);
        assert!(memory.lookup_bytes == 144 && memory.held_bytes() < 1 << 22, "{memory:?}");
        assert!(Shared::<u64>::zeros(usize::MAX / 2, true).is_err());
    }
}
