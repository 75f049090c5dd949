//! Watching packets under way: traces and samples.
//!
//! A worker that watches a packet predicts it before it handles it, and takes its fate from the counters afterwards. While nothing is
//! watched, a burst costs one test.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use fibula::net::NextHop;

use crate::acl::HeaderFields;
use crate::count::PortCounters;
use crate::drops::DropReason;
use crate::io::Io;

use super::fabric::Hop;
use super::item::{Class, Item};
use super::predict::KnownPacket;
use super::sample::{Extent, Sampler, Sampling};
use super::trace::{Fate, Sighting, Trace};
use super::worker::Worker;

/// The counters of a port before a packet, by which its fate is found.
struct Before {
    ends: [u64; 3],
    dropped: [u64; DropReason::COUNT],
}

impl Before {
    fn of(counters: &PortCounters) -> Self {
        let ends = [counters.forwarded.get(), counters.delivered.get(), counters.consumed.get()];
        let mut dropped = [0; DropReason::COUNT];
        for (count, &reason) in dropped.iter_mut().zip(DropReason::ALL) {
            *count = counters.dropped(reason);
        }
        Self { ends, dropped }
    }

    /// Returns the fate of the packet that was counted since. Each packet ends in one counter, but for one that waits.
    fn fate(&self, counters: &PortCounters) -> Fate {
        let now = Self::of(counters);
        // A packet that waits is in no counter yet.
        let ends = [Fate::Forwarded, Fate::Delivered, Fate::Consumed];
        let ended = (0..3).find(|&end| now.ends[end] != self.ends[end]).map(|end| ends[end]);
        let dropped = || (0..DropReason::COUNT).find(|&reason| now.dropped[reason] != self.dropped[reason]);
        ended
            .or_else(|| dropped().map(|reason| Fate::Dropped(DropReason::ALL[reason])))
            .unwrap_or(Fate::Waiting)
    }
}

/// The watchers of a worker. There is one of them at least.
#[derive(Debug)]
pub(super) struct Watch {
    trace: Option<Arc<Trace>>,
    sampler: Option<Sampler>,
    /// Whether packets of the present burst are compared with the filter of the trace.
    traces: bool,
    /// A bit for each frame of the present burst that is drawn as a sample.
    drawn: u64,
}

impl Watch {
    /// Takes up the trace and the sampling that there are now.
    #[cold]
    pub(super) fn take_up(
        place: &mut Option<Box<Self>>,
        trace: Option<Arc<Trace>>,
        sampling: Option<Arc<Sampling>>,
    ) {
        let mut sampler = place.take().and_then(|watch| watch.sampler);
        Sampler::take_up(&mut sampler, sampling.as_ref());
        if trace.is_some() || sampler.is_some() {
            *place = Some(Box::new(Self { trace, sampler, traces: false, drawn: 0 }));
        }
    }

    fn is_drawn(&self, index: usize) -> bool {
        self.drawn >> index & 1 != 0
    }
}

/// A packet that is watched.
pub(super) struct Sight {
    sighting: Sighting,
    before: Before,
    /// Whether the trace is about it.
    traced: bool,
    /// If it is drawn as a sample, its size.
    drawn: Option<Extent>,
}

impl Worker {
    /// Begins a burst that may be watched. Returns whether it is.
    #[cold]
    pub(super) fn begin_watch(&mut self, received: usize, now_ns: u64) -> bool {
        let Some(watch) = &mut self.watch else { return false };
        watch.drawn = watch.sampler.as_mut().map_or(0, |sampler| sampler.of_burst(received));
        // The main thread takes it away later, because it is not in a hurry.
        if watch.trace.as_ref().is_some_and(|trace| trace.is_over()) {
            watch.trace = None;
        }
        watch.traces = false;
        if let Some(trace) = &watch.trace {
            // While too many packets are traced, the others are not even compared.
            watch.traces = self.trace_rate.clone().take(now_ns);
            if !watch.traces {
                trace.skipped.fetch_add(received as u64, Ordering::Relaxed);
            }
        } else if watch.sampler.is_none() {
            self.watch = None;
            return false;
        }
        watch.traces || watch.drawn != 0
    }

    /// Returns whether the trace is about a packet.
    fn is_traced(&mut self, packet: &HeaderFields, now_ns: u64) -> bool {
        let Some(watch) = &self.watch else { return false };
        let Some(trace) = watch.trace.as_ref().filter(|_| watch.traces) else { return false };
        // Before the budget, because packets that do not match must not use it up.
        if !trace.matches(packet) {
            return false;
        }
        let has_room = self.trace_rate.take(now_ns);
        if !has_room {
            trace.left_out.fetch_add(1, Ordering::Relaxed);
        }
        has_room
    }

    /// Returns whether a frame of this burst may be watched.
    fn may_watch(&self, index: usize) -> bool {
        self.watch.as_ref().is_some_and(|watch| watch.traces || watch.is_drawn(index))
    }

    /// Returns the facts of a packet, if it is watched.
    fn sight(
        &mut self,
        (index, packet): (usize, &HeaderFields),
        extent: Extent,
        now_ns: u64,
        facts: impl FnOnce(&Self) -> Sighting,
    ) -> Option<Sight> {
        let traced = self.is_traced(packet, now_ns);
        let drawn = self.watch.as_ref().is_some_and(|watch| watch.is_drawn(index)).then_some(extent);
        if !traced && drawn.is_none() {
            return None;
        }
        // Before the packet is handled, because that may change the neighbour.
        let sighting = facts(self);
        let port = self.fabric.interfaces[usize::from(packet.input)].port;
        Some(Sight { sighting, before: Before::of(&self.counters[port]), traced, drawn })
    }

    /// Notes the facts of a packet that is about to be routed.
    #[cold]
    pub(super) fn sight_routed(
        &mut self,
        io: &mut impl Io,
        item: &Item,
        (route, source): (Option<NextHop>, Option<NextHop>),
        now_ns: u64,
    ) -> Option<Sight> {
        if !self.may_watch(item.index) {
            return None;
        }
        let fabric = Arc::clone(&self.fabric);
        let offload = io.frame(item.index).offload;
        let hash = |packet: &[u8]| fabric.hash.hash(&item.flow(packet));
        // The filter may ask for the interface by which the packet leaves.
        let out = route
            .and_then(|route| fabric.hop(route.id(), || hash(&io.frame(item.index).bytes[item.range()])));
        let out = out.and_then(Hop::interface);
        // Packets that do not leave have no port that could refuse them.
        let segments = out.is_none_or(|out| io.segments(fabric.interfaces[usize::from(out)].port));
        let frame = io.frame(item.index);
        let packet = &frame.bytes[item.range()];
        let fields = item.fields(packet, &offload, out);
        let extent = Extent::of(item, packet, &offload);
        self.sight((item.index, &fields), extent, now_ns, |worker| {
            let known =
                KnownPacket { fabric: &fabric, shared: &worker.shared, item, packet, offload, segments };
            known.routed(route, source)
        })
    }

    /// Notes the facts of a frame that is not routed.
    #[cold]
    pub(super) fn sight_unrouted(
        &mut self,
        io: &mut impl Io,
        item: &Item,
        (index, class): (usize, Result<Class, DropReason>),
        now_ns: u64,
    ) -> Option<Sight> {
        if !self.may_watch(index) {
            return None;
        }
        let class = match class {
            Ok(class @ (Class::Route | Class::Nd | Class::HostIp(_) | Class::Local)) => class,
            // Neither a trace nor a sample is about frames without an IP header, because their fields are unknown.
            other => {
                self.unreadable(index, other.is_err());
                return None;
            }
        };
        let fabric = Arc::clone(&self.fabric);
        let frame = io.frame(item.index);
        let (packet, offload) = (&frame.bytes[item.range()], frame.offload);
        let fields = item.fields(packet, &offload, None);
        self.sight((index, &fields), Extent::of(item, packet, &offload), now_ns, |worker| {
            let known = KnownPacket {
                fabric: &fabric,
                shared: &worker.shared,
                item,
                packet,
                offload,
                segments: true,
            };
            known.unrouted(class)
        })
    }

    /// Counts a frame without a readable IP header.
    fn unreadable(&self, index: usize, is_dropped: bool) {
        let Some(watch) = &self.watch else { return };
        // Other protocols than IP are none of a trace's business.
        if let Some(trace) = watch.trace.as_ref().filter(|_| watch.traces && is_dropped) {
            trace.unreadable.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(sampler) = watch.sampler.as_ref().filter(|_| watch.is_drawn(index)) {
            sampler.unreadable();
        }
    }

    /// Reports the end of a packet.
    #[cold]
    pub(super) fn report(&mut self, port: usize, sight: Sight) {
        let Sight { mut sighting, before, traced, drawn } = sight;
        // The counters decide, because they see full rings and limits too, which no prediction can.
        sighting.fate = before.fate(&self.counters[port]);
        let Some(watch) = &mut self.watch else { return };
        if let (Some(extent), Some(sampler)) = (drawn, &mut watch.sampler) {
            sampler.put(&sighting, extent);
        }
        if let Some(trace) = watch.trace.as_ref().filter(|_| traced) {
            trace.report(sighting);
        }
    }
}
