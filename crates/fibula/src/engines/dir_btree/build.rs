//! Builds the layout from routes: intervals of the upper parts, tables cut where they are crowded, and trees that slots share.

use core::marker::PhantomData;

use crate::fib::BuildError;
use crate::fib::parts::intervals::{self, Blocks, Leads};
use crate::fib::parts::ranges::Merge;
use crate::memory::{Budget, Limits, OutOfMemory, Shared};
use crate::net::{Ipv6Key, Key, NextHop, Routes};
use crate::simd::{LINE_UNITS, LINE_WORDS};

use super::NAME;
use super::layout::{DirBtree, LEAVES, SHIFT, SHIFT_MOST, cut, head, window};
use super::plan::{Intervals, NONE, Plan};
use super::storage::{Arrays, BLOCK, HalfValues, LeafValues, PlantError, TreeStorage};

impl<K: Ipv6Key> DirBtree<K> {
    /// Builds the tables and trees of the routes.
    ///
    /// # Errors
    /// When memory runs out, and when the routes need more than 2^29 words of tables, 2^29 lines or 2^30 units of objects.
    pub fn build(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, BuildError> {
        let mut budget = Budget::new(limits);
        let (built, HalfValues) =
            Self::plant(routes, &mut budget, |_, _| Ok(HalfValues)).map_err(|refused| refused.of(NAME))?;
        Ok(built)
    }

    /// Plants tables and trees whose leaves store values in the way that `values` returns for the values of all intervals.
    pub(in crate::engines) fn plant<V: LeafValues>(
        routes: &dyn Routes<K>,
        budget: &mut Budget,
        values: impl FnOnce(&[u64], &mut Budget) -> Result<V, OutOfMemory>,
    ) -> Result<(Self, V), PlantError> {
        let mut all = Intervals::default();
        let bits = cut::<K>().upper as u8;
        let mut blocks =
            intervals::split(routes, Merge::EqualNeighbours, bits, budget, |start, leads, budget| {
                budget.push(&mut all.starts, start)?;
                budget.push(&mut all.values, value(leads))
            })?;
        let (mut plan, root) = Plan::new(&all, cut::<K>(), LEAVES * V::INTERVALS, budget)?;
        let first_bits = plan.first_bits(&all, root, budget)?;
        let values = values(&all.values, budget)?;
        let mut storage = Arrays::new(values, budget);
        // Nothing else is in the lines yet, so the head is at their start.
        storage.begin()?;
        let mut planting = Planting::<K, _>::new(&all, &blocks, &mut plan, &mut storage);
        planting.first(first_bits, root)?;
        let Planting { open, mut packed, .. } = planting;
        let Arrays { values, tables, lines, objects, table_units, line_units, object_units, .. } = storage;
        plan.free(budget);
        budget.free(open.words);
        for PackedTree { words, intervals } in packed.drain(..) {
            budget.free(words);
            budget.free(intervals);
        }
        budget.free(packed);
        blocks.free(budget);
        budget.free(all.starts);
        budget.free(all.values);
        let [tables, lines, objects] = [tables, lines, objects].map(|mut words| {
            budget.shrink(&mut words);
            Shared::from(words)
        });
        let built = Self {
            first_bits,
            tables,
            lines,
            objects,
            table_units,
            line_units,
            object_units,
            ends: None,
            keys: PhantomData,
        };
        Ok((built, values))
    }
}

/// Returns the value of an interval before it is encoded.
pub(super) fn value(leads: Leads) -> u64 {
    match leads {
        Leads::To(next_hop) => NextHop::word(next_hop).into(),
        Leads::Block(block) => BLOCK | u64::from(block),
    }
}

/// Upper parts with the same leading bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Region {
    /// The first of these upper parts.
    pub(super) upper: u64,
    /// The number of leading bits.
    pub(super) depth: u32,
    /// The intervals that it meets, the last one included.
    pub(super) first: usize,
    pub(super) last: usize,
    /// Its number among the crowded ones.
    pub(super) crowded: u32,
}

/// The target of the words of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum To {
    /// Tables that are indexed by heads.
    Mid,
    /// Tables that are indexed by windows.
    Sub,
    /// Tables of slots.
    Slots,
}

/// Slots that share a tree, as long as their intervals fit one.
#[derive(Default)]
pub(super) struct OpenTree {
    pub(super) words: Vec<u32>,
    /// The bits before the window and its highest bit, which are the same in all upper parts of the slots.
    before: u64,
    first: usize,
    last: usize,
}

/// Slots that share a tree. There may be other intervals between those of two slots.
#[derive(Default)]
struct PackedTree {
    words: Vec<u32>,
    intervals: Vec<u32>,
}

/// Most trees that are packed at once.
const PACKED: usize = 16;

/// Plants tables and trees over intervals.
pub(super) struct Planting<'a, K, S> {
    intervals: &'a Intervals,
    blocks: &'a Blocks<u128>,
    plan: &'a mut Plan,
    storage: &'a mut S,
    pub(super) open: OpenTree,
    /// Several open trees, for storage in which trees are packed.
    packed: Vec<PackedTree>,
    keys: PhantomData<fn(K)>,
}

impl<'a, K: Key, S: TreeStorage> Planting<'a, K, S> {
    pub(super) fn new(
        intervals: &'a Intervals,
        blocks: &'a Blocks<u128>,
        plan: &'a mut Plan,
        storage: &'a mut S,
    ) -> Self {
        Self {
            intervals,
            blocks,
            plan,
            storage,
            open: OpenTree::default(),
            packed: Vec::new(),
            keys: PhantomData,
        }
    }

    /// Makes the first table, and with it all other tables and the trees.
    pub(super) fn first(&mut self, bits: u32, crowded: u32) -> Result<(), PlantError> {
        let last = self.intervals.starts.len() - 1;
        let all = Region { upper: 0, depth: 0, first: 0, last, crowded };
        let place = self.storage.table(1 << bits, 0)?;
        self.spread(place, all, bits, To::Mid)?;
        self.close()
    }

    /// Returns the halves of a region.
    fn halves(&self, region: Region) -> [Region; 2] {
        let middle = region.upper | 1 << (cut::<K>().upper - region.depth - 1);
        let [before, from] = self.intervals.split(region.first, middle);
        let [left, right] = if region.crowded == NONE { [NONE; 2] } else { self.plan.halves(region.crowded) };
        let depth = region.depth + 1;
        [
            Region { depth, last: before, crowded: left, ..region },
            Region { depth, upper: middle, first: from, crowded: right, ..region },
        ]
    }

    /// Writes the 2^`bits` entries of a region, whose words begin at `place`. Neighbours with the same target have one entry,
    /// whose shift removes the bits in which they differ.
    fn spread(&mut self, place: u32, region: Region, bits: u32, to: To) -> Result<(), PlantError> {
        let alone = region.first == region.last && to != To::Slots;
        // Before this depth, windows do not distinguish all upper parts, so a region is divided further.
        let one_tree = region.crowded == NONE && region.depth >= cut::<K>().before;
        if bits > 0 && !alone && !one_tree {
            let [left, right] = self.halves(region);
            self.spread(place, left, bits - 1, to)?;
            return self.spread(place + (1 << (bits - 1)), right, bits - 1, to);
        }
        let entry = self.entry(region, to)?;
        self.storage.fill(place, 1 << bits, entry)
    }

    /// Returns the entry of a region.
    pub(super) fn entry(&mut self, region: Region, to: To) -> Result<u32, PlantError> {
        match to {
            To::Slots => self.slots(region),
            _ if region.first == region.last => self.alone(region.first, to),
            To::Mid => self.mid(region),
            To::Sub => self.sub(region),
        }
    }

    fn mid(&mut self, region: Region) -> Result<u32, PlantError> {
        let bits = if region.crowded == NONE {
            cut::<K>().before.saturating_sub(region.depth)
        } else {
            self.plan.cut_mid(region.crowded, region.depth, self.storage.budget())?.bits
        };
        // More bits than planned, if need be: a shift has five bits, and 31 means a single interval.
        let bits = bits.max((32 - region.depth).saturating_sub(SHIFT_MOST));
        let (place, entry) = self.table(head::<K>(region.upper), 32 - region.depth - bits, bits)?;
        self.spread(place, region, bits, To::Sub)?;
        Ok(entry)
    }

    fn sub(&mut self, region: Region) -> Result<u32, PlantError> {
        let bits = if region.crowded == NONE { 0 } else { self.plan.sub(region.crowded) };
        let (place, entry, bits) = self.by_window(region, bits)?;
        self.spread(place, region, bits, To::Slots)?;
        Ok(entry)
    }

    fn slots(&mut self, region: Region) -> Result<u32, PlantError> {
        let bits = if region.crowded == NONE { 0 } else { self.plan.slots(region.crowded) };
        let (place, entry, bits) = self.by_window(region, bits)?;
        self.spread_slots(place, region, bits)?;
        Ok(entry)
    }

    /// Makes a table of a region, indexed by windows. Returns its place, its entry and its bits.
    fn by_window(&mut self, region: Region, bits: u32) -> Result<(u32, u32, u32), PlantError> {
        // As in `mid`, the shift must stay below 31.
        let bits = bits.max((cut::<K>().upper - region.depth).saturating_sub(SHIFT_MOST));
        let shift = cut::<K>().upper - region.depth - bits;
        let (place, entry) = self.table(window(region.upper), shift, bits)?;
        Ok((place, entry, bits))
    }

    /// Writes the 2^`bits` slots of a region.
    fn spread_slots(&mut self, place: u32, region: Region, bits: u32) -> Result<(), PlantError> {
        // Trees compare windows as signed numbers, in which windows ascend only within each half.
        let halves = cut::<K>().upper - region.depth > 31;
        if region.crowded == NONE && !halves {
            return self.slot(place, region, bits);
        }
        let [left, right] = self.halves(region);
        self.spread_slots(place, left, bits - 1)?;
        self.spread_slots(place + (1 << (bits - 1)), right, bits - 1)
    }

    /// Adds 2^`bits` slots of a region. They join the open tree if it has room for their intervals.
    fn slot(&mut self, place: u32, region: Region, bits: u32) -> Result<(), PlantError> {
        let Region { upper, first, last, .. } = region;
        // A structure that changes keeps slots of one tree side by side, because a change replaces them together.
        if S::PACKS {
            return self.pack(place, region, bits);
        }
        let open = &self.open;
        let fits = open.before == upper >> 31 && last + 1 - open.first <= LEAVES * S::LEAF_INTERVALS;
        if open.words.is_empty() || !fits {
            self.close()?;
            (self.open.before, self.open.first) = (upper >> 31, first);
        }
        self.open.last = last;
        for word in place..place + (1 << bits) {
            self.storage.budget().push(&mut self.open.words, word)?;
        }
        Ok(())
    }

    /// Adds slots as `slot` does, to the fullest of several open trees that has room for their intervals.
    fn pack(&mut self, place: u32, region: Region, bits: u32) -> Result<(), PlantError> {
        let Region { upper, first, last, .. } = region;
        // A tree's keys are windows, so the bits before these are the same in the whole tree.
        if self.open.before != upper >> 31 {
            self.close_packed()?;
            self.open.before = upper >> 31;
        }
        let most = LEAVES * S::LEAF_INTERVALS;
        // Slots come in ascending order, and the first interval of one may be the last one of another.
        let more =
            |tree: &PackedTree| last + usize::from(tree.intervals.last() != Some(&(first as u32))) - first;
        let fitting = (0..self.packed.len()).filter(|&at| {
            let tree = &self.packed[at];
            tree.intervals.len() + more(tree) <= most
        });
        // The fullest first, because the others have more room for what is to come.
        let at = match fitting.max_by_key(|&at| self.packed[at].intervals.len()) {
            Some(at) => at,
            None if self.packed.len() < PACKED => {
                self.storage.budget().push(&mut self.packed, PackedTree::default())?;
                self.packed.len() - 1
            }
            // None has room, so the one that has the least is done.
            None => {
                let fullest = (0..PACKED).max_by_key(|&at| self.packed[at].intervals.len()).unwrap_or(0);
                self.close_one(fullest)?;
                fullest
            }
        };
        let (tree, budget) = (&mut self.packed[at], self.storage.budget());
        // An interval that goes on into this slot is not repeated, because keys ascend.
        let known = usize::from(tree.intervals.last() == Some(&(first as u32)));
        for interval in first + known..=last {
            budget.push(&mut tree.intervals, interval as u32)?;
        }
        for word in place..place + (1 << bits) {
            budget.push(&mut tree.words, word)?;
        }
        Ok(())
    }

    /// Plants one of the packed trees, if it has slots.
    fn close_one(&mut self, at: usize) -> Result<(), PlantError> {
        let PackedTree { words, intervals } = &self.packed[at];
        if words.is_empty() {
            return Ok(());
        }
        let tree =
            tree_of(self.storage, self.intervals, self.blocks, intervals.len(), |at| intervals[at] as usize)?;
        for &word in words {
            self.storage.fill_slot(word, tree)?;
        }
        self.packed[at].words.clear();
        self.packed[at].intervals.clear();
        Ok(())
    }

    fn close_packed(&mut self) -> Result<(), PlantError> {
        (0..self.packed.len()).try_for_each(|at| self.close_one(at))
    }

    /// Plants the tree of the open slots.
    pub(super) fn close(&mut self) -> Result<(), PlantError> {
        self.close_packed()?;
        if self.open.words.is_empty() {
            return Ok(());
        }
        let tree = self.tree(self.open.first, self.open.last)?;
        for &word in &self.open.words {
            self.storage.fill_slot(word, tree)?;
        }
        self.open.words.clear();
        Ok(())
    }

    /// Returns the entry that leads to one interval for every window, by tables of two equal words.
    fn alone(&mut self, interval: usize, to: To) -> Result<u32, PlantError> {
        let (value, from_first) = (self.intervals.values[interval], to == To::Mid);
        if let Some(entry) = self.storage.known_alone(value, from_first)? {
            return Ok(entry);
        }
        let tree = self.tree(interval, interval)?;
        self.storage.alone(value, tree, from_first)
    }

    /// Makes a table of 2^`bits` words for heads or windows from `first` on. Returns its place, and the entry that leads to it:
    /// the number to add to a shifted window, which is the table's place less the first window's. The lowest bits of an entry
    /// are the shift, so they restrict the places that a table may have.
    fn table(&mut self, first: u32, shift: u32, bits: u32) -> Result<(u32, u32), PlantError> {
        let first = first >> shift;
        let place = self.storage.table(1 << bits, shift.wrapping_add(first) & SHIFT)?;
        Ok((place, place.wrapping_sub(first)))
    }

    /// Plants a tree over these intervals, and returns the word of a slot that leads to it.
    fn tree(&mut self, first: usize, last: usize) -> Result<u32, PlantError> {
        tree(self.storage, self.intervals, self.blocks, first, last)
    }
}

/// Plants a tree over intervals from `first` to `last`, and returns the word of a slot that leads to it.
pub(super) fn tree<S: TreeStorage>(
    storage: &mut S,
    intervals: &Intervals,
    blocks: &Blocks<u128>,
    first: usize,
    last: usize,
) -> Result<u32, PlantError> {
    tree_of(storage, intervals, blocks, last - first + 1, |at| first + at)
}

/// Plants a tree over `count` intervals, which `interval` returns in ascending order. Returns the word of a slot that leads to it.
fn tree_of<S: TreeStorage>(
    storage: &mut S,
    intervals: &Intervals,
    blocks: &Blocks<u128>,
    count: usize,
    interval: impl Fn(usize) -> usize,
) -> Result<u32, PlantError> {
    let end = |at: usize| window(intervals.starts[interval(at) + 1] - 1);
    let leaves = (count - 1) / S::LEAF_INTERVALS + 1;
    let tree = storage.lines(1 + leaves as u32)?;
    let mut node = [PADDING; LINE_WORDS];
    for leaf in 0..leaves {
        let begin = leaf * S::LEAF_INTERVALS;
        let until = (count - 1).min(begin + S::LEAF_INTERVALS - 1);
        // The last leaf has no key, because no leaf comes after it.
        if let Some(key) = node.get_mut(leaf).filter(|_| until < count - 1) {
            *key = end(until);
        }
        let (mut line, mut values) = ([PADDING; LINE_WORDS], [0; LINE_WORDS]);
        for (key, at) in line.iter_mut().zip(begin..until) {
            *key = end(at);
        }
        for (value, at) in values.iter_mut().zip(begin..=until) {
            *value = intervals.values[interval(at)];
        }
        storage.put_values(&mut line, &values[..=until - begin], blocks)?;
        storage.write_line(tree + 1 + leaf as u32, &line);
    }
    storage.write_line(tree, &node);
    Ok(tree * LINE_UNITS)
}

/// Fills up the keys of a line, because no window is above it.
pub(super) const PADDING: u32 = i32::MAX as u32;
