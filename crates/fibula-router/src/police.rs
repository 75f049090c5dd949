//! Policers: how many packets a second of each class may go to the machine itself.
//!
//! Packets for the router's own addresses, multicast, and frames that are not IP are sorted into [`PolicerClass`]es by their headers. Each
//! class has a [`SharedBucket`] that all workers share, so its rate is a bound of the whole router: at most `burst + rate * t` packets
//! of a class pass in any `t` seconds. A new configuration brings new buckets, which are full, so that a reload may let one more burst
//! pass. Packets that are forwarded have nothing to do with policers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::acl::HeaderFields;
use crate::count::Counter;
use crate::drops::DropReason;
use crate::packet::limit::SharedBucket;

/// A rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicerRate {
    /// Packets a second, from 1.
    pub rate: u32,
    /// Packets at once, from 1.
    pub burst: u32,
}

macro_rules! classes {
    ($($variant:ident $name:literal $reason:ident $usual:expr; $what:literal)*) => {
        /// A class of packets to the machine.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum PolicerClass {
            $(#[doc = $what] $variant,)*
        }

        impl PolicerClass {
            /// All classes, in the order in which they are shown.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Returns the name in the configuration and the metrics.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// Describes the class in one sentence.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $what),* }
            }

            /// Returns the rate without a configuration; `None` if all packets pass.
            #[must_use]
            pub const fn usual(self) -> Option<PolicerRate> {
                match self { $(Self::$variant => $usual),* }
            }

            /// Returns the reason for which packets above the rate are dropped.
            #[must_use]
            pub const fn reason(self) -> DropReason {
                match self { $(Self::$variant => DropReason::$reason),* }
            }
        }
    };
}

const fn rate(rate: u32, burst: u32) -> Option<PolicerRate> {
    Some(PolicerRate { rate, burst })
}

classes! {
    Bgp "bgp" PolicedBgp None; "TCP from or to port 179."
    Bfd "bfd" PolicedBfd None; "UDP to ports 3784, 3785, 4784, 6784 and 7784: BFD of one hop, its echo, of several hops, of members of a bond, and seamless."
    Ospf "ospf" PolicedOspf None; "IP protocol 89: OSPF of both versions."
    Vrrp "vrrp" PolicedVrrp None; "IP protocol 112: VRRP and CARP."
    Neighbour "neighbour" PolicedNeighbour None; "ARP whose sender is in a network of the interface, ARP probes, and neighbour discovery with hop limit 255."
    Icmp "icmp" PolicedIcmp rate(1000, 500); "Other ICMP and ICMPv6: pings and errors."
    Rest "rest" PolicedRest rate(10_000, 2000); "The rest: other protocols, other EtherTypes, and ARP of strangers."
}

impl PolicerClass {
    /// Number of classes.
    pub const COUNT: usize = Self::ALL.len();

    /// Returns the class of an IP packet that is not neighbour discovery.
    #[must_use]
    pub fn of(packet: &HeaderFields) -> Self {
        let ports = packet.ports;
        match packet.protocol {
            // Either port, because either side may have opened the session.
            6 if ports.is_some_and(|(from, to)| from == 179 || to == 179) => Self::Bgp,
            // The destination alone, because source ports are any from 49152 on (RFC 5881, section 4).
            17 if ports.is_some_and(|(_, to)| matches!(to, 3784 | 3785 | 4784 | 6784 | 7784)) => Self::Bfd,
            89 => Self::Ospf,
            112 => Self::Vrrp,
            1 if !packet.v6 => Self::Icmp,
            58 if packet.v6 => Self::Icmp,
            _ => Self::Rest,
        }
    }
}

/// The rates of all classes, in the order of [`PolicerClass::ALL`].
pub type PolicerRates = [Option<PolicerRate>; PolicerClass::COUNT];

/// Returns the rates without a configuration.
#[must_use]
pub fn usual_rates() -> PolicerRates {
    std::array::from_fn(|class| PolicerClass::ALL[class].usual())
}

/// The counters of a worker: packets that passed and that were dropped, by class.
#[derive(Debug, Default)]
pub struct PolicerCounts([[Counter; 2]; PolicerClass::COUNT]);

/// The policers of a router.
#[derive(Debug)]
pub struct Policers {
    rates: PolicerRates,
    buckets: [Option<SharedBucket>; PolicerClass::COUNT],
    workers: Mutex<Vec<Arc<PolicerCounts>>>,
    before: [[AtomicU64; 2]; PolicerClass::COUNT],
}

impl Default for Policers {
    fn default() -> Self {
        Self::new(usual_rates())
    }
}

impl Policers {
    /// Makes policers with full buckets.
    #[must_use]
    pub fn new(rates: PolicerRates) -> Self {
        Self {
            buckets: rates.map(|rate| rate.map(|rate| SharedBucket::new(rate.rate, rate.burst))),
            rates,
            workers: Mutex::default(),
            before: Default::default(),
        }
    }

    /// Returns the rates.
    #[must_use]
    pub const fn rates(&self) -> &PolicerRates {
        &self.rates
    }

    /// Makes the counters of one more worker.
    #[must_use]
    pub fn join(&self) -> Arc<PolicerCounts> {
        let counts = Arc::new(PolicerCounts::default());
        self.workers.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&counts));
        counts
    }

    /// Decides about a packet, and counts it.
    ///
    /// # Errors
    /// The reason to drop it, when the class is above its rate.
    pub fn police(&self, class: PolicerClass, counts: &PolicerCounts, now_ns: u64) -> Result<(), DropReason> {
        let passes = self.buckets[class as usize].as_ref().is_none_or(|bucket| bucket.take(now_ns));
        counts.0[class as usize][usize::from(!passes)].add(1);
        if passes { Ok(()) } else { Err(class.reason()) }
    }

    /// Returns the packets that passed and that were dropped, by class.
    #[must_use]
    pub fn counts(&self) -> [[u64; 2]; PolicerClass::COUNT] {
        let mut sums = self.before.each_ref().map(|both| both.each_ref().map(|n| n.load(Ordering::Relaxed)));
        for worker in self.workers.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            for (sum, counts) in sums.iter_mut().zip(&worker.0) {
                sum[0] += counts[0].get();
                sum[1] += counts[1].get();
            }
        }
        sums
    }

    /// Adds the counts of earlier policers. Call it when no worker counts there any more.
    pub fn go_on_from(&self, earlier: &Self) {
        for (both, counts) in self.before.iter().zip(earlier.counts()) {
            both[0].fetch_add(counts[0], Ordering::Relaxed);
            both[1].fetch_add(counts[1], Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_in_the_guide_with_their_rates() {
        let guide =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/router.md"));
        let guide = guide.expect("docs/guide/router.md");
        for class in PolicerClass::ALL {
            let rate = class.usual().map_or("none".to_owned(), |usual| {
                format!("{} a second, {} at once", usual.rate, usual.burst)
            });
            let row = format!("| `{}` | {} | {rate} |", class.name(), class.meaning());
            assert!(guide.contains(&row), "docs/guide/router.md lacks this row:\n{row}");
        }
    }

    #[test]
    fn packets_have_the_class_of_their_protocol_and_ports() {
        let packet = |v6, protocol, ports| HeaderFields { v6, protocol, ports, ..HeaderFields::default() };
        for (packet, class) in [
            (packet(false, 6, Some((179, 40_000))), PolicerClass::Bgp),
            (packet(true, 6, Some((40_000, 179))), PolicerClass::Bgp),
            (packet(false, 17, Some((40_000, 179))), PolicerClass::Rest),
            (packet(false, 6, None), PolicerClass::Rest),
            (packet(true, 17, Some((49_152, 3784))), PolicerClass::Bfd),
            (packet(true, 17, Some((3784, 49_152))), PolicerClass::Rest),
            (packet(false, 89, None), PolicerClass::Ospf),
            (packet(true, 112, None), PolicerClass::Vrrp),
            (packet(false, 1, None), PolicerClass::Icmp),
            (packet(true, 58, None), PolicerClass::Icmp),
            (packet(true, 1, None), PolicerClass::Rest),
        ] {
            assert_eq!(PolicerClass::of(&packet), class, "{packet:?}");
        }
    }

    #[test]
    fn a_class_above_its_rate_is_dropped_and_counted_and_the_others_pass() {
        let policers = Policers::default();
        let (one, two) = (policers.join(), policers.join());
        for round in 0..600 {
            let counts = if round % 2 == 0 { &one } else { &two };
            let icmp = policers.police(PolicerClass::Icmp, counts, 1000);
            assert_eq!(icmp, if round < 500 { Ok(()) } else { Err(DropReason::PolicedIcmp) });
            assert_eq!(policers.police(PolicerClass::Bgp, counts, 1000), Ok(()));
        }
        let of = |policers: &Policers, class: PolicerClass| policers.counts()[class as usize];
        assert_eq!(
            (of(&policers, PolicerClass::Icmp), of(&policers, PolicerClass::Bgp)),
            ([500, 100], [600, 0])
        );
        let after = Policers::new([None; PolicerClass::COUNT]);
        after.go_on_from(&policers);
        assert_eq!(after.police(PolicerClass::Icmp, &after.join(), 1000), Ok(()));
        assert_eq!(of(&after, PolicerClass::Icmp), [501, 100]);
    }
}
