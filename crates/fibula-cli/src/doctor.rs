//! `fibula doctor`: the instruction sets, caches and memory of this machine, and anything slow on it.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use fibula::auto;
use fibula::simd::{Isa, Present};
use fibula_workload::machine::Machine;
use serde_json::json;

use crate::answer::AnswerArgs;
use crate::failure::Failure;
use crate::machine::{OPTIMISED, l2_bytes};
use crate::objects::{self, Object};
use crate::options::Format;
use crate::text::{Grid, bytes};

/// Check this machine: instruction sets, caches, huge pages, memory speed, and what is slow because of them
///
/// Takes about 50 ms. 'ok' is as fast as it gets here; 'slow' names the loss and the remedy.
#[derive(Debug, Args)]
#[command(after_help = "\
Output:
  text  a line for each check
  csv   check,state,finding

Exit codes:
  0  always: a slow machine is no failure
  2  wrong use

Examples:
  fibula doctor
  fibula doctor --json")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    output: AnswerArgs,
}

/// The result of one check.
struct MachineFinding {
    check: &'static str,
    is_slow: bool,
    text: String,
}

/// Slower than this in proportion to the recorded machine is worth a word.
const SLOW: f64 = 1.5;

pub(crate) fn run(args: &DoctorArgs) -> Result<ExitCode, Failure> {
    let findings = findings();
    let mut out = args.output.open([])?;
    match args.output.format() {
        Format::Text => {
            let mut grid = Grid::new(&["check", "state", "finding"]);
            for MachineFinding { check, is_slow, text } in &findings {
                grid.row([(*check).to_owned(), state(*is_slow).to_owned(), text.clone()]);
            }
            writeln!(out, "{}", grid.render())?;
        }
        format => {
            let record = |finding: &MachineFinding| {
                let MachineFinding { check, is_slow, text } = finding;
                let value = json!({ "check": check, "state": state(*is_slow), "finding": text });
                if let serde_json::Value::Object(record) = value { record } else { Object::new() }
            };
            let records: Vec<Object> = findings.iter().map(record).collect();
            objects::write(&mut out, format, &["check", "state", "finding"], &records)?;
        }
    }
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn state(is_slow: bool) -> &'static str {
    if is_slow { "slow" } else { "ok" }
}

fn findings() -> Vec<MachineFinding> {
    let machine = Machine::this();
    let mut findings =
        vec![build(), instruction_sets(), cores(&machine), caches(&machine), huge_pages(&machine)];
    findings.extend(memory());
    findings.push(formats());
    findings
}

fn build() -> MachineFinding {
    let text = if OPTIMISED {
        "an optimised build".to_owned()
    } else {
        "a build for debugging, several times slower: cargo install --locked --path crates/fibula-cli --bin fibula"
            .to_owned()
    };
    MachineFinding { check: "build", is_slow: !OPTIMISED, text }
}

fn formats() -> MachineFinding {
    let text = if cfg!(feature = "parquet") {
        "Parquet is read and written"
    } else {
        "no Parquet in this build; the package 'fibula' has it, or: cargo install --locked --path crates/fibula-cli --bin fibula --features parquet"
    };
    MachineFinding { check: "formats", is_slow: false, text: text.to_owned() }
}

fn instruction_sets() -> MachineFinding {
    let here: Vec<&str> = Present::all().map(|present| present.isa().name()).collect();
    let best = here.last().copied().unwrap_or("scalar");
    let forced = std::env::var("FIBULA_ISA").ok().filter(|name| !name.is_empty());
    let (is_slow, more) = match &forced {
        Some(name) if name != best => (true, format!("; FIBULA_ISA makes lookups use {name}: unset it")),
        _ if here.len() == 1 => (true, "; batches of addresses are looked up one by one".to_owned()),
        _ => (false, String::new()),
    };
    let lacking: Vec<&str> =
        Isa::ALL.iter().map(|isa| isa.name()).filter(|name| !here.contains(name)).collect();
    let lacking =
        if lacking.is_empty() { String::new() } else { format!(" (not here: {})", lacking.join(", ")) };
    MachineFinding { check: "instruction sets", is_slow, text: format!("{}{lacking}{more}", here.join(", ")) }
}

fn cores(machine: &Machine) -> MachineFinding {
    let usable = std::thread::available_parallelism().map_or(1, usize::from);
    let is_slow = usable < machine.cores;
    let more = if is_slow { "; a limit of the container or of taskset withholds the others" } else { "" };
    let text =
        format!("{}, {} logical processors, {usable} of them usable{more}", machine.cpu, machine.cores);
    MachineFinding { check: "processor", is_slow, text }
}

fn caches(machine: &Machine) -> MachineFinding {
    let cache = |cache: &fibula_workload::machine::Cache| {
        format!(
            "L{} {} {}",
            cache.level,
            cache.kind,
            bytes(usize::try_from(cache.bytes).unwrap_or(usize::MAX))
        )
    };
    let all: Vec<String> = machine.caches.iter().map(cache).collect();
    let text = if all.is_empty() {
        "not reported by the system; the choice of engines assumes those of the recorded machine".to_owned()
    } else {
        all.join(", ")
    };
    MachineFinding { check: "caches", is_slow: all.is_empty(), text }
}

fn huge_pages(machine: &Machine) -> MachineFinding {
    let (is_slow, text) = match machine.huge_pages.as_deref() {
        Some("never") => (
            true,
            "never: large tables miss the TLB; as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"
                .to_owned(),
        ),
        Some(setting) => (false, format!("{setting}: large tables get them")),
        None => (true, "not reported by the system; large tables use pages of the usual size".to_owned()),
    };
    MachineFinding { check: "huge pages", is_slow, text }
}

/// Measures this machine and compares it with the recorded one.
fn memory() -> [MachineFinding; 2] {
    let (here, recorded) = (auto::Machine::measure(l2_bytes()), auto::Machine::recorded());
    let compare = |check, here: f64, recorded: f64, what: &str| {
        let ratio = here / recorded;
        let is_slow = ratio > SLOW;
        let more = if is_slow { "; is something else running here?" } else { "" };
        let text = format!(
            "{here:.2} ns {what}, {ratio:.1} times the machine that the choice was recorded on{more}"
        );
        MachineFinding { check, is_slow, text }
    };
    let large = 64e6;
    [
        compare("arithmetic", here.step_ns(), recorded.step_ns(), "a step"),
        compare("memory", here.load_ns(large), recorded.load_ns(large), "a load from 64 MB"),
    ]
}
