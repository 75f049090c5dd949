//! Structures that are timed on keys and answers of their own forms.
//!
//! A library in C answers in words of 64 bits and may want IPv6 keys as bytes. Were it timed through
//! [`Fib::lookup_batch`], it would pay for two conversions that none of its own users pays for. So it is handed keys
//! that were converted before the clock runs and leaves its answers as they are; what reads the answers,
//! and compares them with the judge's, is not timed. Checks take the same way, so that what is timed is what
//! was checked. What stands in another program is timed there ([`Prepared::time`]), by the same two clocks.

use core::ops::Range;

use fibula::fib::Fib;
use fibula::net::{Key, NextHop};

use super::clock::Spent;

/// How keys are handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One key a call, each call free to overlap the next.
    Single,
    /// So many keys a call.
    Batch(usize),
    /// One key a call, and no key before the answer to the one before it.
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

/// A structure with keys and answers of its own forms.
pub trait Native<K: Key>: Fib<K> {
    /// Puts `keys` into its own form, and makes room for the answers to `room` of them, a block.
    fn prepare(&self, keys: &[K], room: usize) -> Box<dyn Prepared + '_>;

    /// What building it took, where it was not built for this contestant alone, or knows better than who waited for it.
    fn build_time(&self) -> Option<core::time::Duration> {
        None
    }

    /// Why it answers no longer, where it stands in another program and that has failed since: figures that were taken
    /// after that count for nothing.
    fn failure(&self) -> Option<String> {
        None
    }
}

/// Keys in a structure's own form, and room for its answers.
pub trait Prepared {
    /// Looks up the keys of this range block by block, each as one batch or key by key; answers take the place of
    /// those of the block before. Timed: a loop over batches that belongs to the structure's own language stands there.
    fn lookup(&mut self, shape: Shape, keys: Range<usize>);

    /// Looks all keys up as often, where that happens in another program, which has a clock beside it. Who has none looks
    /// nothing up: [`lookup`](Self::lookup) is timed from here.
    fn time(&mut self, _shape: Shape, _passes: usize) -> Option<Spent> {
        None
    }

    /// Takes the answers of the last block, as many as it had keys, and spoils them where they were: what is left of
    /// them must not pass for the next answers. Not timed.
    fn take(&mut self, results: &mut [Option<NextHop>]);
}

/// What came of building a contestant.
pub enum Structure<K: Key> {
    /// Timed through its [`Fib`].
    Fib(Box<dyn Fib<K>>),
    /// Timed on its own forms.
    Native(Box<dyn Native<K>>),
}

impl<K: Key> Structure<K> {
    /// The structure as one of ours.
    #[must_use]
    pub fn fib(&self) -> &dyn Fib<K> {
        match self {
            Self::Fib(fib) => fib.as_ref(),
            Self::Native(native) => native.as_ref(),
        }
    }

    /// Why it answers no longer.
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
