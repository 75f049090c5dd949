//! Changes while readers look: dirty chunks are made anew from the routes beside those that readers see, and published by
//! their direct entries.

use core::sync::atomic::Ordering;
use std::sync::Arc;

use fibula::check::CheckError;
use fibula::fib::{BuildError, Fib};
use fibula::net::{Ipv4Key, Key, Prefix, Routes};
use fibula::unstable::in_place::{InPlace, PrepareError, Publication, RetiredUnit};
use fibula::unstable::memory::{self, Limits, Memory, OutOfMemory};

use super::NAME;
use super::check::Walked;
use super::editor::Editor;
use super::format::Changing;
use super::layout::{Live, LiveCompact, LiveWide};
use super::options::{Format, Options};
#[cfg(test)]
use super::written::DIRECT;
use super::written::{CHUNKS, NEXT_HOPS, Written};

/// Builds a form that changes while readers look.
pub(super) fn build<K: Ipv4Key>(
    routes: &dyn Routes<K>,
    options: Options,
    limits: Limits,
) -> Result<Box<dyn InPlace<K>>, BuildError> {
    Ok(match options.format {
        Format::Wide => Box::new(Editor::<K, LiveWide>::build(routes, options, limits)?),
        _ => Box::new(Editor::<K, LiveCompact>::build(routes, options, limits)?),
    })
}

impl<K: Key, F: Changing + Walked> InPlace<K> for Editor<K, F> {
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
        debug_assert!(self.written.stores.is_empty(), "what was prepared is published or abandoned first");
        if self.is_long_for_codes() {
            return Err(PrepareError::Rebuild("popular next hops with large codes"));
        }
        if self.is_scattered {
            return Err(PrepareError::Rebuild("free places too small for chunks"));
        }
        self.rebuild(prefixes, after)
    }

    fn is_loose(&self) -> bool {
        self.written.chunks.free_elements() >= self.written.chunks.end() / 8
    }

    fn move_some(&mut self, entries: usize) -> Result<(), OutOfMemory> {
        self.move_chunks(entries)
    }

    fn retires(&self) -> usize {
        self.written.retires()
    }

    fn abandon(&mut self) {
        self.abandon_all();
    }

    fn publish(&mut self, publication: &mut dyn Publication) {
        for (to, used) in self.table.used.iter().zip(self.written.used()) {
            to.store(used, Ordering::Relaxed);
        }
        let listens = publication.listens();
        if listens {
            self.written.emit_chunks(publication);
        }
        self.written.publish(publication, listens);
        self.written.replace(publication);
        self.trim();
    }

    fn copy_entries(&mut self) -> Result<(), OutOfMemory> {
        self.shadow = Some(self.written.form.copied(&mut self.budget)?);
        Ok(())
    }

    fn publish_shadow(&mut self, publication: &mut dyn Publication) {
        let Some(copy) = self.shadow.take() else { return self.publish(publication) };
        // The old entries, for which these were counted once, are freed with their last reader.
        self.budget.release(size_of_val(&copy[..]));
        let listens = publication.listens();
        if listens {
            self.written.emit_chunks(publication);
        }
        self.written.form.replace_direct(copy);
        self.written.publish(publication, false);
        if listens {
            self.written.emit_direct(publication);
        }
        let used = self.written.used().map(Into::into);
        self.table = Arc::new(Live {
            form: self.written.form.another(),
            shape: self.table.shape,
            used,
            keys: core::marker::PhantomData,
        });
        self.written.replace(publication);
        self.trim();
    }

    fn emit(&self, publication: &mut dyn Publication) {
        let [first, second, third] = self.written.form.shape();
        let k = ("k", self.written.geometry.k.into());
        publication.structure(&[k, first, second, third]);
        self.written.emit(publication);
    }

    fn free(&mut self, retired: RetiredUnit) {
        match retired.array {
            NEXT_HOPS => self.written.codes.free(retired.unit),
            _ => self.written.chunks.give_expected(retired.unit),
        }
    }

    fn bytes(&self, retired: RetiredUnit) -> usize {
        let element = if retired.array == CHUNKS { self.written.place_bytes() } else { 4 };
        retired.unit.size as usize * element
    }

    fn memory(&self) -> Memory {
        let Written { chunks, codes, stores, encoded, .. } = &self.written;
        let lists = [
            chunks.memory(),
            codes.memory(),
            memory::of(stores),
            memory::of(&encoded.halves),
            memory::of(&encoded.next_hops),
            memory::of(&self.items),
            memory::of(&self.swept),
        ];
        lists.into_iter().fold(self.table.memory(), |all, list| all + Memory { lookup_bytes: 0, ..list })
    }

    fn check(&self, retired: &[RetiredUnit]) -> Result<(), CheckError> {
        let of =
            |array| retired.iter().filter(move |retired| retired.array == array).map(|retired| retired.unit);
        let found = self.table.form.walk(self.written.geometry, self.written.codes.end() as usize)?;
        CheckError::unless(
            found.long_for_codes == self.written.long_for_codes,
            "chunks that are long for their codes alone are counted",
            found.long_for_codes as usize,
        )?;
        if F::CODED {
            self.written.codes.check(&found.uses, self.written.form.next_hops(), of(NEXT_HOPS))?;
        }
        let mut units = found.units;
        units.extend(of(CHUNKS));
        self.written.chunks.check(units)
    }

    #[cfg(test)]
    fn mirrored(&self) -> fibula::unstable::in_place::Mirrored<K> {
        let (empty, shape) = (self.written.form.mirrored([&[]; 3]), self.table.shape);
        Box::new(move |arrays| {
            let form = empty.mirrored([DIRECT, CHUNKS, NEXT_HOPS].map(|at| &arrays[usize::from(at)][..]));
            let (used, keys) = (Default::default(), core::marker::PhantomData);
            Box::new(Live::<K, F> { form, shape, used, keys })
        })
    }

    #[cfg(test)]
    fn free_words(&self) -> Vec<(u8, core::ops::Range<usize>)> {
        let codes = self.written.codes.free_units().into_iter();
        let codes = codes.map(|code| (NEXT_HOPS, code.place as usize..(code.place + code.size) as usize));
        let chunks = self.written.chunks.free_units().into_iter();
        let halves_and_hops = chunks.flat_map(|unit| {
            let [halves, hops] = self.written.words(unit);
            [(CHUNKS, halves), (NEXT_HOPS, hops)]
        });
        codes.chain(halves_and_hops).collect()
    }
}
