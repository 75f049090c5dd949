//! Neighbours: the MAC addresses of next hops (RFC 826, RFC 4861 section 7.3).
//!
//! Both families share the states. A neighbour is *waiting* while requests for it are unanswered. Later it is *known*, or known
//! but *stale* if nothing has confirmed it for a while; a stale neighbour is verified as soon as it is used again. Otherwise it
//! has *failed*. A failure is remembered for a few seconds, because otherwise a flood to the neighbour would cost requests. No
//! clock is read here: every call takes the time.
//!
//! Workers read an array without waiting (`view.rs`). Changes are made under a mutex. It is taken for packets to unknown
//! neighbours, for packets from neighbours, and by the timer. The number of requests in flight is limited by interface and by
//! prefix (/24, /64), so that a scan of addresses does not grow memory. At a limit, a new request takes the place of a random one: of a
//! sender that has more requests than this one, most likely the sender with the most. If no sender has more, it takes the place of a
//! request that has had time to be answered. Because the choice is random, the order of a scan cannot keep a neighbour from being found.
//!
//! If the kernel owns the interface, it also owns the neighbours. Requests then go to the kernel, and its answers come back
//! ([`Neighbours::learn`], [`Neighbours::lose`]).

mod own;
mod view;

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

pub use own::{Duplicate, Duty, Own, OwnState};
use view::NeighbourView;

use crate::packet::ethernet::Mac;

const SECOND: u64 = 1_000_000_000;
/// Time between requests (RFC 4861, section 10: RETRANS_TIMER).
const RETRY_NS: u64 = SECOND;
/// Requests before a neighbour has failed (MAX_MULTICAST_SOLICIT, MAX_UNICAST_SOLICIT).
const TRIES: u8 = 3;
/// How long a confirmation lasts (REACHABLE_TIME).
const REACHABLE_NS: u64 = 30 * SECOND;
/// How long a failure is remembered.
const FAILED_NS: u64 = 3 * SECOND;
/// How long a request is safe from other requests of its sender. A neighbour of the same network answers in less.
const ANSWER_NS: u64 = 20_000_000;

/// A neighbour: an address of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Number of the interface.
    pub interface: u16,
    /// Whether the address is IPv6.
    pub v6: bool,
    /// The address; an IPv4 address in the low 32 bits.
    pub address: u128,
}

impl Key {
    /// A neighbour by its IPv4 address.
    #[inline]
    #[must_use]
    pub fn v4(interface: u16, address: u32) -> Self {
        Self { interface, v6: false, address: u128::from(address) }
    }

    /// A neighbour by its IPv6 address.
    #[inline]
    #[must_use]
    pub fn v6(interface: u16, address: u128) -> Self {
        Self { interface, v6: true, address }
    }

    /// A neighbour by its address.
    #[must_use]
    pub fn of(interface: u16, address: IpAddr) -> Self {
        match address {
            IpAddr::V4(ip) => Self::v4(interface, ip.into()),
            IpAddr::V6(ip) => Self::v6(interface, ip.into()),
        }
    }

    /// Returns the address.
    #[must_use]
    pub fn ip(&self) -> IpAddr {
        if self.v6 { Ipv6Addr::from(self.address).into() } else { Ipv4Addr::from(self.address as u32).into() }
    }

    /// Returns the prefix that shares a limit of requests: the /24 or /64 of this neighbour on its interface.
    fn prefix(&self) -> Self {
        let host = if self.v6 { u128::from(u64::MAX) } else { 0xff };
        Self { address: self.address & !host, ..*self }
    }
}

/// Whom a request is made for: the sender of a packet, by its IPv4 address or its /64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sender {
    interface: u16,
    v6: bool,
    network: u128,
}

impl Sender {
    /// The router itself.
    pub const OWN: Self = Self { interface: u16::MAX, v6: false, network: 0 };

    /// The sender of a packet that was received on an interface.
    #[inline]
    #[must_use]
    pub const fn of(interface: u16, v6: bool, source: u128) -> Self {
        Self { interface, v6, network: if v6 { source >> 64 } else { source } }
    }
}

/// A request for the kernel to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// Resolve or verify a neighbour.
    Use(Probe),
    /// Forget a neighbour that it has been looking for: another one has the place.
    Forget(Key),
}

/// The state of a neighbour, as workers see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It has not been requested yet: see [`Neighbours::request`].
    Unknown,
    /// It is being resolved.
    Waiting,
    /// Its MAC address.
    Known(Mac),
    /// It does not answer.
    Failed,
}

/// A request to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// The neighbour.
    pub key: Key,
    /// Its MAC address, if the request verifies it. Otherwise the request goes to all stations.
    pub mac: Option<Mac>,
}

/// Limits, see the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most neighbours in total.
    pub neighbours: usize,
    /// Most neighbours of an interface that are being resolved.
    pub requests: usize,
    /// Most neighbours of a prefix that are being resolved.
    pub requests_prefix: usize,
    /// How long a stale neighbour that no packet uses is kept.
    pub unused_ns: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { neighbours: 8192, requests: 256, requests_prefix: 64, unused_ns: 600 * SECOND }
    }
}

/// State of a neighbour, as operators see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Requests have not been answered yet.
    Waiting,
    /// Confirmed not long ago.
    Reachable,
    /// Confirmed long ago.
    Stale,
    /// Confirmed long ago and in use: being verified.
    Verifying,
    /// It does not answer.
    Failed,
}

#[derive(Debug)]
struct Entry {
    state: State,
    mac: Mac,
    /// Requests sent in this state.
    tries: u8,
    /// Time at which the timer checks the state again.
    due_ns: u64,
    used_ns: u64,
    slot: usize,
}

/// A neighbour that is waiting.
#[derive(Debug, Clone, Copy)]
struct Flight {
    key: Key,
    sender: Sender,
    since_ns: u64,
}

#[derive(Debug)]
struct Inner {
    entries: HashMap<Key, Entry>,
    /// Neighbours that are waiting, by interface and by prefix. The key of an interface has all bits of the address set.
    in_flight: HashMap<Key, Vec<Flight>>,
    random: u64,
    /// Interfaces whose neighbours the kernel resolves.
    kernel: Vec<u16>,
}

/// The neighbours of all interfaces.
#[derive(Debug)]
pub struct Neighbours {
    view: NeighbourView,
    inner: Mutex<Inner>,
    /// Requests for the kernel to make.
    kernel: Mutex<Vec<Ask>>,
    bell: OnceLock<Ringer>,
    generation: AtomicU64,
    limits: Limits,
}

/// Ends the sleep of the thread that makes requests of the kernel.
struct Ringer(Box<dyn Fn() + Send + Sync>);

impl core::fmt::Debug for Ringer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Ringer")
    }
}

/// Returns how many neighbours the kernel keeps at most of a family, IPv4 or IPv6 (`gc_thresh3`); `None` where it does not say.
#[must_use]
pub fn most_of_kernel(family: &str) -> Option<usize> {
    let file = format!("/proc/sys/net/{}/neigh/default/gc_thresh3", family.to_ascii_lowercase());
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// Too many neighbours are being resolved, or known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitReached;

impl Neighbours {
    /// Makes an empty table.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let view = NeighbourView::new(limits.neighbours);
        let inner = Inner {
            entries: HashMap::new(),
            in_flight: HashMap::new(),
            random: RandomState::new().build_hasher().finish() | 1,
            kernel: Vec::new(),
        };
        Self {
            view,
            inner: Mutex::new(inner),
            kernel: Mutex::default(),
            bell: OnceLock::new(),
            generation: AtomicU64::new(0),
            limits,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every change leaves the table consistent, so a panic of another thread can be ignored.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the state of a neighbour. Fast enough for every packet, because it only reads a few atomic words.
    #[inline]
    #[must_use]
    pub fn get(&self, key: &Key) -> Answer {
        self.view.get(key)
    }

    /// Returns a number that grows after every change of an answer. Until then, an answer of [`get`](Self::get) may be used again
    /// without another call.
    #[inline]
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.view.changes()
    }

    /// Returns a number that grows whenever a neighbour becomes known, fails or is forgotten. Waiting packets must then be checked.
    #[inline]
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    fn changed(&self) {
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Begins to resolve a neighbour for a sender. Returns the request to send, or `None` if another worker has begun meanwhile. At
    /// a limit, another neighbour may lose its place: see the module.
    ///
    /// # Errors
    /// When a limit is reached, and nobody has less right to a place.
    pub fn request(&self, key: Key, sender: Sender, now_ns: u64) -> Result<Option<Probe>, LimitReached> {
        let mut inner = self.lock();
        if inner.entries.contains_key(&key) {
            return Ok(None);
        }
        for (group, limit) in
            [(key.prefix(), self.limits.requests_prefix), (interface_of(key), self.limits.requests)]
        {
            if let Some(other) = inner.victim(group, limit, sender, now_ns)? {
                self.evict(&mut inner, other);
            }
        }
        if inner.entries.len() >= self.limits.neighbours {
            return Err(LimitReached);
        }
        let slot = self.view.insert(&key, Answer::Waiting).ok_or(LimitReached)?;
        let due_ns = now_ns + RETRY_NS;
        let entry =
            Entry { state: State::Waiting, mac: Mac::default(), tries: 1, due_ns, used_ns: now_ns, slot };
        inner.entries.insert(key, entry);
        inner.fly(Flight { key, sender, since_ns: now_ns });
        Ok(Some(Probe { key, mac: None }))
    }

    /// Takes the place of a neighbour that is waiting.
    fn evict(&self, inner: &mut Inner, key: Key) {
        inner.land(key);
        if let Some(entry) = inner.entries.remove(&key) {
            self.view.remove(entry.slot);
        }
        if inner.kernel.contains(&key.interface) {
            // Otherwise the neighbours that the kernel looks for would be all that were ever scanned, and it has a limit too.
            self.ask(Ask::Forget(key));
        }
    }

    /// Notes the MAC address of a neighbour. Set `confirmed` if it has just answered, so that its address need not be verified
    /// for a while. Set `create` to note it even if it was not requested. Returns whether it is noted.
    pub fn learn(&self, key: Key, mac: Mac, confirmed: bool, create: bool, now_ns: u64) -> bool {
        let mut inner = self.lock();
        let state = if confirmed { State::Reachable } else { State::Stale };
        let due_ns = now_ns + REACHABLE_NS;
        let full = inner.entries.len() >= self.limits.neighbours;
        match inner.entries.get_mut(&key) {
            Some(entry) => {
                let before = (entry.state, entry.mac);
                let was_waiting = entry.state == State::Waiting;
                // A MAC address that has not changed stays confirmed.
                if confirmed || entry.mac != mac || !matches!(entry.state, State::Reachable) {
                    entry.state = state;
                    entry.due_ns = due_ns;
                    entry.tries = 0;
                }
                entry.mac = mac;
                self.view.set(entry.slot, Answer::Known(mac));
                if was_waiting {
                    inner.land(key);
                }
                if before != (state, mac) {
                    self.changed();
                }
            }
            None if !create || full => return false,
            None => {
                let Some(slot) = self.view.insert(&key, Answer::Known(mac)) else { return false };
                // No packet has used it, so a stale one must not be verified yet.
                let used_ns = now_ns.saturating_sub(RETRY_NS);
                let entry = Entry { state, mac, tries: 0, due_ns, used_ns, slot };
                inner.entries.insert(key, entry);
                self.changed();
            }
        }
        true
    }

    /// Notes that the kernel has found no neighbour with this address, or has forgotten it.
    pub fn lose(&self, key: Key, failed: bool, now_ns: u64) {
        let mut inner = self.lock();
        let Some(entry) = inner.entries.get_mut(&key) else { return };
        let was_waiting = entry.state == State::Waiting;
        if failed {
            entry.state = State::Failed;
            entry.due_ns = now_ns + FAILED_NS;
            self.view.set(entry.slot, Answer::Failed);
        } else if was_waiting {
            // The kernel has forgotten it before it was found. The answer may still come.
            return;
        } else {
            let slot = entry.slot;
            inner.entries.remove(&key);
            self.view.remove(slot);
        }
        if was_waiting {
            inner.land(key);
        }
        self.changed();
    }

    /// Removes the neighbours of an interface that is gone, or whose link went down.
    pub fn forget_interface(&self, interface: u16) {
        let mut inner = self.lock();
        inner.entries.retain(|key, entry| {
            let stays = key.interface != interface;
            if !stays {
                self.view.remove(entry.slot);
            }
            stays
        });
        inner.in_flight.retain(|key, _| key.interface != interface);
        self.changed();
    }

    /// Sets that the kernel resolves the neighbours of an interface. The kernel does not report the use of a confirmed neighbour,
    /// so silence is not a failure there.
    pub fn set_kernel(&self, interface: u16) {
        let mut inner = self.lock();
        if !inner.kernel.contains(&interface) {
            inner.kernel.push(interface);
        }
    }

    /// Notes a request for the kernel to send.
    pub fn ask_kernel(&self, probe: Probe) {
        self.ask(Ask::Use(probe));
    }

    fn ask(&self, ask: Ask) {
        let mut kernel = self.kernel.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = kernel.is_empty();
        kernel.push(ask);
        drop(kernel);
        // The thread takes all of them once it is awake.
        if let Some(Ringer(ring)) = self.bell.get().filter(|_| is_first) {
            ring();
        }
    }

    /// Sets what ends the sleep of the thread that makes requests of the kernel. Only the first call has an effect.
    pub fn set_bell(&self, ring: impl Fn() + Send + Sync + 'static) {
        let _ = self.bell.set(Ringer(Box::new(ring)));
    }

    /// Takes the requests for the kernel to make, in their order.
    pub fn take_asked(&self, asked: &mut Vec<Ask>) {
        asked.append(&mut self.kernel.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Runs the timers: appends the requests that are due to `probes`. One thread must call it a few times a second.
    pub fn tick(&self, now_ns: u64, probes: &mut Vec<Probe>) {
        let mut inner = self.lock();
        let mut landed = Vec::new();
        let mut changes = false;
        let (view, unused_ns) = (&self.view, self.limits.unused_ns);
        let Inner { entries, kernel, .. } = &mut *inner;
        entries.retain(|&key, entry| {
            if view.take_used(entry.slot) {
                entry.used_ns = now_ns;
            }
            let used = entry.used_ns + RETRY_NS > now_ns;
            match entry.state {
                State::Waiting | State::Verifying if entry.due_ns <= now_ns => {
                    let waiting = entry.state == State::Waiting;
                    if !waiting && kernel.contains(&key.interface) {
                        entry.state = State::Reachable;
                        entry.due_ns = now_ns + REACHABLE_NS;
                    } else if entry.tries >= TRIES {
                        if waiting {
                            landed.push(key);
                        }
                        changes = true;
                        entry.state = State::Failed;
                        entry.due_ns = now_ns + FAILED_NS;
                        view.set(entry.slot, Answer::Failed);
                    } else {
                        entry.tries += 1;
                        entry.due_ns = now_ns + RETRY_NS;
                        probes.push(Probe { key, mac: (!waiting).then_some(entry.mac) });
                    }
                }
                State::Reachable if entry.due_ns <= now_ns => entry.state = State::Stale,
                State::Stale if used => {
                    entry.state = State::Verifying;
                    entry.tries = 1;
                    entry.due_ns = now_ns + RETRY_NS;
                    probes.push(Probe { key, mac: Some(entry.mac) });
                }
                _ => {}
            }
            let gone = match entry.state {
                State::Failed => entry.due_ns <= now_ns,
                State::Stale => entry.used_ns + unused_ns <= now_ns,
                _ => false,
            };
            if gone {
                view.remove(entry.slot);
                // The router verifies this neighbour no more, so programs in the kernel must stop forwarding to it.
                changes = true;
            }
            !gone
        });
        landed.into_iter().for_each(|key| inner.land(key));
        if changes {
            self.changed();
        }
    }

    /// Calls `each` with every neighbour, its MAC address if it is known, and its state. For operators.
    pub fn for_each(&self, mut each: impl FnMut(Key, Option<Mac>, State)) {
        for (key, entry) in &self.lock().entries {
            let known = !matches!(entry.state, State::Waiting | State::Failed);
            each(*key, known.then_some(entry.mac), entry.state);
        }
    }
}

fn interface_of(key: Key) -> Key {
    Key { address: u128::MAX, v6: true, ..key }
}

impl Inner {
    fn fly(&mut self, flight: Flight) {
        for group in [interface_of(flight.key), flight.key.prefix()] {
            self.in_flight.entry(group).or_default().push(flight);
        }
    }

    fn land(&mut self, key: Key) {
        for group in [interface_of(key), key.prefix()] {
            if let Some(flights) = self.in_flight.get_mut(&group) {
                if let Some(at) = flights.iter().position(|flight| flight.key == key) {
                    flights.swap_remove(at);
                }
                if flights.is_empty() {
                    self.in_flight.remove(&group);
                }
            }
        }
    }

    /// Returns the neighbour of a group that has to give its place to a sender; `None` while there is room.
    fn victim(
        &mut self,
        group: Key,
        limit: usize,
        sender: Sender,
        now_ns: u64,
    ) -> Result<Option<Key>, LimitReached> {
        let Some(flights) = self.in_flight.get(&group).filter(|flights| flights.len() >= limit) else {
            return if limit > 0 { Ok(None) } else { Err(LimitReached) };
        };
        let count = |sender: Sender| flights.iter().filter(|flight| flight.sender == sender).count();
        // The sender of a flight that is chosen at random is likely the one with most of them.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let start = self.random as usize % flights.len();
        let from_start = || flights[start..].iter().chain(&flights[..start]);
        let most = flights[start].sender;
        let is_richer = most != sender && count(most) > count(sender) + 1;
        let may_go = |flight: &&Flight| match is_richer {
            true => flight.sender == most,
            false => now_ns.saturating_sub(flight.since_ns) >= ANSWER_NS,
        };
        from_start().find(may_go).map(|flight| Some(flight.key)).ok_or(LimitReached)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: Mac = Mac([2, 0, 0, 0, 0, 9]);
    const KEY: Key = Key { interface: 3, v6: false, address: 0x0a00_0001 };

    fn ticked(neighbours: &Neighbours, seconds: u64) -> Vec<Probe> {
        let mut probes = Vec::new();
        neighbours.tick(seconds * SECOND, &mut probes);
        probes
    }

    #[test]
    fn a_neighbour_that_never_answers() {
        let table = Neighbours::new(Limits::default());
        assert_eq!(table.get(&KEY), Answer::Unknown);
        assert_eq!(table.request(KEY, Sender::OWN, 0), Ok(Some(Probe { key: KEY, mac: None })));
        assert_eq!(table.request(KEY, Sender::OWN, 0), Ok(None));
        assert_eq!(table.get(&KEY), Answer::Waiting);
        let before = table.generation();
        assert_eq!(ticked(&table, 1), [Probe { key: KEY, mac: None }]);
        assert_eq!(ticked(&table, 2).len(), 1);
        assert_eq!(table.generation(), before);
        assert_eq!(ticked(&table, 3), []);
        assert_eq!(table.get(&KEY), Answer::Failed);
        assert!(table.generation() > before);
        ticked(&table, 6);
        assert_eq!(
            table.get(&KEY),
            Answer::Unknown,
            "a failure is forgotten, so that the neighbour may come back"
        );
    }

    #[test]
    fn a_neighbour_that_answers_is_verified_when_it_is_used_again() {
        let table = Neighbours::new(Limits::default());
        table.request(KEY, Sender::OWN, 0).unwrap();
        assert!(table.learn(KEY, MAC, true, false, SECOND));
        assert_eq!(table.get(&KEY), Answer::Known(MAC));
        assert_eq!(ticked(&table, 10), []);
        assert_eq!(ticked(&table, 32), [], "stale, and not in use");
        assert_eq!(table.get(&KEY), Answer::Known(MAC));
        assert_eq!(ticked(&table, 33), [Probe { key: KEY, mac: Some(MAC) }], "in use: verified");
        assert_eq!(ticked(&table, 34).len(), 1);
        assert!(table.learn(KEY, MAC, true, false, 34 * SECOND));
        assert_eq!(ticked(&table, 40), []);
        ticked(&table, 70);
        ticked(&table, 700);
        assert_eq!(table.get(&KEY), Answer::Unknown, "unused for long");
    }

    #[test]
    fn a_neighbour_that_stops_answering_fails() {
        let table = Neighbours::new(Limits::default());
        table.learn(KEY, MAC, false, true, 0);
        for second in 0..3 {
            let _ = table.get(&KEY);
            assert_eq!(ticked(&table, second), [Probe { key: KEY, mac: Some(MAC) }], "{second}");
        }
        ticked(&table, 3);
        assert_eq!(table.get(&KEY), Answer::Failed);
    }

    #[test]
    fn nobody_who_was_not_looked_for_is_noted_by_a_reply() {
        let table = Neighbours::new(Limits::default());
        assert!(!table.learn(KEY, MAC, true, false, 0));
        assert_eq!(table.get(&KEY), Answer::Unknown);
        assert!(table.learn(KEY, MAC, false, true, 0));
        assert_eq!(table.get(&KEY), Answer::Known(MAC));
        table.lose(KEY, false, 0);
        assert_eq!(table.get(&KEY), Answer::Unknown);
    }

    #[test]
    fn a_scan_takes_no_more_than_its_limits() {
        let limits = Limits { neighbours: 100, requests: 20, requests_prefix: 8, ..Limits::default() };
        let table = Neighbours::new(limits);
        let scan = |prefix: u32| {
            (0..256).filter(|n| table.request(Key::v4(1, prefix + n), Sender::OWN, 0).is_ok()).count()
        };
        assert_eq!(scan(0x0a00_0000), 8, "of one prefix");
        assert_eq!(scan(0x0a00_0100), 8);
        assert_eq!(scan(0x0a00_0200), 4, "of the interface");
        assert!(table.request(Key::v4(2, 5), Sender::OWN, 0).is_ok(), "others go on");
        for second in 1..=7 {
            ticked(&table, second);
        }
        assert_eq!(table.lock().in_flight.len(), 0, "all have landed");
        assert!(table.request(Key::v4(1, 0x0a00_0000), Sender::OWN, 0).is_ok());
        table.forget_interface(1);
        assert_eq!(table.lock().in_flight.len(), 0);
        let all = (0..300).filter(|&n| table.learn(Key::v6(9, n << 64), MAC, true, true, 0)).count();
        assert!((90..=100).contains(&all), "{all} neighbours");
    }
    #[test]
    fn a_place_is_shared_by_senders_and_by_those_that_had_their_time() {
        let limits = Limits { neighbours: 1000, ..Limits::default() };
        let table = Neighbours::new(limits);
        table.set_kernel(1);
        let (scanner, other) = (Sender::of(0, true, 1 << 64), Sender::of(0, true, 2 << 64));
        let key = |n: u128| Key::v6(1, n);
        let waiting = || {
            let mut count = 0;
            table.for_each(|_, _, state| count += usize::from(state == State::Waiting));
            count
        };
        let made = (0..1000).filter(|&n| table.request(key(n), scanner, 0).is_ok()).count();
        assert_eq!((made, waiting()), (64, 64), "no request is taken back before it can be answered");
        // Another sender takes places of the one with the most, until both have the same.
        let made = (1000..2000).filter(|&n| table.request(key(n), other, 0).is_ok()).count();
        assert!((30..=33).contains(&made) && waiting() == 64, "{made}");
        // Later, each request has a place, and one that had its time loses it.
        let mut asked = Vec::new();
        table.take_asked(&mut asked);
        assert!(asked.iter().all(|ask| matches!(ask, Ask::Forget(_))) && asked.len() == made);
        let scan = |n: u128, now_ns| table.request(key(5000 + n), scanner, now_ns).is_ok();
        assert_eq!((0..100).filter(|&n| scan(n, ANSWER_NS)).count(), 64);
        assert_eq!(waiting(), 64);
        table.take_asked(&mut asked);
        assert_eq!(asked.len(), made + 64, "the kernel forgets each that has lost its place");
        // At 2,000 addresses a second, each new neighbour is found that answers within that time.
        let mut now_ns = SECOND;
        for round in 0..500 {
            let wanted = key(100_000 + round);
            assert!(table.request(wanted, scanner, now_ns).is_ok(), "round {round}");
            for n in 0..39 {
                now_ns += 500_000;
                let _ = table.request(key((round + 10) << 20 | n), scanner, now_ns);
                assert_eq!(table.get(&wanted), Answer::Waiting, "round {round}");
            }
            assert!(table.learn(wanted, MAC, true, true, now_ns));
        }
        assert!(waiting() <= 64);
    }

    /// Scans an address each `every_ns`, from the sender that `scanner` returns. Meanwhile it asks for new neighbours one after another.
    /// Each neighbour answers within [`ANSWER_NS`], and must be found.
    fn finds_all_beside(scanner: fn(u128) -> Sender, every_ns: u64) {
        let table = Neighbours::new(Limits { neighbours: 1000, ..Limits::default() });
        let (own, mut now_ns, mut scanned) = (Sender::of(0, true, 2 << 64), SECOND, 0);
        let mut scan = |until_ns: u64, wanted: &Key| {
            while now_ns < until_ns {
                now_ns += every_ns;
                scanned += 1;
                let _ = table.request(Key::v6(1, scanned << 20), scanner(scanned), now_ns);
                assert_ne!(table.get(wanted), Answer::Unknown, "after {scanned} addresses");
            }
        };
        let (known, begin_ns) = (Key::v6(1, 1), SECOND + 5 * ANSWER_NS);
        assert!(table.learn(known, MAC, true, true, SECOND));
        scan(begin_ns, &known);
        for round in 0..100 {
            let (wanted, at_ns) = (Key::v6(1, 2 + round), begin_ns + round as u64 * ANSWER_NS);
            assert!(table.request(wanted, own, at_ns).is_ok(), "round {round}");
            scan(at_ns + ANSWER_NS - every_ns, &wanted);
            assert!(table.learn(wanted, MAC, true, false, at_ns + ANSWER_NS), "round {round}");
        }
        assert!(scanned > 4_000, "{scanned}");
    }

    #[test]
    fn a_scan_keeps_no_neighbour_from_other_senders() {
        // One sender, 100,000 addresses a second; and one of its own for each of 2,000.
        finds_all_beside(|_| Sender::of(0, true, 1 << 64), 10_000);
        finds_all_beside(|at| Sender::of(0, true, (9 + at) << 64), 500_000);
    }
}
