//! `fibula bench --updates`: what changes cost.

use std::io::{self, Write};
use std::process::ExitCode;

use fibula::live::TableKey;
use fibula::net::{Change, IpPrefix, Prefix};
use fibula::rib::Rib;
use fibula_lab::bench::updates::{self, Part, UpdatePlan, UpdateRecord, UpdateRow};
use fibula_lab::bench::{FamilyInfo, Progress};
use fibula_workload::replay::{self, Step};

use super::args::BenchArgs;
use super::contestants::Selection;
use super::report;
use super::tables::{self, Tables};
use crate::failure::{Failure, code};
use crate::load::limits;
use crate::messages::Messages;
use crate::objects;
use crate::options::{FeedArgs, Format};
use crate::text::Grid;
use crate::width;

pub(super) fn run(
    args: &BenchArgs,
    mut tables: Tables,
    selection: &Selection,
    messages: Messages,
) -> Result<ExitCode, Failure> {
    let mut steps = Vec::new();
    if let (Some(trace), Some(table)) = (&args.trace, &args.source.table) {
        // The next hops of both have the same numbers only if they are read together.
        let feed = FeedArgs::default();
        (tables.ribs, steps) = crate::replay::best(
            &feed,
            std::slice::from_ref(table),
            std::slice::from_ref(trace),
            limits(None),
            messages,
        )?;
    }
    let (v4, v6) = split(&steps);
    let families = u32::from(!tables.ribs.v4.is_empty()) + u32::from(!tables.ribs.v6.is_empty());
    let plan = UpdatePlan {
        runs: args.runs as usize,
        seconds: f64::from(args.seconds) / f64::from(families.max(1)),
        build_routes: args.keys.map_or(UpdatePlan::default().build_routes, |keys| keys as usize),
        ..UpdatePlan::default()
    };
    let mut rows = measure(args, &plan, &tables.ribs.v4, &v4, selection, messages)?;
    rows.extend(measure(args, &plan, &tables.ribs.v6, &v6, selection, messages)?);

    let mut out = anstream::stdout().lock();
    match args.output.format() {
        Format::Text => text(&mut width::folded(&mut out), &rows)?,
        format => objects::write(&mut out, format, UpdateRow::COLUMNS, &report::records(&rows)?)?,
    }
    out.flush()?;
    for row in rows.iter().filter(|row| row.rival && row.wrong > 0) {
        messages.warning(format_args!("the rival {} gave wrong answers", row.algorithm));
    }
    if rows.iter().any(|row| !row.rival && row.wrong > 0) {
        messages.warning("there were wrong answers; no record is written");
        return Ok(code::NOTHING_FOUND.into());
    }
    if let Some(folder) = &args.record {
        let sizes = [size(&tables.ribs.v4), size(&tables.ribs.v6)].into_iter().flatten().collect();
        let mut record = UpdateRecord::with_sizes(&super::today(), &tables.name, sizes, plan, rows);
        record.recorded = args.trace.as_deref().map(tables::name);
        super::write_record(&record.path(folder), &record.json()?, messages)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the changes of each family.
fn split(steps: &[Step]) -> (Vec<Change<u32>>, Vec<Change<u128>>) {
    let (mut v4, mut v6) = (Vec::new(), Vec::new());
    for step in steps {
        match step.prefix {
            IpPrefix::V4(prefix) => v4.push(replay::change(prefix, step.next_hop)),
            IpPrefix::V6(prefix) => v6.push(replay::change(prefix, step.next_hop)),
        }
    }
    (v4, v6)
}

pub(super) fn size<K: TableKey>(rib: &Rib<K>) -> Option<FamilyInfo> {
    let mut next_hops: Vec<u32> = rib.iter().map(|route| route.next_hop.id()).collect();
    next_hops.sort_unstable();
    next_hops.dedup();
    let family = K::FAMILY.name().to_owned();
    (!rib.is_empty()).then(|| FamilyInfo { family, routes: rib.len(), next_hops: next_hops.len() })
}

fn measure<K: TableKey>(
    args: &BenchArgs,
    plan: &UpdatePlan,
    rib: &Rib<K>,
    trace: &[Change<K>],
    selection: &Selection,
    messages: Messages,
) -> Result<Vec<UpdateRow>, Failure>
where
    IpPrefix: From<Prefix<K>>,
{
    if rib.is_empty() {
        return Ok(Vec::new());
    }
    let mut contestants = selection.contestants::<K>();
    contestants.retain(|one| updates::takes_part(one) || args.algorithm.contains(&one.name));
    let bar = messages.steps(0);
    let mut show = |step: Progress<'_>| {
        bar.set_length(step.total as u64);
        bar.set_position(step.done as u64);
        bar.set_message(format!("{}, {} left", step.step, super::about(step.left)));
    };
    let rows = updates::run(plan, rib, trace, &contestants, &mut show);
    bar.finish_and_clear();
    rows.map_err(|error| Failure::BadInput(error.to_string()))
}

fn text(out: &mut dyn Write, rows: &[UpdateRow]) -> io::Result<()> {
    let mut grid =
        Grid::new(&["family", "structure", "update", "what", "measured", "interval", "built anew"])
            .right(&[4, 5, 6])
            .wide();
    for row in rows {
        let interval =
            row.low.zip(row.high).map_or(String::new(), |(low, high)| format!("{low:.2}-{high:.2}"));
        let error = || row.error.clone().unwrap_or_default();
        grid.row([
            report::title(&row.family).to_owned(),
            row.algorithm.clone(),
            if row.rival { "rival".to_owned() } else { row.update.clone() },
            what(row),
            row.median.map_or_else(error, |median| format!("{median:.3} {}", row.unit)),
            interval,
            row.rebuilt.to_string(),
        ]);
    }
    writeln!(out, "{}", grid.render())
}

/// Says what a row is about.
fn what(row: &UpdateRow) -> String {
    let at = row.at;
    match row.part {
        Part::Length => format!("a change of a /{at}"),
        Part::Batch => format!("a change, {at} a call"),
        Part::Trace => format!("a change of the trace, up to change {at}"),
        Part::Build => format!("building {at} routes"),
        Part::ReadersIdle => format!("lookups of {at} readers, without the writer"),
        Part::ReadersBeside => format!("lookups of {at} readers beside the writer"),
        Part::WriterBeside => format!("changes beside {at} readers"),
    }
}
