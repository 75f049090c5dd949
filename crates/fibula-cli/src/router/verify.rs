//! `fibula router verify`.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use fibula_router::control;
use serde_json::Value;

use super::args::VerifyArgs;
use super::show::{count, list, no_answer};
use crate::failure::{Failure, code};
use crate::route::next_hop_text;
use crate::text::thousands;

/// How long a comparison may take: the kernel's table may have to be read several times.
const PATIENCE: Duration = Duration::from_secs(600);

/// What a side of a difference is called, for each of the router's names.
const SIDES: [(&str, &str); 4] =
    [("kernel", "the kernel"), ("rib", "the RIB"), ("fib", "the table"), ("lookup", "a lookup")];

pub(super) fn run(args: &VerifyArgs) -> Result<ExitCode, Failure> {
    loop {
        let answer = control::ask_within(&args.socket, "verify", PATIENCE);
        let answer = answer.map_err(|error| no_answer(&args.socket, &error))?;
        if let Some(error) = answer["error"].as_str() {
            return Err(Failure::BadInput(error.to_owned()));
        }
        let mut out = io::stdout().lock();
        if args.json {
            writeln!(out, "{answer}")?;
        } else {
            print(&mut out, &answer)?;
        }
        out.flush()?;
        if !is_good(&answer) {
            return Ok(code::NOTHING_FOUND.into());
        }
        if !args.watch {
            return Ok(ExitCode::SUCCESS);
        }
        drop(out);
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn is_good(answer: &Value) -> bool {
    list(&answer["differences"]).is_empty()
        && count(answer, "more_differences") == 0
        && list(&answer["not_compared"]).is_empty()
}

/// Prints a line for each difference, then one for all.
fn print(out: &mut impl Write, answer: &Value) -> io::Result<()> {
    for difference in list(&answer["differences"]) {
        let text = |name: &str| difference[name].as_str().unwrap_or("");
        let address = difference["address"].as_str().map(|address| format!(" at {address}"));
        write!(out, "VRF {} {}{}:", text("vrf"), text("prefix"), address.unwrap_or_default())?;
        let sides = SIDES.iter().filter_map(|&(name, side)| Some((side, difference.get(name)?)));
        for (at, (side, value)) in sides.enumerate() {
            write!(out, "{} {side} has {}", if at > 0 { "," } else { "" }, routes(value))?;
        }
        writeln!(out)?;
    }
    for reason in list(&answer["not_compared"]) {
        writeln!(out, "not compared: {}", reason.as_str().unwrap_or(""))?;
    }
    let kernel = match count(answer, "compared_kernel") {
        0 => String::new(),
        compared => format!(", {} with the kernel", thousands(compared)),
    };
    let differences = list(&answer["differences"]).len() as u64 + count(answer, "more_differences");
    writeln!(
        out,
        "{} prefixes compared{kernel}, {:.2} s: {} differences",
        thousands(count(answer, "compared")),
        answer["seconds"].as_f64().unwrap_or(0.0),
        thousands(differences)
    )
}

/// Returns a next hop, or a list of routes with metrics, in words.
fn routes(value: &Value) -> String {
    let with_metric = |route: &Value| {
        let to = match &route["next_hop"] {
            Value::Null => "nowhere".to_owned(),
            to => next_hop_text(to),
        };
        match count(route, "metric") {
            0 => to,
            metric => format!("{to} metric {metric}"),
        }
    };
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Array(routes) if routes.iter().all(|route| route.get("metric").is_some()) => {
            routes.iter().map(with_metric).collect::<Vec<_>>().join(" and ")
        }
        value => next_hop_text(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn printed(answer: &Value) -> String {
        let mut out = Vec::new();
        print(&mut out, answer).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_difference_is_a_line() {
        let via = json!({ "via": "10.0.0.1", "interface": "left" });
        let answer = json!({
            "compared": 1200, "compared_kernel": 3, "seconds": 0.5, "more_differences": 0, "not_compared": ["feed a: refused"],
            "differences": [
                { "between": "rib-fib", "vrf": "default", "prefix": "10.0.0.0/8", "rib": via, "fib": null },
                { "between": "fib-lookup", "vrf": "red", "prefix": "::/0", "address": "::", "fib": "blackhole", "lookup": via },
                { "between": "kernel-rib", "vrf": "default", "prefix": "10.1.0.0/16", "feed": "k",
                  "kernel": [{ "metric": 0, "next_hop": via }, { "metric": 5, "next_hop": null }], "rib": null },
            ],
        });
        assert_eq!(
            printed(&answer),
            "VRF default 10.0.0.0/8: the RIB has via 10.0.0.1 dev left, the table has nothing\n\
             VRF red ::/0 at ::: the table has blackhole, a lookup has via 10.0.0.1 dev left\n\
             VRF default 10.1.0.0/16: the kernel has via 10.0.0.1 dev left and nowhere metric 5, the RIB has nothing\n\
             not compared: feed a: refused\n1,200 prefixes compared, 3 with the kernel, 0.50 s: 3 differences\n"
        );
        assert!(!is_good(&answer));
        let good = json!({ "compared": 5, "compared_kernel": 0, "seconds": 0.001, "differences": [] });
        assert_eq!(
            (printed(&good).as_str(), is_good(&good)),
            ("5 prefixes compared, 0.00 s: 0 differences\n", true)
        );
    }
}
