//! `fibula router top`: the largest of the packets that the router samples.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use fibula_router::api::{Filters, Top, TopBy, TopRow};
use fibula_router::control::client;
use fibula_router::sampling::origins::Origins;
use fibula_router::sampling::rules::by_rule;
use fibula_router::sampling::top::{KEPT, by_origin};

use super::args::RouterTopArgs;
use crate::failure::Failure;
use crate::text::{bold, plural, thousands};

/// Moves to the first place of a terminal and clears it (ECMA-48, CUP and ED).
const CLEAR: &str = "\u{1b}[H\u{1b}[J";

pub(super) fn run(args: &RouterTopArgs) -> Result<ExitCode, Failure> {
    let by = by(&args.by)?;
    let origins = match &args.table {
        None => None,
        Some(path) => {
            // The address whose AS the table is to say.
            let address = match by {
                TopBy::As => TopBy::Destination,
                TopBy::SourceAs => TopBy::Source,
                _ => return Err(Failure::WrongUse("--table is for --by as and --by source-as".to_owned())),
            };
            let origins = Origins::load(path)
                .map_err(|error| Failure::BadInput(format!("{}: {error}", path.display())))?;
            Some((origins, address))
        }
    };
    let live = io::stdout().is_terminal() && !args.once && !args.json;
    let mut counters = match by {
        TopBy::Rule => Some(Reading::take(args)?),
        _ => None,
    };
    loop {
        let (top, line) = match &origins {
            None if by == TopBy::Rule => {
                // Counters say nothing about the time before they are read first.
                std::thread::sleep(Duration::from_secs(args.interval));
                let now = Reading::take(args)?;
                let before = counters.replace(now);
                let top = match (before, &counters) {
                    (Some(before), Some(now)) => now.since(&before, args.count as usize),
                    _ => continue,
                };
                let line = serde_json::to_string(&top).map_err(io::Error::from)?;
                (top, line)
            }
            None => {
                let answered = client::top(&args.socket, by, args.interval, args.count)?;
                (answered.answer, answered.line)
            }
            Some((origins, address)) => {
                let answered = client::top(&args.socket, *address, args.interval, KEPT as u64)?;
                let top = by_origin(answered.answer, by, origins, args.count as usize);
                let line = serde_json::to_string(&top).map_err(io::Error::from)?;
                (top, line)
            }
        };
        let mut out = anstream::stdout().lock();
        if args.json {
            writeln!(out, "{line}")?;
        } else {
            if live {
                write!(out, "{CLEAR}")?;
            }
            print(&mut out, &top)?;
            if !live && !args.once {
                writeln!(out)?;
            }
        }
        out.flush()?;
        if args.once {
            return Ok(ExitCode::SUCCESS);
        }
        drop(out);
        if by != TopBy::Rule {
            std::thread::sleep(Duration::from_secs(args.interval));
        }
    }
}

/// The counters of all rules at a moment.
struct Reading {
    at: Instant,
    filters: Filters,
}

impl Reading {
    fn take(args: &RouterTopArgs) -> Result<Self, Failure> {
        let filters = client::filters(&args.socket)?.answer;
        if filters.forward.is_none() && filters.local.is_none() {
            return Err(Failure::NotAvailable(
                "the router has no rules: write some in [filter.forward] or [filter.local]".to_owned(),
            ));
        }
        Ok(Self { at: Instant::now(), filters })
    }

    fn since(&self, before: &Self, count: usize) -> Top {
        let seconds = (self.at - before.at).as_secs_f64();
        by_rule(&before.filters, &self.filters, seconds, count)
    }
}

fn by(name: &str) -> Result<TopBy, Failure> {
    let known = TopBy::ALL.iter().find(|by| by.name() == name);
    known.copied().ok_or_else(|| Failure::WrongUse(format!("--by: no property '{name}'")))
}

fn print(out: &mut impl Write, top: &Top) -> io::Result<()> {
    // Whole seconds as such.
    let seconds = (top.seconds * 10.0).round() / 10.0;
    match top.by {
        TopBy::Rule => writeln!(out, "all packets that rules judged, counted in {seconds} s")?,
        _ => writeln!(
            out,
            "one of {} packets sampled; {} {} of {seconds} s",
            thousands(top.interval),
            thousands(top.all.samples),
            plural(top.all.samples, "sample", "samples"),
        )?,
    }
    let width = top
        .rows
        .iter()
        .map(|row| row.name.chars().count())
        .max()
        .unwrap_or(0)
        .max(top.by.name().len())
        .max(3);
    let style = bold();
    writeln!(
        out,
        "{style}{:<width$}{:>14}{:>8}{:>18}{:>8}{:>10}{style:#}",
        top.by.name(),
        "packets/s",
        "error",
        "bits/s",
        "error",
        if top.by == TopBy::Rule { "packets" } else { "samples" }
    )?;
    for row in top.rows.iter().chain([&top.all]) {
        print_row(out, row, top.seconds, width)?;
    }
    if top.by != TopBy::Rule && top.rows.iter().any(|row| row.samples < FEW) {
        writeln!(out, "errors hold in 95 of 100 cases; with fewer than {FEW} samples they say little")?;
    }
    if top.lost > 0 {
        writeln!(out, "{} samples were lost: draw fewer ('sampling.rate')", thousands(top.lost))?;
    }
    for collector in top.collectors.iter().filter(|collector| !collector.well) {
        writeln!(
            out,
            "collector {}: {}; {} records left out",
            collector.address,
            collector.last_fault.as_deref().unwrap_or("refuses messages"),
            thousands(collector.left_out)
        )?;
    }
    Ok(())
}

/// Samples from which on the error of an estimate has a meaning.
const FEW: u64 = 10;

fn print_row(out: &mut impl Write, row: &TopRow, seconds: f64, width: usize) -> io::Result<()> {
    // Less than a tenth of a second tells no rate.
    let rate = |count: u64| thousands((count as f64 / seconds.max(0.1)).round() as u64);
    let percent = |error: u64, count: u64| match count {
        0 => String::new(),
        count => format!("{:.0} %", 100.0 * error as f64 / count as f64),
    };
    writeln!(
        out,
        "{:<width$}{:>14}{:>8}{:>18}{:>8}{:>10}",
        row.name,
        rate(row.packets),
        percent(row.packets_error, row.packets),
        rate(row.bytes.saturating_mul(8)),
        percent(row.bytes_error, row.bytes),
        thousands(row.samples)
    )
}

#[cfg(test)]
mod tests {
    use fibula_router::api;

    use super::*;

    fn printed(line: &str) -> String {
        let mut out = Vec::new();
        print(&mut out, &api::read(line).unwrap()).unwrap();
        anstream::adapter::strip_bytes(&out).into_vec().into_iter().map(char::from).collect()
    }

    #[test]
    fn rows_are_rates_with_their_errors() {
        let row = |name, samples: u64| {
            let (packets, bytes) = (samples * 1000, samples * 500_000);
            let error = (1.96 * (samples as f64 * 1000.0 * 999.0).sqrt()).round();
            format!(
                r#"{{"name":"{name}","samples":{samples},"packets":{packets},"packets_error":{error},"bytes":{bytes},"bytes_error":{}}}"#,
                error * 500.0
            )
        };
        let rows = [row("AS64500", 400), row("unknown", 9)].join(",");
        let collector = r#"{"address":"192.0.2.5:4739","well":false,"messages":1,"records":4,"left_out":1234,"faults":1,"last_fault":"Connection refused"}"#;
        let line = format!(
            r#"{{"by":"as","seconds":10.0,"interval":1000,"all":{},"rows":[{rows}],"drawn":9,"lost":5,"unreadable":2,"collectors":[{collector}]}}"#,
            row("all", 409)
        );
        assert_eq!(
            printed(&line),
            "one of 1,000 packets sampled; 409 samples of 10 s\n\
             as          packets/s   error            bits/s   error   samples\n\
             AS64500        40,000    10 %       160,000,000    10 %       400\n\
             unknown           900    65 %         3,600,000    65 %         9\n\
             all            40,900    10 %       163,600,000    10 %       409\n\
             errors hold in 95 of 100 cases; with fewer than 10 samples they say little\n\
             5 samples were lost: draw fewer ('sampling.rate')\n\
             collector 192.0.2.5:4739: Connection refused; 1,234 records left out\n"
        );
    }

    #[test]
    fn rules_have_exact_rates() {
        let row = |name: &str, packets: u64| {
            format!(
                r#"{{"name":"{name}","samples":{packets},"packets":{packets},"packets_error":0,"bytes":{},"bytes_error":0}}"#,
                packets * 100
            )
        };
        let line = format!(
            r#"{{"by":"rule","seconds":2.0004,"interval":1,"all":{},"rows":[{}],"drawn":3,"lost":0,"unreadable":0,"collectors":[]}}"#,
            row("all", 3),
            row("forward rule 1 (line 12): deny any", 3)
        );
        assert_eq!(
            printed(&line),
            "all packets that rules judged, counted in 2 s\n\
             rule                                   packets/s   error            bits/s   error   packets\n\
             forward rule 1 (line 12): deny any             1     0 %             1,200     0 %         3\n\
             all                                            1     0 %             1,200     0 %         3\n"
        );
    }

    #[test]
    fn nothing_sampled_is_no_fault() {
        let all = r#"{"name":"all","samples":0,"packets":0,"packets_error":0,"bytes":0,"bytes_error":0}"#;
        let line = format!(
            r#"{{"by":"prefix","seconds":0.0,"interval":1,"all":{all},"rows":[],"drawn":0,"lost":0,"unreadable":0,"collectors":[]}}"#
        );
        assert_eq!(
            printed(&line),
            "one of 1 packets sampled; 0 samples of 0 s\n\
             prefix     packets/s   error            bits/s   error   samples\n\
             all                0                         0                 0\n"
        );
    }
}
