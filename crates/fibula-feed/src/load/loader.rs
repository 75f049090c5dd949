//! Loads whole files and streams.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::choice::{Selection, Tally, Wanted};
use super::compiled;
use super::error::{LoadError, LoadErrorKind, LoadPosition};
use super::input::Input;
use super::live::Live;
use super::pass::Pass;
use super::replay::{self, Chain};
use super::report::Report;
use super::routes::Routes;
use super::source::{Feed, Source};
use super::{LoadOptions, LoadedRoutes, Progress};
use crate::document::TableForm;
use crate::event::Event;
use crate::ledger::{Held, Ledger};

/// Loads routes from whole files and streams: into [`LoadedRoutes`], as counts, or as single events.
///
/// The input may be compressed (see [`compression`](crate::compression)), and is MRT or text in any of the forms of
/// [`text::FORMS`](crate::text::FORMS), or a [table file](fibula::file) with routes, which is read as text. All are recognised
/// by the first bytes. The file of a MaxMind database is recognised by its end, and read as lines of JSON.
pub struct Loader<'a> {
    options: LoadOptions,
    progress: Option<Box<dyn FnMut(Progress) + 'a>>,
}

impl fmt::Debug for Loader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loader").field("options", &self.options).finish_non_exhaustive()
    }
}

impl<'a> Loader<'a> {
    /// Returns a loader with these options.
    #[must_use]
    pub fn new(options: LoadOptions) -> Self {
        Self { options, progress: None }
    }

    /// Calls `progress` about every 256 KiB of decompressed content, and at the end of each reading.
    #[must_use]
    pub fn on_progress(self, progress: impl FnMut(Progress) + 'a) -> Self {
        Self { progress: Some(Box::new(progress)), ..self }
    }

    /// Loads the source into one table. If several routes have the same prefix, [`select`](crate::select) says which
    /// one stays.
    ///
    /// With [`Selection::MostRoutes`] a feed of several peers is read twice. The input of a reader is kept for that,
    /// still compressed, up to the memory limit, or 2 GiB if there is none.
    ///
    /// When a file cannot be read, its compressed stream is damaged from the beginning on, most of its lines are not
    /// routes, a table would exceed its limits, or none of the named peers exists. With [`LoadOptions::strict`] also at
    /// the first bad line or record, when content that may hold routes is left out, and when the file ends early or its
    /// compressed stream is damaged.
    pub fn load<'s>(&mut self, source: impl Into<Source<'s>>) -> Result<LoadedRoutes, LoadError> {
        let mut session = LoadSession::new(&self.options, None);
        session.feeds(source.into(), &mut tell(&mut self.progress))?;
        session.finish()
    }

    /// Counts the routes and changes of the peers of each feed, without making a table. Returns one report for each
    /// feed.
    ///
    /// # Errors
    /// The same as those of [`load`](Self::load).
    pub fn survey<'s>(&mut self, source: impl Into<Source<'s>>) -> Result<Vec<Report>, LoadError> {
        let feeds = feeds(source.into())?;
        let mut progress = tell(&mut self.progress);
        let survey = |feed| {
            let mut session = LoadSession::new(&self.options, None);
            match compiled::recognised(feed, self.options.limits, &session.ledger)? {
                Feed::File(path) => {
                    let (name, mut file) = open_file(&path)?;
                    let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file);
                    session.survey(name, &mut file, metadata.map(|metadata| metadata.len()), &mut progress)
                }
                Feed::Reader { name, mut input, form } => {
                    session.form = form;
                    session.survey(name, &mut input, None, &mut progress)
                }
                Feed::Replay(paths) => {
                    let (name, mut input) = chain(&paths, &self.options)?;
                    session.survey(name, &mut input, None, &mut progress)
                }
            }
        };
        feeds.into_iter().map(survey).collect()
    }

    /// Calls `each` for the events of the feeds, in order, instead of making a table: for the peers that
    /// [`LoadOptions::selection`] names; [`Selection::Best`] means all of them. Lines of plain tables come as
    /// announcements without a peer. Returns one report for each feed.
    ///
    /// # Errors
    /// The same as those of [`load`](Self::load), and the errors of `each`: see [`LoadError::stopped`].
    pub fn events<'s>(
        &mut self,
        source: impl Into<Source<'s>>,
        mut each: impl FnMut(Event) -> io::Result<()> + Send,
    ) -> Result<Vec<Report>, LoadError> {
        let mut session = LoadSession::new(&self.options, Some(&mut each));
        session.feeds(source.into(), &mut tell(&mut self.progress))?;
        session.check_names()?;
        Ok(session.reports)
    }
}

/// Returns the progress function, or one that does nothing.
fn tell<'p>(progress: &'p mut Option<Box<dyn FnMut(Progress) + '_>>) -> impl FnMut(Progress) + 'p {
    move |at| {
        if let Some(progress) = progress {
            progress(at);
        }
    }
}

/// Returns the feeds of the source, at least one.
fn feeds(source: Source<'_>) -> Result<Vec<Feed<'_>>, LoadError> {
    let feeds = source.into_feeds();
    if feeds.is_empty() {
        return Err(LoadError::new(&"".into(), LoadErrorKind::NoFile));
    }
    Ok(feeds)
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

/// Returns the files that make up the table at the end of the requested times.
fn chain(paths: &[PathBuf], options: &LoadOptions) -> Result<(Arc<str>, Chain), LoadError> {
    let names: Vec<_> = paths.iter().map(|path| path.to_string_lossy()).collect();
    let name: Arc<str> = names.join(" + ").into();
    let read = |error| LoadError::new(&name, LoadErrorKind::Read { bytes: 0, error });
    let files = replay::plan(paths, options.filter.until).map_err(read)?;
    if files.is_empty() {
        return Err(LoadError::new(&name, LoadErrorKind::NoFile));
    }
    Ok((name, Chain::new(files)))
}

/// One load of all feeds of a source.
pub(super) struct LoadSession<'a> {
    options: &'a LoadOptions,
    /// Accounts for all memory that is held while loading.
    pub(super) ledger: Ledger,
    routes: Routes,
    reports: Vec<Report>,
    /// The charge for the peers of the reports.
    reports_held: Held,
    /// Event callback, used instead of building a table.
    each: Option<Each<'a>>,
    /// The form of the present feed, if this program made its text.
    form: Option<&'static TableForm>,
}

/// Event callback.
pub(super) type Each<'a> = &'a mut (dyn FnMut(Event) -> io::Result<()> + Send);

impl<'a> LoadSession<'a> {
    pub(super) fn new(options: &'a LoadOptions, each: Option<Each<'a>>) -> Self {
        let ledger = Ledger::new(options.limits.memory_bytes);
        let mut routes = Routes::new(options.limits, &ledger);
        routes.set_order(options.order);
        routes.set_types(&options.values, &options.types);
        let reports_held = Held::new(&ledger);
        Self { options, ledger, routes, reports: Vec::new(), reports_held, each, form: None }
    }

    fn feeds(&mut self, source: Source<'_>, progress: &mut dyn FnMut(Progress)) -> Result<(), LoadError> {
        let feeds = feeds(source)?;
        let count = feeds.len();
        for (index, feed) in feeds.into_iter().enumerate() {
            let feed = compiled::recognised(feed, self.options.limits, &self.ledger)?;
            self.routes.set_replay(matches!(feed, Feed::Replay(_)));
            self.form = None;
            let (name, input) = match feed {
                Feed::Replay(paths) => {
                    let (name, chain) = chain(&paths, self.options)?;
                    (name, Input::Chain(chain))
                }
                Feed::File(path) => open(&path, &self.ledger)?,
                Feed::Reader { name, input, form } => {
                    self.form = form;
                    (name, Input::stream(input, &self.ledger))
                }
            };
            self.feed(name, input, index + 1 < count, progress)?;
        }
        Ok(())
    }

    pub(super) fn feed(
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
        ended.map_err(|refusal| LoadError::new(&name, refusal.at(LoadPosition::End)))?;
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

    /// Reads a feed once. Only counts routes if the peers to take are not known yet.
    pub(super) fn pass(
        &mut self,
        name: &Arc<str>,
        settled: Option<Wanted>,
        bytes_total: Option<u64>,
    ) -> Pass<'a, '_> {
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
            form: self.form,
            steps: 0,
        }
    }

    /// Returns an error if peers were named and none of them exists.
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

    pub(super) fn finish(mut self) -> Result<LoadedRoutes, LoadError> {
        self.check_names()?;
        let (ribs, next_hops) = self.routes.finish();
        for report in &mut self.reports {
            report.routes_v4 = ribs.v4.len() as u64;
            report.routes_v6 = ribs.v6.len() as u64;
        }
        Ok(LoadedRoutes { ribs, next_hops, reports: self.reports })
    }
}
