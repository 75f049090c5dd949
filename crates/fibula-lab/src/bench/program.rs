//! The program that a benchmark ran in, and its compiler.

use std::fs;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

/// The operating system and the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// The system and its version.
    pub os: String,
    /// The compiler.
    pub rustc: String,
    /// The target it compiled for.
    pub target: String,
    /// `release` or `debug`.
    pub profile: String,
    /// The commit of the checkout that it was built in, as the checkout is when the program runs: `-dirty` if files
    /// differ. None outside of a checkout.
    pub commit: Option<String>,
    /// The level of optimisation.
    pub opt_level: String,
    /// Target features that the whole program was compiled with.
    pub target_features: String,
}

impl Program {
    /// Describes this program and system.
    #[must_use]
    pub fn this() -> Self {
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            os: format!("{} {}", std::env::consts::OS, kernel.trim()).trim().to_owned(),
            rustc: env!("FIBULA_RUSTC").to_owned(),
            target: env!("FIBULA_TARGET").to_owned(),
            profile: env!("FIBULA_PROFILE").to_owned(),
            commit: commit(),
            opt_level: env!("FIBULA_OPT_LEVEL").to_owned(),
            target_features: env!("FIBULA_TARGET_FEATURES").to_owned(),
        }
    }
}

/// Describes the commit of the checkout. It is looked up when the program runs: a build that depended on the commit would
/// be repeated after each one.
fn commit() -> Option<String> {
    let checkout = option_env!("FIBULA_CHECKOUT")?;
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-C", checkout]).args(arguments).stdin(Stdio::null());
        let output = git.output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    // A copy of the sources might lie in somebody else's checkout.
    git(&["ls-files", "--error-unmatch", "Cargo.toml"])?;
    git(&["describe", "--always", "--dirty", "--abbrev=12"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_is_known() {
        assert!(Program::this().rustc.contains("rustc"));
    }
}
