//! The command `fibula`: look up, compare and inspect routing tables.
//!
//! Of the libraries, only this crate and `fibula-lab` print, read the environment and exit. Each command is a module with its own
//! options; `args` joins them, and help, completions and manual pages are generated from it.

mod addresses;
mod answer;
mod args;
#[cfg(target_os = "linux")]
mod bpf;
mod calibration;
mod choose;
mod compile;
mod docs;
mod doctor;
mod engines;
mod failure;
mod fetch;
mod fields;
mod load;
mod lookup;
mod machine;
mod messages;
mod moved;
mod objects;
mod options;
mod output;
mod peers;
pub mod plumbing;
mod program;
mod replay;
mod route;
mod route_rows;
mod router;
mod rpki;
mod suggested;
mod table;
mod text;
mod time;
mod tour;
mod validation;
mod values;
mod verify;
mod width;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::CommandFactory;
use fibula::fib::registry::Engines;

use args::{Cli, Command, TourCli};

/// Runs the command `fibula` and prints errors to standard error; `args` begin with the program's name.
///
/// Exit codes: 0, 1 nothing found, 2 wrong use, 3 bad input, 4 not available on this machine.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    if let Some(place) = moved::place(&args).or_else(|| moved::renamed(&args)) {
        return program::moved(place);
    }
    let prints = |cli: &Cli| cli.command.as_ref().is_none_or(Command::prints);
    program::run(args, prints, |cli: &Cli, program| match &cli.command {
        None => program::help(Cli::command()),
        Some(Command::Lookup(args)) => lookup::run(args),
        Some(Command::Enrich(args)) => lookup::enrich(args),
        Some(Command::Count(args)) => lookup::count(args),
        Some(Command::Route(args)) => route::run(args),
        Some(Command::Router(args)) => router::run(args, Engines::OWN),
        Some(Command::Rpki(args)) => rpki::run(args),
        Some(Command::Table(args)) => table::run(args),
        Some(Command::Verify(args)) => verify::run(args),
        Some(Command::Peers(args)) => peers::run(args),
        Some(Command::Engines(args)) => engines::run(args, Engines::OWN),
        Some(Command::Choose(args)) => choose::run(args),
        Some(Command::Compile(args)) => compile::run(args),
        #[cfg(target_os = "linux")]
        Some(Command::Bpf(args)) => bpf::run(args),
        Some(Command::Replay(args)) => replay::run(args),
        Some(Command::Doctor(args)) => doctor::run(args),
        Some(Command::Tour(args)) => tour::run(args, program, Engines::OWN),
        Some(Command::Completions(args)) => docs::completions(args, Cli::command()),
        Some(Command::Man(args)) => docs::man(args, Cli::command()),
    })
}

/// Runs the tour as a separate program, for the workspace's `cargo run`; `args` begin with the program's name.
pub fn tour(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let command = "cargo run --release --bin fibula --";
    program::run(args, |_| true, |cli: &TourCli, _| tour::run(&cli.tour, command, Engines::OWN))
}
