//! Counters of rules.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::count::Counter;

/// Packets and bytes of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RuleCounts {
    /// Packets that the rule was about, and that no earlier rule had permitted or denied.
    pub packets: u64,
    /// Their bytes, IP headers included.
    pub bytes: u64,
}

/// The counters of a worker: packets and bytes for each rule, and after the last rule for packets that none ended.
#[derive(Debug)]
pub struct WorkerCounts(Box<[[Counter; 2]]>);

impl WorkerCounts {
    /// Counts a packet. For the owner alone.
    #[inline]
    pub(super) fn add(&self, rule: usize, bytes: u64) {
        if let Some([packets, all]) = self.0.get(rule) {
            packets.add(1);
            all.add(bytes);
        }
    }
}

/// The counters of all workers, and the counts of earlier rules.
#[derive(Debug)]
pub(super) struct RuleTotals {
    workers: Mutex<Vec<Arc<WorkerCounts>>>,
    before: Box<[[AtomicU64; 2]]>,
}

impl RuleTotals {
    pub(super) fn new(rules: usize) -> Self {
        let before = (0..=rules).map(|_| [AtomicU64::new(0), AtomicU64::new(0)]);
        Self { workers: Mutex::default(), before: before.collect() }
    }

    /// Makes the counters of one more worker.
    pub(super) fn join(&self) -> Arc<WorkerCounts> {
        let counters = self.before.iter().map(|_| [Counter::default(), Counter::default()]);
        let counters = Arc::new(WorkerCounts(counters.collect()));
        self.workers.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&counters));
        counters
    }

    pub(super) fn add_before(&self, rule: usize, counts: RuleCounts) {
        let [packets, bytes] = &self.before[rule];
        packets.fetch_add(counts.packets, Ordering::Relaxed);
        bytes.fetch_add(counts.bytes, Ordering::Relaxed);
    }

    /// Returns the sums, for each rule, and for packets that none ended.
    pub(super) fn sums(&self) -> Vec<RuleCounts> {
        let before = self.before.iter().map(|[packets, bytes]| RuleCounts {
            packets: packets.load(Ordering::Relaxed),
            bytes: bytes.load(Ordering::Relaxed),
        });
        let mut sums: Vec<RuleCounts> = before.collect();
        for worker in self.workers.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            for (sum, [packets, bytes]) in sums.iter_mut().zip(&worker.0) {
                sum.packets += packets.get();
                sum.bytes += bytes.get();
            }
        }
        sums
    }
}
