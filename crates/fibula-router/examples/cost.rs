//! What a packet costs: 64-byte frames through the whole pipeline, with ports in memory that neither copy nor wait.
//!
//! `cargo run --release -p fibula-router --example cost -- TABLE... [--passes N]`, with a table of each family (or both in
//! one file). Every prefix leads to one of 16 gateways; packets go to a random address below a random prefix. Forwarding
//! spends the TTL, so headers are written afresh before every pass; a pass of that alone is measured in turn and subtracted. Passes of
//! both kinds alternate, and the median is shown. "lookup" is the batch lookup of the same addresses alone, and "bridge" the same
//! frames sent on without rules or lookups.

use std::hint::black_box;
use std::ops::Range;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use fibula::Table;
use fibula::live::Options;
use fibula::net::NextHop;
use fibula::rib::DualRib;
use fibula_feed::{LoadOptions, Loader, Source};
use fibula_router::count::{PortCounters, Totals};
use fibula_router::forward::fabric::{Fabric, Gateway, Hop, Interface, Port, Urpf, Vrf};
use fibula_router::forward::{Shared, Worker};
use fibula_router::io::{BURST, Io, Offload, Received};
use fibula_router::neighbour::Key;
use fibula_router::packet::ethernet::{Header, IPV4, IPV6, Mac};
use fibula_router::packet::{ipv4, ipv6};

const FRAME: usize = 64;
const GATEWAYS: u32 = 16;
const PACKETS: usize = 1 << 16;

/// Frames that are received again and again; sending writes the header in place and counts.
struct Bench {
    frames: Vec<[u8; FRAME]>,
    next: usize,
    held: usize,
    sent: u64,
}

impl Io for Bench {
    fn receive(&mut self, _port: usize) -> usize {
        self.held = (self.frames.len() - self.next).min(BURST);
        self.held
    }

    fn frame(&mut self, index: usize) -> Received<'_> {
        let bytes = &mut self.frames[self.next + index][..];
        Received { bytes, tag: None, offload: Offload::default(), cut: false }
    }

    fn forward(&mut self, index: usize, _: usize, header: &[u8], _: Range<usize>, _: &Offload) -> bool {
        self.frames[self.next + index][..header.len()].copy_from_slice(header);
        self.sent += 1;
        true
    }

    fn emit(&mut self, _: usize, _: [&[u8]; 3], _: &Offload) -> bool {
        true
    }

    fn deliver(&mut self, _: usize, _: usize) -> bool {
        false
    }

    fn finish(&mut self) {
        self.next = (self.next + self.held) % self.frames.len();
        self.held = 0;
    }
}

/// A small generator with a good spread (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

fn fabric(ribs: DualRib) -> Fabric {
    let table = Table::from_routes(ribs, Options::default()).expect("memory for the table");
    let mut fabric = Fabric { hops: vec![None], icmp_rate: (1000, 100), ..Fabric::default() };
    for number in 0..2u16 {
        let mut port = Port::new(format!("port{number}"), false);
        port.attach(0, number);
        fabric.ports.push(port);
        let host = u32::from(number) << 8 | 0xfe;
        fabric.interfaces.push(Interface {
            name: format!("port{number}"),
            port: usize::from(number),
            vlan: 0,
            mac: Mac([2, 0, 0, 0, 0, 0xf0 + number as u8]),
            mtu: 1500,
            v4: vec![(0x0a00_0000 | host, 24)],
            v6: vec![],
            vrf: 0,
            urpf: Urpf::Off,
            kernel: false,
            up: true,
        });
    }
    for gateway in 0..GATEWAYS {
        let gateway = Gateway::V4(0x0a00_0100 + gateway + 1);
        fabric.hops.push(Some(Hop::Via { interface: 1, gateway }));
    }
    fabric.vrfs.push(Vrf { name: "default".into(), table });
    fabric
}

fn frames(ribs: &DualRib, v6: bool, random: &mut Random) -> (Vec<[u8; FRAME]>, Vec<u128>) {
    let v4_prefixes: Vec<_> = ribs.v4.iter().map(|route| route.prefix).collect();
    let v6_prefixes: Vec<_> = ribs.v6.iter().map(|route| route.prefix).collect();
    let mut frames = Vec::new();
    let mut keys = Vec::new();
    while frames.len() < PACKETS {
        let bits = random.next();
        let mut frame = [0; FRAME];
        let ether_type = if v6 { IPV6 } else { IPV4 };
        let header = Header::new(Mac([2, 0, 0, 0, 0, 0xf0]), Mac([2, 0, 0, 0, 0, 9]), 0, ether_type);
        frame[..14].copy_from_slice(header.as_bytes());
        if v6 {
            let prefix = v6_prefixes[bits as usize % v6_prefixes.len()];
            let low = u128::from(random.next()) << 64 | u128::from(random.next());
            let key = prefix.addr() | low & (prefix.last() ^ prefix.addr());
            if ipv6::is_link_local(key) || ipv6::is_multicast(key) || key <= 1 {
                continue;
            }
            ipv6::write(&mut frame[14..54], 10, 64, 17, 0x2001_0db8 << 96 | 1, key);
            keys.push(key);
        } else {
            let prefix = v4_prefixes[bits as usize % v4_prefixes.len()];
            let key = prefix.addr() | (bits >> 32) as u32 & (prefix.last() ^ prefix.addr());
            if ipv4::is_martian_destination(key) || ipv4::is_multicast(key) {
                continue;
            }
            ipv4::write(&mut frame[14..34], 46, 64, 17, 0x0a00_0001, key);
            keys.push(key.into());
        }
        frames.push(frame);
    }
    (frames, keys)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn timed(what: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    what();
    begin.elapsed().as_nanos() as f64 / PACKETS as f64
}

fn measure(ribs: &DualRib, v6: bool, passes: usize) {
    let (template, keys) = frames(ribs, v6, &mut Random(7));
    let fabric = fabric(ribs.clone());
    let table = fabric.vrfs[0].table.clone();
    let shared = Shared::new(fabric, Default::default());
    for gateway in 0..GATEWAYS {
        let key = Key::v4(1, 0x0a00_0101 + gateway);
        shared.neighbours.learn(key, Mac([2, 0, 0, 0, 1, gateway as u8]), true, true, 0);
    }
    let counters: Arc<[PortCounters]> = (0..2).map(|_| PortCounters::default()).collect();
    let mut worker = Worker::new(shared, Arc::clone(&counters)).expect("memory for a worker");
    let mut io = Bench { frames: template.clone(), next: 0, held: 0, sent: 0 };
    let (mut write, mut whole, mut lookup, mut bridge) = (vec![], vec![], vec![], vec![]);
    let mut reader = table.reader().expect("memory for a reader");
    let v4_keys: Vec<u32> = keys.iter().map(|&key| key as u32).collect();
    for _ in 0..passes {
        write.push(timed(|| black_box(&mut io.frames).copy_from_slice(&template)));
        whole.push(timed(|| {
            io.frames.copy_from_slice(&template);
            for _ in 0..PACKETS / BURST {
                worker.burst(&mut io, 0, 1);
            }
        }));
        lookup.push(timed(|| {
            let mut pin = reader.pin();
            let mut results = [None; BURST];
            for begin in (0..PACKETS).step_by(BURST) {
                if v6 {
                    pin.lookup_batch(&keys[begin..begin + BURST], &mut results);
                } else {
                    pin.lookup_batch(&v4_keys[begin..begin + BURST], &mut results);
                }
                black_box(&results);
                pin.refresh();
            }
        }));
        bridge.push(timed(|| {
            io.frames.copy_from_slice(&template);
            for _ in 0..PACKETS / BURST {
                for index in 0..io.receive(0) {
                    let header = Header::new(Mac([2, 0, 0, 0, 1, 1]), Mac([2, 0, 0, 0, 0, 0xf1]), 0, IPV4);
                    io.forward(index, 1, header.as_bytes(), 14..FRAME, &Offload::default());
                }
                io.finish();
            }
        }));
    }
    let mut totals = Totals::default();
    counters[0].add_to(&mut totals);
    let expected = (passes * PACKETS) as u64;
    assert_eq!((totals.forwarded, totals.received), (expected, expected), "{totals:?}");
    let (write, whole) = (median(write), median(whole));
    println!(
        "IPv{}: {:.1} ns a packet (whole pass {whole:.1}, writing the headers {write:.1}); lookup alone {:.1}; bridge {:.1}",
        if v6 { 6 } else { 4 },
        whole - write,
        median(lookup),
        median(bridge) - write
    );
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let passes = args.iter().position(|arg| arg == "--passes").and_then(|at| args.get(at + 1)?.parse().ok());
    let files: Vec<&String> = args.iter().take_while(|arg| *arg != "--passes").collect();
    if files.is_empty() {
        eprintln!("usage: cost TABLE... [--passes N]");
        return ExitCode::from(2);
    }
    let mut ribs = DualRib::default();
    for file in files {
        let table = match Loader::new(LoadOptions::default()).load(Source::files([file])) {
            Ok(table) => table,
            Err(error) => {
                eprintln!("{file}: {error}");
                return ExitCode::from(3);
            }
        };
        for (prefix, label) in table.ribs.iter() {
            let hop = NextHop::new(label.id() % GATEWAYS + 1).expect("not zero");
            ribs.insert(prefix, hop).expect("memory for a route");
        }
    }
    println!("{} IPv4 and {} IPv6 routes, {PACKETS} frames of {FRAME} bytes", ribs.v4.len(), ribs.v6.len());
    for v6 in [false, true] {
        if if v6 { ribs.v6.is_empty() } else { ribs.v4.is_empty() } {
            continue;
        }
        measure(&ribs, v6, passes.unwrap_or(51));
    }
    ExitCode::SUCCESS
}
