//! `fibula table stats`: figures of a table.

use std::io::{self, Write};
use std::process::ExitCode;

use fibula_feed::mrt::Skipped;
use fibula_feed::{LoadedRoutes, Report};
use serde_json::{Value, json};

use super::args::StatsArgs;
use super::figures::{FamilyFigures, facts, figures, percent};
use super::page;
use crate::failure::{Failure, code};
use crate::load::load_feeds;
use crate::messages::Messages;
use crate::objects::{self, Object};
use crate::options::Format;
use crate::output::Output;
use crate::text::{Grid, bold, dim, thousands};

/// Characters of the longest bar.
const BAR: usize = 50;

const COLUMNS: &[&str] = &["family", "length", "routes", "nested"];

pub(super) fn run(args: &StatsArgs) -> Result<ExitCode, Failure> {
    let files = args.files.paths()?;
    let page = args.html.as_deref().map(|path| Output::new(Some(path), &files)).transpose()?;
    let mut out = args.output.open(&files)?;
    let table = load_feeds(&files, &args.feed, Messages::new(args.quiet.quiet))?;
    let families = [figures(&table.ribs.v4, &table.next_hops), figures(&table.ribs.v6, &table.next_hops)];
    let families: Vec<FamilyFigures> =
        families.into_iter().filter(|figures| figures.shape.routes > 0).collect();
    // The values that the routes lead to.
    let what = match &args.feed.value[..] {
        [] => "Next hops".to_owned(),
        values => values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
    };
    if let Some(output) = page {
        let names: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
        let text = page::page(&names.join(", "), &families, &what, &losses(&table));
        output.write(|out| Ok(out.write_all(text.as_bytes())?))?;
    }
    match args.output.format() {
        Format::Text => {
            families.iter().try_for_each(|figures| write_text(&mut out, figures, &what))?;
        }
        Format::Csv => {
            let rows: Vec<Object> = families.iter().flat_map(lengths).collect();
            objects::write(&mut out, Format::Csv, COLUMNS, &rows)?;
        }
        Format::Json => {
            let value = json!({ "feeds": feeds(&table), "families": objects(&families) });
            serde_json::to_writer_pretty(&mut out, &value).map_err(io::Error::from)?;
            writeln!(out)?;
        }
        Format::JsonLine => {
            for object in objects(&families) {
                writeln!(out, "{object}")?;
            }
        }
    }
    out.finish()?;
    Ok(if families.is_empty() { code::NOTHING_FOUND.into() } else { ExitCode::SUCCESS })
}

fn feeds(table: &LoadedRoutes) -> Vec<Value> {
    let feed = |report: &Report| {
        let chosen = |slot: usize| {
            let chosen = report.peers.iter().filter(move |counts| counts.chosen[slot]);
            chosen
                .filter(move |counts| counts.announced[slot] > 0)
                .map(|counts| counts.peer.address.to_string())
        };
        json!({
            "name": &*report.name,
            "compression": report.compression.to_string(),
            "lines": report.lines,
            "form": report.form.map(|form| form.name),
            "bad": report.bad_lines,
            "left_out": report.bad_lines,
            "lost_bytes": report.lost_bytes,
            "complete": report.is_complete(),
            "skipped": skipped(report),
            "truncated": report.truncated.as_ref().map(ToString::to_string),
            "peers": report.peers.len(),
            "ipv4_peers": chosen(0).collect::<Vec<_>>(),
            "ipv6_peers": chosen(1).collect::<Vec<_>>(),
        })
    };
    table.reports.iter().map(feed).collect()
}

/// Says which feeds were not read whole.
fn losses(table: &LoadedRoutes) -> Vec<String> {
    let lost = table.reports.iter().filter(|report| !report.is_complete());
    let text = |report: &Report| {
        let bad = thousands(report.bad_lines);
        format!(
            "{} was not read whole: {bad} bad lines or records, {} bytes lost.",
            report.name,
            thousands(report.lost_bytes)
        )
    };
    lost.map(text).collect()
}

/// Returns the entries of a feed that were recognised and left out, by kind.
fn skipped(report: &Report) -> Vec<Value> {
    let kind = |(kind, &count): (&Skipped, &u64)| json!({ "kind": kind.name(), "count": count, "loses_routes": kind.loses_routes() });
    report.skipped.iter().map(kind).collect()
}

fn lengths(figures: &FamilyFigures) -> impl Iterator<Item = Object> {
    let family = figures.family.name();
    let lines = figures.shape.lengths.iter().enumerate().filter(|(_, line)| line.0 > 0);
    lines.map(move |(length, &(routes, nested))| {
        let value = json!({ "family": family, "length": length, "routes": routes, "nested": nested });
        if let Value::Object(record) = value { record } else { Object::new() }
    })
}

fn objects(families: &[FamilyFigures]) -> Vec<Value> {
    let object = |figures: &FamilyFigures| {
        let shape = &figures.shape;
        let lengths = lengths(figures).map(|mut line| {
            line.shift_remove("family");
            line
        });
        json!({
            "family": figures.family.name(),
            "routes": shape.routes,
            "next_hops": shape.popularity.len(),
            "announced_share": shape.announced,
            "lengths": lengths.collect::<Vec<_>>(),
            "depths": shape.depths,
            "same_as_cover": shape.same_as_cover,
            "ranges": shape.ranges,
            "merged_ranges": shape.merged,
            "memory_bytes": figures.memory_bytes,
            "top": figures.top.iter().map(|(next_hop, routes)| json!({ "next_hop": next_hop, "routes": routes }))
                .collect::<Vec<_>>(),
        })
    };
    families.iter().map(object).collect()
}

fn write_text(out: &mut dyn Write, figures: &FamilyFigures, what: &str) -> io::Result<()> {
    let FamilyFigures { family, shape, top, .. } = figures;
    let (bold, dim) = (bold(), dim());
    writeln!(out, "{bold}{family}{bold:#}")?;
    let mut grid = Grid::bare();
    for (name, value) in facts(figures) {
        grid.row([name.to_owned(), value]);
    }
    writeln!(out, "{}\n", grid.render())?;

    writeln!(out, "{bold}Prefix lengths{bold:#} {dim}(routes, nested routes){dim:#}")?;
    let longest = shape.lengths.iter().map(|line| line.0).max().unwrap_or(1);
    let mut grid = Grid::bare();
    for (length, &(routes, nested)) in shape.lengths.iter().enumerate().filter(|(_, line)| line.0 > 0) {
        // Every length with routes has a bar; the smallest is a dot.
        let bar = match routes * BAR / longest {
            0 => "·".to_owned(),
            len => "█".repeat(len),
        };
        grid.row([format!("/{length}"), thousands(routes), thousands(nested), bar]);
    }
    writeln!(out, "{}\n", grid.right(&[0, 1, 2]).render())?;

    writeln!(out, "{bold}{what}{bold:#} {dim}(most frequent first){dim:#}")?;
    let mut grid = Grid::bare();
    for (next_hop, routes) in top {
        grid.row([next_hop.clone(), thousands(*routes), percent(*routes, shape.routes)]);
    }
    writeln!(out, "{}\n", grid.right(&[1, 2]).render())
}
