//! Plans where tables are cut: finds the crowded regions of the address space, and the smallest tables over them.

use crate::memory::{Budget, Buffer, OutOfMemory};

use super::layout::Cut;

/// The intervals of the upper parts, ascending from 0 on.
#[derive(Default)]
pub(super) struct Intervals {
    pub(super) starts: Buffer<u64>,
    pub(super) values: Buffer<u64>,
}

impl Intervals {
    /// Removes all intervals.
    pub(super) fn clear(&mut self) {
        self.starts.truncate(0);
        self.values.truncate(0);
    }

    /// Returns the last interval with upper parts before `middle`, and the one of `middle`. Neither is before the interval
    /// `from`. `middle` must be in that interval or after it, but not its first upper part.
    pub(super) fn split(&self, from: usize, middle: u64) -> [usize; 2] {
        // The interval is mostly near, so the search doubles its steps and then halves them.
        let starts = &self.starts[from..];
        let mut step = 1;
        while step < starts.len() && starts[step] <= middle {
            step *= 2;
        }
        let known = step / 2;
        let among = &starts[known..starts.len().min(step)];
        let at = from + known + among.partition_point(|&start| start <= middle) - 1;
        [at - usize::from(self.starts[at] == middle), at]
    }
}

/// No crowded region.
pub(super) const NONE: u32 = u32::MAX;

/// Most leading bits that index the first table.
const FIRST_BITS_MAX: u32 = 14;

/// Most bits that index any other table.
const TABLE_BITS_MAX: u32 = 16;

/// The words of a table that would be too large, so that another cut is chosen. Sums of such numbers cannot overflow.
const TOO_MANY: u64 = 1 << 36;

/// A choice of a table's bits, and the words of the table and of those below it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TablePlan {
    pub(super) bits: u32,
    pub(super) words: u64,
}

/// A region of the upper parts that has more intervals than a tree holds.
#[derive(Debug, Clone, Copy)]
struct Crowded {
    /// The halves that are crowded too, or [`NONE`].
    halves: [u32; 2],
    /// Levels of crowded regions, from this one downwards.
    height: u32,
    /// The table of slots, cut until no slot is crowded, and the table before it.
    slots: TablePlan,
    sub: TablePlan,
}

/// All crowded regions.
pub(super) struct Plan {
    regions: Vec<Crowded>,
    cut: Cut,
    /// Most intervals of a tree.
    tree_intervals: usize,
    /// Regions of one depth, and of the next one.
    level: Vec<u32>,
    next: Vec<u32>,
}

impl Plan {
    /// Finds the crowded regions. Returns the plan and the region of all upper parts.
    pub(super) fn new(
        intervals: &Intervals,
        cut: Cut,
        tree_intervals: usize,
        budget: &mut Budget,
    ) -> Result<(Self, u32), OutOfMemory> {
        let mut plan = Self::of(cut, tree_intervals);
        let root = plan.region(intervals, 0, 0, [0, intervals.starts.len() - 1], budget)?;
        Ok((plan, root))
    }

    /// Returns a plan without regions.
    pub(super) fn of(cut: Cut, tree_intervals: usize) -> Self {
        Self { regions: Vec::new(), cut, tree_intervals, level: Vec::new(), next: Vec::new() }
    }

    /// Frees the memory.
    pub(super) fn free(self, budget: &mut Budget) {
        budget.free(self.regions);
        budget.free(self.level);
        budget.free(self.next);
    }

    /// Adds the region of `depth` leading bits from `upper` on, which has these intervals, if it is crowded.
    pub(super) fn region(
        &mut self,
        intervals: &Intervals,
        upper: u64,
        depth: u32,
        [first, last]: [usize; 2],
        budget: &mut Budget,
    ) -> Result<u32, OutOfMemory> {
        if last - first < self.tree_intervals {
            return Ok(NONE);
        }
        let middle = upper | 1 << (self.cut.upper - depth - 1);
        let [before, from] = intervals.split(first, middle);
        let left = self.region(intervals, upper, depth + 1, [first, before], budget)?;
        let right = self.region(intervals, middle, depth + 1, [from, last], budget)?;
        let at = self.regions.len() as u32;
        let height = |half: u32| self.regions.get(half as usize).map_or(0, |half| half.height);
        let height = 1 + height(left).max(height(right));
        let (slots, sub) = (TablePlan::default(), TablePlan::default());
        let region = Crowded { halves: [left, right], height, slots, sub };
        budget.push(&mut self.regions, region)?;
        // Above this depth, no table is indexed by windows.
        if depth >= self.cut.before {
            let words = if height > TABLE_BITS_MAX { TOO_MANY } else { 1 << height };
            self.regions[at as usize].slots = TablePlan { bits: height, words };
            self.regions[at as usize].sub = self.cut_sub(at, budget)?;
        }
        Ok(at)
    }

    /// Begins at one region.
    fn begin(&mut self, region: u32, budget: &mut Budget) -> Result<(), OutOfMemory> {
        self.level.clear();
        budget.push(&mut self.level, region)
    }

    /// Goes down one bit: replaces the regions by their crowded halves, and returns the number of the others.
    fn descend(&mut self, budget: &mut Budget) -> Result<u64, OutOfMemory> {
        let Self { regions, level, next, .. } = self;
        next.clear();
        let mut others = 0;
        for &region in &*level {
            for half in regions[region as usize].halves {
                if half == NONE {
                    others += 1;
                } else {
                    budget.push(next, half)?;
                }
            }
        }
        core::mem::swap(level, next);
        Ok(others)
    }

    /// Returns the sum of what `words` returns for the regions of the level.
    fn sum(&self, words: impl Fn(&Crowded) -> u64) -> u64 {
        self.level.iter().map(|&region| words(&self.regions[region as usize])).sum()
    }

    /// Cuts the table before the slots of a crowded region. A half that is not crowded takes one slot.
    fn cut_sub(&mut self, region: u32, budget: &mut Budget) -> Result<TablePlan, OutOfMemory> {
        // Without bits the table before the slots is one word.
        let mut best = TablePlan { bits: 0, words: 1 + self.regions[region as usize].slots.words };
        let mut others = 0;
        self.begin(region, budget)?;
        for bits in 1..=self.regions[region as usize].height.min(TABLE_BITS_MAX) {
            // The table alone would take as much as the best choice so far.
            if 1 << bits >= best.words {
                break;
            }
            others += self.descend(budget)?;
            let words = (1 << bits) + others + self.sum(|region| region.slots.words);
            if words < best.words {
                best = TablePlan { bits, words };
            }
        }
        Ok(best)
    }

    /// Cuts the second table of a crowded region of that depth.
    pub(super) fn cut_mid(
        &mut self,
        region: u32,
        depth: u32,
        budget: &mut Budget,
    ) -> Result<TablePlan, OutOfMemory> {
        let least = self.cut.before.saturating_sub(depth);
        let mut best = TablePlan { bits: 0, words: u64::MAX };
        let mut others = 0;
        self.begin(region, budget)?;
        for bits in 0..=TABLE_BITS_MAX.min(self.cut.upper - depth) {
            if bits > 0 {
                if 1 << bits >= best.words {
                    break;
                }
                // Such a half takes an entry and a slot at least.
                others += 2 * self.descend(budget)?;
            }
            if bits >= least {
                let words = (1 << bits) + others + self.sum(|region| region.sub.words);
                if words < best.words {
                    best = TablePlan { bits, words };
                }
            }
        }
        Ok(best)
    }

    /// Returns the number of leading bits of the first table for which all tables have the fewest words.
    pub(super) fn first_bits(
        &mut self,
        intervals: &Intervals,
        root: u32,
        budget: &mut Budget,
    ) -> Result<u32, OutOfMemory> {
        let mut regions = Vec::new();
        if root != NONE {
            budget.push(&mut regions, root)?;
        }
        let mut best = (u64::MAX, 0);
        for bits in 1..=FIRST_BITS_MAX.min(self.cut.upper) {
            // A copy, because `cut_mid` descends from a level of its own.
            self.level.clear();
            for &region in &regions {
                budget.push(&mut self.level, region)?;
            }
            self.descend(budget)?;
            regions.clear();
            for &region in &self.level {
                budget.push(&mut regions, region)?;
            }
            // Regions that have several intervals but are not crowded.
            let inside = self.cut.upper - bits;
            let mixed = |start: &u64| *start & ((1 << inside) - 1) != 0;
            let mut last = None;
            let mixed = intervals.starts.iter().filter(|start| mixed(start));
            let mixed = mixed.filter(|&start| last.replace(start >> inside) != Some(start >> inside)).count();
            let each = (1 << self.cut.before.saturating_sub(bits)) + 3;
            let mut words = (1 << bits) + (mixed - regions.len()) as u64 * each;
            for &region in &regions {
                words += self.cut_mid(region, bits, budget)?.words;
            }
            if words < best.0 {
                best = (words, bits);
            }
        }
        budget.free(regions);
        Ok(best.1)
    }

    /// Returns the halves of a region that is crowded.
    pub(super) fn halves(&self, region: u32) -> [u32; 2] {
        self.regions[region as usize].halves
    }

    /// Returns how the slots of a crowded region are cut.
    pub(super) fn slots(&self, region: u32) -> u32 {
        self.regions[region as usize].slots.bits
    }

    /// Returns the words of the slots of a crowded region, and the words of the slots and the table before them, if it is cut.
    pub(super) fn words(&self, region: u32) -> [u64; 2] {
        let region = &self.regions[region as usize];
        [region.slots.words, region.sub.words]
    }

    /// Returns how the table before the slots is cut.
    pub(super) fn sub(&self, region: u32) -> u32 {
        self.regions[region as usize].sub.bits
    }
}
