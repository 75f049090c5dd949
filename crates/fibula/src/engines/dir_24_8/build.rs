//! Builds the layout from routes, in one sweep.

use core::marker::PhantomData;

use crate::fib::BuildError;
use crate::fib::parts::next_hop_dictionary::NextHopDictionary;
use crate::memory::{Budget, Buffer, Limits, OutOfMemory};
use crate::net::{Ipv4Key, Key, NextHop, Prefix, Route, Routes};

use super::fill::{Filling, Sink};
use super::layout::{NEXT_HOPS_MAX, PAD, SEGMENT, SEGMENTS_MAX};
use super::{Dir248, NAME};

impl<K: Ipv4Key> Dir248<K> {
    /// Builds the tables.
    ///
    /// # Errors
    /// When memory runs out, and when the table needs more than 32,768 segments or 32,767 next hops.
    pub(crate) fn build(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, BuildError> {
        const { assert!(K::BITS <= 32, "a direct table on three quarters of the key") };
        let memory = |error| BuildError::memory(NAME, error);
        let mut budget = Budget::new(limits);
        let mut arrays =
            Arrays { first: budget.buffer(Self::ENTRIES + PAD).map_err(memory)?, segments: Buffer::new() };
        let dictionary = fill(routes, &mut arrays, &mut budget)?;
        let Arrays { mut first, mut segments } = arrays;
        // Gathers read 32 bits at each 16-bit element, so the last one needs bytes after it.
        first.extend([0; PAD]);
        budget.reserve(&mut segments, PAD).map_err(memory)?;
        segments.extend([0; PAD]);
        budget.shrink(&mut segments);
        let next_hops = dictionary.map(|dictionary| dictionary.into_next_hops(&mut budget));
        Ok(Self { first, segments, next_hops: next_hops.transpose().map_err(memory)?, keys: PhantomData })
    }
}

/// Tables under construction. They are filled from the first address on.
pub(super) trait Tables {
    /// Gives `count` entries from `first` on a code.
    fn whole(&mut self, first: usize, count: usize, code: u16);

    /// Makes a segment and gives it to an entry. Its number is the number of segments before it.
    fn divided(
        &mut self,
        at: usize,
        number: u16,
        codes: &[u16],
        budget: &mut Budget,
    ) -> Result<(), OutOfMemory>;
}

/// Fills tables from the routes. Returns the dictionary; `None` if codes are ids.
///
/// # Errors
/// As for [`Dir248::build`].
pub(super) fn fill<K: Key>(
    routes: &dyn Routes<K>,
    tables: &mut impl Tables,
    budget: &mut Budget,
) -> Result<Option<NextHopDictionary>, BuildError> {
    let memory = |error| BuildError::memory(NAME, error);
    let narrow = |route: Route<K>| if route.next_hop.id() <= Dir248::<K>::ID_MAX { Ok(()) } else { Err(()) };
    // Small ids are codes themselves, which saves lookups the load from the dictionary. One large id is enough to need it.
    let dictionary = match routes.try_for_each(Prefix::ALL, narrow) {
        Ok(()) => None,
        Err(()) => Some(NextHopDictionary::new(budget).map_err(memory)?),
    };
    let mut building = Building { tables, dictionary, budget, segments_needed: 0 };
    Filling::<K>::new().sweep(routes, Prefix::ALL, &mut building).map_err(memory)?;
    let (next_hops, segments) = (building.next_hops(), building.segments_needed);
    if next_hops > NEXT_HOPS_MAX {
        return Err(BuildError::limit(NAME, "next hops", NEXT_HOPS_MAX, next_hops));
    }
    if segments > SEGMENTS_MAX {
        return Err(BuildError::limit(NAME, "segments", SEGMENTS_MAX, segments));
    }
    Ok(building.dictionary)
}

/// A build. Beyond the limits it stores nothing more, but continues to count what the table needs.
struct Building<'a, T> {
    tables: &'a mut T,
    dictionary: Option<NextHopDictionary>,
    budget: &'a mut Budget,
    segments_needed: u64,
}

impl<T> Building<'_, T> {
    /// Returns the number of distinct next hops in the dictionary.
    fn next_hops(&self) -> u64 {
        // Code 0, no route, is not a next hop.
        self.dictionary.as_ref().map_or(0, |dictionary| dictionary.len() as u64 - 1)
    }

    /// Returns whether the table is within both limits so far.
    fn is_within_limits(&self) -> bool {
        self.segments_needed <= SEGMENTS_MAX && self.next_hops() <= NEXT_HOPS_MAX
    }
}

impl<T: Tables> Sink for Building<'_, T> {
    fn code(&mut self, next_hop: Option<NextHop>) -> Result<u16, OutOfMemory> {
        let code = match &mut self.dictionary {
            None => NextHop::word(next_hop),
            Some(dictionary) => dictionary.code(next_hop, self.budget)?,
        };
        // Beyond the limits this may cut the code, but then nothing is stored.
        Ok(code as u16)
    }

    fn whole(&mut self, first: usize, count: usize, code: u16) -> Result<(), OutOfMemory> {
        if self.is_within_limits() {
            self.tables.whole(first, count, code);
        }
        Ok(())
    }

    fn divided(&mut self, at: usize, codes: &[u16]) -> Result<(), OutOfMemory> {
        self.segments_needed += 1;
        if self.is_within_limits() {
            self.tables.divided(at, (self.segments_needed - 1) as u16, codes, self.budget)?;
        }
        Ok(())
    }
}

/// The arrays of a table that does not change.
struct Arrays {
    first: Buffer<u16>,
    segments: Buffer<u16>,
}

impl Tables for Arrays {
    fn whole(&mut self, _first: usize, count: usize, code: u16) {
        self.first.resize(self.first.len() + count, code);
    }

    fn divided(
        &mut self,
        _at: usize,
        number: u16,
        codes: &[u16],
        budget: &mut Budget,
    ) -> Result<(), OutOfMemory> {
        self.first.push(SEGMENT | number);
        budget.reserve(&mut self.segments, codes.len())?;
        self.segments.extend_from_slice(codes);
        Ok(())
    }
}
