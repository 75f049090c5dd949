//! The program of `fast = true` in the kernel, against the router in memory: `cargo test -p fibula-router --test fast [NAME]`. Needs root
//! and BPF; without them the tests are ignored, with the reason.
//!
//! Both get each frame, with the same tables, next hops and neighbours. What the program forwards or drops must be what the router
//! does, to the byte and in the same counter. What it leaves to the router must be as it came, and may not be what needs no thought.
#![cfg(target_os = "linux")]

mod bench;
mod gate;
mod random;
#[path = "../support/mod.rs"]
mod support;

use std::io::ErrorKind;
use std::process::ExitCode;
use std::time::Duration;

use fibula_router::io::xdp;
use fibula_router::kernel::filter::Filter;
use fibula_router::neighbour::{Key, Limits};
use fibula_router::packet::flow::FlowHash;
use libtest_mimic::{Arguments, Completion, Failed, Trial};

use bench::{Bench, Done, Fault};
use random::RandomFrames;
use support::cases::cases;
use support::frames;
use support::network::PORTS;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = vec![
        trial("golden", golden),
        trial("neighbours", neighbours),
        trial("changes", changes),
        trial("groups", groups),
        trial("rules", rules),
        gate_trial(),
        trial("sockets", sockets),
    ];
    for seed in 0..3 {
        trials.push(trial(&format!("random/{seed}"), move || random_frames(seed, None, 2000).map(drop)));
    }
    for fault in Fault::ALL {
        trials.push(trial(&format!("control/{fault:?}"), move || control(fault)));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trial(name: &str, run: impl FnOnce() -> Result<(), String> + Send + 'static) -> Trial {
    Trial::ignorable_test(name, move || match no_bpf() {
        Some(why) => Ok(Completion::ignored_with(why)),
        None => run().map(|()| Completion::Completed).map_err(Failed::from),
    })
}

fn gate_trial() -> Trial {
    Trial::ignorable_test("gate", || match no_bpf() {
        Some(why) => Ok(Completion::ignored_with(why)),
        None if !std::path::Path::new("/dev/net/tun").exists() => {
            Ok(Completion::ignored_with("no /dev/net/tun"))
        }
        None => gate::random_frames().map(|()| Completion::Completed).map_err(Failed::from),
    })
}

/// Returns why no program can be loaded here. A program that the verifier refuses is no reason.
fn no_bpf() -> Option<String> {
    let found = Filter::load().err()?;
    let is_lack = matches!(found.kind(), ErrorKind::PermissionDenied | ErrorKind::Unsupported);
    is_lack.then(|| format!("no BPF: {found}"))
}

fn bench(fault: Option<Fault>) -> Result<Bench, String> {
    Bench::new(fault).map_err(|error| error.to_string())
}

/// A queue that is freed a little later, as the kernel frees those of a router that has ended, is waited for; one that is not is refused.
/// The device is the loopback, to which no program is attached here.
fn sockets() -> Result<(), String> {
    const LOOPBACK: u32 = 1;
    let port = xdp::Wanted { port: 0, frames: 64, queues: 1, senders: vec![] };
    let new = || xdp::Opener::new(std::slice::from_ref(&port), 1, None).map_err(|error| error.to_string());
    let (mut former, _former_ends, _) = new()?;
    let held = former.open(&port, LOOPBACK).map_err(|error| format!("the first socket: {error}"))?;
    let (mut opener, _ends, _) = new()?;
    match opener.open(&port, LOOPBACK) {
        Err(error) if error.kind() == ErrorKind::ResourceBusy => {}
        Err(error) => return Err(format!("of a queue that is taken: {error}")),
        Ok(_) => return Err("a queue has two sockets".into()),
    }
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            drop(held);
        });
        opener.open(&port, LOOPBACK).map(drop).map_err(|error| format!("after the other: {error}"))
    })
}

/// Every frame of the golden cases.
fn golden() -> Result<(), String> {
    let (mut forwarded, mut dropped, mut slow) = (0, 0, 0);
    let mut bench = bench(None)?;
    for (file, case) in cases() {
        bench.reset();
        let mut last = Vec::new();
        for (number, line) in &case.lines {
            let (word, rest) = line.split_once(' ').ok_or("too short")?;
            let (first, text) = rest.split_once(' ').unwrap_or((rest, ""));
            match word {
                "in" => {
                    let frame = frames::build(text, &last);
                    last.clone_from(&frame.bytes);
                    let port = PORTS.iter().position(|&name| name == first).ok_or("no such port")?;
                    // A program never sees a frame whose tag is beside it, nor one without a whole header.
                    if frame.tag.is_some() || frame.bytes.len() < 14 {
                        bench.only_router(port, frame);
                        continue;
                    }
                    let done = bench.frame(port, &frame.bytes);
                    match done.map_err(|error| format!("{file}, {}, line {number}: {error}", case.name))? {
                        Done::Forwarded(_) => forwarded += 1,
                        Done::Dropped(_) => dropped += 1,
                        Done::Slow => slow += 1,
                    }
                }
                "wait" => bench.wait(frames::number(first)),
                _ => {}
            }
        }
    }
    println!("golden frames: {forwarded} forwarded, {dropped} dropped, {slow} left to the router");
    if forwarded < 15 || dropped < 3 || slow < 40 {
        return Err(format!("{forwarded} forwarded, {dropped} dropped, {slow} left to the router: too few"));
    }
    Ok(())
}

/// Random frames through a fabric that changes. Returns how many were forwarded.
fn random_frames(seed: u64, fault: Option<Fault>, count: usize) -> Result<usize, String> {
    let mut bench = bench(fault)?;
    let mut random = RandomFrames::new(seed);
    bench.fabric.hash = FlowHash { seed: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), symmetric: seed % 2 == 1 };
    bench.publish();
    let (mut forwarded, mut dropped) = (0, 0);
    for number in 0..count {
        if number % 200 == 199 {
            random.change(&mut bench.fabric);
            bench.publish();
        }
        let (port, frame) = random.frame();
        match bench.frame(port, &frame).map_err(|error| format!("seed {seed}, frame {number}: {error}"))? {
            Done::Forwarded(_) => forwarded += 1,
            Done::Dropped(_) => dropped += 1,
            Done::Slow => {}
        }
    }
    println!("seed {seed}: {forwarded} of {count} frames forwarded, {dropped} dropped");
    if fault.is_none() && (forwarded < count / 10 || dropped < count / 100) {
        return Err(format!(
            "{forwarded} of {count} frames forwarded, {dropped} dropped: too few to say anything"
        ));
    }
    Ok(forwarded)
}

/// The comparison finds a fault that is planted into what the program reads.
fn control(fault: Fault) -> Result<(), String> {
    match (0..4).find_map(|seed| random_frames(seed, Some(fault), 2000).err()) {
        Some(_) => Ok(()),
        None => Err("a planted fault was not found".into()),
    }
}

/// Packets that differ in one thing from those that are forwarded, each by a route to a neighbour or to a group.
fn rules() -> Result<(), String> {
    let mut bench = bench(None)?;
    for prefix in
        ["0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3", "::/96", "fe80::/10", "ff00::/8"]
    {
        // Routes that the rules do not let packets have.
        let prefix = prefix.parse::<fibula::net::IpPrefix>().map_err(|error| error.to_string())?;
        let hop = fibula::net::NextHop::try_from(bench.ways()[0]).map_err(|error| error.to_string())?;
        bench.fabric.vrfs[0].table.insert(prefix, hop).map_err(|error| error.to_string())?;
    }
    let mut texts: Vec<String> = Vec::new();
    for to in ["0.0.0.7", "127.0.0.9", "169.254.7.7", "169.253.7.7", "224.0.0.9", "239.1.2.3", "240.0.0.1"] {
        texts.push(format!("ip4 10.0.0.1 {to} / udp 1 2 / data 20"));
        texts.push(format!("ip4 {to} 198.51.0.9 / udp 1 2 / data 20"));
    }
    for to in ["::1", "::", "::7", "fe80::a", "febf::a", "fec0::a", "ff02::1", "fe00::1"] {
        texts.push(format!("ip6 2001:db8:0::1 {to} / udp 1 2 / data 20"));
        texts.push(format!("ip6 {to} 2001:db8:100:0::9 / udp 1 2 / data 20"));
    }
    for port in 0..30 {
        for to in ["198.51.2.9", "198.51.0.9"] {
            for option in ["", " mf", " off=3", " off=8184", " off=8189", " df", " tos=7", " ttl=1", " ttl=2"]
            {
                texts.push(format!("ip4 10.0.0.1 {to}{option} / udp {port} 2 / data 20"));
            }
            // Ends within the ports, before bytes that are not the packet's.
            texts.push(format!("ip4 10.0.0.1 {to} proto=17 / hex 00{port:02x} / pad 20"));
            texts.push(format!(
                "ip4 10.0.0.1 {to} proto={} / hex {port:04x}000200000000",
                [6, 33, 132, 136, 47, 1][port % 6]
            ));
        }
        for to in ["2001:db8:100:2::9", "2001:db8:100:0::9"] {
            texts.push(format!("ip6 2001:db8:0::1 {to} label={} / udp 1 2 / data 20", port * 36_157));
            texts.push(format!("ip6 2001:db8:0::1 {to} / udp {port} 2 / data 20"));
            texts.push(format!("ip6 2001:db8:0::1 {to} next=17 / hex 00{port:02x} / pad 20"));
            texts.push(format!("ip6 2001:db8:0::1 {to} / frag 0 more / udp {port} 2 / data 20"));
            for hop in [255, 254] {
                texts
                    .push(format!("ip6 2001:db8:0::1 {to} hop={hop} / icmp6 {} 0 00000000", 130 + port % 10));
            }
        }
    }
    // Sources that are the router's by its routes, and by its addresses.
    for source in ["10.0.0.255", "10.0.0.254", "10.0.4.254", "10.0.4.255", "10.0.3.254", "10.0.4.190"] {
        texts.push(format!("ip4 {source} 198.51.0.9 / udp 1 2 / data 20"));
    }
    for source in ["2001:db8:0::fe", "2001:db8:4::fe", "2001:db8:3::fe"] {
        texts.push(format!("ip6 {source} 2001:db8:100:0::9 / udp 1 2 / data 20"));
    }
    let mut forwarded = 0;
    for symmetric in [false, true] {
        bench.fabric.hash = FlowHash { seed: 99, symmetric };
        bench.publish();
        for text in &texts {
            for port in [0, 3, 4] {
                let frame = frames::build(&format!("eth R{port} A / {text}"), &[]).bytes;
                let done = bench.frame(port, &frame).map_err(|error| format!("{text}: {error}"))?;
                forwarded += usize::from(matches!(done, Done::Forwarded(_)));
            }
        }
    }
    println!("{forwarded} frames forwarded");
    if forwarded < 500 { Err("too few are forwarded".into()) } else { Ok(()) }
}

/// A packet to a neighbour that is not known is the router's, and the program forwards the next one. One that is lost is not used any more.
fn neighbours() -> Result<(), String> {
    let mut bench = bench(None)?;
    let frame = frames::build("eth R0 A / ip4 10.0.0.1 10.0.1.77 / udp 1 2 / data 20", &[]).bytes;
    let key = Key::v4(1, 0x0a00_014d);
    let is = |done: Done, wanted: bool| match (&done, wanted) {
        (Done::Forwarded(1), true) | (Done::Slow, false) => Ok(()),
        _ => Err(format!("{done:?}, to be forwarded: {wanted}")),
    };
    is(bench.frame(0, &frame)?, false)?;
    for round in 0..3 {
        let mac = fibula_router::packet::ethernet::Mac([2, 0, 0, 9, 9, round]);
        bench.network.shared.neighbours.learn(key, mac, true, true, bench.network.now_ns);
        bench.network.run();
        bench.network.io.ports[1].output.clear();
        bench.follow_neighbours();
        is(bench.frame(0, &frame)?, true)?;
        bench.network.shared.neighbours.lose(key, false, bench.network.now_ns);
        bench.follow_neighbours();
        is(bench.frame(0, &frame)?, false)?;
    }
    // The gateway of a route keeps its place, without a MAC address.
    let by_gateway = frames::build("eth R0 A / ip4 10.0.0.1 198.51.0.9 / udp 1 2 / data 20", &[]).bytes;
    let (gateway, now_ns) = (Key::v4(1, 0x0a00_0101), bench.network.now_ns);
    is(bench.frame(0, &by_gateway)?, true)?;
    bench.network.shared.neighbours.lose(gateway, false, now_ns);
    bench.follow_neighbours();
    is(bench.frame(0, &by_gateway)?, false)?;
    let mac = fibula_router::packet::ethernet::Mac([2, 0, 0, 0, 0, 11]);
    bench.network.shared.neighbours.learn(gateway, mac, true, true, now_ns);
    bench.network.run();
    bench.network.io.ports[1].output.clear();
    bench.follow_neighbours();
    is(bench.frame(0, &by_gateway)?, true)?;
    // A neighbour that only the program uses is verified when it is stale, and so stays known.
    let mac = fibula_router::packet::ethernet::Mac([2, 0, 0, 9, 9, 9]);
    bench.network.shared.neighbours.learn(key, mac, true, true, bench.network.now_ns);
    bench.follow_neighbours();
    let mut asked = 0;
    for _ in 0..50 {
        is(bench.frame_of_program(0, &frame)?, true)?;
        bench.follow_neighbours();
        bench.network.wait(1000);
        // It answers what it is asked.
        for sent in std::mem::take(&mut bench.network.io.ports[1].output) {
            if sent.bytes[12..14] == [8, 6] && sent.bytes[38..42] == [10, 0, 1, 77] {
                asked += 1;
                bench.network.shared.neighbours.learn(key, mac, true, false, bench.network.now_ns);
            }
        }
    }
    if asked == 0 {
        return Err("a neighbour that the program uses is not verified".into());
    }
    // One that nobody uses is forgotten, and the program does not go on with it.
    let limit = Limits::default().unused_ns / 1_000_000;
    bench.network.wait(limit + 60_000);
    bench.follow_neighbours();
    is(bench.frame(0, &frame)?, false)
}

/// A route, a next hop, a link: the program has the change when the call returns.
fn changes() -> Result<(), String> {
    let mut bench = bench(None)?;
    let frame = frames::build("eth R0 A / ip4 10.0.0.1 198.51.0.9 / udp 1 2 / data 20", &[]).bytes;
    let prefix = "198.51.0.0/24".parse::<fibula::net::IpPrefix>().map_err(|error| error.to_string())?;
    let table = bench.fabric.vrfs[0].table.clone();
    let hop = table.get(prefix).map_err(|error| error.to_string())?.ok_or("no route")?;
    for _ in 0..50 {
        let done = bench.frame(0, &frame)?;
        if !matches!(done, Done::Forwarded(1)) {
            return Err(format!("{done:?} with a route"));
        }
        table.remove(prefix).map_err(|error| error.to_string())?;
        let done = bench.frame(0, &frame)?;
        if !matches!(done, Done::Slow) {
            return Err(format!("{done:?} without a route"));
        }
        table.insert(prefix, hop).map_err(|error| error.to_string())?;
        bench.fabric.interfaces[1].up = false;
        bench.publish();
        let done = bench.frame(0, &frame)?;
        if !matches!(done, Done::Slow) {
            return Err(format!("{done:?} by a link that is down"));
        }
        bench.fabric.interfaces[1].up = true;
        let before = bench.fabric.hops[hop.id() as usize].take();
        bench.publish();
        let done = bench.frame(0, &frame)?;
        if !matches!(done, Done::Slow) {
            return Err(format!("{done:?} to a next hop that was withdrawn"));
        }
        bench.fabric.hops[hop.id() as usize] = before;
        bench.publish();
    }
    Ok(())
}

/// Groups that change until the room for members is used up many times: each flow goes where the router sends it.
fn groups() -> Result<(), String> {
    let mut bench = bench(None)?;
    let mut random = RandomFrames::new(77);
    let members: Vec<u32> = bench.ways();
    let group = bench.group();
    for round in 0..60 {
        let count = 1 + random.below(20_000);
        let all = (0..count).map(|_| members[random.below(members.len())]).collect();
        bench.fabric.hops[group] = Some(fibula_router::forward::fabric::Hop::Group(all));
        bench.publish();
        for port in 0..20 {
            let text = format!("eth R0 A / ip4 10.0.0.1 198.51.2.9 / udp {} 2 / data 20", 1000 + port);
            let frame = frames::build(&text, &[]).bytes;
            match bench.frame(0, &frame).map_err(|error| format!("round {round}: {error}"))? {
                Done::Forwarded(_) => {}
                done => return Err(format!("round {round}: {done:?}")),
            }
        }
    }
    Ok(())
}
