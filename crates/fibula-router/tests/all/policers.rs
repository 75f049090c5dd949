//! Policers: packets to the machine by class, against buckets in exact arithmetic.

use std::sync::Arc;

use fibula_router::acl::{Action, LogRate, PrefixLists, RuleSet};
use fibula_router::drops::DropReason;
use fibula_router::forward::fabric::Fabric;
use fibula_router::io::memory::Frame;
use fibula_router::neighbour::Limits;
use fibula_router::police::{PolicerClass, PolicerRate, PolicerRates, Policers};

use crate::support::frames::build;
use crate::support::network::{self, Network};
use crate::support::random::Random;

const LEFT: usize = 0;
const HOST: usize = 3;

/// Frames to the router, the port on which they come, and their class.
const FRAMES: [(usize, &str, PolicerClass); 16] = [
    (HOST, "eth R3 E / ip4 10.0.4.1 10.0.4.254 / tcp 179 40000", PolicerClass::Bgp),
    (HOST, "eth R3 E / ip6 2001:db8:4::1 2001:db8:4::fe / tcp 40000 179", PolicerClass::Bgp),
    (HOST, "eth R3 E / ip4 10.0.4.1 10.0.4.254 / udp 49152 3784", PolicerClass::Bfd),
    (HOST, "eth R3 E / ip6 fe80::e fe80::0:ff:fe00:f3 / udp 49152 4784", PolicerClass::Bfd),
    (HOST, "eth 01:00:5e:00:00:05 E / ip4 10.0.4.1 224.0.0.5 proto=89 / hex 0201002c", PolicerClass::Ospf),
    (HOST, "eth 01:00:5e:00:00:12 E / ip4 10.0.4.1 224.0.0.18 proto=112 / hex 2101", PolicerClass::Vrrp),
    (HOST, "eth ALL E / arp request E 10.0.4.1 NONE 10.0.4.254", PolicerClass::Neighbour),
    (HOST, "eth ALL E / arp request E 0.0.0.0 NONE 10.0.4.7", PolicerClass::Neighbour),
    (HOST, "eth ALL E / arp request E 10.9.4.1 NONE 10.0.4.254", PolicerClass::Rest),
    (
        HOST,
        "eth R3 E / ip6 2001:db8:4::1 2001:db8:4::fe hop=255 / icmp6 135 0 0000000020010db80004000000000000000000fe",
        PolicerClass::Neighbour,
    ),
    (
        HOST,
        "eth R3 E / ip6 2001:db8:4::1 2001:db8:4::fe hop=254 / icmp6 135 0 0000000020010db80004000000000000000000fe",
        PolicerClass::Icmp,
    ),
    (HOST, "eth R3 E / ip4 10.0.4.1 10.0.4.254 / icmp 8 0 00010001", PolicerClass::Icmp),
    (LEFT, "eth R0 A / ip6 2001:db8:0::1 2001:db8:0::fe / icmp6 128 0 00010001", PolicerClass::Icmp),
    (LEFT, "eth ALL A / arp request A 10.0.0.1 NONE 10.0.0.254", PolicerClass::Neighbour),
    (HOST, "eth R3 E / ip4 10.0.4.1 10.0.4.254 / tcp 40000 22", PolicerClass::Rest),
    (HOST, "eth R3 E / type 0x88cc / hex 0207", PolicerClass::Rest),
];

/// A bucket in units of a token a nanosecond and a second.
struct Bucket {
    rate: u128,
    most: u128,
    held: u128,
}

const ONE: u128 = 1_000_000_000;

impl Bucket {
    fn new(rate: PolicerRate) -> Self {
        let most = u128::from(rate.burst) * ONE;
        Self { rate: rate.rate.into(), most, held: most }
    }

    fn pass(&mut self, ns: u64) {
        self.held = (self.held + u128::from(ns) * self.rate).min(self.most);
    }

    fn take(&mut self) -> bool {
        let has = self.held >= ONE;
        self.held -= if has { ONE } else { 0 };
        has
    }
}

fn policed(rates: PolicerRates) -> (Fabric, Arc<Policers>) {
    let (mut fabric, policers) = (network::fabric(), Arc::new(Policers::new(rates)));
    fabric.policers = Some(Arc::clone(&policers));
    (fabric, policers)
}

fn rates(of: impl Fn(PolicerClass) -> Option<(u32, u32)>) -> PolicerRates {
    std::array::from_fn(|class| of(PolicerClass::ALL[class]).map(|(rate, burst)| PolicerRate { rate, burst }))
}

fn frame(text: &str) -> Frame {
    Frame::from(build(text, &[]).bytes)
}

fn dropped(network: &Network, class: PolicerClass) -> u64 {
    (0..network.counters.len()).map(|port| network.counters[port].dropped(class.reason())).sum()
}

#[test]
fn packets_to_the_machine_are_policed_by_class_as_the_oracle_does() {
    let mut random = Random::new(11);
    for round in 0..8 {
        // Rates that divide a second, so that the oracle has no remainders.
        let limits = rates(|class| match (class as usize + round) % 4 {
            0 => None,
            1 => Some((10, 1)),
            2 => Some((4, 8)),
            _ => Some((2, 20)),
        });
        let mut buckets: Vec<Option<Bucket>> = limits.iter().map(|limit| limit.map(Bucket::new)).collect();
        let (fabric, policers) = policed(limits);
        let mut network = Network::with(fabric, Limits::default());
        network.io.ports[HOST].host_room = usize::MAX;
        let mut expected = [[0u64; 2]; PolicerClass::COUNT];
        network.now_ns = 5_000_000_000;
        for _ in 0..3000 {
            let (port, text, class) = random.one_of(&FRAMES);
            let ns = if random.next().is_multiple_of(3) { 0 } else { random.next() % 40_000_000 };
            network.now_ns += ns;
            buckets.iter_mut().flatten().for_each(|bucket| bucket.pass(ns));
            let passes = buckets[class as usize].as_mut().is_none_or(Bucket::take);
            expected[class as usize][usize::from(!passes)] += 1;
            network.io.ports[port].input.push_back(frame(text));
            network.run();
            assert_eq!(policers.counts(), expected, "round {round}: {text}");
        }
        for &class in PolicerClass::ALL {
            assert_eq!(dropped(&network, class), expected[class as usize][1], "{}", class.name());
            let is_limited = limits[class as usize].is_some();
            assert_eq!(expected[class as usize][1] > 20, is_limited, "{}: {expected:?}", class.name());
        }
        network.check();
    }
}

#[test]
fn forwarded_packets_and_those_that_the_kernel_takes_meet_no_policer() {
    let (mut fabric, policers) = policed(rates(|_| Some((1, 1))));
    fabric.ports[HOST].past = true;
    let mut network = Network::with(fabric, Limits::default());
    network.io.ports[HOST].host_room = usize::MAX;
    network.now_ns = 1_000_000_000;
    for _ in 0..50 {
        network.io.ports[LEFT].input.push_back(frame("eth R0 A / ip4 10.0.0.1 198.51.0.1 / tcp 179 179"));
        for (_, text, _) in FRAMES.iter().filter(|frame| frame.0 == HOST) {
            network.io.ports[HOST].input.push_back(frame(text));
        }
    }
    network.run();
    assert_eq!(policers.counts(), [[0; 2]; PolicerClass::COUNT]);
    assert_eq!((network.totals(LEFT).forwarded, network.totals(HOST).delivered), (50, 50 * 14));
    network.check();
}

#[test]
fn rules_come_first_and_new_rates_hold_at_once() {
    let (mut fabric, policers) = policed(rates(|_| Some((1, 3))));
    let rule = "deny protocol tcp port 179 source !10.0.4.1".parse().unwrap();
    let rules =
        RuleSet::compile(vec![rule], Action::Permit, LogRate::default(), &PrefixLists::default(), &|_, _| {
            None
        });
    fabric.local_rules = Some(Arc::new(rules.unwrap()));
    let mut again = fabric.clone();
    let mut network = Network::with(fabric, Limits::default());
    let flood = |network: &mut Network| {
        for last in [66, 1, 66, 1] {
            let text = format!("eth R3 E / ip4 10.0.4.{last} 10.0.4.254 / tcp 40000 179");
            network.io.ports[HOST].input.extend([frame(&text), frame(&text)]);
        }
        network.run();
    };
    network.now_ns = 1_000_000_000;
    flood(&mut network);
    // Strangers do not use up what the peer may send.
    assert_eq!(policers.counts()[PolicerClass::Bgp as usize], [3, 1]);
    assert_eq!(network.counters[HOST].dropped(DropReason::FilterDeny), 4);
    let wider = Arc::new(Policers::new(rates(|_| None)));
    again.policers = Some(Arc::clone(&wider));
    network.shared.replace(again);
    flood(&mut network);
    wider.go_on_from(&policers);
    assert_eq!(wider.counts()[PolicerClass::Bgp as usize], [7, 1]);
    assert_eq!(network.totals(HOST).delivered, 7);
    network.check();
}
