//! The wide format in words that a writer changes.

use core::sync::atomic::{AtomicU32, Ordering};

use fibula::unstable::memory::{Budget, Buffer, Cell, Memory, OutOfMemory, Shared, Words};
use fibula::unstable::parts::units::Unit;
use fibula::unstable::simd::fetch_at;

use super::chunk::base;
use super::entries::{Chunk, Entries, LiveHalves, wide_chunk};
use super::format::{Changing, Encoded, PAIR};
use super::geometry::Geometry;
use super::layout::{HALVES, LiveWide};
use super::sweep::Swept;

impl Entries for LiveWide {
    type Direct = u64;
    type Halves<'a> = LiveHalves<'a>;
    const LIVE: bool = true;

    #[inline]
    fn direct(&self, index: usize) -> u64 {
        self.direct[index].read()
    }

    #[inline]
    fn in_place(&self, direct: u64) -> (bool, u32) {
        (direct >> 32 == 0, direct as u32)
    }

    #[inline]
    fn chunk(&self, direct: u64) -> Chunk {
        wide_chunk(direct as u32, (direct >> 32) as u32)
    }

    #[inline]
    fn probe(&self, _: u64, low: u32, _: u8) -> u16 {
        low as u16
    }

    #[inline]
    fn halves(&self) -> LiveHalves<'_> {
        LiveHalves::of(&self.bases)
    }

    #[inline]
    fn answer(&self, _: Chunk, found: usize) -> u32 {
        self.next_hops[found].read()
    }
}

impl Changing for LiveWide {
    type Cell = u64;
    const CODED: bool = false;

    fn another(&mut self) -> Self {
        let Self { direct, bases, next_hops } = self;
        Self { direct: direct.another(), bases: bases.another(), next_hops: next_hops.another() }
    }

    fn copied(&self, budget: &mut Budget) -> Result<Buffer<u64>, OutOfMemory> {
        let mut copy = budget.buffer(self.direct.len())?;
        copy.extend(self.direct.iter().map(Cell::read));
        Ok(copy)
    }

    fn replace_direct(&mut self, direct: Buffer<u64>) {
        self.direct = Shared::from(direct);
    }

    fn fetch(&self, at: usize) {
        fetch_at(&self.direct, at);
    }

    fn store(&self, at: usize, direct: u64) {
        self.direct[at].store(direct, Ordering::Release);
    }

    fn place_words(&self) -> [usize; 2] {
        [PAIR / HALVES, PAIR]
    }

    fn direct_words(&self) -> Words<'_> {
        self.direct[..].into()
    }

    fn shape(&self) -> [(&'static str, u32); 3] {
        [("size-bits", 32), ("position-bits", 32), ("shift", 0)]
    }

    #[cfg(test)]
    fn mirrored(&self, [direct, chunks, next_hops]: [&[u64]; 3]) -> Self {
        let array = |words: &[u64]| Shared::filled(words.iter().chain(&[0]).map(|&word| word as u32));
        let [bases, next_hops] = [chunks, next_hops].map(array);
        Self { direct: Shared::filled(direct.iter().copied()), bases, next_hops }
    }

    fn half_words(&self) -> &[AtomicU32] {
        &self.bases
    }

    fn next_hops(&self) -> &[AtomicU32] {
        &self.next_hops
    }

    fn memory(&self, [bases, next_hops]: [usize; 2]) -> Memory {
        self.direct.memory() + self.bases.memory_of(bases) + self.next_hops.memory_of(next_hops)
    }

    fn whole(&self, code: u32) -> Result<u64, &'static str> {
        Ok(code.into())
    }

    fn encode(
        &self,
        code: u32,
        further: &[Swept],
        geometry: Geometry,
        to: &mut Encoded,
        budget: &mut Budget,
    ) -> Result<Result<u64, &'static str>, OutOfMemory> {
        let first = core::iter::once((0, code));
        let further_ranges = further.iter().map(|range| (base(range, geometry) as u16, range.code));
        to.set(further.len() + 1, first.chain(further_ranges), budget)?;
        Ok(Ok((further.len() as u64) << 32))
    }

    fn at_place(&self, direct: u64, place: u32) -> u64 {
        direct >> 32 << 32 | (u64::from(place) * PAIR as u64)
    }

    fn unit(&self, direct: u64) -> Unit {
        let chunk = self.chunk(direct);
        Unit { place: (chunk.first / PAIR) as u32, size: chunk.entries.div_ceil(PAIR) as u32 }
    }

    fn codes(&self, _: u64, _: Geometry, _: impl FnMut(u32)) -> u32 {
        0
    }
}
