//! Conversions from and to the types that programs already have: those of `std::net` and `ipnet`.
//!
//! An IPv4 address is never turned into an IPv4-mapped IPv6 one or back: `::ffff:192.0.2.1` is an IPv6
//! address like any other and is looked up among IPv6 routes.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

use super::key::{Family, Key};
use super::prefix::{HostBits, Prefix, PrefixError};

/// What a lookup takes: a key, or an address of the standard library.
///
/// For IPv4 these are `u32` and [`Ipv4Addr`], for IPv6 `u128` and [`Ipv6Addr`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an address of the family whose keys are `{K}`",
    label = "expected `{K}` or its address type",
    note = "text is parsed first: `\"192.0.2.1\".parse::<std::net::Ipv4Addr>()?`, or `Ipv6Addr`",
    note = "an `IpAddr` may be of the other family: match on it first"
)]
pub trait IntoKey<K> {
    /// Returns the address as a key.
    fn into_key(self) -> K;
}

impl<K: Key> IntoKey<K> for K {
    #[inline]
    fn into_key(self) -> K {
        self
    }
}

/// A value that tables and maps of both families take as a prefix.
///
/// Everything that converts into an [`IpPrefix`] implements it: prefixes of one family, the types of `ipnet`, and addresses, which
/// mean the prefix of that address alone. Text does not, because it may be wrong; parse it first:
///
/// ```
/// use fibula::map::IpPrefixMap;
/// use fibula::net::IpPrefix;
///
/// let mut map = IpPrefixMap::new();
/// map.insert("10.0.0.0/8".parse::<IpPrefix>()?, "private");
/// # Ok::<(), fibula::net::PrefixError>(())
/// ```
///
/// ```compile_fail,E0277
/// # use fibula::map::IpPrefixMap;
/// # let mut map = IpPrefixMap::new();
/// map.insert("10.0.0.0/8", "private");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a prefix",
    label = "expected a prefix of either family",
    note = "text is parsed first: `\"10.0.0.0/8\".parse::<fibula::net::IpPrefix>()?`",
    note = "a reference is copied first: `*prefix`"
)]
pub trait IntoIpPrefix {
    /// Returns the prefix.
    fn into_ip_prefix(self) -> IpPrefix;
}

// Without the attribute the compiler reports the missing `From` instead of the message above.
#[diagnostic::do_not_recommend]
impl<T: Into<IpPrefix>> IntoIpPrefix for T {
    #[inline]
    fn into_ip_prefix(self) -> IpPrefix {
        self.into()
    }
}

/// A value that maps and sets of one family take as a prefix: anything that converts into a [`Prefix`] of the family.
///
/// Text does not, because it may be wrong; parse it first:
///
/// ```
/// use fibula::map::PrefixMap;
/// use fibula::net::Prefix;
///
/// let mut map = PrefixMap::new();
/// map.insert("10.0.0.0/8".parse::<Prefix<u32>>()?, "private");
/// # Ok::<(), fibula::net::PrefixError>(())
/// ```
///
/// ```compile_fail,E0277
/// # let mut map = fibula::map::PrefixMap::<u32, _>::new();
/// map.insert("10.0.0.0/8", "private");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a prefix of the family whose keys are `{K}`",
    label = "expected a prefix of the family of `{K}`",
    note = "text is parsed first: `\"10.0.0.0/8\".parse::<fibula::net::Prefix<{K}>>()?`",
    note = "a reference is copied first: `*prefix`",
    note = "an `IpPrefix` may be of the other family: match on it first"
)]
pub trait IntoPrefix<K> {
    /// Returns the prefix.
    fn into_prefix(self) -> Prefix<K>;
}

#[diagnostic::do_not_recommend]
impl<K, T: Into<Prefix<K>>> IntoPrefix<K> for T {
    #[inline]
    fn into_prefix(self) -> Prefix<K> {
        self.into()
    }
}

/// A value that lookups in tables and maps of both families take as an address: an address of the standard library, its bytes in
/// network order, or an integer in host order, `u32` for IPv4 and `u128` for IPv6.
///
/// Text is not one, because it may be wrong; parse it first:
///
/// ```
/// use std::net::{IpAddr, Ipv4Addr};
///
/// # let map = fibula::map::IpPrefixMap::<()>::new();
/// map.lookup("192.0.2.1".parse::<IpAddr>()?);
/// map.lookup(Ipv4Addr::new(192, 0, 2, 1));
/// map.lookup([192, 0, 2, 1]);
/// map.lookup(0xc000_0201_u32);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
///
/// ```compile_fail,E0277
/// # let map = fibula::map::IpPrefixMap::<()>::new();
/// map.lookup("192.0.2.1");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an IP address",
    label = "expected an address of either family",
    note = "text is parsed first: `\"192.0.2.1\".parse::<std::net::IpAddr>()?`",
    note = "an integer is a `u32` for IPv4 and a `u128` for IPv6: `0xc000_0201_u32`"
)]
pub trait IntoIpAddr: Sized {
    /// Returns the address.
    fn into_ip_addr(self) -> IpAddr;

    /// Calls `v4` or `v6` with the address as an integer in host order.
    #[doc(hidden)]
    #[inline]
    fn by_family<R>(self, v4: impl FnOnce(u32) -> R, v6: impl FnOnce(u128) -> R) -> R {
        match self.into_ip_addr() {
            IpAddr::V4(address) => v4(address.to_bits()),
            IpAddr::V6(address) => v6(address.to_bits()),
        }
    }
}

macro_rules! addresses {
    ($($address:ty)*) => {$(
        impl IntoIpAddr for $address {
            #[inline]
            fn into_ip_addr(self) -> IpAddr {
                self.into()
            }
        }
    )*};
}
addresses!(IpAddr Ipv4Addr Ipv6Addr [u8; 4] [u8; 16]);

impl IntoIpAddr for u32 {
    fn into_ip_addr(self) -> IpAddr {
        Ipv4Addr::from_bits(self).into()
    }

    #[inline]
    fn by_family<R>(self, v4: impl FnOnce(Self) -> R, _: impl FnOnce(u128) -> R) -> R {
        v4(self)
    }
}

impl IntoIpAddr for u128 {
    fn into_ip_addr(self) -> IpAddr {
        Ipv6Addr::from_bits(self).into()
    }

    #[inline]
    fn by_family<R>(self, _: impl FnOnce(u32) -> R, v6: impl FnOnce(Self) -> R) -> R {
        v6(self)
    }
}

/// A prefix of either family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IpPrefix {
    /// An IPv4 prefix.
    V4(Prefix<u32>),
    /// An IPv6 prefix.
    V6(Prefix<u128>),
}

impl IpPrefix {
    /// Reads a prefix of the family that its address is written in: a colon makes it IPv6.
    ///
    /// # Errors
    /// What is wrong, and at which byte.
    pub fn parse(text: &[u8], host_bits: HostBits) -> Result<Self, PrefixError> {
        if text.contains(&b':') {
            Prefix::parse(text, host_bits).map(Self::V6)
        } else {
            Prefix::parse(text, host_bits).map(Self::V4)
        }
    }

    /// Returns the prefix length.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a prefix length, not a number of elements")]
    pub fn len(self) -> u8 {
        match self {
            Self::V4(prefix) => prefix.len(),
            Self::V6(prefix) => prefix.len(),
        }
    }

    /// Returns whether `address` is in the block; never if the families differ.
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        match (self, address) {
            (Self::V4(prefix), IpAddr::V4(address)) => prefix.contains(address.to_bits()),
            (Self::V6(prefix), IpAddr::V6(address)) => prefix.contains(address.to_bits()),
            _ => false,
        }
    }

    /// Returns the family.
    #[must_use]
    pub fn family(self) -> Family {
        match self {
            Self::V4(_) => Family::Ipv4,
            Self::V6(_) => Family::Ipv6,
        }
    }
}

impl fmt::Display for IpPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(prefix) => prefix.fmt(f),
            Self::V6(prefix) => prefix.fmt(f),
        }
    }
}

impl FromStr for IpPrefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        Self::parse(text.as_bytes(), HostBits::Refuse)
    }
}

/// Reads an address of either family from bytes; a colon makes it IPv6.
///
/// # Errors
/// What is wrong, and at which byte.
pub fn parse_address(text: &[u8]) -> Result<IpAddr, super::AddressError> {
    if text.contains(&b':') {
        u128::parse(text).map(|key| Ipv6Addr::from_bits(key).into())
    } else {
        u32::parse(text).map(|key| Ipv4Addr::from_bits(key).into())
    }
}

macro_rules! conversions {
    ($int:ty, $address:ty, $net:ty) => {
        impl IntoKey<$int> for $address {
            #[inline]
            fn into_key(self) -> $int {
                self.to_bits()
            }
        }

        /// Refuses host bits, as [`Prefix::new`].
        impl TryFrom<($address, u8)> for Prefix<$int> {
            type Error = PrefixError;

            fn try_from((address, len): ($address, u8)) -> Result<Self, PrefixError> {
                Self::new(address.to_bits(), len)
            }
        }

        /// The prefix of this address alone.
        impl From<$address> for Prefix<$int> {
            fn from(address: $address) -> Self {
                Self::host(address.to_bits())
            }
        }

        /// Clears host bits, which `ipnet` keeps.
        impl From<$net> for Prefix<$int> {
            fn from(net: $net) -> Self {
                Self::of(net.network().to_bits(), net.prefix_len())
            }
        }

        impl From<Prefix<$int>> for $net {
            fn from(prefix: Prefix<$int>) -> Self {
                Self::new_assert(<$address>::from_bits(prefix.addr()), prefix.len())
            }
        }

        impl Prefix<$int> {
            /// Returns the first address of the block as the standard library's type.
            #[must_use]
            pub fn network(self) -> $address {
                <$address>::from_bits(self.addr())
            }
        }
    };
}

conversions!(u32, Ipv4Addr, ipnet::Ipv4Net);
conversions!(u128, Ipv6Addr, ipnet::Ipv6Net);

macro_rules! families {
    ($int:ty, $variant:ident, $address:ty, $net:ty) => {
        impl From<Prefix<$int>> for IpPrefix {
            fn from(prefix: Prefix<$int>) -> Self {
                Self::$variant(prefix)
            }
        }

        /// The prefix of this address alone.
        impl From<$address> for IpPrefix {
            fn from(address: $address) -> Self {
                Self::$variant(address.into())
            }
        }

        /// Clears host bits, which `ipnet` keeps.
        impl From<$net> for IpPrefix {
            fn from(net: $net) -> Self {
                Self::$variant(net.into())
            }
        }

        /// Returns the prefix as the error if it is of the other family.
        impl TryFrom<IpPrefix> for Prefix<$int> {
            type Error = IpPrefix;

            fn try_from(prefix: IpPrefix) -> Result<Self, IpPrefix> {
                match prefix {
                    IpPrefix::$variant(prefix) => Ok(prefix),
                    other => Err(other),
                }
            }
        }
    };
}

families!(u32, V4, Ipv4Addr, ipnet::Ipv4Net);
families!(u128, V6, Ipv6Addr, ipnet::Ipv6Net);

/// Refuses host bits, as [`Prefix::new`].
impl TryFrom<(IpAddr, u8)> for IpPrefix {
    type Error = PrefixError;

    fn try_from((address, len): (IpAddr, u8)) -> Result<Self, PrefixError> {
        match address {
            IpAddr::V4(address) => Prefix::try_from((address, len)).map(Self::V4),
            IpAddr::V6(address) => Prefix::try_from((address, len)).map(Self::V6),
        }
    }
}

impl From<IpAddr> for IpPrefix {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::V4(address.into()),
            IpAddr::V6(address) => Self::V6(address.into()),
        }
    }
}

/// Clears host bits, which `ipnet` keeps.
impl From<ipnet::IpNet> for IpPrefix {
    fn from(net: ipnet::IpNet) -> Self {
        match net {
            ipnet::IpNet::V4(net) => Self::V4(net.into()),
            ipnet::IpNet::V6(net) => Self::V6(net.into()),
        }
    }
}

impl From<IpPrefix> for ipnet::IpNet {
    fn from(prefix: IpPrefix) -> Self {
        match prefix {
            IpPrefix::V4(prefix) => Self::V4(prefix.into()),
            IpPrefix::V6(prefix) => Self::V6(prefix.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipnet_and_std_round_trip() {
        for text in ["0.0.0.0/0", "192.0.2.0/24", "255.255.255.255/32", "::/0", "2001:db8::/32", "::1/128"] {
            let prefix: IpPrefix = text.parse().unwrap();
            let net = ipnet::IpNet::from(prefix);
            assert_eq!(net.to_string(), text);
            assert_eq!(IpPrefix::from(net), prefix);
            assert_eq!(prefix.to_string(), text);
        }
        let loose: ipnet::IpNet = "10.1.2.3/8".parse().unwrap();
        assert_eq!(IpPrefix::from(loose).to_string(), "10.0.0.0/8");
        let address: IpAddr = "2001:db8::1".parse().unwrap();
        let host = IpPrefix::from(address);
        assert_eq!(host.to_string(), "2001:db8::1/128");
        assert!(host.contains(address) && !host.contains("192.0.2.1".parse().unwrap()));
        assert_eq!(host.len(), 128);
        assert_eq!(Prefix::<u128>::try_from(host).map(IpPrefix::from), Ok(host));
        assert_eq!(Prefix::<u32>::try_from(host), Err(host));
    }

    #[test]
    fn addresses_with_a_length_are_prefixes_without_host_bits() {
        let address = Ipv4Addr::new(192, 0, 2, 0);
        assert_eq!(Prefix::try_from((address, 24)).unwrap().to_string(), "192.0.2.0/24");
        assert!(Prefix::try_from((address, 16)).is_err() && Prefix::try_from((address, 33)).is_err());
        let address: IpAddr = "2001:db8::".parse().unwrap();
        assert_eq!(IpPrefix::try_from((address, 32)).unwrap().to_string(), "2001:db8::/32");
        assert!(IpPrefix::try_from((address, 16)).is_err() && IpPrefix::try_from((address, 129)).is_err());
    }

    #[test]
    fn keys_come_from_addresses_and_integers() {
        fn key<K: Key>(address: impl IntoKey<K>) -> K {
            address.into_key()
        }
        assert_eq!(key::<u32>(0xc000_0201), key(Ipv4Addr::new(192, 0, 2, 1)));
        assert_eq!(key::<u128>(1), key(Ipv6Addr::LOCALHOST));
    }

    #[test]
    fn mapped_addresses_stay_what_they_are() {
        assert_eq!(IpPrefix::from_str("::ffff:192.0.2.0/120").unwrap().family(), Family::Ipv6);
        assert!(parse_address(b"::ffff:192.0.2.1").unwrap().is_ipv6());
        assert!(parse_address(b"192.0.2.1").unwrap().is_ipv4());
    }
}
