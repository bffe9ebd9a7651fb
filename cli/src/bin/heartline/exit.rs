//! The exit codes of every command, and the one line on stderr that goes with a failure.
//!
//! Called by `main` and by each command when it ends.

use std::fmt::Display;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The command did what was asked and every condition held.
pub(crate) const PASS: u8 = 0;
/// A defect or an unexpected failure of heartline itself.
pub(crate) const INTERNAL: u8 = 1;
/// The arguments or the configuration cannot be used.
pub(crate) const USAGE: u8 = 2;
/// The host refuses what was asked, such as a limit on open files.
pub(crate) const HOST_LIMIT: u8 = 3;
/// The run took place, but its figures prove nothing.
pub(crate) const INVALID_RUN: u8 = 4;
/// A signal ended the run before its time.
pub(crate) const INTERRUPTED: u8 = 5;
/// The run is valid and a condition on its figures failed.
pub(crate) const THRESHOLD: u8 = 99;

/// Prints `heartline: message` on stderr and returns `code`.
pub(crate) fn fail(code: u8, message: &dyn Display) -> ExitCode {
    eprintln!("heartline: {message}");
    ExitCode::from(code)
}

/// Ends a run whose arguments did not parse: help and version on stdout, one line on stderr for anything else.
pub(crate) fn refuse_arguments(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A reader that went away (`| head`) is no failure of ours.
            let _ = error.print();
            ExitCode::from(PASS)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::from(USAGE)
        }
        _ => fail(USAGE, &refused_value(error).unwrap_or_else(|| one_line(&error.render().to_string()))),
    }
}

/// The flag, and what is wrong with its value; clap's own words would repeat the value, which may be a secret.
fn refused_value(error: &clap::Error) -> Option<String> {
    let ContextValue::String(argument) = error.get(ContextKind::InvalidArg)? else { return None };
    let flag = argument.split([' ', '=']).next()?.trim_matches(['<', '>', '[', ']']);
    let why = std::error::Error::source(error)?;
    Some(format!("{flag}: {why}"))
}

/// The message and the tips of a rendered clap error, without usage and blank lines.
fn one_line(rendered: &str) -> String {
    let mut parts = Vec::new();
    for paragraph in rendered.split("\n\n") {
        let paragraph = paragraph.trim();
        if paragraph.starts_with("Usage:") || paragraph.starts_with("For more information") {
            break;
        }
        let words: Vec<&str> = paragraph.split_whitespace().collect();
        parts.push(words.join(" "));
    }
    let line = parts.join("; ");
    let line = line.strip_prefix("error: ").unwrap_or(&line);
    format!("{line} (--help shows what fits)")
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn a_clap_error_becomes_one_line_with_its_tip() {
        let rendered = "error: unexpected argument '--strams' found\n\n  tip: a similar argument exists: '--streams'\n\n\
                        Usage: heartline demo --streams <N>\n\nFor more information, try '--help'.\n";
        assert_eq!(
            one_line(rendered),
            "unexpected argument '--strams' found; tip: a similar argument exists: '--streams' (--help shows what fits)"
        );
    }

    #[test]
    fn a_list_of_missing_arguments_is_joined() {
        let rendered = "error: the following required arguments were not provided:\n  <SHELL>\n\nUsage: x\n";
        assert_eq!(
            one_line(rendered),
            "the following required arguments were not provided: <SHELL> (--help shows what fits)"
        );
    }
}
