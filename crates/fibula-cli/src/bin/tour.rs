//! The program of `cargo run` in this workspace: the tour of `fibula-cli`.

use std::process::ExitCode;

fn main() -> ExitCode {
    fibula_cli::tour(std::env::args_os())
}
