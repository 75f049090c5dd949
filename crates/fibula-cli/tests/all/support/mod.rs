//! Running the command and looking at what comes back.

// Each test program uses its own part of this.
#![allow(dead_code)]

pub(crate) mod documents;
pub(crate) mod page;
pub(crate) mod width;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Both families, nested prefixes, a next hop with a comma in it.
pub(crate) const TABLE: &str = "\
# a comment
192.0.2.0/24 64500
192.0.2.128/25 198.51.100.1
10.0.0.0/8 1,2
2001:db8::/32 64501
2001:db8:1::/48 fe80::1
::ffff:0:0/96 64502
";

/// A folder with a table, gone with the test.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

/// The command of the crate that has the test: the tests of `fibula-lab` take this module too.
pub(crate) const PROGRAM: &str =
    match (option_env!("CARGO_BIN_EXE_fibula"), option_env!("CARGO_BIN_EXE_fibula-lab")) {
        (Some(path), _) | (None, Some(path)) => path,
        (None, None) => panic!("tests of a crate without a command"),
    };

/// The command in a clean environment: without what this machine happens to have of other languages, too.
pub(crate) fn fibula() -> Command {
    let mut command = Command::new(PROGRAM);
    command.env("FIBULA_PYTHON", "/nowhere/python3").env("FIBULA_GO", "/nowhere/go");
    command
        // Wide enough that tables are not broken.
        .env("COLUMNS", "150")
        .env_remove("CLICOLOR_FORCE")
        .env_remove("NO_COLOR")
        .env_remove("FIBULA_ISA")
        .env_remove("FIBULA_TABLE")
        .env_remove("FIBULA_DATA");
    command
}

/// What a run left.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().expect("no signal"),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Runs the command with nothing on standard input.
pub(crate) fn run(args: &[&str]) -> Run {
    feed(args, b"")
}

/// Runs the command with `input` on standard input.
pub(crate) fn feed(args: &[&str], input: impl AsRef<[u8]>) -> Run {
    let input = input.as_ref().to_vec();
    let mut child = fibula()
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A command that refuses its arguments does not read: the pipe closes, which is no fault here.
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output.into()
}

/// `fibula lookup` in [`TABLE`].
pub(crate) fn lookup(options: &[&str], input: impl AsRef<[u8]>) -> Run {
    let folder = Folder::new();
    let table = folder.write("table.txt", TABLE);
    let mut args = vec!["lookup", "--table", table.to_str().unwrap()];
    args.extend(options);
    feed(&args, input)
}
