//! The hash functions, and how a key gets as many hashes as its filter and its hash table need.
//!
//! Keys are hashed as masked addresses in place, with zeros after the prefix, for all functions alike.

use core::fmt::Debug;

use fibula::net::{Key, KeyKind};

/// The leading bits of a key, aligned to the left: what levels store and hash.
pub(crate) trait Stored: Copy + Eq + Send + Sync + Debug + 'static {
    /// Width in bits.
    const BITS: u8;

    /// Returns the leading bits of 128.
    fn leading(bits: u128) -> Self;
    /// Returns the value as the leading bits of 128.
    fn widened(self) -> u128;
    /// Returns the first `len` bits, zeros after them. `len` is at most [`Self::BITS`].
    fn masked(self, len: u8) -> Self;
    /// Mixes all bits and a seed into 64, by finalisers of Murmur3.
    fn mixed(self, seed: u64) -> u64;
    /// Returns 32 bits of which none is left out.
    fn folded(self) -> u32;

    /// Returns the leading bits of a key.
    #[inline]
    fn of<K: Key>(key: K) -> Self {
        Self::leading(key.to_bits() << (128 - K::BITS))
    }
}

impl Stored for u32 {
    const BITS: u8 = 32;

    #[inline]
    fn leading(bits: u128) -> Self {
        (bits >> 96) as u32
    }

    #[inline]
    fn widened(self) -> u128 {
        u128::from(self) << 96
    }

    #[inline]
    fn masked(self, len: u8) -> Self {
        self & u32::mask(len)
    }

    #[inline]
    fn mixed(self, seed: u64) -> u64 {
        fmix64(u64::from(self) << 32 ^ seed)
    }

    #[inline]
    fn folded(self) -> u32 {
        self
    }
}

impl Stored for u64 {
    const BITS: u8 = 64;

    #[inline]
    fn leading(bits: u128) -> Self {
        (bits >> 64) as u64
    }

    #[inline]
    fn widened(self) -> u128 {
        u128::from(self) << 64
    }

    #[inline]
    fn masked(self, len: u8) -> Self {
        self & if len == 0 { 0 } else { u64::MAX << (64 - len) }
    }

    #[inline]
    fn mixed(self, seed: u64) -> u64 {
        fmix64(self ^ seed)
    }

    #[inline]
    fn folded(self) -> u32 {
        (self >> 32) as u32 ^ self as u32
    }
}

impl Stored for u128 {
    const BITS: u8 = 128;

    #[inline]
    fn leading(bits: u128) -> Self {
        bits
    }

    #[inline]
    fn widened(self) -> u128 {
        self
    }

    #[inline]
    fn masked(self, len: u8) -> Self {
        self & u128::mask(len)
    }

    #[inline]
    fn mixed(self, seed: u64) -> u64 {
        fmix64((self >> 64) as u64 ^ fmix64(self as u64 ^ seed))
    }

    #[inline]
    fn folded(self) -> u32 {
        u64::folded((self >> 64) as u64 ^ self as u64)
    }
}

/// Returns how many leading bits the levels of [`Stored`] keys cover; prefixes beyond have levels of whole keys. Half of a
/// toy key where IPv6 has 64 bits, so that the tests have such levels too.
pub(crate) const fn short_bits<K: Key, S: Stored>() -> u8 {
    match K::KIND {
        KeyKind::Ipv4 => 32,
        KeyKind::Ipv6 => 64,
        KeyKind::Toy if S::BITS == 32 => K::BITS,
        KeyKind::Toy => K::BITS.div_ceil(2),
    }
}

/// The hashes of one key, one after the other.
pub(crate) trait Sequence {
    /// Returns the next one.
    fn next(&mut self) -> u32;
}

/// Hash functions of filters and hash tables.
pub(crate) trait Hashes<S>: Copy + Send + Sync + Debug + 'static {
    /// The hashes of one key.
    type Sequence: Sequence;

    /// Returns the hashes of a key for its filter.
    fn sequence(self, key: S) -> Self::Sequence;

    /// Returns the hash of a key for its hash table, when the filter has taken its hashes; `first` was the first of them.
    fn bucket(self, key: S, first: u32, after: &mut Self::Sequence) -> u32;
}

/// Hashes in arithmetic progression: `g_i = h1 + i * h2` (section 4.1).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Combined {
    pub(crate) next: u32,
    pub(crate) step: u32,
}

impl Sequence for Combined {
    #[inline]
    fn next(&mut self) -> u32 {
        let hash = self.next;
        self.next = hash.wrapping_add(self.step);
        hash
    }
}

/// A hash function of 32-bit keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hash {
    /// The finaliser of 32-bit Murmur3.
    Murmur,
    /// Knuth's multiplication by an odd number.
    Knuth,
    /// Algorithm 3 of the Bloomfwd paper.
    H2,
}

/// What a key is changed by for the second function of the same kind. It is the fractional part of the golden ratio.
pub(crate) const SECOND: u32 = 0x9e37_79b9;

/// Knuth's multiplier, a prime near 2^32 over the golden ratio.
pub(crate) const KNUTH: u32 = 2_654_435_761;

/// The multiplier of the second function of Knuth's kind, also prime. (A changed key would not do: it would hide that
/// Knuth's function preserves divisibility, which is what the paper finds of it.)
pub(crate) const KNUTH_SECOND: u32 = 2_246_822_519;

/// The multipliers of 32-bit Murmur3's finaliser.
pub(crate) const FMIX32: [u32; 2] = [0x85eb_ca6b, 0xc2b2_ae35];

/// The multipliers of 64-bit Murmur3's finaliser.
pub(crate) const FMIX64: [u64; 2] = [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53];

/// The multiplier of H2.
pub(crate) const H2: u32 = 0x045d_9f3b;

/// Mixes 32 bits (Murmur3's finaliser).
#[inline(always)]
pub(crate) fn fmix32(key: u32) -> u32 {
    let mixed = (key ^ (key >> 16)).wrapping_mul(FMIX32[0]);
    let mixed = (mixed ^ (mixed >> 13)).wrapping_mul(FMIX32[1]);
    mixed ^ (mixed >> 16)
}

/// Mixes 64 bits (Murmur3's finaliser).
#[inline(always)]
pub(crate) fn fmix64(key: u64) -> u64 {
    let mixed = (key ^ (key >> 33)).wrapping_mul(FMIX64[0]);
    let mixed = (mixed ^ (mixed >> 33)).wrapping_mul(FMIX64[1]);
    mixed ^ (mixed >> 33)
}

/// Mixes 32 bits (Algorithm 3).
#[inline(always)]
pub(crate) fn h2(key: u32) -> u32 {
    let mixed = ((key >> 16) ^ key).wrapping_mul(H2);
    let mixed = ((mixed >> 16) ^ mixed).wrapping_mul(H2);
    (mixed >> 16) ^ mixed
}

impl Hash {
    /// Returns the hash of a key.
    #[inline(always)]
    pub(crate) fn first(self, key: u32) -> u32 {
        match self {
            Self::Murmur => fmix32(key),
            Self::Knuth => key.wrapping_mul(KNUTH),
            Self::H2 => h2(key),
        }
    }

    /// Returns the hash by the second function of this kind.
    #[inline(always)]
    pub(crate) fn second(self, key: u32) -> u32 {
        match self {
            Self::Murmur => fmix32(key ^ SECOND),
            Self::Knuth => key.wrapping_mul(KNUTH_SECOND),
            Self::H2 => h2(key ^ SECOND),
        }
    }
}

/// One function for filters and one for hash tables. Where they are the same, the hash table takes the filter's first hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) filter: Hash,
    pub(crate) table: Hash,
}

impl Pair {
    /// Returns the hash of a key for its hash table, given that of its filter.
    #[inline(always)]
    pub(crate) fn for_table(self, key: u32, first: u32) -> u32 {
        if self.filter == self.table { first } else { self.table.first(key) }
    }
}

impl Hashes<u32> for Pair {
    type Sequence = Combined;

    #[inline]
    fn sequence(self, key: u32) -> Combined {
        Combined { next: self.filter.first(key), step: self.filter.second(key) }
    }

    #[inline]
    fn bucket(self, key: u32, first: u32, _after: &mut Combined) -> u32 {
        self.for_table(key, first)
    }
}

/// Toy keys beyond half of their width; IPv4 has none.
impl Hashes<u128> for Pair {
    type Sequence = Combined;

    #[inline]
    fn sequence(self, key: u128) -> Combined {
        Murmur64.sequence(key)
    }

    #[inline]
    fn bucket(self, _key: u128, first: u32, _after: &mut Combined) -> u32 {
        first
    }
}

/// The finaliser of 64-bit Murmur3: its halves are the two hashes, and the first also addresses the hash table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Murmur64;

impl<S: Stored> Hashes<S> for Murmur64 {
    type Sequence = Combined;

    #[inline]
    fn sequence(self, key: S) -> Combined {
        let mixed = key.mixed(0);
        Combined { next: mixed as u32, step: (mixed >> 32) as u32 }
    }

    #[inline]
    fn bucket(self, _key: S, first: u32, _after: &mut Combined) -> u32 {
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_their_published_values() {
        assert_eq!([1, 0x0102_0304, 0xffff_ffff].map(h2), [0x3125_1ba7, 0xbb46_e42a, 0x2028_884f]);
        assert_eq!((fmix32(1), fmix64(1)), (0x514e_28b7, 0xb456_bcfc_34c2_cb2c));
        assert_eq!((fmix32(0), fmix64(0), h2(0)), (0, 0, 0));
        // Divisibility survives.
        assert_eq!(Hash::Knuth.first(0x0a0b_0c00) % 256, 0);
        assert_eq!(Hash::Knuth.second(0x0a0b_0c00) % 256, 0);
    }

    #[test]
    fn keys_keep_their_leading_bits() {
        assert_eq!(u32::of(0x0102_0304u32), 0x0102_0304);
        assert_eq!(u64::of(0x0102_0304u32), 0x0102_0304_0000_0000);
        assert_eq!(u64::of(1u128 << 127), 1 << 63);
        assert_eq!((u32::MAX.masked(0), u32::MAX.masked(32)), (0, u32::MAX));
        assert_eq!((u64::MAX.masked(1), Stored::masked(u64::MAX, 0)), (1 << 63, 0));
        assert_eq!(u64::leading(0x0102u64.widened()), 0x0102);
    }
}
