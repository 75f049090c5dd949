//! Tables of ten million prefixes: loaded, compiled and saved, as `fibula compile` does.
//!
//! Memory is the most that the process ever had (`VmHWM`, Linux), times are of the processor and of the clock.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use clap::Args;
use fibula::auto;
use fibula::file::{self, Contents, Half};
use fibula::memory::Limits;
use fibula::net::Route;
use fibula_feed::{LoadOptions, Loader};
use fibula_workload::random::Random;
use fibula_workload::table::{Profile, TableSpec, generate};

use super::Outcome;
use crate::command::figures::FigureTables;

/// Prefixes of the generated table.
const ROUTES: usize = 10_000_000;

/// Options of `fibula-lab measure large`.
#[derive(Debug, Args)]
pub(in crate::command) struct LargeArgs {
    /// Compile this table, and print the time and the memory of each step [default: a generated table, its lines in order and
    /// shuffled]
    #[arg(value_name = "TABLE")]
    table: Option<String>,

    /// The file that it is compiled to [default: large.fibula in the folder of temporary files]
    #[arg(value_name = "OUTPUT")]
    output: Option<String>,

    /// Keep the figures in records/values
    #[arg(long, conflicts_with = "table")]
    record: bool,
}

pub(super) fn run(args: &LargeArgs) -> Outcome {
    if let Some(table) = &args.table {
        let default = std::env::temp_dir().join("large.fibula").display().to_string();
        return compile(table, args.output.as_ref().unwrap_or(&default));
    }
    let mut figures = FigureTables::new("large", &[]);
    let cores = std::thread::available_parallelism()?;
    let title = format!("{ROUTES} IPv4 prefixes from text to a table file, on {cores} cores");
    figures.table(title, &["lines", "seconds", "of the processor", "most memory, MB", "file, MB"]);
    let folder = tempfile::tempdir()?;
    let mut routes: Vec<Route<u32>> =
        generate(&TableSpec { routes: ROUTES, ..TableSpec::ipv4() }, &Profile::of::<u32>())?;
    for order in ["in order", "shuffled"] {
        if order == "shuffled" {
            Random::new(1).shuffle(&mut routes);
        }
        let (table, output) = (folder.path().join("table.txt"), folder.path().join("table.fibula"));
        write(&table, &routes)?;
        // In a process of its own, whose memory is counted from its start.
        let program = std::env::current_exe()?;
        let child = Command::new(program).args(["measure", "large"]).arg(&table).arg(&output).output()?;
        let said = String::from_utf8(child.stdout)?;
        print!("{said}{}", String::from_utf8_lossy(&child.stderr));
        if !child.status.success() {
            return Err(format!("{order}: {}", child.status).into());
        }
        let last = said.lines().last().ok_or("nothing was said")?;
        let mut row = vec![order.to_owned()];
        row.extend(last.split_whitespace().map(str::to_owned));
        row.push(format!("{:.1}", fs::metadata(&output)?.len() as f64 / 1e6));
        figures.row(row);
    }
    figures.keep(args.record)
}

fn write(path: &Path, routes: &[Route<u32>]) -> Outcome {
    let mut out = BufWriter::new(fs::File::create(path)?);
    for route in routes {
        writeln!(out, "{} {}", route.prefix, route.next_hop.id())?;
    }
    Ok(out.flush()?)
}

/// Compiles a table, and prints the time of each step when it is done. The last line has the seconds of all steps,
/// those of the processor, and the most memory.
fn compile(table: &str, output: &str) -> Outcome {
    let mut steps = StepLog::new();
    let mut options = LoadOptions::default();
    options.threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let table = Loader::new(options).load(table)?;
    let (v4, v6) = (&table.ribs.v4, &table.ribs.v6);
    steps.end(&format!("{} IPv4 and {} IPv6 routes loaded", v4.len(), v6.len()));
    let saved = |engine: &fibula::fib::registry::Engine<u32>| engine.is_saved();
    let workload = auto::Workload::default().with_table(v4);
    let ranked = auto::rank::<u32>(&workload).into_iter().map(|choice| choice.engine);
    let mut fib4 = None;
    for engine in ranked.filter(saved).filter(|_| !v4.is_empty()) {
        match engine.build(v4, Limits::default()) {
            Ok(fib) => {
                steps.end(&format!("{} built, {} bytes", engine.name, fib.memory().lookup_bytes));
                fib4 = Some(fib);
                break;
            }
            Err(error) => println!("{}: {error}", engine.name),
        }
    }
    let mut fib6 = None;
    if !v6.is_empty() {
        let fib = fibula_published::find::<u128>("dir-btree")?.build(v6, Limits::default())?;
        steps.end(&format!("dir-btree built, {} bytes", fib.memory().lookup_bytes));
        fib6 = Some(fib);
    }
    let contents = Contents {
        v4: Half { fib: fib4.as_deref(), routes: fib4.is_some().then_some(v4 as _) },
        v6: Half { fib: fib6.as_deref(), routes: fib6.is_some().then_some(v6 as _) },
        values: table.next_hops.iter().map(|(id, label)| (id, label.to_string().into_bytes())).collect(),
        ..Contents::default()
    };
    file::save(output, &contents)?;
    steps.end(&format!("saved, {} bytes", fs::metadata(output)?.len()));
    println!("{:.2} {:.2} {}", steps.start.elapsed().as_secs_f64(), processor(), status("VmHWM:") >> 10);
    Ok(())
}

/// Time and memory, step by step.
struct StepLog {
    start: Instant,
    clock: Instant,
    processor: f64,
}

impl StepLog {
    fn new() -> Self {
        Self { start: Instant::now(), clock: Instant::now(), processor: processor() }
    }

    fn end(&mut self, what: &str) {
        let (clock, now) = (self.clock.elapsed().as_secs_f64(), processor());
        println!(
            "{:6.2} s, {:6.2} s of the processor, at most {:4} MB so far: {what}",
            clock,
            now - self.processor,
            status("VmHWM:") >> 10
        );
        (self.clock, self.processor) = (Instant::now(), now);
    }
}

/// Returns the seconds of the processor, of all threads.
fn processor() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: f64 = fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
    ticks / 100.0
}

/// Returns a line of the status, in KiB.
fn status(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()).and_then(|number| number.parse().ok()).unwrap_or(0)
}
