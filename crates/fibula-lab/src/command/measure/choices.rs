//! Measures the rates by which the library chooses an engine, or judges the choices.
//!
//! Writes `records/choices/MACHINE.txt` after every table. With parts of names it measures only those tables and keeps
//! the rest of the file.

use std::fs;
use std::path::PathBuf;

use fibula::net::Family;
use fibula::simd::Present;
use fibula_workload::calibrate;
use fibula_workload::machine::Machine;

use super::Outcome;
use crate::choice::{self, JudgedChoice, MachineRecord};
use crate::command::figures::root;

fn folder() -> PathBuf {
    root().join("records/choices")
}

/// Tables that are measured between two calibrations that are kept.
const TABLES_A_CALIBRATION: usize = 6;

/// Calibrates this machine `count` times, and puts the results in the place of the record's calibrations. Tables stay as they are.
pub(super) fn calibrate_again(count: usize) -> Outcome {
    let machine = Machine::this();
    let path = folder().join(format!("{}.txt", machine.slug()));
    let mut record: MachineRecord = fs::read_to_string(&path)?.parse()?;
    let sets: Vec<Present> = Present::all().collect();
    record.calibrations = (0..count).map(|_| calibrate(machine.l2_bytes(), &sets)).collect();
    record.machine =
        record.calibrations.iter().fold(record.machine.without_rates(), |least, now| least.least(*now));
    fs::write(&path, record.to_string())?;
    println!("{}: {count} calibrations", path.display());
    Ok(())
}

pub(super) fn record(parts: &[String]) -> Outcome {
    let machine = Machine::this();
    let path = folder().join(format!("{}.txt", machine.slug()));
    let sets: Vec<Present> = Present::all().collect();
    let calibrate = || calibrate(machine.l2_bytes(), &sets);
    // A whole record replaces one that can no longer be read.
    let before = match fs::read_to_string(&path) {
        Ok(text) if !parts.is_empty() => Some(text.parse::<MachineRecord>()?),
        _ => None,
    };
    let MachineRecord { machine: mut calibrated, mut calibrations, mut tables } =
        before.unwrap_or_else(|| {
            let machine = calibrate();
            MachineRecord { machine, calibrations: vec![machine], tables: Vec::new() }
        });
    fs::create_dir_all(folder())?;
    let plans: Vec<_> = [Family::Ipv4, Family::Ipv6].into_iter().flat_map(choice::tables).collect();
    let wanted = |name: &str| parts.is_empty() || parts.iter().any(|part| name.contains(&**part));
    for (at, plan) in plans.iter().enumerate().filter(|(_, plan)| wanted(&plan.name)) {
        eprintln!("{} of {}: {}", at + 1, plans.len(), plan.name);
        let table = match plan.family {
            Family::Ipv6 => choice::measure::<u128>(plan)?,
            _ => choice::measure::<u32>(plan)?,
        };
        tables.retain(|before| before.name != table.name);
        tables.push(table);
        let place = |name: &str| plans.iter().position(|plan| plan.name == name);
        tables.sort_by_key(|table| place(&table.name));
        tables.retain(|table| place(&table.name).is_some());
        let now = calibrate();
        calibrated = calibrated.least(now);
        if parts.is_empty() && at % TABLES_A_CALIBRATION == 0 {
            calibrations.push(now);
        }
        let record =
            MachineRecord { machine: calibrated, calibrations: calibrations.clone(), tables: tables.clone() };
        fs::write(&path, record.to_string())?;
    }
    println!("{}: {} tables", path.display(), tables.len());
    Ok(())
}

/// Returns the percentage of choices that cost at most this factor.
fn share(judged: &[&JudgedChoice], most: f64) -> f64 {
    100.0 * judged.iter().filter(|judged| judged.loss <= most).count() as f64 / judged.len().max(1) as f64
}

pub(super) fn judge() -> Outcome {
    for file in fs::read_dir(folder())? {
        let path = file?.path();
        let recorded: MachineRecord = fs::read_to_string(&path)?.parse()?;
        let judged = choice::judge(&recorded, &recorded.machine);
        for (number, calibration) in recorded.calibrations.iter().enumerate() {
            let judged = choice::judge(&recorded, calibration);
            let held_out: Vec<&JudgedChoice> = judged.iter().filter(|judged| judged.is_held_out).collect();
            let [tenth, third] = [1.1, 1.3].map(|most| share(&held_out, most));
            println!("calibration {number}, held out: {tenth:.1} % within 10 %, {third:.1} % within 30 %");
        }
        for (is_held_out, part) in [(false, "fitted"), (true, "held out")] {
            let part_of: Vec<&JudgedChoice> =
                judged.iter().filter(|judged| judged.is_held_out == is_held_out).collect();
            println!(
                "{}, {part}: {} choices, {:.1} % within 5 %, {:.1} % within 10 %",
                path.file_stem().unwrap_or_default().display(),
                part_of.len(),
                share(&part_of, 1.05),
                share(&part_of, 1.1)
            );
        }
        let mut bad: Vec<&JudgedChoice> = judged.iter().filter(|judged| judged.loss > 1.1).collect();
        bad.sort_by(|a, b| b.loss.total_cmp(&a.loss));
        for JudgedChoice { table, is_held_out, isa, batch, is_unlimited, chosen, best, loss } in bad {
            let part = if *is_held_out { "held out" } else { "fitted" };
            let limit = if *is_unlimited { "any bytes" } else { "default bytes" };
            println!("  {table} ({part}) {isa} {batch} {limit}: {chosen}, {best} is {loss:.2}x");
        }
    }
    Ok(())
}
