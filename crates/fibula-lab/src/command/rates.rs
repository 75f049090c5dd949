//! `fibula-lab rates`: measures how fast engines and rivals look up.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use fibula::net::{Family, Key};
use fibula::rib::Rib;
use fibula::simd::Isa;
use fibula_cli::plumbing::{
    Addresses, Failure, Format, IsaArgs, Messages, Output, OutputArgs, QuietArgs, code, folded, write_file,
    write_objects,
};
use indicatif::ProgressBar;

use super::contestants::Selection;
use super::options::{ContestantArgs, EffortArgs, KeysArgs, TableArgs, or, traffic};
use super::recorded::{about, today, write_record};
use super::{page, report, tables};
use crate::bench::{self, Order, Plan, Record, Row};

/// Measure and compare engines on a table
///
/// Builds every engine from the table, checks its answers, and times all of them in turn with the same addresses:
/// at least five runs each, reported as median, slowest and fastest. Compare rates only within one run.
///
/// Not everything is timed in every way, so that a full record of one family takes at most half an hour on two cores. A
/// engine is timed with each instruction set that it supports and this machine has in batches of 256, and in other
/// batches with the set that was the fastest there. Further orders of keys and larger key sets are timed in batches of 32
/// and 256, further numbers of threads in batches of 256. Oracles, and rivals other than DPDK and PlanB, are timed with
/// single keys and in batches of 256 only. Larger key sets are for our engines and those that they are compared with:
/// DPDK's, DIR-24-8, DXR as published, PlanB and Poptrie; and for those that --engine names. Without batches of 256, the largest ones are taken. An estimate
/// of the time is printed first.
///
/// --isa limits all contestants, rivals included, to one set and those below it: '--isa avx2' shows a machine without
/// AVX-512, '--isa scalar' one without vector instructions.
///
/// Each timed run follows an untimed one over the same keys. One thread is timed by its own CPU time, several by wall
/// time. The keys of the next batch are prefetched for our engines and DPDK's, by their own kernels if these do so.
///
/// Engines that cannot hold the table are listed with the reason. Wrong answers of a rival are counted and reported;
/// they do not change the exit code.
#[derive(Debug, Args)]
#[command(after_help = "\
Traffic:
  rnd    random addresses of the routable IPv4 space, or of the announced IPv6 space
  match  a random address of a random prefix of the table
  seq    like rnd, but each lookup waits for the answer of the one before
  mix:70 70 % of the addresses match, in random order, and the rest match nothing but a default route: mix:0 to mix:100
  ...    an unknown name lists all

Engines with parameters (--engine):
  bloomfwd:FILTER+TABLE:RATIO  IPv4: hash functions murmur, knuth or h2, and a false-positive ratio in percent: 1, 5,
                               10, 15 and so on to 60, or 90
  bloom-naive:RATIO            the same ratios
  bloomfwd-CHOICE:LEVELS       IPv6: levels chosen by greedy, exact or capture, 2 to 8 of them

Exit codes:
  0  every engine answered correctly
  1  an engine gave a wrong answer
  2  wrong use
  3  the table cannot be read, or an output cannot be written
  4  this machine lacks the instruction set, or the rival named by --engine is not installed

Environment:
  FIBULA_PYTHON  the Python interpreter for rivals in Python [default: python3]
  FIBULA_GO      the Go command for rivals in Go [default: go]
  FIBULA_RIVALS  the folder for compiled rivals [default: ~/.cache/fibula/rivals]

Examples:
  fibula-lab rates --table routes.txt.xz
  fibula-lab rates --synth ipv4/900000 --traffic match --batch 256 --json
  fibula-lab rates --synth ipv6 --engine radix --engine range-search --threads 1 --threads 2
  fibula-lab rates -t routes.txt --engine dir-24-8 --rivals --batch 64
  fibula-lab rates -t routes.txt --isa avx2 --threads 1 --threads 4
  fibula-lab rates -t routes.txt --engine bloomfwd:h2+h2:30 --engine bloomfwd:murmur+h2:5 --traffic mix:80
  fibula-lab rates -t routes.txt --engine bloomfwd --engine miht --traffic rnd --many-keys 67108864 --batch 256
  fibula-lab rates -t routes.txt --html rates.html
  fibula-lab rates -t routes.txt --addresses clients.txt --record records --svg rates.svg")]
pub(super) struct RatesArgs {
    #[command(flatten)]
    table: TableArgs,

    #[command(flatten)]
    contestants: ContestantArgs,

    /// Measure only this traffic; may be repeated [default: all]
    #[arg(long, value_name = "NAME", value_parser = traffic(), hide_possible_values = true)]
    traffic: Vec<String>,

    /// Also measure with the addresses in this file, one a line, plain or compressed
    #[arg(long, value_name = "FILE")]
    addresses: Option<PathBuf>,

    /// Addresses in each call; 1 for single lookups; may be repeated [default: 1, 8, 16, 32, 64, 256
    /// and 1024]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    batch: Vec<u32>,

    /// Threads that look up at the same time; may be repeated [default: 1]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=4096))]
    threads: Vec<u32>,

    /// Byte order of the keys: host integers, or network order as in packets (in batches, without rivals); may be repeated
    /// [default: host]
    #[arg(long, value_enum, value_name = "ORDER")]
    order: Vec<KeyOrder>,

    #[command(flatten)]
    isa: IsaArgs,

    #[command(flatten)]
    keys: KeysArgs,

    /// Time every instruction set in all batches, not only in those of 256
    #[arg(long)]
    every_isa: bool,

    /// Also look up this many keys, a set too large for caches, in RND, MATCH and ZIPF and in batches of 32 and 256
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(2..=1 << 28))]
    many_keys: Option<u32>,

    #[command(flatten)]
    effort: EffortArgs,

    /// Draw the rates as a bar chart; if there are several charts, family and traffic are added to the name
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Write the result to this file as a page of HTML with charts, which needs no other file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Save the result in this folder as MACHINE/TABLE.json
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    quiet: QuietArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum KeyOrder {
    Host,
    Network,
}

impl RatesArgs {
    /// Returns the files that are read, which no output may be.
    fn inputs(&self) -> impl Iterator<Item = &PathBuf> {
        self.table.source.table.iter().chain(&self.addresses)
    }
}

pub(super) fn run(args: &RatesArgs) -> Result<ExitCode, Failure> {
    let messages = Messages::new(args.quiet.quiet);
    let isa = args.isa.force()?;
    if let Some(path) = &args.svg {
        Output::new(Some(path), args.inputs())?;
    }
    let selection = Selection::new(&args.contestants.structures, args.contestants.rivals, messages)?;
    let tables = args.table.load(messages)?;
    let addresses = args.addresses.as_deref().map(|path| Addresses::read(path, messages)).transpose()?;
    selection.name_the_absent(&tables, messages);
    let families = tables.families();
    let plan = plan(args, isa, families);
    let rows = measure_all(&tables, addresses.as_ref(), &selection, &plan, messages)?;
    for (name, reason) in report::refusals(&rows) {
        messages.note(format_args!("{name} was not measured: {reason}"));
    }

    let mut out = anstream::stdout().lock();
    match args.output.format() {
        Format::Text => report::text(&mut folded(&mut out), &rows)?,
        format => write_objects(&mut out, format, Row::COLUMNS, &report::records(&rows)?)?,
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
        write_file(path, args.inputs(), page.as_bytes())?;
        messages.note(format_args!("page written to {}", path.display()));
    }
    if let Some(folder) = &args.record {
        let mut record = Record::new(&today(), &tables.name, plan, rows);
        record.recorded = args.addresses.as_deref().map(tables::name);
        write_record(&record.path(folder), &record.json()?, messages)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures both families, one after the other.
fn measure_all(
    tables: &tables::Tables,
    addresses: Option<&Addresses>,
    selection: &Selection,
    plan: &Plan,
    messages: Messages,
) -> Result<Vec<Row>, Failure> {
    let mut bar = FamilyBar { bar: messages.steps(0), before: 0, families: tables.families(), plan };
    let v4 = addresses.map(|addresses| &addresses.v4);
    let mut rows = measure(&tables.ribs.v4, v4, selection, &mut bar, messages)?;
    let v6 = addresses.map(|addresses| &addresses.v6);
    rows.extend(measure(&tables.ribs.v6, v6, selection, &mut bar, messages)?);
    bar.bar.finish_and_clear();
    Ok(rows)
}

fn plan(args: &RatesArgs, isa: Option<Isa>, families: u32) -> Plan {
    Plan {
        engines: args.contestants.structures.engine.clone(),
        traffic: args.traffic.clone(),
        isa: isa.map(|isa| isa.name().to_owned()),
        every_isa: args.every_isa,
        batches: or(&args.batch, bench::BATCHES.to_vec()),
        orders: orders(&args.order),
        threads: or(&args.threads, vec![1]),
        keys: args.keys.count(),
        many_keys: args.many_keys.map(|keys| keys as usize),
        runs: args.effort.runs as usize,
        seconds: args.effort.seconds_of(families),
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
    bar: &mut FamilyBar<'_>,
    messages: Messages,
) -> Result<Vec<Row>, Failure> {
    let contestants = selection.contestants::<K>();
    if rib.is_empty() || contestants.is_empty() {
        return Ok(Vec::new());
    }
    // The contestants are selected already: rivals that nobody named are among them, and engines of the other family are not.
    let engines = match bar.plan.engines.is_empty() {
        true => Vec::new(),
        false => contestants.iter().map(|contestant| contestant.name.clone()).collect(),
    };
    let plan = Plan { engines, ..bar.plan.clone() };
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
struct FamilyBar<'a> {
    bar: ProgressBar,
    /// Families that are done.
    before: u32,
    families: u32,
    plan: &'a Plan,
}

impl FamilyBar<'_> {
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

fn draw(path: &Path, args: &RatesArgs, table: &str, rows: &[Row], messages: Messages) -> Result<(), Failure> {
    let charts = report::charts(table, rows);
    let single = charts.len() == 1;
    for (suffix, svg) in charts {
        let path = match (single, path.file_stem()) {
            (false, Some(stem)) => path.with_file_name(format!("{}-{suffix}.svg", stem.to_string_lossy())),
            _ => path.to_owned(),
        };
        write_file(&path, args.inputs(), svg.as_bytes())?;
        messages.note(format_args!("chart written to {}", path.display()));
    }
    Ok(())
}
