//! Compares the copies of routes within the router: the RIB, the tables, and the results of lookups. If a feed follows the
//! kernel's tables, also compares these.
//!
//! A slow pass compares a bounded number of prefixes a second for as long as the router runs. `fibula router verify` starts a
//! pass of its own, as fast as the other work of the main thread permits. Both run on the main thread with the RIB locked. Only
//! the main thread changes tables, so a prefix without a waiting change must be the same in both. The kernel's tables are read by
//! a thread of their own.

mod kernel;
mod show;
mod walk;

pub use walk::{Found, Scene, TableDifference, Walk};

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fibula::live::TableError;

use super::answer::{refuse, send};
use super::{Level, Router};
use crate::api;
use crate::config::{Feed, FeedKind};
use crate::feed::enter::Entrance;
use crate::feed::lock;
use crate::kernel::sys;
use show::Names;

/// Least number of prefixes that the slow pass compares at once.
const STEP: usize = 64;
// Number of prefixes that are compared for a client in a turn of the main thread.
const STEP_OF_CLIENT: usize = 4096;
const SECOND_NS: u64 = 1_000_000_000;
/// Most clients that may wait for a comparison.
const CLIENTS: usize = 4;
/// How long a client may take for its answer.
const STALLED: Duration = Duration::from_secs(5);
/// Most differences of a pass that are logged. All are counted.
const MOST_LOGGED: usize = 10;

/// Counts of comparisons and differences since the router started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct VerifyCounts {
    /// Completed slow passes.
    pub(super) passes: u64,
    /// Prefixes compared.
    pub(super) compared: u64,
    /// Prefixes compared with the kernel.
    pub(super) compared_kernel: u64,
    /// Differences between RIB and table, between table and lookups, and between kernel and RIB.
    pub(super) differences: [u64; 3],
    /// Time of the main thread that the slow pass has taken.
    pub(super) busy_ns: u64,
}

/// Result of the last comparison with the kernel's tables, for each feed that follows them.
type Readings = Vec<(kernel::Feed, io::Result<kernel::Compared>)>;

/// State of the comparisons of a running router.
#[derive(Debug, Default)]
pub(super) struct Verify {
    pub(super) counts: VerifyCounts,
    walk: Walk,
    due_ns: u64,
    clients: Vec<Client>,
    /// Each thread that reads the kernel's tables for a client holds a clone.
    readers: Arc<()>,
    /// The kernel's tables are being read for the slow pass. The result will be in `read`.
    is_reading: bool,
    read: Arc<Mutex<Option<Readings>>>,
    /// Differences from the kernel's tables that clients asked for, to be repaired.
    read_for_clients: Arc<Mutex<Vec<(kernel::Feed, kernel::Compared)>>>,
    /// A table could not be compared, and this was logged.
    has_failed: bool,
}

/// A client that waits for a comparison.
#[derive(Debug)]
struct Client {
    stream: UnixStream,
    walk: Walk,
    begin: Instant,
}

impl Verify {
    /// Begins a comparison for a client.
    pub(super) fn begin(&mut self, mut stream: UnixStream) -> io::Result<()> {
        if self.clients.len() + Arc::strong_count(&self.readers) > CLIENTS {
            return refuse(&mut stream, "too many comparisons at once: try again later");
        }
        self.clients.push(Client { stream, walk: Walk::default(), begin: Instant::now() });
        Ok(())
    }
}

impl Router<'_> {
    /// Continues the comparisons. Returns whether there is more to do at once.
    pub(super) fn verify(&mut self) -> bool {
        self.walk_on();
        self.take_readings();
        self.serve_clients();
        !self.verify.clients.is_empty()
    }

    fn walk_on(&mut self) {
        let (rate, now_ns) = (u64::from(self.config.verify_rate), sys::now_ns());
        if rate == 0 || now_ns < self.verify.due_ns || self.verify.is_reading {
            return;
        }
        // As many as are due in twenty milliseconds, after which a turn comes in any case. However, a very small step would cost too
        // much for each prefix.
        let most = STEP.max((rate / 50) as usize);
        // Counted from when this step was due, or the wait for a turn would be missing from the rate. Not from long ago.
        let due_ns = self.verify.due_ns.max(now_ns.saturating_sub(SECOND_NS));
        self.verify.due_ns = due_ns + most as u64 * SECOND_NS / rate;
        let before = self.verify.walk.compared();
        let rib = lock(&self.feeds.rib);
        let scene = Scene { rib: &rib, install: &self.feeds.install, vrfs: &self.vrfs };
        let step = self.verify.walk.step(&scene, most);
        let found = match step {
            Ok(true) => self.verify.walk.differences(&scene).map(Some),
            Ok(false) => Ok(None),
            Err(error) => Err(error),
        };
        drop(rib);
        self.verify.counts.compared += self.verify.walk.compared() - before;
        self.verify.counts.busy_ns += sys::now_ns() - now_ns;
        match found {
            Ok(None) => {}
            Ok(Some(differences)) => self.pass_ended(&differences),
            Err(error) => self.cannot_compare(&error),
        }
    }

    fn cannot_compare(&mut self, error: &TableError) {
        self.verify.walk = Walk::default();
        // Try again in a minute, because the failure may be passing, for example a lack of memory.
        self.verify.due_ns = sys::now_ns() + 60 * SECOND_NS;
        if !std::mem::replace(&mut self.verify.has_failed, true) {
            (self.log)(Level::Warning, &format!("tables cannot be compared with the RIB: {error}"));
        }
    }

    /// Logs the differences of a slow pass, gives them back to be entered again, and begins to read the kernel's tables.
    fn pass_ended(&mut self, differences: &[TableDifference]) {
        let walk = std::mem::take(&mut self.verify.walk);
        self.verify.counts.passes += 1;
        self.enter_again(differences, walk.more());
        let feeds = self.kernel_feeds();
        if feeds.is_empty() {
            return;
        }
        let (rib, read) = (Arc::clone(&self.feeds.rib), Arc::clone(&self.verify.read));
        let run = move || {
            let readings = readings(&rib, feeds);
            *read.lock().unwrap_or_else(PoisonError::into_inner) = Some(readings);
        };
        self.verify.is_reading = std::thread::Builder::new().name("verify".into()).spawn(run).is_ok();
    }

    /// Counts and logs differences of RIB and tables, and gives them back to be entered again. `more_found` are not among them.
    fn enter_again(&mut self, differences: &[TableDifference], more_found: u64) {
        let fabric = self.shared.fabric();
        let names = Names::new(&fabric, &self.config, &self.devices);
        for (at, difference) in differences.iter().enumerate() {
            let kind = usize::from(matches!(difference.found, Found::Lookup { .. }));
            self.verify.counts.differences[kind] += 1;
            if at < MOST_LOGGED {
                // A wrong table entry is corrected below. A wrong lookup is a fault in the engine, which entering the route again
                // cannot correct.
                let what = if kind == 0 { "it is entered again" } else { "restart the router" };
                let text = format!("found wrong: {}; {what}", show::line(&names.difference(difference)));
                (self.log)(Level::Warning, &text);
            }
        }
        self.verify.counts.differences[0] += more_found;
        let more = differences.len().saturating_sub(MOST_LOGGED) as u64 + more_found;
        if more > 0 {
            (self.log)(Level::Warning, &format!("found wrong: {more} more prefixes"));
        }
        lock(&self.feeds.rib).put_back(differences.iter().map(|difference| difference.place), more_found > 0);
    }

    /// Takes the differences that threads have found in the kernel's tables.
    fn take_readings(&mut self) {
        let for_clients =
            std::mem::take(&mut *self.verify.read_for_clients.lock().unwrap_or_else(PoisonError::into_inner));
        for (feed, compared) in for_clients {
            self.read_again(&feed, &compared);
        }
        if !self.verify.is_reading {
            return;
        }
        let Some(readings) = self.verify.read.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return;
        };
        self.verify.is_reading = false;
        for (feed, compared) in readings {
            let compared = match compared {
                Ok(compared) => compared,
                Err(reason) => {
                    let text =
                        format!("feed {}: the kernel's tables cannot be compared: {reason}", feed.name);
                    (self.log)(Level::Warning, &text);
                    continue;
                }
            };
            // The prefixes read count against the rate too, so that reading takes no more than its share.
            let rate = u64::from(self.config.verify_rate).max(1);
            self.verify.due_ns = self.verify.due_ns.max(sys::now_ns()) + compared.prefixes * SECOND_NS / rate;
            self.read_again(&feed, &compared);
        }
    }

    /// Counts and logs differences from the kernel's tables. A feed that differs must read everything again.
    fn read_again(&mut self, feed: &kernel::Feed, compared: &kernel::Compared) {
        self.verify.counts.compared_kernel += compared.prefixes;
        self.verify.counts.differences[2] += compared.differences.len() as u64;
        let fabric = self.shared.fabric();
        let names = Names::new(&fabric, &self.config, &self.devices);
        for difference in compared.differences.iter().take(MOST_LOGGED) {
            let line = show::line(&names.kernel_difference(&feed.name, difference));
            let text = format!("found wrong: {line}; the kernel's tables are read again");
            (self.log)(Level::Warning, &text);
        }
        if !compared.differences.is_empty() {
            lock(&self.feeds.rib).feed(feed.entrance.feed).state.is_suspected = true;
        }
    }

    fn serve_clients(&mut self) {
        let mut at = 0;
        while at < self.verify.clients.len() {
            let rib = lock(&self.feeds.rib);
            let scene = Scene { rib: &rib, install: &self.feeds.install, vrfs: &self.vrfs };
            let walk = &mut self.verify.clients[at].walk;
            let found = match walk.step(&scene, STEP_OF_CLIENT) {
                Ok(false) => {
                    at += 1;
                    continue;
                }
                Ok(true) => walk.differences(&scene),
                Err(error) => Err(error),
            };
            drop(rib);
            let client = self.verify.clients.swap_remove(at);
            self.answer_client(client, found);
        }
    }

    /// Starts a thread that reads the kernel's tables and writes the answer to a client, because both may take long.
    fn answer_client(&mut self, client: Client, found: Result<Vec<TableDifference>, TableError>) {
        let fabric = self.shared.fabric();
        let names = Names::new(&fabric, &self.config, &self.devices);
        let Client { mut stream, walk, begin } = client;
        let mut differences: Vec<api::Difference> = Vec::new();
        let (mut not_compared, mut repair): (Vec<String>, Vec<TableDifference>) = Default::default();
        match found {
            Ok(found) => {
                differences.extend(found.iter().map(|difference| names.difference(difference)));
                repair = found;
            }
            Err(error) => not_compared.push(format!("tables: {error}")),
        }
        let (feeds, rib, held) =
            (self.kernel_feeds(), Arc::clone(&self.feeds.rib), Arc::clone(&self.verify.readers));
        let (names, missing_interfaces) = (names.owned(), self.missing());
        self.verify.counts.compared += walk.compared();
        self.enter_again(&repair, walk.more());
        let (found_in_kernel, bell) = (Arc::clone(&self.verify.read_for_clients), Arc::clone(&self.bell));
        let run = move || {
            let _held = held;
            let mut compared_kernel = 0;
            for (feed, compared) in readings(&rib, feeds) {
                match compared {
                    Ok(compared) => {
                        compared_kernel += compared.prefixes;
                        let found = compared.differences.iter();
                        differences
                            .extend(found.map(|difference| names.kernel_difference(&feed.name, difference)));
                        found_in_kernel.lock().unwrap_or_else(PoisonError::into_inner).push((feed, compared));
                        bell.ring();
                    }
                    Err(reason) => not_compared.push(format!("feed {}: {reason}", feed.name)),
                }
            }
            let answer = api::Comparison {
                compared: walk.compared(),
                compared_kernel,
                seconds: begin.elapsed().as_secs_f64(),
                differences,
                more_differences: walk.more(),
                not_compared,
                missing_interfaces,
            };
            // A client that has gone gets no answer.
            let _ = stream.set_write_timeout(Some(STALLED)).and_then(|()| send(&mut stream, &answer));
        };
        // If no thread can be started, the client sees the end of its connection.
        let _ = std::thread::Builder::new().name("verify".into()).spawn(run);
    }

    fn kernel_feeds(&self) -> Vec<kernel::Feed> {
        let feeds = self.config.feeds.iter().enumerate();
        let kernel = |(number, feed): (usize, &Feed)| match &feed.kind {
            FeedKind::Kernel { tables } => Some(kernel::Feed {
                entrance: Entrance { feed: number, tables: tables.clone(), has_metrics: true },
                name: feed.name.clone(),
                vrfs: self.config.vrfs.len(),
            }),
            _ => None,
        };
        feeds.filter_map(kernel).collect()
    }
}

/// Compares feeds with the kernel's tables.
fn readings(rib: &Mutex<crate::feed::Rib>, feeds: Vec<kernel::Feed>) -> Readings {
    // Reading needs no capability.
    let kept = sys::keep_capabilities(0);
    let compare = |feed: kernel::Feed| {
        let compared = match &kept {
            Ok(()) => kernel::compare(rib, &feed),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        };
        (feed, compared)
    };
    feeds.into_iter().map(compare).collect()
}

#[cfg(test)]
mod tests;
