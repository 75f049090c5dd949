//! The prepared state of a change: new units next to those that lookups reach, and the entries that will lead to them.

use core::ops::Range;
use core::sync::atomic::Ordering;
use std::collections::HashMap;

use crate::fib::in_place::{Publication, RetiredUnit, StoredWords};
use crate::fib::parts::units::{self, Units};
use crate::memory::{Budget, Cell, OutOfMemory, Shared};

use super::build::{uniform_len, uniform_words};
use super::fill::Sink;
use super::layout::{Entry, Windows};
use super::unit::{UnitContent, UnitWriter};

/// Numbers of the arrays.
pub(super) const DIRECT: u8 = 0;
pub(super) const UNITS: u8 = 1;

/// The prepared stores of a change, and the free places.
pub(super) struct Prepared {
    pub(super) windows: Windows,
    pub(super) step: u32,
    /// Places that the array has.
    pub(super) places: u32,
    pub(super) direct: Shared<u32>,
    pub(super) units: Shared<u64>,
    pub(super) allotted: Units,
    /// Places that the budget has counted.
    pub(super) charged: u32,
    pub(super) stores: Vec<Store>,
    /// Words of units to store.
    pub(super) edits: Vec<Edit>,
    /// The place of the uniform unit of each next hop.
    pub(super) uniform: HashMap<u32, u32>,
    /// The number of entries that lead to a uniform unit, by its place. A unit here whose next hop is not in `uniform` is
    /// being replaced.
    pub(super) uses: HashMap<u32, u32>,
    /// Uniform units that are new. `uses` has room for them.
    pub(super) fresh: usize,
    /// Whether more words are needed than places can address.
    pub(super) is_full: bool,
}

/// A word of a unit to store.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edit {
    pub(super) at: usize,
    pub(super) word: u64,
}

/// An entry to store.
#[derive(Debug, Clone, Copy)]
pub(super) struct Store {
    pub(super) at: u32,
    pub(super) old: Entry,
    pub(super) new: Entry,
    /// The unit of the new entry.
    pub(super) unit: units::Unit,
}

pub(super) fn reserve<K: Eq + core::hash::Hash, V>(
    map: &mut HashMap<K, V>,
    more: usize,
) -> Result<(), OutOfMemory> {
    // A hash map does not report how much it wanted, so the error has an estimate.
    let wanted_bytes = 64 * more;
    map.try_reserve(more).map_err(|_| OutOfMemory { wanted_bytes, used_bytes: 0, limit_bytes: None })
}

impl Prepared {
    pub(super) fn view(&self) -> super::scalar::View<'_> {
        super::scalar::View { direct: &self.direct, units: &self.units, step: self.step }
    }

    /// Writes the words of a unit that no entry leads to.
    fn write(&self, place: u32, words: &[u64]) {
        let to = &self.units[(place as usize) << self.step..][..words.len()];
        for (to, &word) in to.iter().zip(words) {
            // Relaxed, because the entry that leads here is stored later with release.
            to.store(word, Ordering::Relaxed);
        }
    }

    /// Takes places for a unit and writes it; `None` past the last place that entries can address.
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
                // Places that were charged before stay charged when their units are freed.
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

    /// Makes room for an entry to store. A unit is freed later: the replaced one, or the new one if it is never published.
    pub(super) fn room(&mut self, budget: &mut Budget) -> Result<(), OutOfMemory> {
        budget.reserve(&mut self.stores, 1)?;
        self.allotted.expect(1, budget)
    }

    /// Notes an entry to store, for which there must be room. `unit` is its unit unless that is shared.
    pub(super) fn store(&mut self, at: usize, new: Entry, unit: Option<units::Unit>) {
        let old = Entry(self.direct[at].read());
        // An entry of a shared unit owns no places, so it frees none.
        let unit = unit.unwrap_or(units::Unit { place: new.place(), size: 0 });
        self.stores.push(Store { at: at as u32, old, new, unit });
    }

    /// Returns the places of the unit of an entry that is not shared.
    fn extent(&self, entry: Entry) -> units::Unit {
        let words = self.view().extent(entry);
        let places = words.start >> self.step..words.end.div_ceil(1 << self.step);
        units::Unit::of(places.start as u32..places.end as u32)
    }

    /// Returns the place of the uniform unit of a next hop, which is made if there is none.
    fn uniform_place(&mut self, word: u32, budget: &mut Budget) -> Result<Option<u32>, OutOfMemory> {
        if let Some(&place) = self.uniform.get(&word) {
            return Ok(Some(place));
        }
        reserve(&mut self.uniform, 1)?;
        // The uses are counted when the change is published. Nothing may fail then, so the room is reserved here.
        reserve(&mut self.uses, self.fresh + 1)?;
        let words = uniform_words(word);
        let Some(unit) = self.place(&words[..uniform_len(self.step)], budget)? else { return Ok(None) };
        self.uniform.insert(word, unit.place);
        self.fresh += 1;
        Ok(Some(unit.place))
    }

    /// Copies the unit of an entry to a free place before `used`, if the unit lies after that and there is such a place.
    pub(super) fn move_unit(&mut self, entry: Entry, used: u32) -> Option<(Entry, Option<units::Unit>)> {
        let unit = self.extent(entry);
        if unit.place < used {
            return None;
        }
        let place = self.allotted.take_before(unit.size, used)?;
        let [from, to] = [unit.place, place].map(|place| (place as usize) << self.step);
        for word in 0..(unit.size as usize) << self.step {
            self.units[to + word].store(self.units[from + word].read(), Ordering::Relaxed);
        }
        // Only the place changes. Offset, width and halves count from it.
        let moved = Entry(entry.0 - ((unit.place - place) << Entry::PLACE_AT));
        Some((moved, Some(units::Unit { place, ..unit })))
    }

    /// Returns the entry of another uniform unit of the same next hop. The entries will be moved to it one by one.
    pub(super) fn move_uniform(&mut self, entry: Entry, used: u32) -> Option<Entry> {
        let word = self.units[entry.word(self.step) + 1].read() as u32;
        if self.uniform.get(&word) == Some(&entry.place()) {
            if entry.place() < used {
                return None;
            }
            let place = self.allotted.take_before(self.uniform_unit(0).size, used)?;
            self.write(place, &uniform_words(word)[..uniform_len(self.step)]);
            // From now on entries lead to the new unit. The old one lives until its last entry has moved.
            self.uniform.insert(word, place);
            self.fresh += 1;
        }
        self.uniform.get(&word).map(|&place| Entry::shared(place))
    }

    fn uniform_unit(&self, place: u32) -> units::Unit {
        units::Unit { place, size: (uniform_len(self.step) >> self.step) as u32 }
    }

    /// Forgets a uniform unit that no entry leads to, and returns it.
    fn forget(&mut self, place: u32) -> units::Unit {
        let word = self.units[((place as usize) << self.step) + 1].read() as u32;
        if self.uniform.get(&word) == Some(&place) {
            self.uniform.remove(&word);
        }
        self.uses.remove(&place);
        self.uniform_unit(place)
    }

    /// Forgets the prepared change.
    pub(super) fn abandon(&mut self) {
        self.is_full = false;
        for at in 0..self.stores.len() {
            let store = self.stores[at];
            if store.new.is_shared() {
                // Several entries may lead to a new unit. The first of them frees it.
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
        self.edits.clear();
        self.fresh = 0;
    }

    /// Notifies the publication of the words of new units.
    pub(super) fn emit_units(&self, publication: &mut dyn Publication) {
        for store in &self.stores {
            let size = if store.new.is_shared() { self.uniform_unit(0).size } else { store.unit.size };
            let words = self.words(units::Unit { size, ..store.unit });
            publication.stored(StoredWords::part(UNITS, &self.units[..], words));
        }
    }

    /// Stores values in units in place.
    pub(super) fn store_edits(&self, publication: &mut dyn Publication) {
        for &Edit { at, word } in &self.edits {
            self.units[at].store(word, Ordering::Release);
            if publication.listens() {
                publication.stored(StoredWords::part(UNITS, &self.units[..], at..at + 1));
            }
        }
    }

    /// Returns the words of a unit.
    pub(super) fn words(&self, unit: units::Unit) -> Range<usize> {
        (unit.place as usize) << self.step..((unit.place + unit.size) as usize) << self.step
    }

    /// Retires the units that replaced entries led to.
    pub(super) fn replace(&mut self, publication: &mut dyn Publication) {
        for store in &self.stores {
            // New entries are counted first, because a unit that gains and loses entries must not reach 0 in between.
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
                // The words of the old unit are intact, because readers may still be in it.
                self.extent(store.old)
            };
            publication.retire(RetiredUnit { array: UNITS, unit });
        }
        self.stores.clear();
        self.edits.clear();
        self.fresh = 0;
    }
}

impl Sink for Prepared {
    fn unit(
        &mut self,
        at: usize,
        unit: &UnitContent,
        writer: &mut UnitWriter,
        budget: &mut Budget,
    ) -> Result<(), OutOfMemory> {
        // A change that lacks places is abandoned, so the rest of it is not written.
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
                // The unit has no place, so nothing will be freed for it.
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
