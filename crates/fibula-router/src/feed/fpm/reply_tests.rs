use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use fibula::Table;
use fibula::engines::BinaryTrie;
use fibula::live;
use fibula::memory::Limits as MemoryLimits;
use fibula::net::Dual;
use fibula::rib::DualRib;

use super::tests::{del_route, frame, new_route};
use super::*;
use crate::config::Accounts;
use crate::control::hops::Hops;
use crate::control::install::Install;
use crate::feed::answers::Answers;
use crate::feed::keeper::Times;
use crate::feed::lock;
use crate::feed::netlink::split;
use crate::feed::netlink::tests::{message, route_body};
use crate::feed::reply::Verdict;
use crate::feed::routes::Routes;
use crate::feed::server::{Options, Server};
use crate::feed::sessions::{Limits, Sessions};
use crate::feed::state::Count;
use crate::forward::fabric::{Interface, Urpf, Vrf};

const OFFLOAD: u32 = 0x4000;
const FAILED: u32 = 0x2000_0000;
const SECOND: u64 = 1_000_000_000;
const TIMES: Times = Times { keep_ns: 3600 * SECOND, sweep_ns: 4 * SECOND, quiet_ns: SECOND };

/// Zebra, a feed that answers it, and a table, without threads.
struct Bench {
    rib: Mutex<Rib>,
    sessions: Sessions<Fpm>,
    session: u64,
    install: Install,
    hops: Hops,
    vrfs: Vec<Vrf>,
    interfaces: Vec<Interface>,
}

fn fpm() -> Fpm {
    let entrance = Entrance { feed: 0, tables: vec![(254, 0)], has_metrics: false };
    Fpm { entrance, frame_bytes: 65_535, acknowledge: true }
}

fn rib(routes: usize, bytes: usize) -> Mutex<Rib> {
    let mut feed = Routes::new("zebra", 20, routes, 1);
    feed.answers = Some(Answers::new(bytes));
    Mutex::new(Rib::new(vec![feed]))
}

impl Bench {
    fn new(routes: usize, bytes: usize) -> Self {
        let limits = Limits { allow: Vec::new(), sessions: 3 };
        let interface = Interface {
            name: "eth".into(),
            port: 0,
            tags: Default::default(),
            mac: Default::default(),
            virtual_macs: vec![],
            mtu: 1500,
            v4: vec![(u32::from_be_bytes([192, 0, 2, 1]), 24)],
            v6: vec![],
            vrf: 0,
            urpf: Urpf::Off,
            kernel: true,
            machine: None,
            up: true,
            missing: false,
        };
        let mut bench = Self {
            rib: rib(routes, bytes),
            sessions: Sessions::new(limits, TIMES, fpm()),
            session: 0,
            install: Install::default(),
            hops: Hops::default(),
            vrfs: vec![Vrf { name: "default".into(), table: Table::new().unwrap() }],
            interfaces: vec![interface],
        };
        bench.connect();
        bench
    }

    fn connect(&mut self) {
        let peer = SocketAddr::from(([127, 0, 0, 1], 9));
        self.session = self.sessions.accept(&self.rib, peer, None, 0).unwrap();
    }

    fn tell(&mut self, body: &[u8]) {
        self.sessions.bytes(&self.rib, self.session, &frame(1, body), 0).unwrap();
    }

    /// A turn of the main thread. Returns whether the table took everything.
    fn turn(&mut self, own: Option<DualRib>) -> bool {
        let devices = BTreeMap::from([(3, 0)]);
        let own = own.map(|own| vec![own]);
        let taken =
            self.install.take(&self.rib, (&*self.interfaces, &devices), &mut self.hops, own, usize::MAX);
        self.install.enter(&self.rib, &taken, &self.vrfs, &mut [Dual::default()]).is_ok()
    }

    /// Returns what zebra reads.
    fn read(&self) -> Vec<(String, u32)> {
        let mut bytes = Vec::new();
        self.sessions.outgoing(&self.rib, self.session, &mut bytes, usize::MAX);
        answers(&bytes)
    }

    fn counted(&self) -> [u64; 3] {
        [Count::Acknowledged, Count::NotInstalled, Count::Unacknowledged]
            .map(|count| lock(&self.rib).feeds()[0].state.counted(count))
    }
}

/// Reads answers as zebra does: one message a frame, requests alone. Returns prefixes and flags.
fn answers(mut bytes: &[u8]) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        assert_eq!(bytes[..2], [1, 1]);
        let len = usize::from(u16::from_be_bytes([bytes[2], bytes[3]]));
        let (head, body, rest) = split(&bytes[4..len]).unwrap();
        assert_eq!((head.kind, head.flags & 1, rest), (libc::RTM_NEWROUTE, 1, &[][..]));
        let Message::Route(route) = netlink::decode(head.kind, body) else { panic!() };
        let flags = u32::from_ne_bytes(body[8..12].try_into().unwrap());
        found.push((route.prefix.to_string(), flags & (OFFLOAD | FAILED)));
        bytes = &bytes[len..];
    }
    found
}

fn told(prefixes: &[(&str, u32)]) -> Vec<(String, u32)> {
    prefixes.iter().map(|&(prefix, flags)| (prefix.into(), flags)).collect()
}

#[test]
fn a_route_comes_back_as_it_was_but_for_the_flags() {
    let attributes = [(libc::RTA_GATEWAY, &[192, 0, 2, 7][..]), (libc::RTA_TABLE, &10u32.to_ne_bytes())];
    let mut body = route_body("10.0.0.0/8", 1, &attributes);
    body[5] = 186;
    body[8..12].copy_from_slice(&(FAILED | 0x100).to_ne_bytes());
    let bytes = Reply::new(&body).unwrap().bytes(Verdict::Installed);
    let (head, answer, _) = split(&bytes[4..]).unwrap();
    assert_eq!((head.kind, head.flags, bytes[..2].to_vec()), (libc::RTM_NEWROUTE, 1, vec![1, 1]));
    assert_eq!(usize::from(u16::from_be_bytes([bytes[2], bytes[3]])), bytes.len());
    body[8..12].copy_from_slice(&(OFFLOAD | 0x100).to_ne_bytes());
    assert_eq!(answer, body);
    // Too short for flags, and too long for a frame.
    assert_eq!(Reply::new(&body[..11]), None);
    assert_eq!(Reply::new(&vec![0; 65_535 - 16]), None);
}

#[test]
fn routes_are_acknowledged_once_they_are_in_the_table() {
    let mut bench = Bench::new(100, 1 << 20);
    bench.tell(&new_route("10.1.0.0/16", 1));
    bench.tell(&[new_route("10.2.0.0/16", 1), new_route("10.3.0.0/16", 1)].concat());
    assert_eq!(bench.read(), [], "not on receipt");
    // One that changes before it is entered is acknowledged once, one that goes is not.
    bench.tell(&[del_route("10.2.0.0/16"), new_route("10.2.0.0/16", 2)].concat());
    bench.tell(&del_route("10.3.0.0/16"));
    bench.turn(None);
    assert_eq!(bench.read(), told(&[("10.1.0.0/16", OFFLOAD), ("10.2.0.0/16", OFFLOAD)]));
    // A route that is sent again unchanged.
    bench.tell(&new_route("10.1.0.0/16", 1));
    bench.turn(None);
    assert_eq!(bench.read(), told(&[("10.1.0.0/16", OFFLOAD)]));
    bench.turn(None);
    assert_eq!((bench.read(), bench.counted()), (vec![], [3, 0, 0]));
    // A table of no VRF gets no answer. A type that is not supported is refused.
    let table = (libc::RTA_TABLE, &77u32.to_ne_bytes()[..]);
    bench.tell(&message(libc::RTM_NEWROUTE, 0, 0, &route_body("10.9.0.0/16", 6, &[table])));
    bench.tell(&message(libc::RTM_NEWROUTE, 0, 0, &route_body("10.4.0.0/16", 9, &[])));
    bench.turn(None);
    assert_eq!((bench.read(), bench.counted()), (told(&[("10.4.0.0/16", FAILED)]), [3, 1, 0]));
}

#[test]
fn a_route_that_is_not_used_is_acknowledged_when_it_is() {
    let mut bench = Bench::new(100, 1 << 20);
    let mut own = DualRib::default();
    own.insert(
        "10.1.0.0/16".parse::<fibula::net::IpPrefix>().unwrap(),
        bench.hops.number(crate::forward::fabric::Hop::Local),
    )
    .unwrap();
    bench.interfaces[0].v4.clear();
    bench.turn(Some(own));
    bench.tell(&new_route("10.1.0.0/16", 1));
    // By a device that is no interface.
    let attributes = [(libc::RTA_GATEWAY, &[192, 0, 2, 7][..])];
    bench.tell(&message(libc::RTM_NEWROUTE, 0, 0, &route_body("10.2.0.0/16", 1, &attributes)));
    bench.turn(None);
    assert_eq!(bench.read(), []);
    assert!(!lock(&bench.rib).feeds()[0].answers.as_ref().unwrap().is_due());
    bench.turn(Some(DualRib::default()));
    assert_eq!(bench.read(), told(&[("10.1.0.0/16", OFFLOAD)]));
    bench.interfaces[0].v4.push((u32::from_be_bytes([192, 0, 2, 1]), 24));
    bench.turn(Some(DualRib::default()));
    bench.turn(None);
    assert_eq!((bench.read(), bench.counted()), (told(&[("10.2.0.0/16", OFFLOAD)]), [2, 0, 0]));
}

#[test]
fn what_a_table_or_a_limit_refuses_is_said_once() {
    let mut bench = Bench::new(600, 1 << 20);
    let mut options = live::Options {
        limits: MemoryLimits { huge_pages: false, ..MemoryLimits::default() },
        ..live::Options::of::<BinaryTrie, BinaryTrie>()
    };
    let empty = Table::from_routes(DualRib::default(), options).unwrap().statistics().unwrap();
    options.limits.memory_bytes =
        Some(empty.structures.v4.held_bytes().max(empty.structures.v6.held_bytes()) + 4000);
    bench.vrfs[0].table = Table::from_routes(DualRib::default(), options).unwrap();
    for n in 0..600 {
        bench.tell(&new_route(&format!("10.{}.{}.0/25", n / 250, n % 250), 1));
    }
    assert!(!bench.turn(None), "the table has room for all");
    let mut first = bench.read();
    for _ in 0..600 {
        if bench.turn(None) {
            break;
        }
    }
    first.extend(bench.read());
    let installed: Vec<_> = first.iter().filter(|answer| answer.1 == OFFLOAD).collect();
    let refused: Vec<_> = first.iter().filter(|answer| answer.1 == FAILED).collect();
    assert!(!refused.is_empty());
    for (prefix, _) in &installed {
        assert!(
            bench.vrfs[0].table.get(prefix.parse::<fibula::net::IpPrefix>().unwrap()).unwrap().is_some(),
            "{prefix}"
        );
    }
    let mut once: Vec<_> = refused.iter().map(|answer| &answer.0).collect();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), refused.len(), "said twice");
    // Room: the rest follows, first some, then all.
    let refused: Vec<String> = refused.iter().map(|answer| answer.0.clone()).collect();
    let last = refused.iter().find(|prefix| {
        bench.vrfs[0].table.get(prefix.parse::<fibula::net::IpPrefix>().unwrap()).unwrap().is_none()
    });
    let last = last.expect("one that is not there").clone();
    for (prefix, _) in &first {
        if *prefix != last {
            bench.tell(&del_route(prefix));
        }
    }
    while !bench.turn(None) {}
    assert!(bench.read().contains(&(last, OFFLOAD)));
    // The limit of the feed itself.
    let mut bench = Bench::new(1, 1 << 20);
    bench.tell(&new_route("10.1.0.0/16", 1));
    bench.tell(&new_route("10.2.0.0/16", 1));
    bench.turn(None);
    assert_eq!(bench.read(), told(&[("10.2.0.0/16", FAILED), ("10.1.0.0/16", OFFLOAD)]));
}

#[test]
fn everything_is_bounded_and_counted() {
    // Room for few routes: the others are never acknowledged.
    let mut bench = Bench::new(1000, 1000);
    for n in 0..20 {
        bench.tell(&new_route(&format!("10.{n}.0.0/16"), 1));
    }
    bench.turn(None);
    let known = bench.read().len() as u64;
    assert!((1..20).contains(&known));
    assert_eq!(bench.counted(), [known, 0, 20 - known]);
    // A session that ends before it has read its answers, and one that begins again.
    bench.tell(&new_route("10.1.0.0/16", 1));
    bench.turn(None);
    bench.sessions.ended(&bench.rib, bench.session, None, 0);
    assert_eq!((bench.read(), bench.counted()[2]), (vec![], 21 - known));
    bench.connect();
    bench.tell(&new_route("10.1.0.0/16", 1));
    bench.turn(None);
    assert_eq!(bench.read(), told(&[("10.1.0.0/16", OFFLOAD)]));
    // More answers than may be ready: the rest waits, and nothing is lost.
    let mut bench = Bench::new(200_000, Answers::LIMIT);
    let mut count = 0;
    for n in 0..250 {
        let many: Vec<u8> = (0..250).flat_map(|m| new_route(&format!("10.{n}.{m}.0/24"), 1)).collect();
        bench.tell(&many);
        count += 250;
    }
    lock(&bench.rib).put_back([], true);
    bench.turn(None);
    let mut read = bench.read().len();
    for _ in 0..100 {
        bench.turn(None);
        read += bench.read().len();
    }
    assert_eq!((read as u64, bench.counted()), (count, [count, 0, 0]));
}

#[test]
fn a_daemon_that_does_not_read_is_read_on() {
    let rib = rib(100_000, Answers::LIMIT);
    let options = Options {
        listen: "127.0.0.1:0".parse().unwrap(),
        limits: Limits { allow: Vec::new(), sessions: 3 },
        accounts: Accounts::Any,
        times: TIMES,
    };
    let mut server = Server::open(options, fpm()).unwrap();
    let mut zebra = TcpStream::connect(server.address().unwrap()).unwrap();
    zebra.set_nonblocking(true).unwrap();
    // The routes are too large for their answers to fit into the kernel's buffers: an answer repeats the unknown attribute.
    const ROUTES: u32 = 20_000;
    let attributes =
        [(libc::RTA_GATEWAY, &[192, 0, 2, 1][..]), (libc::RTA_OIF, &3u32.to_ne_bytes()), (999, &[0; 1000])];
    let route = |n| route_body(&format!("10.{}.{}.0/24", n / 250, n % 250), 1, &attributes);
    let bytes: Vec<u8> =
        (0..ROUTES).flat_map(|n| frame(1, &message(libc::RTM_NEWROUTE, 0x500, 0, &route(n)))).collect();
    let (mut written, begin) = (0, Instant::now());
    let mut vrf = Bench::new(1, 1);
    vrf.rib = Mutex::new(Rib::default());
    let devices = BTreeMap::from([(3, 0)]);
    let mut turn = |server: &mut Server<Fpm>| {
        server.turn(&rib);
        let near = (&*vrf.interfaces, &devices);
        let taken = vrf.install.take(&rib, near, &mut vrf.hops, None, 8192);
        vrf.install.enter(&rib, &taken, &vrf.vrfs, &mut [Dual::default()]).unwrap();
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", rib.lock().unwrap().feeds()[0].state);
    };
    let counted = |what: Count| lock(&rib).feeds()[0].state.counted(what);
    while counted(Count::Messages) < u64::from(ROUTES) {
        if let Ok(more) = zebra.write(&bytes[written..]) {
            written += more;
        }
        turn(&mut server);
    }
    // The kernel takes some, and the rest is kept.
    for _ in 0..20 {
        turn(&mut server);
    }
    assert!(lock(&rib).feeds()[0].answers.as_ref().unwrap().ready() > 0, "the kernel has taken everything");
    // It reads now, and gets everything.
    let (mut got, mut chunk) = (Vec::new(), vec![0; 1 << 16]);
    while got.len() < bytes.len() {
        if let Ok(read) = zebra.read(&mut chunk) {
            got.extend_from_slice(&chunk[..read]);
        }
        turn(&mut server);
    }
    let mut prefixes = answers(&got);
    assert!(prefixes.iter().all(|answer| answer.1 == OFFLOAD));
    prefixes.sort();
    prefixes.dedup();
    assert_eq!((prefixes.len(), counted(Count::Unacknowledged)), (ROUTES as usize, 0));
}

/// What zebra of FRR 10.7.1 sent, with `dplane_fpm_nl` and `--asic-offload=notify_on_offload`: next-hop objects, a route of each
/// family, a blackhole, and a route that gets a second gateway and loses it.
const RECORDED: &str = "
    010100343000000068000105000000000c102afc02000b0000000000080001000a000000080006000a0002020800050003000000
    010100383400000018000105000000000c102afc02180000fec4000100000000080001000a140100080006001400000008001e000a000000
    010100403c00000068000105000000000c102afc0a000b0000000000080001000c00000014000600fd0000020000000000000000000000020800050003000000
    010100444000000018000105000000000c102afc0a300000fec40001000000001400010020010db8000100000000000000000000080006001400000008001e000c000000
    010100282400000068000105000000000c102afc0a000b0000000000080001000e00000004000400
    010100302c00000018000105000000000c102afc02100000fec4000600000000080001000a1e00000800060014000000
    010100383400000018000105000000000c102afc02100000fec4000100000000080001000a1f0000080006001400000008001e000a000000
    010100343000000068000105000000000c102afc02000b00000000000800010014000000080006000a0001020800050002000000
    010100383400000068000105000000000c102afc00000b00000000000800010013000000140002000a000000000000001400000000000000
    010100383400000018000105000000000c102afc02100000fec4000100000000080001000a1f0000080006001400000008001e0013000000
    010100383400000018000105000000000c102afc02100000fec4000100000000080001000a1f0000080006001400000008001e000a000000
";

#[test]
fn what_a_newer_zebra_was_recorded_to_send_is_acknowledged_as_it_wants_it() {
    let frames: Vec<Vec<u8>> = RECORDED
        .split_whitespace()
        .map(|line| {
            let digit = |at: usize| u8::from_str_radix(&line[at..at + 2], 16).unwrap();
            (0..line.len()).step_by(2).map(digit).collect()
        })
        .collect();
    let mut bench = Bench::new(100, 1 << 20);
    let mut seen = Vec::new();
    for frame in &frames {
        bench.sessions.bytes(&bench.rib, bench.session, frame, 0).unwrap();
        bench.turn(None);
        let mut bytes = Vec::new();
        bench.sessions.outgoing(&bench.rib, bench.session, &mut bytes, usize::MAX);
        if bytes.is_empty() {
            continue;
        }
        // Zebra 10.7 finds the route by what it sent itself; only the flags differ.
        let (head, body, _) = split(&bytes[4..]).unwrap();
        let (sent, own, _) = split(&frame[4..]).unwrap();
        assert_eq!((head.kind, sent.kind, body.len()), (libc::RTM_NEWROUTE, libc::RTM_NEWROUTE, own.len()));
        assert_eq!((&body[..8], &body[12..]), (&own[..8], &own[12..]));
        seen.extend(answers(&bytes));
    }
    let wanted =
        ["10.20.1.0/24", "2001:db8:1::/48", "10.30.0.0/16", "10.31.0.0/16", "10.31.0.0/16", "10.31.0.0/16"];
    assert_eq!(seen, wanted.map(|prefix| (prefix.to_owned(), OFFLOAD)));
}
