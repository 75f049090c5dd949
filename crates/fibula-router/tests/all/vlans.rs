//! Pairs of VLANs, and the machine's side of interfaces with VLANs.

use fibula_router::drops::DropReason;
use fibula_router::forward::fabric::{Fabric, Port};
use fibula_router::io::Offload;
use fibula_router::io::memory::Frame;
use fibula_router::neighbour::Limits;
use fibula_router::packet::ethernet::{self, Tag, Tags};

use crate::support::frames::{build, hex};
use crate::support::network::{self, Network};

fn frame(text: &str) -> Frame {
    Frame::from(build(text, &[]).bytes)
}

const PAIR: u16 = 2;
const TAGGED: usize = 2;
const LEFT: usize = 0;

/// The usual network, with two tags in the place of VLAN 10.
fn with_pair(kind: u16) -> Fabric {
    let mut fabric = network::fabric();
    let tags = Tags::two(kind, 100, 7);
    fabric.interfaces[usize::from(PAIR)].tags = tags;
    fabric.ports[TAGGED] = Port::new("tagged", false);
    fabric.ports[TAGGED].attach(tags, PAIR);
    fabric.ports[TAGGED].attach(Tags::one(20), 3);
    fabric
}

/// Puts tags into a frame without them.
fn tagged(text: &str, tags: &str) -> Frame {
    let mut frame = frame(text);
    frame.bytes.splice(12..12, hex(tags));
    frame
}

#[test]
fn packets_of_two_tags_are_forwarded_both_ways() {
    for (kind, tags) in [(ethernet::VLAN_OUTER, "88a8006481000007"), (ethernet::VLAN, "8100006481000007")] {
        let mut network = Network::with(with_pair(kind), Limits::default());
        // From two tags to none.
        network.io.ports[TAGGED]
            .input
            .push_back(tagged("eth R2 c / ip4 10.0.2.1 10.0.0.1 ttl=9 / udp 1 2", tags));
        // As packet sockets give it: the kernel has taken out the outer tag.
        let mut taken = tagged("eth R2 c / ip4 10.0.2.1 10.0.0.1 ttl=9 / udp 1 2", &tags[8..]);
        taken.tag = Some(Tag::new(kind, 100));
        network.io.ports[TAGGED].input.push_back(taken);
        // And back.
        network.io.ports[LEFT].input.push_back(frame("eth R0 a / ip4 10.0.0.1 10.0.2.1 ttl=9 / udp 1 2"));
        network.run();
        let expected = frame("eth a R0 / ip4 10.0.2.1 10.0.0.1 ttl=8 / udp 1 2").bytes;
        let output: Vec<_> = network.io.ports[LEFT].output.iter().map(|frame| frame.bytes.clone()).collect();
        assert_eq!(output, [expected.clone(), expected]);
        let expected = tagged("eth c R2 / ip4 10.0.0.1 10.0.2.1 ttl=8 / udp 1 2", tags).bytes;
        let output: Vec<_> =
            network.io.ports[TAGGED].output.iter().map(|frame| frame.bytes.clone()).collect();
        assert_eq!(output, [expected]);
        // Other pairs, other EtherTypes, the VLANs alone, the pair turned round, and three tags.
        let other = if kind == ethernet::VLAN { "88a8" } else { "8100" };
        for (tags, reason) in [
            ("88a8006581000007", DropReason::VlanUnknown),
            ("8100006481000008", DropReason::VlanUnknown),
            (&*format!("{other}006481000007"), DropReason::VlanUnknown),
            ("81000007", DropReason::VlanUnknown),
            ("88a80064", DropReason::VlanUnknown),
            ("8100000781000064", DropReason::VlanUnknown),
            ("8100006488a80007", DropReason::VlanUnknown),
            ("88a800648100000781000007", DropReason::VlanNested),
        ] {
            let before = network.counters[TAGGED].dropped(reason);
            network.io.ports[TAGGED]
                .input
                .push_back(tagged("eth R2 c / ip4 10.0.2.1 10.0.0.1 / udp 1 2", tags));
            network.run();
            assert_eq!(network.counters[TAGGED].dropped(reason), before + 1, "{tags}");
        }
        network.check();
    }
}

/// The usual network, with the machine's side of an interface with two tags, and of VLAN 20, which has none.
fn with_side() -> (Fabric, usize) {
    let mut fabric = with_pair(ethernet::VLAN_OUTER);
    let side = fabric.ports.len();
    let mut port = Port::new("seven", false);
    port.machine_of = Some(PAIR);
    fabric.ports.push(port);
    let line = &mut fabric.interfaces[usize::from(PAIR)];
    (line.kernel, line.machine) = (true, Some(side));
    (fabric, side)
}

#[test]
fn the_machine_has_its_frames_without_tags_and_sends_them_with_tags() {
    const TAGS: &str = "88a8006481000007";
    let (fabric, side) = with_side();
    let mut network = Network::with(fabric, Limits::default());
    let to_machine = [
        "eth R2 c / ip4 10.0.2.1 10.0.2.254 / tcp 1 22",
        "eth ALL c / arp request c 10.0.2.1 NONE 10.0.2.254",
        "eth 01:00:5e:00:00:05 c / ip4 10.0.2.1 224.0.0.5 ttl=1 / hex 0201",
        "eth R2 c / type 0x88cc / data 20",
    ];
    for text in to_machine {
        // Each alone: in a burst, frames that need no route come first.
        network.io.ports[TAGGED].input.push_back(tagged(text, TAGS));
        network.run();
    }
    let output: Vec<_> = network.io.ports[side].output.iter().map(|frame| frame.bytes.clone()).collect();
    assert_eq!(output, to_machine.map(|text| frame(text).bytes));
    assert_eq!((network.totals(TAGGED).delivered, network.totals(side).sent), (4, 4));
    // Neither transit packets, nor frames of other stations or of other VLANs, are the machine's.
    for (text, tags) in [
        ("eth R2 c / ip4 10.0.2.1 10.0.0.1 / udp 1 2", TAGS),
        ("eth 02:00:00:00:00:99 c / ip4 10.0.2.1 10.0.2.254 / tcp 1 22", TAGS),
        ("eth R2 c / ip4 10.0.2.1 10.0.2.254 / tcp 1 22", "88a8006481000008"),
    ] {
        network.io.ports[TAGGED].input.push_back(tagged(text, tags));
    }
    network.run();
    assert_eq!((network.totals(TAGGED).delivered, network.io.ports[side].output.len()), (4, 4));
    assert_eq!(network.counters[TAGGED].dropped(DropReason::OtherMac), 1);
    // From the machine, whatever it is. A frame that is too short for a header is dropped.
    network.io.ports[TAGGED].output.clear();
    let from_machine = ["eth c R2 / ip4 10.0.2.254 10.0.2.1 / tcp 22 1", "eth c R2 / type 0x88cc / data 30"];
    for text in from_machine {
        network.io.ports[side].input.push_back(frame(text));
    }
    network.io.ports[side].input.push_back(Frame::from(vec![0; 13]));
    network.run();
    let output: Vec<_> = network.io.ports[TAGGED].output.iter().map(|frame| frame.bytes.clone()).collect();
    assert_eq!(output, from_machine.map(|text| tagged(text, TAGS).bytes));
    assert_eq!(network.totals(side).forwarded, 2);
    assert_eq!(network.counters[side].dropped(DropReason::FrameTruncated), 1);
    network.check();
}

#[test]
fn a_side_that_has_no_room_or_no_link_loses_frames_by_name() {
    let (mut fabric, side) = with_side();
    fabric.interfaces[usize::from(PAIR)].up = false;
    let mut network = Network::with(fabric, Limits::default());
    network.io.ports[side].input.push_back(frame("eth c R2 / ip4 10.0.2.254 10.0.2.1 / tcp 22 1"));
    let mut large = tagged("eth R2 c / ip4 10.0.2.1 10.0.2.254 / tcp 1 22", "88a8006481000007");
    large.offload = Offload { segment: 1400, ..Offload::default() };
    network.io.ports[TAGGED].input.push_back(large);
    network.run();
    assert_eq!(network.counters[side].dropped(DropReason::InterfaceDown), 1);
    assert_eq!(network.counters[TAGGED].dropped(DropReason::OffloadUnsupported), 1);
    network.check();
}
