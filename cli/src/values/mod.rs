//! Values as people write them: lengths of time, counts, sizes, rates, shares, addresses, networks, names of headers. Read
//! here and nowhere else, wherever they stand: in a flag, the environment, a settings file or a query. `file` and `layer` put
//! those over one another.
//!
//! Each reader takes a text and gives the value, or one sentence with the text, what is wrong with it and what to write
//! instead. Whoever asked knows which flag or key it was and says so in front.

mod address;
mod file;
mod layer;
mod number;
mod time;

use std::path::PathBuf;

pub use self::address::{engine, network};
pub use self::address::{field, header, socket, url};
pub use self::file::File;
pub use self::layer::{Layer, Refused, defaults, flag, in_environment, key_of, why};
pub use self::number::{count, decimal, number, rate, share, size};
pub use self::time::{duration, instant};

/// A reader of the word `off`, or of what `reader` reads.
pub fn or_off<T>(
    reader: impl Fn(&str) -> Result<T, String> + Clone,
) -> impl Fn(&str) -> Result<Option<T>, String> + Clone {
    move |text| match text.trim() {
        "off" => Ok(None),
        text => reader(text).map(Some).map_err(|message| format!("{message}, or off")),
    }
}

/// Reads one of `words`.
///
/// # Errors
///
/// The text is another word.
pub fn word<T: Clone>(text: &str, words: &[(&str, T)]) -> Result<T, String> {
    let found = words.iter().find(|(word, _)| *word == text.trim());
    found.map(|(_, value)| value.clone()).ok_or_else(|| {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        format!("{text:?} is not known: write {}", words.join(" or "))
    })
}

/// Reads the path of a file.
///
/// # Errors
///
/// The text is empty.
pub fn path(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() {
        return Err("the path of the file is empty: write it, or leave it out".to_owned());
    }
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn off_is_a_word_and_everything_else_the_readers() {
        assert_eq!(or_off(duration)("off"), Ok(None));
        assert_eq!(or_off(duration)("1s"), Ok(Some(std::time::Duration::from_secs(1))));
        assert!(or_off(duration)("on").unwrap_err().ends_with("1m30s, or off"));
    }
}
