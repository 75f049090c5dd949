//! `fibula bench`: measures lookup structures and rivals on a table.

mod args;
mod contestants;
#[cfg(feature = "gpu")]
mod device;
mod page;
mod reach;
mod report;
mod schedule;
mod tables;
mod updates;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fibula::net::{Family, Key};
use fibula::rib::Rib;
use fibula::simd::Isa;
use fibula_lab::bench::{self, Order, Plan, Record, Row};
use indicatif::ProgressBar;

use crate::failure::{Failure, code};
use crate::machine::OPTIMISED;
use crate::messages::Messages;
use crate::objects;
use crate::options::Format;
use crate::output::{self, Output};
use crate::width;
pub(crate) use args::BenchArgs;
use args::KeyOrder;
use contestants::Selection;
pub(crate) use tables::Addresses;
use tables::Tables;

/// Keys by default.
const KEYS: u32 = if OPTIMISED { 1 << 20 } else { 1 << 14 };

pub(crate) fn run(args: &BenchArgs) -> Result<ExitCode, Failure> {
    let messages = Messages::new(args.quiet.quiet);
    if !OPTIMISED {
        messages.note("this is a debug build, whose rates mean nothing; use 'cargo run --release'");
    }
    let isa = args.isa.force()?;
    if let Some(path) = &args.svg {
        Output::new(Some(path), args.source.table.iter().chain(&args.addresses))?;
    }
    if args.device.is_some() && !cfg!(feature = "gpu") {
        return Err(Failure::NotAvailable(
            "this build has no coprocessors; to get them: cargo install fibula-cli --features gpu".to_owned(),
        ));
    }
    let selection = Selection::new(args, messages)?;
    let mut tables = Tables::new(&args.source, messages)?;
    if let Some(one_in) = args.one_in {
        tables.keep_one_in(one_in as usize)?;
    }
    if let Some(hosts) = args.hosts {
        tables.add_hosts(hosts as usize)?;
    }
    let addresses = args.addresses.as_deref().map(|path| Addresses::read(path, messages)).transpose()?;
    let families = tables.families();
    if families == 0 {
        return Err(Failure::BadInput(format!(
            "{}: the table is empty, there is nothing to measure",
            tables.name
        )));
    }
    #[cfg(feature = "gpu")]
    if args.device.is_some() {
        return device::run(args, &tables, messages);
    }
    selection.name_the_absent(&tables, messages);
    if args.updates {
        return updates::run(args, tables, &selection, messages);
    }
    if !args.schedule.is_empty() {
        return schedule::run(args, &tables, &selection, messages);
    }
    let plan = plan(args, isa, families);
    if args.reach {
        return reach::run(args, &plan, &tables, &selection, messages);
    }

    let mut bar = Bar { bar: messages.steps(0), before: 0, families, plan: &plan };
    let mut rows = measure(
        &tables.ribs.v4,
        addresses.as_ref().map(|addresses| &addresses.v4),
        &selection,
        &mut bar,
        messages,
    )?;
    rows.extend(measure(
        &tables.ribs.v6,
        addresses.as_ref().map(|addresses| &addresses.v6),
        &selection,
        &mut bar,
        messages,
    )?);
    bar.bar.finish_and_clear();
    for (name, reason) in report::refusals(&rows) {
        messages.note(format_args!("{name} was not measured: {reason}"));
    }

    let mut out = anstream::stdout().lock();
    match args.output.format() {
        Format::Text => report::text(&mut width::folded(&mut out), &rows)?,
        format => objects::write(&mut out, format, Row::COLUMNS, &report::records(&rows)?)?,
    }
    out.flush()?;
    for name in report::wrong_rivals(&rows) {
        messages.warning(format_args!("the rival {name} gave wrong answers"));
    }
    if rows.iter().any(|row| row.wrong > 0 && !row.rival) {
        messages.warning("there were wrong answers; no record, chart or page is written");
        return Ok(code::NOTHING_FOUND.into());
    }
    if let Some(path) = &args.svg {
        draw(path, args, &tables.name, &rows, messages)?;
    }
    if let Some(path) = &args.html {
        let page = page::page(&tables.name, &rows);
        output::write_file(path, args.source.table.iter().chain(&args.addresses), page.as_bytes())?;
        messages.note(format_args!("page written to {}", path.display()));
    }
    if let Some(folder) = &args.record {
        let mut record = Record::new(&today(), &tables.name, plan, rows);
        record.recorded = args.addresses.as_deref().map(tables::name);
        write_record(&record.path(folder), &record.json()?, messages)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn plan(args: &BenchArgs, isa: Option<Isa>, families: u32) -> Plan {
    let or = |numbers: &[u32], default: &[u32]| {
        let numbers = if numbers.is_empty() { default } else { numbers };
        numbers.iter().map(|&number| number as usize).collect()
    };
    Plan {
        algorithms: args.algorithm.clone(),
        traffic: args.traffic.clone(),
        isa: isa.map(|isa| isa.name().to_owned()),
        every_isa: args.every_isa,
        batches: or(&args.batch, &bench::BATCHES.map(|batch| batch as u32)),
        orders: orders(&args.order),
        threads: or(&args.threads, &[1]),
        keys: args.keys.unwrap_or(KEYS) as usize,
        many_keys: args.many_keys.map(|keys| keys as usize),
        runs: args.runs as usize,
        seconds: f64::from(args.seconds) / f64::from(families),
        ..Plan::default()
    }
}

fn orders(selection: &[KeyOrder]) -> Vec<Order> {
    let order = |order: &KeyOrder| match order {
        KeyOrder::Host => Order::Host,
        KeyOrder::Network => Order::Network,
    };
    if selection.is_empty() { vec![Order::Host] } else { selection.iter().map(order).collect() }
}

fn measure<K: Key>(
    rib: &Rib<K>,
    addresses: Option<&Vec<K>>,
    selection: &Selection,
    bar: &mut Bar<'_>,
    messages: Messages,
) -> Result<Vec<Row>, Failure> {
    let contestants = selection.contestants::<K>();
    if rib.is_empty() || contestants.is_empty() {
        return Ok(Vec::new());
    }
    // `contestants` holds the selected algorithms already; names that only the other family has are left out.
    let here = |name: &&String| contestants.iter().any(|contestant| contestant.name == **name);
    let algorithms = bar.plan.algorithms.iter().filter(here).cloned().collect();
    let plan = Plan { algorithms, ..bar.plan.clone() };
    let recorded = addresses.filter(|keys| !keys.is_empty()).map(|keys| bench::Traffic {
        name: "recorded".to_owned(),
        dependent: false,
        keys: keys.clone(),
    });
    let rows = bench::run(&plan, rib, &contestants, recorded.into_iter().collect(), &mut |step| {
        bar.show(step, messages, K::FAMILY);
    });
    bar.before += 1;
    Ok(rows?)
}

/// One bar for both families.
struct Bar<'a> {
    bar: ProgressBar,
    /// Families that are done.
    before: u32,
    families: u32,
    plan: &'a Plan,
}

impl Bar<'_> {
    fn show(&self, step: bench::Progress<'_>, messages: Messages, family: Family) {
        let (done, total) = (step.done as u64, step.total as u64);
        if done == 0 {
            messages.note(format_args!("{family}: {total} steps, about {}", about(step.left)));
        }
        self.bar.set_length(total * u64::from(self.families));
        self.bar.set_position(total * u64::from(self.before) + done);
        let later = self.families.saturating_sub(self.before + 1);
        let left = step.left + Duration::from_secs_f64(self.plan.seconds) * later;
        self.bar.set_message(format!("{}, {} left", step.step, about(left)));
    }
}

/// Returns a time in words.
fn about(time: Duration) -> String {
    match time.as_secs() + 1 {
        seconds if seconds < 120 => format!("{seconds} s"),
        seconds => format!("{} minutes", seconds.div_ceil(60)),
    }
}

fn draw(path: &Path, args: &BenchArgs, table: &str, rows: &[Row], messages: Messages) -> Result<(), Failure> {
    let charts = report::charts(table, rows);
    let single = charts.len() == 1;
    for (suffix, svg) in charts {
        let path = match (single, path.file_stem()) {
            (false, Some(stem)) => path.with_file_name(format!("{}-{suffix}.svg", stem.to_string_lossy())),
            _ => path.to_owned(),
        };
        output::write_file(&path, args.source.table.iter().chain(&args.addresses), svg.as_bytes())?;
        messages.note(format_args!("chart written to {}", path.display()));
    }
    Ok(())
}

/// Writes the text of a benchmark record to its path, and says so.
fn write_record(path: &Path, json: &str, messages: Messages) -> Result<(), Failure> {
    if let Some(machine) = path.parent() {
        output::create_folder(machine)?;
    }
    output::write_file(path, [], json.as_bytes())?;
    messages.note(format_args!("result saved in {}", path.display()));
    Ok(())
}

/// Returns the date in UTC, as 2026-01-31.
pub(crate) fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    date((seconds / 86_400) as i64)
}

/// Returns the date of the day this many days after 1970-01-01, by 400-year eras that begin in March (Hinnant,
/// "chrono-compatible low-level date algorithms").
fn date(days: i64) -> String {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    format!("{:04}-{month:02}-{day:02}", year + era * 400 + i64::from(month <= 2))
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn days_become_dates() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(11_016), "2000-02-29");
        assert_eq!(date(11_017), "2000-03-01");
        assert_eq!(date(20_819), "2027-01-01");
    }
}
