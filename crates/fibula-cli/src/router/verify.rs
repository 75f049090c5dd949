//! `fibula router verify`.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use fibula_router::api::{Comparison, Difference, MetricRoute, NextHop};
use fibula_router::control::client;

use super::args::RouterVerifyArgs;
use super::feeds::missing_interface;
use crate::failure::{Failure, code};
use crate::route::next_hop_text;
use crate::text::thousands;

pub(super) fn run(args: &RouterVerifyArgs) -> Result<ExitCode, Failure> {
    loop {
        let answered = client::verify(&args.socket)?;
        let mut out = io::stdout().lock();
        if args.json {
            writeln!(out, "{}", answered.line)?;
        } else {
            print(&mut out, &answered.answer)?;
        }
        out.flush()?;
        if !answered.answer.is_good() {
            return Ok(code::NOTHING_FOUND.into());
        }
        if !args.watch {
            return Ok(ExitCode::SUCCESS);
        }
        drop(out);
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Prints a line for each difference, then one for all.
fn print(out: &mut impl Write, comparison: &Comparison) -> io::Result<()> {
    for difference in &comparison.differences {
        let at = match difference {
            Difference::FibLookup { address, .. } => format!(" at {address}"),
            _ => String::new(),
        };
        let sides = match difference {
            Difference::RibFib { rib, fib, .. } => {
                [("the RIB", one(rib.as_ref())), ("the table", one(fib.as_ref()))]
            }
            Difference::FibLookup { fib, lookup, .. } => {
                [("the table", one(fib.as_ref())), ("a lookup", one(lookup.as_ref()))]
            }
            Difference::KernelRib { kernel, rib, .. } => {
                [("the kernel", several(kernel.as_deref())), ("the RIB", several(rib.as_deref()))]
            }
        };
        let [left, right] = sides.map(|(side, routes)| format!("{side} has {routes}"));
        writeln!(out, "VRF {} {}{at}: {left}, {right}", difference.vrf(), difference.prefix())?;
    }
    for reason in &comparison.not_compared {
        writeln!(out, "not compared: {reason}")?;
    }
    for missing in &comparison.missing_interfaces {
        missing_interface(out, missing)?;
    }
    let kernel = match comparison.compared_kernel {
        0 => String::new(),
        compared => format!(", {} with the kernel", thousands(compared)),
    };
    writeln!(
        out,
        "{} prefixes compared{kernel}, {:.2} s: {} differences",
        thousands(comparison.compared),
        comparison.seconds,
        thousands(comparison.count())
    )
}

/// Returns the next hop of a side in words.
fn one(next_hop: Option<&NextHop>) -> String {
    next_hop.map_or_else(|| "nothing".to_owned(), next_hop_text)
}

/// Returns the routes of a side with their metrics in words.
fn several(routes: Option<&[MetricRoute]>) -> String {
    let with_metric = |route: &MetricRoute| {
        let to = route.next_hop.as_ref().map_or_else(|| "nowhere".to_owned(), next_hop_text);
        if route.metric == 0 { to } else { format!("{to} metric {}", route.metric) }
    };
    let Some(routes) = routes else { return "nothing".to_owned() };
    routes.iter().map(with_metric).collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use fibula_router::api;

    fn printed(answer: &Comparison) -> String {
        let mut out = Vec::new();
        print(&mut out, answer).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_difference_is_a_line() {
        let answer: Comparison = api::read(concat!(
            r#"{"compared":1200,"compared_kernel":3,"seconds":0.5,"differences":["#,
            r#"{"between":"rib-fib","vrf":"default","prefix":"10.0.0.0/8","rib":{"via":"10.0.0.1","interface":"left"},"fib":null},"#,
            r#"{"between":"fib-lookup","vrf":"red","prefix":"::/0","address":"::","fib":"blackhole","#,
            r#""lookup":{"via":"10.0.0.1","interface":"left"}},"#,
            r#"{"between":"kernel-rib","vrf":"default","prefix":"10.1.0.0/16","feed":"k","#,
            r#""kernel":[{"metric":0,"next_hop":{"via":"10.0.0.1","interface":"left"}},{"metric":5,"next_hop":null}],"rib":null}"#,
            r#"],"more_differences":0,"not_compared":["feed a: refused"],"missing_interfaces":[{"name":"wan","device":"eth1"}]}"#
        ))
        .unwrap();
        assert_eq!(
            printed(&answer),
            "VRF default 10.0.0.0/8: the RIB has via 10.0.0.1 dev left, the table has nothing\n\
             VRF red ::/0 at ::: the table has blackhole, a lookup has via 10.0.0.1 dev left\n\
             VRF default 10.1.0.0/16: the kernel has via 10.0.0.1 dev left and nowhere metric 5, the RIB has nothing\n\
             not compared: feed a: refused\n\
             interface wan: there is no device eth1; what leads there is dropped as interface-missing\n1,200 prefixes compared, 3 with the kernel, 0.50 s: 3 differences\n"
        );
        assert!(!answer.is_good());
        let good = concat!(
            r#"{"compared":5,"compared_kernel":0,"seconds":0.001,"differences":[],"more_differences":0,"#,
            r#""not_compared":[]}"#
        );
        assert_eq!(printed(&api::read(good).unwrap()), "5 prefixes compared, 0.00 s: 0 differences\n");
    }
}
