//! The command `fibula`.

use std::process::ExitCode;

fn main() -> ExitCode {
    fibula_cli::run(std::env::args_os())
}
