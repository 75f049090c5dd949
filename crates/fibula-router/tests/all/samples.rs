//! Samples are drawn at random, each with what became of it, and never hold a packet up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;

use fibula_router::acl::{Condition, PrefixLists};
use fibula_router::drops::DropReason;
use fibula_router::forward::fabric::Gateway;
use fibula_router::forward::sample::{Sample, Sampling};
use fibula_router::forward::trace::{Fate, Trace};
use fibula_router::io::memory::Frame;
use fibula_router::neighbour::Limits;

use crate::support::frames::build;
use crate::support::network::{self, Network};

fn sampled(interval: u32) -> (Network, Arc<Sampling>) {
    let mut network = Network::with(network::fabric(), Limits::default());
    network.now_ns = 1_000_000_000;
    let sampling = Sampling::new(interval);
    network.shared.set_sampling(Some(Arc::clone(&sampling)));
    (network, sampling)
}

fn taken(sampling: &Sampling) -> Vec<Sample> {
    let mut samples = Vec::new();
    sampling.take(|sample| samples.push(sample));
    samples
}

fn frame(text: &str) -> Frame {
    Frame::from(build(text, &[]).bytes)
}

#[test]
fn a_sample_has_the_fields_and_the_fate_of_its_packet() {
    let (mut network, sampling) = sampled(1);
    let texts = [
        "eth R0 a / ip4 10.0.0.1 198.51.0.1 / udp 1 53",
        "eth R0 a / ip6 2001:db8::1 2001:db8:100:0::1 / udp 7 443",
        "eth R0 a / ip4 10.0.0.1 198.51.5.1 / udp 1 2",
        "eth R0 a / ip4 10.0.0.1 10.9.9.9 / udp 1 2",
        "eth R0 a / ip4 10.0.0.1 10.0.1.1 proto=200 / data 100",
        "eth R0 a / ip4 10.0.0.1 198.51.0.9 ttl=1 / udp 1 2",
        // No IP header to read: another EtherType, ARP, and a frame that ends early.
        "eth ALL 7 / arp request 7 10.0.0.7 NONE 10.0.0.254",
    ];
    network.io.ports[0].input.extend(texts.map(frame));
    network.io.ports[0].input.push_back(Frame::from(vec![0; 10]));
    network.run();
    let samples = taken(&sampling);
    let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    assert_eq!((count(&sampling.drawn), count(&sampling.unreadable), count(&sampling.lost)), (8, 2, 0));
    let mut fates: Vec<Fate> = samples.iter().map(|sample| sample.fate).collect();
    assert_eq!(fates.len(), 6);
    let of =
        |destination: u128| samples.iter().find(|sample| sample.packet.destination == destination).unwrap();
    let sent = of(0xc633_0001);
    assert_eq!((sent.fate, sent.packet.input, sent.packet.output), (Fate::Forwarded, 0, Some(1)));
    assert_eq!(
        (sent.packet.ports, sent.packet.protocol, sent.ttl, sent.interval),
        (Some((1, 53)), 17, 64, 1)
    );
    assert_eq!(sent.gateway, Some(Gateway::V4(0x0a00_0101)));
    assert_eq!((sent.bytes, sent.packets), (28, 1));
    assert!(of(0x2001_0db8_0100_0000_0000_0000_0000_0001).packet.v6);
    let dropped = of(0xc633_0501);
    assert_eq!((dropped.fate, dropped.packet.output), (Fate::Dropped(DropReason::Blackhole), None));
    // Its way was known when its TTL ended it.
    let ended = of(0xc633_0009);
    let wanted = (Fate::Dropped(DropReason::TtlExpired), None, None);
    assert_eq!((ended.fate, ended.packet.output, ended.gateway), wanted);
    assert_eq!(of(0x0a09_0909).fate, Fate::Dropped(DropReason::NoRoute));
    // A destination on the link has no gateway.
    assert_eq!((of(0x0a00_0101).gateway, of(0x0a00_0101).bytes), (None, 120));
    fates.retain(|fate| *fate == Fate::Forwarded);
    assert_eq!(fates.len() as u64, network.totals(0).forwarded, "as the counters have it");
    network.check();
}

#[test]
fn segments_of_an_offload_count_as_packets_each_with_its_headers() {
    let (mut network, sampling) = sampled(1);
    let built = build("eth R0 a / ip4 10.0.0.1 198.51.0.1 / tcp 1 2 ack / data 3000", &[]);
    let len = built.bytes.len() as u32 - 14;
    let mut one = Frame::from(built.bytes);
    (one.offload.segment, one.offload.headers) = (1000, 40);
    network.io.ports[0].input.push_back(one);
    network.run();
    let samples = taken(&sampling);
    assert_eq!((samples[0].packets, samples[0].bytes), (3, len + 2 * 40));
}

#[test]
fn one_of_so_many_packets_is_drawn_whatever_their_order() {
    const ROUNDS: u32 = 2_000;
    let (mut network, sampling) = sampled(10);
    let mut by_port = BTreeMap::<u16, u32>::new();
    for round in 0..ROUNDS {
        // In step with the interval: a fixed stride would draw one of these ports alone.
        network.io.ports[0]
            .input
            .extend((0..10).map(|port| frame(&format!("eth R0 a / ip4 10.0.0.1 198.51.0.1 / udp 1 {port}"))));
        network.run();
        if round % 16 == 0 {
            for sample in taken(&sampling) {
                *by_port.entry(sample.packet.ports.unwrap().1).or_default() += 1;
            }
        }
    }
    for sample in taken(&sampling) {
        *by_port.entry(sample.packet.ports.unwrap().1).or_default() += 1;
    }
    let (drawn, wanted) = (by_port.values().sum::<u32>(), f64::from(ROUNDS));
    // Six standard deviations of a binomial distribution.
    assert!((f64::from(drawn) - wanted).abs() < 6.0 * (wanted * 0.9).sqrt(), "{drawn} drawn");
    for port in 0..10 {
        let (count, wanted) = (by_port.get(&port).copied().unwrap_or(0), f64::from(ROUNDS) / 10.0);
        assert!((f64::from(count) - wanted).abs() < 6.0 * (wanted * 0.9).sqrt(), "port {port}: {by_port:?}");
    }
    assert_eq!(network.totals(0).forwarded, u64::from(10 * ROUNDS));
    assert_eq!(sampling.lost.load(Ordering::Relaxed), 0);
}

#[test]
fn a_full_ring_loses_samples_and_no_packet() {
    let (mut network, sampling) = sampled(1);
    for _ in 0..100 {
        network.io.ports[0]
            .input
            .extend((0..64).map(|port| frame(&format!("eth R0 a / ip4 10.0.0.1 198.51.0.1 / udp 1 {port}"))));
        network.run();
    }
    assert_eq!(network.totals(0).forwarded, 6400);
    let samples = taken(&sampling);
    let lost = sampling.lost.load(Ordering::Relaxed);
    assert!(samples.len() >= 4096 && samples.len() as u64 + lost == 6400, "{} {lost}", samples.len());
    // There is room again.
    network.io.ports[0].input.push_back(frame("eth R0 a / ip4 10.0.0.1 198.51.0.1 / udp 1 2"));
    network.run();
    assert_eq!(taken(&sampling).len(), 1);
}

#[test]
fn the_rate_changes_and_sampling_ends_at_the_next_burst() {
    let (mut network, sampling) = sampled(1 << 24);
    let mut run = |count: u16| {
        network.io.ports[0].input.extend(
            (0..count).map(|port| frame(&format!("eth R0 a / ip4 10.0.0.1 198.51.0.1 / udp 1 {port}"))),
        );
        network.run();
        network.shared.clone()
    };
    let shared = run(10);
    let few = taken(&sampling).len();
    assert!(few <= 1, "{few} of 10, one of 16,777,216 each");
    sampling.set_interval(1);
    shared.set_sampling(Some(Arc::clone(&sampling)));
    run(10);
    let samples = taken(&sampling);
    assert!(samples.len() == 10 && samples.iter().all(|sample| sample.interval == 1), "{samples:?}");
    shared.set_sampling(None);
    run(10);
    assert_eq!(taken(&sampling).len(), 0);
}

#[test]
fn a_trace_and_samples_do_not_disturb_each_other() {
    let (mut network, sampling) = sampled(2);
    let condition: Condition = "protocol udp destination-port 3".parse().unwrap();
    let ready = condition.resolve(&PrefixLists::default(), &|_, _| None).unwrap();
    let (sender, sightings) = sync_channel(64);
    let trace = Arc::new(Trace::new(ready, 5, sender));
    network.shared.set_trace(Some(Arc::clone(&trace)));
    for _ in 0..20 {
        network.io.ports[0]
            .input
            .extend((0..5).map(|port| frame(&format!("eth R0 a / ip4 10.0.0.1 198.51.0.1 / udp 1 {port}"))));
        network.run();
    }
    let traced: Vec<_> = sightings.try_iter().collect();
    assert!(traced.len() == 5 && traced.iter().all(|one| one.packet.ports == Some((1, 3))), "{traced:?}");
    let samples = taken(&sampling).len();
    assert!((20..=80).contains(&samples), "{samples} of 100, one of two");
    network.check();
}
