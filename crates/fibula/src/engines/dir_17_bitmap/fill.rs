//! Fills units from ranges of addresses: the ranges fill the slots of a unit, and then the whole unit is passed on.

use crate::memory::{Budget, OutOfMemory};

use super::layout::{RESTS_MAX, Windows};
use super::unit::{UnitContent, UnitWriter, WIDEST};

/// A receiver of units.
pub(super) trait Sink {
    /// Takes the unit of an entry. Its lists are written already.
    fn unit(
        &mut self,
        at: usize,
        unit: &UnitContent,
        writer: &mut UnitWriter,
        budget: &mut Budget,
    ) -> Result<(), OutOfMemory>;

    /// Takes adjacent entries whose addresses all have this next hop.
    fn uniform(&mut self, at: usize, count: usize, word: u32, budget: &mut Budget)
    -> Result<(), OutOfMemory>;
}

/// Units that are filled in ascending order of addresses.
pub(super) struct Filling {
    windows: Windows,
    /// The first address that has no next hop yet.
    pub(super) done: u64,
    /// The unit of that address, if some of its slots are filled.
    pub(super) unit: UnitContent,
    pub(super) is_open: bool,
    pub(super) writer: UnitWriter,
    /// The next hops in the open slot, if its addresses are in several ranges.
    rests: [u32; RESTS_MAX],
}

impl Filling {
    pub(super) fn new(windows: Windows, step: u32) -> Self {
        let (unit, writer) = (UnitContent::new(), UnitWriter::new(windows, step));
        Self { windows, done: 0, unit, is_open: false, writer, rests: [0; RESTS_MAX] }
    }

    /// Gives the addresses before `end` a next hop. The addresses of all calls together begin and end with whole slots; each
    /// range takes one call.
    pub(super) fn fill(
        &mut self,
        end: u64,
        word: u32,
        sink: &mut impl Sink,
        budget: &mut Budget,
    ) -> Result<(), OutOfMemory> {
        let rest_bits = self.windows.rest_bits;
        let (rests, slots) = (self.windows.rests() as u64, self.windows.slots() as u64);
        while self.done < end {
            let at = self.done;
            let (rest, slot) = (at % rests, (at >> rest_bits) % slots);
            // The range begins or ends within this slot, so its addresses are collected one slot at a time.
            if rest != 0 || end - at < rests {
                let stop = (at - rest + rests).min(end);
                self.open();
                self.rests[rest as usize..(rest + stop - at) as usize].fill(word);
                self.done = stop;
                if stop.is_multiple_of(rests) {
                    let deeper = self.writer.deeper(&self.rests[..rests as usize], budget)?;
                    self.unit.deepen(slot as usize..slot as usize + 1, deeper);
                    self.close_if_full(sink, budget)?;
                }
                continue;
            }
            let whole = (end - at) >> rest_bits;
            // A slot cannot hold `WIDEST`, so such a unit is written slot by slot, with a list.
            if slot == 0 && whole >= slots && word != WIDEST {
                let units = whole / slots;
                sink.uniform((at >> rest_bits) as usize / slots as usize, units as usize, word, budget)?;
                self.done += (units * slots) << rest_bits;
                continue;
            }
            self.open();
            let stop = (slot + whole).min(slots);
            let filled = slot as usize..stop as usize;
            if word == WIDEST {
                // Rare: one list serves all of the slots.
                self.rests.fill(WIDEST);
                let deeper = self.writer.deeper(&self.rests[..rests as usize], budget)?;
                self.unit.deepen(filled, deeper);
            } else {
                self.unit.words[filled].fill(word);
            }
            self.done += (stop - slot) << rest_bits;
            self.close_if_full(sink, budget)?;
        }
        Ok(())
    }

    fn open(&mut self) {
        if !self.is_open {
            // Before the first slot, because lists are written as soon as their slot is full.
            self.writer.clear();
            self.is_open = true;
        }
    }

    fn close_if_full(&mut self, sink: &mut impl Sink, budget: &mut Budget) -> Result<(), OutOfMemory> {
        if (self.done >> self.windows.rest_bits).is_multiple_of(self.windows.slots() as u64) {
            // `done` is the first address after the unit.
            let at = (self.done >> self.windows.rest_bits) as usize / self.windows.slots() - 1;
            self.close(at, sink, budget)?;
        }
        Ok(())
    }

    /// Passes on the open unit, for this entry.
    pub(super) fn close(
        &mut self,
        at: usize,
        sink: &mut impl Sink,
        budget: &mut Budget,
    ) -> Result<(), OutOfMemory> {
        self.is_open = false;
        sink.unit(at, &self.unit, &mut self.writer, budget)
    }
}
