//! Builds groups from slots.

use core::marker::PhantomData;

use crate::fib::BuildError;
use crate::fib::parts::overflow::{self, Area, Level, SlotWindows, holds};
use crate::memory::{Budget, Buffer, Limits, OutOfMemory};
use crate::net::{Ipv4Key, Routes};

use super::NAME;
use super::layout::{Dir17Sparse, Entry, GROUP_BITS, PADDING, groups};
use super::unit::{MOST, UnitBytes};

impl<K: Ipv4Key> Dir17Sparse<K> {
    /// Builds the table of the routes.
    ///
    /// # Errors
    /// When memory runs out, and when the overflow needs more than 2^26 words.
    pub(crate) fn build(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, BuildError> {
        const { assert!(K::BITS <= 32, "keys fill lanes of 32 bits") };
        let memory = |error| BuildError::memory(NAME, error);
        let width = overflow::width_for(routes);
        let mut budget = Budget::new(limits);
        let mut tables = Tables::new(Self::WINDOWS, width, &mut budget).map_err(memory)?;
        let below = overflow::sweep(routes, Self::WINDOWS, &mut tables, &mut budget).map_err(memory)?;
        let words = tables.finish(&mut budget).map_err(memory)?;
        let below = below.finish(NAME, &mut budget)?;
        Ok(Self { width, words: words.into(), below: below.into(), keys: PhantomData })
    }
}

/// Entries of a group.
const GROUP: usize = 1 << GROUP_BITS;

/// The content of an entry.
#[expect(
    clippy::large_enum_variant,
    reason = "32 of them are open at a time, and a box would be memory that no limit counts"
)]
#[derive(Debug, PartialEq, Eq)]
enum Content {
    /// A next hop.
    Value(u32),
    Unit(UnitBytes),
}

/// The tables under construction.
pub(super) struct Tables {
    width: u32,
    /// The word of each group that is complete.
    groups: Buffer<u64>,
    /// Bytes of the words in front of `bytes`.
    first: usize,
    bytes: Buffer<u8>,
    /// The open group: its entries, and how many values of the leading bits they are for.
    open: Vec<Content>,
    filled: u32,
    /// A bit for each of these values that has another entry than the one before.
    changes: u32,
    /// The entries of a group, and its units.
    group: Buffer<u8>,
    /// Where the entry of a group with one next hop is, by next hop.
    alone: Vec<(u32, u32)>,
}

impl Tables {
    pub(super) fn new(windows: SlotWindows, width: u32, budget: &mut Budget) -> Result<Self, OutOfMemory> {
        Ok(Self {
            width,
            groups: budget.buffer(groups(windows))?,
            first: size_of::<u64>() * groups(windows),
            bytes: Buffer::new(),
            open: budget.vec(GROUP)?,
            filled: 0,
            changes: 0,
            group: budget.buffer(GROUP * (Entry::BYTES + MOST))?,
            alone: Vec::new(),
        })
    }

    /// Appends an entry for the next value of the leading bits.
    fn append(&mut self, content: Content, budget: &mut Budget) -> Result<(), OutOfMemory> {
        if self.open.last() != Some(&content) {
            // The first entry is no change, so that an entry's number is the changes up to it.
            self.changes |= u32::from(self.filled > 0) << self.filled;
            self.open.push(content);
        }
        self.filled += 1;
        if self.filled as usize == GROUP { self.close(budget) } else { Ok(()) }
    }

    /// Ends the open group.
    fn close(&mut self, budget: &mut Budget) -> Result<(), OutOfMemory> {
        let changes = core::mem::take(&mut self.changes);
        self.filled = 0;
        let end = (self.first + self.bytes.len()) as u32;
        let base = match self.open[..] {
            [Content::Value(word)] => match self.alone.binary_search_by_key(&word, |&(word, _)| word) {
                Ok(at) => self.alone[at].1,
                Err(at) => {
                    budget.reserve(&mut self.alone, 1)?;
                    self.alone.insert(at, (word, end));
                    end
                }
            },
            _ => end,
        };
        self.groups.push(u64::from(changes) | u64::from(base) << 32);
        if base < end {
            self.open.clear();
        }
        let (open, group) = (&self.open, &mut self.group);
        let entries = Entry::BYTES * open.len();
        group.truncate(0);
        group.resize(entries, 0);
        // Units may be in any order. So each follows the unit whose end shares most bytes with its beginning.
        let mut left: [usize; GROUP] = core::array::from_fn(|number| number);
        let mut count = open.len();
        while let Some(next) = next(open, &left[..count], &group[entries..]) {
            let number = left[next];
            left.copy_within(next + 1..count, next);
            count -= 1;
            let entry = match &open[number] {
                Content::Value(word) => Entry::new(0, *word as usize),
                Content::Unit(unit) => {
                    let from = group.len() - unit.overlap(&group[entries..]);
                    group.extend_from_slice(&unit.bytes()[group.len() - from..]);
                    Entry::new(unit.mask, from + unit.before)
                }
            };
            group[Entry::BYTES * number..][..Entry::BYTES].copy_from_slice(&entry.0.to_le_bytes());
        }
        budget.reserve(&mut self.bytes, group.len())?;
        self.bytes.extend_from_slice(group);
        self.open.clear();
        Ok(())
    }

    /// Returns the words: groups, bytes and padding.
    pub(super) fn finish(mut self, budget: &mut Budget) -> Result<Buffer<u64>, OutOfMemory> {
        if self.filled > 0 {
            self.close(budget)?;
        }
        budget.free(self.open);
        budget.free(self.group);
        budget.free(self.alone);
        let words = self.bytes.len().div_ceil(size_of::<u64>());
        let mut all = budget.buffer(self.groups.len() + words + PADDING)?;
        all.extend_from_slice(&self.groups);
        for bytes in self.bytes.chunks(size_of::<u64>()) {
            let mut word = [0; size_of::<u64>()];
            word[..bytes.len()].copy_from_slice(bytes);
            all.push(u64::from_le_bytes(word));
        }
        all.resize(self.groups.len() + words + PADDING, 0);
        budget.free(self.groups);
        budget.free(self.bytes);
        Ok(all)
    }
}

/// Returns which of the entries that are left comes next: a next hop, or the unit with most bytes in common with those before.
fn next(open: &[Content], left: &[usize], before: &[u8]) -> Option<usize> {
    let common = |number: usize| match &open[number] {
        Content::Value(_) => usize::MAX,
        Content::Unit(unit) => unit.overlap(before),
    };
    // The last of equal ones by this order is the first by number.
    (0..left.len()).rev().max_by_key(|&at| common(left[at]))
}

impl Level for Tables {
    fn holds(&self, word: u32) -> bool {
        holds(self.width, word)
    }

    fn holds_whole(&self, word: u32) -> bool {
        holds(self.width, word) && word < Entry::NEXT_HOPS
    }

    fn uniform(&mut self, entries: usize, word: u32, budget: &mut Budget) -> Result<(), OutOfMemory> {
        (0..entries).try_for_each(|_| self.append(Content::Value(word), budget))
    }

    fn chunk(
        &mut self,
        slots: &[u64],
        map: Option<u32>,
        _below: &mut Area,
        budget: &mut Budget,
    ) -> Result<(), OutOfMemory> {
        self.append(Content::Unit(UnitBytes::new(slots, map, self.width)), budget)
    }
}
