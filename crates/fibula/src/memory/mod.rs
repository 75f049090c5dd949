//! How many bytes a structure takes, how many it may take, and vectors that obey. Knows nobody.
//!
//! Every structure allocates through a [`Budget`]: a full budget and an allocator that has nothing left give
//! the same error, never an abort, and leave the structure as it was. What lookups touch at random and may be large
//! lies in a [`Buffer`], for which the budget asks huge pages; all else in a `Vec`.

use core::fmt;
use core::ops::Add;

mod buffer;
mod storage;

pub use buffer::{ALIGN_BYTES, Buffer, HUGE_PAGE_BYTES};
pub use storage::Storage;
use storage::{Allowance, Refusal};

/// What a structure occupies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    /// All that a lookup can touch: direct levels, nodes, values, dictionaries. What caches must hold.
    pub lookup_bytes: usize,
    /// All that the structure has asked the allocator for, spare capacity included. The structure's own
    /// size, which may live on a stack, is not counted.
    pub allocated_bytes: usize,
    /// What was mapped from the system beside the allocator, rounded to its pages.
    pub mapped_bytes: usize,
    /// Those of the mapped bytes that the system was asked to back with huge pages. Whether it has done so is its own
    /// business and may change at any time.
    pub huge_bytes: usize,
}

impl Memory {
    /// What the structure holds, wherever it is from.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.allocated_bytes + self.mapped_bytes
    }
}

impl Add for Memory {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            lookup_bytes: self.lookup_bytes + other.lookup_bytes,
            allocated_bytes: self.allocated_bytes + other.allocated_bytes,
            mapped_bytes: self.mapped_bytes + other.mapped_bytes,
            huge_bytes: self.huge_bytes + other.huge_bytes,
        }
    }
}

/// What one array occupies, if lookups can touch all of it.
#[must_use]
pub fn of<S: Storage>(array: &S) -> Memory {
    Memory { lookup_bytes: array.len() * size_of::<S::Item>(), ..array.held() }
}

/// What a build may take. Name what differs: `Limits { memory_bytes: Some(n), ..Limits::default() }`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes that may be allocated or mapped at any moment, the scratch space of a build included; none means
    /// as many as there are.
    pub memory_bytes: Option<usize>,
    /// Whether large arrays may ask for huge pages, as they do unless told otherwise. Without, all memory comes from
    /// the allocator.
    pub huge_pages: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory_bytes: None, huge_pages: true }
    }
}

impl Limits {
    /// At most so many bytes.
    #[must_use]
    pub fn within(memory_bytes: usize) -> Self {
        Self { memory_bytes: Some(memory_bytes), ..Self::default() }
    }
}

/// Memory that could not be had, because of a limit or because there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfMemory {
    /// Bytes that were wanted in one piece.
    pub wanted_bytes: usize,
    /// Bytes in use under the same budget at that moment.
    pub used_bytes: usize,
    /// The limit; none when the allocator itself refused.
    pub limit_bytes: Option<usize>,
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { wanted_bytes, used_bytes, limit_bytes } = self;
        match limit_bytes {
            Some(limit) => {
                write!(
                    f,
                    "the memory limit is {limit} bytes: {used_bytes} are in use, {wanted_bytes} more are needed"
                )
            }
            None => {
                write!(f, "the system has no {wanted_bytes} bytes of memory left ({used_bytes} are in use)")
            }
        }
    }
}

impl core::error::Error for OutOfMemory {}

/// The allowance of one structure, or of one build with its scratch space.
#[derive(Debug, Default)]
pub struct Budget {
    limits: Limits,
    used_bytes: usize,
}

impl Budget {
    /// A budget with nothing spent.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, used_bytes: 0 }
    }

    /// Bytes in use.
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        self.used_bytes
    }

    /// Changes the limits for what is allocated from now on.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// A vector with room for exactly `capacity` elements.
    ///
    /// # Errors
    /// When the limit or the allocator refuses.
    pub fn vec<T>(&mut self, capacity: usize) -> Result<Vec<T>, OutOfMemory> {
        let mut vec = Vec::new();
        self.reserve_exact(&mut vec, capacity)?;
        Ok(vec)
    }

    /// A buffer with room for `capacity` elements.
    ///
    /// # Errors
    /// When the limit or the allocator refuses.
    pub fn buffer<T: Copy>(&mut self, capacity: usize) -> Result<Buffer<T>, OutOfMemory> {
        let mut buffer = Buffer::new();
        self.reserve_exact(&mut buffer, capacity)?;
        Ok(buffer)
    }

    /// Appends `value`, growing the array by half where it is full.
    ///
    /// # Errors
    /// When the limit or the allocator refuses; the array is as it was.
    #[inline]
    pub fn push<S: Storage>(&mut self, array: &mut S, value: S::Item) -> Result<(), OutOfMemory> {
        if array.len() == array.capacity() {
            self.reserve_exact(array, (array.len() / 2).max(16))?;
        }
        array.push_within(value);
        Ok(())
    }

    /// Makes room for `additional` more elements, growing by an eighth where it must grow and there is room for
    /// that.
    ///
    /// # Errors
    /// When the limit or the allocator refuses; the array is as it was.
    #[inline]
    pub fn reserve<S: Storage>(&mut self, array: &mut S, additional: usize) -> Result<(), OutOfMemory> {
        if array.capacity() - array.len() >= additional {
            return Ok(());
        }
        let generous = additional.max(array.len() / 8).max(16);
        self.reserve_exact(array, generous).or_else(|_| self.reserve_exact(array, additional))
    }

    /// Makes room for exactly `additional` elements behind those present.
    fn reserve_exact<S: Storage>(&mut self, array: &mut S, additional: usize) -> Result<(), OutOfMemory> {
        let elements = array.len().saturating_add(additional);
        let before = array.held().held_bytes();
        // Old and new block exist side by side while the elements move.
        array.grow(elements, self.allowance()).map_err(|refusal| OutOfMemory {
            wanted_bytes: elements.saturating_mul(size_of::<S::Item>()),
            used_bytes: self.used_bytes,
            limit_bytes: match refusal {
                Refusal::Limit => self.limits.memory_bytes,
                Refusal::System => None,
            },
        })?;
        self.used_bytes = self.used_bytes + array.held().held_bytes() - before;
        Ok(())
    }

    /// What the next block may be.
    fn allowance(&self) -> Allowance {
        Allowance {
            bytes: self.limits.memory_bytes.map(|limit| limit.saturating_sub(self.used_bytes)),
            huge_pages: self.limits.huge_pages,
        }
    }

    /// Gives spare capacity back, where there is room for the elements to move: `Vec::shrink_to_fit` aborts where
    /// an allocator refuses the smaller block.
    pub fn shrink<S: Storage>(&mut self, array: &mut S) {
        let before = array.held().held_bytes();
        array.shrink(self.allowance());
        self.used_bytes = self.used_bytes + array.held().held_bytes() - before;
    }

    /// Notes `bytes` that something other than an array is about to allocate.
    ///
    /// # Errors
    /// When the limit refuses.
    pub fn charge(&mut self, bytes: usize) -> Result<(), OutOfMemory> {
        let used_bytes = self.used_bytes.saturating_add(bytes);
        match self.limits.memory_bytes {
            Some(limit) if used_bytes > limit => Err(OutOfMemory {
                wanted_bytes: bytes,
                used_bytes: self.used_bytes,
                limit_bytes: Some(limit),
            }),
            _ => {
                self.used_bytes = used_bytes;
                Ok(())
            }
        }
    }

    /// Notes that `bytes` which were charged are free again.
    pub fn release(&mut self, bytes: usize) {
        self.used_bytes -= bytes;
    }

    /// The budget of a copy that holds this array alone, under the same limits.
    #[must_use]
    pub fn of_copy<S: Storage>(&self, array: &S) -> Self {
        Self { limits: self.limits, used_bytes: array.held().held_bytes() }
    }

    /// Frees the array.
    pub fn free<S: Storage>(&mut self, array: S) {
        self.used_bytes -= array.held().held_bytes();
    }
}

/// Bytes the array holds of the allocator.
#[must_use]
pub fn allocated<S: Storage>(array: &S) -> usize {
    array.held().allocated_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_count_what_vectors_hold_and_refuse_beyond_the_limit() {
        let mut budget = Budget::new(Limits::within(1010));
        let mut numbers = budget.vec::<u32>(100).unwrap();
        assert_eq!(budget.used_bytes(), 400);
        for number in 0..100 {
            budget.push(&mut numbers, number).unwrap();
        }
        // 150 numbers are 600 bytes, and the 400 exist until they have moved.
        budget.push(&mut numbers, 100).unwrap();
        assert_eq!(budget.used_bytes(), 600);
        let error = budget.vec::<u8>(411).unwrap_err();
        assert_eq!(error, OutOfMemory { wanted_bytes: 411, used_bytes: 600, limit_bytes: Some(1010) });
        budget.shrink(&mut numbers);
        assert_eq!(budget.used_bytes(), 404);
        assert!(budget.reserve(&mut numbers, 100).is_err());
        assert_eq!(numbers.len(), 101);
        budget.free(numbers);
        assert_eq!(budget.used_bytes(), 0);
        assert!(Budget::default().vec::<u64>(usize::MAX / 4).is_err());
    }
}
