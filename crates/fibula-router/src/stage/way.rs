//! The ways out of a worker between stages.

use core::ops::Range;

use super::link::{FrameSender, HeldFrame};
use crate::io::{BURST, Io, Offload};
use crate::packet::ethernet::Header;

/// The way out of a worker that sends by itself.
#[derive(Debug)]
pub struct Direct<I>(pub I);

/// The way out of a worker whose packets another thread sends.
#[derive(Debug)]
pub struct Rings {
    /// By port; `None` for a port that does not send.
    pub(super) outputs: Vec<Option<FrameSender>>,
    /// Whether packets of several segments may be sent out of the port.
    pub(super) segments: Vec<bool>,
}

/// A way out of a worker.
pub trait Out {
    /// Sends the packet in `packet` of a frame. May take its buffer, and leave another one or none in its place.
    fn forward(
        &mut self,
        held: &mut HeldFrame,
        port: usize,
        header: &Header,
        packet: Range<usize>,
        offload: &Offload,
    ) -> bool;
    /// See [`Io::emit`].
    fn emit(&mut self, port: usize, parts: [&[u8]; 3], offload: &Offload) -> bool;
    /// See [`Io::segments`].
    fn segments(&self, port: usize) -> bool;
    /// See [`Io::finish`].
    fn finish(&mut self);
}

impl Rings {
    /// Returns whether every ring has room for a whole burst.
    pub fn has_room(&mut self) -> bool {
        self.outputs.iter_mut().flatten().all(|output| output.has_room(BURST))
    }
}

impl<I: Io> Out for Direct<I> {
    fn forward(
        &mut self,
        held: &mut HeldFrame,
        port: usize,
        header: &Header,
        packet: Range<usize>,
        offload: &Offload,
    ) -> bool {
        let Some(own) = held.take_readdressed(header, packet.clone()) else {
            return self.0.emit(port, [header.as_bytes(), &held.frame().bytes[packet], &[]], offload);
        };
        let Err(mut own) = self.0.put(port, own) else { return true };
        // The port is none of DPDK, or has no room.
        let (header, rest) = own.bytes().split_at(header.size());
        self.0.emit(port, [header, rest, &[]], offload)
    }

    fn emit(&mut self, port: usize, parts: [&[u8]; 3], offload: &Offload) -> bool {
        self.0.emit(port, parts, offload)
    }

    fn segments(&self, port: usize) -> bool {
        self.0.segments(port)
    }

    fn finish(&mut self) {
        self.0.finish();
    }
}

impl Out for Rings {
    fn forward(
        &mut self,
        held: &mut HeldFrame,
        port: usize,
        header: &Header,
        packet: Range<usize>,
        offload: &Offload,
    ) -> bool {
        let Some(output) = &mut self.outputs[port] else { return false };
        output.forward(held, header, packet, offload)
    }

    fn emit(&mut self, port: usize, parts: [&[u8]; 3], offload: &Offload) -> bool {
        let Some(output) = &mut self.outputs[port] else { return false };
        output.emit(parts, offload)
    }

    fn segments(&self, port: usize) -> bool {
        self.segments[port]
    }

    fn finish(&mut self) {
        self.outputs.iter_mut().flatten().for_each(FrameSender::flush);
    }
}
