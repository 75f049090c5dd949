//! `fibula choose`: the best engine for a table, and why.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use fibula::auto::{self, Choice, Machine, Workload};
use fibula::fib::Fib;
use fibula::fib::registry::Engines;
use fibula::memory::Limits;
use fibula::net::Key;
use fibula::rib::Rib;
use fibula::simd;
use fibula_workload::engines::refuse_unknown;
use fibula_workload::{probe, traffic};
use serde_json::json;

use crate::addresses::Addresses;
use crate::answer::AnswerArgs;
use crate::calibration;
use crate::failure::{Failure, code};
use crate::load::load_feeds;
use crate::machine::IsaArgs;
use crate::messages::Messages;
use crate::objects::{self, Object};
use crate::options::{FeedArgs, FilesArgs, Format, QuietArgs};
use crate::suggested;
use crate::text::{Grid, bold, bytes};

const COLUMNS: &[&str] =
    &["family", "engine", "chosen", "mlps", "lookup_bytes", "isa", "batch", "routes", "why"];

/// Engines shown after the chosen one.
const OTHERS: usize = 5;

/// Choose the best engine for a table, and say why
///
/// The choice rests on a model that is built into the program, of the costs of engines by table, batch size and instruction set, and
/// on a calibration of this machine, with the engines' rates over one table of each family, which takes about 0.15 s once. The best
/// few engines are built, so that their memory is exact and none of them refuses the table. With --measure the engines themselves
/// are measured, on this table: only so is traffic seen that goes to few addresses.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:
  0  an engine was chosen
  1  the table is empty, or no engine fits into --bytes
  2  wrong use
  3  the table cannot be read
  4  this machine lacks the instruction set

Examples:
  fibula choose routes.txt
  fibula choose rib.gz --batch 1 --isa scalar
  fibula choose rib.gz --bytes 2000000 --json
  fibula choose rib.gz --measure --addresses addresses.txt")]
pub(crate) struct ChooseArgs {
    #[command(flatten)]
    files: FilesArgs,

    #[command(flatten)]
    feed: FeedArgs,

    /// Addresses looked up in one call; 1 for single lookups
    #[arg(long, value_name = "NUMBER", default_value_t = 256)]
    batch: usize,

    #[command(flatten)]
    isa: IsaArgs,

    /// Choose as on the machine that was recorded, with a second-level cache of this size for each core, instead of on
    /// this machine
    #[arg(long, value_name = "BYTES", conflicts_with = "calibration")]
    l2: Option<usize>,

    /// The calibration of this machine: read if the file exists, else measured and written [default:
    /// fibula/calibration-CPU.txt in XDG_CACHE_HOME or ~/.cache]
    #[arg(long, value_name = "FILE")]
    calibration: Option<PathBuf>,

    /// Most memory that lookups of the engine may touch [default: in proportion to the table and the second-level
    /// cache]
    #[arg(long, value_name = "BYTES")]
    bytes: Option<usize>,

    /// Measure the engines on this table, instead of expecting what was recorded of others
    #[arg(long)]
    measure: bool,

    /// Addresses to measure with, one a line [default: random ones within the table's routes]
    #[arg(long, value_name = "FILE", requires = "measure", alias = "keys")]
    addresses: Option<PathBuf>,

    /// The engine in use now, which is kept unless another is clearly faster
    #[arg(long, value_name = "NAME", value_parser = suggested::engine(), hide_possible_values = true)]
    in_use: Option<String>,

    #[command(flatten)]
    output: AnswerArgs,

    #[command(flatten)]
    quiet: QuietArgs,
}

pub(crate) fn run(args: &ChooseArgs) -> Result<ExitCode, Failure> {
    args.isa.force()?;
    if let Some(name) = &args.in_use {
        refuse_unknown(Engines::OWN, name).map_err(Failure::WrongUse)?;
    }
    let messages = Messages::new(args.quiet.quiet);
    let files = args.files.paths()?;
    let mut out = args.output.open(&files)?;
    let table = load_feeds(&files, &args.feed, messages)?;
    let machine = machine(args, messages);
    let keys = args
        .addresses
        .as_deref()
        .map(|path| Addresses::read(path, messages))
        .transpose()?
        .unwrap_or_default();
    let is_empty = table.ribs.v4.is_empty() && table.ribs.v6.is_empty();
    let mut families = vec![
        family(&table.ribs.v4, machine, keys.v4, args)?,
        family(&table.ribs.v6, machine, keys.v6, args)?,
    ];
    families.retain(|family| !family.rows.is_empty());
    if families.is_empty() && !is_empty {
        messages.warning("no engine fits into --bytes");
    }
    match args.output.format() {
        Format::Text => families.iter().try_for_each(|family| family.write(&mut out))?,
        format => {
            let rows: Vec<Object> = families.iter().flat_map(Family::records).collect();
            objects::write(&mut out, format, COLUMNS, &rows)?;
        }
    }
    out.finish()?;
    Ok(if families.is_empty() { code::NOTHING_FOUND.into() } else { ExitCode::SUCCESS })
}

/// Returns the machine to choose for.
fn machine(args: &ChooseArgs, messages: Messages) -> Machine {
    if let Some(bytes) = args.l2 {
        return Machine::recorded().with_l2(bytes);
    }
    calibration::here(args.calibration.as_deref(), messages)
}

/// The chosen engine of a family first, then the others.
struct Family {
    family: fibula::net::Family,
    routes: usize,
    rows: Vec<ChoiceRow>,
}

struct ChoiceRow {
    engine: &'static str,
    chosen: bool,
    mlps: f64,
    bytes: usize,
    isa: &'static str,
    batch: usize,
    why: Option<String>,
}

impl ChoiceRow {
    fn new<K: Key>(choice: &Choice<K>, chosen: bool) -> Self {
        Self {
            engine: choice.engine.name,
            chosen,
            mlps: (choice.mlps * 10.0).round() / 10.0,
            bytes: choice.bytes,
            isa: choice.isa.name(),
            batch: choice.batch,
            why: chosen.then(|| choice.reason.to_string()),
        }
    }
}

fn family<K: Key>(
    rib: &Rib<K>,
    machine: Machine,
    keys: Vec<K>,
    args: &ChooseArgs,
) -> Result<Family, Failure> {
    let mut rows = Vec::new();
    if !rib.is_empty() {
        let wanted = Workload { batch: args.batch, machine, max_bytes: args.bytes, ..Workload::default() };
        let chosen = auto::choose_for::<K>(rib, &wanted, args.in_use.as_deref(), Limits::default());
        let (mut choice, mut ranked) = match chosen {
            Ok(chosen) => (chosen.choice, chosen.ranked),
            // Whatever is left takes more than --bytes.
            Err(error) if error.is_limit() => (None, Vec::new()),
            Err(error) => return Err(Failure::BadInput(error.to_string())),
        };
        if args.measure && choice.is_some() {
            ranked = measured(rib, &ranked, keys, args.batch)?;
            choice = auto::pick(&ranked, args.in_use.as_deref());
        }
        if let Some(choice) = choice {
            rows.push(ChoiceRow::new(&choice, true));
            let others = ranked.iter().filter(|other| other.engine.name != choice.engine.name);
            rows.extend(others.take(OTHERS).map(|other| ChoiceRow::new(other, false)));
        }
    }
    Ok(Family { family: K::FAMILY, routes: rib.len(), rows })
}

/// Builds and measures the engines, and returns them with these rates, the fastest first. Those that refuse the table
/// are left out.
fn measured<K: Key>(
    rib: &Rib<K>,
    ranked: &[Choice<K>],
    mut keys: Vec<K>,
    batch: usize,
) -> Result<Vec<Choice<K>>, Failure> {
    if keys.is_empty() {
        let ranges = Workload::default().with_table(rib).ranges;
        for name in ["match", "zipf"] {
            let pattern = traffic::find::<K>(name).expect("there is such traffic");
            let made = (pattern.generate)(rib, probe::keys_for(ranges), 1);
            keys.extend(made.map_err(|error| Failure::BadInput(error.to_string()))?);
        }
    }
    let mut built: Vec<(Choice<K>, Box<dyn Fib<K>>)> = Vec::new();
    for choice in ranked {
        if let Ok(fib) = choice.engine.build(rib, Limits::default()) {
            let bytes = fib.memory().lookup_bytes;
            built.push((Choice { bytes, is_built: true, ..*choice }, fib));
        }
    }
    let fibs: Vec<&dyn Fib<K>> = built.iter().map(|(_, fib)| &**fib).collect();
    let rates = probe::probe(&fibs, simd::chosen(), &keys, batch);
    let rated =
        built.iter().zip(rates).filter_map(|((choice, _), mlps)| Some(Choice { mlps: mlps?, ..*choice }));
    let mut rated: Vec<Choice<K>> = rated.collect();
    rated.sort_by(|a, b| b.mlps.total_cmp(&a.mlps));
    Ok(rated)
}

impl Family {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let chosen = &self.rows[0];
        let bold = bold();
        writeln!(
            out,
            "{}: {bold}{}{bold:#}: {}",
            self.family,
            chosen.engine,
            chosen.why.as_deref().unwrap_or("")
        )?;
        let mut grid = Grid::new(&["engine", "M lookups/s", "lookup memory", "instruction set", "batch"])
            .right(&[1, 2, 4]);
        for row in &self.rows {
            let ChoiceRow { engine, mlps, isa, batch, .. } = row;
            grid.row([
                (*engine).to_owned(),
                format!("{mlps:.0}"),
                bytes(row.bytes),
                (*isa).to_owned(),
                batch.to_string(),
            ]);
        }
        writeln!(out, "{}", grid.render())
    }

    fn records(&self) -> Vec<Object> {
        let record = |row: &ChoiceRow| {
            let value = json!({
                "family": self.family.name(),
                "engine": row.engine,
                "chosen": row.chosen,
                "mlps": row.mlps,
                "lookup_bytes": row.bytes,
                "isa": row.isa,
                "batch": row.batch,
                "routes": self.routes,
                "why": row.why,
            });
            value.as_object().cloned().unwrap_or_default()
        };
        self.rows.iter().map(record).collect()
    }
}
