//! Plants every fault of `faults.toml` in a copy of the sources and checks that its test fails.
//!
//! `cargo run --release -p fibula-proof --bin faults [--changed] [--minutes N] [NAME-PART] | --count`. A fault that was caught is in
//! `records/faults.tsv`, which this writes after each; it is planted again when it or its folder has changed since, or when its name
//! has the part. With `--changed`, faults that are in the record and were not caught yet are left out. With `--minutes`, those that are not planted in that time
//! are left out, which the last lines say, and the next run goes on with them. `--count` prints how many of all are caught. Exit code 1 when a fault goes unnoticed. Several copies
//! work side by side, one a core, each on the faults of one test target at a time: the first build of a target takes as long as
//! dozens of faults.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fibula_proof::fault::{self, Fault, Record};

/// Time after which a test that a fault has sent into a loop counts as failed; the first one also builds all.
const PATIENCE: Duration = Duration::from_secs(600);

/// Copies at most: each begins with a build of its own.
const MOST_COPIES: usize = 4;

/// Faults of one target that are worth another copy's first build of it.
const FAULTS_A_BUILD: usize = 24;

/// What is compiled again for every fault, without the optimiser, which would take most of the time: a failing test ends
/// within moments. The dependencies are built as elsewhere.
const UNOPTIMISED: [&str; 4] = ["fibula", "fibula-feed", "fibula-workload", "fibula-proof"];

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
    let Arguments { changed, minutes, count, wanted } = Arguments::parse(std::env::args().skip(1))?;
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(workspace.join("target"), PathBuf::from);
    let all = fault::list()?;
    let known = Known::read(&workspace)?;
    let _alone = alone(&target)?;
    let mut faults = known.lock().take(&all, changed, |fault| fault.stamp(&workspace))?;
    if let Some(part) = &wanted {
        faults = all.iter().filter(|fault| fault.name.contains(part)).cloned().collect();
    }
    if count {
        println!("{} of {}", all.len() - faults.len(), all.len());
        return Ok(true);
    }
    let count = faults.len();
    if !has_dpdk() {
        faults.retain(|fault| fault.target() != fault::DPDK);
    }
    if faults.len() < count {
        println!("SKIPPED {} of {} faults: no DPDK", count - faults.len(), all.len());
    }
    println!("{} of {} faults are to be planted", faults.len(), all.len());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let deadline = minutes.map(|minutes| Instant::now() + Duration::from_secs(60 * minutes));
    let queue = Queue::new(&faults, deadline);
    let copies = cores.min(MOST_COPIES).min(queue.builds());
    let missed = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..copies)
            .map(|number| {
                let copy = Copy::new(&workspace, &target, number);
                let (queue, known) = (&queue, &known);
                scope.spawn(move || copy.try_faults(queue, known))
            })
            .collect();
        let mut missed = 0;
        for worker in workers {
            missed += worker.join().map_err(|_| "a copy's thread panicked")??;
        }
        Ok::<usize, AnyError>(missed)
    })?;
    let left = queue.left();
    if left > 0 {
        println!(
            "SKIPPED {left} of {} faults: not planted in {} minutes",
            all.len(),
            minutes.unwrap_or_default()
        );
    }
    println!("\n{} passed, {missed} failed", faults.len() - missed - left);
    Ok(missed == 0)
}

/// Returns a lock that one run holds at a time: two in one copy would take each other's faults for sound sources.
fn alone(target: &Path) -> Result<std::fs::File, AnyError> {
    let folder = target.join("faults");
    std::fs::create_dir_all(&folder)?;
    let lock = std::fs::File::create(folder.join("lock"))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(std::fs::TryLockError::WouldBlock) => {
            Err(format!("{}: another run plants faults there: wait for its end", folder.display()).into())
        }
        Err(std::fs::TryLockError::Error(error)) => Err(error.into()),
    }
}

/// Returns whether the router can be built with DPDK.
fn has_dpdk() -> bool {
    let found = Command::new("pkg-config").args(["--exists", "libdpdk"]).status();
    found.is_ok_and(|status| status.success())
}

/// The record of faults that were caught.
struct Known {
    workspace: PathBuf,
    record: Mutex<Record>,
}

impl Known {
    fn read(workspace: &Path) -> Result<Self, AnyError> {
        let text = std::fs::read_to_string(workspace.join(fault::RECORD))?;
        let record =
            Record::parse(&text).map_err(|line| format!("{}: no fault and stamp: {line}", fault::RECORD))?;
        Ok(Self { workspace: workspace.to_owned(), record: Mutex::new(record) })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a fault was caught.
    fn insert(&self, fault: &Fault) -> Result<(), AnyError> {
        let stamp = fault.stamp(&self.workspace)?;
        let mut record = self.lock();
        record.insert(&fault.name, stamp);
        let file = self.workspace.join(fault::RECORD);
        // Renamed, so that a run which is broken off leaves a whole file.
        let new = file.with_extension("new");
        std::fs::write(&new, record.to_string())?;
        Ok(std::fs::rename(new, file)?)
    }
}

/// What the command line says.
#[derive(Default)]
struct Arguments {
    changed: bool,
    minutes: Option<u64>,
    /// None is planted.
    count: bool,
    /// A part of the names of the faults to plant.
    wanted: Option<String>,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, AnyError> {
        const USAGE: &str = "usage: faults [--changed] [--minutes N] [NAME-PART] | --count";
        let mut arguments = Self::default();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--changed" => arguments.changed = true,
                "--count" => arguments.count = true,
                "--minutes" => {
                    arguments.minutes = Some(words.next().and_then(|n| n.parse().ok()).ok_or(USAGE)?);
                }
                part if !part.starts_with('-') && arguments.wanted.is_none() => arguments.wanted = Some(word),
                _ => return Err(USAGE.into()),
            }
        }
        Ok(arguments)
    }
}

/// Returns what git prints.
fn git(workspace: &Path, arguments: &[&str]) -> Result<String, AnyError> {
    let output = Command::new("git").current_dir(workspace).args(arguments).output()?;
    if !output.status.success() {
        return Err(format!(
            "git {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        )
        .into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// The faults that are still to be planted.
struct Queue<'a> {
    targets: Mutex<Vec<Target<'a>>>,
    /// When no more are planted.
    deadline: Option<Instant>,
}

/// The faults that the tests of one target must catch.
struct Target<'a> {
    name: &'a str,
    /// Those that no copy has taken, the first one last.
    left: Vec<&'a Fault>,
    /// Whether a copy has built the target.
    built: bool,
}

impl<'a> Queue<'a> {
    /// Groups the faults by target, the target with the most faults first. Without a deadline those of a file are together,
    /// because removing a fault compiles the same crate as planting the next; with one they are as they come.
    fn new(faults: &'a [Fault], deadline: Option<Instant>) -> Self {
        let mut targets: Vec<Target<'a>> = Vec::new();
        for fault in faults.iter().rev() {
            let name = fault.target();
            match targets.iter_mut().find(|target| target.name == name) {
                Some(target) => target.left.push(fault),
                None => targets.push(Target { name, left: vec![fault], built: false }),
            }
        }
        if deadline.is_none() {
            targets.iter_mut().for_each(|target| target.left.sort_by(|one, other| other.file.cmp(&one.file)));
        }
        targets.sort_by_key(|target| std::cmp::Reverse(target.left.len()));
        Self { targets: Mutex::new(targets), deadline }
    }

    /// Returns the number of faults that no copy has taken.
    fn left(&self) -> usize {
        self.targets
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .map(|target| target.left.len())
            .sum()
    }

    /// Returns the number of copies that have work from the start.
    fn builds(&self) -> usize {
        let targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        targets.iter().map(|target| target.left.len().div_ceil(FAULTS_A_BUILD)).sum()
    }

    /// Returns the next fault for a copy whose last one was of the target `at`: of the same, else of a target that no
    /// copy has built, else of one with much left.
    fn next(&self, at: Option<&'a str>) -> Option<&'a Fault> {
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return None;
        }
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        let position = |fits: &dyn Fn(&Target<'a>) -> bool| {
            targets.iter().position(|target| !target.left.is_empty() && fits(target))
        };
        let chosen = position(&|target| Some(target.name) == at)
            .or_else(|| position(&|target| !target.built))
            .or_else(|| position(&|target| target.left.len() >= FAULTS_A_BUILD))?;
        let target = &mut targets[chosen];
        target.built = true;
        target.left.pop()
    }
}

/// A copy of the sources. It is kept, so that the next run compiles only what changed.
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

    /// Plants fault after fault from the queue until none is left for it. Returns how many went unnoticed.
    fn try_faults(&self, queue: &Queue<'_>, known: &Known) -> Result<usize, AnyError> {
        self.refresh()?;
        self.seed()?;
        let (mut missed, mut target) = (0, None);
        while let Some(fault) = queue.next(target) {
            target = Some(fault.target());
            let start = Instant::now();
            let verdict = self.try_fault(fault)?;
            println!("{verdict:8} {:5.1} s  {} [{}]", start.elapsed().as_secs_f64(), fault.name, fault.test);
            if ["caught", "hung"].contains(&verdict) {
                known.insert(fault)?;
            } else {
                missed += 1;
            }
        }
        Ok(missed)
    }

    /// Copies every source that differs, so that the others keep their time stamps. The programs of this crate are left out:
    /// cargo would link them again for each fault.
    fn refresh(&self) -> Result<(), AnyError> {
        for file in git(self.workspace, &["ls-files", "-co", "--exclude-standard"])?.lines() {
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

    /// Starts from the dependencies that `cargo test` has built, if it has: cargo accepts them, because neither their
    /// sources nor their flags differ, and builds the rest.
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

    /// Runs cargo in the copy. Returns whether it succeeded, `None` when it ran too long, and what it printed.
    fn cargo(&self, arguments: &[&str]) -> Result<(Option<bool>, String), AnyError> {
        let report = self.root.join("report.txt");
        let file = std::fs::File::create(&report)?;
        let unoptimised = UNOPTIMISED
            .map(|package| ["--config".to_owned(), format!("profile.dev.package.{package}.opt-level=0")]);
        let mut child = Command::new(env!("CARGO"))
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            // Even where the caller turns it off: each of these builds differs from the last by one expression.
            .env("CARGO_INCREMENTAL", "1")
            .env_remove("CARGO_PROFILE_DEV_CODEGEN_UNITS")
            .env("RUST_BACKTRACE", "0")
            .env_remove("FIBULA_DATA")
            // A cargo that rustup does not start has rustc look for a toolchain by folder, and some dependencies name one in theirs.
            .envs(option_env!("RUSTUP_TOOLCHAIN").map(|toolchain| ("RUSTUP_TOOLCHAIN", toolchain)))
            .args(unoptimised.as_flattened())
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
