//! Options, tables, messages and outputs that `fibula-lab` takes from `fibula`, so that both commands behave the same. Other programs
//! must not use this module: it changes with every version.

pub use crate::addresses::Addresses;
pub use crate::args::STYLES;
pub use crate::docs::{CompletionsArgs, ManArgs, completions, man};
pub use crate::engines::{EnginesArgs, run as engines};
pub use crate::failure::{Failure, code};
pub use crate::load::{is_stdin, limits, load};
pub use crate::lookup::enrich_bytes;
pub use crate::machine::{IsaArgs, OPTIMISED};
pub use crate::messages::Messages;
pub use crate::moved::renamed;
pub use crate::objects::{Object, write as write_objects};
pub use crate::options::{FeedArgs, Format, OutputArgs, QuietArgs};
pub use crate::output::{Output, create_folder, write_file};
pub use crate::program::{help, moved, run};
pub use crate::replay::best as best_routes;
pub use crate::router::{RouterArgs, run as router};
pub use crate::suggested::{Suggested, engine};
pub use crate::text::{Grid, bold, bytes, dim, thousands};
pub use crate::tour::{TourArgs, run as tour};
pub use crate::width::{Folded, folded};

/// Returns the names of the commands of `fibula`.
#[must_use]
pub fn commands() -> Vec<String> {
    let command = <crate::args::Cli as clap::CommandFactory>::command();
    command.get_subcommands().map(|command| command.get_name().to_owned()).collect()
}
