//! Shell completions and manual pages, generated from the definition of the command line.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command};
use clap_mangen::Man;

use crate::failure::Failure;
use crate::output;

/// Print a completion script for a shell
///
/// It completes commands, options, and the names of engines, values and generated tables; that of bash also the peers of a
/// table (--peer), where the line or FIBULA_TABLE names one.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fibula completions bash > ~/.local/share/bash-completion/completions/fibula
  fibula completions zsh > ~/.zfunc/_fibula
  fibula completions fish > ~/.config/fish/completions/fibula.fish")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

/// Print a manual page
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fibula man | man -l -
  fibula man lookup | man -l -
  fibula man route get | man -l -
  fibula man --output ~/.local/share/man/man1")]
pub struct ManArgs {
    /// Print the page of this command, such as 'lookup' or 'route get' [default: fibula itself]
    #[arg(value_name = "COMMAND", conflicts_with = "output")]
    pub(crate) command: Vec<String>,

    /// Write all pages to this folder instead, creating it if needed
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

impl ManArgs {
    /// Returns whether a page is printed, not written to a folder.
    #[must_use]
    pub fn prints(&self) -> bool {
        self.output.is_none()
    }
}

/// Prints the completions of a command for a shell.
///
/// # Errors
/// If they cannot be printed.
pub fn completions(args: &CompletionsArgs, mut command: Command) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    let name = command.get_name().to_owned();
    clap_complete::generate(args.shell, &mut command, &name, &mut script);
    // Only the command for users reads peers.
    if args.shell == clap_complete::Shell::Bash && name == "fibula" {
        script = with_peers(&String::from_utf8_lossy(&script)).into_bytes();
    }
    print(&script)
}

/// Offers the peers of the table that the line names, which only a command that reads it knows.
fn with_peers(script: &str) -> String {
    const FILES: &str = "COMPREPLY=($(compgen -f \"${cur}\"))";
    const PEERS: &str = "COMPREPLY=($(compgen -W \"$(_fibula_peers)\" -- \"${cur}\"))";
    const FUNCTION: &str = r#"
_fibula_peers() {
    local at table=${FIBULA_TABLE:-}
    for ((at = 1; at + 1 < ${#COMP_WORDS[@]}; at++)); do
        case ${COMP_WORDS[at]} in -t | --table) table=${COMP_WORDS[at + 1]} ;; esac
    done
    [ -f "$table" ] && fibula peers --quiet --format csv "$table" 2>/dev/null | tail -n +2 | cut -d , -f 1
}
"#;
    let mut after_peer = false;
    let mut lines = String::new();
    for line in script.lines() {
        lines += &if after_peer { line.replace(FILES, PEERS) } else { line.to_owned() };
        lines.push('\n');
        after_peer = line.trim() == "--peer)";
    }
    lines + FUNCTION
}

/// Prints a manual page of a command, or writes all of them.
///
/// # Errors
/// If there is no such page, or it cannot be written.
pub fn man(args: &ManArgs, mut command: Command) -> Result<ExitCode, Failure> {
    if let Some(folder) = &args.output {
        output::create_folder(folder)?;
        command.build();
        write_pages(&command, folder)?;
        return Ok(ExitCode::SUCCESS);
    }
    command.build();
    for name in args.command.iter().flat_map(|names| names.split_whitespace()) {
        let Some(found) = command.find_subcommand(name) else {
            let names: Vec<&str> = subcommands(&command).map(Command::get_name).collect();
            return Err(Failure::WrongUse(format!("no command '{name}'; there are: {}", names.join(", "))));
        };
        command = found.clone();
    }
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    print(&page)
}

/// Returns the commands within a command that have pages.
fn subcommands(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|command| command.get_name() != "help")
}

/// Writes the page of a command and those of the commands in it.
fn write_pages(command: &Command, folder: &Path) -> Result<(), Failure> {
    subcommands(command).try_for_each(|command| write_pages(command, folder))?;
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render(&mut page)?;
    output::write_file(&folder.join(man.get_filename()), [], &page)
}

fn print(bytes: &[u8]) -> Result<ExitCode, Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
