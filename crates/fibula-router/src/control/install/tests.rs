use std::net::IpAddr;

use super::*;
use crate::control::failover::{Outage, in_use};
use crate::feed::path::Object;
use crate::feed::routes::Routes;
use crate::forward::fabric::{Gateway, Urpf};
use fibula::Table;

fn interface(name: &str, network: [u8; 4], up: bool) -> Interface {
    Interface {
        name: name.into(),
        port: 0,
        tags: Default::default(),
        mac: Default::default(),
        virtual_macs: vec![],
        mtu: 1500,
        v4: vec![(u32::from_be_bytes(network), 24)],
        v6: vec![],
        vrf: 0,
        urpf: Urpf::Off,
        kernel: true,
        machine: None,
        up,
        missing: false,
    }
}

fn way(last: u8, out: Out) -> Way {
    Way::new(Some(IpAddr::from([10, 0, last, 9])), out)
}

fn to(last: u8, out: Out) -> Path {
    Path::Ways([way(last, out)].into())
}

/// A router without threads: a table, and two interfaces, of devices 5 and 6.
struct Bench {
    rib: Mutex<Rib>,
    install: Install,
    interfaces: Vec<Interface>,
    hops: Hops,
    vrfs: Vec<Vrf>,
    counts: Vec<Dual<usize>>,
}

impl Bench {
    fn new(limit: usize) -> Self {
        let rib = Rib::new(vec![Routes::new("feed", 20, limit, 1)]);
        Self {
            rib: Mutex::new(rib),
            install: Install::default(),
            interfaces: vec![interface("a", [10, 0, 1, 1], true), interface("b", [10, 0, 2, 1], true)],
            hops: Hops::default(),
            vrfs: vec![Vrf { name: "default".into(), table: Table::new().unwrap() }],
            counts: vec![Dual::default()],
        }
    }

    fn insert(&self, prefix: &str, path: Path) {
        lock(&self.rib).insert(0, (0, prefix.parse().unwrap()), 0, path).unwrap();
    }

    fn turn(&mut self, own: Option<DualRib>) -> Taken {
        let devices = BTreeMap::from([(5, 0), (6, 1)]);
        let own = own.map(|own| vec![own]);
        let near = (&*self.interfaces, &devices);
        let taken = self.install.take(&self.rib, near, &mut self.hops, own, 4);
        self.install.enter(&self.rib, &taken, &self.vrfs, &mut self.counts).unwrap();
        taken
    }

    /// Returns the next hop that the table has for an address.
    fn hop(&self, address: &str) -> Option<Hop> {
        let number = self.vrfs[0].table.lookup(address.parse::<IpAddr>().unwrap()).unwrap()?;
        in_use(self.hops.all(), &self.interfaces, &Outage::default())[number.id() as usize].clone()
    }
}

fn via(interface: u16, last: u8) -> Option<Hop> {
    Some(Hop::Via { interface, gateway: Gateway::V4(u32::from_be_bytes([10, 0, last, 9])) })
}

#[test]
fn routes_go_into_the_table_and_out_of_it() {
    let mut bench = Bench::new(100);
    assert!(bench.turn(None).is_empty());
    bench.insert("192.0.2.0/24", to(1, Out::Device(5)));
    bench.insert("198.51.100.0/24", to(2, Out::Near(0)));
    bench.insert("203.0.113.0/24", to(1, Out::Device(77)));
    bench.insert("2001:db8::/32", Path::Unreachable);
    assert!(bench.turn(None).hops);
    assert_eq!(bench.hop("192.0.2.1"), via(0, 1));
    assert_eq!(bench.hop("198.51.100.1"), via(1, 2));
    assert_eq!(bench.hop("203.0.113.1"), None, "its device is not one of the interfaces");
    assert_eq!(bench.hop("2001:db8::1"), Some(Hop::Unreachable));
    assert_eq!(bench.counts, [Dual::new(2, 1)]);
    // Routes of the configuration are nearer; without them the feed's are there again.
    let local = bench.hops.number(Hop::Local);
    let mut own = DualRib::default();
    own.insert("192.0.2.0/24".parse::<IpPrefix>().unwrap(), local).unwrap();
    bench.turn(Some(own));
    assert_eq!(bench.hop("192.0.2.1"), Some(Hop::Local));
    bench.turn(Some(DualRib::default()));
    assert_eq!((bench.hop("192.0.2.1"), bench.counts[0].v4), (via(0, 1), 2));
    // A route that no longer leads anywhere is removed.
    bench.interfaces[1].v4.clear();
    bench.turn(Some(DualRib::default()));
    assert_eq!((bench.hop("198.51.100.1"), bench.counts[0].v4), (None, 1));
    // Numbers of unused paths are reused once they are given back.
    for prefix in ["192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"] {
        lock(&bench.rib).remove(0, (0, prefix.parse().unwrap()), None);
    }
    bench.turn(None);
    assert_eq!((bench.hop("192.0.2.1"), bench.counts[0].v4), (None, 0));
    let free = bench.install.collect(&bench.rib);
    assert_eq!(free.len(), 3);
    bench.hops.give_back(&free);
    let count = bench.hops.all().len();
    bench.insert("192.0.2.0/24", to(1, Out::Near(0)));
    bench.turn(None);
    assert_eq!((bench.hop("192.0.2.1"), bench.hops.all().len()), (via(0, 1), count));
}

#[test]
fn links_and_objects_change_next_hops_without_a_change_of_routes() {
    let mut bench = Bench::new(100);
    let ways = [Way { weight: 2, ..way(1, Out::Device(5)) }, way(2, Out::Device(6))];
    bench.insert("192.0.2.0/24", Path::Ways(ways.into()));
    bench.insert("198.51.100.0/24", Path::Object { feed: 0, id: 3 });
    bench.turn(None);
    let Some(Hop::Group(members)) = bench.hop("192.0.2.1") else { panic!() };
    assert_eq!(members.len(), 3);
    assert_eq!(bench.hop("198.51.100.1"), None);
    lock(&bench.rib).set_object(0, 3, Object::Way(way(1, Out::Device(5)))).unwrap();
    bench.turn(None);
    assert_eq!(bench.hop("198.51.100.1"), via(0, 1));
    lock(&bench.rib).set_object(0, 3, Object::Way(way(2, Out::Device(6)))).unwrap();
    let taken = bench.turn(None);
    assert!(taken.hops && taken.news.is_empty());
    assert_eq!(bench.hop("198.51.100.1"), via(1, 2));
    bench.interfaces[1].up = false;
    let taken = bench.turn(Some(DualRib::default()));
    assert!(!taken.hops && taken.news.is_empty());
    let left = bench.hops.number(via(0, 1).unwrap()).id();
    assert_eq!(bench.hop("192.0.2.1"), Some(Hop::Group([left; 6].into())), "the way that is left");
    assert_eq!(bench.hop("198.51.100.1"), via(1, 2), "the only way stays");
    lock(&bench.rib).remove_object(0, 3);
    bench.turn(None);
    assert_eq!(bench.hop("198.51.100.1"), None);
}

#[test]
fn many_changes_are_dealt_with_in_turns() {
    let mut bench = Bench::new(100);
    for n in 0..10 {
        bench.insert(&format!("10.{n}.0.0/16"), to(1, Out::Device(5)));
    }
    assert!(bench.turn(None).more);
    // One is done already, one waits, and one is new again.
    for n in [0, 9, 9] {
        bench.insert(&format!("10.{n}.0.0/16"), to(2, Out::Device(6)));
    }
    while bench.turn(None).more {}
    assert_eq!(
        (bench.hop("10.0.0.1"), bench.hop("10.9.0.1"), bench.hop("10.8.0.1")),
        (via(1, 2), via(1, 2), via(0, 1))
    );
    assert_eq!(bench.counts[0].v4, 10);
    assert_eq!(bench.vrfs[0].table.len().unwrap(), 10);
    // More than is kept: everything is compared.
    lock(&bench.rib).remove(0, (0, "10.3.0.0/16".parse().unwrap()), None);
    lock(&bench.rib).put_back([], true);
    assert!(bench.turn(None).everything);
    assert_eq!((bench.hop("10.3.0.1"), bench.counts[0].v4), (None, 9));
    assert!(bench.turn(None).is_empty());
}
