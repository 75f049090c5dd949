//! Replants trees: for the slots that share one, together with small trees next to it that can join it.

use crate::memory::{Budget, OutOfMemory};
use crate::net::{Key, Routes};

use super::build::tree;
use super::layout::{LEAF_INTERVALS, TREE_INTERVALS};
use super::plan::Intervals;
use super::reach::Path;
use super::storage::{BLOCK, PlantError};
use super::update::{Editor, Planted, push, sweep};

/// Trees become one if they have this many leaves together, or fewer.
const JOINED_LEAVES: u32 = 12;

impl<K: Key> Editor<K> {
    /// Prepares the tree of the slots that share the one of an upper part, with the changes of all spans. Returns the last upper
    /// part of the slots; `None` if one of them needs more than a tree.
    pub(super) fn replant(
        &mut self,
        upper: u64,
        path: &Path,
        after: &dyn Routes<K>,
    ) -> Result<Option<u64>, PlantError> {
        let slots = path.slots::<K>(upper);
        let start = |slot| slots.start(slot);
        let run = self.run(slots.places, slots.slot, start)?;
        let whole = slots.uppers(run);
        self.splice(whole, slots.bits, after)?;
        let mut planted = core::mem::take(&mut self.planted);
        planted.clear();
        let outcome =
            if self.share(run, start, &mut planted)? { self.plant_all(whole[0], &planted) } else { Ok(()) };
        let is_planted = !planted.is_empty();
        self.planted = planted;
        outcome.map(|()| is_planted.then_some(whole[1]))
    }

    /// Finds the slots from `first` to `last` that share the tree of a slot, and slots with another tree that is small enough to
    /// join it. Decodes their intervals.
    fn run(
        &mut self,
        [first, last]: [u32; 2],
        slot: u32,
        start: impl Fn(u32) -> u64,
    ) -> Result<[u32; 2], OutOfMemory> {
        let Self { ground, old, .. } = self;
        old.clear();
        let mut run = ground.run(slot, [first, last]);
        let mut tree = ground.word(slot);
        let mut begin = run[0];
        let mut leaves = 0;
        loop {
            leaves += ground.leaves(tree);
            ground.intervals(tree, [start(begin), start(run[1] + 1) - 1], old)?;
            begin = run[1] + 1;
            // A tree has windows of one half only, because they are compared as signed numbers.
            if begin > last || start(begin) >> 31 != start(run[0]) >> 31 {
                return Ok(run);
            }
            tree = ground.word(begin);
            if leaves + ground.leaves(tree) > JOINED_LEAVES {
                return Ok(run);
            }
            run[1] = ground.run(begin, [begin, last])[1];
        }
    }

    /// Divides slots among as many trees as their intervals need. Returns false if a slot needs more than a tree.
    fn share(
        &mut self,
        run: [u32; 2],
        start: impl Fn(u32) -> u64,
        planted: &mut Vec<Planted>,
    ) -> Result<bool, OutOfMemory> {
        let Self { ground, new, .. } = self;
        let count = new.starts.len();
        let trees = count.div_ceil(TREE_INTERVALS);
        if trees == 1 {
            ground.budget.push(planted, Planted { slots: run, first: 0, last: count - 1 })?;
            return Ok(true);
        }
        // The trees are of about the same size.
        let most = (count / trees + LEAF_INTERVALS).min(TREE_INTERVALS);
        let met = |upper: u64| new.starts.partition_point(|&start| start <= upper) - 1;
        for slot in run[0]..=run[1] {
            let (first, last) = (met(start(slot)), met(start(slot + 1) - 1));
            match planted.last_mut() {
                Some(open) if last - open.first < most => (open.slots[1], open.last) = (slot, last),
                _ if last - first < TREE_INTERVALS => {
                    ground.budget.push(planted, Planted { slots: [slot; 2], first, last })?;
                }
                _ => {
                    planted.clear();
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Plants trees, and prepares their slots, from an upper part on.
    fn plant_all(&mut self, upper: u64, planted: &[Planted]) -> Result<(), PlantError> {
        let mark = self.ground.mark();
        for &Planted { slots, first, last } in planted {
            let tree = tree(&mut self.ground, &self.new, &self.blocks, first, last)?;
            for slot in slots[0]..=slots[1] {
                self.ground.store(slot, tree, true)?;
            }
        }
        Ok(self.ground.budget.push(&mut self.marks, (upper, mark))?)
    }

    /// Makes the intervals of these upper parts: the old ones, and those of the routes for the spans.
    fn splice(&mut self, whole: [u64; 2], slot_bits: u32, after: &dyn Routes<K>) -> Result<(), OutOfMemory> {
        let Self { ground, spans, old, new, blocks, .. } = self;
        let budget = &mut ground.budget;
        new.clear();
        blocks.clear();
        let mut at = 0;
        let mut keep = |new: &mut Intervals, from: u64, until: u64, budget: &mut Budget| {
            // The interval around `from` is cut to begin there.
            at += old.starts[at..].partition_point(|&start| start <= from) - 1;
            push(new, from, old.values[at], budget)?;
            let end = at + 1 + old.starts[at + 1..].partition_point(|&start| start <= until);
            budget.reserve(&mut new.starts, end - at)?;
            budget.reserve(&mut new.values, end - at)?;
            let mut last = old.values[at];
            at += 1;
            while at < end {
                let value = old.values[at];
                if value >= BLOCK || value != last {
                    new.starts.push(old.starts[at]);
                    new.values.push(value);
                }
                last = value;
                at += 1;
            }
            // The last interval may reach past `until`, so the next call begins with it.
            at -= 1;
            Ok::<(), OutOfMemory>(())
        };
        let mut from = whole[0];
        // Spans that were stored in leaves of the old tree are included, because the new tree replaces them.
        let spans = &spans[spans.partition_point(|span| span[1] < whole[0])..];
        for &[first, last] in spans.iter().take_while(|span| span[0] <= whole[1]) {
            if from < first {
                keep(new, from, first - 1, budget)?;
            }
            // A prefix that has several slots is examined slot by slot.
            let last = last.min(whole[1]);
            from = from.max(first);
            while from <= last {
                let slot = [from, (from | ((1 << slot_bits) - 1)).min(last)];
                sweep(after, Self::prefix(slot), new, blocks, budget)?;
                from = slot[1] + 1;
            }
        }
        if from <= whole[1] {
            keep(new, from, whole[1], budget)?;
        }
        Ok(())
    }
}
