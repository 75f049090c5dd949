//! Frames into a router: nothing panics, and every frame ends in one counter.
//!
//! The bytes are frames one after another: a byte for port and time, two for the length, and the frame.

use std::sync::{Arc, LazyLock};

use fibula::Table;
use fibula::net::{IpPrefix, NextHop};
use fibula_router::count::{PortCounters, Totals};
use fibula_router::forward::fabric::{Fabric, Gateway, Hop, Interface, Port, Urpf, Vrf};
use fibula_router::forward::{Shared, Worker};
use fibula_router::io::memory::Memory;
use fibula_router::neighbour::Key;
use fibula_router::packet::ethernet::{Mac, Tags, VLAN_OUTER};

fn interface(number: u8, tags: Tags, urpf: Urpf, kernel: bool) -> Interface {
    Interface {
        name: number.to_string(),
        port: usize::from(number),
        tags,
        mac: Mac([2, 0, 0, 0, 0, 0xf0 + number]),
        virtual_macs: vec![Mac([0, 0, 0x5e, 0, 1, number])],
        mtu: 1280 + usize::from(number),
        v4: vec![(0x0a00_00fe | u32::from(number) << 8, 24)],
        v6: vec![(0x2001_0db8 << 96 | u128::from(number) << 64 | 0xfe, 64), (0xfe80 << 112 | 0xfe, 64)],
        vrf: 0,
        urpf,
        kernel,
        machine: None,
        up: true,
        missing: false,
    }
}

/// Made once: short prefixes of a table change many of its words, which takes longer than most inputs.
static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let table = Table::new().expect("memory for a table");
    for (prefix, hop) in [
        ("10.0.0.0/24", 1),
        ("10.0.1.0/24", 2),
        ("10.0.0.254/32", 6),
        ("0.0.0.0/1", 3),
        ("128.0.0.0/1", 4),
        ("192.0.2.0/24", 5),
        ("2001:db8::/64", 1),
        ("2001:db8:0:1::/64", 2),
        ("2001:db8::fe/128", 6),
        ("::/0", 4),
    ] {
        let prefix = prefix.parse::<IpPrefix>().expect("a prefix");
        table.insert(prefix, NextHop::new(hop).expect("not zero")).expect("room for a route");
    }
    table
});

fn fabric() -> Fabric {
    let hops = [
        Hop::Connected { interface: 0 },
        Hop::Connected { interface: 1 },
        Hop::Via { interface: 1, gateway: Gateway::V6(0xfe80 << 112 | 1) },
        Hop::Group(vec![1, 2, 3].into()),
        Hop::Blackhole,
        Hop::Local,
    ];
    let mut ports =
        vec![Port::new("0", false), Port::new("1", true), Port::new("2", false), Port::new("3", false)];
    // The machine's side of the interface with two tags.
    ports[3].machine_of = Some(3);
    let nested = Tags::two(VLAN_OUTER, 100, 7);
    ports[0].attach(Tags::NONE, 0);
    ports[1].attach(Tags::NONE, 1);
    ports[2].attach(Tags::one(10), 2);
    ports[2].attach(nested, 3);
    Fabric {
        ports,
        interfaces: vec![
            interface(0, Tags::NONE, Urpf::Off, false),
            interface(1, Tags::NONE, Urpf::Strict, true),
            interface(2, Tags::one(10), Urpf::Loose, false),
            Interface { port: 2, machine: Some(3), ..interface(3, nested, Urpf::Off, true) },
        ],
        vrfs: vec![Vrf { name: "default".into(), table: TABLE.clone() }],
        hops: std::iter::once(None).chain(hops.map(Some)).collect(),
        icmp_rate: (100, 10),
        ..Fabric::default()
    }
}

pub(crate) fn forward(mut bytes: &[u8]) {
    let counters: Arc<[PortCounters]> = (0..4).map(|_| PortCounters::default()).collect();
    let shared = Shared::new(fabric(), Default::default());
    shared.own.set([Key::v6(0, 0x2001_0db8 << 96 | 0xfe), Key::v6(2, 0xfe80 << 112 | 0xfe)].into_iter());
    let mut worker = Worker::new(shared, Arc::clone(&counters)).expect("memory for a worker");
    let mut io = Memory::new(4);
    let mut now_ns = 0;
    while let Some((&[head, low, high], rest)) = bytes.split_first_chunk::<3>() {
        let len = usize::from(u16::from_le_bytes([low, high])).min(rest.len());
        let (frame, rest) = rest.split_at(len);
        let port = usize::from(head % 3);
        io.ports[port].input.push_back(frame.to_vec().into());
        worker.burst(&mut io, port, now_ns);
        now_ns += u64::from(head >> 4) * 50_000_000;
        if head & 8 != 0 {
            worker.tick(&mut io, now_ns);
        }
        bytes = rest;
    }
    for _ in 0..10 {
        now_ns += 1_000_000_000;
        worker.tick(&mut io, now_ns);
        worker.burst(&mut io, 0, now_ns);
    }
    let mut totals = Totals::default();
    counters.iter().for_each(|counters| counters.add_to(&mut totals));
    assert_eq!((totals.waiting(), worker.waiting()), (0, 0), "{totals:?}");
}
