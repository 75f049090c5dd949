//! A run of cargo-mutants over a small crate, and what is kept of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::Outcome;
use crate::programs::run as must;

use super::Chosen;
use super::crates::{Folder, sources, work};
use super::record::{self, Fate};
use super::sample::{chosen as sample, digest};

/// A mutant as cargo-mutants lists it.
#[derive(Debug, Deserialize)]
struct Mutant {
    /// File, line and column, and the change.
    name: String,
    file: String,
    function: Option<Function>,
}

#[derive(Debug, Deserialize)]
struct Function {
    span: Span,
}

#[derive(Debug, Deserialize)]
struct Span {
    start: Place,
    end: Place,
}

#[derive(Debug, Deserialize)]
struct Place {
    line: usize,
}

/// What a mutant's result depends on: the function that is changed, and all code with its tests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    function: String,
    tests: String,
}

/// A result, as `target/mutants/FOLDER.json` keeps it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Kept {
    function: String,
    outcome: Fate,
    tests: String,
}

impl Kept {
    /// Returns whether it still holds. A caught mutant stays caught while its function is the same; a survivor may be caught by a
    /// new test.
    fn holds(&self, stamp: &Stamp) -> bool {
        match self.outcome {
            Fate::Missed => self.tests == stamp.tests,
            _ => self.function == stamp.function,
        }
    }
}

/// Kept beside the outcomes, so that those of a run that was stopped count: by the name that cargo-mutants gives a mutant, ours and its
/// stamp.
type Started = BTreeMap<String, (String, Stamp)>;

/// The outcomes that cargo-mutants writes.
#[derive(Deserialize)]
struct Outcomes {
    outcomes: Vec<Ended>,
}

#[derive(Deserialize)]
struct Ended {
    scenario: Scenario,
    summary: String,
}

#[derive(Deserialize)]
enum Scenario {
    Baseline,
    Mutant(Named),
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

type Mutants = BTreeMap<String, Mutant>;
type Results = BTreeMap<String, Kept>;

const STARTED: &str = "started.json";

/// Runs the tests of a folder in its small crate, without a mutant.
pub(super) fn check(folder: &Folder) -> Outcome {
    let place = folder.small.generate()?;
    println!("{}: {}", folder.name, place.display());
    must(cargo(&place).args(["test", "--quiet", "--lib", "--"]).args(folder.tests))
}

/// Runs the mutants of a folder that have no result yet, and writes its record. Returns whether that is good.
pub(super) fn run(folder: &Folder, chosen: &Chosen) -> Outcome<bool> {
    let place = folder.small.generate()?;
    let everything = mutants(folder, &place)?;
    let count = if chosen.all { everything.len() } else { chosen.sample };
    let wanted = sample(everything.keys().map(String::as_str), chosen.seed, count);

    let state = work().join(format!("{}.json", folder.name));
    let mut results: Results = match fs::read_to_string(&state) {
        Ok(text) if !chosen.fresh => serde_json::from_str(&text)?,
        _ => Results::new(),
    };
    let output = work().join(format!("out-{}", folder.name));
    if !chosen.fresh {
        // Of a run that was stopped, or that failed and said so.
        let _ = absorb(&mut results, &output);
        keep(&state, &results)?;
    }
    let stamps = stamps(&place, &everything)?;
    let current =
        |results: &Results, name: &str| results.get(name).is_some_and(|kept| kept.holds(&stamps[name]));
    let (first, step) = chosen.share.unwrap_or((1, 1));
    let shared: Vec<&str> = wanted.iter().copied().skip(first - 1).step_by(step).collect();
    let missing: Vec<&str> = shared.iter().copied().filter(|name| !current(&results, name)).collect();
    println!(
        "{}: {} mutants, {} chosen, {} to run",
        folder.name,
        everything.len(),
        wanted.len(),
        missing.len()
    );
    if !missing.is_empty() {
        let all = everything
            .iter()
            .map(|(name, mutant)| (mutant.name.clone(), (name.clone(), stamps[name].clone())));
        let mutants: Vec<&Mutant> = missing.iter().map(|&name| &everything[name]).collect();
        let ended = mutate(&place, &output, folder.tests, &all.collect(), &mutants);
        // The sources are as they were, and what was found is kept, even if the run ended early.
        folder.small.generate()?;
        absorb(&mut results, &output)?;
        keep(&state, &results)?;
        ended?;
    }
    if step > 1 && wanted.iter().any(|name| !current(&results, name)) {
        // The record is that of the shares so far.
        let fates =
            shared.iter().filter(|name| current(&results, name)).map(|&name| (name, results[name].outcome));
        let all = wanted.iter().filter(|name| current(&results, name));
        let all = all.map(|&name| (name, results[name].outcome)).collect();
        let is_left = |name: &str| everything.contains_key(name) && !current(&results, name);
        record::write_part(folder, chosen, [everything.len(), wanted.len()], &all, is_left)?;
        return record::judge_share(folder, shared.len(), &fates.collect());
    }
    let done = wanted.iter().filter(|name| current(&results, name));
    let fates = done.map(|&name| (name, results[name].outcome)).collect();
    record::write(folder, chosen, [everything.len(), wanted.len()], &fates)
}

fn keep(state: &Path, results: &Results) -> Outcome {
    Ok(fs::write(state, serde_json::to_string_pretty(results)? + "\n")?)
}

/// Runs cargo-mutants for these mutants.
fn mutate(place: &Path, output: &Path, tests: &[&str], all: &Started, mutants: &[&Mutant]) -> Outcome {
    if output.exists() {
        fs::remove_dir_all(output)?;
    }
    fs::create_dir_all(output)?;
    fs::write(output.join(STARTED), serde_json::to_string(all)?)?;
    let mut command = cargo_mutants(place);
    command.arg("--in-place").arg("--output").arg(output);
    // cargo-mutants deletes fields of structs whatever names are asked for: not in other files, then.
    let files: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.file.as_str()).collect();
    command.args(files.iter().map(|file| format!("--file={file}")));
    command.arg("--minimum-test-timeout=20").arg("--cargo-arg=--lib");
    command.args(mutants.iter().map(|mutant| format!("--re=^{}$", regex::escape(&mutant.name))));
    if !tests.is_empty() {
        command.args(["--", "--"]).args(tests);
    }
    let status = command.status()?;
    // 0: all caught; 2 and 3: some missed or timed out.
    match status.code() {
        Some(0 | 2 | 3) => Ok(()),
        _ => Err(format!(
            "cargo-mutants ended early ({status}): {}/mutants.out/log; run again to continue",
            output.display()
        )
        .into()),
    }
}

fn cargo(place: &Path) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(place).env("CARGO_TARGET_DIR", work().join("build"));
    command.env("CARGO_TERM_COLOR", "never").env("RUST_BACKTRACE", "0");
    command
}

fn cargo_mutants(place: &Path) -> Command {
    let mut command = cargo(place);
    command.arg("mutants").arg("--dir").arg(place).arg("--no-config");
    command
}

/// Returns all mutants of the folder, each by a name that does not depend on the lines around it.
fn mutants(folder: &Folder, place: &Path) -> Outcome<Mutants> {
    let listed = cargo_mutants(place).args(["--list", "--json"]).stderr(Stdio::inherit()).output()?;
    if !listed.status.success() {
        return Err(format!("cargo mutants --list: {}", listed.status).into());
    }
    named(folder, serde_json::from_slice(&listed.stdout)?)
}

fn named(folder: &Folder, listed: Vec<Mutant>) -> Outcome<Mutants> {
    let origin = folder.small.sources[0].0;
    let mut found = Mutants::new();
    for mutant in listed.into_iter().filter(|mutant| mutant.file.starts_with(folder.under)) {
        let path = mutant.file.strip_prefix("src").unwrap_or(&mutant.file);
        let (_, change) =
            mutant.name.split_once(": ").ok_or_else(|| format!("no change: {}", mutant.name))?;
        let first = format!("{origin}{path}: {change}");
        let mut name = first.clone();
        let mut count = 1;
        while found.contains_key(&name) {
            count += 1;
            name = format!("{first} #{count}");
        }
        found.insert(name, mutant);
    }
    Ok(found)
}

fn stamps(place: &Path, everything: &Mutants) -> Outcome<BTreeMap<String, Stamp>> {
    let mut texts = BTreeMap::new();
    for path in sources(&place.join("src"))? {
        let text = fs::read_to_string(&path)?;
        texts.insert(path, text);
    }
    let tests = digest(texts.values().map(String::as_str));
    let stamp = |mutant: &Mutant| -> Outcome<Stamp> {
        let text = texts.get(&place.join(&mutant.file)).ok_or_else(|| format!("no {}", mutant.file))?;
        let function = match &mutant.function {
            Some(Function { span: Span { start, end } }) => {
                let lines = text.lines().skip(start.line - 1).take((end.line + 1).saturating_sub(start.line));
                digest(lines)
            }
            None => digest([text.as_str()]),
        };
        Ok(Stamp { function, tests: tests.clone() })
    };
    everything.iter().map(|(name, mutant)| Ok((name.clone(), stamp(mutant)?))).collect()
}

/// Takes the results that cargo-mutants has found so far, in this run or in one that was stopped.
fn absorb(results: &mut Results, output: &Path) -> Outcome {
    let read = |name| fs::read_to_string(output.join(name));
    let (Ok(started), Ok(text)) = (read(STARTED), read("mutants.out/outcomes.json")) else {
        return Ok(());
    };
    let started: Started = serde_json::from_str(&started)?;
    for Ended { scenario, summary } in serde_json::from_str::<Outcomes>(&text)?.outcomes {
        match scenario {
            Scenario::Baseline if summary != "Success" => {
                let place = output.display();
                return Err(format!("the tests fail without a mutant: see {place}/mutants.out/log").into());
            }
            Scenario::Baseline => {}
            Scenario::Mutant(mutant) => {
                if let (Some((name, stamp)), Some(outcome)) = (started.get(&mutant.name), Fate::of(&summary))
                {
                    let Stamp { function, tests } = stamp.clone();
                    results.insert(name.clone(), Kept { function, outcome, tests });
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::crates::FOLDERS;
    use super::*;

    fn mutant(file: &str, line: usize, change: &str) -> Mutant {
        Mutant { name: format!("{file}:{line}:5: {change}"), file: file.to_owned(), function: None }
    }

    #[test]
    fn names_do_not_have_lines_and_equal_ones_are_counted() {
        let listed = vec![
            mutant("src/net/text.rs", 3, "replace | with ^ in f"),
            mutant("src/net/text.rs", 9, "replace | with ^ in f"),
            mutant("src/other.rs", 1, "replace + with - in g"),
        ];
        let found = named(&FOLDERS[0], listed).unwrap();
        let name = "crates/fibula/src/net/text.rs: replace | with ^ in f";
        assert_eq!(found.keys().collect::<Vec<_>>(), [name, &format!("{name} #2")]);
        assert_eq!(found[name].name, "src/net/text.rs:3:5: replace | with ^ in f");
    }

    #[test]
    fn a_survivor_holds_until_a_test_changes_and_others_until_their_function_does() {
        let kept = |outcome| Kept { function: "f".to_owned(), outcome, tests: "t".to_owned() };
        let stamp = |function: &str, tests: &str| Stamp { function: function.into(), tests: tests.into() };
        assert!(kept(Fate::Missed).holds(&stamp("g", "t")));
        assert!(!kept(Fate::Missed).holds(&stamp("f", "u")));
        assert!(kept(Fate::Caught).holds(&stamp("f", "u")));
        assert!(!kept(Fate::Timeout).holds(&stamp("g", "t")));
    }

    #[test]
    fn outcomes_of_a_run_that_was_stopped_count() {
        let output = std::env::temp_dir().join(format!("fibula-mutants-{}", std::process::id()));
        let mut results = Results::new();
        absorb(&mut results, &output).unwrap();
        assert!(results.is_empty(), "there was no run");
        fs::create_dir_all(output.join("mutants.out")).unwrap();
        let stamp = Stamp { function: "f".to_owned(), tests: "t".to_owned() };
        let started = [("src/a.rs:1:1: x", "a"), ("src/a.rs:2:1: x", "b")];
        let started = started.map(|(name, ours)| (name.to_owned(), (ours.to_owned(), stamp.clone())));
        fs::write(output.join(STARTED), serde_json::to_string(&Started::from(started)).unwrap()).unwrap();
        let text = r#"{"outcomes": [
            {"scenario": {"Mutant": {"name": "src/a.rs:1:1: x"}}, "summary": "MissedMutant"},
            {"scenario": {"Mutant": {"name": "src/b.rs:9:1: y"}}, "summary": "CaughtMutant"}
        ]}"#;
        fs::write(output.join("mutants.out/outcomes.json"), text).unwrap();
        absorb(&mut results, &output).unwrap();
        fs::remove_dir_all(&output).unwrap();
        assert_eq!(results.len(), 1);
        let kept = &results["a"];
        assert!(kept.outcome == Fate::Missed && kept.holds(&stamp));
    }

    #[test]
    fn outcomes_of_cargo_mutants_are_read() {
        let text = r#"{"outcomes": [
            {"scenario": "Baseline", "summary": "Success", "phase_results": []},
            {"scenario": {"Mutant": {"name": "src/a.rs:1:1: x", "package": "p"}}, "summary": "CaughtMutant"}
        ], "total_mutants": 1}"#;
        let outcomes: Outcomes = serde_json::from_str(text).unwrap();
        assert!(matches!(outcomes.outcomes[0].scenario, Scenario::Baseline));
        assert_eq!(Fate::of(&outcomes.outcomes[1].summary), Some(Fate::Caught));
    }
}
