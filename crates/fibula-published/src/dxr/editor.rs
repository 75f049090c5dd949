//! The writer of a table, and how it makes dirty chunks anew.

use std::sync::Arc;

use fibula::fib::BuildError;
use fibula::net::{Ipv4Key, Key, NextHop, Prefix, Routes};
use fibula::unstable::in_place::PrepareError;
use fibula::unstable::memory::{Budget, Buffer, Limits, OutOfMemory};

use super::format::Changing;
use super::layout::Live;
use super::options::Options;
use super::room::Room;
use super::sweep::{Piece, Swept, pieces, sweep};
use super::work::{self, Share, sweep_together};
use super::written::Written;

/// The writer of a table.
pub(super) struct Editor<K, F: Changing> {
    pub(super) table: Arc<Live<K, F>>,
    pub(super) written: Written<F>,
    pub(super) budget: Budget,
    limits: Limits,
    /// A copy of the direct entries, to be published in their place.
    pub(super) shadow: Option<Buffer<F::Cell>>,
    /// The dirty chunks, and the ranges of some.
    pub(super) items: Vec<Prefix<K>>,
    pub(super) swept: Vec<Swept>,
    /// The next entry to look at for chunks that could move.
    pub(super) cursor: usize,
    /// Chunks that moved since the first entry was looked at; and whether none did although much is free.
    moved: usize,
    pub(super) is_scattered: bool,
    /// Places of long chunks that smaller codes would make short, when the table was built, and places in all.
    built_long: [u32; 2],
    /// Threads that sweep together, if there are [`together_from`](Self::together_from) dirty chunks.
    pub(super) threads: usize,
    pub(super) together_from: usize,
}

/// Dirty chunks from which on several threads are worth it: `notes.md` has what they take.
const TOGETHER: usize = 1 << 12;

/// Most ranges, items and stores whose memory is kept from one change to the next.
const KEPT: usize = 1 << 12;

/// Entries without a chunk that are passed over at one look for chunks that could move.
const PASSED: usize = 16;

/// Items whose direct entries are fetched ahead.
const AHEAD: usize = 128;

impl<K: Ipv4Key, F: Room> Editor<K, F> {
    /// Builds the tables of the routes, with room to grow.
    pub(super) fn build(
        routes: &dyn Routes<K>,
        options: Options,
        limits: Limits,
    ) -> Result<Self, BuildError> {
        let mut budget = Budget::new(limits);
        let (shape, mut written) = F::build(routes, options, limits, &mut budget)?;
        let form = written.form.another();
        let used = written.used();
        let table =
            Arc::new(Live { form, shape, used: used.map(Into::into), keys: core::marker::PhantomData });
        Ok(Self {
            table,
            built_long: [written.long_for_codes, written.chunks.end()],
            written,
            budget,
            limits,
            shadow: None,
            items: Vec::new(),
            swept: Vec::new(),
            cursor: 0,
            moved: 0,
            is_scattered: false,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            together_from: TOGETHER,
        })
    }
}

impl<K: Key, F: Changing> Editor<K, F> {
    /// Prepares the chunks of the prefixes.
    pub(super) fn rebuild(
        &mut self,
        prefixes: &[Prefix<K>],
        after: &dyn Routes<K>,
    ) -> Result<(), PrepareError> {
        let Self { written, budget, items, .. } = self;
        let geometry = written.geometry;
        written.chunks.absorb(budget)?;
        written.codes.absorb(budget)?;
        items.clear();
        let chunks = work::items(prefixes, geometry.k, items, budget)?;
        if chunks >= self.together_from
            && self.threads > 1
            && let Some(routes) = after.shared()
        {
            return self.rebuild_together(routes);
        }
        let items = core::mem::take(&mut self.items);
        let mut swept = core::mem::take(&mut self.swept);
        let done = items.chunks(AHEAD).try_for_each(|some| {
            self.written.fetch(some.iter().map(|item| (item.addr().to_bits() >> geometry.rest) as usize));
            some.iter().try_for_each(|&item| {
                swept.clear();
                sweep(after, item, &mut swept, &mut self.budget, |next_hop, _| Ok(NextHop::word(next_hop)))?;
                self.fill(item, &mut swept)
            })
        });
        (self.items, self.swept) = (items, swept);
        done
    }

    /// Sweeps by several threads, and writes what they found.
    fn rebuild_together(&mut self, routes: &(dyn Routes<K> + Sync)) -> Result<(), PrepareError> {
        let left = self.limits.memory_bytes.map(|bytes| bytes.saturating_sub(self.budget.used_bytes()));
        let limits = Limits { memory_bytes: left, ..self.limits };
        let mut shares = sweep_together(routes, &self.items, self.threads, limits)?;
        let bytes = shares.iter().map(Share::bytes).sum();
        self.budget.charge(bytes)?;
        let done = shares.iter_mut().try_for_each(|share| {
            let mut first = 0;
            share.items.iter().try_for_each(|&(item, end)| {
                self.fill(item, &mut share.swept[core::mem::replace(&mut first, end)..end])
            })
        });
        self.budget.release(bytes);
        done
    }

    /// Prepares the chunks of an item, whose ranges these are.
    fn fill(&mut self, item: Prefix<K>, swept: &mut [Swept]) -> Result<(), PrepareError> {
        let Self { written, budget, .. } = self;
        written.number(swept, budget)?;
        let geometry = written.geometry;
        let [first, last] = [item.addr(), item.last()].map(|key| key.to_bits() as u64 >> geometry.rest);
        for piece in pieces(swept, geometry, first..last + 1) {
            match piece {
                Piece::Whole { mut chunks, code } => {
                    chunks.try_for_each(|at| written.whole(at, code, budget))?;
                }
                Piece::Cut { chunk, code, further } => written.cut(chunk, code, further, budget)?,
            }
        }
        Ok(())
    }

    /// Prepares the moves of chunks that could be nearer to the beginning, looking at so many.
    pub(super) fn move_chunks(&mut self, entries: usize) -> Result<(), OutOfMemory> {
        let Self { written, budget, cursor, .. } = self;
        let all = 1 << written.geometry.k;
        let (mut found, mut looked, before) = (0, 0, written.stores.len());
        while found < entries && looked < all.min(PASSED * entries) {
            found += usize::from(written.move_back(*cursor, budget)?);
            looked += 1;
            *cursor = (*cursor + 1) % all;
            if *cursor == 0 {
                // All have been looked at: what is free at the end is given up.
                written.chunks.settle(budget)?;
                let free = written.chunks.free_elements();
                let none_moved = self.moved == 0 && written.stores.len() == before;
                self.is_scattered = none_moved && free > written.chunks.end() / 5 + KEPT as u32;
                self.moved = 0;
            }
        }
        self.moved += written.stores.len() - before;
        Ok(())
    }

    /// Returns whether popular next hops have codes so large that their chunks take much more than they would if the table
    /// were built anew.
    pub(super) fn is_long_for_codes(&self) -> bool {
        let chunks = &self.written.chunks;
        let used = u64::from(chunks.end() - chunks.free_elements());
        let [long, all] = self.built_long.map(u64::from);
        let expected = used * long / all.max(1);
        u64::from(self.written.long_for_codes) > expected + used / 4 + KEPT as u64
    }

    /// Forgets what is prepared, and frees lists that are long.
    pub(super) fn abandon_all(&mut self) {
        if let Some(copy) = self.shadow.take() {
            self.budget.free(copy);
        }
        self.written.abandon();
        self.trim();
    }

    /// Frees lists that a large change has left long.
    pub(super) fn trim(&mut self) {
        let Self { budget, items, swept, written, .. } = self;
        if items.capacity() > KEPT {
            budget.free(core::mem::take(items));
        }
        if swept.capacity() > KEPT {
            budget.free(core::mem::take(swept));
        }
        if written.stores.is_empty() && written.stores.capacity() > KEPT {
            budget.free(core::mem::take(&mut written.stores));
        }
    }
}
