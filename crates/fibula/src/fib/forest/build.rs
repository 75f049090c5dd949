//! Routes to layout: intervals of the upper part, direct entries whose slots have few intervals, and trees over them.

use core::marker::PhantomData;

use crate::fib::BuildError;
use crate::fib::parts::intervals::{self, Blocks, Leads};
use crate::fib::parts::ranges::Merge;
use crate::memory::{Budget, Buffer, Limits, OutOfMemory};
use crate::net::{Ipv6Key, Key, NextHop, Routes};
use crate::simd::Nodes;

use super::NAME;
use super::layout::{
    CHILDREN, Cut, EMPTY, Forest, GROUND, NARROW, PADDING, ROOTS_BITS, ROOTS_MAX, SHIFT_BITS, SLOTS_MAX,
    WIDE, below_bit, block_bit, cut, head, window,
};
use super::record::Records;

/// Most intervals that the slots of a direct entry may have on average where one of their trees has a root (first
/// value), or two roots (second value). With more, the entry is cut into more slots. A root is one more step for the
/// keys that meet it, which go through lists.
const SLOT_INTERVALS: [usize; 2] = [8, 1];

/// Most bits after the direct ones that select a slot.
const SLOT_BITS_MAX: u32 = 16;

/// Direct entries that any table may have, whatever its size.
const ENTRIES_FREE: usize = 1 << 12;

impl<K: Ipv6Key> Forest<K> {
    /// Builds the forest of the routes.
    ///
    /// # Errors
    /// When memory runs out, and when the table needs more than 2^26 slots, 2^29 lines, 2^30 words of records or 2^30
    /// blocks.
    pub(crate) fn build(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, BuildError> {
        let refused = |error| BuildError::memory(NAME, error);
        let mut budget = Budget::new(limits);
        let mut intervals = Intervals::default();
        let bits = cut::<K>().upper_bits;
        let blocks =
            intervals::split(routes, Merge::EqualNeighbours, bits, &mut budget, |start, leads, budget| {
                budget.push(&mut intervals.starts, start)?;
                budget.push(
                    &mut intervals.values,
                    match leads {
                        Leads::To(next_hop) => NextHop::word(next_hop).into(),
                        Leads::Block(block) => BELOW | u64::from(block),
                    },
                )
            })
            .map_err(refused)?;
        let (leaf_keys, mut below) = intervals.encode(blocks, &mut budget).map_err(refused)?;
        limit("words of records", 1 << 30, below.records.words.len() as u64)?;
        limit("blocks", 1 << 30, below.blocks.first.len() as u64)?;
        limit("ranges inside blocks", 1 << 32, below.blocks.ends.len() as u64)?;
        // What trees with the most roots hold. Windows are 32 bits, so memory ends before a tree comes near it.
        let most = (u64::from(leaf_keys) + 1) * (CHILDREN as u64).pow(ROOTS_MAX as u32 + 1);
        limit("intervals", most, intervals.starts.len() as u64)?;
        let mut planting = Planting::<K>::new(&intervals, leaf_keys, budget);
        planting.plant().map_err(refused)?;
        let Planting { mut fib, mut budget, .. } = planting;
        limit("slots", SLOTS_MAX, fib.slots.len() as u64)?;
        limit("lines", (Nodes::MOST - PADDING) as u64, fib.lines.len() as u64)?;
        let Intervals { starts, values } = intervals;
        budget.free(starts);
        budget.free(values);
        below.records.finish(&mut budget).map_err(refused)?;
        below.blocks.shrink(&mut budget);
        Below { records: fib.records, blocks: fib.blocks } = below;
        budget.reserve(&mut fib.lines, PADDING).map_err(refused)?;
        fib.lines.resize(fib.lines.len() + PADDING, EMPTY);
        budget.shrink(&mut fib.direct);
        budget.shrink(&mut fib.slots);
        budget.shrink(&mut fib.lines);
        Ok(fib)
    }
}

fn limit(what: &'static str, most: u64, count: u64) -> Result<(), BuildError> {
    if count > most { Err(BuildError::limit(NAME, what, most, count)) } else { Ok(()) }
}

/// In a value that is not encoded yet: set for anything that is not a next hop.
const BELOW: u64 = 1 << 33;

/// In a value with [`BELOW`]: set for a block.
const BLOCK: u64 = 1 << 32;

/// What values lead to that are not next hops.
struct Below {
    records: Records,
    blocks: Blocks<u128>,
}

/// The intervals of the upper parts, ascending from 0 on.
#[derive(Default)]
struct Intervals {
    starts: Buffer<u64>,
    values: Buffer<u64>,
}

impl Intervals {
    /// Encodes the values as leaves store them. Returns the keys of a leaf, and the records and blocks. A block becomes
    /// a record where it fits, and so does a next hop that does not fit a value.
    fn encode(&mut self, mut all: Blocks<u128>, budget: &mut Budget) -> Result<(u32, Below), OutOfMemory> {
        let mut below = Below { records: Records::default(), blocks: Blocks::default() };
        // First every value becomes a next hop, a record or a block; only then is it known how wide values must be.
        let mut last = None;
        for value in &mut *self.values {
            let word = *value as u32;
            if *value & BELOW != 0 {
                let block = word as usize;
                *value = match below.records.push_block(&all, block, budget)? {
                    Some(place) => BELOW | place as u64,
                    None => {
                        let pieces = all.pieces(block);
                        below.blocks.push(&all.ends[pieces.clone()], &all.next_hops[pieces], budget)?;
                        BELOW | BLOCK | (below.blocks.first.len() as u64 - 1)
                    }
                };
            } else if word >= below_bit(WIDE) {
                let place = match last {
                    Some((id, place)) if id == word => place,
                    _ => below.records.push_whole(word, budget)?,
                };
                last = Some((word, place));
                *value = BELOW | place as u64;
            }
        }
        all.free(budget);
        let fits = |value: u64| match value & BELOW {
            0 => value < below_bit(NARROW).into(),
            _ => value & !(BELOW | BLOCK) < block_bit(NARROW).into(),
        };
        let leaf_keys = if self.values.iter().all(|&value| fits(value)) { NARROW } else { WIDE };
        for value in &mut *self.values {
            let bit = |told: u64, bit: u32| if *value & told != 0 { bit } else { 0 };
            let bits = bit(BELOW, below_bit(leaf_keys)) | bit(BLOCK, block_bit(leaf_keys));
            *value = u64::from(*value as u32 | bits);
        }
        Ok((leaf_keys, below))
    }

    /// Returns the interval of an upper part, which is not before that of interval `from`.
    fn at(&self, from: usize, upper: u64) -> usize {
        // It is mostly near: doubling steps, then halving ones.
        let starts = &self.starts[from..];
        let mut step = 1;
        while step < starts.len() && starts[step] <= upper {
            step *= 2;
        }
        let known = step / 2;
        from + known + starts[known..starts.len().min(step)].partition_point(|&start| start <= upper) - 1
    }
}

/// Slots that share a tree, as long as their intervals fit a tree without roots.
struct Open {
    /// The bits before the window, which all their upper parts have.
    before: u64,
    /// Their first slot.
    slot: usize,
    /// Their intervals, the last one included.
    first: usize,
    last: usize,
}

/// Planted trees of one interval, most of which are for the same few next hops.
type Alone = [Option<(u32, u32)>; 256];

struct Planting<'a, K> {
    fib: Forest<K>,
    intervals: &'a Intervals,
    open: Option<Open>,
    alone: Alone,
    budget: Budget,
}

impl<'a, K: Key> Planting<'a, K> {
    const CUT: Cut = cut::<K>();

    fn new(intervals: &'a Intervals, leaf_keys: u32, budget: Budget) -> Self {
        let fib = Forest {
            direct_bits: 0,
            first: 0,
            direct: Buffer::new(),
            slots: Buffer::new(),
            lines: Buffer::new(),
            leaf_keys,
            records: Records::default(),
            blocks: Blocks::default(),
            keys: PhantomData,
        };
        Self { fib, intervals, open: None, alone: [None; 256], budget }
    }

    /// Returns the most intervals of a tree without roots.
    fn most(&self) -> usize {
        CHILDREN * (self.fib.leaf_keys as usize + 1)
    }

    /// Makes the direct table, the slots and the trees.
    fn plant(&mut self) -> Result<(), OutOfMemory> {
        let starts = &self.intervals.starts;
        let values = &self.intervals.values;
        let last_start = starts[starts.len() - 1];
        let outside_alike = values[0] == values[values.len() - 1];
        // The entry for all other leading bits comes after those from the first start to the last one.
        let span = |bits: u8| {
            let at = |upper: u64| head::<K>(upper) >> (32 - bits);
            let second = starts.get(1).copied().unwrap_or(0);
            let first = if outside_alike { at(second) } else { 0 };
            (first, (at(last_start) - first) as usize + 1)
        };
        // As many leading bits as leave no more than half as many entries as there are intervals.
        let wanted = (starts.len() / 2).max(ENTRIES_FREE);
        let bits =
            (Self::CUT.direct_least..=Self::CUT.direct_most).rev().find(|&bits| span(bits).1 <= wanted);
        let bits = bits.unwrap_or(Self::CUT.direct_least);
        let (first, count) = span(bits);
        self.fib.direct_bits = bits.into();
        self.fib.first = first;
        self.budget.reserve(&mut self.fib.direct, count + 1)?;
        let mut interval = 0;
        for entry in 0..count as u64 {
            let inside = Self::CUT.upper_bits - bits;
            let upper = (u64::from(first) + entry) << inside;
            interval = self.intervals.at(interval, upper);
            self.entry(upper, inside.into(), interval)?;
        }
        // Any window leads to one of two slots, which have the same value.
        self.close()?;
        let ground = self.fib.slots.len() as u32;
        let place = self.tree(starts.len() - 1, starts.len() - 1)?;
        let slots = [place, place];
        self.budget.reserve(&mut self.fib.slots, slots.len())?;
        self.fib.slots.extend_from_slice(&slots);
        self.budget.push(&mut self.fib.direct, ground << SHIFT_BITS | 31)
    }

    /// Makes the direct entry of the upper parts from `upper` on that differ in `inside` bits; `first` is their first
    /// interval.
    fn entry(&mut self, upper: u64, inside: u32, first: usize) -> Result<(), OutOfMemory> {
        let end = |bits: u32, upper: u64| upper | ((1 << bits) - 1);
        let count = self.intervals.at(first, end(inside, upper)) + 1 - first;
        // A shift is at most 31.
        let mut bits = inside.saturating_sub(31);
        if count > self.most() {
            bits = bits.max(1);
            let too_few = |bits: u32| {
                let mut most = self.most();
                SLOT_INTERVALS.into_iter().any(|intervals| {
                    let crowded = count > intervals << bits
                        && self.crowded(upper, inside - bits, 1 << bits, first, most);
                    most *= CHILDREN;
                    crowded
                })
            };
            while bits < inside.min(SLOT_BITS_MAX) && too_few(bits) {
                bits += 1;
            }
        }
        let shift = inside - bits;
        // The slot of a window counts from the first window of the entry on.
        let ground = (self.fib.slots.len() as u32).wrapping_sub(window(upper) >> shift) & (GROUND - 1);
        self.budget.push(&mut self.fib.direct, ground << SHIFT_BITS | shift)?;
        let mut interval = first;
        for slot in 0..1u64 << bits {
            let upper = upper | slot << shift;
            interval = self.intervals.at(interval, upper);
            let last = self.intervals.at(interval, end(shift, upper));
            self.slot(upper, interval, last)?;
            interval = last;
        }
        Ok(())
    }

    /// Returns whether any of `count` slots of so many upper bits has more than `most` intervals.
    fn crowded(&self, upper: u64, shift: u32, count: u64, first: usize, most: usize) -> bool {
        let mut interval = first;
        (0..count).any(|slot| {
            let upper = upper | slot << shift;
            let begin = self.intervals.at(interval, upper);
            interval = self.intervals.at(begin, upper | ((1 << shift) - 1));
            interval + 1 - begin > most
        })
    }

    /// Adds the next slot, to the open tree where that has room for its intervals.
    fn slot(&mut self, upper: u64, first: usize, last: usize) -> Result<(), OutOfMemory> {
        let most = self.most();
        let fits = |open: &Open| open.before == upper >> 32 && last + 1 - open.first <= most;
        if let Some(open) = &mut self.open
            && fits(open)
        {
            open.last = last;
        } else {
            self.close()?;
            self.open = Some(Open { before: upper >> 32, slot: self.fib.slots.len(), first, last });
        }
        self.budget.push(&mut self.fib.slots, 0)
    }

    /// Plants the tree of the open slots.
    fn close(&mut self) -> Result<(), OutOfMemory> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let place = self.tree(open.first, open.last)?;
        self.fib.slots[open.slot..].fill(place);
        Ok(())
    }

    /// Plants a tree over these intervals, and returns the slot that leads to it.
    fn tree(&mut self, first: usize, last: usize) -> Result<u32, OutOfMemory> {
        let place = self.fib.lines.len() as u32;
        if first == last {
            let value = self.intervals.values[first] as u32;
            let alone = &mut self.alone[(value.wrapping_mul(0x9e37_79b1) >> 24) as usize];
            match *alone {
                Some((known, tree)) if known == value => return Ok(tree),
                _ => *alone = Some((value, place << ROOTS_BITS)),
            }
        }
        let mut roots = 0;
        let mut most = self.most();
        while last - first >= most {
            roots += 1;
            most *= CHILDREN;
        }
        self.node(first, last, roots + 1)?;
        Ok(place << ROOTS_BITS | roots)
    }

    /// Appends a node with so many levels of inner nodes, and everything below it.
    fn node(&mut self, first: usize, last: usize, levels: u32) -> Result<(), OutOfMemory> {
        let Self { fib, intervals, budget, .. } = self;
        let leaf_keys = fib.leaf_keys as usize;
        // The last window before an interval.
        let end = |interval: usize| window(intervals.starts[interval] - 1);
        let mut line = EMPTY;
        let Some(below) = levels.checked_sub(1) else {
            let value = |at: usize| intervals.values[(first + at).min(last)] as u32;
            for key in 0..last - first {
                line.0[key] = end(first + 1 + key);
            }
            for at in 0..=leaf_keys {
                if fib.leaf_keys == NARROW {
                    let (word, half) = (leaf_keys + at / 2, at % 2);
                    line.0[word] = if half == 0 { value(at) } else { line.0[word] | value(at) << 16 };
                } else {
                    line.0[leaf_keys + at] = value(at);
                }
            }
            return budget.push(&mut fib.lines, line);
        };
        // Intervals of a full child: children are cut from the left, so that only the last one may not be full.
        let each = (leaf_keys + 1) * CHILDREN.pow(below);
        let children = || (first..=last).step_by(each);
        for (key, child) in line.0.iter_mut().zip(children().skip(1)) {
            *key = end(child);
        }
        budget.push(&mut fib.lines, line)?;
        for child in children() {
            self.node(child, last.min(child + each - 1), below)?;
        }
        Ok(())
    }
}
