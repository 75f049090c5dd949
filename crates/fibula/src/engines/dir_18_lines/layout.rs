//! The data that lookups read: the direct table, the lines, and the overflow.

use core::marker::PhantomData;
use core::sync::atomic::AtomicU32;

use crate::fib::parts::overflow::{SlotWindows, WIDTHS};
use crate::memory::{Buffer, Shared};
use crate::net::Key;

/// A direct table and lines of values.
#[derive(Debug, Clone)]
pub(crate) struct Dir18Lines<K> {
    /// Binary logarithm of the bytes of a value, at most 2.
    pub(super) width: u32,
    /// The byte at which the line of each value of the leading bits begins.
    pub(super) direct: Buffer<u32>,
    /// The lines, then a word of padding.
    pub(super) lines: Buffer<u32>,
    /// The byte at which the shared lines begin, those with a single next hop.
    pub(super) shared_from: u32,
    /// The place of the map of each line in `below`, 0 for a line without deeper slots. Empty where there are none.
    pub(super) maps: Buffer<u32>,
    pub(super) below: Buffer<u32>,
    pub(super) keys: PhantomData<fn(K)>,
}

/// The same arrays in words that one writer changes while readers look. All arrays have room for more.
#[derive(Debug)]
pub(super) struct Live<K> {
    pub(super) width: u32,
    pub(super) direct: Shared<u32>,
    /// The lines, in any order.
    pub(super) lines: Shared<u32>,
    /// The place of the map of each line in `below`, 0 for a line without deeper slots.
    pub(super) maps: Shared<u32>,
    pub(super) below: Shared<u32>,
    /// The number of lines up to the last one, and of words in `below` up to the last one.
    pub(super) used: [AtomicU32; 2],
    pub(super) keys: PhantomData<fn(K)>,
}

/// Returns the windows, which make a line 64 bytes. For IPv4: 18, 6 and 8 bits for 8-bit values, 19, 5 and 8 for 16-bit
/// values, 20, 4 and 8 for 32-bit values.
pub(super) const fn windows(key_bits: u8, width: u32) -> SlotWindows {
    SlotWindows::new(key_bits, 6 - width)
}

/// Returns the words of a line.
pub(super) const fn line_words(windows: SlotWindows, width: u32) -> usize {
    (windows.slots() << width).div_ceil(4)
}

impl<K: Key> Dir18Lines<K> {
    pub(super) const WINDOWS: [SlotWindows; WIDTHS] =
        [windows(K::BITS, 0), windows(K::BITS, 1), windows(K::BITS, 2)];

    pub(super) fn windows(&self) -> SlotWindows {
        Self::WINDOWS[self.width as usize]
    }

    /// Returns the bytes of a line.
    pub(super) fn line_bytes(&self) -> usize {
        4 * line_words(self.windows(), self.width)
    }

    /// Returns the bits of a value: 8, 16 or 32.
    #[cfg(test)]
    pub(super) fn value_bits(&self) -> u32 {
        8 << self.width
    }
}

impl<K: Key> Live<K> {
    pub(super) fn windows(&self) -> SlotWindows {
        Dir18Lines::<K>::WINDOWS[self.width as usize]
    }
}

const _: () = {
    let mut width = 0;
    while width < WIDTHS as u32 {
        let windows = windows(32, width);
        assert!(windows.direct_bits == 18 + width && windows.rest_bits == 8);
        // One cache line, whatever the width.
        assert!(line_words(windows, width) == 16);
        width += 1;
    }
};
