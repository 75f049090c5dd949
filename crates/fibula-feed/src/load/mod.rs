//! Whole files to a table.

mod blocks;
mod choice;
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
mod pass;
mod peek;
#[cfg(test)]
mod peers_tests;
#[cfg(test)]
mod real_tests;
mod report;
mod routes;
#[cfg(test)]
mod short;
#[cfg(test)]
mod skipped_tests;
mod source;
#[cfg(test)]
mod tests;

use fibula::memory::Limits;
use fibula::net::{Family, HostBits};
use fibula::rib::DualRib;

use crate::next_hops::NextHops;
use loader::Each;

pub use choice::{PeerCounts, PeerName, PeerNameError, Selection};
pub use error::LoadError;
pub use lines::MAX_LINE_BYTES;
pub use loader::Loader;
pub use report::{BadLine, Content, Report, Truncation};
#[cfg(test)]
pub(crate) use short::*;
pub use source::Source;

/// Most bytes of a file, decompressed, without a route or a record. What is longer is refused: a device, endless
/// comments.
pub const MAX_UNSETTLED_BYTES: u64 = 16 << 20;

/// What a load takes at most beside [`LoadOptions::limits`], for each thread that it may use, and for one where it starts
/// none: buffers, and what is decoded of a few records.
pub const THREAD_BYTES: usize = 16 << 20;

/// How to load.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct LoadOptions {
    /// Stop at the first bad line or record, or where the file ends early or is damaged, instead of counting it and
    /// loading the rest.
    pub strict: bool,
    /// What to do with bits set after a prefix length in text. Refusing them makes the line a bad one. In MRT they are
    /// cleared and counted, as RFC 4271 calls them irrelevant.
    pub host_bits: HostBits,
    /// What the load may take: the tables of both families, the labels of the next hops, the counts of the peers, what is
    /// kept of routes and of a stream meanwhile, and what a compressed stream needs to be decompressed. [`THREAD_BYTES`]
    /// come on top for each thread.
    pub limits: Limits,
    /// Keep this family only.
    pub family: Option<Family>,
    /// Whose routes to take where there are several peers.
    pub selection: Selection,
    /// How many threads may work on MRT files; 0 and 1 start none. The table is the same.
    pub threads: usize,
}

/// How far loading has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Bytes read of the file, compressed.
    pub bytes_read: u64,
    /// Bytes of the file, compressed; none where that cannot be known (a pipe).
    pub bytes_total: Option<u64>,
    /// Lines or records read.
    pub lines: u64,
    /// Whether this is the reading that only counts the peers' routes.
    pub counting: bool,
}

/// What the feeds held.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Table {
    /// The routes.
    pub ribs: DualRib,
    /// What the next hops of both stand for.
    pub next_hops: NextHops,
    /// What was met on the way, a report a feed.
    pub reports: Vec<Report>,
}

impl Table {
    /// The report of the first feed, which mostly is the only one.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.reports[0]
    }
}
