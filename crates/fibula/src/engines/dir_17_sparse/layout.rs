//! The data that lookups read: the groups and what they lead to in one array, and the overflow.

use core::marker::PhantomData;

use crate::fib::parts::overflow::SlotWindows;
use crate::memory::Shared;
use crate::net::Key;
use crate::simd::Longs;

/// Groups of ranked entries, and units of sparse bitmaps and values.
#[derive(Debug)]
pub(crate) struct Dir17Sparse<K> {
    /// Binary logarithm of the bytes of a value, at most 2.
    pub(super) width: u32,
    /// The groups, a word each; then bytes, eight a word, the lowest one first: for each group its entries and its units; then
    /// at least [`PADDING`].
    pub(super) words: Shared<u64>,
    /// The overflow: the answers of deeper slots.
    pub(super) below: Shared<u32>,
    pub(super) keys: PhantomData<fn(K)>,
}

/// Words of zeros at the end.
pub(super) const PADDING: usize = Longs::MARGIN;

/// Binary logarithm of the values of the leading bits that a group is for.
pub(super) const GROUP_BITS: u32 = 5;

/// Returns how a key is cut: 17, 7 and 8 bits for IPv4, in proportion for the narrow keys of tests.
pub(super) const fn windows(key_bits: u8) -> SlotWindows {
    SlotWindows::new(key_bits, 7)
}

/// Returns the number of groups. Narrow keys may have one that is not full.
pub(super) const fn groups(windows: SlotWindows) -> usize {
    1 << windows.direct_bits.saturating_sub(GROUP_BITS)
}

/// Returns the binary logarithm of the slots of half a unit, at most 6.
pub(super) const fn half_bits(windows: SlotWindows) -> u32 {
    windows.slot_bits - 1
}

impl<K: Key> Dir17Sparse<K> {
    pub(super) const WINDOWS: SlotWindows = windows(K::BITS);
}

/// An entry: 16 bits of mask and, above it, 16 of place.
///
/// A bit of the mask for each byte of the two bitmaps, those of the first half lowest, is set where the byte is stored, because it is
/// not zero. The place counts bytes from the first entry of the group to the first stored byte of the unit. Without a mask it is
/// no place: it is the next hop of all addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry(pub(super) u32);

impl Entry {
    pub(super) const BYTES: usize = 4;
    /// Lowest bit of the place, and number of bits of the mask.
    pub(super) const PLACE_AT: u32 = 16;
    /// The first next hop that no entry holds.
    pub(super) const NEXT_HOPS: u32 = 1 << (32 - Self::PLACE_AT);

    pub(super) fn new(mask: u32, place: usize) -> Self {
        debug_assert!(mask < 1 << Self::PLACE_AT && place < Self::NEXT_HOPS as usize);
        Self(mask | (place as u32) << Self::PLACE_AT)
    }

    #[inline(always)]
    pub(super) fn mask(self) -> u32 {
        self.0 & ((1 << Self::PLACE_AT) - 1)
    }

    /// Returns the place or the next hop.
    #[inline(always)]
    pub(super) fn place(self) -> u32 {
        self.0 >> Self::PLACE_AT
    }
}

const _: () = {
    let windows = windows(32);
    assert!(windows.direct_bits == 17 && windows.slot_bits == 7 && windows.rest_bits == 8);
    // The widest group has a place for each of its bytes: entries, and for each unit the bytes of both bitmaps, values, and a map.
    let unit = 16 + (1 + windows.slots()) * 4 + 4;
    assert!((1 << GROUP_BITS) * (Entry::BYTES + unit) < Entry::NEXT_HOPS as usize);
};
