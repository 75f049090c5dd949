//! The frame around a command: parses its arguments, prints errors and returns the exit code.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use crate::failure::{Failure, code};
use crate::{load, messages, output, width};

/// Runs a command, and prints errors to standard error. `args` begin with the program's name, which `work` gets too.
///
/// Where it `prints` to standard output, that must not have been closed from the start.
pub fn run<T: Parser>(
    args: impl IntoIterator<Item = OsString>,
    prints: impl FnOnce(&T) -> bool,
    work: impl FnOnce(&T, &str) -> Result<ExitCode, Failure>,
) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let program = args.first().map_or(String::new(), |name| name.to_string_lossy().into_owned());
    let parsed = match parse::<T>(args) {
        Ok(parsed) => parsed,
        Err(error) => return refuse(&error),
    };
    if output::stdout_is_closed() && prints(&parsed) {
        return end(Err(Failure::StdoutClosed));
    }
    let ended = end(work(&parsed, &program));
    if load::is_doubtful() { code::BAD_INPUT.into() } else { ended }
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

/// Prints the help of a command, for who names nothing to do.
///
/// # Errors
/// If it cannot be printed.
pub fn help(command: clap::Command) -> Result<ExitCode, Failure> {
    width::fitting(command).print_help()?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses a word that is another program's, or is spelt otherwise now: says where it is.
pub fn moved(message: impl core::fmt::Display) -> ExitCode {
    messages::error(message);
    code::WRONG_USE.into()
}

/// Prints an error of the arguments. Help and version arrive here too.
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
