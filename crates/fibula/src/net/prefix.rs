//! Prefixes: blocks of addresses that share their first `len` bits.

use core::fmt;
use core::str::FromStr;

use super::key::{Family, Key};
use super::text::AddressError;

/// A block of addresses that share their first [`len`](Self::len) bits.
///
/// All bits after those are zero, by construction. Ordered by address, then by length: a prefix sorts before
/// everything it contains. Takes 8 bytes for IPv4, at most 32 for IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix<K> {
    addr: K,
    len: u8,
}

/// What to do with an address that has bits set after the prefix length (`10.0.0.1/8`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HostBits {
    /// Return an error: more often than not it is a mistake.
    #[default]
    Refuse,
    /// Clear them.
    Mask,
}

impl<K: Key> Prefix<K> {
    /// The whole address space, `0.0.0.0/0` or `::/0`.
    pub const ALL: Self = Self { addr: K::ZERO, len: 0 };

    /// Returns the prefix of `len` bits at `addr`, whose other bits must be zero.
    ///
    /// # Errors
    /// When `len` exceeds the width of the family, or `addr` has bits set after it.
    pub fn new(addr: K, len: u8) -> Result<Self, PrefixError> {
        let prefix = Self::masked(addr, len)?;
        if prefix.addr == addr {
            Ok(prefix)
        } else {
            Err(PrefixError { kind: PrefixErrorKind::host_bits(prefix), offset: None })
        }
    }

    /// Returns the prefix of `len` bits that contains `addr`.
    ///
    /// # Errors
    /// When `len` exceeds the width of the family.
    pub fn masked(addr: K, len: u8) -> Result<Self, PrefixError> {
        if len > K::BITS {
            return Err(PrefixError { kind: PrefixErrorKind::too_long::<K>(len.into()), offset: None });
        }
        Ok(Self::of(addr, len))
    }

    /// Returns the prefix of `len` bits that contains `addr`, for a `len` known to be at most [`Key::BITS`].
    #[inline]
    #[doc(hidden)]
    pub fn of(addr: K, len: u8) -> Self {
        Self { addr: addr.and(K::mask(len)), len }
    }

    /// Returns the prefix that contains this address alone.
    #[inline]
    #[must_use]
    pub fn host(addr: K) -> Self {
        Self { addr, len: K::BITS }
    }

    /// Returns the first address of the block.
    #[inline]
    #[must_use]
    pub fn addr(self) -> K {
        self.addr
    }

    /// Returns the last address of the block.
    #[inline]
    #[must_use]
    pub fn last(self) -> K {
        self.addr.or(K::mask(self.len).not())
    }

    /// Returns the prefix length, 0 to [`Key::BITS`].
    #[inline]
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a prefix length, not a number of elements")]
    pub fn len(self) -> u8 {
        self.len
    }

    /// Returns whether `addr` is in the block.
    #[inline]
    #[must_use]
    pub fn contains(self, addr: K) -> bool {
        addr.and(K::mask(self.len)) == self.addr
    }

    /// Returns whether all of `other` is in the block; every prefix covers itself.
    #[inline]
    #[must_use]
    pub fn covers(self, other: Self) -> bool {
        self.len <= other.len && self.contains(other.addr)
    }

    /// Returns whether the two have an address in common, which means that one covers the other.
    #[inline]
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        self.addr.xor(other.addr).and(K::mask(self.len.min(other.len))) == K::ZERO
    }

    /// Returns the lower and upper half of the block; a host prefix has none.
    #[must_use]
    pub fn halves(self) -> Option<(Self, Self)> {
        if self.len == K::BITS {
            return None;
        }
        let len = self.len + 1;
        let upper = self.addr.or(K::mask(len).and(K::mask(self.len).not()));
        Some((Self { addr: self.addr, len }, Self { addr: upper, len }))
    }

    /// Reads `address/length`; an address alone is a host prefix.
    ///
    /// # Errors
    /// What is wrong, and at which byte.
    pub fn parse(text: &[u8], host_bits: HostBits) -> Result<Self, PrefixError> {
        let Some(slash) = text.iter().position(|&byte| byte == b'/') else {
            return match K::parse(text) {
                Ok(addr) => Ok(Self::host(addr)),
                Err(error) => Err(PrefixError::at(PrefixErrorKind::Address(error), error.offset())),
            };
        };
        let addr = K::parse(&text[..slash])
            .map_err(|error| PrefixError::at(PrefixErrorKind::Address(error), error.offset()))?;
        let len = parse_len::<K>(&text[slash + 1..], slash + 1)?;
        let prefix = Self::of(addr, len);
        if prefix.addr != addr && host_bits == HostBits::Refuse {
            return Err(PrefixError::at(PrefixErrorKind::host_bits(prefix), slash));
        }
        Ok(prefix)
    }
}

fn parse_len<K: Key>(digits: &[u8], offset: usize) -> Result<u8, PrefixError> {
    if digits.is_empty() {
        return Err(PrefixError::at(PrefixErrorKind::NoLength, offset));
    }
    let mut len = 0u32;
    for (at, &byte) in digits.iter().enumerate() {
        if !byte.is_ascii_digit() {
            return Err(PrefixError::at(PrefixErrorKind::NotADigit(byte), offset + at));
        }
        len = len.saturating_mul(10).saturating_add(u32::from(byte - b'0'));
    }
    if len > u32::from(K::BITS) {
        return Err(PrefixError::at(PrefixErrorKind::too_long::<K>(len), offset));
    }
    Ok(len as u8)
}

impl<K: Key> fmt::Display for Prefix<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.addr.address(), self.len)
    }
}

/// Refuses host bits; [`Prefix::parse`] can mask them.
impl<K: Key> FromStr for Prefix<K> {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        Self::parse(text.as_bytes(), HostBits::Refuse)
    }
}

/// Why something is not a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrefixError {
    kind: PrefixErrorKind,
    offset: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PrefixErrorKind {
    Address(AddressError),
    NoLength,
    NotADigit(u8),
    TooLong {
        len: u32,
        limit: u8,
        family: Family,
    },
    /// The prefix that was probably meant is the first `len` bits of `addr`.
    HostBits {
        addr: u128,
        len: u8,
        family: Family,
    },
}

impl PrefixErrorKind {
    fn too_long<K: Key>(len: u32) -> Self {
        Self::TooLong { len, limit: K::BITS, family: K::FAMILY }
    }

    fn host_bits<K: Key>(masked: Prefix<K>) -> Self {
        Self::HostBits { addr: masked.addr.to_bits(), len: masked.len, family: K::FAMILY }
    }
}

impl PrefixError {
    fn at(kind: PrefixErrorKind, offset: usize) -> Self {
        Self { kind, offset: Some(offset) }
    }

    /// Returns the position of the fault, in bytes from the start of the text; `None` if the prefix was not text.
    #[must_use]
    pub fn offset(&self) -> Option<usize> {
        self.offset
    }

    /// Returns what is wrong, without the position.
    #[must_use]
    pub fn reason(&self) -> impl fmt::Display + use<> {
        self.kind
    }

    /// Returns whether the only fault was bits set after the prefix length, which [`HostBits::Mask`] accepts.
    #[must_use]
    pub fn is_host_bits(&self) -> bool {
        matches!(self.kind, PrefixErrorKind::HostBits { .. })
    }
}

impl fmt::Display for PrefixErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Address(error) => write!(f, "not an IP address: {}", error.reason()),
            Self::NoLength => f.write_str("no prefix length after '/'"),
            Self::NotADigit(byte) => write!(f, "unexpected '{}' in the prefix length", byte.escape_ascii()),
            Self::TooLong { len: u32::MAX, limit, .. } => {
                write!(f, "prefix length out of range (maximum {limit})")
            }
            Self::TooLong { len, limit, family } => {
                write!(f, "prefix length {len} is above the {limit} bits of {family}")
            }
            Self::HostBits { addr, len, family } => {
                write!(f, "host bits set after /{len}")?;
                match family {
                    Family::Ipv4 => write!(f, "; did you mean {}/{len}?", u32::from_bits(addr).address()),
                    Family::Ipv6 => write!(f, "; did you mean {}/{len}?", addr.address()),
                }
            }
        }
    }
}

impl fmt::Display for PrefixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            Some(offset) => write!(f, "{} (at byte {offset})", self.kind),
            None => self.kind.fmt(f),
        }
    }
}

impl core::error::Error for PrefixError {}

#[cfg(test)]
mod tests {
    use super::super::key::Toy;
    use super::*;

    type V4 = Prefix<u32>;

    #[test]
    fn parsing_says_what_is_wrong_and_where() {
        let error = |text: &str| text.parse::<V4>().unwrap_err().to_string();
        assert_eq!(error("10.0.0.0/33"), "prefix length 33 is above the 32 bits of IPv4 (at byte 9)");
        assert_eq!(error("10.0.0.0/"), "no prefix length after '/' (at byte 9)");
        assert_eq!(error("10.0.0.0/8x"), "unexpected 'x' in the prefix length (at byte 10)");
        assert_eq!(error("10.0.0.1/8"), "host bits set after /8; did you mean 10.0.0.0/8? (at byte 8)");
        let v6 = "2001:db8::1/32".parse::<Prefix<u128>>().unwrap_err();
        assert_eq!(v6.to_string(), "host bits set after /32; did you mean 2001:db8::/32? (at byte 11)");
        assert_eq!(
            V4::new(1, 24).unwrap_err().to_string(),
            "host bits set after /24; did you mean 0.0.0.0/24?"
        );
        assert_eq!(error("10.0.0/8"), "not an IP address: too short (at byte 6)");
        assert_eq!(error("10.0.0.0/4294967297"), "prefix length out of range (maximum 32) (at byte 9)");
    }

    #[test]
    fn host_bits_are_refused_or_masked() {
        assert!("10.0.0.1/8".parse::<V4>().unwrap_err().is_host_bits());
        let masked = V4::parse(b"10.0.0.1/8", HostBits::Mask).unwrap();
        assert_eq!(masked.to_string(), "10.0.0.0/8");
        assert!(V4::new(0x0a00_0001, 8).unwrap_err().is_host_bits());
        assert_eq!(V4::masked(0x0a00_0001, 8), Ok(masked));
        assert!(V4::masked(0, 33).is_err());
        assert_eq!("192.0.2.1".parse::<V4>().unwrap().len(), 32);
    }

    #[test]
    fn relations_agree_with_sets_of_addresses() {
        type T = Toy<3>;
        let all: Vec<Prefix<T>> = (0..=3)
            .flat_map(|len| (0..1u128 << len).map(move |i| Prefix::of(T::from_bits(i << (3 - len)), len)))
            .collect();
        assert_eq!(all.len(), 15);
        let set =
            |prefix: Prefix<T>| (0..8).filter(|&a| prefix.contains(T::from_bits(a))).collect::<Vec<_>>();
        for &a in &all {
            assert_eq!(set(a).first(), Some(&a.addr().to_bits()));
            assert_eq!(set(a).last(), Some(&a.last().to_bits()));
            assert_eq!(a.halves().is_none(), a.len() == 3, "{a}");
            if let Some((low, high)) = a.halves() {
                assert_eq!([set(low), set(high)].concat(), set(a));
            }
            for &b in &all {
                let (a_set, b_set) = (set(a), set(b));
                assert_eq!(a.covers(b), b_set.iter().all(|x| a_set.contains(x)), "{a} {b}");
                assert_eq!(a.overlaps(b), b_set.iter().any(|x| a_set.contains(x)), "{a} {b}");
                if a.covers(b) {
                    assert!(a <= b);
                }
            }
        }
    }
}
