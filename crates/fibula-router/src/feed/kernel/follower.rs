//! Decides which requests to send to the kernel and when, and interprets the answers. Does no I/O and has no clock.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::IpAddr;

use fibula::net::{Family, IpPrefix};
use netlink_packet_core::{
    NLM_F_APPEND, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_MULTIPART, NLM_F_REPLACE, NLM_F_REQUEST,
};

use super::rules::{self, DEL_RULE, GET_RULE, NEW_RULE, UnheededRules};
use crate::feed::enter::Entrance;
use crate::feed::netlink::{self, Head, Message, RouteMessage};
use crate::feed::path::Path;
use crate::feed::routes::Effect;
use crate::feed::state::{Count, Phase};
use crate::feed::{Place, Rib};
use crate::kernel::netlink::{Event, decode};

const ERROR: u16 = 2;
const DONE: u16 = 3;
const GET_NEXT_HOP: u16 = 106;
/// How long changes may gather before the affected tables are read again.
const GATHER_NS: u64 = 50_000_000;
/// Pauses between readings: at least `LEAST_NS` after an answer that failed or was cut, and always `REST` times as long as the
/// answers took. Thus, reading again takes a bounded share of the time.
const LEAST_NS: u64 = 500_000_000;
const REST: u64 = 4;
/// Most changed routes that are kept while the kernel answers.
const MOST_CHANGED: usize = 1 << 16;
/// How long the kernel may take for a part of an answer.
const PATIENCE_NS: u64 = 10_000_000_000;

/// The tables to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Concern {
    objects: bool,
    v4: bool,
    v6: bool,
    rules: bool,
}

impl Concern {
    const NONE: Self = Self { objects: false, v4: false, v6: false, rules: false };
    const ALL: Self = Self { objects: true, v4: true, v6: true, rules: true };
    /// Routes that the kernel removes without reporting them, after it has reported the cause. The kernel tells its routes at any time,
    /// but its objects only once it has finished such a change, so that they are read first.
    const REMOVED: Self = Self { objects: true, v4: true, v6: true, rules: false };

    const fn any(self) -> bool {
        self.objects || self.v4 || self.v6 || self.rules
    }

    const fn with(self, other: Self) -> Self {
        Self {
            objects: self.objects || other.objects,
            v4: self.v4 || other.v4,
            v6: self.v6 || other.v6,
            rules: self.rules || other.rules,
        }
    }
}

/// A request to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Job {
    Objects,
    /// Routes of a table. The first and the last request of a family begin and end a pass of marking.
    Routes {
        family: Family,
        table: u32,
        first: bool,
        last: bool,
    },
    Rules,
}

/// Follows the kernel's tables.
#[derive(Debug)]
pub struct Follower {
    entrance: Entrance,
    /// The tables to read, and when.
    wanted: Concern,
    due_ns: u64,
    jobs: VecDeque<Job>,
    /// The request that is being answered.
    pending: Option<Job>,
    sequence: u32,
    /// A change has interrupted the answer, so a missing route does not prove that it is gone.
    is_cut: bool,
    /// Time of the first request. `heard_ns` is the time of the last answer.
    began_ns: u64,
    heard_ns: u64,
    /// No request is sent before this time.
    rest_ns: u64,
    /// Whether each link is enabled, and whether it is up.
    links: HashMap<u32, (bool, bool)>,
    /// The kernel has lost messages, and older ones are still to come. Until then, a notice of a link may be out of date.
    is_behind: bool,
    /// IPv4 prefixes and metrics for which the kernel has several routes. The first one is used.
    several: HashSet<(Place, u32)>,
    /// The last route of the present answer. If another route has the same prefix and metric, it comes next.
    answer: Option<(Place, u32)>,
    /// The last place of the present answer, of any type of route.
    last: Option<Place>,
    /// Routes that notices have changed since a reading was wanted, and, before that, since the reading before it was wanted. The
    /// kernel may have read a part of an answer before the change and send it after the notice.
    changed: HashSet<(Place, u32)>,
    changed_before: HashSet<(Place, u32)>,
    /// Next-hop objects that notices have changed since they were asked for. The kernel changes and reads them under one lock, so what
    /// an answer says of them afterwards is what notices have said, or older.
    changed_objects: HashSet<u32>,
    /// Rules of the present answer.
    rules: UnheededRules,
}

impl Follower {
    /// Creates a follower that first reads everything.
    #[must_use]
    pub fn new(entrance: Entrance) -> Self {
        Self {
            entrance,
            wanted: Concern::ALL,
            due_ns: 0,
            jobs: VecDeque::new(),
            pending: None,
            sequence: 0,
            is_cut: false,
            began_ns: 0,
            heard_ns: 0,
            rest_ns: 0,
            links: HashMap::new(),
            is_behind: false,
            several: HashSet::new(),
            answer: None,
            last: None,
            changed: HashSet::new(),
            changed_before: HashSet::new(),
            changed_objects: HashSet::new(),
            rules: UnheededRules::default(),
        }
    }

    fn want(&mut self, concern: Concern, now_ns: u64) {
        if concern.any() && !self.wanted.any() {
            self.due_ns = now_ns + GATHER_NS;
        }
        self.wanted = self.wanted.with(concern);
    }

    /// Notes that the kernel has lost messages. Everything is read again.
    pub fn lost(&mut self, rib: &mut Rib, now_ns: u64) {
        let state = &mut rib.feed(self.entrance.feed).state;
        state.count(Count::Lost, 1);
        state.error("the kernel lost messages: reading everything again", now_ns);
        state.enter(Phase::Synchronising, now_ns);
        // The end of the present answer may have been lost too.
        self.pending = None;
        self.jobs.clear();
        self.links.clear();
        self.is_behind = true;
        self.want(Concern::ALL, now_ns);
    }

    /// Returns a request to send now, if there is one. Call it after each call of the other functions.
    pub fn question(&mut self, rib: &mut Rib, now_ns: u64) -> Option<Vec<u8>> {
        let question = self.next_question(rib, now_ns);
        let is_in_doubt = self.wanted.any() || self.pending.is_some() || !self.jobs.is_empty();
        rib.feed(self.entrance.feed).state.is_in_doubt = is_in_doubt;
        question
    }

    fn next_question(&mut self, rib: &mut Rib, now_ns: u64) -> Option<Vec<u8>> {
        if self.pending.is_some() {
            if now_ns.saturating_sub(self.heard_ns) < PATIENCE_NS {
                return None;
            }
            self.failed(rib, "the kernel does not answer".into(), now_ns);
        }
        if self.jobs.is_empty() && self.wanted.any() && now_ns >= self.due_ns.max(self.rest_ns) {
            self.plan(rib, now_ns);
        }
        let job = self.jobs.pop_front()?;
        // All tables of a family share one pass, because the sweep after the last table removes routes of all of them.
        if let Job::Objects | Job::Routes { first: true, .. } = job {
            rib.begin(self.entrance.feed);
            self.is_cut = false;
        }
        if job == Job::Rules {
            (self.rules, self.is_cut) = (UnheededRules::default(), false);
        }
        (self.pending, self.heard_ns, self.answer, self.last) = (Some(job), now_ns, None, None);
        self.changed_objects.clear();
        // Never 0, because notices that the kernel sends of its own accord have 0.
        self.sequence = self.sequence.wrapping_add(1).max(1);
        Some(question(job, self.sequence))
    }

    fn plan(&mut self, rib: &mut Rib, now_ns: u64) {
        let wanted = std::mem::take(&mut self.wanted);
        // Only a reading of everything shows again what does not fit.
        if wanted == Concern::ALL {
            rib.feed(self.entrance.feed).state.forget_overrun();
        }
        self.began_ns = now_ns;
        self.changed_before = std::mem::take(&mut self.changed);
        if wanted.objects {
            self.jobs.push_back(Job::Objects);
        }
        let tables: Vec<u32> = self.entrance.tables.iter().map(|table| table.0).collect();
        for (family, wanted) in [(Family::Ipv4, wanted.v4), (Family::Ipv6, wanted.v6)] {
            for (at, &table) in tables.iter().enumerate().filter(|_| wanted) {
                let (first, last) = (at == 0, at + 1 == tables.len());
                self.jobs.push_back(Job::Routes { family, table, first, last });
            }
            if wanted {
                self.several.retain(|route| route.0.1.family() != family);
            }
        }
        if wanted.rules {
            self.jobs.push_back(Job::Rules);
        }
    }

    /// Handles a datagram of the kernel.
    pub fn datagram(&mut self, rib: &mut Rib, bytes: &[u8], now_ns: u64) {
        let mut rest = bytes;
        while let Some((head, body, after)) = netlink::split(rest) {
            match head.kind {
                DONE | ERROR if self.pending.is_some() && head.sequence == self.sequence => {
                    self.answered(rib, head, body, now_ns);
                }
                // The end of an answer that was given up.
                DONE | ERROR => {}
                _ => self.message(rib, head, body, now_ns),
            }
            rest = after;
        }
        decode(bytes, |event| self.event(&event, now_ns));
    }

    fn message(&mut self, rib: &mut Rib, head: Head, body: &[u8], now_ns: u64) {
        let is_answer = head.flags & NLM_F_MULTIPART != 0;
        if is_answer {
            // An answer that was given up is older than notices that have come since.
            if self.pending.is_none() || head.sequence != self.sequence {
                return;
            }
            self.heard_ns = now_ns;
            self.is_cut |= head.flags & NLM_F_DUMP_INTR != 0;
        }
        if let NEW_RULE | DEL_RULE = head.kind {
            match is_answer {
                true => self.rules.take(body, &self.entrance.tables),
                // There are few rules, so all are read again.
                false => self.want(Concern { rules: true, ..Concern::NONE }, now_ns),
            }
            return;
        }
        let message = netlink::decode(head.kind, body);
        if let Message::Route(route) | Message::RouteGone(route) = &message {
            let concern = self.doubts(rib, route, is_answer, head.kind == libc::RTM_DELROUTE);
            self.want(concern, now_ns);
        }
        if let Message::Route(route) = &message
            && is_answer
            && route.target.is_none()
            && self.entrance.place(route).is_some()
        {
            // A usable route of the same prefix and metric may follow. An earlier route is removed by the sweep, unless it is
            // sent again.
            let state = &mut rib.feed(self.entrance.feed).state;
            state.count(Count::Messages, 1);
            state.count(Count::Unsupported, 1);
            return;
        }
        let (enter, concern) = match &message {
            Message::Route(route) => self.before_insert(rib, route, is_answer, head.flags),
            Message::RouteGone(route) => self.before_remove(rib, route),
            Message::Object(id, _) if is_answer => (!self.changed_objects.contains(id), Concern::NONE),
            Message::Object(id, _) => {
                self.changes_object(*id);
                (true, Concern::NONE)
            }
            // The kernel does not report the routes that are removed with an object, and routes of a group may change.
            Message::ObjectGone(id) => {
                self.changes_object(*id);
                (true, Concern::REMOVED)
            }
            _ => (true, Concern::NONE),
        };
        self.want(concern, now_ns);
        if !enter {
            return;
        }
        // Ignore refusals at a limit. They are counted, and the routes are read again when there is room.
        if self.entrance.message(rib, message) == Ok(Some(Effect::Unexpected)) {
            self.want(Concern { v4: true, v6: true, ..Concern::NONE }, now_ns);
        }
    }

    /// Notes that a notice changes a next-hop object.
    fn changes_object(&mut self, id: u32) {
        if self.pending != Some(Job::Objects) {
            return;
        }
        if self.changed_objects.len() < MOST_CHANGED {
            self.changed_objects.insert(id);
        } else {
            self.is_cut = true;
        }
    }

    /// Returns what to read again because an answer and a notice came in another order than the kernel's changes: since Linux 6.9,
    /// the kernel changes its routes while it answers.
    fn doubts(&mut self, rib: &Rib, route: &RouteMessage, is_answer: bool, is_gone: bool) -> Concern {
        let Some(place) = self.entrance.place(route) else { return Concern::NONE };
        let family = place.1.family();
        let (concern, key) = (of_family(family), (place, route.metric));
        if is_answer {
            self.last = Some(place);
            let is_changed = self.changed.contains(&key) || self.changed_before.contains(&key);
            // Which of the two is newer is not known. The next answer will say.
            return if is_changed && !self.is_same(rib, place, route) { concern } else { Concern::NONE };
        }
        let is_read = matches!(self.pending, Some(Job::Routes { family: of, .. }) if of == family);
        if self.wanted.any() || self.pending.is_some() || !self.jobs.is_empty() {
            if self.changed.len() < MOST_CHANGED {
                self.changed.insert(key);
            } else {
                self.is_cut |= is_read;
            }
        }
        // The next part of an answer begins after so many routes of an address (IPv4) or of the table (IPv6). If one of them has gone,
        // it leaves another out.
        let leaves_out = |last: Place| {
            last.0 == place.0 && (family == Family::Ipv6 || first_address(last.1) == first_address(place.1))
        };
        if is_gone && is_read && self.last.is_some_and(leaves_out) {
            self.is_cut = true;
            return concern;
        }
        Concern::NONE
    }

    /// Returns whether to enter a route. A route is not entered after another one of the same prefix and metric, because the
    /// kernel uses the first.
    ///
    /// A route that is not supported gives way to the others. It is not entered next to them, and if it may have replaced one of
    /// them, they are read again.
    fn before_insert(
        &mut self,
        rib: &Rib,
        route: &RouteMessage,
        is_answer: bool,
        flags: u16,
    ) -> (bool, Concern) {
        let enter = (true, Concern::NONE);
        let Some(place) = self.entrance.place(route) else { return enter };
        // For IPv6, the kernel reports all ways with the same prefix and metric in one message.
        if place.1.family() == Family::Ipv6 {
            return enter;
        }
        if is_answer {
            // The answer is in the kernel's order, and also has the changes that notices have reported meanwhile.
            let is_second = self.answer.replace((place, route.metric)) == Some((place, route.metric));
            if is_second {
                self.several.insert((place, route.metric));
            }
            return (!is_second, Concern::NONE);
        }
        if self.is_same(rib, place, route) {
            return enter;
        }
        if route.target.is_none() && self.several.contains(&(place, route.metric)) {
            return (false, Concern { v4: true, ..Concern::NONE });
        }
        let is_second = flags & NLM_F_APPEND != 0;
        if rib.path_of(self.entrance.feed, place, route.metric).is_none() {
            // At its limit, the feed may have refused the first route. In that case, this one must not take its place.
            let is_overrun = rib.feeds()[self.entrance.feed].state.is_overrun;
            return (!(is_overrun && is_second), Concern::NONE);
        }
        let is_one_of_several = flags & NLM_F_REPLACE == 0;
        if is_one_of_several {
            self.several.insert((place, route.metric));
        }
        (!(is_second || is_one_of_several && route.target.is_none()), Concern::NONE)
    }

    fn is_same(&self, rib: &Rib, place: Place, route: &RouteMessage) -> bool {
        let path: Option<Path> = route.target.clone().map(|target| self.entrance.path(place.0, target));
        let known = rib.path_of(self.entrance.feed, place, route.metric);
        path.as_ref() == known
    }

    /// Returns whether to remove a route. It is not removed if it is one of several, or if only one of its ways is removed.
    fn before_remove(&self, rib: &Rib, route: &RouteMessage) -> (bool, Concern) {
        let Some(place) = self.entrance.place(route) else { return (true, Concern::NONE) };
        let is_v4 = place.1.family() == Family::Ipv4;
        let concern = Concern { v4: is_v4, v6: !is_v4, ..Concern::NONE };
        if self.several.contains(&(place, route.metric)) {
            return (false, concern);
        }
        match rib.path_of(self.entrance.feed, place, route.metric) {
            Some(_) if self.is_same(rib, place, route) => (true, Concern::NONE),
            Some(_) => (false, concern),
            None => (false, Concern::NONE),
        }
    }

    /// Handles an event of a link or an address, because the kernel changes routes with it without reporting them.
    fn event(&mut self, event: &Event, now_ns: u64) {
        let concern = match event {
            // A notice from before the loss may be out of date, so its state must not be trusted.
            Event::Link(_) if self.is_behind => Concern::ALL,
            Event::Link(link) => {
                // A device that is set down without a carrier loses its routes too.
                let state = (link.is_enabled, link.up);
                match self.links.insert(link.index, state) {
                    Some(before) if before == state => return,
                    _ => Concern::ALL,
                }
            }
            Event::LinkGone(index) => {
                self.links.remove(index);
                Concern::ALL
            }
            Event::AddressGone(_) => Concern::REMOVED,
            // IPv6 routes may have waited for this address.
            Event::Address(address) if address.ip.is_ipv6() => Concern { v6: true, ..Concern::NONE },
            _ => return,
        };
        self.want(concern, now_ns);
    }

    fn answered(&mut self, rib: &mut Rib, head: Head, body: &[u8], now_ns: u64) {
        let Some(job) = self.pending.take() else { return };
        // The request was sent after the loss, so all messages from before the loss have arrived.
        self.is_behind = false;
        self.is_cut |= head.flags & NLM_F_DUMP_INTR != 0;
        let code = body.get(..4).and_then(|bytes| bytes.try_into().ok()).map_or(0, i32::from_ne_bytes);
        match (code.saturating_neg(), job) {
            (0, _) => {}
            // A table that has never had a route, or a kernel without next-hop objects.
            (libc::ENOENT, Job::Routes { .. })
            | (libc::EOPNOTSUPP | libc::EINVAL | libc::ENOENT, Job::Objects)
            // A kernel with one table.
            | (libc::EOPNOTSUPP | libc::EAFNOSUPPORT, Job::Rules) => {}
            (code, _) => {
                let reason = std::io::Error::from_raw_os_error(code);
                return self.failed(rib, format!("the kernel refuses to tell its routes: {reason}"), now_ns);
            }
        }
        let feed = self.entrance.feed;
        if !self.is_cut {
            match job {
                Job::Objects => rib.sweep_objects(feed),
                Job::Routes { family, last: true, .. } => {
                    rib.sweep(feed, Some(family), Count::Swept);
                }
                Job::Routes { .. } => {}
                Job::Rules => rib.feed(feed).state.rules = self.rules.finish(),
            }
        } else if let Job::Objects | Job::Rules | Job::Routes { last: true, .. } = job {
            self.want(concern_of(job), now_ns);
        }
        if self.jobs.is_empty() && !self.wanted.any() {
            (self.changed, self.changed_before) = (HashSet::new(), HashSet::new());
        }
        if self.jobs.is_empty() {
            let took = now_ns.saturating_sub(self.began_ns);
            self.rest_ns = now_ns + (took * REST).max(if self.is_cut { LEAST_NS } else { 0 });
            let state = &mut rib.feed(feed).state;
            state.count(Count::Resynchronised, 1);
            if !self.wanted.any() || !self.is_cut {
                state.enter(Phase::Established, now_ns);
            }
        }
    }

    fn failed(&mut self, rib: &mut Rib, reason: String, now_ns: u64) {
        let state = &mut rib.feed(self.entrance.feed).state;
        state.error(reason, now_ns);
        state.enter(Phase::Synchronising, now_ns);
        self.pending = None;
        self.jobs.clear();
        self.want(Concern::ALL, now_ns);
        // Wait before the next attempt, because a kernel that refuses would otherwise get requests in a loop.
        self.rest_ns = now_ns + LEAST_NS;
    }

    /// Runs the timers. Call it a few times a second.
    pub fn tick(&mut self, rib: &mut Rib, now_ns: u64) {
        let feed = self.entrance.feed;
        let state = &mut rib.feed(feed).state;
        state.tick(now_ns);
        let is_overrun = state.is_overrun;
        if std::mem::take(&mut state.is_suspected) {
            self.want(Concern::ALL, now_ns);
        }
        if is_overrun && self.pending.is_none() && self.jobs.is_empty() && rib.has_room_again(feed) {
            self.want(Concern::ALL, now_ns);
        }
    }
}

const fn of_family(family: Family) -> Concern {
    let v4 = matches!(family, Family::Ipv4);
    Concern { v4, v6: !v4, ..Concern::NONE }
}

/// Returns the first address of a prefix.
fn first_address(prefix: IpPrefix) -> IpAddr {
    match prefix {
        IpPrefix::V4(prefix) => IpAddr::V4(prefix.addr().into()),
        IpPrefix::V6(prefix) => IpAddr::V6(prefix.addr().into()),
    }
}

const fn concern_of(job: Job) -> Concern {
    match job {
        Job::Objects => Concern { objects: true, ..Concern::NONE },
        Job::Rules => Concern { rules: true, ..Concern::NONE },
        Job::Routes { family, .. } => of_family(family),
    }
}

/// Returns a request as bytes.
fn question(job: Job, sequence: u32) -> Vec<u8> {
    let (kind, body) = match job {
        Job::Objects => (GET_NEXT_HOP, vec![0; 8]),
        // Of all families.
        Job::Rules => (GET_RULE, vec![0; rules::HEADER]),
        Job::Routes { family, table, .. } => {
            let family = if family == Family::Ipv4 { libc::AF_INET } else { libc::AF_INET6 };
            let mut body = vec![family as u8];
            body.resize(12, 0);
            body.extend(8u16.to_ne_bytes());
            body.extend(libc::RTA_TABLE.to_ne_bytes());
            body.extend(table.to_ne_bytes());
            (libc::RTM_GETROUTE, body)
        }
    };
    let mut bytes = ((netlink::HEADER + body.len()) as u32).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend((NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend(body);
    bytes
}
