//! Rules against an oracle that reads them in order, packet by packet: compiled rules alone, and in the pipeline, in bursts of both
//! families.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use fibula_router::acl::{Action, Field, HeaderFields, LogRate, PrefixLists, Rule, RuleSet};
use fibula_router::drops::DropReason;
use fibula_router::forward::fabric::Hop;
use fibula_router::io::memory::Frame;
use fibula_router::neighbour::Limits;
use fibula_router::packet::checksum;

use crate::support::frames::build;
use crate::support::network::{self, Network};
use crate::support::random::Random;

/// A prefix of few addresses that packets have: family, address, length.
type Block = (bool, u128, u8);

/// A test of a rule, as the oracle understands it.
#[derive(Debug, Clone)]
enum Wanted {
    Family(bool),
    /// Whether it is the source, negated, prefixes, and lists by number.
    Near(bool, bool, Vec<Block>, Vec<usize>),
    /// Field, negated, ranges.
    Number(Field, bool, Vec<(u16, u16)>),
    Established,
    Flags(Vec<(&'static str, u8, bool)>),
    Part(&'static str),
    Name(Field, bool, Vec<usize>),
}

const INTERFACES: [&str; 4] = ["left", "right", "ten", "twenty"];
const FLAGS: [(&str, u8); 4] = [("fin", 1), ("syn", 2), ("rst", 4), ("ack", 16)];
const PORTS: [u16; 7] = [0, 22, 80, 81, 443, 1024, 65_535];
const PROTOCOLS: [u8; 6] = [1, 6, 17, 58, 89, 132];

fn block(random: &mut Random) -> Block {
    let v6 = random.once_in(2);
    let (address, most) = address(random, v6);
    let len = match v6 {
        true => random.one_of(&[0, 32, 48, 64, 112, 127, 128]),
        false => random.one_of(&[0, 8, 16, 24, 25, 31, 32]),
    };
    let kept = if len == 0 { 0 } else { u128::MAX << (most - len) };
    (v6, address & kept & if v6 { u128::MAX } else { 0xffff_ffff }, len)
}

fn address(random: &mut Random, v6: bool) -> (u128, u8) {
    let low = u128::from(random.next() & 0x83);
    let third = u128::from(random.next() & 1);
    match v6 {
        true => (0x2001_0db8_0100_0000_u128 << 64 | third << 64 | low, 128),
        false => (u128::from(0xc633_0000_u32) | third << 8 | low, 32),
    }
}

fn text_of(&(v6, address, len): &Block) -> String {
    match v6 {
        true => format!("{}/{len}", Ipv6Addr::from(address)),
        false => format!("{}/{len}", Ipv4Addr::from(address as u32)),
    }
}

fn contains(&(v6, address, len): &Block, of: bool, other: u128) -> bool {
    let bits = if v6 { 128 } else { 32 };
    v6 == of && (len == 0 || (address ^ other) >> (bits - u32::from(len)) == 0)
}

impl Wanted {
    fn random(random: &mut Random, lists: usize) -> Self {
        let not = random.once_in(4);
        match random.below(9) {
            0 => Self::Family(random.once_in(2)),
            1 | 2 => {
                let blocks = (0..random.below(3)).map(|_| block(random)).collect::<Vec<_>>();
                let count = if blocks.is_empty() { 1 } else { random.below(2) };
                let own = (0..count).map(|_| random.below(lists)).collect();
                Self::Near(random.once_in(2), not, blocks, own)
            }
            3 => Self::Established,
            4 => {
                let flags = FLAGS.iter().filter(|_| random.once_in(2)).collect::<Vec<_>>();
                let flags = if flags.is_empty() { vec![&FLAGS[1]] } else { flags };
                Self::Flags(flags.iter().map(|flag| (flag.0, flag.1, random.once_in(2))).collect())
            }
            5 => Self::Part(random.one_of(&["none", "any", "first", "later", "last", "df"])),
            6 => {
                let field = random.one_of(&[Field::In, Field::Out, Field::Vrf]);
                let most = if field == Field::Vrf { 2 } else { INTERFACES.len() };
                Self::Name(field, not, (0..1 + random.below(2)).map(|_| random.below(most)).collect())
            }
            _ => {
                let field = random.one_of(&[
                    Field::Protocol,
                    Field::SourcePort,
                    Field::DestinationPort,
                    Field::Port,
                    Field::IcmpType,
                    Field::IcmpCode,
                    Field::Length,
                    Field::Dscp,
                ]);
                let ranges = (0..1 + random.below(3)).map(|_| {
                    let value = |random: &mut Random| match field {
                        Field::Protocol => u16::from(random.one_of(&PROTOCOLS)),
                        Field::Length => random.one_of(&[20, 48, 60, 100, 1280]),
                        Field::Dscp => random.one_of(&[0, 10, 46, 63]),
                        Field::IcmpType | Field::IcmpCode => random.one_of(&[0, 8, 128, 255]),
                        _ => random.one_of(&PORTS),
                    };
                    let (a, b) = (value(random), value(random));
                    if random.once_in(2) { (a, a) } else { (a.min(b), a.max(b)) }
                });
                Self::Number(field, not, ranges.collect())
            }
        }
    }

    /// Returns a word that may be in a rule once.
    fn key(&self) -> String {
        match self {
            Self::Family(_) => "family".into(),
            Self::Near(source, ..) => format!("near {source}"),
            Self::Established | Self::Flags(_) => "tcp-flags".into(),
            Self::Part(_) => "fragment".into(),
            Self::Number(field, ..) | Self::Name(field, ..) => field.name().into(),
        }
    }

    fn text(&self) -> String {
        let not = |negated: bool| if negated { "!" } else { "" };
        match self {
            Self::Family(v6) => (if *v6 { "ipv6" } else { "ipv4" }).into(),
            Self::Near(source, negated, blocks, lists) => {
                let lists = lists.iter().map(|list| format!("@list{list}"));
                let all: Vec<String> = blocks.iter().map(text_of).chain(lists).collect();
                let field = if *source { "source" } else { "destination" };
                format!("{field} {}{}", not(*negated), all.join(","))
            }
            Self::Established => "established".into(),
            Self::Flags(flags) => {
                let flags = flags.iter().map(|(name, _, clear)| format!("{}{name}", not(*clear)));
                format!("tcp-flags {}", flags.collect::<Vec<_>>().join(","))
            }
            Self::Part(part) => format!("fragment {part}"),
            Self::Number(field, negated, ranges) => {
                let ranges = ranges.iter().map(|(first, last)| format!("{first}-{last}"));
                format!("{} {}{}", field.name(), not(*negated), ranges.collect::<Vec<_>>().join(","))
            }
            Self::Name(field, negated, names) => {
                let names = names.iter().map(|&name| match field {
                    Field::Vrf => ["default", "blue"][name],
                    _ => INTERFACES[name],
                });
                format!("{} {}{}", field.name(), not(*negated), names.collect::<Vec<_>>().join(","))
            }
        }
    }

    fn passes(&self, packet: &HeaderFields, lists: &[Vec<Block>]) -> bool {
        match self {
            Self::Family(v6) => packet.v6 == *v6,
            Self::Near(source, negated, blocks, own) => {
                let address = if *source { packet.source } else { packet.destination };
                let mut all = blocks.iter().chain(own.iter().flat_map(|&list| &lists[list]));
                all.any(|block| contains(block, packet.v6, address)) != *negated
            }
            Self::Established => packet.tcp_flags.is_some_and(|flags| flags & 0x14 != 0),
            Self::Flags(flags) => packet
                .tcp_flags
                .is_some_and(|set| flags.iter().all(|(_, bit, clear)| (set & bit != 0) != *clear)),
            Self::Part(part) => match *part {
                "none" => packet.fragment & 14 == 0,
                "any" => packet.fragment & 14 != 0,
                "first" => packet.fragment & 4 != 0,
                "later" => packet.fragment & 2 != 0,
                "last" => packet.fragment & 8 != 0,
                _ => packet.fragment & 1 != 0,
            },
            Self::Number(field, negated, ranges) => {
                let inside = |value: u16| {
                    ranges.iter().any(|&(first, last)| first <= value && value <= last) != *negated
                };
                let ports = packet.ports;
                match field {
                    Field::Protocol => inside(packet.protocol.into()),
                    Field::SourcePort => ports.is_some_and(|ports| inside(ports.0)),
                    Field::DestinationPort => ports.is_some_and(|ports| inside(ports.1)),
                    Field::Port => ports.is_some_and(|ports| inside(ports.0) || inside(ports.1)),
                    Field::IcmpType => packet.icmp.is_some_and(|icmp| inside(icmp.0.into())),
                    Field::IcmpCode => packet.icmp.is_some_and(|icmp| inside(icmp.1.into())),
                    Field::Length => inside(packet.length),
                    _ => inside(packet.dscp.into()),
                }
            }
            Self::Name(field, negated, names) => {
                let has = |number: u16| names.contains(&usize::from(number)) != *negated;
                match field {
                    Field::In => has(packet.input),
                    Field::Out => packet.output.is_some_and(has),
                    _ => has(packet.vrf),
                }
            }
        }
    }
}

/// Rules as the oracle reads them, with their text and their lists.
struct Model {
    lists: Vec<Vec<Block>>,
    rules: Vec<(Action, Vec<Wanted>)>,
    default: Action,
}

impl Model {
    fn random(random: &mut Random) -> Self {
        let lists: Vec<Vec<Block>> =
            (0..4).map(|_| (0..random.below(6)).map(|_| block(random)).collect()).collect();
        // Sometimes more rules than one word has bits.
        let count = if random.once_in(4) { 60 + random.below(90) } else { random.below(12) };
        let rules = (0..count).map(|_| {
            let mut wanted: Vec<Wanted> = Vec::new();
            for _ in 0..random.below(4) {
                let one = Wanted::random(random, lists.len());
                if wanted.iter().all(|other| other.key() != one.key()) {
                    wanted.push(one);
                }
            }
            (random.one_of(&Action::ALL), wanted)
        });
        let rules = rules.collect();
        Self { lists, rules, default: random.one_of(&[Action::Permit, Action::Deny, Action::Reject]) }
    }

    fn compile(&self) -> RuleSet {
        let mut lists = PrefixLists::default();
        for (number, list) in self.lists.iter().enumerate() {
            let prefixes: Vec<_> = list.iter().map(|block| text_of(block).parse().unwrap()).collect();
            lists.add(&format!("list{number}"), &prefixes, None).unwrap();
        }
        let rules = self.rules.iter().map(|(action, wanted)| {
            let tests: Vec<String> = wanted.iter().map(Wanted::text).collect();
            let tests = if tests.is_empty() { "any".to_owned() } else { tests.join(" ") };
            let text = format!("{} {tests}", action.name());
            text.parse::<Rule>().unwrap_or_else(|error| panic!("{text}: {error}"))
        });
        RuleSet::compile(rules.collect(), self.default, LogRate::default(), &lists, &|field, name| {
            let names = if field == Field::Vrf { &["default", "blue"][..] } else { &INTERFACES };
            names.iter().position(|known| *known == name).map(|number| number as u16)
        })
        .unwrap()
    }

    /// Returns the rules that a packet passes up to the one that decides, and the decision.
    fn judge(&self, packet: &HeaderFields) -> (Vec<usize>, Action) {
        let mut passed = Vec::new();
        for (number, (action, wanted)) in self.rules.iter().enumerate() {
            if wanted.iter().all(|test| test.passes(packet, &self.lists)) {
                passed.push(number);
                if *action != Action::Count {
                    return (passed, *action);
                }
            }
        }
        (passed, self.default)
    }

    fn text(&self, rules: &RuleSet) -> String {
        let mut text = format!("default {:?}\n", self.default);
        for (number, list) in self.lists.iter().enumerate() {
            _ = writeln!(text, "list{number} {:?}", list.iter().map(text_of).collect::<Vec<_>>());
        }
        rules.rules().iter().enumerate().for_each(|(number, rule)| _ = writeln!(text, "{number} {rule}"));
        text
    }
}

/// A random packet, and the same in words, as `frames` builds them.
fn packet(random: &mut Random) -> (HeaderFields, String) {
    let v6 = random.once_in(2);
    let (source, destination) = (address(random, v6).0, address(random, v6).0);
    let protocol = match random.one_of(&PROTOCOLS) {
        1 if v6 => 58,
        58 if !v6 => 1,
        other => other,
    };
    let (part, words) = match random.below(8) {
        0 => (4, "first"),
        1 => (2, "later"),
        2 => (10, "last"),
        3 if !v6 => (1, "df"),
        _ => (0, ""),
    };
    let dscp = random.one_of(&[0u8, 10, 46, 63]);
    let data = random.one_of(&[0usize, 8, 40, 80]);
    let mut packet =
        HeaderFields { v6, source, destination, protocol, dscp, fragment: part, ..HeaderFields::default() };
    let (mut upper, mut len) = (String::new(), 0);
    let (from, to) = (random.one_of(&PORTS), random.one_of(&PORTS));
    let code = (random.one_of(&[0u8, 8, 128, 255]), random.one_of(&[0u8, 8, 255]));
    let flags = (random.next() & 0x17) as u8;
    match protocol {
        6 => {
            let octets = [from.to_be_bytes(), to.to_be_bytes()].concat();
            let hex: String = octets.iter().map(|byte| format!("{byte:02x}")).collect();
            upper = format!("{hex}000000000000000050{flags:02x}000000000000");
            len = 20;
            packet.ports = Some((from, to));
            packet.tcp_flags = Some(flags);
        }
        17 | 132 => {
            let hex = format!("{from:04x}{to:04x}00080000");
            upper = hex;
            len = 8;
            packet.ports = Some((from, to));
        }
        1 | 58 => {
            upper = format!("{:02x}{:02x}000000000000", code.0, code.1);
            len = 8;
            packet.icmp = Some(code);
        }
        _ => {}
    }
    // The bytes of a later part are not a header, whatever they say.
    if part & 2 != 0 {
        (packet.ports, packet.tcp_flags, packet.icmp) = (None, None, None);
    }
    let (header, text) = if v6 {
        let (source, destination) = (Ipv6Addr::from(source), Ipv6Addr::from(destination));
        // The traffic class lies above the flow label in the first word.
        let first = format!("label={}", u32::from(dscp) << 22);
        let fragment = match words {
            "first" => format!("{protocol:02x}00000100000009"),
            "later" => format!("{protocol:02x}00080100000009"),
            "last" => format!("{protocol:02x}00080000000009"),
            _ => String::new(),
        };
        let next = if fragment.is_empty() { protocol } else { 44 };
        let header = 40 + if fragment.is_empty() { 0 } else { 8 };
        upper.insert_str(0, &fragment);
        (header, format!("ip6 {source} {destination} {first} next={next} "))
    } else {
        let (source, destination) = (Ipv4Addr::from(source as u32), Ipv4Addr::from(destination as u32));
        let flags = match words {
            "first" => "mf off=0",
            "later" => "mf off=256",
            "last" => "off=256",
            "df" => "df",
            _ => "",
        };
        let tos = u32::from(dscp) << 2;
        (20, format!("ip4 {source} {destination} tos={tos} proto={protocol} {flags} "))
    };
    packet.length = (header + len + data) as u16;
    upper.push_str(&"00".repeat(data));
    let upper = if upper.is_empty() { upper } else { format!("/ hex {upper}") };
    (packet, format!("{text}{upper}"))
}

#[test]
fn compiled_rules_decide_as_the_oracle_does() {
    let mut random = Random::new(1);
    let (mut decided, mut by_default) = (0, 0);
    for _ in 0..400 {
        let model = Model::random(&mut random);
        let rules = model.compile();
        for _ in 0..100 {
            let mut packet = packet(&mut random).0;
            packet.input = random.below(4) as u16;
            packet.vrf = random.below(2) as u16;
            packet.output = (!random.once_in(5)).then(|| random.below(4) as u16);
            let (expected, action) = model.judge(&packet);
            let mut passed = Vec::new();
            let ruling = rules.explain(&packet, |rule| passed.push(rule));
            assert_eq!((passed, ruling.action), (expected, action), "{packet:?}\n{}", model.text(&rules));
            *if ruling.rule.is_some() { &mut decided } else { &mut by_default } += 1;
        }
    }
    // The rules would prove nothing if they were about few of the packets.
    assert!(decided > 10_000 && by_default > 5_000, "{decided} {by_default}");
}

#[test]
fn conditions_alone_match_the_packets_of_the_oracle() {
    let mut random = Random::new(2);
    let find = |field: Field, name: &str| {
        let names = if field == Field::Vrf { &["default", "blue"][..] } else { &INTERFACES };
        names.iter().position(|known| *known == name).map(|number| number as u16)
    };
    let mut matched = 0;
    for _ in 0..20_000 {
        let wanted = Wanted::random(&mut random, 1);
        let list: Vec<Block> = (0..3).map(|_| block(&mut random)).collect();
        let mut lists = PrefixLists::default();
        let prefixes: Vec<_> = list.iter().map(|block| text_of(block).parse().unwrap()).collect();
        lists.add("list0", &prefixes, None).unwrap();
        let condition: fibula_router::acl::Condition = wanted.text().parse().unwrap();
        let packet = HeaderFields { output: Some(1), ..packet(&mut random).0 };
        let ready = condition.resolve(&lists, &find).unwrap();
        assert_eq!(ready.matches(&packet), wanted.passes(&packet, &[list]), "{} {packet:?}", wanted.text());
        matched += usize::from(ready.matches(&packet));
    }
    assert!(matched > 2_000, "{matched}");
}

/// A router whose packets from `left` to 198.51.0.0/23 and 2001:db8:100::/63 leave by `right`, with rules.
fn router(rules: RuleSet) -> (Network, Arc<RuleSet>) {
    let mut fabric = network::fabric();
    let right = fabric.vrfs[0].table.reader().unwrap().pin().lookup(0xc633_0001_u32).unwrap().id();
    network::route(&fabric, 0, "198.51.1.0/24", right);
    network::route(&fabric, 0, "2001:db8:100:1::/64", right);
    let rules = Arc::new(rules);
    fabric.forward_rules = Some(Arc::clone(&rules));
    fabric.icmp_rate = (0, 0);
    (Network::with(fabric, Limits::default()), rules)
}

#[test]
fn bursts_are_filtered_as_the_oracle_does() {
    let mut random = Random::new(3);
    let (mut forwarded, mut refused) = (0, 0);
    for round in 0..150 {
        let model = Model::random(&mut random);
        let (mut network, rules) = router(model.compile());
        // Bursts of one family and of both, because their addresses are looked up in different ways.
        let is_wanted = |packet: &(HeaderFields, String)| round % 3 == 2 || packet.0.v6 == (round % 3 == 1);
        let packets = std::iter::repeat_with(|| packet(&mut random));
        let packets: Vec<_> = packets.filter(is_wanted).take(130).collect();
        let mut counts = vec![0; model.rules.len() + 1];
        let (mut denied, mut rejected, mut sent) = (0, 0, Vec::new());
        for (packet, words) in &packets {
            let frame = Frame::from(build(&format!("eth R0 a / {words}"), &[]).bytes);
            let packet = HeaderFields { output: Some(1), ..*packet };
            let (passed, action) = model.judge(&packet);
            passed.iter().for_each(|&rule| counts[rule] += 1);
            if passed.last().is_none_or(|&rule| model.rules[rule].0 == Action::Count) {
                counts[model.rules.len()] += 1;
            }
            match action {
                Action::Deny => denied += 1,
                Action::Reject => rejected += 1,
                _ => sent.push(frame.bytes[20..].to_vec()),
            }
            network.io.ports[0].input.push_back(frame);
        }
        network.run();
        network.check();
        let totals = network.totals(0);
        let text = model.text(&rules);
        let found: Vec<u64> = rules.counts().iter().map(|counts| counts.packets).collect();
        assert_eq!(found, counts, "{text}");
        assert_eq!(totals.dropped[DropReason::FilterDeny.index()], denied, "{text}");
        assert_eq!(totals.dropped[DropReason::FilterReject.index()], rejected, "{text}");
        assert_eq!(totals.forwarded, sent.len() as u64, "{text} {totals:?}");
        // In order, and the same but for the TTL, its checksum and the MAC addresses.
        let output = network.io.take_output(1);
        for (frame, sent) in output.iter().zip(&sent) {
            assert_eq!(frame.bytes[26..], sent[6..]);
        }
        forwarded += sent.len();
        refused += (denied + rejected) as usize;
    }
    assert!(forwarded > 3_000 && refused > 3_000, "{forwarded} {refused}");
}

/// Returns a frame with what is to hide its headers: a tag of no VLAN, options, headers of extensions. Also returns how many bytes the
/// packet is longer.
fn disguised(random: &mut Random, mut frame: Vec<u8>, v6: bool) -> (Vec<u8>, u16) {
    let (mut added, count) = (0, random.below(3));
    for number in 0..count {
        if v6 {
            // Options of hops are allowed right after the header alone, so the last one that is put there may be of them.
            let kind = if number + 1 == count && random.once_in(2) { 0 } else { 60 };
            let next = std::mem::replace(&mut frame[14 + 6], kind);
            let padding = [next, 0, 1, 4, 0, 0, 0, 0];
            frame.splice(14 + 40..14 + 40, padding);
            added += 8;
        } else {
            frame.splice(14 + 20..14 + 20, [1; 4]);
            frame[14] += 1;
            added += 4;
        }
    }
    let at = if v6 { 14 + 4 } else { 14 + 2 };
    let len = u16::from_be_bytes([frame[at], frame[at + 1]]) + added;
    frame[at..at + 2].copy_from_slice(&len.to_be_bytes());
    if !v6 {
        frame[14 + 10..14 + 12].fill(0);
        let header = 4 * usize::from(frame[14] & 15);
        let sum = !checksum::sum(&frame[14..14 + header], 0);
        frame[14 + 10..14 + 12].copy_from_slice(&sum.to_be_bytes());
    }
    if random.once_in(3) {
        frame.splice(12..12, [0x81, 0, 0x60, 0]);
    }
    (frame, added)
}

#[test]
fn packets_to_the_machine_reach_it_as_the_oracle_decides() {
    const HOST: usize = 3;
    let mut random = Random::new(44);
    let (mut reached, mut refused) = (0, 0);
    for _ in 0..150 {
        let mut model = Model::random(&mut random);
        // By which interface they leave is for packets that are forwarded.
        let is_out = |wanted: &Wanted| matches!(wanted, Wanted::Name(Field::Out, ..));
        model.rules.retain(|rule| !rule.1.iter().any(is_out));
        let mut fabric = network::fabric();
        let local = fabric.hops.iter().position(|hop| *hop == Some(Hop::Local)).unwrap() as u32;
        for prefix in ["198.51.0.0/24", "198.51.1.0/24", "2001:db8:100::/64", "2001:db8:100:1::/64"] {
            network::route(&fabric, 0, prefix, local);
        }
        let input = fabric.interfaces.iter().position(|interface| interface.port == HOST).unwrap() as u16;
        let rules = Arc::new(model.compile());
        fabric.local_rules = Some(Arc::clone(&rules));
        fabric.icmp_rate = (0, 0);
        let mut network = Network::with(fabric, Limits::default());
        let (mut denied, mut rejected, mut wanted) = (0, 0, Vec::new());
        for _ in 0..130 {
            let (packet, words) = packet(&mut random);
            let frame = build(&format!("eth R3 E / {words}"), &[]).bytes;
            let (frame, added) = disguised(&mut random, frame, packet.v6);
            let packet = HeaderFields { input, length: packet.length + added, ..packet };
            match model.judge(&packet).1 {
                Action::Deny => denied += 1,
                Action::Reject => rejected += 1,
                _ => wanted.push(frame.clone()),
            }
            network.io.ports[HOST].input.push_back(Frame::from(frame));
        }
        network.run();
        network.check();
        let (totals, text) = (network.totals(HOST), model.text(&rules));
        let delivered: Vec<Vec<u8>> =
            network.io.ports[HOST].delivered.iter().map(|frame| frame.bytes.clone()).collect();
        assert_eq!(delivered, wanted, "{text}");
        assert_eq!(totals.dropped[DropReason::FilterDeny.index()], denied, "{text}");
        assert_eq!(totals.dropped[DropReason::FilterReject.index()], rejected, "{text}");
        reached += wanted.len();
        refused += (denied + rejected) as usize;
    }
    assert!(reached > 3_000 && refused > 3_000, "{reached} {refused}");
}

#[test]
fn counts_go_on_with_equal_rules_after_a_change() {
    let rules = |texts: &[&str]| {
        let rules = texts.iter().map(|text| text.parse().unwrap()).collect();
        RuleSet::compile(rules, Action::Permit, LogRate::default(), &PrefixLists::default(), &|_, _| None)
            .unwrap()
    };
    let (mut network, first) = router(rules(&["deny protocol udp", "count any", "permit protocol tcp"]));
    let udp = Frame::from(build("eth R0 a / ip4 10.0.0.1 198.51.0.9 / udp 1 2", &[]).bytes);
    let tcp = Frame::from(build("eth R0 a / ip4 10.0.0.1 198.51.0.9 / tcp 1 2 / data 20", &[]).bytes);
    network.io.ports[0].input.extend([udp.clone(), tcp.clone(), tcp.clone()]);
    network.run();
    let packets = |set: &RuleSet| set.counts().iter().map(|counts| counts.packets).collect::<Vec<_>>();
    assert_eq!(packets(&first), [1, 2, 2, 0]);
    assert_eq!(first.counts()[0].bytes, 28);

    let second = Arc::new(rules(&["permit protocol tcp", "deny protocol udp", "deny protocol udp"]));
    let mut fabric = (*network.shared.fabric()).clone();
    fabric.forward_rules = Some(Arc::clone(&second));
    network.shared.replace(fabric);
    network.io.ports[0].input.extend([udp, tcp]);
    network.run();
    second.go_on_from(&first);
    assert_eq!(packets(&second), [3, 2, 0, 0], "an equal rule goes on once");
    assert_eq!(packets(&first), [1, 2, 2, 0], "the old rules count no more");
}

#[test]
fn packets_are_logged_within_a_rate() {
    let rules = vec!["deny log protocol udp".parse().unwrap()];
    let rate = LogRate { rate: 1, burst: 5 };
    let rules = RuleSet::compile(rules, Action::Permit, rate, &PrefixLists::default(), &|_, _| None).unwrap();
    let (mut network, rules) = router(rules);
    network.now_ns = 1_000_000_000;
    let udp = Frame::from(build("eth R0 a / ip4 10.0.0.1 198.51.0.9 / udp 1 2", &[]).bytes);
    network.io.ports[0].input.extend(vec![udp; 100]);
    network.run();
    let (logged, left_out) = rules.take_logged();
    assert_eq!((logged.len(), left_out), (5, 95));
    assert_eq!((logged[0].rule, logged[0].packet.ports), (0, Some((1, 2))));
    assert_eq!(rules.take_logged(), (Vec::new(), 0));
}

#[test]
fn rules_that_name_nothing_are_refused() {
    for (text, reason) in [
        ("permit source @nobody", "no prefix list 'nobody'"),
        ("permit in nobody", "in: no interface 'nobody'"),
        ("permit vrf nobody", "vrf: no VRF 'nobody'"),
    ] {
        let rules = vec![text.parse().unwrap()];
        let lists = PrefixLists::default();
        let error = RuleSet::compile(rules, Action::Permit, LogRate::default(), &lists, &|_, _| None);
        assert_eq!(error.unwrap_err().to_string(), reason);
    }
    let many = vec!["permit any".parse().unwrap(); 4097];
    let lists = PrefixLists::default();
    let error = RuleSet::compile(many, Action::Permit, LogRate::default(), &lists, &|_, _| None).unwrap_err();
    assert_eq!(error.to_string(), "4097 rules: there may be 4096");
}
