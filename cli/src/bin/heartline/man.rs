//! `heartline man`: the manual pages, made from the same arguments as `--help`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;

use crate::{Cli, exit};

/// Print a manual page, or write all of them into a folder.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  heartline man load | man -l -
  heartline man --to ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Command whose page is printed, such as 'load' or 'load merge' [default: heartline's own].
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
    /// Write the pages of all commands into this folder.
    #[arg(long, value_name = "FOLDER", conflicts_with = "command")]
    to: Option<PathBuf>,
}

/// Prints or writes the pages; a reader that went away is no failure.
pub(crate) fn run(args: &ManArgs) -> ExitCode {
    let mut whole = Cli::command();
    whole.build();
    if let Some(folder) = &args.to {
        let written = std::fs::create_dir_all(folder).and_then(|()| write_all(&whole, folder));
        return match written {
            Ok(()) => ExitCode::from(exit::PASS),
            Err(error) => exit::fail(exit::USAGE, &format!("{} cannot be written: {error}", folder.display())),
        };
    }
    let mut command: &Command = &whole;
    for name in &args.command {
        match command.find_subcommand(name) {
            Some(found) => command = found,
            None => {
                return exit::fail(exit::USAGE, &format!("there is no command '{name}'; 'heartline --help' has all"));
            }
        }
    }
    let mut page = Vec::new();
    if let Err(error) = Man::new(command.clone()).render(&mut page) {
        return exit::fail(exit::INTERNAL, &error);
    }
    let _ = std::io::stdout().write_all(&page);
    ExitCode::from(exit::PASS)
}

/// Writes the page of a command and those of its own commands, but for `help`, which the pages are instead of.
fn write_all(command: &Command, folder: &Path) -> io::Result<()> {
    Man::new(command.clone()).generate_to(folder)?;
    for command in command.get_subcommands().filter(|command| command.get_name() != "help") {
        write_all(command, folder)?;
    }
    Ok(())
}
