//! What is prepared: new chunks and the direct entries that will lead to them; and which places are free.

use core::ops::Range;

use fibula::unstable::in_place::{PrepareError, Publication, RetiredUnit, StoredWords};
use fibula::unstable::memory::{Budget, OutOfMemory};
use fibula::unstable::parts::units::{Unit, Units};
use fibula::unstable::simd::fetch_at;

use super::codes::Codes;
use super::format::{Changing, Encoded};
use super::geometry::Geometry;
use super::sweep::Swept;

/// Numbers of the arrays: direct entries, places of chunks, next hops by code.
pub(super) const DIRECT: u8 = 0;
pub(super) const CHUNKS: u8 = 1;
pub(super) const NEXT_HOPS: u8 = 2;

/// The writer's side of the arrays.
#[derive(Debug)]
pub(super) struct Written<F: Changing> {
    pub(super) form: F,
    pub(super) geometry: Geometry,
    pub(super) chunks: Units,
    /// Places that the arrays have.
    pub(super) places: u32,
    /// Places and codes that the budget has counted.
    pub(super) charged: [u32; 2],
    pub(super) codes: Codes,
    pub(super) stores: Vec<Store<F::Direct>>,
    pub(super) encoded: Encoded,
    /// Most codes that publishing retires.
    leaving: usize,
    /// Places of chunks that would be short with smaller codes.
    pub(super) long_for_codes: u32,
}

/// A direct entry to store.
#[derive(Debug, Clone, Copy)]
pub(super) struct Store<D> {
    at: u32,
    old: D,
    new: D,
    /// Whether the new chunk is a copy of the old one.
    is_copy: bool,
}

impl<F: Changing> Written<F> {
    /// Takes over arrays whose chunks fill the places before `end`.
    pub(super) fn new(form: F, geometry: Geometry, chunks: Units, places: u32, codes: Codes) -> Self {
        let charged = [chunks.end(), codes.end()];
        let mut written = Self {
            form,
            geometry,
            chunks,
            places,
            charged,
            codes,
            stores: Vec::new(),
            encoded: Encoded::default(),
            leaving: 0,
            long_for_codes: 0,
        };
        for at in 0..1 << geometry.k {
            let direct = written.form.direct(at);
            written.long_for_codes += written.form.codes(direct, geometry, |code| written.codes.count(code));
        }
        written
    }

    /// Replaces next hops by their codes.
    pub(super) fn number(&mut self, swept: &mut [Swept], budget: &mut Budget) -> Result<(), PrepareError> {
        if !F::CODED {
            return Ok(());
        }
        for range in swept {
            let code = self.codes.code(range.code, self.form.next_hops(), budget)?;
            range.code = code.ok_or(PrepareError::Rebuild("more next hops than there is room for"))?;
        }
        if let Some(more) = self.codes.end().checked_sub(self.charged[1]) {
            budget.charge(4 * more as usize)?;
            self.charged[1] += more;
        }
        Ok(())
    }

    /// Prepares a chunk of one next hop, if it changes.
    pub(super) fn whole(&mut self, at: usize, code: u32, budget: &mut Budget) -> Result<(), PrepareError> {
        let (old, new) = (self.form.direct(at), self.form.whole(code).map_err(PrepareError::Rebuild)?);
        if old != new {
            self.room(budget)?;
            self.store(at, new, false);
        }
        Ok(())
    }

    /// Prepares a chunk of several ranges, if it changes.
    pub(super) fn cut(
        &mut self,
        at: usize,
        code: u32,
        further: &[Swept],
        budget: &mut Budget,
    ) -> Result<(), PrepareError> {
        let new = self.form.encode(code, further, self.geometry, &mut self.encoded, budget)?;
        let (old, new) = (self.form.direct(at), new.map_err(PrepareError::Rebuild)?);
        if !self.form.in_place(old).0 && self.form.at_place(old, 0) == new && self.form.is(old, &self.encoded)
        {
            return Ok(());
        }
        self.room(budget)?;
        match self.place(self.form.unit(new).size, budget) {
            Ok(place) => {
                self.form.write(place, &self.encoded);
                self.store(at, self.form.at_place(new, place), false);
                Ok(())
            }
            Err(refused) => {
                self.chunks.expect_less(1);
                Err(refused)
            }
        }
    }

    /// Prepares the move of a chunk that lies beyond the end of a compact array, if there is a free place before that end.
    /// Returns whether the entry has a chunk.
    pub(super) fn move_back(&mut self, at: usize, budget: &mut Budget) -> Result<bool, OutOfMemory> {
        let direct = self.form.direct(at);
        if self.form.in_place(direct).0 {
            return Ok(false);
        }
        let used = self.chunks.end() - self.chunks.free_elements();
        let unit = self.form.unit(direct);
        if unit.place >= used {
            self.room(budget)?;
            match self.chunks.take_before(unit.size, used) {
                Some(place) => {
                    self.form.copy(unit, place);
                    self.store(at, self.form.at_place(direct, place), true);
                }
                None => self.chunks.expect_less(1),
            }
        }
        Ok(true)
    }

    /// Takes places for a chunk.
    fn place(&mut self, size: u32, budget: &mut Budget) -> Result<u32, PrepareError> {
        if let Some(place) = self.chunks.take(size) {
            return Ok(place);
        }
        let end = self.chunks.end() + size;
        if end > self.places {
            return Err(PrepareError::Rebuild("more ranges than there is room for"));
        }
        if let Some(more) = end.checked_sub(self.charged[0]) {
            budget.charge(more as usize * self.place_bytes())?;
            self.charged[0] = end;
        }
        self.chunks.append(size).ok_or(PrepareError::Rebuild("more ranges than there is room for"))
    }

    /// Makes room for an entry to store. The chunk that it replaces comes back one day, or its own if it is not published.
    fn room(&mut self, budget: &mut Budget) -> Result<(), OutOfMemory> {
        budget.reserve(&mut self.stores, 1)?;
        self.chunks.expect(1, budget)
    }

    /// Notes an entry to store, for which there is room.
    fn store(&mut self, at: usize, new: F::Direct, is_copy: bool) {
        let old = self.form.direct(at);
        if F::CODED && !is_copy {
            let has_chunk = !self.form.in_place(old).0;
            self.leaving += if has_chunk { self.form.chunk(old).entries } else { 1 };
        }
        self.stores.push(Store { at: at as u32, old, new, is_copy });
    }

    /// Returns the chunk of an entry, if it has one.
    pub(super) fn unit(&self, direct: F::Direct) -> Option<Unit> {
        (!self.form.in_place(direct).0).then(|| self.form.unit(direct))
    }

    /// Returns the words of halves and of next hops up to the last ones.
    pub(super) fn used(&self) -> [u32; 2] {
        let [halves, next_hops] = self.form.place_words().map(|words| self.chunks.end() * words as u32);
        [halves, if F::CODED { self.codes.end() } else { next_hops }]
    }

    /// Prefetches the direct entries of chunks, and then what they lead to.
    pub(super) fn fetch(&self, chunks: impl Iterator<Item = usize> + Clone) {
        chunks.clone().for_each(|at| self.form.fetch(at));
        for unit in chunks.filter_map(|at| self.unit(self.form.direct(at))) {
            for (array, words) in
                [self.form.half_words(), self.form.next_hops()].into_iter().zip(self.form.place_words())
            {
                if words > 0 {
                    fetch_at(array, unit.place as usize * words);
                }
            }
        }
    }

    /// Returns the bytes of a place.
    pub(super) fn place_bytes(&self) -> usize {
        4 * self.form.place_words().iter().sum::<usize>()
    }

    /// Returns the most units that publishing retires.
    pub(super) fn retires(&self) -> usize {
        self.stores.len() + self.leaving.min(self.codes.len())
    }

    /// Forgets what is prepared.
    pub(super) fn abandon(&mut self) {
        while let Some(store) = self.stores.pop() {
            match self.unit(store.new) {
                Some(unit) => self.chunks.give_expected(unit),
                None => self.chunks.expect_less(1),
            }
        }
        self.leaving = 0;
        self.codes.abandon(self.form.next_hops());
    }

    /// Tells of the words of new chunks and codes.
    pub(super) fn emit_chunks(&self, publication: &mut dyn Publication) {
        let next_hops = self.form.next_hops();
        for code in self.codes.fresh().iter().map(|&code| code as usize) {
            publication.stored(StoredWords::part(NEXT_HOPS, next_hops, code..code + 1));
        }
        for unit in self.stores.iter().filter_map(|store| self.unit(store.new)) {
            let [halves, hops] = self.words(unit);
            publication.stored(StoredWords::part(CHUNKS, self.form.half_words(), halves));
            if !hops.is_empty() {
                publication.stored(StoredWords::part(NEXT_HOPS, next_hops, hops));
            }
        }
    }

    /// Returns the words of a chunk: of halves, and of next hops of ranges.
    pub(super) fn words(&self, unit: Unit) -> [Range<usize>; 2] {
        let places = [unit.place, unit.place + unit.size].map(|place| place as usize);
        self.form.place_words().map(|words| places[0] * words..places[1] * words)
    }

    /// Stores the entries, and tells of each if wanted.
    pub(super) fn publish(&self, publication: &mut dyn Publication, tells: bool) {
        for store in &self.stores {
            let at = store.at as usize;
            self.form.store(at, store.new);
            if tells {
                publication.stored(StoredWords::part(DIRECT, self.form.direct_words(), at..at + 1));
            }
        }
    }

    /// Tells of the direct entries.
    pub(super) fn emit_direct(&self, publication: &mut dyn Publication) {
        let direct = self.form.direct_words();
        publication.stored(StoredWords::whole(DIRECT, direct, direct.len()));
    }

    /// Tells of the words in use of all arrays.
    pub(super) fn emit(&self, publication: &mut dyn Publication) {
        let [halves, next_hops] = self.used().map(|words| words as usize);
        publication.stored(StoredWords::whole(NEXT_HOPS, self.form.next_hops(), next_hops));
        publication.stored(StoredWords::whole(CHUNKS, self.form.half_words(), halves));
        self.emit_direct(publication);
    }

    /// Retires what entries led to that were replaced.
    pub(super) fn replace(&mut self, publication: &mut dyn Publication) {
        let (geometry, mut stores) = (self.geometry, core::mem::take(&mut self.stores));
        for store in stores.iter().filter(|store| !store.is_copy) {
            self.long_for_codes += self.form.codes(store.new, geometry, |code| self.codes.count(code));
        }
        for store in &stores {
            match self.unit(store.old) {
                Some(unit) => publication.retire(RetiredUnit { array: CHUNKS, unit }),
                None => self.chunks.expect_less(1),
            }
            if !store.is_copy {
                let array = self.form.next_hops();
                self.long_for_codes -= self.form.codes(store.old, geometry, |code| {
                    if let Some(unit) = self.codes.take_back(code, array) {
                        publication.retire(RetiredUnit { array: NEXT_HOPS, unit });
                    }
                });
            }
        }
        stores.clear();
        self.stores = stores;
        self.leaving = 0;
        self.codes.published();
    }
}
