//! The router on ports of DPDK without hardware: those that give back what they send (net_ring), those that receive empty
//! frames (net_null), files (net_pcap), and pairs that share memory (net_memif).

#![cfg(all(target_os = "linux", feature = "dpdk"))]

mod stages;
#[path = "../support/mod.rs"]
mod support;

use std::path::PathBuf;
use std::sync::OnceLock;

use fibula_router::drops::DropReason;
use fibula_router::io::dpdk::{self, Dpdk, Wanted};
use fibula_router::io::memory::Frame;
use fibula_router::io::ports::{Common, Ports, Sink, Source};
use fibula_router::io::{Io, Offload, pcap};
use fibula_router::measure::null::NAME;
use fibula_router::packet::ethernet::Mac;

use support::frames::build;
use support::network::{Network, PORTS};

const MAC: Mac = Mac([2, 0, 0, 0, 0, 7]);

/// What the file that net_pcap receives from has: a word for each rule that ends with a frame out of the first two ports.
const IN_THE_FILE: [&str; 6] = [
    "eth R0 a / ip4 10.0.0.1 198.51.0.9 / udp 1 2 / data 100",
    "eth R0 a / ip6 2001:db8::1 2001:db8:100:0::9 / udp 1 2 / data 900",
    "eth R0 a / ip4 10.0.0.1 10.0.1.1 / udp 1 2 / data 1400",
    "eth R0 a / ip4 10.0.0.1 198.51.0.9 ttl=1 / udp 1 2 / data 20",
    "eth R0 a / arp request a 10.0.0.1 NONE 10.0.0.254",
    "eth R0 a / ip4 10.0.0.1 10.0.0.254 / icmp 8 0 00010002",
];

/// Starts DPDK once, and returns the folder of files of its ports.
fn start() -> &'static PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("dpdk");
        // A socket of an earlier run may be there.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder for files");
        let mut input =
            pcap::Writer::new(std::fs::File::create(folder.join("in.pcap")).expect("a file")).unwrap();
        for (number, text) in IN_THE_FILE.iter().enumerate() {
            input.write(number as u64, &[&build(text, &[]).bytes]).unwrap();
        }
        input.flush().unwrap();
        let at = |name: &str| folder.join(name).display().to_string();
        let mut ports: Vec<String> = (0..18).map(|number| format!("--vdev=net_ring{number}")).collect();
        ports.push(format!("--vdev=net_pcap0,rx_pcap={},tx_pcap={}", at("in.pcap"), at("left.pcap")));
        ports.push(format!("--vdev=net_pcap1,tx_pcap={}", at("right.pcap")));
        ports.extend((1..5).map(|number| format!("--vdev=net_null{number},size=128")));
        ports.extend((0..4).map(|number| format!("--vdev={NAME}{number}")));
        let socket = at("memif");
        ports.push(format!("--vdev=net_memif0,role=server,id=0,socket-abstract=no,socket={socket}"));
        ports.push(format!("--vdev=net_memif1,role=client,id=0,socket-abstract=no,socket={socket}"));
        let arguments = [
            "--no-huge",
            "-m",
            "512",
            "--no-pci",
            "--no-shconf",
            "--no-telemetry",
            "--vdev=net_null0",
            "--log-level=error",
        ];
        let arguments: Vec<String> = arguments.map(str::to_owned).into_iter().chain(ports).collect();
        dpdk::start(&arguments).expect("DPDK starts");
        folder
    })
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
    let mut opened = dpdk::open(&wanted, PORTS.len(), [1, 1], true, 0).unwrap();
    assert_eq!((opened.ports["net_ring0"].is_up(), opened.ports["net_ring0"].mac()), (true, MAC));
    let again = dpdk::open(&wanted[..1], PORTS.len(), [1, 1], true, 0);
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
    assert!(totals.dropped[DropReason::TransmitFull.index()] > 0 && totals.forwarded > 1000, "{totals:?}");
}

#[test]
fn ports_without_contents_are_counted_whole() {
    start();
    let mut opened = dpdk::open(&[wanted("net_null0", 0)], PORTS.len(), [1, 1], true, 0).unwrap();
    let mut io = ports(opened.receivers.remove(0), PORTS.len());
    let mut network = Network::new();
    let frames: usize = (0..100).map(|_| network.worker.burst(&mut io, 0, 0)).sum();
    network.check();
    let totals = network.totals(0);
    assert!(frames > 1000 && totals.received == frames as u64, "{frames}: {totals:?}");
    assert_eq!(totals.dropped[DropReason::OtherMac.index()], totals.received);
}

#[test]
fn threads_of_stages_have_ends_of_their_own() {
    start();
    let mut opened = dpdk::open(&[wanted("net_ring6", 0)], 1, [1, 1], false, 0).unwrap();
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
    let none = dpdk::open(&[wanted("net_absent", 0)], 1, [1, 1], true, 0).unwrap_err();
    assert!(none.to_string().starts_with("net_absent: "), "{none}");
}

#[test]
fn files_are_received_and_written_exactly() {
    let folder = start();
    let wanted = [wanted("net_pcap0", 0), wanted("net_pcap1", 1)];
    let mut opened = dpdk::open(&wanted, PORTS.len(), [1, 1], true, 0).unwrap();
    let mut io = ports(opened.receivers.remove(0), PORTS.len());
    let (mut network, mut memory) = (Network::new(), Network::new());
    for text in IN_THE_FILE {
        memory.io.ports[0].input.push_back(Frame::from(build(text, &[]).bytes));
    }
    memory.run();
    let received: usize = (0..10).map(|_| network.worker.burst(&mut io, 0, 0)).sum();
    assert_eq!(received, IN_THE_FILE.len());
    network.check();
    // The files are whole when their ports are closed.
    drop((io, opened));
    for (port, name) in ["left.pcap", "right.pcap"].into_iter().enumerate() {
        let file = std::fs::File::open(folder.join(name)).unwrap();
        let mut reader = pcap::Reader::new(std::io::BufReader::new(file)).unwrap();
        let mut frames = Vec::new();
        while let Some(frame) = reader.next_frame().unwrap() {
            frames.push(frame.bytes);
        }
        let expected: Vec<_> = memory.io.ports[port].output.iter().map(|frame| &frame.bytes).collect();
        assert!(expected.len() >= 3 && frames.iter().eq(expected), "{name}: {frames:02x?}");
    }
}

#[test]
fn packets_cross_shared_memory_as_they_are() {
    start();
    // The router has the server's side; the test has the client's.
    let both = [wanted("net_memif0", 0), wanted("net_memif1", 1)];
    let mut opened = dpdk::open(&both, PORTS.len(), [1, 1], true, 0).unwrap();
    for _ in 0..1000 {
        if opened.ports.values().all(|port| port.is_up()) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(opened.ports.values().all(|port| port.is_up()), "the sides have found each other");
    let mut io = ports(opened.receivers.remove(0), PORTS.len());
    for text in [
        "eth R0 a / arp request a 10.0.0.1 NONE 10.0.0.254",
        "eth R0 a / ip4 10.0.0.1 10.0.0.254 / icmp 8 0 00010002",
        "eth R0 a / ip6 2001:db8::1 2001:db8:0::fe / icmp6 128 0 00010002",
        "eth R0 a / ip4 10.0.0.1 198.51.6.1 / udp 1 2 / data 1400",
    ] {
        let frame = Frame::from(build(text, &[]).bytes);
        let (mut network, mut memory) = (Network::new(), Network::new());
        memory.io.ports[0].input.push_back(frame.clone());
        memory.run();
        feed(&mut io, 1, &frame);
        while network.worker.burst(&mut io, 0, 0) == 0 {}
        network.check();
        let expected: Vec<Vec<u8>> =
            memory.io.ports[0].output.iter().map(|frame| frame.bytes.clone()).collect();
        assert_eq!(expected.len(), 1, "{text}");
        // The client makes room for what it receives when it looks for it, so the first answer may wait for a second look.
        let looks = std::iter::repeat_with(|| received(&mut io, 1)).take(1000);
        assert_eq!(looks.flatten().collect::<Vec<_>>(), expected, "{text}");
    }
    // Many more than a queue holds, one after the other: none is lost.
    let frame = Frame::from(build("eth R0 a / ip4 10.0.0.1 10.0.0.254 / icmp 8 0 00010002", &[]).bytes);
    let (mut network, mut sent, mut answers) = (Network::new(), 0, 0);
    for _ in 0..1000 {
        sent += u64::from(io.emit(1, [&frame.bytes, &[], &[]], &Offload::default()));
        io.finish();
        network.worker.burst(&mut io, 0, 0);
        answers += received(&mut io, 1).len() as u64;
    }
    for _ in 0..1000 {
        network.worker.burst(&mut io, 0, 0);
        answers += received(&mut io, 1).len() as u64;
    }
    assert_eq!((network.totals(0).received, answers), (sent, sent));
    network.check();
}
