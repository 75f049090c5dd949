//! Which questions the kernel gets, when, and what its answers mean. Does no I/O and has no clock.

use std::collections::{HashMap, HashSet, VecDeque};

use fibula::net::Family;
use netlink_packet_core::{
    NLM_F_APPEND, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_MULTIPART, NLM_F_REPLACE, NLM_F_REQUEST,
};

use super::rules::{self, DEL_RULE, GET_RULE, NEW_RULE, Told};
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
/// How long changes may gather before what they concern is read again.
const GATHER_NS: u64 = 50_000_000;
/// After an answer that failed or was cut, or while changes go on and on: at least this long, and this many times as long as the
/// answers took, so that reading again takes a bounded share of the time.
const LEAST_NS: u64 = 500_000_000;
const REST: u64 = 4;
/// How long the kernel may take for a piece of an answer.
const PATIENCE_NS: u64 = 10_000_000_000;

/// What is to be read.
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

/// A question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Job {
    Objects,
    /// Routes of a table; the first and the last of a family begin and end a pass of marking.
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
    /// What is to be read, and when.
    wanted: Concern,
    due_ns: u64,
    jobs: VecDeque<Job>,
    /// The question that is being answered.
    pending: Option<Job>,
    sequence: u32,
    /// The answer was changed under way, or failed: it is no proof that something is gone.
    is_cut: bool,
    /// When the questions began, and the last answer came.
    began_ns: u64,
    heard_ns: u64,
    /// Until when there is no question.
    rest_ns: u64,
    /// Whether each link is up.
    links: HashMap<u32, bool>,
    /// The kernel lost messages, and those from before are still to come: how a link was then says nothing of how it is.
    is_behind: bool,
    /// IPv4 routes of which the kernel has several with the same prefix and metric; the first counts.
    several: HashSet<(Place, u32)>,
    /// The route that the answer under way told last: another one of its prefix and metric comes next to it.
    answer: Option<(Place, u32)>,
    /// Of the answer under way.
    rules: Told,
}

impl Follower {
    /// Makes a follower that first reads everything.
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
            rules: Told::default(),
        }
    }

    fn want(&mut self, concern: Concern, now_ns: u64) {
        if concern.any() && !self.wanted.any() {
            self.due_ns = now_ns + GATHER_NS;
        }
        self.wanted = self.wanted.with(concern);
    }

    /// The kernel has lost messages: everything is read again.
    pub fn lost(&mut self, rib: &mut Rib, now_ns: u64) {
        let state = &mut rib.feed(self.entrance.feed).state;
        state.count(Count::Lost, 1);
        state.error("the kernel lost messages: reading everything again", now_ns);
        state.enter(Phase::Synchronising, now_ns);
        // The end of the answer under way may have been lost too.
        self.pending = None;
        self.jobs.clear();
        self.links.clear();
        self.is_behind = true;
        self.want(Concern::ALL, now_ns);
    }

    /// Returns a question to send now, if there is one. To be called after each turn of the others.
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
        if let Job::Objects | Job::Routes { first: true, .. } = job {
            rib.begin(self.entrance.feed);
            self.is_cut = false;
        }
        if job == Job::Rules {
            (self.rules, self.is_cut) = (Told::default(), false);
        }
        (self.pending, self.heard_ns, self.answer) = (Some(job), now_ns, None);
        self.sequence = self.sequence.wrapping_add(1).max(1);
        Some(question(job, self.sequence))
    }

    fn plan(&mut self, rib: &mut Rib, now_ns: u64) {
        let wanted = std::mem::take(&mut self.wanted);
        if wanted == Concern::ALL {
            rib.feed(self.entrance.feed).state.forget_overrun();
        }
        self.began_ns = now_ns;
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

    /// Takes a datagram of the kernel in.
    pub fn datagram(&mut self, rib: &mut Rib, bytes: &[u8], now_ns: u64) {
        let mut rest = bytes;
        while let Some((head, body, after)) = netlink::split(rest) {
            match head.kind {
                DONE | ERROR if self.pending.is_some() && head.sequence == self.sequence => {
                    self.answered(rib, head, body, now_ns);
                }
                DONE | ERROR => {}
                _ => self.message(rib, head, body, now_ns),
            }
            rest = after;
        }
        decode(bytes, |event| self.event(&event, now_ns));
    }

    fn message(&mut self, rib: &mut Rib, head: Head, body: &[u8], now_ns: u64) {
        let is_answer = head.flags & NLM_F_MULTIPART != 0 && head.sequence == self.sequence;
        if is_answer {
            self.heard_ns = now_ns;
            self.is_cut |= head.flags & NLM_F_DUMP_INTR != 0;
        }
        if let NEW_RULE | DEL_RULE = head.kind {
            match is_answer {
                true => self.rules.take(body, &self.entrance.tables),
                // There are few, so all are read again.
                false => self.want(Concern { rules: true, ..Concern::NONE }, now_ns),
            }
            return;
        }
        let message = netlink::decode(head.kind, body);
        if let Message::Route(route) = &message
            && is_answer
            && route.target.is_none()
            && self.entrance.place(route).is_some()
        {
            // Another one of its prefix and metric may follow. What was there before goes when it is not told again.
            let state = &mut rib.feed(self.entrance.feed).state;
            state.count(Count::Messages, 1);
            state.count(Count::Unsupported, 1);
            return;
        }
        let (enter, concern) = match &message {
            Message::Route(route) => self.before_insert(rib, route, is_answer, head.flags),
            Message::RouteGone(route) => self.before_remove(rib, route),
            // Routes go with an object without a word; those of a group may change.
            Message::ObjectGone(_) => (true, Concern { v4: true, v6: true, ..Concern::NONE }),
            _ => (true, Concern::NONE),
        };
        self.want(concern, now_ns);
        if !enter {
            return;
        }
        // What is refused at the limit is counted there, and read again when there is room.
        if self.entrance.message(rib, message) == Ok(Some(Effect::Unexpected)) {
            self.want(Concern { v4: true, v6: true, ..Concern::NONE }, now_ns);
        }
    }

    /// Returns whether a route is to be entered: not if it comes after another of the same prefix and metric, which counts.
    ///
    /// One that cannot be forwarded by gives way to the others: it is not entered beside them, and where it may have replaced one of
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
        // Of IPv6, ways with the same prefix and metric are told together.
        if place.1.family() == Family::Ipv6 {
            return enter;
        }
        if is_answer {
            // What notices have told meanwhile is in the answer too, in its right order.
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
            // At its limit, the feed may have refused the one that this one comes after.
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

    /// Returns whether a route is to be removed: not if it is one of several, or only one way of it goes.
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

    /// Links and addresses: what the kernel changes with them without a word.
    fn event(&mut self, event: &Event, now_ns: u64) {
        let concern = match event {
            // How a link was before its first notice is not known.
            Event::Link(_) if self.is_behind => Concern::ALL,
            Event::Link(link) => match self.links.insert(link.index, link.up) {
                Some(before) if before == link.up => return,
                _ => Concern::ALL,
            },
            Event::LinkGone(index) => {
                self.links.remove(index);
                Concern::ALL
            }
            Event::AddressGone(_) => Concern { v4: true, v6: true, ..Concern::NONE },
            // The address may have been the last thing that routes of IPv6 waited for.
            Event::Address(address) if address.ip.is_ipv6() => Concern { v6: true, ..Concern::NONE },
            _ => return,
        };
        self.want(concern, now_ns);
    }

    fn answered(&mut self, rib: &mut Rib, head: Head, body: &[u8], now_ns: u64) {
        let Some(job) = self.pending.take() else { return };
        // The question was sent after the loss, so all messages from before it have come.
        self.is_behind = false;
        self.is_cut |= head.flags & NLM_F_DUMP_INTR != 0;
        let code = body.get(..4).and_then(|bytes| bytes.try_into().ok()).map_or(0, i32::from_ne_bytes);
        match (code.saturating_neg(), job) {
            (0, _) => {}
            // A table that has never had a route; a kernel without next-hop objects.
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
        self.rest_ns = now_ns + LEAST_NS;
    }

    /// Lets time pass. To be called a few times a second.
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

const fn concern_of(job: Job) -> Concern {
    match job {
        Job::Objects => Concern { objects: true, ..Concern::NONE },
        Job::Rules => Concern { rules: true, ..Concern::NONE },
        Job::Routes { family, .. } => {
            let v4 = matches!(family, Family::Ipv4);
            Concern { v4, v6: !v4, ..Concern::NONE }
        }
    }
}

/// Returns a question as bytes.
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
