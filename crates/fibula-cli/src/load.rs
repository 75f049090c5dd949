//! Loads the tables of commands, with progress and warnings.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use fibula::aggregate;
use fibula::file::ColumnType;
use fibula::memory::Limits;
use fibula::net::Family;
use fibula_feed::event::Event;
use fibula_feed::{
    ByRule, Choice, Content, Label, LoadError, LoadOptions, LoadedRoutes, Loader, PeerCounts, Progress,
    Report, Source, Value,
};

use crate::failure::Failure;
use crate::fetch;
use crate::messages::{self, Messages};
use crate::options::{FeedArgs, Merge, ReadingArgs, STDIN};
use crate::text::{bytes, plural, thousands};
use crate::validation::States;

const STDIN_NAME: &str = "standard input";

/// Returns whether the path means standard input.
#[must_use]
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == STDIN
}

/// Returns whether the path is that of a compiled table.
pub(crate) fn is_compiled(path: &Path) -> bool {
    use io::Read;
    // Opening a FIFO is an event for its writer.
    let is_file = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let mut head = Vec::new();
    let look = |head| std::fs::File::open(path)?.take(fibula::file::MAGIC_BYTES as u64).read_to_end(head);
    !is_stdin(path) && is_file && look(&mut head).is_ok() && fibula::file::is_table_file(&head)
}

/// Returns the default limits with this limit on memory.
#[must_use]
pub fn limits(memory_bytes: Option<usize>) -> Limits {
    Limits { memory_bytes, ..Limits::default() }
}

/// Loads the table at `path`, or from standard input if that is `-`, and warns of skipped entries.
///
/// # Errors
/// If it cannot be read, or none of its lines is a route.
pub fn load(path: &Path, messages: Messages) -> Result<LoadedRoutes, Failure> {
    load_with(&[path.to_owned()], LoadOptions::default(), Merge::default(), messages)
}

/// Loads the files into one table, aggregated if the options say so, and warns of skipped entries.
pub(crate) fn load_feeds(
    paths: &[PathBuf],
    feed: &FeedArgs,
    messages: Messages,
) -> Result<LoadedRoutes, Failure> {
    aggregated(load_all_routes(paths, feed, messages)?, feed, messages)
}

fn aggregated(mut table: LoadedRoutes, feed: &FeedArgs, messages: Messages) -> Result<LoadedRoutes, Failure> {
    if feed.aggregate {
        let limits = limits(feed.memory_limit);
        let all = table.ribs.len() as u64;
        let no_memory = |error| Failure::BadInput(format!("the table cannot be aggregated: {error}"));
        table.ribs.v4 = aggregate::minimal(&table.ribs.v4, limits).map_err(no_memory)?;
        table.ribs.v6 = aggregate::minimal(&table.ribs.v6, limits).map_err(no_memory)?;
        let fewest = table.ribs.len() as u64;
        messages.note(format_args!("aggregated: {} routes for {}", thousands(fewest), thousands(all)));
    }
    Ok(table)
}

/// Loads the files into one table, with all routes, and warns of skipped entries.
pub(crate) fn load_all_routes(
    paths: &[PathBuf],
    feed: &FeedArgs,
    messages: Messages,
) -> Result<LoadedRoutes, Failure> {
    load_plain(paths, feed, &feed.value, messages)
}

/// Loads the files into one table whose labels are these values, aggregated if that was requested.
pub(crate) fn load_values(
    paths: &[PathBuf],
    feed: &FeedArgs,
    values: &[Value],
    messages: Messages,
) -> Result<LoadedRoutes, Failure> {
    aggregated(load_plain(paths, feed, values, messages)?, feed, messages)
}

fn load_plain(
    paths: &[PathBuf],
    feed: &FeedArgs,
    values: &[Value],
    messages: Messages,
) -> Result<LoadedRoutes, Failure> {
    let mut options = feed.options();
    options.values = values.to_vec();
    let table = load_values_of(paths, options, feed, messages)?;
    refuse_absent(&table, values, 0)?;
    Ok(table)
}

/// Loads the files into one table whose labels are these values, of these types, aggregated if that was requested.
pub(crate) fn load_typed(
    paths: &[PathBuf],
    feed: &FeedArgs,
    values: &[Value],
    types: &[Option<ColumnType>],
    messages: Messages,
) -> Result<LoadedRoutes, Failure> {
    let mut options = feed.options();
    (options.values, options.types) = (values.to_vec(), types.to_vec());
    let table = load_values_of(paths, options, feed, messages)?;
    if !feed.value.is_empty() {
        refuse_absent(&table, values, 0)?;
    }
    aggregated(table, feed, messages)
}

/// Loads the files into one table whose labels are the origin and the AS path of each route, as far as it has them.
pub(crate) fn load_origins(
    paths: &[PathBuf],
    feed: &FeedArgs,
    messages: Messages,
) -> Result<LoadedRoutes, Failure> {
    let mut options = feed.options();
    options.values = vec![Value::OriginAs, Value::AsPath];
    let table = load_with(paths, options, feed.merge, messages)?;
    refuse_absent(&table, &[Value::OriginAs], 0)?;
    aggregated(table, feed, messages)
}

/// The fields that the labels of a table hold after the next hop.
pub(crate) struct Columns {
    pub(crate) values: Vec<Value>,
    /// Whether they were not requested: they are then shown where there are any.
    pub(crate) implied: bool,
    /// Whether text output prints the first of them instead of the next hop.
    pub(crate) in_place: bool,
}

/// Loads the files into one table whose labels hold the next hop and then the values that were requested. For people, the
/// origin AS comes with the next hop where the source has it.
pub(crate) fn load_columns(
    paths: &[PathBuf],
    feed: &FeedArgs,
    for_people: bool,
    messages: Messages,
) -> Result<(LoadedRoutes, Columns), Failure> {
    let mut columns = columns(feed, for_people);
    let mut options = feed.options();
    options.values = vec![Value::NextHop];
    options.values.extend(columns.values.iter().cloned());
    options.implied_origin = columns.implied;
    let table = aggregated(load_values_of(paths, options, feed, messages)?, feed, messages)?;
    if !columns.implied {
        refuse_absent(&table, &columns.values, 1)?;
        let is_column = matches!(columns.values.first(), Some(Value::Column(_)));
        let gives_way = |report: &Report| report.of_paths || (is_column && !report.names_next_hop);
        columns.in_place = table.reports.iter().all(gives_way);
    }
    Ok((table, columns))
}

/// Returns the values that come after the next hop.
pub(crate) fn columns(feed: &FeedArgs, for_people: bool) -> Columns {
    // Aggregation joins routes with equal labels. Fields that were not requested must not keep them apart.
    let implied = for_people && feed.value.is_empty() && !feed.aggregate;
    Columns { values: if implied { vec![Value::OriginAs] } else { feed.columns() }, implied, in_place: false }
}

/// Refuses a value that no route has. The values begin at this field of the labels.
fn refuse_absent(table: &LoadedRoutes, values: &[Value], first: usize) -> Result<(), Failure> {
    if table.next_hops.is_empty() {
        return Ok(());
    }
    // A peer may have none of a value that its source can have, such as communities. Lines of bgpdump have no times of routes.
    let of_peers = |report: &&Report| !report.peers.is_empty();
    let known = |value: &Value| {
        let of = |report: &Report| match value {
            Value::Column(_) => false,
            Value::Age | Value::Since => report.content == Content::Mrt,
            _ => true,
        };
        table.reports.iter().filter(of_peers).any(of)
    };
    for (at, value) in values.iter().enumerate().filter(|(_, value)| !known(value)) {
        let has = |label: &Label| label.fields().get(first + at).is_some_and(|field| *field != Label::Absent);
        if !table.next_hops.iter().any(|(_, label)| has(label)) {
            let name = &table.report().name;
            return Err(Failure::BadInput(format!(
                "{name}: no route has the value '{value}'; routes of MRT and bgpdump have {}, others what their lines name",
                Value::NAMED.each_ref().map(Value::name).join(", "),
            )));
        }
    }
    Ok(())
}

/// Loads the files into one table whose labels have these values, the states of routes among them if these are wanted.
fn load_values_of(
    paths: &[PathBuf],
    mut options: LoadOptions,
    feed: &FeedArgs,
    messages: Messages,
) -> Result<LoadedRoutes, Failure> {
    let Some(states) = States::new(&options.values, feed, messages)? else {
        return load_with(paths, options, feed.merge, messages);
    };
    let typed = options.values.iter().cloned().zip(options.types.clone());
    let types: Vec<(Value, Option<ColumnType>)> = typed.collect();
    options.values = states.loaded().to_vec();
    let kind = |value| types.iter().find(|(typed, _)| typed == value).and_then(|(_, kind)| *kind);
    options.types = options.values.iter().map(kind).collect();
    let limits = options.limits;
    let mut table = load_with(paths, options, feed.merge, messages)?;
    states.relabel(&mut table, limits)?;
    Ok(table)
}

fn load_with(
    paths: &[PathBuf],
    mut options: LoadOptions,
    merge: Merge,
    messages: Messages,
) -> Result<LoadedRoutes, Failure> {
    options.threads = threads();
    if paths.len() > 1 && paths.iter().any(|path| is_stdin(path)) {
        return Err(Failure::WrongUse("standard input cannot be one of several tables".to_owned()));
    }
    let mut bar = Bar::new(paths, messages);
    let source = source(paths, merge)?;
    let table = Loader::new(options).on_progress(|at| bar.show(at)).load(source);
    bar.bar.finish_and_clear();
    let table = table.map_err(|error| failure(&error))?;
    for report in &table.reports {
        warn(report, messages);
        chosen(report, messages);
    }
    if table.reports.len() > 1 {
        table.reports.iter().for_each(|report| compared(report, messages));
    }
    if table.ribs.v4.is_empty() && table.ribs.v6.is_empty() {
        let report = table.report();
        if report.bad_lines > 0 {
            return Err(no_route(report));
        }
        messages.warning(format_args!("{}: the table is empty", report.name));
    }
    Ok(table)
}

/// Returns the files, folders and URLs, or standard input if that is the only one.
fn source(paths: &[PathBuf], merge: Merge) -> Result<Source<'static>, Failure> {
    if let [path] = paths
        && is_stdin(path)
    {
        return Ok(Source::reader(STDIN_NAME, io::stdin().lock()));
    }
    if merge == Merge::Replay || paths.iter().any(|path| path.is_dir()) {
        return Ok(Source::replay(paths));
    }
    paths.iter().try_fold(Source::files([""; 0]), |all, path| match fetch::url(path) {
        Some(url) => Ok(all.and(Source::reader(url, fetch::Fetched::new(url)?))),
        None => Ok(all.and(path.into())),
    })
}

fn no_route(report: &Report) -> Failure {
    let name = &report.name;
    Failure::BadInput(match report.content {
        Content::Mrt => format!("{name}: no route in its MRT records"),
        Content::Text | Content::Document => {
            format!("{name}: no entry is a route; the forms that are read are in docs/guide/routes.md")
        }
    })
}

/// Returns whether there was something to read, and none of it was a route.
fn nothing_read(report: &Report) -> bool {
    report.bad_lines > 0 && report.entries() <= report.bad_lines
}

/// Counts the routes that each peer of a file announced, and warns of unreadable entries.
pub(crate) fn survey(path: &Path, reading: &ReadingArgs, messages: Messages) -> Result<Report, Failure> {
    let mut options = reading.options();
    options.threads = threads();
    let mut bar = Bar::new(&[path.to_owned()], messages);
    let source = source(&[path.to_owned()], Merge::default())?;
    let reports = Loader::new(options).on_progress(|at| bar.show(at)).survey(source);
    bar.bar.finish_and_clear();
    let report = reports.map_err(|error| failure(&error))?.remove(0);
    warn(&report, messages);
    if nothing_read(&report) && report.peers.is_empty() {
        return Err(no_route(&report));
    }
    Ok(report)
}

/// Calls `each` for every event of a feed in order, and warns of unreadable entries.
pub(crate) fn tell(
    path: &PathBuf,
    options: &LoadOptions,
    each: &mut (dyn FnMut(Event) -> io::Result<()> + Send),
    messages: Messages,
) -> Result<(), Failure> {
    let mut options = options.clone();
    options.threads = threads();
    let mut bar = Bar::new(std::slice::from_ref(path), messages);
    let source = source(std::slice::from_ref(path), Merge::default())?;
    let mut told = 0_u64;
    let mut count = |event| {
        told += 1;
        each(event)
    };
    let reports = Loader::new(options).on_progress(|at| bar.show(at)).events(source, &mut count);
    bar.bar.finish_and_clear();
    let report = reports
        .map_err(|error| error.stopped().map_or_else(|error| failure(&error), Failure::from))?
        .remove(0);
    warn(&report, messages);
    // One MRT record can hold several faults, and routes as well: only the events say whether anything was read.
    if told == 0 && report.bad_lines > 0 { Err(no_route(&report)) } else { Ok(()) }
}

/// Returns the number of threads for loading. One thread to decompress, one to decode and one to insert pay even on two
/// cores, because they wait for each other.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn failure(error: &LoadError) -> Failure {
    if error.unknown_peers().is_some() {
        let text = error.to_string();
        let text = text.strip_suffix(')').unwrap_or(&text);
        return Failure::WrongUse(format!("{text}; list them with 'fibula peers {}')", error.name()));
    }
    Failure::BadInput(error.to_string())
}

/// Progress of loading.
struct Bar {
    bar: indicatif::ProgressBar,
    names: String,
    counting: Option<bool>,
}

impl Bar {
    fn new(paths: &[PathBuf], messages: Messages) -> Self {
        let len = |path: &PathBuf| {
            std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|file| file.len())
        };
        // Several files are read one after another, each from 0.
        let total = if let [path] = paths { len(path) } else { None };
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        Self { bar: messages.bytes(total), names: names.join(", "), counting: None }
    }

    fn show(&mut self, progress: Progress) {
        if self.counting != Some(progress.counting) {
            self.counting = Some(progress.counting);
            let what = if progress.counting { "counting routes by peer in" } else { "loading" };
            self.bar.set_message(format!("{what} {}", self.names));
            self.bar.reset();
        }
        self.bar.set_position(progress.bytes_read);
    }
}

fn unit(content: Content, count: u64) -> &'static str {
    match content {
        Content::Mrt => plural(count, "MRT record", "MRT records"),
        Content::Text | Content::Document => plural(count, "line", "lines"),
    }
}

/// Warns of entries that were recognised and skipped.
fn warn_of_skipped(report: &Report, messages: Messages) {
    let name = &report.name;
    let kinds = |loses_routes: bool| {
        let kinds = report.skipped.iter().filter(|(kind, _)| kind.loses_routes() == loses_routes);
        kinds.map(|(kind, &count)| format!("{kind} ({})", thousands(count))).collect::<Vec<_>>().join(", ")
    };
    let (lost, empty) = (kinds(true), kinds(false));
    if !lost.is_empty() {
        messages::warning(format_args!("{name}: not read: {lost}"));
    }
    if !empty.is_empty() {
        messages.note(format_args!("{name}: without effect on routes: {empty}"));
    }
}

/// Whether so much of a table was misread that the command is not to end with success.
static IS_DOUBTFUL: AtomicBool = AtomicBool::new(false);

/// Returns whether so much of a table was misread that the answers are in doubt.
pub(crate) fn is_doubtful() -> bool {
    IS_DOUBTFUL.load(Ordering::Relaxed)
}

/// Reports misread entries, even with `--quiet`.
fn tell_misread(report: &Report, messages: Messages) {
    let name = &report.name;
    for bad in &report.first_bad {
        messages.warning(format_args!("{bad}: '{}'", bad.excerpt()));
    }
    for fault in &report.faults {
        messages.warning(format_args!("{name}: {fault}"));
    }
    if report.bad_lines > 0 {
        let (bad, all) = (report.bad_lines, report.entries());
        let what = match report.content {
            Content::Text => plural(bad, "bad line was", "bad lines were"),
            Content::Document => plural(bad, "bad entry was", "bad entries were"),
            Content::Mrt => plural(bad, "bad MRT record or route was", "bad MRT records or routes were"),
        };
        let of = match report.content {
            Content::Mrt => String::new(),
            Content::Text | Content::Document => format!(" (of {})", thousands(all)),
        };
        let first = match (report.first_bad.first(), report.faults.first()) {
            (Some(bad), _) if messages.is_quiet() => {
                format!("; the first: line {}: {}: '{}'", bad.line(), bad.error().reason(), bad.excerpt())
            }
            (None, Some(fault)) if messages.is_quiet() => format!("; the first: {fault}"),
            _ => String::new(),
        };
        messages::warning(format_args!("{name}: {} {what} left out{of}{first}", thousands(bad)));
    }
    if report.lost_bytes > 0 {
        let bytes = plural(report.lost_bytes, "byte is", "bytes are");
        let count = thousands(report.lost_bytes);
        messages::warning(format_args!("{name}: {count} {bytes} not part of a complete MRT record"));
    }
    if report.is_doubtful() {
        IS_DOUBTFUL.store(true, Ordering::Relaxed);
    }
}

/// Says which routes were read and are not used.
fn tell_unused(report: &Report, messages: Messages) {
    let name = &report.name;
    for (rule, &count) in &report.by_rule {
        let what = match rule {
            ByRule::NotInUse => "not in use by the router",
            ByRule::SourceSpecific => "for packets from certain sources only",
        };
        let routes = plural(count, "route is", "routes are");
        messages.note(format_args!("{name}: {} {routes} {what}", thousands(count)));
    }
    if !report.other_vrfs.is_empty() {
        let count = report.other_vrfs.values().sum();
        let names: Vec<&str> = report.other_vrfs.keys().take(8).map(String::as_str).collect();
        let more = if report.other_vrfs.len() > 8 { ", ..." } else { "" };
        let routes = plural(count, "route is", "routes are");
        messages.note(format_args!(
            "{name}: {} {routes} in other VRFs, which --vrf reads: {}{more}",
            thousands(count),
            names.join(", "),
        ));
    }
}

fn warn(report: &Report, messages: Messages) {
    let name = &report.name;
    tell_misread(report, messages);
    tell_unused(report, messages);
    let more = |count: u64, shown: usize| count > shown as u64;
    let shown = |bits: bool| {
        report.faults.iter().filter(|fault| fault.is_warning() && fault.is_trailing_bits() == bits).count()
    };
    if more(report.trailing_bits, shown(true)) {
        let count = thousands(report.trailing_bits);
        messages.warning(format_args!("{name}: {count} prefixes have host bits set, which are ignored"));
    }
    if more(report.warnings, shown(false)) {
        messages.warning(format_args!("{name}: {} minor faults in all", thousands(report.warnings)));
    }
    if report.repeated_changed > 0 && report.peers.is_empty() {
        let prefixes = plural(
            report.repeated_changed,
            "prefix is repeated with another next hop",
            "prefixes are repeated with another next hop",
        );
        let count = thousands(report.repeated_changed);
        let used = match report.form.map(|form| form.choice) {
            Some(Choice::Metric) => "the one with the lowest metric",
            Some(Choice::Marked) if report.form.is_some_and(|form| form.name != "json") => {
                "the last one in use"
            }
            _ => "the last one",
        };
        messages.note(format_args!("{name}: {count} {prefixes}; {used} is used"));
    }
    warn_of_skipped(report, messages);
    if let Some(truncation) = &report.truncated {
        let damaged = if truncation.damage().is_some() { ", and may contain wrong data" } else { "" };
        messages::warning(format_args!("{truncation}; everything before that is loaded{damaged}"));
    }
}

/// With several tables, says how many prefixes this one has and where it differs from those before it.
fn compared(report: &Report, messages: Messages) {
    let name = &report.name;
    let counts = [(Family::Ipv4, report.prefixes[0]), (Family::Ipv6, report.prefixes[1])];
    let counts = counts.into_iter().filter(|&(_, count)| count > 0).map(|(family, count)| {
        format!("{} {family} {}", thousands(count), plural(count, "prefix", "prefixes"))
    });
    let counts: Vec<String> = counts.collect();
    let counts = if counts.is_empty() { "no prefixes".to_owned() } else { counts.join(", ") };
    messages.note(format_args!("{name}: {counts}"));
    let differing: u64 = report.differing.values().sum();
    if differing > 0 {
        let rules = report.differing.iter().map(|(rule, &count)| format!("{rule} ({})", thousands(count)));
        let prefixes = plural(differing, "prefix has", "prefixes have");
        messages.note(format_args!(
            "{name}: {} {prefixes} another next hop in the tables before it; decided by {}",
            thousands(differing),
            rules.collect::<Vec<_>>().join(", "),
        ));
    }
}

/// Says which peers were used, if there was a choice.
fn chosen(report: &Report, messages: Messages) {
    if report.peers.len() < 2 {
        return;
    }
    let count = report.peers.len();
    let chosen = |slot: usize| {
        let of = |counts: &&PeerCounts| counts.chosen[slot] && routes(counts, slot) > 0;
        report.peers.iter().filter(of).collect::<Vec<_>>()
    };
    for (slot, family) in [(0, Family::Ipv4), (1, Family::Ipv6)] {
        match chosen(slot)[..] {
            [] => {}
            [only] => messages.note(format_args!(
                "{}: using the {} {family} {} of peer {}, one of {count} peers",
                report.name,
                thousands(routes(only, slot)),
                plural(routes(only, slot), "route", "routes"),
                only.peer,
            )),
            ref several => messages.note(format_args!(
                "{}: using the best {family} routes of {} peers",
                report.name,
                several.len()
            )),
        }
    }
}

/// Returns the routes of a peer, or its announcements if the routes were not counted.
fn routes(counts: &PeerCounts, slot: usize) -> u64 {
    counts.routes.unwrap_or(counts.announced)[slot]
}

/// Prints the counts of the loaded table on standard error.
pub(crate) fn print_stats(table: &LoadedRoutes) {
    let memory = table.ribs.v4.memory().held_bytes() + table.ribs.v6.memory().held_bytes();
    for report in &table.reports {
        let Report { name, content, lines, bad_lines, .. } = report;
        messages::plain(format_args!(
            "{name}: {} {}, {} bad",
            thousands(*lines),
            unit(*content, *lines),
            thousands(*bad_lines)
        ));
    }
    messages::plain(format_args!(
        "{} IPv4 routes, {} IPv6 routes, {} next hops; {} in memory",
        thousands(table.ribs.v4.len()),
        thousands(table.ribs.v6.len()),
        thousands(table.next_hops.len()),
        bytes(memory),
    ));
}
