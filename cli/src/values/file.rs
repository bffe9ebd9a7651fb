//! A settings file: TOML, and where in it something stands. Read by `proxy --config` and `load --config`.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use toml::Spanned;
use toml::de::DeTable;

/// The text of a settings file, and what it is called.
#[derive(Clone, Debug)]
pub struct File {
    name: Option<String>,
    text: String,
}

impl File {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// One line: it cannot be read, or is too large to be one of settings.
    pub fn open(path: &Path) -> Result<Self, String> {
        let name = path.display().to_string();
        let mut text = String::new();
        fs::File::open(path)
            .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text))
            .map_err(|error| format!("{name} cannot be read ({error}): check its name and its permissions"))?;
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(format!("{name} has more than {FILE_BYTES_MAX} bytes: name a settings file"));
        }
        Ok(Self { name: Some(name), text })
    }

    /// A text that is no file and has no name.
    pub fn nameless(text: &str) -> Self {
        Self { name: None, text: text.to_owned() }
    }

    /// Parses the text.
    ///
    /// # Errors
    ///
    /// One line with the place: it is not TOML.
    pub fn parse(&self) -> Result<Spanned<DeTable<'_>>, String> {
        DeTable::parse(&self.text).map_err(|error| {
            let message = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
            self.at(error.span().map_or(0, |span| span.start), &message)
        })
    }

    /// `message` with the line and the column of `offset` in front, both counted from 1, the column in characters.
    pub fn at(&self, offset: usize, message: &str) -> String {
        let before = self.text.get(..offset).unwrap_or(&self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let name = self.name.as_ref().map_or_else(String::new, |name| format!("{name}, "));
        format!("{name}line {line}, column {column}: {message}")
    }
}

/// Thousands of engines: a larger file is not one of settings.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_counted_in_lines_and_characters() {
        let file = File::nameless("a = \"ä\"\nä = 2\n");
        assert_eq!(file.at(0, "here"), "line 1, column 1: here");
        assert_eq!(file.at(file.text.find('2').unwrap(), "here"), "line 2, column 5: here");
        let named = File { name: Some("a.toml".to_owned()), ..file };
        assert_eq!(named.at(9, "here"), "a.toml, line 2, column 1: here");
    }

    #[test]
    fn what_is_not_toml_is_placed() {
        for (text, place) in
            [("listen = 127.0.0.1:80", "line 1, column"), ("a = 1\na = 2", "line 2, column 1"), ("[a", "line 1, ")]
        {
            let message = File::nameless(text).parse().unwrap_err();
            assert!(message.starts_with(place) && !message.contains('\n'), "{message}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        assert!(
            File::open(Path::new("/nonexistent.toml")).unwrap_err().starts_with("/nonexistent.toml cannot be read")
        );
        assert!(File::open(Path::new("/dev/zero")).unwrap_err().contains("name a settings file"));
    }
}
