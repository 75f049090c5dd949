//! What a user's program costs to build: three programs of a few lines, each in a folder and a target folder of its own, in a
//! release build with cargo's defaults. Bytes of code and lines of LLVM IR need no clock and are compared with the committed ones.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use serde::{Deserialize, Serialize};

use crate::programs::{Compiler, output, processor, root, run, target};
use crate::{End, Outcome};

/// How far a figure may be from the committed one: a change may raise it further only with a line in `reasons`.
const TOLERANCE_PERCENT: f64 = 5.0;

/// The programs: what they use, and their source.
const PROGRAMS: [(&str, &str); 3] = [
    ("table", include_str!("build_cost/table.rs")),
    ("map", include_str!("build_cost/map.rs")),
    ("engine", include_str!("build_cost/engine.rs")),
];

/// The committed figures.
#[derive(Serialize, Deserialize)]
struct Record {
    rustc: String,
    target: String,
    /// Lines of LLVM IR of the crate `fibula`, before any optimisation.
    llvm_lines: u64,
    programs: BTreeMap<String, Program>,
    /// The machine of the figures that take a clock.
    processor: String,
    /// Why a figure was raised.
    reasons: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Program {
    /// Bytes of code and constants: the column `text` of `size`.
    code_bytes: u64,
    /// Processor time of the whole build, downloads done.
    processor_seconds: f64,
    wall_seconds: f64,
    /// Of the largest process.
    peak_megabytes: u64,
}

fn file() -> PathBuf {
    root().join("records/build-cost.json")
}

fn measure() -> Outcome<Record> {
    let Compiler { rustc, target } = Compiler::this()?;
    let mut programs = BTreeMap::new();
    for (name, source) in PROGRAMS {
        let program = program(name, source)?;
        println!(
            "{name}: {} bytes of code, {:.1} s of processor time, {:.1} s, at most {} MB",
            program.code_bytes, program.processor_seconds, program.wall_seconds, program.peak_megabytes
        );
        programs.insert(name.to_owned(), program);
    }
    let llvm_lines = llvm_lines()?;
    println!("fibula: {llvm_lines} lines of LLVM IR");
    Ok(Record { rustc, target, llvm_lines, programs, processor: processor(), reasons: Vec::new() })
}

pub(crate) fn show() -> Outcome<End> {
    measure().map(|_| End::Good)
}

pub(crate) fn record() -> Outcome<End> {
    let mut record = measure()?;
    if let Ok(text) = fs::read_to_string(file()) {
        record.reasons = serde_json::from_str::<Record>(&text)?.reasons;
    }
    fs::write(file(), serde_json::to_string_pretty(&record)? + "\n")?;
    println!("recorded in {}; a figure that rose has its reason there, in 'reasons'", file().display());
    Ok(End::Good)
}

pub(crate) fn check() -> Outcome<End> {
    let before: Record = serde_json::from_str(&fs::read_to_string(file())?)?;
    let (here, there) = (Compiler::this()?, Compiler { rustc: before.rustc, target: before.target });
    if here != there {
        return Ok(End::Skipped(format!("this is {here}, and the figures were recorded with {there}")));
    }
    let now = measure()?;
    let mut figures = vec![("lines of LLVM IR of fibula", before.llvm_lines, now.llvm_lines)];
    for (name, _) in PROGRAMS {
        let bytes =
            |record: &BTreeMap<String, Program>| record.get(name).map_or(0, |program| program.code_bytes);
        figures.push((name, bytes(&before.programs), bytes(&now.programs)));
    }
    let mut beyond = 0;
    for (name, before, now) in figures {
        let change = 100.0 * (now as f64 - before as f64) / (before as f64).max(1.0);
        let verdict = if change.abs() > TOLERANCE_PERCENT { "CHANGED" } else { "ok" };
        println!("{name}: {now}, recorded {before}, {change:+.2} %, {verdict}");
        beyond += usize::from(verdict != "ok");
    }
    if beyond > 0 {
        println!(
            "{beyond} beyond {TOLERANCE_PERCENT} %; where that is meant: cargo xtask build-cost --record, and the reason there"
        );
        return Ok(End::Differs);
    }
    Ok(End::Good)
}

/// Builds a program and runs it.
fn program(name: &str, source: &str) -> Outcome<Program> {
    let folder = target().join("build-cost").join(name);
    let fibula = root().join("crates/fibula").canonicalize()?;
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("src"))?;
    fs::write(folder.join("src/main.rs"), source)?;
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\nfibula = {{ path = {:?} }}\n\n[workspace]\n",
        fibula.display()
    );
    fs::write(folder.join("Cargo.toml"), manifest)?;
    run(cargo(&folder).args(["fetch", "--quiet"]))?;
    let (start, before) = (Instant::now(), usage()?);
    run(cargo(&folder).args(["build", "--quiet", "--release"]))?;
    let (wall, after) = (start.elapsed(), usage()?);
    let built = folder.join("target/release").join(name);
    output(&mut Command::new(&built))?;
    let size = output(Command::new("size").arg(&built))?;
    let code_bytes = size.lines().nth(1).and_then(|line| line.split_whitespace().next()?.parse().ok());
    let tenths = |seconds: f64| (seconds * 10.0).round() / 10.0;
    Ok(Program {
        code_bytes: code_bytes.ok_or("size says something else than it did")?,
        processor_seconds: tenths(after.0 - before.0),
        wall_seconds: tenths(wall.as_secs_f64()),
        peak_megabytes: after.1,
    })
}

/// Cargo in a folder, without what this build was told.
fn cargo(folder: &Path) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(folder).env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS");
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CARGO_PROFILE_") {
            command.env_remove(name);
        }
    }
    command
}

/// Returns the processor time of all that was started and has ended, in seconds, and the memory of the largest, in megabytes.
fn usage() -> Outcome<(f64, u64)> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok((seconds(usage.user_time()) + seconds(usage.system_time()), usage.max_rss() as u64 / 1024))
}

/// Counts as `cargo llvm-lines` does: instructions of all functions, before any optimisation.
fn llvm_lines() -> Outcome<u64> {
    let folder = target().join("build-cost/llvm");
    let _ = fs::remove_dir_all(&folder);
    let flags =
        "--emit=llvm-ir -Ccodegen-units=1 -Cno-prepopulate-passes -Cdebuginfo=0 -Cpasses=name-anon-globals";
    run(cargo(&root())
        .args(["rustc", "--quiet", "--release", "--package", "fibula", "--lib", "--target-dir"])
        .arg(&folder)
        .arg("--")
        .args(flags.split(' ')))?;
    let mut lines = 0;
    for entry in fs::read_dir(folder.join("release/deps"))? {
        let path = entry?.path();
        let is_ours = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("fibula"));
        if is_ours && path.extension().is_some_and(|extension| extension == "ll") {
            let text = fs::read_to_string(&path)?;
            lines +=
                text.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   ")).count() as u64;
        }
    }
    if lines == 0 { Err("rustc wrote no LLVM IR".into()) } else { Ok(lines) }
}
