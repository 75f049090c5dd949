//! Output of `ip route` on Linux: a route a line, or a route of several next hops with one on each line after it.

use fibula::net::{Family, HostBits, parse_address};

use super::head::TextHead;
use super::record::{NamedFields, RouteScope, TableRecord};
use super::{ByRule, Document, Settings, Stop, Take};
use crate::text::{self, LineError, LineErrorKind};

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
    "nat",
];

/// Words that are followed by a value.
const WITH_VALUE: &[&str] = &[
    "via",
    "dev",
    "proto",
    "protocol",
    "scope",
    "src",
    "metric",
    "table",
    "pref",
    "mtu",
    "advmss",
    "weight",
    "nhid",
    "expires",
    "error",
    "hoplimit",
    "realm",
    "realms",
    "rtt",
    "rttvar",
    "window",
    "cwnd",
    "initcwnd",
    "initrwnd",
    "tos",
    "from",
    "encap",
    "ssthresh",
    "rto_min",
    "quickack",
    "congctl",
    "features",
    "preference",
];

/// Words without a value.
const FLAGS: &[&str] =
    &["onlink", "pervasive", "linkdown", "dead", "offload", "trap", "notify", "rt_offload"];

/// The tables that the kernel's default rules look up. A route without a table is in one of them, too, because
/// `ip route show table all` does not name the main one.
const MAIN: &[&str] = &["main", "254", "default", "253"];

/// Most bytes of a route with all its next hops.
const ROUTE_BYTES: usize = 64 << 10;

/// The metric of an IPv6 route that prints none is 0 in text; of several routes the lowest metric is in use.
#[derive(Default)]
struct IpRoute {
    /// A route whose next hops come on the lines after it, and its number.
    waiting: Option<(u64, String)>,
    /// Its next hops.
    next_hops: Vec<String>,
}

pub(super) fn claims(head: &TextHead<'_>, _: &Settings<'_>) -> usize {
    if head.count(is_strong) == 0 {
        return 0;
    }
    head.count(|line| is_strong(line) || is_weak(line))
}

pub(super) fn read() -> Box<dyn Document> {
    Box::<IpRoute>::default()
}

fn is_prefix(word: &str) -> bool {
    word == "default" || text::place(word, HostBits::Mask).is_ok()
}

/// Returns whether only `ip route` prints such a line.
fn is_strong(line: &str) -> bool {
    if line.contains('\\') && line.contains("nexthop ") {
        return true;
    }
    let is_next = |word: &str| WITH_VALUE.contains(&word) || FLAGS.contains(&word);
    let mut words = line.split_ascii_whitespace();
    let words: [&str; 4] = core::array::from_fn(|_| words.next().unwrap_or_default());
    match words {
        ["nexthop", "via" | "dev", ..] => true,
        [kind, destination, ..] if TYPES.contains(&kind) => is_prefix(destination),
        // 'PREFIX via NEXT-HOP' alone is a line of any table.
        ["default", "via", ..] => true,
        [destination, "via", "inet" | "inet6", _] => is_prefix(destination),
        [destination, "via", _, next] => is_prefix(destination) && is_next(next),
        [destination, word, _, _] => word != "via" && WITH_VALUE.contains(&word) && is_prefix(destination),
    }
}

/// Returns whether a line may be of this form if others certainly are.
fn is_weak(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    let words: [&str; 4] = core::array::from_fn(|_| words.next().unwrap_or_default());
    match words {
        [destination, "" | "via", ..] => is_prefix(destination),
        _ => false,
    }
}

impl IpRoute {
    fn finish(&mut self, take: &mut dyn Take) -> Result<(), Stop> {
        let Some((number, route)) = self.waiting.take() else { return Ok(()) };
        let next_hops = std::mem::take(&mut self.next_hops);
        if next_hops.is_empty() {
            return said(&route, number, take);
        }
        let is = |next_hop: &str, flag: &str| next_hop.split_ascii_whitespace().any(|word| word == flag);
        let alive = |next_hop: &&String| !is(next_hop, "dead") && !is(next_hop, "linkdown");
        // A next hop whose link is down is in use only where no other is left.
        let used = next_hops.iter().find(alive).or(next_hops.iter().find(|next_hop| !is(next_hop, "dead")));
        match used {
            Some(next_hop) => said(&format!("{route} {next_hop}"), number, take),
            None => {
                take.by_rule(ByRule::NotInUse);
                Ok(())
            }
        }
    }

    fn part(&mut self, part: &str, number: u64, take: &mut dyn Take) -> Result<(), Stop> {
        if let Some(next_hop) = part.strip_prefix("nexthop ") {
            let held = self.next_hops.iter().map(String::len).sum::<usize>();
            if self.waiting.is_none() || self.next_hops.len() >= 1024 || held > ROUTE_BYTES {
                return take.bad(number, LineError::new(LineErrorKind::MissingField("prefix"), 0), part);
            }
            self.next_hops.push(next_hop.trim().to_owned());
            return Ok(());
        }
        self.finish(take)?;
        if part.is_empty() || part.starts_with('#') || is_prompt(part) {
            return Ok(());
        }
        let has_next_hop = part.split_ascii_whitespace().any(|word| matches!(word, "via" | "dev"))
            || part.split_ascii_whitespace().next().is_some_and(|word| TYPES.contains(&word));
        if has_next_hop {
            return said(part, number, take);
        }
        self.waiting = Some((number, part.to_owned()));
        Ok(())
    }
}

/// Returns whether a line is the command that printed the routes, as people paste it.
pub(super) fn is_prompt(line: &str) -> bool {
    ["ip route", "ip -", "ip r", "route -", "netstat -", "show ip", "show bgp", "birdc"].iter().any(
        |command| {
            line.starts_with(command)
                || line
                    .split_once(['$', '#', '>'])
                    .is_some_and(|(_, rest)| rest.trim_start().starts_with(command))
        },
    )
}

impl Document for IpRoute {
    fn line(&mut self, line: &str, number: u64, take: &mut dyn Take) -> Result<(), Stop> {
        // 'ip -o route' joins the lines of a route.
        line.split('\\').try_for_each(|part| self.part(part.trim(), number, take))
    }

    fn end(&mut self, take: &mut dyn Take) -> Result<(), Stop> {
        self.finish(take)
    }
}

fn said(route: &str, number: u64, take: &mut dyn Take) -> Result<(), Stop> {
    let mut words = route.split_ascii_whitespace().peekable();
    let mut fields = NamedFields::default();
    let kind = words.next_if(|word| TYPES.contains(word));
    let prefix = words.next().unwrap_or_default();
    fields.push("prefix", prefix);
    let (mut via, mut dev, mut family) = (None, None, None);
    let (mut metric, mut table, mut from) = (0, None, None);
    let mut is_dead = false;
    while let Some(word) = words.next() {
        is_dead |= word == "dead";
        if !WITH_VALUE.contains(&word) {
            continue;
        }
        let mut value = words.next().unwrap_or_default();
        match (word, value) {
            // A next hop of the other family: 'via inet6 fe80::1'.
            ("via", "inet6") => family = Some(Family::Ipv4),
            ("via", "inet") => family = Some(Family::Ipv6),
            // Only IPv6 has these words.
            ("pref" | "error", _) => family = Some(Family::Ipv6),
            ("src", address) => family = family.or(family_of(address)),
            ("from", address) => family = family.or(family_of(address.split('/').next().unwrap_or_default())),
            _ => {}
        }
        if word == "via" && matches!(value, "inet" | "inet6") {
            value = words.next().unwrap_or_default();
        }
        match word {
            "via" => via = via.or(Some(value)),
            "dev" => dev = dev.or(Some(value)),
            "metric" => metric = value.parse().unwrap_or(u64::MAX),
            "table" => table = Some(value).filter(|table| !MAIN.contains(table)),
            "from" => from = Some(value),
            _ => {}
        }
        fields.push(word, value);
    }
    if is_dead {
        take.by_rule(ByRule::NotInUse);
        return Ok(());
    }
    // A route from certain sources only does not answer for all.
    if from.is_some_and(|from| !matches!(from, "all" | "default" | "::/0" | "0.0.0.0/0")) {
        take.by_rule(ByRule::SourceSpecific);
        return Ok(());
    }
    let Some(next_hop) = via.or(dev.filter(|_| !kind.is_some_and(is_refusing))).or(kind) else {
        let error = LineError::new(LineErrorKind::NoNextHop, route.len());
        return take.bad(number, error, route);
    };
    let kind = kind.filter(|kind| is_refusing(kind));
    fields.push("next_hop", kind.unwrap_or(next_hop));
    let place = RouteScope::Prefix(prefix);
    take.record(
        &TableRecord { place, rank: Some(metric), family, vrf: table, fields: &fields },
        number,
        route,
    )
}

/// Returns whether a kind of routes sends nothing on, whatever its device.
fn is_refusing(kind: &str) -> bool {
    matches!(kind, "unreachable" | "blackhole" | "prohibit" | "throw")
}

fn family_of(address: &str) -> Option<Family> {
    let address = parse_address(address.as_bytes()).ok()?;
    Some(if address.is_ipv4() { Family::Ipv4 } else { Family::Ipv6 })
}
