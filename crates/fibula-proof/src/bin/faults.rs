//! Plants every fault of `faults.toml` in a copy of the sources and sees that its test fails.
//!
//! `cargo run --release -p fibula-proof --bin faults [NAME-PART]`. Exit code 1 when a fault goes unnoticed.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use fibula_proof::fault::{self, Fault};

/// Time after which a test that a fault has sent into a loop counts as failed; the first one also builds all.
const PATIENCE: Duration = Duration::from_secs(300);

type AnyError = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Where the copy lies; it stays, so that the next run compiles only what changed.
struct Copy {
    root: PathBuf,
    target: PathBuf,
}

fn run() -> Result<bool, AnyError> {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(workspace.join("target"), PathBuf::from);
    let copy = Copy { root: target.join("faults/source"), target: target.join("faults/target") };
    copy.refresh(&workspace)?;
    let faults: Vec<Fault> =
        fault::list()?.into_iter().filter(|fault| fault.name.contains(&wanted)).collect();
    let mut missed = Vec::new();
    for fault in &faults {
        let start = Instant::now();
        let verdict = copy.try_fault(&workspace, fault)?;
        println!("{verdict:8} {:5.1} s  {} [{}]", start.elapsed().as_secs_f64(), fault.name, fault.test);
        if !["caught", "hung"].contains(&verdict) {
            missed.push(&fault.name);
        }
    }
    println!("\n{} passed, {} failed", faults.len() - missed.len(), missed.len());
    Ok(missed.is_empty())
}

impl Copy {
    /// Copies every source that differs, so that time stamps of the others stay.
    fn refresh(&self, workspace: &Path) -> Result<(), AnyError> {
        let output = Command::new("git")
            .current_dir(workspace)
            .args(["ls-files", "-co", "--exclude-standard"])
            .output()?;
        for file in String::from_utf8(output.stdout)?.lines() {
            let (from, to) = (workspace.join(file), self.root.join(file));
            let Ok(source) = std::fs::read(&from) else { continue };
            if std::fs::read(&to).ok().as_ref() != Some(&source) {
                std::fs::create_dir_all(to.parent().ok_or("a file without a folder")?)?;
                std::fs::write(&to, source)?;
            }
        }
        Ok(())
    }

    /// Runs cargo in the copy: whether it succeeded, none when it ran too long, and what it said.
    fn cargo(&self, arguments: &[&str]) -> Result<(Option<bool>, String), AnyError> {
        let report = self.root.join("report.txt");
        let file = std::fs::File::create(&report)?;
        let mut child = Command::new(env!("CARGO"))
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("RUST_BACKTRACE", "0")
            .env_remove("FIBULA_DATA")
            .args(arguments)
            .process_group(0)
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()?;
        let start = Instant::now();
        let status = loop {
            match child.try_wait()? {
                Some(status) => break Some(status.success()),
                None if start.elapsed() > PATIENCE => {
                    // The group: cargo and the test that it started.
                    let group = format!("-{}", child.id());
                    Command::new("kill").args(["-9", "--", &group]).status()?;
                    child.wait()?;
                    break None;
                }
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        Ok((status, String::from_utf8_lossy(&std::fs::read(report)?).into_owned()))
    }

    fn try_fault(&self, workspace: &Path, fault: &Fault) -> Result<&'static str, AnyError> {
        let path = self.root.join(&fault.file);
        let sound = std::fs::read_to_string(workspace.join(&fault.file))?;
        std::fs::write(&path, fault.plant(workspace)?)?;
        let outcome = self.cargo(&fault.cargo_arguments());
        std::fs::write(&path, sound)?;
        let (passed, report) = outcome?;
        if !report.contains("running 1 test") {
            eprintln!("{report}");
            return Ok(if report.contains("could not compile") { "no build" } else { "no test" });
        }
        Ok(match passed {
            Some(true) => "MISSED",
            Some(false) => "caught",
            None => "hung",
        })
    }
}
