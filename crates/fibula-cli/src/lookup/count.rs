//! `fibula count`: how many addresses, and how many bytes, lead where.

use std::collections::HashMap;
use std::hash::Hash;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use clap::{Args, ValueEnum};
use fibula::fib::Match;
use fibula::net::{Dual, Key, Prefix};
use fibula_feed::{Label, LoadedRoutes, Value};
use serde_json::json;

use super::answers::{AddressKind, BLOCK, Finders, Keys, LINES, V4Mapped};
use super::chunks::Chunks;
use super::columns::{self, InputFormat, Located, TextRow};
use super::finder::{self, Finder};
use super::input::Input;
use super::pipeline::{LineCounts, Out, Worker};
use crate::failure::{Failure, code};
use crate::load;
use crate::machine::IsaArgs;
use crate::messages::Messages;
use crate::objects::{self, Object};
use crate::options::{Format, OutputArgs, QuietArgs, STDIN, SourceArgs};
use crate::output::Output;
use crate::text::{Grid, thousands};

/// Count addresses, and bytes, by AS, by prefix or by another value: the top talkers
///
/// Reads addresses, one a line, or lines with an address in one column and, if --bytes-column is given, a number in another:
/// CSV, values separated by tabs, words, or JSON, plain or compressed, or Parquet. Prints the most frequent first. Lines whose column is not
/// an address are left out, and how many that are is said on standard error; with --strict the first of them is an error.
#[derive(Debug, Args)]
#[command(after_help = "\
Output:
  text  the most frequent, with their share of all addresses (or bytes)
  csv   as,addresses,share, or as,addresses,bytes,share; the first column is named as --by is.
        Addresses without a route are counted in a row whose first field is empty

Exit codes:
  0  at least one address has a route
  1  no address has a route
  2  wrong use
  3  the table or the input cannot be read, or has no such column
  4  this machine lacks the instruction set

Examples:
  fibula count --table rib.gz --by as --column src_addr --bytes-column bytes flows.csv
  fibula count -t rib.gz --by prefix --top 10 addresses.txt.gz
  fibula count -t sites.txt --by value --json < addresses.txt")]
pub(crate) struct CountArgs {
    /// The lines, plain or compressed; '-' is standard input
    #[arg(value_name = "FILE", default_value = STDIN)]
    file: PathBuf,

    /// What to count by: the AS that announces the route, the matched prefix, or what the route leads to (its next hop, or
    /// what --value names)
    #[arg(long, value_enum, value_name = "WHAT")]
    by: By,

    /// The column with the address: its number from 1, or its name [default: each line is an address]
    #[arg(short, long, value_name = "COLUMN")]
    column: Option<String>,

    /// Add up the numbers in this column, too, and order by them
    #[arg(long, value_name = "COLUMN", requires = "column")]
    bytes_column: Option<String>,

    /// The format of lines with columns [default: by the file's name, else by its first line]
    #[arg(long, value_enum, value_name = "FORMAT", requires = "column")]
    input_format: Option<InputFormat>,

    /// Answer IPv4-mapped IPv6 addresses (::ffff:192.0.2.1) by the routes of this family
    #[arg(long, value_enum, value_name = "FAMILY", default_value_t)]
    v4_mapped: V4Mapped,

    /// Print this many rows at most [default: 20 in text, else all]
    #[arg(long, value_name = "NUMBER")]
    top: Option<usize>,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    source: SourceArgs,

    #[command(flatten)]
    form: OutputArgs,

    #[command(flatten)]
    isa: IsaArgs,

    #[command(flatten)]
    quiet: QuietArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    As,
    Prefix,
    Value,
}

/// Addresses and bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sum {
    addresses: u64,
    bytes: u64,
}

impl Sum {
    fn add(&mut self, other: Self) {
        self.addresses += other.addresses;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// The sums of one thread, or of all.
#[derive(Default)]
struct Totals {
    /// By the number of the next hop, if not by prefix.
    labels: Vec<Sum>,
    prefixes: Dual<HashMap<Prefix<u32>, Sum>, HashMap<Prefix<u128>, Sum>>,
    unrouted: Sum,
}

pub(crate) fn run(args: &CountArgs) -> Result<ExitCode, Failure> {
    let messages = Messages::new(args.quiet.quiet);
    args.isa.force()?;
    if args.source.table.iter().any(|path| load::is_stdin(path)) && load::is_stdin(&args.file) {
        let both = "the table and the addresses cannot both come from standard input";
        return Err(Failure::WrongUse(both.to_owned()));
    }
    let output = Output::new(args.output.as_deref(), args.source.table.iter().chain([&args.file]))?;
    let by_as = [Value::OriginAs];
    let values = if args.by == By::As { &by_as[..] } else { &args.source.feed.value[..] };
    let table = load::load_values(&args.source.table, &args.source.feed, values, messages)?;
    let limits = load::limits(args.source.feed.memory_limit);
    let finders = Dual::new(
        Finder::new(finder::Table::Rib(&table.ribs.v4), limits, None),
        Finder::new(finder::Table::Rib(&table.ribs.v6), limits, None),
    );
    let totals = Mutex::new(Totals::default());
    let tally = count(args, &finders, &totals, messages)?;
    let totals = totals.into_inner().unwrap_or_else(PoisonError::into_inner);
    let rows = rows(args, &totals, &table);
    let unrouted = totals.unrouted;
    output.write(|out| Ok(write(args, &rows, unrouted, out)?))?;
    Ok(if tally.matched == 0 { code::NOTHING_FOUND.into() } else { ExitCode::SUCCESS })
}

fn count(
    args: &CountArgs,
    finders: &Finders<'_>,
    totals: &Mutex<Totals>,
    messages: Messages,
) -> Result<LineCounts, Failure> {
    #[cfg(feature = "parquet")]
    if let Some(column) = args.column.as_deref().filter(|_| super::input::is_parquet(&args.file)) {
        return count_parquet(args, column, finders, totals, messages);
    }
    let input = Input::open(&args.file, true, messages)?;
    let (mut located, mut header) = (None, 0);
    let mut chunks = match &args.column {
        Some(column) => {
            let (format, mut chunks) = input.rows(args.input_format)?;
            let wanted: Vec<&str> =
                std::iter::once(column).chain(&args.bytes_column).map(String::as_str).collect();
            let first_line = input.first_line(&mut chunks, format, &wanted, messages)?;
            let found = Located::new(format, &wanted, 1, first_line)?;
            if found.has_header {
                chunks.skip_line();
                header = 1;
            }
            located = Some(found);
            chunks
        }
        None => Chunks::new(input.reader()?, LINES),
    };
    if located.is_none() {
        input.note_empty(&mut chunks, messages)?;
    }
    let by_prefix = args.by == By::Prefix;
    let worker = || -> Box<dyn Worker + '_> {
        let (sizes, own) = Default::default();
        let located = located.as_ref();
        Box::new(Counter {
            finders,
            located,
            by_prefix,
            totals,
            own,
            keys: Keys::new(args.v4_mapped),
            sizes,
            tally: LineCounts::default(),
            messages,
        })
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = (0..threads).map(|_| worker()).collect();
    let mut tally = LineCounts::default();
    let (what, strict) = (if located.is_some() { "row" } else { "line" }, args.source.feed.is_strict());
    input.run(&mut chunks, workers, &|| false, &mut |_, next| {
        tally.add(next, (what, header), strict, messages)
    })?;
    tally.summary(what, messages);
    Ok(tally)
}

/// Counts the rows of a Parquet file.
#[cfg(feature = "parquet")]
fn count_parquet(
    args: &CountArgs,
    column: &str,
    finders: &Finders<'_>,
    totals: &Mutex<Totals>,
    messages: Messages,
) -> Result<LineCounts, Failure> {
    use super::parquet::{self, AddressMatch, Counted};

    let by_prefix = args.by == By::Prefix;
    let add = |own: &mut Totals, found: AddressMatch, bytes: u64| {
        let sum = Sum { addresses: 1, bytes };
        match found {
            AddressMatch::V4(key, found) if by_prefix => {
                by(key, Some(found), sum, &mut own.prefixes.v4);
            }
            AddressMatch::V6(key, found) if by_prefix => {
                by(key, Some(found), sum, &mut own.prefixes.v6);
            }
            AddressMatch::V4(_, found) | AddressMatch::V6(_, found) => {
                label(&mut own.labels, found.next_hop.id() as usize).add(sum);
            }
            AddressMatch::Nothing => own.unrouted.add(sum),
        }
    };
    let mut tally = LineCounts::default();
    let strict = args.source.feed.is_strict();
    let mut take = |Counted { sums, tally: next }: Counted<Totals>| {
        totals.lock().unwrap_or_else(PoisonError::into_inner).merge(sums);
        tally.add(next, ("row", 0), strict, messages)
    };
    let input = (&*args.file, column, args.bytes_column.as_deref());
    parquet::count(input, finders, (args.v4_mapped, messages), &add, &mut take)?;
    tally.summary("row", messages);
    Ok(tally)
}

/// Counts the lines of chunks.
struct Counter<'a, 't> {
    finders: &'a Finders<'t>,
    located: Option<&'a Located>,
    by_prefix: bool,
    totals: &'a Mutex<Totals>,
    own: Totals,
    keys: Keys,
    /// The family and the bytes of each line that waits.
    sizes: Vec<(AddressKind, u64)>,
    tally: LineCounts,
    messages: Messages,
}

impl Counter<'_, '_> {
    /// Takes a row of a chunk.
    fn row(&mut self, located: &Located, chunk: &[u8], row: TextRow) -> Result<(), Failure> {
        let line = &chunk[row.start..row.end];
        let (text, first, quoted) = match row.kind {
            columns::RowKind::Line { quoted, unclosed } => {
                self.tally.lines += 1;
                if unclosed {
                    self.tally.unclosed();
                }
                (line, located.field(line, 0, quoted), quoted)
            }
            columns::RowKind::Object { start, .. } => {
                self.tally.lines += 1;
                let object = &chunk[start..=row.end];
                let Some(first) = located.object(object, |_| ()) else { return self.no_object() };
                (object, first, false)
            }
            columns::RowKind::Blank => {
                self.tally.lines += 1;
                return Ok(());
            }
            columns::RowKind::NoObject => {
                self.tally.lines += 1;
                return self.no_object();
            }
            columns::RowKind::Between => return Ok(()),
        };
        let size = if located.places.len() > 1 { located.field(text, 1, quoted) } else { Some(&b"0"[..]) };
        self.push(first, size)
    }

    #[cold]
    fn no_object(&mut self) -> Result<(), Failure> {
        self.tally.bad(self.tally.lines, || columns::NO_OBJECT.to_owned());
        Ok(())
    }

    /// Takes the texts of an address and of a number of bytes.
    fn push(&mut self, address: Option<&[u8]>, size: Option<&[u8]>) -> Result<(), Failure> {
        let line = self.tally.lines;
        let size = size.and_then(|size| std::str::from_utf8(size).ok()?.parse().ok());
        match (address.map(|text| self.keys.push(text)), size) {
            (Some(Ok(kind)), Some(size)) => self.sizes.push((kind, size)),
            (Some(Ok(kind)), None) => {
                self.tally.bad(line, || " has a missing or invalid number of bytes".to_owned());
                self.sizes.push((kind, 0));
            }
            (Some(Err(error)), _) if self.located.is_some() => {
                self.tally.bad(line, || columns::no_address(&error));
            }
            (Some(Err(error)), _) => {
                self.tally.bad(line, || format!(" has no IP address ({})", error.reason()));
            }
            (None, _) => self.tally.bad(line, || columns::TOO_FEW.to_owned()),
        }
        if self.sizes.len() == BLOCK { self.respond() } else { Ok(()) }
    }

    fn respond(&mut self) -> Result<(), Failure> {
        let Self { finders, keys, sizes, own, tally, by_prefix, messages, .. } = self;
        keys.find(finders, *messages)?;
        let (mut at_v4, mut at_v6) = (0, 0);
        for &(kind, bytes) in sizes.iter() {
            let sum = Sum { addresses: 1, bytes };
            let found = match kind {
                AddressKind::V4 => {
                    at_v4 += 1;
                    let (key, found) = (keys.v4[at_v4 - 1], keys.found_v4[at_v4 - 1]);
                    if *by_prefix { by(key, found, sum, &mut own.prefixes.v4) } else { found }
                }
                AddressKind::V6 => {
                    at_v6 += 1;
                    let (key, found) = (keys.v6[at_v6 - 1], keys.found_v6[at_v6 - 1]);
                    if *by_prefix { by(key, found, sum, &mut own.prefixes.v6) } else { found }
                }
                AddressKind::Bad => None,
            };
            match found {
                Some(_) if *by_prefix => {}
                Some(found) => label(&mut own.labels, found.next_hop.id() as usize).add(sum),
                None => own.unrouted.add(sum),
            }
            tally.matched += usize::from(found.is_some());
        }
        sizes.clear();
        keys.clear();
        Ok(())
    }
}

fn by<K: Key + Hash>(
    key: K,
    found: Option<Match>,
    sum: Sum,
    sums: &mut HashMap<Prefix<K>, Sum>,
) -> Option<Match> {
    // An engine's answers have lengths of its family's prefixes.
    let prefix = Prefix::masked(key, found?.prefix_len).ok()?;
    sums.entry(prefix).or_default().add(sum);
    found
}

fn label(sums: &mut Vec<Sum>, id: usize) -> &mut Sum {
    if id >= sums.len() {
        sums.resize(id + 1, Sum::default());
    }
    &mut sums[id]
}

impl Worker for Counter<'_, '_> {
    fn answer(&mut self, chunk: &[u8], _: bool, _: &mut Out<'_>) -> Result<LineCounts, Failure> {
        if let Some(located) = self.located {
            located.rows(chunk, |row| self.row(located, chunk, row))?;
        } else {
            let lines = chunk.strip_suffix(b"\n").unwrap_or(chunk).split(|&byte| byte == b'\n');
            for line in lines {
                self.tally.lines += 1;
                self.push(Some(line.trim_ascii()), Some(b"0"))?;
            }
        }
        self.respond()?;
        Ok(std::mem::take(&mut self.tally))
    }
}

/// A thread that ends adds its sums to those of all.
impl Drop for Counter<'_, '_> {
    fn drop(&mut self) {
        let mut all = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        all.merge(std::mem::take(&mut self.own));
    }
}

impl Totals {
    fn merge(&mut self, own: Self) {
        for (id, &sum) in own.labels.iter().enumerate() {
            label(&mut self.labels, id).add(sum);
        }
        for (prefix, sum) in own.prefixes.v4 {
            self.prefixes.v4.entry(prefix).or_default().add(sum);
        }
        for (prefix, sum) in own.prefixes.v6 {
            self.prefixes.v6.entry(prefix).or_default().add(sum);
        }
        self.unrouted.add(own.unrouted);
    }
}

/// Returns the rows, the most frequent first.
fn rows(args: &CountArgs, totals: &Totals, table: &LoadedRoutes) -> Vec<(String, Sum)> {
    let labels = table.next_hops.iter().filter_map(|(next_hop, label)| {
        let sum = *totals.labels.get(next_hop.id() as usize)?;
        // An AS that is not known is a row of its own.
        let name = if *label == Label::Absent { "-".to_owned() } else { label.to_string() };
        Some((name, sum))
    });
    let v4 = totals.prefixes.v4.iter().map(|(prefix, &sum)| (prefix.to_string(), sum));
    let v6 = totals.prefixes.v6.iter().map(|(prefix, &sum)| (prefix.to_string(), sum));
    let mut rows: Vec<(String, Sum)> = labels.chain(v4).chain(v6).filter(|row| row.1.addresses > 0).collect();
    let by_bytes = args.bytes_column.is_some();
    let weight = |sum: Sum| if by_bytes { (sum.bytes, sum.addresses) } else { (sum.addresses, 0) };
    rows.sort_by(|one, other| weight(other.1).cmp(&weight(one.1)).then_with(|| one.0.cmp(&other.0)));
    rows
}

fn write(args: &CountArgs, rows: &[(String, Sum)], unrouted: Sum, out: &mut dyn Write) -> io::Result<()> {
    let by_bytes = args.bytes_column.is_some();
    let name = match args.by {
        By::As => "as",
        By::Prefix => "prefix",
        By::Value => "value",
    };
    let weight = |sum: Sum| if by_bytes { sum.bytes } else { sum.addresses };
    let all = rows.iter().map(|row| weight(row.1)).sum::<u64>() + weight(unrouted);
    let share = |sum: Sum| weight(sum) as f64 / all.max(1) as f64;
    let format = args.form.format();
    let top = args.top.unwrap_or(if format == Format::Text { 20 } else { usize::MAX });
    if format == Format::Text {
        let mut grid = if by_bytes {
            Grid::new(&[name, "addresses", "bytes", "share"]).right(&[1, 2, 3])
        } else {
            Grid::new(&[name, "addresses", "share"]).right(&[1, 2])
        };
        let shown = rows.iter().take(top).map(|(key, sum)| (key.clone(), *sum));
        let unrouted = (unrouted.addresses > 0).then(|| ("no route".to_owned(), unrouted));
        for (key, sum) in shown.chain(unrouted) {
            let bytes = by_bytes.then(|| thousands(sum.bytes));
            let share = format!("{:.1} %", 100.0 * share(sum));
            grid.row([key, thousands(sum.addresses)].into_iter().chain(bytes).chain([share]));
        }
        let more = rows.len().saturating_sub(top);
        // Bold only where the terminal shows it.
        let text = anstream::adapter::strip_str(&grid.render()).to_string();
        writeln!(out, "{text}")?;
        return if more > 0 { writeln!(out, "and {} more", thousands(more)) } else { Ok(()) };
    }
    let mut columns = vec![name, "addresses", "bytes", "share"];
    if !by_bytes {
        columns.remove(2);
    }
    let record = |key: serde_json::Value, sum: Sum| -> Object {
        let mut record = Object::new();
        record.insert(name.to_owned(), key);
        record.insert("addresses".to_owned(), json!(sum.addresses));
        if by_bytes {
            record.insert("bytes".to_owned(), json!(sum.bytes));
        }
        record.insert("share".to_owned(), json!(share(sum)));
        record
    };
    let mut records: Vec<Object> = rows.iter().take(top).map(|(key, sum)| record(json!(key), *sum)).collect();
    if unrouted.addresses > 0 {
        records.push(record(serde_json::Value::Null, unrouted));
    }
    objects::write(out, format, &columns, &records)
}
