//! Memory limits, memory use, and arrays that respect the limits.
//!
//! Every structure allocates through a [`Budget`]. If the limit is reached or the allocator has no memory, the caller
//! gets an error and the structure is unchanged; nothing aborts. Large arrays that lookups access at random are
//! [`Buffer`]s, for which huge pages are requested; all others are `Vec`s.

use core::fmt;
use core::ops::Add;

mod buffer;
mod mapped;
pub(crate) mod shared;
mod storage;
mod words;

#[doc(hidden)]
pub use buffer::{ALIGN_BYTES, Buffer, HUGE_PAGE_BYTES};
pub(crate) use mapped::Mapping;
pub(crate) use shared::{Cell, Shared, Word};
#[doc(hidden)]
pub use storage::Storage;
use storage::{Allowance, Refusal};
#[doc(hidden)]
pub use words::Words;

/// The memory that a structure occupies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    /// Bytes that a lookup can access, and that caches should hold: direct tables, nodes, values, dictionaries.
    pub lookup_bytes: usize,
    /// Bytes requested from the allocator, including spare capacity but not the structure's own size, which may be
    /// on a stack.
    pub allocated_bytes: usize,
    /// Bytes mapped from the system without the allocator, rounded to pages.
    pub mapped_bytes: usize,
    /// Mapped bytes for which huge pages were requested. Whether the system provides them may change at any time.
    pub huge_bytes: usize,
}

impl Memory {
    /// Returns all bytes that the structure holds, allocated or mapped.
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

/// Returns the memory that an array occupies, all of which lookups can access.
#[doc(hidden)]
#[must_use]
pub fn of<S: Storage>(array: &S) -> Memory {
    Memory { lookup_bytes: array.len() * size_of::<S::Item>(), ..array.held() }
}

/// Limits on the memory of a build. Name only what differs: `Limits { memory_bytes: Some(n), ..Limits::default() }`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes that may be allocated or mapped at any moment, including the scratch space of a build; `None` means
    /// no limit.
    pub memory_bytes: Option<usize>,
    /// Whether huge pages are requested for large arrays (the default). If not, all memory comes from the allocator.
    pub huge_pages: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory_bytes: None, huge_pages: true }
    }
}

impl Limits {
    /// Returns limits of at most `memory_bytes`.
    #[must_use]
    pub fn within(memory_bytes: usize) -> Self {
        Self { memory_bytes: Some(memory_bytes), ..Self::default() }
    }
}

/// The error for running out of memory: a limit is reached, or the system has no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfMemory {
    /// Bytes that were needed in one block.
    pub wanted_bytes: usize,
    /// Bytes in use under the same budget at that moment.
    pub used_bytes: usize,
    /// The limit; `None` if the allocator failed.
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
                write!(f, "out of memory: {wanted_bytes} bytes are needed, {used_bytes} are in use")
            }
        }
    }
}

impl core::error::Error for OutOfMemory {}

#[doc(hidden)]
/// Accounts for the memory of a structure, or of a build with its scratch space.
#[derive(Debug, Default)]
pub struct Budget {
    limits: Limits,
    used_bytes: usize,
}

impl Budget {
    /// Returns an unused budget.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, used_bytes: 0 }
    }

    /// Returns the number of bytes in use.
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        self.used_bytes
    }

    /// Returns the limits.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Changes the limits, which apply to later allocations only.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Returns a vector with room for exactly `capacity` elements.
    ///
    /// # Errors
    /// When the limit is reached or the allocator fails.
    pub fn vec<T>(&mut self, capacity: usize) -> Result<Vec<T>, OutOfMemory> {
        let mut vec = Vec::new();
        self.reserve_exact(&mut vec, capacity)?;
        Ok(vec)
    }

    /// Returns a buffer with room for `capacity` elements.
    ///
    /// # Errors
    /// When the limit is reached or the allocator fails.
    pub fn buffer<T: Copy>(&mut self, capacity: usize) -> Result<Buffer<T>, OutOfMemory> {
        let mut buffer = Buffer::new();
        self.reserve_exact(&mut buffer, capacity)?;
        Ok(buffer)
    }

    /// Appends `value`, growing the array by half if it is full.
    ///
    /// # Errors
    /// When the limit is reached or the allocator fails; the array is unchanged.
    #[inline]
    pub fn push<S: Storage>(&mut self, array: &mut S, value: S::Item) -> Result<(), OutOfMemory> {
        if array.len() == array.capacity() {
            self.reserve_exact(array, (array.len() / 2).max(16))?;
        }
        array.push_within(value);
        Ok(())
    }

    /// Makes room for `additional` more elements. An array that must grow grows by at least an eighth if the limit allows
    /// it.
    ///
    /// # Errors
    /// When the limit is reached or the allocator fails; the array is unchanged.
    #[inline]
    pub fn reserve<S: Storage>(&mut self, array: &mut S, additional: usize) -> Result<(), OutOfMemory> {
        if array.capacity() - array.len() >= additional {
            return Ok(());
        }
        let mut elements = additional.max(array.len() / 8).max(16);
        loop {
            match self.reserve_exact(array, elements) {
                // Near the limit, grow by less and less, so that elements move a few times and not at every call.
                Err(_) if elements > additional => elements = (elements / 2).max(additional),
                result => return result,
            }
        }
    }

    /// Like [`reserve`](Self::reserve), but always grows by at least an eighth, and by at least 4 elements instead of 16.
    ///
    /// # Errors
    /// When the limit is reached or the allocator fails; the array is unchanged.
    #[doc(hidden)]
    pub fn reserve_an_eighth<S: Storage>(
        &mut self,
        array: &mut S,
        additional: usize,
    ) -> Result<(), OutOfMemory> {
        if array.capacity() - array.len() >= additional {
            return Ok(());
        }
        // Small tables are many (one a VRF, one an access list) and small because they have no spare room.
        self.reserve_exact(array, additional.max(array.len() / 8).max(4))
    }

    /// Makes room for exactly `additional` more elements.
    fn reserve_exact<S: Storage>(&mut self, array: &mut S, additional: usize) -> Result<(), OutOfMemory> {
        let elements = array.len().saturating_add(additional);
        let before = array.held().held_bytes();
        // Old and new block exist side by side while the elements move.
        match array.grow(elements, self.allowance()) {
            Ok(()) => {
                self.used_bytes = self.used_bytes + array.held().held_bytes() - before;
                Ok(())
            }
            Err(refusal) => Err(self.refused(refusal, elements.saturating_mul(size_of::<S::Item>()))),
        }
    }

    #[cold]
    fn refused(&self, refusal: Refusal, wanted_bytes: usize) -> OutOfMemory {
        let limit_bytes = match refusal {
            Refusal::Limit => self.limits.memory_bytes,
            Refusal::System => None,
        };
        OutOfMemory { wanted_bytes, used_bytes: self.used_bytes, limit_bytes }
    }

    /// Returns the limits on the next allocation.
    fn allowance(&self) -> Allowance {
        Allowance {
            bytes: self.limits.memory_bytes.map(|limit| limit.saturating_sub(self.used_bytes)),
            huge_pages: self.limits.huge_pages,
        }
    }

    /// Frees spare capacity if there is room for the elements to move. Does not use `Vec::shrink_to_fit`, which aborts
    /// if the allocator has no memory for the smaller block.
    pub fn shrink<S: Storage>(&mut self, array: &mut S) {
        let before = array.held().held_bytes();
        array.shrink(self.allowance());
        self.used_bytes = self.used_bytes + array.held().held_bytes() - before;
    }

    /// Records that something other than an array is about to allocate `bytes`.
    ///
    /// # Errors
    /// When the limit would be exceeded.
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

    /// Records that `bytes` which were charged are free again.
    pub fn release(&mut self, bytes: usize) {
        self.used_bytes -= bytes;
    }

    /// Returns the budget of a copy that has only this array, with the same limits.
    #[must_use]
    pub fn of_copy<S: Storage>(&self, array: &S) -> Self {
        Self { limits: self.limits, used_bytes: array.held().held_bytes() }
    }

    /// Counts `bytes` of another array of a copy, whatever the limit.
    pub(crate) fn add(&mut self, bytes: usize) {
        self.used_bytes += bytes;
    }

    /// Frees the array.
    pub fn free<S: Storage>(&mut self, array: S) {
        self.used_bytes -= array.held().held_bytes();
    }
}

/// Returns the bytes of the array that came from the allocator.
#[doc(hidden)]
#[must_use]
pub fn allocated<S: Storage>(array: &S) -> usize {
    array.held().allocated_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_adds_up_field_by_field() {
        let memory = |bytes| Memory {
            lookup_bytes: bytes,
            allocated_bytes: 2 * bytes,
            mapped_bytes: 4 * bytes,
            huge_bytes: 8 * bytes,
        };
        assert_eq!(memory(1) + memory(16), memory(17));
        assert_eq!(memory(1).held_bytes(), 6);
    }

    #[test]
    fn arrays_that_fill_their_limit_move_a_few_times() {
        let mut budget = Budget::new(Limits::within(1 << 20));
        let mut numbers: Vec<u64> = Vec::new();
        let mut moves = 0;
        let mut capacity = 0;
        while budget.reserve(&mut numbers, 1).is_ok() {
            moves += u32::from(numbers.capacity() != capacity);
            capacity = numbers.capacity();
            numbers.push(0);
        }
        // Half of the limit: the old block exists until the numbers have moved.
        assert!(numbers.len() > (1 << 20) / 8 / 2 - 64, "{}", numbers.len());
        assert!(moves < 120, "{moves}");
    }

    #[test]
    fn an_eighth_of_an_array_is_reserved_at_a_time() {
        let mut budget = Budget::default();
        let mut numbers = budget.vec::<u8>(800).unwrap();
        numbers.resize(800, 0);
        for (additional, room) in [(1, 100), (100, 100), (101, 101)] {
            budget.reserve_an_eighth(&mut numbers, additional).unwrap();
            assert_eq!(numbers.capacity() - numbers.len(), room);
        }
    }

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

    #[test]
    fn charges_are_counted_up_to_the_limit_and_copies_count_beyond_it() {
        let mut budget = Budget::new(Limits::within(1000));
        let numbers = budget.vec::<u32>(100).unwrap();
        budget.charge(600).unwrap();
        let error = budget.charge(1).unwrap_err();
        assert_eq!(error, OutOfMemory { wanted_bytes: 1, used_bytes: 1000, limit_bytes: Some(1000) });
        budget.release(500);
        assert_eq!(budget.used_bytes(), 500);
        let mut copy = budget.of_copy(&numbers);
        assert_eq!(copy.used_bytes(), 400);
        copy.add(601);
        assert_eq!(copy.used_bytes(), 1001);
        assert!(copy.charge(1).is_err());
    }
}
