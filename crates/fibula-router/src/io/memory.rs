//! Ports in memory, for tests and for measuring the cost of a packet.

use std::collections::VecDeque;

use super::{BURST, Io, Offload, Received};
use crate::packet::ethernet::{Header, Tag};

/// A frame with the metadata of its driver.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frame {
    /// The frame, from the Ethernet header on.
    pub bytes: Vec<u8>,
    /// See [`Received::tag`].
    pub tag: Option<Tag>,
    /// See [`Received::offload`].
    pub offload: Offload,
}

impl From<Vec<u8>> for Frame {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, tag: None, offload: Offload::default() }
    }
}

/// A port: frames to receive, and frames that were sent and delivered.
#[derive(Debug, Default)]
pub struct Port {
    /// Frames that wait to be received.
    pub input: VecDeque<Frame>,
    /// Frames that were sent.
    pub output: Vec<Frame>,
    /// Frames that were given to the kernel.
    pub delivered: Vec<Frame>,
    /// Most frames in `output`. With as many, the port is full.
    pub room: usize,
    /// Frames for the kernel that fit into `delivered`.
    pub host_room: usize,
    /// Whether the port takes packets of several segments.
    pub segments: bool,
}

/// Ports whose frames are vectors. Sent frames keep their vectors, so after the first passes nothing is allocated.
#[derive(Debug, Default)]
pub struct Memory {
    /// The ports.
    pub ports: Vec<Port>,
    burst: Vec<Frame>,
    free: Vec<Vec<u8>>,
}

impl Memory {
    /// Makes `count` ports without a limit of sent frames.
    #[must_use]
    pub fn new(count: usize) -> Self {
        let ports =
            (0..count).map(|_| Port { room: usize::MAX, host_room: usize::MAX, ..Port::default() }).collect();
        Self { ports, burst: Vec::with_capacity(BURST), free: Vec::new() }
    }

    /// Takes the frames that a port has sent.
    pub fn take_output(&mut self, port: usize) -> Vec<Frame> {
        std::mem::take(&mut self.ports[port].output)
    }

    /// Gives vectors back, for frames that are made.
    pub fn recycle(&mut self, frames: impl IntoIterator<Item = Frame>) {
        self.free.extend(frames.into_iter().map(|frame| frame.bytes));
    }
}

impl Io for Memory {
    fn receive(&mut self, port: usize) -> usize {
        let input = &mut self.ports[port].input;
        let count = input.len().min(BURST);
        self.burst.extend(input.drain(..count));
        count
    }

    fn frame(&mut self, index: usize) -> Received<'_> {
        let frame = &mut self.burst[index];
        Received { bytes: &mut frame.bytes, tag: frame.tag, offload: frame.offload, cut: false }
    }

    fn forward(
        &mut self,
        index: usize,
        port: usize,
        header: &Header,
        packet: core::ops::Range<usize>,
        offload: &Offload,
    ) -> bool {
        let port = &mut self.ports[port];
        if port.output.len() >= port.room {
            return false;
        }
        let mut bytes = std::mem::take(&mut self.burst[index].bytes);
        bytes.truncate(packet.end);
        // In the usual case, the new header is as long as the old one, and nothing needs to move.
        if header.size() == packet.start {
            header.write(&mut bytes);
        } else {
            bytes.splice(..packet.start, header.as_bytes().iter().copied());
        }
        port.output.push(Frame { bytes, tag: None, offload: *offload });
        true
    }

    fn emit(&mut self, port: usize, parts: [&[u8]; 3], offload: &Offload) -> bool {
        let port = &mut self.ports[port];
        if port.output.len() >= port.room {
            return false;
        }
        let mut bytes = self.free.pop().unwrap_or_default();
        bytes.clear();
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
        port.output.push(Frame { bytes, tag: None, offload: *offload });
        true
    }

    fn deliver(&mut self, index: usize, port: usize) -> bool {
        if self.ports[port].delivered.len() >= self.ports[port].host_room {
            return false;
        }
        let frame = std::mem::take(&mut self.burst[index]);
        self.ports[port].delivered.push(frame);
        true
    }

    fn segments(&self, port: usize) -> bool {
        self.ports[port].segments
    }

    fn finish(&mut self) {
        let frames = self.burst.drain(..).map(|frame| frame.bytes).filter(|bytes| bytes.capacity() > 0);
        self.free.extend(frames);
    }
}
