//! The ways out of a worker between stages.

use core::ops::Range;

use super::parcel::{Parcel, ParcelSender};
use crate::io::{BURST, Io, Offload};

/// The way out of a worker that sends by itself.
#[derive(Debug)]
pub struct Direct<I>(pub I);

/// The way out of a worker whose packets another thread sends.
#[derive(Debug)]
pub struct Rings {
    /// By port; `None` for a port that does not send.
    pub(super) outputs: Vec<Option<ParcelSender>>,
    /// Whether packets of several segments may be sent out of the port.
    pub(super) segments: Vec<bool>,
}

/// A way out of a worker.
pub trait Out {
    /// Sends the packet in `packet` of the frame in `parcel`. May take the buffer and leave another one in its place.
    fn forward(
        &mut self,
        parcel: &mut Parcel,
        port: usize,
        header: &[u8],
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
        parcel: &mut Parcel,
        port: usize,
        header: &[u8],
        packet: Range<usize>,
        offload: &Offload,
    ) -> bool {
        self.0.emit(port, [header, &parcel.frame().bytes[packet], &[]], offload)
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
        parcel: &mut Parcel,
        port: usize,
        header: &[u8],
        packet: Range<usize>,
        offload: &Offload,
    ) -> bool {
        let Some(output) = &mut self.outputs[port] else { return false };
        // The frame leaves in its own buffer; the first stage gets another one for it.
        let Some(other) = output.take() else { return false };
        if parcel.readdress(header, packet.clone(), offload) {
            output.push(std::mem::replace(parcel, other));
        } else {
            let mut other = other;
            other.compose([header, &parcel.frame().bytes[packet], &[]], offload);
            output.push(other);
        }
        true
    }

    fn emit(&mut self, port: usize, parts: [&[u8]; 3], offload: &Offload) -> bool {
        let Some(output) = &mut self.outputs[port] else { return false };
        let Some(mut parcel) = output.take() else { return false };
        parcel.compose(parts, offload);
        output.push(parcel);
        true
    }

    fn segments(&self, port: usize) -> bool {
        self.segments[port]
    }

    fn finish(&mut self) {
        self.outputs.iter_mut().flatten().for_each(ParcelSender::flush);
    }
}
