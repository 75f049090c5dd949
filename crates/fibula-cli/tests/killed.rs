//! `kill -9` at every system call of a save, and a reader that follows the file meanwhile. This file is the program that
//! saves by the library as well: started with `save FILE`, it waits for a line and does that.
//!
//! The programs are traced: they stop where they enter the system and where they return from it, and are killed at one of
//! these stops, the first in the first run, and so on, until one ends by itself before.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
#[path = "killed/tracing.rs"]
mod tracing;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    tracing::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    ExitCode::SUCCESS
}
