//! Routes to layout: intervals of the upper part, tables cut where they are crowded, and trees over what slots share.

use core::marker::PhantomData;

use crate::fib::BuildError;
use crate::fib::parts::intervals::{self, Blocks, Leads};
use crate::fib::parts::ranges::Merge;
use crate::fib::parts::units::{Unit, Units};
use crate::memory::{Budget, Buffer, Limits, OutOfMemory, Shared};
use crate::net::{Ipv6Key, Key, NextHop, Routes};
use crate::simd::{LEAF_KEYS, LINE_UNITS, LINE_WORDS};

use super::NAME;
use super::layout::{
    ALONE, BASE, BASE_BITS, BELOW, DirBtree, LEAF_INTERVALS, OBJECT_UNITS, OBJECT_WORDS, SHIFT, SHIFT_MOST,
    TREE_INTERVALS, cut, head, kind, window,
};
use super::object::{PART_UNITS, Record, push_pieces};
use super::plan::{Intervals, NONE, Plan};

/// Most words of tables: what gathers can index.
const TABLE_WORDS: u64 = 1 << 29;

/// Most lines of trees.
const LINES: u64 = 1 << 29;

/// A next hop's object is shared while it is among so many units, which are then within reach of a base.
const SHARED_UNITS: u32 = 1 << 13;

/// Why there is no table.
enum Refused {
    Memory(OutOfMemory),
    Limit(&'static str, u64),
}

impl From<OutOfMemory> for Refused {
    fn from(error: OutOfMemory) -> Self {
        Self::Memory(error)
    }
}

impl<K: Ipv6Key> DirBtree<K> {
    /// Builds the tables and trees of the routes.
    ///
    /// # Errors
    /// When memory runs out, and when the routes need more than 2^29 words of tables, 2^29 lines or 2^30 units of objects.
    pub fn build(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, BuildError> {
        let mut budget = Budget::new(limits);
        Self::plant(routes, &mut budget).map_err(|refused| match refused {
            Refused::Memory(error) => BuildError::memory(NAME, error),
            Refused::Limit(what, most) => BuildError::limit(NAME, what, most, most + 1),
        })
    }

    fn plant(routes: &dyn Routes<K>, budget: &mut Budget) -> Result<Self, Refused> {
        let mut all = Intervals::default();
        let bits = cut::<K>().upper as u8;
        let mut blocks =
            intervals::split(routes, Merge::EqualNeighbours, bits, budget, |start, leads, budget| {
                budget.push(&mut all.starts, start)?;
                budget.push(
                    &mut all.values,
                    match leads {
                        Leads::To(next_hop) => NextHop::word(next_hop).into(),
                        Leads::Block(block) => BLOCK | u64::from(block),
                    },
                )
            })?;
        let (mut plan, root) = Plan::new(&all, cut::<K>(), budget)?;
        let first_bits = plan.first_bits(&all, root, budget)?;
        let mut planting = Planting::<K>::new(&all, &blocks, plan, budget);
        planting.first(first_bits, root)?;
        let Planting { plan, tables, lines, objects, table_units, line_units, object_units, open, .. } =
            planting;
        plan.free(budget);
        budget.free(open.words);
        blocks.free(budget);
        budget.free(all.starts);
        budget.free(all.values);
        let [tables, lines, objects] = [tables, lines, objects].map(|mut words| {
            budget.shrink(&mut words);
            Shared::from(words)
        });
        let keys = PhantomData;
        Ok(Self { first_bits, tables, lines, objects, table_units, line_units, object_units, keys })
    }
}

/// In a value that is not encoded yet: set for a block, of which the lower bits are the number.
const BLOCK: u64 = 1 << 32;

/// Upper parts with the same leading bits.
#[derive(Debug, Clone, Copy)]
struct Region {
    /// The first of them.
    upper: u64,
    /// Number of those bits.
    depth: u32,
    /// The intervals that it meets, the last one included.
    first: usize,
    last: usize,
    /// Its number among the crowded ones.
    crowded: u32,
}

/// What the words of a table lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum To {
    /// Tables that are indexed by heads.
    Mid,
    /// Tables that are indexed by windows.
    Sub,
    /// Tables of slots.
    Slots,
}

/// Slots that share a tree, as long as their intervals fit one.
#[derive(Default)]
struct Open {
    words: Vec<u32>,
    /// The bits before the window and its highest one, which all their upper parts have.
    before: u64,
    first: usize,
    last: usize,
}

/// Entries that lead to one value whatever the window.
#[derive(Debug, Clone, Copy)]
struct Alone {
    value: u64,
    sub: u32,
    mid: Option<u32>,
}

struct Planting<'a, K> {
    intervals: &'a Intervals,
    blocks: &'a Blocks<u128>,
    plan: Plan,
    budget: &'a mut Budget,
    tables: Buffer<u32>,
    lines: Buffer<u32>,
    objects: Buffer<u32>,
    table_units: Units,
    line_units: Units,
    object_units: Units,
    open: Open,
    /// By hash of the value.
    alone: [Option<Alone>; CACHED],
    /// Objects of next hops, by hash of the next hop.
    wide: [Option<(u32, u32)>; CACHED],
    keys: PhantomData<fn(K)>,
}

/// Values whose entries or objects are remembered.
const CACHED: usize = 1 << 6;

pub(super) fn hash(value: u64) -> usize {
    (value as u32).wrapping_mul(0x9e37_79b1) as usize >> 26
}

impl<'a, K: Key> Planting<'a, K> {
    fn new(intervals: &'a Intervals, blocks: &'a Blocks<u128>, plan: Plan, budget: &'a mut Budget) -> Self {
        Self {
            intervals,
            blocks,
            plan,
            budget,
            tables: Buffer::new(),
            lines: Buffer::new(),
            objects: Buffer::new(),
            table_units: Units::default(),
            line_units: Units::default(),
            object_units: Units::default(),
            open: Open::default(),
            alone: [None; CACHED],
            wide: [None; CACHED],
            keys: PhantomData,
        }
    }

    /// Makes the first table, and with it everything else.
    fn first(&mut self, bits: u32, crowded: u32) -> Result<(), Refused> {
        let last = self.intervals.starts.len() - 1;
        let all = Region { upper: 0, depth: 0, first: 0, last, crowded };
        let place = self.append_table(1 << bits)?;
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

    /// Writes the 2^`bits` entries of a region, whose words begin at `place`. Neighbours that lead to the same have one
    /// entry, with a shift that does not tell them apart.
    fn spread(&mut self, place: u32, region: Region, bits: u32, to: To) -> Result<(), Refused> {
        let alone = region.first == region.last && to != To::Slots;
        let one_tree = region.crowded == NONE && region.depth >= cut::<K>().before;
        if bits > 0 && !alone && !one_tree {
            let [left, right] = self.halves(region);
            self.spread(place, left, bits - 1, to)?;
            return self.spread(place + (1 << (bits - 1)), right, bits - 1, to);
        }
        let entry = match to {
            _ if alone => self.alone(region.first, to)?,
            To::Mid => self.mid(region)?,
            To::Sub => self.sub(region)?,
            To::Slots => self.slots(region)?,
        };
        self.tables[place as usize..][..1 << bits].fill(entry);
        Ok(())
    }

    fn mid(&mut self, region: Region) -> Result<u32, Refused> {
        let bits = if region.crowded == NONE {
            cut::<K>().before.saturating_sub(region.depth)
        } else {
            self.plan.cut_mid(region.crowded, region.depth, self.budget)?.bits
        };
        let bits = bits.max((32 - region.depth).saturating_sub(SHIFT_MOST));
        let (place, entry) = self.table(head::<K>(region.upper), 32 - region.depth - bits, bits)?;
        self.spread(place, region, bits, To::Sub)?;
        Ok(entry)
    }

    fn sub(&mut self, region: Region) -> Result<u32, Refused> {
        let bits = if region.crowded == NONE { 0 } else { self.plan.sub(region.crowded) };
        let (place, entry, bits) = self.by_window(region, bits)?;
        self.spread(place, region, bits, To::Slots)?;
        Ok(entry)
    }

    fn slots(&mut self, region: Region) -> Result<u32, Refused> {
        let bits = if region.crowded == NONE { 0 } else { self.plan.slots(region.crowded) };
        let (place, entry, bits) = self.by_window(region, bits)?;
        self.spread_slots(place, region, bits)?;
        Ok(entry)
    }

    /// Makes a table of a region that windows index. Returns its place, its entry and its bits.
    fn by_window(&mut self, region: Region, bits: u32) -> Result<(u32, u32, u32), Refused> {
        let bits = bits.max((cut::<K>().upper - region.depth).saturating_sub(SHIFT_MOST));
        let shift = cut::<K>().upper - region.depth - bits;
        let (place, entry) = self.table(window(region.upper), shift, bits)?;
        Ok((place, entry, bits))
    }

    /// Writes the 2^`bits` slots of a region.
    fn spread_slots(&mut self, place: u32, region: Region, bits: u32) -> Result<(), Refused> {
        // As signed numbers, windows ascend within each half of them.
        let halves = cut::<K>().upper - region.depth > 31;
        if region.crowded == NONE && !halves {
            return self.slot(place, region, bits);
        }
        let [left, right] = self.halves(region);
        self.spread_slots(place, left, bits - 1)?;
        self.spread_slots(place + (1 << (bits - 1)), right, bits - 1)
    }

    /// Adds 2^`bits` slots of a region, to the open tree where that has room for the intervals.
    fn slot(&mut self, place: u32, region: Region, bits: u32) -> Result<(), Refused> {
        let Region { upper, first, last, .. } = region;
        let open = &self.open;
        let fits = open.before == upper >> 31 && last + 1 - open.first <= TREE_INTERVALS;
        if open.words.is_empty() || !fits {
            self.close()?;
            (self.open.before, self.open.first) = (upper >> 31, first);
        }
        self.open.last = last;
        for word in place..place + (1 << bits) {
            self.budget.push(&mut self.open.words, word)?;
        }
        Ok(())
    }

    /// Plants the tree of the open slots.
    fn close(&mut self) -> Result<(), Refused> {
        if self.open.words.is_empty() {
            return Ok(());
        }
        let tree = self.tree(self.open.first, self.open.last)?;
        for &word in &self.open.words {
            self.tables[word as usize] = tree;
        }
        self.open.words.clear();
        Ok(())
    }

    /// Returns the entry that leads to one interval whatever the window, by tables of two equal words.
    fn alone(&mut self, interval: usize, to: To) -> Result<u32, Refused> {
        let value = self.intervals.values[interval];
        let known = self.alone[hash(value)].filter(|alone| alone.value == value);
        let mut alone = match known {
            Some(alone) => alone,
            None => {
                let tree = self.tree(interval, interval)?;
                let slots = self.equal_words(tree)?;
                Alone { value, sub: self.equal_words(slots)?, mid: None }
            }
        };
        if to == To::Mid && alone.mid.is_none() {
            alone.mid = Some(self.equal_words(alone.sub)?);
        }
        self.alone[hash(value)] = Some(alone);
        Ok(alone.mid.filter(|_| to == To::Mid).unwrap_or(alone.sub))
    }

    fn equal_words(&mut self, word: u32) -> Result<u32, Refused> {
        let (place, entry) = self.table(0, ALONE, 1)?;
        self.tables[place as usize..][..2].fill(word);
        Ok(entry)
    }

    /// Makes a table of 2^`bits` words for heads or windows from `first` on. Returns its place, and the entry that leads to
    /// it: what must be added to a shifted window, which is the table's place less that of the first window. As the lowest
    /// bits of an entry are the shift, they say where a table may be.
    fn table(&mut self, first: u32, shift: u32, bits: u32) -> Result<(u32, u32), Refused> {
        let first = first >> shift;
        let remainder = shift.wrapping_add(first) & SHIFT;
        let place = match self.table_units.take_at(1 << bits, remainder, SHIFT + 1) {
            Some(place) => place,
            None => {
                for _ in 0..remainder.wrapping_sub(self.table_units.end()) & SHIFT {
                    let place = self.append_table(1)?;
                    self.table_units.give(Unit { place, size: 1 }, self.budget)?;
                }
                self.append_table(1 << bits)?
            }
        };
        Ok((place, place.wrapping_sub(first)))
    }

    fn append_table(&mut self, words: u32) -> Result<u32, Refused> {
        append(
            &mut self.table_units,
            &mut self.tables,
            [words, 1],
            0,
            ("words of tables", TABLE_WORDS),
            self.budget,
        )
    }

    fn append_object(&mut self, units: u32) -> Result<u32, Refused> {
        let size = [units, OBJECT_WORDS as u32];
        append(
            &mut self.object_units,
            &mut self.objects,
            size,
            0,
            ("units of objects", OBJECT_UNITS),
            self.budget,
        )
    }

    /// Plants a tree over these intervals, and returns what a slot has to lead to it.
    fn tree(&mut self, first: usize, last: usize) -> Result<u32, Refused> {
        let leaves = (last - first) / LEAF_INTERVALS + 1;
        let size = [1 + leaves as u32, LINE_WORDS as u32];
        let limit = ("lines", LINES);
        // Padding: no window is above it.
        let padding = i32::MAX as u32;
        let tree = append(&mut self.line_units, &mut self.lines, size, padding, limit, self.budget)?;
        for leaf in 0..leaves {
            let begin = first + leaf * LEAF_INTERVALS;
            let end = last.min(begin + LEAF_KEYS);
            if end < last {
                self.lines[tree as usize * LINE_WORDS + leaf] = self.end(end);
            }
            self.leaf(tree as usize + 1 + leaf, begin, end)?;
        }
        Ok(tree * LINE_UNITS)
    }

    /// Returns the last window of an interval as a key.
    fn end(&self, interval: usize) -> u32 {
        window(self.intervals.starts[interval + 1] - 1)
    }

    /// Fills a leaf.
    fn leaf(&mut self, line: usize, first: usize, last: usize) -> Result<(), Refused> {
        let start = line * LINE_WORDS;
        let mut values = [0u32; 2 * (LINE_WORDS - LEAF_KEYS)];
        let mut base = None;
        for interval in first..=last {
            if interval < last {
                self.lines[start + interval - first] = self.end(interval);
            }
            values[interval - first] = self.encode(self.intervals.values[interval], &mut base)?;
        }
        // The last value fills up.
        let (used, rest) = values.split_at_mut(last - first + 1);
        rest.fill(used[last - first]);
        values[BASE - 2 * LEAF_KEYS] = base.unwrap_or(0);
        for (word, pair) in self.lines[start + LEAF_KEYS..][..LINE_WORDS - LEAF_KEYS]
            .iter_mut()
            .zip(values.as_chunks::<2>().0)
        {
            *word = pair[0] | pair[1] << 16;
        }
        Ok(())
    }

    /// Returns a value as leaves store it, and makes its object if it needs one. `base` is that of the leaf.
    fn encode(&mut self, value: u64, base: &mut Option<u32>) -> Result<u32, Refused> {
        if value < BELOW.into() {
            return Ok(value as u32);
        }
        let number = value as u32;
        let unit =
            if value & BLOCK != 0 { self.block(number as usize)? } else { self.next_hop(number, *base)? };
        let base = *base.get_or_insert(unit >> BASE_BITS);
        Ok(BELOW | (unit - (base << BASE_BITS)))
    }

    /// Returns an object for a next hop: one that is near, or a new one.
    fn next_hop(&mut self, next_hop: u32, base: Option<u32>) -> Result<u32, Refused> {
        let near = self
            .object_units
            .end()
            .saturating_sub(SHARED_UNITS)
            .max(base.map_or(0, |base| base << BASE_BITS));
        let known =
            self.wide[hash(next_hop.into())].filter(|&(known, unit)| known == next_hop && unit >= near);
        if let Some((_, unit)) = known {
            return Ok(unit);
        }
        let unit = self.object(Record::whole(next_hop).words())?;
        self.wide[hash(next_hop.into())] = Some((next_hop, unit));
        Ok(unit)
    }

    fn block(&mut self, block: usize) -> Result<u32, Refused> {
        if let Some(record) = Record::of(self.blocks, block) {
            return self.object(record.words());
        }
        let count = self.blocks.pieces(block).len() as u32;
        let unit = self.object(&[kind::BLOCK | count << kind::BITS, 0])?;
        let pieces = self.append_object(PART_UNITS as u32 * count)?;
        self.objects.truncate(pieces as usize * OBJECT_WORDS);
        push_pieces(self.blocks, block, &mut self.objects, self.budget)?;
        self.objects[unit as usize * OBJECT_WORDS + 1] = pieces;
        Ok(unit)
    }

    /// Appends an object of these words, and returns its first unit.
    fn object(&mut self, words: &[u32]) -> Result<u32, Refused> {
        let unit = self.append_object((words.len() / OBJECT_WORDS) as u32)?;
        self.objects[unit as usize * OBJECT_WORDS..].copy_from_slice(words);
        Ok(unit)
    }
}

/// Appends a unit of so many elements of so many words, and returns its first element.
fn append(
    units: &mut Units,
    words: &mut Buffer<u32>,
    [elements, words_each]: [u32; 2],
    fill: u32,
    (what, most): (&'static str, u64),
    budget: &mut Budget,
) -> Result<u32, Refused> {
    let place = units.append(elements).filter(|_| u64::from(units.end()) <= most);
    let place = place.ok_or(Refused::Limit(what, most))?;
    let additional = elements as usize * words_each as usize;
    budget.reserve(words, additional)?;
    words.resize(words.len() + additional, fill);
    Ok(place)
}
