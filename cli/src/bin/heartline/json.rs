//! Where a command writes its figures as JSON: a file, or standard output.
//!
//! Used as `#[arg(long, value_name = "FILE|-")] json: Option<json::Destination>`.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::str::FromStr;

use serde::Serialize;

/// The value of `--json`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Destination {
    /// `-`: standard output, where nothing else goes then.
    Stdout,
    /// A file that is written anew.
    File(PathBuf),
}

impl Destination {
    /// Returns whether standard output belongs to the JSON alone.
    pub(crate) fn is_stdout(&self) -> bool {
        *self == Self::Stdout
    }

    /// Opens the destination, so that a path that cannot be written is known before the run and not after it.
    ///
    /// # Errors
    ///
    /// One line that names the file and the reason.
    pub(crate) fn open(&self) -> Result<Writer, String> {
        match self {
            Self::Stdout => Ok(Writer(Box::new(io::stdout()))),
            Self::File(path) => match File::create(path) {
                Ok(file) => Ok(Writer(Box::new(file))),
                Err(error) => Err(format!("{} cannot be written: {error}", path.display())),
            },
        }
    }
}

impl FromStr for Destination {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "" => Err("the name is empty; write a file, or - for standard output".to_owned()),
            "-" => Ok(Self::Stdout),
            path => Ok(Self::File(path.into())),
        }
    }
}

/// An open destination that takes one document.
pub(crate) struct Writer(Box<dyn Write + Send>);

impl Writer {
    /// Writes `document` as one line.
    ///
    /// # Errors
    ///
    /// One line with the reason. A reader of standard output that went away is none: it has seen what it wanted.
    pub(crate) fn write(self, document: &impl Serialize) -> Result<(), String> {
        let mut line = serde_json::to_string(document).map_err(|error| error.to_string())?;
        line.push('\n');
        self.write_text(&line)
    }

    /// Writes `text` as it is.
    ///
    /// # Errors
    ///
    /// As [`Writer::write`].
    pub(crate) fn write_text(mut self, text: &str) -> Result<(), String> {
        let written = self.0.write_all(text.as_bytes()).and_then(|()| self.0.flush());
        match written {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(format!("the figures could not be written: {error}"))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Writer")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dash_is_standard_output_and_anything_else_a_file() {
        assert_eq!("-".parse(), Ok(Destination::Stdout));
        assert_eq!("out.json".parse(), Ok(Destination::File("out.json".into())));
        assert!("".parse::<Destination>().unwrap_err().contains("write a file"));
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let nowhere = Destination::File("/nonexistent/out.json".into());
        let message = nowhere.open().unwrap_err();
        assert!(message.starts_with("/nonexistent/out.json cannot be written: "), "{message}");
    }
}
