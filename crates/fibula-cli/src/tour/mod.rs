//! `fibula tour`: what looking up is, and how fast it is here, in under 20 seconds.

mod args;
mod explain;
mod json;
mod measure;
mod plain;
mod report;
mod table;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use fibula::fib::registry::Engines;
use fibula_workload::table::TableSpec;

use crate::failure::{Failure, code};
use crate::machine::OPTIMISED;
use crate::messages::Messages;
use crate::objects;
use crate::options::Format;
use crate::width;
pub use args::TourArgs;
use table::Toured;

/// IPv4 routes by default. An unoptimised build gets a table that it can manage in the same time.
const ROUTES: u32 = if OPTIMISED { 900_000 } else { 30_000 };

/// Runs the tour: the chosen engines, the plain ones, and those of `engines` that the library lacks. `program` is the command that starts
/// the command, for the examples at the end.
///
/// # Errors
/// If the table cannot be read, the instruction set is not here, or the output cannot be written.
pub fn run(args: &TourArgs, program: &str, engines: Engines) -> Result<ExitCode, Failure> {
    let messages = Messages::new(args.quiet.quiet);
    args.isa.force()?;
    let format = args.output.format();
    let mut out = anstream::stdout().lock();
    if !OPTIMISED {
        messages.note("this is a debug build with small tables and slow lookups; use 'cargo run --release'");
    }
    let (v4, v6) = tables(args, messages)?;
    let answers: Vec<_> = [explain::answer(&v4), explain::answer(&v6)].into_iter().flatten().collect();
    if format == Format::Text {
        // The first sections appear at once.
        let mut out = width::folded(&mut out);
        report::table(&mut out, args.table.as_deref(), &v4, &v6)?;
        report::answers(&mut out, &answers)?;
        report::announce_measuring(&mut out)?;
        out.flush()?;
    }

    let ipv4 = measure::contestants(&v4.rib, engines)?;
    let ipv6 = measure::contestants(&v6.rib, engines)?;
    let bar = messages.steps((ipv4.len() + ipv6.len()) as u64);
    let families = 2 - u32::from(v4.rib.is_empty()) - u32::from(v6.rib.is_empty());
    let budget = Duration::from_secs(args.seconds.into()) / families.max(1);
    let mut rows = measure::measure(&ipv4, &v4.rib, budget, &bar)?;
    rows.extend(measure::measure(&ipv6, &v6.rib, budget, &bar)?);
    bar.finish_and_clear();
    match format {
        Format::Text => {
            let mut out = width::folded(&mut out);
            report::rates(&mut out, &rows)?;
            report::verdict(&mut out, &rows)?;
            report::go_on(&mut out, program, args.table.as_deref(), &answers)?;
            out.flush()?;
        }
        Format::Json => json::write(&mut out, args.table.as_deref(), (&v4, &v6), &answers, &rows)?,
        format => {
            let rows: Vec<_> = rows.iter().map(json::record).collect();
            objects::write(&mut out, format, json::COLUMNS, &rows)?;
        }
    }
    out.flush()?;
    Ok(if measure::wrong(&rows) == 0 { ExitCode::SUCCESS } else { code::NOTHING_FOUND.into() })
}

/// Returns the user's table, or a generated one.
fn tables(args: &TourArgs, messages: Messages) -> Result<(Toured<u32>, Toured<u128>), Failure> {
    if let Some(path) = &args.table {
        return table::load(path, messages);
    }
    let routes = args.routes.unwrap_or(ROUTES) as usize;
    let bar = messages.steps(2);
    bar.set_message("generating a table");
    let v4 = Toured::generated(&TableSpec { routes, ..TableSpec::ipv4() })?;
    bar.inc(1);
    let v6 = Toured::generated(&TableSpec { routes: routes.div_ceil(4), ..TableSpec::ipv6() })?;
    bar.finish_and_clear();
    Ok((v4, v6))
}
