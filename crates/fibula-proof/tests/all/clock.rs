//! Tests assert on a clock only as docs/methodology.md says: they wait for others with patience, and one for a feed that waits.

use std::fs;
use std::path::Path;

/// What may follow `elapsed()` in an assertion.
const ALLOWED: [&str; 4] = [
    "< Duration::from_secs(20)",
    "< Duration::from_secs(60)",
    "< Duration::from_secs(120)",
    // Of one test: `updates_come_at_their_rate`.
    ">= Duration::from_millis(100)",
];

/// The assertions on a clock in the sources of a folder, from `elapsed()` on, each with its file.
fn assertions(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !path.ends_with("target") {
                assertions(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !path.ends_with("all/clock.rs")
        {
            let text = fs::read_to_string(&path).unwrap();
            for assertion in text.split("assert").skip(1) {
                let statement = assertion.split(';').next().unwrap_or_default();
                let condition = statement.split('"').next().unwrap_or_default();
                if let Some((_, rest)) = condition.split_once("elapsed()") {
                    found.push(format!("{}: elapsed(){rest}", path.display()));
                }
            }
        }
    }
}

#[test]
fn tests_assert_on_a_clock_only_as_the_methodology_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    for folder in ["crates", "bindings", "fuzz", "xtask"] {
        assertions(&root.join(folder), &mut found);
    }
    for one in &found {
        assert!(ALLOWED.iter().any(|allowed| one.contains(&format!("elapsed() {allowed}"))), "{one}");
    }
    let waits = found.iter().filter(|one| one.contains(ALLOWED[3])).count();
    assert!(found.len() >= 5 && waits == 1, "{found:?}");
}
