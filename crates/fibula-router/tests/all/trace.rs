//! What is predicted of a packet is what becomes of it: the answers of `explain` and `trace` for the same packets.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use fibula::net::NextHop;
use fibula_router::acl::{Action, Condition, Field, LogRate, PrefixLists, RuleSet};
use fibula_router::drops::DropReason;
use fibula_router::forward::fabric::Fabric;
use fibula_router::forward::predict::{UnsentPacket, predict};
use fibula_router::forward::trace::{Fate, Sighting, Trace};
use fibula_router::io::memory::Frame;
use fibula_router::neighbour::Limits;

use crate::support::frames::build;
use crate::support::network::{self, Network};
use crate::support::random::Random;

const INTERFACES: [&str; 8] = ["left", "right", "ten", "twenty", "host", "loose", "down", "missing"];

fn find(field: Field, name: &str) -> Option<u16> {
    let names = if field == Field::Vrf { &["default", "blue"][..] } else { &INTERFACES };
    names.iter().position(|known| *known == name).map(|number| number as u16)
}

fn rules(texts: &[&str]) -> Arc<RuleSet> {
    let rules = texts.iter().map(|text| text.parse().unwrap()).collect();
    let lists = PrefixLists::default();
    Arc::new(RuleSet::compile(rules, Action::Permit, LogRate::default(), &lists, &find).unwrap())
}

fn filtered() -> Fabric {
    let mut fabric = network::fabric();
    fabric.forward_rules = Some(rules(&[
        "count any",
        "deny destination-port 22",
        "reject ipv6 protocol udp dscp ef",
        "deny destination 198.51.2.0/25,2001:db8:100:2::/65 source-port 7",
        "permit in left out right",
        "reject in ten protocol gre",
    ]));
    fabric.local_rules = Some(rules(&["deny protocol udp", "reject ipv4 icmp-type 8 in loose"]));
    fabric.icmp_rate = (1_000_000, 1_000_000);
    fabric
}

/// Begins a trace. Returns the sightings that it sends.
fn trace(
    network: &Network,
    condition: &str,
    count: u64,
) -> (Arc<Trace>, std::sync::mpsc::Receiver<Sighting>) {
    let condition: Condition = condition.parse().unwrap();
    let ready = condition.resolve(&PrefixLists::default(), &find).unwrap();
    let (sender, receiver) = sync_channel(4096);
    let trace = Arc::new(Trace::new(ready, count, sender));
    network.shared.set_trace(Some(Arc::clone(&trace)));
    (trace, receiver)
}

fn look_up(fabric: &Fabric, vrf: usize, v6: bool, address: u128) -> Option<NextHop> {
    let mut reader = fabric.vrfs[vrf].table.reader().unwrap();
    let pin = reader.pin();
    if v6 { pin.lookup(address) } else { pin.lookup(address as u32) }
}

fn question(random: &mut Random) -> UnsentPacket {
    let v6 = random.next().is_multiple_of(2);
    let (third, last) = (random.next() % 10, random.one_of(&[1, 9, 99, 130, 254, 255]));
    let own = random.next().is_multiple_of(3);
    let source = (random.next() % 8, random.one_of(&[1, 1, 1, 9, 254]));
    let (source, destination) = match v6 {
        false => {
            let net = if own { 0x0a00_0000 } else { 0xc633_0000 };
            let odd = [0x7f00_0001, 0xe000_0001, 0xffff_ffff, 0x0808_0808];
            let to =
                if random.next().is_multiple_of(12) { random.one_of(&odd) } else { net | third << 8 | last };
            (u128::from(0x0a00_0000 | source.0 << 8 | source.1), u128::from(to))
        }
        true => {
            let net = 0x2001_0db8_u128 << 96 | u128::from(third) << if own { 80 } else { 64 };
            let net = if own { net } else { net | 0x100_u128 << 80 };
            let last = if last == 254 { 0xfe } else { last };
            let odd = [1, 0xff02_u128 << 112 | 1, 0xfe80_u128 << 112 | 0xa, 0x2a00_u128 << 112];
            let to =
                if random.next().is_multiple_of(12) { random.one_of(&odd) } else { net | u128::from(last) };
            (0x2001_0db8_u128 << 96 | u128::from(source.0) << 80 | u128::from(source.1), to)
        }
    };
    UnsentPacket {
        v6,
        source,
        destination,
        input: random.one_of(&[0, 0, 1, 2, 3, 4, 5]),
        protocol: random.one_of(&[if v6 { 58 } else { 1 }, 6, 17, 47, 132]),
        ports: (random.one_of(&[7, 1024]), random.one_of(&[22, 443])),
        dscp: random.one_of(&[0, 46]),
    }
}

#[test]
fn what_is_predicted_becomes_of_a_packet() {
    let mut random = Random::new(5);
    let mut fates: BTreeMap<String, usize> = BTreeMap::new();
    let mut decided = 0;
    for round in 0..20 {
        let mut network = Network::with(filtered(), Limits::default());
        network.now_ns = 1_000_000_000;
        for _ in 0..60 {
            let (running, sightings) = trace(&network, "any", 10);
            let question = question(&mut random);
            let fabric = network.shared.fabric();
            let predicted =
                predict(&network.shared, &question, |vrf, v6, address| look_up(&fabric, vrf, v6, address));
            let port = fabric.interfaces[usize::from(question.input)].port;
            network.io.ports[port].input.push_back(Frame::from(question.frame(&fabric)));
            network.run();
            // The budget of a trace is a matter of another test.
            network.now_ns += 1_000_000_000;
            match sightings.try_recv() {
                Ok(traced) => {
                    assert_eq!(predicted, traced, "round {round}: {question:?}");
                    decided += usize::from(traced.decision.is_some());
                    *fates.entry(format!("{:?}", traced.fate)).or_default() += 1;
                }
                // Some frames are dropped by their headers, which no filter matches.
                Err(_) => {
                    assert_eq!(
                        running.unreadable.load(std::sync::atomic::Ordering::Relaxed),
                        1,
                        "{question:?}"
                    );
                    assert!(matches!(predicted.fate, Fate::Dropped(_)), "{question:?} {predicted:?}");
                }
            }
        }
    }
    // The comparison would prove little if all packets ended alike.
    let all: usize = fates.values().sum();
    assert!(all > 1_000 && decided > 300, "{all} {decided} {fates:?}");
    for fate in [
        Fate::Forwarded,
        Fate::Waiting,
        Fate::Consumed,
        Fate::Delivered,
        Fate::Dropped(DropReason::FilterDeny),
        Fate::Dropped(DropReason::FilterReject),
        Fate::Dropped(DropReason::NoRoute),
        Fate::Dropped(DropReason::Blackhole),
        Fate::Dropped(DropReason::MartianSource),
        Fate::Dropped(DropReason::NoHost),
        Fate::Dropped(DropReason::InterfaceDown),
        Fate::Dropped(DropReason::UrpfLoose),
        Fate::Dropped(DropReason::UrpfStrict),
    ] {
        assert!(fates.contains_key(&format!("{fate:?}")), "{fate:?} is missing: {fates:?}");
    }
}

#[test]
fn a_trace_has_the_first_packets_that_match_and_then_costs_nothing() {
    let mut network = Network::with(network::fabric(), Limits::default());
    network.now_ns = 1_000_000_000;
    let (running, sightings) = trace(&network, "protocol udp destination-port 3 out right", 2);
    let frame = |port: u16| {
        let text = format!("eth R0 a / ip4 10.0.0.1 198.51.0.1 / udp 1 {port}");
        Frame::from(build(&text, &[]).bytes)
    };
    network.io.ports[0].input.extend([1, 3, 2, 3, 3].map(frame));
    network.run();
    let seen: Vec<Sighting> = sightings.try_iter().collect();
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().all(|sighting| sighting.packet.ports == Some((1, 3))));
    assert!(running.is_over());
    network.io.ports[0].input.extend([3, 3].map(frame));
    network.run();
    assert_eq!((sightings.try_iter().count(), network.totals(0).forwarded), (0, 7));
    network.check();
}

#[test]
fn a_trace_of_all_packets_is_bounded_and_says_what_it_left_out() {
    let mut network = Network::with(network::fabric(), Limits::default());
    network.now_ns = 1_000_000_000;
    let (running, sightings) = trace(&network, "any", 1_000_000);
    let frame = Frame::from(build("eth R0 a / ip4 10.0.0.1 198.51.0.1 / udp 1 2", &[]).bytes);
    network.io.ports[0].input.extend(vec![frame; 10_000]);
    network.run();
    let count = |counter: &std::sync::atomic::AtomicU64| counter.load(std::sync::atomic::Ordering::Relaxed);
    let (seen, left_out) = (sightings.try_iter().count() as u64, count(&running.left_out));
    let skipped = count(&running.skipped);
    assert_eq!((seen, seen + left_out + skipped), (64, 10_000), "{left_out} {skipped}");
    assert!(skipped > 9_000, "without a budget nothing is compared: {skipped}");
    assert_eq!(network.totals(0).forwarded, 10_000);
}
