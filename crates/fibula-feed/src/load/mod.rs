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
mod pass;
mod peek;
#[cfg(test)]
mod peers_tests;
#[cfg(test)]
mod real_tests;
mod report;
mod routes;
#[cfg(test)]
mod skipped_tests;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use fibula::memory::Limits;
use fibula::net::{Family, HostBits};
use fibula::rib::DualRib;

use crate::event::Event;
use crate::ledger::{Held, Ledger};
use crate::next_hops::NextHops;
use choice::{Tally, Wanted};
use error::{LoadErrorKind, Place};
use input::Input;
use live::Live;
use pass::Pass;
use routes::Routes;

pub use choice::{PeerCounts, PeerName, PeerNameError, Selection};
pub use error::LoadError;
pub use lines::MAX_LINE_BYTES;
pub use report::{BadLine, Content, Report, Truncation};

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

/// Loads the file at `path`, which may be compressed (see [`compression`](crate::compression)): MRT, or text in any
/// of the forms of [`text::FORMS`](crate::text::FORMS). Which of the two is told by its first bytes.
///
/// `progress` is called about every 256 KiB of decompressed content, and at the end of each reading.
///
/// # Errors
/// When the file cannot be read, its compressed stream is damaged from the beginning on, a table would exceed its limits,
/// or a named peer is not there. With [`LoadOptions::strict`] also at the first bad line or record, and when the file ends
/// early or its compressed stream is damaged.
pub fn load(
    path: impl AsRef<Path>,
    options: &LoadOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Table, LoadError> {
    load_all(&[path], options, progress)
}

/// Loads several files into one table. Where more than one has a prefix, the better path stays: the shortest AS path, a
/// path of unknown length after all others; then the lowest peer address, tables without peers last; then the file
/// that comes first.
///
/// # Errors
/// As those of [`load`].
///
/// # Panics
/// When there are no paths.
pub fn load_all(
    paths: &[impl AsRef<Path>],
    options: &LoadOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Table, LoadError> {
    let mut loader = Loader::new(options);
    for (index, path) in paths.iter().enumerate() {
        let (name, input) = open(path.as_ref(), &loader.ledger)?;
        loader.feed(name, input, paths.len() > index + 1, progress)?;
    }
    loader.finish()
}

/// Loads what `input` gives, as [`load`] does; `name` stands for it in errors and in the report.
///
/// With [`Selection::MostRoutes`] a feed of several peers is read twice: what `input` gives is kept for that, compressed
/// as it is, up to the memory limit, or 2 GiB where there is none.
///
/// # Errors
/// As those of [`load`].
pub fn load_reader(
    name: &str,
    input: impl Read,
    options: &LoadOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Table, LoadError> {
    let mut loader = Loader::new(options);
    let input = Input::stream(input, &loader.ledger);
    loader.feed(name.into(), input, false, progress)?;
    loader.finish()
}

/// Counts what the peers of a file said, without making a table of it.
///
/// # Errors
/// As those of [`load`].
pub fn survey(
    path: impl AsRef<Path>,
    options: &LoadOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, LoadError> {
    let (name, file) = open_file(path.as_ref())?;
    let total = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|metadata| metadata.len());
    Loader::new(options).survey(name, &mut { file }, total, progress)
}

/// Counts what the peers of what `input` gives said, as [`survey`] does.
///
/// # Errors
/// As those of [`load`].
pub fn survey_reader(
    name: &str,
    mut input: impl Read,
    options: &LoadOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, LoadError> {
    Loader::new(options).survey(name.into(), &mut input, None, progress)
}

/// Tells what the feed says, in its order, instead of making a table of it: of the peers that
/// [`LoadOptions::selection`] names, where [`Selection::Best`] means all. Lines of plain tables come as announcements
/// without a peer.
///
/// # Errors
/// As those of [`load`], and what `each` returns: [`LoadError::stopped`].
pub fn events(
    path: impl AsRef<Path>,
    options: &LoadOptions,
    each: &mut (dyn FnMut(Event) -> io::Result<()> + Send),
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, LoadError> {
    let loader = Loader { each: Some(each), ..Loader::new(options) };
    let (name, input) = open(path.as_ref(), &loader.ledger)?;
    loader.tell(name, input, progress)
}

/// Tells what `input` says, as [`events`] does.
///
/// # Errors
/// As those of [`events`].
pub fn events_reader(
    name: &str,
    input: impl Read,
    options: &LoadOptions,
    each: &mut (dyn FnMut(Event) -> io::Result<()> + Send),
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, LoadError> {
    let loader = Loader { each: Some(each), ..Loader::new(options) };
    let input = Input::stream(input, &loader.ledger);
    loader.tell(name.into(), input, progress)
}

fn open_file(path: &Path) -> Result<(Arc<str>, File), LoadError> {
    let name: Arc<str> = path.to_string_lossy().into();
    let file = File::open(path).map_err(|error| LoadError::new(&name, LoadErrorKind::Open(error)))?;
    Ok((name, file))
}

fn open(path: &Path, ledger: &Ledger) -> Result<(Arc<str>, Input<'static>), LoadError> {
    let (name, file) = open_file(path)?;
    let input =
        Input::file(file, ledger).map_err(|error| LoadError::new(&name, LoadErrorKind::Open(error)))?;
    Ok((name, input))
}

struct Loader<'a> {
    options: &'a LoadOptions,
    /// All that is held while loading.
    ledger: Ledger,
    routes: Routes,
    reports: Vec<Report>,
    /// The charge for the peers of the reports.
    reports_held: Held,
    /// Event callback, used instead of building a table.
    each: Option<Each<'a>>,
}

/// Event callback.
type Each<'a> = &'a mut (dyn FnMut(Event) -> io::Result<()> + Send);

impl<'a> Loader<'a> {
    fn new(options: &'a LoadOptions) -> Self {
        let ledger = Ledger::new(options.limits.memory_bytes);
        let routes = Routes::new(options.limits, &ledger);
        let reports_held = Held::new(&ledger);
        Self { options, ledger, routes, reports: Vec::new(), reports_held, each: None }
    }

    fn feed(
        &mut self,
        name: Arc<str>,
        mut input: Input<'_>,
        more: bool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), LoadError> {
        let settled = match &self.options.selection {
            Selection::MostRoutes => None,
            Selection::Peers(names) => Some(Wanted::Named(names.clone())),
            Selection::Best => Some(Wanted::All),
        };
        let (readings, bytes_total) = (input.readings(), input.bytes_total());
        if let (Some(readings), Some(_)) = (&readings, &settled) {
            readings.once();
        }
        let mut pass = Pass { readings, ..self.pass(&name, settled, bytes_total) };
        if let Err(error) = pass.run(&mut input, progress) {
            return Err(match input.overflow() {
                Some(limit_bytes) if error.io_error().is_some() => {
                    LoadError::new(&name, LoadErrorKind::TooLongToReadTwice { limit_bytes })
                }
                _ => error,
            });
        }
        let mut outcome = pass.outcome();
        if outcome.counted {
            let mut tally = outcome.tally;
            let wanted = tally.most();
            tally.restart();
            if let Some(limit_bytes) = input.overflow() {
                return Err(LoadError::new(&name, LoadErrorKind::TooLongToReadTwice { limit_bytes }));
            }
            let read = |error| LoadError::new(&name, LoadErrorKind::Read { bytes: 0, error });
            let mut again = input.again().map_err(read)?;
            let mut pass = Pass { tally, ..self.pass(&name, Some(wanted), bytes_total) };
            pass.run(&mut again, progress)?;
            outcome = pass.outcome();
        }
        let mut report = outcome.finish(&mut self.reports_held)?;
        let ended = self.routes.end_feed(more, &mut report);
        ended.map_err(|refusal| LoadError::new(&name, refusal.at(Place::End)))?;
        self.reports.push(report);
        Ok(())
    }

    fn survey(
        mut self,
        name: Arc<str>,
        input: &mut dyn Read,
        bytes_total: Option<u64>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Report, LoadError> {
        let mut pass = self.pass(&name, None, bytes_total);
        pass.run(input, progress)?;
        let mut outcome = pass.outcome();
        outcome.wanted = outcome.tally.most();
        outcome.finish(&mut self.reports_held)
    }

    /// A reading; one that only counts where it is not settled whose routes are wanted.
    fn pass(&mut self, name: &Arc<str>, settled: Option<Wanted>, bytes_total: Option<u64>) -> Pass<'a, '_> {
        Pass {
            options: self.options,
            ledger: self.ledger.clone(),
            routes: &mut self.routes,
            each: self.each.as_deref_mut().map(|each| each as Each<'_>),
            report: Report::new(Arc::clone(name)),
            counting: settled.is_none(),
            wanted: settled.unwrap_or(Wanted::None),
            tally: Tally::new(&self.ledger),
            live: Live::new(&self.ledger),
            peers: None,
            readings: None,
            bytes_total,
            steps: 0,
        }
    }

    fn tell(
        mut self,
        name: Arc<str>,
        input: Input<'_>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Report, LoadError> {
        self.feed(name, input, false, progress)?;
        self.check_names()?;
        Ok(self.reports.remove(0))
    }

    /// Whether a peer that was named is there.
    fn check_names(&self) -> Result<(), LoadError> {
        if let Selection::Peers(names) = &self.options.selection {
            let peers = || self.reports.iter().flat_map(|report| &report.peers);
            if !peers().any(|counts| counts.chosen != [false; 2]) {
                let kind = LoadErrorKind::NoPeer { names: names.clone(), peers: peers().count() };
                return Err(LoadError::new(&self.reports[0].name, kind));
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Table, LoadError> {
        self.check_names()?;
        let (ribs, next_hops) = self.routes.finish();
        for report in &mut self.reports {
            report.routes_v4 = ribs.v4.len() as u64;
            report.routes_v6 = ribs.v6.len() as u64;
        }
        Ok(Table { ribs, next_hops, reports: self.reports })
    }
}
