//! Engines that are timed on their own forms of keys and answers.
//!
//! A C library may give its answers in 64-bit words and take IPv6 keys as bytes. Timed through [`Fib::lookup_batch`],
//! it would pay for two conversions that its own users do not need. So it gets keys that were converted before the
//! clock starts and leaves its answers as they are; reading and comparing the answers is not timed. Checks make the
//! same calls, so that the timed code is the checked code. An engine in another program is timed there
//! ([`Prepared::time`]), by the same two clocks.

use core::ops::Range;

use fibula::fib::{CheckError, Fib};
use fibula::memory::Memory;
use fibula::net::{Change, Key, NextHop};
use fibula::simd::Present;

use super::clock::Spent;

/// How keys are passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One key a call. Calls may overlap in the processor.
    Single,
    /// This many keys a call.
    Batch(usize),
    /// One key a call. Each key depends on the answer before it.
    Dependent,
}

impl Shape {
    pub(super) fn new(dependent: bool, batch: usize) -> Self {
        match (dependent, batch) {
            (true, _) => Self::Dependent,
            (false, 1) => Self::Single,
            (false, batch) => Self::Batch(batch),
        }
    }
}

/// The code that prefetches the keys of later batches. It is one of these, never two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPrefetch {
    /// Nothing.
    None,
    /// The loop over the batches: before each batch, up to 4 KiB of the keys of the next one.
    Loop,
    /// The engine's own kernel.
    Kernel,
}

impl KeyPrefetch {
    /// Returns the name that rows have.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Loop => "next batch",
            Self::Kernel => "kernel",
        }
    }
}

/// An engine with its own forms of keys and answers. Boxed, it is a [`Fib`], which converts both.
pub trait Native<K: Key>: Send + Sync {
    /// Returns the memory that it takes.
    fn memory(&self) -> Memory;

    /// Converts `keys` to its own form, and makes room for the answers to a block of `room` keys.
    fn prepare(&self, keys: &[K], room: usize) -> Box<dyn Prepared + '_>;

    /// Returns the code that prefetches the keys of later batches.
    fn key_prefetch(&self) -> KeyPrefetch {
        KeyPrefetch::None
    }

    /// Its build time, if it knows that better than the caller: because it shares its table, or because it is built
    /// elsewhere.
    fn build_time(&self) -> Option<core::time::Duration> {
        None
    }

    /// Applies changes one after the other, and returns their time by the wall clock. Removals are of prefixes that it
    /// has.
    ///
    /// # Errors
    /// When it refuses a change, or its changes are not measured.
    fn apply(&mut self, _changes: &[Change<K>]) -> Result<core::time::Duration, String> {
        Err("its changes are not measured".to_owned())
    }

    /// Returns why it no longer answers, if it runs in another program and that has failed. Its figures are then
    /// discarded.
    fn failure(&self) -> Option<String> {
        None
    }
}

impl<K: Key> Fib<K> for Box<dyn Native<K>> {
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        let mut answer = [None];
        let mut prepared = self.prepare(&[key], 1);
        prepared.lookup(Shape::Single, 0..1);
        prepared.take(&mut answer);
        answer[0]
    }

    /// Ignores the instruction set: the engine decides that.
    fn lookup_batch_on(&self, _: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        let mut prepared = self.prepare(keys, keys.len());
        prepared.lookup(Shape::Batch(keys.len()), 0..keys.len());
        prepared.take(results);
    }

    fn memory(&self) -> Memory {
        self.as_ref().memory()
    }

    /// Always succeeds: the engine's memory is not ours to inspect.
    fn check(&self) -> Result<(), CheckError> {
        Ok(())
    }
}

/// Keys in an engine's own form, with room for its answers.
pub trait Prepared {
    /// Looks up the keys of this range block by block, each as one batch or key by key. The answers of a block
    /// overwrite those of the one before. This is timed, so a loop in the engine's own language belongs here.
    fn lookup(&mut self, shape: Shape, keys: Range<usize>);

    /// Looks all keys up `_passes` times in another program and returns the time taken there. The default does
    /// nothing, and [`lookup`](Self::lookup) is timed instead.
    fn time(&mut self, _shape: Shape, _passes: usize) -> Option<Spent> {
        None
    }

    /// Takes the answers of the last block, as many as it had keys, and overwrites them with invalid ones, so that
    /// they cannot be mistaken for the next answers. Not timed.
    fn take(&mut self, results: &mut [Option<NextHop>]);
}

/// A contestant once built.
pub enum Structure<K: Key> {
    /// Timed through its [`Fib`].
    Fib(Box<dyn Fib<K>>),
    /// Timed on its own forms of keys and answers.
    Native(Box<dyn Native<K>>),
}

impl<K: Key> Structure<K> {
    /// Returns the engine through the common trait.
    #[must_use]
    pub fn fib(&self) -> &dyn Fib<K> {
        match self {
            Self::Fib(fib) => fib.as_ref(),
            Self::Native(native) => native,
        }
    }

    /// Returns the code that prefetches the keys of later batches.
    pub(super) fn key_prefetch(&self, isa: Present) -> KeyPrefetch {
        match self {
            Self::Fib(fib) if fib.prefetches_keys(isa) => KeyPrefetch::Kernel,
            Self::Fib(_) => KeyPrefetch::Loop,
            Self::Native(native) => native.key_prefetch(),
        }
    }

    /// Returns why it no longer answers, if it has failed.
    pub(super) fn failure(&self) -> Option<String> {
        match self {
            Self::Fib(_) => None,
            Self::Native(native) => native.failure(),
        }
    }
}

impl<K: Key> From<Box<dyn Fib<K>>> for Structure<K> {
    fn from(fib: Box<dyn Fib<K>>) -> Self {
        Self::Fib(fib)
    }
}
