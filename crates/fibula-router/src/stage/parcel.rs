//! Copies of frames on their way between two threads, and the rings that carry them.

use std::sync::Arc;

use super::sleep::Sleeper;
use crate::io::{Offload, Received};
use crate::packet::ethernet::{Header, Tag};

/// Room in front of a frame: a new header may be longer than the old one by two VLAN tags.
const HEADROOM: usize = 16;
/// Initial bytes of a buffer. A larger frame makes it grow once.
const ROOM: usize = 2048;

/// A frame in a buffer of its own. The buffer goes back to the thread that it came from, and is used again.
#[derive(Debug)]
pub struct Parcel {
    bytes: Vec<u8>,
    begin: usize,
    end: usize,
    /// Bytes of the Ethernet header; set when the frame is to be sent.
    link: usize,
    tag: Option<Tag>,
    offload: Offload,
    cut: bool,
}

impl Default for Parcel {
    fn default() -> Self {
        let bytes = vec![0; HEADROOM + ROOM];
        Self { bytes, begin: 0, end: 0, link: 0, tag: None, offload: Offload::default(), cut: false }
    }
}

impl Parcel {
    /// Makes this a copy of a frame.
    pub fn fill(&mut self, frame: &Received<'_>) {
        (self.tag, self.offload, self.cut) = (frame.tag, frame.offload, frame.cut);
        self.put(HEADROOM, &[frame.bytes]);
    }

    /// Makes this a frame to send, given in parts. The first part is its Ethernet header.
    pub fn compose(&mut self, parts: [&[u8]; 3], offload: &Offload) {
        (self.tag, self.offload, self.cut) = (None, *offload, false);
        self.link = parts[0].len();
        self.put(HEADROOM, &parts);
    }

    fn put(&mut self, begin: usize, parts: &[&[u8]]) {
        (self.begin, self.end) = (begin, begin + parts.iter().map(|part| part.len()).sum::<usize>());
        if self.end > self.bytes.len() {
            self.bytes.resize(self.end, 0);
        }
        let mut at = begin;
        for part in parts {
            self.bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
    }

    /// Puts a new header in front of the packet in `packet`, without moving the packet. Returns `false` if there is no room.
    pub fn readdress(&mut self, header: &Header, packet: core::ops::Range<usize>, offload: &Offload) -> bool {
        let (start, end) = (self.begin + packet.start, self.begin + packet.end);
        let Some(begin) = start.checked_sub(header.size()) else { return false };
        header.write(&mut self.bytes[begin..start]);
        (self.begin, self.end, self.link) = (begin, end, header.size());
        (self.tag, self.offload) = (None, *offload);
        true
    }

    /// Returns the frame as it was received.
    pub fn frame(&mut self) -> Received<'_> {
        let bytes = &mut self.bytes[self.begin..self.end];
        Received { bytes, tag: self.tag, offload: self.offload, cut: self.cut }
    }

    /// Returns the frame to send: its Ethernet header, and the rest.
    pub fn to_send(&self) -> ([&[u8]; 3], &Offload) {
        let (header, rest) = self.bytes[self.begin..self.end].split_at(self.link);
        ([header, rest, &[]], &self.offload)
    }
}

/// The sending end of a ring, with the buffers that are free.
#[derive(Debug)]
pub(super) struct ParcelSender {
    ring: rtrb::Producer<Parcel>,
    back: rtrb::Consumer<Parcel>,
    /// The buffer used last is reused first, because it is still in the cache.
    free: Vec<Parcel>,
    /// Frames that leave with the next [`flush`](Self::flush).
    ready: Vec<Parcel>,
    /// After the ring, so that the other end sees the end of the ring when it wakes.
    alarm: Doorbell,
}

/// Wakes the thread of the other end, also when this end is dropped.
#[derive(Debug)]
pub(super) struct Doorbell(Arc<Sleeper>);

impl Doorbell {
    pub(super) fn new(sleeper: &Arc<Sleeper>) -> Self {
        Self(Arc::clone(sleeper))
    }

    pub(super) fn ring(&self) {
        self.0.wake();
    }
}

impl Drop for Doorbell {
    fn drop(&mut self) {
        self.0.wake();
    }
}

/// The receiving end of a ring.
#[derive(Debug)]
pub(super) struct ParcelReceiver {
    ring: rtrb::Consumer<Parcel>,
    back: rtrb::Producer<Parcel>,
}

/// Makes a ring for `capacity` frames to a thread that has this sleep. For each frame taken, a buffer is given back.
pub(super) fn link(capacity: usize, sleeper: &Arc<Sleeper>) -> (ParcelSender, ParcelReceiver) {
    let (ring, out) = rtrb::RingBuffer::new(capacity);
    // Buffers of both ends may be under way at once.
    let (back, home) = rtrb::RingBuffer::new(capacity);
    let free = (0..capacity).map(|_| Parcel::default()).collect();
    let alarm = Doorbell::new(sleeper);
    let sender = ParcelSender { ring, back: home, free, ready: Vec::with_capacity(capacity), alarm };
    (sender, ParcelReceiver { ring: out, back })
}

impl ParcelSender {
    /// Returns a free buffer; `None` while all are under way, when the ring is full.
    pub(super) fn take(&mut self) -> Option<Parcel> {
        if self.free.is_empty() {
            self.collect();
        }
        self.free.pop()
    }

    /// Returns whether there are `count` free buffers. Also returns `true` if the other end is gone, because then there is
    /// nothing to wait for.
    pub(super) fn has_room(&mut self, count: usize) -> bool {
        if self.free.len() < count {
            self.collect();
        }
        self.free.len() >= count || self.ring.is_abandoned()
    }

    /// Collects the buffers that have come back.
    pub(super) fn collect(&mut self) {
        let count = self.back.slots();
        if let Ok(chunk) = self.back.read_chunk(count) {
            self.free.extend(chunk);
        }
    }

    /// Puts a frame in a buffer of [`take`](Self::take), or one that was exchanged for it, among those to be flushed.
    pub(super) fn push(&mut self, parcel: Parcel) {
        self.ready.push(parcel);
    }

    /// Sends the frames pushed since the last flush. The ring cannot be full: it has a slot for every buffer.
    pub(super) fn flush(&mut self) {
        if self.ready.is_empty() {
            return;
        }
        if let Ok(chunk) = self.ring.write_chunk_uninit(self.ready.len()) {
            chunk.fill_from_iter(self.ready.drain(..));
            self.alarm.ring();
        }
    }
}

impl ParcelReceiver {
    /// Returns whether no frame waits.
    pub(super) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Moves up to `most` frames to `burst`.
    pub(super) fn take(&mut self, most: usize, burst: &mut Vec<impl From<Parcel>>) {
        let count = self.ring.slots().min(most);
        if count > 0
            && let Ok(chunk) = self.ring.read_chunk(count)
        {
            burst.extend(chunk.into_iter().map(Into::into));
        }
    }

    /// Returns the next frame without taking it.
    pub(super) fn peek(&self) -> Option<&Parcel> {
        self.ring.peek().ok()
    }

    /// Takes the next frame, and gives its buffer back.
    pub(super) fn pass(&mut self) {
        if let Ok(parcel) = self.ring.pop() {
            // The ring cannot be full: it has a slot for every buffer.
            let _ = self.back.push(parcel);
        }
    }

    /// Gives `count` buffers back.
    pub(super) fn give_back(&mut self, count: usize, parcels: impl Iterator<Item = Parcel>) {
        if let Ok(chunk) = self.back.write_chunk_uninit(count) {
            chunk.fill_from_iter(parcels);
        }
    }

    /// Returns whether the other end is gone, and all that it sent has been taken.
    pub(super) fn is_ended(&self) -> bool {
        if !self.ring.is_abandoned() {
            return false;
        }
        // Acquire: frames sent before the end went are visible from here on. The counter of owners alone does not order them.
        std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
        self.ring.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::ethernet::{Mac, Tags};

    fn received(bytes: &mut [u8]) -> Received<'_> {
        Received { bytes, tag: Some(7.into()), offload: Offload::default(), cut: false }
    }

    #[test]
    fn buffers_come_back_and_a_full_ring_has_none() {
        let (mut sender, mut receiver) = link(4, &Arc::default());
        for round in 0..10u8 {
            for number in 0..4 {
                let mut parcel = sender.take().unwrap();
                parcel.fill(&received(&mut [round, number]));
                sender.push(parcel);
            }
            assert!(sender.take().is_none());
            sender.flush();
            let mut burst: Vec<Parcel> = Vec::new();
            receiver.take(3, &mut burst);
            receiver.take(3, &mut burst);
            let bytes: Vec<Vec<u8>> = burst.iter_mut().map(|parcel| parcel.frame().bytes.to_vec()).collect();
            assert_eq!(bytes, [0, 1, 2, 3].map(|number| vec![round, number]));
            receiver.give_back(burst.len(), burst.drain(..));
        }
        drop(sender);
        assert!(receiver.is_ended());
    }

    #[test]
    fn a_header_of_another_length_takes_the_place_of_the_old_one() {
        let mut parcel = Parcel::default();
        let mut frame: Vec<u8> = (0..100).collect();
        parcel.fill(&received(&mut frame));
        let header = Header::new(Mac([9; 6]), Mac([9; 6]), Tags::one(0x909), 0x909);
        assert!(parcel.readdress(&header, 14..60, &Offload::default()));
        let (parts, _) = parcel.to_send();
        assert_eq!((parts[0], parts[1]), (header.as_bytes(), &frame[14..60]));
        let mut large = vec![5; 70_000];
        parcel.fill(&received(&mut large));
        assert_eq!(parcel.frame().bytes, large);
        assert!(!parcel.readdress(&header, 1..20, &Offload::default()), "no room in front");
    }
}
