//! Lookups in portable code, in tables of either form: one key, and a block of keys in stages.

use core::sync::atomic::{AtomicU32, Ordering, fence};

use crate::fib::parts::lanes::{self, BLOCK, Deferred};
use crate::fib::parts::overflow::{Overflow, SlotWindows, value, width_mask};
use crate::net::Key;
use crate::simd::{Cell32, LANES, Room};

use super::layout::{Dir18Lines, Live, line_words, windows};

/// A table as kernels read it.
#[derive(Debug)]
pub(super) struct View<'a, C> {
    pub(super) windows: SlotWindows,
    pub(super) direct: &'a [C],
    pub(super) lines: &'a [C],
}

/// Looks up a block of keys, and says whether a lane has a deeper slot.
pub(super) fn block<const WIDTH: u32>(
    view: &View<'_, u32>,
    keys: &[[u32; LANES]],
    found: &mut [[u32; LANES]],
    is_deeper: &mut bool,
) {
    // With windows that the compiler knows, shifts are by constants and indices need no check.
    let ipv4 = const { windows(32, WIDTH) };
    let (keys, found) = (keys.as_flattened(), found.as_flattened_mut());
    if view.windows == ipv4 {
        places::<WIDTH, _>(view, ipv4, keys, found);
    } else {
        places::<WIDTH, _>(view, view.windows, keys, found);
    }
    for word in &mut *found {
        *word = value(view.lines, *word as usize, WIDTH);
    }
    *is_deeper = has_deeper::<WIDTH>(found);
}

/// Does the same in a table that a writer may change. The bytes of the values stay in `room`.
pub(super) fn live_block<const WIDTH: u32>(
    view: &View<'_, AtomicU32>,
    keys: &[[u32; LANES]],
    room: &mut Room<BLOCK>,
    found: &mut [[u32; LANES]],
    is_deeper: &mut bool,
) {
    let ipv4 = const { windows(32, WIDTH) };
    let places_of = room.zeros(keys.len()).as_flattened_mut();
    let (keys, found) = (keys.as_flattened(), found.as_flattened_mut());
    if view.windows == ipv4 {
        places::<WIDTH, _>(view, ipv4, keys, places_of);
    } else {
        places::<WIDTH, _>(view, view.windows, keys, places_of);
    }
    for (word, &place) in found.iter_mut().zip(&*places_of) {
        *word = value(view.lines, place as usize, WIDTH);
    }
    *is_deeper = has_deeper::<WIDTH>(found);
}

/// The first stages: all direct entries, then the bytes of all values. No key waits for another, and no branch depends on
/// a key.
#[inline(always)]
fn places<const WIDTH: u32, C: Cell32>(
    view: &View<'_, C>,
    windows: SlotWindows,
    keys: &[u32],
    places: &mut [u32],
) {
    let direct = view.direct;
    assert!(direct.len() == 1 << windows.direct_bits, "an entry for all leading bits");
    for (&key, word) in keys.iter().zip(&mut *places) {
        *word = direct[windows.direct(key)].read();
    }
    if C::CHANGES {
        // A writer publishes a line by its entry, so the entries are loaded before anything of the lines.
        fence(Ordering::Acquire);
    }
    for (&key, word) in keys.iter().zip(places) {
        *word += windows.slot(key) << WIDTH;
    }
}

/// Returns whether a value means a deeper slot. It counts them, because the compiler makes vectors of that.
fn has_deeper<const WIDTH: u32>(found: &[u32]) -> bool {
    let mask = const { width_mask(WIDTH) };
    found.iter().map(|&word| u32::from(word == mask)).sum::<u32>() > 0
}

/// Defers the lanes whose value means a deeper slot.
pub(super) fn note<const WIDTH: u32>(found: &[[u32; LANES]], noted: &mut Deferred) {
    let (mask, found) = (const { width_mask(WIDTH) }, found.as_flattened());
    (0..found.len()).filter(|&at| found[at] == mask).for_each(|at| noted.lane(at));
}

/// The arrays of a table of either form.
#[derive(Debug)]
pub(super) struct Arrays<'a, C> {
    pub(super) width: u32,
    pub(super) direct: &'a [C],
    pub(super) lines: &'a [C],
    pub(super) maps: &'a [C],
    pub(super) below: &'a [C],
}

impl<K: Key> Dir18Lines<K> {
    #[inline]
    pub(super) fn arrays(&self) -> Arrays<'_, u32> {
        let Self { width, direct, lines, maps, below, .. } = self;
        Arrays { width: *width, direct, lines, maps, below }
    }
}

impl<K: Key> Live<K> {
    #[inline]
    pub(super) fn arrays(&self) -> Arrays<'_, AtomicU32> {
        let Self { width, direct, lines, maps, below, .. } = self;
        Arrays { width: *width, direct, lines, maps, below }
    }
}

impl<'a, C: Cell32> Arrays<'a, C> {
    #[inline]
    pub(super) fn view(&self, windows: SlotWindows) -> View<'a, C> {
        View { windows, direct: self.direct, lines: self.lines }
    }

    #[inline]
    pub(super) fn below(&self, windows: SlotWindows) -> Overflow<'a, C> {
        Overflow { windows, area: self.below }
    }

    /// Returns the place of the map of the line that has this byte.
    #[inline]
    pub(super) fn map_at<K: Key, const WIDTH: u32>(&self, byte: u32) -> u32 {
        map_at::<K, C, WIDTH>(self.maps, byte)
    }

    /// Returns the next hop of a key, 0 for no route.
    #[inline]
    pub(super) fn find<K: Key>(&self, key: K) -> u32 {
        let key = lanes::aligned(key);
        // Each width has its own code, so that the windows are constants in it.
        match self.width {
            0 => self.find_at::<K, 0>(key),
            1 => self.find_at::<K, 1>(key),
            _ => self.find_at::<K, 2>(key),
        }
    }

    #[inline(always)]
    pub(super) fn find_at<K: Key, const WIDTH: u32>(&self, key: u32) -> u32 {
        let windows = const { Dir18Lines::<K>::WINDOWS[WIDTH as usize] };
        let entry = self.direct[windows.direct(key)].read();
        // As in `places`: the entry publishes everything that is read from here on.
        if C::CHANGES {
            fence(Ordering::Acquire);
        }
        // An entry is the byte at which its line begins, so that one addition finds the slot for every width of values.
        let place = entry + (windows.slot(key) << WIDTH);
        let value = value(self.lines, place as usize, WIDTH);
        if value == const { width_mask(WIDTH) } {
            find_below::<K, C, WIDTH>(self.maps, self.below, place, key)
        } else {
            value
        }
    }
}

/// Continues below a line. It takes slices, because the arrays as a whole would have to be in memory for every lookup.
#[cold]
fn find_below<K: Key, C: Cell32, const WIDTH: u32>(maps: &[C], below: &[C], place: u32, key: u32) -> u32 {
    let windows = const { Dir18Lines::<K>::WINDOWS[WIDTH as usize] };
    Overflow { windows, area: below }.find(map_at::<K, C, WIDTH>(maps, place), key)
}

/// Returns the place of the map of the line that has this byte.
#[inline]
fn map_at<K: Key, C: Cell32, const WIDTH: u32>(maps: &[C], byte: u32) -> u32 {
    let line_bytes = const { 4 * line_words(Dir18Lines::<K>::WINDOWS[WIDTH as usize], WIDTH) };
    maps[byte as usize / line_bytes].read()
}
