//! Changes while readers look: trees are replanted for the slots that share them, and tables are rebuilt if that is not enough.

use core::sync::atomic::Ordering;
use std::sync::Arc;

use crate::check::CheckError;
use crate::fib::in_place::{self, InPlace, Publication, RetiredUnit, StoredWords};
use crate::fib::parts::intervals::{self, Blocks, Leads};
use crate::fib::parts::ranges::Merge;
use crate::fib::parts::shadow::Shadow;
use crate::fib::parts::units::{Unit, Units};
use crate::fib::{BuildError, Fib};
use crate::memory::{Budget, Limits, Memory, OutOfMemory, Shared};
use crate::net::{Change, Ipv6Key, Key, Prefix, Routes};

use super::NAME;
use super::build::{Planting, Region, To, value};
use super::ground::{AHEAD, Ground, LEVELS, LINES, OBJECTS, TABLES};
use super::layout::{DirBtree, TREE_INTERVALS, cut, head, numbers};
use super::plan::{Intervals, NONE, Plan};
use super::prepared::Savepoint;
use super::reach::Path;
use super::storage::{BLOCK, PlantError};

/// Tables of more levels are made only if they save this many words.
const SPARED_WORDS: u64 = 64;

/// The writer of a table.
pub(super) struct Editor<K> {
    table: Arc<DirBtree<K>>,
    pub(super) ground: Ground<K>,
    /// The first and the last upper part of each change, ascending.
    pub(super) spans: Vec<[u64; 2]>,
    /// The upper parts from which on something was prepared, ascending, each with the position before it.
    pub(super) marks: Vec<(u64, Savepoint)>,
    /// Intervals of trees: the old ones, and the new ones.
    pub(super) old: Intervals,
    pub(super) new: Intervals,
    pub(super) blocks: Blocks<u128>,
    pub(super) planted: Vec<Planted>,
    /// Changes for which words and leaves were fetched.
    pub(super) fetched: usize,
    /// The upper part from which on trees are examined for moves.
    cursor: u64,
    /// Copies of the tables, made when a change is prepared.
    shadow: Shadow,
    huge_pages: bool,
}

/// A tree to plant: its slots and its intervals.
#[derive(Debug, Clone, Copy)]
pub(super) struct Planted {
    pub(super) slots: [u32; 2],
    pub(super) first: usize,
    pub(super) last: usize,
}

impl<K: Ipv6Key> Editor<K> {
    /// Builds the tables and trees of the routes, with room to grow.
    ///
    /// # Errors
    /// As for [`DirBtree::build`].
    pub(super) fn build(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, BuildError> {
        Self::plant(routes, limits).map_err(|refused| match refused {
            PlantError::Memory(error) => BuildError::memory(NAME, error),
            PlantError::Limit(what, most) => BuildError::limit(NAME, what, most, most + 1),
        })
    }

    fn plant(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, PlantError> {
        let mut ground = Ground::new(Budget::new(limits), routes.len(), limits.huge_pages)?;
        let (mut all, mut blocks) = (Intervals::default(), Blocks::default());
        sweep(routes, Prefix::ALL, &mut all, &mut blocks, &mut ground.budget)?;
        let (mut plan, root) = Plan::new(&all, cut::<K>(), TREE_INTERVALS, &mut ground.budget)?;
        let first_bits = plan.first_bits(&all, root, &mut ground.budget)?;
        ground.first_shift = 32 - first_bits;
        let mut planting = Planting::<K, _>::new(&all, &blocks, &mut plan, &mut ground);
        planting.first(first_bits, root)?;
        let open = planting.open;
        plan.free(&mut ground.budget);
        ground.budget.free(open.words);
        ground.budget.free(all.starts);
        ground.budget.free(all.values);
        blocks.free(&mut ground.budget);
        // A build replaces nothing, so no unit is retired.
        ground.done(&mut Vec::new());
        ground.free_lists();
        let (old, new) = Default::default();
        let (spans, marks, planted) = Default::default();
        let huge_pages = limits.huge_pages;
        Ok(Self {
            table: Arc::new(ground.reading()),
            ground,
            spans,
            marks,
            old,
            new,
            blocks,
            planted,
            fetched: 0,
            cursor: 0,
            shadow: Shadow::default(),
            huge_pages,
        })
    }
}

/// Adds the intervals of a prefix of upper parts.
pub(super) fn sweep<K: Key>(
    routes: &dyn Routes<K>,
    within: Prefix<K>,
    all: &mut Intervals,
    blocks: &mut Blocks<u128>,
    budget: &mut Budget,
) -> Result<(), OutOfMemory> {
    let bits = const { cut::<K>().upper as u8 };
    // Without a sweep, because most changed prefixes have one answer.
    if let Some(answer) = routes.sole_answer(within) {
        return push(all, intervals::upper(within.addr(), bits), value(Leads::To(answer)), budget);
    }
    let merge = Merge::EqualNeighbours;
    intervals::split_within(routes, within, merge, bits, blocks, budget, |start, leads, budget| {
        push(all, start, value(leads), budget)
    })
}

/// Adds an interval, unless it continues the last one.
pub(super) fn push(
    all: &mut Intervals,
    start: u64,
    value: u64,
    budget: &mut Budget,
) -> Result<(), OutOfMemory> {
    // Blocks are not compared, so equal ones do not merge.
    if value < BLOCK && all.values.last() == Some(&value) {
        return Ok(());
    }
    budget.push(&mut all.starts, start)?;
    budget.push(&mut all.values, value)
}

impl<K: Key> Editor<K> {
    /// Returns the prefix of these upper parts.
    pub(super) fn prefix([first, last]: [u64; 2]) -> Prefix<K> {
        let upper = cut::<K>().upper;
        let addr = K::from_bits(u128::from(first) << (u32::from(K::BITS) - upper));
        Prefix::of(addr, (upper - (last - first + 1).trailing_zeros()) as u8)
    }

    fn fill(&mut self, after: &dyn Routes<K>, shadow: bool) -> Result<(), PlantError> {
        let mut done = 0;
        for at in 0..self.spans.len() {
            self.fetch(at);
            let [first, last] = self.spans[at];
            // A rebuilt region may reach past its prefix, over later ones.
            done = done.max(first);
            while done <= last {
                let path = self.ground.path(done);
                let is_tree = path.alone.is_none();
                // Not for changes in a shadow, because readers of old entries would see the values that are stored in leaves.
                if !shadow && is_tree && done == first && self.in_leaf([first, last], &path, after)? {
                    done = last + 1;
                    break;
                }
                // The ways are tried from the cheapest on: values in the leaf, or in a copy of the tree, intervals of one leaf in a
                // copy, the tree, and then tables around it.
                let copied =
                    if shadow && is_tree && done == first { self.in_copy(at, &path, after)? } else { None };
                let copied = match copied {
                    None if is_tree && done == first => self.in_tree(at, &path, after)?,
                    copied => copied,
                };
                let replanted = match copied {
                    None if is_tree => self.replant(done, &path, after)?,
                    copied => copied,
                };
                done = match replanted {
                    Some(last) => last,
                    None => self.rebuild(done, &path, after)?,
                } + 1;
            }
        }
        // Of other changes nothing is fetched yet.
        self.fetched = 0;
        Ok(self.ground.seal()?)
    }

    /// Prepares new tables for the smallest region around an upper part that is worth new tables. Returns its last upper part.
    fn rebuild(&mut self, upper: u64, path: &Path, after: &dyn Routes<K>) -> Result<u64, PlantError> {
        let mut plan = Plan::of(cut::<K>(), TREE_INTERVALS);
        let result = self.rebuild_by(&mut plan, upper, path, after);
        // On an error too, because the budget counts the plan's lists.
        plan.free(&mut self.ground.budget);
        result
    }

    fn rebuild_by(
        &mut self,
        plan: &mut Plan,
        upper: u64,
        path: &Path,
        after: &dyn Routes<K>,
    ) -> Result<u64, PlantError> {
        // The lowest level whose entries lead to tables.
        let mut level = path.alone.unwrap_or(LEVELS - 2);
        loop {
            let depth = path.depth(level);
            let region = Ground::<K>::region(upper, depth);
            // Regions within this one that were prepared before are given up, because the new tables replace theirs.
            while let Some(&(_, mark)) = self.marks.last().filter(|mark| mark.0 >= region[0]) {
                self.ground.back_to(mark);
                self.marks.pop();
            }
            self.intervals(region, after)?;
            let last = self.new.starts.len() - 1;
            let budget = &mut self.ground.budget;
            let crowded = plan.region(&self.new, region[0], depth, [0, last], budget)?;
            if crowded != NONE && level > 0 {
                let [slots, sub] = plan.words(crowded);
                let [words, fewer] = if level == 2 {
                    [slots, sub]
                } else {
                    [sub, plan.cut_mid(crowded, depth, budget)?.words]
                };
                // With one more level of tables the region would take less than half the words, so more of the table is rebuilt now.
                if words > 2 * fewer + SPARED_WORDS {
                    level -= 1;
                    continue;
                }
            }
            let mark = self.ground.mark();
            let to = [To::Mid, To::Sub, To::Slots][level];
            let region_of = Region { upper: region[0], depth, first: 0, last, crowded };
            let mut planting = Planting::<K, _>::new(&self.new, &self.blocks, plan, &mut self.ground);
            let entry = planting.entry(region_of, to).and_then(|entry| planting.close().map(|()| entry));
            // On an error too, because the budget counts the words.
            let open = planting.open;
            self.ground.budget.free(open.words);
            let entry = entry?;
            self.ground.give_up(level + 1, path.words[level], region)?;
            let places = match level {
                0 => region.map(|upper| head::<K>(upper) >> self.ground.first_shift),
                _ => Ground::<K>::places(level, path.words[level - 1], region),
            };
            for place in places[0]..=places[1] {
                self.ground.store(place, entry, false)?;
            }
            self.ground.budget.push(&mut self.marks, (region[0], mark))?;
            return Ok(region[1]);
        }
    }

    /// Prepares the move of the next tree, if there is room before it.
    fn move_next(&mut self) -> Result<(), OutOfMemory> {
        let path = self.ground.path(self.cursor);
        let next = if let Some(level) = path.alone {
            Ground::<K>::region(self.cursor, path.depth(level))[1] + 1
        } else {
            let slots = path.slots::<K>(self.cursor);
            let run = self.ground.run(slots.slot, slots.places);
            let lines = &self.ground.units[LINES];
            self.ground.move_tree(run, lines.end() - lines.free_elements())?;
            slots.start(run[1] + 1)
        };
        self.cursor = if next >> cut::<K>().upper == 0 { next } else { 0 };
        Ok(())
    }

    /// Makes the intervals of a region from the routes.
    fn intervals(&mut self, region: [u64; 2], after: &dyn Routes<K>) -> Result<(), OutOfMemory> {
        let Self { ground, new, blocks, .. } = self;
        new.clear();
        blocks.clear();
        sweep(after, Self::prefix(region), new, blocks, &mut ground.budget)
    }

    fn spans(&mut self, prefixes: &[Prefix<K>]) -> Result<(), OutOfMemory> {
        let bits = const { cut::<K>().upper as u8 };
        self.spans.clear();
        self.marks.clear();
        self.ground.budget.reserve(&mut self.spans, prefixes.len())?;
        for prefix in prefixes {
            let span = [prefix.addr(), prefix.last()].map(|addr| intervals::upper(addr, bits));
            // Prefixes come in order, so one inside the last span is prepared with it.
            if self.spans.last().is_none_or(|last| last[1] < span[0]) {
                self.spans.push(span);
            }
        }
        Ok(())
    }
}

impl<K: Ipv6Key> InPlace<K> for Editor<K> {
    fn reading(&self) -> Arc<dyn Fib<K>> {
        self.table.clone()
    }

    fn name(&self) -> &'static str {
        NAME
    }

    fn fetch(&mut self, changes: &[Change<K>]) {
        self.fetched = 0;
        if changes.len() <= AHEAD {
            let bits = const { cut::<K>().upper as u8 };
            self.ground.fetch(changes.iter().map(|change| intervals::upper(change.prefix().addr(), bits)));
            self.fetched = changes.len();
        }
    }

    fn try_prepare(
        &mut self,
        prefixes: &[Prefix<K>],
        after: &dyn Routes<K>,
        shadow: bool,
    ) -> Result<(), in_place::PrepareError> {
        self.spans(prefixes)?;
        for units in &mut self.ground.units {
            units.absorb(&mut self.ground.budget)?;
        }
        self.fill(after, shadow).map_err(|refused| match refused {
            PlantError::Memory(error) => error.into(),
            PlantError::Limit(..) => in_place::PrepareError::Rebuild("more than there are places for"),
        })
    }

    fn is_loose(&self) -> bool {
        let lines = &self.ground.units[LINES];
        lines.free_elements() >= lines.end() / 8
    }

    fn move_some(&mut self, entries: usize) -> Result<(), OutOfMemory> {
        (0..entries).try_for_each(|_| self.move_next())?;
        self.ground.seal()
    }

    fn limit(&mut self, rooms: &in_place::Rooms) -> Result<(), in_place::RoomExceeded> {
        self.ground.limit(rooms)
    }

    fn retires(&self) -> usize {
        self.ground.retires()
    }

    fn abandon(&mut self) {
        self.shadow.keep();
        self.ground.edits.clear();
        self.ground.back_to(Savepoint::default());
    }

    fn publish(&mut self, publication: &mut dyn Publication) {
        self.note_ends();
        self.note_made();
        let listens = publication.listens();
        if listens {
            self.ground.emit_units(publication);
        }
        self.ground.store_edits(publication);
        let tables = &self.ground.arrays[TABLES];
        for store in &self.ground.stores {
            let at = store.at as usize;
            // Release, because readers follow the word to units that were just written.
            tables[at].store(store.word, Ordering::Release);
            self.shadow.note(at..at + 1);
            if listens {
                publication.stored(StoredWords::part(TABLES as u8, &tables[..], at..at + 1));
            }
        }
        self.ground.done(publication);
    }

    fn copy_entries(&mut self) -> Result<(), OutOfMemory> {
        self.note_made();
        let Ground { arrays, units, budget, .. } = &mut self.ground;
        let tables = &arrays[TABLES];
        let array = |_: &mut Budget| Shared::zeros(tables.len(), self.huge_pages);
        self.shadow.make(&tables[..units[TABLES].end() as usize], budget, array)
    }

    fn publish_shadow(&mut self, publication: &mut dyn Publication) {
        let Some(copy) = self.shadow.take() else { return self.publish(publication) };
        self.shadow.replaced(core::mem::replace(&mut self.ground.arrays[TABLES], copy));
        for store in &self.ground.stores {
            let at = store.at as usize;
            // Relaxed is enough, because no reader has the copy yet.
            self.ground.arrays[TABLES][at].store(store.word, Ordering::Relaxed);
            self.shadow.note(at..at + 1);
        }
        if publication.listens() {
            self.ground.emit_units(publication);
            self.ground.emit(TABLES, publication);
        }
        self.ground.store_edits(publication);
        self.table = Arc::new(self.ground.reading());
        self.ground.done(publication);
    }

    fn emit(&self, publication: &mut dyn Publication) {
        let [upper_bits, key_bits] = numbers::<K>();
        publication.structure(&[("first-bits", 32 - self.ground.first_shift), upper_bits, key_bits]);
        // The tables last, because their words lead to the lines, and those to the objects.
        for array in [OBJECTS, LINES, TABLES] {
            self.ground.emit(array, publication);
        }
    }

    fn free(&mut self, retired: RetiredUnit) {
        self.ground.units[retired.array as usize].give_expected(retired.unit);
    }

    fn bytes(&self, retired: RetiredUnit) -> usize {
        Ground::<K>::bytes(retired)
    }

    fn memory(&self) -> Memory {
        let lists = self.ground.units.iter().map(Units::memory);
        let kept = self.shadow.memory(self.ground.units[TABLES].end() as usize);
        lists.fold(self.table.memory() + self.ground.memory() + kept, |all, list| all + list)
    }

    fn check(&self, retired: &[RetiredUnit]) -> Result<(), CheckError> {
        let reached = self.table.walk()?;
        let mut used: [Vec<Unit>; 3] = reached.units;
        self.ground.check_uses(reached.uses, &mut used)?;
        for retired in retired {
            used[retired.array as usize].push(retired.unit);
        }
        self.ground.units.iter().zip(used).try_for_each(|(units, used)| units.check(used))
    }

    #[cfg(test)]
    fn mirrored(&self) -> in_place::Mirrored<K> {
        let first_bits = 32 - self.ground.first_shift;
        Box::new(move |arrays| {
            let array = |at: usize| {
                let line = [0; crate::simd::LINE_WORDS];
                Shared::filled(arrays[at].iter().copied().chain(line).map(|word| word as u32))
            };
            Box::new(DirBtree::<K> {
                first_bits,
                tables: array(TABLES),
                lines: array(LINES),
                objects: array(OBJECTS),
                table_units: Units::default(),
                line_units: Units::default(),
                object_units: Units::default(),
                ends: Some(Default::default()),
                keys: core::marker::PhantomData,
            })
        })
    }

    #[cfg(test)]
    fn free_words(&self) -> Vec<(u8, core::ops::Range<usize>)> {
        let all = self.ground.units.iter().zip(0..);
        all.flat_map(|(units, array)| {
            let free = units.free_units().into_iter();
            free.map(move |unit| (array, Ground::<K>::words(RetiredUnit { array, unit })))
        })
        .collect()
    }
}

impl<K: Key> Editor<K> {
    /// Notes the words of new tables, which an earlier array lacks.
    fn note_made(&mut self) {
        for &made in self.ground.made.iter().filter(|made| usize::from(made.array) == TABLES) {
            self.shadow.note(Ground::<K>::words(made));
        }
    }

    fn note_ends(&self) {
        if let Some(ends) = &self.table.ends {
            for (end, units) in ends.iter().zip(&self.ground.units) {
                end.store(units.end(), Ordering::Relaxed);
            }
        }
    }
}
