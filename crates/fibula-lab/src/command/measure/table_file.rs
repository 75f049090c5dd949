//! Times of saving and opening table files, for every engine that files can hold, and the memory of 100 processes that use
//! one file with all tables, mapped and copied.

use std::fs;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use clap::{Args, ValueEnum};
use fibula::fib::WithLength;
use fibula::fib::registry::Engine;
use fibula::file::{self, ColumnBuilder, ColumnType, ColumnValue, Contents, Half, TableFile};
use fibula::memory::Limits;
use fibula::net::Key;
use fibula::rib::Rib;
use fibula_feed::{Label, LoadOptions, LoadedRoutes, Loader};

use super::Outcome;
use crate::command::figures::FigureTables;

/// Times that a file is opened.
const TIMES: usize = 21;

/// Processes that use one file.
const PROCESSES: usize = 100;

/// Options of `fibula-lab measure table-file`.
#[derive(Debug, Args)]
pub(in crate::command) struct TableFileArgs {
    /// The tables
    #[arg(value_name = "TABLE", required = true)]
    tables: Vec<String>,

    /// Use this file until standard input ends: one of the processes that are measured
    #[arg(long = "use", value_enum, hide = true)]
    way: Option<OpenMode>,

    /// Keep the figures in records/values
    #[arg(long)]
    record: bool,
}

/// A way to open a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OpenMode {
    Mapped,
    Copied,
}

pub(super) fn run(args: &TableFileArgs) -> Outcome {
    if let (Some(way), [path]) = (args.way, &args.tables[..]) {
        return use_file(way, Path::new(path));
    }
    let tables: Vec<&str> = args.tables.iter().map(String::as_str).collect();
    let mut figures = FigureTables::new("table_file", &args.tables);
    tables.iter().try_for_each(|table| times(&mut figures, table))?;
    values(&mut figures, &tables)?;
    processes(&mut figures, &tables)?;
    figures.keep(args.record)
}

fn load(tables: &[&str]) -> Outcome<LoadedRoutes> {
    Ok(Loader::new(LoadOptions::default()).load(tables)?)
}

fn path() -> PathBuf {
    std::env::temp_dir().join(format!("fibula-table-file-{}", std::process::id()))
}

fn times(figures: &mut FigureTables, table: &str) -> Outcome {
    let ribs = load(&[table])?.ribs;
    if !ribs.v4.is_empty() {
        times_of(figures, &ribs.v4, |contents, half| contents.v4 = half)?;
    }
    if !ribs.v6.is_empty() {
        times_of(figures, &ribs.v6, |contents, half| contents.v6 = half)?;
    }
    Ok(())
}

/// Puts a half into contents.
type Put<K> = for<'a> fn(&mut Contents<'a>, Half<'a, K>);

fn times_of<K: Key>(figures: &mut FigureTables, rib: &Rib<K>, put: Put<K>) -> Outcome {
    let path = path();
    let title = format!(
        "Files of {} {} routes, in the page cache, medians of {TIMES} openings",
        rib.len(),
        K::FAMILY
    );
    figures.table(title, &["", "file, MB", "saved, ms", "opened by copy, ms", "mapped, ms"]);
    for engine in fibula::fib::engines::<K>().into_iter().filter(Engine::is_saved) {
        let fib = engine.build(rib, Limits::default())?;
        for with_routes in [true, false] {
            let mut contents = Contents::default();
            let mut half = Half::new(&*fib, rib);
            half.routes = half.routes.filter(|_| with_routes);
            put(&mut contents, half);
            let start = Instant::now();
            file::save(&path, &contents)?;
            let saved = start.elapsed().as_secs_f64() * 1e3;
            let copied = median(|| TableFile::open(&path).map(drop))?;
            let mapped = match engine.is_mapped() {
                true => format!("{:.3}", median(|| TableFile::map(&path).map(drop))?),
                false => String::new(),
            };
            let routes = if with_routes { "with its routes" } else { "alone" };
            figures.row(vec![
                format!("`{}` {routes}", engine.name),
                format!("{:.1}", fs::metadata(&path)?.len() as f64 / 1e6),
                format!("{saved:.0}"),
                format!("{copied:.1}"),
                mapped,
            ]);
        }
    }
    Ok(fs::remove_file(&path)?)
}

/// Files of all tables with the values of their routes: as bytes by id, as the first version has them, and as columns, with and without
/// the lengths of the matched prefixes.
fn values(figures: &mut FigureTables, tables: &[&str]) -> Outcome {
    let loaded = load(tables)?;
    let (ribs, labels) = (&loaded.ribs, &loaded.next_hops);
    let v4 = fibula_published::find::<u32>("dir-18-lines")?;
    let v6 = fibula_published::find::<u128>("dir-btree")?;
    let fibs = (v4.build(&ribs.v4, Limits::default())?, v6.build(&ribs.v6, Limits::default())?);
    let lengths = (
        WithLength::build(&v4, &ribs.v4, Limits::default())?,
        WithLength::build(&v6, &ribs.v6, Limits::default())?,
    );
    let mut text = ColumnBuilder::new("value", ColumnType::Text);
    let mut number = ColumnBuilder::new("number", ColumnType::U32);
    for (_, label) in labels.iter() {
        text.push(Some(ColumnValue::Text(label.to_string().into())))?;
        let value = if let Label::Number(number) = label { Some(ColumnValue::U32(*number)) } else { None };
        number.push(value)?;
    }
    let (text, number) = (text.finish(), number.finish());
    let plain = || Contents {
        v4: Half::new(&*fibs.0, &ribs.v4),
        v6: Half::new(&*fibs.1, &ribs.v6),
        ..Contents::default()
    };
    let of_version_1 = Contents {
        values: labels.iter().map(|(id, label)| (id, label.to_string().into_bytes())).collect(),
        ..plain()
    };
    let columns = Contents { columns: vec![&text, &number], ..plain() };
    let with_length = Contents {
        v4: Half::new(&lengths.0, &ribs.v4),
        v6: Half::new(&lengths.1, &ribs.v6),
        columns: vec![&text, &number],
        ..Contents::default()
    };
    let without_routes = |contents: &Contents<'_>| {
        let (v4, v6) = (contents.v4.fib, contents.v6.fib);
        let halves = (Half { fib: v4, routes: None }, Half { fib: v6, routes: None });
        let mut bytes = Bytes(0);
        let contents =
            Contents { v4: halves.0, v6: halves.1, columns: contents.columns.clone(), ..Contents::default() };
        contents.write(&mut bytes).map(|()| bytes.0)
    };
    let title = format!(
        "Files of {} IPv4 and {} IPv6 routes in `dir-18-lines` and `dir-btree` with {} values ({} and {} pairs of a value and a length), \
         in the page cache, medians of {TIMES} openings",
        ribs.v4.len(),
        ribs.v6.len(),
        labels.len(),
        lengths.0.pairs(),
        lengths.1.pairs(),
    );
    figures.table(title, &["", "file, MB", "without routes, MB", "opened by copy, ms", "mapped, ms"]);
    let path = path();
    for (name, contents) in [
        ("bytes by id (version 1)", &of_version_1),
        ("a column of texts and one of numbers", &columns),
        ("the same, with lengths", &with_length),
    ] {
        file::save(&path, contents)?;
        let copied = median(|| TableFile::open(&path).map(drop))?;
        let mapped = median(|| TableFile::map(&path).map(drop))?;
        figures.row(vec![
            name.to_owned(),
            format!("{:.1}", fs::metadata(&path)?.len() as f64 / 1e6),
            format!("{:.1}", without_routes(contents)? as f64 / 1e6),
            format!("{copied:.1}"),
            format!("{mapped:.3}"),
        ]);
    }
    Ok(fs::remove_file(&path)?)
}

/// Counts bytes that are written.
struct Bytes(usize);

impl Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns the median of the milliseconds that `open` takes.
fn median(open: impl Fn() -> Result<(), file::FileError>) -> Outcome<f64> {
    let mut times = Vec::new();
    for _ in 0..TIMES {
        let start = Instant::now();
        open()?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[TIMES / 2])
}

fn processes(figures: &mut FigureTables, tables: &[&str]) -> Outcome {
    let ribs = load(tables)?.ribs;
    let find = |name| fibula_published::find::<u32>(name);
    let v4 = find("dir-17-bitmap")?.build(&ribs.v4, Limits::default())?;
    let v6 = fibula_published::find::<u128>("dir-btree")?.build(&ribs.v6, Limits::default())?;
    let mut contents = Contents::default();
    (contents.v4.fib, contents.v6.fib) = (Some(&*v4), Some(&*v6));
    let path = path();
    file::save(&path, &contents)?;
    let bytes = fs::metadata(&path)?.len();
    let title = format!("{PROCESSES} processes that look up in one file of {bytes} bytes at the same time");
    figures.table(title, &["", "PSS a process, KiB", "of it the file, KiB"]);
    for (way, name) in [(OpenMode::Mapped, "mapped"), (OpenMode::Copied, "copied")] {
        let mut children = Vec::new();
        for _ in 0..PROCESSES {
            let mut command = Command::new(std::env::current_exe()?);
            let command = command.args(["measure", "table-file", "--use", name]).arg(&path);
            children.push(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?);
        }
        let mut readers: Vec<_> =
            children.iter_mut().filter_map(|child| child.stdout.take()).map(BufReader::new).collect();
        let mut line = String::new();
        // All use it at the same time, and then each is asked.
        for reader in &mut readers {
            reader.read_line(&mut line)?;
        }
        let mut sums = [0; 2];
        for (child, reader) in children.iter_mut().zip(&mut readers) {
            writeln!(child.stdin.as_mut().ok_or("a pipe")?)?;
            line.clear();
            reader.read_line(&mut line)?;
            let mut numbers = line.split_whitespace().map(str::parse::<u64>);
            for sum in &mut sums {
                *sum += numbers.next().ok_or("two numbers")??;
            }
        }
        children.into_iter().try_for_each(|mut child: Child| child.wait().map(drop))?;
        let each = |sum: u64| sum as f64 / PROCESSES as f64;
        let file = if way == OpenMode::Mapped { format!("{:.1}", each(sums[1])) } else { String::new() };
        figures.row(vec![name.to_owned(), format!("{:.0}", each(sums[0])), file]);
    }
    Ok(fs::remove_file(&path)?)
}

/// Looks up in a file until asked, and prints the PSS of the process and of the file in it, in KiB.
fn use_file(way: OpenMode, path: &Path) -> Outcome {
    let table = if way == OpenMode::Mapped { TableFile::map(path)? } else { TableFile::open(path)? };
    let (v4, v6) = (table.v4.fib.as_ref().ok_or("IPv4")?, table.v6.fib.as_ref().ok_or("IPv6")?);
    let mut random = 1u64;
    for _ in 0..4_000_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        black_box(v4.lookup((random >> 32) as u32));
        black_box(v6.lookup(u128::from(random) << 64 | 1 << 125));
    }
    println!("ready");
    std::io::stdin().read_line(&mut String::new())?;
    let (mut all, mut of_file, mut inside) = (0, 0, false);
    let name = path.to_string_lossy();
    for line in fs::read_to_string("/proc/self/smaps")?.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("Pss:") => {
                let kib: u64 = words.next().ok_or("a number")?.parse()?;
                all += kib;
                of_file += if inside { kib } else { 0 };
            }
            Some(first) if !first.ends_with(':') => inside = line.ends_with(&*name),
            _ => {}
        }
    }
    println!("{all} {of_file}");
    // Pages are shared by all until the last one is asked, and the pipe is closed.
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}
