//! Changes while readers look: new units are written next to those that readers see, and published by their entries.

use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::HashMap;
use std::sync::Arc;

use crate::check::CheckError;
use crate::fib::in_place::{
    InPlace, PrepareError, Publication, RetiredUnit, RoomExceeded, Rooms, StoredWords,
};
use crate::fib::parts::ranges::{self, Merge};
use crate::fib::parts::shadow::Shadow;
use crate::fib::{BuildError, Fib};
use crate::memory::{Budget, Cell, Limits, Memory, OutOfMemory, Shared};
use crate::net::{Change, Ipv4Key, NextHop, Prefix, Routes};
use crate::simd::fetch_at;

use super::NAME;
use super::fill::Filling;
use super::layout::{Dir17Bitmap, Entry, PADDING, STEP_MAX, Windows};
use super::prepared::{DIRECT, Prepared, UNITS, reserve};

/// The writer of a table.
pub(super) struct Editor<K> {
    table: Arc<Dir17Bitmap<K>>,
    filling: Filling,
    tables: Prepared,
    budget: Budget,
    /// Copies of the entries, to be published in place of the entries.
    shadow: Shadow,
    /// The next entry to examine for a unit that could move.
    cursor: usize,
    /// Changes whose entries and units were fetched.
    fetched: usize,
}

/// Prefixes whose units are fetched ahead.
const AHEAD: usize = 128;

/// Words of a cache line.
const LINE: usize = 8;

impl<K: Ipv4Key> Editor<K> {
    /// Builds the tables of the routes, with room to grow.
    ///
    /// # Errors
    /// As for [`Dir17Bitmap::build`].
    pub(super) fn build(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, BuildError> {
        let mut budget = Budget::new(limits);
        let mut built = Dir17Bitmap::<K>::build_from(routes, 0, &mut budget)?;
        // At most half of the words that places can address, so that the table can grow for a while before the step has to.
        while built.step < STEP_MAX
            && 2 * built.end.load(Ordering::Relaxed) as u64 > Entry::PLACES << built.step
        {
            budget = Budget::new(limits);
            built = Dir17Bitmap::build_from(routes, built.step + 1, &mut budget)?;
        }
        Self::of(built, budget, limits).map_err(|error| BuildError::memory(NAME, error))
    }

    fn of(built: Dir17Bitmap<K>, budget: Budget, limits: Limits) -> Result<Self, OutOfMemory> {
        let Dir17Bitmap { mut direct, units: words, allotted, end, step, keys } = built;
        let allotted = allotted.unwrap_or_default();
        // Twice the size of the longest units, for narrow keys.
        let most = (2 * Self::WINDOWS.unit_words() + (1 << step)) << Self::WINDOWS.direct_bits;
        // Readers hold the array, so it cannot grow later. Zeros take memory only where they are written, which makes
        // room for all places cheap.
        let places = Entry::PLACES.min(most as u64 >> step);
        let mut units: Shared<u64> = Shared::zeros(((places as usize) << step) + PADDING, limits.huge_pages)?;
        for (word, to) in words.iter().zip(&units[..]) {
            to.store(word.read(), Ordering::Relaxed);
        }
        let windows = Self::WINDOWS;
        let (mut uniform, mut uses) = (HashMap::new(), HashMap::new());
        for entry in direct.iter().map(|entry| Entry(entry.read())).filter(|entry| entry.is_shared()) {
            let word = units[entry.word(step) + 1].read() as u32;
            reserve(&mut uniform, 1)?;
            reserve(&mut uses, 1)?;
            uniform.insert(word, entry.place());
            *uses.entry(entry.place()).or_default() += 1;
        }
        let charged = allotted.end();
        let tables = Prepared {
            windows,
            step,
            places: places as u32,
            direct: direct.another(),
            units: units.another(),
            allotted,
            charged,
            stores: Vec::new(),
            edits: Vec::new(),
            uniform,
            uses,
            fresh: 0,
            is_full: false,
        };
        let table = Arc::new(Dir17Bitmap { direct, units, allotted: None, end, step, keys });
        Ok(Self {
            table,
            filling: Filling::new(windows, step),
            tables,
            budget,
            shadow: Shadow::default(),
            cursor: 0,
            fetched: 0,
        })
    }

    const WINDOWS: Windows = Dir17Bitmap::<K>::WINDOWS;
    /// Length of the prefix that is one slot.
    const SLOT_LEN: u8 = (Self::WINDOWS.direct_bits + 1 + Self::WINDOWS.slot_bits) as u8;
    /// Addresses of a slot.
    const SLOT: u64 = Self::WINDOWS.rests() as u64;
    /// Addresses of a unit.
    const UNIT: u64 = Self::WINDOWS.slots() as u64 * Self::SLOT;

    /// Returns the index of the entry that has the first address of a prefix.
    fn direct(prefix: &Prefix<K>) -> usize {
        (prefix.addr().to_bits() as u64 / Self::UNIT) as usize
    }

    fn addresses(prefix: &Prefix<K>) -> Range<u64> {
        prefix.addr().to_bits() as u64..prefix.last().to_bits() as u64 + 1
    }

    /// Prepares the units of the prefixes.
    fn fill(
        &mut self,
        prefixes: &[Prefix<K>],
        after: &dyn Routes<K>,
        shadow: bool,
    ) -> Result<(), OutOfMemory> {
        if core::mem::take(&mut self.fetched) < prefixes.len() {
            prefixes.chunks(AHEAD).for_each(|some| self.fetch_some(some.iter().copied()));
        }
        let mut last: Option<Prefix<K>> = None;
        // The entry whose unit is open, and the number of the first prefix that is not prepared yet.
        let (mut open, mut next) = (0, 0);
        for (number, prefix) in prefixes.iter().enumerate() {
            let within = Prefix::masked(prefix.addr(), prefix.len().min(Self::SLOT_LEN)).unwrap_or(*prefix);
            // A prefix within the last one is prepared with it, because slots are filled whole.
            if number < next || last.is_some_and(|last| last.covers(within)) {
                continue;
            }
            last = Some(within);
            let at = Self::direct(&within);
            if self.filling.is_open && at != open {
                self.filling.close(open, &mut self.tables, &mut self.budget)?;
            }
            if u32::from(within.len()) > Self::WINDOWS.direct_bits && !self.filling.is_open {
                // All prefixes of a unit are handled together, so that it is written once.
                let count = prefixes[number..].partition_point(|prefix| Self::direct(prefix) == at);
                let inside = &prefixes[number..number + count];
                // Not for changes in a shadow, because readers of old entries would see the values that are stored in units.
                if !shadow && self.tables.store_values(at, inside, after, &mut self.budget)? {
                    next = number + count;
                    continue;
                }
                self.open_unit(at, inside)?;
                open = at;
            }
            self.refill(within, after)?;
        }
        if self.filling.is_open {
            self.filling.close(open, &mut self.tables, &mut self.budget)?;
        }
        Ok(())
    }

    /// Fetches entries and units of prefixes that lie in one unit, so that all are on their way before the first is needed.
    fn fetch_some(&self, prefixes: impl Iterator<Item = Prefix<K>> + Clone) {
        let Self { tables, .. } = self;
        for prefix in prefixes.clone() {
            fetch_at(&tables.direct, Self::direct(&prefix));
        }
        for prefix in prefixes {
            let unit = Entry(tables.direct[Self::direct(&prefix)].read()).word(tables.step);
            fetch_at(&tables.units, unit);
            fetch_at(&tables.units, unit + LINE);
        }
    }

    /// Opens the unit of an entry: keeps its slots, except those of the prefixes `inside`, which are filled again.
    fn open_unit(&mut self, at: usize, inside: &[Prefix<K>]) -> Result<(), OutOfMemory> {
        let Self { filling, tables, budget, .. } = self;
        let slot = |address: u64| (address % Self::UNIT / Self::SLOT) as u32;
        let changed = inside
            .iter()
            .map(Self::addresses)
            .map(|inside| u128::MAX << slot(inside.start) & u128::MAX >> (127 - slot(inside.end - 1)))
            .fold(0, |all, slots| all | slots);
        let (entry, view) = (Entry(tables.direct[at].read()), tables.view());
        filling.writer.read(&view, entry, &mut filling.unit, |slot| changed >> slot & 1 == 0, budget)?;
        filling.is_open = true;
        Ok(())
    }

    /// Fills the slots of a prefix with the answers of the routes.
    fn refill(&mut self, within: Prefix<K>, after: &dyn Routes<K>) -> Result<(), OutOfMemory> {
        let Self { filling, tables, budget, .. } = self;
        let Range { start, end } = Self::addresses(&within);
        filling.done = start;
        let mut word = 0;
        ranges::try_for_each(after, within, Merge::EqualNeighbours, |range| {
            filling.fill(range.start.to_bits() as u64, word, tables, budget)?;
            word = NextHop::word(range.next_hop);
            Ok(())
        })?;
        filling.fill(end, word, tables, budget)
    }

    /// Prepares the move of the unit of an entry, if there is room before it.
    fn move_back(&mut self, at: usize) -> Result<(), OutOfMemory> {
        let Self { tables, budget, .. } = self;
        let used = tables.allotted.end() - tables.allotted.free_elements();
        let entry = Entry(tables.direct[at].read());
        // Before the move, because a unit that was moved must be counted without an error.
        reserve(&mut tables.uses, tables.fresh + 1)?;
        tables.room(budget)?;
        let moved = if entry.is_shared() {
            tables.move_uniform(entry, used).map(|moved| (moved, None))
        } else {
            tables.move_unit(entry, used)
        };
        match moved {
            Some((new, unit)) => tables.store(at, new, unit),
            // Nothing moves, so the room made above is given back.
            None => tables.allotted.expect_less(1),
        }
        Ok(())
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
        debug_assert!(self.tables.stores.is_empty(), "what was prepared is published or abandoned first");
        self.tables.allotted.absorb(&mut self.budget)?;
        self.fill(prefixes, after, shadow)?;
        if self.tables.is_full {
            return Err(PrepareError::Rebuild("more words than places can address"));
        }
        Ok(())
    }

    fn is_loose(&self) -> bool {
        self.tables.allotted.is_loose(0)
    }

    fn move_some(&mut self, entries: usize) -> Result<(), OutOfMemory> {
        let all = self.tables.direct.len();
        for _ in 0..entries.min(all) {
            let at = self.cursor;
            self.cursor = (at + 1) % all;
            self.move_back(at)?;
        }
        Ok(())
    }

    fn limit(&mut self, rooms: &Rooms) -> Result<(), RoomExceeded> {
        let Prepared { direct, units, allotted, step, places, .. } = &mut self.tables;
        if let Some(exceeded) = rooms.exceeded_by(&[direct.len(), (allotted.end() as usize) << *step]) {
            return Err(exceeded);
        }
        let all = (units.len() - PADDING) >> *step;
        *places = all.min(rooms.0[1] >> *step) as u32;
        Ok(())
    }

    fn retires(&self) -> usize {
        self.tables.stores.len()
    }

    fn abandon(&mut self) {
        self.shadow.keep();
        self.filling.is_open = false;
        self.tables.abandon();
    }

    fn publish(&mut self, publication: &mut dyn Publication) {
        let tables = &mut self.tables;
        // Only counts of memory read the end, so it needs no order with the entries.
        self.table.end.store((tables.allotted.end() as usize) << tables.step, Ordering::Relaxed);
        let listens = publication.listens();
        // Listeners get the words of a unit before the entry that leads to it, in the order that readers rely on.
        if listens {
            tables.emit_units(publication);
        }
        tables.store_edits(publication);
        for store in &tables.stores {
            let at = store.at as usize;
            // Release, because readers follow the entry to the words of its unit.
            tables.direct[at].store(store.new.0, Ordering::Release);
            self.shadow.note(at..at + 1);
            if listens {
                publication.stored(StoredWords::part(DIRECT, &tables.direct[..], at..at + 1));
            }
        }
        // Last, because a unit may be retired only when no entry leads to it.
        tables.replace(publication);
    }

    fn copy_entries(&mut self) -> Result<(), OutOfMemory> {
        let direct = &self.tables.direct;
        self.shadow.make(direct, &mut self.budget, |budget| Shadow::array(direct.len(), budget))
    }

    fn publish_shadow(&mut self, publication: &mut dyn Publication) {
        let Some(mut direct) = self.shadow.take() else { return self.publish(publication) };
        // The old entries are kept: they are the next copy, once readers have left them.
        self.shadow.replaced(core::mem::take(&mut self.tables.direct));
        for store in &self.tables.stores {
            let at = store.at as usize;
            // Relaxed is enough, because no reader has the copy yet.
            direct[at].store(store.new.0, Ordering::Relaxed);
            self.shadow.note(at..at + 1);
        }
        if publication.listens() {
            self.tables.emit_units(publication);
            publication.stored(StoredWords::whole(DIRECT, &direct[..], direct.len()));
        }
        self.tables.store_edits(publication);
        let end = AtomicUsize::new((self.tables.allotted.end() as usize) << self.tables.step);
        self.table = Arc::new(Dir17Bitmap {
            direct: direct.another(),
            units: self.tables.units.another(),
            allotted: None,
            end,
            step: self.tables.step,
            keys: core::marker::PhantomData,
        });
        self.tables.direct = direct;
        self.tables.replace(publication);
    }

    fn emit(&self, publication: &mut dyn Publication) {
        let Prepared { direct, units, allotted, step, .. } = &self.tables;
        let [direct_bits, slot_bits, rest_bits] = Dir17Bitmap::<K>::WINDOWS.numbers();
        publication.structure(&[("step", *step), direct_bits, slot_bits, rest_bits]);
        publication.stored(StoredWords::whole(UNITS, &units[..], (allotted.end() as usize) << step));
        publication.stored(StoredWords::whole(DIRECT, &direct[..], direct.len()));
    }

    fn free(&mut self, retired: RetiredUnit) {
        self.tables.allotted.give_expected(retired.unit);
    }

    fn bytes(&self, retired: RetiredUnit) -> usize {
        (retired.unit.size as usize) << self.tables.step << 3
    }

    fn memory(&self) -> Memory {
        let lists = self.tables.allotted.memory();
        // Eight bytes for a key and its value, and a control byte, for each element.
        let uniform = self.tables.uniform.capacity() * 9 + self.tables.uses.capacity() * 9;
        let lists = lists + self.shadow.memory(self.tables.direct.len());
        self.table.memory() + lists + Memory { allocated_bytes: uniform, ..Memory::default() }
    }

    fn check(&self, retired: &[RetiredUnit]) -> Result<(), CheckError> {
        self.table.walk()?;
        let mut used = self.table.used()?;
        let mut uses = HashMap::new();
        for entry in
            self.table.direct.iter().map(|entry| Entry(entry.read())).filter(|entry| entry.is_shared())
        {
            *uses.entry(entry.place()).or_insert(0) += 1;
        }
        CheckError::unless(
            uses == self.tables.uses,
            "entries that lead to one value are counted",
            uses.len(),
        )?;
        used.extend(retired.iter().map(|retired| retired.unit));
        self.tables.allotted.check(used)
    }

    #[cfg(test)]
    fn mirrored(&self) -> crate::fib::in_place::Mirrored<K> {
        let step = self.tables.step;
        Box::new(move |arrays| {
            let padded = arrays[usize::from(UNITS)].iter().copied().chain([0; PADDING]);
            Box::new(Dir17Bitmap::<K> {
                direct: Shared::filled(arrays[usize::from(DIRECT)].iter().map(|&word| word as u32)),
                units: Shared::filled(padded),
                allotted: None,
                end: AtomicUsize::new(arrays[usize::from(UNITS)].len()),
                step,
                keys: core::marker::PhantomData,
            })
        })
    }

    #[cfg(test)]
    fn free_words(&self) -> Vec<(u8, Range<usize>)> {
        let free = self.tables.allotted.free_units().into_iter();
        free.map(|unit| (UNITS, self.tables.words(unit))).collect()
    }
}
