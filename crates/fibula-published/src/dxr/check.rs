//! The consistency check.

use fibula::fib::CheckError;
use fibula::unstable::memory::Cell;
use fibula::unstable::parts::units::Unit;

use super::entries::{Chunk, Entries, Sorted, base_and_code};
use super::format::Changing;
use super::geometry::{Geometry, Split};
use super::layout::{Compact, HALVES, LiveCompact, LiveWide, SHORT, Wide};

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
            walk_chunk(self.halves(), chunk, end, self.split, self.next_hops.len(), geometry, index)?;
        }
        holds(end == self.ranges.len(), "(2) every range belongs to a chunk", end)?;
        for (code, &next_hop) in self.next_hops.iter().enumerate() {
            holds((code == 0) == (next_hop == 0), "(6) code 0 alone is no route", code)?;
        }
        holds(!self.next_hops.is_empty(), "(6) no route has a code", 0)
    }
}

/// Checks the entries of a chunk that ends before `end`, padding included. There are so many codes.
fn walk_chunk(
    halves: impl Sorted,
    chunk: Chunk,
    end: usize,
    split: Split,
    codes: usize,
    geometry: Geometry,
    index: usize,
) -> Result<(), CheckError> {
    let entry = |at: usize| base_and_code(halves, chunk, geometry.dropped, at);
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
    let sized = split.entries(Split::size_field(real as u64, split.shift) as u32);
    holds(real >= 2 && sized == chunk.entries, "(4) the size of a chunk is its number of ranges", index)?;
    holds(last.0 < 1 << geometry.rest, "(3) a range starts inside its chunk", index)?;
    // Short entries must be used where, and only where, they hold every entry.
    let mut shortens = true;
    for (base, code) in (0..real).map(entry) {
        holds((code as usize) < codes, "(6) the code of a range has a next hop", index)?;
        shortens &= base.trailing_zeros() >= geometry.dropped.into() && code < geometry.short_codes;
    }
    holds(shortens == (chunk.stride == 0), "(5) a chunk is short where it can be", index)
}

/// Checks the entries of a chunk in the wide format.
fn walk_wide(
    halves: impl Sorted,
    next_hop: impl Fn(usize) -> u32,
    chunk: Chunk,
    geometry: Geometry,
    index: usize,
) -> Result<(), CheckError> {
    let (first, end) = (chunk.first, chunk.first + chunk.entries);
    holds(halves.at(first) == 0, "(3) the first range of a chunk starts with it", index)?;
    for at in first + 1..end {
        holds(halves.at(at - 1) < halves.at(at), "(3) the ranges of a chunk ascend", index)?;
        holds(next_hop(at - 1) != next_hop(at), "(3) neighbours lead to different places", index)?;
    }
    holds(u32::from(halves.at(end - 1)) < 1 << geometry.rest, "(3) a range starts inside its chunk", index)
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
            walk_wide(self.halves(), |at| next_hops[at], self.chunk(direct), geometry, index)?;
        }
        holds(end == bases.len(), "(2) every range belongs to a chunk", end)
    }
}

/// What a walk through a live format has found.
pub(super) struct CheckedUnits {
    /// The places of all chunks.
    pub(super) units: Vec<Unit>,
    /// How often each code is used.
    pub(super) uses: Vec<u32>,
    /// Places of chunks that would be short with smaller codes.
    pub(super) long_for_codes: u32,
}

/// A live format that can be checked.
pub(super) trait Walked: Changing {
    /// Checks all chunks that direct entries lead to, if there are so many codes.
    fn walk(&self, geometry: Geometry, codes: usize) -> Result<CheckedUnits, CheckError> {
        let mut found = CheckedUnits { units: Vec::new(), uses: vec![0; codes], long_for_codes: 0 };
        for index in 0..1 << geometry.k {
            let direct = self.direct(index);
            if !self.in_place(direct).0 {
                let unit = self.unit(direct);
                let words = self.place_words().map(|words| (unit.place + unit.size) as usize * words);
                let fits = words[0] <= self.half_words().len() && words[1] <= self.next_hops().len();
                holds(fits, "(2) a chunk is in the range table", index)?;
                self.walk_chunk(direct, geometry, codes, index)?;
                found.units.push(unit);
            }
            let mut known = true;
            found.long_for_codes +=
                self.codes(direct, geometry, |code| match found.uses.get_mut(code as usize) {
                    Some(uses) => *uses += 1,
                    None => known = false,
                });
            holds(known, "(6) a code has a next hop", index)?;
        }
        Ok(found)
    }

    /// Checks the chunk of a direct entry.
    fn walk_chunk(
        &self,
        direct: Self::Direct,
        geometry: Geometry,
        codes: usize,
        index: usize,
    ) -> Result<(), CheckError>;
}

impl Walked for LiveCompact {
    fn walk_chunk(
        &self,
        direct: u32,
        geometry: Geometry,
        codes: usize,
        index: usize,
    ) -> Result<(), CheckError> {
        let (chunk, unit) = (self.chunk(direct), self.unit(direct));
        let end = ((unit.place + unit.size) as usize) << (self.split.shift + 1);
        walk_chunk(self.halves(), chunk, end, self.split, codes, geometry, index)
    }
}

impl Walked for LiveWide {
    fn walk_chunk(&self, direct: u64, geometry: Geometry, _: usize, index: usize) -> Result<(), CheckError> {
        walk_wide(self.halves(), |at| self.next_hops[at].read(), self.chunk(direct), geometry, index)
    }
}
