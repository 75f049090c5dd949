//! The pipeline on ports of DPDK without hardware (net_null): they receive frames without contents as fast as somebody takes them, and
//! free what they send. Contents are written where frames are received.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::config::Shape;
use crate::count::{PortCounters, Totals};
use crate::forward::{Shared, Worker};
use crate::io::dpdk::{self, Dpdk, Opened, Packet, Pool, Port, Wanted};
use crate::io::ports::{Common, Ports, Sink, Source};
use crate::io::{Io, Offload, Received};
use crate::kernel::sys;
use crate::packet::ethernet::{Header, Mac};
use crate::place::{Places, Topology};
use crate::stage::{self, Staged};

use super::frames::Frames;
use super::network::{counters, mac};

/// What the names of ports begin with, before their number.
pub const NAME: &str = "net_null_bench";
/// Ports that are there. One that was closed does not come back.
const PORTS: usize = 16;
/// Time before a rate is taken, in which caches and rings fill.
const WARM: Duration = Duration::from_millis(100);
/// Turns without a frame after which a thread lets others run.
const SPINS: u32 = 64;

/// A pair of ports of one thread: frames are received at the first, and sent out of the second.
#[derive(Debug)]
pub struct NullPorts {
    ports: Ports,
    frames: Arc<Frames>,
    next: usize,
}

impl NullPorts {
    fn new(dpdk: Dpdk) -> Self {
        let mut ports = Ports::default();
        (0..2).for_each(|_| ports.push(Source::Common, Sink::Common));
        ports.set_common(Common::Dpdk(dpdk));
        Self { ports, frames: Arc::new(Frames::none()), next: 0 }
    }

    /// Opens a pair for a thread that receives and sends.
    ///
    /// # Errors
    /// When DPDK does not start, or has no ports left.
    pub fn open() -> io::Result<Self> {
        let mut opened = open([1, 1], true, 0)?;
        Ok(Self::new(opened.receivers.remove(0)))
    }

    /// Sets what frames are received.
    pub fn set_frames(&mut self, frames: &Arc<Frames>) {
        (self.frames, self.next) = (Arc::clone(frames), 0);
    }
}

/// Opens a pair of ports.
fn open(threads: [usize; 2], together: bool, between: usize) -> io::Result<Opened> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let options =
        ["--no-huge", "-m", "256", "--no-pci", "--no-shconf", "--no-telemetry", "--log-level=error"];
    let devices = (0..PORTS).map(|number| format!("--vdev={NAME}{number}"));
    dpdk::start(&options.map(str::to_owned).into_iter().chain(devices).collect::<Vec<_>>())?;
    let first = NEXT.fetch_add(2, Ordering::Relaxed);
    let wanted = [0, 1].map(|port| Wanted {
        name: format!("{NAME}{}", first + port),
        port,
        frames: 512,
        mtu: 1500,
        mac: Some(mac(port)),
        otherwise: Mac([2, 0, 0, 0, 0, 0xf0 + port as u8]),
        promiscuous: false,
    });
    dpdk::open(&wanted, 2, threads, together, between)
}

impl Io for NullPorts {
    fn receive(&mut self, port: usize) -> usize {
        let count = self.ports.receive(port);
        let headers = self.frames.headers();
        for index in 0..count {
            let Some(header) = headers.get(self.next) else { break };
            self.ports.frame(index).bytes[..header.len()].copy_from_slice(header);
            self.next = if self.next + 1 == headers.len() { 0 } else { self.next + 1 };
        }
        count
    }

    fn frame(&mut self, index: usize) -> Received<'_> {
        self.ports.frame(index)
    }

    fn forward(
        &mut self,
        index: usize,
        port: usize,
        header: &Header,
        packet: Range<usize>,
        offload: &Offload,
    ) -> bool {
        self.ports.forward(index, port, header, packet, offload)
    }

    fn emit(&mut self, port: usize, parts: [&[u8]; 3], offload: &Offload) -> bool {
        self.ports.emit(port, parts, offload)
    }

    fn take(&mut self, index: usize) -> Option<Packet> {
        self.ports.take(index)
    }

    fn put(&mut self, port: usize, packet: Packet) -> Result<(), Packet> {
        self.ports.put(port, packet)
    }

    fn deliver(&mut self, _: usize, _: usize) -> bool {
        false
    }

    fn finish(&mut self) {
        self.ports.finish();
    }
}

/// Ports for up to a number of threads, in every shape.
#[derive(Debug)]
pub struct Bench {
    /// Of threads that receive and send.
    both: Vec<NullPorts>,
    receive: Vec<NullPorts>,
    send: Vec<NullPorts>,
    pool: Pool,
    /// Open until the end: a port that was closed does not come back.
    _open: Vec<Arc<Port>>,
}

/// How packets are forwarded: a shape, its workers, and the number of processors that its threads share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StagePlan {
    /// The shape.
    pub shape: Shape,
    /// Threads that look up.
    pub workers: usize,
    /// Processors.
    pub cores: usize,
}

impl Bench {
    /// Opens ports for `threads` threads of each kind.
    ///
    /// # Errors
    /// When DPDK does not start, or has no ports or no memory left.
    pub fn open(threads: usize) -> io::Result<Self> {
        let both = open([threads; 2], true, 0)?;
        let apart = open([threads; 2], false, 2 * (threads + 1) * threads * stage::CAPACITY)?;
        let of = |ends: Vec<Dpdk>| ends.into_iter().map(NullPorts::new).collect();
        let ports = both.ports.into_values().chain(apart.ports.into_values());
        Ok(Self {
            both: of(both.receivers),
            receive: of(apart.receivers),
            send: of(apart.senders),
            pool: apart.pool,
            _open: ports.collect(),
        })
    }

    /// Returns the number of buffers of the stages that are not in their pool.
    #[must_use]
    pub fn used(&self) -> usize {
        self.pool.used()
    }

    /// Forwards packets for some time, and returns million packets a second. The source waits for room, so none is lost.
    ///
    /// # Errors
    /// When there is no memory, there are fewer ports than threads, or a packet was not forwarded.
    pub fn run(
        &mut self,
        shared: &Arc<Shared>,
        frames: &Arc<Frames>,
        plan: StagePlan,
        time: Duration,
    ) -> io::Result<f64> {
        let StagePlan { shape, workers, cores } = plan;
        let (receive, send) = match shape {
            Shape::Complete => (0, 0),
            Shape::Two { receive } => (receive, 0),
            Shape::Three { receive, send } => (receive, send),
        };
        let sending = if send == 0 { workers } else { send };
        let enough = match shape {
            Shape::Complete => self.both.len() >= workers,
            _ => self.receive.len() >= receive && self.send.len() >= sending,
        };
        if !enough {
            return Err(io::Error::other("fewer ports than threads"));
        }
        let allowed = sys::allowed_processors();
        let allowed = &allowed[..cores.clamp(1, allowed.len().max(1)).min(allowed.len())];
        let topology = Topology::read(Path::new("/sys/devices/system/cpu"), allowed);
        let Places { receive: at, workers: lookup, transmit } = topology.assign(receive, workers, send);
        let mut places = [at, lookup, transmit].concat().into_iter();
        let mut all: Vec<Arc<[PortCounters]>> = Vec::new();
        let mut counts = || {
            all.push(counters(2));
            Arc::clone(&all[all.len() - 1])
        };
        let lookups = (0..workers).map(|_| Worker::new(Arc::clone(shared), counts()));
        let lookups = lookups.collect::<Result<Vec<_>, _>>().map_err(io::Error::other)?;
        let sources = if shape == Shape::Complete { &mut self.both } else { &mut self.receive };
        sources.iter_mut().for_each(|ports| ports.set_frames(frames));
        let ends = [0, 1].map(|port| stage::End {
            kernel: false,
            sends: port == 1,
            segments: false,
            pool: Some(self.pool),
        });
        let stop = AtomicBool::new(false);
        let stop = &stop;
        let wait = Wait { shares: receive + workers + send > allowed.len(), turns: 0 };
        let mut jobs: Vec<Box<dyn FnOnce() + Send + '_>> = Vec::new();
        match shape {
            Shape::Complete => {
                for (mut worker, io) in lookups.into_iter().zip(&mut self.both) {
                    jobs.push(Box::new(move || {
                        while !stop.load(Ordering::Relaxed) {
                            worker.burst(io, 0, 1);
                        }
                    }));
                }
            }
            Shape::Two { .. } => {
                let stages = stage::two(&ends, [receive, workers], false, &mut counts)?;
                for (stage, io) in stages.receive.into_iter().zip(&mut self.receive) {
                    jobs.push(Box::new(move || first(stage, io, (stop, wait))));
                }
                for ((worker, io), ports) in lookups.into_iter().zip(stages.workers).zip(&mut self.send) {
                    let mut io = io.direct(std::mem::take(&mut ports.ports));
                    jobs.push(Box::new(move || {
                        middle(worker, &mut io, |_| true, wait);
                        ports.ports = std::mem::take(&mut io.out().0);
                    }));
                }
            }
            Shape::Three { .. } => {
                let stages = stage::three(&ends, [receive, workers, send], false, &mut counts)?;
                for (stage, io) in stages.receive.into_iter().zip(&mut self.receive) {
                    jobs.push(Box::new(move || first(stage, io, (stop, wait))));
                }
                for (worker, mut io) in lookups.into_iter().zip(stages.workers) {
                    jobs.push(Box::new(move || middle(worker, &mut io, |io| io.out().has_room(), wait)));
                }
                for (stage, io) in stages.transmit.into_iter().zip(&mut self.send) {
                    jobs.push(Box::new(move || last(stage, &mut io.ports, wait)));
                }
            }
        }
        let forwarded = || all[..workers].iter().map(|counters| counters[0].forwarded.get()).sum::<u64>();
        let rate = std::thread::scope(|scope| {
            for job in jobs {
                let place = places.next();
                scope.spawn(move || {
                    if let Some(place) = place {
                        // Without it, the thread runs where the system wants it.
                        let _ = sys::run_on(place);
                    }
                    job();
                });
            }
            std::thread::sleep(WARM);
            let (begin, before) = (Instant::now(), forwarded());
            std::thread::sleep(time);
            let (taken, count) = (begin.elapsed(), forwarded() - before);
            stop.store(true, Ordering::Relaxed);
            count as f64 / taken.as_secs_f64() / 1e6
        });
        let mut totals = Totals::default();
        all.iter().flat_map(|counters| counters.iter()).for_each(|counters| counters.add_to(&mut totals));
        if totals.received != totals.forwarded || totals.received == 0 {
            return Err(io::Error::other(format!("not every packet was forwarded: {totals:?}")));
        }
        Ok(rate)
    }
}

/// How a thread waits for others.
#[derive(Debug, Clone, Copy)]
struct Wait {
    /// Whether there are fewer processors than threads, so that others have to run first.
    shares: bool,
    turns: u32,
}

impl Wait {
    fn turn(&mut self, frames: usize) {
        self.turns = if frames > 0 { 0 } else { self.turns.saturating_add(1) };
        if self.shares && self.turns == SPINS {
            self.turns = 0;
            std::thread::yield_now();
        } else if frames == 0 {
            std::hint::spin_loop();
        }
    }
}

fn first(mut stage: stage::Receive, io: &mut NullPorts, (stop, mut wait): (&AtomicBool, Wait)) {
    while !stop.load(Ordering::Relaxed) {
        let received = if stage.has_room(0) { stage.turn(io, 0) } else { 0 };
        wait.turn(received);
    }
}

fn middle<O>(mut worker: Worker, io: &mut Staged<O>, ready: impl Fn(&mut Staged<O>) -> bool, mut wait: Wait)
where
    Staged<O>: Io,
{
    loop {
        let end = io.ended();
        let received = if ready(io) { worker.burst(io, 0, 1) } else { 0 };
        if end && received == 0 {
            return;
        }
        wait.turn(received);
    }
}

fn last(mut stage: stage::Transmit, io: &mut Ports, mut wait: Wait) {
    while !stage.ended() {
        let sent = stage.turn(io);
        wait.turn(sent);
    }
}
