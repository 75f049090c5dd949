//! Ranges as intervals of the upper bits of addresses, with blocks for changes inside one value of the upper bits.
//!
//! For structures that search some leading bits of long keys. An upper part inside which a longer prefix begins or ends
//! is an interval of its own and leads to a *block*: its ranges by lower part, sorted, for a binary search.

use crate::memory::{self, Budget, Memory, OutOfMemory};
use crate::net::{Key, NextHop, Prefix, Routes};

use super::ranges::{self, Merge, Range};

#[cfg(test)]
mod tests;

/// A lower part: an integer wide enough for the bits after the upper part.
pub trait Lower: Copy + Ord {
    /// Returns the low bits of `bits`.
    fn truncate(bits: u128) -> Self;
}

impl Lower for u64 {
    #[inline]
    fn truncate(bits: u128) -> Self {
        bits as Self
    }
}

impl Lower for u128 {
    #[inline]
    fn truncate(bits: u128) -> Self {
        bits
    }
}

/// Where an interval leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leads {
    /// To one next hop for all addresses.
    To(Option<NextHop>),
    /// To this block; the interval is one upper part.
    Block(u32),
}

/// Blocks, each a run of pieces.
#[derive(Debug, Clone)]
pub struct Blocks<E> {
    /// First piece of each block.
    pub first: Vec<u32>,
    /// Last lower part of each piece; a block's last piece ends with the last lower part there is.
    pub ends: Vec<E>,
    /// Next hop of each piece, 0 for no route.
    pub next_hops: Vec<u32>,
}

impl<E> Default for Blocks<E> {
    fn default() -> Self {
        Self { first: Vec::new(), ends: Vec::new(), next_hops: Vec::new() }
    }
}

impl<E> Blocks<E> {
    /// Forgets them.
    pub fn clear(&mut self) {
        self.first.clear();
        self.ends.clear();
        self.next_hops.clear();
    }
}

impl<E: Lower> Blocks<E> {
    /// Returns the indices of the pieces of block `at`.
    #[inline]
    #[must_use]
    pub fn pieces(&self, at: usize) -> core::ops::Range<usize> {
        let end = self.first.get(at + 1).map_or(self.ends.len(), |&first| first as usize);
        self.first[at] as usize..end
    }

    /// Returns the next hop of a lower part in block `at`, 0 for no route.
    #[inline]
    #[must_use]
    pub fn find(&self, at: usize, lower: E) -> u32 {
        let pieces = self.pieces(at);
        let ends = &self.ends[pieces.clone()];
        self.next_hops[pieces.start + ends.partition_point(|&end| end < lower)]
    }

    /// Frees all blocks.
    pub fn free(&mut self, budget: &mut Budget) {
        let Self { first, ends, next_hops } = core::mem::take(self);
        budget.free(first);
        budget.free(ends);
        budget.free(next_hops);
    }

    /// Releases spare capacity.
    pub fn shrink(&mut self, budget: &mut Budget) {
        budget.shrink(&mut self.first);
        budget.shrink(&mut self.ends);
        budget.shrink(&mut self.next_hops);
    }

    /// Returns the memory of the blocks.
    #[must_use]
    pub fn memory(&self) -> Memory {
        memory::of(&self.first) + memory::of(&self.ends) + memory::of(&self.next_hops)
    }
}

/// Returns the first `bits` bits of a key, at most 64.
#[inline]
#[must_use]
pub fn upper<K: Key>(key: K, bits: u8) -> u64 {
    (key.to_bits() >> (K::BITS - bits)) as u64
}

/// Returns the bits after the first `bits`.
#[inline]
#[must_use]
pub fn lower<K: Key, E: Lower>(key: K, bits: u8) -> E {
    E::truncate(key.to_bits() & lower_bits::<K>(bits))
}

/// Returns the last lower part after `bits` upper bits.
#[must_use]
pub fn lower_max<K: Key, E: Lower>(bits: u8) -> E {
    E::truncate(lower_bits::<K>(bits))
}

const fn lower_bits<K: Key>(bits: u8) -> u128 {
    if bits == K::BITS { 0 } else { u128::MAX >> (128 - (K::BITS - bits) as u32) }
}

/// Calls `interval` for the intervals of the upper `bits` bits in ascending order, each with its first upper part. The
/// first one begins at 0. Neighbours with the same next hop are merged as `merge` says.
///
/// # Errors
/// When memory runs out.
pub fn split<K: Key, E: Lower>(
    routes: &dyn Routes<K>,
    merge: Merge,
    bits: u8,
    budget: &mut Budget,
    interval: impl FnMut(u64, Leads, &mut Budget) -> Result<(), OutOfMemory>,
) -> Result<Blocks<E>, OutOfMemory> {
    let mut blocks = Blocks::default();
    split_within(routes, Prefix::ALL, merge, bits, &mut blocks, budget, interval)?;
    Ok(blocks)
}

/// Like [`split`], for the intervals of a prefix of at most `bits` bits, of which the first one begins with its first upper
/// part. Appends their blocks.
///
/// # Errors
/// When memory runs out.
pub fn split_within<K: Key, E: Lower>(
    routes: &dyn Routes<K>,
    within: Prefix<K>,
    merge: Merge,
    bits: u8,
    blocks: &mut Blocks<E>,
    budget: &mut Budget,
    interval: impl FnMut(u64, Leads, &mut Budget) -> Result<(), OutOfMemory>,
) -> Result<(), OutOfMemory> {
    let end = upper(within.last(), bits);
    let mut sweep = Sweep { bits, end, blocks, last: None, open: None, next_hop: None, budget, interval };
    ranges::try_for_each(routes, within, merge, |range| sweep.add::<K>(range))?;
    sweep.close()?;
    sweep.flush()
}

/// The intervals so far, and the block that is open.
struct Sweep<'a, E, F> {
    bits: u8,
    /// The last upper part of all.
    end: u64,
    blocks: &'a mut Blocks<E>,
    /// The last interval, not yet reported.
    last: Option<(u64, Leads)>,
    /// The upper part of the last block while ranges begin inside it.
    open: Option<u64>,
    /// Next hop after all ranges so far.
    next_hop: Option<NextHop>,
    budget: &'a mut Budget,
    interval: F,
}

impl<E: Lower, F: FnMut(u64, Leads, &mut Budget) -> Result<(), OutOfMemory>> Sweep<'_, E, F> {
    fn add<K: Key>(&mut self, range: Range<K>) -> Result<(), OutOfMemory> {
        let start = upper(range.start, self.bits);
        let inside = range.start.to_bits() & lower_bits::<K>(self.bits);
        let adjoins = |open: u64| inside == 0 && start - open == 1;
        if self.open.is_some_and(|open| open != start && !adjoins(open)) {
            self.close()?;
        }
        let before = core::mem::replace(&mut self.next_hop, range.next_hop);
        if inside == 0 {
            self.open = None;
            return self.begin(start, Leads::To(range.next_hop));
        }
        if self.open != Some(start) {
            self.open::<K>(start, before)?;
        }
        let last = self.blocks.ends.len() - 1;
        self.blocks.ends[last] = E::truncate(inside - 1);
        self.piece::<K>(range.next_hop)
    }

    /// Begins an interval, which ends the one before.
    fn begin(&mut self, start: u64, leads: Leads) -> Result<(), OutOfMemory> {
        self.flush()?;
        self.last = Some((start, leads));
        Ok(())
    }

    fn flush(&mut self) -> Result<(), OutOfMemory> {
        match self.last.take() {
            Some((start, leads)) => (self.interval)(start, leads, self.budget),
            None => Ok(()),
        }
    }

    /// Makes `start` a block, which begins with the next hop before it.
    fn open<K: Key>(&mut self, start: u64, before: Option<NextHop>) -> Result<(), OutOfMemory> {
        self.open = Some(start);
        let leads = Leads::Block(self.blocks.first.len() as u32);
        match &mut self.last {
            Some((last, led)) if *last == start => *led = leads,
            _ => self.begin(start, leads)?,
        }
        self.budget.push(&mut self.blocks.first, self.blocks.ends.len() as u32)?;
        self.piece::<K>(before)
    }

    /// Adds a piece to the last block. It extends to the end of the block until another piece begins.
    fn piece<K: Key>(&mut self, next_hop: Option<NextHop>) -> Result<(), OutOfMemory> {
        self.budget.push(&mut self.blocks.ends, lower_max::<K, E>(self.bits))?;
        self.budget.push(&mut self.blocks.next_hops, NextHop::word(next_hop))
    }

    /// Ends the open block. The next hop after it is that of its last piece.
    fn close(&mut self) -> Result<(), OutOfMemory> {
        match self.open.take() {
            Some(open) if open < self.end => self.begin(open + 1, Leads::To(self.next_hop)),
            _ => Ok(()),
        }
    }
}
