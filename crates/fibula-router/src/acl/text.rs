//! The text of rules.
//!
//! ```text
//! rule      = action [log] condition        action = permit | deny | reject | count
//! condition = any | test...                 FIELD takes VALUES or !VALUES (all others), with commas and without spaces
//! test      = ipv4 | ipv6 | established | source ADDRESSES | destination ADDRESSES | FIELD VALUES
//! ADDRESSES = prefixes, addresses and @LISTS
//! VALUES    = numbers, ranges FIRST-LAST, and names
//! ```

use core::fmt;
use core::str::FromStr;

use fibula::net::{HostBits, IpPrefix};

use super::condition::{Addresses, Condition, ValueTest};
use super::fields::{self, Field};
use super::{Action, Rule, RuleError};

const PROTOCOLS: [(&str, u16); 15] = [
    ("icmp", 1),
    ("igmp", 2),
    ("tcp", 6),
    ("udp", 17),
    ("dccp", 33),
    ("ipv6", 41),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("icmpv6", 58),
    ("ospf", 89),
    ("pim", 103),
    ("vrrp", 112),
    ("sctp", 132),
    ("udplite", 136),
];
/// Code points: RFC 2474, 2597, 3246, 5865 and 8622.
const CODE_POINTS: [(&str, u16); 23] = [
    ("cs0", 0),
    ("cs1", 8),
    ("cs2", 16),
    ("cs3", 24),
    ("cs4", 32),
    ("cs5", 40),
    ("cs6", 48),
    ("cs7", 56),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("ef", 46),
    ("va", 44),
    ("le", 1),
];
const FLAGS: [(&str, u16); 8] =
    [("fin", 1), ("syn", 2), ("rst", 4), ("psh", 8), ("ack", 16), ("urg", 32), ("ece", 64), ("cwr", 128)];
const PARTS: u16 = (fields::FIRST | fields::LATER | fields::LAST) as u16;
/// Bits that are set, and bits that are not. `any` is in the code, because it is one of several.
const FRAGMENTS: [(&str, (u16, u16)); 5] = [
    ("none", (0, PARTS)),
    ("first", (fields::FIRST as u16, 0)),
    ("later", (fields::LATER as u16, 0)),
    ("last", (fields::LAST as u16, 0)),
    ("df", (fields::DONT_FRAGMENT as u16, 0)),
];
/// Flags of packets that are not the first of a connection.
const ESTABLISHED: [(u16, u16); 2] = [(16, 0), (4, 0)];

fn wrong<T>(reason: String) -> Result<T, RuleError> {
    Err(RuleError(reason))
}

fn quoted<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    names.into_iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let mut words = text.split_whitespace().peekable();
        let first = words.next().unwrap_or_default();
        let Some(action) = Action::ALL.into_iter().find(|action| action.name() == first) else {
            let names = quoted(Action::ALL.map(Action::name));
            return wrong(format!("'{first}' is not an action: a rule begins with one of {names}"));
        };
        // Before the tests, because a field could be called the same one day.
        let log = words.next_if_eq(&"log").is_some();
        if words.peek().is_none() {
            return wrong(format!("'{text}' has no condition: 'any' means all packets"));
        }
        Ok(Self { action, log, condition: condition(words)? })
    }
}

impl FromStr for Condition {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        condition(text.split_whitespace())
    }
}

fn condition<'t>(mut words: impl Iterator<Item = &'t str>) -> Result<Condition, RuleError> {
    let mut condition = Condition::default();
    let (mut is_any, mut count) = (false, 0);
    while let Some(word) = words.next() {
        count += 1;
        let mut values = || match words.next() {
            Some(values) => Ok(values),
            None => wrong(format!("'{word}' needs a value")),
        };
        match word {
            "any" => is_any = true,
            "ipv4" | "ipv6" => {
                if condition.v6.replace(word == "ipv6").is_some() {
                    return wrong("'ipv4' or 'ipv6' is there twice".into());
                }
            }
            "source" | "destination" => {
                let addresses = Some(addresses(word, values()?)?);
                let place = match word {
                    "source" => &mut condition.source,
                    _ => &mut condition.destination,
                };
                if std::mem::replace(place, addresses).is_some() {
                    return wrong(format!("'{word}' is there twice: separate values by commas"));
                }
            }
            "established" => {
                add(&mut condition, Field::TcpFlags, ValueTest::Bits(ESTABLISHED.to_vec()))?;
            }
            _ => {
                let Some(&field) = Field::ALL.iter().find(|field| field.name() == word) else {
                    let names = ["any", "ipv4", "ipv6", "established", "source", "destination"];
                    let names = quoted(names.into_iter().chain(Field::ALL.iter().map(|field| field.name())));
                    return wrong(format!("unknown word '{word}': expected one of {names}"));
                };
                let test = test(field, values()?)?;
                add(&mut condition, field, test)?;
            }
        }
    }
    match (count, is_any) {
        (0, _) => wrong("no condition: 'any' means all packets".into()),
        (2.., true) => wrong("'any' means all packets: it cannot be together with tests".into()),
        _ => Ok(condition),
    }
}

fn add(condition: &mut Condition, field: Field, test: ValueTest) -> Result<(), RuleError> {
    if condition.tests(field) {
        return wrong(format!("'{}' is there twice: separate values by commas", field.name()));
    }
    condition.tests.push((field, test));
    Ok(())
}

/// Returns the rest of values after `!`, and whether it is there.
fn negation(values: &str) -> (bool, &str) {
    values.strip_prefix('!').map_or((false, values), |rest| (true, rest))
}

fn addresses(field: &str, values: &str) -> Result<Addresses, RuleError> {
    let (negated, rest) = negation(values);
    let mut addresses = Addresses { negated, ..Addresses::default() };
    for value in rest.split(',') {
        if let Some(list) = value.strip_prefix('@') {
            if list.is_empty() {
                return wrong(format!("{field}: '@' needs the name of a prefix list"));
            }
            addresses.lists.push(list.to_owned());
            continue;
        }
        let prefix = IpPrefix::parse(value.as_bytes(), HostBits::Refuse);
        let prefix = prefix.or_else(|error| wrong(format!("{field}: '{value}': {}", error.reason())))?;
        addresses.prefixes.push(prefix);
    }
    Ok(addresses)
}

fn test(field: Field, values: &str) -> Result<ValueTest, RuleError> {
    let name = field.name();
    match field {
        Field::TcpFlags => {
            let (mut set, mut clear) = (0, 0);
            for flag in values.split(',') {
                let (not, flag) = negation(flag);
                let Some(known) = FLAGS.iter().find(|known| known.0 == flag) else {
                    let flags = quoted(FLAGS.map(|known| known.0));
                    return wrong(format!("{name}: '{flag}' is not one of {flags}"));
                };
                *if not { &mut clear } else { &mut set } |= known.1;
            }
            if set & clear != 0 {
                return wrong(format!("{name}: '{values}' asks for a flag that is set and is not"));
            }
            Ok(ValueTest::Bits(vec![(set, clear)]))
        }
        Field::Fragment => {
            let mut bits = Vec::new();
            for part in values.split(',') {
                match FRAGMENTS.iter().find(|known| known.0 == part) {
                    Some(known) => bits.push(known.1),
                    None if part == "any" => {
                        bits.extend([fields::FIRST, fields::LATER].map(|bit| (u16::from(bit), 0)));
                    }
                    None => {
                        let parts = quoted(FRAGMENTS.map(|known| known.0));
                        return wrong(format!("{name}: '{part}' is not one of 'any', {parts}"));
                    }
                }
            }
            Ok(ValueTest::Bits(bits))
        }
        field if field.is_named() => {
            let (negated, rest) = negation(values);
            let names: Vec<String> = rest.split(',').map(str::to_owned).collect();
            match names.iter().any(String::is_empty) {
                true => wrong(format!("{name}: '{values}' has an empty name")),
                false => Ok(ValueTest::Names { negated, names }),
            }
        }
        field => {
            let (negated, rest) = negation(values);
            let ranges = rest.split(',').map(|value| range(field, value)).collect::<Result<_, _>>()?;
            Ok(ValueTest::Ranges { negated, ranges })
        }
    }
}

fn range(field: Field, value: &str) -> Result<(u16, u16), RuleError> {
    let number = |text: &str| {
        let names: &[(&str, u16)] = match field {
            Field::Protocol => &PROTOCOLS,
            Field::Dscp => &CODE_POINTS,
            _ => &[],
        };
        if let Some(known) = names.iter().find(|known| known.0 == text) {
            return Ok(known.1);
        }
        match text.parse::<u16>() {
            Ok(number) if number <= field.most() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
                Ok(number)
            }
            _ => {
                let most = field.most();
                let or = if names.is_empty() { "" } else { " or a known name" };
                wrong(format!("{}: '{text}' is not a number from 0 to {most}{or}", field.name()))
            }
        }
    };
    let (first, last) = match value.split_once('-') {
        Some((first, last)) => (number(first)?, number(last)?),
        None => (number(value)?, number(value)?),
    };
    match first <= last {
        true => Ok((first, last)),
        false => wrong(format!("{}: the range '{value}' ends before it begins", field.name())),
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let log = if self.log { " log" } else { "" };
        write!(f, "{}{log} {}", self.action.name(), self.condition)
    }
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.negated { "!" } else { "" })?;
        let prefixes = self.prefixes.iter().map(IpPrefix::to_string);
        let lists = self.lists.iter().map(|list| format!("@{list}"));
        f.write_str(&prefixes.chain(lists).collect::<Vec<_>>().join(","))
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = Vec::new();
        words.extend(self.v6.map(|v6| if v6 { "ipv6" } else { "ipv4" }.to_owned()));
        for (name, addresses) in [("source", &self.source), ("destination", &self.destination)] {
            words.extend(addresses.as_ref().map(|addresses| format!("{name} {addresses}")));
        }
        words.extend(self.tests.iter().map(|(field, test)| text_of(*field, test)));
        match words.is_empty() {
            true => f.write_str("any"),
            false => f.write_str(&words.join(" ")),
        }
    }
}

fn text_of(field: Field, test: &ValueTest) -> String {
    let not = |negated: bool| if negated { "!" } else { "" };
    let values = match test {
        ValueTest::Bits(bits) if field == Field::TcpFlags && *bits == ESTABLISHED => {
            return "established".to_owned();
        }
        ValueTest::Bits(bits) if field == Field::TcpFlags => {
            let flags = |wanted: u16, not: &'static str| {
                let flags = FLAGS.iter().filter(move |flag| flag.1 & wanted != 0);
                flags.map(move |flag| format!("{not}{}", flag.0))
            };
            let all = bits.iter().flat_map(|&(set, clear)| flags(set, "").chain(flags(clear, "!")));
            all.collect::<Vec<_>>().join(",")
        }
        ValueTest::Bits(bits) => {
            let parts = bits.iter().filter_map(|bits| FRAGMENTS.iter().find(|known| known.1 == *bits));
            parts.map(|known| known.0).collect::<Vec<_>>().join(",")
        }
        ValueTest::Names { negated, names } => format!("{}{}", not(*negated), names.join(",")),
        ValueTest::Ranges { negated, ranges } => {
            let name = |value: u16| {
                let named = PROTOCOLS.iter().find(|known| field == Field::Protocol && known.1 == value);
                named.map_or_else(|| value.to_string(), |known| known.0.to_owned())
            };
            let range = |&(first, last): &(u16, u16)| match first == last {
                true => name(first),
                false => format!("{first}-{last}"),
            };
            format!("{}{}", not(*negated), ranges.iter().map(range).collect::<Vec<_>>().join(","))
        }
    };
    format!("{} {values}", field.name())
}

/// Returns the name of a protocol, or its number.
pub(crate) fn protocol_name(protocol: u8) -> String {
    let known = PROTOCOLS.iter().find(|known| known.1 == u16::from(protocol));
    known.map_or_else(|| protocol.to_string(), |known| known.0.to_owned())
}

/// Reads a protocol, by number or name.
///
/// # Errors
/// When it is neither.
pub fn protocol_number(text: &str) -> Result<u8, RuleError> {
    range(Field::Protocol, text).map(|range| range.0 as u8)
}

/// Reads a code point, by number or name.
///
/// # Errors
/// When it is neither.
pub fn code_point(text: &str) -> Result<u8, RuleError> {
    range(Field::Dscp, text).map(|range| range.0 as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_written_as_they_were_read() {
        for text in [
            "permit any",
            "deny log source 10.0.0.0/8,2001:db8::/32,@bogons destination !@own in wan,lan",
            "reject ipv4 protocol tcp destination-port 22-23,25,!0",
            "permit established out !wan vrf red",
            "count tcp-flags syn,!ack length 0-64 dscp 46 fragment first,df",
            "deny ipv6 protocol icmpv6 icmp-type !1-4 icmp-code 0 port 53 source-port 1",
        ] {
            // A `!` is of all values, so it is first or nowhere.
            let text = text.replace(",!0", "");
            let rule: Rule = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(rule.to_string(), text);
            assert_eq!(rule.to_string().parse::<Rule>().unwrap(), rule);
        }
        let any: Rule = "permit fragment any".parse().unwrap();
        assert_eq!(any.to_string(), "permit fragment first,later");
    }

    #[test]
    fn wrong_rules_say_what_is_wrong() {
        for (text, part) in [
            ("", "'' is not an action: a rule begins with one of 'permit', 'deny', 'reject', 'count'"),
            ("drop any", "'drop' is not an action"),
            ("permit", "has no condition: 'any' means"),
            ("permit log", "has no condition"),
            ("permit any protocol tcp", "'any' means all packets: it cannot"),
            ("permit prot tcp", "unknown word 'prot': expected one of 'any', 'ipv4'"),
            ("permit source", "'source' needs a value"),
            ("permit source 10.0.0.1/8", "source: '10.0.0.1/8': "),
            ("permit source @", "'@' needs the name"),
            ("permit source 10.0.0.0/8 source 11.0.0.0/8", "'source' is there twice"),
            ("permit protocol tpc", "protocol: 'tpc' is not a number from 0 to 255 or a known name"),
            ("permit protocol 256", "from 0 to 255"),
            ("permit destination-port 90-80", "the range '90-80' ends before it begins"),
            ("permit destination-port 80,", "'' is not a number from 0 to 65535"),
            ("permit destination-port +80", "'+80' is not a number"),
            ("permit tcp-flags syn,xyz", "tcp-flags: 'xyz' is not one of 'fin', 'syn'"),
            ("permit tcp-flags syn,!syn", "a flag that is set and is not"),
            ("permit established tcp-flags syn", "'tcp-flags' is there twice"),
            ("permit fragment some", "'some' is not one of 'any', 'none'"),
            ("permit in lan,,wan", "has an empty name"),
            ("permit ipv4 ipv6", "is there twice"),
            ("permit dscp 64", "from 0 to 63"),
        ] {
            let error = text.parse::<Rule>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
