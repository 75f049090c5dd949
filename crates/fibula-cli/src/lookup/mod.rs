//! `fibula lookup`: addresses in, routes out.

mod answers;
mod args;
mod digits;
mod finder;
mod lines;
mod rows;

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use fibula::file::{StoredRoutes, TableFile};
use fibula::net::Dual;
use fibula_feed::Table;

use crate::failure::{Failure, code};
use crate::load;
use crate::messages::{self, Messages};
use crate::options::STDIN;
use crate::output;
use crate::text::{plural, thousands};
use answers::{Answers, Tally};
pub(crate) use args::LookupArgs;
use finder::Finder;
use lines::{Line, LineReader};
use rows::Rows;

pub(crate) fn run(args: &LookupArgs) -> Result<ExitCode, Failure> {
    let messages = Messages::new(args.quiet.quiet);
    args.isa.force()?;
    if let Some(name) = &args.algorithm {
        known(name)?;
    }
    if args.source.table.iter().any(|path| load::is_stdin(path)) && args.addresses.is_empty() {
        return Err(Failure::WrongUse(
            "the table and the addresses cannot both come from standard input".to_owned(),
        ));
    }
    let stdin = PathBuf::from(STDIN);
    output::refuse_inputs(args.source.table.iter().chain(args.addresses.is_empty().then_some(&stdin)))?;
    if let Some(file) = compiled(args)? {
        let limits = load::limits(args.source.feed.memory_limit);
        let algorithm = args.algorithm.as_deref();
        let finders = Dual::new(
            Finder::compiled(&file.v4, limits, algorithm),
            Finder::compiled(&file.v6, limits, algorithm),
        );
        let labels = file.values().zip(1..).take_while(|((id, _), number)| id.id() == *number);
        let labels = labels.map(|((_, label), _)| String::from_utf8_lossy(label).into_owned());
        return answer(args, finders, Rows::new(args.output.format(), labels), messages, || {
            let routes = [
                file.v4.routes.as_ref().map_or(0, StoredRoutes::len),
                file.v6.routes.as_ref().map_or(0, StoredRoutes::len),
            ];
            let [v4, v6] = routes.map(thousands);
            messages::plain(format_args!(
                "{}: compiled; {v4} IPv4 routes, {v6} IPv6 routes, {} next hops",
                args.source.table[0].display(),
                thousands(file.values().len()),
            ));
        });
    }
    let table = load::load_feeds(&args.source.table, &args.source.feed, messages)?;
    let finders = finders(args, &table);
    let labels = table.next_hops.iter().map(|(_, label)| label.to_string());
    let rows = Rows::new(args.output.format(), labels);
    answer(args, finders, rows, messages, || load::print_stats(&table))
}

/// Opens the table, if it is a compiled one that can be used as it is: alone, and with routes where these are needed.
fn compiled(args: &LookupArgs) -> Result<Option<TableFile>, Failure> {
    let [path] = &args.source.table[..] else { return Ok(None) };
    if args.source.feed.family.is_some() || !load::is_compiled(path) {
        return Ok(None);
    }
    let file = TableFile::open_within(path, load::limits(args.source.feed.memory_limit))
        .map_err(|error| Failure::BadInput(error.to_string()))?;
    let lacks_routes = file.v4.fib.is_some() && file.v4.routes.is_none()
        || file.v6.fib.is_some() && file.v6.routes.is_none();
    // Another structure is built from routes. Loading them says what is missing.
    Ok((args.algorithm.is_none() || !lacks_routes).then_some(file))
}

fn answer(
    args: &LookupArgs,
    finders: Dual<Finder<'_, u32>, Finder<'_, u128>>,
    rows: Rows,
    messages: Messages,
    print_stats: impl FnOnce(),
) -> Result<ExitCode, Failure> {
    let started = Instant::now();
    let input = if args.addresses.is_empty() { "line" } else { "argument" };
    let mut answers = Answers::new(finders, rows, io::stdout().lock(), messages, input);
    if args.addresses.is_empty() {
        answer_stream(&mut answers, messages)?;
    } else {
        for address in &args.addresses {
            answers.push(Line::Text(address.as_bytes()))?;
        }
    }
    answers.finish()?;
    let tally = answers.tally;
    if args.stats {
        let seconds = started.elapsed().as_secs_f64();
        print_stats();
        stats(tally, seconds, answers.stats());
    }
    Ok(exit_code(tally))
}

fn finders<'a>(args: &LookupArgs, table: &'a Table) -> Dual<Finder<'a, u32>, Finder<'a, u128>> {
    let algorithm = args.algorithm.as_deref();
    let limits = load::limits(args.source.feed.memory_limit);
    Dual::new(
        Finder::new(finder::Table::Rib(&table.ribs.v4), limits, algorithm),
        Finder::new(finder::Table::Rib(&table.ribs.v6), limits, algorithm),
    )
}

/// Refuses a name that is in neither family's registry, before the table is read.
fn known(name: &str) -> Result<(), Failure> {
    let names = crate::algorithms::names();
    if names.contains(&name) {
        return Ok(());
    }
    Err(Failure::WrongUse(format!("no structure '{name}'; there are: {}", names.join(", "))))
}

fn answer_stream<W: io::Write>(answers: &mut Answers<'_, W>, messages: Messages) -> Result<(), Failure> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        messages.note("type addresses, one a line, and end with Ctrl-D");
    }
    // The header comes before the first answer.
    answers.flush()?;
    let bar = progress(&stdin, messages);
    let mut reader = LineReader::new(stdin.lock());
    loop {
        let count = reader.read(|line| answers.push(line).map_err(Stop::Failure));
        let count = count.map_err(Stop::into_failure)?;
        // The input may pause here: answer what has arrived.
        answers.flush()?;
        bar.inc(count as u64);
        if count == 0 {
            bar.finish_and_clear();
            return Ok(());
        }
    }
}

/// Progress, if neither input nor output is the terminal.
fn progress(stdin: &io::Stdin, messages: Messages) -> indicatif::ProgressBar {
    if stdin.is_terminal() || io::stdout().is_terminal() {
        return indicatif::ProgressBar::hidden();
    }
    let bar = messages.bytes(None);
    bar.set_message("looking up");
    bar
}

/// Why reading lines stopped: a read that failed, or what was done with the lines.
enum Stop {
    Read(io::Error),
    Failure(Failure),
}

impl Stop {
    fn into_failure(self) -> Failure {
        match self {
            Self::Read(error) => Failure::reading("standard input", &error),
            Self::Failure(failure) => failure,
        }
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

fn exit_code(tally: Tally) -> ExitCode {
    match tally {
        Tally { bad: 1.., .. } => code::BAD_INPUT.into(),
        Tally { matched: 0, .. } => code::NOTHING_FOUND.into(),
        _ => ExitCode::SUCCESS,
    }
}

fn stats(tally: Tally, seconds: f64, finders: impl Iterator<Item = String>) {
    let Tally { lines, bad, matched } = tally;
    for line in finders {
        messages::plain(line);
    }
    messages::plain(format_args!(
        "{} {}, {} with a route, {} not an address; {seconds:.3} s, {:.2} million a second",
        thousands(lines),
        plural(lines as u64, "address", "addresses"),
        thousands(matched),
        thousands(bad),
        lines as f64 / seconds / 1e6,
    ));
}
