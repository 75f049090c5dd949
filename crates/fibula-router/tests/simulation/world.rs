//! A router without threads, sockets and clock, in a world that can do anything to it, step by step as a seed says.

mod check;
mod takeover;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use fibula::Table;
use fibula::engines::BinaryTrie;
use fibula::live;
use fibula::memory::Limits;
use fibula::net::{Dual, IpPrefix, Key, NextHop, Prefix};
use fibula::rib::DualRib;
use fibula_feed::bmp::Distinguisher;
use fibula_router::config::{BmpPolicy, BmpView};
use fibula_router::control::failover::{Outage, in_use};
use fibula_router::control::hops::Hops;
use fibula_router::control::install::Install;
use fibula_router::feed::answers::Answers;
use fibula_router::feed::bmp::{Bmp, Views};
use fibula_router::feed::enter::Entrance;
use fibula_router::feed::fpm::Fpm;
use fibula_router::feed::keeper::Times;
use fibula_router::feed::kernel::Follower;
use fibula_router::feed::mrt::Replay;
use fibula_router::feed::netlink;
use fibula_router::feed::routes::Routes;
use fibula_router::feed::sessions::{self, Protocol, Sessions};
use fibula_router::feed::state::Phase;
use fibula_router::feed::{Rib, lock};
use fibula_router::forward::fabric::{Hop, Interface, Urpf, Vrf};

use crate::archive::{ARCHIVE, Archive};
use crate::collector::{Collector, DISTINGUISHERS};
use crate::kernel::Kernel;
use crate::oracle::{self, DEVICES, TABLES, VRF_OF};
use crate::random::Random;
use crate::watch::{Seen, Watch};
use crate::zebra::{Wire, Zebra};

const SECOND: u64 = 1_000_000_000;
/// Where connections come from.
const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 2620);
const TIMES: Times = Times { keep_ns: 10 * SECOND, sweep_ns: 4 * SECOND, quiet_ns: SECOND };
const ZEBRA: usize = 0;
const KERNEL: usize = 1;
const COLLECTOR: usize = 2;

pub struct World {
    pub random: Random,
    now_ns: u64,
    prefixes: Vec<IpPrefix>,
    samples: Arc<[IpAddr]>,
    rib: Mutex<Rib>,
    install: Install,
    hops: Hops,
    fabric: Vec<Option<Hop>>,
    vrfs: Vec<Vrf>,
    seen: Vec<Seen>,
    counts: Vec<Dual<usize>>,
    interfaces: Vec<Interface>,
    devices: BTreeMap<u32, u16>,
    /// The links have changed since the routes of the configuration were made.
    is_stale: bool,
    sessions: Sessions<Fpm>,
    zebra: Zebra,
    /// What zebra was told of its routes in this session; `None` if it does not ask.
    told: Option<BTreeMap<(u16, IpPrefix), bool>>,
    monitored: Sessions<Bmp>,
    collector: Collector,
    follower: Follower,
    kernel: Kernel,
    replay: Replay,
    archive: Archive,
    /// It forwards: the first full table of every feed was there.
    has_begun: bool,
    /// The feeds whose sessions another router had.
    inherited: [bool; 4],
    is_traced: bool,
}

fn ends(prefix: IpPrefix) -> [IpAddr; 2] {
    fn both<K: Key>(prefix: Prefix<K>) -> [K; 2] {
        [prefix.addr(), prefix.last()]
    }
    match prefix {
        IpPrefix::V4(prefix) => both(prefix).map(|address| IpAddr::V4(address.into())),
        IpPrefix::V6(prefix) => both(prefix).map(|address| IpAddr::V6(address.into())),
    }
}

fn interface(at: usize) -> Interface {
    Interface {
        name: format!("eth{at}"),
        port: at,
        tags: Default::default(),
        mac: Default::default(),
        virtual_macs: vec![],
        mtu: 1500,
        v4: vec![(u32::from_be_bytes([10, 0, at as u8 + 1, 1]), 24)],
        v6: vec![],
        vrf: usize::from(VRF_OF[at]),
        urpf: Urpf::Off,
        kernel: true,
        machine: None,
        up: true,
        missing: false,
    }
}

/// Returns what a datagram of the kernel says.
fn told(mut bytes: &[u8]) -> String {
    let mut lines = String::from("the kernel says");
    while let Some((head, body, rest)) = netlink::split(bytes) {
        let message = netlink::decode(head.kind, body);
        lines +=
            &format!("\n    {} flags {:x} sequence {}: {message:?}", head.kind, head.flags, head.sequence);
        bytes = rest;
    }
    lines
}

/// Makes a table; one in four has little memory beyond what an empty one takes. Most are of an engine that is small when it is empty, so
/// that more seeds fit in the time.
fn table(random: &mut Random) -> Table {
    let limits = Limits { huge_pages: false, ..Limits::default() };
    let mut options = live::Options { limits, ..live::Options::default() };
    if !random.once_in(24) {
        options = live::Options { limits, ..live::Options::of::<BinaryTrie, BinaryTrie>() };
    }
    if random.once_in(4) {
        let empty = Table::from_routes(DualRib::default(), options).unwrap().statistics().unwrap();
        let most = empty.structures.v4.held_bytes().max(empty.structures.v6.held_bytes());
        options.limits.memory_bytes = Some(most + 2000 + random.below(8000));
    }
    Table::from_routes(DualRib::default(), options).or_else(|_| Table::new()).unwrap()
}

/// Returns the limits of the VRFs: most have none.
fn vrf_limits(random: &mut Random) -> Vec<Option<usize>> {
    TABLES.iter().map(|_| random.once_in(5).then(|| 4 + random.below(24))).collect()
}

/// A stranger connects, and says what is no message.
fn garbage<P: Protocol>(sessions: &mut Sessions<P>, rib: &Mutex<Rib>, random: &mut Random, now_ns: u64) {
    let Some(number) = sessions.accept(rib, PEER, None, now_ns) else { return };
    let mut bytes: Vec<u8> = (0..random.below(40)).map(|_| random.next() as u8).collect();
    if let (Some(first), true) = (bytes.first_mut(), random.once_in(2)) {
        // What begins as a message does, and never ends.
        *first = *random.pick(&[1, 3]);
        bytes.truncate(3);
    }
    let why = sessions.bytes(rib, number, &bytes, now_ns).err();
    sessions.ended(rib, number, why.map(|why| why.to_string()), now_ns);
}

/// Reads at most `most` bytes of a connection. Returns the connection unless the server closes it.
fn read<P: Protocol>(
    sessions: &mut Sessions<P>,
    rib: &Mutex<Rib>,
    mut wire: Wire,
    most: usize,
    now_ns: u64,
) -> Option<Wire> {
    let bytes: Vec<u8> = wire.bytes.drain(..most.min(wire.bytes.len())).collect();
    match sessions.bytes(rib, wire.number, &bytes, now_ns) {
        Ok(()) => Some(wire),
        Err(why) => {
            sessions.ended(rib, wire.number, Some(why.to_string()), now_ns);
            None
        }
    }
}

impl World {
    pub fn new(seed: u64, is_traced: bool) -> Self {
        let mut random = Random::new(seed);
        let prefixes = oracle::prefixes();
        let samples: Arc<[IpAddr]> = prefixes.iter().flat_map(|&prefix| ends(prefix)).collect();
        let limit = |random: &mut Random| if random.once_in(4) { 8 + random.below(20) } else { 1000 };
        let mut feeds = vec![
            Routes::new("zebra", 20, limit(&mut random), 2),
            Routes::new("kernel", 30, limit(&mut random), 2),
            Routes::new("collector", 25, limit(&mut random), 2),
            Routes::new("archive", 40, limit(&mut random), 2),
        ];
        let acknowledge = random.once_in(2);
        if acknowledge {
            feeds[ZEBRA].answers = Some(Answers::new(Answers::LIMIT));
        }
        let vrfs = ["default", "red"].map(|name| Vrf { name: name.into(), table: table(&mut random) });
        let tables: Vec<_> = TABLES.iter().copied().zip(0..).collect();
        let entrance = |feed, has_metrics| Entrance { feed, tables: tables.clone(), has_metrics };
        let (zebra, kernel) = (entrance(ZEBRA, false), entrance(KERNEL, true));
        let seen: Vec<Seen> =
            vrfs.iter().map(|_| Arc::new(Mutex::new((vec![BTreeSet::new(); samples.len()], 0)))).collect();
        for (vrf, seen) in vrfs.iter().zip(&seen) {
            let reader = vrf.table.reader().unwrap();
            let watch = Watch { reader, samples: Arc::clone(&samples), seen: Arc::clone(seen) };
            vrf.table.listen(watch).unwrap();
        }
        let bmp = Bmp {
            feed: COLLECTOR,
            views: Views {
                view: BmpView::AdjRibIn,
                policy: BmpPolicy::Pre,
                vrfs: DISTINGUISHERS.map(Distinguisher).into_iter().zip(0..).collect(),
                routes: feeds[COLLECTOR].limit,
            },
            frame_bytes: 4096,
            peers: 3,
        };
        let room = if random.once_in(3) { 3 + random.below(6) } else { 200 };
        let mut rib = Rib::new(feeds);
        rib.limit_vrfs(vrf_limits(&mut random));
        let mut archive = Archive::new();
        if random.once_in(2) {
            archive.change(&prefixes, &mut random);
        }
        Self {
            now_ns: SECOND,
            prefixes,
            samples,
            rib: Mutex::new(rib),
            install: Install::default(),
            hops: Hops::default(),
            fabric: vec![None],
            vrfs: vrfs.into(),
            seen,
            counts: vec![Dual::default(); 2],
            interfaces: (0..3).map(interface).collect(),
            devices: DEVICES.iter().copied().zip(0..).collect(),
            is_stale: true,
            sessions: Sessions::new(
                sessions::Limits { allow: Vec::new(), sessions: 3 },
                TIMES,
                Fpm { entrance: zebra, frame_bytes: 4096, acknowledge },
            ),
            zebra: Zebra::default(),
            monitored: Sessions::new(sessions::Limits { allow: Vec::new(), sessions: 3 }, TIMES, bmp),
            collector: Collector::default(),
            told: acknowledge.then(BTreeMap::new),
            follower: Follower::new(kernel),
            kernel: Kernel::new(room, random.once_in(2)),
            replay: archive.replay(),
            archive,
            has_begun: false,
            inherited: [false; 4],
            random,
            is_traced,
        }
    }

    fn trace(&self, what: impl FnOnce() -> String) {
        if self.is_traced {
            eprintln!("{:>14} {}", self.now_ns, what());
        }
    }

    /// Does something.
    pub fn step(&mut self) {
        let kind = self.random.below(33);
        match kind {
            0..=3 => {
                if let (Some(place), Some(told)) =
                    (self.zebra.change(&self.prefixes, &mut self.random), &mut self.told)
                {
                    told.remove(&place);
                }
            }
            4..=6 => self.read_zebra(),
            7 if self.random.once_in(4) => self.cut(),
            7 => self.connect(),
            8 if self.random.once_in(3) => {
                let (random, now_ns) = (&mut self.random, self.now_ns);
                match random.once_in(3) {
                    true => garbage(&mut self.monitored, &self.rib, random, now_ns),
                    false => garbage(&mut self.sessions, &self.rib, random, now_ns),
                }
            }
            8..=11 => self.change_kernel(),
            12..=14 => self.read_kernel(),
            15 => self.kernel.answer(1 + self.random.below(6), self.random.once_in(2)),
            16 => self.ask_kernel(true),
            17 if self.random.once_in(4) => self.kernel.lose(),
            17 => self.now_ns += self.random.next() % (3 * SECOND),
            18 => self.tick(),
            19 => self.collect(),
            20 if self.random.once_in(12) => self.take_over(),
            20 if self.random.once_in(24) => self.start_again(),
            20 if self.random.once_in(8) => {
                let limits = vrf_limits(&mut self.random);
                lock(&self.rib).limit_vrfs(limits);
            }
            21..=23 => self.collector.change(&self.prefixes, &mut self.random),
            24 | 25 => self.read_collector(),
            26 if self.random.once_in(6) => self.cut_collector(),
            26 => self.connect_collector(),
            27 => self.archive.change(&self.prefixes, &mut self.random),
            28 => self.archive.play(&mut self.replay, &self.rib),
            _ => {
                let most = 1 + self.random.below(8);
                self.turn(most);
            }
        }
        self.trace(|| format!("step {kind}"));
        self.now_ns += self.random.next() % 50_000_000;
    }

    fn change_kernel(&mut self) {
        let before = self.kernel.devices;
        self.kernel.change(&self.prefixes, &mut self.random);
        if before != self.kernel.devices {
            self.is_stale = true;
        }
    }

    fn connect(&mut self) {
        if self.zebra.left.is_some() {
            return;
        }
        if let Some(number) = self.sessions.accept(&self.rib, PEER, None, self.now_ns) {
            self.zebra.connect(number, &mut self.random);
            if let Some(told) = &mut self.told {
                told.clear();
            }
        }
    }

    /// Zebra goes, at whatever byte it is.
    fn cut(&mut self) {
        for wire in [self.zebra.session.take(), self.zebra.left.take()].into_iter().flatten() {
            self.sessions.ended(&self.rib, wire.number, None, self.now_ns);
        }
    }

    /// The server reads what has come: any number of bytes.
    fn read_zebra(&mut self) {
        let most = self.some_bytes();
        for wire in [&mut self.zebra.left, &mut self.zebra.session] {
            let open = wire.take();
            *wire = open.and_then(|wire| read(&mut self.sessions, &self.rib, wire, most, self.now_ns));
        }
    }

    fn some_bytes(&mut self) -> usize {
        let at_once = *self.random.pick(&[8, 100, 2000]);
        1 + self.random.below(at_once)
    }

    fn connect_collector(&mut self) {
        if self.collector.session.is_none()
            && let Some(number) = self.monitored.accept(&self.rib, PEER, None, self.now_ns)
        {
            self.collector.connect(number, &mut self.random);
        }
    }

    /// The monitored router goes, at whatever byte it is.
    fn cut_collector(&mut self) {
        if let Some(wire) = self.collector.session.take() {
            self.monitored.ended(&self.rib, wire.number, None, self.now_ns);
        }
    }

    fn read_collector(&mut self) {
        let most = self.some_bytes();
        let open = self.collector.session.take();
        self.collector.session =
            open.and_then(|wire| read(&mut self.monitored, &self.rib, wire, most, self.now_ns));
    }

    /// Zebra reads what has become of its routes.
    fn read_answers(&mut self) {
        let (Some(told), Some(wire)) = (&mut self.told, &self.zebra.session) else { return };
        let mut bytes = Vec::new();
        self.sessions.outgoing(&self.rib, wire.number, &mut bytes, usize::MAX);
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let len = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
            let (head, body, _) = netlink::split(&rest[4..len]).unwrap();
            let netlink::Message::Route(route) = netlink::decode(head.kind, body) else { panic!() };
            let vrf = TABLES.iter().position(|&table| table == route.table).unwrap() as u16;
            let flags = u32::from_ne_bytes([body[8], body[9], body[10], body[11]]);
            told.insert((vrf, route.prefix), flags & 0x4000 != 0);
            rest = &rest[len..];
        }
    }

    fn read_kernel(&mut self) {
        for _ in 0..1 + self.random.below(4) {
            let mut rib = lock(&self.rib);
            match self.kernel.receive() {
                Some(Ok(bytes)) => {
                    self.trace(|| told(&bytes));
                    self.follower.datagram(&mut rib, &bytes, self.now_ns);
                }
                Some(Err(())) => {
                    self.trace(|| "messages are lost".into());
                    self.follower.lost(&mut rib, self.now_ns);
                }
                None => break,
            }
        }
    }

    fn ask_kernel(&mut self, may_refuse: bool) {
        let question = self.follower.question(&mut lock(&self.rib), self.now_ns);
        if let Some(question) = question {
            let refuse = may_refuse && self.random.once_in(12);
            self.kernel.question(&question, refuse);
        }
    }

    fn tick(&mut self) {
        lock(&self.rib).set_time(self.now_ns);
        if let Some((number, why)) = self.sessions.tick(&self.rib, self.now_ns) {
            self.sessions.ended(&self.rib, number, Some(why), self.now_ns);
            self.zebra.session.take_if(|wire| wire.number == number);
            self.zebra.left.take_if(|wire| wire.number == number);
        }
        if let Some((number, why)) = self.monitored.tick(&self.rib, self.now_ns) {
            self.monitored.ended(&self.rib, number, Some(why), self.now_ns);
            self.collector.session.take_if(|wire| wire.number == number);
        }
        self.follower.tick(&mut lock(&self.rib), self.now_ns);
    }

    fn collect(&mut self) {
        let mut numbers = self.install.collect(&self.rib);
        for &number in &numbers {
            self.hops.set(number, None);
        }
        numbers.extend(self.hops.sweep());
        self.fabric = self.in_use();
        self.hops.give_back(&numbers);
        self.check_fabric();
    }

    /// Returns the next hops as packets use them.
    pub fn in_use(&self) -> Vec<Option<Hop>> {
        in_use(self.hops.all(), &self.interfaces, &Outage::default())
    }

    /// The routes of the configuration and of the interfaces.
    fn own(&mut self) -> Vec<DualRib> {
        let mut own = vec![DualRib::default(); 2];
        let number = self.hops.number(Hop::Local);
        own[0].insert(self.prefix("10.1.128.7/32"), number).unwrap();
        if self.interfaces[1].up {
            let number = self.hops.number(Hop::Connected { interface: 1 });
            own[0].insert(self.prefix("10.2.0.0/16"), number).unwrap();
        }
        own
    }

    fn prefix(&self, text: &str) -> IpPrefix {
        text.parse().unwrap()
    }

    /// A turn of the main thread. Returns whether every table took its routes.
    fn turn(&mut self, most: usize) -> bool {
        let mut own = None;
        let has_links = std::mem::take(&mut self.is_stale);
        if has_links {
            self.devices.clear();
            for (at, device) in self.kernel.devices.iter().enumerate() {
                let networks = interface(at).v4;
                let line = &mut self.interfaces[at];
                (line.up, line.missing) = (device.is_up(), !device.exists);
                line.v4 = if device.has_address { networks } else { Vec::new() };
                if device.exists {
                    self.devices.insert(device.number, at as u16);
                }
            }
            own = Some(self.own());
        }
        let near = (&*self.interfaces, &self.devices);
        let taken = self.install.take(&self.rib, near, &mut self.hops, own, most);
        if taken.hops || has_links || self.hops.all().len() != self.fabric.len() {
            self.fabric = self.in_use();
        }
        let before = self.answers();
        for seen in &self.seen {
            let mut seen = seen.lock().unwrap();
            seen.0.iter_mut().for_each(BTreeSet::clear);
            seen.1 = 0;
        }
        let entered = self.install.enter(&self.rib, &taken, &self.vrfs, &mut self.counts);
        let after = self.answers();
        for (vrf, seen) in self.seen.iter().enumerate() {
            for (at, seen) in seen.lock().unwrap().0.iter().enumerate() {
                for answer in seen.iter().flatten() {
                    assert!(
                        oracle::meaning(&self.fabric, *answer).is_some(),
                        "a lookup of {} led to number {}, which the fabric does not have",
                        self.samples[at],
                        answer.id()
                    );
                }
                let allowed = [before[vrf][at], after[vrf][at]];
                assert!(
                    entered.is_err() || seen.iter().all(|answer| allowed.contains(answer)),
                    "a lookup of {} in VRF {vrf} found {seen:?}: neither the old answer nor the new one, {allowed:?}",
                    self.samples[at]
                );
            }
        }
        self.check_fabric();
        self.read_answers();
        self.begin_if_ready();
        entered.is_ok()
    }

    /// Forwarding begins: every feed has told everything once, and the tables have it.
    fn begin_if_ready(&mut self) {
        let is_ready = {
            let rib = lock(&self.rib);
            rib.awaited(&self.inherited).next().is_none() && !rib.is_dirty() && !self.is_stale
        };
        if !is_ready || self.has_begun {
            return;
        }
        self.has_begun = true;
        self.trace(|| "forwarding begins".into());
        // Of objects, and of each family of each table.
        let (answered, least) = (self.kernel.answered, 1 + 2 * TABLES.len());
        assert!(answered >= least, "forwarding begins after {answered} of {least} answers of the kernel");
        // Its dump was, where an update after that was too much.
        let is_overrun = lock(&self.rib).feeds()[ARCHIVE].state.is_overrun;
        assert!(self.archive.has_played() || is_overrun, "forwarding begins before the archive was read");
        assert_eq!(self.verify(), [], "forwarding begins with tables that lack routes");
    }

    fn answers(&self) -> Vec<Vec<Option<NextHop>>> {
        let of = |vrf: &Vrf| self.samples.iter().map(|&address| vrf.table.lookup(address).unwrap()).collect();
        self.vrfs.iter().map(of).collect()
    }

    /// Every route of a table leads to a next hop that workers have.
    fn check_fabric(&self) {
        for vrf in &self.vrfs {
            for (prefix, number) in vrf.table.routes().unwrap().iter() {
                assert!(
                    oracle::meaning(&self.fabric, number).is_some(),
                    "{prefix} leads to number {}",
                    number.id()
                );
            }
        }
    }

    /// Lets everything come to rest: all is delivered, and nothing goes wrong any more.
    pub fn rest(&mut self) {
        self.kernel.finish();
        // A connection that zebra has left is found to be dead before long.
        if let Some(wire) = self.zebra.left.take() {
            self.sessions.ended(&self.rib, wire.number, None, self.now_ns);
        }
        // What one feed gives up may be room for another, which is then told everything again.
        let (mut rounds, mut calm) = (0, 0);
        while rounds < 60 || calm < 4 {
            // The kernel gets questions in a fifth of the time, and each reading may have taken long.
            rounds += 1;
            assert!(rounds < 2000, "feeds are read again on and on");
            if self.zebra.session.is_none() {
                if let Some(wire) = self.zebra.left.take() {
                    self.sessions.ended(&self.rib, wire.number, None, self.now_ns);
                }
                self.connect();
            }
            while self.zebra.session.as_ref().is_some_and(|wire| !wire.bytes.is_empty()) {
                self.read_zebra();
            }
            self.connect_collector();
            while self.collector.session.as_ref().is_some_and(|wire| !wire.bytes.is_empty()) {
                self.read_collector();
            }
            // The router tries again before the file is whole, when all else is there.
            if self.archive.is_due() && rounds >= 30 {
                if rounds > 40 {
                    self.archive.repair();
                }
                self.archive.play(&mut self.replay, &self.rib);
                self.turn(16);
            }
            self.answer_all();
            self.tick();
            self.now_ns += SECOND / 2;
            calm = if self.is_telling() { 0 } else { calm + 1 };
        }
        let mut turns = 0;
        while self.is_stale || lock(&self.rib).is_dirty() {
            let took = self.turn(16);
            turns += 1;
            if !took && turns > 50 {
                break;
            }
            assert!(turns < 1000, "the main thread never comes to rest");
        }
        self.begin_if_ready();
        // A feed that is refused routes may never tell all, and one without routes says nothing: then forwarding begins when the time
        // for that is over.
        let rib = lock(&self.rib);
        let is_silent = |feed: &Routes| matches!(feed.state.phase, Phase::Waiting | Phase::Down);
        let tells = |feed: &&Routes| !feed.state.is_overrun && !is_silent(feed);
        let awaited = rib.awaited(&self.inherited).find(tells);
        assert!(
            self.has_begun || rib.is_dirty() || awaited.is_none(),
            "forwarding never begins: {awaited:?}"
        );
        drop(rib);
        self.collect();
        for _ in 0..50 {
            self.read_answers();
            if !lock(&self.rib).feeds()[ZEBRA].answers.as_ref().is_some_and(Answers::is_due) {
                break;
            }
            self.turn(16);
        }
    }

    /// Returns whether a feed has not told everything yet.
    fn is_telling(&self) -> bool {
        let rib = lock(&self.rib);
        let is_half =
            |feed: usize| matches!(rib.feeds()[feed].state.phase, Phase::Synchronising | Phase::Kept);
        // After limits were reached, a session may have to wait for more than a minute.
        let waits = self.collector.session.is_none() && !self.may_lack(&rib, COLLECTOR, 0);
        rib.feeds()[KERNEL].state.is_in_doubt || is_half(ZEBRA) || is_half(COLLECTOR) || waits
    }

    /// The kernel answers all questions, and everything is read.
    fn answer_all(&mut self) {
        loop {
            self.ask_kernel(false);
            let is_asked = self.kernel.is_answering();
            while self.kernel.is_answering() {
                self.kernel.answer(8, false);
            }
            let mut rib = lock(&self.rib);
            while let Some(received) = self.kernel.receive() {
                match received {
                    Ok(bytes) => {
                        self.trace(|| told(&bytes));
                        self.follower.datagram(&mut rib, &bytes, self.now_ns);
                    }
                    Err(()) => self.follower.lost(&mut rib, self.now_ns),
                }
            }
            if !is_asked {
                break;
            }
        }
    }

    /// Takes most routes away, so that everything fits.
    pub fn shrink(&mut self) {
        for table in TABLES {
            self.kernel.flush(table);
        }
        let all: Vec<_> = self.zebra.routes.keys().copied().collect();
        self.cut();
        for place in all.into_iter().skip(1) {
            self.zebra.routes.remove(&place);
        }
        self.zebra.objects.clear();
        self.cut_collector();
        self.collector.shrink();
        self.archive.shrink();
    }

    /// Ends, and says whether everything fits in the tables.
    pub fn end(self) -> bool {
        let fits = !lock(&self.rib).is_dirty();
        for vrf in &self.vrfs {
            // The listener holds a reader, and that the table.
            drop(vrf.table.stop_listening());
        }
        fits
    }
}
