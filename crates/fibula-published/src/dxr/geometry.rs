//! Widths: which bits of the key and of the entries mean what. All are run-time values, so that one body serves every k
//! and the tests' small spaces.

use fibula::fib::BuildError;

use super::NAME;
use super::options::Format;

/// The widths of a key and its entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Geometry {
    /// Bits of the key that index the direct table.
    pub(super) k: u8,
    /// The remaining bits of the key, at most 16.
    pub(super) rest: u8,
    /// Trailing bits that short entries do not store.
    pub(super) dropped: u8,
    /// Number of codes that short entries can hold.
    pub(super) short_codes: u32,
    /// Number of codes that long entries can hold.
    pub(super) long_codes: u32,
    /// Bits of a direct entry for size and position together.
    pub(super) entry_bits: u8,
    /// Bits of these for the size, as drawn.
    pub(super) size_bits: u8,
}

impl Geometry {
    /// Returns the geometry of keys of `bits` bits, at most 32.
    ///
    /// # Panics
    /// When k is out of range for such keys.
    pub(super) fn new(bits: u8, k: u8) -> Self {
        if bits == 32 {
            assert!((16..=24).contains(&k), "{NAME}: k is 16 to 24, not {k}");
            return Self {
                k,
                rest: 32 - k,
                dropped: 8,
                short_codes: 256,
                long_codes: 1 << 16,
                entry_bits: 31,
                size_bits: 12,
            };
        }
        assert!(k < bits, "{NAME}: k is below {bits}, not {k}");
        // In proportion, and tight: the drawn split is too small for many tables, while the last stretch is enough for
        // all of them, even with every chunk full.
        let rest = bits - k;
        let stretched_sizes = (1u32 << rest).div_ceil(1 << Split::SHIFT_MAX);
        let position_bits = (k + rest.saturating_sub(Split::SHIFT_MAX)).max(3);
        let entry_bits = width(stretched_sizes) + position_bits;
        Self {
            k,
            rest,
            dropped: (bits / 4).max(1),
            short_codes: 2,
            long_codes: 1 << 16,
            entry_bits,
            size_bits: entry_bits / 3,
        }
    }
}

/// How the bits of a direct entry are split, and the units in which they count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    /// Bits for the size of a chunk.
    pub size_bits: u8,
    /// Bits for its position, or for the code of a next hop in place.
    pub position_bits: u8,
    /// Sizes count this many entries, positions this many 4-byte units, as a power of two: 0 to 3.
    pub shift: u8,
}

impl Split {
    /// Largest `shift`: chunks are padded to multiples of at most 8 entries.
    pub(super) const SHIFT_MAX: u8 = 3;

    /// Returns the size field of a chunk of `entries`; 0 means that the entry holds a next hop. Where sizes count
    /// single entries the field is `entries - 1`, because no chunk has a single entry, so that 12 bits reach 4,096.
    pub(super) fn size_field(entries: u64, shift: u8) -> u64 {
        if shift == 0 { entries - 1 } else { entries.div_ceil(1 << shift) }
    }

    /// Returns the number of entries, padding included, of a chunk with this size field.
    #[inline]
    pub(super) fn entries(self, size_field: u32) -> usize {
        ((size_field + u32::from(self.shift == 0)) << self.shift) as usize
    }

    /// Returns the 4-byte units of a chunk, padding included.
    pub(super) fn units(entries: u64, short: bool, shift: u8) -> u64 {
        let units = if short { entries.div_ceil(2) } else { entries };
        units.next_multiple_of(1 << shift)
    }
}

/// What a table needs of the format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Needs {
    /// Entries of the largest chunk; 0 where there is none.
    pub(super) entries_max: u64,
    /// Position of the last chunk in 4-byte units, for each stretch.
    pub(super) last_position: [u64; Split::SHIFT_MAX as usize + 1],
    /// 4-byte units in all, for each stretch.
    pub(super) units: [u64; Split::SHIFT_MAX as usize + 1],
    /// Largest code in a long chunk.
    pub(super) long_code_max: u64,
    /// Largest code in a direct entry.
    pub(super) direct_code_max: u64,
}

impl Needs {
    /// Returns the needs of a table that takes twice as much of everything.
    pub(super) fn doubled(self, geometry: Geometry) -> Self {
        Self {
            entries_max: (2 * self.entries_max).min(1 << geometry.rest),
            last_position: self.units.map(|units| 2 * units),
            units: self.units.map(|units| 2 * units),
            long_code_max: self.long_code_max,
            direct_code_max: 2 * self.direct_code_max,
        }
    }

    /// Returns the split for these needs: the drawn one where it fits, else another one with the least padding.
    pub(super) fn split(&self, format: Format, geometry: &Geometry) -> Result<Split, BuildError> {
        let long_max = u64::from(geometry.long_codes) - 1;
        if self.long_code_max > long_max {
            return Err(BuildError::limit(NAME, "next hops in ranges", long_max, self.long_code_max));
        }
        let drawn = Split {
            size_bits: geometry.size_bits,
            position_bits: geometry.entry_bits - geometry.size_bits,
            shift: 0,
        };
        if format == Format::Drawn {
            return self.fits(drawn).map(|()| drawn);
        }
        let fitted = |shift| {
            let size_bits = width(Split::size_field(self.entries_max.max(2), shift) as u32);
            Split { size_bits, position_bits: geometry.entry_bits - size_bits, shift }
        };
        let mut splits = [drawn].into_iter().chain((0..=Split::SHIFT_MAX).map(fitted));
        splits
            .find(|&split| self.fits(split).is_ok())
            .map_or_else(|| Err(self.fits(fitted(Split::SHIFT_MAX)).expect_err("none fits")), Ok)
    }

    /// Checks that a split is enough; the error names the field that is too small.
    fn fits(&self, split: Split) -> Result<(), BuildError> {
        let Split { size_bits, position_bits, shift } = split;
        let limit = |what, limit, need| Err(BuildError::limit(NAME, what, limit, need));
        let codes_max = (1 << position_bits) - 1;
        if self.direct_code_max > codes_max {
            return limit("next hops in direct entries", codes_max, self.direct_code_max);
        }
        let size_max = (1 << size_bits) - 1;
        if Split::size_field(self.entries_max.max(1), shift) > size_max {
            let entries = split.entries(size_max as u32) as u64;
            return limit("entries in a chunk", entries, self.entries_max);
        }
        let positions = 1 << (position_bits + shift);
        let last = self.last_position[usize::from(shift)];
        if last >= positions {
            return limit("units of 4 bytes before the last chunk", positions - 1, last);
        }
        Ok(())
    }
}

/// Returns the bits that a number takes.
fn width(number: u32) -> u8 {
    (u32::BITS - number.leading_zeros()) as u8
}
