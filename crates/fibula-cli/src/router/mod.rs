//! `fibula router`: forwards packets, and shows what a router that runs is doing.

#[cfg(target_os = "linux")]
mod demo;
#[cfg(target_os = "linux")]
mod doctor;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod show;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use fibula_router::config::{Config, SOCKET};

use crate::failure::Failure;
use crate::messages::Messages;
use crate::options::QuietArgs;

/// Forward packets between the interfaces of this machine (Linux)
///
/// With --config, forwards until SIGTERM or SIGINT; SIGHUP reads the configuration again. Needs root, or the capabilities
/// CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF. The other commands talk to a router that runs, or prepare one.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Exit codes:
  0  the router ended in order
  2  wrong use
  3  the configuration is wrong, or the router cannot start
  4  not available on this machine

Examples:
  fibula router demo
  fibula router check router.toml
  fibula router --config router.toml
  fibula router stats
  fibula router drops --watch"
)]
pub(crate) struct RouterArgs {
    #[command(subcommand)]
    command: Option<RouterCommand>,

    /// The configuration, in TOML
    #[arg(long, value_name = "FILE", required = true)]
    config: Option<PathBuf>,

    #[command(flatten)]
    quiet: QuietArgs,
}

#[derive(Debug, Subcommand)]
enum RouterCommand {
    Check(CheckArgs),
    /// Show the counters of each port
    Stats(ShowArgs),
    /// Show why packets were dropped, and what to do about it
    Drops(ShowArgs),
    /// Show the neighbours and their MAC addresses
    Neigh(ShowArgs),
    /// Say what this machine lacks for a router, and what to do about it
    Doctor(DoctorArgs),
    Demo(DemoArgs),
}

/// Check a configuration without using it
#[derive(Debug, Args)]
struct CheckArgs {
    /// The configuration, in TOML
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Options of the commands that talk to a router.
#[derive(Debug, Args)]
struct ShowArgs {
    /// The control socket of the router
    #[arg(long, value_name = "PATH", default_value = SOCKET)]
    socket: PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Show again every second, until interrupted
    #[arg(long)]
    watch: bool,
}

/// Options of the doctor.
#[derive(Debug, Args)]
struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Forward between two hosts in network namespaces, and show it (root)
///
/// Makes two hosts and a router between them, loads a table, sends pings of both families through the router, and shows its counters. All of it
/// is removed at the end, also when interrupted.
#[derive(Debug, Args)]
struct DemoArgs {
    #[command(flatten)]
    quiet: QuietArgs,
}

/// Reads and checks a configuration.
fn read(path: &Path) -> Result<Config, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::opening(path, &error))?;
    Config::parse(&text).map_err(|error| Failure::BadInput(format!("{}: {error}", path.display())))
}

pub(crate) fn run(args: &RouterArgs) -> Result<ExitCode, Failure> {
    if let Some(RouterCommand::Check(args)) = &args.command {
        return check(&args.file);
    }
    dispatch(args)
}

/// Checks a configuration and its files of routes.
fn check(path: &Path) -> Result<ExitCode, Failure> {
    let config = read(path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut routes = config.routes.len();
    for table in &config.tables {
        let table = crate::load::load(&folder.join(&table.path), Messages::new(false))?;
        routes += table.ribs.len();
    }
    println!(
        "{}: {} interfaces, {} VRFs, {routes} routes, {} threads: no errors",
        path.display(),
        config.interfaces.len(),
        config.vrfs.len(),
        config.threads
    );
    Ok(ExitCode::SUCCESS)
}

#[cfg(target_os = "linux")]
fn dispatch(args: &RouterArgs) -> Result<ExitCode, Failure> {
    match (&args.command, &args.config) {
        (Some(RouterCommand::Stats(args)), _) => show::run(args, show::What::Stats),
        (Some(RouterCommand::Drops(args)), _) => show::run(args, show::What::Drops),
        (Some(RouterCommand::Neigh(args)), _) => show::run(args, show::What::Neighbours),
        (Some(RouterCommand::Doctor(args)), _) => doctor::run(args.json),
        (Some(RouterCommand::Demo(args)), _) => demo::run(Messages::new(args.quiet.quiet)),
        (Some(RouterCommand::Check(args)), _) => check(&args.file),
        (None, Some(config)) => run::run(config, Messages::new(args.quiet.quiet)),
        (None, None) => Err(Failure::WrongUse("--config FILE is missing".to_owned())),
    }
}

#[cfg(not(target_os = "linux"))]
fn dispatch(_: &RouterArgs) -> Result<ExitCode, Failure> {
    Err(Failure::NotAvailable("the router runs on Linux alone".to_owned()))
}
