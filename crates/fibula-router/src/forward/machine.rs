//! The machine's side of interfaces with VLAN tags: a tap, to which frames for the machine go without tags, and whose frames leave
//! the port with tags. The kernel's addresses, neighbours and daemons are at the tap.

use crate::drops::DropReason;
use crate::io::{Io, Offload};
use crate::packet::ethernet::{self, Header, Mac, Tags};
use crate::packet::u16_at;

use super::local::source_of;
use super::worker::Worker;

impl Worker {
    /// Gives a frame to the machine's side `side`, without its tags.
    #[cold]
    pub(super) fn give_to_machine(&mut self, io: &mut impl Io, (port, side): (usize, usize), index: usize) {
        let frame = io.frame(index);
        let (len, offload) = (frame.bytes.len(), frame.offload);
        let header = match ethernet::parse(frame.bytes, frame.tag) {
            Ok(header) => header,
            Err(reason) => return self.counters[port].drop(reason),
        };
        // The sender stays the same, because the machine learns its neighbours from these frames.
        let source = source_of(frame.bytes);
        let plain = Header::new(header.destination, source, Tags::NONE, header.ether_type);
        // The tap of another kind takes no packets of several segments.
        if offload.segment != 0 && !io.segments(side) {
            self.counters[port].drop(DropReason::OffloadUnsupported);
        } else if io.forward(index, side, &plain, header.payload..len, &offload) {
            self.counters[port].delivered.add(1);
            self.sent(side, plain.size() + len - header.payload);
        } else {
            self.counters[port].drop(DropReason::HostFull);
        }
    }

    /// Sends the frames that the machine has written to its side of an interface, with the tags of the interface.
    #[cold]
    pub(super) fn take_from_machine(
        &mut self,
        io: &mut impl Io,
        port: usize,
        interface: u16,
        received: usize,
    ) {
        let way = &self.fabric.interfaces[usize::from(interface)];
        let counters = &self.counters[port];
        for index in 0..received {
            let frame = io.frame(index);
            let len = frame.bytes.len();
            counters.received_bytes.add(len as u64);
            if frame.cut || len < 14 {
                counters.drop(DropReason::FrameTruncated);
                continue;
            }
            // Before the kernel knows that the link is down, it may have written more.
            if !way.up {
                let reason =
                    if way.missing { DropReason::InterfaceMissing } else { DropReason::InterfaceDown };
                counters.drop(reason);
                continue;
            }
            let mut to = Mac::default();
            to.0.copy_from_slice(&frame.bytes[..6]);
            let header = Header::new(to, source_of(frame.bytes), way.tags, u16_at(frame.bytes, 12));
            if io.forward(index, way.port, &header, 14..len, &Offload::default()) {
                counters.forwarded.add(1);
                self.sent(way.port, header.size() + len - 14);
            } else {
                counters.drop(DropReason::TransmitFull);
            }
        }
        counters.received.add(received as u64);
    }
}
