//! The network of the golden frames; `testdata/router/README.md` has it as a table.

use std::sync::Arc;

use fibula::Table;
use fibula::net::{IpPrefix, NextHop};
use fibula_router::count::{PortCounters, Totals};
use fibula_router::forward::fabric::{Fabric, Gateway, Hop, Interface, Own, Port, Urpf, Vrf};
use fibula_router::forward::{Shared, Worker};
use fibula_router::io::memory::Memory;
use fibula_router::neighbour::{Key, Limits};
use fibula_router::packet::ethernet::{Mac, Tags};

use super::frames;

/// Name, port, VLAN, MTU, IPv4 and IPv6 network (the router has .254 and ::fe), VRF, uRPF, kernel, up.
type Line = (&'static str, usize, u16, usize, &'static str, &'static str, usize, Urpf, bool, bool);

pub const PORTS: [&str; 6] = ["left", "right", "tagged", "host", "loose", "down"];
const INTERFACES: [Line; 8] = [
    ("left", 0, 0, 1500, "10.0.0", "2001:db8:0", 0, Urpf::Off, false, true),
    ("right", 1, 0, 1300, "10.0.1", "2001:db8:1", 0, Urpf::Off, false, true),
    ("ten", 2, 10, 1500, "10.0.2", "2001:db8:2", 0, Urpf::Off, false, true),
    ("twenty", 2, 20, 1500, "10.0.3", "2001:db8:3", 1, Urpf::Off, false, true),
    ("host", 3, 0, 1500, "10.0.4", "2001:db8:4", 0, Urpf::Strict, true, true),
    ("loose", 4, 0, 1500, "10.0.5", "2001:db8:5", 0, Urpf::Loose, false, true),
    ("down", 5, 0, 1500, "10.0.6", "2001:db8:6", 0, Urpf::Off, false, false),
    ("missing", 5, 9, 1500, "10.0.7", "2001:db8:7", 0, Urpf::Off, false, false),
];

pub fn fabric() -> Fabric {
    fabric_of(|| Table::new().unwrap())
}

/// The same with other tables.
pub fn fabric_of(table: impl Fn() -> Table) -> Fabric {
    let mut fabric = Fabric { hops: vec![None], icmp_rate: (10, 20), ..Fabric::default() };
    fabric.ports = PORTS.iter().map(|&name| Port::new(name, name == "host")).collect();
    fabric.vrfs = ["default", "blue"].map(|name| Vrf { name: name.into(), table: table() }).into();
    let local = add(&mut fabric, Hop::Local);
    for (number, (name, port, vlan, mtu, v4, v6, vrf, urpf, kernel, up)) in INTERFACES.into_iter().enumerate()
    {
        fabric.ports[port].attach(Tags::one(vlan), number as u16);
        let mac = Mac(frames::mac(&format!("R{port}")));
        let (own4, own6) = (format!("{v4}.254"), format!("{v6}::fe"));
        fabric.interfaces.push(Interface {
            name: name.into(),
            port,
            tags: Tags::one(vlan),
            mac,
            virtual_macs: vec![Mac([0, 0, 0x5e, 0, 1, 51])],
            mtu,
            v4: vec![(u32::from_be_bytes(frames::v4(&own4)), 24)],
            v6: vec![(mac.link_local(), 64), (u128::from_be_bytes(frames::v6(&own6)), 64)],
            vrf,
            urpf,
            kernel,
            machine: None,
            up,
            missing: name == "missing",
        });
        let connected = add(&mut fabric, Hop::Connected { interface: number as u16 });
        for (prefix, hop) in [
            (format!("{v4}.0/24"), connected),
            (format!("{v6}::/64"), connected),
            (format!("{own4}/32"), local),
            (format!("{v4}.255/32"), local),
            (format!("{own6}/128"), local),
        ] {
            route(&fabric, vrf, &prefix, hop);
        }
    }
    more_routes(&mut fabric);
    fabric.own = Own::of(&fabric.interfaces);
    fabric
}

fn more_routes(fabric: &mut Fabric) {
    let v4 = |text| Gateway::V4(u32::from_be_bytes(frames::v4(text)));
    let v6 = |text| Gateway::V6(u128::from_be_bytes(frames::v6(text)));
    let right = add(fabric, Hop::Via { interface: 1, gateway: v4("10.0.1.1") });
    let ten = add(fabric, Hop::Via { interface: 2, gateway: v4("10.0.2.1") });
    let over_v6 = add(fabric, Hop::Via { interface: 1, gateway: v6("fe80::b") });
    let silent = add(fabric, Hop::Via { interface: 1, gateway: v4("10.0.1.99") });
    let down = add(fabric, Hop::Via { interface: 6, gateway: v4("10.0.6.1") });
    let group = add(fabric, Hop::Group(vec![right, ten, ten].into()));
    let blackhole = add(fabric, Hop::Blackhole);
    let unreachable = add(fabric, Hop::Unreachable);
    let prohibit = add(fabric, Hop::Prohibit);
    for (third, hop) in [
        (0, right),
        (1, over_v6),
        (2, group),
        (3, silent),
        (4, 9999),
        (5, blackhole),
        (6, unreachable),
        (7, prohibit),
        (8, down),
    ] {
        route(fabric, 0, &format!("198.51.{third}.0/24"), hop);
        route(fabric, 0, &format!("2001:db8:100:{third}::/64"), hop);
    }
    let blue = add(fabric, Hop::Via { interface: 3, gateway: v4("10.0.3.1") });
    route(fabric, 1, "198.51.0.0/24", blue);
}

pub fn add(fabric: &mut Fabric, hop: Hop) -> u32 {
    fabric.hops.push(Some(hop));
    fabric.hops.len() as u32 - 1
}

pub fn route(fabric: &Fabric, vrf: usize, prefix: &str, hop: u32) {
    let table = &fabric.vrfs[vrf].table;
    table.insert(prefix.parse::<IpPrefix>().unwrap(), NextHop::try_from(hop).unwrap()).unwrap();
}

/// A router with one worker, its ports in memory.
pub struct Network {
    pub shared: Arc<Shared>,
    pub worker: Worker,
    pub io: Memory,
    pub counters: Arc<[PortCounters]>,
    pub now_ns: u64,
}

impl Network {
    /// Every interface knows its neighbour .1 and ::1, with the MAC address of its letter: A for left, B for right, ...
    pub fn new() -> Self {
        Self::with(fabric(), Limits::default())
    }

    pub fn with(fabric: Fabric, limits: Limits) -> Self {
        let counters: Arc<[PortCounters]> = fabric.ports.iter().map(|_| PortCounters::default()).collect();
        let io = Memory::new(fabric.ports.len());
        let shared = Shared::new(fabric, limits);
        for (number, line) in INTERFACES.iter().enumerate() {
            let number = number as u16;
            let mac = Mac([2, 0, 0, 0, 0, 10 + number as u8]);
            let v4 = u32::from_be_bytes(frames::v4(&format!("{}.1", line.4)));
            let v6 = u128::from_be_bytes(frames::v6(&format!("{}::1", line.5)));
            for key in [
                Key::v4(number, v4),
                Key::v6(number, v6),
                Key::v6(number, 0xfe80_u128 << 112 | u128::from(10 + number)),
            ] {
                shared.neighbours.learn(key, mac, true, true, 0);
            }
        }
        let worker = Worker::new(Arc::clone(&shared), Arc::clone(&counters)).unwrap();
        Self { shared, worker, io, counters, now_ns: 0 }
    }

    /// Lets every port's input be handled.
    pub fn run(&mut self) {
        for port in 0..self.io.ports.len() {
            while self.worker.burst(&mut self.io, port, self.now_ns) > 0 {}
        }
    }

    /// Lets time pass, a tenth of a second at a time.
    pub fn wait(&mut self, milliseconds: u64) {
        for _ in 0..milliseconds.div_ceil(100) {
            self.now_ns += 100_000_000;
            self.worker.tick(&mut self.io, self.now_ns);
            self.worker.burst(&mut self.io, 0, self.now_ns);
        }
    }

    pub fn totals(&self, port: usize) -> Totals {
        let mut totals = Totals::default();
        self.counters[port].add_to(&mut totals);
        totals
    }

    /// Checks that every frame is in one counter, but for those that wait.
    pub fn check(&self) {
        let mut totals = Totals::default();
        self.counters.iter().for_each(|counters| counters.add_to(&mut totals));
        let waiting = totals.waiting();
        assert!(waiting >= 0 && waiting <= self.worker.waiting() as i64, "{totals:?}");
        if self.worker.waiting() == 0 {
            assert_eq!(waiting, 0, "{totals:?}");
        }
    }
}
