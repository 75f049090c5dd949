//! Writes the benchmarks' document and charts from the committed records.
//!
//! ```text
//! cargo run --example benchmarks
//! ```

use std::error::Error;
use std::path::Path;

use fibula_lab::bench::{Record, document};

const COMMAND: &str = "cargo run --example benchmarks";

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let records = Record::read_all(&root.join("records"))?;
    document(&records, COMMAND, "benchmarks").write(&root.join("docs"), "benchmarks.md")?;
    println!("docs/benchmarks.md: {} records", records.len());
    Ok(())
}
