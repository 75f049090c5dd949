//! `fibula lookup` and `fibula enrich`: addresses in, routes out.

mod answers;
mod args;
mod around;
mod chunks;
mod columns;
mod count;
mod digits;
mod enrich;
mod finder;
mod in_memory;
mod input;
mod json;
#[cfg(feature = "parquet")]
mod parquet;
mod pipeline;
mod quotes;
mod rows;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use fibula::fib::registry::Engines;
use fibula::file::{StoredColumn, StoredRoutes, TableFile};
use fibula::net::Dual;
use fibula_feed::{LoadedRoutes, Value};

use crate::failure::{Failure, code};
use crate::load::{self, Columns};
use crate::messages::{self, Messages};
use crate::options::{Format, STDIN, SourceArgs};
use crate::output::Output;
use crate::text::{plural, thousands};
use answers::{Answers, Finders};
pub(crate) use args::{EnrichArgs, HowArgs, LookupArgs};
use chunks::Chunks;
use columns::InputFormat;
pub(crate) use count::{CountArgs, run as count};
use enrich::{EnrichPlan, Enricher};
use finder::Finder;
pub use in_memory::enrich_bytes;
use input::Input;
use pipeline::{LineCounts, Worker, answered};
use rows::{AnswerRows, Labels};

/// The input to look up, and the way to do it.
struct Request<'a> {
    source: &'a SourceArgs,
    how: &'a HowArgs,
    quiet: bool,
    from: From<'a>,
    /// The columns with addresses; if there are none, each line is one.
    columns: &'a [String],
    input_format: Option<InputFormat>,
    format: Format,
}

/// Where addresses come from.
enum From<'a> {
    Arguments(&'a [String]),
    File(&'a Path),
}

pub(crate) fn run(args: &LookupArgs) -> Result<ExitCode, Failure> {
    let from = match &args.file {
        Some(file) => From::File(file),
        None if args.addresses.is_empty() => From::File(Path::new(STDIN)),
        None => From::Arguments(&args.addresses),
    };
    let (columns, input_format) = (&args.column[..], args.input_format);
    let (source, how, quiet) = (&args.source, &args.how, args.quiet.quiet);
    look_up(&Request { source, how, quiet, from, columns, input_format, format: args.output.format() })
}

/// `fibula enrich`.
pub(crate) fn enrich(args: &EnrichArgs) -> Result<ExitCode, Failure> {
    let (columns, input_format, from) = (&args.column[..], args.input_format, From::File(&args.file));
    let (source, how, quiet) = (&args.source, &args.how, args.quiet.quiet);
    look_up(&Request { source, how, quiet, from, columns, input_format, format: Format::Csv })
}

fn look_up(request: &Request<'_>) -> Result<ExitCode, Failure> {
    let messages = Messages::new(request.quiet);
    let (source, how) = (request.source, request.how);
    how.isa.force()?;
    if let Some(name) = &how.engine {
        known(name)?;
    }
    let file = match request.from {
        From::File(path) => Some(path.to_owned()),
        From::Arguments(_) => None,
    };
    if source.table.iter().any(|path| load::is_stdin(path)) && file.as_deref().is_some_and(load::is_stdin) {
        return Err(Failure::WrongUse(
            "the table and the addresses cannot both come from standard input".to_owned(),
        ));
    }
    let output = Output::new(how.output.as_deref(), source.table.iter().chain(&file))?;
    if let Some(file) = compiled(request)? {
        let limits = load::limits(source.feed.memory_limit);
        let engine = how.engine.as_deref();
        let finders =
            Dual::new(Finder::compiled(&file.v4, limits, engine), Finder::compiled(&file.v6, limits, engine));
        let (columns, shown) = shown(&file, &source.feed.value);
        return answer(request, &finders, &columns, &Labels::Compiled(shown), output, messages, &|| {
            let routes = [
                file.v4.routes.as_ref().map_or(0, StoredRoutes::len),
                file.v6.routes.as_ref().map_or(0, StoredRoutes::len),
            ];
            let [v4, v6] = routes.map(thousands);
            let values = file.columns().first().map_or(0, StoredColumn::len);
            messages::plain(format_args!(
                "{}: compiled; {v4} IPv4 routes, {v6} IPv6 routes, {} next hops",
                source.table[0].display(),
                thousands(values),
            ));
        });
    }
    let for_people = request.format == Format::Text && request.columns.is_empty();
    let (table, columns) = load::load_columns(&source.table, &source.feed, for_people, messages)?;
    let finders = finders(request, &table);
    let labels = Labels::Loaded(&table.next_hops);
    answer(request, &finders, &columns, &labels, output, messages, &|| load::print_stats(&table))
}

/// Opens the table, if it is a compiled one that can be used as it is: alone, and with routes where these are needed.
fn compiled(request: &Request<'_>) -> Result<Option<TableFile>, Failure> {
    let [path] = &request.source.table[..] else { return Ok(None) };
    let feed = &request.source.feed;
    let plain = feed.family.is_none() && feed.filter.is_empty();
    if !plain || !load::is_compiled(path) {
        return Ok(None);
    }
    let file = TableFile::open_within(path, load::limits(feed.memory_limit))
        .map_err(|error| Failure::BadInput(error.to_string()))?;
    let lacks_routes = file.v4.fib.is_some() && file.v4.routes.is_none()
        || file.v6.fib.is_some() && file.v6.routes.is_none();
    // Another engine has to be built from the routes. Loading reports a file without routes, and a value that is no column.
    let has = |value: &Value| file.columns().iter().any(|column| value.is_column(column.name()));
    let is_ready = (request.how.engine.is_none() || !lacks_routes) && feed.value.iter().all(has);
    Ok(is_ready.then_some(file))
}

/// Returns the columns of a compiled table that are shown: that of the next hop, or the first one in its place, and then those that
/// were requested, or all.
fn shown<'a>(file: &'a TableFile, requested: &[Value]) -> (Columns, Vec<&'a StoredColumn>) {
    let all = file.columns();
    let is_next_hop =
        |column: &&StoredColumn| column.ids().is_some() || column.name() == Value::NextHop.column();
    let next_hop = all.iter().find(is_next_hop);
    let mut shown: Vec<&StoredColumn> = next_hop.or(all.first()).into_iter().collect();
    let mut columns = Columns { values: Vec::new(), implied: false, in_place: next_hop.is_none() };
    let mut show = |value: Value, column: &'a StoredColumn| {
        if !is_next_hop(&column) && !columns.values.contains(&value) {
            columns.values.push(value);
            shown.push(column);
        }
    };
    for value in requested {
        let exact = all.iter().find(|column| column.name() == value.column());
        if let Some(column) = exact.or_else(|| all.iter().find(|column| value.is_column(column.name()))) {
            show(value.clone(), column);
        }
    }
    if requested.is_empty() {
        for column in all {
            let value = column.name().parse().unwrap_or(Value::Column(column.name().into()));
            show(value, column);
        }
    }
    (columns, shown)
}

fn answer(
    request: &Request<'_>,
    finders: &Finders<'_>,
    columns: &Columns,
    labels: &Labels<'_>,
    output: Output,
    messages: Messages,
    print_stats: &dyn Fn(),
) -> Result<ExitCode, Failure> {
    let started = Instant::now();
    let mut tally = LineCounts::default();
    output.write(|out| match request.from {
        From::Arguments(addresses) => {
            let rows = AnswerRows::new(request.format, columns, labels);
            answer_arguments(request, addresses, finders, rows, out, messages, &mut tally)
        }
        From::File(path) if request.columns.is_empty() => {
            let rows = AnswerRows::new(request.format, columns, labels);
            answer_lines(request, path, finders, &rows, out, messages, &mut tally)
        }
        From::File(path) => {
            #[cfg(feature = "parquet")]
            if input::is_parquet(path) {
                let input = (path, request.columns);
                return parquet::enrich(
                    (request.how, request.source.feed.is_strict()),
                    input,
                    finders,
                    (columns, labels),
                    out,
                    messages,
                    &mut tally,
                );
            }
            enrich_lines(request, path, finders, (columns, labels), out, messages, &mut tally)
        }
    })?;
    if request.how.stats {
        let seconds = started.elapsed().as_secs_f64();
        print_stats();
        let finders = [finders.v4.stats(), finders.v6.stats()];
        stats(&tally, seconds, finders.into_iter().flatten());
    }
    // With other columns, a line without an address is no fault.
    let bad = if request.columns.is_empty() { tally.bad } else { 0 };
    Ok(match (bad, tally.matched) {
        (1.., _) => code::BAD_INPUT.into(),
        (_, 0) => code::NOTHING_FOUND.into(),
        _ => ExitCode::SUCCESS,
    })
}

fn answer_arguments(
    request: &Request<'_>,
    addresses: &[String],
    finders: &Finders<'_>,
    rows: AnswerRows,
    out: &mut dyn Write,
    messages: Messages,
    tally: &mut LineCounts,
) -> Result<(), Failure> {
    let mut text = Vec::new();
    rows.start(&mut text);
    let mut answers = Answers::new(finders, rows.clone(), request.how.v4_mapped, messages);
    let (answers, next) = answered(text, |out| {
        for address in addresses {
            answers.push(address.as_bytes(), out)?;
        }
        answers.end(out)
    })?;
    text = answers;
    tally.add(next, ("argument", 0), request.source.feed.is_strict(), messages)?;
    rows.end(tally.lines > 0, &mut text);
    tally.summary("argument", messages);
    Ok(out.write_all(&text)?)
}

fn answer_lines(
    request: &Request<'_>,
    path: &Path,
    finders: &Finders<'_>,
    rows: &AnswerRows,
    out: &mut (dyn Write + Send),
    messages: Messages,
    tally: &mut LineCounts,
) -> Result<(), Failure> {
    let mut text = Vec::new();
    rows.start(&mut text);
    // The header comes before the first answer.
    out.write_all(&text)?;
    out.flush()?;
    let (how, strict) = (request.how, request.source.feed.is_strict());
    let input = Input::open(path, how.output.is_some(), messages)?;
    let worker =
        || -> Box<dyn Worker + '_> { Box::new(Answers::new(finders, rows.clone(), how.v4_mapped, messages)) };
    let workers = (0..how.threads()).map(|_| worker()).collect();
    let mut chunks = Chunks::new(input.reader()?, answers::LINES);
    input.note_empty(&mut chunks, messages)?;
    input.run(chunks, workers, &mut |answers, next| {
        tally.add(next, ("line", 0), strict, messages)?;
        out.write_all(answers)?;
        Ok(out.flush()?)
    })?;
    text.clear();
    rows.end(tally.lines > 0, &mut text);
    out.write_all(&text)?;
    tally.summary("line", messages);
    Ok(())
}

fn enrich_lines(
    request: &Request<'_>,
    path: &Path,
    finders: &Finders<'_>,
    (columns, labels): (&Columns, &Labels<'_>),
    out: &mut (dyn Write + Send),
    messages: Messages,
    tally: &mut LineCounts,
) -> Result<(), Failure> {
    let (how, strict) = (request.how, request.source.feed.is_strict());
    let input = Input::open(path, how.output.is_some(), messages)?;
    let (format, mut chunks) = input.rows(request.input_format)?;
    let wanted: Vec<&str> = request.columns.iter().map(String::as_str).collect();
    let first_line = input.first_line(&mut chunks, format, &wanted, messages)?;
    let plan = EnrichPlan::new(format, request.columns, first_line, columns, labels)?;
    let mut header = 0;
    if let Some(line) = &plan.header {
        out.write_all(line)?;
        chunks.skip_line();
        header = 1;
    }
    let worker =
        || -> Box<dyn Worker + '_> { Box::new(Enricher::new(finders, &plan, how.v4_mapped, messages)) };
    let workers = (0..how.threads()).map(|_| worker()).collect();
    input.run(chunks, workers, &mut |answers, next| {
        tally.add(next, ("row", header), strict, messages)?;
        out.write_all(answers)?;
        Ok(out.flush()?)
    })?;
    tally.summary("row", messages);
    Ok(())
}

fn finders<'a>(request: &Request<'_>, table: &'a LoadedRoutes) -> Finders<'a> {
    let engine = request.how.engine.as_deref();
    let limits = load::limits(request.source.feed.memory_limit);
    Dual::new(
        Finder::new(finder::Table::Rib(&table.ribs.v4), limits, engine),
        Finder::new(finder::Table::Rib(&table.ribs.v6), limits, engine),
    )
}

/// Refuses a name that is in neither family's registry, before the table is read.
fn known(name: &str) -> Result<(), Failure> {
    fibula_workload::engines::refuse_unknown(Engines::OWN, name).map_err(Failure::WrongUse)
}

fn stats(tally: &LineCounts, seconds: f64, finders: impl Iterator<Item = String>) {
    let LineCounts { lines, bad, matched, .. } = tally;
    for line in finders {
        messages::plain(line);
    }
    messages::plain(format_args!(
        "{} {}, {} with a route, {} not an address; {seconds:.3} s, {:.2} million a second",
        thousands(*lines),
        plural(*lines as u64, "address", "addresses"),
        thousands(*matched),
        thousands(*bad),
        *lines as f64 / seconds / 1e6,
    ));
}
