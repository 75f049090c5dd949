//! Routes to layout, in one sweep that stores a chunk when its last entry is known.

use core::marker::PhantomData;

use fibula::fib::BuildError;
use fibula::net::{Ipv4Key, NextHop, Prefix, Route, Routes};
use fibula::unstable::memory::{Budget, Buffer, Limits, OutOfMemory};
use fibula::unstable::parts::next_hop_dictionary::NextHopDictionary;
use fibula::unstable::parts::ranges::{self, Merge};

use super::NAME;
use super::layout::{CHUNK, CHUNKS_MAX, LEVELS, NEXT_HOPS_MAX, PAD, SPAN_MAX, Sail};

/// What the chunks of a level below the first are called where there are too many.
const CHUNKS: [&str; LEVELS - 1] = ["chunks of level 24", "chunks of level 32"];

impl<K: Ipv4Key> Sail<K> {
    /// Builds the levels.
    ///
    /// # Errors
    /// When memory runs out, and when a level needs more than 32,768 chunks or the table more than 32,767 next hops.
    pub(crate) fn build(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, BuildError> {
        const { assert!(K::BITS <= 32, "a direct table on half of the key") };
        let memory = |error| BuildError::memory(NAME, error);
        let mut budget = Budget::new(limits);
        let first = budget.buffer((1 << Self::BITS[0]) + PAD).map_err(memory)?;
        let is_narrow = |route: Route<K>| if route.next_hop.id() <= Self::ID_MAX { Ok(()) } else { Err(()) };
        let dictionary = match routes.try_for_each(Prefix::ALL, is_narrow) {
            Ok(()) => None,
            Err(()) => Some(NextHopDictionary::new(&mut budget).map_err(memory)?),
        };
        let mut filling = Filling::<K> {
            levels: [first, Buffer::new(), Buffer::new()],
            open: [[0; SPAN_MAX]; LEVELS - 1],
            chunks: [0; LEVELS - 1],
            dictionary,
            budget,
            done: 0,
            code: 0,
            keys: PhantomData,
        };
        filling.sweep(routes).map_err(memory)?;
        filling.within_limits()?;
        filling.finish().map_err(memory)
    }
}

/// Levels under construction. Beyond the limits it goes on, to count what the table needs, but stores no more.
struct Filling<K> {
    levels: [Buffer<u16>; LEVELS],
    /// The open chunk of each level below the first.
    open: [[u16; SPAN_MAX]; LEVELS - 1],
    /// Chunks of these levels that are stored.
    chunks: [u64; LEVELS - 1],
    dictionary: Option<NextHopDictionary>,
    budget: Budget,
    /// Addresses below this one are filled.
    done: u64,
    /// The code of the addresses from `done` on.
    code: u16,
    keys: PhantomData<fn(K)>,
}

impl<K: Ipv4Key> Filling<K> {
    fn sweep(&mut self, routes: &dyn Routes<K>) -> Result<(), OutOfMemory> {
        // A range ends where the next one begins, and is filled in then.
        ranges::try_for_each(routes, Prefix::ALL, Merge::EqualNeighbours, |range| {
            self.fill(range.start.to_bits() as u64)?;
            self.code = self.code_of(range.next_hop)?;
            Ok(())
        })?;
        self.fill(1 << K::BITS)
    }

    fn code_of(&mut self, next_hop: Option<NextHop>) -> Result<u16, OutOfMemory> {
        Ok(match &mut self.dictionary {
            None => NextHop::word(next_hop),
            Some(dictionary) => dictionary.code(next_hop, &mut self.budget)?,
        } as u16)
    }

    /// Returns the number of distinct next hops in the dictionary.
    fn next_hops(&self) -> u64 {
        self.dictionary.as_ref().map_or(0, |dictionary| dictionary.len() as u64 - 1)
    }

    fn within_limits(&self) -> Result<(), BuildError> {
        if self.next_hops() > NEXT_HOPS_MAX {
            return Err(BuildError::limit(NAME, "next hops", NEXT_HOPS_MAX, self.next_hops()));
        }
        match (0..CHUNKS.len()).find(|&level| self.chunks[level] > CHUNKS_MAX) {
            Some(level) => Err(BuildError::limit(NAME, CHUNKS[level], CHUNKS_MAX, self.chunks[level])),
            None => Ok(()),
        }
    }

    /// Gives the addresses before `end` the current code.
    fn fill(&mut self, end: u64) -> Result<(), OutOfMemory> {
        while self.done < end {
            // The coarsest level with an entry that begins here and ends by `end`.
            let fits = |level: &usize| {
                let span = 1 << Sail::<K>::REST[*level];
                self.done.is_multiple_of(span) && end - self.done >= span
            };
            let level = (0..LEVELS).find(fits).unwrap_or(LEVELS - 1);
            let rest = Sail::<K>::REST[level];
            let count = (end - self.done) >> rest;
            if level == 0 {
                let first = &mut self.levels[0];
                first.resize(first.len() + count as usize, self.code);
                self.done += count << rest;
                continue;
            }
            let (at, in_chunk) = place::<K>(self.done, level);
            let count = (count as usize).min(in_chunk - at);
            self.open[level - 1][at..at + count].fill(self.code);
            self.done += (count as u64) << rest;
            if at + count == in_chunk {
                self.close(level)?;
            }
        }
        Ok(())
    }

    /// Stores the open chunk of a level, which is full, and then the one above it if that is full too.
    fn close(&mut self, level: usize) -> Result<(), OutOfMemory> {
        let mut level = level;
        loop {
            let (at, in_chunk) = place::<K>(self.done - 1, level - 1);
            let number = self.chunks[level - 1];
            self.chunks[level - 1] += 1;
            if number < CHUNKS_MAX && self.next_hops() <= NEXT_HOPS_MAX {
                let chunk = &self.open[level - 1][..1 << Sail::<K>::BITS[level]];
                self.budget.reserve(&mut self.levels[level], chunk.len())?;
                self.levels[level].extend(chunk.iter().copied());
            }
            let entry = CHUNK | number as u16;
            level -= 1;
            if level == 0 {
                self.levels[0].extend([entry]);
                return Ok(());
            }
            self.open[level - 1][at] = entry;
            if at + 1 < in_chunk {
                return Ok(());
            }
        }
    }

    fn finish(self) -> Result<Sail<K>, OutOfMemory> {
        let Self { mut levels, dictionary, mut budget, .. } = self;
        for level in &mut levels {
            budget.reserve(level, PAD)?;
            level.extend([0; PAD]);
            budget.shrink(level);
        }
        let next_hops = dictionary.map(|dictionary| dictionary.into_next_hops(&mut budget)).transpose()?;
        Ok(Sail { levels, next_hops, keys: PhantomData })
    }
}

/// Returns the place of an address among the entries of a chunk of a level, and how many these are.
fn place<K: Ipv4Key>(address: u64, level: usize) -> (usize, usize) {
    let in_chunk = 1 << Sail::<K>::BITS[level];
    ((address >> Sail::<K>::REST[level]) as usize & (in_chunk - 1), in_chunk)
}
