//! Samples: packets that are drawn at random, each with its end.
//!
//! Workers draw packets and put them into rings, one a worker; [`Sampling::take`] empties the rings. Neither side waits for the other.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rtrb::{Consumer, Producer, RingBuffer};

use crate::acl::HeaderFields;
use crate::io::Offload;

use super::draw::Draw;
use super::fabric::{Gateway, Hop};
use super::item::Item;
use super::trace::{Fate, Sighting};

/// A packet that was drawn, and its end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// The packet. It has an `output` if it left by one, or waits to.
    pub packet: HeaderFields,
    /// The byte of IPv4 or IPv6 that holds the code point (DSCP) and the congestion notification.
    pub traffic_class: u8,
    /// TTL or hop limit as received.
    pub ttl: u8,
    /// Bytes, IP header included: of all segments where an offload has combined several.
    pub bytes: u32,
    /// Packets: the segments that an offload has combined, otherwise 1.
    pub packets: u16,
    /// The router that it was sent to; `None` if its destination is a neighbour, or it was not sent.
    pub gateway: Option<Gateway>,
    /// Its end.
    pub fate: Fate,
    /// One of so many frames was drawn.
    pub interval: u32,
}

/// The facts of a packet that its bytes say, and rules do not test.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    traffic_class: u8,
    bytes: u32,
    packets: u16,
}

impl Extent {
    pub(super) fn of(item: &Item, packet: &[u8], offload: &Offload) -> Self {
        let byte = |at: usize| packet.get(at).copied().unwrap_or(0);
        let segment = usize::from(offload.segment);
        let packets = match segment {
            0 => 1,
            // The headers come once, and the rest is cut into segments.
            _ => item.len.saturating_sub(usize::from(offload.headers)).div_ceil(segment).max(1),
        };
        // Each segment has the headers, on the wire.
        let bytes = item.len + (packets - 1) * usize::from(offload.headers);
        Self {
            traffic_class: if item.v6 { byte(0) << 4 | byte(1) >> 4 } else { byte(1) },
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            packets: u16::try_from(packets).unwrap_or(u16::MAX),
        }
    }
}

impl Sample {
    fn new(sighting: &Sighting, extent: Extent, interval: u32) -> Self {
        let Extent { traffic_class, bytes, packets } = extent;
        let leaves = matches!(sighting.fate, Fate::Forwarded | Fate::Waiting);
        let gateway = match sighting.hop {
            Some(Hop::Via { gateway, .. }) if leaves => Some(gateway),
            _ => None,
        };
        let mut packet = sighting.packet;
        packet.output = packet.output.filter(|_| leaves);
        let (ttl, fate) = (sighting.ttl, sighting.fate);
        Self { packet, traffic_class, ttl, bytes, packets, gateway, fate, interval }
    }
}

/// Samples that wait in the ring of a worker, at most. More are lost, and counted.
const ROOM: usize = 4096;

/// The drawing of samples, which workers share.
#[derive(Debug)]
pub struct Sampling {
    interval: AtomicU32,
    rings: Mutex<Vec<Consumer<Sample>>>,
    /// Frames that were drawn.
    pub drawn: AtomicU64,
    /// Samples that were lost because a ring was full.
    pub lost: AtomicU64,
    /// Frames that were drawn and have no readable IP header, such as ARP. They are no samples.
    pub unreadable: AtomicU64,
}

impl Sampling {
    /// Draws one of `interval` frames, at random.
    #[must_use]
    pub fn new(interval: u32) -> Arc<Self> {
        Arc::new(Self {
            interval: AtomicU32::new(interval.max(1)),
            rings: Mutex::default(),
            drawn: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            unreadable: AtomicU64::new(0),
        })
    }

    /// Changes the interval. Workers take it up after the next [`Shared::set_sampling`](super::Shared::set_sampling).
    pub fn set_interval(&self, interval: u32) {
        self.interval.store(interval.max(1), Ordering::Relaxed);
    }

    /// Returns the interval.
    #[must_use]
    pub fn interval(&self) -> u32 {
        self.interval.load(Ordering::Relaxed)
    }

    /// Takes the samples that wait, in the order of each worker. For one thread at a time.
    pub fn take(&self, mut each: impl FnMut(Sample)) {
        // Out of the list, so that a worker that joins does not wait for the caller.
        let mut rings = std::mem::take(&mut *self.rings());
        for ring in rings.iter_mut() {
            // No more than the ring holds, so that one worker does not keep the others waiting.
            for _ in 0..ROOM {
                let Ok(sample) = ring.pop() else { break };
                each(sample);
            }
        }
        rings.retain(|ring| !ring.is_abandoned() || !ring.is_empty());
        let mut joined = self.rings();
        rings.append(&mut joined);
        *joined = rings;
    }

    fn rings(&self) -> MutexGuard<'_, Vec<Consumer<Sample>>> {
        self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A worker's part in the drawing.
#[derive(Debug)]
pub(super) struct Sampler {
    sampling: Arc<Sampling>,
    ring: Producer<Sample>,
    draw: Draw,
    interval: u32,
    /// Frames that pass before the next sample.
    gap: u64,
}

impl Sampler {
    fn join(sampling: &Arc<Sampling>) -> Self {
        let (ring, consumer) = RingBuffer::new(ROOM);
        sampling.rings().push(consumer);
        let interval = sampling.interval();
        // Unknown to senders, because one who knows which packets are drawn can hide all others.
        let mut draw = Draw::new(RandomState::new().build_hasher().finish(), interval);
        let gap = draw.gap();
        Self { sampling: Arc::clone(sampling), ring, draw, interval, gap }
    }

    /// Takes part in another drawing, or in none; of the same one, takes up its interval.
    pub(super) fn take_up(place: &mut Option<Self>, sampling: Option<&Arc<Sampling>>) {
        match (&mut *place, sampling) {
            (Some(sampler), Some(sampling)) if Arc::ptr_eq(&sampler.sampling, sampling) => {
                let interval = sampling.interval();
                if interval != sampler.interval {
                    sampler.interval = interval;
                    sampler.draw = Draw::new(sampler.draw.seed(), interval);
                    sampler.gap = sampler.draw.gap();
                }
            }
            _ => *place = sampling.map(Self::join),
        }
    }

    /// Draws among the frames of a burst. Returns a bit for each frame that was drawn.
    pub(super) fn of_burst(&mut self, received: usize) -> u64 {
        let (received, mut drawn) = (received as u64, 0_u64);
        while self.gap < received {
            drawn |= 1 << self.gap;
            self.gap += 1 + self.draw.gap();
        }
        self.gap -= received;
        if drawn != 0 {
            self.sampling.drawn.fetch_add(drawn.count_ones().into(), Ordering::Relaxed);
        }
        drawn
    }

    /// Counts a frame without a readable IP header.
    pub(super) fn unreadable(&self) {
        self.sampling.unreadable.fetch_add(1, Ordering::Relaxed);
    }

    /// Puts a sample into the ring, if there is room.
    pub(super) fn put(&mut self, sighting: &Sighting, extent: Extent) {
        if self.ring.push(Sample::new(sighting, extent, self.interval)).is_err() {
            self.sampling.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_of_any_length_are_drawn_from_alike() {
        let sampling = Sampling::new(10);
        let mut sampler = None;
        Sampler::take_up(&mut sampler, Some(&sampling));
        let sampler = sampler.as_mut().unwrap();
        let (mut by_place, mut frames) = ([0_u32; 64], [0_u32; 64]);
        for round in 0..100_000_usize {
            let received = 1 + round % 64;
            let drawn = sampler.of_burst(received);
            assert_eq!(drawn.checked_shr(received as u32).unwrap_or(0), 0, "a frame beyond the burst");
            for place in 0..received {
                by_place[place] += (drawn >> place & 1) as u32;
                frames[place] += 1;
            }
        }
        for place in 0..64 {
            let (wanted, got) = (f64::from(frames[place]) / 10.0, f64::from(by_place[place]));
            // Six standard deviations.
            assert!((got - wanted).abs() < 6.0 * wanted.sqrt(), "place {place}: {got} of {wanted}");
        }
        let drawn: u32 = by_place.iter().sum();
        assert_eq!(sampling.drawn.load(Ordering::Relaxed), u64::from(drawn));
    }

    #[test]
    fn a_worker_may_join_while_samples_are_taken() {
        let sampling = Sampling::new(1);
        let (mut one, mut other) = (None, None);
        Sampler::take_up(&mut one, Some(&sampling));
        let sighting = Sighting {
            packet: HeaderFields::default(),
            ttl: 1,
            route: None,
            hop: None,
            decision: None,
            class: None,
            neighbour: None,
            fate: Fate::Forwarded,
        };
        let extent = Extent { traffic_class: 0, bytes: 20, packets: 1 };
        one.as_mut().unwrap().put(&sighting, extent);
        // It would wait for itself if the list were locked.
        sampling.take(|_| Sampler::take_up(&mut other, Some(&sampling)));
        other.as_mut().unwrap().put(&sighting, extent);
        let mut count = 0;
        sampling.take(|_| count += 1);
        assert_eq!((count, sampling.rings().len()), (1, 2));
    }

    #[test]
    fn another_interval_is_taken_up_at_once() {
        let sampling = Sampling::new(u32::MAX);
        let mut sampler = None;
        Sampler::take_up(&mut sampler, Some(&sampling));
        sampling.set_interval(1);
        Sampler::take_up(&mut sampler, Some(&sampling));
        assert_eq!(sampler.as_mut().unwrap().of_burst(64), u64::MAX, "the gap of before is forgotten");
        assert_eq!(sampling.rings().len(), 1, "the ring is the same");
        Sampler::take_up(&mut sampler, None);
        assert!(sampler.is_none());
        sampling.take(|_| unreachable!());
        assert!(sampling.rings().is_empty(), "a ring without a worker goes");
    }
}
