//! Packets that rules want in the log, within a rate.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::fields::HeaderFields;
use crate::packet::limit::Bucket;

/// The most packets that wait for the thread that writes the log.
const ROOM: usize = 256;

/// Packets in the log a second, and in a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogRate {
    /// A second.
    pub rate: u32,
    /// At once.
    pub burst: u32,
}

impl Default for LogRate {
    fn default() -> Self {
        Self { rate: 10, burst: 20 }
    }
}

/// A packet for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Logged {
    /// Number of the rule.
    pub rule: usize,
    /// The packet.
    pub packet: HeaderFields,
}

/// Packets that wait to be logged. All workers share its rate.
#[derive(Debug)]
pub(super) struct Log {
    waiting: Mutex<(Bucket, VecDeque<Logged>)>,
    left_out: AtomicU64,
}

impl Log {
    pub(super) fn new(rate: LogRate) -> Self {
        let waiting = (Bucket::new(rate.rate, rate.burst), VecDeque::with_capacity(ROOM));
        Self { waiting: Mutex::new(waiting), left_out: AtomicU64::new(0) }
    }

    /// Notes a packet, if the rate allows it. Never waits: while another thread has the list, the packet is left out.
    #[cold]
    pub(super) fn note(&self, rule: usize, packet: &HeaderFields, now_ns: u64) {
        let noted = self.waiting.try_lock().ok().is_some_and(|mut waiting| {
            let (bucket, list) = &mut *waiting;
            let noted = list.len() < ROOM && bucket.take(now_ns);
            if noted {
                list.push_back(Logged { rule, packet: *packet });
            }
            noted
        });
        if !noted {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes the packets that wait, and the number of those that were left out since the last call.
    pub(super) fn take(&self) -> (Vec<Logged>, u64) {
        let list = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).1.drain(..).collect();
        (list, self.left_out.swap(0, Ordering::Relaxed))
    }
}
