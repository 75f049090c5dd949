//! Generated files: written, or compared with the committed ones.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use crate::command::figures::root;

/// Options of generated files: whether to compare them, and folders.
pub(super) struct Generated {
    /// Whether to compare instead of writing.
    pub(super) check: bool,
    /// The folder of real tables, where one is named.
    pub(super) data: Option<PathBuf>,
    /// The folder of the site, where one is named.
    pub(super) output: Option<PathBuf>,
}

impl Generated {
    /// The path of a real table.
    pub(super) fn table(&self, name: &str) -> Result<PathBuf, Box<dyn Error>> {
        let folder = self.data.as_ref().ok_or("a folder of real tables is needed")?;
        Ok(folder.join(format!("{name}.txt.xz")))
    }

    /// Writes the files, or with `--check` compares them and returns whether all are the same. Paths are relative to the root.
    pub(super) fn finish(&self, files: &[(String, String)]) -> Result<bool, Box<dyn Error>> {
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
        std::io::stdout().write_all(report.as_bytes())?;
        Ok(stale == 0)
    }
}

/// A number with commas between the thousands.
pub(super) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| str::from_utf8(group).unwrap_or("")).collect();
    groups.join(",")
}
