//! BGP-4 messages (RFC 4271), as collectors record them. Does no I/O.
//!
//! - [`Attributes`]: the path attributes of a route, decoded by `bgpkit-parser`.
//! - `nlri`: prefixes as BGP writes them; decoded here, because the library may misread a prefix of length 0.
//! - `update`: the UPDATE message.

mod attributes;
mod nlri;
#[cfg(test)]
mod tests;
mod update;

pub use attributes::{AsWidth, Attributes};
pub(crate) use attributes::{family, next_hop};
pub(crate) use nlri::prefix;
pub(crate) use update::{HEADER_BYTES, PeerSession, end_of_rib, message, update};
