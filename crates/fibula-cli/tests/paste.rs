//! Inputs that people paste: each folder of `testdata/paste/` is a case, and the command is run on it in a process of its own.
//!
//! A case has these files: `thread` (its origin on the first line, then the case in words), its inputs, `cmd` (run by bash, with the
//! command in `$FIBULA`) and `expected` (its standard output). Its name says which of these programs it needs: none of them is part of
//! this workspace, and a case whose program is missing is ignored with that reason.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

/// Programs of other people that a case may run.
const PROGRAMS: [&str; 4] = ["python3", "zstd", "xz", "bzip2"];

/// How long a case may take. All of them together take less.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/paste");
    let mut cases: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("an entry of a folder").path())
        .filter(|path| path.is_dir())
        .collect();
    cases.sort();
    let trial = |case: PathBuf| {
        let name = case.file_name().expect("a folder has a name").to_string_lossy().into_owned();
        Trial::ignorable_test(name, move || run(&case))
    };
    libtest_mimic::run(&Arguments::from_args(), cases.into_iter().map(trial).collect()).exit_code()
}

fn run(case: &Path) -> Result<Completion, Failed> {
    for file in ["thread", "cmd", "expected"] {
        if !case.join(file).is_file() {
            return Err(format!("the case has no file '{file}'").into());
        }
    }
    let script = fs::read_to_string(case.join("cmd"))?;
    let words: Vec<&str> = script.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let missing = |name: &&&str| words.contains(*name) && !is_there(name);
    let needed = [&["bash"], &PROGRAMS[..]].concat();
    if !is_there("bash") {
        return Ok(Completion::ignored_with("needs bash"));
    }
    if let Some(name) = needed.iter().find(missing) {
        return Ok(Completion::ignored_with(format!("needs {name}")));
    }
    // In a copy of the case's folder, because a script may write files next to its inputs.
    let copy = tempfile::tempdir()?;
    for entry in fs::read_dir(case)? {
        let entry = entry?;
        fs::copy(entry.path(), copy.path().join(entry.file_name()))?;
    }
    let (out, err) = (copy.path().join(".stdout"), copy.path().join(".stderr"));
    let mut child = Command::new("bash")
        .arg("./cmd")
        .current_dir(copy.path())
        .env("FIBULA", env!("CARGO_BIN_EXE_fibula"))
        .env("FIBULA_TABLE", "")
        .env("LC_ALL", "C.UTF-8")
        .env_remove("FIBULA_ISA")
        .stdin(Stdio::null())
        .stdout(fs::File::create(&out)?)
        .stderr(fs::File::create(&err)?)
        .spawn()?;
    let started = Instant::now();
    while child.try_wait()?.is_none() {
        if started.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            return Err(format!("no end after {} s", PATIENCE.as_secs()).into());
        }
        thread::sleep(Duration::from_millis(2));
    }
    let (found, expected) = (fs::read(&out)?, fs::read(case.join("expected"))?);
    if found == expected {
        return Ok(Completion::Completed);
    }
    let shown = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
    Err(format!(
        "{}\nexpected:\n{}\nfound:\n{}\nstandard error:\n{}",
        fs::read_to_string(case.join("thread"))?,
        shown(&expected),
        shown(&found),
        shown(&fs::read(&err)?)
    )
    .into())
}

/// Returns whether a program can be started.
fn is_there(name: &str) -> bool {
    let started = Command::new(name)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    !started.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}
