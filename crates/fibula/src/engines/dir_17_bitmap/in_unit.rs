//! Changes that only replace values: they are stored in units in place.
//!
//! The changed addresses have to begin and end at slots where the bitmap has a change already, or at the edge of a half.
//! When a route is removed, its changes stay in the bitmap, with the value of the addresses around them, until the unit is
//! rebuilt. Only values of one byte are stored in place, because vectors read 32 bits at once from any byte: those bits may
//! come from two stores, and then only a single byte is sure to come from one.

use crate::fib::parts::ranges::{self, Merge};
use crate::memory::{Budget, Cell, OutOfMemory};
use crate::net::{Key, NextHop, Prefix, Routes};

use super::layout::{Entry, Windows, deeper};
use super::prepared::{Edit, Prepared};

impl Prepared {
    /// Prepares to store the values of the prefixes, which lie in the unit of an entry, if nothing else has to change. Returns
    /// whether that is so; if not, nothing is prepared.
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
        // A shared unit answers for other entries, too, and wider values cannot be stored in place.
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
            // A prefix within the last one has been stored with it.
            if last.is_some_and(|last| last.covers(prefix)) {
                continue;
            }
            last = Some(prefix);
            let (mut from, mut word) = (in_unit(prefix.addr()), 0);
            let end = in_unit(prefix.last()) + 1;
            // Without a sweep, because most prefixes have one answer.
            if let Some(answer) = after.sole_answer(prefix) {
                word = NextHop::word(answer);
            } else {
                ranges::try_for_each(after, prefix, Merge::EqualNeighbours, |range| {
                    let to = in_unit(range.start);
                    is_stored =
                        is_stored && self.store_range(entry, windows, [from, to], word, mark, budget)?;
                    (from, word) = (to, NextHop::word(range.next_hop));
                    Ok(())
                })?;
            }
            is_stored = is_stored && self.store_range(entry, windows, [from, end], word, mark, budget)?;
            if !is_stored {
                // The unit will be rebuilt, which covers the values that could have been stored, too.
                self.edits.truncate(mark);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Does the same for addresses of one next hop.
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
        // No range comes before the first one of a prefix.
        if addresses[0] == addresses[1] {
            return Ok(true);
        }
        // A range that ends within a slot needs a record, and a byte of all ones would mark a deeper slot.
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
                // A range that reaches beyond the changed addresses keeps its value.
                let is_whole = (rank > first || is_edge(inside[0])) && (rank < last || is_edge(inside[1]));
                if !self.store_value(8 * (word + 1) + rank, value, is_whole, mark, budget)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Prepares a value at a byte, unless the slot there is deeper, or the range keeps another value.
    fn store_value(
        &mut self,
        byte: usize,
        value: u32,
        changes: bool,
        mark: usize,
        budget: &mut Budget,
    ) -> Result<bool, OutOfMemory> {
        let (at, shift) = (byte / 8, 8 * (byte % 8));
        // The search is short, because few words of one unit change.
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
