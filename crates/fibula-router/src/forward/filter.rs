//! Rules in the two passes: all packets of a burst are compared with them before the second, which then applies the decisions.

use std::sync::Arc;

use crate::acl::{self, Action, AddressColumns, BurstPacket, BurstPackets, BurstRows, RuleSet, WorkerCounts};
use crate::drops::DropReason;
use crate::io::{BURST, Io};
use crate::packet::icmp::Problem;

use super::columns::Columns;
use super::item::Item;
use super::refused::Refused;

/// Rules, and a worker's counters of them.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) set: Arc<RuleSet>,
    pub(super) counts: Arc<WorkerCounts>,
    /// The rules that each packet of a burst passes.
    burst: BurstRows,
}

impl Rules {
    /// Finds the rules that the packets of a burst pass. `plain` has the addresses of plain ones.
    #[inline]
    pub(super) fn pass(&mut self, io: &mut impl Io, items: &[Item], plain: &Columns) {
        // Places are those of items, because the decision comes later, by the item's number.
        if !items.is_empty() {
            self.set.pass(&mut self.burst, &mut Sorted { io, items, plain });
        }
    }

    /// Takes up the rules of a fabric. Counters go on while the rules are the same.
    pub(super) fn take_up(place: &mut Option<Self>, set: Option<&Arc<RuleSet>>) {
        let is_same = match (&place, set) {
            (Some(rules), Some(set)) => Arc::ptr_eq(&rules.set, set),
            (None, None) => true,
            _ => false,
        };
        if !is_same {
            let own = |set: &Arc<RuleSet>| Self {
                set: Arc::clone(set),
                counts: set.join(),
                burst: set.burst_rows(),
            };
            *place = set.map(own);
        }
    }
}

/// The items of a burst, as rules see them.
struct Sorted<'b, I> {
    io: &'b mut I,
    items: &'b [Item],
    plain: &'b Columns,
}

impl<I: Io> Sorted<'_, I> {
    /// Returns a bit for each item.
    fn all(&self) -> u64 {
        u64::MAX >> (BURST - self.items.len())
    }
}

impl<I: Io> BurstPackets for Sorted<'_, I> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.items.len()
    }

    fn families(&self) -> (u64, u64) {
        // One sum for both families, because each packet is of one of them.
        let bit = |(place, item): (usize, &Item)| u64::from(item.v6) << place;
        let v6 = self.items.iter().enumerate().map(bit).sum::<u64>();
        (self.all() & !v6, v6)
    }

    fn v4_columns(&self) -> Option<AddressColumns<'_, u32>> {
        let (plain, count) = (self.plain, self.items.len());
        // Of all packets or of none, because results are found by the packet's place.
        (plain.is_v4 == self.all()).then(|| (&plain.v4_sources[..count], &plain.v4[..count]))
    }

    fn v6_columns(&self) -> Option<AddressColumns<'_, u128>> {
        let (plain, count) = (self.plain, self.items.len());
        (plain.is_v6 == self.all()).then(|| (&plain.v6_sources[..count], &plain.v6[..count]))
    }

    #[inline(always)]
    fn addresses(&self, place: usize) -> (u128, u128) {
        let item = &self.items[place];
        (item.source, item.destination)
    }

    #[inline(always)]
    fn read(&mut self, place: usize) -> BurstPacket {
        let item = &self.items[place];
        // A plain packet is of one segment, so its length is known without its frame.
        let len = match item.plain {
            true => item.len,
            false => item.length_on_wire(&self.io.frame(item.index).offload),
        };
        BurstPacket {
            v6: item.v6,
            protocol: item.protocol,
            // The largest that the field has, because a packet of IPv6 may have 40 bytes more.
            length: len.min(usize::from(u16::MAX)) as u16,
            input: item.interface,
            vrf: item.vrf as u16,
            word: item.word,
        }
    }

    fn upper(&mut self, place: usize) -> &[u8] {
        let item = &self.items[place];
        let packet = &self.io.frame(item.index).bytes[item.range()];
        item.upper.and_then(|at| packet.get(at..)).unwrap_or_default()
    }

    fn dscp(&mut self, place: usize) -> u8 {
        let item = &self.items[place];
        acl::dscp(&self.io.frame(item.index).bytes[item.range()], item.v6)
    }

    fn fragment(&self, place: usize) -> u8 {
        self.items[place].fragment_field()
    }
}

/// Applies the rules for packets that are forwarded, by an interface. Packets that a route discards are not about to leave, so no rule
/// judges them.
// Always, because a call would cost packets without rules a register.
#[inline(always)]
pub(super) fn filter(
    rules: &Rules,
    io: &mut impl Io,
    (number, item): (usize, &Item),
    out: u16,
    now_ns: u64,
) -> Result<(), Refused> {
    // First, because most packets are permitted, and a function for them alone needs few registers.
    if rules.set.permits((&rules.burst, number), &rules.counts) {
        return Ok(());
    }
    filter_on(rules, io, (number, item), out, now_ns)
}

/// Applies the rules to a packet that they refuse, or about which more than one rule decides.
#[inline(never)]
fn filter_on(
    rules: &Rules,
    io: &mut impl Io,
    (number, item): (usize, &Item),
    out: u16,
    now_ns: u64,
) -> Result<(), Refused> {
    refusal(rules.set.judge((&rules.burst, number), out, &rules.counts, |rule| {
        let frame = io.frame(item.index);
        let packet = item.fields(&frame.bytes[item.range()], &frame.offload, Some(out));
        rules.set.note(rule, &packet, now_ns);
    }))
}

/// Returns whether an action lets a packet go on.
#[inline]
pub(super) fn refusal(action: Action) -> Result<(), Refused> {
    match action {
        Action::Permit | Action::Count => Ok(()),
        Action::Deny => Err(DropReason::FilterDeny.into()),
        Action::Reject => Err(Refused::telling(DropReason::FilterReject, Problem::Prohibited)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acl::{LogRate, PrefixLists, Rule};
    use crate::forward::damaged::{frame, random};
    use crate::forward::item::{Class, Entry, classify, read_plain};
    use crate::io::{Offload, Received};
    use crate::measure::network;
    use crate::packet::ethernet::Header;

    /// Tests of all kinds, about the frames of `item::tests`.
    const TESTS: [&str; 32] = [
        "any",
        "ipv4",
        "ipv6",
        "source 10.0.0.0/8",
        "source !10.0.0.0/8,2000::/16",
        "destination 10.0.0.1,198.0.0.0/8",
        "source @inner destination @outer",
        "destination !@inner",
        "source 2064:ff9b::/32",
        "protocol udp",
        "protocol !tcp,udp",
        "protocol sctp destination-port !0-53",
        "source-port 53",
        "source-port 0,2-60000 protocol tcp",
        "destination-port 0-1000",
        "destination-port !53",
        "port 53,13568",
        "port !0",
        "tcp-flags syn,!ack",
        "established",
        "icmp-type 8",
        "icmp-type 0-128 icmp-code 0-8",
        "icmp-code !0",
        "length 20-48",
        "length 1000-1500",
        "dscp 0",
        "dscp !0-3",
        "fragment any",
        "fragment none in port0",
        "fragment df",
        "out port1",
        "vrf vrf1 out !port2",
    ];

    fn rules(state: &mut u64) -> RuleSet {
        let mut lists = PrefixLists::default();
        let prefixes = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>();
        lists.add("outer", &prefixes(&["10.0.0.0/8", "2000::/4", "198.0.0.0/16"]), None).unwrap();
        lists.add("inner", &prefixes(&["10.0.0.0/24", "10.254.0.0/16", "2000:80::/32"]), None).unwrap();
        // As many as are in one, two, four and more words.
        let count = [0, 1, 6, 60, 100, 150, 240, 300][random(state) % 8];
        let rule = |_| -> Rule {
            let action = match random(state) % 16 {
                0..4 => "permit",
                4..7 => "deny",
                7..9 => "reject",
                9..15 => "count",
                _ => "deny log",
            };
            // In many rules each says less, or the first few would decide about all packets.
            let more = if random(state) % 300 < count { " length !20-45" } else { "" };
            let test = TESTS[random(state) % TESTS.len()];
            let text = match test {
                "any" if !more.is_empty() => format!("{action}{more}"),
                test if test.contains("length") => format!("{action} {test}"),
                test => format!("{action} {test}{more}"),
            };
            text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
        };
        let rules: Vec<Rule> = (0..count).map(rule).collect();
        let default = [Action::Permit, Action::Deny, Action::Reject][random(state) % 3];
        let find = |_, name: &str| name[name.len() - 1..].parse().ok();
        RuleSet::compile(rules, default, LogRate::default(), &lists, &find).unwrap()
    }

    /// Frames of a burst, which go nowhere.
    struct Held(Vec<(Vec<u8>, Offload)>);

    impl Io for Held {
        fn receive(&mut self, _: usize) -> usize {
            self.0.len()
        }

        fn frame(&mut self, index: usize) -> Received<'_> {
            let (bytes, offload) = &mut self.0[index];
            Received { bytes, tag: None, offload: *offload, cut: false }
        }

        fn forward(
            &mut self,
            _: usize,
            _: usize,
            _: &Header,
            _: core::ops::Range<usize>,
            _: &Offload,
        ) -> bool {
            false
        }

        fn emit(&mut self, _: usize, _: [&[u8]; 3], _: &Offload) -> bool {
            false
        }

        fn deliver(&mut self, _: usize, _: usize) -> bool {
            false
        }

        fn finish(&mut self) {}
    }

    /// Bursts of damaged frames of one family or both are judged as each packet alone, whichever way its headers were read.
    #[test]
    fn bursts_are_judged_as_each_packet_alone() {
        let table = fibula::Table::new().expect("memory for a table");
        let fabric = network(table, 1, false).fabric();
        let (mut state, mut judged, mut refused) = (77, [0; 3], 0);
        for round in 0..1_500 {
            let set = Arc::new(rules(&mut state));
            let mut own = None;
            Rules::take_up(&mut own, Some(&set));
            let mut own = own.unwrap();
            let mut expected = vec![0; set.rules().len() + 1];
            // The second burst finds the room of the first as that has left it.
            for _ in 0..2 {
                let wanted = 1 + random(&mut state) % BURST;
                let (mut held, mut items, mut plain) = (Held(Vec::new()), Vec::new(), Columns::new());
                while items.len() < wanted {
                    let v6 =
                        if round % 3 == 2 { random(&mut state).is_multiple_of(2) } else { round % 3 == 1 };
                    let mut bytes = frame(&mut state, fabric.interfaces[0].mac, v6);
                    let segment = u16::from(random(&mut state).is_multiple_of(8)) * 1000;
                    let offload = Offload { segment, headers: 40, ..Offload::default() };
                    let received = Received { bytes: &mut bytes, tag: None, offload, cut: false };
                    let (index, mut item) = (held.0.len(), Item::default());
                    match read_plain::<true>(&Entry::of(&fabric, 0), &fabric, index, &received, &mut item) {
                        Some(kind) => {
                            plain.put::<true>(items.len(), &item, kind);
                            let all = if item.v6 { &mut plain.is_v6 } else { &mut plain.is_v4 };
                            *all |= 1 << items.len();
                        }
                        None => match classify(&fabric, 0, index, &received, &mut item) {
                            Ok(Class::Route) => {
                                item.plain = item.is_plain(&fabric, &offload);
                                item.read_word(received.bytes);
                            }
                            _ => continue,
                        },
                    }
                    judged[if item.plain { usize::from(item.v6) } else { 2 }] += 1;
                    // As if ports had several interfaces.
                    item.interface = [0, 0, 0, 1, 2][random(&mut state) % 5];
                    item.vrf = usize::from(item.interface == 2);
                    held.0.push((bytes, offload));
                    items.push(item);
                }
                own.pass(&mut held, &items, &plain);
                for (number, item) in items.iter().enumerate() {
                    let out = (random(&mut state) % 3) as u16;
                    let found = filter(&own, &mut held, (number, item), out, 1);
                    let (bytes, offload) = &held.0[item.index];
                    let packet = item.fields(&bytes[item.range()], offload, Some(out));
                    let ruling = set.explain(&packet, |rule| expected[rule] += 1);
                    if ruling.rule.is_none() {
                        expected[set.rules().len()] += 1;
                    }
                    let wanted = refusal(ruling.action).err().map(|refused| refused.reason);
                    assert_eq!(found.err().map(|refused| refused.reason), wanted, "{packet:?}");
                    refused += usize::from(wanted.is_some());
                }
            }
            let found: Vec<u64> = set.counts().iter().map(|counts| counts.packets).collect();
            assert_eq!(found, expected, "{:#?}", set.rules());
        }
        assert!(judged.iter().all(|&count| count > 10_000), "{judged:?}");
        assert!(refused > 10_000 && judged.iter().sum::<usize>() - refused > 10_000, "{judged:?} {refused}");
    }
}
