//! `fibula route`: single routes and prefixes, in the words of iproute2.

mod all_peers;
mod args;
mod query;
#[cfg(target_os = "linux")]
mod router;
mod show;

use std::process::ExitCode;

pub(crate) use args::RouteArgs;
use args::RouteCommand;
#[cfg(target_os = "linux")]
pub(crate) use router::text as next_hop_text;

use crate::failure::Failure;
use crate::lookup;

pub(crate) fn run(args: &RouteArgs) -> Result<ExitCode, Failure> {
    let source = match &args.command {
        RouteCommand::Show(args) => &args.router,
        RouteCommand::Get(args) => &args.router,
    };
    if source.socket().is_some() {
        return from_router(&args.command);
    }
    match &args.command {
        RouteCommand::Show(args) if args.all_peers => all_peers::show(args),
        RouteCommand::Show(args) => show::show(args),
        RouteCommand::Get(args) if args.all_peers => all_peers::get(&args.lookup),
        RouteCommand::Get(args) => lookup::run(&args.lookup),
    }
}

#[cfg(target_os = "linux")]
fn from_router(command: &RouteCommand) -> Result<ExitCode, Failure> {
    match command {
        RouteCommand::Show(args) => router::show(args),
        RouteCommand::Get(args) => router::get(args),
    }
}

#[cfg(not(target_os = "linux"))]
fn from_router(_: &RouteCommand) -> Result<ExitCode, Failure> {
    Err(Failure::NotAvailable("the router runs on Linux alone".to_owned()))
}
