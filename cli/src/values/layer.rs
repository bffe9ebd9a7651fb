//! Layers of settings over one another: flags, the environment, tables of a file. The arguments of `clap` are the one
//! definition: a key of a file is an argument's name, and whatever a layer holds is read by that argument's parser.
//!
//! Used by `proxy --config` and `load --config`.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::ffi::{OsStr, OsString};

use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::file::File;

/// Settings as they were written, by the argument's identifier; any may be absent.
#[derive(Clone, Debug, Default)]
pub struct Layer(BTreeMap<String, Written>);

/// What was written for one setting, and where.
#[derive(Clone, Debug)]
struct Written {
    texts: Vec<OsString>,
    place: Place,
}

/// Where a setting was written.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// On the command line, as this flag.
    Flag(String),
    /// In this environment variable.
    Environment(String),
    /// At this offset of the file; a list's items at those.
    File(usize, Vec<usize>),
    /// Nowhere: it follows from something else.
    Nowhere,
}

/// A value that an argument's parser refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The argument's identifier.
    pub id: String,
    /// Its name in a file.
    pub key: String,
    /// Which of its values, if that is known.
    pub item: Option<usize>,
    /// What is wrong with the value, and what to write.
    pub why: String,
}

impl Layer {
    /// What was given of `arguments` on the command line or in the environment; defaults are not.
    pub fn given(arguments: &[Arg], matches: &ArgMatches) -> Self {
        let written = arguments.iter().filter_map(|argument| {
            let id = argument.get_id().as_str();
            matches.try_contains_id(id).ok()?;
            let place = match matches.value_source(id)? {
                ValueSource::CommandLine => Place::Flag(format!("--{}", name(argument))),
                ValueSource::EnvVariable => Place::Environment(argument.get_env()?.to_string_lossy().into_owned()),
                _ => return None,
            };
            let texts = matches.get_raw(id).into_iter().flatten().map(OsStr::to_owned).collect();
            Some((id.to_owned(), Written { texts, place }))
        });
        Self(written.collect())
    }

    /// What a table of `file` says; its keys are names of `arguments`, with dashes or underscores. Keys in `tables` are not
    /// looked at.
    ///
    /// # Errors
    ///
    /// One line with the place: a key that is no argument, or there twice, or a value that no argument takes.
    pub fn of_table(arguments: &[Arg], table: &DeTable<'_>, file: &File, tables: &[&str]) -> Result<Self, String> {
        let mut layer = Self::default();
        for (key, value) in table {
            let (start, key) = (key.span().start, key.get_ref());
            if tables.contains(&&**key) {
                continue;
            }
            let Some(argument) = arguments.iter().find(|argument| is_named(argument, key)) else {
                return Err(file.at(start, &unknown(key, arguments)));
            };
            let place = value.span().start;
            let texts = texts(argument, value).map_err(|why| file.at(place, &format!("{key}: {why}")))?;
            let items = value.get_ref().as_array().into_iter().flatten().map(|item| item.span().start).collect();
            let written = Written { texts, place: Place::File(place, items) };
            if layer.0.insert(argument.get_id().to_string(), written).is_some() {
                return Err(file.at(start, &format!("{key} is there twice: leave one out")));
            }
        }
        Ok(layer)
    }

    /// This layer, and what it does not say from the one below.
    #[must_use]
    pub fn over(&self, below: &Self) -> Self {
        let mut merged = below.clone();
        merged.0.extend(self.0.clone());
        merged
    }

    /// Tells whether the layer says something of this setting.
    pub fn has(&self, id: &str) -> bool {
        self.0.contains_key(id)
    }

    /// The first text of a setting.
    pub fn text(&self, id: &str) -> Option<&str> {
        self.0.get(id)?.texts.first()?.to_str()
    }

    /// Forgets a setting.
    pub fn remove(&mut self, id: &str) {
        self.0.remove(id);
    }

    /// Sets what nobody wrote.
    pub fn set(&mut self, id: &str, text: &str) {
        let written = Written { texts: vec![text.into()], place: Place::Nowhere };
        self.0.insert(id.to_owned(), written);
    }

    /// The layer as words of a command line, positional ones first.
    pub fn words(&self, arguments: &[Arg]) -> Vec<OsString> {
        let (mut positional, mut named) = (Vec::new(), Vec::new());
        let mut arguments: Vec<_> = arguments.iter().collect();
        arguments.sort_by_key(|argument| name(argument));
        for argument in arguments {
            let Some(written) = self.0.get(argument.get_id().as_str()) else { continue };
            let name = name(argument);
            for text in &written.texts {
                match argument.get_action() {
                    _ if argument.is_positional() => positional.push(text.clone()),
                    ArgAction::SetTrue if text == "true" => named.push(format!("--{name}").into()),
                    ArgAction::SetTrue => {}
                    _ => {
                        let mut word = OsString::from(format!("--{name}="));
                        word.push(text);
                        named.push(word);
                    }
                }
            }
        }
        positional.append(&mut named);
        positional
    }

    /// Reads the settings, each by its argument's parser; what the layer does not say has its default.
    ///
    /// # Errors
    ///
    /// The first value that was refused, or is missing and has no default.
    pub fn read<T: Args>(&self) -> Result<T, Refused> {
        let command = T::augment_args(Command::new("settings").no_binary_name(true).disable_help_flag(true));
        let arguments: Vec<_> = command.get_arguments().cloned().collect();
        let parse = |layer: &Self| command.clone().try_get_matches_from(layer.words(&arguments));
        let read = parse(self).and_then(|matches| T::from_arg_matches(&matches));
        read.map_err(|error| {
            let refused = Refused::of(&arguments, &error);
            let is_at_fault = |text: &OsString| {
                let alone = Written { texts: vec![text.clone()], place: Place::Nowhere };
                let alone = Self([(refused.id.clone(), alone)].into());
                parse(&alone).is_err_and(|error| Refused::of(&arguments, &error) == refused)
            };
            let item = self.0.get(&refused.id).and_then(|written| written.texts.iter().position(is_at_fault));
            Refused { item, ..refused }
        })
    }

    /// `message` about a setting, with the place in front where it was written; `None` for one that nobody wrote.
    pub fn told(&self, id: &str, message: &str, file: Option<&File>) -> Option<String> {
        Some(match &self.0.get(id)?.place {
            Place::Flag(name) | Place::Environment(name) => format!("{name}: {message}"),
            Place::File(offset, _) => file?.at(*offset, message),
            Place::Nowhere => return None,
        })
    }

    /// A refusal, with the place where the value was written; in a file the key too.
    pub fn refusal(&self, refused: &Refused, file: Option<&File>) -> String {
        let Refused { id, key, item, why } = refused;
        match (self.0.get(id), file) {
            (Some(Written { place: Place::File(offset, items), .. }), Some(file)) => {
                let offset = item.and_then(|item| items.get(item)).unwrap_or(offset);
                file.at(*offset, &format!("{key}: {why}"))
            }
            _ => self.told(id, why, file).unwrap_or_else(|| why.clone()),
        }
    }
}

impl Refused {
    /// What `clap` refused of `arguments`.
    pub fn of(arguments: &[Arg], error: &clap::Error) -> Self {
        let flag = flag(error).unwrap_or_default();
        let is_refused = |argument: &&Arg| match flag.strip_prefix("--") {
            Some(flag) => name(argument) == flag,
            None => argument.get_value_names().is_some_and(|names| argument.is_positional() && names[0] == *flag),
        };
        let argument = arguments.iter().find(is_refused);
        Self {
            id: argument.map(|argument| argument.get_id().to_string()).unwrap_or_default(),
            key: argument.map(key_of).unwrap_or_default(),
            item: None,
            why: why(error).unwrap_or_else(|| error.kind().to_string()),
        }
    }
}

/// Settings of which nobody said anything.
///
/// # Panics
///
/// One of them has no default.
pub fn defaults<T: Args>() -> T {
    Layer::default().read().expect("every setting has a default")
}

/// The flag whose value `clap` refused, or the name of a positional one.
pub fn flag(error: &clap::Error) -> Option<String> {
    let ContextValue::String(argument) = error.get(ContextKind::InvalidArg)? else { return None };
    Some(argument.split([' ', '=']).next()?.trim_matches(['<', '>', '[', ']']).to_owned())
}

/// What a parser said of a value, without clap's own words around it: those repeat the value, which may hold a password.
pub fn why(error: &clap::Error) -> Option<String> {
    if let Some(source) = error.source() {
        return Some(source.to_string());
    }
    match (error.get(ContextKind::InvalidValue)?, error.get(ContextKind::ValidValue)?) {
        (ContextValue::String(value), ContextValue::Strings(words)) if !words.is_empty() => {
            Some(format!("{value:?} is not known: write {}", words.join(" or ")))
        }
        _ => None,
    }
}

/// Gives an argument that takes a value its environment variable: `HEARTLINE_DRAIN_TIMEOUT` for `--drain-timeout`.
pub fn in_environment(argument: Arg) -> Arg {
    if !argument.get_action().takes_values() {
        return argument;
    }
    let variable = format!("HEARTLINE_{}", name(&argument).replace('-', "_").to_uppercase());
    argument.env(variable).hide_env(true)
}

/// What an argument is called: its flag, without the dashes in front.
fn name(argument: &Arg) -> &str {
    argument.get_long().unwrap_or(argument.get_id().as_str())
}

fn is_named(argument: &Arg, key: &str) -> bool {
    let key = key.replace('_', "-");
    name(argument) == key || argument.get_all_aliases().is_some_and(|all| all.contains(&&*key))
}

/// The texts of a value, as they would stand on the command line.
fn texts(argument: &Arg, value: &Spanned<DeValue<'_>>) -> Result<Vec<OsString>, String> {
    let is_list = matches!(argument.get_action(), ArgAction::Append);
    match value.get_ref() {
        DeValue::Boolean(_) if matches!(argument.get_action(), ArgAction::SetTrue) => {}
        _ if matches!(argument.get_action(), ArgAction::SetTrue) => return Err("write true or false".to_owned()),
        DeValue::Array(items) if is_list => return items.iter().map(|item| text(argument, item.get_ref())).collect(),
        DeValue::Array(_) => return Err("this is one value, not a list: write it without brackets".to_owned()),
        _ => {}
    }
    text(argument, value.get_ref()).map(|text| vec![text])
}

fn text(argument: &Arg, value: &DeValue<'_>) -> Result<OsString, String> {
    let text = match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(is) => is.to_string(),
        _ => return Err(format!("this is {}: write a text, a number, or a list of them", value.type_str())),
    };
    match argument.get_value_delimiter() {
        Some(delimiter) if text.contains(delimiter) => {
            Err(format!("{text:?} holds a {delimiter:?}: write a list, each item in quotes of its own"))
        }
        _ => Ok(text.into()),
    }
}

/// An unknown key, answered with the one that was probably meant.
fn unknown(key: &str, arguments: &[Arg]) -> String {
    let mut known: Vec<String> = arguments.iter().map(key_of).collect();
    known.sort();
    let plain = key.replace('-', "_").to_lowercase();
    let meant = known.iter().map(|known| (strsim::levenshtein(&plain, known), known)).min();
    match meant {
        Some((distance, known)) if distance <= 1 + key.len() / 4 => {
            format!("the key {key} is unknown: write {known}")
        }
        _ => format!("the key {key} is unknown here: write one of {}, or leave it out", known.join(", ")),
    }
}

/// The name of an argument as a key, which has underscores in TOML's own manner; a flag with another name for files has that.
pub fn key_of(argument: &Arg) -> String {
    let other = argument.get_all_aliases().and_then(|all| all.first().copied());
    other.unwrap_or_else(|| name(argument)).replace('-', "_")
}
