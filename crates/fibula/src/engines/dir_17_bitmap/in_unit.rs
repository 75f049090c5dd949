//! Changes of values alone: they are stored in units as these are.
//!
//! What changes has to begin and end at slots where a bitmap has a change already, or a half begins or ends. Where a route
//! goes, its changes stay in the bitmap, with the value of what is around them, until the unit is written anew.
//! This is for values of a byte: vectors read 32 bits at once from any byte, of which bytes alone are never of two stores.

use crate::fib::parts::ranges::{self, Merge};
use crate::memory::{Budget, Cell, OutOfMemory};
use crate::net::{Key, NextHop, Prefix, Routes};

use super::layout::{Entry, Windows, deeper};
use super::prepared::{Edit, Prepared};

impl Prepared {
    /// Prepares that the prefixes, which lie in the unit of an entry, have their values stored there, if no more has to
    /// change. Returns whether that is so; if not, nothing is prepared.
    ///
    /// # Errors
    /// When memory runs out.
    pub(super) fn store_values<K: Key>(
        &mut self,
        at: usize,
        inside: &[Prefix<K>],
        after: &dyn Routes<K>,
        budget: &mut Budget,
    ) -> Result<bool, OutOfMemory> {
        let entry = Entry(self.direct[at].read());
        if entry.is_shared() || entry.width() != 0 {
            return Ok(false);
        }
        let windows = self.windows;
        let mark = self.edits.len();
        let unit_addresses = (windows.slots() * windows.rests()) as u64;
        let in_unit = |key: K| key.to_bits() as u64 % unit_addresses;
        let mut last: Option<Prefix<K>> = None;
        let mut is_stored = true;
        for &prefix in inside {
            if last.is_some_and(|last| last.covers(prefix)) {
                continue;
            }
            last = Some(prefix);
            let (mut from, mut word) = (in_unit(prefix.addr()), 0);
            ranges::try_for_each(after, prefix, Merge::EqualNeighbours, |range| {
                let to = in_unit(range.start);
                is_stored = is_stored && self.store_range(entry, windows, [from, to], word, mark, budget)?;
                (from, word) = (to, NextHop::word(range.next_hop));
                Ok(())
            })?;
            let end = in_unit(prefix.last()) + 1;
            is_stored = is_stored && self.store_range(entry, windows, [from, end], word, mark, budget)?;
            if !is_stored {
                self.edits.truncate(mark);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The same for addresses of one next hop.
    fn store_range(
        &mut self,
        entry: Entry,
        windows: Windows,
        addresses: [u64; 2],
        value: u32,
        mark: usize,
        budget: &mut Budget,
    ) -> Result<bool, OutOfMemory> {
        let rests = windows.rests() as u64;
        if addresses[0] == addresses[1] {
            return Ok(true);
        }
        if addresses.iter().any(|address| !address.is_multiple_of(rests)) || value >= deeper(0) {
            return Ok(false);
        }
        let [first, end] = addresses.map(|address| (address / rests) as usize);
        let half = windows.half();
        for number in first / half..end.div_ceil(half) {
            let inside =
                [first.max(number * half), end.min((number + 1) * half)].map(|at| at - number * half);
            let word = entry.word(self.step) + if number == 1 { entry.offset() } else { 0 };
            let changes = if entry.is_uniform(number) { 0 } else { self.units[word].read() };
            let is_edge = |slot: usize| slot == 0 || slot == half || changes >> slot & 1 == 1;
            let rank = |slot: usize| (changes << (63 - slot)).count_ones() as usize;
            let [first, last] = [rank(inside[0]), rank(inside[1] - 1)];
            for rank in first..=last {
                // What has a value beyond what changes keeps it.
                let is_whole = (rank > first || is_edge(inside[0])) && (rank < last || is_edge(inside[1]));
                if !self.store_value(8 * (word + 1) + rank, value, is_whole, mark, budget)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Prepares a value at a byte, unless the one there says that the slot is deeper, or is another one and has to stay.
    fn store_value(
        &mut self,
        byte: usize,
        value: u32,
        changes: bool,
        mark: usize,
        budget: &mut Budget,
    ) -> Result<bool, OutOfMemory> {
        let (at, shift) = (byte / 8, 8 * (byte % 8));
        // Few words of one unit.
        let edit = self.edits[mark..].iter_mut().find(|edit| edit.at == at);
        let old = edit.as_ref().map_or_else(|| self.units[at].read(), |edit| edit.word);
        let before = (old >> shift) as u32 & deeper(0);
        if before == deeper(0) || !changes && before != value {
            return Ok(false);
        }
        let word = old & !(u64::from(deeper(0)) << shift) | u64::from(value) << shift;
        match edit {
            Some(edit) => edit.word = word,
            None if word != old => budget.push(&mut self.edits, Edit { at, word })?,
            None => {}
        }
        Ok(true)
    }
}
