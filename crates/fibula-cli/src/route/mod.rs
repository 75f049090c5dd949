//! `fibula route`: single routes and prefixes, in the words of iproute2.

mod all_peers;
mod args;
mod query;
mod show;

use std::process::ExitCode;

pub(crate) use args::RouteArgs;
use args::RouteCommand;

use crate::failure::Failure;
use crate::lookup;

pub(crate) fn run(args: &RouteArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        RouteCommand::Show(args) if args.all_peers => all_peers::show(args),
        RouteCommand::Show(args) => show::show(args),
        RouteCommand::Get(args) if args.all_peers => all_peers::get(&args.lookup),
        RouteCommand::Get(args) => lookup::run(&args.lookup),
    }
}
