//! Fills entries and segments from ranges of addresses, in one sweep.

use core::marker::PhantomData;

use crate::fib::parts::ranges::{self, Merge};
use crate::memory::OutOfMemory;
use crate::net::{Key, NextHop, Prefix, Routes};

use super::Dir248;
use super::layout::SPAN_MAX;

/// A receiver of entries and segments.
pub(super) trait Sink {
    /// Returns the code of a next hop.
    fn code(&mut self, next_hop: Option<NextHop>) -> Result<u16, OutOfMemory>;

    /// Takes the code of all addresses of `count` entries.
    fn whole(&mut self, first: usize, count: usize, code: u16) -> Result<(), OutOfMemory>;

    /// Takes the codes of the addresses of one entry.
    fn divided(&mut self, at: usize, codes: &[u16]) -> Result<(), OutOfMemory>;
}

/// Fills entries from the first address on.
#[derive(Debug)]
pub(super) struct Filling<K> {
    /// The codes of the addresses of an entry that is divided.
    pub(super) open: [u16; SPAN_MAX],
    /// Addresses below this one are filled.
    done: u64,
    /// The code of the addresses from `done` on.
    code: u16,
    keys: PhantomData<fn(K)>,
}

impl<K: Key> Filling<K> {
    pub(super) fn new() -> Self {
        Self { open: [0; SPAN_MAX], done: 0, code: 0, keys: PhantomData }
    }

    /// Fills whole entries from the routes.
    pub(super) fn sweep(
        &mut self,
        routes: &dyn Routes<K>,
        within: Prefix<K>,
        sink: &mut impl Sink,
    ) -> Result<(), OutOfMemory> {
        self.done = within.addr().to_bits() as u64;
        // A range is filled in when the next one begins, because its end is known only then.
        ranges::try_for_each(routes, within, Merge::EqualNeighbours, |range| {
            self.fill(range.start.to_bits() as u64, sink)?;
            self.code = sink.code(range.next_hop)?;
            Ok(())
        })?;
        self.fill(within.last().to_bits() as u64 + 1, sink)
    }

    /// Gives the addresses below `end` the current code.
    fn fill(&mut self, end: u64, sink: &mut impl Sink) -> Result<(), OutOfMemory> {
        let span = Dir248::<K>::SPAN as u64;
        // Three cases in turn: the rest of an open entry, whole entries, and the beginning of the next open one.
        let mut at = core::mem::replace(&mut self.done, end);
        while at < end {
            let (entry, inside, count) = ((at / span) as usize, at % span, (end - at) / span);
            if inside == 0 && count > 0 {
                sink.whole(entry, count as usize, self.code)?;
                at += count * span;
                continue;
            }
            let to = (inside + (end - at)).min(span);
            self.open[inside as usize..to as usize].fill(self.code);
            at += to - inside;
            if to == span {
                sink.divided(entry, &self.open[..Dir248::<K>::SPAN])?;
            }
        }
        Ok(())
    }

    /// Fills a part of the open entry from the routes.
    pub(super) fn sweep_part(
        &mut self,
        routes: &dyn Routes<K>,
        within: Prefix<K>,
        sink: &mut impl Sink,
    ) -> Result<(), OutOfMemory> {
        let inside = |address: K| address.window(Dir248::<K>::LEADING, Dir248::<K>::REST) as usize;
        let (mut done, mut code) = (inside(within.addr()), 0);
        ranges::try_for_each(routes, within, Merge::EqualNeighbours, |range| {
            let start = inside(range.start);
            self.open[done..start].fill(code);
            (done, code) = (start, sink.code(range.next_hop)?);
            Ok(())
        })?;
        self.open[done..=inside(within.last())].fill(code);
        Ok(())
    }
}
