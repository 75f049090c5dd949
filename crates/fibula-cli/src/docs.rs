//! Shell completions and manual pages, made from the definitions of the command line.

use std::io::Write;

use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::failure::Failure;

pub(crate) fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "fibula", &mut script);
    print(&script)
}

pub(crate) fn man(args: &ManArgs) -> Result<(), Failure> {
    let mut command = Cli::command();
    command.build();
    if let Some(folder) = &args.output {
        let written = std::fs::create_dir_all(folder)
            .and_then(|()| clap_mangen::generate_to(Cli::command().disable_help_subcommand(true), folder));
        return written.map_err(|error| {
            Failure::BadInput(format!("cannot write manual pages to {}: {error}", folder.display()))
        });
    }
    if let Some(name) = &args.command {
        let Some(found) = command.find_subcommand(name) else {
            let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
            return Err(Failure::WrongUse(format!("no command '{name}'; there are: {}", names.join(", "))));
        };
        command = found.clone();
    }
    let mut page = Vec::new();
    // Writing to memory does not fail.
    clap_mangen::Man::new(command).render(&mut page)?;
    print(&page)
}

fn print(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(())
}
