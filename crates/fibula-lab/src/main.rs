//! The command `fibula-lab`.

use std::process::ExitCode;

fn main() -> ExitCode {
    fibula_lab::run(std::env::args_os())
}
