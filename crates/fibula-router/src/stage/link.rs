//! Rings between stages: of parcels, into which frames are copied, or, where the port is one of DPDK, of its packets, which pass in the
//! buffers that they were received in.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::parcel::{self, Doorbell, Parcel, ParcelReceiver, ParcelSender};
use super::sleep::Sleeper;
use super::{CAPACITY, End};
use crate::io::dpdk::{self, Packet, RingReceiver, RingSender};
use crate::io::{BURST, Io, Offload, Received};
use crate::packet::ethernet::Header;

/// A frame that a worker has taken from a ring.
#[derive(Debug)]
pub enum HeldFrame {
    /// A copy, whose buffer goes back.
    Parcel(Parcel),
    /// A packet of DPDK, until it leaves.
    Packet(Option<Packet>),
}

impl From<Parcel> for HeldFrame {
    fn from(parcel: Parcel) -> Self {
        Self::Parcel(parcel)
    }
}

impl HeldFrame {
    /// Returns the frame as it was received. Nothing is left of one whose packet has left.
    pub(super) fn frame(&mut self) -> Received<'_> {
        match self {
            Self::Parcel(parcel) => parcel.frame(),
            Self::Packet(Some(packet)) => {
                let (tag, cut) = (packet.tag(), !packet.is_whole());
                Received { bytes: packet.bytes(), tag, offload: Offload::default(), cut }
            }
            Self::Packet(None) => {
                Received { bytes: &mut [], tag: None, offload: Offload::default(), cut: true }
            }
        }
    }

    /// Takes the packet of DPDK, with a new header in front of what is in `range`. Returns `None` if this is a copy, or the packet has
    /// no room for the header.
    pub(super) fn take_readdressed(&mut self, header: &Header, range: Range<usize>) -> Option<Packet> {
        let Self::Packet(held) = self else { return None };
        if held.as_mut().is_some_and(|packet| packet.readdress(header, range)) { held.take() } else { None }
    }
}

/// The sending end of a ring.
#[derive(Debug)]
pub(super) enum FrameSender {
    /// Of copies.
    Parcels(ParcelSender),
    /// Of packets. The doorbell comes after the ring, so that the other end sees the end of the ring when it wakes.
    Packets(RingSender, Doorbell),
}

/// The receiving end of a ring.
#[derive(Debug)]
pub(super) enum FrameReceiver {
    /// Of copies.
    Parcels(ParcelReceiver),
    /// Of packets.
    Packets(PacketReceiver),
}

/// The receiving end of a ring of packets.
#[derive(Debug)]
pub(super) struct PacketReceiver {
    ring: RingReceiver,
    arrived: Vec<Packet>,
    /// Packets from the ring for which their port had no room.
    held: VecDeque<Packet>,
}

/// Makes a ring for the frames of a port, to a thread that has this sleep.
pub(super) fn link(port: &End, sleeper: &Arc<Sleeper>) -> io::Result<(FrameSender, FrameReceiver)> {
    let Some(pool) = port.pool else {
        let (sender, receiver) = parcel::link(CAPACITY, sleeper);
        return Ok((FrameSender::Parcels(sender), FrameReceiver::Parcels(receiver)));
    };
    let (sender, ring) = dpdk::link(pool, CAPACITY)?;
    let (arrived, held) = (Vec::with_capacity(BURST), VecDeque::with_capacity(BURST));
    let receiver = PacketReceiver { ring, arrived, held };
    Ok((FrameSender::Packets(sender, Doorbell::new(sleeper)), FrameReceiver::Packets(receiver)))
}

impl FrameSender {
    /// Adds a received frame to those to be flushed. Returns `false` if there is no room.
    pub(super) fn take(&mut self, io: &mut impl Io, index: usize) -> bool {
        match self {
            Self::Parcels(sender) => {
                let Some(mut parcel) = sender.take() else { return false };
                parcel.fill(&io.frame(index));
                sender.push(parcel);
                true
            }
            Self::Packets(sender, _) => io.take(index).is_some_and(|packet| sender.push(packet).is_ok()),
        }
    }

    /// Adds the packet in `range` of a frame, with a new header, in the frame's own buffer if it fits here.
    pub(super) fn forward(
        &mut self,
        held: &mut HeldFrame,
        header: &Header,
        range: Range<usize>,
        offload: &Offload,
    ) -> bool {
        match (self, held) {
            (Self::Parcels(sender), HeldFrame::Parcel(parcel)) => {
                // The frame leaves in its own buffer; the first stage gets another one for it.
                let Some(other) = sender.take() else { return false };
                if parcel.readdress(header, range.clone(), offload) {
                    sender.push(std::mem::replace(parcel, other));
                } else {
                    let mut other = other;
                    other.compose([header.as_bytes(), &parcel.frame().bytes[range], &[]], offload);
                    sender.push(other);
                }
                true
            }
            (Self::Packets(sender, _), held @ HeldFrame::Packet(_)) => {
                // Without room the packet goes back to its pool.
                held.take_readdressed(header, range).is_some_and(|packet| sender.push(packet).is_ok())
            }
            (sender, held) => sender.emit([header.as_bytes(), &held.frame().bytes[range], &[]], offload),
        }
    }

    /// Adds a frame that is given in parts. Returns `false` if there is no room.
    pub(super) fn emit(&mut self, parts: [&[u8]; 3], offload: &Offload) -> bool {
        match self {
            Self::Parcels(sender) => {
                let Some(mut parcel) = sender.take() else { return false };
                parcel.compose(parts, offload);
                sender.push(parcel);
                true
            }
            Self::Packets(sender, _) => {
                sender.make(parts, offload).is_some_and(|packet| sender.push(packet).is_ok())
            }
        }
    }

    /// Returns whether there is room for `count` frames. Also returns `true` if the other end is gone, because then there is nothing to
    /// wait for.
    pub(super) fn has_room(&mut self, count: usize) -> bool {
        match self {
            Self::Parcels(sender) => sender.has_room(count),
            Self::Packets(sender, _) => sender.has_room(count),
        }
    }

    /// Sends the frames added since the last flush, and wakes the other thread.
    pub(super) fn flush(&mut self) {
        match self {
            Self::Parcels(sender) => sender.flush(),
            Self::Packets(sender, doorbell) => {
                if sender.flush() {
                    doorbell.ring();
                }
            }
        }
    }
}

impl FrameReceiver {
    /// Returns whether no frame waits.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Parcels(receiver) => receiver.is_empty(),
            Self::Packets(receiver) => receiver.held.is_empty() && receiver.ring.is_empty(),
        }
    }

    /// Moves up to `most` frames to `burst`.
    pub(super) fn take(&mut self, most: usize, burst: &mut Vec<HeldFrame>) {
        match self {
            Self::Parcels(receiver) => receiver.take(most, burst),
            Self::Packets(receiver) => {
                receiver.ring.take(most, &mut receiver.arrived);
                burst.extend(receiver.arrived.drain(..).map(|packet| HeldFrame::Packet(Some(packet))));
            }
        }
    }

    /// Gives the buffers of a burst back.
    pub(super) fn give_back(&mut self, burst: &mut Vec<HeldFrame>) {
        match self {
            Self::Parcels(receiver) => {
                let count = burst.len();
                let parcel = |held| match held {
                    HeldFrame::Parcel(parcel) => Some(parcel),
                    HeldFrame::Packet(_) => None,
                };
                receiver.give_back(count, burst.drain(..).filter_map(parcel));
            }
            // Those of packets that have not left go back to their pool.
            Self::Packets(_) => burst.clear(),
        }
    }

    /// Sends waiting frames out of a port, a burst at most, and returns their number. Frames for which there is no room wait here.
    pub(super) fn send(&mut self, io: &mut impl Io, port: usize) -> usize {
        let mut count = 0;
        match self {
            Self::Parcels(receiver) => {
                for _ in 0..BURST {
                    let Some(parcel) = receiver.peek() else { break };
                    let (parts, offload) = parcel.to_send();
                    if !io.emit(port, parts, offload) {
                        break;
                    }
                    receiver.pass();
                    count += 1;
                }
            }
            Self::Packets(PacketReceiver { ring, arrived, held }) => {
                if held.is_empty() {
                    ring.take(BURST, arrived);
                    held.extend(arrived.drain(..));
                }
                while let Some(packet) = held.pop_front() {
                    if let Err(packet) = io.put(port, packet) {
                        held.push_front(packet);
                        break;
                    }
                    count += 1;
                }
            }
        }
        count
    }

    /// Returns whether the other end is gone, and all that it sent has been taken.
    pub(super) fn is_ended(&self) -> bool {
        match self {
            Self::Parcels(receiver) => receiver.is_ended(),
            Self::Packets(receiver) => receiver.held.is_empty() && receiver.ring.is_ended(),
        }
    }
}
