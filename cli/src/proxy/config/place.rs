//! Where a setting stands in a file, for errors that say it. Made by `check`, `layer` and `document`.

use std::borrow::Cow;

use toml::de::{DeTable, DeValue};

use crate::proxy::Error;

/// One step on the way to a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A key of a table.
    Key(&'static str),
    /// An item of a list.
    Item(usize),
}

impl Step {
    /// The way to an engine, or to one of its settings.
    pub(super) fn upstream(index: usize, key: Option<&'static str>) -> Vec<Self> {
        let mut way = vec![Self::Key("upstream"), Self::Item(index)];
        way.extend(key.map(Self::Key));
        way
    }
}

impl From<&'static str> for Step {
    fn from(key: &'static str) -> Self {
        Self::Key(key)
    }
}

/// What is wrong with a setting, and which one it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    way: Vec<Step>,
    message: Cow<'static, str>,
}

impl Problem {
    pub(super) fn at<S: Into<Step>>(way: impl IntoIterator<Item = S>, message: impl Into<Cow<'static, str>>) -> Self {
        Self { way: way.into_iter().map(Into::into).collect(), message: message.into() }
    }

    /// Something that stands nowhere, since it is missing.
    pub(super) fn nowhere(message: impl Into<Cow<'static, str>>) -> Self {
        Self { way: Vec::new(), message: message.into() }
    }

    /// The error to show; with line and column when the setting, or the table it would be in, stands in `file`.
    pub(super) fn located(self, file: Option<Source<'_>>) -> Error {
        let found = file.and_then(|file| Some(file.at(find(file.text, &self.way)?, &self.message)));
        Error::config(found.unwrap_or_else(|| self.message.into_owned()))
    }
}

/// The text of a file, and what it is called.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    /// `None` for a text that is no file.
    pub(super) name: Option<&'a str>,
    pub(super) text: &'a str,
}

impl Source<'_> {
    /// `message` with the line and the column of `offset`, both counted from 1, the column in characters.
    pub(super) fn at(self, offset: usize, message: &str) -> String {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let name = self.name.map_or_else(String::new, |name| format!("{name}, "));
        format!("{name}line {line}, column {column}: {message}")
    }
}

/// The offset of the deepest value on the way that the file has.
fn find(file: &str, way: &[Step]) -> Option<usize> {
    let table = DeTable::parse(file).ok()?;
    let (first, rest) = way.split_first()?;
    let Step::Key(first) = first else { return None };
    let mut value = table.get_ref().get(*first)?;
    // A `[[list]]` is met through its items, each of which has a place of its own.
    let mut offset = value.span().start;
    for step in rest {
        let next = match (value.get_ref(), step) {
            (DeValue::Table(table), Step::Key(key)) => table.get(*key),
            (DeValue::Array(items), Step::Item(index)) => items.get(*index),
            _ => None,
        };
        let Some(next) = next else { break };
        value = next;
        offset = value.span().start;
    }
    Some(offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "listen = \"x\"\n\n[[upstream]]\nurl = 1\n\n[[upstream]]\nca = \"ä\"\nurl = 2\n";

    fn place(way: Vec<Step>) -> String {
        Problem::at(way, "wrong").located(Some(Source { name: None, text: FILE })).to_string()
    }

    #[test]
    fn a_setting_is_found_by_its_way() {
        assert_eq!(place(vec!["listen".into()]), "line 1, column 10: wrong");
        assert_eq!(place(Step::upstream(0, Some("url"))), "line 4, column 7: wrong");
        assert_eq!(place(Step::upstream(1, Some("url"))), "line 8, column 7: wrong");
    }

    #[test]
    fn an_absent_setting_is_placed_at_its_table() {
        assert_eq!(place(Step::upstream(1, Some("interval"))), "line 6, column 1: wrong");
        assert_eq!(place(vec!["admin".into()]), "wrong");
        assert_eq!(Problem::at(Step::upstream(0, None), "wrong").located(None).to_string(), "wrong");
        let named = Source { name: Some("a.toml"), text: FILE };
        let message = Problem::at(["listen"], "wrong").located(Some(named)).to_string();
        assert_eq!(message, "a.toml, line 1, column 10: wrong");
    }
}
