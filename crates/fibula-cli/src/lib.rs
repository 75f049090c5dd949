//! The command `fibula`: look up, compare and inspect routing tables.
//!
//! Only this crate prints, reads the environment and exits. Each command is a module with its own options; `args` joins
//! them, and help, completions and manual pages are generated from it.

#[cfg(all(feature = "dpdk", feature = "router-dpdk"))]
compile_error!(
    "features 'dpdk' and 'router-dpdk' are not for the same program: one links parts of DPDK statically, the other all of it"
);

mod algorithms;
mod answer;
mod args;
mod bench;
mod choose;
mod compile;
#[cfg(feature = "gpu")]
mod coprocessor;
mod docs;
mod doctor;
mod failure;
mod fetch;
mod fields;
#[cfg(feature = "crates")]
mod heap;
mod load;
mod lookup;
mod machine;
mod messages;
mod objects;
mod options;
mod output;
mod paper;
mod peers;
mod replay;
mod route;
mod route_rows;
mod router;
mod suggested;
mod table;
mod text;
mod time;
mod tour;
mod verify;
mod width;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Cli, Command, TourCli};
use failure::{Failure, code};

/// Runs the command `fibula` and prints errors to standard error; `args` begin with the program's name.
///
/// Exit codes: 0, 1 nothing found, 2 wrong use, 3 bad input, 4 not available on this machine.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let program = args.first().map_or("fibula".into(), |name| name.to_string_lossy().into_owned());
    let command = match parse::<Cli>(args) {
        Ok(cli) => cli.command,
        Err(error) => return refuse(&error),
    };
    if output::stdout_is_closed() && command.as_ref().is_none_or(Command::prints) {
        return end(Err(Failure::StdoutClosed));
    }
    let outcome = match &command {
        None => help(),
        Some(Command::Lookup(args)) => lookup::run(args),
        Some(Command::Enrich(args)) => lookup::enrich(args),
        Some(Command::Count(args)) => lookup::count(args),
        Some(Command::Route(args)) => route::run(args),
        Some(Command::Router(args)) => router::run(args),
        Some(Command::Table(args)) => table::run(args),
        Some(Command::Verify(args)) => verify::run(args),
        Some(Command::Peers(args)) => peers::run(args),
        Some(Command::Algorithms(args)) => algorithms::run(args).map(|()| ExitCode::SUCCESS),
        Some(Command::Choose(args)) => choose::run(args),
        Some(Command::Compile(args)) => compile::run(args),
        Some(Command::Bench(args)) => bench::run(args),
        Some(Command::Replay(args)) => replay::run(args),
        Some(Command::Paper(args)) => paper::run(args),
        Some(Command::Doctor(args)) => doctor::run(args),
        Some(Command::Tour(args)) => tour::run(args, &program),
        Some(Command::Completions(args)) => {
            docs::completions(args, Cli::command()).map(|()| ExitCode::SUCCESS)
        }
        Some(Command::Man(args)) => docs::man(args, Cli::command()).map(|()| ExitCode::SUCCESS),
    };
    end(outcome)
}

/// Runs the tour as a separate program, for the workspace's `cargo run`; `args` begin with the program's name.
pub fn tour(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    match parse::<TourCli>(args.into_iter().collect()) {
        Ok(_) if output::stdout_is_closed() => end(Err(Failure::StdoutClosed)),
        Ok(cli) => end(tour::run(&cli.tour, "cargo run --release --bin fibula --")),
        Err(error) => refuse(&error),
    }
}

/// Parses arguments; the help fits into the terminal.
fn parse<T: Parser>(args: Vec<OsString>) -> Result<T, clap::Error> {
    let mut command = width::fitting(T::command());
    let matches = command.try_get_matches_from_mut(args)?;
    T::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

fn end(outcome: Result<ExitCode, Failure>) -> ExitCode {
    outcome.unwrap_or_else(|failure| {
        let (message, code) = failure.report();
        if let Some(message) = message {
            messages::error(message);
        }
        code
    })
}

/// Prints the help, if there is no command.
fn help() -> Result<ExitCode, Failure> {
    width::fitting(Cli::command()).print_help()?;
    Ok(ExitCode::SUCCESS)
}

/// Prints what is wrong with the arguments. Help and version arrive here too.
fn refuse(error: &clap::Error) -> ExitCode {
    let printed = error.print().and_then(|()| std::io::stdout().flush());
    if !error.use_stderr() {
        return end(match output::stdout_is_closed() {
            true => Err(Failure::StdoutClosed),
            false => printed.map(|()| ExitCode::SUCCESS).map_err(Failure::from),
        });
    }
    if error.kind() == clap::error::ErrorKind::MissingRequiredArgument
        && error.to_string().contains("--table")
    {
        messages::plain(
            "\nNo table at hand? Generate one with 'fibula table synth ipv4 --output routes.txt', or run 'fibula tour'.",
        );
    }
    code::WRONG_USE.into()
}
