//! DPDK: ports that the process drives itself, without the kernel (doc.dpdk.org, "Programmer's Guide").
//!
//! A port can be any device for which DPDK has a driver, for example a network card that is bound to it, or a virtual device. A
//! packet leaves in the buffer in which it was received, also where it passes several threads: rings of DPDK's own
//! ([`link`]) pass the buffer on. Packets from other back ends are copied into a free buffer. Threads poll for packets instead of
//! waiting for them.
//!
//! Such a port is unknown to the kernel. A tap can represent it there: frames for the machine go to the tap, and frames that the
//! kernel sends by the tap leave by the port.

mod port;
mod ring;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::tap::{Tap, TapSender};
use super::{BURST, Offload, Received};
use crate::kernel::sys;
use crate::packet::ethernet::{Header, Mac};
use crate::packet::limit::Bucket;

use port::{Options, ReceiveQueue, SendQueue, Thread};
pub use port::{Packet, Pool, Port};
pub use ring::{RingReceiver, RingSender, link};

/// Packets of a queue that may wait for room in it.
const WAITING: usize = 256;
/// Bytes of a buffer at least, as most drivers want.
const LEAST: usize = 2048;
/// Bytes around a packet: an Ethernet header with two tags before it, and four bytes of a checksum after it.
const AROUND: usize = 22 + 4;
/// Bursts of a port without a look at its tap.
const TURNS: u32 = 32;
/// Most frames that a thread gives to the kernel, per second and at once. ARP and frames to groups have this limit together, and
/// all other frames have another of the same size. Each frame costs a system call, so without a limit a flood to the machine
/// would stop forwarding.
const TO_KERNEL: (u32, u32) = (20_000, 1_000);

/// A port that is wanted.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Name that DPDK has for it: the address of a card on its bus, or the name of a virtual device.
    pub name: String,
    /// Number of the port in the router.
    pub port: usize,
    /// Frames of each queue.
    pub frames: usize,
    /// Largest packet.
    pub mtu: usize,
    /// Its MAC address; `None`: the one that it has.
    pub mac: Option<Mac>,
    /// The MAC address to use if the port has none, as some virtual devices do.
    pub otherwise: Mac,
    /// Whether it takes frames to all stations.
    pub promiscuous: bool,
}

thread_local! {
    /// Each thread that uses DPDK must register itself.
    static TOLD: Thread = Thread::begin();
}

/// Tells DPDK of the calling thread, once.
fn register() {
    TOLD.with(|_| ());
}

/// The ends of DPDK ports of one thread.
#[derive(Debug)]
pub struct Dpdk {
    /// By port.
    ports: Vec<Option<Ends>>,
    /// A packet of the burst, until it leaves.
    burst: Vec<Option<Packet>>,
    arrived: Vec<Packet>,
}

/// The ends of a port.
#[derive(Debug, Default)]
struct Ends {
    receive: Option<ReceiveQueue>,
    send: Option<SendQueue>,
    /// Packets to send: those of the burst, and those for which there was no room.
    waiting: Vec<Packet>,
    host: Option<Host>,
}

/// The kernel's side of a port.
#[derive(Debug)]
struct Host {
    to_kernel: TapSender,
    limits: [Bucket; 2],
    /// The first thread has it.
    from_kernel: Option<Tap>,
    turn: u32,
}

/// Starts DPDK with these arguments of its own; once a process, later calls do nothing.
///
/// # Errors
/// When DPDK refuses; it prints why.
pub fn start(arguments: &[String]) -> io::Result<()> {
    let mut arguments = arguments.to_vec();
    let chosen =
        |argument: &String| ["-l", "-c", "--lcores"].iter().any(|option| argument.starts_with(option));
    if !arguments.iter().any(chosen) {
        // Otherwise, DPDK makes an idle thread for every processor, with all capabilities.
        let first = sys::allowed_processors().first().copied().unwrap_or(0);
        arguments.push(format!("--lcores=0@{first}"));
    }
    port::start(&arguments)
}

/// Ports that are open.
#[derive(Debug)]
pub struct Opened {
    /// The ports by their names. A port is closed when neither this nor an end of it is left.
    pub ports: HashMap<String, Arc<Port>>,
    /// The ends of each thread that receives; with those that send, if threads do both.
    pub receivers: Vec<Dpdk>,
    /// The ends of each thread that only sends.
    pub senders: Vec<Dpdk>,
    /// The buffers of all ports.
    pub pool: Pool,
}

/// Opens ports with queues for `receiving` threads that receive and `sending` ones that send. With
/// `together` they are the same threads. `between` is how many packets may be in rings between threads.
///
/// # Errors
/// When there is no such port, it has too few queues, or there is no memory for the packets.
pub fn open(
    wanted: &[Wanted],
    ports: usize,
    [receiving, sending]: [usize; 2],
    together: bool,
    between: usize,
) -> io::Result<Opened> {
    let frames: usize = wanted.iter().map(|port| port.frames * (receiving + sending)).sum();
    let spare = (receiving + sending) * (wanted.len() * WAITING + 2 * BURST);
    let largest = wanted.iter().map(|port| port.mtu + AROUND).max().unwrap_or(0).max(LEAST);
    static POOLS: AtomicUsize = AtomicUsize::new(0);
    let name = format!("fibula {}", POOLS.fetch_add(1, Ordering::Relaxed));
    let pool = Pool::new(&name, frames + between + spare, largest as u16)?;
    let empty = |count: usize| -> Vec<Dpdk> { (0..count).map(|_| Dpdk::new(ports)).collect() };
    let mut receivers = empty(receiving);
    let mut senders = empty(if together { 0 } else { sending });
    let mut opened = HashMap::new();
    for wanted in wanted {
        let options = Options {
            queues: (receiving, sending),
            frames: wanted.frames,
            mtu: wanted.mtu,
            promiscuous: wanted.promiscuous,
            mac: wanted.mac,
            otherwise: wanted.otherwise,
        };
        let (port, receive, send) = Port::open(&wanted.name, pool, &options)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", wanted.name)))?;
        for (thread, queue) in receivers.iter_mut().zip(receive) {
            thread.ends(wanted.port).receive = Some(queue);
        }
        let to = if together { &mut receivers } else { &mut senders };
        for (thread, queue) in to.iter_mut().zip(send) {
            thread.ends(wanted.port).send = Some(queue);
        }
        opened.insert(wanted.name.clone(), port);
    }
    Ok(Opened { ports: opened, receivers, senders, pool })
}

impl Dpdk {
    fn new(ports: usize) -> Self {
        let ports = (0..ports).map(|_| None).collect();
        Self { ports, burst: Vec::with_capacity(BURST), arrived: Vec::with_capacity(BURST) }
    }

    fn ends(&mut self, port: usize) -> &mut Ends {
        self.ports[port].get_or_insert_default()
    }

    /// Gives a port its tap: the end that sends to the kernel, and for one thread the one that receives.
    pub fn set_host(&mut self, port: usize, to_kernel: TapSender, from_kernel: Option<Tap>) {
        let limits = [(); 2].map(|()| Bucket::new(TO_KERNEL.0, TO_KERNEL.1));
        self.ends(port).host = Some(Host { to_kernel, limits, from_kernel, turn: 0 });
    }

    pub(super) fn receive(&mut self, port: usize) -> usize {
        register();
        let Some(ends) = &mut self.ports[port] else { return 0 };
        if let Some(queue) = &mut ends.receive {
            queue.receive(BURST, &mut self.arrived);
            self.burst.extend(self.arrived.drain(..).map(Some));
        }
        ends.take_from_kernel(self.burst.is_empty());
        self.burst.len()
    }

    pub(super) fn frame(&mut self, index: usize) -> Received<'_> {
        match &mut self.burst[index] {
            Some(packet) => {
                let (tag, cut) = (packet.tag(), !packet.is_whole());
                Received { bytes: packet.bytes(), tag, offload: Offload::default(), cut }
            }
            None => Received { bytes: &mut [], tag: None, offload: Offload::default(), cut: true },
        }
    }

    /// Sends a packet of the burst in its own buffer.
    pub(super) fn forward(
        &mut self,
        index: usize,
        port: usize,
        header: &Header,
        packet: core::ops::Range<usize>,
    ) -> bool {
        let Some(ends) = &mut self.ports[port] else { return false };
        if ends.send.is_none() || ends.waiting.len() >= WAITING {
            return false;
        }
        let Some(held) = &mut self.burst[index] else { return false };
        if !held.readdress(header, packet) {
            return false;
        }
        ends.waiting.extend(self.burst[index].take());
        true
    }

    /// Takes a packet of the burst.
    pub(super) fn take(&mut self, index: usize) -> Option<Packet> {
        self.burst[index].take()
    }

    /// Sends a packet as it is, if there is room.
    pub(super) fn put(&mut self, port: usize, packet: Packet) -> Result<(), Packet> {
        match &mut self.ports[port] {
            Some(ends) if ends.send.is_some() && ends.waiting.len() < WAITING => {
                ends.waiting.push(packet);
                Ok(())
            }
            _ => Err(packet),
        }
    }

    /// Returns whether packets wait for room in the queue of a port.
    pub(super) fn has_unsent(&self) -> bool {
        self.ports.iter().flatten().any(|ends| !ends.waiting.is_empty())
    }

    /// Sends a frame that is given in parts.
    pub(super) fn push(&mut self, port: usize, parts: [&[u8]; 3], offload: &Offload) -> bool {
        register();
        self.ports[port].as_mut().is_some_and(|ends| ends.push(parts, offload))
    }

    /// Gives a frame of the burst to the kernel's side of the port.
    pub(super) fn deliver(&mut self, index: usize, port: usize) -> bool {
        let (Some(ends), Some(packet)) = (&mut self.ports[port], &mut self.burst[index]) else {
            return false;
        };
        let Some(host) = &mut ends.host else { return false };
        let frame = packet.bytes();
        let control = frame.first().is_some_and(|byte| byte & 1 == 1) || frame.get(12..14) == Some(&[8, 6]);
        host.limits[usize::from(!control)].take(sys::now_ns())
            && host.to_kernel.push([frame, &[], &[]], &Offload::default())
    }

    pub(super) fn finish(&mut self) {
        self.burst.clear();
        for ends in self.ports.iter_mut().flatten() {
            if let (Some(queue), false) = (&mut ends.send, ends.waiting.is_empty()) {
                queue.send(&mut ends.waiting);
            }
        }
    }

    pub(super) fn take_lost(&mut self, port: usize) -> u64 {
        let queue = self.ports[port].as_ref().and_then(|ends| ends.receive.as_ref());
        queue.map_or(0, |queue| queue.port().take_lost())
    }
}

impl Ends {
    fn push(&mut self, parts: [&[u8]; 3], offload: &Offload) -> bool {
        let Some(queue) = self.send.as_ref().filter(|_| self.waiting.len() < WAITING) else { return false };
        let Some(packet) = queue.make(parts, offload) else { return false };
        self.waiting.push(packet);
        true
    }

    /// Sends the frames that the kernel has sent by the tap. A look costs a system call, so while packets arrive, it happens only
    /// now and then.
    fn take_from_kernel(&mut self, idle: bool) {
        let Some(host) = &mut self.host else { return };
        host.turn += 1;
        if !idle && host.turn < TURNS {
            return;
        }
        host.turn = 0;
        let Some(mut tap) = host.from_kernel.take() else { return };
        for index in 0..tap.receive() {
            // Frames without room are lost, as in any network card.
            let _ = self.push([tap.frame(index).bytes, &[], &[]], &Offload::default());
        }
        tap.finish();
        if let Some(host) = &mut self.host {
            host.from_kernel = Some(tap);
        }
    }
}
