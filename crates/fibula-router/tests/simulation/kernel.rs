//! The kernel, as a socket of route netlink shows it: with what it changes without a word, messages that it loses, and answers that are
//! changed under way.
//!
//! Since Linux 6.9, answers about routes take no lock that changes take. So a part of an answer may be read before a change and come
//! after its notice; a change may still go on while the answer after its notice is read; and as an answer goes on by counts, what went
//! before its place makes it miss what is there. Answers about next-hop objects take that lock.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use fibula::net::{Family, IpPrefix};

use crate::netlink::{self, DEL_ADDRESS, DEL_LINK, DEL_NEXT_HOP, DEL_ROUTE, NEW_ADDRESS, NEW_LINK};
use crate::netlink::{NEW_NEXT_HOP, NEW_ROUTE, message};
use crate::oracle::{DEVICES, Device, FOREIGN, Object, Spec, TABLES, Way};
use crate::random::Random;
use crate::zebra;

const MULTI: u16 = 2;
const INTERRUPTED: u16 = 0x10;
const REPLACE: u16 = 0x100;
const EXCLUSIVE: u16 = 0x200;
const CREATE: u16 = 0x400;
const APPEND: u16 = 0x800;
const BUSY: i32 = 16;
const NO_MEMORY: i32 = 12;

/// A route: its metric and where it leads.
type Entry = (u32, Spec);

/// An answer under way.
struct Dump {
    sequence: u32,
    /// What is still to be told: objects, or the routes of a table and family after a prefix.
    objects: bool,
    family: Family,
    table: u32,
    /// Routes that were told: of this address for IPv4, of all for IPv6.
    leaf: Option<IpAddr>,
    count: usize,
    generation: u64,
    /// A part that was read and is not in the queue yet, and whether it is the last.
    part: Option<(Vec<u8>, bool)>,
}

/// What is left of a change whose notice is out already.
enum Act {
    /// Routes and objects of a device that is set down go.
    Down(usize),
    /// Routes whose source was an address that is gone go.
    Source(usize),
    /// Routes of a next-hop object that is gone go.
    Object(u32),
    Notice(u16, Vec<u8>),
}

fn address(prefix: IpPrefix) -> IpAddr {
    match prefix {
        IpPrefix::V4(prefix) => IpAddr::V4(prefix.addr().into()),
        IpPrefix::V6(prefix) => IpAddr::V6(prefix.addr().into()),
    }
}

pub struct Kernel {
    pub routes: BTreeMap<(u32, IpPrefix), Vec<Entry>>,
    pub objects: BTreeMap<u32, Object>,
    pub devices: [Device; 3],
    acts: VecDeque<Act>,
    /// Answers say that they were changed under way.
    tells_interrupted: bool,
    /// Routes of IPv6 that come back with their device.
    away: Vec<(u32, IpPrefix, Entry)>,
    queue: VecDeque<Vec<u8>>,
    /// Messages that the socket has room for.
    room: usize,
    overflown: bool,
    dump: Option<Dump>,
    /// Answers that were given to their end since the socket was opened.
    pub answered: usize,
    generation: u64,
}

impl Kernel {
    pub fn new(room: usize, tells_interrupted: bool) -> Self {
        Self {
            routes: BTreeMap::new(),
            objects: BTreeMap::new(),
            devices: DEVICES.map(Device::new),
            acts: VecDeque::new(),
            tells_interrupted,
            away: Vec::new(),
            queue: VecDeque::new(),
            room,
            overflown: false,
            dump: None,
            answered: 0,
            generation: 0,
        }
    }

    fn notify(&mut self, kind: u16, flags: u16, body: &[u8]) {
        self.generation += 1;
        if self.queue.len() >= self.room {
            self.overflown = true;
        } else {
            self.queue.push_back(message(kind, flags, 0, body));
        }
    }

    /// Returns the next datagram; `Err` if messages were lost.
    pub fn receive(&mut self) -> Option<Result<Vec<u8>, ()>> {
        if std::mem::take(&mut self.overflown) {
            return Some(Err(()));
        }
        self.queue.pop_front().map(Ok)
    }

    /// Another socket is opened in place of the one before.
    pub fn open(&mut self) {
        self.queue.clear();
        (self.overflown, self.dump, self.answered) = (false, None, 0);
    }

    /// The socket has no room for a moment.
    pub const fn lose(&mut self) {
        self.overflown = true;
    }

    /// Takes a question; refuses it if there is an answer under way, or by chance.
    pub fn question(&mut self, question: &[u8], refuse: bool) {
        let number = |at: usize| {
            u32::from_ne_bytes([question[at], question[at + 1], question[at + 2], question[at + 3]])
        };
        let (kind, sequence) = (u16::from_ne_bytes([question[4], question[5]]), number(8));
        if self.dump.is_some() || refuse {
            let code = if self.dump.is_some() { BUSY } else { NO_MEMORY };
            self.queue.push_back(message(2, 0, sequence, &(-code).to_ne_bytes()));
            return;
        }
        let objects = kind == 106;
        let family = if question[16] == 2 { Family::Ipv4 } else { Family::Ipv6 };
        let table = if objects { 0 } else { number(question.len() - 4) };
        let generation = self.generation;
        self.dump =
            Some(Dump { sequence, objects, family, table, leaf: None, count: 0, generation, part: None });
    }

    /// Goes on with an answer: reads so many routes, or the end. `is_late`: what was read gets into the queue with the next call.
    pub fn answer(&mut self, most: usize, is_late: bool) {
        if self.dump.as_ref().is_some_and(|dump| dump.objects) {
            self.finish();
        }
        let Some(dump) = &mut self.dump else { return };
        let is_read = dump.part.is_some();
        if !is_read {
            self.read(most);
        }
        if !is_late || is_read {
            let Some((bytes, has_ended)) = self.dump.as_mut().and_then(|dump| dump.part.take()) else {
                return;
            };
            self.queue.push_back(bytes);
            if has_ended {
                self.dump = None;
                self.answered += 1;
            }
        }
    }

    fn read(&mut self, most: usize) {
        let Some(dump) = &mut self.dump else { return };
        let is_changed = dump.generation != self.generation && (self.tells_interrupted || dump.objects);
        let flags = MULTI | if is_changed { INTERRUPTED } else { 0 };
        let mut parts = Vec::new();
        let mut has_ended = true;
        if dump.objects {
            let object = |(&id, object): (&u32, &Object)| {
                message(NEW_NEXT_HOP, flags, dump.sequence, &netlink::object(id, Some(object)))
            };
            parts.extend(self.objects.iter().map(object));
        } else {
            let (table, family) = (dump.table, dump.family);
            let of = self.routes.iter().filter(|((of, prefix), _)| *of == table && prefix.family() == family);
            let all = of.flat_map(|(&(_, prefix), entries)| entries.iter().map(move |entry| (prefix, entry)));
            let (mut at, mut leaf, (from, skip)) = (0, None, (dump.leaf, dump.count));
            for (prefix, (metric, spec)) in all {
                let here = (family == Family::Ipv4).then(|| address(prefix));
                at = if here == leaf { at + 1 } else { 1 };
                leaf = here;
                if here < from || here == from && at <= skip {
                    continue;
                }
                if parts.len() >= most {
                    has_ended = false;
                    break;
                }
                (dump.leaf, dump.count) = (here, at);
                let body = netlink::route(prefix, table, *metric, Some(spec));
                parts.push(message(NEW_ROUTE, flags, dump.sequence, &body));
            }
        }
        if has_ended {
            parts.push(message(3, flags, dump.sequence, &0i32.to_ne_bytes()));
        }
        dump.part = Some((parts.concat(), has_ended));
    }

    pub const fn is_answering(&self) -> bool {
        self.dump.is_some()
    }

    /// Changes something, or goes on with a change.
    pub fn change(&mut self, prefixes: &[IpPrefix], random: &mut Random) {
        if self.go_on() {
            return;
        }
        match random.below(20) {
            0 => self.device(random.below(3), random),
            1 => {
                let id = 1 + random.below(3) as u32;
                let at = random.below(3);
                let way = Way { network: at as u8 + 1, device: self.devices[at].number, weight: 1 };
                if self.devices[at].is_up() {
                    let object = Object::Way(way);
                    let flags = CREATE | if self.objects.contains_key(&id) { REPLACE } else { EXCLUSIVE };
                    self.objects.insert(id, object.clone());
                    self.notify(NEW_NEXT_HOP, flags, &netlink::object(id, Some(&object)));
                }
            }
            2 => {
                let id = 1 + random.below(3) as u32;
                if self.objects.remove(&id).is_some() {
                    self.notify(DEL_NEXT_HOP, 0, &netlink::object(id, None));
                    self.acts.push_back(Act::Object(id));
                }
            }
            3 if random.once_in(4) => self.flush(*random.pick(&TABLES)),
            3..=7 => {
                let at = random.below(self.routes.len());
                let Some((&(table, prefix), entries)) = self.routes.iter().nth(at) else { return };
                let at = random.below(entries.len());
                self.delete(table, prefix, at);
            }
            _ => self.add(prefixes, random),
        }
    }

    fn add(&mut self, prefixes: &[IpPrefix], random: &mut Random) {
        let (table, prefix) = (*random.pick(&TABLES), *random.pick(prefixes));
        let is_v4 = prefix.family() == Family::Ipv4;
        let metric = *random.pick(&[20, 20, 0, 50]);
        let spec = match random.below(8) {
            0 => Spec::Blackhole,
            1 => Spec::Object(1 + random.below(3) as u32),
            2 if random.once_in(4) => Spec::Unsupported,
            _ => {
                let way = zebra::way(random);
                let near = self.devices[usize::from(way.network) - 1].number;
                let device = if way.device == FOREIGN { FOREIGN } else { near };
                Spec::Ways(vec![Way { device, weight: 1, ..way }])
            }
        };
        if !self.can_be(&spec) {
            return;
        }
        let entries = self.routes.entry((table, prefix)).or_default();
        let same: Vec<usize> = (0..entries.len()).filter(|&at| entries[at].0 == metric).collect();
        let is_there = same.iter().any(|&at| entries[at].1 == spec);
        let flags = match (same.first(), same.last(), random.below(3)) {
            (None, ..) => {
                let at = entries.iter().position(|entry| entry.0 > metric).unwrap_or(entries.len());
                entries.insert(at, (metric, spec.clone()));
                CREATE | EXCLUSIVE
            }
            _ if is_there => return,
            (Some(_), Some(&last), 0) if is_v4 => {
                entries.insert(last + 1, (metric, spec.clone()));
                CREATE | APPEND
            }
            (Some(&first), _, 1) if is_v4 => {
                entries.insert(first, (metric, spec.clone()));
                CREATE
            }
            (Some(&first), ..) => {
                entries[first] = (metric, spec.clone());
                CREATE | REPLACE
            }
        };
        self.notify(NEW_ROUTE, flags, &netlink::route(prefix, table, metric, Some(&spec)));
    }

    /// Returns whether the kernel would take a route: its object is there, its device is up.
    fn can_be(&self, spec: &Spec) -> bool {
        match spec {
            Spec::Object(id) => self.objects.contains_key(id),
            Spec::Ways(ways) => {
                let is_enabled = |number: u32| {
                    let has = |device: &&Device| device.exists && device.number == number;
                    number == FOREIGN || self.devices.iter().find(has).is_some_and(|device| device.is_enabled)
                };
                ways.iter().all(|way| is_enabled(way.device))
            }
            _ => true,
        }
    }

    fn delete(&mut self, table: u32, prefix: IpPrefix, at: usize) {
        let Some(entries) = self.routes.get_mut(&(table, prefix)) else { return };
        let (metric, spec) = entries.remove(at);
        if entries.is_empty() {
            self.routes.remove(&(table, prefix));
        }
        self.notify(DEL_ROUTE, 0, &netlink::route(prefix, table, metric, Some(&spec)));
    }

    /// `ip route flush table`.
    pub fn flush(&mut self, table: u32) {
        self.finish();
        while let Some(&(table, prefix)) = self.routes.keys().find(|route| route.0 == table) {
            self.delete(table, prefix, 0);
        }
    }

    /// Routes go without a word. Returns those of IPv6.
    fn forget(&mut self, is_gone: impl Fn(IpPrefix, &Spec) -> bool) -> Vec<(u32, IpPrefix, Entry)> {
        let mut gone = Vec::new();
        for (&(table, prefix), entries) in &mut self.routes {
            entries.retain(|entry| {
                let goes = is_gone(prefix, &entry.1);
                if goes && prefix.family() == Family::Ipv6 {
                    gone.push((table, prefix, entry.clone()));
                }
                !goes
            });
        }
        self.routes.retain(|_, entries| !entries.is_empty());
        self.generation += 1;
        gone
    }

    /// Goes on with a change whose notice is out. Returns `false` if there is none.
    fn go_on(&mut self) -> bool {
        match self.acts.pop_front() {
            None => return false,
            Some(Act::Down(at)) => self.forget_device(at, true),
            Some(Act::Source(at)) => {
                // Some routes had the address as their source.
                let network = at as u8 + 1;
                let by = |spec: &Spec| matches!(spec, Spec::Ways(ways) if ways[0].network == network);
                self.forget(|prefix, spec| {
                    prefix.family() == Family::Ipv4 && prefix.len() % 16 == 0 && by(spec)
                });
            }
            Some(Act::Object(id)) => drop(self.forget(|_, spec| *spec == Spec::Object(id))),
            Some(Act::Notice(kind, body)) => self.notify(kind, 0, &body),
        }
        true
    }

    /// Ends a change that goes on.
    pub fn finish(&mut self) {
        while self.go_on() {}
    }

    /// Objects of a device go, and if it is set down, its routes.
    fn forget_device(&mut self, at: usize, is_down: bool) {
        let number = self.devices[at].number;
        let by = |way: &Way| way.device == number;
        let of = |object: &Object| matches!(object, Object::Way(way) if by(way));
        let objects: Vec<u32> =
            self.objects.iter().filter(|(_, object)| of(object)).map(|(&id, _)| id).collect();
        self.objects.retain(|id, _| !objects.contains(id));
        self.forget(|_, spec| matches!(spec, Spec::Object(id) if objects.contains(id)));
        if is_down {
            let away = self.forget(|_, spec| matches!(spec, Spec::Ways(ways) if ways.iter().any(by)));
            if self.devices[at].exists {
                self.away.extend(away);
            }
        }
    }

    /// Something happens to a device.
    fn device(&mut self, at: usize, random: &mut Random) {
        let device = self.devices[at];
        match random.below(6) {
            _ if !device.exists => self.create(at, random),
            0 => self.remove(at),
            1 => self.toggle_address(at),
            _ if !device.is_enabled => self.enable(at),
            2 => self.disable(at),
            // Its name changes, and nothing of its routes.
            3 => self.notify(NEW_LINK, 0, &netlink::link(&device, "other")),
            _ if !device.has_address => self.toggle_address(at),
            _ => self.toggle_carrier(at),
        }
    }

    fn notify_link(&mut self, at: usize) {
        let body = netlink::link(&self.devices[at], &format!("eth{at}"));
        self.notify(NEW_LINK, 0, &body);
    }

    fn toggle_carrier(&mut self, at: usize) {
        self.devices[at].has_carrier ^= true;
        if !self.devices[at].has_carrier {
            self.forget_device(at, false);
        }
        self.notify_link(at);
    }

    /// The notice is out before the routes go.
    fn disable(&mut self, at: usize) {
        self.devices[at].is_enabled = false;
        self.notify_link(at);
        self.acts.push_back(Act::Down(at));
    }

    fn enable(&mut self, at: usize) {
        self.devices[at].is_enabled = true;
        let back: Vec<_> = std::mem::take(&mut self.away);
        let (back, away) = back.into_iter().partition(|(.., entry)| self.can_be(&entry.1));
        self.away = away;
        for (table, prefix, entry) in back {
            let entries = self.routes.entry((table, prefix)).or_default();
            if entries.iter().all(|other| other.0 != entry.0) {
                let to = entries.iter().position(|other| other.0 > entry.0).unwrap_or(entries.len());
                entries.insert(to, entry);
            }
        }
        self.generation += 1;
        self.notify_link(at);
    }

    fn toggle_address(&mut self, at: usize) {
        self.devices[at].has_address ^= true;
        let (body, has) = (netlink::address(&self.devices[at], at as u8 + 1), self.devices[at].has_address);
        self.notify(if has { NEW_ADDRESS } else { DEL_ADDRESS }, 0, &body);
        if !has {
            self.acts.push_back(Act::Source(at));
        }
    }

    fn remove(&mut self, at: usize) {
        if self.devices[at].is_enabled {
            self.disable(at);
        }
        let number = self.devices[at].number;
        let by = |entry: &Entry| matches!(&entry.1, Spec::Ways(ways) if ways[0].device == number);
        self.away.retain(|(.., entry)| !by(entry));
        let device = self.devices[at];
        if device.has_address {
            self.acts.push_back(Act::Notice(DEL_ADDRESS, netlink::address(&device, at as u8 + 1)));
            self.acts.push_back(Act::Source(at));
        }
        self.acts.push_back(Act::Notice(DEL_LINK, netlink::link(&device, &format!("eth{at}"))));
        self.devices[at] = Device { exists: false, is_enabled: false, has_address: false, ..device };
    }

    /// A device comes again with its number or another.
    fn create(&mut self, at: usize, random: &mut Random) {
        let device = Device::new(DEVICES[at] + 10 * random.below(2) as u32);
        self.devices[at] = Device { is_enabled: false, has_address: false, ..device };
        self.notify_link(at);
        if !random.once_in(4) {
            self.toggle_address(at);
        }
        if !random.once_in(4) {
            self.enable(at);
        }
    }

    /// Returns the route that counts for a prefix: the first of those that the router forwards by. With `metrics`, of these alone.
    pub fn best(&self, vrf: u16, prefix: IpPrefix, metrics: Option<&[u32]>) -> Option<&Spec> {
        let mut entries = self.routes.get(&(TABLES[usize::from(vrf)], prefix))?.iter();
        let among = |metric| metrics.is_none_or(|metrics| metrics.contains(&metric));
        entries.find(|entry| entry.1 != Spec::Unsupported && among(entry.0)).map(|entry| &entry.1)
    }
}
