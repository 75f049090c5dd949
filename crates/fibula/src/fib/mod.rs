//! Engines: a table compiled into a form that answers fast.
//!
//! - [`build`] builds the engine that is fastest for a table, [`registry`] any other by name.
//! - [`Fib`] is what every engine can do: single lookups and batches. [`WithLength`] also returns the length of the
//!   matched prefix.
//! - [`DualFib`] is an engine for each family, which takes an [`IpAddr`](std::net::IpAddr).
//! - [`ranges`] turns a table into disjoint ranges of addresses.
//!
//! [`engines`](crate::engines) has a chapter on every engine.

mod contract;
mod dual;
pub(crate) mod in_place;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod in_place_tests;
mod matches;
pub(crate) mod parts;
pub mod registry;
pub(crate) mod sections;

pub use crate::check::CheckError;
#[doc(hidden)]
pub use contract::{Applied, Updatable};
pub use contract::{BuildError, Fib, Match, WithLength};
pub use dual::DualFib;
#[doc(hidden)]
pub use parts::ranges;
pub(crate) use parts::units;
#[doc(hidden)]
pub use sections::{Elements, Sections};

#[doc(hidden)]
pub use crate::engines::engines;

use crate::auto::{self, Workload};
use crate::memory::Limits;
use crate::net::{Key, Routes};

/// Builds the engine that [`auto`] chooses for these routes, with default [`Limits`].
///
/// `routes` is a [`Rib`](crate::rib::Rib), a [`RouteSlice`](crate::net::RouteSlice) or anything else with ordered
/// routes. For lookups other than in batches of 256, or for less memory, use [`auto::build`]; for an engine of your
/// choice, [`Engine::build`](registry::Engine::build).
///
/// # Errors
/// When memory runs out.
pub fn build<K: Key>(routes: &dyn Routes<K>) -> Result<Box<dyn Fib<K>>, BuildError> {
    auto::build(routes, Workload::default(), Limits::default())
}
