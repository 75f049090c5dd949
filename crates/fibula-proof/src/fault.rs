//! Planted faults, which test the tests.
//!
//! `faults.toml` lists changes of one expression each, and the test that must fail when it is planted. The
//! program `faults` plants them one by one in a copy of the sources and runs that test.

use std::collections::BTreeMap;
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
    /// papers), `columns NAME` (one of the columns), `feed NAME` (one of the feeds), `lab NAME` (one of the laboratory), `routers NAME`
    /// (one of the router), or a test program such as `machine`, and a name. Those of `dpdk` need DPDK.
    pub test: String,
}

/// The target whose tests need DPDK.
pub const DPDK: &str = "dpdk";

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

    /// Returns a number that changes with the fault and with any file of its folder: a fault goes unnoticed when its code or
    /// its test changes, and the tests of a structure are in its folder.
    ///
    /// # Errors
    /// When the folder or a file of it cannot be read.
    pub fn stamp(&self, workspace: &Path) -> std::io::Result<u64> {
        let Self { name, file, find, replace, test } = self;
        let path = workspace.join(file);
        let mut files = Vec::new();
        for entry in std::fs::read_dir(path.parent().unwrap_or(workspace))? {
            let path = entry?.path();
            if path.is_file() {
                files.push(path);
            }
        }
        files.sort();
        // FNV-1a, with the length before each part.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut add = |bytes: &[u8]| {
            for byte in (bytes.len() as u64).to_le_bytes().iter().chain(bytes) {
                hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
            }
        };
        [name, file, find, replace, test].into_iter().for_each(|part| add(part.as_bytes()));
        for path in files {
            add(path.file_name().map(std::ffi::OsStr::as_encoded_bytes).unwrap_or_default());
            add(&std::fs::read(path)?);
        }
        Ok(hash)
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
            "column" => vec!["test", "--package", "fibula-column", "--test", "column"],
            "columns" => vec!["test", "--package", "fibula-column", "--lib"],
            "programs" => vec!["test", "--package", "fibula-c", "--test", "programs"],
            "feed" => vec!["test", "--package", "fibula-feed", "--lib"],
            "lab" => vec!["test", "--package", "fibula-lab", "--lib"],
            "kernel" => vec!["test", "--package", "fibula-bpf", "--test", "kernel"],
            "fast" => vec!["test", "--package", "fibula-router", "--test", "fast"],
            "routers" => vec!["test", "--package", "fibula-router", "--lib"],
            DPDK => vec!["test", "--features", "fibula-router/dpdk", "--test", DPDK],
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
    toml::from_str::<List>(include_str!("../faults.toml")).map(|list| list.fault)
}

/// The record's file, from the root of the workspace.
pub const RECORD: &str = "records/faults.tsv";

/// Which faults were caught, by name, each with the [stamp](Fault::stamp) of that time; `None` for a fault that was not
/// caught yet.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Record(BTreeMap<String, Option<u64>>);

impl Record {
    /// Returns the record of a text, in which each line has a name, a tab, and a stamp or `-`.
    ///
    /// # Errors
    /// The first line that has another form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let row = |line: &str| {
            let (name, stamp) = line.split_once('\t')?;
            let stamp = if stamp == "-" { None } else { Some(u64::from_str_radix(stamp, 16).ok()?) };
            Some((name.to_owned(), stamp))
        };
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| row(line).ok_or_else(|| line.to_owned())).collect::<Result<_, _>>().map(Self)
    }

    /// Returns whether this fault was caught, and neither it nor its folder has changed since.
    #[must_use]
    pub fn has(&self, name: &str, stamp: u64) -> bool {
        self.0.get(name) == Some(&Some(stamp))
    }

    /// Returns whether this fault is new, or was caught before it or its folder changed.
    #[must_use]
    pub fn is_changed(&self, name: &str, stamp: u64) -> bool {
        self.0.get(name).is_none_or(|before| before.is_some_and(|before| before != stamp))
    }

    /// Records that a fault was caught.
    pub fn insert(&mut self, name: &str, stamp: u64) {
        self.0.insert(name.to_owned(), Some(stamp));
    }

    /// Returns the faults of the list that are to be planted: those that were not caught as they are now; with `changed`, of these
    /// those that are new or were caught before. New ones are in the record from then on.
    ///
    /// # Errors
    /// When a stamp cannot be had.
    pub fn take(
        &mut self,
        faults: &[Fault],
        changed: bool,
        stamp: impl Fn(&Fault) -> std::io::Result<u64>,
    ) -> std::io::Result<Vec<Fault>> {
        let mut taken = Vec::new();
        for fault in faults {
            let stamp = stamp(fault)?;
            let is_meant = match changed {
                true => self.is_changed(&fault.name, stamp),
                false => !self.has(&fault.name, stamp),
            };
            if is_meant {
                taken.push(fault.clone());
            }
        }
        self.update(faults);
        Ok(taken)
    }

    /// Keeps the faults of the list, and enters those that are new as not caught.
    pub fn update(&mut self, faults: &[Fault]) {
        self.0.retain(|name, _| faults.iter().any(|fault| fault.name == *name));
        for fault in faults {
            self.0.entry(fault.name.clone()).or_default();
        }
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "# Planted faults that were caught, with a stamp of the fault and of its folder; - is one not caught yet."
        )?;
        writeln!(f, "# Written by .ci/scheduled planted-faults.")?;
        self.0.iter().try_for_each(|(name, stamp)| match stamp {
            Some(stamp) => writeln!(f, "{name}\t{stamp:016x}"),
            None => writeln!(f, "{name}\t-"),
        })
    }
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
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_record_says_which_faults_have_changed() {
        let text = "# faults\none\t00000000000000ff\ntwo\t-\n";
        let mut record = Record::parse(text).unwrap();
        assert!(record.has("one", 255) && !record.has("one", 254) && !record.has("two", 0));
        // A fault that was not caught yet is not one that has changed.
        let changed = ["one", "two", "three"].map(|name| record.is_changed(name, 254));
        assert_eq!((changed, record.is_changed("one", 255)), ([true, false, true], false));
        record.insert("two", 1);
        assert_eq!(Record::parse(&record.to_string()), Ok(record));
        for broken in ["one 1", "one\tx", "one\t1\n\n"] {
            assert!(Record::parse(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn new_faults_are_planted_with_those_that_changed() {
        let fault = |name: &str| Fault {
            name: name.to_owned(),
            file: String::new(),
            find: String::new(),
            replace: String::new(),
            test: String::new(),
        };
        let list = ["caught", "changed", "missed", "new"].map(fault);
        let record = || Record::parse("caught\t1\nchanged\t2\ngone\t1\nmissed\t-\n").unwrap();
        let names = |changed: bool, record: &mut Record| -> Vec<String> {
            let taken = record.take(&list, changed, |_| Ok(1)).unwrap();
            taken.into_iter().map(|fault| fault.name).collect()
        };
        assert_eq!(names(false, &mut record()), ["changed", "missed", "new"]);
        let mut record = record();
        assert_eq!(names(true, &mut record), ["changed", "new"]);
        assert_eq!(names(true, &mut record), ["changed"], "it is in the record, and was not caught");
        let [head, lines] = ["#", "caught\t0000000000000001\nchanged\t0000000000000002\nmissed\t-\nnew\t-\n"];
        assert!(record.to_string().starts_with(head) && record.to_string().ends_with(lines), "{record}");
    }

    #[test]
    fn a_stamp_changes_with_the_folder_and_the_fault() {
        let folder = std::env::temp_dir().join(format!("fibula-stamp-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("inside")).unwrap();
        std::fs::write(folder.join("a.rs"), "a").unwrap();
        let fault = |file: &str, find: &str| Fault {
            name: "n".into(),
            file: file.into(),
            find: find.into(),
            replace: "y".into(),
            test: "lib t".into(),
        };
        let stamp = |find: &str| fault("a.rs", find).stamp(&folder).unwrap();
        let first = stamp("x");
        assert_ne!(stamp("z"), first);
        std::fs::write(folder.join("inside/b.rs"), "b").unwrap();
        assert_eq!(stamp("x"), first);
        std::fs::write(folder.join("tests.rs"), "b").unwrap();
        assert_ne!(stamp("x"), first);
        assert!(fault("none/a.rs", "x").stamp(&folder).is_err());
        std::fs::remove_dir_all(folder).unwrap();
    }

    /// Returns the folder whose sources have the tests of a target; `None` for programs that make the names of their tests.
    fn sources(target: &str) -> Option<&'static str> {
        Some(match target {
            "machine" | "fast" | "kernel" | "device" => return None,
            "lib" => "crates/fibula/src",
            "published" => "crates/fibula-published/src",
            "columns" => "crates/fibula-column/src",
            "feed" => "crates/fibula-feed/src",
            "lab" => "crates/fibula-lab/src",
            "routers" => "crates/fibula-router/src",
            "programs" => "bindings/c/tests",
            _ => "crates",
        })
    }

    fn functions(folder: &Path, into: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                functions(&path, into);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(path).unwrap();
                let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
                let name = |after: &str| after.split(|letter| !is_part(letter)).next().map(str::to_owned);
                into.extend(text.split("fn ").skip(1).filter_map(name));
            }
        }
    }

    #[test]
    fn the_test_of_every_fault_is_there() {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let (mut known, mut absent) = (BTreeMap::new(), Vec::new());
        for fault in list().unwrap() {
            let (target, name) = fault.target_and_name();
            let Some(folder) = sources(target) else { continue };
            let functions = known.entry(folder).or_insert_with(|| {
                let mut names = BTreeSet::new();
                functions(&workspace.join(folder), &mut names);
                names
            });
            let (modules, function) = name.rsplit_once("::").unwrap_or(("", name));
            // A test of a library is named with its modules, of which the first one is a file or a folder. Macros make tests in others.
            let first = workspace.join(folder).join(modules.split("::").next().unwrap_or_default());
            let has_module =
                !folder.ends_with("/src") || first.is_dir() || first.with_extension("rs").is_file();
            if modules.is_empty() && folder.ends_with("/src") || !has_module || !functions.contains(function)
            {
                absent.push(format!("'{}': no test {name} in {folder}", fault.name));
            }
        }
        assert!(absent.is_empty(), "{absent:#?}");
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
