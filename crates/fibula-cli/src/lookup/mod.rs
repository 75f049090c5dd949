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
mod follow;
mod in_memory;
mod input;
mod json;
#[cfg(feature = "parquet")]
mod parquet;
mod pipeline;
mod quotes;
mod row_binary;
mod row_type;
mod rows;

use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
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
use args::{LookupInput, LookupOutput};
use chunks::{Chunks, Lines};
use columns::InputFormat;
pub(crate) use count::{CountArgs, run as count};
use enrich::{EnrichPlan, Enricher};
use finder::Finder;
use follow::Followed;
pub use in_memory::enrich_bytes;
use input::Input;
use pipeline::{IsOver, LineCounts, Worker, answered};
use row_binary::RowAnswers;
use row_type::RowType;
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
    /// Rows of ClickHouse's RowBinary instead, each with an address of this type.
    row_type: Option<RowType>,
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
    let (columns, source, how, quiet) = (&args.column[..], &args.source, &args.how, args.quiet.quiet);
    let (input_format, row_type, format) = formats(args)?;
    look_up(&Request { source, how, quiet, from, columns, input_format, row_type, format })
}

/// Returns the formats of the input and of the output, which are both RowBinary or neither.
fn formats(args: &LookupArgs) -> Result<(Option<InputFormat>, Option<RowType>, Format), Failure> {
    let fault = match (args.input_format, args.format) {
        (Some(LookupInput::Binary), LookupOutput::Binary) => {
            if args.json {
                "--json and --format row-binary exclude each other"
            } else if !args.addresses.is_empty() {
                "--input-format row-binary is for a file or standard input, not for addresses as arguments"
            } else if !args.column.is_empty() {
                "a row of row-binary has one address and no other column: leave --column out"
            } else {
                return Ok((None, Some(args.row_type.unwrap_or_default()), Format::Text));
            }
        }
        (Some(LookupInput::Binary), _) | (_, LookupOutput::Binary) => {
            "row-binary is the format of both sides: --input-format row-binary --format row-binary"
        }
        _ if args.row_type.is_some() => "--row-type is for --input-format row-binary",
        (Some(LookupInput::Rows(_)), _) if args.column.is_empty() => {
            "--input-format is for lines with columns: --column names the one with the addresses"
        }
        (Some(LookupInput::Rows(input)), _) => return Ok((Some(input), None, args.rows()?)),
        (None, _) => return Ok((None, None, args.rows()?)),
    };
    Err(Failure::WrongUse(fault.to_owned()))
}

/// `fibula enrich`.
pub(crate) fn enrich(args: &EnrichArgs) -> Result<ExitCode, Failure> {
    let (columns, input_format, from) = (&args.column[..], args.input_format, From::File(&args.file));
    let (source, how, quiet) = (&args.source, &args.how, args.quiet.quiet);
    let (row_type, format) = (None, Format::Csv);
    look_up(&Request { source, how, quiet, from, columns, input_format, row_type, format })
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
    if how.follow {
        let followed = Followed::open(request, messages)?;
        return answer(request, &mut |round| followed.rounds(request, round), output, messages);
    }
    if let Some(file) = compiled(request)? {
        let mut table = |round: Round<'_>| by_file(request, &file, &|| false, round).map(|_| ());
        return answer(request, &mut table, output, messages);
    }
    let for_people = request.format == Format::Text && request.columns.is_empty();
    let (table, columns) = load::load_columns(&source.table, &source.feed, for_people, messages)?;
    let finders = finders(request, &table);
    let labels = Labels::Loaded(&table.next_hops);
    let print_stats = || load::print_stats(&table);
    let tables = Serving {
        finders: &finders,
        columns: &columns,
        labels: &labels,
        is_over: &|| false,
        print_stats: &print_stats,
    };
    answer(request, &mut |round| round(&tables).map(|_| ()), output, messages)
}

/// The table that answers.
struct Serving<'a> {
    finders: &'a Finders<'a>,
    columns: &'a Columns,
    labels: &'a Labels<'a>,
    /// Whether another table is to answer the lines that have arrived.
    is_over: IsOver<'a>,
    print_stats: &'a dyn Fn(),
}

/// Answers what there is by a table; returns whether another one is to go on.
type Round<'a> = &'a mut dyn FnMut(&Serving<'_>) -> Result<bool, Failure>;

/// Answers by a compiled table.
fn by_file(
    request: &Request<'_>,
    file: &TableFile,
    is_over: IsOver<'_>,
    round: Round<'_>,
) -> Result<bool, Failure> {
    let (source, engine) = (request.source, request.how.engine.as_deref());
    let limits = load::limits(source.feed.memory_limit);
    let finders =
        Dual::new(Finder::compiled(&file.v4, limits, engine), Finder::compiled(&file.v6, limits, engine));
    let (columns, shown) = shown(file, &source.feed.value);
    let print_stats = || {
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
    };
    let labels = Labels::Compiled(shown);
    round(&Serving {
        finders: &finders,
        columns: &columns,
        labels: &labels,
        is_over,
        print_stats: &print_stats,
    })
}

/// Most addresses for which a compiled table is used where it lies: far fewer than make an engine worth building.
const FEW: usize = 1_024;

/// Opens the table, if it is a compiled one that can be used as it is: alone, and with routes where these are needed.
fn compiled(request: &Request<'_>) -> Result<Option<TableFile>, Failure> {
    let [path] = &request.source.table[..] else { return Ok(None) };
    let feed = &request.source.feed;
    let plain = feed.family.is_none() && feed.filter.is_empty();
    if !plain || !load::is_compiled(path) {
        return Ok(None);
    }
    // A few addresses need a few pages of the file. A copy, whose words are all checked, would take longer than the rest of the command.
    // An engine is built of a copy alone, because it relies on the order of the routes, which checksums do not show.
    let is_few = matches!(request.from, From::Arguments(addresses) if addresses.len() <= FEW);
    let few = is_few && request.how.engine.is_none() && feed.memory_limit.is_none();
    let file = match few {
        true => TableFile::map_summed(path),
        false => TableFile::open_within(path, load::limits(feed.memory_limit)),
    }
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

/// Answers the request; `tables` gives the table that answers, or one after the other.
fn answer(
    request: &Request<'_>,
    tables: &mut dyn FnMut(Round<'_>) -> Result<(), Failure>,
    output: Output,
    messages: Messages,
) -> Result<ExitCode, Failure> {
    let started = Instant::now();
    let mut tally = LineCounts::default();
    let print = |serving: &Serving<'_>, tally: &LineCounts| {
        if request.how.stats {
            (serving.print_stats)();
            let finders = [serving.finders.v4.stats(), serving.finders.v6.stats()];
            stats(tally, started.elapsed().as_secs_f64(), finders.into_iter().flatten());
        }
    };
    let mut lines = None;
    output.write(|out| {
        tables(&mut |serving| {
            let is_over = match request.from {
                From::Arguments(addresses) => {
                    answer_arguments(request, addresses, serving, out, messages, &mut tally).map(|()| false)
                }
                #[cfg(feature = "parquet")]
                From::File(path) if !request.columns.is_empty() && input::is_parquet(path) => {
                    parquet::enrich(
                        (request.how, request.source.feed.is_strict()),
                        (path, request.columns),
                        serving.finders,
                        (serving.columns, serving.labels),
                        out,
                        messages,
                        &mut tally,
                    )
                    .map(|()| false)
                }
                From::File(path) => {
                    if lines.is_none() {
                        lines = Some(LineInput::open(request, path, serving, out, messages)?);
                    }
                    let lines = lines.as_mut().expect("opened above");
                    lines.answer(request, serving, out, messages, &mut tally)
                }
            }?;
            if !is_over {
                print(serving, &tally);
            }
            Ok(is_over)
        })
    })?;
    // Who asks in rows reads the answers, null ones too.
    if request.row_type.is_some() {
        return Ok(ExitCode::SUCCESS);
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
    serving: &Serving<'_>,
    out: &mut dyn Write,
    messages: Messages,
    tally: &mut LineCounts,
) -> Result<(), Failure> {
    let rows = AnswerRows::new(request.format, serving.columns, serving.labels);
    let mut text = Vec::new();
    rows.start(&mut text);
    let mut answers = Answers::new(serving.finders, rows.clone(), request.how.v4_mapped, messages);
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

/// Lines that were begun to be answered, by one table or by several.
struct LineInput {
    input: Input,
    chunks: Chunks<Box<dyn Read + Send>>,
    /// The format of lines with other columns, and their first line.
    columns: Option<(InputFormat, Vec<u8>)>,
    /// Lines before those that are answered.
    header: usize,
}

impl LineInput {
    /// Writes what comes before the first answer.
    fn open(
        request: &Request<'_>,
        path: &Path,
        serving: &Serving<'_>,
        out: &mut dyn Write,
        messages: Messages,
    ) -> Result<Self, Failure> {
        if let Some(row_type) = request.row_type {
            let input = Input::open(path, request.how.output.is_some(), messages)?;
            let chunks = Chunks::new(input.reader()?, Lines::Binary(row_type));
            return Ok(Self { input, chunks, columns: None, header: 0 });
        }
        if request.columns.is_empty() {
            let input = Input::open(path, request.how.output.is_some(), messages)?;
            let chunks = Chunks::new(input.reader()?, answers::LINES);
            return Ok(Self { input, chunks, columns: None, header: 0 });
        }
        let input = Input::open(path, request.how.output.is_some(), messages)?;
        let (format, mut chunks) = input.rows(request.input_format)?;
        let wanted: Vec<&str> = request.columns.iter().map(String::as_str).collect();
        let first_line = input.first_line(&mut chunks, format, &wanted, messages)?.to_vec();
        let plan = EnrichPlan::new(format, request.columns, &first_line, serving.columns, serving.labels)?;
        let mut header = 0;
        if let Some(line) = &plan.header {
            out.write_all(line)?;
            chunks.skip_line();
            // The first row may come much later.
            if chunks.is_to_be_read().map_err(|error| input.failed(&error))? {
                out.flush()?;
            }
            header = 1;
        }
        drop(plan);
        Ok(Self { input, chunks, columns: Some((format, first_line)), header })
    }

    /// Answers lines by a table; returns whether another one is to go on.
    fn answer(
        &mut self,
        request: &Request<'_>,
        serving: &Serving<'_>,
        out: &mut (dyn Write + Send),
        messages: Messages,
        tally: &mut LineCounts,
    ) -> Result<bool, Failure> {
        let Self { input, chunks, columns, header } = self;
        let (how, strict) = (request.how, request.source.feed.is_strict());
        let line = if columns.is_some() || request.row_type.is_some() { "row" } else { "line" };
        let threads = 0..how.threads();
        let plan;
        let mut rows = None;
        let workers: Vec<Box<dyn Worker + '_>> = match columns {
            None if request.row_type.is_some() => {
                let row_type = request.row_type.unwrap_or_default();
                let requested = request.source.feed.value.len();
                let ends = Arc::new(row_binary::Ends::new(serving.labels, requested));
                let worker = || {
                    let ends = Arc::clone(&ends);
                    RowAnswers::new(serving.finders, row_type, ends, requested, how.v4_mapped, messages)
                };
                threads.map(|_| -> Box<dyn Worker + '_> { Box::new(worker()) }).collect()
            }
            None => {
                let made = AnswerRows::new(request.format, serving.columns, serving.labels);
                if !chunks.is_under_way() {
                    let mut text = Vec::new();
                    made.start(&mut text);
                    // It comes before the first answer, which may come much later.
                    out.write_all(&text)?;
                    out.flush()?;
                    input.note_empty(chunks, messages)?;
                }
                let worker = || Answers::new(serving.finders, made.clone(), how.v4_mapped, messages);
                let workers = threads.map(|_| -> Box<dyn Worker + '_> { Box::new(worker()) }).collect();
                rows = Some(made);
                workers
            }
            Some((format, first_line)) => {
                plan =
                    EnrichPlan::new(*format, request.columns, first_line, serving.columns, serving.labels)?;
                let worker = || Enricher::new(serving.finders, &plan, how.v4_mapped, messages);
                threads.map(|_| -> Box<dyn Worker + '_> { Box::new(worker()) }).collect()
            }
        };
        let is_over = input.run(chunks, workers, serving.is_over, &mut |answers, next| {
            tally.add(next, (line, *header), strict, messages)?;
            out.write_all(answers)?;
            Ok(out.flush()?)
        })?;
        if is_over {
            return Ok(true);
        }
        if let Some(rows) = rows {
            let mut text = Vec::new();
            rows.end(tally.lines > 0, &mut text);
            out.write_all(&text)?;
        }
        tally.summary(line, messages);
        Ok(false)
    }
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
