//! Changes while readers look: if only values change, they are stored in the lines in place. Other lines are rebuilt next to
//! those that readers see, and published by their entries.

use core::marker::PhantomData;
use core::ops::ControlFlow;
#[cfg(test)]
use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use crate::check::CheckError;
use crate::fib::in_place::{InPlace, PrepareError, Publication, RetiredUnit, RoomExceeded, Rooms};
use crate::fib::parts::arena::{Arena, ArrayLayout};
use crate::fib::parts::by_entry::{Meets, by_entry};
use crate::fib::parts::overflow::{PADDING, SlotFiller, SlotWindows, WORDS_MAX, holds, width_mask};
use crate::fib::parts::ranges::{self, Merge};
use crate::fib::parts::shadow::Shadow;
use crate::fib::parts::units::Unit;
use crate::fib::{BuildError, Fib};
use crate::memory::{Budget, Limits, Memory, OutOfMemory, Shared};
use crate::net::{Change, Ipv4Key, Key, NextHop, Prefix, Routes};
use crate::simd::fetch_at;

use super::layout::{Live, line_words};
use super::prepared::{BELOW, LINES, LineWords, Prepared, splat};
#[cfg(test)]
use super::prepared::{DIRECT, MAPS};
use super::{Dir18Lines, NAME};

/// The writer of a table.
pub(super) struct Editor<K> {
    table: Arc<Live<K>>,
    filling: SlotFiller,
    /// The budget of the filling.
    scratch: Budget,
    prepared: Prepared,
    /// Copies of the entries, to be published in place of the entries.
    shadow: Shadow,
    /// The next entry to examine for lines that could move.
    cursor: usize,
    /// Changes whose entries and lines were fetched.
    fetched: usize,
}

/// Prefixes whose lines are fetched ahead.
const AHEAD: usize = 128;

impl<K: Ipv4Key> Editor<K> {
    /// Builds the tables of the routes, with room to grow.
    ///
    /// # Errors
    /// As for [`Dir18Lines::build`].
    pub(super) fn build(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, BuildError> {
        let built = Dir18Lines::<K>::build(routes, limits)?;
        Self::of(&built, limits).map_err(|error| BuildError::memory(NAME, error))
    }

    fn of(built: &Dir18Lines<K>, limits: Limits) -> Result<Self, OutOfMemory> {
        let (windows, width, huge_pages) = (built.windows(), built.width, limits.huge_pages);
        let line_words = line_words(windows, width);
        let entries = built.direct.len();
        let mut budget = Budget::new(limits);
        let copy = |from: &[u32], room: usize| {
            let to: Shared<u32> = Shared::zeros(room, huge_pages)?;
            to.iter().zip(from).for_each(|(to, &word)| to.store(word, Ordering::Relaxed));
            Ok::<_, OutOfMemory>(to)
        };
        // For each entry one line, and a second one that readers may still be in.
        let most = 2 * entries as u32 + SPARE;
        let form = ArrayLayout { number: LINES, width: line_words, most, padding: PADDING, huge_pages };
        let words = &built.lines[..built.lines.len() - PADDING];
        budget.charge(4 * (words.len() + entries + built.below.len()))?;
        let mut lines = Arena::new(&copy(words, words.len())?, form)?;
        // Twice the most, because readers may still be in the words that are replaced. The product may exceed 32 bits.
        let most_below =
            (2 * entries).saturating_mul(below_most(windows)).min(WORDS_MAX as usize - PADDING) as u32;
        let form = ArrayLayout { number: BELOW, width: 1, most: most_below, padding: PADDING, huge_pages };
        let words = &built.below[..built.below.len() - PADDING];
        let mut below = Arena::new(&copy(words, words.len())?, form)?;
        let mut direct = copy(&built.direct, entries)?;
        let mut maps = copy(&built.maps, most as usize)?;
        let table = Live {
            width,
            direct: direct.another(),
            lines: lines.words.another(),
            maps: maps.another(),
            below: below.words.another(),
            used: [lines.units.end(), below.units.end()].map(AtomicU32::new),
            keys: PhantomData,
        };
        let shared_from = built.shared_from / (4 * line_words as u32);
        let prepared = Prepared::new((windows, width), direct, lines, maps, below, shared_from, budget)?;
        let (table, filling) = (Arc::new(table), SlotFiller::new(windows));
        Ok(Self {
            table,
            filling,
            scratch: Budget::new(limits),
            prepared,
            shadow: Shadow::default(),
            cursor: 0,
            fetched: 0,
        })
    }
}

/// Lines that there is room for in addition to those of entries.
const SPARE: u32 = 256;

/// Returns the most words below a line.
const fn below_most(windows: SlotWindows) -> usize {
    // Each slot has a record, wide chunks of a map, and a value for each address. The line has a map.
    windows.slots() * (2 + windows.rests().div_ceil(16) + windows.rests()) + windows.slots().div_ceil(16)
}

impl<K: Key> Editor<K> {
    /// Fetches entries and lines of some prefixes.
    fn fetch_some(&self, prefixes: impl Iterator<Item = Prefix<K>> + Clone) {
        let direct_bits = self.prepared.windows.direct_bits as u8;
        let entry = |prefix: Prefix<K>| prefix.addr().window(0, direct_bits) as usize;
        // In two passes, because the place of a line is known only when its entry has arrived.
        prefixes.clone().for_each(|prefix| fetch_at(&self.prepared.direct, entry(prefix)));
        prefixes.for_each(|prefix| self.prepared.fetch(entry(prefix)));
    }

    fn fill(
        &mut self,
        prefixes: &[Prefix<K>],
        after: &dyn Routes<K>,
        shadow: bool,
    ) -> Result<(), OutOfMemory> {
        // Not in a shadow, because readers of the old entries would see the values at once.
        self.prepared.stores_values = !shadow;
        self.prepared.made_deeper = 0;
        let direct_bits = self.prepared.windows.direct_bits as u8;
        let entry = |prefix: &Prefix<K>| prefix.addr().window(0, direct_bits) as usize;
        if core::mem::take(&mut self.fetched) < prefixes.len() {
            prefixes.chunks(AHEAD).for_each(|some| self.fetch_some(some.iter().copied()));
        }
        for meets in by_entry(prefixes, direct_bits) {
            match meets {
                Meets::Whole(prefix) => {
                    self.prepared.at = entry(&prefix);
                    self.filling.below.clear();
                    self.sweep(prefix, after)?;
                }
                Meets::Within(inside) => {
                    let at = entry(&inside[0]);
                    if self.slots(at, inside, after)? {
                        continue;
                    }
                    match self.values(at, inside, after) {
                        Some(words) => self.prepared.set_values(at, &words, true)?,
                        None => self.deeper(at, inside, after)?,
                    }
                }
            }
            // The table has to be rebuilt, so the rest of the change is not prepared.
            if self.prepared.refused.is_some() {
                return Ok(());
            }
        }
        self.prepared.finish()
    }

    /// Fills the addresses of a prefix from the routes.
    fn sweep(&mut self, within: Prefix<K>, after: &dyn Routes<K>) -> Result<(), OutOfMemory> {
        let Self { filling, scratch, prepared, .. } = self;
        filling.done = within.addr().to_bits() as u64;
        let mut word = 0;
        ranges::try_for_each(after, within, Merge::EqualNeighbours, |range| {
            filling.fill(range.start.to_bits() as u64, word, prepared, scratch)?;
            word = NextHop::word(range.next_hop);
            Ok(())
        })?;
        filling.fill(within.last().to_bits() as u64 + 1, word, prepared, scratch)
    }

    /// Prepares a change of one prefix inside an entry with one answer, as most are: in the slots of the prefix alone. Returns false
    /// if that is not enough.
    fn slots(&mut self, at: usize, inside: &[Prefix<K>], after: &dyn Routes<K>) -> Result<bool, OutOfMemory> {
        let SlotWindows { direct_bits, slot_bits, .. } = self.prepared.windows;
        let &[prefix] = inside else { return Ok(false) };
        if u32::from(prefix.len()) > direct_bits + slot_bits {
            return Ok(false);
        }
        let Some(answer) = after.sole_answer(prefix) else { return Ok(false) };
        let slot = |address: K| address.window(direct_bits as u8, slot_bits as u8) as usize;
        let slots = slot(prefix.addr())..slot(prefix.last()) + 1;
        self.prepared.set_slots(at, slots, NextHop::word(answer))
    }

    /// Returns the values of an entry after changes of prefixes inside it. Returns `None` if a slot that changes is deeper,
    /// before or after.
    fn values(&self, at: usize, inside: &[Prefix<K>], after: &dyn Routes<K>) -> Option<LineWords> {
        let Prepared { windows, width, .. } = self.prepared;
        let slot_len = (windows.direct_bits + windows.slot_bits) as u8;
        let line = self.prepared.line_of(at);
        let mut values = SlotValues { words: self.prepared.words(line), width };
        // Without a map no slot is deeper, which saves the search.
        let is_shallow = self.prepared.map(line) == 0;
        let slot = |address: K| address.window(windows.direct_bits as u8, windows.slot_bits as u8) as usize;
        let mut last: Option<Prefix<K>> = None;
        for &prefix in inside {
            if last.is_some_and(|last| last.covers(prefix)) {
                continue;
            }
            last = Some(prefix);
            let (first, end) = (slot(prefix.addr()), slot(prefix.last()) + 1);
            if prefix.len() > slot_len || !is_shallow && values.has_deeper(first, end) {
                return None;
            }
            let (mut done, mut word) = (first, 0);
            ranges::visit(after, prefix, Merge::EqualNeighbours, |range| {
                let to = slot(range.start);
                values.fill(done, to, word);
                (done, word) = (to, NextHop::word(range.next_hop));
                // A range that begins within a slot, or has a next hop that is too wide, makes a slot deeper.
                let rest = range.start.window(slot_len, K::BITS - slot_len);
                if rest == 0 && holds(width, word) {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            })
            .is_continue()
            .then_some(())?;
            values.fill(done, end, word);
        }
        Some(values.words)
    }

    /// Prepares changes of prefixes inside an entry with deeper slots.
    fn deeper(&mut self, at: usize, inside: &[Prefix<K>], after: &dyn Routes<K>) -> Result<(), OutOfMemory> {
        let SlotWindows { direct_bits, slot_bits, .. } = self.prepared.windows;
        let (direct_bits, slot_len) = (direct_bits as u8, (direct_bits + slot_bits) as u8);
        let slot = |address: K| address.window(direct_bits, slot_bits as u8);
        let changed = inside
            .iter()
            .map(|prefix| u64::MAX << slot(prefix.addr()) & u64::MAX >> (63 - slot(prefix.last())))
            .fold(0, |all, slots| all | slots);
        let line = self.prepared.line_of(at);
        let values = SlotValues { words: self.prepared.words(line), width: self.prepared.width };
        let map = self.prepared.map(line) as usize;
        self.filling.open(
            (0..self.prepared.windows.slots()).map(|slot| values.get(slot)),
            width_mask(values.width),
            (&self.prepared.below.words, map),
            |slot| changed >> slot & 1 == 0,
            &mut self.scratch,
        )?;
        self.prepared.at = at;
        let mut last: Option<Prefix<K>> = None;
        for prefix in inside {
            // Slots are filled whole, because a record holds all addresses of its slot.
            let within = Prefix::of(prefix.addr(), prefix.len().min(slot_len));
            if last.is_none_or(|last| !last.covers(within)) {
                self.sweep(within, after)?;
                last = Some(within);
            }
        }
        // If the last address ended the chunk, it is closed already and `at` has moved on.
        if self.prepared.at == at {
            self.filling.close(&mut self.prepared, &mut self.scratch)
        } else {
            Ok(())
        }
    }

    /// Returns the table's numbers of elements.
    fn used(&self) -> [u32; 2] {
        [self.prepared.lines.units.end(), self.prepared.below.units.end()]
    }
}

/// The values of the slots of a line.
struct SlotValues {
    words: LineWords,
    width: u32,
}

impl SlotValues {
    fn get(&self, slot: usize) -> u32 {
        let byte = slot << self.width;
        self.words[byte / 4] >> (8 * (byte % 4)) & width_mask(self.width)
    }

    fn has_deeper(&self, first: usize, end: usize) -> bool {
        (first..end).any(|slot| self.get(slot) == width_mask(self.width))
    }

    /// Sets slots to a value.
    fn fill(&mut self, first: usize, end: usize, value: u32) {
        let (mut byte, end) = (first << self.width, end << self.width);
        let all = splat(value, self.width);
        while byte < end {
            let (from, to) = (byte % 4, (byte % 4 + (end - byte)).min(4));
            let mask = u32::MAX >> (8 * (4 - (to - from))) << (8 * from);
            let word = &mut self.words[byte / 4];
            *word = *word & !mask | all & mask;
            byte += to - from;
        }
    }
}

impl<K: Ipv4Key> InPlace<K> for Editor<K> {
    fn reading(&self) -> Arc<dyn Fib<K>> {
        self.table.clone()
    }

    fn name(&self) -> &'static str {
        NAME
    }

    fn fetch(&mut self, changes: &[Change<K>]) {
        // More would push the first ones out of the cache again.
        if changes.len() <= AHEAD {
            self.fetch_some(changes.iter().map(Change::prefix));
            self.fetched = changes.len();
        }
    }

    fn try_prepare(
        &mut self,
        prefixes: &[Prefix<K>],
        after: &dyn Routes<K>,
        shadow: bool,
    ) -> Result<(), PrepareError> {
        let Prepared { lines, below, budget, .. } = &mut self.prepared;
        lines.units.absorb(budget)?;
        below.units.absorb(budget)?;
        self.fill(prefixes, after, shadow)?;
        self.prepared.refused.map_or(Ok(()), |reason| Err(PrepareError::Rebuild(reason)))
    }

    fn is_loose(&self) -> bool {
        self.prepared.lines.is_loose() || self.prepared.below.is_loose()
    }

    fn move_some(&mut self, entries: usize) -> Result<(), OutOfMemory> {
        let all = self.prepared.direct.len();
        for _ in 0..entries.min(all) {
            let at = self.cursor;
            self.cursor = (at + 1) % all;
            self.prepared.move_back(at)?;
        }
        self.prepared.finish()
    }

    fn limit(&mut self, rooms: &Rooms) -> Result<(), RoomExceeded> {
        let Prepared { windows, width, direct, lines, below, .. } = &mut self.prepared;
        let (line, maps) = (line_words(*windows, *width), lines.units.end() as usize);
        if let Some(exceeded) = rooms.exceeded_by(&[direct.len(), lines.end_words(), maps, below.end_words()])
        {
            return Err(exceeded);
        }
        // A line has a word in the array of maps.
        lines.limit(rooms.0[1].min(rooms.0[2].saturating_mul(line)));
        below.limit(rooms.0[3]);
        Ok(())
    }

    fn retires(&self) -> usize {
        self.prepared.retires()
    }

    fn abandon(&mut self) {
        self.shadow.keep();
        self.prepared.abandon();
    }

    fn publish(&mut self, publication: &mut dyn Publication) {
        // Relaxed, because lookups do not read the counts.
        for (to, used) in self.table.used.iter().zip(self.used()) {
            to.store(used, Ordering::Relaxed);
        }
        self.prepared.publish(&mut self.shadow, publication);
    }

    fn copy_entries(&mut self) -> Result<(), OutOfMemory> {
        let Prepared { direct, budget, .. } = &mut self.prepared;
        self.shadow.make(direct, budget, |budget| Shadow::array(direct.len(), budget))
    }

    fn publish_shadow(&mut self, publication: &mut dyn Publication) {
        let Some(copy) = self.shadow.take() else { return self.publish(publication) };
        self.prepared.publish_in(copy, &mut self.shadow, publication);
        let used = self.used().map(AtomicU32::new);
        let Prepared { width, direct, lines, maps, below, .. } = &mut self.prepared;
        self.table = Arc::new(Live {
            width: *width,
            direct: direct.another(),
            lines: lines.words.another(),
            maps: maps.another(),
            below: below.words.another(),
            used,
            keys: PhantomData,
        });
    }

    fn emit(&self, publication: &mut dyn Publication) {
        let Prepared { width, windows, .. } = &self.prepared;
        let [direct_bits, slot_bits, rest_bits] = windows.numbers();
        publication.structure(&[("width", *width), direct_bits, slot_bits, rest_bits]);
        self.prepared.emit_all(publication);
    }

    fn free(&mut self, retired: RetiredUnit) {
        let Prepared { lines, below, .. } = &mut self.prepared;
        let units = if retired.array == LINES { &mut lines.units } else { &mut below.units };
        units.give_expected(retired.unit);
    }

    fn bytes(&self, retired: RetiredUnit) -> usize {
        let Prepared { lines, below, .. } = &self.prepared;
        (if retired.array == LINES { lines } else { below }).bytes(retired.unit)
    }

    fn memory(&self) -> Memory {
        let lists = self.prepared.memory() + self.shadow.memory(self.prepared.direct.len());
        self.table.memory() + Memory { lookup_bytes: 0, ..lists }
    }

    fn check(&self, retired: &[RetiredUnit]) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        let (mut lines, mut below) = (Vec::new(), Vec::new());
        for line in self.table.reached()? {
            let number = line.number as usize;
            let is_own = self.prepared.is_own(line.number);
            holds(is_own || self.prepared.uses(line.number) == line.entries, "entries are counted", number)?;
            holds(!is_own || line.entries == 1, "one entry leads to a line of its own", number)?;
            holds(line.alone != is_own, "a line is shared if it is of one next hop", number)?;
            lines.push(Unit { place: line.number, size: 1 });
            below.extend(line.below.map(|words| Unit::of(words.start as u32..words.end as u32)));
        }
        self.prepared.lines.check(lines, retired)?;
        self.prepared.below.check(below, retired)
    }

    #[cfg(test)]
    fn mirrored(&self) -> crate::fib::in_place::Mirrored<K> {
        let width = self.prepared.width;
        Box::new(move |arrays| {
            let words = |array: u8, padding| {
                let words = arrays[usize::from(array)].iter().map(|&word| word as u32);
                Shared::filled(words.chain(core::iter::repeat_n(0, padding)))
            };
            Box::new(Live::<K> {
                width,
                direct: words(DIRECT, 0),
                lines: words(LINES, PADDING),
                maps: words(MAPS, 0),
                below: words(BELOW, PADDING),
                used: [MAPS, BELOW].map(|array| AtomicU32::new(arrays[usize::from(array)].len() as u32)),
                keys: PhantomData,
            })
        })
    }

    #[cfg(test)]
    fn free_words(&self) -> Vec<(u8, Range<usize>)> {
        let lines = self.prepared.lines.units.free_units();
        let maps =
            lines.into_iter().map(|unit| (MAPS, unit.place as usize..(unit.place + unit.size) as usize));
        maps.chain(self.prepared.lines.free_words()).chain(self.prepared.below.free_words()).collect()
    }
}
