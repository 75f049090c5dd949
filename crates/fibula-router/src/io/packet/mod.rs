//! AF_PACKET: rings that are shared with the kernel, for any network device (packet(7), TPACKET_V2).
//!
//! The kernel copies each frame into the next slot of the receive ring, and the router copies each packet into a slot of the
//! transmit ring. One system call a burst makes the kernel send. Several workers join a fanout group, in which the kernel spreads
//! flows by hash. Each frame comes with a `struct virtio_net_hdr` in front of it, which describes the checksum left to compute
//! and the segments in the packet. The router passes it on with the packet, so that large packets of local senders cross the
//! router whole.
//!
//! Version 3 of the rings holds frames back until a block is full or a timer of a millisecond or more ends; version 2 gives
//! each frame at once.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering;

use crate::kernel::gate::Sieve;
use crate::kernel::sys::{self, Slots};
use crate::packet::ethernet::{self, Tag};

use super::{BURST, Offload, Received};

const SOL_PACKET: i32 = 263;
const PACKET_RX_RING: i32 = 5;
const PACKET_STATISTICS: i32 = 6;
const PACKET_VERSION: i32 = 10;
const PACKET_TX_RING: i32 = 13;
const PACKET_LOSS: i32 = 14;
const PACKET_VNET_HDR: i32 = 15;
const PACKET_FANOUT: i32 = 18;
const PACKET_IGNORE_OUTGOING: i32 = 23;
const TPACKET_V2: i32 = 1;
const FANOUT_HASH: i32 = 0;
/// The option of a group that corresponds to PACKET_IGNORE_OUTGOING of a socket.
const FANOUT_IGNORE_OUTGOING: i32 = 0x4000;
/// The kernel chooses the number of the group, so that it is no other router's.
const FANOUT_UNIQUE: i32 = 0x2000;
const ETH_P_ALL: u16 = 3;

const KERNEL: u32 = 0;
const USER: u32 = 1;
const VLAN_VALID: u32 = 0x10;
const VLAN_TYPE_VALID: u32 = 0x40;
const SEND_REQUEST: u32 = 1;
const WRONG_FORMAT: u32 = 4;

/// The instruction that passes no byte of a frame on.
const RETURN_NOTHING: (u16, u8, u8, u32) = (6, 0, 0, 0);

/// Bytes of `struct virtio_net_hdr`.
pub(super) const VNET: usize = 10;
const NEEDS_CHECKSUM: u8 = 1;
/// Where a frame to send begins in its slot: after `struct tpacket2_hdr`.
const SEND_AT: usize = 32;
/// Longest frame: a packet of 64 KiB with its headers.
const LARGEST: usize = 65_536 + 64;
/// Bytes of a slot that holds any frame.
const SLOT: usize = 66_048;
const SLOTS_PER_BLOCK: usize = 15;
const BLOCK: usize = 1 << 20;
const _: () = assert!(SLOT.is_multiple_of(16) && SLOT * SLOTS_PER_BLOCK <= BLOCK && LARGEST + 256 < SLOT);

/// Field offsets of `struct tpacket2_hdr`, less the status that [`Slots::bytes`] leaves out.
mod field {
    pub(super) const LEN: usize = 0;
    pub(super) const CAPTURED: usize = 4;
    pub(super) const MAC: usize = 8;
    pub(super) const TAG: usize = 20;
}

fn u16_of(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

fn u32_of(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn ring(fd: &OwnedFd, option: i32, frames: usize) -> io::Result<Slots> {
    let blocks = frames.div_ceil(SLOTS_PER_BLOCK).max(1);
    sys::set_number(fd.as_fd(), SOL_PACKET, PACKET_VERSION, TPACKET_V2)?;
    sys::set_number(fd.as_fd(), SOL_PACKET, PACKET_VNET_HDR, 1)?;
    let request = [BLOCK, blocks, SLOT, blocks * SLOTS_PER_BLOCK].map(|n| (n as u32).to_ne_bytes()).concat();
    sys::set_option(fd.as_fd(), SOL_PACKET, option, &request)?;
    Slots::map(fd.as_fd(), BLOCK, blocks, SLOT)
}

/// The socket of a ring, for the thread that follows devices.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    protocol: u16,
    /// The frames that it takes; all if this is empty.
    sieve: Sieve,
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Socket {
    /// Has the socket of a receive ring of another router, which gave this descriptor.
    #[must_use]
    pub const fn inherited(fd: OwnedFd) -> Self {
        Self { fd, protocol: ETH_P_ALL, sieve: &[] }
    }

    /// Lets a receive ring take the frames alone that pass a filter, from the next [`take_frames`](Self::take_frames) on.
    #[must_use]
    pub fn through(self, sieve: Sieve) -> Self {
        Self { sieve, ..self }
    }

    /// Returns the filter of the frames that it takes.
    #[must_use]
    pub const fn sieve(&self) -> Sieve {
        self.sieve
    }

    /// Moves the ring to another device. A socket whose device was deleted has none, and serves the new one from here on.
    ///
    /// # Errors
    /// When the device is gone, and for sockets of a fanout group, which the kernel does not move.
    pub fn move_to(&self, device: u32) -> io::Result<()> {
        sys::bind(self.fd.as_fd(), &sys::packet_address(self.protocol, device))
    }

    /// Makes a receive ring, which takes frames of a device already, one of those that share the device by the hash of flows. The
    /// first opens a `group`, and the others join it. Returns its number.
    ///
    /// # Errors
    /// When the device is down, or the group has another device.
    pub fn join(&self, group: Option<u16>) -> io::Result<u16> {
        let flags = FANOUT_HASH | FANOUT_IGNORE_OUTGOING | if group.is_none() { FANOUT_UNIQUE } else { 0 };
        let value = i32::from(group.unwrap_or(0)) | flags << 16;
        sys::set_number(self.fd.as_fd(), SOL_PACKET, PACKET_FANOUT, value)?;
        let mut value = [0; 4];
        sys::option(self.fd.as_fd(), SOL_PACKET, PACKET_FANOUT, &mut value)?;
        Ok(u16_of(&value, 0))
    }

    /// Lets a receive ring refuse every frame, which takes effect at once.
    ///
    /// # Errors
    /// When the kernel has no memory for a filter.
    pub fn refuse_frames(&self) -> io::Result<()> {
        sys::set_filter(self.fd.as_fd(), &[RETURN_NOTHING])
    }

    /// Lets a receive ring take frames again after [`refuse_frames`](Self::refuse_frames), at once.
    ///
    /// # Errors
    /// When there is no filter, and when the kernel has no memory for another one.
    pub fn take_frames(&self) -> io::Result<()> {
        if !self.sieve.is_empty() {
            return sys::set_filter(self.fd.as_fd(), self.sieve);
        }
        sys::set_number(self.fd.as_fd(), libc::SOL_SOCKET, libc::SO_DETACH_FILTER, 0)
    }

    /// Lets a receive ring take no more frames.
    pub fn end(&self, device: u32) {
        // Not by binding first, because that takes milliseconds, in which frames would be lost. A filter takes effect at once.
        if self.refuse_frames().is_err() {
            let _ = sys::bind(self.fd.as_fd(), &sys::packet_address(0, device));
        }
    }
}

/// The receive ring of a device, for one worker.
#[derive(Debug)]
pub struct Receive {
    fd: OwnedFd,
    slots: Slots,
    head: usize,
    /// Frames of the burst that is being handled.
    held: usize,
}

impl Receive {
    /// Returns another descriptor of the socket, to move it to another device.
    ///
    /// # Errors
    /// When the process has no more descriptors.
    pub fn socket(&self) -> io::Result<Socket> {
        Ok(Socket { fd: self.fd.try_clone()?, protocol: ETH_P_ALL, sieve: &[] })
    }

    /// Opens a ring of at least `frames` frames, which takes none before [`Socket::move_to`].
    ///
    /// # Errors
    /// Without CAP_NET_RAW, and without memory for the ring.
    pub fn open(frames: usize) -> io::Result<Self> {
        // Open without a protocol, so that nothing arrives before the ring exists.
        let fd = sys::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
        let slots = ring(&fd, PACKET_RX_RING, frames)?;
        sys::set_number(fd.as_fd(), SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)?;
        Ok(Self { fd, slots, head: 0, held: 0 })
    }

    pub(super) fn receive(&mut self) -> usize {
        while self.held < BURST.min(self.slots.count()) {
            let index = (self.head + self.held) % self.slots.count();
            // Acquire: the frame was written before its status.
            if self.slots.status(index).load(Ordering::Acquire) & USER == 0 {
                break;
            }
            self.held += 1;
        }
        self.held
    }

    pub(super) fn frame(&mut self, index: usize) -> Received<'_> {
        assert!(index < self.held, "frame {index} of {}", self.held);
        let slot = (self.head + index) % self.slots.count();
        let status = self.slots.status(slot).load(Ordering::Relaxed);
        let bytes = self.slots.bytes(slot);
        let (len, captured) = (u32_of(bytes, field::LEN), u32_of(bytes, field::CAPTURED));
        // Less the four bytes of the status.
        let at = usize::from(u16_of(bytes, field::MAC)).max(4 + VNET) - 4;
        let tag = (status & VLAN_VALID != 0).then(|| {
            // Before Linux 3.14 there is no EtherType.
            let has_type = status & VLAN_TYPE_VALID != 0;
            let ether_type = if has_type { u16_of(bytes, field::TAG + 2) } else { ethernet::VLAN };
            Tag::new(ether_type, u16_of(bytes, field::TAG))
        });
        let end = (at + captured as usize).min(bytes.len());
        let (before, frame) = bytes[..end].split_at_mut(at.min(end));
        let offload = before.last_chunk::<VNET>().map_or(Offload::default(), |vnet| offload(vnet, frame));
        Received { bytes: frame, tag, offload, cut: captured < len }
    }

    pub(super) fn finish(&mut self) {
        for _ in 0..self.held {
            // Release: the frame is read before its slot is given back.
            self.slots.status(self.head).store(KERNEL, Ordering::Release);
            self.head = (self.head + 1) % self.slots.count();
        }
        self.held = 0;
    }

    /// Returns the number of frames lost since the last call because the kernel had no free slot.
    pub fn take_lost(&self) -> u64 {
        // Frames, and frames lost.
        let mut statistics = [0; 8];
        match sys::option(self.fd.as_fd(), SOL_PACKET, PACKET_STATISTICS, &mut statistics) {
            Ok(8) => u32_of(&statistics, 4).into(),
            _ => 0,
        }
    }
}

impl AsRawFd for Receive {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// Reads a `struct virtio_net_hdr`, whose offsets are from the start of the frame.
fn offload(vnet: &[u8; VNET], frame: &[u8]) -> Offload {
    let (flags, kind, segment) = (vnet[0], vnet[1], u16_of(vnet, 4));
    let (start, offset) = (u16_of(vnet, 6), u16_of(vnet, 8));
    let link = if frame.get(12..14) == Some(&[0x81, 0]) { 18 } else { 14 };
    let mut offload = Offload::default();
    if flags & NEEDS_CHECKSUM != 0 && start >= link {
        offload.checksum = (start - link, offset);
    }
    if kind != 0 && segment != 0 {
        offload.segment = segment;
        offload.segment_kind = kind;
        // The length from the kernel may include payload, so read from the TCP header where the payload begins.
        let transport = match kind & 0x7f {
            1 | 4 => frame.get(usize::from(start) + 12).map_or(60, |&byte| u16::from(byte >> 4) * 4),
            _ => 8,
        };
        offload.headers = start.saturating_sub(link) + transport;
    }
    offload
}

/// Writes a `struct virtio_net_hdr` for a frame with a header of `link` bytes.
pub(super) fn vnet(offload: &Offload, link: u16) -> [u8; VNET] {
    let mut vnet = [0; VNET];
    if offload.partial_checksum() {
        vnet[0] = NEEDS_CHECKSUM;
        vnet[6..8].copy_from_slice(&(offload.checksum.0 + link).to_ne_bytes());
        vnet[8..10].copy_from_slice(&offload.checksum.1.to_ne_bytes());
    }
    if offload.segment != 0 {
        vnet[1] = offload.segment_kind;
        vnet[2..4].copy_from_slice(&(offload.headers + link).to_ne_bytes());
        vnet[4..6].copy_from_slice(&offload.segment.to_ne_bytes());
    }
    vnet
}

/// The transmit ring of a device, for one worker.
#[derive(Debug)]
pub struct Transmit {
    fd: OwnedFd,
    slots: Slots,
    head: usize,
    unsent: bool,
}

impl Transmit {
    /// Returns another descriptor of the socket, to move it to another device.
    ///
    /// # Errors
    /// When the process has no more descriptors.
    pub fn socket(&self) -> io::Result<Socket> {
        Ok(Socket { fd: self.fd.try_clone()?, protocol: 0, sieve: &[] })
    }

    /// Opens a ring of at least `frames` frames, which sends nothing before [`Socket::move_to`].
    ///
    /// # Errors
    /// See [`Receive::open`].
    pub fn open(frames: usize) -> io::Result<Self> {
        let fd = sys::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
        // A frame that the kernel refuses is skipped, instead of stopping the ring.
        sys::set_number(fd.as_fd(), SOL_PACKET, PACKET_LOSS, 1)?;
        let slots = ring(&fd, PACKET_TX_RING, frames)?;
        // Make room for many frames at once. Without the capability, the default must suffice.
        let _ = sys::set_number(fd.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, 64 << 20);
        Ok(Self { fd, slots, head: 0, unsent: false })
    }

    /// Puts a frame into the ring, given in parts. The first part is its Ethernet header. Returns `false` if the ring is full.
    pub(super) fn push(&mut self, parts: [&[u8]; 3], offload: &Offload) -> bool {
        let len = VNET + parts.iter().map(|part| part.len()).sum::<usize>();
        // Acquire: the kernel has read the slot before it gave it back.
        let status = self.slots.status(self.head).load(Ordering::Acquire);
        if len > LARGEST || !matches!(status, KERNEL | WRONG_FORMAT) {
            return false;
        }
        let bytes = self.slots.bytes(self.head);
        bytes[field::LEN..field::LEN + 4].copy_from_slice(&(len as u32).to_ne_bytes());
        let mut at = SEND_AT - 4;
        for part in [&vnet(offload, parts[0].len() as u16)[..], parts[0], parts[1], parts[2]] {
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        // Release: the frame is written before its status.
        self.slots.status(self.head).store(SEND_REQUEST, Ordering::Release);
        self.head = (self.head + 1) % self.slots.count();
        self.unsent = true;
        true
    }

    pub(super) const fn has_unsent(&self) -> bool {
        self.unsent
    }

    pub(super) fn finish(&mut self) {
        if self.unsent {
            // If the device has no room now, the frames stay in the ring and leave with the next burst.
            let sent = sys::send(self.fd.as_fd(), &[], libc::MSG_DONTWAIT);
            self.unsent = matches!(&sent, Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_to_do_goes_with_the_packet() {
        // Segments of 1448 bytes; TCP with options begins at 14 + 20, its checksum 16 bytes further on.
        let mut frame = vec![0; 14 + 20 + 32 + 5000];
        frame[12] = 8;
        frame[14 + 20 + 12] = 0x80;
        let mut header = [0; VNET];
        header[..2].copy_from_slice(&[NEEDS_CHECKSUM, 1]);
        header[2..4].copy_from_slice(&500u16.to_ne_bytes());
        header[4..6].copy_from_slice(&1448u16.to_ne_bytes());
        header[6..8].copy_from_slice(&34u16.to_ne_bytes());
        header[8..10].copy_from_slice(&16u16.to_ne_bytes());
        let found = offload(&header, &frame);
        let expected = Offload { checksum: (20, 16), segment: 1448, segment_kind: 1, headers: 52 };
        assert_eq!(found, expected);
        let written = vnet(&found, 18);
        assert_eq!((u16_of(&written, 2), u16_of(&written, 6), u16_of(&written, 8)), (70, 38, 16));
        assert_eq!(
            offload(&written, &frame[..0]).checksum,
            (24, 16),
            "no frame: taken for one without a tag"
        );
        assert_eq!(vnet(&Offload::default(), 14), [0; VNET]);
    }
}
