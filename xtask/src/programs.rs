//! Other programs, and where things are.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Outcome;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Where the workspace is built.
pub(crate) fn target() -> PathBuf {
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    root().join(folder)
}

/// The compiler and the machine that it compiles for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Compiler {
    pub(crate) rustc: String,
    pub(crate) target: String,
}

impl Compiler {
    pub(crate) fn this() -> Outcome<Self> {
        let text = output(Command::new("rustc").arg("-vV"))?;
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
        let target = field("host: ").ok_or("rustc -vV names no host")?;
        Ok(Self { rustc: text.lines().next().unwrap_or_default().to_owned(), target })
    }
}

impl std::fmt::Display for Compiler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, {}", self.rustc, self.target)
    }
}

/// Returns what a program prints to standard output.
pub(crate) fn output(command: &mut Command) -> Outcome<String> {
    let output =
        command.stderr(Stdio::inherit()).output().map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Runs a program that must succeed.
pub(crate) fn run(command: &mut Command) -> Outcome {
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}").into()) }
}

/// Returns whether a program is there.
pub(crate) fn is_there(name: &str) -> bool {
    let mut command = Command::new(name);
    command
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

pub(crate) fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let numbers = ["cpu family", "model\t"].map(|name| field(name).unwrap_or_default());
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    format!(
        "{}, family {} model {}, {count} cores",
        field("model name").unwrap_or_default(),
        numbers[0],
        numbers[1]
    )
}
