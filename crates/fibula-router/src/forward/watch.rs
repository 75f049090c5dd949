//! Watching packets under way: traces and samples.
//!
//! A worker that watches a packet predicts it before it handles it (`predict.rs`), and takes its fate from the counters afterwards. While
//! nothing is watched, a burst costs one test.

use std::sync::Arc;

use crate::count::PortCounters;
use crate::drops::DropReason;

use super::sample::{Extent, Sampler, Sampling};
use super::trace::{Fate, Sighting, Trace};

/// The counters of a port before a packet, by which its fate is found.
pub(super) struct Before {
    ends: [u64; 3],
    dropped: [u64; DropReason::COUNT],
}

impl Before {
    pub(super) fn of(counters: &PortCounters) -> Self {
        let ends = [counters.forwarded.get(), counters.delivered.get(), counters.consumed.get()];
        let mut dropped = [0; DropReason::COUNT];
        for (count, &reason) in dropped.iter_mut().zip(DropReason::ALL) {
            *count = counters.dropped(reason);
        }
        Self { ends, dropped }
    }

    /// Returns the fate of the packet that was counted since. Each packet ends in one counter, but for one that waits.
    pub(super) fn fate(&self, counters: &PortCounters) -> Fate {
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
    pub(super) trace: Option<Arc<Trace>>,
    pub(super) sampler: Option<Sampler>,
    /// Whether packets of the present burst are compared with the filter of the trace.
    pub(super) traces: bool,
    /// A bit for each frame of the present burst that is drawn as a sample.
    pub(super) drawn: u64,
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

    pub(super) fn is_drawn(&self, index: usize) -> bool {
        self.drawn >> index & 1 != 0
    }
}

/// A packet that is watched.
pub(super) struct Sight {
    pub(super) sighting: Sighting,
    pub(super) before: Before,
    /// Whether the trace is about it.
    pub(super) traced: bool,
    /// If it is drawn as a sample, its size.
    pub(super) drawn: Option<Extent>,
}
