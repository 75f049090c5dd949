//! Changes while readers look: units are written anew beside those that readers see, and published by their entries.

use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::HashMap;
use std::sync::Arc;

use crate::check::CheckError;
use crate::fib::in_place::{InPlace, Publication, Retired, Stored};
use crate::fib::parts::ranges::{self, Merge};
use crate::fib::parts::units::{self, Units};
use crate::fib::{Applied, BuildError, Fib};
use crate::memory::{Budget, Buffer, Cell, Limits, Memory, OutOfMemory, Shared};
use crate::net::{Ipv4Key, NextHop, Prefix, Routes};
use crate::simd::fetch_at;

use super::NAME;
use super::build::{uniform_len, uniform_words};
use super::fill::{Filling, Sink};
use super::layout::{Dir17Bitmap, Entry, PADDING, STEP_MAX, Windows};
use super::unit::{Unit, Writer};

/// The writer of a table.
pub(super) struct Editor<K> {
    table: Arc<Dir17Bitmap<K>>,
    filling: Filling,
    tables: Prepared,
    budget: Budget,
    /// A copy of the entries, to be published in their place.
    aside: Option<Buffer<u32>>,
    /// The next entry to look at for units that could move.
    cursor: usize,
}

/// Prefixes whose units are fetched ahead.
const AHEAD: usize = 128;

/// Words of a cache line.
const LINE: usize = 8;

/// Numbers of the arrays.
const DIRECT: u8 = 0;
const UNITS: u8 = 1;

/// What is prepared, and which places are free.
struct Prepared {
    windows: Windows,
    step: u32,
    /// Places that the array has.
    places: u32,
    direct: Shared<u32>,
    units: Shared<u64>,
    allotted: Units,
    /// Places that the budget has counted.
    charged: u32,
    stores: Vec<Store>,
    /// The place of the unit that has a next hop alone.
    uniform: HashMap<u32, u32>,
    /// The number of entries that lead to such a unit, by its place. Those of a next hop that are not in `uniform` are on
    /// the way out.
    uses: HashMap<u32, u32>,
    /// Units of one next hop that are new, for which `uses` has room.
    fresh: usize,
    /// Whether more words are needed than places can address.
    is_full: bool,
}

/// An entry to store.
#[derive(Debug, Clone, Copy)]
struct Store {
    at: u32,
    old: Entry,
    new: Entry,
    /// The unit of the new entry.
    unit: units::Unit,
}

impl<K: Ipv4Key> Editor<K> {
    /// Builds the tables of the routes, with room to grow.
    ///
    /// # Errors
    /// As for [`Dir17Bitmap::build`].
    pub(super) fn build(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, BuildError> {
        let mut budget = Budget::new(limits);
        let mut built = Dir17Bitmap::<K>::build_from(routes, 0, &mut budget)?;
        // At most half of what places can address, so that it takes a while until they have to count more.
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
        // Twice what the longest units take, for narrow keys.
        let most = (2 * Self::WINDOWS.unit_words() + (1 << step)) << Self::WINDOWS.direct_bits;
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
            uniform,
            uses,
            fresh: 0,
            is_full: false,
        };
        let table = Arc::new(Dir17Bitmap { direct, units, allotted: None, end, step, keys });
        Ok(Self { table, filling: Filling::new(windows, step), tables, budget, aside: None, cursor: 0 })
    }

    const WINDOWS: Windows = Dir17Bitmap::<K>::WINDOWS;

    /// Prepares the units of the prefixes.
    fn fill(&mut self, prefixes: &[Prefix<K>], after: &dyn Routes<K>) -> Result<(), OutOfMemory> {
        let Self { filling, tables, budget, .. } = self;
        let windows = Self::WINDOWS;
        let slot_len = (windows.direct_bits + 1 + windows.slot_bits) as u8;
        let unit_addresses = (windows.slots() * windows.rests()) as u64;
        // Entries and units of the prefixes that lie in one unit, all on their way before the first is needed.
        let direct = |prefix: &Prefix<K>| (prefix.addr().to_bits() as u64 / unit_addresses) as usize;
        for some in prefixes.chunks(AHEAD) {
            for prefix in some {
                fetch_at(&tables.direct, direct(prefix));
            }
            for prefix in some {
                let unit = Entry(tables.direct[direct(prefix)].read()).word(tables.step);
                fetch_at(&tables.units, unit);
                fetch_at(&tables.units, unit + LINE);
            }
        }
        let mut last: Option<Prefix<K>> = None;
        let mut open = 0;
        let addresses =
            |prefix: &Prefix<K>| prefix.addr().to_bits() as u64..prefix.last().to_bits() as u64 + 1;
        for (number, prefix) in prefixes.iter().enumerate() {
            let within = Prefix::masked(prefix.addr(), prefix.len().min(slot_len)).unwrap_or(*prefix);
            if last.is_some_and(|last| last.covers(within)) {
                continue;
            }
            last = Some(within);
            let Range { start: first, end } = addresses(&within);
            let at = (first / unit_addresses) as usize;
            if filling.is_open && at != open {
                filling.close(open, tables, budget)?;
            }
            if u32::from(within.len()) > windows.direct_bits && !filling.is_open {
                open = at;
                let (entry, view) = (Entry(tables.direct[at].read()), tables.view());
                let slot = |address: u64| (address % unit_addresses / windows.rests() as u64) as u32;
                // The slots of all prefixes in the unit, which are filled anew.
                let inside = prefixes[number..].iter().map(addresses);
                let changed = inside
                    .take_while(|inside| (inside.start / unit_addresses) as usize == at)
                    .map(|inside| u128::MAX << slot(inside.start) & u128::MAX >> (127 - slot(inside.end - 1)))
                    .fold(0, |all, slots| all | slots);
                filling.writer.read(
                    &view,
                    entry,
                    &mut filling.unit,
                    |slot| changed >> slot & 1 == 0,
                    budget,
                )?;
                filling.is_open = true;
            }
            filling.done = first;
            let mut word = 0;
            ranges::try_for_each(after, within, Merge::EqualNeighbours, |range| {
                filling.fill(range.start.to_bits() as u64, word, tables, budget)?;
                word = NextHop::word(range.next_hop);
                Ok(())
            })?;
            filling.fill(end, word, tables, budget)?;
        }
        if filling.is_open {
            filling.close(open, tables, budget)?;
        }
        Ok(())
    }

    /// Prepares the move of the unit of an entry, if there is room before it.
    fn move_back(&mut self, at: usize) -> Result<(), OutOfMemory> {
        let Self { tables, budget, .. } = self;
        let used = tables.allotted.end() - tables.allotted.free_elements();
        let entry = Entry(tables.direct[at].read());
        reserve(&mut tables.uses, tables.fresh + 1)?;
        tables.room(budget)?;
        let moved = if entry.is_shared() {
            tables.move_uniform(entry, used).map(|moved| (moved, None))
        } else {
            tables.move_unit(entry, used)
        };
        match moved {
            Some((new, unit)) => tables.store(at, new, unit),
            None => tables.allotted.expect_less(1),
        }
        Ok(())
    }
}

fn reserve<K: Eq + core::hash::Hash, V>(map: &mut HashMap<K, V>, more: usize) -> Result<(), OutOfMemory> {
    let wanted_bytes = 64 * more;
    map.try_reserve(more).map_err(|_| OutOfMemory { wanted_bytes, used_bytes: 0, limit_bytes: None })
}

impl Prepared {
    fn view(&self) -> super::scalar::View<'_> {
        super::scalar::View { direct: &self.direct, units: &self.units, step: self.step }
    }

    /// Writes the words of a unit that no entry leads to.
    fn write(&self, place: u32, words: &[u64]) {
        let to = &self.units[(place as usize) << self.step..][..words.len()];
        for (to, &word) in to.iter().zip(words) {
            to.store(word, Ordering::Relaxed);
        }
    }

    /// Takes places for a unit and writes it; `None` past what places can address.
    fn place(&mut self, words: &[u64], budget: &mut Budget) -> Result<Option<units::Unit>, OutOfMemory> {
        let size = (words.len() >> self.step) as u32;
        let place = match self.allotted.take(size) {
            Some(place) => place,
            None if self.allotted.end() + size > self.places => {
                self.is_full = true;
                return Ok(None);
            }
            None => {
                let end = self.allotted.end() + size;
                if let Some(more) = end.checked_sub(self.charged) {
                    budget.charge((more as usize) << self.step << 3)?;
                    self.charged = end;
                }
                self.allotted.append(size).unwrap_or_default()
            }
        };
        self.write(place, words);
        Ok(Some(units::Unit { place, size }))
    }

    /// Makes room for an entry to store. The unit that it replaces comes back one day, or its own if it is not published.
    fn room(&mut self, budget: &mut Budget) -> Result<(), OutOfMemory> {
        budget.reserve(&mut self.stores, 1)?;
        self.allotted.expect(1, budget)
    }

    /// Notes an entry to store, for which there is room, with its unit if that is not shared.
    fn store(&mut self, at: usize, new: Entry, unit: Option<units::Unit>) {
        let old = Entry(self.direct[at].read());
        let unit = unit.unwrap_or(units::Unit { place: new.place(), size: 0 });
        self.stores.push(Store { at: at as u32, old, new, unit });
    }

    /// Returns the places of the unit of an entry that is not shared.
    fn extent(&self, entry: Entry) -> units::Unit {
        let words = self.view().extent(entry);
        let places = words.start >> self.step..words.end.div_ceil(1 << self.step);
        units::Unit::of(places.start as u32..places.end as u32)
    }

    /// Returns the unit of a next hop that addresses have alone, which is made if there is none.
    fn uniform_place(&mut self, word: u32, budget: &mut Budget) -> Result<Option<u32>, OutOfMemory> {
        if let Some(&place) = self.uniform.get(&word) {
            return Ok(Some(place));
        }
        reserve(&mut self.uniform, 1)?;
        // Which are counted when nothing may fail any more.
        reserve(&mut self.uses, self.fresh + 1)?;
        let words = uniform_words(word);
        let Some(unit) = self.place(&words[..uniform_len(self.step)], budget)? else { return Ok(None) };
        self.uniform.insert(word, unit.place);
        self.fresh += 1;
        Ok(Some(unit.place))
    }

    /// Copies the unit of an entry to a free place before `used`, if it lies after that and there is such a place.
    fn move_unit(&mut self, entry: Entry, used: u32) -> Option<(Entry, Option<units::Unit>)> {
        let unit = self.extent(entry);
        if unit.place < used {
            return None;
        }
        let place = self.allotted.take_before(unit.size, used)?;
        let [from, to] = [unit.place, place].map(|place| (place as usize) << self.step);
        for word in 0..(unit.size as usize) << self.step {
            self.units[to + word].store(self.units[from + word].read(), Ordering::Relaxed);
        }
        let moved = Entry(entry.0 - ((unit.place - place) << Entry::PLACE_AT));
        Some((moved, Some(units::Unit { place, ..unit })))
    }

    /// Returns the entry of another unit with the same next hop alone, to which one entry after the other will lead.
    fn move_uniform(&mut self, entry: Entry, used: u32) -> Option<Entry> {
        let word = self.units[entry.word(self.step) + 1].read() as u32;
        if self.uniform.get(&word) == Some(&entry.place()) {
            if entry.place() < used {
                return None;
            }
            let place = self.allotted.take_before(self.uniform_unit(0).size, used)?;
            self.write(place, &uniform_words(word)[..uniform_len(self.step)]);
            self.uniform.insert(word, place);
            self.fresh += 1;
        }
        self.uniform.get(&word).map(|&place| Entry::shared(place))
    }

    fn uniform_unit(&self, place: u32) -> units::Unit {
        units::Unit { place, size: (uniform_len(self.step) >> self.step) as u32 }
    }

    /// Forgets a unit of one next hop that no entry leads to. Returns it.
    fn forget(&mut self, place: u32) -> units::Unit {
        let word = self.units[((place as usize) << self.step) + 1].read() as u32;
        if self.uniform.get(&word) == Some(&place) {
            self.uniform.remove(&word);
        }
        self.uses.remove(&place);
        self.uniform_unit(place)
    }

    /// Forgets what is prepared.
    fn abandon(&mut self) {
        self.is_full = false;
        for at in 0..self.stores.len() {
            let store = self.stores[at];
            if store.new.is_shared() {
                // The first of those that lead to a new unit gives it back.
                let is_new = !self.uses.contains_key(&store.unit.place)
                    && self.uniform.values().any(|&place| place == store.unit.place);
                if is_new {
                    let unit = self.forget(store.unit.place);
                    self.allotted.give_expected(unit);
                } else {
                    self.allotted.expect_less(1);
                }
            } else {
                self.allotted.give_expected(store.unit);
            }
        }
        self.stores.clear();
        self.fresh = 0;
    }

    /// Tells of the words of new units.
    fn tell_units(&self, publication: &mut dyn Publication) {
        for store in &self.stores {
            let size = if store.new.is_shared() { self.uniform_unit(0).size } else { store.unit.size };
            let words = self.words(units::Unit { size, ..store.unit });
            publication.stored(Stored::part(UNITS, &self.units[..], words));
        }
    }

    /// Returns the words of a unit.
    fn words(&self, unit: units::Unit) -> Range<usize> {
        (unit.place as usize) << self.step..((unit.place + unit.size) as usize) << self.step
    }

    /// Retires what entries led to that were replaced.
    fn replace(&mut self, publication: &mut dyn Publication) {
        for store in &self.stores {
            if store.new.is_shared() {
                *self.uses.entry(store.unit.place).or_default() += 1;
            }
        }
        for at in 0..self.stores.len() {
            let store = self.stores[at];
            let unit = if store.old.is_shared() {
                let place = store.old.place();
                let uses = self.uses.get_mut(&place).map(|uses| {
                    *uses -= 1;
                    *uses
                });
                if uses != Some(0) {
                    self.allotted.expect_less(1);
                    continue;
                }
                self.forget(place)
            } else {
                self.extent(store.old)
            };
            publication.retire(Retired { array: UNITS, unit });
        }
        self.stores.clear();
        self.fresh = 0;
    }
}

impl Sink for Prepared {
    fn unit(
        &mut self,
        at: usize,
        unit: &Unit,
        writer: &mut Writer,
        budget: &mut Budget,
    ) -> Result<(), OutOfMemory> {
        if self.is_full {
            return Ok(());
        }
        if let Some(word) = unit.uniform(self.windows) {
            return self.uniform(at, 1, word, budget);
        }
        let form = writer.finish(unit, budget)?;
        self.room(budget)?;
        match self.place(writer.words(), budget) {
            Ok(Some(unit)) => self.store(at, form.entry(unit.place, self.step), Some(unit)),
            refused => {
                self.allotted.expect_less(1);
                return refused.map(drop);
            }
        }
        Ok(())
    }

    fn uniform(
        &mut self,
        at: usize,
        count: usize,
        word: u32,
        budget: &mut Budget,
    ) -> Result<(), OutOfMemory> {
        for at in at..at + count {
            if self.is_full {
                break;
            }
            let old = Entry(self.direct[at].read());
            if old.is_shared() && self.units[old.word(self.step) + 1].read() as u32 == word {
                continue;
            }
            self.room(budget)?;
            match self.uniform_place(word, budget) {
                Ok(Some(place)) => self.store(at, Entry::shared(place), None),
                refused => {
                    self.allotted.expect_less(1);
                    return refused.map(drop);
                }
            }
        }
        Ok(())
    }
}

impl<K: Ipv4Key> InPlace<K> for Editor<K> {
    fn reading(&self) -> Arc<dyn Fib<K>> {
        self.table.clone()
    }

    fn prepare(&mut self, prefixes: &[Prefix<K>], after: &dyn Routes<K>) -> Result<Applied, BuildError> {
        debug_assert!(self.tables.stores.is_empty(), "what was prepared is published or abandoned first");
        let absorbed = self.tables.allotted.absorb(&mut self.budget);
        let prepared = absorbed.and_then(|()| self.fill(prefixes, after));
        if let Err(error) = prepared {
            self.filling.is_open = false;
            self.tables.abandon();
            return Err(BuildError::memory(NAME, error));
        }
        if self.tables.is_full {
            self.tables.abandon();
            return Ok(Applied::NeedsRebuild("more words than places can address"));
        }
        Ok(Applied::InPlace)
    }

    fn tidy(&mut self, entries: usize) -> Result<(), BuildError> {
        let allotted = &self.tables.allotted;
        if allotted.free_elements() < allotted.end() / 8 {
            return Ok(());
        }
        let all = self.tables.direct.len();
        for _ in 0..entries.min(all) {
            let at = self.cursor;
            self.cursor = (at + 1) % all;
            if let Err(error) = self.move_back(at) {
                self.tables.abandon();
                return Err(BuildError::memory(NAME, error));
            }
        }
        Ok(())
    }

    fn retires(&self) -> usize {
        self.tables.stores.len()
    }

    fn abandon(&mut self) {
        if let Some(copy) = self.aside.take() {
            self.budget.free(copy);
        }
        self.tables.abandon();
    }

    fn publish(&mut self, publication: &mut dyn Publication) {
        let tables = &mut self.tables;
        self.table.end.store((tables.allotted.end() as usize) << tables.step, Ordering::Relaxed);
        let listens = publication.listens();
        if listens {
            tables.tell_units(publication);
        }
        for store in &tables.stores {
            let at = store.at as usize;
            tables.direct[at].store(store.new.0, Ordering::Release);
            if listens {
                publication.stored(Stored::part(DIRECT, &tables.direct[..], at..at + 1));
            }
        }
        tables.replace(publication);
    }

    fn set_aside(&mut self) -> Result<(), BuildError> {
        let mut copy =
            self.budget.buffer(self.tables.direct.len()).map_err(|error| BuildError::memory(NAME, error))?;
        copy.extend(self.tables.direct.iter().map(Cell::read));
        self.aside = Some(copy);
        Ok(())
    }

    fn publish_aside(&mut self, publication: &mut dyn Publication) {
        let Some(mut copy) = self.aside.take() else { return self.publish(publication) };
        // The old entries, for which these were counted once, are freed with their last reader.
        self.budget.release(4 * copy.len());
        for store in &self.tables.stores {
            copy[store.at as usize] = store.new.0;
        }
        let mut direct = Shared::from(copy);
        if publication.listens() {
            self.tables.tell_units(publication);
            publication.stored(Stored::whole(DIRECT, &direct[..], direct.len()));
        }
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

    fn tell(&self, publication: &mut dyn Publication) {
        let Prepared { direct, units, allotted, step, .. } = &self.tables;
        publication.structure(&[("step", *step)]);
        publication.stored(Stored::whole(UNITS, &units[..], (allotted.end() as usize) << step));
        publication.stored(Stored::whole(DIRECT, &direct[..], direct.len()));
    }

    fn free(&mut self, retired: Retired) {
        self.tables.allotted.give_expected(retired.unit);
    }

    fn bytes(&self, retired: Retired) -> usize {
        (retired.unit.size as usize) << self.tables.step << 3
    }

    fn memory(&self) -> Memory {
        let lists = self.tables.allotted.memory();
        let uniform = self.tables.uniform.capacity() * 9 + self.tables.uses.capacity() * 9;
        self.table.memory() + lists + Memory { allocated_bytes: uniform, ..Memory::default() }
    }

    fn check(&self, retired: &[Retired]) -> Result<(), CheckError> {
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
