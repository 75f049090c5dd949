//! The kernel, as a socket of route netlink shows it: with what it changes without a word, messages that it loses, and answers that are
//! changed under way.

use std::collections::{BTreeMap, VecDeque};

use fibula::net::{Family, IpPrefix};

use crate::netlink::{self, DEL_NEXT_HOP, DEL_ROUTE, NEW_LINK, NEW_NEXT_HOP, NEW_ROUTE, message};
use crate::oracle::{DEVICES, Object, Spec, TABLES, Way};
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
    after: Option<IpPrefix>,
    generation: u64,
}

pub struct Kernel {
    pub routes: BTreeMap<(u32, IpPrefix), Vec<Entry>>,
    pub objects: BTreeMap<u32, Object>,
    pub up: [bool; 3],
    /// Routes of IPv6 that come back with their device.
    away: Vec<(u32, IpPrefix, Entry)>,
    queue: VecDeque<Vec<u8>>,
    /// Messages that the socket has room for.
    room: usize,
    overflown: bool,
    dump: Option<Dump>,
    generation: u64,
}

impl Kernel {
    pub fn new(room: usize) -> Self {
        Self {
            routes: BTreeMap::new(),
            objects: BTreeMap::new(),
            up: [true; 3],
            away: Vec::new(),
            queue: VecDeque::new(),
            room,
            overflown: false,
            dump: None,
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
        self.dump = Some(Dump { sequence, objects, family, table, after: None, generation });
    }

    /// Goes on with an answer: so many routes, or its end.
    pub fn answer(&mut self, most: usize) {
        let Some(dump) = &mut self.dump else { return };
        let flags = MULTI | if dump.generation == self.generation { 0 } else { INTERRUPTED };
        let mut parts = Vec::new();
        let mut has_ended = true;
        if dump.objects {
            let object = |(&id, object): (&u32, &Object)| {
                message(NEW_NEXT_HOP, flags, dump.sequence, &netlink::object(id, Some(object)))
            };
            parts.extend(self.objects.iter().map(object));
        } else {
            let (table, family) = (dump.table, dump.family);
            let after = dump.after;
            let rest = self.routes.iter().filter(|((of, prefix), _)| {
                *of == table && prefix.family() == family && after.is_none_or(|after| *prefix > after)
            });
            for (&(_, prefix), entries) in rest {
                if parts.len() >= most {
                    has_ended = false;
                    break;
                }
                dump.after = Some(prefix);
                for (metric, spec) in entries {
                    let body = netlink::route(prefix, table, *metric, Some(spec));
                    parts.push(message(NEW_ROUTE, flags, dump.sequence, &body));
                }
            }
        }
        if has_ended {
            parts.push(message(3, flags, dump.sequence, &0i32.to_ne_bytes()));
            self.dump = None;
        }
        self.queue.push_back(parts.concat());
    }

    pub const fn is_answering(&self) -> bool {
        self.dump.is_some()
    }

    /// Changes something.
    pub fn change(&mut self, prefixes: &[IpPrefix], random: &mut Random) {
        match random.below(20) {
            0 => self.link(random.below(3)),
            1 => {
                let id = 1 + random.below(3) as u32;
                let at = random.below(3);
                let way = Way { network: at as u8 + 1, device: DEVICES[at], weight: 1 };
                if self.up[at] {
                    let object = Object::Way(way);
                    let flags = CREATE | if self.objects.contains_key(&id) { REPLACE } else { EXCLUSIVE };
                    self.objects.insert(id, object.clone());
                    self.notify(NEW_NEXT_HOP, flags, &netlink::object(id, Some(&object)));
                }
            }
            2 => {
                let id = 1 + random.below(3) as u32;
                if self.objects.remove(&id).is_some() {
                    self.forget(|spec| *spec == Spec::Object(id));
                    self.notify(DEL_NEXT_HOP, 0, &netlink::object(id, None));
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
                let device = if way.device == 0 { DEVICES[usize::from(way.network) - 1] } else { way.device };
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
                let is_up =
                    |device| DEVICES.iter().position(|&known| known == device).is_none_or(|at| self.up[at]);
                ways.iter().all(|way| is_up(way.device))
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
        while let Some(&(table, prefix)) = self.routes.keys().find(|route| route.0 == table) {
            self.delete(table, prefix, 0);
        }
    }

    /// Routes go without a word. Returns those of IPv6.
    fn forget(&mut self, is_gone: impl Fn(&Spec) -> bool) -> Vec<(u32, IpPrefix, Entry)> {
        let mut gone = Vec::new();
        for (&(table, prefix), entries) in &mut self.routes {
            entries.retain(|entry| {
                let goes = is_gone(&entry.1);
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

    /// A link goes down, or comes back.
    pub fn link(&mut self, at: usize) {
        self.up[at] = !self.up[at];
        let by = |way: &Way| way.device == DEVICES[at];
        if self.up[at] {
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
        } else {
            let objects: Vec<u32> = self
                .objects
                .iter()
                .filter(|(_, object)| matches!(object, Object::Way(way) if by(way)))
                .map(|(&id, _)| id)
                .collect();
            self.objects.retain(|id, _| !objects.contains(id));
            self.forget(|spec| matches!(spec, Spec::Object(id) if objects.contains(id)));
            let away = self.forget(|spec| matches!(spec, Spec::Ways(ways) if ways.iter().any(by)));
            self.away.extend(away);
        }
        let up = self.up[at];
        self.notify(NEW_LINK, 0, &netlink::link(DEVICES[at], up));
    }

    /// Returns the route that counts for a prefix: the first of those that the router forwards by. With `metrics`, of these alone.
    pub fn best(&self, vrf: u16, prefix: IpPrefix, metrics: Option<&[u32]>) -> Option<&Spec> {
        let mut entries = self.routes.get(&(TABLES[usize::from(vrf)], prefix))?.iter();
        let among = |metric| metrics.is_none_or(|metrics| metrics.contains(&metric));
        entries.find(|entry| entry.1 != Spec::Unsupported && among(entry.0)).map(|entry| &entry.1)
    }
}
