//! In the place of DPDK in a build without it: its packets and rings as a type without a value.

use core::ops::Range;
use std::io;

use crate::io::Offload;
use crate::packet::ethernet::{Header, Tag};

/// What this build has none of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {}

/// A packet in a buffer of DPDK.
pub type Packet = Absent;
/// Buffers for packets.
pub type Pool = Absent;
/// The sending end of a ring.
pub type RingSender = Absent;
/// The receiving end of a ring.
pub type RingReceiver = Absent;

/// Makes a ring: never called.
pub(crate) fn link(pool: Pool, _: usize) -> io::Result<(RingSender, RingReceiver)> {
    match pool {}
}

#[allow(clippy::needless_pass_by_value, reason = "as with DPDK")]
impl Absent {
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        match *self {}
    }

    pub(crate) fn tag(&self) -> Option<Tag> {
        match *self {}
    }

    pub(crate) fn is_whole(&self) -> bool {
        match *self {}
    }

    pub(crate) fn readdress(&mut self, _: &Header, _: Range<usize>) -> bool {
        match *self {}
    }

    pub(crate) fn has_room(&mut self, _: usize) -> bool {
        match *self {}
    }

    pub(crate) fn push(&mut self, _: Packet) -> Result<(), Packet> {
        match *self {}
    }

    pub(crate) fn make(&self, _: [&[u8]; 3], _: &Offload) -> Option<Packet> {
        match *self {}
    }

    pub(crate) fn flush(&mut self) -> bool {
        match *self {}
    }

    pub(crate) fn take(&mut self, _: usize, _: &mut Vec<Packet>) {
        match *self {}
    }

    pub(crate) fn is_empty(&self) -> bool {
        match *self {}
    }

    pub(crate) fn is_ended(&self) -> bool {
        match *self {}
    }
}
