//! Rings of DPDK (`rte_ring`) between two threads: they pass the buffers of packets, and no byte is copied. `shim.c` is the other side.
//!
//! One of the rooms of unsafe code.
#![allow(unsafe_code)]

use core::ffi::{c_char, c_int, c_uint};
use core::ptr::NonNull;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::port::{Packet, Pool, string};
use super::register;
use crate::io::{BURST, Offload};

#[repr(C)]
#[derive(Debug)]
struct RawRing {
    _opaque: [u8; 0],
}

unsafe extern "C" {
    fn fibula_ring_make(name: *const c_char, capacity: c_uint, error: *mut c_int) -> *mut RawRing;
    fn fibula_ring_free(ring: *mut RawRing);
    fn fibula_ring_room(ring: *const RawRing) -> c_uint;
    fn fibula_ring_count(ring: *const RawRing) -> c_uint;
    fn fibula_ring_send(ring: *mut RawRing, packets: *const Packet, count: c_uint) -> c_uint;
    fn fibula_ring_receive(ring: *mut RawRing, packets: *mut Packet, most: c_uint) -> c_uint;
}

/// A ring, until both ends are gone.
#[derive(Debug)]
struct PacketRing {
    raw: NonNull<RawRing>,
    /// Whether the sending end, and whether the receiving end, is gone.
    gone: [AtomicBool; 2],
}

// SAFETY: one thread may send while another one receives. There is one value for each end, and its functions take it mutably.
unsafe impl Send for PacketRing {}
// SAFETY: as above. The number of packets may be asked for at any time.
unsafe impl Sync for PacketRing {}

const SENDER: usize = 0;
const RECEIVER: usize = 1;

/// The sending end of a ring.
#[derive(Debug)]
pub struct RingSender {
    ring: Arc<PacketRing>,
    pool: Pool,
    /// Packets that leave with the next [`flush`](Self::flush).
    ready: Vec<Packet>,
    /// Packets for which there was room when somebody looked last, besides those that are ready.
    room: usize,
}

/// The receiving end of a ring.
#[derive(Debug)]
pub struct RingReceiver {
    ring: Arc<PacketRing>,
}

/// Makes a ring for `capacity` packets. `pool` has the buffers for packets that the sender makes.
///
/// # Errors
/// When DPDK has no memory for it.
pub fn link(pool: Pool, capacity: usize) -> io::Result<(RingSender, RingReceiver)> {
    static RINGS: AtomicUsize = AtomicUsize::new(0);
    let name = string(&format!("fibula ring {}", RINGS.fetch_add(1, Ordering::Relaxed)))?;
    let mut error = 0;
    // SAFETY: the name ends with a zero byte, and DPDK copies it.
    let raw = unsafe { fibula_ring_make(name.as_ptr(), capacity as c_uint, &raw mut error) };
    let raw = NonNull::new(raw).ok_or_else(|| io::Error::from_raw_os_error(-error))?;
    let ring = Arc::new(PacketRing { raw, gone: Default::default() });
    let ready = Vec::with_capacity(capacity);
    Ok((RingSender { ring: Arc::clone(&ring), pool, ready, room: 0 }, RingReceiver { ring }))
}

impl PacketRing {
    fn count(&self) -> usize {
        // SAFETY: the ring is there until this value is dropped.
        unsafe { fibula_ring_count(self.raw.as_ptr()) as usize }
    }

    /// Appends up to `most` packets. Only one thread may call this at a time.
    fn receive(&self, most: usize, packets: &mut Vec<Packet>) {
        packets.reserve(most);
        let room = packets.spare_capacity_mut();
        let most = most.min(room.len()) as c_uint;
        // SAFETY: the ring is there, the caller is the only one that receives, and the shim writes at most `most` packets.
        let count = unsafe {
            fibula_ring_receive(self.raw.as_ptr(), room.as_mut_ptr().cast::<Packet>(), most) as usize
        };
        let len = packets.len() + count;
        // SAFETY: the shim has written as many packets as it says.
        unsafe { packets.set_len(len) };
    }
}

impl Drop for PacketRing {
    fn drop(&mut self) {
        // Buffers that nobody has received go back to their pool.
        let mut left = Vec::new();
        while self.count() > 0 {
            self.receive(BURST, &mut left);
            left.clear();
        }
        // SAFETY: no end is left, so no thread uses the ring.
        unsafe { fibula_ring_free(self.raw.as_ptr()) };
    }
}

impl RingSender {
    /// Returns whether there is room for `count` packets. Also returns `true` if the other end is gone, because then there is
    /// nothing to wait for.
    pub fn has_room(&mut self, count: usize) -> bool {
        if self.room < count {
            self.look();
        }
        self.room >= count || self.ring.gone[RECEIVER].load(Ordering::Acquire)
    }

    /// Looks how much room there is: the other thread only makes more of it.
    fn look(&mut self) {
        // SAFETY: the ring is there until the last end is dropped.
        let free = unsafe { fibula_ring_room(self.ring.raw.as_ptr()) as usize };
        self.room = free.saturating_sub(self.ready.len());
    }

    /// Adds a packet to those that leave with the next flush. Without room, returns it.
    ///
    /// # Errors
    /// The packet, if the ring is full.
    pub fn push(&mut self, packet: Packet) -> Result<(), Packet> {
        if self.room == 0 {
            self.look();
        }
        if self.room == 0 {
            return Err(packet);
        }
        self.room -= 1;
        self.ready.push(packet);
        Ok(())
    }

    /// Makes a packet of parts, of which the first one is its Ethernet header. Returns `None` without a free buffer.
    #[must_use]
    pub fn make(&self, parts: [&[u8]; 3], offload: &Offload) -> Option<Packet> {
        register();
        self.pool.make(parts, offload)
    }

    /// Sends the packets added since the last flush, and returns whether there were any.
    pub fn flush(&mut self) -> bool {
        let mut sent = 0;
        while sent < self.ready.len() {
            let rest = &self.ready[sent..];
            // SAFETY: the ring is there, this is its only sender, and the packets are this side's until the ring has them.
            let taken =
                unsafe { fibula_ring_send(self.ring.raw.as_ptr(), rest.as_ptr(), rest.len() as c_uint) };
            if taken == 0 {
                // Cannot be: there was room for each. What is left would leave with the next flush.
                break;
            }
            sent += taken as usize;
        }
        // They are the ring's now.
        self.ready.drain(..sent).for_each(core::mem::forget);
        sent > 0
    }
}

impl Drop for RingSender {
    fn drop(&mut self) {
        self.flush();
        self.ring.gone[SENDER].store(true, Ordering::Release);
    }
}

impl RingReceiver {
    /// Appends up to `most` packets.
    pub fn take(&mut self, most: usize, packets: &mut Vec<Packet>) {
        register();
        self.ring.receive(most, packets);
    }

    /// Returns whether no packet waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ring.count() == 0
    }

    /// Returns whether the other end is gone, and all that it sent has been taken.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        // In this order: what was sent before the end is visible after it.
        self.ring.gone[SENDER].load(Ordering::Acquire) && self.is_empty()
    }
}

impl Drop for RingReceiver {
    fn drop(&mut self) {
        self.ring.gone[RECEIVER].store(true, Ordering::Release);
    }
}
