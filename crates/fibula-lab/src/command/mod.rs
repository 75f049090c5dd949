//! The command `fibula-lab`.

mod args;
mod contestants;
#[cfg(feature = "gpu")]
mod coprocessor;
#[cfg(feature = "gpu")]
mod device;
mod device_args;
mod document;
mod engines;
mod failure;
mod figures;
#[cfg(feature = "crates")]
mod heap;
mod measure;
mod options;
mod page;
mod paper;
mod rates;
mod recorded;
mod report;
mod schedule;
mod tables;
mod targets;
mod updates;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::CommandFactory;
use fibula_cli::plumbing;

use args::{Cli, Command};
use engines::ENGINES;

/// Runs the command `fibula-lab` and prints errors to standard error; `args` begin with the program's name.
///
/// Exit codes: 0, 1 a wrong answer or a stale file, 2 wrong use, 3 bad input, 4 not available on this machine.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    if let Some(place) = place(&args).or_else(|| plumbing::renamed(&args)) {
        return plumbing::moved(place);
    }
    let prints = |cli: &Cli| cli.command.as_ref().is_none_or(Command::prints);
    plumbing::run(args, prints, |cli: &Cli, program| match &cli.command {
        None => plumbing::help(Cli::command()),
        Some(Command::Rates(args)) => rates::run(args),
        Some(Command::Updates(args)) => updates::run(args),
        Some(Command::Schedule(args)) => schedule::run(args),
        Some(Command::Device(args)) => device(args),
        Some(Command::Targets(args)) => targets::run(args),
        Some(Command::Paper(args)) => paper::run(args),
        Some(Command::Document(args)) => document::run(args),
        Some(Command::Measure(args)) => measure::run(args),
        Some(Command::Engines(args)) => plumbing::engines(args, ENGINES),
        Some(Command::Router(args)) => plumbing::router(args, ENGINES),
        Some(Command::Tour(args)) => {
            // The tour ends with commands of `fibula`, so it gets that name.
            plumbing::tour(args, program.strip_suffix("-lab").unwrap_or(program), ENGINES)
        }
        Some(Command::Completions(args)) => plumbing::completions(args, Cli::command()),
        Some(Command::Man(args)) => plumbing::man(args, Cli::command()),
    })
}

#[cfg(feature = "gpu")]
use device::run as device;

#[cfg(not(feature = "gpu"))]
fn device(_: &device_args::DeviceArgs) -> Result<ExitCode, plumbing::Failure> {
    Err(plumbing::Failure::NotAvailable(
        "this build has no coprocessors; to get them: cargo install --path crates/fibula-lab --features gpu"
            .to_owned(),
    ))
}

/// Returns where the word is that these arguments begin with, if it is one of `fibula`.
fn place(args: &[OsString]) -> Option<String> {
    let word = args.get(1)?.to_string_lossy();
    let ours = Cli::command().get_subcommands().any(|command| command.get_name() == word);
    let theirs = plumbing::commands().iter().any(|name| *name == word);
    (theirs && !ours).then(|| format!("'{word}' is a command of 'fibula'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_other_command_are_named() {
        let of = |word: &str| place(&["fibula-lab".into(), word.into()]);
        assert_eq!(of("lookup").as_deref(), Some("'lookup' is a command of 'fibula'"));
        for ours in ["rates", "engines", "router", "tour", "man", "completions", "--help", "nonsuch", "help"]
        {
            assert_eq!(of(ours), None, "{ours}");
        }
        assert_eq!(place(&["fibula-lab".into()]), None);
    }
}
