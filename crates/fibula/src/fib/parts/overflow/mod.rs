//! The overflow of a direct table: routes longer than /24, and next hops that do not fit into a slot.
//!
//! An engine's direct table and lines answer for *slots*, the /24s of IPv4. A slot whose addresses have several next
//! hops, or whose next hop does not fit into its line, is *deeper*. Its answer is here, in an area of words:
//!
//! ```text
//! area:    | wide ones of a chunk | record n-1 | ... | record 0 | map of the chunk's deeper slots | the next chunk's ...
//!
//! record:  0 vvvvvvvvvvvvvvvvvvvvvvv ffffffff   wwwwwwwwwwwwwwwwwwwwwwww llllllll
//!          next hop w from address f to address l of the slot, v for the others
//!          1 sss ww oooooooooooooooooooooooooo  0
//!          a wide one at word o
//! wide:    map of changes, or 4 changes of 8 bits (s = 7); then a value a range, of 2^w bytes
//! ```
//!
//! A host route costs 8 bytes and a bit of the map. A lookup finds its record next to the map: the engine knows the place
//! of the map, and the rank of the slot in the map gives the record. A slot needs a wide record if more than one stretch
//! of it differs from the rest, or for next hops from 2^23 on.

mod check;
mod kernel;
mod lookup;
mod record;
mod sweep;
#[cfg(test)]
mod tests;

pub(crate) use check::AreaWalk;
pub(crate) use lookup::value;
pub(crate) use record::{SlotRecord, WIDTHS, holds, values_at, width_mask};
pub(crate) use sweep::{
    Area, DEEP, Level, PADDING, SLOTS_MAX, SlotFiller, WORDS_MAX, append_records, append_values, moved,
    sweep, width_for, words_below,
};

/// How a key is cut into three windows, from its first bit on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotWindows {
    /// Number of bits that select an entry of the direct table.
    pub(crate) direct_bits: u32,
    /// Number of bits that select a slot of a chunk, at most 8.
    pub(crate) slot_bits: u32,
    /// Number of bits that select an address of a slot, at most 8.
    pub(crate) rest_bits: u32,
}

impl SlotWindows {
    /// Returns windows with a quarter of the bits for the addresses of a slot, and `slot_bits` for slots: all of them for
    /// IPv4, in proportion for the narrow keys of the tests.
    pub(crate) const fn new(key_bits: u8, slot_bits: u32) -> Self {
        let key_bits = key_bits as u32;
        let rest_bits = at_least_one(key_bits / 4);
        let share = key_bits * slot_bits / 16;
        let slot_bits = at_least_one(if share > slot_bits { slot_bits } else { share });
        Self { direct_bits: key_bits - slot_bits - rest_bits, slot_bits, rest_bits }
    }

    /// Returns the numbers, as chapters name them.
    pub(crate) const fn numbers(self) -> [(&'static str, u32); 3] {
        [("direct-bits", self.direct_bits), ("slot-bits", self.slot_bits), ("rest-bits", self.rest_bits)]
    }

    /// Returns the index into the direct table of a left-aligned key.
    #[inline(always)]
    pub(crate) fn direct(self, key: u32) -> usize {
        (key >> (32 - self.direct_bits)) as usize
    }

    /// Returns the slot of the chunk.
    #[inline(always)]
    pub(crate) fn slot(self, key: u32) -> u32 {
        (key << self.direct_bits) >> (32 - self.slot_bits)
    }

    /// Returns the address within the slot.
    #[inline(always)]
    pub(crate) fn rest(self, key: u32) -> u32 {
        (key << (self.direct_bits + self.slot_bits)) >> (32 - self.rest_bits)
    }

    /// Returns the number of slots of a chunk.
    pub(crate) const fn slots(self) -> usize {
        1 << self.slot_bits
    }

    /// Returns the number of addresses of a slot.
    pub(crate) const fn rests(self) -> usize {
        1 << self.rest_bits
    }
}

const fn at_least_one(bits: u32) -> u32 {
    if bits == 0 { 1 } else { bits }
}

/// The overflow area, as lookups see it.
#[derive(Debug)]
pub(crate) struct Overflow<'a, C> {
    pub(crate) windows: SlotWindows,
    pub(crate) area: &'a [C],
}

impl<C> Clone for Overflow<'_, C> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Overflow<'_, C> {}
