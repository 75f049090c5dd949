//! Lookups, by the width of values: the kernel of the instruction set for full vectors of keys, and portable code for
//! everything else.

use core::sync::atomic::Ordering;

use crate::fib::parts::lanes::{self, Deferred};
use crate::fib::parts::overflow::Overflow;
use crate::fib::{CheckError, Fib, Sections};
use crate::memory::{self, Memory};
use crate::net::{Key, NextHop};
use crate::simd::{Cell32, LANES, Present, Room};

use super::kernel;
use super::layout::{Dir18Lines, Live, line_words};
use super::scalar::Arrays;

impl<K: Key> Dir18Lines<K> {
    fn batch<const WIDTH: u32>(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        let windows = const { Self::WINDOWS[WIDTH as usize] };
        let arrays = self.arrays();
        let (view, below) = (arrays.view(windows), arrays.below(windows));
        lanes::for_each_block(keys, results, |keys, found| {
            let mut is_deeper = false;
            kernel::block::<WIDTH>(isa, &view, keys, found, &mut is_deeper);
            if is_deeper {
                deepen::<WIDTH, _>(isa, below, keys, found, |_, key| {
                    // Nothing changes in this table, so the entry can be read again.
                    arrays.map_at::<K, WIDTH>(arrays.direct[windows.direct(key)])
                });
            }
        });
    }
}

impl<K: Key> Live<K> {
    fn batch<const WIDTH: u32>(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        let windows = const { Dir18Lines::<K>::WINDOWS[WIDTH as usize] };
        let arrays = self.arrays();
        let (view, below) = (arrays.view(windows), arrays.below(windows));
        let mut room = Room::default();
        lanes::for_each_block(keys, results, |keys, found| {
            let mut is_deeper = false;
            kernel::live_block::<WIDTH>(isa, &view, keys, &mut room, found, &mut is_deeper);
            if is_deeper {
                // A line may have been replaced meanwhile, so the map is taken from the line whose value was read.
                let places = room.filled().as_flattened();
                deepen::<WIDTH, _>(isa, below, keys, found, |lane, _| {
                    arrays.map_at::<K, WIDTH>(places[lane])
                });
            }
        });
    }
}

/// Answers the lanes of a block with deeper slots. The list of lanes is made here, because most blocks have none and would
/// wait for its memory to be cleared.
#[inline(never)]
fn deepen<const WIDTH: u32, C: Cell32>(
    isa: Present,
    below: Overflow<'_, C>,
    keys: &[[u32; LANES]],
    found: &mut [[u32; LANES]],
    map_of: impl Fn(usize, u32) -> u32,
) {
    let mut noted = Deferred::new();
    kernel::note::<WIDTH>(isa, found, &mut noted);
    below.answer(isa, &mut noted, keys, found, map_of);
}

/// Keys of a batch up to which one after the other is faster than in stages.
const FEW: usize = 63;

/// Looks up keys that are too few for stages. Returns false if there are more keys.
#[inline(always)]
fn few<K: Key, C: Cell32>(arrays: &Arrays<'_, C>, keys: &[K], results: &mut [Option<NextHop>]) -> bool {
    assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
    if keys.len() > FEW {
        return false;
    }
    match arrays.width {
        0 => each::<K, C, 0>(arrays, keys, results),
        1 => each::<K, C, 1>(arrays, keys, results),
        _ => each::<K, C, 2>(arrays, keys, results),
    }
    true
}

#[inline(always)]
fn each<K: Key, C: Cell32, const WIDTH: u32>(
    arrays: &Arrays<'_, C>,
    keys: &[K],
    results: &mut [Option<NextHop>],
) {
    for (&key, result) in keys.iter().zip(results) {
        *result = NextHop::new(arrays.find_at::<K, WIDTH>(lanes::aligned(key)));
    }
}

impl<K: Key> Fib<K> for Dir18Lines<K> {
    #[inline]
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        NextHop::new(self.arrays().find(key))
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        if few(&self.arrays(), keys, results) {
            return;
        }
        // Each width has code of its own, in which windows and shifts are constants.
        match self.width {
            0 => self.batch::<0>(isa, keys, results),
            1 => self.batch::<1>(isa, keys, results),
            _ => self.batch::<2>(isa, keys, results),
        }
    }

    fn memory(&self) -> Memory {
        memory::of(&self.direct) + memory::of(&self.lines) + memory::of(&self.maps) + memory::of(&self.below)
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk()
    }

    fn sections(&self) -> Option<Sections<'_>> {
        Some(self.parts())
    }

    fn exported(&self) -> Option<Sections<'_>> {
        Some(self.parts().with_numbers(&self.windows().numbers()))
    }
}

impl<K: Key> Fib<K> for Live<K> {
    #[inline]
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        NextHop::new(self.arrays().find(key))
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        if few(&self.arrays(), keys, results) {
            return;
        }
        match self.width {
            0 => self.batch::<0>(isa, keys, results),
            1 => self.batch::<1>(isa, keys, results),
            _ => self.batch::<2>(isa, keys, results),
        }
    }

    fn memory(&self) -> Memory {
        let [lines, below] = [0, 1].map(|array| self.used[array].load(Ordering::Relaxed) as usize);
        let lines_memory = self.lines.memory_of(lines * line_words(self.windows(), self.width));
        self.direct.memory() + lines_memory + self.maps.memory_of(lines) + self.below.memory_of(below)
    }

    fn check(&self) -> Result<(), CheckError> {
        self.reached().map(drop)
    }

    fn sections(&self) -> Option<Sections<'_>> {
        self.parts()
    }
}
