//! What golden frames cannot say: limits, offloads, full rings, order, reloads, and routes that change under traffic.

use std::collections::{BTreeMap, HashMap};

use fibula::Table;
use fibula::fib::registry::Engine;
use fibula::live::Options;
use fibula_router::count::Made;
use fibula_router::drops::DropReason;
use fibula_router::io::Offload;
use fibula_router::io::memory::Frame;
use fibula_router::neighbour::{Key, Limits, State};
use fibula_router::packet::flow::FlowHash;

use crate::support::frames::build;
use crate::support::network::{self, Network};

fn frame(text: &str) -> Frame {
    Frame::from(build(text, &[]).bytes)
}

fn receive(network: &mut Network, port: usize, frames: impl IntoIterator<Item = Frame>) {
    network.io.ports[port].input.extend(frames);
    network.run();
}

#[test]
fn a_burst_to_an_unknown_neighbour_waits_and_the_rest_is_dropped() {
    let mut network = Network::new();
    let packet = frame("eth R0 a / ip4 10.0.0.1 10.0.1.50 / udp 1 2");
    receive(&mut network, 0, vec![packet; 40]);
    network.check();
    assert_eq!(network.totals(0).dropped[DropReason::NeighbourQueue.index()], 24);
    assert_eq!(network.worker.waiting(), 16);
    let reply = frame("eth R1 5 / arp reply 5 10.0.1.50 R1 10.0.1.254");
    receive(&mut network, 1, [reply]);
    network.check();
    assert_eq!(network.worker.waiting(), 0);
    assert_eq!(network.totals(0).forwarded, 16);
}

#[test]
fn martians_that_are_accepted_are_forwarded_and_their_senders_are_told_and_answered() {
    let mut fabric = network::fabric();
    assert!(fabric.martians.insert("reserved"));
    // Via 10.0.1.1, as 198.51.0.0/24.
    let hop =
        fabric.vrfs[0].table.reader().unwrap().pin().lookup(u32::from_be_bytes([198, 51, 0, 1])).unwrap();
    network::route(&fabric, 0, "240.0.0.0/4", hop.id());
    network::route(&fabric, 0, "0.0.0.0/8", hop.id());
    let mut network = Network::with(fabric, Limits::default());
    receive(
        &mut network,
        0,
        [
            "ip4 240.0.0.1 10.0.1.1 / udp 1 2",
            "ip4 10.0.0.1 240.0.0.1 / udp 1 2",
            // The error leaves by the route to its sender, which is the same.
            "ip4 240.0.0.1 10.0.1.1 ttl=1 / udp 1 2",
            "ip4 240.0.0.1 10.0.0.254 / icmp 8 0 00010002",
            "ip4 0.0.0.1 10.0.1.1 / udp 1 2",
            "ip4 10.0.0.1 0.0.0.1 / udp 1 2",
            "ip4 255.255.255.255 10.0.1.1 / udp 1 2",
        ]
        .map(|packet| frame(&format!("eth R0 a / {packet}"))),
    );
    network.check();
    let totals = network.totals(0);
    assert_eq!((totals.forwarded, network.io.ports[1].output.len()), (2, 4), "{totals:?}");
    assert_eq!(totals.made[Made::IcmpError as usize], 1);
    assert_eq!(totals.made[Made::EchoReply as usize], 1);
    assert_eq!(totals.dropped[DropReason::MartianSource.index()], 2);
    assert_eq!(totals.dropped[DropReason::MartianDestination.index()], 1);
}

#[test]
fn a_flood_to_unused_addresses_has_limits_and_stops_nobody() {
    let mut network =
        Network::with(network::fabric(), Limits { requests: 40, requests_prefix: 40, ..Limits::default() });
    let flood = (0..2000u32).map(|n| {
        let (a, b) = (n % 250, n / 250);
        let destination = if b % 2 == 0 { format!("10.0.1.{a}") } else { format!("10.0.2.{a}") };
        frame(&format!("eth R0 a / ip4 10.0.0.1 {destination} / udp {n} 2"))
    });
    receive(&mut network, 0, flood.collect::<Vec<_>>());
    network.check();
    let totals = network.totals(0);
    assert!(totals.dropped[DropReason::NeighbourLimit.index()] > 1000, "{totals:?}");
    assert_eq!(network.totals(1).made[Made::ArpRequest as usize], 40);
    network.io.take_output(1);
    receive(&mut network, 0, [frame("eth R0 a / ip4 10.0.0.1 10.0.1.1 / udp 1 2")]);
    assert_eq!(network.io.ports[1].output.len(), 1, "a known neighbour is reached");
    network.wait(8000);
    network.check();
    assert_eq!(network.worker.waiting(), 0);
}

#[test]
fn packets_that_wait_too_long_are_dropped() {
    let mut network = Network::new();
    receive(&mut network, 0, [frame("eth R0 a / ip4 10.0.0.1 10.0.1.50 / udp 1 2")]);
    // Nobody asks for the neighbour again, so it never fails: the packet's own limit ends the wait.
    network.now_ns += 4_000_000_000;
    network.run();
    network.check();
    assert_eq!(network.totals(0).dropped[DropReason::NeighbourTimeout.index()], 1);
    assert_eq!(network.totals(0).made[Made::IcmpError as usize], 1);
}

#[test]
fn full_rings_are_counted() {
    let mut network = Network::new();
    network.io.ports[1].room = 5;
    receive(&mut network, 0, vec![frame("eth R0 a / ip4 10.0.0.1 10.0.1.1 / udp 1 2"); 9]);
    network.check();
    assert_eq!(
        (network.totals(0).forwarded, network.totals(0).dropped[DropReason::TransmitFull.index()]),
        (5, 4)
    );
    // The way to the kernel, too.
    network.io.ports[3].host_room = 2;
    receive(&mut network, 3, vec![frame("eth R3 e / ip4 10.0.4.1 10.0.4.254 / tcp 1 22"); 9]);
    network.check();
    assert_eq!(
        (network.totals(3).delivered, network.totals(3).dropped[DropReason::HostFull.index()]),
        (2, 7)
    );
}

#[test]
fn any_engine_of_the_registry_forwards_alike() {
    let frames = || {
        let texts = (0..8).flat_map(|third| {
            [
                format!("eth R0 a / ip4 10.0.0.1 198.51.{third}.9 / udp 1 2"),
                format!("eth R0 a / ip6 2001:db8::1 2001:db8:100:{third}::9 / udp 1 2"),
            ]
        });
        texts.map(|text| frame(&text)).collect::<Vec<_>>()
    };
    let outputs = |ipv4: Engine<u32>, ipv6: Engine<u128>| {
        let mut fabric = network::fabric();
        for vrf in &mut fabric.vrfs {
            let options = Options { ipv4, ipv6, ..Options::default() };
            vrf.table = Table::from_routes(vrf.table.routes().unwrap(), options).expect(ipv4.name);
        }
        let mut network = Network::with(fabric, Limits::default());
        receive(&mut network, 0, frames());
        let sent: Vec<_> = (0..network.io.ports.len()).map(|port| network.io.take_output(port)).collect();
        (sent, network.totals(0).dropped)
    };
    let default = Options::default();
    let expected = outputs(default.ipv4, default.ipv6);
    assert!(expected.0.iter().map(Vec::len).sum::<usize>() > 8);
    for engine in fibula::fib::engines::<u32>() {
        assert_eq!(outputs(engine, default.ipv6), expected, "{}", engine.name);
    }
    for engine in fibula::fib::engines::<u128>() {
        assert_eq!(outputs(default.ipv4, engine), expected, "{}", engine.name);
    }
}

#[test]
fn packets_of_several_segments_pass_whole_or_are_counted() {
    let segments = |df: &str, segment| Frame {
        offload: Offload { checksum: (20, 16), segment, segment_kind: 1, headers: 40 },
        ..frame(&format!("eth R0 a / ip4 10.0.0.1 10.0.1.1 {df} / tcp 1 2 / data 6000"))
    };
    let mut network = Network::new();
    receive(&mut network, 0, [segments("df", 1200)]);
    assert_eq!(network.totals(0).dropped[DropReason::OffloadUnsupported.index()], 1);
    network.io.ports[1].segments = true;
    receive(&mut network, 0, [segments("df", 1200)]);
    let sent = network.io.take_output(1);
    assert_eq!((sent.len(), sent[0].offload.segment, sent[0].offload.checksum), (1, 1200, (20, 16)));
    receive(&mut network, 0, [segments("df", 1400)]);
    assert_eq!(network.totals(0).dropped[DropReason::TooBig.index()], 1);
    receive(&mut network, 0, [segments("", 1400)]);
    assert_eq!(network.totals(0).dropped[DropReason::OffloadTooBig.index()], 1);
    network.check();
}

#[test]
fn icmp_errors_are_rate_limited() {
    let mut network = Network::new();
    let packet = frame("eth R0 a / ip4 10.0.0.1 198.51.7.1 / udp 1 2");
    receive(&mut network, 0, vec![packet.clone(); 100]);
    assert_eq!(network.totals(0).made[Made::IcmpError as usize], 20);
    assert_eq!(network.totals(0).made[Made::IcmpLimited as usize], 80);
    network.wait(1000);
    receive(&mut network, 0, vec![packet; 100]);
    assert_eq!(network.totals(0).made[Made::IcmpError as usize], 30);
}

#[test]
fn flows_keep_their_way_and_their_order() {
    for symmetric in [false, true] {
        let mut fabric = network::fabric();
        fabric.hash = FlowHash { seed: 5, symmetric };
        let mut network = Network::with(fabric, Limits::default());
        let frames = (0..4000u32).map(|n| {
            let (flow, number) = (n % 100, n / 100);
            frame(&format!("eth R0 a / ip4 10.0.0.1 198.51.2.{flow} id={number} / udp {flow} 80"))
        });
        receive(&mut network, 0, frames.collect::<Vec<_>>());
        let mut ways: BTreeMap<u8, (usize, u16)> = BTreeMap::new();
        let mut shares = [0; 2];
        for (way, (port, at)) in [(1, 14), (2, 18)].into_iter().enumerate() {
            for frame in network.io.take_output(port) {
                let number = u16::from_be_bytes([frame.bytes[at + 4], frame.bytes[at + 5]]);
                let seen = ways.entry(frame.bytes[at + 19]).or_insert((way, 0));
                assert_eq!(*seen, (way, number), "in order, and one way");
                seen.1 += 1;
                shares[way] += 1;
            }
        }
        assert_eq!(shares.iter().sum::<usize>(), 4000);
        assert!(shares[1] > shares[0], "weights 1 and 2: {shares:?}");
        network.check();
    }
}

#[test]
fn the_parts_of_a_datagram_take_one_way() {
    let mut network = Network::new();
    for id in 0..50 {
        for (field, payload) in
            [("mf", "udp 7 9 / data 32"), ("mf off=5 proto=17", "data 40"), ("off=10 proto=17", "data 9")]
        {
            let text = format!("eth R0 a / ip4 10.0.0.1 198.51.2.{id} id={id} {field} / {payload}");
            receive(&mut network, 0, [frame(&text)]);
        }
    }
    let mut ways: HashMap<u8, usize> = HashMap::new();
    for (port, at) in [(1, 14), (2, 18)] {
        for frame in network.io.take_output(port) {
            assert_eq!(*ways.entry(frame.bytes[at + 19]).or_insert(port), port);
        }
    }
    assert_eq!(ways.len(), 50);
}

#[test]
fn a_new_fabric_is_taken_up_between_bursts() {
    let mut network = Network::new();
    let packet = frame("eth R0 a / ip4 10.0.0.1 198.51.8.1 / udp 1 2");
    receive(&mut network, 0, [packet.clone()]);
    assert_eq!(network.totals(0).dropped[DropReason::InterfaceDown.index()], 1);
    let mut fabric = (*network.shared.fabric()).clone();
    fabric.interfaces[6].up = true;
    network.shared.replace(fabric);
    receive(&mut network, 0, [packet]);
    assert_eq!(network.totals(0).dropped[DropReason::InterfaceDown.index()], 1);
    assert_eq!(network.io.ports[5].output.len(), 1);
}

#[test]
fn a_checksum_left_to_hardware_is_completed_before_a_packet_is_split() {
    let mut network = Network::new();
    let mut packet = build("eth R0 a / ip4 10.0.0.1 10.0.1.1 id=9 / udp 1 2 / data 1400", &[]).bytes;
    // As a local sender leaves it: the sum of the pseudo header is in the field.
    let pseudo = fibula_router::packet::checksum::pseudo_ipv4(0x0a00_0001, 0x0a00_0101, 1408, 17);
    packet[40..42].copy_from_slice(&fibula_router::packet::checksum::fold(pseudo).to_be_bytes());
    let offload = Offload { checksum: (20, 6), ..Offload::default() };
    receive(&mut network, 0, [Frame { bytes: packet, offload, ..Frame::default() }]);
    let sent = network.io.take_output(1);
    assert_eq!(sent.len(), 2);
    let datagram: Vec<u8> = sent.iter().flat_map(|frame| frame.bytes[34..].to_vec()).collect();
    assert_eq!(fibula_router::packet::checksum::sum(&datagram, pseudo), 0xffff);
}

#[test]
fn a_neighbour_that_is_verified_may_leave_its_mac_address_out() {
    let mut network = Network::new();
    let state = |network: &Network| {
        let mut found = None;
        network.shared.neighbours.for_each(|key, _, state| {
            if key == Key::v6(0, 0x2001_0db8 << 96 | 1) {
                found = Some(state);
            }
        });
        found
    };
    network.wait(31_000);
    assert_eq!(state(&network), Some(State::Stale));
    receive(&mut network, 1, [frame("eth R1 b / ip6 2001:db8:1::1 2001:db8::1 / udp 1 2")]);
    network.wait(100);
    assert_eq!(state(&network), Some(State::Verifying));
    let answer = "eth R0 a / ip6 2001:db8::1 fe80::ff:fe00:f0 hop=255 / icmp6 136 0 40000000 / hex 20010db8000000000000000000000001";
    receive(&mut network, 0, [frame(answer)]);
    assert_eq!(state(&network), Some(State::Reachable));
}

#[test]
fn a_burst_of_several_vrfs_and_families_goes_as_each_packet_alone() {
    let texts = [
        "eth R2 c / vlan 10 / ip4 10.0.2.1 198.51.0.9 / udp 1 2",
        "eth R2 d / vlan 20 / ip4 10.0.3.1 198.51.0.9 / udp 1 2",
        "eth R2 c / vlan 10 / ip6 2001:db8:2::1 2001:db8:100:0::9 / udp 1 2",
        "eth R2 c / vlan 10 / ip4 10.0.2.1 198.51.2.9 / udp 1 2",
        "eth R2 d / vlan 20 / ip6 2001:db8:3::1 2001:db8:100:0::9 / udp 1 2",
    ];
    let frames: Vec<Frame> = (0..64).map(|n| frame(texts[n * 7 % 5])).collect();
    let (mut together, mut alone) = (Network::new(), Network::new());
    receive(&mut together, 2, frames.clone());
    for frame in frames {
        receive(&mut alone, 2, [frame]);
    }
    for port in 0..network::PORTS.len() {
        assert_eq!(together.io.ports[port].output, alone.io.ports[port].output, "port {port}");
        assert_eq!(together.totals(port), alone.totals(port));
    }
    assert!(
        together.totals(2).forwarded > 40 && together.totals(2).dropped[DropReason::NoRoute.index()] > 10
    );
}

/// A solicitation for the router's address on the left, from an address or, as `::`, from a station that wants the address.
fn solicitation(source: &str) -> Frame {
    let option = if source == "::" { "" } else { "010102000000000a" };
    frame(&format!(
        "eth 33:33:ff:00:00:fe a / ip6 {source} ff02::1:ff00:fe hop=255 / icmp6 135 0 / \
         hex 20010db80000000000000000000000fe{option}"
    ))
}

#[test]
fn an_own_address_is_used_when_no_station_claims_it_for_a_second() {
    let mut network = Network::new();
    let own = 0x2001_0db8 << 96 | 0xfe;
    network.shared.own.set([Key::v6(0, own)].into_iter());
    network.wait(100);
    let totals = network.totals(0);
    assert_eq!((totals.made[Made::NdSolicitation as usize], totals.made[Made::MldReport as usize]), (1, 1));
    let sent = network.io.take_output(0);
    let probe = frame(
        "eth 33:33:ff:00:00:fe R0 / ip6 :: ff02::1:ff00:fe hop=255 / icmp6 135 0 / hex 20010db80000000000000000000000fe",
    );
    assert_eq!(sent[1], probe);
    // Not answered for yet; a switch that gives the probe back is no other station.
    receive(&mut network, 0, [solicitation("2001:db8::1"), probe]);
    assert!(network.io.take_output(0).is_empty());
    network.wait(1100);
    assert_eq!(network.totals(0).made[Made::NdAdvertisement as usize], 1, "to all nodes");
    network.io.take_output(0);
    receive(&mut network, 0, [solicitation("2001:db8::1")]);
    assert_eq!(network.totals(0).made[Made::NdAdvertisement as usize], 2);
    assert!(network.shared.own.take_duplicates().is_empty());
    network.check();
}

#[test]
fn an_address_of_another_station_is_not_answered_for() {
    let advertisement = "eth 33:33:00:00:00:01 a / ip6 2001:db8::fe ff02::1 hop=255 / icmp6 136 0 20000000 / \
                         hex 20010db80000000000000000000000fe020102000000000a";
    for claim in [solicitation("::"), frame(advertisement)] {
        let mut network = Network::new();
        network.shared.own.set([Key::v6(0, 0x2001_0db8 << 96 | 0xfe)].into_iter());
        network.wait(100);
        receive(&mut network, 0, [claim]);
        network.wait(2000);
        network.io.take_output(0);
        receive(&mut network, 0, [solicitation("2001:db8::1")]);
        assert_eq!(network.totals(0).made[Made::NdAdvertisement as usize], 0);
        let duplicates = network.shared.own.take_duplicates();
        assert_eq!(duplicates.len(), 1);
        assert_eq!((duplicates[0].key.interface, duplicates[0].mac.0), (0, [2, 0, 0, 0, 0, 0xa]));
        network.check();
    }
}

#[test]
fn frames_to_a_virtual_router_are_the_interfaces_own() {
    let mut network = Network::new();
    let packet = build("eth R0 a / ip4 10.0.0.1 198.51.0.9 / udp 1 2", &[]).bytes;
    let to = |mac: [u8; 6]| {
        let mut bytes = packet.clone();
        bytes[..6].copy_from_slice(&mac);
        Frame::from(bytes)
    };
    let reply = frame("eth R1 5 / arp reply 5 10.0.1.1 R1 10.0.1.254");
    receive(&mut network, 1, [reply]);
    receive(&mut network, 0, [to([0, 0, 0x5e, 0, 1, 51]), to([0, 0, 0x5e, 0, 1, 52])]);
    network.check();
    let totals = network.totals(0);
    assert_eq!(totals.dropped[DropReason::OtherMac.index()], 1, "that of another router");
    assert_eq!(totals.received, 2);
    assert_eq!(totals.all_dropped(), 1, "{totals:?}");
}
