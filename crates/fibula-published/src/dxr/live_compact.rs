//! The paper's format in words that a writer changes.

use core::sync::atomic::{AtomicU32, Ordering};

#[cfg(test)]
use fibula::unstable::memory::Shared;
use fibula::unstable::memory::{Budget, Buffer, Cell, Memory, OutOfMemory, Words};
use fibula::unstable::parts::units::Unit;
use fibula::unstable::simd::fetch_at;

use super::chunk;
use super::entries::{Chunk, Entries, LiveHalves, Sorted, base_and_code, code_mask, probe};
use super::format::{Changing, Encoded};
use super::geometry::{Geometry, Split};
use super::layout::{HALVES, LiveCompact, SHORT};
use super::sweep::Swept;

impl Entries for LiveCompact {
    type Direct = u32;
    type Halves<'a> = LiveHalves<'a>;
    const LIVE: bool = true;

    #[inline]
    fn direct(&self, index: usize) -> u32 {
        self.direct[index].read()
    }

    #[inline]
    fn in_place(&self, direct: u32) -> (bool, u32) {
        let here = self.split.is_in_place(direct);
        let code = if here { direct as usize } else { 0 };
        (here, self.next_hops[code].read())
    }

    #[inline]
    fn chunk(&self, direct: u32) -> Chunk {
        self.split.chunk(direct)
    }

    #[inline]
    fn probe(&self, direct: u32, low: u32, dropped: u8) -> u16 {
        probe(direct, low, dropped)
    }

    #[inline]
    fn halves(&self) -> LiveHalves<'_> {
        LiveHalves::of(&self.ranges)
    }

    #[inline]
    fn answer(&self, chunk: Chunk, found: usize) -> u32 {
        let half = self.halves().at(found + chunk.stride as usize);
        self.next_hops[usize::from(half & code_mask(chunk))].read()
    }
}

impl Changing for LiveCompact {
    type Cell = u32;
    const CODED: bool = true;

    fn another(&mut self) -> Self {
        let Self { direct, ranges, next_hops, split } = self;
        Self {
            direct: direct.another(),
            ranges: ranges.another(),
            next_hops: next_hops.another(),
            split: *split,
        }
    }

    fn copied(&self, budget: &mut Budget) -> Result<Buffer<u32>, OutOfMemory> {
        let mut copy = budget.buffer(self.direct.len())?;
        copy.extend(self.direct.iter().map(Cell::read));
        Ok(copy)
    }

    fn replace_direct(&mut self, direct: Buffer<u32>) {
        self.direct = direct.into();
    }

    fn fetch(&self, at: usize) {
        fetch_at(&self.direct, at);
    }

    fn store(&self, at: usize, direct: u32) {
        self.direct[at].store(direct, Ordering::Release);
    }

    fn place_words(&self) -> [usize; 2] {
        [1 << self.split.shift, 0]
    }

    fn direct_words(&self) -> Words<'_> {
        self.direct[..].into()
    }

    fn shape(&self) -> [(&'static str, u32); 3] {
        let Split { size_bits, position_bits, shift } = self.split;
        [("size-bits", size_bits.into()), ("position-bits", position_bits.into()), ("shift", shift.into())]
    }

    #[cfg(test)]
    fn mirrored(&self, [direct, chunks, next_hops]: [&[u64]; 3]) -> Self {
        let array = |words: &[u64]| Shared::filled(words.iter().chain(&[0]).map(|&word| word as u32));
        let [direct, ranges, next_hops] = [direct, chunks, next_hops].map(array);
        Self { direct, ranges, next_hops, split: self.split }
    }

    fn half_words(&self) -> &[AtomicU32] {
        &self.ranges
    }

    fn next_hops(&self) -> &[AtomicU32] {
        &self.next_hops
    }

    fn memory(&self, [ranges, next_hops]: [usize; 2]) -> Memory {
        self.direct.memory() + self.ranges.memory_of(ranges) + self.next_hops.memory_of(next_hops)
    }

    fn whole(&self, code: u32) -> Result<u32, &'static str> {
        if self.split.is_in_place(code) {
            Ok(code)
        } else {
            Err("more next hops than direct entries can name")
        }
    }

    fn encode(
        &self,
        code: u32,
        further: &[Swept],
        geometry: Geometry,
        to: &mut Encoded,
        budget: &mut Budget,
    ) -> Result<Result<u32, &'static str>, OutOfMemory> {
        let entries = further.len() as u64 + 1;
        if Split::size_field(entries, self.split.shift) >> self.split.size_bits != 0 {
            return Ok(Err("a chunk with more ranges than its size can say"));
        }
        let code_max = further.iter().fold(code, |most, range| most.max(range.code));
        if code_max >= geometry.long_codes {
            return Ok(Err("more next hops than ranges can name"));
        }
        to.halves.truncate(0);
        budget.reserve(&mut to.halves, Split::units(entries, false, self.split.shift) as usize * HALVES)?;
        Ok(Ok(chunk::append(&mut to.halves, code, further, geometry, self.split)))
    }

    fn at_place(&self, direct: u32, place: u32) -> u32 {
        direct - self.split.position(direct) + place
    }

    fn unit(&self, direct: u32) -> Unit {
        let (chunk, shift) = (self.chunk(direct), self.split.shift);
        let units = Split::units(chunk.entries as u64, chunk.stride == 0, shift) as u32;
        Unit { place: self.split.position(direct), size: units >> shift }
    }

    fn codes(&self, direct: u32, geometry: Geometry, mut each: impl FnMut(u32)) -> u32 {
        if self.split.is_in_place(direct) {
            each(direct);
            return 0;
        }
        let (chunk, mut bases) = (self.chunk(direct), 0);
        for at in 0..chunk.entries {
            let (base, code) = base_and_code(self.halves(), chunk, geometry.dropped, at);
            bases |= base;
            each(code);
        }
        let is_long = direct & SHORT == 0 && bases.trailing_zeros() >= geometry.dropped.into();
        if is_long { self.unit(direct).size } else { 0 }
    }
}
