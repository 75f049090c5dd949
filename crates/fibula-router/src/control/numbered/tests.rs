use super::*;
use std::io::Write;
use std::net::{IpAddr, TcpStream};
use std::sync::atomic::Ordering;
use std::time::Duration;

use fibula::net::NextHop;

use crate::feed::Way;
use crate::feed::path::Object;

const FILE: &str = "\
[numbers]
\"192.0.2.1\" = 1
\"192.0.2.2\" = 2
lo = 3
[[feed]]
name = \"zebra\"
kind = \"fpm\"
listen = \"127.0.0.1:0\"
";

struct Bench {
    feeds: NumberedFeeds,
    table: Table,
    stop: Arc<AtomicBool>,
    log: Vec<String>,
}

impl Bench {
    fn new() -> Self {
        let (table, stop) = (Table::new().unwrap(), Arc::default());
        let config = NumberedConfig::parse(FILE).unwrap();
        let feeds = NumberedFeeds::start(&config, FilePath::new("."), table.clone(), &stop).unwrap();
        Self { feeds, table, stop, log: Vec::new() }
    }

    fn insert(&self, prefix: &str, path: Path) {
        lock(&self.feeds.feeds.rib).insert(0, (0, prefix.parse().unwrap()), 0, path).unwrap();
    }

    fn turn(&mut self) {
        let log = &mut self.log;
        while self.feeds.turn(&mut |_, text| log.push(text.to_owned())) {}
    }

    fn number(&self, address: &str) -> u32 {
        self.table.lookup(address.parse::<IpAddr>().unwrap()).unwrap().map_or(0, NextHop::id)
    }

    fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.feeds.join();
    }
}

fn via(last: u8, device: u32) -> Way {
    Way::new(Some(IpAddr::from([192, 0, 2, last])), Out::Device(device))
}

#[test]
fn routes_have_the_numbers_of_their_next_hops() {
    let mut bench = Bench::new();
    let names = &bench.feeds.devices.as_ref().unwrap().names;
    let lo = *names.iter().find(|(_, name)| *name == "lo").unwrap().0;
    bench.insert("10.1.0.0/16", Path::Ways([via(1, 77)].into()));
    bench.insert("10.2.0.0/16", Path::Ways([via(9, 77), via(2, 77)].into()));
    bench.insert("10.3.0.0/16", Path::Ways([via(9, lo)].into()));
    bench.insert("10.0.0.0/8", Path::Object { feed: 0, id: 5 });
    bench.insert("10.1.4.0/24", Path::Ways([via(9, 77)].into()));
    bench.insert("10.1.5.0/24", Path::Ways([via(9, 77)].into()));
    bench.turn();
    let numbers = |bench: &Bench| ["10.1.0.1", "10.2.0.1", "10.3.0.1", "10.4.0.1"].map(|at| bench.number(at));
    assert_eq!(numbers(&bench), [1, 2, 3, 0]);
    // The route of its prefix is left out, so the shorter one answers; and the next hop is named once.
    assert_eq!(bench.number("10.1.4.1"), 1);
    let told =
        |bench: &Bench| bench.log.iter().filter(|line| line.contains("192.0.2.9 has no number")).count();
    assert_eq!(told(&bench), 1, "{:?}", bench.log);
    // An object comes, changes, and goes: its routes follow, though their paths stay.
    let object = |object| lock(&bench.feeds.feeds.rib).set_object(0, 5, object).unwrap();
    object(Object::Way(via(1, 77)));
    bench.turn();
    assert_eq!(numbers(&bench), [1, 2, 3, 1]);
    lock(&bench.feeds.feeds.rib).set_object(0, 5, Object::Way(via(2, 77))).unwrap();
    bench.turn();
    assert_eq!(numbers(&bench), [1, 2, 3, 2]);
    lock(&bench.feeds.feeds.rib).remove_object(0, 5);
    bench.turn();
    assert_eq!(numbers(&bench), [1, 2, 3, 0]);
    lock(&bench.feeds.feeds.rib).remove(0, (0, "10.2.0.0/16".parse().unwrap()), None);
    bench.turn();
    assert_eq!((numbers(&bench), told(&bench)), ([1, 0, 3, 0], 1));
    bench.end();
}

#[test]
fn numbers_of_a_file_that_is_read_again_hold_for_the_routes_that_are_there() {
    let mut bench = Bench::new();
    bench.insert("10.1.0.0/16", Path::Ways([via(1, 77)].into()));
    bench.insert("10.2.0.0/16", Path::Ways([via(2, 77)].into()));
    bench.insert("10.3.0.0/16", Path::Ways([via(9, 77)].into()));
    bench.turn();
    let numbers = |bench: &Bench| ["10.1.0.1", "10.2.0.1", "10.3.0.1"].map(|at| bench.number(at));
    assert_eq!(numbers(&bench), [1, 2, 0]);
    // Other feeds are refused, and leave the numbers.
    let other = FILE.replace("\"zebra\"", "\"other\"").replace("= 1\n", "= 5\n");
    let error = bench.feeds.reload(&NumberedConfig::parse(&other).unwrap()).unwrap_err().to_string();
    assert!(error.contains("[[feed]]") && error.contains("restart needed"), "{error}");
    bench.turn();
    assert_eq!(numbers(&bench), [1, 2, 0]);
    let file = FILE.replace("= 1\n", "= 5\n").replace("\"192.0.2.2\" = 2", "\"192.0.2.9\" = 70000");
    bench.feeds.reload(&NumberedConfig::parse(&file).unwrap()).unwrap();
    bench.turn();
    assert_eq!(numbers(&bench), [5, 0, 70_000]);
    let told = bench.log.iter().filter(|line| line.contains("192.0.2.2 has no number")).count();
    assert_eq!(told, 1, "{:?}", bench.log);
    bench.end();
}

#[test]
fn garbage_of_a_peer_is_told_and_the_routes_stay() {
    let mut bench = Bench::new();
    bench.insert("10.1.0.0/16", Path::Ways([via(1, 77)].into()));
    bench.turn();
    assert_eq!(bench.feeds.awaited(), ["zebra"]);
    let address = bench.feeds.feeds.address(0);
    let mut peer = TcpStream::connect(address).unwrap();
    peer.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    // Until the thread of the feed has read it; a test that never ends is one that fails.
    while !bench.log.iter().any(|line| line.contains("FPM version 71")) {
        bench.feeds.next_tick_ns = 0;
        bench.turn();
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(bench.number("10.1.0.1"), 1);
    bench.end();
}
