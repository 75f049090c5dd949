//! `fibula-lab paper`: a quick run from the command line, its files, and what it refuses.

use std::fs;

use crate::support::{Folder, run};
use serde_json::Value;

#[test]
fn a_quick_run_writes_a_report_and_a_record() {
    let folder = Folder::new();
    let output = folder.path().join("new/multibit");
    let args = ["paper", "multibit", "--quick", "--quiet", "-o", output.to_str().unwrap()];
    let first = run(&args);
    assert_eq!((first.code, &*first.out, &*first.err), (0, "", ""));
    let page = fs::read_to_string(output.join("index.html")).unwrap();
    assert!(page.contains("A quick run.") && page.contains("fibula-lab paper multibit --quick -o DIR"));
    let record: Value =
        serde_json::from_str(&fs::read_to_string(output.join("record.json")).unwrap()).unwrap();
    assert_eq!((&record["paper"], &record["quick"]), (&"multibit".into(), &true.into()));

    // A record is not replaced unasked, and nothing of a complete one is measured again.
    let again = run(&args);
    assert_eq!(again.code, 2);
    assert!(again.err.contains("has a record: continue it with --resume, or remove it"), "{again:?}");
    let resumed = run(&[&args[..], &["--resume"]].concat());
    assert_eq!(resumed.code, 0, "{resumed:?}");
    let after: Value =
        serde_json::from_str(&fs::read_to_string(output.join("record.json")).unwrap()).unwrap();
    assert_eq!(after["parts"], record["parts"]);

    fs::write(output.join("record.json"), "{}").unwrap();
    let broken = run(&[&args[..], &["--resume"]].concat());
    assert_eq!(broken.code, 3);
    assert!(broken.err.contains("record.json: missing field"), "{broken:?}");
}

#[test]
fn papers_are_listed_and_unknown_ones_refused() {
    let list = run(&["paper"]);
    assert_eq!(list.code, 0);
    assert!(list.out.contains("multibit  "), "{list:?}");
    let unknown = run(&["paper", "nothing", "-o", "/nowhere"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.contains("multibit"), "{unknown:?}");
    assert_eq!(run(&["paper", "multibit"]).code, 2, "where to write must be said");
    let unwritable = run(&["paper", "multibit", "--quick", "-o", "/dev/null/folder"]);
    assert_eq!(unwritable.code, 3, "{unwritable:?}");
}
