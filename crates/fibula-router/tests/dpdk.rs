//! The router on ports of DPDK without hardware: those that give back what they send (net_ring), and those that receive empty
//! frames (net_null).

#![cfg(all(target_os = "linux", feature = "dpdk"))]

mod support;

use fibula_router::drops::Drop;
use fibula_router::io::dpdk::{self, Dpdk, Wanted};
use fibula_router::io::memory::Frame;
use fibula_router::io::ports::{Common, Ports, Sink, Source};
use fibula_router::io::{Io, Offload};
use fibula_router::packet::ethernet::Mac;

use support::frames::build;
use support::network::{Network, PORTS};

const MAC: Mac = Mac([2, 0, 0, 0, 0, 7]);

fn start() {
    let virtual_ports = (0..7).map(|number| format!("--vdev=net_ring{number}"));
    let arguments = [
        "--no-huge",
        "-m",
        "64",
        "--no-pci",
        "--no-shconf",
        "--no-telemetry",
        "--vdev=net_null0",
        "--log-level=error",
    ];
    let arguments: Vec<String> = arguments.map(str::to_owned).into_iter().chain(virtual_ports).collect();
    dpdk::start(&arguments).expect("DPDK starts");
}

fn wanted(name: &str, port: usize) -> Wanted {
    Wanted { name: name.into(), port, frames: 128, mtu: 1500, mac: None, otherwise: MAC, promiscuous: false }
}

fn ports(dpdk: Dpdk, count: usize) -> Ports {
    let mut ports = Ports::default();
    for _ in 0..count {
        ports.push(Source::Common, Sink::Common);
    }
    ports.set_common(Common::Dpdk(dpdk));
    ports
}

/// Sends a frame by a port that gives it back.
fn feed(io: &mut Ports, port: usize, frame: &Frame) {
    assert!(io.emit(port, [&frame.bytes, &[], &[]], &Offload::default()));
    io.finish();
}

fn received(io: &mut Ports, port: usize) -> Vec<Vec<u8>> {
    let count = io.receive(port);
    let frames = (0..count).map(|index| io.frame(index).bytes.to_vec()).collect();
    io.finish();
    frames
}

#[test]
fn packets_leave_as_they_do_in_memory() {
    start();
    let wanted: Vec<Wanted> = (0..PORTS.len()).map(|port| wanted(&format!("net_ring{port}"), port)).collect();
    let mut opened = dpdk::open(&wanted, PORTS.len(), [1, 1], true).unwrap();
    assert_eq!((opened.ports["net_ring0"].is_up(), opened.ports["net_ring0"].mac()), (true, MAC));
    let again = dpdk::open(&wanted[..1], PORTS.len(), [1, 1], true);
    assert!(again.is_err(), "it is open");
    let mut io = ports(opened.receivers.remove(0), PORTS.len());
    for text in [
        "eth R0 a / ip4 10.0.0.1 198.51.0.9 / udp 1 2 / data 100",
        "eth R0 a / ip6 2001:db8::1 2001:db8:100:0::9 / udp 1 2 / data 100",
        // To an interface with a tag: the header is longer than the one it had.
        "eth R0 a / ip4 10.0.0.1 10.0.2.1 / udp 1 2 / data 10",
        // In fragments, an error, an answer.
        "eth R0 a / ip4 10.0.0.1 10.0.1.1 / udp 1 2 / data 1400",
        "eth R0 a / ip4 10.0.0.1 198.51.6.1 / udp 1 2",
        "eth R0 a / arp request a 10.0.0.1 NONE 10.0.0.254",
        "eth R0 a / ip4 10.0.0.1 10.0.0.254 / icmp 8 0 00010002",
    ] {
        let frame = Frame::from(build(text, &[]).bytes);
        let mut memory = Network::new();
        memory.io.ports[0].input.push_back(frame.clone());
        memory.run();
        let mut network = Network::new();
        feed(&mut io, 0, &frame);
        assert_eq!(network.worker.burst(&mut io, 0, 0), 1, "{text}");
        let mut any = false;
        for port in 0..PORTS.len() {
            let expected: Vec<Vec<u8>> =
                memory.io.ports[port].output.iter().map(|frame| frame.bytes.clone()).collect();
            any |= !expected.is_empty();
            assert_eq!(received(&mut io, port), expected, "{text}, port {port}");
        }
        assert!(any, "{text}: something is sent");
        network.check();
    }
    // More than a queue holds: the rest is counted, and no buffer is lost.
    let network = &mut Network::new();
    let frame = Frame::from(build("eth R0 a / ip4 10.0.0.1 198.51.0.9 / udp 1 2", &[]).bytes);
    for round in 0..200 {
        for _ in 0..50 {
            assert!(io.emit(0, [&frame.bytes, &[], &[]], &Offload::default()), "round {round}");
        }
        io.finish();
        while network.worker.burst(&mut io, 0, 0) > 0 {}
        if round % 50 == 49 {
            while !received(&mut io, 1).is_empty() {}
        }
    }
    let totals = network.totals(0);
    assert_eq!((totals.received, totals.waiting()), (10_000, 0));
    assert!(totals.dropped[Drop::TransmitFull.index()] > 0 && totals.forwarded > 1000, "{totals:?}");
}

#[test]
fn ports_without_contents_are_counted_whole() {
    start();
    let mut opened = dpdk::open(&[wanted("net_null0", 0)], PORTS.len(), [1, 1], true).unwrap();
    let mut io = ports(opened.receivers.remove(0), PORTS.len());
    let mut network = Network::new();
    let frames: usize = (0..100).map(|_| network.worker.burst(&mut io, 0, 0)).sum();
    network.check();
    let totals = network.totals(0);
    assert!(frames > 1000 && totals.received == frames as u64, "{frames}: {totals:?}");
    assert_eq!(totals.dropped[Drop::OtherMac.index()], totals.received);
}

#[test]
fn threads_of_stages_have_ends_of_their_own() {
    start();
    let mut opened = dpdk::open(&[wanted("net_ring6", 0)], 1, [1, 1], false).unwrap();
    let (receiver, sender) = (opened.receivers.remove(0), opened.senders.remove(0));
    let frame = Frame::from(build("eth R0 a / ip4 10.0.0.1 198.51.0.9 / udp 1 2", &[]).bytes);
    let bytes = frame.bytes.clone();
    std::thread::spawn(move || {
        let mut io = ports(sender, 1);
        for _ in 0..3 {
            feed(&mut io, 0, &frame);
        }
    })
    .join()
    .unwrap();
    let mut io = ports(receiver, 1);
    assert_eq!(received(&mut io, 0), [&bytes[..]; 3]);
    assert!(!io.emit(0, [&bytes, &[], &[]], &Offload::default()), "it does not send");
}

#[test]
fn what_is_missing_is_said() {
    start();
    let none = dpdk::open(&[wanted("net_absent", 0)], 1, [1, 1], true).unwrap_err();
    assert!(none.to_string().starts_with("net_absent: "), "{none}");
}
