//! The arrays that a budget accounts for: vectors and buffers.

use super::{Buffer, Memory};

/// An array whose memory a [`Budget`](super::Budget) accounts for: a `Vec` or a [`Buffer`]. There are no others.
pub trait Storage: Default + Grow {}

impl<T> Storage for Vec<T> {}
impl<T: Copy> Storage for Buffer<T> {}

/// Limits on the next allocation.
#[derive(Debug, Clone, Copy)]
pub struct Allowance {
    /// Most bytes, if there is a limit.
    pub(super) bytes: Option<usize>,
    /// Whether huge pages may be requested.
    pub(super) huge_pages: bool,
}

/// Why an allocation failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It would exceed the limit.
    Limit,
    /// The allocator had no memory.
    System,
}

impl Allowance {
    /// Returns an error if a block of `bytes` is not allowed.
    pub(super) fn grant(self, bytes: usize) -> Result<(), Refusal> {
        match self.bytes {
            Some(limit) if bytes > limit => Err(Refusal::Limit),
            _ => Ok(()),
        }
    }
}

mod sealed {
    use super::{Allowance, Memory, Refusal};

    /// The methods of [`Storage`](super::Storage), in a trait that seals it.
    pub trait Grow {
        /// The element type.
        type Item;

        /// Returns the number of elements.
        fn len(&self) -> usize;

        /// Returns the number of elements there is room for.
        fn capacity(&self) -> usize;

        /// Returns the memory that it occupies, without lookup bytes.
        fn held(&self) -> Memory;

        /// Makes room for `elements` in total. On an error it is unchanged.
        fn grow(&mut self, elements: usize, allowance: Allowance) -> Result<(), Refusal>;

        /// Appends an element, for which there must be room.
        fn push_within(&mut self, item: Self::Item);

        /// Frees spare capacity, if the allowance has room for the elements to move.
        fn shrink(&mut self, allowance: Allowance);
    }
}
pub(super) use sealed::Grow;

impl<T> Grow for Vec<T> {
    type Item = T;

    #[inline]
    fn len(&self) -> usize {
        self.len()
    }

    #[inline]
    fn capacity(&self) -> usize {
        self.capacity()
    }

    fn held(&self) -> Memory {
        Memory { allocated_bytes: self.capacity() * size_of::<T>(), ..Memory::default() }
    }

    fn grow(&mut self, elements: usize, allowance: Allowance) -> Result<(), Refusal> {
        allowance.grant(elements.saturating_mul(size_of::<T>()))?;
        self.try_reserve_exact(elements.saturating_sub(self.len())).map_err(|_| Refusal::System)
    }

    #[inline]
    fn push_within(&mut self, item: T) {
        self.push(item);
    }

    fn shrink(&mut self, allowance: Allowance) {
        if self.capacity() == self.len() {
            return;
        }
        let mut exact = Self::new();
        if exact.grow(self.len(), allowance).is_ok() {
            exact.append(self);
            *self = exact;
        }
    }
}
