//! Changes while readers look: nodes and leaves are written anew beside those that readers see, and published by one word.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use fibula::check::CheckError;
use fibula::fib::{BuildError, Fib};
use fibula::net::{Key, KeyKind, Prefix, Routes};
use fibula::unstable::in_place::{InPlace, PrepareError, Publication, RetiredUnit};
use fibula::unstable::memory::{Budget, Buffer, Cell, Limits, Memory, OutOfMemory, Shared};
use fibula::unstable::parts::arena::{Arena, ArrayLayout};
use fibula::unstable::parts::by_entry::{Meets, by_entry};
use fibula::unstable::simd::fetch_at;

use super::NAME;
use super::build::{Arrays, is_narrow};
use super::fill::Filling;
use super::layout::{LeafWord, NODE_WORDS, Poptrie, SLOTS, direct, direct_bits};
use super::prepared::{LEAVES, NODES, Prepared};
use super::tidy::Cursor;

/// The writer of a trie.
struct Editor<K, L: LeafWord> {
    table: Arc<Poptrie<K>>,
    filling: Filling<K>,
    prepared: Prepared<L>,
    /// A copy of the entries, to be published in their place.
    shadow: Option<Buffer<u32>>,
    cursor: Cursor,
}

/// Prefixes whose entries and nodes are fetched ahead.
const AHEAD: usize = 128;

/// Builds the trie of the routes, with room to grow.
///
/// # Errors
/// As for [`Poptrie::build`].
pub(super) fn build<K: Key>(
    routes: &dyn Routes<K>,
    limits: Limits,
) -> Result<Box<dyn InPlace<K>>, BuildError> {
    Ok(if is_narrow(routes) {
        Box::new(Editor::<K, u16>::build(routes, limits)?)
    } else {
        Box::new(Editor::<K, u32>::build(routes, limits)?)
    })
}

/// Returns the number of elements that there is room for: several times those of a full table, and for the narrow keys of
/// tests twice what there can be.
fn most<K: Key>(built: usize, per_node: usize) -> u32 {
    let most = match K::KIND {
        KeyKind::Toy => (per_node << (K::BITS + 1)).max(256),
        _ => (per_node << 22).max(8 * built),
    };
    most.min(1 << 31) as u32
}

impl<K: Key, L: LeafWord> Editor<K, L> {
    fn build(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, BuildError> {
        let mut budget = Budget::new(limits);
        let Arrays { direct, nodes, leaves, .. } = Arrays::<L>::build(routes, &mut budget)?;
        Self::of(direct.into(), &nodes.into(), &leaves.into(), budget, limits)
            .map_err(|error| BuildError::memory(NAME, error))
    }

    fn of(
        direct: Shared<u32>,
        nodes: &Shared<u64>,
        leaves: &Shared<L>,
        mut budget: Budget,
        limits: Limits,
    ) -> Result<Self, OutOfMemory> {
        let form = ArrayLayout {
            number: NODES,
            width: NODE_WORDS,
            most: most::<K>(nodes.len() / NODE_WORDS, 1),
            padding: 0,
            huge_pages: limits.huge_pages,
        };
        let nodes = Arena::new(nodes, form)?;
        let form = ArrayLayout { number: LEAVES, width: 1, most: most::<K>(leaves.len(), 8), ..form };
        let leaves = Arena::new(leaves, form)?;
        let filling = Filling::new(&mut budget)?;
        let (entries, bases) = (Vec::new(), Vec::new());
        let mut prepared = Prepared { direct, nodes, leaves, budget, entries, bases, refused: None };
        let table = Arc::new(prepared.reading());
        Ok(Self { table, filling, prepared, shadow: None, cursor: Cursor::default() })
    }

    fn fill(&mut self, prefixes: &[Prefix<K>], after: &dyn Routes<K>) -> Result<(), OutOfMemory> {
        let Self { filling, prepared, .. } = self;
        prepared.nodes.units.absorb(&mut prepared.budget)?;
        prepared.leaves.units.absorb(&mut prepared.budget)?;
        for some in prefixes.chunks(AHEAD) {
            for prefix in some {
                fetch_at(&prepared.direct, direct(prefix.addr()));
            }
            for prefix in some {
                let entry = prepared.direct[direct(prefix.addr())].read();
                fetch_at(&prepared.nodes.words, entry as usize * NODE_WORDS);
            }
        }
        for meets in by_entry(prefixes, direct_bits(K::BITS) as u8) {
            match meets {
                Meets::Whole(prefix) => filling.sweep(after, prefix, 0, prepared)?,
                Meets::Within(inside) => filling.change_entry(inside, after, prepared)?,
            }
            if prepared.refused.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Keeps the table's numbers of elements up to date.
    fn note_ends(&self) {
        if let Some(ends) = &self.table.ends {
            for (end, units) in ends.iter().zip([&self.prepared.nodes.units, &self.prepared.leaves.units]) {
                end.store(units.end(), Ordering::Relaxed);
            }
        }
    }

    fn drop_shadow(&mut self) {
        if let Some(copy) = self.shadow.take() {
            self.prepared.budget.free(copy);
        }
    }
}

impl<L: LeafWord> Prepared<L> {
    /// Returns what lookups read.
    fn reading<K>(&mut self) -> Poptrie<K> {
        Poptrie {
            direct: self.direct.another(),
            nodes: self.nodes.words.another(),
            leaves: L::leaves(self.leaves.words.another()),
            ends: Some([&self.nodes.units, &self.leaves.units].map(|units| AtomicU32::new(units.end()))),
            keys: PhantomData,
        }
    }
}

impl<K: Key, L: LeafWord> InPlace<K> for Editor<K, L> {
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
        debug_assert!(self.prepared.entries.is_empty() && self.prepared.bases.is_empty());
        self.fill(prefixes, after)?;
        let copies = (self.prepared.raises() * SLOTS) as u64;
        if self.prepared.refused.is_none() && !self.prepared.nodes.has_room(copies) {
            self.prepared.refused = Some("more nodes than there are places for");
        }
        self.prepared.refused.map_or(Ok(()), |reason| Err(PrepareError::Rebuild(reason)))
    }

    fn is_loose(&self) -> bool {
        self.prepared.nodes.is_loose() || self.prepared.leaves.is_loose()
    }

    fn move_some(&mut self, entries: usize) -> Result<(), OutOfMemory> {
        self.cursor = self.prepared.tidy::<K>(self.cursor, entries)?;
        Ok(())
    }

    fn retires(&self) -> usize {
        let Prepared { nodes, leaves, .. } = &self.prepared;
        nodes.retires() + leaves.retires() + self.prepared.raises()
    }

    fn abandon(&mut self) {
        self.drop_shadow();
        self.prepared.abandon();
    }

    fn publish(&mut self, publication: &mut dyn Publication) {
        self.drop_shadow();
        self.note_ends();
        let listens = publication.listens();
        let prepared = &mut self.prepared;
        if listens {
            prepared.emit_units(publication);
        }
        prepared.publish(publication, listens);
        prepared.retire(publication);
    }

    fn copy_entries(&mut self) -> Result<(), OutOfMemory> {
        self.drop_shadow();
        let prepared = &mut self.prepared;
        let mut copy = prepared.budget.buffer(prepared.direct.len())?;
        copy.extend(prepared.direct.iter().map(Cell::read));
        self.shadow = Some(copy);
        prepared.raise::<K>()
    }

    fn publish_shadow(&mut self, publication: &mut dyn Publication) {
        let Some(mut copy) = self.shadow.take() else { return self.publish(publication) };
        let prepared = &mut self.prepared;
        // The old entries, for which these were counted once, are freed with their last reader.
        prepared.budget.release(size_of_val(&copy[..]));
        for entry in &prepared.entries {
            copy[entry.at as usize] = entry.word;
        }
        prepared.direct = Shared::from(copy);
        if publication.listens() {
            prepared.emit_units(publication);
            prepared.emit_direct(publication);
        }
        self.table = Arc::new(prepared.reading());
        prepared.retire(publication);
    }

    fn emit(&self, publication: &mut dyn Publication) {
        publication.structure(&[]);
        self.prepared.leaves.emit_all(publication);
        self.prepared.nodes.emit_all(publication);
        self.prepared.emit_direct(publication);
    }

    fn free(&mut self, retired: RetiredUnit) {
        let Prepared { nodes, leaves, .. } = &mut self.prepared;
        let units = if retired.array == NODES { &mut nodes.units } else { &mut leaves.units };
        units.give_expected(retired.unit);
    }

    fn bytes(&self, retired: RetiredUnit) -> usize {
        let Prepared { nodes, leaves, .. } = &self.prepared;
        if retired.array == NODES { nodes.bytes(retired.unit) } else { leaves.bytes(retired.unit) }
    }

    fn memory(&self) -> Memory {
        let prepared = &self.prepared;
        let notes =
            fibula::unstable::memory::of(&prepared.entries) + fibula::unstable::memory::of(&prepared.bases);
        let lists = prepared.nodes.memory() + prepared.leaves.memory() + notes;
        let open = fibula::unstable::memory::of(&self.filling.open) + lists;
        self.table.memory() + Memory { lookup_bytes: 0, ..open }
    }

    fn check(&self, retired: &[RetiredUnit]) -> Result<(), CheckError> {
        let reached = self.table.reached()?;
        self.prepared.nodes.check(reached.nodes, retired)?;
        self.prepared.leaves.check(reached.leaves, retired)
    }

    #[cfg(test)]
    fn mirrored(&self) -> fibula::unstable::in_place::Mirrored<K> {
        use super::prepared::DIRECT;
        Box::new(|arrays| {
            let array = |number: u8| arrays[usize::from(number)].iter();
            Box::new(Poptrie::<K> {
                direct: Shared::filled(array(DIRECT).map(|&word| word as u32)),
                nodes: Shared::filled(array(NODES).copied()),
                leaves: L::leaves(Shared::filled(array(LEAVES).map(|&word| L::of(word as u32)))),
                ends: None,
                keys: PhantomData,
            })
        })
    }

    #[cfg(test)]
    fn free_words(&self) -> Vec<(u8, core::ops::Range<usize>)> {
        self.prepared.nodes.free_words().chain(self.prepared.leaves.free_words()).collect()
    }
}
