//! Tables that change while other threads look addresses up.
//!
//! A [`Table`] holds the routes of both families and a structure for each. One thread at a time changes it; any number of
//! threads look up, each with a [`Reader`], and never wait.
//!
//! ```text
//! Table ── mutex ── writer: RIB, editor of each engine, retired units
//!   │
//!   └── root ──> IPv4: entries ──> units      a change writes new units next to the old ones and publishes them by
//!           └──> IPv6: entries ──> units      storing the entries that lead to them, a word each
//! Reader ── slot: the epoch of its pin; a unit is free again when no pin is as old as its replacement
//! ```
//!
//! - `epoch/`: which units readers may still be in. `root.rs`: the pointer that readers start from.
//! - `family.rs`: routes and engine of a family. `writer.rs`: the order in which a change is made: the routes with a log,
//!   the units, and space in the list of retired units. All of these can be undone. Then come the stores, which cannot fail.
//! - `changed.rs`: the changed prefixes in order, and the only route of each, where the routes tell.
//! - Engines that change in place do so through `fib::in_place`. The others are rebuilt from the routes and swapped;
//!   `growth.rs` does that in the background if the options say so.
//! - `listener.rs`: reports of the words that are stored, for copies elsewhere.
//! - `slots.rs`, `segments.rs`, `uses.rs`, `held.rs`: values and next hops, which belong to a table and are read under its pins.

pub(crate) mod books;
mod changed;
pub(crate) mod epoch;
#[cfg(test)]
mod epoch_tests;
pub(crate) mod family;
mod fit;
mod growth;
mod held;
mod listener;
#[cfg(test)]
mod listener_tests;
mod options;
mod reader;
pub(crate) mod root;
mod segments;
mod serving;
mod shared;
mod slots;
mod sync;
mod table;
#[cfg(test)]
mod tests;
mod uses;
mod writer;

#[doc(hidden)]
pub use crate::fib::in_place::Rooms;
pub(crate) use epoch::{Domain, RetireList};
pub(crate) use held::{Hold, TableGuard};
#[doc(hidden)]
pub use listener::{Listener, Stored, Structure};
pub use options::{Options, Outcome, TableError};
#[doc(hidden)]
pub use reader::Readable;
pub(crate) use reader::sealed as readable;
pub use reader::{Pinned, Reader};
pub(crate) use segments::{SHIFT, Segments};
pub(crate) use shared::Shared;
pub(crate) use slots::{ValueSlots, ValueStore};
#[doc(hidden)]
pub use table::TableRoutes;
pub use table::{Maintenance, Statistics, Table, TableKey};
pub(crate) use table::{rib_of, split};
pub(crate) use uses::Uses;
