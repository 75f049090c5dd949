//! The table that a command works on, loaded with progress and warnings.

use std::path::Path;

use fibula::memory::Limits;
use fibula::net::HostBits;
use fibula_feed::{LoadOptions, Progress, Report, Table};

use crate::failure::Failure;
use crate::say::{self, Say};
use crate::text::{bytes, plural, thousands};

/// What stands for standard input in place of a file.
const STDIN: &str = "-";

/// Whether the table comes from standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == STDIN
}

pub(crate) fn limits(memory_bytes: Option<usize>) -> Limits {
    Limits { memory_bytes, ..Limits::default() }
}

/// Loads the table at `path`, or from standard input where that is `-`, and warns of what was left out.
pub(crate) fn load(
    path: &Path,
    limits: Limits,
    mask: bool,
    strict: bool,
    say: Say,
) -> Result<Table, Failure> {
    let mut options = LoadOptions::default();
    options.strict = strict;
    options.host_bits = if mask { HostBits::Mask } else { HostBits::Refuse };
    options.limits = limits;

    let total = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|file| file.len());
    let bar = say.bytes(total);
    bar.set_message(format!("loading {}", path.display()));
    let mut progress = |progress: Progress| bar.set_position(progress.bytes_read);
    let table = if is_stdin(path) {
        fibula_feed::load_reader("standard input", std::io::stdin().lock(), &options, &mut progress)
    } else {
        fibula_feed::load(path, &options, &mut progress)
    };
    bar.finish_and_clear();
    let table = table.map_err(|error| Failure::BadInput(error.to_string()))?;
    warn(&table.report, say);
    if table.v4.is_empty() && table.v6.is_empty() {
        let name = &table.report.name;
        if table.report.bad_lines > 0 {
            return Err(Failure::BadInput(format!("{name}: no line is a route")));
        }
        say.warning(format_args!("{name}: the table is empty"));
    }
    Ok(table)
}

fn warn(report: &Report, say: Say) {
    for bad in &report.first_bad {
        say.warning(format_args!("{bad}: '{}'", bad.excerpt()));
    }
    if report.bad_lines > 0 {
        let lines = plural(report.bad_lines, "bad line was", "bad lines were");
        say.warning(format_args!("{}: {} {lines} left out", report.name, thousands(report.bad_lines)));
    }
    if report.repeated_changed > 0 {
        let prefixes = plural(
            report.repeated_changed,
            "prefix is repeated with another",
            "prefixes are repeated with other",
        );
        let count = thousands(report.repeated_changed);
        say.note(format_args!("{}: {count} {prefixes} next hop; the last one counts", report.name));
    }
    if let Some(truncation) = &report.truncated {
        say.warning(format_args!("{truncation}; what came before is loaded"));
    }
}

/// Says on standard error what was loaded.
pub(crate) fn print_stats(table: &Table) {
    let Report { name, lines, routes_v4, routes_v6, bad_lines, .. } = &table.report;
    let memory = table.v4.memory().held_bytes() + table.v6.memory().held_bytes();
    say::plain(format_args!(
        "{name}: lines: {}, bad: {}, IPv4 routes: {}, IPv6 routes: {}, next hops: {}; {}",
        thousands(*lines),
        thousands(*bad_lines),
        thousands(*routes_v4),
        thousands(*routes_v6),
        thousands(table.next_hops.len()),
        bytes(memory),
    ));
}
