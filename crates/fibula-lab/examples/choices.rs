//! Writes `auto/measured.csv`, the measurements from which the library chooses a structure, or checks that it is up to
//! date; and measures anew what it is made of.
//!
//! ```text
//! cargo run --release -p fibula-lab --example choices                          from records/choices/
//! cargo run -p fibula-lab --example choices -- --check
//! cargo run --release -p fibula-lab --example choices -- --record [PART ...]   measures this machine, a few minutes
//! cargo run --release -p fibula-lab --example choices -- --judge               how good the choices are
//! ```
//!
//! `--record` writes `records/choices/MACHINE.txt` after every table. With parts of names it measures only those tables and
//! keeps what the file has of the others.

mod page;

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use fibula::net::Family;
use fibula_lab::choice::{self, Judged, Recorded};
use fibula_workload::machine::Machine;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The record that the choices are made from. Those of other machines are judged.
const BASE: &str = "amd-epyc-zen-4";

fn main() -> Outcome<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("--record") => record(&arguments[1..]),
        Some("--judge") => judge(),
        _ => {
            let text = fs::read_to_string(folder().join(format!("{BASE}.txt")))?;
            let fitted = choice::fit(&text.parse()?);
            page::Arguments::read()?.finish(&[("crates/fibula/src/auto/measured.csv".to_owned(), fitted)])
        }
    }
}

fn folder() -> PathBuf {
    page::root().join("records/choices")
}

fn record(parts: &[String]) -> Outcome<ExitCode> {
    let machine = Machine::this();
    let path = folder().join(format!("{}.txt", machine.slug()));
    let l2_bytes = machine.caches.iter().find(|cache| cache.level == 2).map(|cache| cache.bytes as usize);
    let before = fs::read_to_string(&path).ok().map(|text| text.parse::<Recorded>()).transpose()?;
    let mut tables = before.map(|before| before.tables).unwrap_or_default();
    let machine = fibula::auto::Machine::measure(l2_bytes);
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
        fs::write(&path, Recorded { machine, tables: tables.clone() }.to_string())?;
    }
    println!("{}: {} tables", path.display(), tables.len());
    Ok(ExitCode::SUCCESS)
}

fn judge() -> Outcome<ExitCode> {
    for file in fs::read_dir(folder())? {
        let path = file?.path();
        let recorded: Recorded = fs::read_to_string(&path)?.parse()?;
        let judged = choice::judge(&recorded);
        for (is_held_out, part) in [(false, "fitted"), (true, "held out")] {
            let part_of: Vec<&Judged> =
                judged.iter().filter(|judged| judged.is_held_out == is_held_out).collect();
            let share = |most: f64| {
                let within = part_of.iter().filter(|judged| judged.loss <= most).count();
                100.0 * within as f64 / part_of.len().max(1) as f64
            };
            println!(
                "{}, {part}: {} choices, {:.1} % within 5 %, {:.1} % within 10 %",
                path.file_stem().unwrap_or_default().display(),
                part_of.len(),
                share(1.05),
                share(1.1)
            );
        }
        let mut bad: Vec<&Judged> = judged.iter().filter(|judged| judged.loss > 1.1).collect();
        bad.sort_by(|a, b| b.loss.total_cmp(&a.loss));
        for Judged { table, is_held_out, isa, batch, is_unlimited, chosen, best, loss } in bad {
            let part = if *is_held_out { "held out" } else { "fitted" };
            let limit = if *is_unlimited { "any bytes" } else { "default bytes" };
            println!("  {table} ({part}) {isa} {batch} {limit}: {chosen}, {best} is {loss:.2}x");
        }
    }
    Ok(ExitCode::SUCCESS)
}
