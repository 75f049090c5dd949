//! Planted faults, which test the tests.
//!
//! `faults.toml` lists changes of one expression each, and the test that must fail when it is planted. The
//! program `faults` plants them one by one in a copy of the sources and runs that test.

use std::fmt;
use std::path::Path;

use serde::Deserialize;

/// The list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// Its faults.
    pub fault: Vec<Fault>,
}

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// What goes wrong.
    pub name: String,
    /// The file, from the root of the workspace.
    pub file: String,
    /// The text that is replaced; it occurs exactly once in the file.
    pub find: String,
    /// What it becomes.
    pub replace: String,
    /// The test that must catch it: `lib NAME` (a unit test of the library), `published NAME` (one of the engines of
    /// papers), `lab NAME` (one of the laboratory), or a test program such as `machine`, and a name.
    pub test: String,
}

impl Fault {
    /// Returns the source of the file with the fault in it.
    ///
    /// # Errors
    /// When the file cannot be read, or the text to replace is not there exactly once.
    pub fn plant(&self, workspace: &Path) -> Result<String, PlantError> {
        let path = workspace.join(&self.file);
        let error = |reason| PlantError { fault: self.name.clone(), file: self.file.clone(), reason };
        let source = std::fs::read_to_string(path).map_err(|cause| error(Reason::Unreadable(cause)))?;
        match source.matches(&self.find).count() {
            1 => Ok(source.replacen(&self.find, &self.replace, 1)),
            count => Err(error(Reason::Found(count))),
        }
    }

    /// Returns the test that must catch it: its target and its name.
    fn target_and_name(&self) -> (&str, &str) {
        self.test.split_once(' ').unwrap_or(("machine", &self.test))
    }

    /// Returns the target whose test must catch it.
    #[must_use]
    pub fn target(&self) -> &str {
        self.target_and_name().0
    }

    /// Returns the arguments for cargo that run the test which must fail.
    #[must_use]
    pub fn cargo_arguments(&self) -> Vec<&str> {
        let (target, name) = self.target_and_name();
        let mut arguments = match target {
            "lib" => vec!["test", "--package", "fibula", "--lib"],
            "published" => vec!["test", "--package", "fibula-published", "--lib"],
            "lab" => vec!["test", "--package", "fibula-lab", "--lib"],
            // Of all packages, as `cargo test` has them: another choice would build the dependencies with other features.
            // With the engines of papers over narrow tables.
            _ => vec!["test", "--features", "fibula-proof/exhaustive", "--test", target],
        };
        // Some tests are ignored unless a machine has what they need.
        arguments.extend(["--", "--include-ignored", "--exact", name]);
        arguments
    }
}

/// The list's file, from the root of the workspace.
pub const LIST: &str = "crates/fibula-proof/faults.toml";

/// Returns the list as committed.
///
/// # Errors
/// When it is not TOML of the right form.
pub fn list() -> Result<Vec<Fault>, toml::de::Error> {
    parse(include_str!("../faults.toml"))
}

/// Returns the faults of a list.
///
/// # Errors
/// When it is not TOML of the right form.
pub fn parse(list: &str) -> Result<Vec<Fault>, toml::de::Error> {
    toml::from_str::<List>(list).map(|list| list.fault)
}

/// Keeps the faults that an earlier list does not have, and after them those in whose folder a file changed: a fault goes
/// unnoticed when its code or its test changes, and the tests of a structure are in its folder.
#[must_use]
pub fn fresh(faults: Vec<Fault>, before: &[Fault], changed: &[&str]) -> Vec<Fault> {
    let folder = |file: &str| Path::new(file).parent().map(Path::to_path_buf);
    let changed: Vec<_> = changed.iter().map(|file| folder(file)).collect();
    let (mut new, old): (Vec<_>, Vec<_>) = faults.into_iter().partition(|fault| !before.contains(fault));
    new.extend(old.into_iter().filter(|fault| changed.contains(&folder(&fault.file))));
    new
}

/// A fault that cannot be planted.
#[derive(Debug)]
pub struct PlantError {
    fault: String,
    file: String,
    reason: Reason,
}

#[derive(Debug)]
enum Reason {
    Unreadable(std::io::Error),
    Found(usize),
}

impl fmt::Display for PlantError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fault, file, reason } = self;
        match reason {
            Reason::Unreadable(cause) => write!(f, "'{fault}': {file}: {cause}"),
            Reason::Found(count) => {
                write!(f, "'{fault}': the text to replace occurs {count} times in {file}, not once")
            }
        }
    }
}

impl std::error::Error for PlantError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_fresh_that_are_new_or_whose_folder_changed() {
        let one = "[[fault]]\nname = 'n'\nfile = 'a/b.rs'\nfind = 'x'\nreplace = 'y'\ntest = 'lib t'\n";
        let faults = |list: &str| parse(list).unwrap();
        let count = |now: &str, changed: &[&str]| fresh(faults(now), &faults(one), changed).len();
        assert_eq!(count(one, &[]), 0);
        assert_eq!(count(one, &["a/c/b.rs", "b.rs"]), 0);
        assert_eq!(count(one, &["a/tests.rs"]), 1);
        assert_eq!(count(&one.replace('y', "z"), &[]), 1);
    }

    #[test]
    fn every_fault_can_be_planted_and_there_are_enough() {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let faults = list().unwrap();
        assert!(faults.len() >= 30, "{}", faults.len());
        for fault in &faults {
            fault.plant(&workspace).unwrap();
        }
        let mut names: Vec<_> = faults.iter().map(|fault| &fault.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), faults.len(), "two faults of one name");
    }
}
