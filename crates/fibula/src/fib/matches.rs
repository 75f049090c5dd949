//! Matched prefix lengths from any engine.
//!
//! Kernels return one 32-bit word a key. To return the length of the matched prefix as well, the engine is built
//! over *match ids*, one for every pair (next hop, prefix length) that occurs, and a table turns the ids back after
//! the kernel has run: kernels need no change and are no slower. Fewer neighbouring ranges merge, because their
//! lengths must be equal too; `docs/adr/0002-batches.md` gives the reasons.

use core::ops::ControlFlow;
use std::collections::HashMap;

use crate::memory::{Budget, Buffer, Limits, OutOfMemory};
use crate::net::{Key, NextHop, Prefix, Route, Routes};

use super::BuildError;
use super::contract::{Match, WithLength, packed};
use super::registry::Engine;

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
        Ok(Self::of_parts(fib, matches.into()))
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
