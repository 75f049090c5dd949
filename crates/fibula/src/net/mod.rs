//! Addresses, prefixes, next hops, routes, changes and batches: the types that everything else uses.

mod batch;
mod convert;
mod dual;
mod key;
mod prefix;
mod range;
mod route;
mod routes;
#[cfg(feature = "serde")]
mod serde;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use batch::BatchLookup;
pub use batch::{Batch, BatchError, Keys, Strided};
pub use convert::{IntoIpAddr, IntoIpPrefix, IpPrefix};
#[doc(hidden)]
pub use convert::{IntoKey, IntoPrefix, parse_address};
pub use dual::Dual;
#[doc(hidden)]
pub use key::{Address, ForIpv4, ForIpv6, Ipv4Key, Ipv6Key, KeyKind, Toy};
pub use key::{Family, Key};
pub use prefix::{HostBits, Prefix, PrefixError};
#[doc(hidden)]
pub use range::PrefixesOf;
pub use range::prefixes_of;
pub use route::{Change, NextHop, Route};
pub use routes::Routes;
#[doc(hidden)]
pub use routes::{OrderError, RouteSlice};
pub use text::AddressError;
