//! Stages: the pipeline on several threads, with rings between them.
//!
//! ```text
//! run to completion   Worker                                          each thread receives, looks up and sends
//! two stages          Receive ═> Worker on Staged                     the second looks up and sends
//! three stages        Receive ═> Worker on Staged ═> Transmit         the second looks up alone
//! ```
//!
//! The packet code is the same in all: a [`Worker`](crate::forward::Worker) on [`Staged`], which is an [`Io`] whose frames
//! come from rings and whose packets go to a back end or to rings.
//!
//! Packets of a flow stay in order. One thread receives the flow (fanout, queues), one worker handles it (chosen by Toeplitz hash
//! and a redirection table; frames that are not IP go to the first), and it leaves by the ring from that worker to the thread
//! that sends for the port. Rings keep their order.
//!
//! A frame is copied once, from the back end to a buffer. The buffer then moves from thread to thread, and comes back. All
//! buffers are allocated at the start. However, a frame of more than 2 KiB makes its buffer grow, once. A packet of DPDK is not
//! copied: rings of DPDK's own pass the buffer that it was received in. Each ring belongs to a port, and is of the kind that its port
//! wants; a packet from a port of DPDK to another one is copied. No thread waits to fill a burst.
//!
//! When a thread ends, its rings end too, and the next thread ends once they are empty.

mod link;
mod parcel;
mod sleep;
mod way;

use std::io;
use std::sync::Arc;

use crate::count::PortCounters;
use crate::drops::DropReason;
use crate::io::dpdk::Pool;
#[cfg(target_os = "linux")]
use crate::io::entrance::Entrances;
use crate::io::{BURST, Io, Offload, Received};
use crate::packet::ethernet::Header;
use crate::packet::toeplitz::{KEY, Redirection, SYMMETRIC_KEY};

use link::{FrameReceiver, FrameSender, HeldFrame, link};
pub use sleep::Sleeper;
use way::Out;
pub use way::{Direct, Rings};

/// Frames of a ring unless the caller says otherwise.
pub const CAPACITY: usize = 512;

/// The first stage of one thread: receives from its queue of each port, and gives each frame to the worker of its flow.
#[derive(Debug)]
pub struct Receive {
    /// By port, then by worker.
    outputs: Vec<Vec<FrameSender>>,
    redirection: Redirection,
    counters: Arc<[PortCounters]>,
}

/// The frames of a worker between stages: an [`Io`] whose frames come from rings.
#[derive(Debug)]
pub struct Staged<O> {
    /// By port, then by thread of the first stage.
    inputs: Vec<Vec<FrameReceiver>>,
    /// Whether the kernel has each frame of the port too.
    kernel: Vec<bool>,
    burst: Vec<HeldFrame>,
    port: usize,
    /// The ring of the port that was read last.
    turn: usize,
    sleeper: Arc<Sleeper>,
    #[cfg(target_os = "linux")]
    entrances: Entrances,
    out: O,
}

/// The last stage of one thread: sends the frames of workers.
#[derive(Debug)]
pub struct Transmit {
    /// With the number of their port.
    inputs: Vec<(usize, FrameReceiver)>,
    sleeper: Arc<Sleeper>,
}

/// Properties of the back end of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// Whether the kernel has each received frame too.
    pub kernel: bool,
    /// Whether it sends at all.
    pub sends: bool,
    /// Whether it sends packets of several segments.
    pub segments: bool,
    /// The buffers of its packets, if it is a port of DPDK.
    pub pool: Option<Pool>,
}

/// The ends of all rings, for two stages.
#[derive(Debug)]
pub struct Two {
    /// First stages.
    pub receive: Vec<Receive>,
    /// Rings of workers, to be given a way out by [`Staged::direct`].
    pub workers: Vec<Staged<()>>,
}

/// Like [`Two`], with a stage that sends.
#[derive(Debug)]
pub struct Three {
    /// First stages.
    pub receive: Vec<Receive>,
    /// The rings from which workers receive and to which they send.
    pub workers: Vec<Staged<Rings>>,
    /// Last stages.
    pub transmit: Vec<Transmit>,
}

/// Makes two stages, of `threads` threads each.
///
/// `ports` are the ends of all ports. The counters of first stages count dropped frames, with one set for each port. With
/// `symmetric`, both directions of a conversation go to the same worker.
///
/// # Errors
/// When DPDK has no memory for a ring.
pub fn two(
    ports: &[End],
    threads: [usize; 2],
    symmetric: bool,
    counters: &mut dyn FnMut() -> Arc<[PortCounters]>,
) -> io::Result<Two> {
    let mut workers: Vec<Staged<()>> = (0..threads[1]).map(|_| Staged::new(ports)).collect();
    let key = if symmetric { SYMMETRIC_KEY } else { KEY };
    let mut receive = Vec::new();
    for _ in 0..threads[0] {
        let mut outputs = Vec::new();
        for (number, port) in ports.iter().enumerate() {
            let to = workers.iter_mut().map(|worker| {
                let (sender, receiver) = link(port, &worker.sleeper)?;
                worker.inputs[number].push(receiver);
                Ok(sender)
            });
            outputs.push(to.collect::<io::Result<_>>()?);
        }
        let redirection = Redirection::even(key, threads[1]);
        receive.push(Receive { outputs, redirection, counters: counters() });
    }
    Ok(Two { receive, workers })
}

/// Makes three stages. The ports are assigned in turn to the threads that send, so each port is sent by one thread: see
/// [`sends`].
///
/// # Errors
/// When DPDK has no memory for a ring.
pub fn three(
    ports: &[End],
    threads: [usize; 3],
    symmetric: bool,
    counters: &mut dyn FnMut() -> Arc<[PortCounters]>,
) -> io::Result<Three> {
    let Two { receive, workers } = two(ports, [threads[0], threads[1]], symmetric, counters)?;
    let mut transmit: Vec<Transmit> =
        (0..threads[2]).map(|_| Transmit { inputs: Vec::new(), sleeper: Arc::default() }).collect();
    let workers = workers.into_iter().map(|worker| {
        let outputs = ports.iter().enumerate().map(|(port, end)| {
            let ring = end.sends.then(|| {
                let to = &mut transmit[sends(port, threads[2])];
                let (sender, receiver) = link(end, &to.sleeper)?;
                to.inputs.push((port, receiver));
                Ok(sender)
            });
            ring.transpose()
        });
        let outputs = outputs.collect::<io::Result<_>>()?;
        let segments = ports.iter().map(|end| end.segments).collect();
        Ok(worker.with(Rings { outputs, segments }))
    });
    let workers = workers.collect::<io::Result<_>>()?;
    Ok(Three { receive, workers, transmit })
}

/// Returns the number of the thread, out of `threads`, that sends for a port.
#[must_use]
pub const fn sends(port: usize, threads: usize) -> usize {
    port % threads
}

impl Receive {
    /// Receives a burst from a port and gives it to the workers. Returns the number of frames.
    pub fn turn(&mut self, io: &mut impl Io, port: usize) -> usize {
        let received = io.receive(port);
        let outputs = &mut self.outputs[port];
        let mut lost = 0;
        for index in 0..received {
            let frame = io.frame(index);
            let worker = if outputs.len() == 1 { 0 } else { self.redirection.queue(frame.bytes) };
            let bytes = frame.bytes.len() as u64;
            if !outputs[worker].take(io, index) {
                lost += 1;
                self.counters[port].received_bytes.add(bytes);
            }
        }
        outputs.iter_mut().for_each(FrameSender::flush);
        io.finish();
        if lost > 0 {
            // Count these frames as received here, because no worker will.
            self.counters[port].received.add(lost);
            self.counters[port].drop_many(DropReason::StageFull, lost);
        }
        received
    }

    /// Returns whether the rings of a port have room for a whole burst, whatever its flows.
    pub fn has_room(&mut self, port: usize) -> bool {
        self.outputs[port].iter_mut().all(|output| output.has_room(BURST))
    }

    /// Returns the counters of frames dropped by this stage.
    #[must_use]
    pub fn counters(&self) -> &Arc<[PortCounters]> {
        &self.counters
    }
}

impl Transmit {
    /// Sends the waiting frames, and returns their number. Frames for which the back end has no room stay in their ring. When the
    /// ring is full, the worker drops and counts frames.
    pub fn turn(&mut self, io: &mut impl Io) -> usize {
        let mut count = 0;
        for (port, input) in &mut self.inputs {
            count += input.send(io, *port);
        }
        io.finish();
        count
    }

    /// Returns the sleep of this thread, which ends when a frame comes.
    #[must_use]
    pub fn sleeper(&self) -> &Arc<Sleeper> {
        &self.sleeper
    }

    /// Returns whether no frame waits in a ring.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inputs.iter().all(|(_, input)| input.is_empty())
    }

    /// Returns whether all workers have ended, and all of their packets are sent.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.inputs.iter().all(|(_, input)| input.is_ended())
    }
}

impl Staged<()> {
    fn new(ports: &[End]) -> Self {
        let inputs = ports.iter().map(|_| Vec::new()).collect();
        let kernel = ports.iter().map(|end| end.kernel).collect();
        Self {
            inputs,
            kernel,
            burst: Vec::with_capacity(BURST),
            port: 0,
            turn: 0,
            sleeper: Arc::default(),
            #[cfg(target_os = "linux")]
            entrances: Entrances::default(),
            out: (),
        }
    }

    fn with<O>(self, out: O) -> Staged<O> {
        Staged {
            inputs: self.inputs,
            kernel: self.kernel,
            burst: self.burst,
            port: self.port,
            turn: self.turn,
            sleeper: self.sleeper,
            #[cfg(target_os = "linux")]
            entrances: self.entrances,
            out,
        }
    }

    /// Lets the worker send by itself, through `io`.
    pub fn direct<I: Io>(self, io: I) -> Staged<Direct<I>> {
        self.with(Direct(io))
    }
}

impl<O> Staged<O> {
    /// Returns whether all first stages have ended, and all of their frames are handled.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.burst.is_empty() && self.inputs.iter().flatten().all(FrameReceiver::is_ended)
    }

    /// Returns the sleep of this thread, which ends when a frame comes.
    #[must_use]
    pub fn sleeper(&self) -> &Arc<Sleeper> {
        &self.sleeper
    }

    /// Sets the ways of frames back to the kernel.
    #[cfg(target_os = "linux")]
    pub fn set_entrances(&mut self, entrances: Entrances) {
        self.entrances = entrances;
    }

    /// Returns whether no frame waits in a ring.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inputs.iter().flatten().all(FrameReceiver::is_empty)
    }

    /// Returns the way out.
    pub fn out(&mut self) -> &mut O {
        &mut self.out
    }
}

impl<O: Out> Io for Staged<O> {
    fn receive(&mut self, port: usize) -> usize {
        self.port = port;
        let count = self.inputs[port].len();
        for _ in 0..count {
            self.turn = (self.turn + 1) % count;
            self.inputs[port][self.turn].take(BURST, &mut self.burst);
            if !self.burst.is_empty() {
                break;
            }
        }
        self.burst.len()
    }

    fn frame(&mut self, index: usize) -> Received<'_> {
        self.burst[index].frame()
    }

    fn forward(
        &mut self,
        index: usize,
        port: usize,
        header: &Header,
        packet: core::ops::Range<usize>,
        offload: &Offload,
    ) -> bool {
        self.out.forward(&mut self.burst[index], port, header, packet, offload)
    }

    fn emit(&mut self, port: usize, parts: [&[u8]; 3], offload: &Offload) -> bool {
        self.out.emit(port, parts, offload)
    }

    fn deliver(&mut self, index: usize, port: usize) -> bool {
        #[cfg(target_os = "linux")]
        if let Some(given) = self.entrances.give(port, &self.burst[index].frame()) {
            return given;
        }
        let _ = index;
        self.kernel[port]
    }

    fn segments(&self, port: usize) -> bool {
        self.out.segments(port)
    }

    fn finish(&mut self) {
        if !self.burst.is_empty() {
            self.inputs[self.port][self.turn].give_back(&mut self.burst);
        }
        self.out.finish();
    }
}
