//! Workers that forward side by side.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::config::RunTime;
use crate::count::{PortCounters, Totals};
use crate::forward::{Shared, Worker};
use fibula::live::TableError;

use super::network::counters;
use super::ring::FrameRing;

/// Workers, each with packets of its own, that run to completion on threads of their own.
pub struct Crew {
    members: Vec<Member>,
    pool: Option<rayon::ThreadPool>,
    ports: usize,
    expected: u64,
}

struct Member {
    worker: Worker,
    counters: Arc<[PortCounters]>,
    ring: FrameRing,
}

/// A barrier before each pass. Threads spin there instead of sleeping, so that all begin at once.
struct StartGate {
    threads: usize,
    waiting: AtomicUsize,
    round: AtomicUsize,
}

/// When a thread began each pass, and ended it.
type Passes = Vec<(Instant, Instant)>;

impl Crew {
    /// Makes a worker for each of the rings.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn new(shared: &Arc<Shared>, rings: Vec<FrameRing>) -> Result<Self, TableError> {
        let ports = shared.fabric().ports.len();
        let threads = rings.len();
        let mut members = Vec::new();
        for ring in rings {
            let counters = counters(ports);
            let worker = Worker::new(Arc::clone(shared), Arc::clone(&counters))?;
            members.push(Member { worker, counters, ring });
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).start_handler(place).build().ok();
        Ok(Self { members, pool, ports, expected: 0 })
    }

    /// Forwards all packets `passes` times, and returns the total time of the passes. The time of a pass is from the beginning of
    /// its first thread to the end of its last one. Returns `None` if the system has no threads for the run-time.
    ///
    /// # Panics
    /// When a packet was not forwarded.
    pub fn forward(&mut self, run_time: RunTime, passes: usize) -> Option<Duration> {
        let gate = StartGate {
            threads: self.members.len(),
            waiting: AtomicUsize::new(0),
            round: AtomicUsize::new(0),
        };
        self.expected += (self.packets() * passes) as u64;
        let ports = self.ports;
        let work = |member: &mut Member| member.forward(&gate, ports, passes);
        let times: Vec<Passes> = match run_time {
            RunTime::Threads if self.members.len() == 1 => self.members.iter_mut().map(work).collect(),
            RunTime::Threads => std::thread::scope(|scope| {
                let start = |(number, member)| {
                    scope.spawn(move || {
                        place(number);
                        work(member)
                    })
                };
                let threads: Vec<_> = self.members.iter_mut().enumerate().map(start).collect();
                threads.into_iter().map(|thread| thread.join().expect("a worker")).collect()
            }),
            RunTime::Rayon => {
                let members: Vec<_> = self.members.iter_mut().map(std::sync::Mutex::new).collect();
                let work = |context: rayon::BroadcastContext<'_>| {
                    // Each thread has a lock of its own, so none ever waits for one.
                    work(&mut members[context.index()].lock().expect("a worker"))
                };
                self.pool.as_ref()?.broadcast(work)
            }
        };
        let mut totals = Totals::default();
        let counters = self.members.iter().flat_map(|member| &*member.counters);
        counters.for_each(|port| port.add_to(&mut totals));
        assert_eq!((totals.received, totals.forwarded), (self.expected, self.expected), "{totals:?}");
        let pass = |number: usize| {
            let begin = times.iter().map(|passes| passes[number].0).min();
            let end = times.iter().map(|passes| passes[number].1).max();
            begin.zip(end).map_or(Duration::ZERO, |(begin, end)| end.duration_since(begin))
        };
        Some((0..passes).map(pass).sum())
    }

    /// Returns the number of packets of a pass.
    #[must_use]
    pub fn packets(&self) -> usize {
        self.members.iter().map(|member| member.ring.packets()).sum()
    }
}

impl core::fmt::Debug for Crew {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Crew").field("threads", &self.members.len()).finish_non_exhaustive()
    }
}

impl Member {
    fn forward(&mut self, gate: &StartGate, ports: usize, passes: usize) -> Passes {
        let pass = |_| {
            self.ring.renew();
            gate.wait();
            let begin = Instant::now();
            // Ports take turns, as in a router that polls them.
            while (0..ports).step_by(2).map(|port| self.worker.burst(&mut self.ring, port, 1)).sum::<usize>()
                > 0
            {}
            (begin, Instant::now())
        };
        (0..passes).map(pass).collect()
    }
}

/// Gives a thread a processor of its own, as the router does. Otherwise, two threads may begin on the same processor, and the
/// system does not separate them soon enough.
fn place(thread: usize) {
    #[cfg(target_os = "linux")]
    {
        use crate::kernel::sys;
        let processors = sys::allowed_processors();
        if let Some(&processor) = processors.get(thread % processors.len().max(1)) {
            // Without a place, it runs where the system wants it.
            let _ = sys::run_on(processor);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = thread;
}

impl StartGate {
    fn wait(&self) {
        let round = self.round.load(Ordering::Acquire);
        if self.waiting.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.waiting.store(0, Ordering::Relaxed);
            self.round.store(round + 1, Ordering::Release);
            return;
        }
        for spin in 1_u32.. {
            if self.round.load(Ordering::Acquire) != round {
                return;
            }
            // Where processors are fewer than threads, the others have to come here first.
            if spin.is_multiple_of(1024) { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
    }
}

#[cfg(test)]
mod tests {
    use fibula::Table;
    use fibula::net::{IpPrefix, NextHop};

    use super::super::{Frames, Keys, network};
    use super::*;

    #[test]
    fn every_packet_of_every_pass_is_forwarded() {
        let table = Table::new().unwrap();
        for (prefix, hop) in [("10.0.0.0/8", 1), ("10.1.0.0/16", 2), ("2001:db8::/32", 3)] {
            table.insert(prefix.parse::<IpPrefix>().unwrap(), NextHop::try_from(hop).unwrap()).unwrap();
        }
        // No packet goes to a group of receivers.
        let v4 = [0x0a00_0001, 0xe000_0001, 0x0a01_0001, 0x0a02_0001, 0x0a03_0001];
        let v6 = [0x2001_0db8 << 96 | 1_u128, 0x2001_0db8 << 96 | 2];
        for pairs in [1, 2] {
            for bridge in [false, true] {
                let shared = network(table.clone(), pairs, bridge);
                for (keys, flows, bytes) in
                    [(Keys::V4(&v4), Some(3), 64), (Keys::V6(&v6), None, 64), (Keys::V6(&v6), Some(1), 1500)]
                {
                    let parts = (0..pairs).map(|pair| {
                        let frames = Frames::new(keys, flows, 200, bytes, 2 * pair).unwrap();
                        assert_eq!(frames.len(), 200);
                        frames.spread(2)
                    });
                    let parts: Vec<_> = parts.collect();
                    let rings = (0..2).map(|queue| {
                        // The ports in between receive nothing.
                        let ports = parts.iter().flat_map(|parts| [parts[queue].clone(), Frames::none()]);
                        FrameRing::new(ports)
                    });
                    let mut crew = Crew::new(&shared, rings.collect()).unwrap();
                    assert_eq!(crew.packets(), 200 * pairs);
                    for run_time in [RunTime::Threads, RunTime::Rayon] {
                        assert!(crew.forward(run_time, 3).unwrap() > Duration::ZERO);
                    }
                }
            }
        }
        for bytes in [64, 1500] {
            let parts = Frames::new(Keys::V4(&v4), Some(64), 64, bytes, 0).unwrap().spread(2);
            assert!(parts.iter().all(|part| part.len() >= 16), "flows of {bytes} bytes are not spread");
        }
        assert_eq!(Frames::new(Keys::V4(&[0x7f00_0001]), None, 9, 64, 0).err(), Some(super::super::NoFrames));
        assert!(Frames::new(Keys::V4(&v4), None, 9, 63, 0).is_err());
    }
}
