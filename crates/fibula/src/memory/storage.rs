//! What a budget can make grow: vectors and buffers, under the same rules.

use super::{Buffer, Memory};

/// An array whose memory a [`Budget`](super::Budget) accounts for: a `Vec` or a [`Buffer`]. There are no others.
pub trait Storage: Default + Grow {}

impl<T> Storage for Vec<T> {}
impl<T: Copy> Storage for Buffer<T> {}

/// What a block may be.
#[derive(Debug, Clone, Copy)]
pub struct Allowance {
    /// Most bytes, where there is a limit.
    pub(super) bytes: Option<usize>,
    /// Whether it may ask for huge pages.
    pub(super) huge_pages: bool,
}

/// Who refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The limit.
    Limit,
    /// The allocator.
    System,
}

impl Allowance {
    /// Whether a block of so many bytes is allowed.
    pub(super) fn grant(self, bytes: usize) -> Result<(), Refusal> {
        match self.bytes {
            Some(limit) if bytes > limit => Err(Refusal::Limit),
            _ => Ok(()),
        }
    }
}

mod sealed {
    use super::{Allowance, Memory, Refusal};

    /// Seals [`Storage`](super::Storage), and is what it does.
    pub trait Grow {
        /// An element.
        type Item;

        /// Elements there are.
        fn len(&self) -> usize;

        /// Elements there is room for.
        fn capacity(&self) -> usize;

        /// What it takes; no lookup bytes.
        fn held(&self) -> Memory;

        /// Makes room for `elements` in all. Refused, it is as it was.
        fn grow(&mut self, elements: usize, allowance: Allowance) -> Result<(), Refusal>;

        /// Appends where there is room.
        fn push_within(&mut self, item: Self::Item);

        /// Gives back what it does not need, as far as the allowance lets elements move for that.
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
