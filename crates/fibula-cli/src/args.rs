//! The command line as a whole: the commands, and the help that covers them all.

#[cfg(target_os = "linux")]
use crate::bpf::BpfArgs;
use crate::choose::ChooseArgs;
use crate::compile::CompileArgs;
use crate::docs::{CompletionsArgs, ManArgs};
use crate::doctor::DoctorArgs;
use crate::engines::EnginesArgs;
use crate::lookup::{CountArgs, EnrichArgs, LookupArgs};
use crate::peers::PeersArgs;
use crate::replay::ReplayArgs;
use crate::route::RouteArgs;
use crate::router::RouterArgs;
use crate::rpki::RpkiArgs;
use crate::table::TableArgs;
use crate::tour::TourArgs;
use crate::verify::VerifyArgs;
use anstyle::{AnsiColor, Style};
use clap::builder::Styles;
use clap::{Parser, Subcommand};

/// The colours of help.
pub const STYLES: Styles = Styles::styled()
    .header(Style::new().bold())
    .usage(Style::new().bold())
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(AnsiColor::Green.on_default());

/// Look up addresses in Internet routing tables
///
/// A routing table is a list of prefixes (blocks of addresses, such as 192.0.2.0/24), each with a next hop.
/// An address belongs to the longest prefix that contains it. fibula finds that prefix, for one address or for millions
/// a second, in tables of any size, IPv4 and IPv6 side by side.
#[derive(Debug, Parser)]
#[command(
    name = "fibula",
    version,
    styles = STYLES,
    after_help = "\
Exit codes:
  0  success; also when the reader of the output has gone, as in '| head'
  1  nothing found; of 'table diff' and 'verify': the tables differ; of 'tour': a wrong answer
  2  wrong use
  3  bad input, or a file that cannot be read or written
  4  not available on this machine: an instruction set, a feature left out of this build

Examples:
  fibula lookup --table routes.txt 192.0.2.1 2001:db8::1
  fibula lookup --table rib.gz --format csv < addresses.txt
  fibula table stats rib.gz
  fibula engines

Environment:
  FIBULA_TABLE  the table of commands that take one, where none is named
  FIBULA_ISA    the instruction set for lookups, as in --isa
  NO_COLOR      if set, no colours

Sizes that are printed are decimal: 1 kB is 1,000 bytes. In options K, M and G are powers of 1,024.

'fibula COMMAND --help' explains a command. To see what looking up is, and how fast: fibula tour"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// See what looking up is, and how fast it is here
#[derive(Debug, Parser)]
#[command(name = "tour", version, styles = STYLES)]
pub(crate) struct TourCli {
    #[command(flatten)]
    pub(crate) tour: TourArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Lookup(Box<LookupArgs>),
    Enrich(Box<EnrichArgs>),
    Count(Box<CountArgs>),
    Route(RouteArgs),
    Router(RouterArgs),
    Rpki(Box<RpkiArgs>),
    Table(TableArgs),
    Verify(VerifyArgs),
    Peers(PeersArgs),
    Engines(EnginesArgs),
    Choose(ChooseArgs),
    Compile(CompileArgs),
    #[cfg(target_os = "linux")]
    Bpf(BpfArgs),
    Replay(ReplayArgs),
    Doctor(DoctorArgs),
    Tour(TourArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

impl Command {
    /// Returns whether the command writes to standard output rather than to a file.
    pub(crate) fn prints(&self) -> bool {
        match self {
            Self::Table(args) => args.prints(),
            Self::Lookup(args) => args.how.output.is_none(),
            Self::Enrich(args) => args.how.output.is_none(),
            Self::Count(args) => args.output.is_none(),
            Self::Man(args) => args.prints(),
            Self::Compile(args) => args.output.as_os_str() == "-",
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn definitions_are_consistent() {
        Cli::command().debug_assert();
        TourCli::command().debug_assert();
    }
}
