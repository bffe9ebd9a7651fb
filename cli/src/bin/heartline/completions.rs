//! `heartline completions`: a completion script for a shell, on standard output.

use std::io::Write;
use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::{Cli, exit};

/// Print a completion script for a shell.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  heartline completions bash > ~/.local/share/bash-completion/completions/heartline
  heartline completions zsh > ~/.zfunc/_heartline
  heartline completions fish > ~/.config/fish/completions/heartline.fish")]
pub(crate) struct CompletionsArgs {
    /// Shell to complete for.
    shell: Shell,
}

/// Prints the script; a reader that went away is no failure.
pub(crate) fn run(args: &CompletionsArgs) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "heartline", &mut script);
    let _ = std::io::stdout().write_all(&script);
    ExitCode::from(exit::PASS)
}
