//! The instructions of a lookup by every engine, with the scalar and the AVX2 kernels, under callgrind, against the committed
//! counts: a guard against slower code that needs no clock and no quiet machine. Counts of another compiler differ, so under another
//! than the recorded one it is skipped.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use serde::{Deserialize, Serialize};

use crate::programs::{Compiler, is_there, output, root, run, target};
use crate::{End, Outcome};

/// How far a count may be from the committed one.
const TOLERANCE_PERCENT: f64 = 2.0;

/// Two numbers of passes: start, build and key making are the same in both and cancel.
const PASSES: [u32; 2] = [1, 5];

/// The committed counts.
#[derive(Serialize, Deserialize)]
struct Counts {
    /// What compiled the counted program: another version gives other counts.
    rustc: String,
    target: String,
    /// Instructions a lookup.
    instructions: BTreeMap<String, f64>,
}

fn file() -> PathBuf {
    root().join("records/instructions.json")
}

fn committed() -> Outcome<Counts> {
    Ok(serde_json::from_str(&std::fs::read_to_string(file())?)?)
}

pub(crate) fn record() -> Outcome<End> {
    if !is_there("valgrind") {
        return Ok(End::Skipped("no valgrind".to_owned()));
    }
    let Compiler { rustc, target } = Compiler::this()?;
    let text = serde_json::to_string_pretty(&Counts { rustc, target, instructions: count()? })?;
    std::fs::write(file(), text + "\n")?;
    println!("recorded in {}", file().display());
    Ok(End::Good)
}

pub(crate) fn compare() -> Outcome<End> {
    if !is_there("valgrind") {
        return Ok(End::Skipped("no valgrind".to_owned()));
    }
    let (here, before) = (Compiler::this()?, committed()?);
    let there = Compiler { rustc: before.rustc, target: before.target };
    if here != there {
        return Ok(End::Skipped(format!("this is {here}, and the counts were recorded with {there}")));
    }
    let counted = count()?;
    let mut beyond = 0;
    for (name, count) in &counted {
        match before.instructions.get(name) {
            None => {
                println!("{name}: {count:.2}, NOT RECORDED");
                beyond += 1;
            }
            Some(before) => {
                let change = 100.0 * (count - before) / before;
                let verdict = if change.abs() > TOLERANCE_PERCENT { "CHANGED" } else { "ok" };
                println!("{name}: {count:.2}, recorded {before:.2}, {change:+.2} %, {verdict}");
                beyond += usize::from(verdict != "ok");
            }
        }
    }
    for name in before.instructions.keys().filter(|name| !counted.contains_key(*name)) {
        if name.contains(" avx2 ") && !counted.keys().any(|name| name.contains(" avx2 ")) {
            println!("SKIPPED {name}: not on this CPU");
            continue;
        }
        println!("{name}: recorded, and no longer counted");
        beyond += 1;
    }
    if beyond > 0 {
        println!(
            "{beyond} beyond {TOLERANCE_PERCENT} %; where that is meant: cargo xtask instructions --record"
        );
        return Ok(End::Differs);
    }
    Ok(End::Good)
}

/// Counts all of them, one process a core: counts do not feel each other.
fn count() -> Outcome<BTreeMap<String, f64>> {
    let build =
        ["build", "--quiet", "--profile", "counts", "--package", "fibula-published", "--example", "lookups"];
    run(Command::new("cargo").args(build).current_dir(root()))?;
    let program = target().join("counts/examples/lookups");
    let list = output(Command::new(&program).arg("list"))?;
    let keys: f64 =
        output(Command::new(&program).args("run ipv4 binary-trie scalar 1 0".split(' ')))?.trim().parse()?;
    let left = Mutex::new(list.lines().map(str::to_owned).collect::<Vec<_>>());
    let counts = Mutex::new(BTreeMap::new());
    let work = || -> Result<(), String> {
        loop {
            let Some(line) = left.lock().map_err(|error| error.to_string())?.pop() else { return Ok(()) };
            let [few, many] = PASSES.map(|passes| once(&program, &format!("run {line}"), passes));
            let per_key = (many? - few?) as f64 / (f64::from(PASSES[1] - PASSES[0]) * keys);
            counts.lock().map_err(|error| error.to_string())?.insert(line, (1e3 * per_key).round() / 1e3);
        }
    };
    thread::scope(|scope| {
        let count = thread::available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|_| Err("a thread panicked".into())))
    })?;
    Ok(counts.into_inner().map_err(|error| error.to_string())?)
}

/// Returns the instructions of a whole run.
pub(crate) fn once(program: &Path, line: &str, passes: u32) -> Result<u64, String> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program);
    command.args(line.split(' ')).arg(passes.to_string()).stdout(Stdio::null()).stderr(Stdio::piped());
    let output = command.output().map_err(|error| format!("valgrind: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let collected =
        text.lines().find(|line| line.contains("Collected")).and_then(|line| line.rsplit(' ').next());
    collected.and_then(|count| count.parse().ok()).ok_or_else(|| format!("{line}: no count in: {text}"))
}
