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

/// The names that a source gives to what `elapsed()` returned: `let took = begin.elapsed();`.
fn times(text: &str) -> Vec<&str> {
    let statements =
        text.split(';').filter_map(|statement| statement.rsplit_once("let ")?.1.split_once(" = "));
    let times = statements.filter(|(_, value)| value.contains("elapsed()"));
    let words = times.flat_map(|(pattern, _)| pattern.split(|c: char| !c.is_alphanumeric() && c != '_'));
    words.filter(|word| !matches!(*word, "" | "mut" | "_")).collect()
}

/// Whether a condition has a name as a word.
fn names(condition: &str, name: &str) -> bool {
    condition.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)
}

/// The assertions on a clock in the sources of a folder, from `elapsed()` or the name of a time on, each with its file.
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
            found.extend(of_source(&text).iter().map(|one| format!("{}: {one}", path.display())));
        }
    }
}

/// The assertions on a clock in a source.
fn of_source(text: &str) -> Vec<String> {
    let times = times(text);
    let mut found = Vec::new();
    for assertion in text.split("assert").skip(1) {
        let statement = assertion.split(';').next().unwrap_or_default();
        let condition = statement.split('"').next().unwrap_or_default();
        if let Some((_, rest)) = condition.split_once("elapsed()") {
            found.push(format!("elapsed(){rest}"));
        } else if times.iter().any(|time| names(condition, time)) {
            found.push(condition.to_owned());
        }
    }
    found
}

#[test]
fn assertions_on_times_with_a_name_are_found() {
    let source = |condition: &str| {
        format!("let (mut took, n) = (begin.elapsed(), 3);\nassert!({condition}, \"took\");")
    };
    assert_eq!(of_source(&source("n > 2 && took < most")), ["!(n > 2 && took < most, "]);
    assert_eq!(of_source(&source("begin.elapsed() < most")), ["elapsed() < most, "]);
    assert!(of_source(&source("mistook > 2")).is_empty());
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
