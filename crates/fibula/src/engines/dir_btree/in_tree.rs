//! Changes inside one leaf that begin or end inside its intervals. The tree is copied, and the leaf is made from its new intervals.
//!
//! A leaf that has no room for more intervals becomes two, as long as the tree then has few more leaves than it needs. Otherwise the tree
//! is replanted, which fills its leaves and joins equal neighbours.

use crate::net::{Key, Routes};
use crate::simd::{LEAF_KEYS, LINE_UNITS, LINE_WORDS};

use super::build::PADDING;
use super::ground::{Ground, LEVELS};
use super::in_leaf::below;
use super::layout::{BELOW, LEAF_INTERVALS, LEAVES, window};
use super::plan::Intervals;
use super::reach::Path;
use super::storage::{BLOCK, PlantError, TreeStorage, put_halves};
use super::update::{Editor, sweep};

/// Leaves that a tree may have beyond those that its intervals need. Few, because lookups then find less in the cache.
const SPARE: usize = 2;

/// Intervals of a leaf and of the span that is put into it, which may divide one of the leaf's.
const MOST: usize = 2 * LEAF_INTERVALS + 2;

/// The intervals of a leaf: the last upper part of each, which the last one of a tree has none of, and their values.
#[derive(Debug, Clone, Copy)]
struct LeafIntervals {
    all: [(Option<u64>, u32); MOST],
    count: usize,
}

impl LeafIntervals {
    fn push(&mut self, end: Option<u64>, value: u32) {
        self.all[self.count] = (end, value);
        self.count += 1;
    }

    /// Joins neighbours with the same value.
    fn join(&mut self) {
        let mut count = 1;
        for at in 1..self.count {
            if self.all[at].1 == self.all[count - 1].1 {
                self.all[count - 1].0 = self.all[at].0;
            } else {
                self.all[count] = self.all[at];
                count += 1;
            }
        }
        self.count = count;
    }

    /// Returns the intervals of a leaf with those of a span in their place. The leaf's intervals follow `before`; those that nothing
    /// bounds reach to the ends of `whole`, beyond which the tree is not looked up.
    fn replaced(
        old: &Self,
        before: Option<u64>,
        whole: [u64; 2],
        [first, last]: [u64; 2],
        new: &Intervals,
    ) -> Self {
        let mut all = Self { all: [(None, 0); MOST], count: 0 };
        let mut begin = before.map_or(whole[0], |before| whole[0].max(before + 1));
        for &(end, value) in &old.all[..old.count] {
            let until = end.map_or(whole[1], |end| whole[1].min(end));
            if until < first || begin > last {
                all.push(end, value);
            } else {
                if begin < first {
                    all.push(Some(first - 1), value);
                }
                if begin <= first {
                    for (at, &value) in new.values.iter().enumerate() {
                        all.push(Some(new.starts.get(at + 1).map_or(last, |next| next - 1)), value as u32);
                    }
                }
                if until > last {
                    all.push(end, value);
                } else if until == last {
                    // The old end, because it may lie past the slots of this copy, or have no key.
                    all.all[all.count - 1].0 = end;
                }
            }
            begin = begin.max(end.map_or(u64::MAX, |end| end + 1));
        }
        all
    }

    /// Returns the words of a leaf of these intervals. The last one has no key.
    fn line(all: &[(Option<u64>, u32)]) -> [u32; LINE_WORDS] {
        let (mut line, mut values) = ([PADDING; LINE_WORDS], [0; LEAF_INTERVALS]);
        for (key, end) in line.iter_mut().zip(all[..all.len() - 1].iter().filter_map(|&(end, _)| end)) {
            *key = window(end);
        }
        values.iter_mut().zip(all).for_each(|(to, &(_, value))| *to = value);
        put_halves(&mut line, (values, 0), all.len());
        line
    }
}

impl<K: Key> Ground<K> {
    /// Returns the number of intervals of a tree, given its first line and the number of its leaves; `None` if it has objects.
    fn intervals_without_objects(&self, tree: u32, leaves: usize) -> Option<usize> {
        let mut intervals = 0;
        for leaf in 1..=leaves as u32 {
            let line = self.line(tree + leaf);
            if self.objects(&line).is_some() {
                return None;
            }
            intervals += 1 + line[..LEAF_KEYS].iter().take_while(|&&key| key != PADDING).count();
        }
        Some(intervals)
    }

    /// Returns the intervals of a leaf. `end` is the key that the node has for it, and `upper` the upper part of a key.
    fn leaf_intervals(&self, line: u32, end: Option<u32>, upper: impl Fn(u32) -> u64) -> LeafIntervals {
        let line = self.line(line);
        let mut all = LeafIntervals { all: [(None, 0); MOST], count: 0 };
        for at in 0..LEAF_INTERVALS {
            let key = line[..LEAF_KEYS].get(at).copied().filter(|&key| key != PADDING);
            all.push(key.or(end).map(&upper), line[LEAF_KEYS + at / 2] >> (at % 2 * 16) & 0xffff);
            if key.is_none() {
                break;
            }
        }
        all
    }

    /// Copies a tree, given its first line and the number of its leaves, with another node, and with other leaves in the place of one.
    /// Returns the first line of the copy.
    fn copy_tree(
        &mut self,
        [tree, leaves]: [u32; 2],
        node: &[u32; LINE_WORDS],
        leaf: u32,
        parts: [&[(Option<u64>, u32)]; 2],
    ) -> Result<u32, PlantError> {
        let more = u32::from(!parts[1].is_empty());
        let copy = self.lines(1 + leaves + more)?;
        self.write_line(copy, node);
        for at in 0..leaf {
            self.write_line(copy + 1 + at, &self.line(tree + 1 + at));
        }
        for (at, part) in (0..).zip(parts.into_iter().filter(|part| !part.is_empty())) {
            self.write_line(copy + 1 + leaf + at, &LeafIntervals::line(part));
        }
        for at in leaf + 1..leaves {
            self.write_line(copy + 1 + at + more, &self.line(tree + 1 + at));
        }
        Ok(copy)
    }
}

impl<K: Key> Editor<K> {
    /// Prepares a copy of the tree that a span leads to, with the span's intervals in one of its leaves. Returns the last upper part of
    /// the slots around it that share the tree; `None` if more has to change.
    pub(super) fn in_tree(
        &mut self,
        span: usize,
        path: &Path,
        after: &dyn Routes<K>,
    ) -> Result<Option<u64>, PlantError> {
        let [first, last] = self.spans[span];
        let slots = path.slots::<K>(first);
        let run = self.ground.run(slots.slot, slots.places);
        let whole = slots.uppers(run);
        let is_before = |span: &[u64; 2]| span[1] < whole[0];
        // Alone, because the copy would need other spans too, and some of them may be stored in leaves already.
        if last > whole[1]
            || !self.spans[..span].last().is_none_or(is_before)
            || self.spans.get(span + 1).is_some_and(|next| next[0] <= whole[1])
        {
            return Ok(None);
        }
        let mark = self.ground.mark();
        let Some(copy) = self.with_span(path.words[LEVELS - 1] / LINE_UNITS, [first, last], whole, after)?
        else {
            return Ok(None);
        };
        for slot in run[0]..=run[1] {
            self.ground.store(slot, copy * LINE_UNITS, true)?;
        }
        self.ground.budget.push(&mut self.marks, (whole[0], mark))?;
        Ok(Some(whole[1]))
    }

    /// Copies a tree with the intervals of a span in one of its leaves, for slots of the upper parts of `whole`. Returns the first line
    /// of the copy.
    fn with_span(
        &mut self,
        tree: u32,
        [first, last]: [u64; 2],
        whole: [u64; 2],
        after: &dyn Routes<K>,
    ) -> Result<Option<u32>, PlantError> {
        let Self { ground, new, blocks, .. } = self;
        new.clear();
        blocks.clear();
        sweep(after, Self::prefix([first, last]), new, blocks, &mut ground.budget)?;
        let is_plain = |value: &u64| *value < BLOCK.min(BELOW.into());
        let mut node = ground.line(tree);
        let leaf = below(&node, window(first));
        if new.values.len() > LEAF_INTERVALS
            || !new.values.iter().all(is_plain)
            || below(&node, window(last)) != leaf
        {
            return Ok(None);
        }
        let leaves = 1 + node.iter().take_while(|&&key| key != PADDING).count();
        // Not with objects, because these belong to one tree.
        let Some(intervals) = ground.intervals_without_objects(tree, leaves) else { return Ok(None) };
        let upper = |window: u32| first >> 32 << 32 | u64::from(window);
        let end = node.get(leaf).copied().filter(|&key| key != PADDING);
        let old = ground.leaf_intervals(tree + 1 + leaf as u32, end, upper);
        let before = leaf.checked_sub(1).map(|before| upper(node[before]));
        let mut all = LeafIntervals::replaced(&old, before, whole, [first, last], new);
        if all.count > LEAF_INTERVALS {
            all.join();
        }
        let mut half = all.count;
        if half > LEAF_INTERVALS {
            half = half.div_ceil(2);
            let needed = (intervals + all.count - old.count).div_ceil(LEAF_INTERVALS);
            if half > LEAF_INTERVALS || leaves == LEAVES || leaves + 1 > needed + SPARE {
                return Ok(None);
            }
            let (Some(end), _) = all.all[half - 1] else { return Ok(None) };
            node.copy_within(leaf..LINE_WORDS - 1, leaf + 1);
            node[leaf] = window(end);
        }
        let parts = [&all.all[..half], &all.all[half..all.count]];
        ground.copy_tree([tree, leaves as u32], &node, leaf as u32, parts).map(Some)
    }
}
