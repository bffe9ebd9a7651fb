//! Values as people write them: lengths of time, counts, sizes, rates, shares, addresses, networks, names of headers. Read
//! here and nowhere else, wherever they stand: in a flag, the environment, a settings file or a query.
//!
//! Each reader takes a text and gives the value, or one sentence with the text, what is wrong with it and what to write
//! instead. Whoever asked knows which flag or key it was and says so in front.

mod address;
mod number;
mod time;

pub use self::address::{engine, network};
pub use self::address::{field, header, socket, url};
pub use self::number::{count, decimal, number, rate, share, size};
pub use self::time::{duration, instant};

/// Reads the word `off`, or leaves the text to `reader`.
///
/// # Errors
///
/// Those of `reader`, which are told of `off` too.
pub fn or_off<T>(text: &str, reader: impl Fn(&str) -> Result<T, String>) -> Result<Option<T>, String> {
    match text.trim() {
        "off" => Ok(None),
        text => reader(text).map(Some).map_err(|message| format!("{message}, or off")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn off_is_a_word_and_everything_else_the_readers() {
        assert_eq!(or_off("off", duration), Ok(None));
        assert_eq!(or_off("1s", duration), Ok(Some(std::time::Duration::from_secs(1))));
        assert!(or_off("on", duration).unwrap_err().ends_with("1m30s, or off"));
    }
}
