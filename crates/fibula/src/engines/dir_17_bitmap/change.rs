//! The words that a change of one route would rewrite.

use crate::memory::Cell;
use crate::net::{Key, Prefix};

use super::layout::{Dir17Bitmap, Entry};

/// Words of a cache line.
const LINE: usize = 8;

impl<K: Key> Dir17Bitmap<K> {
    /// Returns the number of cache lines of the unit that a change of this prefix rewrites before it stores the entry, which is
    /// one word. Returns `None` for a prefix that meets several units.
    #[must_use]
    pub fn lines_of_change(&self, prefix: Prefix<K>) -> Option<usize> {
        if u32::from(prefix.len()) < Self::WINDOWS.direct_bits {
            return None;
        }
        let at = Self::WINDOWS.direct(crate::fib::parts::lanes::aligned(prefix.addr()));
        let entry = Entry(self.direct[at].read());
        if entry.is_shared() {
            // A bitmap and two values.
            return Some(1);
        }
        let words = self.unit(entry).ok()?;
        Some((words.end - 1) / LINE - words.start / LINE + 1)
    }
}
