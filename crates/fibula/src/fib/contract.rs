//! What every engine can do.

use core::fmt;
use core::sync::atomic::AtomicU64;

use crate::check::CheckError;
use crate::memory::{Cell, Memory, OutOfMemory, Shared};
use crate::net::{Batch, BatchLookup, Change, IntoKey, Key, Keys, NextHop, Routes};
use crate::simd::{self, Present};

use super::sections::Sections;

/// An engine: longest-prefix match from keys to next hops.
///
/// `Box<dyn Fib<K>>` is what [`build`](super::build) returns. Its `lookup` also takes addresses of the standard library
/// ([`IntoKey`]).
pub trait Fib<K: Key>: Send + Sync {
    /// Returns the next hop of the longest prefix that contains `key`; `None` if no route matches.
    fn lookup_key(&self, key: K) -> Option<NextHop>;

    /// Looks up `keys`, writing the next hop of `keys[i]` to `results[i]`, with the [chosen](simd::chosen) instruction
    /// set.
    ///
    /// # Panics
    /// When the two differ in length.
    fn lookup_batch(&self, keys: &[K], results: &mut [Option<NextHop>]) {
        self.lookup_batch_on(simd::chosen(), keys, results);
    }

    /// Like [`lookup_batch`](Self::lookup_batch), with the best kernel that `isa` can run. Engines define it; callers have
    /// `batch`.
    ///
    /// # Panics
    /// When `keys` and `results` differ in length.
    fn lookup_batch_on(&self, _isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        for (&key, result) in keys.iter().zip(results) {
            *result = self.lookup_key(key);
        }
    }

    /// Like [`lookup_batch_on`](Self::lookup_batch_on), for keys in any of the shapes of [`Keys`]. An engine defines it if its
    /// kernels can convert keys more cheaply than block by block.
    ///
    /// # Panics
    /// When `keys` and `results` differ in length.
    fn lookup_keys_on(&self, isa: Present, keys: Keys<'_, K>, results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        keys.for_each_block(|first, block| {
            self.lookup_batch_on(isa, block, &mut results[first..first + block.len()]);
        });
    }

    /// Returns whether batches with `isa` prefetch the keys that follow theirs in memory, past the end of the batch too.
    /// A caller with an array of keys need not prefetch the next batch then.
    fn prefetches_keys(&self, _isa: Present) -> bool {
        false
    }

    /// Returns the memory that the engine takes. Cheap: adds up a few lengths.
    fn memory(&self) -> Memory;

    /// Verifies all invariants of the engine.
    ///
    /// # Errors
    /// The first invariant that does not hold, as its chapter states it.
    fn check(&self) -> Result<(), CheckError>;

    /// Returns what a file holds of the engine; `None` if files cannot hold it.
    fn sections(&self) -> Option<Sections<'_>> {
        None
    }

    /// Returns the arrays and parameters that a lookup needs, so that a coprocessor can run it.
    ///
    /// The chapter of the engine describes them. `None` if no coprocessor supports the engine.
    fn exported(&self) -> Option<Sections<'_>> {
        None
    }

    /// Returns the engine with the length of the matched prefix; `None` if it does not know that.
    fn with_length(&self) -> Option<&WithLength<K>> {
        None
    }

    /// Returns the engine as one that changes in place; `None` if it cannot.
    fn updatable(&mut self) -> Option<&mut dyn Updatable<K>> {
        None
    }
}

impl<K: Key> dyn Fib<K> + '_ {
    /// Returns the next hop of the longest prefix that contains `key`; `None` if no route matches. `key` may also be an
    /// address of the standard library.
    #[inline]
    #[must_use]
    pub fn lookup(&self, key: impl IntoKey<K>) -> Option<NextHop> {
        self.lookup_key(key.into_key())
    }

    /// Returns a batch of lookups of keys in any of the shapes of [`Keys`], to be run: see [`Batch`].
    pub fn batch<'k>(
        &self,
        keys: impl Into<Keys<'k, K>>,
    ) -> Batch<'k, K, impl BatchLookup<K, Option<NextHop>>> {
        Batch::new(keys.into(), |isa, _, keys, results| self.lookup_keys_on(isa, keys, results))
    }
}

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

pub(super) fn packed(found: Match) -> u64 {
    u64::from(found.prefix_len) << LENGTH_AT | u64::from(found.next_hop.id())
}

impl<K: Key> WithLength<K> {
    /// Returns the engine over match ids, and the matches, packed.
    pub(crate) fn of_parts(fib: Box<dyn Fib<K>>, matches: Shared<u64>) -> Self {
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

/// Shows the memory, not the content.
impl<K: Key> fmt::Debug for dyn Fib<K> + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fib")
            .field("family", &K::FAMILY)
            .field("memory", &self.memory())
            .finish_non_exhaustive()
    }
}

/// An engine that can be changed in place.
pub trait Updatable<K: Key>: Fib<K> {
    /// Applies `changes` in order. `after` has the routes as they are when all are applied.
    ///
    /// Returns [`Applied::NeedsRebuild`] if the engine must be built from `after` instead; it is then unchanged.
    ///
    /// # Errors
    /// When memory runs out; the engine is unchanged.
    fn apply(&mut self, changes: &[Change<K>], after: &dyn Routes<K>) -> Result<Applied, BuildError>;
}

/// How changes were applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// The engine now answers for the changed table.
    InPlace,
    /// Nothing was changed, for this reason: build the engine again.
    NeedsRebuild(&'static str),
}

/// Why an engine could not be built or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildError {
    engine: &'static str,
    kind: BuildErrorKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum BuildErrorKind {
    Memory(OutOfMemory),
    Limit { what: &'static str, limit: u64, need: u64 },
}

impl BuildError {
    /// Returns the error for running out of memory.
    #[must_use]
    pub fn memory(engine: &'static str, error: OutOfMemory) -> Self {
        Self { engine, kind: BuildErrorKind::Memory(error) }
    }

    /// Returns the error for a table that needs more of `what` than the format can hold.
    #[must_use]
    pub fn limit(engine: &'static str, what: &'static str, limit: u64, need: u64) -> Self {
        Self { engine, kind: BuildErrorKind::Limit { what, limit, need } }
    }

    /// Returns the name of the engine.
    #[must_use]
    pub fn engine(&self) -> &'static str {
        self.engine
    }

    /// Returns whether the format is too small for the table, however much memory there is.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        matches!(self.kind, BuildErrorKind::Limit { .. })
    }

    /// Returns which limit of the format the table exceeds, its value, and what the table needs, if that was the
    /// reason.
    #[must_use]
    pub fn exceeded(&self) -> Option<(&'static str, u64, u64)> {
        match self.kind {
            BuildErrorKind::Limit { what, limit, need } => Some((what, limit, need)),
            BuildErrorKind::Memory(_) => None,
        }
    }

    /// Returns the memory that was missing, if that was the reason.
    #[must_use]
    pub fn out_of_memory(&self) -> Option<OutOfMemory> {
        match self.kind {
            BuildErrorKind::Memory(error) => Some(error),
            BuildErrorKind::Limit { .. } => None,
        }
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let engine = self.engine;
        match &self.kind {
            BuildErrorKind::Memory(error) => write!(f, "{engine}: {error}"),
            BuildErrorKind::Limit { what, limit, need } => {
                write!(f, "{engine}: at most {limit} {what}, this table needs {need}")
            }
        }
    }
}

impl core::error::Error for BuildError {}

#[cfg(test)]
mod tests {
    use core::net::Ipv4Addr;

    use super::*;
    use crate::fib;
    use crate::net::Route;
    use crate::rib::Rib;

    fn one_route() -> Rib<u32> {
        let mut rib = Rib::default();
        rib.insert(Route::new("192.0.2.0/24".parse().unwrap(), NextHop::new(7).unwrap())).unwrap();
        rib
    }

    #[test]
    fn lookups_take_integers_and_addresses() {
        let rib = one_route();
        let (fib, address) = (fib::build(&rib).unwrap(), Ipv4Addr::new(192, 0, 2, 1));
        assert_eq!(fib.lookup(address), NextHop::new(7));
        assert_eq!(fib.lookup(0xc000_0201), NextHop::new(7));
        assert_eq!((rib.lookup(address), rib.lookup(0xc000_0301)), (NextHop::new(7), None));
        assert_eq!(rib.lookup_prefix(address).unwrap().prefix.len(), 24);
    }

    #[test]
    fn batches_of_unequal_lengths_are_errors() {
        let fib = fib::build(&one_route()).unwrap();
        let engine = fib::registry::find("binary-trie").unwrap();
        let matches = WithLength::build(&engine, &one_route(), Default::default()).unwrap();
        let keys = [0xc000_0201; 3];
        let mut results = [NextHop::new(1); 2];
        let error = fib.batch(&keys).try_run(&mut results).unwrap_err();
        assert_eq!((error.keys(), error.results()), (3, 2));
        assert_eq!(fib.batch(Keys::Host(&keys)).try_run(&mut results), Err(error));
        assert_eq!(matches.batch(Keys::Host(&keys)).try_run(&mut [None; 2]), Err(error));
        assert_eq!(results, [NextHop::new(1); 2]);

        fib.batch(&keys[..2]).try_run(&mut results).unwrap();
        assert_eq!(results, [NextHop::new(7); 2]);
        let mut results = [None; 2];
        fib.batch(Keys::Host(&keys[..2])).try_run(&mut results).unwrap();
        assert_eq!(results, [NextHop::new(7); 2]);
        let mut results = [None; 2];
        matches.batch(Keys::Host(&keys[..2])).try_run(&mut results).unwrap();
        assert_eq!(results.map(|found| found.unwrap().prefix_len), [24; 2]);
    }
}
