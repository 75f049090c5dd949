//! Fixed packets, whose instructions `cargo xtask instructions-router` counts under callgrind.
//!
//! ```text
//! instructions list                    what is counted, one case a line
//! instructions run CASE PASSES         forward all packets PASSES times; print the number of packets
//! ```
//!
//! Frames of 64 bytes go through the whole pipeline in one thread, with ports in memory, in bursts of 32.

use std::process::ExitCode;
use std::sync::Arc;

use fibula::Table;
use fibula::live::Options;
use fibula::net::{IpPrefix, NextHop, Prefix};
use fibula::rib::DualRib;
use fibula_router::acl::{PrefixLists, RuleSet};
use fibula_router::count::Totals;
use fibula_router::forward::Worker;
use fibula_router::forward::fabric::{Fabric, Hop, Urpf};
use fibula_router::measure::{FrameRing, Frames, GATEWAYS, Keys, counters, network};

#[path = "../tests/support/many_rules.rs"]
mod many_rules;
#[path = "../tests/support/random.rs"]
mod random;
use many_rules::{addresses, compile, near};
use random::Random;

/// Number of routes of each family, without the default route.
const ROUTES: usize = 5_000;
/// Frames of a burst. A full one has 64, and its packets share more of the work that a burst costs.
const FRAMES: usize = 32;
const BURSTS: usize = 64;
const PACKETS: usize = FRAMES * BURSTS;

/// The rules of the guide that need no list, and one that lets these packets pass.
const GUIDE: [&str; 8] = [
    "permit in port1",
    "permit in port0 established",
    "permit in port0 protocol udp source-port 53,123 destination-port 1024-65535",
    "permit in port0 destination 192.0.2.10 protocol tcp destination-port 80,443",
    "permit in port0 protocol icmp icmp-type 0,3,8,11,12",
    "permit in port0 protocol icmpv6 icmp-type 1-4,128,129",
    "permit in port0 protocol udp destination-port 53",
    "reject log in port0",
];

/// Rules over a list of 20 prefixes.
const LIST: [&str; 2] = ["deny in port0 source @list", "permit any"];
const LISTED: usize = 20;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rules {
    None,
    Guide,
    List,
    /// 100 rules over 100,000 prefixes.
    Many,
}

/// Settings of the fabric besides rules.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Setting {
    None,
    Bridge,
    /// The receiving interface asks for a route back.
    Urpf,
    /// Each route leads to a group of all gateways.
    Groups,
}

#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    v6: bool,
    setting: Setting,
    rules: Rules,
}

const CASES: [Case; 9] = [
    Case { name: "ipv4", v6: false, setting: Setting::None, rules: Rules::None },
    Case { name: "ipv6", v6: true, setting: Setting::None, rules: Rules::None },
    Case { name: "ipv4-guide-rules", v6: false, setting: Setting::None, rules: Rules::Guide },
    Case { name: "ipv4-list", v6: false, setting: Setting::None, rules: Rules::List },
    Case { name: "ipv4-100-rules", v6: false, setting: Setting::None, rules: Rules::Many },
    Case { name: "ipv6-100-rules", v6: true, setting: Setting::None, rules: Rules::Many },
    Case { name: "ipv4-urpf", v6: false, setting: Setting::Urpf, rules: Rules::None },
    Case { name: "ipv4-groups", v6: false, setting: Setting::Groups, rules: Rules::None },
    Case { name: "bridge", v6: false, setting: Setting::Bridge, rules: Rules::None },
];

/// Makes a table, and addresses below its routes.
fn table(random: &mut Random) -> (Table, Vec<(u32, u128)>) {
    let mut ribs = DualRib::default();
    let mut below = Vec::new();
    let mut insert = |prefix: IpPrefix, number: usize| {
        let hop = NextHop::try_from(number as u32 % GATEWAYS + 1).expect("not zero");
        ribs.insert(prefix, hop).expect("memory for a route");
    };
    insert(IpPrefix::V4(Prefix::of(0, 0)), 0);
    insert(IpPrefix::V6(Prefix::of(0, 0)), 0);
    for number in 0..ROUTES {
        let (v4, v6) = addresses(random);
        let v4 = Prefix::of(v4, *random.pick(&[16, 20, 22, 23, 24, 24, 24, 28]));
        let v6 = Prefix::of(v6, *random.pick(&[32, 40, 44, 48, 48, 48, 64]));
        insert(IpPrefix::V4(v4), number);
        insert(IpPrefix::V6(v6), number);
        let (low, low_6) = addresses(random);
        below.push((v4.addr() | low & (v4.last() ^ v4.addr()), v6.addr() | low_6 & (v6.last() ^ v6.addr())));
    }
    (Table::from_routes(ribs, Options::default()).expect("memory for the table"), below)
}

/// Makes the rules of a case. Those over many prefixes have packets of their own.
fn rules(
    case: Case,
    random: &mut Random,
    to: &mut [(u32, u128)],
    from: &mut Vec<(u32, u128)>,
) -> Option<RuleSet> {
    match case.rules {
        Rules::None => None,
        Rules::Guide => Some(compile(&GUIDE, &PrefixLists::default())),
        Rules::List => {
            let prefixes = (0..LISTED).map(|_| IpPrefix::V4(Prefix::of(addresses(random).0, 20)));
            let mut lists = PrefixLists::default();
            lists.add("list", &prefixes.collect::<Vec<_>>(), None).expect("memory for a list");
            Some(compile(&LIST, &lists))
        }
        Rules::Many => {
            let prefixes = many_rules::prefixes(random, case.v6);
            to.fill_with(|| near(random, &prefixes));
            from.resize_with(PACKETS, || near(random, &prefixes));
            Some(compile(&many_rules::texts(), &many_rules::lists(&prefixes)))
        }
    }
}

/// Makes the frames of a burst.
fn ring(v6: bool, to: &[(u32, u128)], from: &[(u32, u128)]) -> FrameRing {
    let narrow = |all: &[(u32, u128)]| all.iter().map(|both| both.0).collect::<Vec<_>>();
    let wide = |all: &[(u32, u128)]| all.iter().map(|both| both.1).collect::<Vec<_>>();
    // IPv6 has room for ports in 66 bytes, and rules are measured over packets with ports.
    let frames = match v6 {
        false => Frames::new(Keys::V4(&narrow(to)), None, FRAMES, 64, 0),
        true if from.is_empty() => Frames::new(Keys::V6(&wide(to)), None, FRAMES, 64, 0),
        true => Frames::new(Keys::V6(&wide(to)), None, FRAMES, 66, 0),
    };
    let mut frames = frames.expect("addresses to forward to");
    match v6 {
        false => frames.set_sources(Keys::V4(&narrow(from))),
        true => frames.set_sources(Keys::V6(&wide(from))),
    }
    FrameRing::new([frames])
}

fn set(fabric: &mut Fabric, setting: Setting) {
    match setting {
        Setting::None | Setting::Bridge => {}
        Setting::Urpf => fabric.interfaces[0].urpf = Urpf::Loose,
        Setting::Groups => {
            // Routes keep their numbers, which are groups from here on. The gateways get the numbers after these.
            let gateways = fabric.hops.split_off(1);
            let first = gateways.len() as u32 + 1;
            let members: Box<[u32]> = (first..first + gateways.len() as u32).collect();
            fabric.hops.extend(gateways.iter().map(|_| Some(Hop::Group(members.clone()))));
            fabric.hops.extend(gateways);
        }
    }
}

/// Forwards all packets `passes` times.
fn run(case: Case, passes: usize) {
    let mut random = Random::new(7);
    let (table, mut to) = table(&mut random);
    let shared = network(table, 1, case.setting == Setting::Bridge);
    let mut from = Vec::new();
    let rules = rules(case, &mut random, &mut to, &mut from);
    let mut fabric = (*shared.fabric()).clone();
    fabric.forward_rules = rules.map(Arc::new);
    set(&mut fabric, case.setting);
    shared.replace(fabric);
    // A ring gives as many frames as it has, so each burst has a ring of its own.
    let burst = |at: usize| {
        let part = at * FRAMES..(at + 1) * FRAMES;
        ring(case.v6, &to[part.clone()], from.get(part).unwrap_or_default())
    };
    let mut rings: Vec<FrameRing> = (0..BURSTS).map(burst).collect();
    let counts = counters(2);
    let mut worker = Worker::new(shared, Arc::clone(&counts)).expect("memory for a worker");
    for _ in 0..passes {
        // Forwarding spends the TTL.
        rings.iter_mut().for_each(FrameRing::renew);
        forward(&mut worker, &mut rings);
    }
    let mut totals = Totals::default();
    counts[0].add_to(&mut totals);
    let expected = (passes * PACKETS) as u64;
    assert_eq!((totals.forwarded, totals.received), (expected, expected), "{totals:?}");
}

/// One pass: a function of its own, whose instructions alone callgrind counts.
#[inline(never)]
fn forward(worker: &mut Worker, rings: &mut [FrameRing]) {
    for ring in rings {
        worker.burst(ring, 0, 1);
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["list"] => CASES.iter().for_each(|case| println!("{}", case.name)),
        ["run", name, passes] => {
            let case = CASES.iter().find(|case| case.name == name);
            let (Some(&case), Ok(passes)) = (case, passes.parse()) else {
                eprintln!("instructions: no such case, or no number of passes");
                return ExitCode::from(2);
            };
            run(case, passes);
            println!("{PACKETS}");
        }
        _ => {
            eprintln!("usage: instructions list | run CASE PASSES");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
