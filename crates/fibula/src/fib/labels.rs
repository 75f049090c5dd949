//! Matched prefix lengths from any structure.
//!
//! Kernels return one 32-bit word a key. Who wants the length of the matched prefix as well builds the
//! structure over *labels*, one for every pair (next hop, length) that occurs, and has the labels turned back
//! behind the kernel: no kernel knows of it, and none is slower for it. Neighbours merge less, as the length
//! must be equal too; `docs/adr/0002-batches.md` has the reasons.

use core::ops::ControlFlow;
use std::collections::HashMap;

use crate::memory::{self, Budget, Limits, Memory, OutOfMemory};
use crate::net::{Key, Keys, NextHop, Prefix, Route, Routes};
use crate::simd::{self, Present};

use super::registry::Build;
use super::{BuildError, CheckError, Fib};

/// What a key matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Match {
    /// Where the longest matching route leads.
    pub next_hop: NextHop,
    /// Length of its prefix; with the key, this is the prefix.
    pub prefix_len: u8,
}

/// Labels turned back at a time, on the stack.
const BLOCK: usize = 256;

/// A structure that also says the length of the matched prefix.
#[derive(Debug)]
pub struct WithLength<K: Key> {
    fib: Box<dyn Fib<K>>,
    /// Label - 1 to what it stands for.
    matches: Vec<Match>,
}

impl<K: Key> WithLength<K> {
    /// Builds the structure over labels.
    ///
    /// # Errors
    /// As the structure's own build, and when there is no memory for the labels; `limits` bounds the two
    /// separately.
    pub fn build(build: Build<K>, routes: &dyn Routes<K>, limits: Limits) -> Result<Self, BuildError> {
        let mut labels = Labels::new(limits);
        routes
            .try_for_each(Prefix::ALL, |route| labels.intern(route))
            .map_err(|error| BuildError::memory("with-length", error))?;
        let fib = build(&Labelled { routes, labels: &labels }, limits)?;
        let Labels { mut matches, mut budget, .. } = labels;
        budget.shrink(&mut matches);
        Ok(Self { fib, matches })
    }

    /// The longest match of `key`.
    #[must_use]
    pub fn lookup(&self, key: K) -> Option<Match> {
        self.fib.lookup(key).map(|label| self.matches[label.id() as usize - 1])
    }

    /// Looks up a batch, writing the answer of key `i` to `results[i]`.
    ///
    /// # Panics
    /// When the two differ in length.
    pub fn lookup_keys(&self, keys: Keys<'_, K>, results: &mut [Option<Match>]) {
        self.lookup_keys_on(simd::chosen(), keys, results);
    }

    /// [`lookup_keys`](Self::lookup_keys) with the best kernel that `isa` can run.
    ///
    /// # Panics
    /// When `keys` and `results` differ in length.
    pub fn lookup_keys_on(&self, isa: Present, keys: Keys<'_, K>, results: &mut [Option<Match>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        keys.for_each_block(|first, block| {
            for (index, block) in block.chunks(BLOCK).enumerate() {
                let mut labels = [None; BLOCK];
                let labels = &mut labels[..block.len()];
                self.fib.lookup_batch_on(isa, block, labels);
                for (result, label) in results[first + index * BLOCK..].iter_mut().zip(labels) {
                    *result = label.map(|label| self.matches[label.id() as usize - 1]);
                }
            }
        });
    }

    /// The structure and the dictionary of labels.
    #[must_use]
    pub fn memory(&self) -> Memory {
        let fib = Memory { allocated_bytes: size_of_val(&*self.fib), ..Memory::default() };
        self.fib.memory() + fib + memory::of(&self.matches)
    }

    /// Checks the structure below.
    ///
    /// # Errors
    /// As [`Fib::check`].
    pub fn check(&self) -> Result<(), CheckError> {
        self.fib.check()
    }
}

/// The pairs that occur, numbered from 1 in the order of their first route.
struct Labels {
    numbers: HashMap<(NextHop, u8), NextHop>,
    matches: Vec<Match>,
    budget: Budget,
}

impl Labels {
    fn new(limits: Limits) -> Self {
        Self { numbers: HashMap::new(), matches: Vec::new(), budget: Budget::new(limits) }
    }

    fn intern<K: Key>(&mut self, route: Route<K>) -> Result<(), OutOfMemory> {
        let pair = (route.next_hop, route.prefix.len());
        if self.numbers.contains_key(&pair) {
            return Ok(());
        }
        self.reserve()?;
        self.budget.push(&mut self.matches, Match { next_hop: pair.0, prefix_len: pair.1 })?;
        // There are at most 2^32 - 1 next hops times 129 lengths, but no memory holds the routes for as many.
        let label = u32::try_from(self.matches.len()).ok().and_then(NextHop::new);
        self.numbers.insert(pair, label.ok_or(self.refused(usize::MAX))?);
        Ok(())
    }

    /// Makes room for one more number, old and new table side by side.
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

/// Bytes of the standard library's hash table for this many entries: a power of two of slots, an eighth of them
/// free, each an entry and a byte of control, and a group of control bytes more.
fn table_bytes(entries: usize) -> usize {
    const GROUP: usize = 16;
    if entries == 0 {
        return 0;
    }
    let slots = (entries * 8).div_ceil(7).next_power_of_two();
    slots * (size_of::<((NextHop, u8), NextHop)>() + 1) + 2 * GROUP
}

/// The same routes, leading to labels.
struct Labelled<'a, K> {
    routes: &'a dyn Routes<K>,
    labels: &'a Labels,
}

impl<K: Key> Labelled<'_, K> {
    fn relabel(&self, route: Route<K>) -> Route<K> {
        let label = self.labels.numbers[&(route.next_hop, route.prefix.len())];
        Route::new(route.prefix, label)
    }
}

impl<K: Key> Routes<K> for Labelled<'_, K> {
    fn len(&self) -> usize {
        self.routes.len()
    }

    fn visit(&self, within: Prefix<K>, each: &mut dyn FnMut(Route<K>) -> ControlFlow<()>) -> ControlFlow<()> {
        self.routes.visit(within, &mut |route| each(self.relabel(route)))
    }

    fn parent(&self, prefix: Prefix<K>) -> Option<Route<K>> {
        self.routes.parent(prefix).map(|route| self.relabel(route))
    }
}
