//! Many rules over long prefix lists, and packets that they are about: those that examples measure and count.
//! Each example takes the part that it needs.
#![allow(dead_code, unreachable_pub)]

use fibula::net::{IpPrefix, Prefix};
use fibula_router::acl::{Action, LogRate, PrefixLists, RuleSet};

use super::random::Random;

pub const LISTS: usize = 10;
pub const PREFIXES: usize = 100_000;
pub const RULES: usize = 100;

/// Returns a random IPv4 address that may be forwarded, and an IPv6 address.
pub fn addresses(random: &mut Random) -> (u32, u128) {
    let v4 = (16 + (random.next() % 80) as u32) << 24 | random.next() as u32 & 0xff_ffff;
    (v4, 0x2000_u128 << 112 | u128::from(random.next()) << 52 | u128::from(random.next() >> 12))
}

pub fn prefixes(random: &mut Random, v6: bool) -> Vec<IpPrefix> {
    let prefix = |_| {
        let (v4, wide) = addresses(random);
        match v6 {
            true => IpPrefix::V6(Prefix::of(wide, [32, 44, 48, 48, 64][random.next() as usize % 5])),
            false => IpPrefix::V4(Prefix::of(v4, [16, 20, 22, 24, 24, 24, 32][random.next() as usize % 7])),
        }
    };
    (0..PREFIXES).map(prefix).collect()
}

/// Returns an address below a prefix, or any.
pub fn near(random: &mut Random, prefixes: &[IpPrefix]) -> (u32, u128) {
    let (v4, v6) = addresses(random);
    if random.next().is_multiple_of(2) {
        return (v4, v6);
    }
    match prefixes[random.next() as usize % prefixes.len()] {
        IpPrefix::V4(prefix) => (prefix.addr() | v4 & (prefix.addr() ^ prefix.last()), v6),
        IpPrefix::V6(prefix) => (v4, prefix.addr() | v6 & (prefix.addr() ^ prefix.last())),
    }
}

/// Returns the prefixes as lists of the same length.
pub fn lists(prefixes: &[IpPrefix]) -> PrefixLists {
    let mut lists = PrefixLists::default();
    for (number, part) in prefixes.chunks(PREFIXES / LISTS).enumerate() {
        lists.add(&format!("list{number}"), part, None).expect("memory for a list");
    }
    lists
}

/// Returns 100 rules, of which the last few are about most packets.
pub fn texts() -> Vec<String> {
    let mut texts: Vec<String> = (0..RULES - 2)
        .map(|number| {
            let (list, port) = (number % LISTS, 1024 + 600 * number);
            match number % 5 {
                0 => format!("deny source @list{list} destination-port {port}-{}", port + 5),
                1 => format!("permit destination @list{list} protocol tcp destination-port {number}"),
                2 => format!(
                    "count source @list{list} destination @list{} length 1000-1500",
                    (list + 3) % LISTS
                ),
                3 => format!("deny protocol gre,esp source @list{list}"),
                _ => format!("reject in port1 source-port {port},{number} destination @list{list}"),
            }
        })
        .collect();
    texts.push("permit protocol udp destination-port 53".into());
    texts.push("permit any".into());
    texts
}

/// Compiles rules over these lists. Interfaces are `port0` and `port1`.
pub fn compile(texts: &[impl AsRef<str>], lists: &PrefixLists) -> RuleSet {
    let find = |_, name: &str| name.strip_prefix("port").and_then(|number| number.parse().ok());
    let rules = texts.iter().map(|text| text.as_ref().parse().expect("a rule")).collect();
    RuleSet::compile(rules, Action::Permit, LogRate::default(), lists, &find).expect("memory for rules")
}
