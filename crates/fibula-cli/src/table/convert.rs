//! `fibula table convert`: a table in another format.

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use fibula_feed::mmdb::{self, MmdbError, MmdbOptions, MmdbSummary};
use fibula_feed::{LoadOptions, LoadedRoutes, Selection};

use super::args::{ConvertArgs, OutputForm};
use super::intervals;
use crate::failure::Failure;
use crate::load::{Columns, limits, load_columns, load_feeds, load_typed, tell};
use crate::messages::Messages;
use crate::options::Format;
use crate::output::Output;
use crate::route_rows;
use crate::text::{bytes, thousands};
use crate::values::wanted_columns;

pub(super) fn run(args: &ConvertArgs) -> Result<(), Failure> {
    let messages = Messages::new(args.quiet.quiet);
    if args.to() == OutputForm::Bgpdump {
        return bgpdump(args, messages);
    }
    if args.all_peers {
        return Err(Failure::WrongUse(
            "--all-peers needs --to bgpdump: other formats have one route for each prefix (see --best)"
                .to_owned(),
        ));
    }
    if args.to() == OutputForm::Mmdb {
        return mmdb(args, messages);
    }
    if let Some(option) = args.of_mmdb() {
        return Err(Failure::WrongUse(format!("{option} needs --to mmdb")));
    }
    #[cfg(not(feature = "parquet"))]
    if args.to() == OutputForm::IntervalsParquet {
        return Err(Failure::no_parquet());
    }
    let files = &args.files.paths()?;
    let output = Output::new(args.output.as_deref(), files)?;
    let (table, columns) = match args.to() {
        // Columns after the next hop; elsewhere the value takes its place.
        OutputForm::Csv | OutputForm::Json | OutputForm::JsonLine => {
            load_columns(files, &args.feed, false, messages)?
        }
        _ => {
            let table = load_feeds(files, &args.feed, messages)?;
            (table, Columns { values: Vec::new(), implied: false, in_place: false })
        }
    };
    output.write(|out| write(args.to(), &table, &columns, out))
}

fn write(
    form: OutputForm,
    table: &LoadedRoutes,
    columns: &Columns,
    mut out: &mut (dyn Write + Send),
) -> Result<(), Failure> {
    let mut rows = |format| route_rows::write_all(table, &mut out, format, columns).map(|_| ());
    match form {
        OutputForm::Text => rows(Format::Text)?,
        OutputForm::Csv => rows(Format::Csv)?,
        OutputForm::Json => rows(Format::Json)?,
        OutputForm::JsonLine => rows(Format::JsonLine)?,
        OutputForm::Intervals => intervals::write_csv(table, &mut out)?,
        OutputForm::IntervalsParquet => parquet(table, out)?,
        OutputForm::Bgpdump | OutputForm::Mmdb => unreachable!("they are written on ways of their own"),
    }
    Ok(())
}

#[cfg(feature = "parquet")]
fn parquet(table: &LoadedRoutes, out: &mut (dyn Write + Send)) -> Result<(), Failure> {
    Ok(super::parquet::write(table, out)?)
}

#[cfg(not(feature = "parquet"))]
fn parquet(_: &LoadedRoutes, _: &mut (dyn Write + Send)) -> Result<(), Failure> {
    unreachable!("refused before the table is loaded")
}

/// Writes a MaxMind database, whose records have typed columns.
fn mmdb(args: &ConvertArgs, messages: Messages) -> Result<(), Failure> {
    let files = &args.files.paths()?;
    let output = Output::new(args.output.as_deref(), files)?;
    let wanted = wanted_columns(files, &args.feed)?;
    let mut table = load_typed(files, &args.feed, &wanted.values(), &wanted.types(), messages)?;
    let columns = wanted.fill(&mut table, limits(args.feed.memory_limit));
    let columns = columns.map_err(|error| Failure::BadInput(error.to_string()))?;
    let options = MmdbOptions {
        database_type: args.database_type.clone(),
        names: args.field.clone(),
        has_aliases: args.aliases,
        build_epoch: build_epoch(),
    };
    let mut summary = None;
    output.write(|mut out| {
        summary = Some(mmdb::write(&table, &columns, &options, &mut out).map_err(|error| match error {
            MmdbError::Write(error) => error.into(),
            error @ (MmdbError::Name(_) | MmdbError::Column(_)) => Failure::WrongUse(error.to_string()),
            error => Failure::BadInput(error.to_string()),
        })?);
        Ok(())
    })?;
    if let Some(MmdbSummary { nodes, records, bytes: size, .. }) = summary {
        let (nodes, records) = (thousands(nodes), thousands(records));
        messages.note(format_args!("{nodes} nodes, {records} records, {}", bytes(size)));
    }
    Ok(())
}

/// Returns the time of a build that can be repeated (reproducible-builds.org), or now.
fn build_epoch() -> u64 {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let fixed = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.parse().ok());
    fixed.unwrap_or_else(now)
}

/// Writes event by event, without a table in memory.
fn bgpdump(args: &ConvertArgs, messages: Messages) -> Result<(), Failure> {
    if args.feed.best {
        return Err(Failure::WrongUse(
            "--best does not work with --to bgpdump, whose lines are those of each peer; use --peer or --all-peers"
                .to_owned(),
        ));
    }
    let mut options: LoadOptions = args.feed.options();
    if args.all_peers {
        options.selection = Selection::Best;
    }
    // These lines have all values.
    options.values.clear();
    let files = args.files.paths()?;
    let output = Output::new(args.output.as_deref(), &files)?;
    output.write(|mut out| {
        let mut each = |event| fibula_feed::text::write_bgpdump(&event, &mut out);
        files.iter().try_for_each(|path| tell(path, &options, &mut each, messages))
    })
}
