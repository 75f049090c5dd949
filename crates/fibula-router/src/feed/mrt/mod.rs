//! Plays recorded tables and updates (MRT files) as if they arrived now: first a table dump, then the updates after it. The best
//! routes become the feed's.

mod pace;

use core::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fibula_feed::event::{Action, Event};
use fibula_feed::{LoadError, LoadOptions, Loader, Report, Selection, Source};

pub use pace::Pace;

use super::best::{self, Best, Change};
use super::keeper::{Keeper, Times};
use super::state::Count;
use super::{Rib, lock};
use crate::config::MrtRate;
use crate::kernel::sys;

/// Changes that are entered at once. Fewer changes wait at most `BATCH_NS`.
const BATCH: usize = 1024;
const BATCH_NS: u64 = 10_000_000;
/// Longest wait before the stop flag is read again.
const STEP: Duration = Duration::from_millis(50);
/// How long to wait before files that could not be read are tried again. Doubles each further time, up to 32 times this.
const PAUSE_NS: u64 = 10_000_000_000;
const MOST_DOUBLED: u32 = 5;
/// How long to wait before files are played again.
const BETWEEN_NS: u64 = 100_000_000;

/// The files to play, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// Number of the feed in the RIB.
    pub feed: usize,
    /// Files, or folders of them, in any order.
    pub files: Vec<PathBuf>,
    /// The VRF of the routes.
    pub vrf: u16,
    /// How fast updates are played.
    pub rate: MrtRate,
    /// Whether the files are played again and again.
    pub repeat: bool,
    /// The peers whose routes are taken.
    pub selection: Selection,
    /// How long routes stay if files could not be read to their end.
    pub keep_ns: u64,
    /// Limit of routes of all peers together.
    pub routes: usize,
}

/// Why files were not played to their end.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReplayError {
    /// A file cannot be read.
    Load(LoadError),
    /// The routes cannot be entered.
    Enter(io::Error),
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(error) => error.fmt(f),
            Self::Enter(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ReplayError {}

/// Plays files into the RIB until the router stops.
#[derive(Debug)]
pub struct Replay {
    options: Options,
    keeper: Keeper,
}

impl Replay {
    /// Creates a replay that has not begun.
    #[must_use]
    pub const fn new(options: Options) -> Self {
        // Routes that were not played again are removed as soon as the playing is complete.
        let times = Times { keep_ns: options.keep_ns, sweep_ns: u64::MAX, quiet_ns: 0 };
        let keeper = Keeper::new(options.feed, times);
        Self { options, keeper }
    }

    /// Plays until the router stops.
    pub fn run(&mut self, rib: &Mutex<Rib>, stop: &AtomicBool) {
        let (mut failures, stops) = (0, || stop.load(Ordering::Relaxed));
        while !stops() {
            let wait_ns = match self.play(rib, stop) {
                Ok(()) => {
                    failures = 0;
                    self.options.repeat.then_some(BETWEEN_NS)
                }
                Err(_) => {
                    failures += 1;
                    Some(PAUSE_NS << (failures - 1).min(MOST_DOUBLED))
                }
            };
            let until_ns = wait_ns.map(|wait_ns| sys::now_ns() + wait_ns);
            while !stops() && until_ns.is_none_or(|until_ns| sys::now_ns() < until_ns) {
                std::thread::sleep(STEP);
                self.keeper.tick(&mut lock(rib), sys::now_ns());
            }
        }
    }

    /// Plays the files once. The state of the feed says why they could not be played to their end.
    ///
    /// # Errors
    /// The same reason.
    pub fn play(&mut self, rib: &Mutex<Rib>, stop: &AtomicBool) -> Result<(), ReplayError> {
        self.play_all(rib, stop).inspect_err(|why| self.failed(&mut lock(rib), why))
    }

    fn play_all(&mut self, rib: &Mutex<Rib>, stop: &AtomicBool) -> Result<(), ReplayError> {
        let Options { files, selection, .. } = &self.options;
        are_files(files).map_err(ReplayError::Enter)?;
        let (source, mut options) = (Source::replay(files), LoadOptions::default());
        options.selection = selection.clone();
        self.keeper.began(&mut lock(rib), sys::now_ns());
        let mut player = Player::new(self, rib, stop);
        let done = Loader::new(options).events(source, |event| player.event(event));
        let entered = player.enter();
        match (done, entered) {
            _ if stop.load(Ordering::Relaxed) => Ok(()),
            (Ok(reports), Ok(())) => {
                self.told(&mut lock(rib), &reports);
                Ok(())
            }
            (Err(error), _) => Err(error.stopped().map_or_else(ReplayError::Load, ReplayError::Enter)),
            (_, Err(error)) => Err(ReplayError::Enter(error)),
        }
    }

    /// Completes a playing, and counts the records that could not be read.
    fn told(&mut self, rib: &mut Rib, reports: &[Report]) {
        let now_ns = sys::now_ns();
        self.keeper.complete(true, now_ns);
        self.keeper.tick(rib, now_ns);
        let state = &mut rib.feed(self.options.feed).state;
        for report in reports {
            state.count(Count::Malformed, report.bad_lines);
            state.count(Count::Skipped, report.skipped.values().sum::<u64>());
            if let Some(fault) = report.faults.iter().find(|fault| !fault.is_warning()) {
                state.error(format!("{}: {fault}", report.name), now_ns);
            }
            if let Some(truncation) = &report.truncated {
                state.error(format!("{}: {truncation}", report.name), now_ns);
            }
        }
    }

    fn failed(&mut self, rib: &mut Rib, why: &ReplayError) {
        let now_ns = sys::now_ns();
        rib.feed(self.options.feed).state.error(why.to_string(), now_ns);
        self.keeper.ended(rib, now_ns);
    }
}

/// Refuses pipes, sockets and devices, among the files and in their folders: the router could not stop while it waits for one of them.
fn are_files(files: &[PathBuf]) -> io::Result<()> {
    for path in files {
        // The loader says what is wrong with a path that is not there.
        let Ok(found) = fs::metadata(path) else { continue };
        let all = if found.is_dir() {
            fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?
        } else {
            vec![path.clone()]
        };
        let is_neither = |path: &&PathBuf| fs::metadata(path).is_ok_and(|at| !at.is_file() && !at.is_dir());
        if let Some(path) = all.iter().find(is_neither) {
            return Err(io::Error::other(format!("{}: not a file", path.display())));
        }
    }
    Ok(())
}

/// Receives the events of one playing.
struct Player<'p> {
    options: &'p Options,
    rib: &'p Mutex<Rib>,
    stop: &'p AtomicBool,
    keeper: &'p mut Keeper,
    best: Best,
    changes: Vec<Change>,
    events: u64,
    pace: Pace,
    /// A table dump was read, and no update after it.
    lists: bool,
    has_swept: bool,
    entered_ns: u64,
}

impl<'p> Player<'p> {
    fn new(replay: &'p mut Replay, rib: &'p Mutex<Rib>, stop: &'p AtomicBool) -> Self {
        let Replay { options, keeper } = replay;
        Self {
            best: Best::new(options.vrf, options.routes),
            pace: Pace::new(options.rate),
            options,
            rib,
            stop,
            keeper,
            changes: Vec::new(),
            events: 0,
            lists: false,
            has_swept: false,
            entered_ns: sys::now_ns(),
        }
    }

    fn event(&mut self, event: Event) -> io::Result<()> {
        let is_listed = matches!(&event.action, Action::Announce(route) if route.dumped);
        if is_listed {
            self.lists = true;
        } else {
            if std::mem::take(&mut self.lists) {
                self.keeper.complete(true, self.entered_ns);
                self.enter()?;
            }
            let due_ns = self.pace.due_ns(event.time, sys::now_ns);
            self.wait(due_ns)?;
        }
        self.events += 1;
        self.best.apply(event, &mut self.changes).map_err(io::Error::other)?;
        let limit = self.options.routes;
        if self.best.len() > limit {
            return Err(self.overrun(format!("more routes of peers than {limit}: raise 'routes'")));
        }
        if self.changes.len() >= BATCH || self.events >= BATCH as u64 {
            self.enter()?;
        }
        Ok(())
    }

    /// Waits until an event is due. Enters the earlier changes first, so that they are visible meanwhile.
    fn wait(&mut self, due_ns: u64) -> io::Result<()> {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(io::Error::other("the router stops"));
            }
            let now_ns = if due_ns == 0 { self.entered_ns } else { sys::now_ns() };
            let left = Duration::from_nanos(due_ns.saturating_sub(now_ns));
            if now_ns.saturating_sub(self.entered_ns) >= BATCH_NS || left > Duration::from_nanos(BATCH_NS) {
                self.enter()?;
            }
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(STEP));
        }
    }

    fn enter(&mut self) -> io::Result<()> {
        let (feed, now_ns) = (self.options.feed, sys::now_ns());
        let changes = std::mem::take(&mut self.changes);
        let mut rib = lock(self.rib);
        let entered = best::enter(&mut rib, feed, changes, &mut self.has_swept);
        let state = &mut rib.feed(feed).state;
        state.count(Count::Messages, std::mem::take(&mut self.events));
        state.peer_routes = Some(self.best.len());
        self.keeper.tick(&mut rib, now_ns);
        drop(rib);
        self.entered_ns = now_ns;
        entered.map_err(|full| self.overrun(full.to_string()))
    }

    fn overrun(&self, why: String) -> io::Error {
        let mut rib = lock(self.rib);
        let state = &mut rib.feed(self.options.feed).state;
        state.count(Count::Refused, 1);
        state.is_overrun = true;
        drop(rib);
        io::Error::other(why)
    }
}

#[cfg(test)]
mod tests;
