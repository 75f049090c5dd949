//! What every lookup structure answers.

use core::fmt;

use crate::check::CheckError;
use crate::memory::{Memory, OutOfMemory};
use crate::net::{Change, Key, Keys, NextHop, Routes};
use crate::simd::{self, Present};

/// A lookup structure: longest-prefix match from keys to next hops.
pub trait Fib<K: Key>: Send + Sync {
    /// The next hop of the longest prefix that contains `key`, none where no route matches.
    fn lookup(&self, key: K) -> Option<NextHop>;

    /// Looks up `keys` in host order, writing the answer of `keys[i]` to `results[i]`, with the
    /// [chosen](simd::chosen) instruction set.
    ///
    /// # Panics
    /// When the two differ in length.
    fn lookup_batch(&self, keys: &[K], results: &mut [Option<NextHop>]) {
        self.lookup_batch_on(simd::chosen(), keys, results);
    }

    /// [`lookup_batch`](Self::lookup_batch) with the best kernel that `isa` can run.
    ///
    /// # Panics
    /// When `keys` and `results` differ in length.
    fn lookup_batch_on(&self, _isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        for (&key, result) in keys.iter().zip(results) {
            *result = self.lookup(key);
        }
    }

    /// Looks up a batch in any of the shapes callers hold keys in.
    ///
    /// # Panics
    /// When `keys` and `results` differ in length.
    fn lookup_keys(&self, keys: Keys<'_, K>, results: &mut [Option<NextHop>]) {
        self.lookup_keys_on(simd::chosen(), keys, results);
    }

    /// [`lookup_keys`](Self::lookup_keys) with the best kernel that `isa` can run.
    ///
    /// # Panics
    /// When `keys` and `results` differ in length.
    fn lookup_keys_on(&self, isa: Present, keys: Keys<'_, K>, results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        keys.for_each_block(|first, block| {
            self.lookup_batch_on(isa, block, &mut results[first..first + block.len()]);
        });
    }

    /// What the structure occupies. Costs no more than adding up a few lengths.
    fn memory(&self) -> Memory;

    /// Walks the whole structure, as fsck walks a disk.
    ///
    /// # Errors
    /// Names the first of the chapter's invariants that does not hold.
    fn check(&self) -> Result<(), CheckError>;

    /// The structure as one that can change in place, where it can.
    fn updatable(&mut self) -> Option<&mut dyn Updatable<K>> {
        None
    }
}

/// Shows what the structure occupies; its content would fill a screen or a disk.
impl<K: Key> fmt::Debug for dyn Fib<K> + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fib")
            .field("family", &K::FAMILY)
            .field("memory", &self.memory())
            .finish_non_exhaustive()
    }
}

/// A structure that can follow changes without being built anew.
pub trait Updatable<K: Key>: Fib<K> {
    /// Applies `changes` in order. `after` holds the routes as they are when all are applied.
    ///
    /// [`Applied::NeedsRebuild`] says that building from `after` is the way (always a correct answer); the
    /// structure then still answers as before.
    ///
    /// # Errors
    /// When memory runs out; the structure is as it was.
    fn apply(&mut self, changes: &[Change<K>], after: &dyn Routes<K>) -> Result<Applied, BuildError>;
}

/// How changes were applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// The structure now answers for the changed table.
    InPlace,
    /// Nothing was done, for this reason: build it anew.
    NeedsRebuild(&'static str),
}

/// Why a structure could not be built or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildError {
    algorithm: &'static str,
    kind: BuildErrorKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum BuildErrorKind {
    Memory(OutOfMemory),
    Limit { what: &'static str, limit: u64, need: u64 },
}

impl BuildError {
    /// Memory ran out.
    #[must_use]
    pub fn memory(algorithm: &'static str, error: OutOfMemory) -> Self {
        Self { algorithm, kind: BuildErrorKind::Memory(error) }
    }

    /// The table needs more of `what` than the format can hold.
    #[must_use]
    pub fn limit(algorithm: &'static str, what: &'static str, limit: u64, need: u64) -> Self {
        Self { algorithm, kind: BuildErrorKind::Limit { what, limit, need } }
    }

    /// The structure that refused.
    #[must_use]
    pub fn algorithm(&self) -> &'static str {
        self.algorithm
    }

    /// Whether the format is too small for the table, however much memory there is.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        matches!(self.kind, BuildErrorKind::Limit { .. })
    }

    /// The memory that was missing, where that was the reason.
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
        let algorithm = self.algorithm;
        match &self.kind {
            BuildErrorKind::Memory(error) => write!(f, "{algorithm}: {error}"),
            BuildErrorKind::Limit { what, limit, need } => {
                write!(f, "{algorithm}: at most {limit} {what}, this table needs {need}")
            }
        }
    }
}

impl core::error::Error for BuildError {}
