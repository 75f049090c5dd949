//! AF_XDP: rings of frames that a program at the ingress of a device gives to this process instead of the kernel
//! (Documentation/networking/af_xdp.rst).
//!
//! A worker has a socket for each of its queues of each device, and all of its sockets share one memory of frames. A packet
//! leaves in the frame in which it was received, so only numbers of frames move from ring to ring. Packets from other back ends
//! are copied into a free frame. One system call a burst makes the kernel send, if the kernel requests that.
//!
//! Between stages, one thread has the receiving half of a socket and another has the sending half. In this case, all sockets
//! share one memory, and each thread has a part of it. Frames are copied from one part into another, so no frame changes its
//! owner.
//!
//! The kernel copies frames where the driver cannot put them into this memory itself. It does not split large segments for
//! such sockets, nor complete checksums that local senders leave to hardware: such senders need their offloads off.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::Arc;

use crate::kernel::sys::{self, Frames, Ring};

use super::{BURST, Offload, Received, complete_checksum};

const AF_XDP: i32 = 44;
const SOL_XDP: i32 = 283;
const MMAP_OFFSETS: i32 = 1;
const RX_RING: i32 = 2;
const TX_RING: i32 = 3;
const UMEM_REG: i32 = 4;
const FILL_RING: i32 = 5;
const COMPLETION_RING: i32 = 6;
const STATISTICS: i32 = 7;
/// Where the rings are in the mapping of a socket: receive, transmit, fill, completion.
const PAGES: [u64; 4] = [0, 0x8000_0000, 0x1_0000_0000, 0x1_8000_0000];
/// Flags of an address: the memory is another socket's; the kernel says when it wants a system call.
const SHARED: u16 = 1;
const NEED_WAKEUP: u16 = 8;

/// Bytes of a frame: the space that the kernel leaves in front, and the packet.
const FRAME: usize = 4096;
/// Offset at which a frame made by this side begins. It is the same as for frames received by the kernel.
const HEADROOM: usize = 256;
/// Longest frame.
const LARGEST: usize = FRAME - HEADROOM;
/// Largest packet that a frame holds after an Ethernet header with a tag.
pub const MTU: usize = LARGEST - 18;
/// Frames that the kernel sends in one system call. The rest takes another call.
const SENT_AT_ONCE: usize = 32;

/// The half of a socket that receives.
#[derive(Debug)]
struct Incoming {
    fd: Arc<OwnedFd>,
    receive: Ring<2>,
    fill: Ring<1>,
    lost: u64,
}

/// The half of a socket that sends.
#[derive(Debug)]
struct Outgoing {
    fd: Arc<OwnedFd>,
    transmit: Ring<2>,
    completion: Ring<1>,
    unsent: bool,
}

/// A frame of the burst.
#[derive(Debug, Clone, Copy)]
struct Held {
    at: usize,
    len: usize,
    /// Whether it has left by a transmit ring.
    gone: bool,
}

/// The AF_XDP sockets of one worker, or the halves of sockets of one thread of a stage.
#[derive(Debug)]
pub struct Xdp {
    memory: Frames,
    /// By port.
    incoming: Vec<Vec<Incoming>>,
    /// By port. All frames leave by the first socket of the port, so that flows stay in order.
    outgoing: Vec<Option<Outgoing>>,
    /// Offsets of frames that belong neither to the kernel nor to the burst.
    free: Vec<usize>,
    burst: Vec<Held>,
    turn: usize,
}

/// Sockets that are open.
#[derive(Debug)]
pub struct Opened {
    /// The ends of each thread that receives; with those that send, if threads do both.
    pub receivers: Vec<Xdp>,
    /// The ends of each thread that only sends.
    pub senders: Vec<Xdp>,
}

/// A queue of a device, for a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queue {
    /// Number of the port.
    pub port: usize,
    /// Number of the device.
    pub device: u32,
    /// Number of the queue.
    pub queue: u32,
    /// Frames of each ring, a power of two.
    pub frames: usize,
}

/// Returns how many receive queues a device has.
#[must_use]
pub fn queues(device: &str) -> usize {
    let folder = Path::new("/sys/class/net").join(device).join("queues");
    let count = std::fs::read_dir(folder).map(|entries| {
        entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with("rx-")).count()
    });
    count.unwrap_or(1).max(1)
}

/// Checks whether this machine supports such sockets.
///
/// # Errors
/// When the kernel has none, or without CAP_NET_RAW.
pub fn available() -> io::Result<()> {
    sys::socket(AF_XDP, libc::SOCK_RAW, 0).map(drop)
}

/// Opens a socket for each queue of each worker. The socket receives and sends. Frames arrive once a program gives them to the
/// sockets.
///
/// # Errors
/// Without CAP_NET_RAW, without memory that may be locked, when a device is gone, has no such queue or has a socket there.
pub fn together(queues: &[Vec<Queue>], ports: usize) -> io::Result<Opened> {
    let mut receivers = Vec::new();
    for queues in queues {
        let count: usize = queues.iter().map(|queue| 2 * queue.frames).sum();
        let mut xdp = Xdp::new(Frames::new(count.max(1) * FRAME)?, ports);
        let mut first = None;
        for queue in queues {
            let (incoming, outgoing) = open(queue, &xdp.memory, &mut first)?;
            xdp.outgoing[queue.port].get_or_insert(outgoing);
            xdp.incoming[queue.port].push(incoming);
        }
        xdp.refill();
        receivers.push(xdp);
    }
    Ok(Opened { receivers, senders: Vec::new() })
}

/// Opens a socket for each queue. One thread has its receiving half, and another may have its sending half. `senders` lists the
/// queues by which each sending thread sends: one for each port, and no queue for two threads.
///
/// # Errors
/// See [`together`].
pub fn apart(receivers: &[Vec<Queue>], senders: &[Vec<Queue>], ports: usize) -> io::Result<Opened> {
    // Twice the size of a ring, because one ring of frames is with the kernel while others are being received or made.
    let bytes = |queues: &[Queue]| queues.iter().map(|queue| 2 * queue.frames * FRAME).sum::<usize>();
    let all: usize = receivers.iter().chain(senders).map(|queues| bytes(queues)).sum();
    let mut memory = Frames::new(all.max(FRAME))?;
    let sending = senders.iter().map(|queues| Xdp::new(memory.take(bytes(queues)), ports));
    let mut sending: Vec<Xdp> = sending.collect();
    let (mut receiving, mut first) = (Vec::new(), None);
    for queues in receivers {
        let mut xdp = Xdp::new(memory.take(bytes(queues)), ports);
        for queue in queues {
            let (incoming, outgoing) = open(queue, &memory, &mut first)?;
            xdp.incoming[queue.port].push(incoming);
            if let Some(thread) = senders.iter().position(|queues| queues.contains(queue)) {
                sending[thread].outgoing[queue.port] = Some(outgoing);
            }
        }
        xdp.refill();
        receiving.push(xdp);
    }
    Ok(Opened { receivers: receiving, senders: sending })
}

impl Xdp {
    /// Makes the ends of a thread, without sockets, to which all frames in `memory` belong.
    fn new(memory: Frames, ports: usize) -> Self {
        Self {
            free: memory.part().step_by(FRAME).collect(),
            memory,
            incoming: (0..ports).map(|_| Vec::new()).collect(),
            outgoing: (0..ports).map(|_| None).collect(),
            burst: Vec::with_capacity(BURST),
            turn: 0,
        }
    }

    /// Returns the descriptors of a port's sockets, in the order of its queues.
    pub fn descriptors(&self, port: usize) -> impl Iterator<Item = RawFd> {
        self.incoming[port].iter().map(|socket| socket.fd.as_raw_fd())
    }

    /// Gives free frames to the kernel, for receiving.
    fn refill(&mut self) {
        for socket in self.incoming.iter_mut().flatten() {
            while socket.fill.room() > 0 {
                let Some(frame) = self.free.pop() else { break };
                socket.fill.write([frame as u64]);
            }
            socket.fill.publish();
        }
    }

    /// Takes back the frames that the kernel has sent.
    fn collect(&mut self) {
        for socket in self.outgoing.iter_mut().flatten() {
            while let Some([address]) = socket.completion.read() {
                self.free.push(address as usize / FRAME * FRAME);
            }
            socket.completion.give_back();
        }
    }

    pub(super) fn receive(&mut self, port: usize) -> usize {
        let sockets = &mut self.incoming[port];
        let count = sockets.len();
        for _ in 0..count {
            self.turn = (self.turn + 1) % count;
            let socket = &mut sockets[self.turn];
            while self.burst.len() < BURST
                && let Some([address, len]) = socket.receive.read()
            {
                let len = (length(len) as usize).min(FRAME);
                self.burst.push(Held { at: address as usize, len, gone: false });
            }
            socket.receive.give_back();
            if !self.burst.is_empty() {
                break;
            }
        }
        self.burst.len()
    }

    pub(super) fn frame(&mut self, index: usize) -> Received<'_> {
        let Held { at, len, .. } = self.burst[index];
        let bytes = self.memory.bytes(at, len);
        Received { bytes, tag: None, offload: Offload::default(), cut: false }
    }

    /// Sends a packet of the burst in its own frame.
    pub(super) fn forward(
        &mut self,
        index: usize,
        port: usize,
        header: &[u8],
        packet: core::ops::Range<usize>,
    ) -> bool {
        let Some(socket) = &mut self.outgoing[port] else { return false };
        let held = self.burst[index];
        let start = held.at + packet.start;
        // The kernel leaves room in front of a frame, so a header that is longer by a tag fits.
        if start % FRAME < header.len() {
            return false;
        }
        let begin = start - header.len();
        let len = header.len() + packet.len();
        self.memory.bytes(begin, header.len()).copy_from_slice(header);
        if !socket.transmit.write([begin as u64, descriptor(len)]) {
            return false;
        }
        socket.unsent = true;
        self.burst[index].gone = true;
        true
    }

    /// Sends a frame that is given in parts.
    pub(super) fn push(&mut self, port: usize, parts: [&[u8]; 3], offload: &Offload) -> bool {
        let len = parts.iter().map(|part| part.len()).sum::<usize>();
        let room = self.outgoing[port].as_ref().is_some_and(|socket| socket.transmit.room() > 0);
        if len > LARGEST || !room {
            return false;
        }
        if self.free.is_empty() {
            self.collect();
        }
        let (Some(socket), Some(frame)) = (&mut self.outgoing[port], self.free.pop()) else { return false };
        let bytes = self.memory.bytes(frame + HEADROOM, len);
        let mut at = 0;
        for part in parts {
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        complete_checksum(&mut bytes[parts[0].len()..], offload);
        socket.unsent = true;
        socket.transmit.write([(frame + HEADROOM) as u64, descriptor(len)])
    }

    pub(super) fn finish(&mut self) {
        let back = self.burst.drain(..).filter(|held| !held.gone);
        self.free.extend(back.map(|held| held.at / FRAME * FRAME));
        for socket in self.outgoing.iter_mut().flatten().filter(|socket| socket.unsent) {
            socket.send();
        }
        self.collect();
        self.refill();
    }

    /// Returns the number of frames of a port lost since the last call because the kernel had no room.
    pub(super) fn take_lost(&mut self, port: usize) -> u64 {
        self.incoming[port].iter_mut().map(Incoming::take_lost).sum()
    }
}

/// Opens the socket of a queue with frames in `memory`. The first socket registers the memory, and others share the memory of
/// `first`.
fn open(queue: &Queue, memory: &Frames, first: &mut Option<RawFd>) -> io::Result<(Incoming, Outgoing)> {
    let fd = sys::socket(AF_XDP, libc::SOCK_RAW, 0)?;
    if first.is_none() {
        // struct xdp_umem_reg: address, length, bytes of a frame, extra room in front, flags.
        let (address, len) = memory.address();
        let mut registration = [address.to_ne_bytes(), len.to_ne_bytes()].concat();
        registration.extend([FRAME as u32, 0, 0, 0].map(u32::to_ne_bytes).concat());
        sys::set_option(fd.as_fd(), SOL_XDP, UMEM_REG, &registration)?;
    }
    for ring in [FILL_RING, COMPLETION_RING, RX_RING, TX_RING] {
        sys::set_number(fd.as_fd(), SOL_XDP, ring, queue.frames as i32)?;
    }
    let offsets = offsets(fd.as_fd())?;
    let entries = queue.frames as u32;
    let receive = Ring::map(fd.as_fd(), PAGES[0], offsets[0], entries)?;
    let transmit = Ring::map(fd.as_fd(), PAGES[1], offsets[1], entries)?;
    let fill = Ring::map(fd.as_fd(), PAGES[2], offsets[2], entries)?;
    let completion = Ring::map(fd.as_fd(), PAGES[3], offsets[3], entries)?;
    // struct sockaddr_xdp. A socket that shares another's memory takes its flags over too.
    let (flags, other) = match *first {
        Some(other) => (SHARED, other as u32),
        None => (NEED_WAKEUP, 0),
    };
    let mut address = [AF_XDP as u16, flags].map(u16::to_ne_bytes).concat();
    address.extend([queue.device, queue.queue, other].map(u32::to_ne_bytes).concat());
    sys::bind(fd.as_fd(), &address)?;
    first.get_or_insert(fd.as_raw_fd());
    let fd = Arc::new(fd);
    let incoming = Incoming { fd: Arc::clone(&fd), receive, fill, lost: 0 };
    Ok((incoming, Outgoing { fd, transmit, completion, unsent: false }))
}

impl Outgoing {
    fn send(&mut self) {
        self.transmit.publish();
        self.unsent = false;
        for _ in 0..=BURST / SENT_AT_ONCE {
            if !self.transmit.wants_call() || self.transmit.is_read() {
                return;
            }
            // Frames that cannot be sent now leave with the next burst.
            let _ = sys::send(self.fd.as_fd(), &[], libc::MSG_DONTWAIT);
        }
        self.unsent = !self.transmit.is_read();
    }
}

impl Incoming {
    fn take_lost(&mut self) -> u64 {
        // struct xdp_statistics: dropped, wrong ones received and to send, receive ring full, ...
        let mut statistics = [0; 48];
        let Ok(24..) = sys::option(self.fd.as_fd(), SOL_XDP, STATISTICS, &mut statistics) else { return 0 };
        let word =
            |at: usize| statistics[at * 8..].first_chunk::<8>().map_or(0, |word| u64::from_ne_bytes(*word));
        let lost = word(0) + word(3);
        let new = lost.saturating_sub(self.lost);
        self.lost = lost;
        new
    }
}

/// Returns the second word of a `struct xdp_desc`: length, and no options.
fn descriptor(len: usize) -> u64 {
    let [a, b, c, d] = (len as u32).to_ne_bytes();
    u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0])
}

/// Returns the length in the second word of a `struct xdp_desc`.
fn length(word: u64) -> u32 {
    let [a, b, c, d, ..] = word.to_ne_bytes();
    u32::from_ne_bytes([a, b, c, d])
}

/// Returns the offsets of the parts of each ring in its mapping: receive, transmit, fill, completion.
fn offsets(fd: BorrowedFd<'_>) -> io::Result<[[usize; 4]; 4]> {
    let mut bytes = [0; 128];
    if sys::option(fd, SOL_XDP, MMAP_OFFSETS, &mut bytes)? != bytes.len() {
        return Err(io::Error::other("AF_XDP needs Linux 5.4"));
    }
    let mut words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word) as usize);
    // Producer, consumer, entries, flags.
    Ok(std::array::from_fn(|_| std::array::from_fn(|_| words.next().unwrap_or(0))))
}
