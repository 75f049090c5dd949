//! Matched prefix lengths from any engine.
//!
//! Kernels return one 32-bit word a key. To return the length of the matched prefix as well, the engine is built
//! over *match ids*, one for every pair (next hop, prefix length) that occurs, and a table turns the ids back after
//! the kernel has run: kernels need no change and are no slower. Fewer neighbouring ranges merge, because their
//! lengths must be equal too; `docs/adr/0002-batches.md` gives the reasons.

use core::ops::ControlFlow;
use core::sync::atomic::AtomicU64;
use std::collections::HashMap;

use crate::memory::{Budget, Buffer, Cell, Limits, Memory, OutOfMemory, Shared};
use crate::net::{Batch, BatchLookup, IntoKey, Key, Keys, NextHop, Prefix, Route, Routes};
use crate::simd::Present;

use super::registry::Engine;
use super::{BuildError, CheckError, Fib};

/// The route that a lookup found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Match {
    /// The next hop of the longest matching route.
    pub next_hop: NextHop,
    /// Length of its prefix; with the key, this is the prefix.
    pub prefix_len: u8,
}

/// Match ids turned back at a time, on the stack.
const BLOCK: usize = 256;

/// An engine that also returns the length of the matched prefix. As a [`Fib`] it returns the next hop alone.
#[derive(Debug)]
pub struct WithLength<K: Key> {
    fib: Box<dyn Fib<K>>,
    /// The match of each match id, which starts at 1, packed. They are atomic because files can hold them, and be mapped.
    matches: Shared<u64>,
}

/// The bit of a packed match at which the length of the prefix begins. The next hop is below it.
const LENGTH_AT: u32 = 32;

fn packed(found: Match) -> u64 {
    u64::from(found.prefix_len) << LENGTH_AT | u64::from(found.next_hop.id())
}

impl<K: Key> WithLength<K> {
    /// Builds `engine` over match ids.
    ///
    /// # Errors
    /// As [`Engine::build`], and when there is no memory for the match ids; `limits` bounds the two separately.
    pub fn build(engine: &Engine<K>, routes: &dyn Routes<K>, limits: Limits) -> Result<Self, BuildError> {
        let mut ids = MatchIds::new(limits);
        routes
            .try_for_each(Prefix::ALL, |route| ids.intern(route))
            .map_err(|error| BuildError::memory("with-length", error))?;
        let fib = engine.build(&Renamed { routes, ids: &ids }, limits)?;
        let MatchIds { mut matches, mut budget, .. } = ids;
        budget.shrink(&mut matches);
        Ok(Self { fib, matches: matches.into() })
    }

    /// Returns an engine over match ids, as a file has it.
    pub(crate) fn of_file(fib: Box<dyn Fib<K>>, matches: Shared<u64>) -> Self {
        Self { fib, matches }
    }

    /// Returns the engine over match ids, for callers that turn many of them back at once: see [`matched`](Self::matched).
    #[must_use]
    pub fn engine(&self) -> &dyn Fib<K> {
        &*self.fib
    }

    /// Returns the matches, packed.
    pub(crate) fn packed(&self) -> &[AtomicU64] {
        &self.matches
    }

    /// Returns the number of matches: of the pairs (next hop, prefix length) that occur.
    #[must_use]
    pub fn pairs(&self) -> usize {
        self.matches.len()
    }

    /// Returns the match of a match id: of a number that [`engine`](Self::engine) returns as next hop. `None` if there is no such match,
    /// since a file that is mapped may hold anything.
    #[inline]
    #[must_use]
    pub fn matched(&self, id: NextHop) -> Option<Match> {
        let word = self.matches.get(id.id() as usize - 1)?.read();
        let prefix_len = (word >> LENGTH_AT).min(K::BITS.into()) as u8;
        Some(Match { next_hop: NextHop::new(word as u32)?, prefix_len })
    }

    /// Returns the longest match of `key`, which may also be an address of the standard library.
    #[must_use]
    pub fn lookup(&self, key: impl IntoKey<K>) -> Option<Match> {
        self.fib.lookup_key(key.into_key()).and_then(|id| self.matched(id))
    }

    /// Looks up `keys`, writing the match of `keys[i]` to `results[i]`.
    ///
    /// # Panics
    /// When the two differ in length.
    pub fn lookup_batch(&self, keys: &[K], results: &mut [Option<Match>]) {
        self.batch(keys).run(results);
    }

    /// Returns a batch of lookups of keys in any of the shapes of [`Keys`], to be run: see [`Batch`].
    pub fn batch<'k>(
        &self,
        keys: impl Into<Keys<'k, K>>,
    ) -> Batch<'k, K, impl BatchLookup<K, Option<Match>>> {
        Batch::new(keys.into(), |isa, _, keys, results| self.lookup_keys_on(isa, keys, results))
    }

    fn lookup_keys_on(&self, isa: Present, keys: Keys<'_, K>, results: &mut [Option<Match>]) {
        keys.for_each_block(|first, block| {
            for (index, block) in block.chunks(BLOCK).enumerate() {
                let mut ids = [None; BLOCK];
                let ids = &mut ids[..block.len()];
                self.fib.lookup_batch_on(isa, block, ids);
                for (result, id) in results[first + index * BLOCK..].iter_mut().zip(ids) {
                    *result = id.and_then(|id| self.matched(id));
                }
            }
        });
    }

    /// Returns the memory of the engine and of the table of matches.
    #[must_use]
    pub fn memory(&self) -> Memory {
        let fib = Memory { allocated_bytes: size_of_val(&*self.fib), ..Memory::default() };
        self.fib.memory() + fib + self.matches.memory()
    }

    /// Checks the underlying engine and the matches.
    ///
    /// # Errors
    /// As [`Fib::check`].
    pub fn check(&self) -> Result<(), CheckError> {
        self.fib.check()?;
        for (at, word) in self.matches.iter().map(Cell::read).enumerate() {
            let is_match = word as u32 != 0 && word >> LENGTH_AT <= K::BITS.into();
            CheckError::unless(is_match, "a match has a next hop and a length of the family", at)?;
        }
        Ok(())
    }
}

/// The next hop alone, for callers that do not need the length.
impl<K: Key> Fib<K> for WithLength<K> {
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        self.lookup(key).map(|found| found.next_hop)
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        self.fib.lookup_batch_on(isa, keys, results);
        for result in results {
            *result = result.and_then(|id| self.matched(id)).map(|found| found.next_hop);
        }
    }

    fn prefetches_keys(&self, isa: Present) -> bool {
        self.fib.prefetches_keys(isa)
    }

    fn memory(&self) -> Memory {
        self.memory()
    }

    fn check(&self) -> Result<(), CheckError> {
        self.check()
    }

    fn with_length(&self) -> Option<&Self> {
        Some(self)
    }
}

/// The pairs that occur, numbered from 1 in the order of their first route.
struct MatchIds {
    numbers: HashMap<(NextHop, u8), NextHop>,
    matches: Buffer<u64>,
    budget: Budget,
}

impl MatchIds {
    fn new(limits: Limits) -> Self {
        Self { numbers: HashMap::new(), matches: Buffer::new(), budget: Budget::new(limits) }
    }

    fn intern<K: Key>(&mut self, route: Route<K>) -> Result<(), OutOfMemory> {
        let pair = (route.next_hop, route.prefix.len());
        if self.numbers.contains_key(&pair) {
            return Ok(());
        }
        self.reserve()?;
        self.budget.push(&mut self.matches, packed(Match { next_hop: pair.0, prefix_len: pair.1 }))?;
        // There are at most 2^32 - 1 next hops times 129 lengths, but no memory holds the routes for as many.
        let id = u32::try_from(self.matches.len()).ok().and_then(NextHop::new);
        self.numbers.insert(pair, id.ok_or(self.refused(usize::MAX))?);
        Ok(())
    }

    /// Makes room for one more match id; the old and the new table both count while entries move.
    fn reserve(&mut self) -> Result<(), OutOfMemory> {
        let held = self.numbers.capacity();
        if self.numbers.len() < held {
            return Ok(());
        }
        let wanted = table_bytes((2 * held).max(3));
        self.budget.charge(wanted)?;
        self.numbers.try_reserve(1).map_err(|_| self.refused(wanted))?;
        self.budget.release(table_bytes(held));
        Ok(())
    }

    fn refused(&self, wanted_bytes: usize) -> OutOfMemory {
        OutOfMemory { wanted_bytes, used_bytes: self.budget.used_bytes(), limit_bytes: None }
    }
}

/// Returns the bytes that the standard library's hash table takes for this many entries: a power of two of slots, an
/// eighth of them free, each an entry and a control byte, and one more group of control bytes.
fn table_bytes(entries: usize) -> usize {
    const GROUP: usize = 16;
    if entries == 0 {
        return 0;
    }
    let slots = (entries * 8).div_ceil(7).next_power_of_two();
    slots * (size_of::<((NextHop, u8), NextHop)>() + 1) + 2 * GROUP
}

/// The same routes, each with its match id as next hop.
struct Renamed<'a, K> {
    routes: &'a dyn Routes<K>,
    ids: &'a MatchIds,
}

impl<K: Key> Renamed<'_, K> {
    fn rename(&self, route: Route<K>) -> Route<K> {
        let id = self.ids.numbers[&(route.next_hop, route.prefix.len())];
        Route::new(route.prefix, id)
    }
}

impl<K: Key> Routes<K> for Renamed<'_, K> {
    fn len(&self) -> usize {
        self.routes.len()
    }

    fn visit(&self, within: Prefix<K>, each: &mut dyn FnMut(Route<K>) -> ControlFlow<()>) -> ControlFlow<()> {
        self.routes.visit(within, &mut |route| each(self.rename(route)))
    }

    fn parent(&self, prefix: Prefix<K>) -> Option<Route<K>> {
        self.routes.parent(prefix).map(|route| self.rename(route))
    }

    fn visit_from_parent(
        &self,
        within: Prefix<K>,
        each: &mut dyn FnMut(Route<K>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.routes.visit_from_parent(within, &mut |route| each(self.rename(route)))
    }
}
