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

/// Seconds that a test may wait for another thread or program, where it waits by a channel or a socket.
const PATIENCE: [&str; 3] = ["20", "60", "120"];

/// Waits in vain for datagrams that a program in the kernel drops.
const WAITS_IN_VAIN: &str = "fibula-bpf/tests/kernel/programs.rs";

/// The names that a source gives to what `elapsed()` returned, `let took = begin.elapsed();`, and to what it works out from these,
/// `let rate = count / took.as_secs_f64();`.
fn times(text: &str) -> Vec<&str> {
    let statements: Vec<(&str, &str)> =
        text.split(';').filter_map(|statement| statement.rsplit_once("let ")?.1.split_once(" = ")).collect();
    let mut times: Vec<&str> = Vec::new();
    loop {
        let before = times.len();
        for (pattern, value) in &statements {
            // The value of a block is something else, most times: an error, or a count.
            let is_figure = !value.contains('{');
            if value.contains("elapsed()") || is_figure && times.iter().any(|time| names(value, time)) {
                let words = pattern.split(|c: char| !c.is_alphanumeric() && c != '_');
                let new = words.filter(|word| !matches!(*word, "" | "mut" | "_"));
                let new: Vec<&str> = new.filter(|word| !times.contains(word)).collect();
                times.extend(new);
            }
        }
        if times.len() == before {
            return times;
        }
    }
}

/// The seconds, in figures, that a source waits at most for a channel or a socket.
fn patience(text: &str) -> Vec<&str> {
    let waits = ["recv_timeout(Duration::from_secs(", "read_timeout(Some(Duration::from_secs("];
    let each = waits.iter().flat_map(|wait| text.split(wait).skip(1));
    each.filter_map(|rest| rest.split(')').next()).collect()
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
            if !path.ends_with(WAITS_IN_VAIN) {
                let other = patience(&text).into_iter().find(|seconds| !PATIENCE.contains(seconds));
                assert_eq!(other, None, "{}: seconds that a test waits", path.display());
            }
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
        } else if let Some((_, rest)) = condition.split_once("Instant::now()") {
            found.push(format!("elapsed(){}", until(text, rest)));
        } else if times.iter().any(|time| names(condition, time)) {
            found.push(condition.to_owned());
        }
    }
    found
}

/// Returns the rest of an assertion after `Instant::now()`. A deadline, `let deadline = Instant::now() + most;`, is the time until it there.
fn until(text: &str, rest: &str) -> String {
    let deadline = rest.strip_prefix(" < ").and_then(|name| name.split([',', ')', ' ']).next());
    let most = deadline
        .and_then(|name| text.split_once(&format!("let {name} = Instant::now() + ")))
        .and_then(|(_, most)| most.split(';').next());
    most.map_or_else(|| rest.to_owned(), |most| format!(" < {most}"))
}

#[test]
fn assertions_on_times_with_a_name_are_found() {
    let source = |condition: &str| {
        format!("let (mut took, n) = (begin.elapsed(), 3);\nassert!({condition}, \"took\");")
    };
    assert_eq!(of_source(&source("n > 2 && took < most")), ["!(n > 2 && took < most, "]);
    assert_eq!(of_source(&source("begin.elapsed() < most")), ["elapsed() < most, "]);
    assert!(of_source(&source("mistook > 2")).is_empty());
    let rate = "let took = begin.elapsed();\nlet rate = 7.0 / took.as_secs_f64();\nassert!(rate > 5.0);";
    assert_eq!(of_source(rate), ["!(rate > 5.0)"]);
    let deadline =
        "let end = Instant::now() + Duration::from_secs(7);\nassert!(Instant::now() < end, \"late\");";
    assert_eq!(of_source(deadline), ["elapsed() < Duration::from_secs(7)"]);
    assert_eq!(of_source("assert!(Instant::now() > begin);"), ["elapsed() > begin)"]);
    assert_eq!(patience("answer.recv_timeout(Duration::from_secs(3)).is_ok()"), ["3"]);
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
