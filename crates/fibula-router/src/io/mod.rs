//! Packet I/O: one folder or file for each back end, all with the trait [`Io`].

#[cfg(all(target_os = "linux", feature = "dpdk"))]
pub mod dpdk;
#[cfg(not(all(target_os = "linux", feature = "dpdk")))]
#[path = "dpdk/absent.rs"]
pub mod dpdk;
#[cfg(target_os = "linux")]
pub mod entrance;
pub mod memory;
#[cfg(target_os = "linux")]
pub mod packet;
pub mod pcap;
#[cfg(target_os = "linux")]
pub mod ports;
#[cfg(target_os = "linux")]
pub mod tap;
#[cfg(target_os = "linux")]
pub mod xdp;

use crate::packet::ethernet::{Header, Tag};

/// Most frames of a burst.
pub const BURST: usize = 64;

/// Offloads: work on a packet that a network card or its driver has left undone. The values must accompany a forwarded packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offload {
    /// For TCP and UDP of local senders, the checksum may still be missing. The first number is where its range begins, from the
    /// start of the IP packet, and the second is where to write it within the range. (0, 0) if nothing is left to do.
    pub checksum: (u16, u16),
    /// Payload bytes of each segment, if the packet combines several segments. Otherwise 0.
    pub segment: u16,
    /// Kind of the segments, as in `struct virtio_net_hdr`.
    pub segment_kind: u8,
    /// Bytes of the IP and transport header, in front of the segments' payload.
    pub headers: u16,
}

impl Offload {
    /// Returns whether a checksum is still to be computed.
    #[inline]
    #[must_use]
    pub const fn partial_checksum(&self) -> bool {
        self.checksum.1 != 0
    }
}

/// A received frame, in the memory of its back end.
#[derive(Debug)]
pub struct Received<'b> {
    /// The frame, from the Ethernet header on.
    pub bytes: &'b mut [u8],
    /// The VLAN tag that the kernel has taken out of the frame.
    pub tag: Option<Tag>,
    /// Work that is left to do.
    pub offload: Offload,
    /// Whether the frame was longer than the bytes that are here.
    pub cut: bool,
}

/// Packet I/O of one worker, with its queue of each port.
///
/// A worker receives a burst from one port. It handles each of its frames with [`forward`](Self::forward) or
/// [`deliver`](Self::deliver), or drops it by doing nothing. Then it calls [`finish`](Self::finish). Nothing here allocates, and
/// system calls are made at most once a burst.
pub trait Io {
    /// Receives up to [`BURST`] frames from a port, and returns how many. They are numbered from 0.
    fn receive(&mut self, port: usize) -> usize;

    /// Returns a frame of the burst.
    fn frame(&mut self, index: usize) -> Received<'_>;

    /// Sends the packet in the range `packet` of a frame out of `port`, with `header` in front of it. The back end may reuse the
    /// frame without a copy. Returns `false` if there is no room.
    fn forward(
        &mut self,
        index: usize,
        port: usize,
        header: &Header,
        packet: core::ops::Range<usize>,
        offload: &Offload,
    ) -> bool;

    /// Sends a frame that is given in parts. Returns `false` if there is no room.
    fn emit(&mut self, port: usize, parts: [&[u8]; 3], offload: &Offload) -> bool;

    /// Takes a packet of the burst that is in a buffer of DPDK, with its buffer. Returns `None` for any other frame.
    fn take(&mut self, index: usize) -> Option<dpdk::Packet> {
        let _ = index;
        None
    }

    /// Sends a packet in its own buffer out of a port of DPDK.
    ///
    /// # Errors
    /// The packet, if there is no room, or the port is none of DPDK.
    fn put(&mut self, port: usize, packet: dpdk::Packet) -> Result<(), dpdk::Packet> {
        let _ = port;
        Err(packet)
    }

    /// Gives a frame to the machine's kernel, as if the port's device had received it. Returns `false` if there is no room.
    fn deliver(&mut self, index: usize, port: usize) -> bool;

    /// Returns whether packets of several segments may be sent out of a port.
    fn segments(&self, port: usize) -> bool {
        let _ = port;
        false
    }

    /// Ends the burst: gives its frames back, and flushes the sent frames.
    fn finish(&mut self);
}

/// Computes the checksum that a sender has left to hardware, for an output without such hardware. `packet` begins with the IP
/// header.
pub fn complete_checksum(packet: &mut [u8], offload: &Offload) {
    if !offload.partial_checksum() {
        return;
    }
    let (start, at) = (usize::from(offload.checksum.0), usize::from(offload.checksum.1));
    let Some(rest) = packet.get_mut(start..).filter(|rest| rest.len() >= at + 2) else { return };
    // The field holds the sum of the pseudo header already.
    let sum = !crate::packet::checksum::sum(rest, 0);
    let sum = if sum == 0 { 0xffff } else { sum };
    rest[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::checksum;

    #[test]
    fn checksums_are_completed() {
        let mut packet = vec![7u8; 20 + 8 + 5];
        let pseudo = checksum::pseudo_ipv4(0x0a00_0001, 0x0a00_0002, 13, 17);
        packet[26..28].copy_from_slice(&checksum::fold(pseudo).to_be_bytes());
        let offload = Offload { checksum: (20, 6), ..Offload::default() };
        complete_checksum(&mut packet, &offload);
        assert_eq!(checksum::sum(&packet[20..], pseudo), 0xffff);
        // A header that points beyond the packet changes nothing.
        let before = packet.clone();
        complete_checksum(&mut packet, &Offload { checksum: (30, 2), ..Offload::default() });
        assert_eq!(packet, before);
    }
}
