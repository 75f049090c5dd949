//! Loads whole files into a table.

mod blocks;
mod choice;
mod compiled;
#[cfg(test)]
mod compiled_tests;
mod documents;
mod error;
mod framer;
#[cfg(test)]
mod hostile_tests;
mod input;
mod lines;
mod live;
mod loader;
#[cfg(test)]
mod loader_tests;
mod maxmind;
#[cfg(test)]
mod maxmind_tests;
mod pass;
mod peek;
#[cfg(test)]
mod peers_tests;
#[cfg(test)]
mod real_tests;
mod record_text;
mod replay;
mod report;
mod routes;
#[cfg(test)]
mod short;
#[cfg(test)]
mod skipped_tests;
mod source;
#[cfg(test)]
mod tests;

use fibula::file::ColumnType;
use fibula::memory::Limits;
use fibula::net::{Family, HostBits};
use fibula::rib::DualRib;

use crate::document::{Columns, TableForm};
use crate::filter::Filter;
use crate::next_hops::NextHops;
use crate::value::Value;
use loader::Each;

pub use choice::{PeerCounts, PeerName, PeerNameError, Selection};
pub use error::LoadError;
pub use lines::MAX_LINE_BYTES;
pub use loader::Loader;
pub use report::{BadLine, Content, Report, Truncation};
#[cfg(test)]
pub(crate) use short::*;
pub use source::Source;

/// Most decompressed bytes of a file that may come before its first route or record. Longer input, for example a device
/// or endless comments, is refused.
pub const MAX_UNSETTLED_BYTES: u64 = 16 << 20;

/// Most bytes that a load takes in addition to [`LoadOptions::limits`], for each thread that it may use (one if it
/// starts none): buffers, and a few decoded records.
pub const THREAD_BYTES: usize = 16 << 20;

/// Options of a load.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct LoadOptions {
    /// Stop at the first bad line or record, or where the file ends early or is damaged, instead of counting it and
    /// loading the rest.
    pub strict: bool,
    /// How to treat bits set after a prefix length in text. Refusing them makes the line a bad one. In MRT they are
    /// cleared and counted, because RFC 4271 calls them irrelevant.
    pub host_bits: HostBits,
    /// Memory limits of the load: for the tables of both families, the labels of the next hops, the counts of the
    /// peers, the routes and the stream that are kept meanwhile, and the window of a compressed stream.
    /// [`THREAD_BYTES`] for each thread come on top.
    pub limits: Limits,
    /// Keep this family only.
    pub family: Option<Family>,
    /// The peers whose routes to take, if there are several.
    pub selection: Selection,
    /// The values that a route of the table leads to, instead of its next hop. With several, the labels are
    /// [`Label::Fields`](crate::Label), one field for each.
    pub values: Vec<Value>,
    /// The types of these values, in order: one that does not fit its type fails the load, with the place of its row. `None`, or no
    /// type, is any.
    pub types: Vec<Option<ColumnType>>,
    /// Take [`Value::OriginAs`] only from a field of its own, because the user has not requested it.
    pub implied_origin: bool,
    /// Which routes to take.
    pub filter: Filter,
    /// The form of text tables; `None` recognises it by the first 64 KiB.
    pub form: Option<&'static TableForm>,
    /// Names or numbers of a table's columns.
    pub columns: Columns,
    /// The VRF, or the table of a router with several, whose routes are taken; the default one if none is named.
    pub vrf: Option<Box<str>>,
    /// Let a compressed stream give more than 2,000 bytes for one of its own after its first 64 MiB.
    pub any_ratio: bool,
    /// Which table counts where several have a prefix.
    pub order: TableOrder,
    /// How many threads may work on MRT files; 0 and 1 start none. The table is the same.
    pub threads: usize,
}

/// Which of several tables counts where they have the same prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TableOrder {
    /// The best path; a table without peers counts before tables with peers, so that own prefixes override a full table.
    #[default]
    BestPath,
    /// The later table.
    LaterWins,
    /// The earlier table.
    FirstWins,
    /// The earlier table for the same prefix. All routes are taken, and the longest prefix answers.
    MoreSpecific,
}

/// How far loading has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Bytes read of the file, compressed.
    pub bytes_read: u64,
    /// Bytes of the file, compressed; `None` if that cannot be known (a pipe).
    pub bytes_total: Option<u64>,
    /// Lines or records read.
    pub lines: u64,
    /// Whether this is the reading that only counts the peers' routes.
    pub counting: bool,
}

/// A loaded table: the routes of the feeds, the labels of their next hops, and the reports.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LoadedRoutes {
    /// The routes.
    pub ribs: DualRib,
    /// The labels of the next hops of both families.
    pub next_hops: NextHops,
    /// The reports, one for each feed.
    pub reports: Vec<Report>,
}

impl LoadedRoutes {
    /// Returns the report of the first feed, which is usually the only one.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.reports[0]
    }
}
