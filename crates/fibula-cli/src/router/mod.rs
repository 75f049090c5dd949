//! `fibula router`: forwards packets, and shows the state of a router that runs.

mod args;
#[cfg(target_os = "linux")]
mod bfd;
mod check;
#[cfg(target_os = "linux")]
mod demo;
#[cfg(target_os = "linux")]
mod doctor;
#[cfg(target_os = "linux")]
mod feeds;
#[cfg(target_os = "linux")]
mod filters;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod show;
#[cfg(target_os = "linux")]
mod supervisor;
#[cfg(target_os = "linux")]
mod top;
#[cfg(target_os = "linux")]
mod verify;
#[cfg(target_os = "linux")]
mod why;

use std::process::ExitCode;

use fibula::fib::registry::Engines;

pub use args::RouterArgs;
use args::RouterCommand;
use check::check;

use crate::failure::Failure;
#[cfg(target_os = "linux")]
use crate::messages::Messages;

/// Runs a command of the router, whose configuration may name these engines.
///
/// # Errors
/// As the command's help says.
pub fn run(args: &RouterArgs, engines: Engines) -> Result<ExitCode, Failure> {
    if let Some(RouterCommand::Check(args)) = &args.command {
        return check(&args.file, engines);
    }
    dispatch(args, engines)
}

#[cfg(target_os = "linux")]
fn dispatch(args: &RouterArgs, engines: Engines) -> Result<ExitCode, Failure> {
    match (&args.command, &args.config) {
        (Some(RouterCommand::Stats(args)), _) => show::run(args, show::What::Stats),
        (Some(RouterCommand::Drops(args)), _) => show::run(args, show::What::Drops),
        (Some(RouterCommand::Neigh(args)), _) => show::run(args, show::What::Neighbours),
        (Some(RouterCommand::Feeds(args)), _) => show::run(args, show::What::Feeds),
        (Some(RouterCommand::Filters(args)), _) => show::run(args, show::What::Filters),
        (Some(RouterCommand::Bfd(args)), _) => show::run(args, show::What::Bfd),
        (Some(RouterCommand::Explain(args)), _) => why::explain(args),
        (Some(RouterCommand::Trace(args)), _) => why::trace(args),
        (Some(RouterCommand::Top(args)), _) => top::run(args),
        (Some(RouterCommand::Verify(args)), _) => verify::run(args),
        (Some(RouterCommand::Doctor(args)), _) => doctor::run(args.json),
        (Some(RouterCommand::Demo(args)), _) => demo::run(Messages::new(args.quiet.quiet)),
        (Some(RouterCommand::Check(args)), _) => check(&args.file, engines),
        (None, Some(config)) => {
            run::run(config, (args.require_devices, args.takeover), engines, Messages::new(args.quiet.quiet))
        }
        (None, None) => Err(Failure::WrongUse("--config FILE is missing".to_owned())),
    }
}

#[cfg(not(target_os = "linux"))]
fn dispatch(_: &RouterArgs, _: Engines) -> Result<ExitCode, Failure> {
    Err(Failure::NotAvailable("the router runs on Linux alone".to_owned()))
}
