//! Arrays that grow while readers look: elements never move.

use std::sync::OnceLock;

use crate::memory::{self, Budget, Memory, OutOfMemory};

/// Elements of the first segment, as a power of two.
const FIRST: u32 = 6;

/// Segments that are enough for all numbers of 32 bits.
const SEGMENTS: usize = (33 - FIRST) as usize;

/// An array in segments, each twice as long as the one before, which are allocated when they are needed. A block of a power
/// of two of elements that begins at a multiple of its length, counted from [`SHIFT`], lies within one segment.
#[derive(Debug)]
pub(crate) struct Segments<A> {
    segments: [OnceLock<Vec<A>>; SEGMENTS],
}

/// The offset that is added to the number of an element to align blocks.
pub(crate) const SHIFT: u64 = 1 << FIRST;

impl<A> Segments<A> {
    pub(crate) fn new() -> Self {
        Self { segments: [const { OnceLock::new() }; SEGMENTS] }
    }

    /// Returns an element; `None` where there is no room for it yet.
    #[inline]
    pub(crate) fn get(&self, at: u32) -> Option<&A> {
        let shifted = u64::from(at) + SHIFT;
        let segment = shifted.ilog2();
        self.segments[(segment - FIRST) as usize].get()?.get((shifted - (1 << segment)) as usize)
    }

    /// Allocates the elements before `len`. Each is initialised by a call of `make`.
    ///
    /// # Errors
    /// When memory runs out. The segments that were made before stay.
    pub(crate) fn reserve(
        &self,
        len: u32,
        budget: &mut Budget,
        make: impl Fn() -> A,
    ) -> Result<(), OutOfMemory> {
        for (number, segment) in self.segments.iter().enumerate() {
            let first = (SHIFT << number) - SHIFT;
            if first >= u64::from(len) {
                break;
            }
            // Segments that exist stay: readers may have references into them.
            if segment.get().is_none() {
                let elements = (SHIFT << number) as usize;
                let mut made = budget.vec(elements)?;
                made.extend((0..elements).map(|_| make()));
                // The only writer.
                let _ = segment.set(made);
            }
        }
        Ok(())
    }

    /// Returns all elements there is room for, to change them.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut A> {
        self.segments.iter_mut().filter_map(OnceLock::get_mut).flatten()
    }

    /// Returns the memory of the elements. Lookups can read all of it.
    pub(crate) fn memory(&self) -> Memory {
        let made = self.segments.iter().filter_map(OnceLock::get);
        made.fold(Memory::default(), |sum, segment| sum + memory::of(segment))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Limits;

    #[test]
    fn elements_stay_where_they_are_while_the_array_grows() {
        let array = Segments::new();
        let mut budget = Budget::default();
        assert_eq!(array.get(0), None);
        array.reserve(1, &mut budget, || 7_u32).unwrap();
        let first: *const u32 = array.get(0).unwrap();
        assert!(array.get(63).is_some() && array.get(64).is_none());
        array.reserve(1000, &mut budget, || 8).unwrap();
        assert_eq!((array.get(63), array.get(64), array.get(999)), (Some(&7), Some(&8), Some(&8)));
        assert!(core::ptr::eq(first, array.get(0).unwrap()));
        assert_eq!(array.get(u32::MAX), None);
        assert_eq!(array.memory().allocated_bytes, budget.used_bytes());
    }

    #[test]
    fn a_segment_that_is_refused_changes_nothing() {
        let array = Segments::new();
        let mut budget = Budget::new(Limits::within(64 * 4 + 127 * 4));
        assert!(array.reserve(65, &mut budget, || 0_u32).is_err());
        assert!(array.get(63).is_some() && array.get(64).is_none());
        assert!(array.reserve(64, &mut budget, || 0).is_ok());
    }
}
