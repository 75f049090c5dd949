//! `fibula choose`: the best structure for a table, and why.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use fibula::auto::{self, Choice, Workload};
use fibula::net::Key;
use fibula::rib::Rib;
use serde_json::json;

use crate::failure::{Failure, code};
use crate::load::load_feeds;
use crate::machine::{IsaArgs, l2_bytes};
use crate::messages::Messages;
use crate::objects::{self, Object};
use crate::options::{FeedArgs, Format, OutputArgs, QuietArgs};
use crate::text::{Grid, bold, bytes};

const COLUMNS: &[&str] =
    &["family", "algorithm", "chosen", "mlps", "lookup_bytes", "isa", "batch", "routes", "why"];

/// Structures shown after the chosen one.
const OTHERS: usize = 5;

/// Choose the best structure for a table, and say why
///
/// The choice rests on measurements that are built into the program: many tables, batch sizes and instruction sets.
/// 'fibula lookup' chooses the same way. The rates are those of the machine that was measured: they say which structure
/// is faster, not how fast it is here. 'fibula bench' measures this machine.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:
  0  a structure was chosen
  1  the table is empty, or no structure fits into --bytes
  2  wrong use
  3  the table cannot be read
  4  this machine lacks the instruction set

Examples:
  fibula choose routes.txt
  fibula choose rib.gz --batch 1 --isa scalar
  fibula choose rib.gz --bytes 2000000 --json")]
pub(crate) struct ChooseArgs {
    /// The table; '-' is standard input. Several files become one table, with the best path for each prefix
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    #[command(flatten)]
    feed: FeedArgs,

    /// Addresses looked up in one call; 1 for single lookups
    #[arg(long, value_name = "NUMBER", default_value_t = 256)]
    batch: usize,

    #[command(flatten)]
    isa: IsaArgs,

    /// Size of a core's second-level cache [default: this machine's]
    #[arg(long, value_name = "BYTES")]
    l2: Option<usize>,

    /// Most memory that lookups of the structure may touch [default: no limit]
    #[arg(long, value_name = "BYTES")]
    bytes: Option<usize>,

    /// The structure in use now, which is kept unless another is clearly faster
    #[arg(long, value_name = "NAME")]
    in_use: Option<String>,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    quiet: QuietArgs,
}

pub(crate) fn run(args: &ChooseArgs) -> Result<ExitCode, Failure> {
    args.isa.force()?;
    if let Some(name) = &args.in_use
        && !crate::algorithms::names().contains(&name.as_str())
    {
        return Err(Failure::WrongUse(format!("no structure '{name}'; see 'fibula algorithms'")));
    }
    let messages = Messages::new(args.quiet.quiet);
    let table = load_feeds(&args.files, &args.feed, messages)?;
    let is_empty = table.ribs.v4.is_empty() && table.ribs.v6.is_empty();
    let mut families = vec![family(&table.ribs.v4, args), family(&table.ribs.v6, args)];
    families.retain(|family| !family.rows.is_empty());
    if families.is_empty() && !is_empty {
        messages.warning("no structure fits into --bytes");
    }
    let mut out = anstream::stdout().lock();
    match args.output.format() {
        Format::Text => families.iter().try_for_each(|family| family.write(&mut out))?,
        format => {
            let rows: Vec<Object> = families.iter().flat_map(Family::records).collect();
            objects::write(&mut out, format, COLUMNS, &rows)?;
        }
    }
    out.flush()?;
    Ok(if families.is_empty() { code::NOTHING_FOUND.into() } else { ExitCode::SUCCESS })
}

/// The chosen structure of a family first, then the others.
struct Family {
    family: fibula::net::Family,
    routes: usize,
    rows: Vec<Row>,
}

struct Row {
    algorithm: &'static str,
    chosen: bool,
    mlps: f64,
    bytes: usize,
    isa: &'static str,
    batch: usize,
    why: Option<String>,
}

impl Row {
    fn new<K: Key>(choice: &Choice<K>, chosen: bool) -> Self {
        Self {
            algorithm: choice.algorithm.name,
            chosen,
            mlps: (choice.mlps * 10.0).round() / 10.0,
            bytes: choice.bytes,
            isa: choice.isa.name(),
            batch: choice.batch,
            why: chosen.then(|| choice.reason.to_string()),
        }
    }
}

fn family<K: Key>(rib: &Rib<K>, args: &ChooseArgs) -> Family {
    let mut rows = Vec::new();
    if !rib.is_empty() {
        let l2_bytes = args.l2.or_else(l2_bytes);
        let wanted = Workload { batch: args.batch, l2_bytes, max_bytes: args.bytes, ..Workload::default() };
        let wanted = wanted.with_table(rib);
        if let Some(choice) = auto::choose::<K>(&wanted, args.in_use.as_deref()) {
            rows.push(Row::new(&choice, true));
            let others = auto::rank::<K>(&wanted);
            let others = others.iter().filter(|other| other.algorithm.name != choice.algorithm.name);
            rows.extend(others.take(OTHERS).map(|other| Row::new(other, false)));
        }
    }
    Family { family: K::FAMILY, routes: rib.len(), rows }
}

impl Family {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let chosen = &self.rows[0];
        let bold = bold();
        writeln!(
            out,
            "{}: {bold}{}{bold:#}: {}",
            self.family,
            chosen.algorithm,
            chosen.why.as_deref().unwrap_or("")
        )?;
        let mut grid = Grid::new(&["algorithm", "M lookups/s", "lookup memory", "instruction set", "batch"])
            .right(&[1, 2, 4]);
        for row in &self.rows {
            let Row { algorithm, mlps, isa, batch, .. } = row;
            grid.row([
                (*algorithm).to_owned(),
                format!("{mlps:.0}"),
                bytes(row.bytes),
                (*isa).to_owned(),
                batch.to_string(),
            ]);
        }
        writeln!(out, "{}", grid.render())
    }

    fn records(&self) -> Vec<Object> {
        let record = |row: &Row| {
            let value = json!({
                "family": self.family.name(),
                "algorithm": row.algorithm,
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
