//! `fibula router explain` and `fibula router trace`.

use std::io::{self, Write};
use std::process::ExitCode;

use fibula_router::api::{Explanation, PacketOutcome, TraceEnd};
use fibula_router::control::client::{self, PacketQuestion};

use super::args::{RouterExplainArgs, RouterTraceArgs};
use crate::failure::{Failure, code};
use crate::text::{plural, thousands};

pub(super) fn explain(args: &RouterExplainArgs) -> Result<ExitCode, Failure> {
    let has_ports = args.sport.is_some() || args.dport.is_some();
    let usual = match (has_ports, args.source.is_ipv6()) {
        (true, _) => "tcp",
        (false, true) => "icmpv6",
        (false, false) => "icmp",
    };
    let question = PacketQuestion {
        source: args.source,
        destination: args.destination,
        input: &args.input,
        protocol: args.protocol.as_deref().unwrap_or(usual),
        ports: (args.sport.unwrap_or(0), args.dport.unwrap_or(0)),
        dscp: &args.dscp,
    };
    let answered = client::explain(&args.socket, &question)?;
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{}", answered.line)?;
    } else {
        print(&mut out, &answered.answer)?;
    }
    out.flush()?;
    Ok(match answered.answer.outcome {
        PacketOutcome::Dropped => code::NOTHING_FOUND.into(),
        _ => ExitCode::SUCCESS,
    })
}

pub(super) fn trace(args: &RouterTraceArgs) -> Result<ExitCode, Failure> {
    let filter = if args.filter.is_empty() { "any".to_owned() } else { args.filter.join(" ") };
    let mut out = io::stdout().lock();
    let ended = client::trace(&args.socket, (args.count, args.seconds), &filter, |packet| {
        match args.json {
            true => writeln!(out, "{}", packet.line)?,
            false => print(&mut out, &packet.answer)?,
        }
        out.flush()?;
        Ok::<(), Failure>(())
    })?;
    match args.json {
        true => writeln!(out, "{}", ended.line)?,
        false => end(&mut out, &ended.answer)?,
    }
    out.flush()?;
    Ok(if ended.answer.traced == 0 { code::NOTHING_FOUND.into() } else { ExitCode::SUCCESS })
}

/// Prints a packet, and a line for each of its steps.
fn print(out: &mut impl Write, packet: &Explanation) -> io::Result<()> {
    writeln!(out, "{}", packet.packet)?;
    for step in &packet.steps {
        writeln!(out, "  {:<11}{}", step.step.name(), step.found)?;
    }
    match (&packet.reason, &packet.meaning, &packet.advice) {
        (Some(reason), Some(meaning), Some(advice)) => {
            writeln!(out, "  dropped    {reason}: {meaning}\n  {:<11}{advice}", "")
        }
        _ => writeln!(out, "  {}", packet.outcome.name()),
    }
}

fn end(out: &mut impl Write, end: &TraceEnd) -> io::Result<()> {
    let packets = |count: u64| format!("{} {}", thousands(count), plural(count, "packet", "packets"));
    write!(out, "{} traced", packets(end.traced))?;
    for (count, what) in [
        (end.left_out, "that matched left out"),
        (end.skipped, "not compared with the filter"),
        (end.unreadable, "without a readable IP header: see 'fibula router drops'"),
    ] {
        if count > 0 {
            write!(out, "; {} {what}", packets(count))?;
        }
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use fibula_router::api;

    use super::*;

    #[test]
    fn steps_have_a_line_each_and_drops_their_advice() {
        let packet = |rest: &str| {
            let line = format!(
                r#"{{"packet":"icmp 10.0.0.1 > 10.0.1.1 in lan length 28","steps":[{{"step":"in","found":"lan"}},{{"step":"route","found":"no route"}}],{rest}}}"#
            );
            let mut out = Vec::new();
            print(&mut out, &api::read(&line).unwrap()).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            packet(r#""outcome":"dropped","reason":"no-route","meaning":"No route.","advice":"Add one.""#),
            "icmp 10.0.0.1 > 10.0.1.1 in lan length 28\n\
             \x20 in         lan\n\
             \x20 route      no route\n\
             \x20 dropped    no-route: No route.\n\
             \x20            Add one.\n"
        );
        let forwarded = packet(r#""outcome":"forwarded","reason":null,"meaning":null,"advice":null"#);
        assert!(forwarded.ends_with("\n  forwarded\n"), "{forwarded}");
    }

    #[test]
    fn the_end_of_a_trace_says_what_it_left_out() {
        let mut out = Vec::new();
        let line = r#"{"traced":1,"left_out":2000,"skipped":0,"unreadable":3}"#;
        end(&mut out, &api::read(line).unwrap()).unwrap();
        let text = "1 packet traced; 2,000 packets that matched left out; \
                    3 packets without a readable IP header: see 'fibula router drops'\n";
        assert_eq!(String::from_utf8(out).unwrap(), text);
    }
}
