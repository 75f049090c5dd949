//! The consistency check.

use crate::fib::CheckError;

use super::geometry::{Geometry, Split};
use super::layout::{Compact, HALVES, SHORT, SHORT_CODE_BITS, Wide};
use super::scalar::{Chunk, Entries};

fn holds(holds: bool, invariant: &'static str, at: usize) -> Result<(), CheckError> {
    CheckError::unless(holds, invariant, at)
}

impl Compact {
    pub(super) fn walk(&self, geometry: Geometry) -> Result<(), CheckError> {
        holds(
            self.direct.len() == 1 << geometry.k,
            "(1) a direct entry for all leading bits",
            self.direct.len(),
        )?;
        // Where the last chunk so far ends.
        let mut end = 0;
        for (index, &direct) in self.direct.iter().enumerate() {
            if self.in_place(direct).0 {
                let known = (direct as usize) < self.next_hops.len();
                holds(known, "(6) the code of a direct entry has a next hop", index)?;
                continue;
            }
            let chunk = self.chunk(direct);
            holds(chunk.first == end, "(2) chunks are in order and without gaps", index)?;
            let short = direct & SHORT != 0;
            let units = Split::units(chunk.entries as u64, short, self.split.shift);
            end += units as usize * HALVES;
            holds(end <= self.ranges.len(), "(2) a chunk is in the range table", index)?;
            self.walk_chunk(chunk, end, geometry, index)?;
        }
        holds(end == self.ranges.len(), "(2) every range belongs to a chunk", end)?;
        for (code, &next_hop) in self.next_hops.iter().enumerate() {
            holds((code == 0) == (next_hop == 0), "(6) code 0 alone is no route", code)?;
        }
        holds(!self.next_hops.is_empty(), "(6) no route has a code", 0)
    }

    /// Checks the entries of a chunk that ends before `end`, padding included.
    fn walk_chunk(
        &self,
        chunk: Chunk,
        end: usize,
        geometry: Geometry,
        index: usize,
    ) -> Result<(), CheckError> {
        let short = chunk.stride == 0;
        let entry = |at: usize| -> (u32, u32) {
            let half = |half: usize| u32::from(self.ranges[half]);
            if short {
                let half = half(chunk.first + at);
                (half >> SHORT_CODE_BITS << geometry.dropped, half & 0xff)
            } else {
                let first = chunk.first + at * HALVES;
                (half(first), half(first + 1))
            }
        };
        // The real entries are those whose bases ascend; what follows is padding.
        let stored = (end - chunk.first) >> chunk.stride;
        holds(entry(0).0 == 0, "(3) the first range of a chunk starts with it", index)?;
        let mut real = 1;
        while real < stored && entry(real).0 > entry(real - 1).0 {
            holds(entry(real).1 != entry(real - 1).1, "(3) neighbours lead to different places", index)?;
            real += 1;
        }
        let last = entry(real - 1);
        holds((real..stored).all(|at| entry(at) == last), "(4) padding repeats the last entry", index)?;
        let sized = self.split.entries(Split::size_field(real as u64, self.split.shift) as u32);
        holds(real >= 2 && sized == chunk.entries, "(4) the size of a chunk is its number of ranges", index)?;
        holds(last.0 < 1 << geometry.rest, "(3) a range starts inside its chunk", index)?;
        // Short entries must be used where, and only where, they hold every entry.
        let mut shortens = true;
        for (base, code) in (0..real).map(entry) {
            holds((code as usize) < self.next_hops.len(), "(6) the code of a range has a next hop", index)?;
            shortens &= base.trailing_zeros() >= geometry.dropped.into() && code < geometry.short_codes;
        }
        holds(shortens == short, "(5) a chunk is short where it can be", index)
    }
}

impl Wide {
    pub(super) fn walk(&self, geometry: Geometry) -> Result<(), CheckError> {
        let Self { direct, bases, next_hops } = self;
        holds(direct.len() == 1 << geometry.k, "(1) a direct entry for all leading bits", direct.len())?;
        holds(bases.len() == next_hops.len(), "(2) one next hop a range", bases.len())?;
        let mut end = 0;
        for (index, &direct) in direct.iter().enumerate() {
            if self.in_place(direct).0 {
                continue;
            }
            let Chunk { first, entries, .. } = self.chunk(direct);
            holds(first == end, "(2) chunks are in order and without gaps", index)?;
            end += entries;
            holds(end <= bases.len(), "(2) a chunk is in the range table", index)?;
            holds(bases[first] == 0, "(3) the first range of a chunk starts with it", index)?;
            for at in first + 1..end {
                holds(bases[at - 1] < bases[at], "(3) the ranges of a chunk ascend", index)?;
                let differ = next_hops[at - 1] != next_hops[at];
                holds(differ, "(3) neighbours lead to different places", index)?;
            }
            let inside = u32::from(bases[end - 1]) < 1 << geometry.rest;
            holds(inside, "(3) a range starts inside its chunk", index)?;
        }
        holds(end == bases.len(), "(2) every range belongs to a chunk", end)
    }
}
