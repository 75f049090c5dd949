//! Keys: addresses as integers in host order.

use core::fmt;
use core::hash::Hash;
use core::net::{Ipv4Addr, Ipv6Addr};

use super::text::{self, AddressError};

/// The address families.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// 32-bit addresses (RFC 791).
    Ipv4,
    /// 128-bit addresses (RFC 8200).
    Ipv6,
}

/// Kinds of keys: those of the families, and narrow ones.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// `u32`.
    Ipv4,
    /// `u128`.
    Ipv6,
    /// [`Toy`]: an address space of a few bits, small enough that a test can look up every address of every table.
    Toy,
}

impl Family {
    /// Returns the name for output that scripts read: `ipv4` or `ipv6`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ipv4 => "IPv4",
            Self::Ipv6 => "IPv6",
        })
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u128 {}
    impl<const WIDTH: u8> Sealed for super::Toy<WIDTH> {}
}

/// An address: `u32` for IPv4, `u128` for IPv6. Bit 0 is the most significant one.
///
/// Sealed, because engines rely on these operations being plain integer arithmetic.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a key of a batch or a table",
    label = "expected `u32` (IPv4) or `u128` (IPv6)",
    note = "a batch is of one family, in host order: `u32::from(address)`, `u128::from(address)`",
    note = "addresses in network byte order are `[u8; 4]` or `[u8; 16]`: `batch(&addresses)`"
)]
pub trait Key:
    sealed::Sealed + Copy + Ord + Hash + Default + fmt::Debug + Send + Sync + Unpin + 'static
{
    /// Width of the address space in bits.
    const BITS: u8;
    /// The family of these keys. Narrow keys of tests count as IPv4 where a family must be named.
    const FAMILY: Family;
    /// The kind of these keys.
    #[doc(hidden)]
    const KIND: KeyKind;
    /// The first address.
    const ZERO: Self;
    /// The last address, all bits set.
    const MAX: Self;

    /// The address in network byte order, as in packets.
    type Bytes: Copy + AsRef<[u8]> + AsMut<[u8]> + Default + fmt::Debug + Send + Sync + 'static;

    /// Returns the key whose value is the low [`Self::BITS`] bits of `bits`; higher bits are ignored.
    fn from_bits(bits: u128) -> Self;
    /// Returns the key as a right-aligned integer.
    fn to_bits(self) -> u128;
    /// Converts from network byte order.
    fn from_network(bytes: Self::Bytes) -> Self;
    /// Converts to network byte order.
    fn to_network(self) -> Self::Bytes;

    /// Returns the bits set in both.
    #[must_use]
    fn and(self, other: Self) -> Self;
    /// Returns the bits set in either.
    #[must_use]
    fn or(self, other: Self) -> Self;
    /// Returns the bits in which the two differ.
    #[must_use]
    fn xor(self, other: Self) -> Self;
    /// Returns the key with all bits inverted.
    #[must_use]
    fn not(self) -> Self;
    /// Returns the mask whose first `len` bits are set. `len` is at most [`Self::BITS`].
    fn mask(len: u8) -> Self;
    /// Returns the number of zero bits before the first set bit; [`Self::BITS`] for zero.
    fn leading_zeros(self) -> u8;

    /// Returns bit `index`, counted from the most significant. `index` is below [`Self::BITS`].
    fn bit(self, index: u8) -> bool;
    /// Returns `count` bits from bit `offset` on, right-aligned: the index of a trie node's child or of a direct
    /// table's entry. `count` is at most 32 and `offset + count` at most [`Self::BITS`].
    fn window(self, offset: u8, count: u8) -> u32;

    /// Returns the next address; the last has none.
    fn next(self) -> Option<Self>;
    /// Returns the previous address; the first has none.
    fn previous(self) -> Option<Self>;

    /// Returns the keys as IPv4 addresses if that is what they are, so that kernels can load them without a copy.
    #[must_use]
    fn as_ipv4(_keys: &[Self]) -> Option<&[u32]> {
        None
    }

    /// Returns the keys as IPv6 addresses if that is what they are.
    #[must_use]
    fn as_ipv6(_keys: &[Self]) -> Option<&[u128]> {
        None
    }

    /// Calls `F` if these are [`Ipv4Key`]s.
    #[doc(hidden)]
    #[must_use]
    fn if_ipv4<F: ForIpv4<Self>>() -> Option<F::Output> {
        None
    }

    /// Calls `F` if these are [`Ipv6Key`]s.
    #[doc(hidden)]
    #[must_use]
    fn if_ipv6<F: ForIpv6<Self>>() -> Option<F::Output> {
        None
    }

    /// Writes the address in its usual notation.
    fn format(self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
    /// Reads an address from the whole of `text`, which has no leading or trailing blanks.
    fn parse(text: &[u8]) -> Result<Self, AddressError>;

    /// Returns the number of leading bits that the two share.
    #[inline]
    fn common_len(self, other: Self) -> u8 {
        self.xor(other).leading_zeros()
    }

    /// Returns a value that prints as the address.
    #[inline]
    fn address(self) -> Address<Self> {
        Address(self)
    }
}

/// Keys of structures for IPv4 alone, which rely on at most 32 bits: `u32`.
///
/// Such a structure cannot be built over `u128`: that does not compile.
pub trait Ipv4Key: Key {}

impl Ipv4Key for u32 {}
impl<const WIDTH: u8> Ipv4Key for Toy<WIDTH> {}

/// Keys of structures for IPv6 alone: `u128`.
pub trait Ipv6Key: Key {}

impl Ipv6Key for u128 {}
impl<const WIDTH: u8> Ipv6Key for Toy<WIDTH> {}

/// A function over IPv4 keys, to be called where only [`Key`] is known.
#[doc(hidden)]
pub trait ForIpv4<K> {
    /// What it returns.
    type Output;

    /// Calls it.
    fn call() -> Self::Output
    where
        K: Ipv4Key;
}

/// A function over IPv6 keys, to be called where only [`Key`] is known.
#[doc(hidden)]
pub trait ForIpv6<K> {
    /// What it returns.
    type Output;

    /// Calls it.
    fn call() -> Self::Output
    where
        K: Ipv6Key;
}

/// Prints an address in its usual notation: `192.0.2.1`, `2001:db8::1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address<K>(pub K);

impl<K: Key> fmt::Display for Address<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.format(f)
    }
}

macro_rules! integer_key {
    ($int:ty, $family:ident, $address:ty, $parse:path, $as_ipv4:expr, $as_ipv6:expr, $if_family:ident: $For:ident) => {
        impl Key for $int {
            const BITS: u8 = <$int>::BITS as u8;
            const FAMILY: Family = Family::$family;
            const KIND: KeyKind = KeyKind::$family;
            const ZERO: Self = 0;
            const MAX: Self = <$int>::MAX;

            type Bytes = [u8; size_of::<$int>()];

            #[inline]
            fn from_bits(bits: u128) -> Self {
                bits as $int
            }

            #[inline]
            fn to_bits(self) -> u128 {
                self.into()
            }

            #[inline]
            fn from_network(bytes: Self::Bytes) -> Self {
                Self::from_be_bytes(bytes)
            }

            #[inline]
            fn to_network(self) -> Self::Bytes {
                self.to_be_bytes()
            }

            #[inline]
            fn and(self, other: Self) -> Self {
                self & other
            }

            #[inline]
            fn or(self, other: Self) -> Self {
                self | other
            }

            #[inline]
            fn xor(self, other: Self) -> Self {
                self ^ other
            }

            #[inline]
            fn not(self) -> Self {
                !self
            }

            #[inline]
            fn mask(len: u8) -> Self {
                debug_assert!(len <= <Self as Key>::BITS);
                // A shift by the whole width would overflow.
                if len == 0 { 0 } else { Self::MAX << (<Self as Key>::BITS - len) }
            }

            #[inline]
            fn leading_zeros(self) -> u8 {
                <$int>::leading_zeros(self) as u8
            }

            #[inline]
            fn bit(self, index: u8) -> bool {
                debug_assert!(index < <Self as Key>::BITS);
                (self >> (<Self as Key>::BITS - 1 - index)) & 1 != 0
            }

            #[inline]
            fn window(self, offset: u8, count: u8) -> u32 {
                debug_assert!(count <= 32 && offset + count <= <Self as Key>::BITS);
                if count == 0 {
                    return 0;
                }
                let shifted = self >> (<Self as Key>::BITS - offset - count);
                (shifted as u32) & (u32::MAX >> (32 - count))
            }

            #[inline]
            fn next(self) -> Option<Self> {
                self.checked_add(1)
            }

            #[inline]
            fn previous(self) -> Option<Self> {
                self.checked_sub(1)
            }

            #[inline]
            fn as_ipv4(keys: &[Self]) -> Option<&[u32]> {
                let as_ipv4: fn(&[Self]) -> Option<&[u32]> = $as_ipv4;
                as_ipv4(keys)
            }

            #[inline]
            fn as_ipv6(keys: &[Self]) -> Option<&[u128]> {
                let as_ipv6: fn(&[Self]) -> Option<&[u128]> = $as_ipv6;
                as_ipv6(keys)
            }

            fn $if_family<F: $For<Self>>() -> Option<F::Output> {
                Some(F::call())
            }

            fn format(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&<$address>::from_bits(self), f)
            }

            #[inline]
            fn parse(text: &[u8]) -> Result<Self, AddressError> {
                $parse(text)
            }
        }
    };
}

integer_key!(u32, Ipv4, Ipv4Addr, text::parse_ipv4, |keys| Some(keys), |_| None, if_ipv4: ForIpv4);
integer_key!(u128, Ipv6, Ipv6Addr, text::parse_ipv6, |_| None, |keys| Some(keys), if_ipv6: ForIpv6);

/// A key of `WIDTH` bits, 1 to 16: small enough for tests to enumerate every address, every prefix and, at the
/// smallest widths, every table. Hidden: only tests need it, and every structure serves it.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Toy<const WIDTH: u8>(u16);

impl<const WIDTH: u8> Toy<WIDTH> {
    const LAST: u16 = {
        assert!(WIDTH >= 1 && WIDTH <= 16);
        u16::MAX >> (16 - WIDTH)
    };
}

impl<const WIDTH: u8> Key for Toy<WIDTH> {
    const BITS: u8 = WIDTH;
    const FAMILY: Family = Family::Ipv4;
    const KIND: KeyKind = KeyKind::Toy;
    const ZERO: Self = Self(0);
    const MAX: Self = Self(Self::LAST);

    type Bytes = [u8; 2];

    #[inline]
    fn from_bits(bits: u128) -> Self {
        Self(bits as u16 & Self::LAST)
    }

    #[inline]
    fn to_bits(self) -> u128 {
        self.0.into()
    }

    #[inline]
    fn from_network(bytes: Self::Bytes) -> Self {
        Self(u16::from_be_bytes(bytes) & Self::LAST)
    }

    #[inline]
    fn to_network(self) -> Self::Bytes {
        self.0.to_be_bytes()
    }

    #[inline]
    fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    #[inline]
    fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[inline]
    fn xor(self, other: Self) -> Self {
        Self(self.0 ^ other.0)
    }

    #[inline]
    fn not(self) -> Self {
        Self(!self.0 & Self::LAST)
    }

    #[inline]
    fn mask(len: u8) -> Self {
        debug_assert!(len <= WIDTH);
        Self(Self::LAST & !(u32::from(Self::LAST) >> len) as u16)
    }

    #[inline]
    fn leading_zeros(self) -> u8 {
        self.0.leading_zeros() as u8 - (16 - WIDTH)
    }

    #[inline]
    fn bit(self, index: u8) -> bool {
        debug_assert!(index < WIDTH);
        (self.0 >> (WIDTH - 1 - index)) & 1 != 0
    }

    #[inline]
    fn window(self, offset: u8, count: u8) -> u32 {
        debug_assert!(offset + count <= WIDTH);
        let shifted = u32::from(self.0) >> (WIDTH - offset - count);
        shifted & ((1 << count) - 1)
    }

    #[inline]
    fn next(self) -> Option<Self> {
        (self.0 < Self::LAST).then(|| Self(self.0 + 1))
    }

    #[inline]
    fn previous(self) -> Option<Self> {
        self.0.checked_sub(1).map(Self)
    }

    fn if_ipv4<F: ForIpv4<Self>>() -> Option<F::Output> {
        Some(F::call())
    }

    fn if_ipv6<F: ForIpv6<Self>>() -> Option<F::Output> {
        Some(F::call())
    }

    fn format(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }

    fn parse(text: &[u8]) -> Result<Self, AddressError> {
        text::parse_number(text, Self::LAST.into()).map(|value| Self(value as u16))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn laws<K: Key>(samples: &[u128]) {
        assert_eq!(K::mask(0), K::ZERO);
        assert_eq!(K::mask(K::BITS), K::MAX);
        assert_eq!(K::MAX.next(), None);
        assert_eq!(K::ZERO.previous(), None);
        assert_eq!(K::ZERO.leading_zeros(), K::BITS);
        for &sample in samples {
            let key = K::from_bits(sample);
            assert_eq!(K::from_bits(key.to_bits()), key);
            assert_eq!(K::from_network(key.to_network()), key);
            assert_eq!(K::parse(key.address().to_string().as_bytes()), Ok(key));
            assert_eq!(key.next().and_then(K::previous), key.next().map(|_| key));
            assert_eq!(key.not().not(), key);
            for index in 0..K::BITS {
                assert_eq!(key.window(index, 1), u32::from(key.bit(index)));
                let masked = key.and(K::mask(index));
                assert!(masked.common_len(key) >= index);
                assert_eq!(key.window(0, index.min(32)), {
                    let width = index.min(32);
                    (0..width).fold(0, |sum, i| sum << 1 | u32::from(key.bit(i)))
                });
            }
        }
    }

    #[test]
    fn arithmetic_is_the_same_in_every_width() {
        let samples = [0, 1, 2, 5, 127, 128, 254, 255, 0x0a00_0001, u32::MAX.into(), u128::MAX, 1 << 127];
        laws::<u32>(&samples);
        laws::<u128>(&samples);
        laws::<Toy<3>>(&samples);
        laws::<Toy<8>>(&samples);
        laws::<Toy<16>>(&samples);
    }
}
