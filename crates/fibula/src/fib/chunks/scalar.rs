//! The view of a table that lookups read, and lookups in portable code: one key, and a block of keys in stages.

use crate::fib::parts::lanes::{self, BLOCK, Deferred};
use crate::fib::parts::overflow::{Entry, Overflow, Windows, ranked, value, width_mask};
use crate::net::Key;
use crate::simd::LANES;

use super::layout::{Chunks, windows};

/// A table as kernels read it.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) windows: Windows,
    pub(super) direct: &'a [u32],
    pub(super) area: &'a [u32],
}

impl View<'_> {
    /// Returns the value for a key in the chunk of an entry: a next hop, or `None` where the slot is deeper.
    #[inline(always)]
    fn find_in(&self, windows: Windows, entry: Entry, key: u32) -> Option<u32> {
        let slot = windows.slot(key) >> entry.shift();
        let at = ranked(self.area, entry, slot, windows.slots() >> entry.shift());
        let value = value(self.area, at, entry.width());
        (value != width_mask(entry.width())).then_some(value)
    }

    /// Returns the place of the map of the chunk of a key.
    #[inline]
    pub(super) fn map_of(&self, key: u32) -> u32 {
        self.area[Entry(self.direct[self.windows.direct(key)]).offset() - 1]
    }
}

/// Looks up a block of keys. Lanes with deeper slots are deferred.
pub(super) fn block(view: View<'_>, keys: &[[u32; LANES]], found: &mut [[u32; LANES]], noted: &mut Deferred) {
    const IPV4: Windows = windows(32);
    // With windows that the compiler knows, shifts are by constants.
    match view.windows {
        IPV4 => stages(&view, IPV4, keys, found, noted),
        windows => stages(&view, windows, keys, found, noted),
    }
}

/// Looks up a block in two stages: all direct entries first, then the chunks of the keys that need one. The only branch
/// that depends on a key is the end of the loop over the remaining keys, so the loads of many keys overlap.
#[inline(always)]
fn stages(
    view: &View<'_>,
    windows: Windows,
    keys: &[[u32; LANES]],
    found: &mut [[u32; LANES]],
    noted: &mut Deferred,
) {
    let (keys, found) = (keys.as_flattened(), found.as_flattened_mut());
    let mut left = [0u8; BLOCK * LANES + 1];
    let mut count = 0;
    for (at, (&key, word)) in keys.iter().zip(&mut *found).enumerate() {
        *word = view.direct[windows.direct(key)];
        left[count] = at as u8;
        count += (*word >> 31) as usize;
    }
    for &at in &left[..count] {
        let at = usize::from(at);
        match view.find_in(windows, Entry(found[at]), keys[at]) {
            Some(value) => found[at] = value,
            None => noted.lane(at),
        }
    }
}

impl<K: Key> Chunks<K> {
    #[inline]
    pub(super) fn view(&self) -> View<'_> {
        View { windows: Self::WINDOWS, direct: &self.direct, area: &self.area }
    }

    #[inline]
    pub(super) fn below(&self) -> Overflow<'_> {
        Overflow { windows: Self::WINDOWS, area: &self.below }
    }

    /// Returns the next hop of a key, 0 for no route.
    #[inline]
    pub(super) fn find(&self, key: K) -> u32 {
        let key = lanes::aligned(key);
        let view = self.view();
        let entry = Entry(self.direct[Self::WINDOWS.direct(key)]);
        if !entry.is_chunk() {
            return entry.0;
        }
        view.find_in(Self::WINDOWS, entry, key).unwrap_or_else(|| self.below().find(view.map_of(key), key))
    }
}
