//! What all packages of a commit have in common.

use std::process::Command;

use crate::Outcome;
use crate::programs::{Compiler, output, root};

/// A release: its version, its time, and the machine that the packages are for.
pub(crate) struct Release {
    pub(crate) version: String,
    /// Seconds since 1970 of the commit, or `SOURCE_DATE_EPOCH`: the time of every file.
    pub(crate) epoch: u64,
    /// Whom packages name as their maintainer, as Debian's tools take it: `DEBFULLNAME` and `DEBEMAIL`, else the commit's author.
    pub(crate) maintainer: String,
    pub(crate) commit: String,
    pub(crate) compiler: Compiler,
}

impl Release {
    pub(crate) fn this() -> Outcome<Self> {
        let manifest = std::fs::read_to_string(root().join("Cargo.toml"))?;
        let version = manifest.lines().find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
        let git = |format: &str| {
            output(Command::new("git").args(["log", "-1", format]).current_dir(root()))
                .map(|text| text.trim().to_owned())
        };
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let epoch = variable("SOURCE_DATE_EPOCH").map_or_else(|| git("--format=%ct"), Ok)?;
        let maintainer = match (variable("DEBFULLNAME"), variable("DEBEMAIL")) {
            (Some(name), Some(mail)) => format!("{name} <{mail}>"),
            _ => git("--format=%an <%ae>")?,
        };
        Ok(Self {
            version: version.ok_or("Cargo.toml has no version")?.to_owned(),
            epoch: epoch.parse().map_err(|error| format!("SOURCE_DATE_EPOCH '{epoch}': {error}"))?,
            maintainer,
            commit: git("--format=%h")?,
            compiler: Compiler::this()?,
        })
    }

    /// Returns a command that runs with the time of the release, and with messages in English.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("SOURCE_DATE_EPOCH", self.epoch.to_string()).env("LC_ALL", "C.UTF-8").env("TZ", "UTC");
        command
    }

    /// Returns the time of the release as `date` writes it.
    pub(crate) fn date(&self, format: &str) -> Outcome<String> {
        let at = format!("@{}", self.epoch);
        Ok(output(self.command("date").args(["-u", "-d", &at, format]))?.trim().to_owned())
    }

    /// The processor that packages are for.
    pub(crate) fn processor(&self) -> &str {
        processor(&self.compiler.target)
    }
}

/// Returns the processor of a target.
pub(crate) fn processor(target: &str) -> &str {
    target.split('-').next().unwrap_or(target)
}

/// Returns the name of a processor among Debian's architectures.
pub(crate) fn debian(processor: &str) -> &str {
    match processor {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "i686" => "i386",
        "powerpc64le" => "ppc64el",
        other => other,
    }
}
