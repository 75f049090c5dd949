//! Counters. Each worker has its own, and any thread may read them at any time.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::drops::DropReason;

/// A counter with one writer.
///
/// Only the worker that owns it adds, so a load and a store suffice, without a locked instruction.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `count`. For the owner alone.
    #[inline]
    pub fn add(&self, count: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
    }

    /// Returns the count.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! made {
    ($($variant:ident $name:literal $what:literal)*) => {
        /// Kinds of packets that the router makes itself. They are counted separately, because they were not received.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Made {
            $(#[doc = $what] $variant,)*
        }

        impl Made {
            /// All kinds, in the order of their counters.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Returns the name of its counter.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// Describes it in one sentence.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $what),* }
            }
        }
    };
}

made! {
    IcmpError "icmp-error" "ICMP and ICMPv6 errors sent, counted at the port of the packet that caused them."
    IcmpLimited "icmp-limited" "ICMP errors not sent: the rate limit was reached."
    IcmpUnsent "icmp-unsent" "ICMP errors not sent: no way back to the sender, or no room."
    EchoReply "echo-reply" "Answers to pings of the router, where no kernel answers them."
    Fragment "fragment" "IPv4 fragments sent, counted at the port of the packet that was split."
    ArpRequest "arp-request" "ARP requests sent, counted at the port that they leave by."
    ArpReply "arp-reply" "ARP replies sent."
    ArpProbe "arp-probe" "ARP probes sent: whether another station has an own address (RFC 5227)."
    ArpAnnouncement "arp-announcement" "ARP announcements sent: of an own address that is in use now, and against stations that claim it."
    NdSolicitation "nd-solicitation" "Neighbour solicitations sent, counted at the port that they leave by."
    NdAdvertisement "nd-advertisement" "Neighbour advertisements sent."
    MldReport "mld-report" "Reports of the groups that the router listens to (MLD) sent."
}

impl Made {
    /// Number of kinds.
    pub const COUNT: usize = Self::ALL.len();
}

/// Counters of one port in one worker.
///
/// At rest, `received = forwarded + delivered + consumed + dropped`.
#[derive(Debug)]
#[repr(align(128))]
pub struct PortCounters {
    /// Frames received.
    pub received: Counter,
    /// Bytes received.
    pub received_bytes: Counter,
    /// Packets received here and forwarded by any port, whole or as fragments.
    pub forwarded: Counter,
    /// Frames given to the kernel of the machine.
    pub delivered: Counter,
    /// Frames for the router itself: ARP and neighbour discovery, and pings where no kernel answers them.
    pub consumed: Counter,
    /// Frames sent by this port, made by the router or received by any port.
    pub sent: Counter,
    /// Bytes sent by this port.
    pub sent_bytes: Counter,
    dropped: [Counter; DropReason::COUNT],
    made: [Counter; Made::COUNT],
}

impl Default for PortCounters {
    fn default() -> Self {
        Self {
            received: Counter::default(),
            received_bytes: Counter::default(),
            forwarded: Counter::default(),
            delivered: Counter::default(),
            consumed: Counter::default(),
            sent: Counter::default(),
            sent_bytes: Counter::default(),
            dropped: std::array::from_fn(|_| Counter::default()),
            made: std::array::from_fn(|_| Counter::default()),
        }
    }
}

impl PortCounters {
    /// Counts a dropped packet. For the owner alone.
    #[inline]
    pub fn drop(&self, reason: DropReason) {
        self.dropped[reason.index()].add(1);
    }

    /// Counts `count` dropped packets. For the owner alone.
    pub fn drop_many(&self, reason: DropReason, count: u64) {
        self.dropped[reason.index()].add(count);
    }

    /// Returns the packets dropped for a reason.
    #[must_use]
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped[reason.index()].get()
    }

    /// Counts a packet that the router made. For the owner alone.
    #[inline]
    pub fn make(&self, made: Made) {
        self.made[made as usize].add(1);
    }

    /// Returns the number of packets of a kind that the router made.
    #[must_use]
    pub fn made(&self, made: Made) -> u64 {
        self.made[made as usize].get()
    }

    /// Adds these counters to a sum.
    pub fn add_to(&self, sum: &mut Totals) {
        sum.received += self.received.get();
        sum.received_bytes += self.received_bytes.get();
        sum.forwarded += self.forwarded.get();
        sum.delivered += self.delivered.get();
        sum.consumed += self.consumed.get();
        sum.sent += self.sent.get();
        sum.sent_bytes += self.sent_bytes.get();
        for (total, counter) in sum.dropped.iter_mut().zip(&self.dropped) {
            *total += counter.get();
        }
        for (total, counter) in sum.made.iter_mut().zip(&self.made) {
            *total += counter.get();
        }
    }
}

/// Sums of counters at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    /// See [`PortCounters::received`].
    pub received: u64,
    /// See [`PortCounters::received_bytes`].
    pub received_bytes: u64,
    /// See [`PortCounters::forwarded`].
    pub forwarded: u64,
    /// See [`PortCounters::delivered`].
    pub delivered: u64,
    /// See [`PortCounters::consumed`].
    pub consumed: u64,
    /// See [`PortCounters::sent`].
    pub sent: u64,
    /// See [`PortCounters::sent_bytes`].
    pub sent_bytes: u64,
    /// Packets dropped, in the order of [`DropReason::ALL`].
    pub dropped: [u64; DropReason::COUNT],
    /// Packets that the router made, in the order of [`Made::ALL`].
    pub made: [u64; Made::COUNT],
}

impl Default for Totals {
    fn default() -> Self {
        Self {
            received: 0,
            received_bytes: 0,
            forwarded: 0,
            delivered: 0,
            consumed: 0,
            sent: 0,
            sent_bytes: 0,
            dropped: [0; DropReason::COUNT],
            made: [0; Made::COUNT],
        }
    }
}

impl Totals {
    /// Returns the packets dropped for all reasons together.
    #[must_use]
    pub fn all_dropped(&self) -> u64 {
        self.dropped.iter().sum()
    }

    /// Returns the number of packets that wait for a neighbour: received, but neither forwarded, delivered, consumed nor dropped.
    /// Zero at rest. The counters are read one after another while packets flow, so the number may be off by a burst.
    #[must_use]
    pub fn waiting(&self) -> i64 {
        let done = self.forwarded + self.delivered + self.consumed + self.all_dropped();
        self.received.wrapping_sub(done).cast_signed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_router_makes_is_in_the_guide() {
        let guide =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/router.md"));
        let guide = guide.expect("docs/guide/router.md");
        for (index, &made) in Made::ALL.iter().enumerate() {
            assert_eq!(made as usize, index);
            let row = format!("| `{}` | {} |", made.name(), made.meaning());
            assert!(guide.contains(&row), "docs/guide/router.md lacks this row:\n{row}");
        }
    }
}
