//! `fibula table convert`: a table in another format.

use std::io::Write;

use fibula_feed::{LoadOptions, LoadedRoutes, Selection};

use super::args::{ConvertArgs, OutputForm};
use super::intervals;
use crate::failure::Failure;
use crate::load::{Columns, load_columns, load_feeds, tell};
use crate::messages::Messages;
use crate::options::Format;
use crate::output::Output;
use crate::route_rows;

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
        OutputForm::Bgpdump => unreachable!("it is written without a table"),
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
