//! `fibula-lab paper`: the tables and figures of a paper, measured on this machine.

mod router;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use clap::builder::PossibleValuesParser;
use fibula::rib::{DualRib, Rib};
use fibula_cli::plumbing::{Addresses, Failure, Messages, QuietArgs, code, load};

#[cfg(feature = "gpu")]
use super::coprocessor::Gpu;
use super::recorded::today;
use crate::bench::device::Coprocessor;
use crate::paper::{self, Paper, PaperRecord, RecordedAddresses, Routers, Settings, Step, Supply};

/// The variable that names a folder of real tables.
const DATA: &str = "FIBULA_DATA";

/// Measure the tables and figures of a paper on this machine
///
/// Writes index.html, a report that needs no other file: a summary of which conclusions of the paper hold here, then every table
/// and figure, published values beside measured ones; and record.json, with all values and their runs. What this machine
/// lacks, such as cores, keeps its place and is marked as missing.
///
/// The record is written after each part. An interrupted run continues with --resume. Where a folder of real tables is
/// named, those take part that the paper's definition names, as NAME.txt.xz; generated tables of the same size stand in for the
/// others. Recorded addresses are in its folder addresses, as NAME.txt.xz; without them their rows are marked as missing.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:
  0  the report was written
  1  it was written, and a part of it could not be measured
  2  wrong use: an unknown paper
  3  a file cannot be read or written, or the record is of another run

Environment:
  FIBULA_DATA  the folder of real tables, as in --tables

Examples:
  fibula-lab paper
  fibula-lab paper multibit --quick -o /tmp/multibit
  fibula-lab paper multibit -o reports/multibit --resume
  fibula-lab paper bloomfwd -o reports/bloomfwd --only figure-9 --only figure-10")]
pub(crate) struct PaperArgs {
    /// The paper [default: list them]
    #[arg(value_name = "NAME", requires = "output", value_parser = PossibleValuesParser::new(paper::names()))]
    name: Option<String>,

    /// Write the report and the record into this folder
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Measure little, with small tables, to see that everything works: the figures mean nothing
    #[arg(long)]
    quick: bool,

    /// Continue the run whose record is in the folder
    #[arg(long)]
    resume: bool,

    /// Measure this exhibit alone, such as figure-9, and leave the others as the record has them; may be repeated
    #[arg(long, value_name = "EXHIBIT")]
    only: Vec<String>,

    /// Take real tables from this folder
    #[arg(long, value_name = "DIR")]
    tables: Option<PathBuf>,

    #[command(flatten)]
    quiet: QuietArgs,
}

pub(crate) fn run(args: &PaperArgs) -> Result<ExitCode, Failure> {
    let messages = Messages::new(args.quiet.quiet);
    let paper = args.name.as_deref().and_then(paper::find);
    let (Some(paper), Some(folder)) = (paper, &args.output) else {
        return list();
    };
    let chosen = choose(paper, &args.only)?;
    let settings = if args.quick { Settings::quick() } else { Settings::full() };
    let record = begin(args, paper, folder)?;
    let tables = FolderTables {
        folder: args.tables.clone().or_else(data),
        messages,
        #[cfg(feature = "gpu")]
        device: fibula_gpu::device::find("any").ok().map(|device| Gpu(device.into())),
    };
    if !args.quick && tables.folder.is_none() {
        messages
            .note(format_args!("generated tables stand in for real ones: --tables or {DATA} names a folder"));
    }

    let bar = messages.steps(0);
    let mut show = |Step { done, total, exhibit, part }: Step<'_>| {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
        bar.set_message(format!("{exhibit}: {part}"));
    };
    let mut save = |record: &PaperRecord| record.write(folder);
    let record = paper::run(&chosen, &settings, &tables, record, &mut save, &mut show).map_err(bad)?;
    bar.finish_and_clear();
    // A record that was complete has not been saved again.
    record.write(folder).map_err(bad)?;

    let page = folder.join("index.html");
    let command = command(args, paper);
    fs::write(&page, paper::report(paper, &record, &command))
        .map_err(|error| Failure::BadInput(format!("{}: {error}", page.display())))?;
    let mut complete = true;
    for part in record.parts.iter().filter(|part| part.error.is_some()) {
        complete = false;
        let reason = part.error.as_deref().unwrap_or_default();
        messages.warning(format_args!("{}, {}: {reason}", part.exhibit, part.part));
    }
    messages.note(format_args!("{} written", page.display()));
    Ok(if complete { ExitCode::SUCCESS } else { code::NOTHING_FOUND.into() })
}

/// Returns the paper with these of its exhibits; without names with all.
fn choose(paper: &Paper, only: &[String]) -> Result<Paper, Failure> {
    let mut chosen = paper.clone();
    if only.is_empty() {
        return Ok(chosen);
    }
    let names = || paper.exhibits.iter().map(|exhibit| exhibit.name.as_str());
    if let Some(unknown) = only.iter().find(|wanted| !names().any(|name| name == **wanted)) {
        let names: Vec<&str> = names().collect();
        return Err(Failure::WrongUse(format!(
            "{} has no exhibit '{unknown}'; it has: {}",
            paper.name,
            names.join(", ")
        )));
    }
    chosen.exhibits.retain(|exhibit| only.contains(&exhibit.name));
    Ok(chosen)
}

fn bad(error: paper::PaperError) -> Failure {
    Failure::BadInput(error.to_string())
}

/// Prints the names and the subjects of the papers.
fn list() -> Result<ExitCode, Failure> {
    let mut out = anstream::stdout().lock();
    for paper in paper::papers() {
        writeln!(out, "{:10}  {}", paper.name, paper.title)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Returns an empty record, or the one to continue.
fn begin(args: &PaperArgs, paper: &Paper, folder: &Path) -> Result<PaperRecord, Failure> {
    let fresh = PaperRecord::new(paper, &today(), args.quick);
    let before = PaperRecord::read(folder);
    if !args.resume {
        return match before {
            Ok(Some(_)) => Err(Failure::WrongUse(format!(
                "{} has a record: continue it with --resume, or remove it",
                folder.display()
            ))),
            _ => Ok(fresh),
        };
    }
    match before.map_err(bad)? {
        None => Ok(fresh),
        Some(before) => {
            fresh.continues(&before).map_err(bad)?;
            Ok(before)
        }
    }
}

fn data() -> Option<PathBuf> {
    std::env::var_os(DATA).filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

/// Returns the command that measures it again, without the paths of this machine.
fn command(args: &PaperArgs, paper: &Paper) -> String {
    let quick = if args.quick { " --quick" } else { "" };
    format!("fibula-lab paper {}{quick} -o DIR", paper.name)
}

/// The real tables of a folder.
struct FolderTables {
    folder: Option<PathBuf>,
    messages: Messages,
    #[cfg(feature = "gpu")]
    device: Option<Gpu>,
}

impl FolderTables {
    fn load(&self, name: &str) -> Result<Option<DualRib>, String> {
        let Some(path) = self.folder.as_deref().map(|folder| path(folder, name)).filter(|path| path.exists())
        else {
            return Ok(None);
        };
        let table = load(&path, self.messages).map_err(|failure| failure.report().0.unwrap_or_default())?;
        Ok(Some(table.ribs))
    }
}

fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.txt.xz"))
}

impl Supply for FolderTables {
    fn ipv4(&self, name: &str) -> Result<Option<Rib<u32>>, String> {
        Ok(self.load(name)?.map(|ribs| ribs.v4))
    }

    fn ipv6(&self, name: &str) -> Result<Option<Rib<u128>>, String> {
        Ok(self.load(name)?.map(|ribs| ribs.v6))
    }

    fn coprocessor(&self) -> Option<&dyn Coprocessor<u32>> {
        #[cfg(feature = "gpu")]
        return self.device.as_ref().map(|device| device as &dyn Coprocessor<u32>);
        #[cfg(not(feature = "gpu"))]
        None
    }

    fn addresses(&self, name: &str) -> Result<Option<RecordedAddresses>, String> {
        let folder = self.folder.as_ref().map(|folder| folder.join("addresses"));
        let Some(path) = folder.map(|folder| path(&folder, name)).filter(|path| path.exists()) else {
            return Ok(None);
        };
        let Addresses { v4, v6 } = Addresses::read(&path, self.messages)
            .map_err(|failure| failure.report().0.unwrap_or_default())?;
        Ok(Some(RecordedAddresses { v4, v6 }))
    }

    fn routers(&self) -> Option<&dyn Routers> {
        Some(&router::InMemory)
    }
}
