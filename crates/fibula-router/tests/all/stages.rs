//! The pipeline in stages: the same packets as in one, in order within each flow, and a bridge.

use std::collections::HashMap;
use std::sync::Arc;

use fibula_router::count::{PortCounters, Totals};
use fibula_router::drops::DropReason;
use fibula_router::forward::Worker;
use fibula_router::io::Io;
use fibula_router::io::memory::{Frame, Memory};
use fibula_router::packet::checksum;
use fibula_router::stage::{self, Staged};

use crate::support::frames::build;
use crate::support::network::{self, Network, PORTS};

const FLOWS: u16 = 64;
const PACKETS: u16 = 300;
const LOOKUPS: usize = 3;
const END: stage::End = stage::End { kernel: false, sends: true, segments: false, pool: None };

/// Packet `number` of a flow; the number is in the identification.
fn packet(flow: u16, number: u16) -> Frame {
    let mut bytes =
        build(&format!("eth R0 a / ip4 10.0.0.1 198.51.0.{flow} / udp {flow} 9 / data 18"), &[]).bytes;
    bytes[18..20].copy_from_slice(&number.to_be_bytes());
    bytes[24..26].fill(0);
    let sum = checksum::checksum(&bytes[14..34]);
    bytes[24..26].copy_from_slice(&sum.to_be_bytes());
    bytes.into()
}

fn counters() -> Arc<[PortCounters]> {
    PORTS.iter().map(|_| PortCounters::default()).collect()
}

/// Asserts that the frames are those of all flows, each flow's in order.
fn check_order(sent: &[Frame]) {
    let mut next: HashMap<u16, u16> = HashMap::new();
    for frame in sent {
        let flow = u16::from_be_bytes([frame.bytes[34], frame.bytes[35]]);
        let number = u16::from_be_bytes([frame.bytes[18], frame.bytes[19]]);
        let expected = next.entry(flow).or_default();
        assert_eq!(number, *expected, "flow {flow}");
        assert_eq!(frame.bytes[22], 63, "a hop");
        *expected += 1;
    }
    assert_eq!(next.len(), usize::from(FLOWS));
    assert!(next.values().all(|&count| count == PACKETS), "{next:?}");
}

fn totals(all: &[Arc<[PortCounters]>]) -> Totals {
    let mut totals = Totals::default();
    all.iter().flat_map(|counters| counters.iter()).for_each(|counters| counters.add_to(&mut totals));
    totals
}

/// Gives one thread's packets to a first stage, never more than it has room for, and then ends it.
fn feed(mut stage: stage::Receive, flows: impl Iterator<Item = u16> + Clone) {
    let mut io = Memory::new(PORTS.len());
    for number in 0..PACKETS {
        for flow in flows.clone() {
            io.ports[0].input.push_back(packet(flow, number));
        }
        while !io.ports[0].input.is_empty() {
            if stage.has_room(0) {
                stage.turn(&mut io, 0);
            } else {
                std::thread::yield_now();
            }
        }
    }
}

fn work<I: Io>(mut worker: Worker, io: &mut I, ready: impl Fn(&mut I) -> bool, ended: impl Fn(&I) -> bool) {
    loop {
        let end = ended(io);
        let mut received = 0;
        for port in 0..PORTS.len() {
            while !ready(io) {
                std::thread::yield_now();
            }
            received += worker.burst(io, port, 0);
        }
        if end && received == 0 {
            return;
        }
        if received == 0 {
            std::thread::yield_now();
        }
    }
}

#[test]
fn three_stages_keep_the_order_of_each_flow_and_count_every_frame() {
    let network = Network::new();
    let mut all = Vec::new();
    let stages = stage::three(&[END; PORTS.len()], [2, LOOKUPS, 2], false, &mut || {
        all.push(counters());
        Arc::clone(&all[all.len() - 1])
    })
    .unwrap();
    let workers: Vec<Worker> = (0..LOOKUPS)
        .map(|_| {
            all.push(counters());
            Worker::new(Arc::clone(&network.shared), Arc::clone(&all[all.len() - 1])).unwrap()
        })
        .collect();
    let sent = std::thread::scope(|scope| {
        for (number, stage) in stages.receive.into_iter().enumerate() {
            scope.spawn(move || feed(stage, (0..FLOWS).filter(move |flow| usize::from(flow % 2) == number)));
        }
        for (worker, mut io) in workers.into_iter().zip(stages.workers) {
            scope.spawn(move || work(worker, &mut io, |io| io.out().has_room(), Staged::ended));
        }
        let senders = stages.transmit.into_iter().map(|mut stage| {
            scope.spawn(move || {
                let mut io = Memory::new(PORTS.len());
                while !stage.ended() {
                    if stage.turn(&mut io) == 0 {
                        std::thread::yield_now();
                    }
                }
                io.take_output(1)
            })
        });
        let senders: Vec<_> = senders.collect();
        senders.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    // Port 1 has one thread that sends.
    assert!(sent[0].is_empty());
    check_order(&sent[1]);
    let totals = totals(&all);
    let expected = u64::from(FLOWS) * u64::from(PACKETS);
    assert_eq!((totals.received, totals.forwarded, totals.waiting()), (expected, expected, 0));
    let shares: Vec<u64> = all[2..].iter().map(|counters| counters[0].received.get()).collect();
    assert!(shares.iter().all(|&share| share > 0), "each worker has flows: {shares:?}");
}

#[test]
fn two_stages_keep_the_order_of_each_flow() {
    let network = Network::new();
    let mut all = vec![counters()];
    let stages = stage::two(&[END; PORTS.len()], [1, 1], true, &mut || {
        all.push(counters());
        Arc::clone(&all[all.len() - 1])
    })
    .unwrap();
    let worker = Worker::new(Arc::clone(&network.shared), Arc::clone(&all[0])).unwrap();
    let io = stages.workers.into_iter().next().unwrap();
    let sent = std::thread::scope(|scope| {
        for stage in stages.receive {
            scope.spawn(move || feed(stage, 0..FLOWS));
        }
        let mut io = io.direct(Memory::new(PORTS.len()));
        work(worker, &mut io, |_| true, Staged::ended);
        io.out().0.take_output(1)
    });
    check_order(&sent);
    assert_eq!(totals(&all).waiting(), 0);
}

#[test]
fn a_full_ring_between_stages_is_counted() {
    let network = Network::new();
    let mut all = vec![counters()];
    let mut stages = stage::two(&[END; PORTS.len()], [1, 1], false, &mut || {
        all.push(counters());
        Arc::clone(&all[all.len() - 1])
    })
    .unwrap();
    let mut worker = Worker::new(Arc::clone(&network.shared), Arc::clone(&all[0])).unwrap();
    let mut io = Memory::new(PORTS.len());
    let more = 100;
    io.ports[0].input.extend((0..stage::CAPACITY as u16 + more).map(|number| packet(number % 8, number)));
    while stages.receive[0].turn(&mut io, 0) > 0 {}
    assert_eq!(totals(&all).dropped[DropReason::StageFull.index()], u64::from(more));
    let mut staged = stages.workers.remove(0).direct(Memory::new(PORTS.len()));
    while worker.burst(&mut staged, 0, 0) > 0 {}
    assert_eq!(staged.out().0.take_output(1).len(), stage::CAPACITY);
    assert_eq!(totals(&all).waiting(), 0);
    // The buffers have come back.
    assert!(stages.receive[0].has_room(0));
}

#[test]
fn what_leaves_by_a_port_that_does_not_send_is_dropped_and_holds_nothing_up() {
    let network = Network::new();
    let counters = counters();
    let mut ports = [END; PORTS.len()];
    ports[1].sends = false;
    let mut stages = stage::three(&ports, [1, 1, 1], false, &mut self::counters).unwrap();
    let mut worker = Worker::new(Arc::clone(&network.shared), Arc::clone(&counters)).unwrap();
    let mut io = Memory::new(PORTS.len());
    for number in 0..2 * stage::CAPACITY as u16 {
        io.ports[0].input.push_back(packet(number % 8, number));
        assert_eq!(stages.receive[0].turn(&mut io, 0), 1);
        assert!(stages.workers[0].out().has_room());
        assert_eq!(worker.burst(&mut stages.workers[0], 0, 0), 1);
        stages.transmit[0].turn(&mut io);
    }
    assert_eq!(counters[0].dropped(DropReason::TransmitFull), 2 * stage::CAPACITY as u64);
    assert_eq!(totals(&[counters]).waiting(), 0);
}

#[test]
fn a_last_stage_that_has_ended_holds_nothing_up() {
    let network = Network::new();
    let counters = counters();
    let mut stages = stage::three(&[END; PORTS.len()], [1, 1, 1], false, &mut self::counters).unwrap();
    stages.transmit.clear();
    let mut worker = Worker::new(Arc::clone(&network.shared), Arc::clone(&counters)).unwrap();
    let mut io = Memory::new(PORTS.len());
    for number in 0..stage::CAPACITY as u16 + 100 {
        io.ports[0].input.push_back(packet(number % 8, number));
        stages.receive[0].turn(&mut io, 0);
        assert!(stages.workers[0].out().has_room());
        assert_eq!(worker.burst(&mut stages.workers[0], 0, 0), 1);
    }
    assert_eq!(counters[0].dropped(DropReason::TransmitFull), 100);
}

#[test]
fn stages_do_with_a_packet_what_one_does() {
    let texts = [
        "eth R0 a / ip4 10.0.0.1 198.51.0.9 / udp 1 2 / data 100",
        "eth R0 a / ip6 2001:db8::1 2001:db8:100:0::9 / udp 1 2 / data 100",
        "eth R0 a / ip4 10.0.0.1 10.0.2.1 / udp 1 2 / data 10",
        "eth R0 a / ip4 10.0.0.1 10.0.1.1 / udp 1 2 / data 1400",
        "eth R0 a / ip4 10.0.0.1 198.51.6.1 / udp 1 2",
        "eth R0 a / arp request a 10.0.0.1 NONE 10.0.0.254",
        "eth R0 a / ip4 10.0.0.1 10.0.0.254 / icmp 8 0 00010002",
    ];
    for text in texts {
        let frame = || Frame::from(build(text, &[]).bytes);
        let mut one = Network::new();
        one.io.ports[0].input.push_back(frame());
        one.run();
        let network = Network::new();
        let counters = counters();
        let mut stages = stage::three(&[END; PORTS.len()], [1, 1, 1], false, &mut self::counters).unwrap();
        let mut worker = Worker::new(Arc::clone(&network.shared), Arc::clone(&counters)).unwrap();
        let mut io = Memory::new(PORTS.len());
        io.ports[0].input.push_back(frame());
        stages.receive[0].turn(&mut io, 0);
        worker.burst(&mut stages.workers[0], 0, 0);
        stages.transmit[0].turn(&mut io);
        for port in 0..PORTS.len() {
            assert_eq!(io.ports[port].output, one.io.ports[port].output, "{text}, port {port}");
        }
        assert!(io.ports.iter().any(|port| !port.output.is_empty()), "{text}: something is sent");
    }
}

#[test]
fn a_bridge_passes_frames_on_as_they_are() {
    let mut fabric = network::fabric();
    fabric.bridge = true;
    let mut network = Network::with(fabric, Default::default());
    let texts = ["eth b a / ip4 10.0.0.1 10.0.0.1 ttl=1 / udp 1 2", "eth ALL a / type 0x88cc / data 40"];
    let frames: Vec<Frame> = texts.iter().map(|text| Frame::from(build(text, &[]).bytes)).collect();
    network.io.ports[0].input.extend(frames.clone());
    network.io.ports[3].input.extend(frames.clone());
    network.io.ports[3].input.push_back(vec![0; 9].into());
    network.run();
    network.check();
    assert_eq!((network.io.take_output(1), network.io.take_output(2)), (frames.clone(), frames));
    assert_eq!(network.totals(3).dropped[DropReason::FrameTruncated.index()], 1);
}

#[test]
fn the_broadcast_of_a_data_parallel_run_time_drives_workers_too() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let network = Network::new();
    let all = [counters(), counters()];
    let sent = pool.broadcast(|context| {
        let number = context.index();
        let counters = Arc::clone(&all[number]);
        let mut worker = Worker::new(Arc::clone(&network.shared), counters).unwrap();
        let mut io = Memory::new(PORTS.len());
        let flows = (0..FLOWS).filter(|flow| usize::from(flow % 2) == number);
        for flow in flows {
            io.ports[0].input.extend((0..PACKETS).map(|packet_number| packet(flow, packet_number)));
        }
        while worker.burst(&mut io, 0, 0) > 0 {}
        io.take_output(1)
    });
    check_order(&sent.concat());
    assert_eq!(totals(&all).waiting(), 0);
}
