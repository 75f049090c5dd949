//! Moves lines, and the words below them, towards the beginning of their arrays.

use core::ops::Range;

use crate::fib::parts::overflow::{moved, words_below};
use crate::memory::OutOfMemory;

use super::super::layout::line_words;
use super::{Edit, Prepared};

impl Prepared {
    /// Prepares to move the line of an entry and the words below it, if there is room before them.
    ///
    /// # Errors
    /// When memory runs out.
    pub(in super::super) fn move_back(&mut self, at: usize) -> Result<(), OutOfMemory> {
        let line = self.line_of(at);
        if !self.is_own(line) {
            return self.move_shared(at, line);
        }
        if self.lines.is_loose() && line >= self.lines.used() {
            let to = self.lines.take_back(1, &mut self.budget)?;
            if to.is_some() {
                // The words below stay where they are. A later call may move them.
                let Some(to) = self.took(to, self.map(line))? else { return Ok(()) };
                let words = self.words(line);
                self.lines.write(to, words.into_iter().take(line_words(self.windows, self.width)));
                return self.replace(at, line, to);
            }
        }
        let map = self.map(line);
        if map == 0 || !self.below.is_loose() {
            return Ok(());
        }
        let Range { start, end } = words_below(&self.below.words, map as usize, self.windows);
        let (begin, size) = (start as u32, (end - start) as u32);
        if begin < self.below.used() {
            return Ok(());
        }
        let Some(place) = self.below.take_back(size, &mut self.budget)? else { return Ok(()) };
        let words = self.below.unit_words(begin, size);
        // Wraps, because the words move towards the beginning.
        let by = place.wrapping_sub(begin);
        self.below.write(place, moved(words, (map - begin) as usize, self.windows, by));
        self.budget.reserve(&mut self.maps_to_store, 1)?;
        self.below.give_up(begin, size, &mut self.budget)?;
        self.maps_to_store.push(Edit { at: line, word: map.wrapping_add(by) });
        Ok(())
    }

    /// Prepares to lead an entry to another line of its next hop, if the present line is beyond where all lines would fit.
    fn move_shared(&mut self, at: usize, line: u32) -> Result<(), OutOfMemory> {
        let word = self.word_of(line);
        if self.shared.get(&word) == Some(&line) {
            let is_far = self.lines.is_loose() && line >= self.lines.used();
            // A new line would be taken from the same free lines.
            if !is_far || self.lines.units.free_elements() == 0 || self.map(line) != 0 {
                return Ok(());
            }
            let Some(to) = self.lines.take_back(1, &mut self.budget)? else { return Ok(()) };
            let Some(to) = self.took(Some(to), 0)? else { return Ok(()) };
            self.write_values(to, core::iter::repeat_n(word, self.windows.slots()));
            self.reserve_shared()?;
            self.budget.reserve(&mut self.fresh, 1)?;
            self.uses[to as usize] = 0;
            let before = self.shared.insert(word, to);
            self.fresh.push((word, before));
        }
        // The line of the next hop may be one that an earlier call made.
        self.uniform_entry(at, word)
    }
}
