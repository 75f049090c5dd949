//! Random, damaged and cut frames: no panic, and every frame in one counter.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use fibula_router::forward::sample::Sampling;
use fibula_router::forward::trace::Fate;
use fibula_router::io::Offload;
use fibula_router::io::memory::Frame;
use fibula_router::neighbour::Key;
use fibula_router::sampling::message::IpfixMessage;
use fibula_router::sampling::observed::{Observed, Origin};
use fibula_router::sampling::templates;
use proptest::prelude::*;

use crate::support::frames::build;
use crate::support::network::{Network, PORTS};

/// Frames to begin with, each of which reaches another part of the pipeline.
const SEEDS: [&str; 15] = [
    "eth R0 a / ip4 10.0.0.1 10.0.1.1 / udp 1 2 / data 40",
    "eth R0 a / ip4 10.0.0.1 10.0.1.1 opt=94040000 / udp 1 2",
    "eth R0 a / ip4 10.0.0.1 10.0.1.1 opt=07070400000000010000 / cut 60",
    "eth R0 a / ip4 10.0.0.1 10.0.1.1 id=9 proto=200 / data 1400",
    "eth R0 a / ip4 10.0.0.1 198.51.2.1 mf off=3 proto=17 / data 64",
    "eth R0 a / ip6 2001:db8::1 2001:db8:1::1 / udp 1 2 / data 9",
    "eth R0 a / ip6 2001:db8::1 2001:db8:100:2::1 / ext 0 00000000000000 / ext 60 00000000000000 / frag 0 more / udp 1 2",
    "eth R0 a / ip6 2001:db8::1 2001:db8:1::1 / ext 43 00040000000000 / tcp 1 2",
    "eth R2 c / vlan 10 / ip4 10.0.2.1 10.0.0.1 ttl=1 / icmp 8 0 / data 9",
    "eth ALL 7 / arp request 7 10.0.0.7 NONE 10.0.0.254",
    "eth R0 7 / arp reply 7 10.0.0.7 R0 10.0.0.254",
    "eth 33:33:ff:00:00:fe 7 / ip6 2001:db8::7 ff02::1:ff00:fe hop=255 / icmp6 135 0 / hex 20010db80000000000000000000000fe0101020000000007",
    "eth R0 7 / ip6 2001:db8::7 2001:db8::fe hop=255 / icmp6 136 0 60000000 / hex 20010db80000000000000000000000070201020000000007",
    "eth R0 a / ip6 2001:db8::1 2001:db8::fe / icmp6 128 0 00070001 / data 20",
    "eth 33:33:00:00:00:01 7 / ip6 fe80::7 ff02::1 hop=1 / ext 0 05020000010000 / icmp6 130 0 27100000 / data 20",
];

fn seed() -> impl Strategy<Value = Vec<u8>> {
    let damage = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    (0..SEEDS.len(), damage, any::<bool>(), any::<prop::sample::Index>(), any::<bool>()).prop_map(
        |(seed, damage, cut, at, repair)| {
            let mut bytes = build(SEEDS[seed], &[]).bytes;
            for (index, byte) in damage {
                let at = index.index(bytes.len());
                bytes[at] = byte;
            }
            if repair {
                repair_checksum(&mut bytes);
            }
            if cut {
                bytes.truncate(at.index(bytes.len() + 1));
            }
            bytes
        },
    )
}

/// Puts the header checksum of IPv4 right, or most damage would get no further.
fn repair_checksum(bytes: &mut [u8]) {
    let at = if bytes.get(12..14) == Some(&[0x81, 0]) { 18 } else { 14 };
    let Some(&first) = bytes.get(at) else { return };
    let len = usize::from(first & 15) * 4;
    if first >> 4 != 4 || len < 20 {
        return;
    }
    if let Some(header) = bytes.get_mut(at..at + len) {
        header[10..12].fill(0);
        let sum = fibula_router::packet::checksum::checksum(header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
    }
}

fn frame() -> impl Strategy<Value = Frame> {
    let bytes = prop_oneof![4 => seed(), 1 => prop::collection::vec(any::<u8>(), 0..200)];
    let offload = prop_oneof![
        3 => Just(Offload::default()),
        1 => any::<(u16, u16, u16, u8, u16)>().prop_map(|(start, at, segment, segment_kind, headers)| Offload {
            checksum: (start, at), segment, segment_kind, headers
        }),
    ];
    (bytes, prop::option::of(any::<u16>()), offload).prop_map(|(bytes, tag, offload)| Frame {
        bytes,
        tag: tag.map(Into::into),
        offload,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn counters_add_up(frames in prop::collection::vec((0..PORTS.len(), frame()), 1..400), segments in any::<bool>()) {
        let mut network = Network::new();
        let sampling = Sampling::new(1);
        network.shared.set_sampling(Some(Arc::clone(&sampling)));
        network.io.ports.iter_mut().for_each(|port| port.segments = segments);
        network.shared.own.set([Key::v4(0, 0x0a00_00fe), Key::v6(0, 0x2001_0db8 << 96 | 0xfe)].into_iter());
        let mut received = 0;
        for (number, (port, frame)) in frames.into_iter().enumerate() {
            network.io.ports[port].input.push_back(frame);
            received += 1;
            if number % 50 == 49 {
                network.run();
                network.wait(100);
            }
        }
        network.run();
        network.check();
        network.wait(8000);
        network.check();
        prop_assert_eq!(network.worker.waiting(), 0);
        let all: u64 = (0..PORTS.len()).map(|port| network.totals(port).received).sum();
        prop_assert_eq!(all, received);
        // Each frame was drawn: all are samples that a record has room for, or have no IP header.
        let mut samples = 0;
        sampling.take(|sample| {
            let observed = Observed { sample, at_ms: 0, source: Origin::default(), destination: Origin::default() };
            let mut message = IpfixMessage::new(512);
            message.begin_set(if sample.packet.v6 { templates::V6.id } else { templates::V4.id });
            assert!(templates::put_sample(&mut message, &observed));
            assert!(sample.packets > 0 && sample.packet.output.is_none_or(|_| matches!(sample.fate, Fate::Forwarded | Fate::Waiting)));
            samples += 1;
        });
        let unreadable = sampling.unreadable.load(Ordering::Relaxed);
        prop_assert_eq!((sampling.drawn.load(Ordering::Relaxed), samples + unreadable), (received, received));
    }
}
