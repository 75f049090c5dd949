//! Runs a router. Worker threads forward packets; the main thread follows the kernel, reloads the configuration and answers
//! queries.
//!
//! ```text
//! main thread     netlink (links, addresses, neighbours) ─> fabric, routes, filter      control socket, signals
//! worker 0..n     burst by burst: receive, look up, send                                 worker 0 also keeps time for neighbours
//! ```
//!
//! Workers notice changes by a version number that they read once a burst. Nothing that the main thread does stops them.

mod answer;
mod bfd;
mod change;
pub mod client;
mod doors;
mod doubts;
mod error;
pub mod failover;
mod fall;
mod feed_state;
mod feeds;
mod filters;
mod gate;
pub mod hops;
pub mod install;
mod machine;
mod metrics;
mod numbered;
mod open;
mod plan;
mod routes;
mod samples;
mod sides;
mod socket;
mod takeover;
mod threads;
mod trace;
pub mod verify;

use core::fmt;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use std::time::Duration;

use fibula::live::TableError;
use fibula::net::Dual;

use crate::api;
use crate::config::{Backend, Config, SOCKET};
use crate::count::{PortCounters, Totals};
use crate::forward::fabric::{Fabric, Interface, Vrf};
use crate::forward::{Shared, Worker};
use crate::io::pcap;
use crate::kernel::bell::Bell;
use crate::kernel::filter::Filter;
use crate::kernel::netlink::{Event, Link, Neighbour, Netlink};
use crate::kernel::sys;
use crate::neighbour::{Answer, Ask, Duplicate, Key};
use crate::packet::ethernet::Mac;
use crate::stage;

use bfd::BfdInUse;
use doors::{Caller, Doors, Question};
pub use doubts::doubts;
pub use error::ControlError;
use failover::Outage;
use feeds::Feeds;
use filters::FiltersInUse;
use hops::Hops;
use machine::Machine;
pub use numbered::NumberedFeeds;
use open::{Beside, Followed, Queues};
use plan::{Loaded, Plan};
use samples::SamplesInUse;
use sides::Sides;
pub use takeover::TakeoverError;
use takeover::{Predecessor, Successor};
use threads::{Alarm, Common, StageRings, Threads};
use verify::Verify;

/// How long the main thread sleeps at most while there is something to do, and if there is not. Changes of routes wait that long.
const BUSY_MS: i32 = 2;
const IDLE_MS: i32 = 20;
/// Most questions that are answered in a turn of the main thread.
const QUESTIONS: usize = 8;
/// How long the main thread counts as busy after it had something to do.
const CALM_NS: u64 = 1_000_000_000;
/// Turns of the main thread between two checks of the links of ports that are unknown to the kernel.
const LINKS: u32 = 50;
/// The time between two questions to the kernel about the features of fast devices.
const FEATURES_NS: u64 = 100_000_000;
/// How long the main thread waits for workers to take up a new fabric.
const TAKE_UP: Duration = Duration::from_secs(2);

/// Severity of a log line. Packets are never logged one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Something is wrong, but the router continues.
    Warning,
    /// Something has changed.
    Note,
}

/// Requests to the router, set by signal handlers.
#[derive(Debug, Default, Clone)]
pub struct Flags {
    /// Shut down cleanly.
    pub stop: Arc<AtomicBool>,
    /// Read the configuration again.
    pub reload: Arc<AtomicBool>,
}

/// What the router reports to a supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// It forwards.
    Ready,
    /// The main thread has completed a turn. Comes several times a second.
    Alive,
    /// It reads its configuration again. [`Ready`](Self::Ready) follows.
    Reloading,
    /// It hands back to the kernel, and ends.
    Stopping,
}

/// The functions that a router calls while it runs.
pub struct Calls<'c> {
    /// Reads the configuration again.
    pub read: &'c mut dyn FnMut() -> Result<Config, Box<dyn core::error::Error + Send + Sync>>,
    /// Writes a line of the log.
    pub log: &'c mut dyn FnMut(Level, &str),
    /// Reports to a supervisor.
    pub notify: &'c mut dyn FnMut(Notice),
}

impl fmt::Debug for Calls<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calls").finish_non_exhaustive()
    }
}

/// Why the router cannot start, or why it ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// A resource of the machine is missing, or the system refused it: what, and why.
    Machine(String, io::Error),
    /// The configuration cannot be applied.
    Config(String),
    /// The routes of the configuration cannot be applied.
    Control(ControlError),
    /// A file of frames cannot be read.
    Pcap(String, pcap::PcapError),
    /// The router that runs cannot be taken over.
    Takeover(TakeoverError),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine(what, error) => {
                write!(f, "{what}: {error}")?;
                if error.kind() == io::ErrorKind::PermissionDenied {
                    f.write_str(" (needs root, or CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF; see 'fibula router doctor')")?;
                }
                Ok(())
            }
            Self::Config(reason) => f.write_str(reason),
            Self::Control(error) => error.fmt(f),
            Self::Pcap(file, error) => write!(f, "{file}: {error}"),
            Self::Takeover(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for RunError {}

impl From<ControlError> for RunError {
    fn from(error: ControlError) -> Self {
        Self::Control(error)
    }
}

impl From<TakeoverError> for RunError {
    fn from(error: TakeoverError) -> Self {
        Self::Takeover(error)
    }
}

impl From<TableError> for RunError {
    fn from(error: TableError) -> Self {
        Self::Control(error.into())
    }
}

/// Sets up the taps of ports.
fn set_up(netlink: &mut Netlink, beside: &[Beside]) -> Result<(), RunError> {
    if beside.is_empty() {
        return Ok(());
    }
    let mut links = Vec::new();
    let found = netlink.dump(|event| {
        if let Event::Link(link) = event {
            links.push(link);
        }
    });
    found.map_err(machine_error("asking the kernel for links"))?;
    for Beside { tap, mac, mtu, addresses } in beside {
        let Some(link) = links.iter().find(|link| link.name == *tap) else { continue };
        let refused = || machine_error(format!("tap {tap}"));
        netlink.set_up(link.index, *mac, *mtu).map_err(refused())?;
        for &(ip, len) in addresses {
            netlink.add_address(link.index, ip, len).map_err(refused())?;
        }
    }
    Ok(())
}

/// Checks that the kernel has set taps up as [`set_up`] requested.
fn check_taps(machine: &Machine, beside: &[Beside]) -> Result<(), RunError> {
    for Beside { tap, mac, .. } in beside {
        if machine.link(tap).is_none_or(|link| link.mac != Some(*mac)) {
            let error = io::Error::other("the kernel did not give it the MAC address of its port");
            return Err(RunError::Machine(format!("tap {tap}"), error));
        }
    }
    Ok(())
}

fn machine_error(what: impl Into<String>) -> impl FnOnce(io::Error) -> RunError {
    let what = what.into();
    move |error| RunError::Machine(what, error)
}

/// A router with its threads.
struct Router<'l> {
    config: Config,
    folder: std::path::PathBuf,
    loaded: Vec<Loaded>,
    filters: FiltersInUse,
    trace: Option<trace::Running>,
    samples: SamplesInUse,
    sides: Sides,
    machine: Machine,
    netlink: Netlink,
    filter: Option<Filter>,
    kept: open::Kept,
    hops: Hops,
    /// Which gateways are dead though their links are up, and the backups.
    outage: Outage,
    bfd: BfdInUse,
    feeds: Feeds,
    verify: Verify,
    vrfs: Vec<Vrf>,
    /// Routes of each VRF.
    counts: Vec<Dual<usize>>,
    shared: Arc<Shared>,
    devices: BTreeMap<u32, u16>,
    /// The routes and networks that lead nowhere, as the log has named them.
    warned: Vec<String>,
    /// Devices that were renamed, with their present names.
    called: BTreeMap<String, String>,
    /// Neighbours that somebody has set in the kernel, which are never asked for.
    fixed: BTreeMap<Key, Mac>,
    /// When forwarding begins at the latest; `None` once it has begun.
    begin_ns: Option<u64>,
    /// Events have come that are not in the fabric yet.
    is_behind: bool,
    /// Turns of the main thread; wraps around.
    turns: u32,
    counters: Vec<Arc<[PortCounters]>>,
    /// The counts of programs in the kernel.
    fast_counters: Arc<[PortCounters]>,
    /// When the kernel is asked next for features of devices.
    features_ns: u64,
    lost: Arc<[AtomicU64]>,
    taken: Vec<Arc<AtomicU64>>,
    workers: Threads,
    /// Ends the sleep of the main thread.
    bell: Arc<Bell>,
    /// End the sleep of the threads.
    alarms: Vec<Alarm>,
    log: &'l mut dyn FnMut(Level, &str),
    /// The router that takes over from this one.
    successor: Option<Successor>,
    /// The router that this one takes over, until it has. Dropped after everything else, because that router goes on then.
    predecessor: Option<Predecessor>,
}

/// The final counters of a port.
#[derive(Debug, Clone)]
pub struct Ended {
    /// Its name.
    pub port: String,
    /// What became of its packets.
    pub totals: Totals,
    /// Frames that the kernel had no slot for; the router never had them.
    pub ring_lost: u64,
}

/// Runs a router until the stop flag is set, or until all of its files are read. It reads the configuration again when the reload
/// flag is set. Paths in the configuration are relative to `folder`. Returns the final counters of each port.
///
/// # Errors
/// When the router cannot start. Nothing has changed in this case, and a router that was to be taken over goes on.
pub fn run(config: Config, folder: &Path, flags: &Flags, calls: Calls<'_>) -> Result<Vec<Ended>, RunError> {
    let Calls { read, log, notify } = calls;
    // Workers go on until the kernel forwards again, so they have a flag of their own.
    let (outer, flags) = (flags, &Flags { stop: Arc::default(), reload: Arc::clone(&flags.reload) });
    let mut router = Router::start(config, folder, flags, log)?;
    let (mut socket, doors) = match router.open_doors() {
        Ok(doors) => doors,
        Err(error) => {
            flags.stop.store(true, Ordering::Relaxed);
            router.end()?;
            return Err(error);
        }
    };
    if router.predecessor.is_none() {
        doors.admit();
    }
    let (mut asked, mut is_busy, mut busy_ns) = (Vec::new(), false, sys::now_ns());
    let mut is_taken_over = false;
    while !outer.stop.load(Ordering::Relaxed) && !router.workers.ended() {
        match router.begin_if_ready(is_busy) {
            Ok(true) => {
                socket.own();
                doors.admit();
                notify(Notice::Ready);
            }
            Ok(false) => {}
            Err(error) => {
                flags.stop.store(true, Ordering::Relaxed);
                router.end()?;
                return Err(error);
            }
        }
        notify(Notice::Alive);
        let successor = router.successor.as_ref().map_or_else(sys::nothing, sys::readable);
        let bfd = router.bfd.readable();
        let mut fds = [sys::readable(&router.netlink), sys::readable(&*router.bell), successor, bfd];
        let is_calm = sys::now_ns() > busy_ns + CALM_NS;
        let most_ms = if is_calm { IDLE_MS } else { BUSY_MS };
        // A signal may end the wait early, which does no harm.
        let _ = sys::poll(&mut fds, if is_busy { 0 } else { most_ms });
        let [has_events, rings, ..] = fds.map(|fd| fd.revents != 0);
        if rings {
            router.bell.quiet();
        }
        if router.follow_successor() {
            is_taken_over = true;
            break;
        }
        let has_bfd = router.follow_bfd();
        router.follow(has_events);
        router.follow_fast();
        let taken = router.take_feeds();
        is_busy = taken.unwrap_or(false) | router.verify();
        if is_busy || has_bfd || taken.is_some() || router.begin_ns.is_some() {
            busy_ns = sys::now_ns();
        }
        router.ask_kernel(&mut asked);
        router.follow_filters();
        router.end_trace();
        router.follow_samples();
        for question in std::iter::from_fn(|| doors.next()).take(QUESTIONS) {
            match question {
                Question::Control(stream, line) => socket.answer(&mut router, &doors, stream, &line),
                Question::Metrics(stream) => {
                    doors.answer(Caller::Metrics(stream), metrics::response(Ok(metrics::text(&router))));
                }
            }
            // There may be more.
            is_busy = true;
        }
        if flags.reload.swap(false, Ordering::Relaxed) {
            notify(Notice::Reloading);
            router.reload(read().map_err(ControlError::Unread));
            notify(Notice::Ready);
        }
    }
    match &router.successor {
        Some(successor) if is_taken_over => {
            let process = successor.process();
            (router.log)(Level::Note, &format!("taken over by process {}", process.unwrap_or_default()));
            socket.leave();
        }
        _ => drop(socket),
    }
    // A successor has the same listeners: clients that come now are its.
    drop(doors);
    notify(Notice::Stopping);
    router.kept.hand_back();
    // Threads empty their rings first.
    flags.stop.store(true, Ordering::Release);
    router.end()
}

/// How long the feeds of a router that takes over have at least, for their first full tables.
const TAKE_OVER_S: u64 = 60;
/// How long threads may take to empty rings that are about to be closed.
const DRAIN: Duration = Duration::from_millis(10);

impl<'l> Router<'l> {
    fn start(
        config: Config,
        folder: &Path,
        flags: &Flags,
        log: &'l mut dyn FnMut(Level, &str),
    ) -> Result<Self, RunError> {
        let loaded = plan::load(&config, folder)?;
        let filters = FiltersInUse::load(&config, folder)?;
        let ports = plan::ports(&config);
        let mut predecessor = takeover::meet(&config, log)?;
        // Open the taps first, because they are devices, which the kernel must report in the dump below.
        let mut queues = open::files_and_taps(&ports, &config, folder, predecessor.as_mut())?;
        let mut kept = open::Kept::default();
        let beside = open::dpdk(&ports, &config, &mut queues, &mut kept)?;
        let mut netlink = Netlink::open().map_err(machine_error("netlink"))?;
        set_up(&mut netlink, &beside)?;
        let new_machine = || {
            let mut machine = Machine::default();
            for (name, port) in kept.ports() {
                machine.set_port(name, port);
            }
            machine
        };
        let mut sides = Sides::default();
        if config.interfaces.iter().any(|line| line.host.is_some()) {
            let mut machine = new_machine();
            let take = |event| _ = machine.take(&event);
            netlink.dump(take).map_err(machine_error("asking the kernel for links"))?;
            if let Some((tap, error)) = sides.follow(&config, &machine, &mut netlink, queues.taps()).pop() {
                return Err(RunError::Machine(format!("tap {tap}"), error));
            }
        }
        let mut machine = new_machine();
        let mut neighbours = Vec::new();
        netlink
            .dump(|event| match event {
                Event::Neighbour(neighbour) => neighbours.push(neighbour),
                event => {
                    machine.take(&event);
                }
            })
            .map_err(machine_error("asking the kernel for links and addresses"))?;
        check_taps(&machine, &beside)?;
        if let refused @ [_, ..] = &*plan::refused(&config, &machine) {
            return Err(RunError::Config(refused.join("; ")));
        }
        machine.hold(plan::devices(&config));
        let vrfs = plan::tables(&config, &[])?;
        let mut hops = Hops::default();
        let mut plan = plan::plan(&config, &machine, &vrfs, &loaded, &mut hops)?;
        plan.warnings.iter().for_each(|warning| log(Level::Warning, warning));
        filters.enter(&mut plan.fabric);
        let (mut feeds, mut counts) = (Feeds::new(&config), vec![Dual::default(); vrfs.len()]);
        let outage = Outage { backups: config.backups.clone(), ..Outage::default() };
        let own = std::mem::take(&mut plan.routes);
        let near = (&*plan.fabric.interfaces, &plan.devices);
        let taken = feeds.install.take(&feeds.rib, near, &mut hops, Some(own), usize::MAX);
        plan.fabric.hops = outage.in_use(&hops, &plan.fabric.interfaces);
        let entered = feeds.install.enter(&feeds.rib, &taken, &vrfs, &mut counts);
        // Routes are entered before the workers start, so that the first packets find them.
        entered?;
        let lost: Arc<[AtomicU64]> = (0..change::most_ports(&config)).map(|_| AtomicU64::new(0)).collect();
        let devices = plan.devices.clone();
        let plan_locals = plan.locals;
        let bell = Arc::new(Bell::new().map_err(machine_error("a descriptor"))?);
        let shared = Shared::new(plan.fabric, config.limits);
        let ring = Arc::clone(&bell);
        shared.neighbours.set_bell(move || ring.ring());
        shared.own.set(plan::own_addresses(&config, &shared.fabric()));
        for &number in devices.values() {
            shared.neighbours.set_kernel(number);
        }
        kept.fast = open::fast(&config, &vrfs)?;
        let given = (&mut queues, &mut kept, predecessor.as_mut());
        let filter = open::rings(&ports, &machine, &config, &plan_locals, given)?;
        // One that takes over has time, because the other one forwards.
        let least_s = if predecessor.is_some() { TAKE_OVER_S } else { 0 };
        let patience_s = u64::from(config.start_after_s).max(least_s);
        let mut router = Self {
            folder: folder.to_owned(),
            loaded,
            filters,
            trace: None,
            samples: SamplesInUse::default(),
            sides,
            machine,
            netlink,
            filter,
            kept,
            hops,
            outage,
            bfd: BfdInUse::new(&config, folder),
            feeds,
            verify: Verify::default(),
            vrfs,
            counts,
            shared,
            devices,
            called: BTreeMap::new(),
            warned: plan.warnings,
            fixed: BTreeMap::new(),
            begin_ns: Some(sys::now_ns() + patience_s * 1_000_000_000),
            is_behind: false,
            turns: 0,
            counters: Vec::new(),
            fast_counters: (0..change::most_ports(&config)).map(|_| PortCounters::default()).collect(),
            features_ns: 0,
            lost,
            taken: Vec::new(),
            workers: Threads::default(),
            bell,
            alarms: Vec::new(),
            log,
            config,
            successor: None,
            predecessor,
        };
        for api::MissingInterface { name, device } in router.missing() {
            let text = format!(
                "interface {name}: there is no device {device}; it is taken up when it comes (--require-devices refuses to start)"
            );
            (router.log)(Level::Warning, &text);
        }
        for family in ["IPv4", "IPv6"].into_iter().filter(|_| !router.devices.is_empty()) {
            let (wanted, most) = (router.config.limits.neighbours, crate::neighbour::most_of_kernel(family));
            if let Some(most) = most.filter(|&most| most < wanted) {
                let file = format!("net.{}.neigh.default.gc_thresh3", family.to_ascii_lowercase());
                let text = format!(
                    "the kernel keeps at most {most} {family} neighbours, 'neighbours.most' is {wanted}: raise {file}"
                );
                (router.log)(Level::Note, &text);
            }
        }
        neighbours.iter().for_each(|neighbour| router.neighbour(neighbour, false));
        router.publish_fast();
        router.take_up_samples();
        router.spawn(&ports, queues, flags)?;
        let predecessor = router.predecessor.as_mut();
        if let Err(error) = router.feeds.start(&router.config, &router.folder, &flags.stop, predecessor) {
            flags.stop.store(true, Ordering::Relaxed);
            router.end()?;
            return Err(error);
        }
        Ok(router)
    }

    /// Opens the sockets for queries, and then drops all capabilities. With devices of the kernel it keeps those that it needs to
    /// ask the kernel for neighbours, and to open sockets on a device that comes later.
    fn open_doors(&mut self) -> Result<(socket::Server, Doors), RunError> {
        let path = &self.config.socket;
        let mut predecessor = self.predecessor.as_mut();
        // The folder of the default alone is made, where no unit has made it. Another one that is missing is likely a mistake.
        if let Some(folder) = path.parent().filter(|folder| path.as_os_str() == SOCKET && !folder.exists()) {
            std::fs::create_dir(folder).map_err(machine_error(format!("folder {}", folder.display())))?;
            (self.log)(Level::Note, &format!("made the folder {}", folder.display()));
        }
        let (socket, listener) = match predecessor.as_mut().and_then(|predecessor| predecessor.control()) {
            Some(listener) => (socket::Server::inherited(path), listener),
            None => socket::Server::open(path)
                .map_err(machine_error(format!("control socket {}", path.display())))?,
        };
        let listen = |address| {
            let inherited = predecessor.as_mut().and_then(|predecessor| predecessor.metrics(address));
            let listening = inherited.map_or_else(|| metrics::listen(address), Ok);
            listening.map_err(machine_error(format!("metrics at {address}")))
        };
        let metrics = self.config.metrics.map(listen).transpose()?;
        let doors = Doors::open(listener, metrics, Arc::clone(&self.bell))?;
        let kernel = self
            .config
            .interfaces
            .iter()
            .any(|interface| interface.backend.link().is_some() || interface.host.is_some());
        let xdp = self.config.interfaces.iter().any(|line| matches!(line.backend, Backend::Xdp { .. }));
        let keep = if kernel { sys::NET_ADMIN | sys::NET_RAW } else { 0 };
        let keep = keep | if xdp { sys::IPC_LOCK } else { 0 };
        sys::keep_capabilities(keep).map_err(machine_error("dropping capabilities"))?;
        Ok((socket, doors))
    }

    /// Begins to forward, once the first full table of every feed is in the tables, or the time for that is over. The kernel
    /// forwards until then, so that nothing is lost at a start. Returns whether it has begun now.
    fn begin_if_ready(&mut self, is_busy: bool) -> Result<bool, RunError> {
        let Some(due_ns) = self.begin_ns else { return Ok(false) };
        let late = sys::now_ns() >= due_ns;
        let (waiting, is_changing): (Vec<String>, bool) = {
            let rib = self.feeds.rib();
            let waiting = rib.awaited(&self.feeds.inherited).map(|feed| feed.name.clone()).collect();
            (waiting, is_busy || rib.is_dirty())
        };
        if !late && (is_changing || !waiting.is_empty()) {
            return Ok(false);
        }
        self.publish_fast();
        if self.predecessor.is_some() {
            if !self.take_over(late.then_some(&waiting[..]))? {
                return Ok(false);
            }
        } else if let Some(filter) = &self.filter {
            self.kept.begin(&self.machine, filter)?;
        }
        self.begin_ns = None;
        for feed in &waiting {
            (self.log)(
                Level::Warning,
                &format!("feed {feed}: no full table in time; forwarding begins without it"),
            );
        }
        let threads = self.config.shape.threads(self.config.threads);
        let name = if threads == 1 { "thread" } else { "threads" };
        (self.log)(Level::Note, &format!("forwarding with {threads} {name}"));
        Ok(true)
    }

    /// Starts the threads.
    fn spawn(&mut self, ports: &[Backend], queues: Queues, flags: &Flags) -> Result<(), RunError> {
        let places = threads::places(&self.config);
        let mut jobs = Vec::new();
        let most = change::most_ports(&self.config);
        let counters = || -> Arc<[PortCounters]> { (0..most).map(|_| PortCounters::default()).collect() };
        let mut made = Vec::new();
        for _ in 0..self.config.threads {
            made.push(counters());
            let worker = Worker::new(Arc::clone(&self.shared), Arc::clone(&made[made.len() - 1]))
                .map_err(|error| RunError::Config(error.to_string()))?;
            self.taken.push(worker.taken());
            jobs.push(worker);
        }
        let common = Common { stop: Arc::clone(&flags.stop), lost: Arc::clone(&self.lost) };
        let is_side = |port: &Backend| matches!(port, Backend::Tap { is_side: true, .. });
        let ends = ports.iter().map(|port| stage::End {
            kernel: matches!(port, Backend::Packet { .. }),
            sends: !matches!(port, Backend::Pcap { output: None, .. }),
            segments: matches!(port, Backend::Packet { .. }) || is_side(port),
            pool: matches!(port, Backend::Dpdk { .. }).then(|| self.kept.pool()).flatten(),
        });
        let rings = StageRings { ports: ends.collect(), symmetric: self.config.hash.symmetric };
        let mut count = || {
            made.push(counters());
            Arc::clone(&made[made.len() - 1])
        };
        let jobs =
            threads::jobs(self.config.shape, jobs, queues, &rings, &common, &mut count, &mut self.alarms);
        let jobs = jobs.map_err(machine_error("rings between stages"))?;
        self.counters = made;
        let threads = threads::start(jobs, &places, self.config.run_time);
        self.workers = threads.map_err(machine_error("starting a thread"))?;
        Ok(())
    }

    /// Reads the kernel's events, if there are any, and applies them.
    fn follow(&mut self, has_events: bool) {
        let mut events = Vec::new();
        let read = match has_events {
            true => self.netlink.read(|event| events.push(event)),
            false => Ok(()),
        };
        let (mut changed, lost) = self.take_events(&events);
        changed |= std::mem::take(&mut self.is_behind);
        self.turns = self.turns.wrapping_add(1);
        // Not every turn, because some drivers need long to report the state of a link.
        if self.turns.is_multiple_of(LINKS) {
            for (name, port) in self.kept.ports() {
                changed |= self.machine.set_port(name, port);
            }
        }
        if lost || read.is_err() {
            (self.log)(Level::Warning, "events of the kernel were lost: asking for everything again");
            let (mut machine, mut neighbours) = (Machine::default(), Vec::new());
            let asked = self.netlink.dump(|event| match event {
                Event::Neighbour(neighbour) => neighbours.push(neighbour),
                event => {
                    machine.take(&event);
                }
            });
            if asked.is_ok() {
                // The dump lacks the ports that are unknown to the kernel. Without this, their links would seem to be gone.
                machine.keep(&self.machine);
                changed |= machine != self.machine;
                self.machine = machine;
                neighbours.iter().for_each(|neighbour| self.neighbour(neighbour, false));
            }
        }
        for Duplicate { key, mac, used } in self.shared.own.take_duplicates() {
            let fabric = self.shared.fabric();
            let line = fabric.interfaces.get(usize::from(key.interface));
            let (name, address) = (line.map_or("", |interface| &interface.name), key.ip());
            let use_ = if used { "goes on using it" } else { "does not use it" };
            let reason = format!(
                "interface {name}: {mac} has the address {address} too: give one of them another; the router {use_}"
            );
            (self.log)(Level::Warning, &reason);
        }
        if changed {
            self.leave_fallen_links();
            self.follow_devices();
            self.replan_or_log();
        }
    }

    /// Applies events of the kernel. Returns whether links or addresses have changed, and whether events were lost.
    fn take_events(&mut self, events: &[Event]) -> (bool, bool) {
        let (mut changed, mut lost) = (false, false);
        for event in events {
            match event {
                Event::Neighbour(neighbour) => self.neighbour(neighbour, false),
                Event::NeighbourGone(neighbour) => self.neighbour(neighbour, true),
                Event::Lost => lost = true,
                event => changed |= self.machine.take(event),
            }
        }
        (changed, lost)
    }

    fn replan_or_log(&mut self) {
        if let Err(reason) = self.replan() {
            (self.log)(
                Level::Warning,
                &format!("links or addresses have changed, and cannot be followed: {reason}"),
            );
        }
    }

    /// Moves ports to the devices that their names lead to now, and logs the state of these.
    fn follow_devices(&mut self) {
        self.machine.hold(plan::devices(&self.config));
        let taps = self.kept.taps();
        for (tap, error) in self.sides.follow(&self.config, &self.machine, &mut self.netlink, taps) {
            (self.log)(Level::Warning, &format!("tap {tap} cannot follow its port: {error}"));
        }
        let followed = self.filter.as_ref().map(|filter| self.kept.follow(&self.machine, filter));
        for (device, done) in followed.into_iter().flatten() {
            match done {
                Followed::Gone if self.machine.link(&device).is_some() => {
                    let refusal = self.machine.link(&device).and_then(Link::refusal);
                    let text = refusal.unwrap_or_else(|| format!("device {device} is another's"));
                    let text =
                        format!("{text}: until then its frames are not taken, and its interfaces are down");
                    (self.log)(Level::Warning, &text);
                }
                Followed::Gone => (self.log)(
                    Level::Warning,
                    &format!(
                        "device {device} is gone: what leads there is dropped as interface-missing until it comes again"
                    ),
                ),
                Followed::TakenUp(index) => (self.log)(
                    Level::Note,
                    &format!("device {device} has come, with number {index}: taken up"),
                ),
                Followed::Failed(reason) => (self.log)(
                    Level::Warning,
                    &format!(
                        "device {device} cannot be taken up: {reason}; set it down and up, or restart the router"
                    ),
                ),
            }
        }
        let called = plan::devices(&self.config).filter_map(|device| {
            let name = &self.machine.link(device)?.name;
            (name != device).then(|| (device.to_owned(), name.clone()))
        });
        let called = called.collect();
        for (device, name) in &called {
            if self.called.get(device) != Some(name) {
                (self.log)(
                    Level::Warning,
                    &format!(
                        "device {device} is called {name} now: the router goes on with it; change 'device', or a restart does not find it"
                    ),
                );
            }
        }
        self.called = called;
    }

    /// Returns the interfaces whose devices are missing, each with its device.
    fn missing(&self) -> Vec<api::MissingInterface> {
        let fabric = self.shared.fabric();
        let lines = fabric.interfaces.iter().zip(&self.config.interfaces);
        lines
            .filter(|(interface, line)| interface.missing && !line.removed)
            .map(|(interface, line)| api::MissingInterface {
                name: interface.name.clone(),
                device: self.missing_device(line).to_owned(),
            })
            .collect()
    }

    /// Returns the device of an interface that is missing: that of its port, or its tap.
    fn missing_device<'c>(&self, line: &'c crate::config::Interface) -> &'c str {
        let names = [line.backend.link(), line.machine()].into_iter().flatten();
        let mut missing = names.filter(|name| self.machine.link(name).is_none());
        missing.next().unwrap_or_default()
    }

    fn neighbour(&mut self, neighbour: &Neighbour, gone: bool) {
        let Some(&interface) = self.devices.get(&neighbour.index) else { return };
        let key = Key::of(interface, neighbour.ip);
        let now_ns = sys::now_ns();
        match neighbour.mac.filter(|_| neighbour.is_fixed && !gone) {
            Some(mac) => _ = self.fixed.insert(key, mac),
            None => _ = self.fixed.remove(&key),
        }
        match neighbour.mac {
            Some(mac) if !gone && mac.is_station() => {
                self.shared.neighbours.learn(key, mac, !neighbour.stale, true, now_ns);
            }
            // A removed neighbour is resolved again when it is needed, even if it had failed before. An operator may have removed
            // it for that.
            _ if gone => self.shared.neighbours.lose(key, false, now_ns),
            _ if neighbour.failed => self.shared.neighbours.lose(key, true, now_ns),
            _ => {}
        }
    }

    /// Passes requests for neighbours on to the kernel.
    fn ask_kernel(&mut self, asked: &mut Vec<Ask>) {
        self.shared.neighbours.take_asked(asked);
        for ask in asked.drain(..) {
            let key = match ask {
                Ask::Use(probe) => probe.key,
                Ask::Forget(key) => key,
            };
            let device = self.devices.iter().find(|entry| *entry.1 == key.interface).map(|entry| *entry.0);
            match (ask, device, self.fixed.get(&key)) {
                // Nobody verifies it, so it is as good as it was.
                (Ask::Use(_), _, Some(&mac)) => {
                    self.shared.neighbours.learn(key, mac, true, true, sys::now_ns());
                }
                // A request that the kernel does not take is repeated, or the neighbour times out.
                (Ask::Use(probe), Some(device), None) => {
                    _ = self.netlink.use_neighbour(device, key.ip());
                    if probe.mac.is_none() {
                        _ = self.netlink.ask_for_neighbour(device, key.ip());
                    }
                }
                // It may have been found, or requested again, meanwhile.
                (Ask::Forget(_), Some(device), None)
                    if self.shared.neighbours.get(&key) == Answer::Unknown =>
                {
                    _ = self.netlink.forget_neighbour(device, key.ip());
                }
                _ => {}
            }
        }
    }

    /// Rebuilds the fabric and the routes from the present links and addresses.
    fn replan(&mut self) -> Result<(), ControlError> {
        let plan = plan::plan(&self.config, &self.machine, &self.vrfs, &self.loaded, &mut self.hops)?;
        self.take_up(plan)
    }

    fn take_up(&mut self, mut plan: Plan) -> Result<(), ControlError> {
        // Each is said once, for as long as it holds.
        for warning in plan.warnings.iter().filter(|warning| !self.warned.contains(warning)) {
            (self.log)(Level::Warning, warning);
        }
        self.warned = std::mem::take(&mut plan.warnings);
        // Keep the old fabric, to see below which links have changed.
        let before = self.shared.fabric();
        let state = |interface: &Interface| (interface.up, interface.missing);
        let after: Vec<_> = plan.fabric.interfaces.iter().map(state).collect();
        let has_new = plan.devices.keys().any(|device| !self.devices.contains_key(device));
        if let Some(filter) = &mut self.filter {
            filter.set_addresses(plan.locals.iter().copied()).map_err(ControlError::Filter)?;
        }
        self.devices.clone_from(&plan.devices);
        for &number in self.devices.values() {
            self.shared.neighbours.set_kernel(number);
        }
        let own = std::mem::take(&mut plan.routes);
        let near = (&*plan.fabric.interfaces, &plan.devices);
        let feeds = &mut self.feeds;
        let taken = feeds.install.take(&feeds.rib, near, &mut self.hops, Some(own), usize::MAX);
        // Devices and interfaces of sessions may be others now.
        self.outage.dead = self.bfd.dead(&self.machine, &plan.fabric.interfaces, &self.devices);
        plan.fabric.hops = self.outage.in_use(&self.hops, &plan.fabric.interfaces);
        self.filters.enter(&mut plan.fabric);
        // Publish the fabric before the routes. Its next hops include the next hops of the old routes, but a worker with the old
        // fabric would not know the new ones.
        self.shared.own.set(plan::own_addresses(&self.config, &plan.fabric));
        self.publish(plan.fabric);
        self.counts.resize(self.vrfs.len(), Dual::default());
        let feeds = &mut self.feeds;
        let entered = feeds.install.enter(&feeds.rib, &taken, &self.vrfs, &mut self.counts);
        // All else is taken up already, so routes that a table refuses are tried again and do not undo it.
        if let Err(error) = entered {
            self.log_refused(&error);
        }
        for (number, (interface, &(up, missing))) in before.interfaces.iter().zip(&after).enumerate() {
            if interface.up != up {
                self.tell_link(number, &interface.name, (up, missing));
            }
        }
        if has_new {
            // The kernel may have neighbours of a device that it reported before the router had the device.
            let mut events = Vec::new();
            if self.netlink.dump_neighbours(|event| events.push(event)).is_ok() {
                let (changed, lost) = self.take_events(&events);
                self.is_behind |= changed || lost;
            }
        }
        Ok(())
    }

    /// Replaces the fabric, and waits a while until all workers have taken it up. Returns its version.
    fn publish(&mut self, fabric: Fabric) -> u64 {
        let version = self.shared.replace(fabric);
        self.publish_fast();
        self.alarms.iter().for_each(Alarm::ring);
        let begin = std::time::Instant::now();
        // A worker that has ended never takes it up. Do not wait for it.
        while !self.workers_have(version) && begin.elapsed() < TAKE_UP && !self.workers.any_ended() {
            std::thread::sleep(Duration::from_millis(1));
        }
        version
    }

    /// Gives the programs in the kernel the present fabric.
    fn publish_fast(&mut self) {
        self.kept.publish_fast(&self.shared.fabric(), &self.shared.neighbours);
    }

    /// Gives the programs in the kernel all changes, and takes over their counts.
    fn follow_fast(&mut self) {
        let now_ns = sys::now_ns();
        let with_features = now_ns >= self.features_ns;
        if with_features {
            self.features_ns = now_ns + FEATURES_NS;
        }
        self.kept.follow_fast(&self.shared.fabric(), &self.shared.neighbours, with_features);
        let Some(fast) = &mut self.kept.fast else { return };
        fast.count(&self.fast_counters);
        if let Some(error) = fast.take_error() {
            let text = format!("fast interfaces do not follow routes any more: restart the router: {error}");
            (self.log)(Level::Warning, &text);
        }
    }

    /// Returns whether all workers have taken up this fabric, or a later one.
    fn workers_have(&self, version: u64) -> bool {
        self.taken.iter().all(|taken| taken.load(Ordering::Acquire) >= version)
    }

    /// Applies a configuration that was read again. If that fails, logs the reason and keeps the old one.
    fn reload(&mut self, config: Result<Config, ControlError>) {
        let applied = config.and_then(|config| self.apply(config));
        match applied {
            Ok(()) => (self.log)(Level::Note, "configuration reloaded"),
            Err(reason) => (self.log)(Level::Warning, &format!("configuration not reloaded: {reason}")),
        }
    }

    fn apply(&mut self, config: Config) -> Result<(), ControlError> {
        let mut config = config;
        (config.require_devices, config.take_over) = (self.config.require_devices, self.config.take_over);
        if self.successor.is_some() || self.predecessor.is_some() {
            return Err(ControlError::Restart("a router that is being taken over"));
        }
        config.keep_numbers(&self.config);
        // The gate needs rights that the router has at its start alone. Once there it stays, so that no packet gets past the rules.
        if config.gate && !self.config.gate {
            return Err(ControlError::Restart(
                "filter.local or policer, which judge packets on devices of the kernel for the first time,",
            ));
        }
        config.gate = self.config.gate;
        let threads = |config: &Config| (config.threads, config.shape, config.run_time, config.pin);
        if threads(&config) != threads(&self.config)
            || config.bridge != self.config.bridge
            || (&config.socket, config.metrics) != (&self.config.socket, self.config.metrics)
            || config.dpdk != self.config.dpdk
            || config.limits != self.config.limits
        {
            return Err(ControlError::Restart("threads, mode, limits of neighbours, the socket or metrics"));
        }
        let change = change::change(&self.config, &config, self.counters[0].len(), self.filter.is_some())?;
        let has_feeds = !config.feeds.is_empty();
        if config.feeds != self.config.feeds || (has_feeds && config.vrfs != self.config.vrfs) {
            return Err(ControlError::Restart("feeds, or VRFs that feeds may have routes of,"));
        }
        if (config.ipv4, config.ipv6) != (self.config.ipv4, self.config.ipv6) {
            return Err(ControlError::Restart("engines"));
        }
        // By number and name: their maps have the number, and the tables the name.
        let fast = |config: &Config| -> Vec<(usize, String)> {
            let lines = config.interfaces.iter().filter(|line| line.backend.is_fast() && !line.removed);
            lines.map(|line| (line.vrf, config.vrfs[line.vrf].clone())).collect()
        };
        let before = fast(&self.config);
        if fast(&config).iter().any(|vrf| !before.contains(vrf)) {
            return Err(ControlError::Restart("VRFs of fast interfaces"));
        }
        // All that may fail is before anything changes, so that the old configuration stays in place: a file that cannot be loaded, a
        // port that cannot be opened, addresses that the filter has no room for.
        let refused = plan::refused(&config, &self.machine);
        let before = plan::refused(&self.config, &self.machine);
        // Of devices that have become such ones since, the log has told.
        let refused: Vec<String> = refused.into_iter().filter(|line| !before.contains(line)).collect();
        if !refused.is_empty() {
            return Err(ControlError::Port(refused.join("; ")));
        }
        let loaded = plan::load(&config, &self.folder)?;
        let filters = self.filters.again(&self.config, &config, &self.folder)?;
        let vrfs = plan::tables(&config, &self.vrfs)?;
        let added = self.kept.open(&change, &config, self.filter.as_ref(), &self.folder)?;
        let plan = plan::plan(&config, &self.machine, &vrfs, &loaded, &mut self.hops)?;
        if let Some(filter) = &mut self.filter {
            filter.set_addresses(plan.locals.iter().copied()).map_err(ControlError::Filter)?;
        }
        if config.history != self.config.history {
            self.feeds.rib().keep_history(config.history);
        }
        self.feeds.rib().limit_vrfs(config.vrf_limits.clone());
        self.feeds.rib().limit_paths(Some(config.path_bytes));
        self.outage.backups.clone_from(&config.backups);
        self.config = config;
        let before = std::mem::replace(&mut self.filters, filters);
        self.loaded = loaded;
        self.vrfs = vrfs;
        self.kept.remove(&change);
        self.take_up(plan)?;
        self.filters.go_on_from(&before.sets, &before.policers);
        self.take_up_samples();
        self.take_up_bfd();
        // Threads know the new ports now. Their sockets get the devices that are there.
        self.kept.add(added);
        self.follow_devices();
        for name in &change.names {
            (self.log)(Level::Note, name);
        }
        Ok(())
    }

    /// Returns the numbers of the ports that an interface has. Others were removed.
    fn ports(&self) -> Vec<usize> {
        let fabric = self.shared.fabric();
        (0..fabric.ports.len()).filter(|&port| !fabric.ports[port].is_unused()).collect()
    }

    /// Returns the counters of each of the [`ports`](Self::ports), summed over all threads.
    fn totals(&self) -> Vec<(String, Totals)> {
        let fabric = self.shared.fabric();
        let sum = |port: usize| {
            let mut totals = Totals::default();
            self.counters.iter().for_each(|counters| counters[port].add_to(&mut totals));
            self.fast_counters[port].add_to(&mut totals);
            (fabric.ports[port].name.clone(), totals)
        };
        self.ports().into_iter().map(sum).collect()
    }

    fn end(mut self) -> Result<Vec<Ended>, RunError> {
        self.alarms.iter().for_each(Alarm::ring);
        if let Some(fast) = &mut self.kept.fast {
            fast.count(&self.fast_counters);
        }
        self.feeds.join();
        std::mem::take(&mut self.workers).join()?;
        let ended = |(number, (port, totals)): (usize, (String, Totals))| {
            let ring_lost = self.lost[number].load(Ordering::Relaxed);
            Ended { port, totals, ring_lost }
        };
        Ok(self.ports().into_iter().zip(self.totals()).map(ended).collect())
    }
}
