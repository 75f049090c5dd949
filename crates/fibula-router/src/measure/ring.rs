//! Ports in memory that neither copy nor wait.

use core::ops::Range;

use crate::io::{BURST, Io, Offload, Received};

use crate::packet::ethernet::Header;

use super::frames::{Frames, HEADERS};

/// Frames into which packets of several parts are copied, as into the slots of a ring.
const SLOTS: usize = 512;
/// Most bytes of such a packet that are kept.
const SLOT: usize = 2048;

/// Packets of some ports that are received again and again. The header of a forwarded packet is written in place, as in the
/// memory of a network card, and the packet is counted.
#[derive(Debug)]
pub struct FrameRing {
    /// By port; those that receive nothing have no frames.
    ports: Vec<RingPort>,
    slots: Vec<u8>,
    /// The port and the number of frames of the burst.
    burst: (usize, usize),
    sent: u64,
}

/// The frames of a port.
#[derive(Debug)]
struct RingPort {
    template: Frames,
    /// All frames, one every `stride` bytes.
    memory: Vec<u8>,
    stride: usize,
    next: usize,
}

impl FrameRing {
    /// Makes a ring of the frames of each port.
    #[must_use]
    pub fn new(ports: impl IntoIterator<Item = Frames>) -> Self {
        let port = |template: Frames| {
            let stride = template.bytes.next_multiple_of(HEADERS);
            RingPort { memory: vec![0; stride * template.len()], stride, next: 0, template }
        };
        let mut ring = Self {
            ports: ports.into_iter().map(port).collect(),
            slots: vec![0; SLOTS * SLOT],
            burst: (0, 0),
            sent: 0,
        };
        ring.renew();
        ring
    }

    /// Rewrites all headers, and begins with the first packet of each port.
    pub fn renew(&mut self) {
        self.rewind();
        for port in &mut self.ports {
            for (frame, header) in port.memory.chunks_exact_mut(port.stride).zip(&port.template.headers) {
                frame[..HEADERS].copy_from_slice(header);
            }
        }
    }

    /// Begins with the first packet of each port, without rewriting headers. For a thread that only passes frames on.
    pub fn rewind(&mut self) {
        self.ports.iter_mut().for_each(|port| port.next = 0);
    }

    /// Returns the number of packets of a pass.
    #[must_use]
    pub fn packets(&self) -> usize {
        self.ports.iter().map(|port| port.template.len()).sum()
    }

    /// Returns the number of packets of a port not yet received in this pass.
    #[must_use]
    pub fn left(&self, port: usize) -> usize {
        self.ports.get(port).map_or(0, |port| port.template.len() - port.next)
    }

    /// Returns the number of packets sent.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.sent
    }
}

impl Io for FrameRing {
    #[inline]
    fn receive(&mut self, port: usize) -> usize {
        self.burst = (port, self.left(port).min(BURST));
        self.burst.1
    }

    #[inline]
    fn frame(&mut self, index: usize) -> Received<'_> {
        let port = &mut self.ports[self.burst.0];
        let bytes = &mut port.memory[(port.next + index) * port.stride..][..port.template.bytes];
        Received { bytes, tag: None, offload: Offload::default(), cut: false }
    }

    // Always, because a worker sends at several places, and a call would be measured with each packet.
    #[inline(always)]
    fn forward(&mut self, index: usize, _: usize, header: &Header, _: Range<usize>, _: &Offload) -> bool {
        let port = &mut self.ports[self.burst.0];
        header.write(&mut port.memory[(port.next + index) * port.stride..]);
        self.sent += 1;
        true
    }

    fn emit(&mut self, _: usize, parts: [&[u8]; 3], _: &Offload) -> bool {
        let slot = &mut self.slots[self.sent as usize % SLOTS * SLOT..][..SLOT];
        let mut at = 0;
        for part in parts {
            let Some(room) = slot.get_mut(at..at + part.len()) else { return false };
            room.copy_from_slice(part);
            at += part.len();
        }
        self.sent += 1;
        true
    }

    fn deliver(&mut self, _: usize, _: usize) -> bool {
        false
    }

    #[inline]
    fn finish(&mut self) {
        let (port, held) = core::mem::take(&mut self.burst);
        if let Some(port) = self.ports.get_mut(port) {
            port.next += held;
        }
    }
}
