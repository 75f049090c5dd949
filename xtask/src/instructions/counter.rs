//! What counts the instructions of a program: callgrind on this machine, or an emulated processor.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Outcome;
use crate::programs::{is_there, root, run, target};

/// A way to count the instructions of the whole run of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counter {
    /// Under callgrind.
    Callgrind,
    /// On an AArch64 processor that QEMU emulates.
    Aarch64,
}

/// The folder of the libraries of AArch64, as Debian has it.
const AARCH64_LIBRARIES: &str = "/usr/aarch64-linux-gnu";
const AARCH64: &str = "aarch64-unknown-linux-gnu";

impl Counter {
    /// Returns what it lacks on this machine.
    pub(super) fn lacks(self) -> Option<String> {
        let needed: &[&str] = match self {
            Self::Callgrind => &["valgrind"],
            Self::Aarch64 => &["qemu-aarch64", "cc", "aarch64-linux-gnu-gcc"],
        };
        needed.iter().find(|name| !is_there(name)).map(|name| format!("no {name}"))
    }

    /// Returns the target that it counts for; `None` for this machine's.
    pub(super) const fn target(self) -> Option<&'static str> {
        match self {
            Self::Callgrind => None,
            Self::Aarch64 => Some(AARCH64),
        }
    }

    /// Returns whether a line of the program's list is counted: callgrind has the portable code of all engines already.
    pub(super) fn counts(self, line: &str) -> bool {
        self == Self::Callgrind || line.contains(" neon ")
    }

    /// Builds a program, and what counts.
    pub(super) fn build(self, package: &str, example: &str) -> Outcome<PathBuf> {
        let mut cargo = Command::new("cargo");
        cargo.args(["build", "--quiet", "--profile", "counts", "--package", package]);
        cargo.args(["--example", example]).current_dir(root());
        let mut built = target();
        if let Some(target) = self.target() {
            cargo
                .args(["--target", target])
                .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc");
            built.push(target);
        }
        run(&mut cargo)?;
        if self == Self::Aarch64 {
            let mut cc = Command::new("cc");
            cc.args(["-O2", "-Wall", "-shared", "-fPIC", "-o"]).arg(plugin());
            run(cc.arg(root().join("xtask/src/instructions/counted.c")))?;
        }
        Ok(built.join("counts/examples").join(example).canonicalize()?)
    }

    /// Returns the command that runs a program uncounted.
    pub(super) fn command(self, program: &Path) -> Command {
        match self {
            Self::Callgrind => Command::new(program),
            Self::Aarch64 => {
                let mut command = Command::new("qemu-aarch64");
                command.args(["-L", AARCH64_LIBRARIES]).arg(program);
                command
            }
        }
    }

    /// Returns the instructions of a run: of a whole one, or under callgrind of those calls that `within` names.
    pub(crate) fn once(
        self,
        program: &Path,
        line: &str,
        passes: u32,
        within: Option<&str>,
    ) -> Result<u64, String> {
        let mut command;
        match self {
            Self::Callgrind => {
                command = Command::new("valgrind");
                command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
                command.args(within.map(|function| format!("--toggle-collect={function}")));
            }
            Self::Aarch64 => {
                command = Command::new("qemu-aarch64");
                command.args(["-L", AARCH64_LIBRARIES, "-plugin"]).arg(plugin());
            }
        }
        command.arg(program).args(line.split(' ')).arg(passes.to_string());
        let output = command.stdout(Stdio::null()).stderr(Stdio::piped()).output();
        let output = output.map_err(|error| format!("{command:?}: {error}"))?;
        let text = String::from_utf8_lossy(&output.stderr);
        let collected =
            text.lines().find(|line| line.contains("Collected")).and_then(|line| line.rsplit(' ').next());
        // None at all if there is no such function.
        let count = collected.and_then(|count| count.parse().ok()).filter(|&count| count > 0);
        count.ok_or_else(|| format!("{line}: no count in: {text}"))
    }
}

/// Returns where the plugin of QEMU is built.
fn plugin() -> PathBuf {
    target().join("counts/counted.so")
}
