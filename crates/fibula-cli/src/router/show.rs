//! What a router that runs tells: counters, drops, neighbours, feeds.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use fibula_router::control;
use fibula_router::count::{Made, Totals};
use fibula_router::drops::Drop;
use serde_json::Value;

use super::args::ShowArgs;
use crate::failure::Failure;
use crate::text::thousands;

/// What to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Stats,
    Drops,
    Neighbours,
    Feeds,
}

pub(super) fn run(args: &ShowArgs, what: What) -> Result<ExitCode, Failure> {
    loop {
        let question = match what {
            What::Stats | What::Drops => "stats",
            What::Neighbours => "neigh",
            What::Feeds => "feeds",
        };
        let answer = control::ask(&args.socket, question).map_err(|error| no_answer(&args.socket, &error))?;
        let mut out = io::stdout().lock();
        match (args.json, what) {
            (true, _) => writeln!(out, "{answer}")?,
            (false, What::Stats) => stats(&mut out, &answer)?,
            (false, What::Drops) => drops(&mut out, &answer)?,
            (false, What::Neighbours) => neighbours(&mut out, &answer)?,
            (false, What::Feeds) => super::feeds::print(&mut out, &answer)?,
        }
        out.flush()?;
        if !args.watch {
            return Ok(ExitCode::SUCCESS);
        }
        if !args.json {
            writeln!(out)?;
        }
        drop(out);
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Returns the failure of a query.
pub(crate) fn no_answer(socket: &Path, error: &io::Error) -> Failure {
    Failure::BadInput(format!(
        "no router answers at {}: {error}; is one running, and is it yours?",
        socket.display()
    ))
}

/// Returns the counters of a port in a line.
pub(super) fn line(totals: &Totals) -> String {
    format!(
        "{} received, {} forwarded, {} delivered, {} consumed, {} dropped, {} sent",
        thousands(totals.received),
        thousands(totals.forwarded),
        thousands(totals.delivered),
        thousands(totals.consumed),
        thousands(totals.all_dropped()),
        thousands(totals.sent)
    )
}

pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn count(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or(0)
}

fn stats(out: &mut impl Write, answer: &Value) -> io::Result<()> {
    let columns = ["received", "forwarded", "delivered", "consumed", "dropped", "sent", "ring_lost"];
    writeln!(out, "{:<16}{}", "port", columns.map(|name| format!("{name:>15}")).concat())?;
    for port in list(&answer["ports"]) {
        let counts = columns.map(|name| format!("{:>15}", thousands(count(port, name))));
        writeln!(out, "{:<16}{}", port["name"].as_str().unwrap_or(""), counts.concat())?;
        let made = Made::ALL.iter().map(|made| (made.name(), count(&port["made"], made.name())));
        for (name, count) in made.filter(|made| made.1 > 0) {
            writeln!(out, "  made: {name:<24}{:>15}", thousands(count))?;
        }
    }
    for vrf in list(&answer["vrfs"]) {
        let limit = vrf["limit"].as_u64().map_or_else(String::new, |limit| {
            format!(", {} of {} that feeds may have", thousands(count(vrf, "feed_routes")), thousands(limit))
        });
        writeln!(
            out,
            "VRF {}: {} IPv4 routes, {} IPv6 routes{}",
            vrf["name"].as_str().unwrap_or(""),
            thousands(count(vrf, "ipv4_routes")),
            thousands(count(vrf, "ipv6_routes")),
            limit
        )?;
    }
    let verify = &answer["verify"];
    if count(verify, "rate") > 0 {
        let differences: u64 = verify["differences"]
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(_, count)| count.as_u64())
            .sum();
        writeln!(
            out,
            "verified: {} prefixes, {} with the kernel, {} whole passes, {} differences",
            thousands(count(verify, "compared")),
            thousands(count(verify, "compared_kernel")),
            thousands(count(verify, "passes")),
            thousands(differences)
        )?;
    }
    Ok(())
}

fn drops(out: &mut impl Write, answer: &Value) -> io::Result<()> {
    let mut none = true;
    for port in list(&answer["ports"]) {
        for reason in Drop::ALL {
            let count = count(&port["drops"], reason.name());
            if count > 0 {
                none = false;
                let name = port["name"].as_str().unwrap_or("");
                writeln!(
                    out,
                    "{name:<16}{:<22}{:>15}  {}",
                    reason.name(),
                    thousands(count),
                    reason.meaning()
                )?;
                writeln!(out, "{:<53}  {}", "", reason.advice())?;
            }
        }
        let lost = count(port, "ring_lost");
        if lost > 0 {
            none = false;
            let name = port["name"].as_str().unwrap_or("");
            let what = "The kernel had no room in the receive ring: raise 'frames' or 'threads'.";
            writeln!(out, "{name:<16}{:<22}{:>15}  {what}", "ring_lost", thousands(lost))?;
        }
    }
    if none { writeln!(out, "no packet was dropped") } else { Ok(()) }
}

fn neighbours(out: &mut impl Write, answer: &Value) -> io::Result<()> {
    writeln!(out, "{:<16}{:<40}{:<20}state", "interface", "address", "MAC")?;
    for neighbour in list(answer) {
        let text = |name: &str| neighbour[name].as_str().unwrap_or("-").to_owned();
        writeln!(
            out,
            "{:<16}{:<40}{:<20}{}",
            text("interface"),
            text("address"),
            text("mac"),
            text("state")
        )?;
    }
    Ok(())
}
