//! The data that lookups read: the direct table and the units.

use core::marker::PhantomData;
use core::sync::atomic::AtomicUsize;

use crate::fib::parts::units::Units;
use crate::memory::Shared;
use crate::net::Key;
use crate::simd::Longs;

/// A direct table, and units of ranks and values.
#[derive(Debug)]
pub struct Dir17Bitmap<K> {
    /// The [`Entry`] of each value of the leading bits.
    pub(super) direct: Shared<u32>,
    /// The units, then at least [`PADDING`].
    pub(super) units: Shared<u64>,
    /// The places in use; `None` in a table that has a writer, because the writer keeps them.
    pub(super) allotted: Option<Units>,
    /// Number of words up to the last unit.
    pub(super) end: AtomicUsize,
    /// Places count 2^`step` words, at most [`STEP_MAX`].
    pub(super) step: u32,
    pub(super) keys: PhantomData<fn(K)>,
}

/// Words of zeros after the last unit.
pub(super) const PADDING: usize = Longs::MARGIN;

/// Greatest binary logarithm of the words of a place.
pub(super) const STEP_MAX: u32 = 4;

/// How a key is cut into four windows, from its first bit on: the window of the direct table, one bit for the half of a unit,
/// the slot of the half, and the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Windows {
    pub(super) direct_bits: u32,
    /// At most 6: a half has at most 64 slots.
    pub(super) slot_bits: u32,
    /// At most 8: a slot has at most 256 addresses.
    pub(super) rest_bits: u32,
}

impl Windows {
    /// Returns how keys of this many bits are cut: 17, 1, 6 and 8 bits for IPv4, in proportion for the narrow keys of tests.
    pub(super) const fn new(key_bits: u8) -> Self {
        let key_bits = key_bits as u32;
        let rest_bits = if key_bits < 4 { 1 } else { key_bits / 4 };
        let slot_bits = key_bits / 5;
        Self { direct_bits: key_bits - 1 - slot_bits - rest_bits, slot_bits, rest_bits }
    }

    /// Returns the numbers, as chapters name them.
    pub(super) const fn numbers(self) -> [(&'static str, u32); 3] {
        [("direct-bits", self.direct_bits), ("slot-bits", self.slot_bits), ("rest-bits", self.rest_bits)]
    }

    /// Returns the index into the direct table of a left-aligned key.
    #[inline(always)]
    pub(super) const fn direct(self, key: u32) -> usize {
        (key >> (32 - self.direct_bits)) as usize
    }

    /// Returns the bit of a left-aligned key that is set in the second half of a unit.
    #[inline(always)]
    pub(super) const fn half_bit(self) -> u32 {
        1 << (31 - self.direct_bits)
    }

    /// Returns the number of bits of a left-aligned key after its slot.
    #[inline(always)]
    pub(super) const fn below_slot(self) -> u32 {
        31 - self.direct_bits - self.slot_bits
    }

    /// Returns the slot of a left-aligned key in its half.
    #[inline(always)]
    pub(super) const fn slot(self, key: u32) -> u32 {
        (key >> self.below_slot()) & (self.half() as u32 - 1)
    }

    /// Returns the address of a left-aligned key in its slot.
    #[inline(always)]
    pub(super) const fn rest(self, key: u32) -> u32 {
        (key >> (self.below_slot() - self.rest_bits)) & (self.rests() as u32 - 1)
    }

    /// Returns the number of slots of a half.
    pub(super) const fn half(self) -> usize {
        1 << self.slot_bits
    }

    /// Returns the number of slots of a unit.
    pub(super) const fn slots(self) -> usize {
        2 * self.half()
    }

    /// Returns the words of a map of the addresses of a slot.
    pub(super) const fn map_words(self) -> usize {
        let words = self.rests() / 64;
        // A narrow key has fewer than 64 addresses in a slot. Their map still takes a word.
        if words == 0 { 1 } else { words }
    }

    /// Returns the most words that the list of a slot can have.
    pub(super) const fn list_words(self) -> usize {
        self.map_words() + value_words(self.rests(), 2)
    }

    /// Returns the most words that a unit can have.
    pub(super) const fn unit_words(self) -> usize {
        // A list and a record for each slot, two maps, then two bitmaps with their values, all of the widest kind.
        self.slots() * (self.list_words() + 1) + 2 + 2 * (1 + value_words(self.half(), 2))
    }

    /// Returns the number of addresses of a slot.
    pub(super) const fn rests(self) -> usize {
        1 << self.rest_bits
    }
}

/// Most slots of a unit.
pub(super) const SLOTS_MAX: usize = 128;

/// Most addresses of a slot.
pub(super) const RESTS_MAX: usize = 256;

impl<K: Key> Dir17Bitmap<K> {
    pub(super) const WINDOWS: Windows = Windows::new(K::BITS);
}

/// A direct entry: the place of a unit, and its form.
///
/// ```text
/// oooooo pppppppppppppppppppppp u U ww
/// ```
///
/// The bitmap of the first half is at place p, and the bitmap of the second half o words after it. Values are of 8, 16 or 32
/// bits (w = 0, 1, 2). U means that the first half has one value, u that the second has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry(pub(super) u32);

impl Entry {
    /// The bits of the width, the lowest ones.
    const WIDTH: u32 = 3;
    /// The bit of each half that is set if the half has one value.
    pub(super) const UNIFORM_HALF: [u32; 2] = [1 << 2, 1 << 3];
    /// Lowest bit of the place.
    pub(super) const PLACE_AT: u32 = 4;
    /// Lowest bit of the offset.
    pub(super) const OFFSET_AT: u32 = 26;
    /// The bits of a place.
    pub(super) const PLACE: u32 = (1 << Self::OFFSET_AT) - (1 << Self::PLACE_AT);
    /// Number of places.
    pub(super) const PLACES: u64 = 1 << (Self::OFFSET_AT - Self::PLACE_AT);
    /// The entry of a unit without bitmaps at place 0: one value of 32 bits, in the word after the place.
    pub(super) const UNIFORM: u32 = 2 | Self::UNIFORM_HALF[0] | Self::UNIFORM_HALF[1];

    /// Returns the entry of the unit of one value at a place.
    pub(super) fn shared(place: u32) -> Self {
        Self(Self::UNIFORM | place << Self::PLACE_AT)
    }

    /// Returns an entry.
    pub(super) fn new(place: u32, offset: u32, width: u32, uniform: [bool; 2]) -> Self {
        debug_assert!(u64::from(place) < Self::PLACES && offset < 64 && width <= 2);
        let [first, second] = [0, 1].map(|half| if uniform[half] { Self::UNIFORM_HALF[half] } else { 0 });
        Self(offset << Self::OFFSET_AT | place << Self::PLACE_AT | first | second | width)
    }

    /// Returns the place of the bitmap of the first half, or of the unit of one value.
    #[inline(always)]
    pub(super) fn place(self) -> u32 {
        (self.0 & Self::PLACE) >> Self::PLACE_AT
    }

    /// Returns the word at which the bitmap of the first half is.
    #[inline(always)]
    pub(super) fn word(self, step: u32) -> usize {
        (self.place() as usize) << step
    }

    /// Returns the words from the first bitmap to the second one.
    #[inline(always)]
    pub(super) fn offset(self) -> usize {
        (self.0 >> Self::OFFSET_AT) as usize
    }

    /// Returns the binary logarithm of the bytes of a value.
    #[inline(always)]
    pub(super) fn width(self) -> u32 {
        self.0 & Self::WIDTH
    }

    /// Returns whether the unit has one value. Any number of entries lead to such a unit.
    #[inline(always)]
    pub(super) fn is_shared(self) -> bool {
        self.0 & Self::UNIFORM == Self::UNIFORM
    }

    /// Returns whether all addresses of a half have one value.
    #[inline(always)]
    pub(super) fn is_uniform(self, half: usize) -> bool {
        self.0 & Self::UNIFORM_HALF[half] != 0
    }
}

/// Returns the greatest value of a width, which means that a slot is deeper. A width is at most 2.
#[inline(always)]
pub(super) const fn deeper(width: u32) -> u32 {
    (u64::MAX >> (64 - (8u32 << width))) as u32
}

/// Returns the narrowest width that holds values up to this one as well as [`deeper`].
pub(super) const fn width_of(greatest: u32) -> u32 {
    // The greatest number of each width is taken, because it marks a deeper slot.
    match greatest {
        0..0xff => 0,
        0xff..0xffff => 1,
        _ => 2,
    }
}

/// Returns the number of words that `count` values take.
pub(super) const fn value_words(count: usize, width: u32) -> usize {
    (count << width).div_ceil(8)
}

const _: () = {
    let windows = Windows::new(32);
    assert!(windows.direct_bits == 17 && windows.slot_bits == 6 && windows.rest_bits == 8);
    assert!(windows.slots() == SLOTS_MAX && windows.rests() == RESTS_MAX);
    // The second bitmap follows the first one and its values.
    assert!(1 + value_words(64, 2) < 64);
};
