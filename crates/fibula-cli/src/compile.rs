//! `fibula compile`: a table as a file that is ready when it is opened.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use fibula::auto::{self, Workload};
use fibula::fib::registry::Engines;
use fibula::fib::registry::{self, Engine};
use fibula::fib::{self, Fib, WithLength};
use fibula::file::{Contents, Half, StoredColumn};
use fibula::memory::Limits;
use fibula::net::{Key, Routes};
use fibula::rib::Rib;
use fibula_workload::engines::refuse_unknown;

use crate::failure::Failure;
use crate::load;
use crate::messages::Messages;
use crate::options::{FeedArgs, FilesArgs, QuietArgs};
use crate::output::Output;
use crate::suggested;
use crate::text::{bytes, plural, thousands};
use crate::values::wanted_columns;

/// Compile a table into a file that lookups can use as soon as it is opened
///
/// The file has an engine for each family, the routes, and columns of values: the next hops, or the values that --value names. Every
/// command that takes a table takes such a file. Programs open it with fibula::file: a verified copy in a few milliseconds, or the
/// file where it lies, shared by all processes that use it.
///
/// A value may have a type after its name, NAME:TYPE: u32, u64, i64, f64, bool (true or false), text or bytes. A value that does not fit
/// its type is an error, which names its row. Without a type, a column is u32 if each of its values is one, and else text. Rows of equal
/// values share an id. Of a compiled table, all columns are taken unless some are named.
///
/// An existing file is replaced by renaming, when all of the new one has been written: programs that use the old one keep it,
/// and followers of the file notice the new one.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:
  0  the file was written
  2  wrong use, or the output is one of the inputs
  3  the table cannot be read, no engine can hold it, or the file cannot be written

Examples:
  fibula compile rib.gz --output table.fibula
  fibula compile rib.gz -o table.fibula --mapped --no-routes
  fibula compile rib.gz -o origins.fibula --value origin-as:u32 --value as-path
  fibula compile sites.csv -o sites.fibula --value country:text,latitude:f64 --with-length
  fibula lookup --table table.fibula 192.0.2.1")]
pub(crate) struct CompileArgs {
    #[command(flatten)]
    files: FilesArgs,

    /// Write this file; '-' is standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// Use this engine for the families it supports (see 'fibula engines') [default: the fastest for this table of those
    /// that files can hold]
    #[arg(short = 'a', long, value_name = "NAME", value_parser = suggested::engine(), hide_possible_values = true)]
    engine: Option<String>,

    /// Use only engines that can be used where the file lies, without copying it
    #[arg(long)]
    mapped: bool,

    /// Put the routes into the file, for other commands and other engines [default]
    #[arg(long, conflicts_with = "no_routes")]
    routes: bool,

    /// Leave the routes out: the file is then for lookups alone, and these do not know the matched prefix
    #[arg(long)]
    no_routes: bool,

    /// Put the length of the matched prefix into the file: programs that look up get it with the value, and without the routes. The
    /// file grows by 8 bytes for each pair of a value and a length, and by what the engine needs to tell these apart
    #[arg(long)]
    with_length: bool,

    #[command(flatten)]
    feed: FeedArgs,

    #[command(flatten)]
    quiet: QuietArgs,
}

pub(crate) fn run(args: &CompileArgs) -> Result<ExitCode, Failure> {
    let messages = Messages::new(args.quiet.quiet);
    if let Some(name) = &args.engine {
        refuse(name, args.mapped)?;
    }
    let files = &args.files.paths()?;
    let output = Output::new(Some(&args.output), files)?;
    let wanted = wanted_columns(files, &args.feed)?;
    let mut table = load::load_typed(files, &args.feed, &wanted.values(), &wanted.types(), messages)?;
    let limits = load::limits(args.feed.memory_limit);
    let columns = wanted.fill(&mut table, limits).map_err(|error| Failure::BadInput(error.to_string()))?;
    let (v4, v6) = (structure(args, &table.ribs.v4, limits)?, structure(args, &table.ribs.v6, limits)?);
    let contents = Contents {
        v4: half(args, v4.as_ref(), &table.ribs.v4),
        v6: half(args, v6.as_ref(), &table.ribs.v6),
        columns: columns.iter().collect(),
        ..Contents::default()
    };
    let mut written = 0;
    output.write(|out| {
        contents.write(Counting(out, &mut written)).map_err(|error| match error.io() {
            Some(system) => std::io::Error::new(system.kind(), system.to_string()).into(),
            None => Failure::BadInput(error.to_string()),
        })
    })?;
    let families = [told(v4.as_ref(), &table.ribs.v4), told(v6.as_ref(), &table.ribs.v6)];
    let families: Vec<String> = families.into_iter().flatten().collect();
    let rows = columns.first().map_or(0, StoredColumn::len);
    let column = |column: &StoredColumn| format!("{} ({})", column.name(), column.kind());
    messages.note(format_args!(
        "{}: {}; {} {} of {}; {}{}",
        args.output.display(),
        if families.is_empty() { "an empty table".to_owned() } else { families.join(", ") },
        thousands(rows),
        plural(rows as u64, "row", "rows"),
        columns.iter().map(column).collect::<Vec<_>>().join(", "),
        bytes(written),
        if args.no_routes { ", without the routes" } else { "" },
    ));
    Ok(ExitCode::SUCCESS)
}

/// An engine and its name.
type Named<K> = (&'static str, Box<dyn Fib<K>>);

fn half<'a, K: Key>(args: &CompileArgs, fib: Option<&'a Named<K>>, rib: &'a Rib<K>) -> Half<'a, K> {
    let routes = (fib.is_some() && !args.no_routes).then_some(rib as &dyn Routes<K>);
    Half { fib: fib.map(|(_, fib)| &**fib), routes }
}

fn told<K: Key>(fib: Option<&Named<K>>, rib: &Rib<K>) -> Option<String> {
    let (name, fib) = fib?;
    let size = bytes(fib.memory().lookup_bytes);
    Some(format!("{} {} routes in {name} ({size})", thousands(rib.len()), K::FAMILY))
}

/// Refuses a name that no engine has, and one that files cannot hold, before the table is read.
fn refuse(name: &str, mapped: bool) -> Result<(), Failure> {
    refuse_unknown(Engines::OWN, name).map_err(Failure::WrongUse)?;
    let mut names: Vec<&str> = fitting::<u32>(mapped).map(|engine| engine.name).collect();
    for engine in fitting::<u128>(mapped) {
        if !names.contains(&engine.name) {
            names.push(engine.name);
        }
    }
    if names.contains(&name) {
        return Ok(());
    }
    let how = if mapped { "that can be used where they lie " } else { "" };
    Err(Failure::WrongUse(format!("files {how}cannot hold '{name}'; choose one of {}", names.join(", "))))
}

/// Returns the engines that files can hold.
fn fitting<K: Key>(mapped: bool) -> impl Iterator<Item = Engine<K>> {
    let fits = move |engine: &Engine<K>| {
        if mapped { engine.is_mapped() } else { engine.is_saved() }
    };
    fib::engines::<K>().into_iter().filter(fits)
}

/// Builds the engine of a family, if it has routes: the one that was named, or the fastest that files can hold.
fn structure<K: Key>(args: &CompileArgs, rib: &Rib<K>, limits: Limits) -> Result<Option<Named<K>>, Failure> {
    if rib.is_empty() {
        return Ok(None);
    }
    let failed = |error: fib::BuildError| Failure::BadInput(error.to_string());
    let build = |engine: &Engine<K>| -> Result<Box<dyn Fib<K>>, fib::BuildError> {
        if args.with_length {
            return Ok(Box::new(WithLength::build(engine, rib, limits)?));
        }
        engine.build(rib, limits)
    };
    let named = args.engine.as_ref().and_then(|name| registry::find::<K>(name).ok());
    if let Some(engine) = named {
        return Ok(Some((engine.name, build(&engine).map_err(failed)?)));
    }
    // For the recorded machine: the same routes make the same file wherever it is made, and others may read it.
    let wanted = Workload::default().with_table(rib);
    let chosen = auto::choose::<K>(&wanted, None).into_iter().chain(auto::rank::<K>(&wanted));
    let chosen = chosen.map(|choice| choice.engine).chain(fitting(args.mapped));
    let mut refused = None;
    for engine in chosen.filter(|one| one.is_saved() && (one.is_mapped() || !args.mapped)) {
        match build(&engine) {
            Ok(fib) => return Ok(Some((engine.name, fib))),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    Err(refused.map_or(Failure::BadInput("no engine can hold this table".to_owned()), failed))
}

/// Counts the bytes that are written.
struct Counting<'a, W>(W, &'a mut usize);

impl<W: Write> Write for Counting<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.0.write(bytes)?;
        *self.1 += count;
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}
