//! `fibula-lab device`: lookups on coprocessors, and shared with them.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use fibula::live::TableKey;
use fibula::rib::Rib;
use fibula_cli::plumbing::{Failure, Format, Grid, Messages, code, folded, write_objects};
use fibula_gpu::device::{self, Device};
use fibula_gpu::engine;

use super::coprocessor::Gpu;
use super::device_args::DeviceArgs;
use super::options::or;
use super::recorded::{show, sizes, today, write_record};
use super::report;
use crate::bench::Progress;
use crate::bench::device::{DeviceForm, DevicePlan, DeviceRecord, DeviceRow, run as measure_all};

/// Every device that is there.
const ALL: &str = "all";

pub(super) fn run(args: &DeviceArgs) -> Result<ExitCode, Failure> {
    let messages = Messages::new(args.quiet.quiet);
    args.isa.force()?;
    for name in &args.structures.engine {
        // Variants begin with the name of their engine.
        if !engine::names().any(|known| name.starts_with(known)) {
            let known: Vec<_> = engine::names().collect();
            return Err(Failure::WrongUse(format!(
                "no device looks up in '{name}'; there are: {}",
                known.join(", ")
            )));
        }
    }
    let tables = args.table.load(messages)?;
    let devices = devices(args.device.as_deref().unwrap_or(ALL), messages)?;
    let plan = plan(args, devices.len() as u32 * tables.families().max(1));
    let mut rows = Vec::new();
    for device in &devices {
        let facts = device.facts();
        messages.note(facts);
        if facts.is_processor {
            messages.note(format_args!(
                "{} is the CPU itself: its rates show that lookups work, but do not measure a coprocessor",
                facts.id
            ));
        }
        rows.extend(measure(&plan, args, &tables.ribs.v4, device, messages)?);
        rows.extend(measure(&plan, args, &tables.ribs.v6, device, messages)?);
    }
    if rows.is_empty() {
        return Err(Failure::WrongUse("the table has no route of the family of this engine".to_owned()));
    }
    if let Some(error) = rows[0].error.as_ref().filter(|_| rows.iter().all(|row| row.error.is_some())) {
        return Err(Failure::NotAvailable(format!("{}: {error}", rows[0].device)));
    }
    let mut out = anstream::stdout().lock();
    match args.output.format() {
        Format::Text => text(&mut folded(&mut out), &rows)?,
        format => write_objects(&mut out, format, DeviceRow::COLUMNS, &report::records(&rows)?)?,
    }
    out.flush()?;
    if rows.iter().any(|row| row.wrong > 0) {
        messages.warning("there were wrong answers; no record is written");
        return Ok(code::NOTHING_FOUND.into());
    }
    if let Some(folder) = &args.record {
        let record = DeviceRecord::with_sizes(&today(), &tables.name, sizes(&tables.ribs), plan, rows);
        write_record(&record.path(folder), &record.json()?, messages)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the device of this name; or all, without the processor itself where there is another.
fn devices(name: &str, messages: Messages) -> Result<Vec<Arc<dyn Device>>, Failure> {
    if name != ALL {
        let found = device::find(name).map_err(|error| Failure::NotAvailable(error.to_string()))?;
        return Ok(vec![found.into()]);
    }
    let (mut devices, absent) = device::all();
    for line in &absent {
        messages.note(line);
    }
    if devices.iter().any(|device| !device.facts().is_processor) {
        devices.retain(|device| !device.facts().is_processor);
    }
    if devices.is_empty() {
        return Err(Failure::NotAvailable(format!("no coprocessor here ({})", absent.join("; "))));
    }
    Ok(devices.into_iter().map(Arc::from).collect())
}

fn plan(args: &DeviceArgs, parts: u32) -> DevicePlan {
    let default = DevicePlan::default();
    DevicePlan {
        buffers: or(&args.buffer, default.buffers),
        traffic: if args.traffic.is_empty() { default.traffic } else { args.traffic.clone() },
        threads: args.threads.map_or(default.threads, |threads| threads as usize),
        keys: args.keys.map_or(default.keys, |keys| keys as usize),
        runs: args.effort.runs as usize,
        seconds: args.effort.seconds_of(parts),
        ..default
    }
}

fn measure<K: TableKey>(
    plan: &DevicePlan,
    args: &DeviceArgs,
    rib: &Rib<K>,
    device: &Arc<dyn Device>,
    messages: Messages,
) -> Result<Vec<DeviceRow>, Failure> {
    if rib.is_empty() {
        return Ok(Vec::new());
    }
    let named = args.structures.engine.iter().map(String::as_str);
    let chosen: Vec<_> = match args.structures.engine.is_empty() {
        true => engine::names().filter_map(|name| fibula_published::find::<K>(name).ok()).collect(),
        false => named.filter_map(|name| fibula_published::find::<K>(name).ok()).collect(),
    };
    if chosen.is_empty() {
        return Ok(Vec::new());
    }
    let bar = messages.steps(0);
    let mut show = |step: Progress<'_>| show(&bar, &step);
    let rows = measure_all(plan, rib, &chosen, &Gpu(Arc::clone(device)), &mut show);
    bar.finish_and_clear();
    Ok(rows?)
}

/// A table for each device, family and kind of traffic.
fn text(out: &mut impl Write, rows: &[DeviceRow]) -> io::Result<()> {
    let group = |row: &DeviceRow| (row.device.clone(), row.family.clone(), row.traffic.clone());
    let mut groups: Vec<_> = rows.iter().map(group).collect();
    groups.sort();
    groups.dedup();
    for (number, of) in groups.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        let (device, family, traffic) = of;
        writeln!(
            out,
            "{device}, {family}, {traffic}: million lookups a second, transfers included unless resident; the ratio is to the processor alone"
        )?;
        let mut grid =
            Grid::new(&["engine", "who", "buffer", "share", "M/s", "ratio", ""]).right(&[2, 3, 4, 5]);
        for row in rows.iter().filter(|row| group(row) == *of) {
            let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.1}"));
            grid.row([
                row.engine.clone(),
                row.form.name().to_owned(),
                if row.form == DeviceForm::Processor { String::new() } else { row.batch.to_string() },
                row.share.map_or(String::new(), |share| format!("{:.0} %", 100.0 * share)),
                number(row.mlps_median),
                row.over_processor.map_or(String::new(), |ratio| format!("{ratio:.2}")),
                row.error.as_deref().map_or(String::new(), |error| format!("missing: {error}")),
            ]);
        }
        writeln!(out, "{}", grid.render())?;
    }
    Ok(())
}
