use super::*;
use crate::feed::enter::Entrance;
use crate::feed::netlink::number;
use crate::feed::netlink::tests::{attribute, message, object_body, route_body};
use crate::feed::routes::Routes;
use crate::feed::state::{Count, Phase};
use crate::feed::{Choice, Path, Rib};
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

const SECOND: u64 = 1_000_000_000;
const MULTI: u16 = 2;

/// A kernel that answers with the messages it is given.
struct Fake {
    rib: Rib,
    follower: Follower,
    now_ns: u64,
    v4: Vec<Vec<u8>>,
    objects: Vec<Vec<u8>>,
    rules: Vec<Vec<u8>>,
    questions: Vec<u16>,
    /// Flags of the next answer, and the error at its end.
    flags: u16,
    error: i32,
}

impl Fake {
    fn new() -> Self {
        let entrance = Entrance { feed: 0, tables: vec![(254, 0)], has_metrics: true };
        Self {
            rib: Rib::new(vec![Routes::new("kernel", 20, 100, 1)]),
            follower: Follower::new(entrance),
            now_ns: 0,
            v4: Vec::new(),
            objects: Vec::new(),
            rules: Vec::new(),
            questions: Vec::new(),
            flags: 0,
            error: 0,
        }
    }

    fn tell(&mut self, bytes: &[u8]) {
        self.follower.datagram(&mut self.rib, bytes, self.now_ns);
    }

    fn event(&mut self, kind: u16, flags: u16, body: &[u8]) {
        self.tell(&message(kind, flags, 0, body));
    }

    /// Lets time pass, and answers all questions. Returns the types of the questions.
    fn pass(&mut self, ns: u64) -> Vec<u16> {
        self.now_ns += ns;
        while let Some(question) = self.follower.question(&mut self.rib, self.now_ns) {
            let kind = u16::from_ne_bytes([question[4], question[5]]);
            let flags = u16::from_ne_bytes([question[6], question[7]]);
            let sequence = u32::from_ne_bytes([question[8], question[9], question[10], question[11]]);
            self.questions.push(kind);
            // Nothing but dumps: the kernel's tables are read and not written.
            assert_eq!(i32::from(flags), libc::NLM_F_REQUEST | libc::NLM_F_DUMP, "{question:?}");
            let (bodies, new) = match (kind, question[16]) {
                (26, 2) => (self.v4.clone(), libc::RTM_NEWROUTE),
                (26, _) => (Vec::new(), libc::RTM_NEWROUTE),
                (34, _) => (self.rules.clone(), 32),
                (106, _) => (self.objects.clone(), number::NEW_NEXT_HOP),
                _ => panic!("{question:?}"),
            };
            for body in bodies {
                self.tell(&message(new, MULTI | self.flags, sequence, &body));
            }
            let error = std::mem::take(&mut self.error);
            self.tell(&message(
                if error == 0 { 3 } else { 2 },
                MULTI | self.flags,
                sequence,
                &(-error).to_ne_bytes(),
            ));
            self.flags = 0;
        }
        std::mem::take(&mut self.questions)
    }

    fn gateway(&mut self, prefix: &str) -> Option<u8> {
        for number in self.rib.take_fresh() {
            self.rib.set_fresh(number, true);
        }
        let Some(Choice::Path(number)) = self.rib.choose((0, prefix.parse().unwrap())) else { return None };
        match self.rib.expand(number)? {
            Path::Ways(ways) => match ways[0].gateway? {
                IpAddr::V4(ip) => Some(ip.octets()[3]),
                IpAddr::V6(_) => None,
            },
            _ => None,
        }
    }
}

fn route(prefix: &str, last: u8, metric: u32) -> Vec<u8> {
    let (three, metric) = (3u32.to_ne_bytes(), metric.to_ne_bytes());
    let attributes =
        [(libc::RTA_GATEWAY, &[192, 0, 2, last][..]), (libc::RTA_OIF, &three), (libc::RTA_PRIORITY, &metric)];
    route_body(prefix, 1, &attributes)
}

fn link(up: bool) -> Vec<u8> {
    let flags: u32 = if up { 0x1_0001 } else { 1 };
    let mut body = vec![0, 0, 1, 0, 3, 0, 0, 0];
    body.extend(flags.to_ne_bytes());
    body.extend([0; 4]);
    attribute(&mut body, 3, b"eth0\0");
    attribute(&mut body, 4, &1500u32.to_ne_bytes());
    body
}

const ALL: [u16; 4] = [106, 26, 26, 34];
const NOTHING: [u16; 0] = [];

#[test]
fn everything_is_read_and_then_followed() {
    let mut fake = Fake::new();
    fake.v4 = vec![route("10.1.0.0/16", 1, 0), route("10.2.0.0/16", 2, 0)];
    assert_eq!(fake.pass(0), ALL);
    assert_eq!(fake.rib.feeds()[0].state.phase, Phase::Established);
    assert_eq!((fake.gateway("10.1.0.0/16"), fake.gateway("10.2.0.0/16")), (Some(1), Some(2)));
    fake.event(libc::RTM_NEWROUTE, 0x100, &route("10.1.0.0/16", 5, 0));
    fake.event(libc::RTM_NEWROUTE, 0x600, &route("10.2.0.0/16", 7, 50));
    assert_eq!((fake.gateway("10.1.0.0/16"), fake.gateway("10.2.0.0/16")), (Some(5), Some(2)));
    fake.event(libc::RTM_DELROUTE, 0, &route("10.2.0.0/16", 2, 0));
    fake.event(libc::RTM_DELROUTE, 0, &route("10.1.0.0/16", 5, 0));
    assert_eq!((fake.gateway("10.1.0.0/16"), fake.gateway("10.2.0.0/16")), (None, Some(7)));
    fake.event(libc::RTM_DELROUTE, 0, &route("10.9.0.0/16", 5, 0));
    assert_eq!(fake.pass(SECOND), NOTHING, "nothing is unclear");
}

#[test]
fn what_goes_without_a_word_is_noticed() {
    let mut fake = Fake::new();
    fake.v4 = vec![route("10.1.0.0/16", 1, 0)];
    let by_object = route_body("10.3.0.0/16", 1, &[(number::RTA_NH_ID, &7u32.to_ne_bytes())]);
    fake.v4.push(by_object);
    fake.objects = vec![object_body(7, &[(number::NHA_GATEWAY, &[192, 0, 2, 7])])];
    fake.event(libc::RTM_NEWLINK, 0, &link(true));
    assert_eq!(fake.pass(0), ALL);
    assert_eq!((fake.gateway("10.1.0.0/16"), fake.gateway("10.3.0.0/16")), (Some(1), Some(7)));
    // The object is removed, and the kernel does not report its route.
    fake.v4.pop();
    fake.objects.clear();
    fake.event(number::DEL_NEXT_HOP, 0, &object_body(7, &[]));
    assert_eq!(fake.pass(0), NOTHING, "changes gather");
    assert_eq!(fake.pass(SECOND), [106, 26, 26], "objects first: their answer waits for the removal's end");
    assert_eq!((fake.gateway("10.1.0.0/16"), fake.gateway("10.3.0.0/16")), (Some(1), None));
    assert_eq!(fake.rib.feeds()[0].len(), 1);
    // The link goes down: its routes go.
    fake.event(libc::RTM_NEWLINK, 0, &link(true));
    assert_eq!(fake.pass(SECOND), NOTHING);
    fake.v4.clear();
    fake.event(libc::RTM_NEWLINK, 0, &link(false));
    assert_eq!(fake.pass(SECOND), ALL);
    assert_eq!(fake.rib.feeds()[0].state.counted(Count::Swept), 2);
    fake.event(libc::RTM_NEWLINK, 0, &link(true));
    assert_eq!(fake.pass(SECOND), ALL, "routes of IPv6 come back");
    let mut address = vec![2, 24, 0, 0, 3, 0, 0, 0];
    attribute(&mut address, 2, &[192, 0, 2, 1]);
    fake.event(libc::RTM_DELADDR, 0, &address);
    assert_eq!(fake.pass(SECOND), [106, 26, 26]);
    // Without a carrier, the link is not up before and after it is set down, but then its routes go.
    fake.event(libc::RTM_NEWLINK, 0, &link(false));
    assert_eq!(fake.pass(SECOND), ALL);
    let mut down = link(false);
    down[8..12].fill(0);
    fake.event(libc::RTM_NEWLINK, 0, &down);
    assert_eq!(fake.pass(SECOND), ALL);
}

#[test]
fn lost_cut_and_refused_answers_prove_nothing() {
    let mut fake = Fake::new();
    fake.v4 = vec![route("10.1.0.0/16", 1, 0)];
    fake.pass(0);
    // Changed under way: nothing is swept, and it is read again.
    fake.v4.clear();
    fake.follower.lost(&mut fake.rib, fake.now_ns);
    fake.flags = 0x10;
    assert_eq!(fake.pass(SECOND), ALL);
    assert_eq!(fake.rib.feeds()[0].len(), 0, "objects were cut, routes not");
    assert_eq!(fake.pass(SECOND), [106]);
    fake.v4 = vec![route("10.1.0.0/16", 1, 0)];
    fake.follower.lost(&mut fake.rib, fake.now_ns);
    assert_eq!(fake.rib.feeds()[0].state.phase, Phase::Synchronising);
    assert_eq!(fake.pass(SECOND), ALL);
    assert_eq!(fake.rib.feeds()[0].state.phase, Phase::Established);
    fake.v4.clear();
    fake.follower.lost(&mut fake.rib, fake.now_ns);
    fake.error = libc::ENOMEM;
    assert_eq!(fake.pass(SECOND), [106], "refused: tried again later");
    assert_eq!(fake.rib.feeds()[0].len(), 1);
    assert_eq!(fake.pass(SECOND), ALL);
    assert_eq!(fake.rib.feeds()[0].len(), 0);
    // A kernel without next-hop objects.
    fake.follower.lost(&mut fake.rib, fake.now_ns);
    fake.error = libc::EOPNOTSUPP;
    assert_eq!(fake.pass(SECOND), ALL);
    // A kernel that does not answer gets the request again.
    fake.follower.lost(&mut fake.rib, fake.now_ns);
    fake.now_ns += SECOND;
    assert!(fake.follower.question(&mut fake.rib, fake.now_ns).is_some());
    assert!(fake.follower.question(&mut fake.rib, fake.now_ns + SECOND).is_none());
    assert_eq!(fake.pass(11 * SECOND), NOTHING);
    assert_eq!(fake.pass(SECOND), ALL);
}

#[test]
fn a_link_may_have_changed_while_messages_were_lost() {
    let mut fake = Fake::new();
    fake.pass(0);
    fake.event(libc::RTM_NEWLINK, 0, &link(true));
    assert_eq!(fake.pass(SECOND), ALL, "how it was before is not known");
    fake.event(libc::RTM_NEWLINK, 0, &link(true));
    assert_eq!(fake.pass(SECOND), NOTHING);
    // It goes down and comes up again: the first notice is from before the loss, the second is lost.
    fake.follower.lost(&mut fake.rib, fake.now_ns);
    fake.event(libc::RTM_NEWLINK, 0, &link(false));
    assert_eq!(fake.pass(SECOND), ALL);
    fake.event(libc::RTM_NEWLINK, 0, &link(false));
    assert_eq!(fake.pass(SECOND), ALL, "its routes go without a word");
    fake.event(libc::RTM_NEWLINK, 0, &link(false));
    assert_eq!(fake.pass(SECOND), NOTHING);
}

#[test]
fn of_several_routes_with_one_metric_the_first_counts() {
    let mut fake = Fake::new();
    fake.v4 = vec![route("10.1.0.0/16", 1, 0), route("10.1.0.0/16", 2, 0)];
    fake.pass(0);
    assert_eq!(fake.gateway("10.1.0.0/16"), Some(1));
    // The first goes: only the kernel knows what is left.
    fake.v4.remove(0);
    fake.event(libc::RTM_DELROUTE, 0, &route("10.1.0.0/16", 1, 0));
    assert_eq!(fake.pass(SECOND), [26]);
    assert_eq!(fake.gateway("10.1.0.0/16"), Some(2));
    fake.event(libc::RTM_NEWROUTE, 0xc00, &route("10.1.0.0/16", 3, 0));
    assert_eq!(fake.gateway("10.1.0.0/16"), Some(2), "appended");
    fake.event(libc::RTM_NEWROUTE, 0x400, &route("10.1.0.0/16", 4, 0));
    assert_eq!(fake.gateway("10.1.0.0/16"), Some(4), "put in front");
    fake.event(libc::RTM_DELROUTE, 0, &route("10.1.0.0/16", 4, 0));
    assert_eq!(fake.pass(SECOND), [26]);
    assert_eq!(fake.gateway("10.1.0.0/16"), Some(2));
}

#[test]
fn an_answer_has_the_order_that_notices_before_it_lack() {
    let [one, two] = [1, 2].map(|last| route("10.1.0.0/16", last, 0));
    let mut fake = Fake::new();
    fake.v4 = vec![one.clone()];
    fake.pass(0);
    fake.event(libc::RTM_NEWROUTE, 0x400, &two);
    fake.event(libc::RTM_DELROUTE, 0, &two);
    fake.now_ns += SECOND;
    let question = fake.follower.question(&mut fake.rib, fake.now_ns).unwrap();
    // Appended before the answer comes to it, which then has both.
    fake.event(libc::RTM_NEWROUTE, 0xc00, &two);
    assert_eq!(fake.gateway("10.1.0.0/16"), Some(2), "that it had gone is not known");
    let sequence = u32::from_ne_bytes([question[8], question[9], question[10], question[11]]);
    for body in [&one, &two] {
        fake.tell(&message(libc::RTM_NEWROUTE, MULTI, sequence, body));
    }
    fake.tell(&message(3, MULTI, sequence, &[0; 4]));
    assert_eq!(fake.gateway("10.1.0.0/16"), Some(1));
}

#[test]
fn an_answer_may_be_older_than_notices_before_it() {
    let mut fake = Fake::new();
    fake.v4 = ["10.1.0.0/16", "10.1.0.0/24", "10.2.0.0/16"].map(|prefix| route(prefix, 1, 0)).into();
    fake.pass(0);
    // Asks for all, and answers up to the question about IPv4. Returns its number.
    let ask = |fake: &mut Fake| {
        fake.follower.lost(&mut fake.rib, fake.now_ns);
        fake.now_ns += SECOND;
        loop {
            let question = fake.follower.question(&mut fake.rib, fake.now_ns).unwrap();
            let sequence = u32::from_ne_bytes([question[8], question[9], question[10], question[11]]);
            if question[4] == 26 {
                return sequence;
            }
            fake.tell(&message(3, MULTI, sequence, &[0; 4]));
        }
    };
    // A route goes after the kernel has read it for the answer, and before the answer is in the queue.
    let sequence = ask(&mut fake);
    let answer = fake.v4.clone();
    fake.v4.remove(2);
    fake.event(libc::RTM_DELROUTE, 0, &route("10.2.0.0/16", 1, 0));
    for body in &answer {
        fake.tell(&message(libc::RTM_NEWROUTE, MULTI, sequence, body));
    }
    fake.tell(&message(3, MULTI, sequence, &[0; 4]));
    fake.pass(0);
    assert_eq!(fake.pass(SECOND), [26], "the answer and the notice contradict each other");
    assert_eq!(fake.gateway("10.2.0.0/16"), None);
    // The kernel goes on after the second route of an address when the first is gone: it leaves out what is now the second.
    let sequence = ask(&mut fake);
    fake.tell(&message(libc::RTM_NEWROUTE, MULTI, sequence, &fake.v4[0]));
    let gone = fake.v4.remove(0);
    fake.event(libc::RTM_DELROUTE, 0, &gone);
    fake.tell(&message(3, MULTI, sequence, &[0; 4]));
    assert_eq!(fake.gateway("10.1.0.0/24"), Some(1), "that it is not in the answer proves nothing");
    fake.pass(0);
    assert_eq!(fake.pass(SECOND), [26]);
    assert_eq!((fake.gateway("10.1.0.0/16"), fake.gateway("10.1.0.0/24")), (None, Some(1)));
    assert_eq!(fake.pass(SECOND), NOTHING);
}

#[test]
fn routes_that_go_with_their_object_are_not_kept() {
    let device = 3u32.to_ne_bytes();
    let object = object_body(1, &[(number::NHA_OIF, &device), (number::NHA_GATEWAY, &[192, 0, 2, 1])]);
    let by = |prefix| route_body(prefix, 1, &[(number::RTA_NH_ID, &1u32.to_ne_bytes())]);
    let mut fake = Fake::new();
    (fake.v4, fake.objects) = (vec![by("10.1.0.0/16"), route("10.2.0.0/16", 2, 0)], vec![object.clone()]);
    fake.pass(0);
    assert_eq!((fake.gateway("10.1.0.0/16"), fake.rib.feeds()[0].len()), (Some(1), 2));
    // The kernel reports the object alone.
    fake.v4.remove(0);
    fake.objects.clear();
    fake.event(number::DEL_NEXT_HOP, 0, &object);
    fake.pass(0);
    assert_ne!(fake.pass(SECOND), NOTHING);
    assert_eq!((fake.gateway("10.1.0.0/16"), fake.gateway("10.2.0.0/16")), (None, Some(2)));
    assert_eq!(fake.rib.feeds()[0].len(), 1);
}

#[test]
fn objects_of_an_answer_may_be_older_than_notices_before_it() {
    let object = |id: u32, last: u8| {
        let device = 3u32.to_ne_bytes();
        object_body(id, &[(number::NHA_OIF, &device), (number::NHA_GATEWAY, &[192, 0, 2, last])])
    };
    let by = |id: u32| route_body(&format!("10.{id}.0.0/16"), 1, &[(number::RTA_NH_ID, &id.to_ne_bytes())]);
    let sequence =
        |question: &[u8]| u32::from_ne_bytes([question[8], question[9], question[10], question[11]]);
    let mut fake = Fake::new();
    (fake.v4, fake.objects) = (vec![by(1), by(2)], vec![object(1, 1), object(2, 1)]);
    fake.pass(0);
    assert_eq!((fake.gateway("10.1.0.0/16"), fake.gateway("10.2.0.0/16")), (Some(1), Some(1)));
    fake.follower.lost(&mut fake.rib, fake.now_ns);
    fake.now_ns += SECOND;
    let first = sequence(&fake.follower.question(&mut fake.rib, fake.now_ns).unwrap());
    // They change after the kernel has read them for the answer, and before the answer is in the queue.
    let answer = [object(1, 1), object(2, 1)];
    fake.event(number::NEW_NEXT_HOP, 0x500, &object(1, 2));
    fake.event(number::DEL_NEXT_HOP, 0, &object(2, 1));
    for body in &answer {
        fake.tell(&message(number::NEW_NEXT_HOP, MULTI, first, body));
    }
    assert_eq!((fake.gateway("10.1.0.0/16"), fake.gateway("10.2.0.0/16")), (Some(2), None));
    // The rest of an answer that was given up comes after the next question.
    fake.follower.lost(&mut fake.rib, fake.now_ns);
    fake.tell(&message(number::NEW_NEXT_HOP, MULTI, first, &answer[0]));
    fake.now_ns += SECOND;
    let second = sequence(&fake.follower.question(&mut fake.rib, fake.now_ns).unwrap());
    fake.tell(&message(number::NEW_NEXT_HOP, MULTI, first, &answer[0]));
    fake.tell(&message(3, MULTI, first, &[0; 4]));
    assert_eq!(fake.gateway("10.1.0.0/16"), Some(2));
    fake.tell(&message(number::NEW_NEXT_HOP, MULTI, second, &object(1, 3)));
    fake.tell(&message(3, MULTI, second, &[0; 4]));
    assert_eq!(fake.gateway("10.1.0.0/16"), Some(3));
}

#[test]
fn a_vrf_that_was_full_is_read_again_when_it_has_room() {
    let mut fake = Fake::new();
    fake.rib.limit_vrfs(vec![Some(2)]);
    fake.v4 = (1..5).map(|n| route(&format!("10.{n}.0.0/16"), n, 0)).collect();
    fake.pass(0);
    assert_eq!(fake.rib.feeds()[0].len(), 2);
    assert!(fake.rib.feeds()[0].state.is_overrun);
    let tick = |fake: &mut Fake| fake.follower.tick(&mut fake.rib, fake.now_ns);
    tick(&mut fake);
    assert_eq!(fake.pass(SECOND), NOTHING, "there is no room yet");
    fake.rib.limit_vrfs(vec![Some(20)]);
    tick(&mut fake);
    assert_eq!(fake.pass(SECOND), ALL);
    assert_eq!(fake.rib.feeds()[0].len(), 4);
    assert!(!fake.rib.feeds()[0].state.is_overrun && fake.rib.feeds()[0].state.full_vrfs.is_empty());
}

#[test]
fn a_route_that_cannot_be_forwarded_by_gives_way_to_those_beside_it() {
    // `throw`, with the same prefix and metric.
    let throw = || route_body("10.1.0.0/16", 9, &[]);
    let mut fake = Fake::new();
    fake.v4 = vec![route("10.1.0.0/16", 1, 0)];
    fake.pass(0);
    fake.v4.insert(0, throw());
    fake.event(libc::RTM_NEWROUTE, 0x400, &throw());
    assert_eq!(fake.gateway("10.1.0.0/16"), Some(1), "put in front");
    // Another one replaces the first: only the kernel knows which.
    fake.event(libc::RTM_NEWROUTE, 0x500, &throw());
    assert_eq!(fake.gateway("10.1.0.0/16"), Some(1));
    assert_eq!(fake.pass(SECOND), [26]);
    assert_eq!(fake.gateway("10.1.0.0/16"), Some(1), "what a reading tells");
    // Alone, it is not a route.
    fake.v4.pop();
    fake.event(libc::RTM_DELROUTE, 0, &route("10.1.0.0/16", 1, 0));
    fake.pass(SECOND);
    assert_eq!(fake.gateway("10.1.0.0/16"), None);
}

#[test]
fn damaged_datagrams_do_no_harm() {
    let bytes = [
        message(libc::RTM_NEWROUTE, 0x600, 0, &route("10.1.0.0/16", 1, 0)),
        message(libc::RTM_NEWLINK, 0, 0, &link(true)),
        message(3, 0, 1, &[0; 4]),
    ]
    .concat();
    for at in 0..bytes.len() {
        let mut fake = Fake::new();
        let _ = fake.follower.question(&mut fake.rib, 0);
        fake.tell(&bytes[..at]);
        for value in [0, 1, 2, 3, 255] {
            let mut other = bytes.clone();
            other[at] = value;
            fake.tell(&other);
        }
    }
}

#[test]
fn the_kernel_of_this_machine_is_followed() {
    let rib = Mutex::new(Rib::new(vec![Routes::new("kernel", 20, 1_000_000, 1)]));
    let entrance = Entrance { feed: 0, tables: vec![(254, 0), (4_000_000, 0)], has_metrics: true };
    let mut kernel = Kernel::open(entrance).unwrap();
    let begin = Instant::now();
    while rib.lock().unwrap().feeds()[0].state.phase != Phase::Established {
        assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", rib.lock().unwrap().feeds()[0].state);
        kernel.turn(&rib).unwrap();
    }
}

#[test]
fn rules_that_are_not_heeded_are_told() {
    let rule = |priority: u32, table: u8| {
        let mut body = vec![libc::AF_INET as u8, 0, 0, 0, table, 0, 0, 1, 0, 0, 0, 0];
        attribute(&mut body, 6, &priority.to_ne_bytes());
        body
    };
    let mut fake = Fake::new();
    fake.rules = vec![rule(0, 255), rule(100, 77), rule(32766, 254)];
    assert_eq!(fake.pass(0), ALL);
    assert_eq!(fake.rib.feeds()[0].state.rules, ["100: from all lookup 77"]);
    // A change makes the follower read the rules alone; an answer that failed leaves those that were there.
    fake.event(32, 0, &rule(50, 78));
    fake.error = libc::EBUSY;
    assert_eq!(fake.pass(SECOND), [34]);
    assert_eq!(fake.rib.feeds()[0].state.rules, ["100: from all lookup 77"]);
    fake.rules.push(rule(50, 78));
    assert_eq!(fake.pass(SECOND), ALL);
    assert_eq!(fake.rib.feeds()[0].state.rules, ["50: from all lookup 78", "100: from all lookup 77"]);
    fake.rules.clear();
    fake.event(33, 0, &rule(50, 78));
    // A kernel with one table.
    fake.error = libc::EOPNOTSUPP;
    assert_eq!(fake.pass(SECOND), [34]);
    assert_eq!(fake.rib.feeds()[0].state.rules, [""; 0]);
}
