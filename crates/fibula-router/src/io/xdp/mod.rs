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
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::kernel::sys::{self, Frames, Ring};

use super::{BURST, Offload, Received, complete_checksum};
use crate::packet::ethernet::Header;

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
/// How long the kernel may take to free the queue of a closed socket. It does so after the socket is closed, also if its process has
/// ended (net/xdp/xsk_buff_pool.c, xp_put_pool).
const RELEASE: Duration = Duration::from_secs(2);
/// Longest frame.
const LARGEST: usize = FRAME - HEADROOM;
/// Largest packet that a frame holds after an Ethernet header with two tags.
pub const MTU: usize = LARGEST - 22;
/// Marks a frame that is in no ring.
const NOBODY: u16 = u16::MAX;
/// Frames that the kernel sends in one system call. The rest takes another call.
const SENT_AT_ONCE: usize = 32;

/// The half of a socket that receives.
#[derive(Debug)]
struct Incoming {
    fd: Arc<OwnedFd>,
    receive: Ring<2>,
    fill: Ring<1>,
    lost: u64,
    /// Most frames that wait in the fill ring.
    share: u32,
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
    /// For each frame of this part, the port whose rings it is in, or [`NOBODY`]. A socket that goes takes its rings with it, and
    /// its frames are free then.
    holders: Box<[u16]>,
    burst: Vec<Held>,
    turn: usize,
}

/// The sockets of a port, for one thread.
#[derive(Debug, Default)]
pub struct Ends {
    incoming: Vec<Incoming>,
    outgoing: Option<Outgoing>,
}

/// The sockets of a port that are open.
#[derive(Debug)]
pub struct Sockets {
    /// The descriptor of each queue.
    pub descriptors: Vec<(u32, RawFd)>,
    /// The ends of each thread that receives; with those that send, if threads do both.
    pub receivers: Vec<Ends>,
    /// The ends of each thread that only sends.
    pub senders: Vec<Ends>,
}

/// A queue of a device, for a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Queue {
    /// Number of the device.
    device: u32,
    /// Number of the queue.
    queue: u32,
    /// Frames of each ring, a power of two.
    frames: usize,
}

/// A port whose sockets are to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Number of the port.
    pub port: usize,
    /// Frames of each ring, a power of two.
    pub frames: usize,
    /// Receive queues of the device. They are dealt out to the threads that receive.
    pub queues: usize,
    /// The threads that send by the port, each of which has the queue of its place in the list.
    pub senders: Vec<usize>,
}

/// Opens the sockets of ports, for threads that have the memory of the frames. Devices may come and go.
#[derive(Debug)]
pub struct Opener {
    /// The memory of each thread that receives; one memory if other threads send.
    memories: Vec<FrameMemory>,
    receivers: usize,
    /// Threads that only send.
    senders: usize,
}

/// A memory, and the sockets that have it.
#[derive(Debug)]
struct FrameMemory {
    frames: Frames,
    sockets: Vec<(usize, Weak<OwnedFd>)>,
}

/// An opener, and the ends of each thread, without sockets: those of threads that receive, and of those that only send.
pub type Opened = (Opener, Vec<Xdp>, Vec<Xdp>);

impl Opener {
    /// Takes memory for these ports. With `senders`, that many threads only send, and others only receive.
    ///
    /// # Errors
    /// When there is not enough memory.
    pub fn new(ports: &[Wanted], receivers: usize, senders: Option<usize>) -> io::Result<Opened> {
        // Twice the size of a ring, because one ring of frames is with the kernel while others are being received or made.
        let bytes = |port: &Wanted, queues: usize| 2 * port.frames * FRAME * queues;
        let received = |thread: usize| -> usize {
            let queues = |port: &Wanted| (0..port.queues).filter(|queue| queue % receivers == thread).count();
            ports.iter().map(|port| bytes(port, queues(port))).sum()
        };
        let sent = |thread: usize| -> usize {
            let sends = |port: &&Wanted| port.senders.contains(&thread);
            ports.iter().filter(sends).map(|port| bytes(port, 1)).sum()
        };
        let count = ports.iter().map(|port| port.port + 1).max().unwrap_or(0);
        let shared = |frames: &Frames| FrameMemory { frames: frames.keep(), sockets: Vec::new() };
        let mut opener = Self { memories: Vec::new(), receivers, senders: senders.unwrap_or(0) };
        let (mut receiving, mut sending) = (Vec::new(), Vec::new());
        if senders.is_none() {
            for thread in 0..receivers {
                let memory = Frames::new(received(thread).max(FRAME))?;
                opener.memories.push(shared(&memory));
                receiving.push(Xdp::new(memory, count));
            }
        } else {
            let all: usize = (0..receivers).map(received).chain((0..opener.senders).map(sent)).sum();
            let mut memory = Frames::new(all.max(FRAME))?;
            opener.memories.push(shared(&memory));
            sending.extend((0..opener.senders).map(|thread| Xdp::new(memory.take(sent(thread)), count)));
            receiving.extend((0..receivers).map(|thread| Xdp::new(memory.take(received(thread)), count)));
        }
        Ok((opener, receiving, sending))
    }

    /// Opens the sockets of a port on a device, given by its number. Frames arrive once a program gives them to the sockets.
    ///
    /// # Errors
    /// Without CAP_NET_RAW, without memory that may be locked, and when the device is gone or down, has no such queue or has a
    /// socket there for two seconds more.
    pub fn open(&mut self, port: &Wanted, device: u32) -> io::Result<Sockets> {
        self.forget(port.port);
        let ends = |count: usize| -> Vec<Ends> { (0..count).map(|_| Ends::default()).collect() };
        let mut sockets =
            Sockets { descriptors: Vec::new(), receivers: ends(self.receivers), senders: ends(self.senders) };
        for number in 0..port.queues {
            let thread = number % self.receivers;
            let memory = if self.senders == 0 { thread } else { 0 };
            let memory = &mut self.memories[memory];
            let queue = Queue { device, queue: number as u32, frames: port.frames };
            let other = memory.sockets.iter().find_map(|socket| socket.1.upgrade());
            let until = Instant::now() + RELEASE;
            let (incoming, outgoing) = loop {
                match open(&queue, &memory.frames, other.as_deref()) {
                    Err(error) if error.kind() == io::ErrorKind::ResourceBusy && Instant::now() < until => {
                        std::thread::sleep(Duration::from_micros(100));
                    }
                    done => break done?,
                }
            };
            memory.sockets.push((port.port, Arc::downgrade(&incoming.fd)));
            sockets.descriptors.push((queue.queue, incoming.fd.as_raw_fd()));
            sockets.receivers[thread].incoming.push(incoming);
            if self.senders == 0 {
                // By the first queue of the thread, so that flows stay in order.
                sockets.receivers[thread].outgoing.get_or_insert(outgoing);
            } else if let Some(&sender) = port.senders.get(number) {
                sockets.senders[sender].outgoing = Some(outgoing);
            }
        }
        Ok(sockets)
    }

    /// Returns whether a socket of a port is open.
    #[must_use]
    pub fn is_open(&self, port: usize) -> bool {
        let sockets = self.memories.iter().flat_map(|memory| &memory.sockets);
        sockets.filter(|socket| socket.0 == port).any(|socket| socket.1.strong_count() > 0)
    }

    /// Notes that the device of a port is gone. Its sockets no longer have the memory.
    pub fn forget(&mut self, port: usize) {
        for memory in &mut self.memories {
            memory.sockets.retain(|socket| socket.0 != port && socket.1.strong_count() > 0);
        }
    }
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

impl Xdp {
    /// Makes the ends of a thread, without sockets, to which all frames in `memory` belong.
    fn new(memory: Frames, ports: usize) -> Self {
        let part = memory.part();
        Self {
            free: part.clone().step_by(FRAME).collect(),
            holders: vec![NOBODY; part.len() / FRAME].into(),
            memory,
            incoming: (0..ports).map(|_| Vec::new()).collect(),
            outgoing: (0..ports).map(|_| None).collect(),
            burst: Vec::with_capacity(BURST),
            turn: 0,
        }
    }

    /// Returns the descriptors of a port's sockets, in the order of its queues.
    pub fn descriptors(&self, port: usize) -> impl Iterator<Item = RawFd> {
        self.incoming.get(port).into_iter().flatten().map(|socket| socket.fd.as_raw_fd())
    }

    /// Returns the cell that names the holder of a frame, given by an offset within it.
    fn holder(&mut self, at: usize) -> &mut u16 {
        &mut self.holders[(at - self.memory.part().start) / FRAME]
    }

    /// Gives free frames to the kernel, for receiving.
    fn refill(&mut self) {
        let start = self.memory.part().start;
        for (port, sockets) in self.incoming.iter_mut().enumerate() {
            for socket in sockets {
                // No socket takes more than its share, because there may be fewer frames than the rings hold: a device that
                // came back may have more queues than before.
                while socket.fill.waiting() < socket.share && socket.fill.room() > 0 {
                    let Some(frame) = self.free.pop() else { break };
                    self.holders[(frame - start) / FRAME] = port as u16;
                    socket.fill.write([frame as u64]);
                }
                socket.fill.publish();
            }
        }
    }

    /// Takes back the frames that the kernel has sent.
    fn collect(&mut self) {
        let start = self.memory.part().start;
        for socket in self.outgoing.iter_mut().flatten() {
            while let Some([address]) = socket.completion.read() {
                let frame = address as usize / FRAME * FRAME;
                self.holders[(frame - start) / FRAME] = NOBODY;
                self.free.push(frame);
            }
            socket.completion.give_back();
        }
    }

    /// Replaces the sockets of a port whose device has gone, or has come. The frames in the rings of the old ones are free: the
    /// kernel has let go of a socket before it reports that its device is gone.
    pub fn replace(&mut self, port: usize, ends: Ends) {
        let Ends { incoming, outgoing } = ends;
        (self.incoming[port], self.outgoing[port]) = (incoming, outgoing);
        let start = self.memory.part().start;
        for (frame, holder) in self.holders.iter_mut().enumerate() {
            if usize::from(*holder) == port {
                *holder = NOBODY;
                self.free.push(start + frame * FRAME);
            }
        }
        self.share();
        self.refill();
    }

    /// Divides the frames among the sockets: half of them for receiving, the rest for packets on their way out.
    fn share(&mut self) {
        let sockets = self.incoming.iter().flatten().count().max(1);
        let share = (self.holders.len() / sockets / 2).max(1) as u32;
        self.incoming.iter_mut().flatten().for_each(|socket| socket.share = share);
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
                self.holders[(address as usize - self.memory.part().start) / FRAME] = NOBODY;
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
        header: &Header,
        packet: core::ops::Range<usize>,
    ) -> bool {
        let Some(socket) = &mut self.outgoing[port] else { return false };
        let held = self.burst[index];
        let start = held.at + packet.start;
        // The kernel leaves room in front of a frame, so a header that is longer by two tags fits.
        if start % FRAME < header.size() {
            return false;
        }
        let begin = start - header.size();
        let len = header.size() + packet.len();
        header.write(self.memory.bytes(begin, header.size()));
        if !socket.transmit.write([begin as u64, descriptor(len)]) {
            return false;
        }
        socket.unsent = true;
        self.burst[index].gone = true;
        *self.holder(begin) = port as u16;
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
        let written = socket.transmit.write([(frame + HEADROOM) as u64, descriptor(len)]);
        *self.holder(frame) = port as u16;
        written
    }

    pub(super) fn has_unsent(&self) -> bool {
        self.outgoing.iter().flatten().any(|socket| socket.unsent)
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

/// Opens the socket of a queue with frames in `memory`. The first socket registers the memory, and others share the memory of an
/// `other` that is bound to a device.
fn open(queue: &Queue, memory: &Frames, other: Option<&OwnedFd>) -> io::Result<(Incoming, Outgoing)> {
    let fd = sys::socket(AF_XDP, libc::SOCK_RAW, 0)?;
    if other.is_none() {
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
    let (flags, other) = match other {
        Some(other) => (SHARED, other.as_raw_fd() as u32),
        None => (NEED_WAKEUP, 0),
    };
    let mut address = [AF_XDP as u16, flags].map(u16::to_ne_bytes).concat();
    address.extend([queue.device, queue.queue, other].map(u32::to_ne_bytes).concat());
    sys::bind(fd.as_fd(), &address)?;
    let fd = Arc::new(fd);
    let incoming = Incoming { fd: Arc::clone(&fd), receive, fill, lost: 0, share: 0 };
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
