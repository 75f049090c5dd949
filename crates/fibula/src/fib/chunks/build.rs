//! Slots to chunks: a map of the changes, and one value a range.

use core::marker::PhantomData;

use crate::fib::BuildError;
use crate::fib::parts::bitmap;
use crate::fib::parts::overflow::{self, Area, DEEP, Entry, Level, append_values, width_of};
use crate::memory::{Budget, Buffer, Limits, OutOfMemory};
use crate::net::{Ipv4Key, Routes};

use super::{Chunks, NAME};

impl<K: Ipv4Key> Chunks<K> {
    /// Builds the tables of the routes.
    ///
    /// # Errors
    /// When memory runs out, and when the chunks, or what lies below them, need more than 2^26 words.
    pub(crate) fn build(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, BuildError> {
        const { assert!(K::BITS <= 32, "keys fill lanes of 32 bits") };
        let memory = |error| BuildError::memory(NAME, error);
        let mut budget = Budget::new(limits);
        let direct = budget.buffer(1 << Self::WINDOWS.direct_bits).map_err(memory)?;
        let mut level = Tables { direct, area: Area::default() };
        let below = overflow::sweep(routes, Self::WINDOWS, &mut level, &mut budget).map_err(memory)?;
        let area = level.area.finish(NAME, &mut budget)?;
        let below = below.finish(NAME, &mut budget)?;
        Ok(Self { direct: level.direct, area, below, keys: PhantomData })
    }
}

/// The tables under construction.
struct Tables {
    direct: Buffer<u32>,
    area: Area,
}

impl Level for Tables {
    fn holds(&self, word: u32) -> bool {
        // All ones mean "deeper" at every width.
        word != u32::MAX
    }

    fn holds_whole(&self, word: u32) -> bool {
        !Entry(word).is_chunk()
    }

    fn uniform(&mut self, entries: usize, word: u32, _: &mut Budget) -> Result<(), OutOfMemory> {
        self.direct.resize(self.direct.len() + entries, word);
        Ok(())
    }

    fn chunk(&mut self, slots: &[u64], map: Option<u32>, budget: &mut Budget) -> Result<(), OutOfMemory> {
        // The finest change decides how many slots become one: the lowest bit set in any place of a change.
        let changes = || (1..slots.len()).filter(|&at| slots[at] != slots[at - 1]);
        let count = changes().count();
        let spread = changes().fold(slots.len(), |all, at| all | at).trailing_zeros();
        let shift = spread.min(Entry::SPARSE - 1);
        let step = 1 << shift;
        let greatest = slots.iter().filter(|&&slot| slot != DEEP).max().copied().unwrap_or(0);
        let width = width_of(greatest, true);
        let head_words = bitmap::words((slots.len() / step) as u32) as usize;
        let value_words = ((count + 1) << width).div_ceil(4);

        let offset = self.area.needed + u64::from(map.is_some());
        let words = usize::from(map.is_some()) + head_words + value_words;
        if !self.area.reserve(words, budget)? {
            self.direct.push(Entry::CHUNK);
            return Ok(());
        }
        let area = &mut self.area.words;
        if let Some(map) = map {
            area.push(map);
        }
        let starts = (0..slots.len()).step_by(step);
        bitmap::append(area, starts.map(|at| at > 0 && slots[at] != slots[at - 1]));
        // One value for each range, that of its first slot.
        let values = core::iter::once(0).chain(changes());
        // Cut to its width, `DEEP - 1` is all ones.
        append_values(area, width, values.map(|at| slots[at].min(DEEP - 1) as u32), count + 1);
        self.direct.push(Entry::chunk(shift, width, offset as u32).0);
        Ok(())
    }
}
