//! Queries to a router that runs: counters, drops, neighbours, feeds.

use std::io::{self, StdoutLock, Write};
use std::process::ExitCode;
use std::time::Duration;

use fibula_router::api::{Counters, Neighbour, Stats};
use fibula_router::control::Ended;
use fibula_router::control::client::{self, Answered};
use fibula_router::drops::DropReason;

use super::args::RouterShowArgs;
use super::{bfd, feeds, filters};
use crate::failure::Failure;
use crate::text::thousands;

/// The table to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Stats,
    Drops,
    Neighbours,
    Feeds,
    Filters,
    Bfd,
}

pub(super) fn run(args: &RouterShowArgs, what: What) -> Result<ExitCode, Failure> {
    loop {
        let shown = match what {
            What::Stats => show(args, client::stats(&args.socket)?, stats),
            What::Drops => show(args, client::stats(&args.socket)?, drops),
            What::Neighbours => {
                show(args, client::neighbours(&args.socket)?, |out, list| neighbours(out, list))
            }
            What::Feeds => show(args, client::feeds(&args.socket)?, |out, list| feeds::print(out, list)),
            What::Filters => show(args, client::filters(&args.socket)?, filters::print),
            What::Bfd => show(args, client::bfd(&args.socket)?, bfd::print),
        };
        shown?;
        if !args.watch {
            return Ok(ExitCode::SUCCESS);
        }
        if !args.json {
            writeln!(io::stdout().lock())?;
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Shows an answer: its line of JSON as the router sent it, or by `print`.
fn show<A>(
    args: &RouterShowArgs,
    Answered { answer, line }: Answered<A>,
    print: impl FnOnce(&mut StdoutLock<'static>, &A) -> io::Result<()>,
) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{line}")?;
    } else {
        print(&mut out, &answer)?;
    }
    out.flush()
}

/// Returns the counters of a port in a line.
pub(super) fn line(port: &Ended) -> String {
    let totals = &port.totals;
    let lost = match port.ring_lost {
        0 => String::new(),
        lost => format!(", {} lost in the ring before it", thousands(lost)),
    };
    format!(
        "{} received, {} forwarded, {} delivered, {} consumed, {} dropped, {} sent{lost}",
        thousands(totals.received),
        thousands(totals.forwarded),
        thousands(totals.delivered),
        thousands(totals.consumed),
        thousands(totals.all_dropped()),
        thousands(totals.sent)
    )
}

fn stats(out: &mut impl Write, answer: &Stats) -> io::Result<()> {
    let columns = ["received", "forwarded", "delivered", "consumed", "dropped", "sent", "ring_lost"];
    writeln!(out, "{:<16}{}", "port", columns.map(|name| format!("{name:>15}")).concat())?;
    for port in &answer.ports {
        let Counters { received, forwarded, delivered, consumed, dropped, sent, .. } = port.counters;
        let counts = [received, forwarded, delivered, consumed, dropped, sent, port.ring_lost];
        let counts = counts.map(|count| format!("{:>15}", thousands(count)));
        writeln!(out, "{:<16}{}", port.name, counts.concat())?;
        for (name, count) in port.counters.made.iter().filter(|made| made.1 > 0) {
            writeln!(out, "  made: {name:<24}{:>15}", thousands(count))?;
        }
    }
    for vrf in &answer.vrfs {
        let limit = vrf.limit.map_or_else(String::new, |limit| {
            format!(", {} of {} that feeds may have", thousands(vrf.feed_routes), thousands(limit))
        });
        writeln!(
            out,
            "VRF {}: {} IPv4 routes, {} IPv6 routes{}",
            vrf.name,
            thousands(vrf.ipv4_routes),
            thousands(vrf.ipv6_routes),
            limit
        )?;
    }
    let verify = &answer.verify;
    if verify.rate > 0 {
        writeln!(
            out,
            "verified: {} prefixes, {} with the kernel, {} whole passes, {} differences",
            thousands(verify.compared),
            thousands(verify.compared_kernel),
            thousands(verify.passes),
            thousands(verify.differences.total())
        )?;
    }
    Ok(())
}

fn drops(out: &mut impl Write, answer: &Stats) -> io::Result<()> {
    let mut none = true;
    for port in &answer.ports {
        let port_name = &port.name;
        for (name, count) in port.counters.drops.iter().filter(|drop| drop.1 > 0) {
            none = false;
            let (meaning, advice) = match DropReason::of_name(name) {
                Some(reason) => (reason.meaning(), reason.advice()),
                None => {
                    ("A reason that this command does not know.", "Use the command of the router's version.")
                }
            };
            writeln!(out, "{port_name:<16}{name:<22}{:>15}  {meaning}", thousands(count))?;
            writeln!(out, "{:<53}  {advice}", "")?;
        }
        if port.ring_lost > 0 {
            none = false;
            let what = "The kernel had no room in the receive ring: raise 'frames' or 'threads'.";
            writeln!(out, "{port_name:<16}{:<22}{:>15}  {what}", "ring_lost", thousands(port.ring_lost))?;
        }
    }
    if none { writeln!(out, "no packet was dropped") } else { Ok(()) }
}

fn neighbours(out: &mut impl Write, answer: &[Neighbour]) -> io::Result<()> {
    writeln!(out, "{:<16}{:<40}{:<20}state", "interface", "address", "MAC")?;
    for Neighbour { interface, address, mac, state, .. } in answer {
        let (address, state) = (address.to_string(), state.name());
        let mac = mac.map_or_else(|| "-".to_owned(), |mac| mac.to_string());
        writeln!(out, "{interface:<16}{address:<40}{mac:<20}{state}")?;
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use fibula_router::api;

    use super::*;

    const COUNTERS: &str = concat!(
        r#""received":1200,"received_bytes":640,"forwarded":5,"delivered":1,"consumed":1,"dropped":4,"sent":6,"#,
        r#""sent_bytes":384,"waiting":0,"drops":{"no-route":3,"blackhole":0,"later":1},"made":{"arp-request":1,"arp-reply":0}"#
    );

    fn answer() -> Stats {
        let port = format!(r#"{{"name":"left",{COUNTERS},"ring_lost":3,"queues":[{{{COUNTERS}}}]}}"#);
        let vrfs = concat!(
            r#"[{"name":"default","ipv4_routes":1000,"ipv6_routes":2,"feed_routes":3,"limit":null},"#,
            r#"{"name":"red","ipv4_routes":0,"ipv6_routes":0,"feed_routes":3,"limit":5000}]"#
        );
        let verify = concat!(
            r#"{"rate":1000,"passes":1,"compared":2000,"compared_kernel":3,"#,
            r#""differences":{"rib-fib":1,"fib-lookup":2,"kernel-rib":3},"busy_seconds":0.25}"#
        );
        let line = format!(r#"{{"threads":1,"ports":[{port}],"vrfs":{vrfs},"verify":{verify}}}"#);
        api::read(&line).unwrap()
    }

    pub(in crate::router) fn printed(print: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        print(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn counters_are_a_line_a_port() {
        assert_eq!(
            printed(|out| stats(out, &answer())),
            "port                   received      forwarded      delivered       consumed        dropped           sent      ring_lost\n\
             left                      1,200              5              1              1              4              6              3\n\
             \x20 made: arp-request                           1\n\
             VRF default: 1,000 IPv4 routes, 2 IPv6 routes\n\
             VRF red: 0 IPv4 routes, 0 IPv6 routes, 3 of 5,000 that feeds may have\n\
             verified: 2,000 prefixes, 3 with the kernel, 1 whole passes, 6 differences\n"
        );
    }

    #[test]
    fn drops_have_a_reason_even_if_it_is_unknown() {
        let text = printed(|out| drops(out, &answer()));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5);
        assert!(
            lines[0].starts_with("left            no-route                            3  No route matches")
        );
        assert!(lines[2].starts_with("left            later                               1  A reason that"));
        assert!(
            lines[4].starts_with("left            ring_lost                           3  The kernel had")
        );
    }

    #[test]
    fn a_neighbour_without_a_station_has_a_dash() {
        let list = concat!(
            r#"[{"interface":"left","address":"10.0.0.1","mac":"02:00:00:00:00:01","state":"own, probing"},"#,
            r#"{"interface":"left","address":"fe80::1","mac":null,"state":"failed"}]"#
        );
        let list: Vec<Neighbour> = api::read(list).unwrap();
        assert_eq!(
            printed(|out| neighbours(out, &list)),
            "interface       address                                 MAC                 state\n\
             left            10.0.0.1                                02:00:00:00:00:01   own, probing\n\
             left            fe80::1                                 -                   failed\n"
        );
    }
}
