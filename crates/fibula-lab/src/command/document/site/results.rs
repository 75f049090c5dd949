//! The page on which a reader picks a machine, a table, traffic and batch, and sees rates and the record that they come from.

use std::error::Error;
use std::path::Path;

use serde_json::{Value, json};

use crate::bench::Record;
use crate::command::figures::root;

/// The page, with a place for the data.
const PAGE: &str = include_str!("results.html");

pub(super) fn page() -> Result<String, Box<dyn Error>> {
    let folders = [root().join("records"), root().join("records/held-out")];
    let mut records = Vec::new();
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        for record in Record::read_all(folder)? {
            records.push(data(&record, folder));
        }
    }
    // A text of JSON within a script must not end it.
    let text = serde_json::to_string(&records)?.replace("</", "<\\/");
    Ok(PAGE.replace("/* records */ []", &text))
}

/// Returns the part of a record that the page needs. A row is a list, because a name for each cell would double the page.
fn data(record: &Record, folder: &Path) -> Value {
    let Record { date, table, machine, program, .. } = record;
    let folder = folder.strip_prefix(root()).unwrap_or(folder);
    let rows = record.rows.iter().filter(|row| row.error.is_none() && row.mlps_median.is_some());
    let rows: Vec<Value> = rows
        .map(|row| {
            json!([
                row.engine,
                row.role,
                row.family,
                row.traffic,
                row.batch,
                row.threads,
                row.order,
                row.many_keys,
                row.isa,
                row.mlps_median,
                row.mlps_low,
                row.mlps_high,
                row.lookup_bytes,
                row.build_time_ms,
                row.wrong,
                !row.rival && record.is_stale(&row.engine),
            ])
        })
        .collect();
    json!({
        "machine": machine.name(),
        "cores": machine.cores,
        "table": table.name,
        "date": date,
        "commit": program.commit,
        "rustc": program.rustc,
        "file": format!("{}/{}/{}.json", folder.display(), machine.slug(), table.name),
        "rows": rows,
    })
}
