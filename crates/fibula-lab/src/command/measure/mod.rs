//! `fibula-lab measure`: programs for one question each.

mod changes;
mod choices;
mod columns;
mod fit;
mod hops;
mod huge_pages;
mod large;
mod live_changes;
mod rib;
mod rib_file;
mod sets;
mod shape;
mod table_file;
mod vrfs;

use std::error::Error;
use std::process::ExitCode;
use std::sync::LazyLock;
use std::time::Instant;

use clap::{Args, Subcommand, ValueEnum};
use fibula_cli::plumbing::{Failure, code};

use super::engines::engine;
use super::failure::failure;
use crate::bench::thread_time;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Measure one thing: sets, next hops, VRFs, table files, large tables, changes, the shape of tables
///
/// What is kept with --record goes into records/values of the checkout that this program was built from, and 'fibula-lab document
/// values' makes a page of it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fibula-lab measure sets rib.gz
  fibula-lab measure table-file --record rib.gz
  fibula-lab measure shape ipv6 --routes 100000")]
pub(super) struct MeasureArgs {
    #[command(subcommand)]
    program: MeasureProgram,
}

/// A table, and whether figures are kept.
#[derive(Debug, Args)]
struct RecordedArgs {
    /// The table [default: a generated one]
    #[arg(value_name = "FILE")]
    table: Option<String>,

    /// Keep the figures in records/values
    #[arg(long)]
    record: bool,
}

/// A family of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OfFamily {
    Ipv4,
    Ipv6,
}

#[derive(Debug, Subcommand)]
enum MeasureProgram {
    /// Sets of prefixes and addresses, and a map of values
    Sets(RecordedArgs),
    /// Next hops, groups and values under a live table
    Hops(RecordedArgs),
    /// 10,000 VRFs, and columns of (VRF, address)
    Vrfs(vrfs::VrfsArgs),
    /// Columns of addresses as keys and as text
    Columns(columns::ColumnsArgs),
    /// Table files saved, opened, and shared by many processes
    TableFile(table_file::TableFileArgs),
    /// Ten million prefixes: loaded, compiled and saved
    Large(large::LargeArgs),
    /// The RIB: size, speed and changes
    Rib {
        /// Tables [default: generated ones, filled in order and shuffled]
        #[arg(value_name = "FILE")]
        files: Vec<String>,
    },
    /// Lookups with and without huge pages, and the slowest calls of 32 keys
    HugePages(huge_pages::HugePagesArgs),
    /// Changes of a live table, and lookups beside them
    LiveChanges {
        /// The table
        #[arg(value_name = "FILE")]
        table: String,
        /// Number of changes
        #[arg(value_name = "COUNT", default_value_t = 1_000_000)]
        changes: usize,
        /// The engine [default: that of live tables]
        #[arg(value_name = "ENGINE", value_parser = engine(), hide_possible_values = true)]
        engine: Option<String>,
        /// Measure the processor time of a change without readers, in this many rounds
        #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
        rounds: Option<u32>,
    },
    /// What changes would rewrite in dir-17-bitmap and dir-btree
    Changes {
        /// The table
        #[arg(value_name = "FILE")]
        table: String,
    },
    /// The shape of a table
    Shape(shape::ShapeArgs),
    /// The parameters of the generator, read off a table
    Fit(fit::FitArgs),
    /// Write a table dump as large as a collector's
    RibFile {
        /// The file, compressed by gzip
        #[arg(value_name = "FILE")]
        output: String,
        /// Number of peers
        #[arg(value_name = "PEERS", default_value_t = 40)]
        peers: u16,
        /// Number of prefixes of each
        #[arg(value_name = "PREFIXES", default_value_t = 1_000_000)]
        prefixes: u32,
    },
    /// What the library chooses an engine by, into records/choices
    Choices {
        /// Measure only the tables with these parts in their names
        #[arg(value_name = "PART")]
        parts: Vec<String>,
        /// Say how good the choices are, by what is recorded
        #[arg(long, conflicts_with = "parts")]
        judge: bool,
        /// Calibrate this many times, and replace the record's calibrations
        #[arg(long, value_name = "NUMBER", conflicts_with_all = ["parts", "judge"])]
        calibrate: Option<usize>,
    },
}

/// Returns nanoseconds of processor time of this thread, so that other programs disturb less; by the wall clock where the system
/// has no such clock.
fn cpu_ns() -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    thread_time().unwrap_or_else(|| START.elapsed()).as_secs_f64() * 1e9
}

pub(super) fn run(args: &MeasureArgs) -> Result<ExitCode, Failure> {
    let outcome = match &args.program {
        MeasureProgram::Sets(args) => sets::run(args),
        MeasureProgram::Hops(args) => hops::run(args),
        MeasureProgram::Vrfs(args) => vrfs::run(args),
        MeasureProgram::Columns(args) => columns::run(args),
        MeasureProgram::TableFile(args) => table_file::run(args),
        MeasureProgram::Large(args) => large::run(args),
        MeasureProgram::Rib { files } => rib::run(files),
        MeasureProgram::HugePages(args) => huge_pages::run(args),
        MeasureProgram::LiveChanges { table, changes, engine, rounds } => {
            live_changes::run(table, *changes, engine.as_deref(), rounds.map(|rounds| rounds as usize))
        }
        MeasureProgram::Changes { table } => changes::run(table),
        MeasureProgram::Shape(args) => shape::run(args),
        MeasureProgram::Fit(args) => {
            let fits = fit::run(args).map_err(failure)?;
            return Ok(if fits { ExitCode::SUCCESS } else { code::NOTHING_FOUND.into() });
        }
        MeasureProgram::RibFile { output, peers, prefixes } => {
            rib_file::run(output, *peers, *prefixes as usize)
        }
        MeasureProgram::Choices { judge: true, .. } => choices::judge(),
        MeasureProgram::Choices { calibrate: Some(count), .. } => choices::calibrate_again(*count),
        MeasureProgram::Choices { parts, .. } => choices::record(parts),
    };
    outcome.map_err(failure)?;
    Ok(ExitCode::SUCCESS)
}
