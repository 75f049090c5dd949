//! Writes `docs/tables.md`: generated tables beside real ones, in figures.
//!
//! `cargo run --release -p fibula-lab --example tables_document -- IPV4_TABLE IPV6_TABLE > docs/tables.md`

use std::error::Error;
use std::fmt::{self, Write as _};

use fibula::fib::algorithms;
use fibula::memory::Limits;
use fibula::net::{Family, Key, Route, RouteSlice};
use fibula_feed::{LoadOptions, load};
use fibula_lab::table::{PRESETS, Profile, Shape, TableSpec, generate, hostile, shape};
use fibula_lab::traffic;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// What stands at the top.
const HEAD: &str = "\
# Tables

    cargo run --release -p fibula-lab --example tables_document -- IPV4_TABLE IPV6_TABLE > docs/tables.md

This page is written by the command above. It holds generated tables against real ones: full default-free tables of
early 2023 (IPv4, `dfz4-2023`) and December 2024 (IPv6, `dfz6-2024`), which are not part of the project. Only figures of
them stand here. Generated tables have the same number of routes, 256 next hops and their family's default seed.

A structure's bytes depend on how routes cluster: on the nodes of the binary trie at each depth, which are the chunks of
a direct table that hold longer prefixes (*divided*), on the chunks with more than one merged range (*mixed*), and on the
ranges in those. The goal is a ratio of 0.90 to 1.10 for the bytes of every structure.

What is off: nesting goes a little too deep; IPv6 chunks around /32 hold longer prefixes too often, because real /32
allocations are announced whole or divided finely more than a walk down the trie has them; IPv4 tables have nothing
beyond /24 unless asked for (`Profile::with_long_prefixes`).
";

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [ipv4, ipv6] = arguments.as_slice() else {
        return Err("usage: tables_document IPV4_TABLE IPV6_TABLE".into());
    };
    let options = LoadOptions::default();
    let mut page = HEAD.to_owned();
    let routes: Vec<_> = load(ipv4, &options, &mut |_| ())?.v4.iter().collect();
    compare::<u32>(&mut page, "IPv4, dfz4-2023", &routes, &[8, 12, 16, 17, 18, 19, 20, 21, 22, 23, 24])?;
    let routes: Vec<_> = load(ipv6, &options, &mut |_| ())?.v6.iter().collect();
    compare::<u128>(&mut page, "IPv6, dfz6-2024", &routes, &[16, 20, 24, 28, 29, 32, 36, 40, 44, 47, 48])?;
    names(&mut page)?;
    print!("{page}");
    Ok(())
}

/// A table of the page: what, of the real table, of the generated one, and their ratio.
struct Lines<'a>(&'a mut String);

impl Lines<'_> {
    fn head(&mut self, title: &str) -> fmt::Result {
        writeln!(self.0, "\n### {title}\n\n| | real | generated | ratio |\n|---|---:|---:|---:|")
    }

    fn count(&mut self, name: &str, real: usize, made: usize) -> fmt::Result {
        writeln!(self.0, "| {name} | {real} | {made} | {} |", ratio(real as f64, made as f64))
    }

    /// Shares of one, as hundredths.
    fn share(&mut self, name: &str, real: f64, made: f64) -> fmt::Result {
        writeln!(self.0, "| {name} | {:.2} % | {:.2} % | {} |", 100.0 * real, 100.0 * made, ratio(real, made))
    }
}

fn ratio(real: f64, made: f64) -> String {
    if real > 0.0 { format!("{:.2}", made / real) } else { "-".into() }
}

fn compare<K: Key>(page: &mut String, title: &str, real: &[Route<K>], chunk_bits: &[u8]) -> Outcome {
    let family = if K::FAMILY == Family::Ipv6 { TableSpec::ipv6() } else { TableSpec::ipv4() };
    let spec = TableSpec { routes: real.len(), ..family };
    let made = generate::<K>(&spec, &Profile::of::<K>())?;
    let (real, made) = (RouteSlice::new(real)?, RouteSlice::new(&made)?);
    let shapes = [shape(&real, chunk_bits), shape(&made, chunk_bits)];
    writeln!(page, "\n## {title}: {} routes", spec.routes)?;
    let mut lines = Lines(page);
    lines.head("Bytes of every structure")?;
    for algorithm in algorithms::<K>() {
        let [real, made] = [&real, &made].map(|routes| algorithm.build(routes, Limits::default()));
        match (real, made) {
            (Ok(real), Ok(made)) => {
                lines.count(algorithm.name, real.memory().lookup_bytes, made.memory().lookup_bytes)?;
            }
            (real, made) => {
                let said =
                    |outcome: Result<_, _>| outcome.err().map_or("built".into(), |error| format!("{error}"));
                writeln!(lines.0, "| {} | {} | {} | - |", algorithm.name, said(real), said(made))?;
            }
        }
    }
    by_seed::<K>(&mut lines, &spec, &real)?;
    ranges(&mut lines, &shapes)?;
    routes(&mut lines, &shapes)?;
    Ok(())
}

/// The ratio of the bytes for other seeds: how far one table speaks for all.
fn by_seed<K: Key>(lines: &mut Lines<'_>, spec: &TableSpec, real: &RouteSlice<'_, K>) -> Outcome {
    writeln!(
        lines.0,
        "\n### Ratio of the bytes by seed\n\n| | 1 | 2 | 3 | 4 | 5 |\n|---|---:|---:|---:|---:|---:|"
    )?;
    let tables: Vec<_> = (1..=5)
        .map(|seed| generate::<K>(&TableSpec { seed, ..*spec }, &Profile::of::<K>()))
        .collect::<Result<_, _>>()?;
    for algorithm in algorithms::<K>() {
        let bytes = |routes: &RouteSlice<'_, K>| {
            algorithm.build(routes, Limits::default()).map_or(0, |fib| fib.memory().lookup_bytes)
        };
        let of_real = bytes(real) as f64;
        write!(lines.0, "| {} |", algorithm.name)?;
        for table in &tables {
            write!(lines.0, " {} |", ratio(of_real, bytes(&RouteSlice::new(table)?) as f64))?;
        }
        writeln!(lines.0)?;
    }
    Ok(())
}

fn ranges(lines: &mut Lines<'_>, [real, made]: &[Shape; 2]) -> fmt::Result {
    lines.head("Ranges and chunks")?;
    lines.count("ranges", real.ranges, made.ranges)?;
    lines.count("ranges, equal neighbours merged", real.merged, made.merged)?;
    for (real, made) in real.chunks.iter().zip(&made.chunks) {
        let bits = real.bits;
        lines.count(&format!("divided /{bits}"), real.divided, made.divided)?;
        lines.count(&format!("mixed /{bits}"), real.mixed, made.mixed)?;
        lines.count(&format!("ranges in mixed /{bits}"), real.ranges, made.ranges)?;
    }
    Ok(())
}

fn routes(lines: &mut Lines<'_>, [real, made]: &[Shape; 2]) -> fmt::Result {
    let share = |part: usize, whole: usize| part as f64 / whole.max(1) as f64;
    lines.head("Lengths")?;
    for (len, (&(of_real, _), &(of_made, _))) in real.lengths.iter().zip(&made.lengths).enumerate() {
        if of_real + of_made > 0 {
            lines.share(&format!("/{len}"), share(of_real, real.routes), share(of_made, made.routes))?;
        }
    }
    lines.head("Nesting")?;
    lines.share("routes inside another", real.nested(), made.nested())?;
    for depth in 0..real.depths.len().max(made.depths.len()).min(10) {
        let at = |shape: &Shape| share(shape.depths.get(depth).copied().unwrap_or(0), shape.routes);
        lines.share(&format!("inside {depth} others"), at(real), at(made))?;
    }
    for (len, (&(all, of_real), &(all_made, of_made))) in real.lengths.iter().zip(&made.lengths).enumerate() {
        if share(all, real.routes) > 0.01 {
            lines.share(
                &format!("of /{len}, inside another"),
                share(of_real, all),
                share(of_made, all_made),
            )?;
        }
    }
    lines.head("Next hops")?;
    lines.count("next hops", real.popularity.len(), made.popularity.len())?;
    for count in [1, 8, 64] {
        lines.share(&format!("routes of the first {count}"), real.top(count), made.top(count))?;
    }
    let same = |shape: &Shape| shape.same_as_cover as f64 / (shape.nested() * shape.routes as f64);
    lines.share("nested routes with the cover's next hop", same(real), same(made))?;
    lines.share("space announced", real.announced, made.announced)
}

/// What can be made by name.
fn names(page: &mut String) -> fmt::Result {
    writeln!(page, "\n## Sizes by name\n\n| name | family | routes |\n|---|---|---:|")?;
    for preset in PRESETS {
        writeln!(page, "| {} | {} | {} |", preset.name, preset.family, preset.routes)?;
    }
    writeln!(page, "\n## Hostile tables\n\n| name | what | routes | next hops |\n|---|---|---:|---:|")?;
    for table in hostile::tables::<u32>() {
        let TableSpec { routes, next_hops, .. } = table.spec;
        writeln!(page, "| {} | {} | {routes} | {next_hops} |", table.name, table.summary)?;
    }
    writeln!(page, "\n## Traffic\n\n| name | what |\n|---|---|")?;
    for pattern in traffic::patterns::<u32>() {
        writeln!(page, "| {} | {} |", pattern.name, pattern.summary)?;
    }
    writeln!(page, "| mix:0 to mix:100 | so many keys in a hundred of match, the others of miss |")?;
    let reserved: Vec<String> = traffic::reserved::<u32>().iter().map(ToString::to_string).collect();
    writeln!(page, "\nNo pattern over the {} space has keys in {}.", Family::Ipv4, reserved.join(", "))
}
