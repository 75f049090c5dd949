//! Plants every fault of `faults.toml` in a copy of the sources and sees that its test fails.
//!
//! `cargo run --release -p fibula-proof --bin faults [NAME-PART]`. Exit code 1 when a fault goes unnoticed. Several
//! copies work side by side, one a core.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fibula_proof::fault::{self, Fault};

/// Time after which a test that a fault has sent into a loop counts as failed; the first one also builds all.
const PATIENCE: Duration = Duration::from_secs(300);

/// Copies at most: each begins with a build of its own.
const MOST_COPIES: usize = 4;

/// Faults below which another copy costs more than it saves.
const FAULTS_A_COPY: usize = 8;

type AnyError = Box<dyn std::error::Error + Send + Sync>;

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

fn run() -> Result<bool, AnyError> {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(workspace.join("target"), PathBuf::from);
    let faults: Vec<Fault> =
        fault::list()?.into_iter().filter(|fault| fault.name.contains(&wanted)).collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let copies = cores.min(MOST_COPIES).min(faults.len().div_ceil(FAULTS_A_COPY));
    let next = AtomicUsize::new(0);
    let missed = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..copies)
            .map(|number| {
                let copy = Copy::new(&workspace, &target, number);
                let (faults, next) = (&faults, &next);
                scope.spawn(move || copy.try_faults(faults, next))
            })
            .collect();
        let mut missed = 0;
        for worker in workers {
            missed += worker.join().map_err(|_| "a copy's thread panicked")??;
        }
        Ok::<usize, AnyError>(missed)
    })?;
    println!("\n{} passed, {missed} failed", faults.len() - missed);
    Ok(missed == 0)
}

/// Where a copy lies; it stays, so that the next run compiles only what changed.
struct Copy<'a> {
    workspace: &'a Path,
    /// The target folder of the workspace.
    built: &'a Path,
    root: PathBuf,
    target: PathBuf,
}

impl<'a> Copy<'a> {
    fn new(workspace: &'a Path, built: &'a Path, number: usize) -> Self {
        let folder = built.join("faults").join(number.to_string());
        Self { workspace, built, root: folder.join("source"), target: folder.join("target") }
    }

    /// Takes fault after fault from the shared list until none is left; the number of those that went unnoticed.
    fn try_faults(&self, faults: &[Fault], next: &AtomicUsize) -> Result<usize, AnyError> {
        self.refresh()?;
        self.seed()?;
        let mut missed = 0;
        while let Some(fault) = faults.get(next.fetch_add(1, Ordering::Relaxed)) {
            let start = Instant::now();
            let verdict = self.try_fault(fault)?;
            println!("{verdict:8} {:5.1} s  {} [{}]", start.elapsed().as_secs_f64(), fault.name, fault.test);
            if !["caught", "hung"].contains(&verdict) {
                missed += 1;
            }
        }
        Ok(missed)
    }

    /// Copies every source that differs, so that time stamps of the others stay. Programs of this crate stay out:
    /// cargo would link them again for each fault.
    fn refresh(&self) -> Result<(), AnyError> {
        let output = Command::new("git")
            .current_dir(self.workspace)
            .args(["ls-files", "-co", "--exclude-standard"])
            .output()?;
        for file in String::from_utf8(output.stdout)?.lines() {
            if file.starts_with("crates/fibula-proof/src/bin/") {
                continue;
            }
            let (from, to) = (self.workspace.join(file), self.root.join(file));
            let Ok(source) = std::fs::read(&from) else { continue };
            if std::fs::read(&to).ok().as_ref() != Some(&source) {
                std::fs::create_dir_all(to.parent().ok_or("a file without a folder")?)?;
                std::fs::write(&to, source)?;
            }
        }
        Ok(())
    }

    /// Begins with what `cargo test` has built of the registry's crates, where it has: cargo takes them for its own,
    /// since neither their sources nor their flags differ, and builds anew what it does not.
    fn seed(&self) -> Result<(), AnyError> {
        let (from, to) = (self.built.join("debug"), self.target.join("debug"));
        if to.exists() {
            return Ok(());
        }
        std::fs::create_dir_all(&to)?;
        for folder in ["deps", "build", ".fingerprint"] {
            let from = from.join(folder);
            if from.exists() {
                // With time stamps, by which cargo tells what is newer than what.
                Command::new("cp").arg("-a").args([&from, &to]).status()?;
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
            // Also where the caller keeps no traces of builds: each of these differs by one expression from the last.
            .env("CARGO_INCREMENTAL", "1")
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

    fn try_fault(&self, fault: &Fault) -> Result<&'static str, AnyError> {
        let path = self.root.join(&fault.file);
        let sound = std::fs::read_to_string(self.workspace.join(&fault.file))?;
        std::fs::write(&path, fault.plant(self.workspace)?)?;
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
