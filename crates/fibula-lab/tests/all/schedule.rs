//! `fibula-lab schedule`, as scripts and people use it. No speed is asserted here.

use crate::support;
use crate::support::{Folder, run};
use serde_json::Value;

/// Runs the command on little, quietly.
fn schedule(options: &[&str]) -> support::Run {
    run(&[&["schedule", "--seconds", "0", "--keys", "1000", "--quiet"], options].concat())
}

#[test]
fn lookups_are_divided_among_threads() {
    let folder = Folder::new();
    let records = folder.path().join("records");
    let options =
        ["--synth", "ipv4/300", "--synth", "ipv6/300", "--chunk", "1", "--chunk", "48", "--runs", "5"];
    let options = [&options[..], &["--threads", "1", "--threads", "4096"]].concat();
    let some = ["--engine", "poptrie", "--engine", "miht", "--engine", "dxr-18"];
    let record = ["--record", records.to_str().unwrap()];
    let run = schedule(&[&options[..], &some, &["--json"], &record].concat());
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let rows: Vec<Value> = serde_json::from_str(&run.out).unwrap();
    // Three engines of IPv4 and two of IPv6; shares, and two sizes of chunks in two ways; two numbers of threads.
    assert_eq!(rows.len(), 5 * (1 + 2 * 2) * 2);
    for row in &rows {
        assert_eq!(row["wrong"], 0, "{row}");
        match row["threads"].as_u64() {
            Some(1) => assert!(row["mlps_median"].is_number() && row["speedup"] == 1.0, "{row}"),
            _ => assert!(row["error"].as_str().unwrap().starts_with("takes 4096 cores"), "{row}"),
        }
    }
    let machine = std::fs::read_dir(&records).unwrap().next().unwrap().unwrap().path();
    assert!(machine.join("synth-ipv4-300-ipv6-300.json").exists());

    let text = schedule(&[&options[..], &["--engine", "miht", "--way=rayon"]].concat()).out;
    assert!(text.contains("rayon") && text.contains("missing: takes 4096 cores"), "{text}");
    assert!(!text.contains("static") && !text.contains("dynamic"), "{text}");
    let all = schedule(&[&options[..], &["--engine", "miht", "--reserve-core", "--json"]].concat());
    let rows: Vec<Value> = serde_json::from_str(&all.out).unwrap();
    assert!(rows.iter().all(|row| row["reserved"] == true), "{all:?}");
    for wrong in ["--rivals", "--every-isa", "--way=often", "--svg=x"] {
        assert_eq!(schedule(&["--synth", "ipv4/10", wrong]).code, 2, "{wrong}");
    }
    assert_eq!(schedule(&["--synth", "ipv4/10", "--batch", "1", "--batch", "2"]).code, 2);
}
