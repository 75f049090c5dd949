//! `.ci/scheduled` in a repository of its own with planted parts: pieces resume, and what is recorded is what happened.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Pieces that are good, that fail, that leave something out, that cannot run, and that do not end. `FAIL` mends one.
const PARTS: &str = r#"
list() {
  printf '%s\n' 'cut       three pieces' 'broken    one fails' 'lacking   nothing can run' 'partly    something is left out' 'endless   a piece that does not end' \
    'empty     no test is selected' 'crashed   ends as a skipped one, and does not say why'
}
pieces() {
  case $1 in cut) printf '%s\n' one 'two 1/2' 'two 2/2' ;; broken) printf '%s\n' good bad last ;; *) echo all ;; esac
}
share() { :; }
allowed() { case $1 in endless) echo 1 ;; *) echo 60 ;; esac; }
do_piece() {
  [ -z "$only_build" ] || return 0
  echo "$1 $2" >>ran
  case $1,$2 in
    broken,bad) [ -e mended ] ;;
    lacking,*) skipped "no such thing, here" ;;
    crashed,*) return 77 ;;
    partly,*) echo "SKIPPED: half of it" ;;
    endless,*) sleep 600 ;;
    empty,*) echo "test result: ok. 0 passed; 0 failed" ;;
  esac
}
"#;

/// A repository with `.ci` and the planted parts.
struct Repository(PathBuf);

impl Repository {
    fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        drop(fs::remove_dir_all(&folder));
        let ci = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.ci");
        for path in [".ci", "records", "docs"] {
            fs::create_dir_all(folder.join(path)).unwrap();
        }
        for file in ["scheduled", "pieces", "cross", "tools", "ignored"] {
            fs::copy(ci.join(file), folder.join(".ci").join(file)).unwrap();
        }
        fs::write(folder.join("parts"), PARTS).unwrap();
        fs::write(folder.join(".gitignore"), "/target\n/ran\n/mended\n").unwrap();
        let repository = Self(folder);
        repository.git(&["init", "--quiet"]);
        repository.commit();
        repository
    }

    fn git(&self, arguments: &[&str]) {
        let identity =
            ["-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"];
        let status =
            Command::new("git").current_dir(&self.0).args(identity).args(arguments).status().unwrap();
        assert!(status.success(), "git {arguments:?}");
    }

    fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "test"]);
    }

    fn scheduled(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("bash");
        command.current_dir(&self.0).arg(".ci/scheduled").args(arguments);
        command.env("SCHEDULED_PARTS", "./parts").env_remove("CARGO_TARGET_DIR").env_remove("FIBULA_DATA");
        command.env("SCHEDULED_MINUTES", "1").output().unwrap()
    }

    /// Returns what ran since the last call.
    fn ran(&self) -> Vec<String> {
        let path = self.0.join("ran");
        let text = fs::read_to_string(&path).unwrap_or_default();
        drop(fs::remove_file(path));
        text.lines().map(str::to_owned).collect()
    }

    /// Returns the recorded result and share of a part.
    fn record(&self, part: &str) -> (String, String) {
        let text = fs::read_to_string(self.0.join("records/scheduled.toml")).unwrap();
        let line = text.lines().find(|line| line.starts_with(&format!("{part} = "))).unwrap_or_default();
        let field = |name: &str| {
            let after = line.split_once(&format!("{name} = \"")).map(|(_, after)| after);
            after.and_then(|after| after.split_once('"')).unwrap_or_default().0.to_owned()
        };
        (field("result"), field("done"))
    }
}

fn pair(result: &str, done: &str) -> (String, String) {
    (result.to_owned(), done.to_owned())
}

/// README.md says from when on.
#[test]
fn runs_of_scheduled_parts_say_how_much_they_were() {
    let record = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../records/scheduled.toml");
    let record: toml::Table = fs::read_to_string(record).unwrap().parse().unwrap();
    assert!(record.len() > 40);
    for (part, run) in record {
        let day = run["date"].as_str().unwrap();
        assert!(day <= "2026-11-27" || run.get("done").is_some(), "{part} of {day}");
    }
}

#[test]
fn pieces_of_scheduled_parts_resume_on_the_same_tree() {
    let repository = Repository::new("scheduled-resume");
    assert!(repository.scheduled(&["cut"]).status.success());
    assert_eq!(repository.ran(), ["cut one", "cut two 1/2", "cut two 2/2"]);
    assert_eq!(repository.record("cut"), pair("ok", "3 of 3"));
    // A commit of records and documents alone leaves the tree as it was.
    fs::write(repository.0.join("docs/new.md"), "new\n").unwrap();
    repository.commit();
    // Of the pieces that are good, one is taken from the list.
    let kept = repository.0.join("records/pieces.tsv");
    let text = fs::read_to_string(&kept).unwrap();
    let without: String =
        text.lines().filter(|line| !line.contains("two 1/2")).map(|line| format!("{line}\n")).collect();
    fs::write(&kept, without).unwrap();
    assert!(repository.scheduled(&["cut"]).status.success());
    assert_eq!(repository.ran(), ["cut two 1/2"]);
    assert_eq!(repository.record("cut"), pair("ok", "3 of 3"));
    let said = repository.scheduled(&["--good", "cut"]).stdout;
    assert!(said.len() > 6, "the commit of a whole part: {}", String::from_utf8_lossy(&said));
    // Another tree has none of it, and with changes that are not committed nothing is kept.
    fs::write(repository.0.join("source"), "changed\n").unwrap();
    repository.commit();
    assert!(repository.scheduled(&["cut"]).status.success());
    assert_eq!(repository.ran().len(), 3);
    fs::write(repository.0.join("source"), "changed again\n").unwrap();
    repository.scheduled(&["cut"]);
    repository.scheduled(&["cut"]);
    assert_eq!(repository.ran().len(), 6);
    assert!(repository.scheduled(&["--good", "cut"]).stdout.is_empty(), "a commit that lacks the changes");
}

#[test]
fn scheduled_parts_that_fail_or_are_skipped_are_recorded_so() {
    let repository = Repository::new("scheduled-results");
    assert!(!repository.scheduled(&["broken"]).status.success());
    assert_eq!(repository.ran(), ["broken good", "broken bad", "broken last"]);
    assert_eq!(repository.record("broken"), pair("failed with exit code 1: bad", "2 of 3"));
    assert!(repository.scheduled(&["--good", "broken"]).stdout.is_empty());
    assert!(!repository.scheduled(&["--good", "broken", "good"]).stdout.is_empty(), "one of its pieces is");
    assert!(repository.scheduled(&["--good", "broken", "bad"]).stdout.is_empty());
    // What failed is run again, and alone.
    fs::write(repository.0.join("mended"), "").unwrap();
    assert!(repository.scheduled(&["broken"]).status.success());
    assert_eq!(repository.ran(), ["broken bad"]);
    assert_eq!(repository.record("broken"), pair("ok", "3 of 3"));
    // One piece that is named, though it is good.
    assert!(repository.scheduled(&["--record", "broken", "last"]).status.success());
    assert_eq!(repository.ran(), ["broken last"]);
    fs::remove_file(repository.0.join("mended")).unwrap();
    assert!(!repository.scheduled(&["--record", "broken", "bad"]).status.success());
    assert_eq!(repository.record("broken"), pair("failed with exit code 1: bad", "2 of 3"));
    assert_eq!(repository.scheduled(&["--record", "broken", "other"]).status.code(), Some(2));
    fs::write(repository.0.join("mended"), "").unwrap();
    assert!(repository.scheduled(&["--record", "broken", "bad"]).status.success());
    assert_eq!(repository.record("broken"), pair("ok", "3 of 3"));
    assert_eq!(repository.ran(), ["broken bad"; 2]);
    assert!(repository.scheduled(&["lacking", "partly", "empty"]).status.success());
    assert_eq!(repository.record("lacking"), pair("skipped: no such thing  here", "0 of 1"));
    assert_eq!(repository.record("partly"), pair("ok but for 1 that were SKIPPED", "1 of 1"));
    assert!(repository.scheduled(&["--good", "partly"]).stdout.is_empty(), "half of it did not run");
    assert!(!repository.scheduled(&["crashed"]).status.success());
    let without = "failed with exit code 77  without a reason to be skipped";
    assert_eq!(repository.record("crashed"), pair(without, "0 of 1"));
    assert_eq!(repository.record("empty"), pair("skipped: no test ran", "0 of 1"));
    assert!(!repository.scheduled(&["endless"]).status.success());
    assert_eq!(repository.record("endless"), pair("stopped after 1 s", "0 of 1"));
    // The step of another script has the exit code of what it ran.
    assert_eq!(repository.scheduled(&["--piece", "lacking", "all"]).status.code(), Some(77));
    assert!(!repository.scheduled(&["no-such-part"]).status.success());
    let ages = repository.scheduled(&["--ages"]).stdout;
    let ages = String::from_utf8_lossy(&ages);
    assert!(ages.contains("ok, 3 of 3") && ages.contains("cut                never"), "{ages}");
}
