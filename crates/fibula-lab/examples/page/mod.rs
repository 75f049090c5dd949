//! Generated files: written, or compared with what is committed.
//!
//! Every example that generates committed files takes the same arguments: none to write them, `--check` to compare.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What the command line says.
pub(crate) struct Arguments {
    /// Whether to compare instead of writing.
    check: bool,
    /// The folder of real tables, where one is named.
    data: Option<PathBuf>,
}

impl Arguments {
    /// Reads `[--check] [FOLDER]`. The folder is that of real tables; `FIBULA_DATA` names it otherwise.
    pub(crate) fn read() -> Result<Self, Box<dyn Error>> {
        let mut arguments = Self { check: false, data: std::env::var_os("FIBULA_DATA").map(Into::into) };
        for argument in std::env::args_os().skip(1) {
            match argument.to_str() {
                Some("--check") => arguments.check = true,
                Some(option) if option.starts_with('-') => {
                    return Err(format!("unknown option '{option}'; usage: [--check] [FOLDER]").into());
                }
                _ => arguments.data = Some(argument.into()),
            }
        }
        Ok(arguments)
    }

    /// The path of a real table.
    #[allow(dead_code)] // Pages that are made from committed records alone need none.
    pub(crate) fn table(&self, name: &str) -> Result<PathBuf, Box<dyn Error>> {
        let folder = self.data.as_ref().ok_or("set FIBULA_DATA to the folder of real tables, or name it")?;
        Ok(folder.join(format!("{name}.txt.xz")))
    }

    /// Writes the files, or with `--check` compares them and fails where one differs. Paths are relative to the root.
    pub(crate) fn finish(&self, files: &[(String, String)]) -> Result<ExitCode, Box<dyn Error>> {
        // Said at the end: a reader of standard output that goes away must not keep files from being written.
        let (mut stale, mut report) = (0, String::new());
        for (name, text) in files {
            let path = root().join(name);
            if !self.check {
                if let Some(folder) = path.parent() {
                    fs::create_dir_all(folder)?;
                }
                fs::write(&path, text)?;
                writeln!(report, "{name}: {} bytes written", text.len())?;
                continue;
            }
            let committed = fs::read_to_string(&path).unwrap_or_default();
            if committed == *text {
                writeln!(report, "{name}: up to date")?;
                continue;
            }
            stale += 1;
            // Line by line, so that an added or missing line at the end shows too.
            let (mut old, mut new) = (committed.lines(), text.lines());
            let first = (1..).map(|number| (number, old.next(), new.next())).find(|(_, old, new)| old != new);
            let (number, old, new) = first.unwrap_or((0, None, None));
            writeln!(report, "{name}: STALE from line {number}")?;
            writeln!(report, "  committed: {}", old.unwrap_or("(end)"))?;
            writeln!(report, "  generated: {}", new.unwrap_or("(end)"))?;
        }
        if stale > 0 {
            writeln!(
                report,
                "{stale} of {} files are stale; run the same command without --check",
                files.len()
            )?;
        }
        print!("{report}");
        Ok(if stale > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

/// A number with commas between the thousands.
#[allow(dead_code)] // Only some pages have such numbers.
pub(crate) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| str::from_utf8(group).unwrap_or("")).collect();
    groups.join(",")
}
