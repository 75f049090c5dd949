//! A router that runs: threads that forward, and one that follows the kernel, the configuration and those who ask.
//!
//! ```text
//! main thread     netlink (links, addresses, neighbours) ─> fabric, routes, filter      control socket, signals
//! worker 0..n     burst by burst: receive, look up, send                                 worker 0 also keeps time for neighbours
//! ```
//!
//! Workers learn of changes by a version number that they read once a burst; nothing that the main thread does stops them.

mod machine;
mod plan;
mod socket;

use core::fmt;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::config::{Backend, Config};
use crate::count::{PortCounters, Totals};
use crate::forward::fabric::Vrf;
use crate::forward::{Shared, Worker};
use crate::io::packet::{Receive, Transmit};
use crate::io::pcap;
use crate::io::ports::{Input, Ports, Sink, Source};
use crate::io::tap::Tap;
use crate::kernel::filter::{Attached, Filter};
use crate::kernel::netlink::{Event, Neighbour, Netlink};
use crate::kernel::sys;
use crate::neighbour::{Key, Probe};

use machine::Machine;
use plan::{Hops, Loaded, Plan};
pub use socket::ask;

/// How long the main thread sleeps at most: a request for the kernel to find a neighbour waits that long.
const TURN_MS: i32 = 2;
/// How long a worker waits for a frame where none is there.
const IDLE_MS: i32 = 1;
const TICK_NS: u64 = 100_000_000;
/// How long workers may take to take up a new fabric.
const TAKE_UP: Duration = Duration::from_secs(2);

/// What is told to whoever runs the router: never a line a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Something is wrong that the router goes on with.
    Warning,
    /// Something has changed.
    Note,
}

/// What others want of the router, from signal handlers.
#[derive(Debug, Default, Clone)]
pub struct Flags {
    /// End in order.
    pub stop: Arc<AtomicBool>,
    /// Read the configuration again.
    pub reload: Arc<AtomicBool>,
}

/// Why the router does not start, or ends.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// Something of the machine is missing, or refused: what, and why.
    Machine(String, io::Error),
    /// The configuration cannot be applied.
    Config(String),
    /// A file of frames cannot be read.
    Pcap(String, pcap::PcapError),
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
            Self::Pcap(file, error) => write!(f, "{file}: {error}"),
        }
    }
}

impl core::error::Error for RunError {}

fn machine_error(what: impl Into<String>) -> impl FnOnce(io::Error) -> RunError {
    let what = what.into();
    move |error| RunError::Machine(what, error)
}

/// A router with its threads.
struct Router<'l> {
    config: Config,
    folder: std::path::PathBuf,
    loaded: Vec<Loaded>,
    machine: Machine,
    netlink: Netlink,
    filter: Option<Filter>,
    _attached: Vec<Attached>,
    hops: Hops,
    vrfs: Vec<Vrf>,
    shared: Arc<Shared>,
    devices: std::collections::BTreeMap<u32, u16>,
    counters: Vec<Arc<[PortCounters]>>,
    lost: Arc<[AtomicU64]>,
    taken: Vec<Arc<AtomicU64>>,
    workers: Vec<JoinHandle<Result<(), RunError>>>,
    log: &'l mut dyn FnMut(Level, &str),
}

/// Runs a router until it is told to stop, or until all of its files are read. `read` reads the configuration again, when that
/// is wanted; `folder` is where the paths in it begin. Returns the final counters of each port.
///
/// # Errors
/// When the router cannot start: nothing has changed then.
pub fn run(
    config: Config,
    folder: &Path,
    flags: &Flags,
    read: &mut dyn FnMut() -> Result<Config, String>,
    log: &mut dyn FnMut(Level, &str),
) -> Result<Vec<(String, Totals)>, RunError> {
    let mut router = Router::start(config, folder, flags, log)?;
    let socket = socket::Server::open(&router.config.socket)
        .map_err(machine_error(format!("control socket {}", router.config.socket.display())));
    let socket = match socket {
        Ok(socket) => socket,
        Err(error) => {
            flags.stop.store(true, Ordering::Relaxed);
            router.end()?;
            return Err(error);
        }
    };
    (router.log)(Level::Note, &format!("forwarding with {} threads", router.workers.len()));
    let mut probes = Vec::new();
    while !flags.stop.load(Ordering::Relaxed) && !router.workers.iter().all(JoinHandle::is_finished) {
        let mut fds = [sys::readable(&router.netlink), sys::readable(&socket)];
        // A signal may end the wait early, which does no harm.
        let _ = sys::poll(&mut fds, TURN_MS);
        router.follow();
        router.ask_kernel(&mut probes);
        socket.answer(&router);
        if flags.reload.swap(false, Ordering::Relaxed) {
            router.reload(read());
        }
    }
    flags.stop.store(true, Ordering::Relaxed);
    drop(socket);
    router.end()
}

impl<'l> Router<'l> {
    fn start(
        config: Config,
        folder: &Path,
        flags: &Flags,
        log: &'l mut dyn FnMut(Level, &str),
    ) -> Result<Self, RunError> {
        let loaded = plan::load(&config, folder).map_err(RunError::Config)?;
        let ports = plan::ports(&config);
        // Taps first: they are devices that the kernel then tells of.
        let mut queues = open_files_and_taps(&ports, &config, folder)?;
        let mut netlink = Netlink::open().map_err(machine_error("netlink"))?;
        let mut machine = Machine::default();
        let mut neighbours = Vec::new();
        netlink
            .dump(|event| match event {
                Event::Neighbour(neighbour) => neighbours.push(neighbour),
                event => {
                    machine.take(&event);
                }
            })
            .map_err(machine_error("asking the kernel for links and addresses"))?;
        let vrfs = plan::tables(&config, &[]).map_err(|error| RunError::Config(error.to_string()))?;
        let mut hops = Hops::default();
        let plan = plan::plan(&config, &machine, &vrfs, &loaded, &mut hops).map_err(RunError::Config)?;
        plan.warnings.iter().for_each(|warning| log(Level::Warning, warning));
        for (vrf, routes) in vrfs.iter().zip(&plan.routes) {
            plan::apply(&vrf.table, routes).map_err(|error| RunError::Config(error.to_string()))?;
        }
        let (filter, attached) = attach(&ports, &machine, &plan)?;
        let lost: Arc<[AtomicU64]> = ports.iter().map(|_| AtomicU64::new(0)).collect();
        let devices = plan.devices.clone();
        let shared = Shared::new(plan.fabric, config.limits);
        for &number in devices.values() {
            shared.neighbours.set_kernel(number);
        }
        open_rings(&ports, &machine, &config, &mut queues)?;
        let mut router = Self {
            folder: folder.to_owned(),
            loaded,
            machine,
            netlink,
            filter,
            _attached: attached,
            hops,
            vrfs,
            shared,
            devices,
            counters: Vec::new(),
            lost,
            taken: Vec::new(),
            workers: Vec::new(),
            log,
            config,
        };
        neighbours.iter().for_each(|neighbour| router.neighbour(neighbour, false));
        router.spawn(queues, flags)?;
        Ok(router)
    }

    fn spawn(&mut self, queues: Vec<Vec<(Source, Sink)>>, flags: &Flags) -> Result<(), RunError> {
        for (number, queue) in queues.into_iter().enumerate() {
            let counters: Arc<[PortCounters]> = queue.iter().map(|_| PortCounters::default()).collect();
            let worker = Worker::new(Arc::clone(&self.shared), Arc::clone(&counters))
                .map_err(|error| RunError::Config(error.to_string()))?;
            self.counters.push(counters);
            self.taken.push(worker.taken());
            let mut ports = Ports::default();
            queue.into_iter().for_each(|(source, sink)| ports.push(source, sink));
            let (stop, lost) = (Arc::clone(&flags.stop), Arc::clone(&self.lost));
            let thread = std::thread::Builder::new()
                .name(format!("worker {number}"))
                .spawn(move || forward(worker, ports, &stop, number == 0, &lost))
                .map_err(machine_error("starting a thread"))?;
            self.workers.push(thread);
        }
        Ok(())
    }

    /// Takes in what the kernel has told.
    fn follow(&mut self) {
        let (mut events, mut lost) = (Vec::new(), false);
        let read = self.netlink.read(|event| events.push(event));
        let mut changed = false;
        for event in &events {
            match event {
                Event::Neighbour(neighbour) => self.neighbour(neighbour, false),
                Event::NeighbourGone(neighbour) => self.neighbour(neighbour, true),
                Event::Lost => lost = true,
                event => changed |= self.machine.take(event),
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
                changed |= machine != self.machine;
                self.machine = machine;
                neighbours.iter().for_each(|neighbour| self.neighbour(neighbour, false));
            }
        }
        if changed && let Err(reason) = self.replan() {
            (self.log)(
                Level::Warning,
                &format!("links or addresses have changed, and cannot be followed: {reason}"),
            );
        }
    }

    fn neighbour(&self, neighbour: &Neighbour, gone: bool) {
        let Some(&interface) = self.devices.get(&neighbour.index) else { return };
        let key = match neighbour.ip {
            IpAddr::V4(ip) => Key::v4(interface, ip.into()),
            IpAddr::V6(ip) => Key::v6(interface, ip.into()),
        };
        let now_ns = sys::now_ns();
        match neighbour.mac {
            Some(mac) if !gone && mac.is_station() => {
                self.shared.neighbours.learn(key, mac, !neighbour.stale, true, now_ns);
            }
            _ if gone || neighbour.failed => self.shared.neighbours.lose(key, neighbour.failed, now_ns),
            _ => {}
        }
    }

    /// Passes requests for neighbours on to the kernel.
    fn ask_kernel(&mut self, probes: &mut Vec<Probe>) {
        self.shared.neighbours.take_kernel_probes(probes);
        for probe in probes.drain(..) {
            let device = self.devices.iter().find(|entry| *entry.1 == probe.key.interface);
            if let Some((&device, _)) = device {
                // What the kernel does not take is asked for again, or fails in time.
                let _ = self.netlink.use_neighbour(device, probe.key.ip());
            }
        }
    }

    /// Makes the fabric and the routes again, from what is known now.
    fn replan(&mut self) -> Result<(), String> {
        let plan = plan::plan(&self.config, &self.machine, &self.vrfs, &self.loaded, &mut self.hops)?;
        self.take_up(plan)
    }

    fn take_up(&mut self, plan: Plan) -> Result<(), String> {
        plan.warnings.iter().for_each(|warning| (self.log)(Level::Warning, warning));
        let before = self.shared.fabric();
        let after: Vec<_> = plan.fabric.interfaces.iter().map(|interface| interface.up).collect();
        if let Some(filter) = &mut self.filter {
            filter.set_addresses(plan.locals.iter().copied()).map_err(|error| format!("filter: {error}"))?;
        }
        self.devices.clone_from(&plan.devices);
        // First the fabric, whose next hops include those of the old routes; the routes when all workers have it.
        let version = self.shared.replace(plan.fabric);
        let begin = std::time::Instant::now();
        while self.taken.iter().any(|taken| taken.load(Ordering::Acquire) < version)
            && begin.elapsed() < TAKE_UP
            && !self.workers.iter().any(JoinHandle::is_finished)
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        for (vrf, routes) in self.vrfs.iter().zip(&plan.routes) {
            plan::apply(&vrf.table, routes).map_err(|error| error.to_string())?;
        }
        for (number, (interface, &up)) in before.interfaces.iter().zip(&after).enumerate() {
            if interface.up != up {
                let word = if up { "up" } else { "down" };
                (self.log)(Level::Note, &format!("interface {}: link {word}", interface.name));
                if !up {
                    self.shared.neighbours.forget_interface(number as u16);
                }
            }
        }
        Ok(())
    }

    /// Applies a configuration that was read again, or says why not: then the old one runs on.
    fn reload(&mut self, config: Result<Config, String>) {
        let applied = config.and_then(|config| self.apply(config));
        match applied {
            Ok(()) => (self.log)(Level::Note, "configuration reloaded"),
            Err(reason) => (self.log)(Level::Warning, &format!("configuration not reloaded: {reason}")),
        }
    }

    fn apply(&mut self, config: Config) -> Result<(), String> {
        let same_ports = plan::ports(&config) == plan::ports(&self.config);
        let names = |config: &Config| -> Vec<_> {
            config.interfaces.iter().map(|interface| (interface.name.clone(), interface.vlan)).collect()
        };
        if !same_ports
            || names(&config) != names(&self.config)
            || config.threads != self.config.threads
            || config.socket != self.config.socket
            || config.limits != self.config.limits
        {
            return Err(
                "interfaces, back ends, threads, limits of neighbours or the socket differ: restart needed"
                    .into(),
            );
        }
        if (config.ipv4, config.ipv6) != (self.config.ipv4, self.config.ipv6) {
            return Err("algorithms differ: restart needed".into());
        }
        let loaded = plan::load(&config, &self.folder)?;
        let vrfs = plan::tables(&config, &self.vrfs).map_err(|error| error.to_string())?;
        let plan = plan::plan(&config, &self.machine, &vrfs, &loaded, &mut self.hops)?;
        self.config = config;
        self.loaded = loaded;
        self.vrfs = vrfs;
        self.take_up(plan)
    }

    /// Returns the counters of each port, of all workers together.
    fn totals(&self) -> Vec<(String, Totals)> {
        let fabric = self.shared.fabric();
        let mut ports: Vec<_> =
            fabric.ports.iter().map(|port| (port.name.clone(), Totals::default())).collect();
        for counters in &self.counters {
            for (counters, port) in counters.iter().zip(&mut ports) {
                counters.add_to(&mut port.1);
            }
        }
        ports
    }

    fn end(mut self) -> Result<Vec<(String, Totals)>, RunError> {
        let mut outcome = Ok(());
        for worker in self.workers.drain(..) {
            let ended = worker.join().unwrap_or_else(|_| {
                Err(RunError::Config("a thread that forwards has panicked: please report it".into()))
            });
            outcome = outcome.and(ended);
        }
        outcome.map(|()| self.totals())
    }
}

/// What a worker's thread does.
fn forward(
    mut worker: Worker,
    mut io: Ports,
    stop: &AtomicBool,
    first: bool,
    lost: &[AtomicU64],
) -> Result<(), RunError> {
    let mut next_tick = 0;
    loop {
        let now_ns = sys::now_ns();
        let mut received = 0;
        for port in 0..lost.len() {
            received += worker.burst(&mut io, port, now_ns);
        }
        if now_ns >= next_tick {
            next_tick = now_ns + TICK_NS;
            if first {
                worker.tick(&mut io, now_ns);
            }
            for (port, lost) in lost.iter().enumerate() {
                lost.fetch_add(io.take_lost(port), Ordering::Relaxed);
            }
        }
        let ended = received == 0 && io.ended() && worker.waiting() == 0;
        if ended || stop.load(Ordering::Relaxed) {
            break;
        }
        if received == 0 {
            io.wait(IDLE_MS);
        }
    }
    io.flush().map_err(machine_error("writing frames"))?;
    match io.take_error() {
        Some((file, error)) => Err(RunError::Pcap(file, error)),
        None => Ok(()),
    }
}

/// Opens what is no ring: for each worker, a source and a sink for each port.
fn open_files_and_taps(
    ports: &[Backend],
    config: &Config,
    folder: &Path,
) -> Result<Vec<Vec<(Source, Sink)>>, RunError> {
    let mut queues: Vec<Vec<(Source, Sink)>> = (0..config.threads).map(|_| Vec::new()).collect();
    for backend in ports {
        for (number, queue) in queues.iter_mut().enumerate() {
            queue.push(match backend {
                Backend::Tap { device } => {
                    Ports::tap(Tap::open(device).map_err(machine_error(format!("tap {device}")))?)
                }
                // A file has one reader.
                Backend::Pcap { input, output } if number == 0 => {
                    let source = match input {
                        Some(path) => Source::File(open_input(&folder.join(path))?),
                        None => Source::None,
                    };
                    let sink = match output {
                        Some(path) => create(&folder.join(path))?,
                        None => Sink::None,
                    };
                    (source, sink)
                }
                _ => (Source::None, Sink::None),
            });
        }
    }
    if config.threads > 1 && ports.iter().any(|port| matches!(port, Backend::Pcap { .. })) {
        return Err(RunError::Config("files are forwarded by one thread: set 'threads = 1'".into()));
    }
    Ok(queues)
}

fn open_input(path: &Path) -> Result<Input, RunError> {
    Input::open(path).map_err(|error| RunError::Pcap(path.display().to_string(), error))
}

fn create(path: &Path) -> Result<Sink, RunError> {
    let what = path.display().to_string();
    let file = std::fs::File::create(path).map_err(machine_error(what.clone()))?;
    let writer = pcap::Writer::new(io::BufWriter::new(file)).map_err(machine_error(what))?;
    Ok(Sink::File(Box::new(writer), 0))
}

/// Opens the rings, in the places that [`open_files_and_taps`] has left for them.
fn open_rings(
    ports: &[Backend],
    machine: &Machine,
    config: &Config,
    queues: &mut [Vec<(Source, Sink)>],
) -> Result<(), RunError> {
    for (number, backend) in ports.iter().enumerate() {
        let Backend::Packet { device, frames } = backend else { continue };
        let link = link(machine, device)?;
        let fanout = (config.threads > 1).then_some((std::process::id() as u16) ^ (number as u16) << 8);
        for queue in queues.iter_mut() {
            let ring = |error| RunError::Machine(format!("rings of {device}"), error);
            let receive = Receive::open(link, *frames, fanout).map_err(ring)?;
            let transmit = Transmit::open(link, *frames).map_err(ring)?;
            queue[number] = (Source::Packet(receive), Sink::Packet(transmit));
        }
    }
    Ok(())
}

fn link(machine: &Machine, device: &str) -> Result<u32, RunError> {
    let link =
        machine.link(device).ok_or_else(|| RunError::Config(format!("there is no device '{device}'")))?;
    Ok(link.index)
}

/// Keeps the kernel from forwarding what comes in through the devices of the router.
fn attach(
    ports: &[Backend],
    machine: &Machine,
    plan: &Plan,
) -> Result<(Option<Filter>, Vec<Attached>), RunError> {
    let devices: Vec<&String> = ports
        .iter()
        .filter_map(|port| match port {
            Backend::Packet { device, .. } => Some(device),
            _ => None,
        })
        .collect();
    if devices.is_empty() {
        return Ok((None, Vec::new()));
    }
    let mut filter = Filter::load().map_err(machine_error("loading the filter"))?;
    filter.set_addresses(plan.locals.iter().copied()).map_err(machine_error("addresses of the filter"))?;
    let mut attached = Vec::new();
    for device in devices {
        let index = link(machine, device)?;
        attached.push(filter.attach(index).map_err(machine_error(format!("filter of {device}")))?);
    }
    Ok((Some(filter), attached))
}
