//! Changes while readers look: segments are rebuilt next to those that readers see, and entries are stored word by word.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use crate::check::CheckError;
use crate::fib::in_place::{InPlace, PrepareError, Publication, RetiredUnit};
use crate::fib::parts::by_entry::{Meets, by_entry};
use crate::fib::{BuildError, Fib};
use crate::memory::{self, Budget, Buffer, Cell, Limits, Memory, OutOfMemory, Shared};
use crate::net::{Ipv4Key, Key, Prefix, Routes};
use crate::simd::fetch_at;

use super::build::fill;
use super::codes::Codes;
use super::fill::{Filling, Sink};
use super::layout::{HALVES, Live};
use super::prepared::Prepared;
#[cfg(test)]
use super::prepared::{FIRST, NEXT_HOPS};
#[cfg(test)]
use super::written::SEGMENTS;
use super::written::Written;
use super::{Dir248, NAME};

/// The writer of a table.
pub(super) struct Editor<K> {
    table: Arc<Live<K>>,
    filling: Filling<K>,
    prepared: Prepared,
    /// A copy of the first table, to be published in place of the first table.
    shadow: Option<Buffer<u32>>,
    /// The next segment to examine for a move.
    cursor: u32,
}

/// Prefixes whose entries are fetched ahead.
const AHEAD: usize = 128;

/// The number of words of the first table in one notification of a listener. For the narrow keys of tests it is one word.
const fn emitted<K: Key>() -> usize {
    if K::BITS == 32 { 1 << 12 } else { 1 }
}

impl<K: Ipv4Key> Editor<K> {
    /// Builds the tables of the routes, with room to grow.
    ///
    /// # Errors
    /// As for [`Dir248::build`].
    pub(super) fn build(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, BuildError> {
        let memory = |error| BuildError::memory(NAME, error);
        let mut budget = Budget::new(limits);
        let mut written = Written::new::<K>(limits.huge_pages, &mut budget).map_err(memory)?;
        let dictionary = fill(routes, &mut written, &mut budget)?;
        // No reader has seen the tables, so nothing has to be retired.
        written.segments.retire(&mut Vec::new());
        let codes = Codes::new(Dir248::<K>::ID_MAX, dictionary, &mut budget).map_err(memory)?;
        let mut prepared = Prepared { written, codes, budget, runs: Vec::new(), refused: None };
        let table = Arc::new(prepared.reading());
        Ok(Self { table, filling: Filling::new(), prepared, shadow: None, cursor: 0 })
    }
}

impl<K: Key> Editor<K> {
    fn fill(&mut self, prefixes: &[Prefix<K>], after: &dyn Routes<K>) -> Result<(), OutOfMemory> {
        let Self { filling, prepared, .. } = self;
        prepared.written.segments.units.absorb(&mut prepared.budget)?;
        let entry = |prefix: &Prefix<K>| prefix.addr().window(0, Dir248::<K>::LEADING) as usize;
        for some in prefixes.chunks(AHEAD) {
            for prefix in some {
                fetch_at(&prepared.written.first, entry(prefix) / HALVES);
            }
        }
        for meets in by_entry(prefixes, Dir248::<K>::LEADING) {
            match meets {
                Meets::Whole(prefix) => filling.sweep(after, prefix, prepared)?,
                Meets::Within(inside) => {
                    let at = entry(&inside[0]);
                    // The codes of the other addresses stay, so they are read before the prefixes are filled in.
                    prepared.written.read(at, &mut filling.open[..Dir248::<K>::SPAN]);
                    let mut last: Option<Prefix<K>> = None;
                    for &prefix in inside {
                        // A prefix inside the one before was filled together with it.
                        if last.is_none_or(|last| !last.covers(prefix)) {
                            filling.sweep_part(after, prefix, prepared)?;
                            last = Some(prefix);
                        }
                    }
                    prepared.divided(at, &filling.open[..Dir248::<K>::SPAN])?;
                }
            }
            // The caller rebuilds the tables, so the other prefixes need not be prepared.
            if prepared.refused.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Updates the table's numbers of elements.
    fn note_used(&self) {
        for (to, used) in self.table.used.iter().zip(self.prepared.used()) {
            // Relaxed: lookups do not read these numbers.
            to.store(used, Ordering::Relaxed);
        }
    }

    fn drop_shadow(&mut self) {
        if let Some(copy) = self.shadow.take() {
            self.prepared.budget.free(copy);
        }
    }
}

impl Prepared {
    /// Returns the number of segments up to the last one, and of codes.
    fn used(&self) -> [u32; 2] {
        [self.written.segments.units.end(), self.codes.len() as u32]
    }

    /// Returns the tables in the form that lookups read.
    fn reading<K>(&mut self) -> Live<K> {
        Live {
            used: self.used().map(AtomicU32::new),
            first: self.written.first.another(),
            segments: self.written.segments.words.another(),
            next_hops: self.codes.next_hops(),
            keys: PhantomData,
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

    fn try_prepare(
        &mut self,
        prefixes: &[Prefix<K>],
        after: &dyn Routes<K>,
        _shadow: bool,
    ) -> Result<(), PrepareError> {
        debug_assert!(self.prepared.runs.is_empty(), "what was prepared is published or abandoned first");
        self.fill(prefixes, after)?;
        self.prepared.refused.map_or(Ok(()), |reason| Err(PrepareError::Rebuild(reason)))
    }

    fn is_loose(&self) -> bool {
        self.prepared.written.segments.is_loose()
    }

    fn move_some(&mut self, entries: usize) -> Result<(), OutOfMemory> {
        self.cursor = self.prepared.tidy(self.cursor, entries)?;
        Ok(())
    }

    fn retires(&self) -> usize {
        self.prepared.written.segments.retires()
    }

    fn abandon(&mut self) {
        self.drop_shadow();
        self.prepared.abandon();
    }

    fn publish(&mut self, publication: &mut dyn Publication) {
        // A copy from before these changes would lack them.
        self.drop_shadow();
        self.note_used();
        // Listeners get segments before the entries that lead to them. Readers may still be in the old segments, so
        // those retire last.
        self.prepared.emit_contents(publication);
        self.prepared.publish(publication, emitted::<K>());
        self.prepared.retire(publication);
    }

    fn copy_entries(&mut self) -> Result<(), OutOfMemory> {
        self.drop_shadow();
        let Prepared { written, budget, .. } = &mut self.prepared;
        let mut copy = budget.buffer(written.first.len())?;
        copy.extend(written.first.iter().map(Cell::read));
        self.shadow = Some(copy);
        Ok(())
    }

    fn publish_shadow(&mut self, publication: &mut dyn Publication) {
        let Some(copy) = self.shadow.take() else { return self.publish(publication) };
        // The old entries and the copy are both counted. The old ones go with their last reader, so one count is released.
        self.prepared.budget.release(size_of_val(&copy[..]));
        self.prepared.emit_contents(publication);
        self.prepared.publish_in(Shared::from(copy));
        if publication.listens() {
            self.prepared.emit_first(publication);
        }
        self.table = Arc::new(self.prepared.reading());
        self.prepared.retire(publication);
    }

    fn emit(&self, publication: &mut dyn Publication) {
        let [direct_bits, rest_bits] = Dir248::<K>::NUMBERS;
        let dictionary = self.prepared.codes.are_numbered().into();
        publication.structure(&[("dictionary", dictionary), direct_bits, rest_bits]);
        self.prepared.emit_all(publication);
    }

    fn free(&mut self, retired: RetiredUnit) {
        self.prepared.written.segments.units.give_expected(retired.unit);
    }

    fn bytes(&self, retired: RetiredUnit) -> usize {
        self.prepared.written.segments.bytes(retired.unit)
    }

    fn memory(&self) -> Memory {
        let Prepared { written, codes, runs, .. } = &self.prepared;
        let lists = written.memory() + codes.memory() + memory::of(runs);
        self.table.memory() + Memory { lookup_bytes: 0, ..lists }
    }

    fn check(&self, retired: &[RetiredUnit]) -> Result<(), CheckError> {
        let reached = self.table.reached()?;
        self.prepared.written.segments.check(reached, retired)?;
        self.prepared.codes.check()
    }

    #[cfg(test)]
    fn mirrored(&self) -> crate::fib::in_place::Mirrored<K> {
        let is_numbered = self.prepared.codes.are_numbered();
        Box::new(move |arrays| {
            let array = |number: u8| {
                let words = arrays[usize::from(number)].iter();
                Shared::filled(words.chain(&[0]).map(|&word| word as u32))
            };
            Box::new(Live::<K> {
                first: array(FIRST),
                segments: array(SEGMENTS),
                next_hops: is_numbered.then(|| array(NEXT_HOPS)),
                used: Default::default(),
                keys: PhantomData,
            })
        })
    }

    #[cfg(test)]
    fn free_words(&self) -> Vec<(u8, core::ops::Range<usize>)> {
        self.prepared.written.segments.free_words().collect()
    }
}
