//! What BGP-4 speakers tell each other (RFC 4271), as collectors record it. Does no I/O.
//!
//! - [`Attributes`]: the path attributes of a route, by a library.
//! - `nlri`: prefixes as BGP writes them, ours: the library guesses where it meets a prefix of length 0.
//! - `update`: the UPDATE message.

mod attributes;
mod nlri;
mod update;

pub use attributes::{AsWidth, Attributes};
pub(crate) use attributes::{family, next_hop};
pub(crate) use nlri::prefix;
pub(crate) use update::{Session, message};
