//! What `ip route` prints on Linux: a route a line, or a route of several next hops with one on each line after it.

use fibula::net::{HostBits, IpPrefix};

use super::{Document, Kind, Reading, Record};

pub(super) const KIND: Kind = Kind { recognise };

/// Words before the prefix of a route without a next hop, which then is its label.
const TYPES: &[&str] = &[
    "unreachable",
    "blackhole",
    "prohibit",
    "throw",
    "local",
    "broadcast",
    "multicast",
    "anycast",
    "unicast",
];

/// Words that are followed by a value.
const WITH_VALUE: &[&str] = &[
    "via", "dev", "proto", "protocol", "scope", "src", "metric", "table", "pref", "mtu", "advmss", "weight",
    "nhid", "expires", "error", "hoplimit", "realm", "realms", "rtt", "rttvar", "window", "cwnd", "initcwnd",
    "initrwnd", "tos",
];

#[derive(Default)]
struct IpRoute {
    /// The words of a route whose next hops come on the lines after it.
    waiting: Option<String>,
}

fn recognise(line: &str) -> Option<Box<dyn Document>> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let prefix = |word: &str| word == "default" || IpPrefix::parse(word.as_bytes(), HostBits::Mask).is_ok();
    let is_ours = match words[..] {
        [kind, destination, ..] if TYPES.contains(&kind) => prefix(destination),
        // 'PREFIX via NEXT-HOP' alone is a line of any table.
        ["default", "via", ..] => true,
        [destination, "via", _, next, _, ..] => prefix(destination) && WITH_VALUE.contains(&next),
        [destination, word, _, ..] => prefix(destination) && word != "via" && WITH_VALUE.contains(&word),
        _ => false,
    };
    is_ours.then(|| Box::<IpRoute>::default() as Box<dyn Document>)
}

impl Document for IpRoute {
    fn line(&mut self, line: &str, each: &mut dyn FnMut(Record<'_>) -> Reading) -> Reading {
        // 'ip -o route' joins the lines of a route.
        let mut outcome = Ok(());
        for part in line.split('\\') {
            let part = part.trim();
            if let Some(next_hop) = part.strip_prefix("nexthop ") {
                // The first next hop stands for all.
                if let Some(route) = self.waiting.take() {
                    outcome = outcome.and(each(record(&format!("{route} {next_hop}"))));
                }
            } else if !part.is_empty() && !part.starts_with('#') {
                self.waiting = None;
                let words: Vec<&str> = part.split_ascii_whitespace().collect();
                let leads =
                    words.iter().any(|word| matches!(*word, "via" | "dev")) || TYPES.contains(&words[0]);
                if leads {
                    outcome = outcome.and(each(record(part)));
                } else {
                    self.waiting = Some(part.to_owned());
                }
            }
        }
        outcome
    }
}

fn record(route: &str) -> Record<'_> {
    let mut words = route.split_ascii_whitespace().peekable();
    let mut record = Record::default();
    let kind = words.next_if(|word| TYPES.contains(word));
    record.push("prefix", words.next().unwrap_or_default());
    let (mut via, mut dev) = (None, None);
    while let Some(word) = words.next() {
        if !WITH_VALUE.contains(&word) {
            continue;
        }
        let mut value = words.next().unwrap_or_default();
        // A next hop of the other family: 'via inet6 fe80::1'.
        if word == "via" && matches!(value, "inet" | "inet6") {
            value = words.next().unwrap_or_default();
        }
        match word {
            "via" => via = via.or(Some(value)),
            "dev" => dev = dev.or(Some(value)),
            _ => {}
        }
        record.push(word, value);
    }
    record.push("next_hop", via.or(dev).or(kind).unwrap_or_default());
    record
}
