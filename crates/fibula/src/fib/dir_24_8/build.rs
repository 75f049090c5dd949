//! Routes to layout, in one sweep that appends to both tables.

use core::marker::PhantomData;
use core::ops::ControlFlow;

use crate::fib::BuildError;
use crate::fib::parts::next_hop_dictionary::NextHopDictionary;
use crate::fib::parts::ranges::{self, Merge, Range};
use crate::memory::{Budget, Buffer, Limits, OutOfMemory};
use crate::net::{Ipv4Key, Key, NextHop, Prefix, Route, Routes};

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
        let narrow = |route: Route<K>| if route.next_hop.id() <= Self::ID_MAX { Ok(()) } else { Err(()) };
        let in_place = routes.try_for_each(Prefix::ALL, narrow).is_ok();
        let mut filling = Filling::<K>::new(limits, in_place).map_err(memory)?;
        let mut refused = None;
        let _ =
            ranges::visit(routes, Prefix::ALL, Merge::EqualNeighbours, |range| match filling.begin(range) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    refused = Some(error);
                    ControlFlow::Break(())
                }
            });
        refused.map_or(Ok(()), Err).and_then(|()| filling.fill(1 << K::BITS)).map_err(memory)?;
        filling.finish()
    }
}

/// The tables under construction, which are filled from the first address on.
struct Filling<K> {
    first: Buffer<u16>,
    segments: Buffer<u16>,
    /// The dictionary; `None` where codes are ids.
    dictionary: Option<NextHopDictionary>,
    budget: Budget,
    /// Addresses below this one are filled.
    done: u64,
    /// Code of the addresses from `done` on.
    code: u32,
    segments_needed: u64,
    keys: PhantomData<fn(K)>,
}

impl<K: Key> Filling<K> {
    fn new(limits: Limits, in_place: bool) -> Result<Self, OutOfMemory> {
        let mut budget = Budget::new(limits);
        Ok(Self {
            first: budget.buffer(Dir248::<K>::ENTRIES + PAD)?,
            segments: Buffer::new(),
            dictionary: if in_place { None } else { Some(NextHopDictionary::new(&mut budget)?) },
            budget,
            done: 0,
            code: 0,
            segments_needed: 0,
            keys: PhantomData,
        })
    }

    /// Fills up to the start of the range and makes its code the current one.
    fn begin(&mut self, range: Range<K>) -> Result<(), OutOfMemory> {
        self.fill(range.start.to_bits() as u64)?;
        self.code = match &mut self.dictionary {
            None => NextHop::word(range.next_hop),
            Some(dictionary) => dictionary.code(range.next_hop, &mut self.budget)?,
        };
        Ok(())
    }

    /// Returns the number of distinct next hops in the dictionary.
    fn next_hops(&self) -> u64 {
        self.dictionary.as_ref().map_or(0, |dictionary| dictionary.len() as u64 - 1)
    }

    /// Returns whether the table is within both limits so far. Beyond them, the build only counts what the table needs.
    fn within_limits(&self) -> bool {
        self.segments_needed <= SEGMENTS_MAX && self.next_hops() <= NEXT_HOPS_MAX
    }

    /// Gives the addresses below `end` the current code.
    fn fill(&mut self, end: u64) -> Result<(), OutOfMemory> {
        let span = 1 << Dir248::<K>::REST;
        let mut at = core::mem::replace(&mut self.done, end);
        let code = self.code as u16;
        // The rest of a segment that an earlier range began, then whole entries, then the start of a new segment.
        let open = at.next_multiple_of(span).min(end) - at;
        if open > 0 && self.within_limits() {
            self.segments.resize(self.segments.len() + open as usize, code);
        }
        at += open;
        if self.within_limits() {
            self.first.resize(self.first.len() + ((end - at) / span) as usize, code);
        }
        let begun = (end - at) % span;
        if begun == 0 {
            return Ok(());
        }
        self.segments_needed += 1;
        if self.within_limits() {
            self.first.push(SEGMENT | (self.segments_needed - 1) as u16);
            self.budget.reserve(&mut self.segments, span as usize)?;
            self.segments.resize(self.segments.len() + begun as usize, code);
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Dir248<K>, BuildError> {
        let next_hops = self.next_hops();
        if next_hops > NEXT_HOPS_MAX {
            return Err(BuildError::limit(NAME, "next hops", NEXT_HOPS_MAX, next_hops));
        }
        if self.segments_needed > SEGMENTS_MAX {
            return Err(BuildError::limit(NAME, "segments", SEGMENTS_MAX, self.segments_needed));
        }
        let memory = |error| BuildError::memory(NAME, error);
        self.first.extend([0; PAD]);
        self.budget.reserve(&mut self.segments, PAD).map_err(memory)?;
        self.segments.extend([0; PAD]);
        self.budget.shrink(&mut self.segments);
        let next_hops = self.dictionary.map(|dictionary| dictionary.into_next_hops(&mut self.budget));
        Ok(Dir248 {
            first: self.first,
            segments: self.segments,
            next_hops: next_hops.transpose().map_err(memory)?,
            keys: PhantomData,
        })
    }
}
