//! The instructions of a lookup by every engine, with the scalar and the AVX2 kernels under callgrind, and with those of NEON under
//! emulation, and those of a packet through the router, against the committed counts: a guard against slower code that needs no clock
//! and no quiet machine. Counts of another compiler differ, so under another than the recorded one it is skipped.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread;

use serde::{Deserialize, Serialize};

use crate::programs::{Compiler, output};
use crate::{End, Outcome};

mod counter;
mod subject;

pub(crate) use counter::Counter;
pub(crate) use subject::{LOOKUPS, NEON, ROUTER, Subject};

/// How far a count may be from the committed one.
const TOLERANCE_PERCENT: f64 = 2.0;

/// Two numbers of passes: all that is done before the passes is the same in both and cancels.
const PASSES: [u32; 2] = [1, 5];

/// The committed counts.
#[derive(Serialize, Deserialize)]
struct Counts {
    /// What compiled the counted program: another version gives other counts.
    rustc: String,
    target: String,
    /// Instructions a lookup, or a packet.
    instructions: BTreeMap<String, f64>,
}

fn committed(subject: &Subject) -> Outcome<Counts> {
    Ok(serde_json::from_str(&std::fs::read_to_string(subject.file())?)?)
}

/// Returns the compiler, with the target that is counted for.
fn compiler(counter: Counter) -> Outcome<Compiler> {
    let Compiler { rustc, target } = Compiler::this()?;
    Ok(Compiler { rustc, target: counter.target().map_or(target, str::to_owned) })
}

pub(crate) fn record(subject: &Subject) -> Outcome<End> {
    if let Some(why) = subject.counter.lacks() {
        return Ok(End::Skipped(why));
    }
    let Compiler { rustc, target } = compiler(subject.counter)?;
    let text = serde_json::to_string_pretty(&Counts { rustc, target, instructions: count(subject)? })?;
    std::fs::write(subject.file(), text + "\n")?;
    println!("recorded in {}", subject.file().display());
    Ok(End::Good)
}

pub(crate) fn compare(subject: &Subject) -> Outcome<End> {
    if let Some(why) = subject.counter.lacks() {
        return Ok(End::Skipped(why));
    }
    let (here, before) = (compiler(subject.counter)?, committed(subject)?);
    let there = Compiler { rustc: before.rustc, target: before.target };
    if here != there {
        return Ok(End::Skipped(format!("this is {here}, and the counts were recorded with {there}")));
    }
    let counted = count(subject)?;
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
            "{beyond} beyond {TOLERANCE_PERCENT} %; where that is meant: cargo xtask {} --record",
            subject.chore
        );
        return Ok(End::Differs);
    }
    Ok(End::Good)
}

/// Counts all of them, one process a core: counts do not feel each other.
fn count(subject: &Subject) -> Outcome<BTreeMap<String, f64>> {
    let counter = subject.counter;
    let program = counter.build(subject.package, subject.example)?;
    let list = output(counter.command(&program).arg("list"))?;
    let no_pass = format!("run {} 0", subject.case);
    let keys: f64 = output(counter.command(&program).args(no_pass.split(' ')))?.trim().parse()?;
    let wanted = list.lines().filter(|line| counter.counts(line)).map(str::to_owned);
    let left = Mutex::new(wanted.collect::<Vec<_>>());
    let counts = Mutex::new(BTreeMap::new());
    let work = || -> Result<(), String> {
        loop {
            let Some(line) = left.lock().map_err(|error| error.to_string())?.pop() else { return Ok(()) };
            let [few, many] =
                PASSES.map(|passes| counter.once(&program, &format!("run {line}"), passes, subject.within));
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
