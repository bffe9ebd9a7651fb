//! The settings of `heartline load` in a file: TOML whose keys are the long arguments, which arguments override.
//!
//! A file is turned into the arguments that were not given, before the command line is parsed for good, so that every
//! argument can stand in a file and is checked by the one parser.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command};
use toml::{Table, Value};

/// Where the settings are kept.
#[derive(Debug, Args)]
#[command(next_help_heading = "Settings in a file")]
pub(crate) struct ConfigArgs {
    /// Take settings from a TOML file, with the long arguments as keys (hold = "60s", header = ["a: b"], url = "…");
    /// arguments override it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Write the settings of this run to a TOML file for --config, those left at their defaults and the secret
    /// 'authorization' header left out; then run.
    #[arg(long, value_name = "FILE")]
    save_config: Option<PathBuf>,
}

/// Returns the arguments with those of the `--config` file put in, and writes the `--save-config` file; other commands'
/// arguments, and those that do not parse, are returned as they are.
///
/// # Errors
///
/// One line that names the file and what is wrong with it.
pub(crate) fn arguments(command: &Command, given: Vec<OsString>) -> Result<Vec<OsString>, String> {
    let Some(matches) = matches(command, &given) else {
        return Ok(given);
    };
    let load = command.find_subcommand("load").expect("this is one of its files");
    let arguments = match matches.get_one::<PathBuf>("config") {
        None => given,
        Some(path) => {
            let name = path.display();
            let text = std::fs::read_to_string(path).map_err(|error| format!("{name} cannot be read: {error}"))?;
            let table: Table = text.parse().map_err(|error: toml::de::Error| {
                format!("{name} is not TOML: {}", error.to_string().split_whitespace().collect::<Vec<_>>().join(" "))
            })?;
            let from_file = from_file(load, &matches, &table).map_err(|problem| format!("{name}: {problem}"))?;
            // Right behind `load`, so that an argument with many values does not take the URL for one.
            let (before, after) = given.split_at(2);
            [before, &from_file, after].concat()
        }
    };
    if let Some(path) = matches.get_one::<PathBuf>("save_config").filter(|_| !is_given(&matches, "part"))
        && let Some(matches) = self::matches(command, &arguments)
    {
        let text = saved(load, &matches);
        std::fs::write(path, text).map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
    }
    Ok(arguments)
}

/// The matches of a `load` that runs something; `None` for anything else.
fn matches(command: &Command, arguments: &[OsString]) -> Option<ArgMatches> {
    let matches = command.clone().try_get_matches_from(arguments).ok()?;
    let (name, matches) = matches.subcommand()?;
    (name == "load" && matches.subcommand().is_none()).then(|| matches.clone())
}

/// Turns the file's keys into arguments, but for those that were given, or that something given excludes.
fn from_file(load: &Command, matches: &ArgMatches, table: &Table) -> Result<Vec<OsString>, String> {
    let mut positional = Vec::new();
    let mut arguments = Vec::new();
    for (key, value) in table {
        let argument = settings(load).find(|argument| name_of(argument) == *key);
        let argument =
            argument.ok_or_else(|| format!("there is no setting '{key}'; 'heartline load --help' has all"))?;
        let excluded = settings(load).any(|other| {
            is_given(matches, other.get_id().as_str())
                && (load.get_arg_conflicts_with(other).contains(&argument)
                    || load.get_arg_conflicts_with(argument).contains(&other))
        });
        if excluded || is_given(matches, argument.get_id().as_str()) {
            continue;
        }
        let values =
            values_of(value).ok_or_else(|| format!("'{key}' is a text, a number, true, or a list of texts"))?;
        if is_flag(argument) {
            match value {
                Value::Boolean(true) => arguments.push(format!("--{key}").into()),
                Value::Boolean(false) => {}
                _ => return Err(format!("'{key}' is true or false")),
            }
        } else if argument.get_long().is_none() {
            positional.extend(values.into_iter().map(OsString::from));
        } else {
            arguments.extend(values.into_iter().map(|value| OsString::from(format!("--{key}={value}"))));
        }
    }
    positional.extend(arguments);
    Ok(positional)
}

/// Writes the settings that are not defaults.
fn saved(load: &Command, matches: &ArgMatches) -> String {
    let mut table = Table::new();
    let mut left_out = "";
    for argument in settings(load) {
        let id = argument.get_id().as_str();
        if !is_given(matches, id) {
            continue;
        }
        let raw = matches.get_raw(id).into_iter().flatten();
        let mut values: Vec<_> = raw.map(|value| value.to_string_lossy().into_owned()).collect();
        if name_of(argument) == "header" {
            let all = values.len();
            values.retain(|header| !header.trim().to_ascii_lowercase().starts_with("authorization"));
            if values.len() < all {
                left_out =
                    "# The 'authorization' header is a secret and left out; bearer-env names where one is kept.\n";
            }
            if values.is_empty() {
                continue;
            }
        }
        let written = |value: String| value.parse().map_or(Value::String(value), Value::Integer);
        let value = match argument.get_action() {
            ArgAction::SetTrue => Value::Boolean(true),
            ArgAction::Append => Value::Array(values.into_iter().map(Value::String).collect()),
            _ => written(values.pop().unwrap_or_default()),
        };
        table.insert(name_of(argument).to_owned(), value);
    }
    format!("# Run again with: heartline load --config FILE\n{left_out}{table}")
}

/// The arguments that a file may hold.
fn settings(load: &Command) -> impl Iterator<Item = &Arg> {
    load.get_arguments().filter(|argument| {
        let id = argument.get_id().as_str();
        !argument.is_hide_set() && !["config", "save_config", "help", "version"].contains(&id)
    })
}

fn name_of(argument: &Arg) -> &str {
    argument.get_long().unwrap_or(argument.get_id().as_str())
}

fn is_flag(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::SetTrue)
}

fn is_given(matches: &ArgMatches, id: &str) -> bool {
    matches.try_contains_id(id).is_ok() && matches.value_source(id) == Some(ValueSource::CommandLine)
}

fn values_of(value: &Value) -> Option<Vec<String>> {
    Some(match value {
        Value::String(text) => vec![text.clone()],
        Value::Integer(number) => vec![number.to_string()],
        Value::Float(number) => vec![number.to_string()],
        Value::Boolean(is) => vec![is.to_string()],
        Value::Array(list) => list.iter().filter_map(values_of).flatten().collect(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::Cli;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn put_in(line: &str, file: &str) -> Result<String, String> {
        let mut command = Cli::command();
        command.build();
        let matches = matches(&command, &words(line)).expect("a load");
        let load = command.find_subcommand("load").unwrap();
        let put_in = from_file(load, &matches, &file.parse().unwrap())?;
        Ok(put_in.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn keys_are_arguments_and_what_was_given_overrides() {
        let file = "url = 'http://x/'\nstreams = 50\nhold = '3s'\nhttp2 = true\nno-stream = false\nheader = ['a: 1', 'b: 2']\n";
        assert_eq!(
            put_in("heartline load --hold 9s", file).unwrap(),
            "http://x/ --header=a: 1 --header=b: 2 --http2 --streams=50"
        );
        assert_eq!(put_in("heartline load http://y/ --header c:3 --http2 --streams 1 --hold 1s", file).unwrap(), "");
    }

    #[test]
    fn what_excludes_a_key_of_the_file_overrides_it_too() {
        assert_eq!(put_in("heartline load --arrivals poisson", "concurrency = 8\nramp = '1s'").unwrap(), "--ramp=1s");
    }

    #[test]
    fn a_key_that_is_no_argument_is_named() {
        let problem = put_in("heartline load", "straems = 5").unwrap_err();
        assert!(problem.contains("no setting 'straems'"), "{problem}");
        assert!(put_in("heartline load", "part = 'x'").is_err() && put_in("heartline load", "config = 'x'").is_err());
        assert!(put_in("heartline load", "http2 = 'yes'").unwrap_err().contains("true or false"));
    }

    #[test]
    fn what_was_saved_is_the_same_run() {
        let mut command = Cli::command();
        command.build();
        let load = command.find_subcommand("load").unwrap();
        let mut line =
            words("heartline load http://x/ --streams 5k --seed 7 --http2 --threshold silence.max<30s gap.p99<1s");
        line.extend(["--header", "Authorization: Bearer secret", "--header", "a: b"].map(OsString::from));
        let text = saved(load, &matches(&command, &line).unwrap());
        assert!(!text.contains("Bearer") && text.contains("bearer-env"), "{text}");
        let table: Table = text.parse().unwrap();
        let bare = matches(&command, &words("heartline load")).unwrap();
        let again = from_file(load, &bare, &table).unwrap();
        let again: Vec<_> = again.iter().map(|word| word.to_string_lossy()).collect();
        assert_eq!(
            again,
            [
                "http://x/",
                "--header=a: b",
                "--http2",
                "--seed=7",
                "--streams=5k",
                "--threshold=silence.max<30s",
                "--threshold=gap.p99<1s"
            ]
        );
    }
}
