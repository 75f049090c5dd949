//! Writes `docs/benchmarks.md` and its charts from the committed benchmark records, or checks that they are up to date.
//!
//! ```text
//! cargo run -p fibula-lab --example benchmarks [-- --check]
//! ```

mod page;

use std::error::Error;
use std::fs;
use std::process::ExitCode;

use fibula_lab::bench::updates::UpdateRecord;
use fibula_lab::bench::{Record, document};

const COMMAND: &str = "cargo run -p fibula-lab --example benchmarks";

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments = page::Arguments::read()?;
    let mut records = Record::read_all(&page::root().join("records"))?;
    // Tables that no engine was tuned with.
    let held_out = page::root().join("records/held-out");
    if held_out.is_dir() {
        records.extend(Record::read_all(&held_out)?);
    }
    let updates = page::root().join("records/updates");
    let updates = if updates.is_dir() { UpdateRecord::read_all(&updates)? } else { Vec::new() };
    let document = document(&records, &updates, COMMAND, "benchmarks");
    let mut files = vec![("docs/benchmarks.md".to_owned(), format!("{}\n", document.text.trim_end()))];
    files.extend(document.charts.into_iter().map(|(name, svg)| (format!("docs/{name}"), svg)));
    // A chart of a record that is gone would stay otherwise.
    for entry in fs::read_dir(page::root().join("docs/benchmarks"))? {
        let name = format!("docs/benchmarks/{}", entry?.file_name().to_string_lossy());
        if files.iter().all(|(file, _)| *file != name) {
            return Err(format!("{name} belongs to no record: remove it").into());
        }
    }
    arguments.finish(&files)
}
