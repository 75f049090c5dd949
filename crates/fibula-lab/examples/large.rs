//! Loads a table of any size, compiles it and saves it, as `fibula compile` does, with the time and the memory of each step:
//! `large TABLE [OUTPUT]`.
//!
//! Memory is the most that the process ever had (`VmHWM`, Linux), times are of the processor and of the clock.

use std::error::Error;
use std::fs;
use std::time::Instant;

use fibula::auto;
use fibula::file::{self, Contents, Half};
use fibula::memory::Limits;
use fibula_feed::{LoadOptions, Loader};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let table = arguments.next().ok_or("usage: large TABLE [OUTPUT]")?;
    let output =
        arguments.next().unwrap_or_else(|| std::env::temp_dir().join("large.fibula").display().to_string());
    let mut steps = Steps::new();
    let mut options = LoadOptions::default();
    options.threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let table = Loader::new(options).load(table.as_str())?;
    let (v4, v6) = (&table.ribs.v4, &table.ribs.v6);
    steps.end(&format!("{} IPv4 and {} IPv6 routes loaded", v4.len(), v6.len()));
    let saved = |algorithm: &fibula::fib::registry::Algorithm<u32>| algorithm.is_saved();
    let workload = auto::Workload::default().with_table(v4);
    let ranked = auto::rank::<u32>(&workload).into_iter().map(|choice| choice.algorithm);
    let mut fib4 = None;
    for algorithm in ranked.filter(saved).filter(|_| !v4.is_empty()) {
        match algorithm.build(v4, Limits::default()) {
            Ok(fib) => {
                steps.end(&format!("{} built, {} bytes", algorithm.name, fib.memory().lookup_bytes));
                fib4 = Some(fib);
                break;
            }
            Err(error) => println!("{}: {error}", algorithm.name),
        }
    }
    let mut fib6 = None;
    if !v6.is_empty() {
        let fib = fibula::fib::registry::find::<u128>("dir-btree")?.build(v6, Limits::default())?;
        steps.end(&format!("dir-btree built, {} bytes", fib.memory().lookup_bytes));
        fib6 = Some(fib);
    }
    let contents = Contents {
        v4: Half { fib: fib4.as_deref(), routes: fib4.is_some().then_some(v4 as _) },
        v6: Half { fib: fib6.as_deref(), routes: fib6.is_some().then_some(v6 as _) },
        values: table.next_hops.iter().map(|(id, label)| (id, label.to_string().into_bytes())).collect(),
    };
    file::save(&output, &contents)?;
    steps.end(&format!("saved, {} bytes", fs::metadata(&output)?.len()));
    Ok(())
}

/// Time and memory, step by step.
struct Steps {
    clock: Instant,
    processor: f64,
}

impl Steps {
    fn new() -> Self {
        Self { clock: Instant::now(), processor: processor() }
    }

    fn end(&mut self, what: &str) {
        let (clock, now) = (self.clock.elapsed().as_secs_f64(), processor());
        println!(
            "{:6.2} s, {:6.2} s of the processor, at most {:4} MB so far: {what}",
            clock,
            now - self.processor,
            status("VmHWM:") >> 10
        );
        (self.clock, self.processor) = (Instant::now(), now);
    }
}

/// Returns the seconds of the processor, of all threads.
fn processor() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: f64 = fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
    ticks / 100.0
}

/// Returns a line of the status, in KiB.
fn status(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()).and_then(|number| number.parse().ok()).unwrap_or(0)
}
