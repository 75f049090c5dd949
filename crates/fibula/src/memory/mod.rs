//! How many bytes a structure takes, how many it may take, and vectors that obey. Knows nobody.
//!
//! Every structure allocates through a [`Budget`]: a full budget and an allocator that has nothing left give
//! the same error, never an abort, and leave the structure as it was.

use core::fmt;

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
}

/// What a build may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Most bytes that may be allocated at any moment, the scratch space of a build included; none means
    /// as many as there are.
    pub memory_bytes: Option<usize>,
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
    limit_bytes: Option<usize>,
    used_bytes: usize,
}

impl Budget {
    /// A budget with nothing spent.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limit_bytes: limits.memory_bytes, used_bytes: 0 }
    }

    /// Bytes in use.
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        self.used_bytes
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

    /// Appends `value`, growing the vector by half where it is full.
    ///
    /// # Errors
    /// When the limit or the allocator refuses; the vector is as it was.
    #[inline]
    pub fn push<T>(&mut self, vec: &mut Vec<T>, value: T) -> Result<(), OutOfMemory> {
        if vec.len() == vec.capacity() {
            self.reserve_exact(vec, (vec.len() / 2).max(16))?;
        }
        vec.push(value);
        Ok(())
    }

    /// Makes room for `additional` more elements, growing by an eighth where it must grow and there is room for
    /// that.
    ///
    /// # Errors
    /// When the limit or the allocator refuses; the vector is as it was.
    #[inline]
    pub fn reserve<T>(&mut self, vec: &mut Vec<T>, additional: usize) -> Result<(), OutOfMemory> {
        if vec.capacity() - vec.len() >= additional {
            return Ok(());
        }
        let generous = additional.max(vec.len() / 8).max(16);
        self.reserve_exact(vec, generous).or_else(|_| self.reserve_exact(vec, additional))
    }

    /// Makes room for exactly `additional` elements behind those present.
    fn reserve_exact<T>(&mut self, vec: &mut Vec<T>, additional: usize) -> Result<(), OutOfMemory> {
        let bytes = |elements: usize| elements.checked_mul(size_of::<T>());
        let wanted = vec.len().checked_add(additional).and_then(bytes).unwrap_or(usize::MAX);
        // Old and new block exist side by side while the elements move.
        let refused =
            |limit_bytes| OutOfMemory { wanted_bytes: wanted, used_bytes: self.used_bytes, limit_bytes };
        if let Some(limit) = self.limit_bytes
            && self.used_bytes.saturating_add(wanted) > limit
        {
            return Err(refused(Some(limit)));
        }
        let before = allocated(vec);
        vec.try_reserve_exact(additional).map_err(|_| refused(None))?;
        self.used_bytes = self.used_bytes + allocated(vec) - before;
        Ok(())
    }

    /// Gives spare capacity back, where there is room for the elements to move: `Vec::shrink_to_fit` aborts where
    /// an allocator refuses the smaller block.
    pub fn shrink<T>(&mut self, vec: &mut Vec<T>) {
        if vec.capacity() == vec.len() {
            return;
        }
        if let Ok(mut exact) = self.vec(vec.len()) {
            exact.append(vec);
            self.free(core::mem::replace(vec, exact));
        }
    }

    /// Notes `bytes` that something other than a vector is about to allocate.
    ///
    /// # Errors
    /// When the limit refuses.
    pub fn charge(&mut self, bytes: usize) -> Result<(), OutOfMemory> {
        let used_bytes = self.used_bytes.saturating_add(bytes);
        match self.limit_bytes {
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

    /// The budget of a copy that holds this vector alone, under the same limit.
    #[must_use]
    pub fn of_copy<T>(&self, vec: &Vec<T>) -> Self {
        Self { limit_bytes: self.limit_bytes, used_bytes: allocated(vec) }
    }

    /// Frees the vector.
    pub fn free<T>(&mut self, vec: Vec<T>) {
        self.used_bytes -= allocated(&vec);
    }
}

/// Bytes the vector holds of the allocator.
#[must_use]
pub fn allocated<T>(vec: &Vec<T>) -> usize {
    vec.capacity() * size_of::<T>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_count_what_vectors_hold_and_refuse_beyond_the_limit() {
        let mut budget = Budget::new(Limits { memory_bytes: Some(1010) });
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
