//! The boundary to DPDK: its ports, their queues, and packets. `shim.c` is the other side.
//!
//! One of the rooms of unsafe code.
#![allow(unsafe_code)]

use core::ffi::{c_char, c_int, c_uint};
use core::ptr::NonNull;
use std::ffi::CString;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::io::{Offload, complete_checksum};
use crate::packet::ethernet::{Header, Mac, Tag};

#[repr(C)]
#[derive(Debug)]
struct Buffer {
    _opaque: [u8; 0],
}

#[repr(C)]
#[derive(Debug)]
struct RawPool {
    _opaque: [u8; 0],
}

/// A packet in a buffer of its own, which goes back to its pool when this is dropped. `struct fibula_packet`.
#[repr(C)]
#[derive(Debug)]
pub struct Packet {
    buffer: NonNull<Buffer>,
    data: NonNull<u8>,
    len: u32,
    front: u32,
    room: u32,
    tag: i32,
    whole: u32,
}

/// `struct fibula_port_options`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct RawOptions {
    receive: u16,
    send: u16,
    frames: u16,
    mtu: u16,
    promiscuous: u32,
    set_mac: u32,
    mac: [u8; 6],
}

unsafe extern "C" {
    fn fibula_dpdk_start(count: c_int, arguments: *mut *mut c_char) -> c_int;
    fn fibula_dpdk_thread(begins: c_int) -> c_int;
    fn fibula_dpdk_pool(name: *const c_char, buffers: c_uint, bytes: u16, error: *mut c_int) -> *mut RawPool;
    fn fibula_dpdk_pool_used(pool: *const RawPool) -> c_uint;
    fn fibula_port_find(name: *const c_char, port: *mut u16) -> c_int;
    fn fibula_port_open(port: u16, pool: *mut RawPool, options: *mut RawOptions) -> c_int;
    fn fibula_port_close(port: u16);
    fn fibula_port_is_up(port: u16) -> c_int;
    fn fibula_port_lost(port: u16) -> u64;
    fn fibula_port_receive(port: u16, queue: u16, packets: *mut Packet, most: c_uint) -> c_uint;
    fn fibula_port_send(port: u16, queue: u16, packets: *const Packet, count: c_uint) -> c_uint;
    fn fibula_packet_make(pool: *mut RawPool, packet: *mut Packet) -> c_int;
    fn fibula_packet_free(buffer: *mut Buffer);
}

fn checked(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) }
}

pub(super) fn string(text: &str) -> io::Result<CString> {
    CString::new(text).map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a text with a zero byte"))
}

/// Starts DPDK with its own arguments, once a process. Later calls do nothing, and return the result of the first.
///
/// # Errors
/// When DPDK refuses. DPDK also prints the reason.
pub(super) fn start(arguments: &[String]) -> io::Result<()> {
    static STARTED: OnceLock<Result<(), i32>> = OnceLock::new();
    let words = ["fibula"].into_iter().chain(arguments.iter().map(String::as_str));
    let words = words.map(string).collect::<io::Result<Vec<_>>>()?;
    let begin = || {
        // DPDK may keep pointers to them, and change the order of the list.
        let mut list: Vec<*mut c_char> = words.into_iter().map(CString::into_raw).collect();
        let count = list.len() as c_int;
        list.push(core::ptr::null_mut());
        let list = list.leak();
        // SAFETY: `count` strings, and the null pointer after them that C expects, all of which stay as long as the process.
        let started = unsafe { fibula_dpdk_start(count, list.as_mut_ptr()) };
        checked(started).map_err(|error| error.raw_os_error().unwrap_or(0))
    };
    STARTED.get_or_init(begin).map_err(io::Error::from_raw_os_error)
}

/// Registers a thread with DPDK as long as this value lives, for its cache of free buffers.
#[derive(Debug)]
pub(super) struct Thread {
    known: bool,
    /// The registered thread itself must end the registration.
    _not_send: core::marker::PhantomData<*const ()>,
}

impl Thread {
    pub(super) fn begin() -> Self {
        // SAFETY: takes a number, and concerns the calling thread.
        let result = unsafe { fibula_dpdk_thread(1) };
        // Without a free number for the thread there is no cache: slower, but no more.
        Self { known: result >= 0, _not_send: core::marker::PhantomData }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if self.known {
            // SAFETY: takes a number, and concerns the calling thread, which began.
            unsafe { fibula_dpdk_thread(0) };
        }
    }
}

/// Buffers for packets. It stays as long as the process, so that no packet outlives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pool(NonNull<RawPool>);

// SAFETY: DPDK's pools may be used by all threads at once.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

impl Pool {
    /// Creates a pool of at least `buffers` buffers of `bytes` bytes each.
    pub(super) fn new(name: &str, buffers: usize, bytes: u16) -> io::Result<Self> {
        let name = string(name)?;
        let mut error = 0;
        // SAFETY: the name ends with a zero byte, and DPDK copies it.
        let pool = unsafe { fibula_dpdk_pool(name.as_ptr(), buffers as c_uint, bytes, &raw mut error) };
        NonNull::new(pool).map(Self).ok_or_else(|| io::Error::from_raw_os_error(-error))
    }

    /// Returns an empty packet, if there is a free buffer.
    fn packet(self) -> Option<Packet> {
        let mut packet = core::mem::MaybeUninit::uninit();
        // SAFETY: the pool lives as long as the process; the shim writes the packet if it returns 0.
        let made = unsafe { fibula_packet_make(self.0.as_ptr(), packet.as_mut_ptr()) };
        // SAFETY: written, as the shim says.
        (made == 0).then(|| unsafe { packet.assume_init() })
    }

    /// Makes a packet of parts, of which the first one is its Ethernet header. Returns `None` without a free buffer that is large
    /// enough.
    pub(super) fn make(self, parts: [&[u8]; 3], offload: &Offload) -> Option<Packet> {
        let mut packet = self.packet()?;
        if !packet.append(parts) {
            return None;
        }
        complete_checksum(&mut packet.bytes()[parts[0].len()..], offload);
        Some(packet)
    }

    /// Returns the number of buffers that are not in the pool: those of packets, and those in the queues of ports.
    #[must_use]
    pub fn used(self) -> usize {
        // SAFETY: the pool lives as long as the process, and all threads may ask.
        unsafe { fibula_dpdk_pool_used(self.0.as_ptr()) as usize }
    }
}

// SAFETY: the buffer belongs to this value, wherever it is.
unsafe impl Send for Packet {}

impl Packet {
    /// Returns the frame.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: `len` bytes of the buffer from `data` on, which belong to this value.
        unsafe { core::slice::from_raw_parts_mut(self.data.as_ptr(), self.len as usize) }
    }

    /// Returns the VLAN tag that the device has taken out of the frame.
    pub(crate) fn tag(&self) -> Option<Tag> {
        u16::try_from(self.tag).ok().map(Tag::from)
    }

    /// Returns whether all of the packet is in this buffer.
    pub(crate) fn is_whole(&self) -> bool {
        self.whole != 0
    }

    /// Puts a new header in front of the bytes in `packet`, which must be of the frame. Returns `false` if there is no room.
    pub(crate) fn readdress(&mut self, header: &Header, packet: Range<usize>) -> bool {
        assert!(packet.start <= packet.end && packet.end <= self.len as usize, "{packet:?} of {}", self.len);
        let free = self.front as usize + packet.start;
        if free < header.size() || !self.is_whole() {
            return false;
        }
        let moved = packet.start as isize - header.size() as isize;
        // SAFETY: inside the buffer, as there are `free` bytes in front of the packet.
        self.data = unsafe { self.data.offset(moved) };
        self.front = (free - header.size()) as u32;
        self.room = (self.room as isize - moved) as u32;
        self.len = (header.size() + packet.len()) as u32;
        header.write(self.bytes());
        true
    }

    /// Appends parts to the frame. Returns `false` if there is no room.
    fn append(&mut self, parts: [&[u8]; 3]) -> bool {
        let (before, more) = (self.len as usize, parts.iter().map(|part| part.len()).sum::<usize>());
        if before + more > self.room as usize {
            return false;
        }
        // SAFETY: the buffer has `room` bytes from `data` on.
        let free = unsafe { self.data.add(before) };
        let mut to = free;
        for part in parts {
            // SAFETY: inside the room that was checked; a buffer of DPDK's is no part of `parts`.
            unsafe { to.copy_from_nonoverlapping(NonNull::from(part).cast(), part.len()) };
            // SAFETY: as above, at most the end of it.
            to = unsafe { to.add(part.len()) };
        }
        self.len = (before + more) as u32;
        true
    }
}

impl Drop for Packet {
    fn drop(&mut self) {
        // SAFETY: the buffer is this value's, and DPDK takes it back.
        unsafe { fibula_packet_free(self.buffer.as_ptr()) };
    }
}

/// Options of a port.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    /// Queues that receive, and queues that send.
    pub(super) queues: (usize, usize),
    /// Frames of each queue.
    pub(super) frames: usize,
    pub(super) mtu: usize,
    /// Whether it takes frames to all stations.
    pub(super) promiscuous: bool,
    /// The MAC address to set. If `None`, the port keeps its own.
    pub(super) mac: Option<Mac>,
    /// The MAC address to use if the port has none.
    pub(super) otherwise: Mac,
}

/// An open port. Closed when nothing holds it any more.
#[derive(Debug)]
pub struct Port {
    number: u16,
    pool: Pool,
    mac: Mac,
    lost: AtomicU64,
}

/// A queue that receives. There is one value for each, so no two threads use it at once.
#[derive(Debug)]
pub(super) struct ReceiveQueue {
    port: Arc<Port>,
    number: u16,
}

/// A queue that sends.
#[derive(Debug)]
pub(super) struct SendQueue {
    port: Arc<Port>,
    number: u16,
}

/// Whether each port is open, by number.
static OPEN: [AtomicBool; 1024] = [const { AtomicBool::new(false) }; 1024];

impl Port {
    /// Opens a port by the name that DPDK has for it.
    ///
    /// # Errors
    /// When there is no such port, it is open already, or it refuses the options.
    pub(super) fn open(
        name: &str,
        pool: Pool,
        options: &Options,
    ) -> io::Result<(Arc<Self>, Vec<ReceiveQueue>, Vec<SendQueue>)> {
        let (text, mut number) = (string(name)?, 0);
        // SAFETY: the name ends with a zero byte; the shim writes the number.
        checked(unsafe { fibula_port_find(text.as_ptr(), &raw mut number) })?;
        let open = OPEN.get(usize::from(number)).ok_or_else(|| io::Error::other("too many ports"))?;
        if open.swap(true, Ordering::AcqRel) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let (receive, send) = (options.queues.0 as u16, options.queues.1 as u16);
        let mut raw = RawOptions {
            receive,
            send,
            frames: options.frames.min(usize::from(u16::MAX)) as u16,
            mtu: options.mtu as u16,
            promiscuous: options.promiscuous.into(),
            set_mac: options.mac.is_some().into(),
            mac: options.mac.unwrap_or_default().0,
        };
        // SAFETY: the port is there and nothing else has it; the pool lives as long as the process.
        let done = checked(unsafe { fibula_port_open(number, pool.0.as_ptr(), &raw mut raw) });
        if let Err(error) = done {
            open.store(false, Ordering::Release);
            return Err(error);
        }
        let mac = if Mac(raw.mac).is_station() { Mac(raw.mac) } else { options.otherwise };
        let port = Arc::new(Self { number, pool, mac, lost: AtomicU64::new(0) });
        let receive = (0..receive).map(|number| ReceiveQueue { port: Arc::clone(&port), number }).collect();
        let send = (0..send).map(|number| SendQueue { port: Arc::clone(&port), number }).collect();
        Ok((port, receive, send))
    }

    /// Returns its MAC address.
    #[must_use]
    pub fn mac(&self) -> Mac {
        self.mac
    }

    /// Returns whether its link is up.
    #[must_use]
    pub fn is_up(&self) -> bool {
        // SAFETY: the port is open.
        unsafe { fibula_port_is_up(self.number) != 0 }
    }

    /// Returns the number of frames lost for lack of room since any thread last called this.
    pub(super) fn take_lost(&self) -> u64 {
        // SAFETY: the port is open, and all threads may ask for its counters.
        let lost = unsafe { fibula_port_lost(self.number) };
        lost.saturating_sub(self.lost.fetch_max(lost, Ordering::Relaxed))
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        // SAFETY: no queue has the port any more, so no thread uses it. Packets in its queues go back to their pools.
        unsafe { fibula_port_close(self.number) };
        OPEN[usize::from(self.number)].store(false, Ordering::Release);
    }
}

impl ReceiveQueue {
    pub(super) fn port(&self) -> &Port {
        &self.port
    }

    /// Appends up to `most` packets.
    pub(super) fn receive(&mut self, most: usize, packets: &mut Vec<Packet>) {
        packets.reserve(most);
        let room = packets.spare_capacity_mut();
        let most = most.min(room.len()) as c_uint;
        // SAFETY: the port is open, this thread alone uses the queue, and the shim writes at most `most` packets.
        let count = unsafe {
            fibula_port_receive(self.port.number, self.number, room.as_mut_ptr().cast::<Packet>(), most)
        };
        let len = packets.len() + count as usize;
        // SAFETY: the shim has written as many packets as it says.
        unsafe { packets.set_len(len) };
    }
}

impl SendQueue {
    /// Makes a packet, as [`Pool::make`] does.
    pub(super) fn make(&self, parts: [&[u8]; 3], offload: &Offload) -> Option<Packet> {
        self.port.pool.make(parts, offload)
    }

    /// Sends packets in order, as far as there is room, and removes them from the list.
    pub(super) fn send(&mut self, packets: &mut Vec<Packet>) {
        let mut sent = 0;
        while sent < packets.len() {
            let rest = &packets[sent..];
            // SAFETY: the port is open, this thread alone uses the queue, and the packets are this side's until it takes them.
            let taken = unsafe {
                fibula_port_send(self.port.number, self.number, rest.as_ptr(), rest.len() as c_uint)
            };
            if taken == 0 {
                break;
            }
            sent += taken as usize;
        }
        // They are DPDK's now.
        packets.drain(..sent).for_each(core::mem::forget);
    }
}
