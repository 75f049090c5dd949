//! Stages on ports of DPDK: packets pass in the buffers that they were received in, in order within each flow, none is lost at an
//! orderly end, and none is judged by half a table.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use fibula::Table;
use fibula::engines::{Dir17Bitmap, PlanB};
use fibula::live::Options;
use fibula::net::{Change, IpPrefix, NextHop, Prefix, Route};
use fibula_router::config::Shape;
use fibula_router::count::{PortCounters, Totals};
use fibula_router::drops::DropReason;
use fibula_router::forward::fabric::{Gateway, Hop};
use fibula_router::forward::{Shared, Worker};
use fibula_router::io::dpdk::{self, Opened, Packet, Pool};
use fibula_router::io::ports::Ports;
use fibula_router::io::{Io, Offload, Received};
use fibula_router::measure::null::{Bench, StagePlan};
use fibula_router::measure::{self, Frames, Keys};
use fibula_router::packet::ethernet::{Header, Mac, Tags};
use fibula_router::stage::{self, Staged};

use crate::support::frames::build;
use crate::support::network::{self, Network, PORTS};
use crate::{ports, start, wanted};

const FLOWS: u32 = 64;
/// Where the number of a packet is in it: after the headers of Ethernet, IPv6 and UDP.
const NUMBER: usize = 14 + 40 + 8;
/// How often the table is replaced.
const REPLACEMENTS: usize = 40;

/// A port that receives frames without contents (net_null), which are written here: packets with consecutive numbers.
struct Source<'a> {
    ports: Ports,
    template: Vec<u8>,
    destination: &'a (dyn Fn(u32) -> u128 + Sync),
    /// Where the bytes of each packet are, by number.
    places: Vec<usize>,
}

/// A packet that has left: its number, where its bytes are, and the port that it left by.
struct Arrived {
    number: u32,
    place: usize,
    port: usize,
}

impl Io for Source<'_> {
    fn receive(&mut self, port: usize) -> usize {
        let count = self.ports.receive(port);
        for index in 0..count {
            let bytes = self.ports.frame(index).bytes;
            bytes[..self.template.len()].copy_from_slice(&self.template);
            let number = self.places.len() as u32;
            bytes[38..54].copy_from_slice(&(self.destination)(number).to_be_bytes());
            bytes[54..56].copy_from_slice(&(1000 + number as u16 % FLOWS as u16).to_be_bytes());
            bytes[NUMBER..][..4].copy_from_slice(&number.to_be_bytes());
            self.places.push(bytes.as_ptr() as usize);
        }
        count
    }

    fn frame(&mut self, index: usize) -> Received<'_> {
        self.ports.frame(index)
    }

    fn take(&mut self, index: usize) -> Option<Packet> {
        self.ports.take(index)
    }

    fn forward(&mut self, _: usize, _: usize, _: &Header, _: core::ops::Range<usize>, _: &Offload) -> bool {
        false
    }

    fn emit(&mut self, _: usize, _: [&[u8]; 3], _: &Offload) -> bool {
        false
    }

    fn deliver(&mut self, _: usize, _: usize) -> bool {
        false
    }

    fn finish(&mut self) {
        self.ports.finish();
    }
}

impl Source<'_> {
    /// Takes what the ports that give back what they send have.
    fn collect(&mut self, arrived: &mut Vec<Arrived>) -> usize {
        let mut all = 0;
        for port in [1, 2] {
            let count = self.ports.receive(port);
            for index in 0..count {
                let bytes = self.ports.frame(index).bytes;
                // The second port has a tag in front.
                let payload = if port == 2 { NUMBER + 4 } else { NUMBER };
                assert_eq!(bytes.len(), payload + 20, "port {port}");
                let number = u32::from_be_bytes(bytes[payload..][..4].try_into().expect("four bytes"));
                // Where the packet begins, which no stage moves.
                let place = bytes.as_ptr() as usize + payload - NUMBER;
                arrived.push(Arrived { number, place, port });
            }
            self.ports.finish();
            all += count;
        }
        all
    }
}

/// How the packets of a test go.
struct Setup<'a> {
    /// Ports 0, 1 and 2.
    names: [&'a str; 3],
    /// Threads of each stage; in two stages the last is 0.
    threads: [usize; 3],
    destination: &'a (dyn Fn(u32) -> u128 + Sync),
    /// Whether the source goes on, by how many packets it has sent.
    goes_on: &'a (dyn Fn(usize) -> bool + Sync),
}

fn end(port: usize, pool: Pool) -> stage::End {
    stage::End { kernel: false, sends: port > 0, segments: false, pool: Some(pool) }
}

fn work<O>(mut worker: Worker, io: &mut Staged<O>, ready: impl Fn(&mut Staged<O>) -> bool)
where
    Staged<O>: Io,
{
    loop {
        let end = io.ended();
        let received = if ready(io) { worker.burst(io, 0, 0) } else { 0 };
        if end && received == 0 {
            return;
        }
        if received == 0 {
            std::thread::yield_now();
        }
    }
}

/// Sends what waits for room: the far end makes some.
fn send_rest(io: &mut Ports) {
    while io.has_unsent() {
        io.finish();
        std::thread::yield_now();
    }
}

/// Runs packets through stages on ports of DPDK until the source has ended and all stages have. Returns what has left, and how many
/// were received. Checks that each was forwarded in its own buffer, and that all buffers have come back.
fn run(shared: &Arc<Shared>, setup: &Setup<'_>) -> (Vec<Arrived>, usize) {
    start();
    let [receive, workers, send] = setup.threads;
    let wanted: Vec<_> = setup.names.iter().enumerate().map(|(port, name)| wanted(name, port)).collect();
    let between = (receive + 1) * workers * setup.names.len() * stage::CAPACITY;
    let sending = if send == 0 { workers } else { send };
    let opened = dpdk::open(&wanted, PORTS.len(), [receive, sending], false, between).unwrap();
    let Opened { ports: open, mut receivers, senders, pool } = opened;
    let ends: Vec<stage::End> = (0..3).map(|port| end(port, pool)).collect();
    let mut all: Vec<Arc<[PortCounters]>> = Vec::new();
    let mut counters = || {
        all.push((0..PORTS.len()).map(|_| PortCounters::default()).collect());
        Arc::clone(&all[all.len() - 1])
    };
    let lookups: Vec<Worker> =
        (0..workers).map(|_| Worker::new(Arc::clone(shared), counters()).unwrap()).collect();
    let mut template = build("eth R0 a / ip6 2001:db8::1 2001:db8::2 / udp 1 2 / data 20", &[]).bytes;
    template[60..62].fill(0);
    let ports_of = |dpdk| ports(dpdk, PORTS.len());
    let source = Source {
        ports: ports_of(receivers.remove(0)),
        template,
        destination: setup.destination,
        places: Vec::new(),
    };
    let running = AtomicUsize::new(if send == 0 { workers } else { send });
    let (arrived, places) = std::thread::scope(|scope| {
        let first = if send == 0 {
            let stages = stage::two(&ends, [receive, workers], false, &mut counters).unwrap();
            for ((worker, io), sender) in lookups.into_iter().zip(stages.workers).zip(senders) {
                let (running, ports) = (&running, ports_of(sender));
                scope.spawn(move || {
                    let mut io = io.direct(ports);
                    work(worker, &mut io, |io| {
                        !io.out().0.has_unsent() || {
                            io.out().0.finish();
                            false
                        }
                    });
                    send_rest(&mut io.out().0);
                    running.fetch_sub(1, Ordering::Release);
                });
            }
            stages.receive
        } else {
            let stages = stage::three(&ends, setup.threads, false, &mut counters).unwrap();
            for (worker, mut io) in lookups.into_iter().zip(stages.workers) {
                scope.spawn(move || work(worker, &mut io, |io| io.out().has_room()));
            }
            for (mut stage, sender) in stages.transmit.into_iter().zip(senders) {
                let (running, mut ports) = (&running, ports_of(sender));
                scope.spawn(move || {
                    while !stage.ended() {
                        if stage.turn(&mut ports) == 0 {
                            std::thread::yield_now();
                        }
                    }
                    send_rest(&mut ports);
                    running.fetch_sub(1, Ordering::Release);
                });
            }
            stages.receive
        };
        let mut first: Vec<stage::Receive> = first;
        let (mut source, mut arrived) = (source, Vec::new());
        loop {
            // In this order: all that is sent has arrived when nothing runs any more, and nothing is left after that.
            let ended = running.load(Ordering::Acquire) == 0;
            if let Some(stage) = first.last_mut() {
                if !(setup.goes_on)(source.places.len()) {
                    // With its rings full of packets: the other stages send them still.
                    first.clear();
                } else if stage.has_room(0) {
                    assert!(stage.turn(&mut source, 0) > 0);
                }
            }
            let count = source.collect(&mut arrived);
            if ended && count == 0 {
                break;
            }
            if first.is_empty() && count == 0 {
                std::thread::yield_now();
            }
        }
        (arrived, std::mem::take(&mut source.places))
    });
    let mut totals = Totals::default();
    all.iter().flat_map(|counters| counters.iter()).for_each(|counters| counters.add_to(&mut totals));
    let sent = places.len() as u64;
    assert_eq!((totals.received, totals.forwarded, totals.all_dropped()), (sent, sent, 0), "{totals:?}");
    assert_eq!(arrived.len(), places.len());
    for arrived in &arrived {
        assert_eq!(arrived.place, places[arrived.number as usize], "packet {} was copied", arrived.number);
    }
    if send > 0 {
        let shares: Vec<u64> = all[..workers].iter().map(|counters| counters[0].received.get()).collect();
        assert!(shares.iter().all(|&share| share > 0), "each worker has flows: {shares:?}");
    }
    drop(open);
    assert_eq!(pool.used(), 0, "buffers that have not come back");
    (arrived, places.len())
}

fn check_order(names: [&str; 3], threads: [usize; 3]) {
    const COUNT: usize = 40_000;
    let network = Network::new();
    let (arrived, sent) = run(
        &network.shared,
        &Setup {
            names,
            threads,
            // Each flow has its port.
            destination: &|number| 0x2001_0db8_0100_0000 << 64 | u128::from(number % FLOWS),
            goes_on: &|sent| sent < COUNT,
        },
    );
    assert!(sent >= COUNT);
    let mut last: HashMap<u32, u32> = HashMap::new();
    for arrived in arrived {
        let flow = arrived.number % FLOWS;
        let before = last.insert(flow, arrived.number);
        // By 64 each time: none is missing, and none overtakes.
        assert_eq!(arrived.number, before.map_or(flow, |before| before + FLOWS), "flow {flow}");
        assert_eq!(arrived.port, 1);
    }
    assert_eq!(last.len(), FLOWS as usize);
}

#[test]
fn two_stages_pass_packets_in_their_buffers_and_in_order() {
    check_order(["net_null1", "net_ring7", "net_ring8"], [1, 1, 0]);
}

#[test]
fn three_stages_pass_packets_in_their_buffers_and_in_order() {
    check_order(["net_null2", "net_ring9", "net_ring10"], [1, 3, 1]);
}

/// The whole table of one version. Packets go to 2001:db8:200:N::/64: the versions have routes of other lengths for them, and a route
/// above them that no packet may take.
fn version(odd: bool, [right, ten, trap]: [NextHop; 3]) -> Vec<Route<u128>> {
    let prefix = |high: u64, len: u8| Prefix::masked(u128::from(high) << 64, len).expect("a prefix");
    let stays = 0x2001_0db8_0200_0000_u64;
    let mut routes = vec![Route::new(prefix(stays, 48), trap)];
    match odd {
        false => routes.extend((0..256).map(|n| Route::new(prefix(stays | n, 64), right))),
        true => routes.extend((0..16).map(|n| Route::new(prefix(stays | n << 4, 60), ten))),
    }
    // Others, so that it takes a while to build.
    let others = (0..20_000_u64).map(|n| {
        let high = 0x2001_0000_0000_0000 | (0x1000 + n) << 20;
        Route::new(prefix(high, if odd { 46 } else { 48 }), if n % 2 == 0 { right } else { ten })
    });
    let mut seen = HashSet::new();
    routes.extend(others.filter(|route| seen.insert(route.prefix)));
    routes
}

fn check_replacement(names: [&str; 3], threads: [usize; 3]) {
    let mut fabric = network::fabric();
    let v6 = |last: u128, subnet: u128| Gateway::V6(0x2001_0db8 << 96 | subnet << 80 | last);
    let right = network::add(&mut fabric, Hop::Via { interface: 1, gateway: v6(1, 1) });
    let ten = network::add(&mut fabric, Hop::Via { interface: 2, gateway: v6(1, 2) });
    let trap = network::add(&mut fabric, Hop::Blackhole);
    let hops = [right, ten, trap].map(|hop| NextHop::try_from(hop).unwrap());
    // PlanB's table is rebuilt aside and swapped, as its paper has it.
    let options = Options::of::<Dir17Bitmap, PlanB>();
    let table = Table::from_routes(fabric.vrfs[0].table.routes().unwrap(), options).unwrap();
    fabric.vrfs[0].table = table.clone();
    let insert =
        |routes: &[Route<u128>]| routes.iter().map(|&route| Change::Insert(route)).collect::<Vec<_>>();
    let versions = [false, true].map(|odd| version(odd, hops));
    table.apply(&insert(&versions[0])).unwrap();
    let replacing = [0, 1].map(|old| {
        let new = &versions[1 - old];
        let stay: HashSet<_> = new.iter().map(|route| route.prefix).collect();
        let gone = versions[old].iter().map(|route| route.prefix).filter(|prefix| !stay.contains(prefix));
        [gone.map(Change::Remove).collect(), insert(new)].concat()
    });
    let network = Network::with(fabric, Default::default());
    let done = AtomicBool::new(false);
    let (mut arrived, _) = std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..REPLACEMENTS {
                table.apply(&replacing[number % 2]).unwrap();
            }
            done.store(true, Ordering::Release);
        });
        run(
            &network.shared,
            &Setup {
                names,
                threads,
                destination: &|number| {
                    0x2001_0db8_0200_0000 << 64 | u128::from(number % 256) << 64 | u128::from(number)
                },
                goes_on: &|_| !done.load(Ordering::Acquire),
            },
        )
    });
    // A worker sees one version after the other, each whole: the port changes at most as often as the table.
    arrived.sort_by_key(|arrived| arrived.number);
    let changes = arrived.windows(2).filter(|pair| pair[0].port != pair[1].port).count();
    assert!(changes <= REPLACEMENTS, "{changes} changes of the port by {REPLACEMENTS} tables");
    assert!(changes > 0, "no table was seen while packets flowed");
}

#[test]
fn no_packet_in_two_stages_is_judged_by_half_a_table() {
    check_replacement(["net_null3", "net_ring11", "net_ring12"], [1, 1, 0]);
}

#[test]
fn no_packet_in_three_stages_is_judged_by_half_a_table() {
    check_replacement(["net_null4", "net_ring13", "net_ring14"], [1, 1, 1]);
}

#[test]
fn what_nobody_takes_is_counted_and_goes_back() {
    start();
    let wanted = [wanted("net_ring15", 0), wanted("net_ring16", 1)];
    let opened = dpdk::open(&wanted, PORTS.len(), [1, 1], false, 4 * stage::CAPACITY).unwrap();
    let Opened { ports: open, mut receivers, mut senders, pool } = opened;
    let ends = [0, 1].map(|port| end(port, pool));
    let mut all: Vec<Arc<[PortCounters]>> = Vec::new();
    let network = Network::new();
    let mut stages = stage::three(&ends, [1, 1, 1], false, &mut || {
        all.push((0..PORTS.len()).map(|_| PortCounters::default()).collect());
        Arc::clone(&all[0])
    })
    .unwrap();
    let (mut input, mut output) = (ports(receivers.remove(0), 2), ports(senders.remove(0), 2));
    let frame = build("eth R0 a / ip4 10.0.0.1 198.51.0.9 / udp 1 2", &[]).bytes;
    let more = 100;
    for number in 0..stage::CAPACITY + more {
        assert!(output.emit(0, [&frame, &[], &[]], &Offload::default()), "frame {number}");
        output.finish();
        assert_eq!(stages.receive[0].turn(&mut input, 0), 1);
    }
    // The ring is full: the first stage counts what it drops.
    let mut totals = Totals::default();
    all[0][0].add_to(&mut totals);
    assert_eq!(totals.dropped[DropReason::StageFull.index()], more as u64);
    assert_eq!(pool.used(), stage::CAPACITY);
    // A last stage that has ended holds nothing up. Its ring takes what it has room for, and the rest is dropped.
    stages.transmit.clear();
    let counters: Arc<[PortCounters]> = (0..PORTS.len()).map(|_| PortCounters::default()).collect();
    let mut worker = Worker::new(Arc::clone(&network.shared), Arc::clone(&counters)).unwrap();
    for _ in 0..3 {
        assert!(stages.workers[0].out().has_room());
        worker.burst(&mut stages.workers[0], 0, 0);
    }
    assert_eq!(pool.used(), stage::CAPACITY, "half are in each ring");
    // What is in rings when all ends go is the pool's again.
    drop(stages);
    drop((input, output, open));
    assert_eq!(pool.used(), 0);
}

/// A port with so much room.
struct Narrow(Vec<Packet>, usize);

impl Io for Narrow {
    fn receive(&mut self, _: usize) -> usize {
        0
    }

    fn frame(&mut self, _: usize) -> Received<'_> {
        Received { bytes: &mut [], tag: None, offload: Offload::default(), cut: true }
    }

    fn put(&mut self, _: usize, packet: Packet) -> Result<(), Packet> {
        if self.0.len() == self.1 {
            return Err(packet);
        }
        self.0.push(packet);
        Ok(())
    }

    fn forward(&mut self, _: usize, _: usize, _: &Header, _: core::ops::Range<usize>, _: &Offload) -> bool {
        false
    }

    fn emit(&mut self, _: usize, _: [&[u8]; 3], _: &Offload) -> bool {
        false
    }

    fn deliver(&mut self, _: usize, _: usize) -> bool {
        false
    }

    fn finish(&mut self) {}
}

#[test]
fn what_has_no_room_waits_and_ends_a_sleep() {
    start();
    let opened = dpdk::open(&[wanted("net_ring17", 0)], 1, [1, 1], false, 2 * stage::CAPACITY).unwrap();
    let Opened { ports: open, mut receivers, mut senders, pool } = opened;
    let (mut input, mut output) = (ports(receivers.remove(0), 1), ports(senders.remove(0), 1));
    let counters = || (0..1).map(|_| PortCounters::default()).collect();
    let ends = [stage::End { sends: true, ..end(0, pool) }];
    let mut stages = stage::three(&ends, [1, 1, 1], false, &mut || counters()).unwrap();
    // More than the port has slots and the thread has places: the rest is refused, and what waits leaves when there is room.
    let frame = build("eth R0 a / ip4 10.0.0.1 198.51.0.9 / udp 1 2", &[]).bytes;
    let mut taken = 0;
    while output.emit(0, [&frame, &[], &[]], &Offload::default()) {
        output.finish();
        taken += 1;
    }
    assert!(output.has_unsent());
    let (mut receive, mut worker) = (stages.receive.remove(0), stages.workers.remove(0));
    let asleep = Arc::clone(worker.sleeper());
    let thread = std::thread::spawn(move || {
        // If nobody ended the sleep, the test would not end.
        while worker.is_empty() {
            asleep.sleep(std::time::Duration::from_secs(3600), || !worker.is_empty());
        }
        while !worker.ended() {
            let received = worker.receive(0);
            let header = Header::new(Mac([7; 6]), Mac([7; 6]), Tags::NONE, 0x707);
            for index in 0..received {
                assert!(worker.forward(index, 0, &header, 14..40, &Offload::default()));
            }
            worker.finish();
            if received == 0 && !worker.ended() {
                asleep.sleep(std::time::Duration::from_secs(3600), || !worker.is_empty() || worker.ended());
            }
        }
    });
    let mut received = 0;
    while received < 300 {
        received += receive.turn(&mut input, 0);
        output.finish();
    }
    let mut transmit = stages.transmit.remove(0);
    // The end of the first stage ends the sleep, and with it the thread.
    drop(receive);
    thread.join().unwrap();
    let mut narrow = Narrow(Vec::new(), 3);
    assert_eq!((transmit.turn(&mut narrow), transmit.turn(&mut narrow)), (3, 0));
    narrow.1 = 64;
    assert_eq!((transmit.turn(&mut narrow), transmit.is_empty(), transmit.ended()), (61, false, false));
    narrow.1 = received - 1;
    while transmit.turn(&mut narrow) > 0 {}
    assert!(!transmit.ended() && !transmit.is_empty(), "one has no room yet");
    narrow.1 = received;
    assert_eq!((transmit.turn(&mut narrow), transmit.ended()), (1, true));
    // Each once, as it was forwarded.
    assert_eq!(narrow.0.len(), received);
    // What waited for room has left.
    let mut rest = 0;
    for _ in 0..100 {
        rest += crate::received(&mut input, 0).len();
        output.finish();
    }
    assert_eq!((received + rest, output.has_unsent()), (taken, false));
    drop((narrow, transmit, input, output, open));
    assert_eq!(pool.used(), 0);
}

#[test]
fn packets_are_measured_in_every_shape_and_ports_are_used_again() {
    start();
    let table = Table::new().unwrap();
    table.insert("2001:db8::/32".parse::<IpPrefix>().unwrap(), NextHop::try_from(3).unwrap()).unwrap();
    let shared = measure::network(table, 1, false);
    let keys: Vec<u128> = (1..100).map(|key| 0x2001_0db8 << 96 | key).collect();
    let frames = Arc::new(Frames::new(Keys::V6(&keys), None, 99, 64, 0).unwrap());
    let mut bench = Bench::open(2).unwrap();
    let shapes = [
        (Shape::Complete, 2),
        (Shape::Two { receive: 1 }, 2),
        (Shape::Three { receive: 2, send: 1 }, 1),
        (Shape::Three { receive: 1, send: 2 }, 2),
        (Shape::Two { receive: 2 }, 1),
    ];
    let some = std::time::Duration::from_millis(20);
    for (shape, workers) in shapes {
        // It says so itself if a packet is not forwarded.
        bench.run(&shared, &frames, StagePlan { shape, workers, cores: 2 }, some).unwrap();
    }
    assert_eq!(bench.used(), 0, "buffers that have not come back");
    let many = StagePlan { shape: Shape::Complete, workers: 3, cores: 2 };
    assert!(bench.run(&shared, &frames, many, some).is_err());
}
