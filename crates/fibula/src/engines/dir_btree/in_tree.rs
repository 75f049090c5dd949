//! Changes inside one leaf that begin or end inside its intervals: a copy of the tree has that leaf anew.
//!
//! A leaf that has no room for more intervals becomes two, as long as the tree then has few more leaves than it needs. Otherwise the tree
//! is replanted, which fills its leaves and joins equal neighbours.

use crate::net::{Key, Routes};
use crate::simd::{LEAF_KEYS, LINE_UNITS, LINE_WORDS};

use super::build::PADDING;
use super::ground::{Ground, LEVELS};
use super::in_leaf::below;
use super::layout::{BELOW, LEAF_INTERVALS, LEAVES, cut, window};
use super::plan::Intervals;
use super::reach::Path;
use super::storage::{BLOCK, PlantError, TreeStorage, put_halves};
use super::update::{Editor, sweep};

/// Leaves that a tree may have beyond those that its intervals need.
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
                    // It may reach past the slots of this copy, or have no key.
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

impl<K: Key> Editor<K> {
    /// Prepares a copy of the tree that a span leads to, with the span's intervals in one of its leaves. Returns the last upper part of
    /// the slots around it that share the tree; `None` if more has to change.
    pub(super) fn in_tree(
        &mut self,
        span: usize,
        path: &Path,
        after: &dyn Routes<K>,
    ) -> Result<Option<u64>, PlantError> {
        let (slots, entry) = (LEVELS - 1, path.words[LEVELS - 2]);
        let [first, last] = self.spans[span];
        let region = Ground::<K>::region(first, path.depth(slots - 1));
        let places = Ground::<K>::places(slots, entry, region);
        let bits = cut::<K>().upper - path.slot_depth();
        let run = self.ground.run(path.places[slots], places);
        let start = |slot: u32| region[0] + (u64::from(slot - places[0]) << bits);
        let whole = [start(run[0]), start(run[1] + 1) - 1];
        let is_before = |span: &[u64; 2]| span[1] < whole[0];
        // The copy would need the other spans too, and some of them may be stored in leaves already.
        if last > whole[1]
            || !self.spans[..span].last().is_none_or(is_before)
            || self.spans.get(span + 1).is_some_and(|next| next[0] <= whole[1])
        {
            return Ok(None);
        }
        let Self { ground, new, blocks, .. } = self;
        new.clear();
        blocks.clear();
        sweep(after, Self::prefix([first, last]), new, blocks, &mut ground.budget)?;
        if new.values.len() > LEAF_INTERVALS
            || new.values.iter().any(|&value| value >= BLOCK.min(BELOW.into()))
        {
            return Ok(None);
        }
        let tree = path.words[slots] / LINE_UNITS;
        let mut node = ground.line(tree);
        let leaf = below(&node, window(first));
        if below(&node, window(last)) != leaf {
            return Ok(None);
        }
        let count = 1 + node.iter().take_while(|&&key| key != PADDING).count();
        let mut intervals = 0;
        for at in 0..count as u32 {
            let line = ground.line(tree + 1 + at);
            // Objects belong to one tree, so a tree with objects is not copied.
            if ground.objects(&line).is_some() {
                return Ok(None);
            }
            intervals += 1 + line[..LEAF_KEYS].iter().take_while(|&&key| key != PADDING).count();
        }
        let upper = |window: u32| first >> 32 << 32 | u64::from(window);
        let line = ground.line(tree + 1 + leaf as u32);
        let mut old = LeafIntervals { all: [(None, 0); MOST], count: 0 };
        let end = node.get(leaf).copied().filter(|&key| key != PADDING);
        for at in 0..LEAF_INTERVALS {
            let key = line[..LEAF_KEYS].get(at).copied().filter(|&key| key != PADDING);
            old.push(key.or(end).map(upper), line[LEAF_KEYS + at / 2] >> (at % 2 * 16) & 0xffff);
            if key.is_none() {
                break;
            }
        }
        let before = leaf.checked_sub(1).map(|before| upper(node[before]));
        let mut all = LeafIntervals::replaced(&old, before, whole, [first, last], new);
        if all.count > LEAF_INTERVALS {
            all.join();
        }
        let intervals = intervals + all.count - old.count;
        let mut half = all.count;
        if all.count > LEAF_INTERVALS {
            half = all.count.div_ceil(2);
            if half > LEAF_INTERVALS
                || count == LEAVES
                || count + 1 > intervals.div_ceil(LEAF_INTERVALS) + SPARE
            {
                return Ok(None);
            }
            let (Some(end), _) = all.all[half - 1] else { return Ok(None) };
            node.copy_within(leaf..LINE_WORDS - 1, leaf + 1);
            node[leaf] = window(end);
        }
        let mark = ground.mark();
        let parts = [&all.all[..half], &all.all[half..all.count]];
        let leaves = count + usize::from(!parts[1].is_empty());
        let copy = ground.lines(1 + leaves as u32)?;
        ground.write_line(copy, &node);
        let mut to = copy + 1;
        for at in 0..count {
            if at == leaf {
                for part in parts.into_iter().filter(|part| !part.is_empty()) {
                    ground.write_line(to, &LeafIntervals::line(part));
                    to += 1;
                }
            } else {
                ground.write_line(to, &ground.line(tree + 1 + at as u32));
                to += 1;
            }
        }
        for slot in run[0]..=run[1] {
            ground.store(slot, copy * LINE_UNITS, true)?;
        }
        ground.budget.push(&mut self.marks, (whole[0], mark))?;
        Ok(Some(whole[1]))
    }
}
