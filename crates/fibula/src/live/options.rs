//! Options of a table, outcomes of changes, and errors.

use core::any::Any;
use core::fmt;
use core::time::Duration;

use crate::engines::{Dir17Bitmap, DirBtree, EngineType};
use crate::fib::BuildError;
use crate::fib::registry::Engine;
use crate::memory::{Limits, OutOfMemory};
use crate::net::{Family, Key};
use crate::rib::RibError;
use crate::vrf::Vrf;

use super::epoch::Stalled;

/// How a [`Table`](super::Table) is built. Name only the fields that differ: `Options { limits, ..Options::default() }`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The engine for IPv4: one of [`engines`](crate::engines), or [found by name](crate::fib::registry::find). Default:
    /// `dir-17-bitmap`, which changes in place.
    pub ipv4: Engine<u32>,
    /// The engine for IPv6. Default: `dir-btree`.
    pub ipv6: Engine<u128>,
    /// Limits on the routes and on the engine of each family, each by itself. Default: none.
    pub limits: Limits,
    /// Most bytes of units that were replaced and that readers may still see. Default: 64 MiB.
    pub retired_bytes: usize,
    /// How long a change waits at that limit for readers to move on, before it is refused; zero refuses at once.
    /// Default: 1 second.
    pub patience: Duration,
    /// How long changes wait for others, to be published together. Changes are published by the first call of
    /// [`apply`](super::Table::apply) or [`maintain`](super::Table::maintain) after that time, at 65,536 waiting prefixes, or
    /// by [`flush`](super::Table::flush). Default: zero, which publishes each call's changes before it returns.
    pub coalesce: Duration,
    /// Whether engines are rebuilt in a thread of their own, from a copy of the routes, which counts towards no limit.
    /// Meanwhile the old engine serves, and takes the changes that can be made in place. The others wait until a call of
    /// [`apply`](super::Table::apply) or [`maintain`](super::Table::maintain) finds the new engine finished. If the build
    /// fails, that call returns the error, and the next one tries again. An engine whose memory per route has grown by a
    /// sixth since its last build is rebuilt in the same way. Default: `false`: a call whose changes need a new engine
    /// builds it, and only [`maintain`](super::Table::maintain) rebuilds large engines.
    pub background: bool,
    /// Whether engines are built from fewer routes with the same answers ([`aggregate`](crate::aggregate)). The table keeps
    /// these in addition to its routes, and updates both. This is worth its time and memory if an engine grows with the number
    /// of routes. Engines made of ranges do not (`docs/aggregation.md`). [`maintain`](super::Table::maintain)
    /// makes the fewer routes minimal again when changes have made them an eighth more. Default: `false`.
    pub aggregate: bool,
}

impl Options {
    /// Returns the options of a table with these engines, and no other.
    ///
    /// ```
    /// use fibula::Table;
    /// use fibula::engines::{Dir18Lines, DirBtree};
    /// use fibula::live::Options;
    ///
    /// let options = Options { background: true, ..Options::of::<Dir18Lines, DirBtree>() };
    /// let table = Table::from_routes(Default::default(), options)?;
    /// # Ok::<(), fibula::live::TableError>(())
    /// ```
    #[must_use]
    pub fn of<V4: EngineType<u32>, V6: EngineType<u128>>() -> Self {
        Self {
            ipv4: V4::engine(),
            ipv6: V6::engine(),
            limits: Limits::default(),
            retired_bytes: 64 << 20,
            patience: Duration::from_secs(1),
            coalesce: Duration::ZERO,
            background: false,
            aggregate: false,
        }
    }
}

impl Options {
    /// Returns these options with this engine for its family; for a family that tables do not have, unchanged.
    #[must_use]
    pub fn with_engine<K: Key>(mut self, engine: Engine<K>) -> Self {
        // Only a downcast finds the field here, because `K` may be either key.
        let engine: &dyn Any = &engine;
        if let Some(&ipv4) = engine.downcast_ref() {
            self.ipv4 = ipv4;
        }
        if let Some(&ipv6) = engine.downcast_ref() {
            self.ipv6 = ipv6;
        }
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::of::<Dir17Bitmap, DirBtree>()
    }
}

/// The result of a call that makes changes, or the totals of all calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Changes that changed a route: added it, removed it or replaced its next hop.
    pub changed: usize,
    /// Inserts of routes that were there with this next hop.
    pub unchanged: usize,
    /// Removals of prefixes that were not there.
    pub absent: usize,
    /// Engines that were rebuilt, because they cannot change in place or had grown by changes.
    pub rebuilt: usize,
    /// Changed prefixes that lookups do not see yet: see [`Options::coalesce`] and [`Options::background`].
    pub waiting: usize,
    /// The version of the table from which on lookups see the changes, but for those that wait: see
    /// [`Pinned::version`](super::Pinned::version).
    pub version: u64,
    /// Bytes that were replaced, by these changes and earlier ones, and that readers may still see.
    pub retired_bytes: usize,
}

/// Why a table could not be made, or a change not be applied: of a [`Table`](super::Table), of [`Vrfs`](crate::Vrfs), or of a
/// [`SharedPrefixMap`](crate::map::SharedPrefixMap). The table is as it was before.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TableError {
    /// Memory for the routes ran out.
    Routes(RibError),
    /// The engine refuses the routes, or memory for it ran out.
    Structure(BuildError),
    /// Memory for the bookkeeping of readers and of retired units ran out.
    Memory(OutOfMemory),
    /// A reader has been pinned for so long that the memory replaced since then has reached the limit.
    Stalled {
        /// The number of the reader: [`Reader::number`](super::Reader::number).
        reader: usize,
        /// Changes since it was pinned.
        versions: u64,
        /// Bytes that were replaced and are not free.
        retired_bytes: usize,
    },
    /// The listener has no room for the words of an engine: see [`Table::listen_within`](super::Table::listen_within).
    Room {
        /// The family.
        family: Family,
        /// The engine.
        engine: &'static str,
        /// The number of the array.
        array: u8,
        /// The words that it has, or needs at least.
        words: usize,
        /// The words that the listener has room for.
        room: usize,
    },
    /// There is no such VRF.
    UnknownVrf(Vrf),
    /// There are as many VRFs as the options allow, or readers may still hold the numbers of dropped ones.
    NoVrfLeft {
        /// Most VRFs: [`vrf::Options::vrfs`](crate::vrf::Options::vrfs).
        vrfs: u32,
    },
    /// A thread panicked while it changed the table. Lookups still see the last published state, but the table cannot be
    /// changed any more.
    Poisoned,
}

impl TableError {
    pub(crate) fn stalled(stalled: Stalled, retired_bytes: usize) -> Self {
        Self::Stalled { reader: stalled.reader, versions: stalled.epochs, retired_bytes }
    }
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Routes(error) => error.fmt(f),
            Self::Structure(error) => error.fmt(f),
            Self::Memory(error) => error.fmt(f),
            Self::Stalled { reader, versions, retired_bytes } => write!(
                f,
                "reader {reader} has been pinned for {versions} changes: {retired_bytes} bytes that they replaced cannot \
                 be freed; end its pin or refresh it, or raise the limit on retired bytes"
            ),
            Self::Room { family, engine, array, words, room } => write!(
                f,
                "array {array} of {engine} ({family}) needs {words} words, and the copy that follows the table has room for \
                 {room}: make the copy again with more room"
            ),
            Self::UnknownVrf(vrf) => write!(f, "there is no VRF {vrf}"),
            Self::NoVrfLeft { vrfs } => write!(
                f,
                "all {vrfs} numbers of VRFs are in use: drop a VRF, or raise the limit when VRFs are made"
            ),
            Self::Poisoned => f.write_str(
                "a thread panicked while it changed this table: lookups go on, changes need a new table",
            ),
        }
    }
}

impl core::error::Error for TableError {}

impl From<RibError> for TableError {
    fn from(error: RibError) -> Self {
        Self::Routes(error)
    }
}

impl From<BuildError> for TableError {
    fn from(error: BuildError) -> Self {
        Self::Structure(error)
    }
}

impl From<OutOfMemory> for TableError {
    fn from(error: OutOfMemory) -> Self {
        Self::Memory(error)
    }
}
