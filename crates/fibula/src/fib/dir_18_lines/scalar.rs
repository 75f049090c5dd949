//! The view of a table that lookups read, and lookups in portable code: one key, and a block of keys in stages.

use crate::fib::parts::lanes::{self, Deferred};
use crate::fib::parts::overflow::{Overflow, Windows, value, width_mask};
use crate::net::Key;
use crate::simd::LANES;

use super::layout::{Dir18Lines, line_words, windows};

/// A table as kernels read it.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) windows: Windows,
    pub(super) direct: &'a [u32],
    pub(super) lines: &'a [u32],
}

/// Looks up a block of keys. Lanes with deeper slots are deferred.
pub(super) fn block<const WIDTH: u32>(
    view: &View<'_>,
    keys: &[[u32; LANES]],
    found: &mut [[u32; LANES]],
    noted: &mut Deferred,
) {
    // With windows that the compiler knows, shifts are by constants and indices need no check.
    let ipv4 = const { windows(32, WIDTH) };
    if view.windows == ipv4 {
        stages::<WIDTH>(view, ipv4, keys, found, noted);
    } else {
        stages::<WIDTH>(view, view.windows, keys, found, noted);
    }
}

/// Looks up a block in stages: all direct entries, then all places, then all values. No key waits for another, and no
/// branch depends on a key.
#[inline(always)]
fn stages<const WIDTH: u32>(
    view: &View<'_>,
    windows: Windows,
    keys: &[[u32; LANES]],
    found: &mut [[u32; LANES]],
    noted: &mut Deferred,
) {
    let (keys, found) = (keys.as_flattened(), found.as_flattened_mut());
    let direct = view.direct;
    assert!(direct.len() == 1 << windows.direct_bits, "an entry for all leading bits");
    for (&key, word) in keys.iter().zip(&mut *found) {
        *word = direct[windows.direct(key)];
    }
    for (&key, word) in keys.iter().zip(&mut *found) {
        *word += windows.slot(key) << WIDTH;
    }
    for word in &mut *found {
        *word = value(view.lines, *word as usize, WIDTH);
    }
    // Counting first, because most blocks have no deeper slot.
    let mask = const { width_mask(WIDTH) };
    let deeper: u32 = found.iter().map(|&word| u32::from(word == mask)).sum();
    if deeper > 0 {
        (0..found.len()).filter(|&at| found[at] == mask).for_each(|at| noted.lane(at));
    }
}

impl<K: Key> Dir18Lines<K> {
    #[inline]
    pub(super) fn view(&self, windows: Windows) -> View<'_> {
        View { windows, direct: &self.direct, lines: &self.lines }
    }

    #[inline]
    pub(super) fn below(&self, windows: Windows) -> Overflow<'_> {
        Overflow { windows, area: &self.below }
    }

    /// Returns the place of the map of the line of a key.
    #[inline]
    pub(super) fn map_of<const WIDTH: u32>(&self, key: u32) -> u32 {
        let windows = const { Self::WINDOWS[WIDTH as usize] };
        let line_bytes = const { 4 * line_words(Self::WINDOWS[WIDTH as usize], WIDTH) };
        self.maps[self.direct[windows.direct(key)] as usize / line_bytes]
    }

    /// Returns the next hop of a key, 0 for no route.
    #[inline]
    pub(super) fn find(&self, key: K) -> u32 {
        let key = lanes::aligned(key);
        // Each width has its own code, in which the windows are constants.
        match self.width {
            0 => self.find_at::<0>(key),
            1 => self.find_at::<1>(key),
            _ => self.find_at::<2>(key),
        }
    }

    #[inline(always)]
    fn find_at<const WIDTH: u32>(&self, key: u32) -> u32 {
        let windows = const { Self::WINDOWS[WIDTH as usize] };
        let place = self.direct[windows.direct(key)] + (windows.slot(key) << WIDTH);
        let value = value(&self.lines, place as usize, WIDTH);
        if value == const { width_mask(WIDTH) } { self.find_below::<WIDTH>(key) } else { value }
    }

    #[cold]
    fn find_below<const WIDTH: u32>(&self, key: u32) -> u32 {
        self.below(const { Self::WINDOWS[WIDTH as usize] }).find(self.map_of::<WIDTH>(key), key)
    }
}
