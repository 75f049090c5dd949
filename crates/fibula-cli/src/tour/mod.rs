//! `fibula tour`: what Fibula does in under a minute.

mod args;
mod examples;
mod measure;
mod report;

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
use measure::SynthTable;

/// IPv4 routes by default. An unoptimised build gets a table that it can manage in the same time.
const ROUTES: u32 = if OPTIMISED { 900_000 } else { 30_000 };

/// Runs the tour of these structures. `program` is what starts the command, for the examples at the end.
///
/// # Errors
/// If the instruction set is not here, or the output cannot be written.
pub fn run(args: &TourArgs, program: &str, engines: Engines) -> Result<ExitCode, Failure> {
    let messages = Messages::new(args.quiet.quiet);
    args.isa.force()?;
    let format = args.output.format();
    let mut out = anstream::stdout().lock();
    if !OPTIMISED {
        messages.note("this is a debug build with small tables and slow lookups; use 'cargo run --release'");
    }

    let routes = args.routes.unwrap_or(ROUTES) as usize;
    let (ipv4, ipv6) = (engines.all::<u32>(), engines.all::<u128>());
    let count = (ipv4.len() + ipv6.len()) as u32;
    let bar = messages.steps(2 + u64::from(count));
    bar.set_message("generating a table");
    let v4 = SynthTable::<u32>::new(TableSpec { routes, ..TableSpec::ipv4() })?;
    bar.inc(1);
    let v6 = SynthTable::<u128>::new(TableSpec { routes: routes.div_ceil(4), ..TableSpec::ipv6() })?;
    bar.inc(1);
    let examples = examples::choose(&v4, &v6);
    if format == Format::Text {
        // The first sections appear at once, above the progress bar.
        bar.suspend(|| {
            let mut out = width::folded(&mut out);
            report::introduction(&mut out, &v4, &v6)?;
            report::lookups(&mut out, &examples)?;
            report::announce_structures(&mut out)?;
            out.flush()
        })?;
    }

    // Two patterns a structure.
    let budget = Duration::from_secs(args.seconds.into()) / (2 * count);
    let mut rows = measure::measure(&ipv4, &v4.rib, budget, &bar)?;
    rows.extend(measure::measure(&ipv6, &v6.rib, budget, &bar)?);
    bar.finish_and_clear();
    match format {
        Format::Text => report::structures(&mut width::folded(&mut out), &rows, program)?,
        Format::Json => report::json(&mut out, &v4, &v6, &examples, &rows)?,
        format => {
            let rows: Vec<_> = rows.iter().map(report::record).collect();
            objects::write(&mut out, format, report::COLUMNS, &rows)?;
        }
    }
    out.flush()?;
    Ok(if measure::wrong(&rows) == 0 { ExitCode::SUCCESS } else { code::NOTHING_FOUND.into() })
}
