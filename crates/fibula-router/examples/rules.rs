//! What rules cost a packet: 64-byte frames of IPv4 and IPv6 through the whole pipeline, with ports in memory, with and without rules.
//!
//! `cargo run --release -p fibula-router --example rules -- [--passes N] [--record FILE]`. There are 100 rules over 10 prefix lists with
//! 100,000 prefixes of each family, over ports, protocols, lengths and interfaces; packets are from and to random addresses, of which
//! half are in a list. Passes with and without rules alternate, and the median of the differences of their processor times is shown: the
//! cost of the rules. One more measurement has a single rule that tests a port.

use std::process::ExitCode;
use std::sync::Arc;

use fibula::Table;
use fibula::net::{IpPrefix, NextHop};
use fibula_router::acl::RuleSet;
use fibula_router::forward::{Shared, Worker};
use fibula_router::io::BURST;
use fibula_router::measure::{FrameRing, Frames, Keys, counters, network};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

#[path = "../tests/support/circumstances.rs"]
mod circumstances;
#[path = "../tests/support/many_rules.rs"]
mod many_rules;
#[path = "../tests/support/random.rs"]
mod random;
use many_rules::{LISTS, PREFIXES, RULES, compile, near};
use random::Random;

const PACKETS: usize = 1 << 16;

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns the processor time of this thread that a pass over all packets takes, in nanoseconds a packet.
fn pass(worker: &mut Worker, io: &mut FrameRing) -> f64 {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
    };
    io.renew();
    let begin = now();
    for _ in 0..PACKETS / BURST {
        worker.burst(io, 0, 1);
    }
    (now() - begin) / PACKETS as f64
}

fn measure(v6: bool, passes: usize) -> Vec<(&'static str, f64)> {
    let mut random = Random::new(7);
    let prefixes = many_rules::prefixes(&mut random, v6);
    let lists = many_rules::lists(&prefixes);
    let table = Table::new().expect("memory for a table");
    for all in ["0.0.0.0/0", "::/0"] {
        let hop = NextHop::try_from(1).expect("not zero");
        table.insert(all.parse::<IpPrefix>().expect("a prefix"), hop).expect("memory for a route");
    }
    let shared = network(table, 1, false);
    let to: Vec<_> = (0..PACKETS).map(|_| near(&mut random, &prefixes)).collect();
    let from: Vec<_> = (0..PACKETS).map(|_| near(&mut random, &prefixes)).collect();
    let narrow = |all: &[(u32, u128)]| all.iter().map(|both| both.0).collect::<Vec<_>>();
    let wide = |all: &[(u32, u128)]| all.iter().map(|both| both.1).collect::<Vec<_>>();
    let frames = match v6 {
        false => Frames::new(Keys::V4(&narrow(&to)), None, PACKETS, 64, 0),
        true => Frames::new(Keys::V6(&wide(&to)), None, PACKETS, 66, 0),
    };
    let mut frames = frames.expect("addresses to forward to");
    match v6 {
        false => frames.set_sources(Keys::V4(&narrow(&from))),
        true => frames.set_sources(Keys::V6(&wide(&from))),
    }
    let begin = std::time::Instant::now();
    let all = compile(&many_rules::texts(), &lists);
    let compiled = begin.elapsed().as_secs_f64() * 1e3;
    let one = compile(&["deny destination-port 9"], &lists);
    let mut io = FrameRing::new([frames]);
    let mut bare = Worker::new(Arc::clone(&shared), counters(2)).expect("memory for a worker");
    let (mut without, mut with, mut single) = (vec![], vec![], vec![]);
    let with_rules = |rules: RuleSet| {
        let mut fabric = (*shared.fabric()).clone();
        fabric.forward_rules = Some(Arc::new(rules));
        fabric
    };
    let shared_all = network_like(&shared, with_rules(all));
    let shared_one = network_like(&shared, with_rules(one));
    let mut filtered = Worker::new(shared_all, counters(2)).expect("memory for a worker");
    let mut narrow_one = Worker::new(shared_one, counters(2)).expect("memory for a worker");
    for _ in 0..passes {
        let bare_ns = pass(&mut bare, &mut io);
        with.push(pass(&mut filtered, &mut io) - bare_ns);
        single.push(pass(&mut narrow_one, &mut io) - bare_ns);
        without.push(bare_ns);
    }
    vec![
        ("without rules", median(without)),
        ("100 rules over 100,000 prefixes, more", median(with)),
        ("one rule, more", median(single)),
        ("compiling, milliseconds", compiled),
    ]
}

/// Shares a fabric with the neighbours of another router.
fn network_like(known: &Arc<Shared>, fabric: fibula_router::forward::fabric::Fabric) -> Arc<Shared> {
    let shared = Shared::new(fabric, Default::default());
    known.neighbours.for_each(|key, mac, _| {
        if let Some(mac) = mac {
            shared.neighbours.learn(key, mac, true, true, 0);
        }
    });
    shared
}

fn main() -> ExitCode {
    let (mut passes, mut path) = (51, None);
    let usage = || {
        eprintln!("usage: rules [--passes N] [--record FILE]");
        ExitCode::from(2)
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--passes" => passes = args.next().and_then(|count| count.parse().ok()).unwrap_or(passes),
            "--record" => match args.next() {
                Some(file) => path = Some(file),
                None => return usage(),
            },
            _ => return usage(),
        }
    }
    let load = circumstances::load();
    let mut measured = serde_json::Map::new();
    for (v6, family) in [(false, "ipv4"), (true, "ipv6")] {
        let rows = measure(v6, passes);
        println!("{family}, nanoseconds a packet");
        rows.iter().for_each(|(name, ns)| println!("  {name:<46}{ns:8.1}"));
        let rows = rows.iter().map(|(name, ns)| ((*name).to_owned(), ((ns * 10.0).round() / 10.0).into()));
        measured.insert(family.to_owned(), serde_json::Value::Object(rows.collect()));
    }
    let record = circumstances::record(
        load,
        &json!({
            "what": "nanoseconds a packet that rules add, ports in memory (examples/rules.rs)",
            "prefixes_of_each_family": PREFIXES,
            "lists": LISTS,
            "rules": RULES,
            "packets": PACKETS,
            "passes": passes,
            "measured": measured,
        }),
    );
    if let Some(path) = path
        && let Err(error) = std::fs::write(&path, format!("{record:#}\n"))
    {
        eprintln!("{path}: {error}");
        return ExitCode::from(3);
    }
    ExitCode::SUCCESS
}
