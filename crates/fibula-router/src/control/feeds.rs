//! Runs the feeds of a router: starts their threads, and installs their routes in the tables.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path as FilePath;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use fibula::net::NextHop;

use super::error::ControlError;
use super::install::Install;
use super::takeover::{Given, Predecessor};
use super::{Level, RunError, machine_error};
use crate::api::FeedPhase;
use crate::config::{Config, FeedKind, FeedServer};
use crate::feed::answers::Answers;
use crate::feed::bmp::{Bmp, Views};
use crate::feed::enter::Entrance;
use crate::feed::fpm::Fpm;
use crate::feed::keeper::Times;
use crate::feed::kernel::Kernel;
use crate::feed::mrt::{self, Replay};
use crate::feed::routes::Routes;
use crate::feed::server::{self, Server};
use crate::feed::sessions::{Limits, Protocol};
use crate::feed::state::Phase;
use crate::feed::{Rib, lock};
use crate::kernel::sys;

/// Most prefixes handled in one turn of the main thread.
const BATCH: usize = 1 << 13;
/// How often unused paths are freed and changes of feeds are logged.
const TICK_NS: u64 = 1_000_000_000;
/// How long a follower of the kernel waits before it reopens its connection.
const PAUSE: Duration = Duration::from_secs(1);
/// How long the server of another router's listener waits before it looks again whether that one has ended.
const WAIT: Duration = Duration::from_millis(20);
/// How long a session must be silent to count as quiet.
const QUIET_NS: u64 = 2_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// The feeds of a router.
#[derive(Debug, Default)]
pub(super) struct Feeds {
    pub(super) rib: Arc<Mutex<Rib>>,
    pub(super) install: Install,
    threads: Vec<JoinHandle<()>>,
    /// The listeners of feeds, for a router that takes over.
    listeners: Vec<(String, TcpListener)>,
    /// For each feed, whether another router gave its listener. Its sessions are that one's until it ends.
    pub(super) inherited: Vec<bool>,
    /// Whether the servers of such feeds accept sessions.
    go: Arc<AtomicBool>,
    /// The state of each feed that was logged last: its phase, whether it is overrun, and the number of strangers.
    told: Vec<(Phase, bool, usize)>,
    next_tick_ns: u64,
    /// Numbers of next hops that no route has any more, and the fabric without them: free once all workers have that.
    retired: Option<(u64, Vec<NextHop>)>,
    /// A table has refused routes since the last tick. This is logged once a tick.
    is_refused: bool,
}

impl Feeds {
    pub(super) fn new(config: &Config) -> Self {
        let feeds = config
            .feeds
            .iter()
            .map(|feed| Routes::new(feed.name.clone(), feed.distance, feed.routes, config.vrfs.len()));
        let told = config.feeds.iter().map(|_| (Phase::Waiting, false, 0)).collect();
        let mut rib = Rib::new(feeds.collect());
        rib.keep_history(config.history);
        rib.limit_vrfs(config.vrf_limits.clone());
        rib.limit_paths(Some(config.path_bytes));
        Self { rib: Arc::new(Mutex::new(rib)), told, ..Self::default() }
    }

    pub(super) fn rib(&self) -> MutexGuard<'_, Rib> {
        lock(&self.rib)
    }

    /// Opens the sockets and files of the feeds, and starts their threads. Paths of files are relative to `folder`. Listeners of a
    /// router that is taken over accept nothing before [`take_over`](Self::take_over).
    pub(super) fn start(
        &mut self,
        config: &Config,
        folder: &FilePath,
        stop: &Arc<AtomicBool>,
        mut predecessor: Option<&mut Predecessor>,
    ) -> Result<(), RunError> {
        let mut runs: Vec<Run> = Vec::new();
        self.inherited = vec![false; config.feeds.len()];
        for (number, feed) in config.feeds.iter().enumerate() {
            let (rib, stop) = (Arc::clone(&self.rib), Arc::clone(stop));
            let run = match &feed.kind {
                FeedKind::Fpm { tables, server, acknowledge } => {
                    let entrance = Entrance { feed: number, tables: tables.clone(), has_metrics: false };
                    let (frame_bytes, acknowledge) = (server.frame_bytes, *acknowledge);
                    if acknowledge {
                        lock(&rib).feed(number).answers = Some(Answers::new(Answers::LIMIT));
                    }
                    let protocol = Fpm { entrance, frame_bytes, acknowledge };
                    self.serve((number, &feed.name), server, protocol, stop, predecessor.as_deref_mut())
                }
                FeedKind::Kernel { tables } => {
                    let entrance = Entrance { feed: number, tables: tables.clone(), has_metrics: true };
                    Kernel::open(entrance.clone())
                        .map(|kernel| -> Run { Box::new(move || follow(kernel, &entrance, &rib, &stop)) })
                }
                FeedKind::Bmp { vrfs, server, view, policy, peers } => {
                    let (vrfs, frame_bytes) = (vrfs.clone().into(), server.frame_bytes);
                    let views = Views { view: *view, policy: *policy, vrfs, routes: feed.routes };
                    let protocol = Bmp { feed: number, views, frame_bytes, peers: *peers };
                    self.serve((number, &feed.name), server, protocol, stop, predecessor.as_deref_mut())
                }
                FeedKind::Mrt { files, vrf, rate, repeat, selection, keep } => {
                    let options = mrt::Options {
                        feed: number,
                        files: files.iter().map(|file| folder.join(file)).collect(),
                        vrf: *vrf,
                        rate: *rate,
                        repeat: *repeat,
                        selection: selection.clone(),
                        keep_ns: keep * SECOND_NS,
                        routes: feed.routes,
                    };
                    Ok(Box::new(move || Replay::new(options).run(&rib, &stop)) as Run)
                }
            };
            runs.push(run.map_err(machine_error(format!("feed {}", feed.name)))?);
        }
        for (run, feed) in runs.into_iter().zip(&config.feeds) {
            let run = move || {
                // Everything that needs a capability is open by now. Without dropping the rest, a faulty peer would talk to a
                // privileged thread.
                if sys::keep_capabilities(0).is_ok() {
                    run();
                }
            };
            let thread = std::thread::Builder::new().name(format!("feed {}", feed.name)).spawn(run);
            self.threads.push(thread.map_err(machine_error("starting a thread"))?);
        }
        Ok(())
    }

    /// Listens, and returns a function that serves until the router stops.
    fn serve<P: Protocol<Connection: Send> + Send + 'static>(
        &mut self,
        (number, name): (usize, &str),
        server: &FeedServer,
        protocol: P,
        stop: Arc<AtomicBool>,
        predecessor: Option<&mut Predecessor>,
    ) -> io::Result<Run> {
        let FeedServer { listen, keep, sweep, sessions, .. } = *server;
        let times = Times { keep_ns: keep * SECOND_NS, sweep_ns: sweep * SECOND_NS, quiet_ns: QUIET_NS };
        let limits = Limits { allow: server.allow.clone(), sessions };
        let options = server::Options { listen, limits, accounts: server.accounts.clone(), times };
        let listener = predecessor.and_then(|predecessor| predecessor.feed(name, listen));
        let inherited = listener.is_some();
        self.inherited[number] = inherited;
        let mut server = match listener {
            Some(listener) => Server::with(listener, options, protocol),
            None => Server::open(options, protocol),
        }?;
        self.listeners.push((name.to_owned(), server.listener()?));
        let (rib, go) = (Arc::clone(&self.rib), Arc::clone(&self.go));
        Ok(Box::new(move || {
            if inherited {
                while !go.load(Ordering::Acquire) {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    std::thread::sleep(WAIT);
                }
                server.inherit(&rib);
            }
            while !stop.load(Ordering::Relaxed) {
                server.turn(&rib);
            }
        }))
    }

    /// Lets the servers of another router's listeners accept sessions.
    pub(super) fn take_over(&self) {
        self.go.store(true, Ordering::Release);
    }

    /// Offers the listeners to a router that takes over.
    pub(super) fn offer(
        &self,
        offer: &mut dyn FnMut(Given, BorrowedFd<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.listeners.iter().try_for_each(|(name, listener)| {
            let item = Given::Feed { name: name.clone(), address: listener.local_addr()? };
            offer(item, listener.as_fd())
        })
    }

    /// Returns the lines of the log about feeds whose state has changed.
    pub(super) fn news(&mut self) -> Vec<(Level, String)> {
        let rib = lock(&self.rib);
        let mut news = Vec::new();
        for (feed, told) in rib.feeds().iter().zip(&mut self.told) {
            let (name, state) = (&feed.name, &feed.state);
            if state.phase != told.0 {
                let phase = FeedPhase::from(state.phase).name();
                news.push((Level::Note, format!("feed {name}: {phase}, {} routes", feed.len())));
            }
            if state.is_overrun && !told.1 {
                let text = format!(
                    "feed {name}: more than its limits allow; the rest is refused until there is room"
                );
                news.push((Level::Warning, text));
            }
            for stranger in &state.strangers[told.2..] {
                news.push((Level::Warning, format!("feed {name}: connection refused: {stranger}")));
            }
            *told = (state.phase, state.is_overrun, state.strangers.len());
        }
        // The caller logs without the lock, because the log may be slow and would hold up the threads of the feeds.
        news
    }

    /// Returns where a feed listens.
    #[cfg(test)]
    pub(super) fn address(&self, listener: usize) -> std::net::SocketAddr {
        self.listeners[listener].1.local_addr().unwrap()
    }

    /// Waits for the threads. They end when the stop flag is set.
    pub(super) fn join(&mut self) {
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl super::Router<'_> {
    /// Installs the routes that feeds have changed. Returns `None` if none have, otherwise whether there is more to do at once.
    pub(super) fn take_feeds(&mut self) -> Option<bool> {
        let now_ns = sys::now_ns();
        self.feeds.rib().set_time(now_ns);
        if now_ns >= self.feeds.next_tick_ns {
            self.feeds.next_tick_ns = now_ns + TICK_NS;
            self.feeds.is_refused = false;
            self.tell_feeds();
            self.collect_paths();
        }
        let fabric = self.shared.fabric();
        let near = (&*fabric.interfaces, &self.devices);
        let feeds = &mut self.feeds;
        let taken = feeds.install.take(&feeds.rib, near, &mut self.hops, None, BATCH);
        if taken.is_empty() {
            return feeds.install.answer(&feeds.rib, &taken, &self.vrfs).then_some(true);
        }
        // Publish the next hops first: a worker must know a number before it can find the number in a table.
        if taken.hops {
            let hops = self.outage.in_use(&self.hops, &fabric.interfaces);
            self.publish(fabric.with_hops(hops));
        }
        let feeds = &mut self.feeds;
        let Err(error) = feeds.install.enter(&feeds.rib, &taken, &self.vrfs, &mut self.counts) else {
            return Some(taken.more);
        };
        self.log_refused(&error);
        Some(false)
    }

    /// Logs that a table has refused routes, once until the next tick: they are tried again every turn.
    pub(super) fn log_refused(&mut self, error: &ControlError) {
        if !std::mem::replace(&mut self.feeds.is_refused, true) {
            (self.log)(Level::Warning, &format!("cannot install routes (will retry): {error}"));
        }
    }

    /// Logs the feeds whose state has changed.
    fn tell_feeds(&mut self) {
        for (level, text) in self.feeds.news() {
            (self.log)(level, &text);
        }
    }

    /// Frees the paths that no route has, and the numbers of their next hops.
    fn collect_paths(&mut self) {
        // A worker that has not taken up the fabric may still use one of the numbers from a table.
        if self.feeds.retired.as_ref().is_some_and(|(version, _)| !self.workers_have(*version)) {
            return;
        }
        // Nor may a program in the kernel.
        let is_read =
            self.kept.fast.as_ref().is_some_and(|fast| self.feeds.retired.is_some() && !fast.wait());
        if is_read {
            return;
        }
        if let Some((_, numbers)) = self.feeds.retired.take() {
            self.hops.give_back(&numbers);
        }
        let mut numbers = self.feeds.install.collect(&self.feeds.rib);
        for &number in &numbers {
            self.hops.set(number, None);
        }
        numbers.extend(self.hops.sweep());
        if !numbers.is_empty() {
            let fabric = self.shared.fabric();
            let hops = self.outage.in_use(&self.hops, &fabric.interfaces);
            let version = self.publish(fabric.with_hops(hops));
            self.feeds.retired = Some((version, numbers));
        }
    }
}

/// The main function of a feed's thread.
type Run = Box<dyn FnOnce() + Send>;

/// Follows the kernel until the router stops. A connection that fails is reopened.
fn follow(kernel: Kernel, entrance: &Entrance, rib: &Mutex<Rib>, stop: &AtomicBool) {
    let mut kernel = Some(kernel);
    while !stop.load(Ordering::Relaxed) {
        let done = match &mut kernel {
            Some(kernel) => kernel.turn(rib),
            None => Kernel::open(entrance.clone()).map(|opened| kernel = Some(opened)),
        };
        if let Err(error) = done {
            kernel = None;
            let now_ns = sys::now_ns();
            let mut rib = lock(rib);
            let state = &mut rib.feed(entrance.feed).state;
            state.error(error.to_string(), now_ns);
            // Keep the routes: a lost connection says nothing about the kernel's table.
            state.enter(Phase::Kept, now_ns);
            drop(rib);
            std::thread::sleep(PAUSE);
        }
    }
}
